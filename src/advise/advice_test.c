/* advice_test.c: jobs of a few events whose faults, savings and sums are known by hand; healthy and hidden costs give no finding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "advise/advice.h"
#include "support/trace_model.h"

struct job {
	struct small_model s;
	source_id source;
	track_id host, stream;
	struct arena arena;
	struct findings tfprof;
	struct advice a;
};

static void open_job(struct job *j)
{
	memset(j, 0, sizeof(*j));
	small_open(&j->s);
	j->source = trace_source(&j->s, "a.json", 0);
	j->host = trace_track(&j->s, j->source, "main", TRACK_HOST, NULL);
	j->stream = trace_track(&j->s, j->source, "stream 7", TRACK_STREAM, "/device:GPU:0");
}

static void advise(struct job *j)
{
	small_freeze(&j->s);
	arena_init(&j->arena, &j->s.mem);
	j->tfprof.arena = &j->arena;
	assert_int_equal(advice_make(j->s.m, NULL, &j->arena, &j->a, &j->tfprof, &j->s.err), OW_OK);
}

static void close_job(struct job *j)
{
	int64_t sum = 0;

	for (size_t i = 0; i < j->a.row_count; i++) {
		const struct advice_row *row = &j->a.rows[i];

		sum += row->has_after ? row->after_ns : 0;
		if (row->checked && row->has_saving)
			assert_true(row->low_ns <= row->high_ns);
		assert_true(!row->has_after || !row->by_mean);
	}
	assert_int_equal(sum, j->a.step_ns - j->a.if_all_ns);
	advice_close(&j->a);
	arena_release(&j->arena);
	small_close(&j->s);
}

static const struct advice_row *find(const struct job *j, const char *rule)
{
	for (size_t i = 0; i < j->a.row_count; i++)
		if (strcmp(j->a.rows[i].rule->name, rule) == 0)
			return &j->a.rows[i];
	return NULL;
}

static bool is_finding(const struct advice_row *row)
{
	return row && row->checked && row->severity >= SEVERITY_MEDIUM;
}

static uint32_t count_findings(const struct job *j)
{
	uint32_t count = 0;

	for (size_t i = 0; i < j->a.row_count; i++)
		count += is_finding(&j->a.rows[i]);
	return count;
}

/* The upper end of a saving in a recording whose steps are alike: a replay may be off by 2 % of it, a share by 10 %. */
static int64_t at_most(int64_t saving_ns)
{
	return saving_ns + saving_ns / 50;
}

/* input ms of waiting, then a launch and a kernel of 8 ms for which the host waits. */
static void add_step(struct job *j, int64_t number, int64_t at, int64_t input)
{
	event_id call;

	trace_step(&j->s, j->source, number, at, at + input + 9);
	if (input)
		trace_slice(&j->s, j->host, "DataLoader.__next__", PHASE_INPUT, at, at + input);
	call = trace_slice(&j->s, j->host, "cudaLaunchKernel", PHASE_LAUNCH, at + input,
			   at + input + 1);
	trace_launch(&j->s, call,
		     trace_slice(&j->s, j->stream, "gemm", PHASE_COMPUTE, at + input + 1,
				 at + input + 9));
	trace_slice(&j->s, j->host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + input + 1,
		    at + input + 9);
}

static void waits_for_input(void **state)
{
	const struct advice_row *row;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++)
		add_step(&j, i, 15 * i, 6);
	advise(&j);
	assert_int_equal(j.a.step_ns, 15 * MS);
	row = find(&j, "input_wait");
	assert_int_equal(row->high_ns, at_most(6 * MS));
	assert_int_equal(row->low_ns, 0); /* all steps are alike */
	assert_int_equal(row->severity, SEVERITY_HIGH);
	assert_int_equal(row->confidence, CONFIDENCE_HIGH);
	assert_true(str_has(row->evidence, STR("\"op\": \"DataLoader.__next__\"")));
	assert_int_equal(row->after_ns, 0);
	/* The host waits for 8 and works for 7: without the wait the kernel of 8 is the step, and input is hidden. */
	row = &j.a.rows[0];
	assert_string_equal(row->rule->name, "synchronization");
	assert_int_equal(row->high_ns, at_most(7 * MS));
	assert_int_equal(row->after_ns, 7 * MS);
	assert_int_equal(j.a.if_all_ns, 8 * MS);
	close_job(&j);
}

/* The best step of the recording says how little it can be. */
static void low_is_the_best_step(void **state)
{
	const struct advice_row *row;
	int64_t at = 0;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++) {
		int64_t input = i == 2 ? 4 : 6;

		add_step(&j, i, at, input);
		at += input + 9;
	}
	advise(&j);
	row = find(&j, "input_wait");
	assert_int_equal(row->high_ns, at_most(6 * MS));
	assert_int_equal(row->low_ns, 2 * MS - 2 * MS / 50);
	close_job(&j);
}

/* The device computes all the time; what the host does meanwhile is no finding. */
static void healthy(void **state)
{
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 6; i++) {
		event_id call;

		trace_step(&j.s, j.source, i, 5 * i, 5 * i + 5);
		trace_slice(&j.s, j.host, "DataLoader.__next__", PHASE_INPUT, 5 * i, 5 * i + 4);
		call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, 5 * i + 4,
				   5 * i + 5);
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, 5 + 20 * i,
					 25 + 20 * i));
	}
	advise(&j);
	assert_int_equal(j.a.step_ns, 20 * MS);
	assert_int_equal(count_findings(&j), 0);
	assert_int_equal(j.a.if_all_ns, 20 * MS);
	close_job(&j);
}

static void allocates(void **state)
{
	const struct advice_row *row;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++) {
		int64_t at = 20 * i;
		event_id call;

		trace_step(&j.s, j.source, i, at, at + 20);
		trace_slice(&j.s, j.host, "cudaMalloc", PHASE_ALLOCATION, at, at + 10);
		call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at + 10,
				   at + 11);
		trace_launch(&j.s, call,
			     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 11, at + 20));
		trace_slice(&j.s, j.host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION, at + 11,
			    at + 20);
	}
	advise(&j);
	row = &j.a.rows[0];
	assert_string_equal(row->rule->name, "allocation");
	assert_int_equal(row->high_ns, at_most(10 * MS));
	close_job(&j);
}

/* Step 3 of 8 takes 10 ms longer: of the mean step, outside the sum. */
static void slow_steps(void **state)
{
	const struct advice_row *row;
	int64_t at = 0, mean;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 10; i++) {
		int64_t input = i == 5 ? 16 : 1;

		add_step(&j, i, at, input);
		at += input + 9;
	}
	advise(&j);
	row = find(&j, "outlier_steps");
	assert_true(is_finding(row));
	assert_true(row->by_mean && !row->has_after);
	/* one slow step was seen: another one may be left out, which counts for half of the saving at most */
	mean = 15 * MS / j.a.steady.used_count;
	assert_int_equal(row->high_ns, at_most(mean) + mean / 2);
	close_job(&j);
}

static void steps_get_slower(void **state)
{
	const struct advice_row *row;
	int64_t at = 0;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 12; i++) {
		int64_t input = i < 6 ? 1 : 11;

		add_step(&j, i, at, input);
		at += input + 9;
	}
	advise(&j);
	row = find(&j, "step_change");
	assert_true(is_finding(row));
	assert_true(str_has(row->what, STR("from step 6 on")));
	close_job(&j);
}

/* Without launches the shares of the phases are used, with less confidence. */
static void no_launches(void **state)
{
	const struct advice_row *row;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++) {
		trace_step(&j.s, j.source, i, 20 * i, 20 * i + 20);
		trace_slice(&j.s, j.host, "DataLoader.__next__", PHASE_INPUT, 20 * i, 20 * i + 5);
		trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, 20 * i + 5, 20 * i + 20);
	}
	advise(&j);
	assert_false(advice_replays(&j.a));
	row = &j.a.rows[0];
	assert_string_equal(row->rule->name, "input_wait");
	assert_int_equal(row->high_ns, 5 * MS + 5 * MS / 10);
	assert_true(str_has(row->evidence, STR("\"op\": \"DataLoader.__next__\"")));
	assert_true(row->confidence <= CONFIDENCE_MEDIUM);
	assert_false(find(&j, "blocking_copy")->checked);
	close_job(&j);
}

/* The host needs 2 ms for a step of 20 and never waits: the device's own timeline says what its steps have, of the mean. */
static void runs_ahead_without_launches(void **state)
{
	const struct advice_row *row;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 6; i++) {
		trace_step(&j.s, j.source, i, 2 * i, 2 * i + 2);
		trace_slice(&j.s, j.host, "DataLoader.__next__", PHASE_INPUT, 2 * i, 2 * i + 1);
		trace_slice(&j.s, j.stream, "copy", PHASE_HOST_TO_DEVICE, 20 * i, 20 * i + 5);
		trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, 20 * i + 5, 20 * i + 20);
	}
	advise(&j);
	assert_true(j.a.ahead_ns >= 18 * MS && j.a.ahead_ns <= 25 * MS);
	row = find(&j, "transfer");
	assert_true(is_finding(row) && row->by_mean && !row->has_after);
	assert_in_range(row->high_ns, 5 * MS, 9 * MS);
	assert_int_equal(count_findings(&j), 1); /* what the host does is hidden */
	close_job(&j);
}

/* An operator that takes long to launch its kernel does not compute on the host; one that launches nothing does. */
static void operators_of_the_host(void **state)
{
	for (int launches = 0; launches < 2; launches++) {
		struct job j;

		open_job(&j);
		for (int64_t i = 0; i < 5; i++) {
			int64_t at = 20 * i;
			event_id call;

			trace_step(&j.s, j.source, i, at, at + 20);
			trace_slice(&j.s, j.host, "aten::sort", PHASE_COMPUTE, at,
				    launches ? at + 11 : at + 10);
			call = trace_slice(&j.s, j.host, "cudaLaunchKernel", PHASE_LAUNCH, at + 10,
					   at + 11);
			trace_launch(&j.s, call,
				     trace_slice(&j.s, j.stream, "gemm", PHASE_COMPUTE, at + 11,
						 at + 20));
			trace_slice(&j.s, j.host, "cudaDeviceSynchronize", PHASE_SYNCHRONISATION,
				    at + 11, at + 20);
		}
		advise(&j);
		assert_int_equal(is_finding(find(&j, "op_on_cpu")), !launches);
		assert_int_equal(is_finding(find(&j, "host_code")), launches);
		close_job(&j);
	}
	(void)state;
}

/* Code around the operators of a job without a device is a share beside the replay: it is in the sum, and has evidence. */
static void host_code_without_a_device(void **state)
{
	const struct advice_row *row;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 5; i++) {
		trace_step(&j.s, j.source, i, 20 * i, 20 * i + 20);
		trace_slice(&j.s, j.host, "metrics", PHASE_HOST, 20 * i, 20 * i + 6);
		trace_slice(&j.s, j.host, "aten::mm", PHASE_COMPUTE, 20 * i + 6, 20 * i + 20);
	}
	advise(&j);
	assert_true(advice_replays(&j.a));
	row = &j.a.rows[0];
	assert_string_equal(row->rule->name, "host_code");
	assert_true(row->has_after);
	assert_int_equal(row->after_ns, 6 * MS);
	assert_int_equal(j.a.if_all_ns, 14 * MS);
	assert_true(str_has(row->evidence, STR("\"op\": \"metrics\"")));
	close_job(&j);
}

/* Of two steps the first one allocates: warm-up, whatever it takes. */
static void warm_up_of_two_steps(void **state)
{
	int64_t at = 0;
	struct job j;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 2; i++) {
		if (!i)
			trace_slice(&j.s, j.host, "cudaMalloc", PHASE_ALLOCATION, at, at + 10);
		add_step(&j, i, at + (i ? 0 : 10), 0);
		at += i ? 9 : 19;
	}
	small_freeze(&j.s);
	j.s.m->window.start_ns[1] = 0; /* the first step begins with the allocation */
	arena_init(&j.arena, &j.s.mem);
	j.tfprof.arena = &j.arena;
	assert_int_equal(advice_make(j.s.m, NULL, &j.arena, &j.a, &j.tfprof, &j.s.err), OW_OK);
	assert_false(is_finding(find(&j, "allocation")));
	close_job(&j);
}

static void nothing(void **state)
{
	struct job j;

	(void)state;
	open_job(&j);
	advise(&j);
	for (size_t i = 0; i < j.a.row_count; i++)
		assert_true(!j.a.rows[i].checked || j.a.rows[i].severity == SEVERITY_INFO);
	close_job(&j);
}

static void without_memory(void **state)
{
	struct job j;
	bool done = false;

	(void)state;
	open_job(&j);
	for (int64_t i = 0; i < 4; i++)
		add_step(&j, i, 15 * i, 6);
	small_freeze(&j.s);
	/* the model keeps what it computes on first use */
	assert_int_equal(model_require_nesting(j.s.m, &j.s.err), OW_OK);
	assert_int_equal(model_require_stacks(j.s.m, &j.s.err), OW_OK);
	for (uint64_t n = 1; !done; n++) {
		size_t before = atomic_load(&j.s.mem.used);
		ow_status status;

		arena_init(&j.arena, &j.s.mem);
		j.tfprof = (struct findings){ .arena = &j.arena };
		mem_fail_after(n, true);
		status = advice_make(j.s.m, NULL, &j.arena, &j.a, &j.tfprof, &j.s.err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		done = status == OW_OK;
		advice_close(&j.a);
		arena_release(&j.arena);
		assert_int_equal(atomic_load(&j.s.mem.used), before);
	}
	small_close(&j.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_input),
		cmocka_unit_test(low_is_the_best_step),
		cmocka_unit_test(healthy),
		cmocka_unit_test(allocates),
		cmocka_unit_test(slow_steps),
		cmocka_unit_test(steps_get_slower),
		cmocka_unit_test(no_launches),
		cmocka_unit_test(nothing),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(operators_of_the_host),
		cmocka_unit_test(host_code_without_a_device),
		cmocka_unit_test(warm_up_of_two_steps),
		cmocka_unit_test(runs_ahead_without_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
