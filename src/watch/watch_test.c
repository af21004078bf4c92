/*
 * watch_test.c: what is seen of a recording that grows is what the views say of the whole: steps, each once, phases, the
 * slowest rank, operations; anomaly detection reports a slowdown and a stall, once, and why; every allocation that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/live_file.h"
#include "watch/anomaly.h"

#include <math.h>

static char path[64];

static int make_path(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/opwatch-watch-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void begin(struct live_writer *w, unsigned ranks)
{
	live_writer_open(w, path);
	for (uint32_t p = 1; p <= ranks; p++) {
		char rank[16];

		snprintf(rank, sizeof(rank), "RANK=%u", p - 1);
		live_writer_process(w, p, 0, ranks > 1 ? rank : NULL);
		live_writer_thread(w, p, 100 + p);
	}
	live_writer_flush(w);
}

struct watching {
	struct mem mem;
	struct watch watch;
	struct ow_error err;
};

static void open_watch(struct watching *w)
{
	*w = (struct watching){ 0 };
	mem_init(&w->mem, 0);
	watch_init(&w->watch, &w->mem, 0, NULL);
	if (watch_add(&w->watch, path, &w->err) != OW_OK)
		fail_msg("%s", w->err.text);
}

static const struct ow_job *look(struct watching *w)
{
	if (watch_turn_now(&w->watch, &w->err) != OW_OK ||
	    watch_make_jobs(&w->watch, &w->err) != OW_OK)
		fail_msg("%s", w->err.text);
	assert_int_equal(w->watch.job_count, 1);
	return &w->watch.jobs[0];
}

static void close_watch(struct watching *w)
{
	watch_release(&w->watch);
	assert_int_equal(w->mem.used, 0);
}

static int64_t phase(const struct ow_job *job, const char *name)
{
	for (size_t i = 0; i < OW_PHASES; i++)
		if (strcmp(ow_phase_name(i), name) == 0)
			return job->phase_ns[i];
	fail();
	return 0;
}

/* Steps of 51 ms: 30 wait, 20 compute, 1 the optimizer; the next one begins at once. Looked at in every possible place. */
static void each_step_is_seen_once(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	for (uint64_t i = 0; i < 60; i++) {
		live_writer_step(&w, 1, 1000 + i * 51, 30, 20);
		if (i % 3 == 0)
			live_writer_flush(&w);
		if (i % 7 == 0 || i % 5 == 0)
			look(&v);
	}
	live_writer_close(&w);
	job = look(&v);
	/* The first one is left out: it may be cut short. */
	assert_int_equal(job->steps, 59);
	assert_int_equal(job->step_ns, 51000000);
	assert_int_equal(job->last_ns, 51000000);
	assert_int_equal(phase(job, "input"), 30000000);
	assert_int_equal(phase(job, "compute"), 20000000);
	assert_true(fabs(job->trend) < 1e-9);
	assert_int_equal(job->recent_count, 59);
	assert_string_equal(job->name, "python3 train.py");
	assert_int_equal(job->state, OW_JOB_ENDED);
	assert_true(job->op_count >= 1);
	for (size_t i = 0; i < job->op_count; i++)
		if (strcmp(job->ops[i].name, "aten::mm") == 0)
			assert_true(llabs(job->ops[i].self_ns - 20000000) < 100000 &&
				    fabs(job->ops[i].runs - 1) < 0.01);
	close_watch(&v);
}

/* The same steps as the view `steps` has, whatever is looked at when. */
static void is_what_the_view_says(void **state)
{
	const char *file = path;
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_result *steps = NULL;
	const struct watch_rank *r;
	struct live_writer w;
	struct watching v;
	uint32_t at;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	for (uint64_t i = 0, t = 1000; i < 40; i++) {
		uint64_t wait = 10 + i * 7 % 13, compute = 5 + i * 11 % 17;

		live_writer_step(&w, 1, t, wait, compute);
		t += wait + compute + 1 + i % 4;
		live_writer_flush(&w);
		look(&v);
	}
	live_writer_close(&w);
	look(&v);
	assert_int_equal(ow_profile_open(&file, 1, NULL, &profile, &err), OW_OK);
	assert_int_equal(ow_view(profile, "steps", NULL, &steps, &err), OW_OK);
	assert_int_equal(ow_result_rows(steps), 40);
	r = v.watch.files[0]->ranks[0];
	assert_int_equal(r->count, 39);
	at = ow_result_find(steps, "input_ns");
	assert_true(at != UINT32_MAX);
	for (uint64_t i = 0; i < 39; i++)
		assert_int_equal(watch_step_at(r, i)->share[CLASS_INPUT],
				 ow_result_int(steps, (uint32_t)i + 1, at));
	ow_result_free(steps);
	ow_profile_free(profile);
	close_watch(&v);
}

static void the_slowest_rank_is_named(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 3);
	open_watch(&v);
	for (uint64_t i = 0; i < 20; i++) {
		for (uint32_t p = 1; p <= 3; p++) {
			uint64_t t = 1000 + i * 100, work = p == 2 ? 90 : 60;

			live_writer_slice(&w, p, "aten::mm", RING_OPERATOR, t, t + work);
			live_writer_slice(&w, p, "gloo:all_reduce", RING_RANGE, t + work, t + 99);
			live_writer_slice(&w, p, "Optimizer.step#SGD.step", RING_RANGE, t + 99,
					  t + 100);
		}
		live_writer_flush(&w);
		look(&v);
	}
	live_writer_close(&w);
	job = look(&v);
	assert_int_equal(job->rank_count, 3);
	assert_int_equal(job->slowest_rank, 1);
	assert_true(job->slowest_by > 0.4 && job->slowest_by < 0.6);
	assert_int_equal(job->step_ns, 100000000);
	assert_int_equal(phase(job, "communication") / 1000000, (39 + 9 + 39) / 3);
	close_watch(&v);
}

/* Two trainings under one `record`, without ranks: each has its own steps, and each process its own throughput. */
static void two_trainings_stay_two(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	live_writer_open(&w, path);
	for (uint32_t p = 1; p <= 2; p++) {
		live_writer_process(&w, p, 0, NULL);
		live_writer_thread(&w, p, 100 + p);
	}
	live_writer_flush(&w);
	open_watch(&v);
	for (uint64_t i = 0; i < 120; i++) {
		live_writer_step(&w, 1, 1000 + i * 50, 10, 39);
		if (i % 2)
			live_writer_step(&w, 2, 1007 + i * 50, 10, 89);
		live_writer_flush(&w);
		look(&v);
	}
	live_writer_close(&w);
	job = look(&v);
	assert_int_equal(job->rank_count, 2);
	assert_int_equal(job->slowest_rank, -1);
	assert_int_equal(job->ranks[0].steps, 119);
	assert_int_equal(job->ranks[0].step_ns, 50000000);
	assert_true(fabs(job->ranks[0].steps_per_s - 20) < 0.01);
	assert_int_equal(job->ranks[1].steps, 59);
	assert_int_equal(job->ranks[1].step_ns, 100000000);
	assert_true(fabs(job->ranks[1].steps_per_s - 10) < 0.01);
	assert_true(job->ranks[0].pid > 0 && job->ranks[0].pid != job->ranks[1].pid);
	close_watch(&v);
}

/* Long steps are not among the recent ones that phases are of; the parts of operations are of the steps that they ran in. */
static void parts_are_of_the_same_steps(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	for (uint64_t i = 0, t = 1000; i < 40; i++) {
		uint64_t wait = i % 4 ? 10 : 900;

		live_writer_step(&w, 1, t, wait, 10);
		t += wait + 11;
		live_writer_flush(&w);
		look(&v);
	}
	live_writer_close(&w);
	job = look(&v);
	assert_true(job->op_count >= 2);
	for (size_t i = 0; i < job->op_count; i++)
		assert_true(job->ops[i].share > 0 && job->ops[i].share <= 1);
	assert_true(job->ops[0].share > 0.9);
	close_watch(&v);
}

/* The kernel counts a wait for a processor when it is over, and looks are 40 ms apart: of steps of 200 ms that wait for 180 ms, all of it
 * counts. The rows are those that the collector writes: none for a look at which nothing has changed, but the last of these. */
static void long_waits_for_a_processor_are_whole(void **state)
{
	uint64_t running = 0, waiting = 0, run = 0, wait = 0;
	struct live_count row = { .process = 1, .counter = LIVE_SCHEDULED, .calls = 101 };
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;
	bool written = true;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	for (uint64_t t = 1000, seen = 0; t < 9000; t += 40) {
		run = (t - 1000) / 200 * 20 + MIN((t - 1000) % 200, (uint64_t)20);
		wait = (t - 1000) / 200 * 180;
		row.ts_ns = (int64_t)(seen * 1000000);
		row.ns = running * 1000000;
		row.bytes = waiting * 1000000;
		if (seen && !written && (run != running || wait != waiting))
			recording_add_count(&w.recording, &row);
		written = !seen || run != running || wait != waiting;
		row.ts_ns = (int64_t)(t * 1000000);
		row.ns = run * 1000000;
		row.bytes = wait * 1000000;
		if (written)
			recording_add_count(&w.recording, &row);
		running = run;
		waiting = wait;
		seen = t;
		if ((t - 1000) % 200 == 0 && t < 8800)
			live_writer_step(&w, 1, t, 10, 189);
		live_writer_flush(&w);
	}
	live_writer_close(&w);
	job = look(&v);
	assert_int_equal(job->step_ns, 200000000);
	assert_true(phase(job, "run_queue") > 174000000 && phase(job, "run_queue") < 182000000);
	close_watch(&v);
}

/* Gradients of four batches per step: a look that sees one optimizer only must not take batches for steps. */
static void batches_are_no_steps(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	for (uint64_t i = 0; i < 80; i++) {
		uint64_t t = 1000 + i * 50;

		live_writer_slice(&w, 1, "enumerate(DataLoader)#x.__next__", RING_RANGE, t, t + 20);
		live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, t + 20, t + 45);
		if (i % 4 == 3)
			live_writer_slice(&w, 1, "Optimizer.step#SGD.step", RING_RANGE, t + 45,
					  t + 50);
		live_writer_flush(&w);
		look(&v);
	}
	live_writer_close(&w);
	job = look(&v);
	assert_int_equal(job->step_ns, 200000000);
	assert_true(job->steps >= 17 && job->steps <= 19);
	close_watch(&v);
}

static void jobs_without_steps_have_phases(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	for (uint64_t i = 0; i < 20; i++)
		live_writer_slice(&w, 1, "read", RING_FILE_READ, 1000 + i * 10, 1005 + i * 10);
	live_writer_flush(&w);
	open_watch(&v);
	job = look(&v);
	assert_false(job->has_steps);
	assert_int_equal(job->step_ns, -1);
	assert_true(isnan(job->trend));
	assert_true(phase(job, "input") > 0);
	assert_int_equal(job->op_count, 1);
	live_writer_close(&w);
	close_watch(&v);
}

/* What happened last may be long ago: since then nothing was recorded of this process, which lives. */
static void since_counts_from_now(void **state)
{
	uint64_t now = (uint64_t)clock_ns(CLOCK_MONOTONIC) / LIVE_MS;
	struct live_writer w;
	struct watching v;

	(void)state;
	if (now < 60000)
		skip(); /* a machine that was started just now */
	live_writer_open(&w, path);
	recording_add_process(&w.recording,
			      &(struct live_process){ .number = 1, .pid = (uint32_t)getpid() });
	live_writer_thread(&w, 1, 1);
	live_writer_slice(&w, 1, "read", RING_FILE_READ, now - 50000, now - 49000);
	live_writer_flush(&w);
	open_watch(&v);
	assert_true(look(&v)->since_ns >= 49000 * (int64_t)LIVE_MS);
	for (uint64_t i = 0; i < 20; i++)
		live_writer_step(&w, 1, now - 40000 + i * 51, 30, 20);
	live_writer_flush(&w);
	assert_true(look(&v)->since_ns >= 38000 * (int64_t)LIVE_MS);
	live_writer_close(&w);
	assert_true(look(&v)->since_ns <
		    1000 * (int64_t)LIVE_MS); /* ended: as of its last record */
	close_watch(&v);
}

/* So many operators in this many milliseconds. */
static void add_many(struct live_writer *w, uint32_t process, uint32_t name, unsigned count,
		     uint64_t begin, uint64_t time)
{
	for (unsigned i = 0; i < count; i++)
		live_writer_record(w, process,
				   (struct ring_record){ .kind = RING_SLICE,
							 .category = RING_OPERATOR,
							 .name = name,
							 .start_ns = begin * LIVE_MS +
								     time * LIVE_MS * i / count,
							 .dur_ns = time * LIVE_MS / count });
}

/* Before there is a whole step it is known what is done, per second. */
static void the_first_step_is_shown_as_it_goes(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	open_watch(&v);
	live_writer_step(&w, 1, 1000, 300, 200);
	live_writer_slice(&w, 1, "aten::mm", RING_OPERATOR, 1600, 1700);
	live_writer_flush(&w);
	job = look(&v);
	assert_false(job->has_steps);
	assert_true(job->op_count >= 1);
	assert_string_equal(job->ops[0].name, "aten::mm");
	assert_true(phase(job, "compute") > 0);
	live_writer_step(&w, 1, 1700, 30, 20);
	live_writer_step(&w, 1, 1751, 30, 20);
	live_writer_close(&w);
	job = look(&v);
	assert_true(job->has_steps && job->op_count >= 2);
	assert_int_equal(job->ops[0].self_ns, 70000000); /* aten::mm, 120 and 20 */
	assert_string_equal(job->ops[1].name,
			    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	assert_int_equal(job->ops[1].self_ns, 30000000);
	close_watch(&v);
}

/* Nine megabytes of records in each step. */
static void steps_of_many_records_are_seen(void **state)
{
	const struct ow_job *job;
	struct live_writer w;
	struct watching v;
	uint32_t name;

	(void)state;
	begin(&w, 1);
	name = live_writer_name(&w, 1, "aten::relu");
	for (uint64_t i = 0; i < 4; i++) {
		add_many(&w, 1, name, 100000, 1000 + i * 500, 499);
		live_writer_slice(&w, 1, "Optimizer.step#SGD.step", RING_RANGE, 1499 + i * 500,
				  1500 + i * 500);
		live_writer_flush(&w);
	}
	live_writer_close(&w);
	open_watch(&v);
	job = look(&v);
	assert_true(job->has_steps);
	assert_int_equal(job->step_ns, 500000000);
	assert_true(job->op_count >= 1);
	assert_string_equal(job->ops[0].name, "aten::relu");
	assert_true(fabs(job->ops[0].runs - 100000) < 2);
	close_watch(&v);
}

static void a_file_that_begins_anew_is_a_new_job(void **state)
{
	struct live_writer w;
	struct watching v;

	(void)state;
	begin(&w, 1);
	for (uint64_t i = 0; i < 10; i++)
		live_writer_step(&w, 1, 1000 + i * 51, 30, 20);
	live_writer_close(&w);
	open_watch(&v);
	assert_int_equal(look(&v)->steps, 9);
	begin(&w, 1);
	for (uint64_t i = 0; i < 4; i++)
		live_writer_step(&w, 1, 1000 + i * 31, 10, 20);
	live_writer_close(&w);
	assert_int_equal(look(&v)->steps, 3);
	assert_int_equal(look(&v)->step_ns, 31000000);
	close_watch(&v);
}

/* ---- anomalies ---- */

struct printed {
	unsigned lines, saved;
	char last[1024], file[512];
	int64_t from_ns, to_ns;
};

static struct printed printed;

static void on_message(void *arg, const char *text, size_t len)
{
	(void)arg;
	printed.lines++;
	snprintf(printed.last, sizeof(printed.last), "%.*s", (int)len, text);
}

static ow_status on_save(struct follow *f, struct follow_range *range, const char *file,
			 struct ow_error *err)
{
	(void)f;
	(void)err;
	printed.saved++;
	printed.from_ns = range->from_ns;
	printed.to_ns = range->to_ns;
	snprintf(printed.file, sizeof(printed.file), "%s", file);
	return OW_OK;
}

static void open_anomaly_watch(struct anomaly_watch *a, struct mem *mem, double slowdown,
			       int64_t stall_ns)
{
	const struct anomaly_options options = { .slowdown = slowdown,
						 .stall_ns = stall_ns,
						 .recording = path,
						 .prefix = "/tmp/opwatch-none",
						 .message = on_message,
						 .save = on_save };
	struct ow_error err = { 0 };

	printed = (struct printed){ 0 };
	mem_init(mem, 0);
	assert_int_equal(anomaly_init(a, mem, &options, &err), OW_OK);
}

static void check_anomalies(struct anomaly_watch *a, bool last)
{
	struct ow_error err = { 0 };

	a->watch.count ? (void)(a->watch.files[0]->due_ns = 0) : (void)0;
	if (anomaly_turn(a, last, &err) != OW_OK)
		fail_msg("%s", err.text);
}

static void a_slowdown_is_explained(void **state)
{
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;

	(void)state;
	open_anomaly_watch(&a, &mem, 0.2, 0);
	begin(&w, 1);
	for (uint64_t i = 0, t = 1000; i < 90; i++) {
		uint64_t wait = i < 50 ? 30 : 60;

		live_writer_step(&w, 1, t, wait, 20);
		t += wait + 21;
		live_writer_flush(&w);
		if (i % 4 == 0)
			check_anomalies(&a, false);
		if (i < 50)
			assert_int_equal(printed.lines, 0);
	}
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.lines, 1);
	assert_int_equal(printed.saved, 1);
	assert_non_null(strstr(printed.last, "steps take 59 % longer since "));
	assert_non_null(strstr(printed.last,
			       "(81.0 ms, before 51.0 ms): input went from 30.0 ms to "
			       "60.0 ms, most of it in enumerate(DataLoader)#"));
	assert_non_null(
		strstr(printed.last, "; saving the minute around it to /tmp/opwatch-none-slow-"));
	/* Around where it began. */
	assert_int_equal(printed.from_ns / 1000000, 1000 + 50 * 51 - 30000);
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

/* It is printed all the same; that no more is saved is printed once. */
static void no_more_is_saved_than_may_be(void **state)
{
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;

	(void)state;
	open_anomaly_watch(&a, &mem, 0.2, 0);
	a.options.saved_limit = a.saved_bytes = 2000000;
	begin(&w, 1);
	for (uint64_t i = 0, t = 1000; i < 150; i++) {
		uint64_t wait = i < 50 ? 30 : i < 100 ? 60 : 120;

		live_writer_step(&w, 1, t, wait, 20);
		t += wait + 21;
		live_writer_flush(&w);
		if (i % 4 == 0)
			check_anomalies(&a, false);
		if (i == 99)
			assert_non_null(strstr(printed.last,
					       "; not saved: saved incidents already take "
					       "2.0 MB of the 2.0 MB that they may"));
	}
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.lines, 2);
	assert_null(strstr(printed.last, "saved"));
	assert_int_equal(printed.saved, 0);
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

/* More records than are read to explain it: times are of the steps that were. */
static void a_slowdown_with_many_records_is_explained(void **state)
{
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;
	uint32_t name;

	(void)state;
	open_anomaly_watch(&a, &mem, 0.2, 0);
	begin(&w, 1);
	name = live_writer_name(&w, 1, "aten::relu");
	for (uint64_t i = 0, t = 1000; i < 100; i++) {
		uint64_t wait = i < 80 ? 30 : 60;

		live_writer_slice(&w, 1, "enumerate(DataLoader)#x.__next__", RING_RANGE, t,
				  t + wait);
		add_many(&w, 1, name, 2000, t + wait, 20);
		live_writer_slice(&w, 1, "Optimizer.step#SGD.step", RING_RANGE, t + wait + 20,
				  t + wait + 21);
		t += wait + 21;
		live_writer_flush(&w);
		if (i % 20 == 19)
			check_anomalies(&a, false);
	}
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.lines, 1);
	assert_non_null(strstr(printed.last, "input went from 30.0 ms to 60.0 ms, most of it in "
					     "enumerate(DataLoader)#x.__next__ (30.0 ms to 60.0 ms "
					     "per step)"));
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

static void a_slow_rank_is_blamed(void **state)
{
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;

	(void)state;
	open_anomaly_watch(&a, &mem, 0.2, 0);
	begin(&w, 2);
	for (uint64_t i = 0, t = 1000; i < 80; i++) {
		uint64_t step = i < 40 ? 50 : 90;

		for (uint32_t p = 1; p <= 2; p++) {
			uint64_t work = p == 2 && i >= 40 ? 80 : 40;

			live_writer_slice(&w, p, "aten::mm", RING_OPERATOR, t, t + work);
			live_writer_slice(&w, p, "gloo:all_reduce", RING_RANGE, t + work,
					  t + step - 1);
			live_writer_slice(&w, p, "Optimizer.step#SGD.step", RING_RANGE,
					  t + step - 1, t + step);
		}
		t += step;
		live_writer_flush(&w);
		check_anomalies(&a, false);
	}
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.lines, 1);
	assert_non_null(strstr(printed.last,
			       "): on rank 1 compute went from 40.0 ms to 80.0 ms, most "
			       "of it in aten::mm (40.0 ms to 80.0 ms per step)"));
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

/* A stall is real time: the steps ended long before now. The process is this one, which lives. */
static void a_stall_is_told_once(void **state)
{
	uint64_t now = (uint64_t)clock_ns(CLOCK_MONOTONIC) / LIVE_MS;
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;

	(void)state;
	if (now < 60000)
		skip(); /* a machine that was started just now */
	open_anomaly_watch(&a, &mem, 0, 40 * 1000000000LL);
	check_anomalies(&a, false);
	live_writer_open(&w, path);
	recording_add_process(&w.recording,
			      &(struct live_process){ .number = 1, .pid = (uint32_t)getpid() });
	live_writer_thread(&w, 1, 1);
	for (uint64_t i = 0; i < 20; i++)
		live_writer_step(&w, 1, now - 50000 + i * 51, 30, 20);
	live_writer_flush(&w);
	check_anomalies(&a, false);
	check_anomalies(&a, false);
	assert_int_equal(printed.lines, 1);
	assert_non_null(strstr(printed.last, "no step for 4"));
	assert_non_null(strstr(printed.last, "; steps took 51.0 ms"));
	assert_non_null(strstr(printed.last, "-stall-"));
	assert_int_equal(printed.saved, 0); /* the rest of the minute is yet to come */
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.saved, 1);
	assert_int_equal(printed.lines, 1);
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

static void steady_jobs_are_left_alone(void **state)
{
	struct anomaly_watch a;
	struct live_writer w;
	struct mem mem;

	(void)state;
	open_anomaly_watch(&a, &mem, 0.2, 0);
	begin(&w, 1);
	for (uint64_t i = 0, t = 1000; i < 120; i++) {
		uint64_t wait = i % 10 == 0 ? 300 : 30 + i % 3;

		live_writer_step(&w, 1, t, wait, 20);
		t += wait + 21;
		live_writer_flush(&w);
		check_anomalies(&a, false);
	}
	live_writer_close(&w);
	check_anomalies(&a, true);
	assert_int_equal(printed.lines, 0);
	assert_int_equal(printed.saved, 0);
	anomaly_release(&a);
	assert_int_equal(mem.used, 0);
}

/* The thread looks once more after the recording was closed, however soon that is. */
static void the_thread_misses_nothing(void **state)
{
	const struct anomaly_options options = { .slowdown = 0.2,
						 .recording = path,
						 .prefix = "/tmp/opwatch-none",
						 .message = on_message,
						 .save = on_save };
	struct anomaly_thread *thread;
	struct ow_error err = { 0 };
	struct live_writer w;

	(void)state;
	printed = (struct printed){ 0 };
	begin(&w, 1);
	assert_int_equal(anomaly_start(&options, &thread, &err), OW_OK);
	for (uint64_t i = 0, t = 1000; i < 90; i++) {
		live_writer_step(&w, 1, t, i < 60 ? 30 : 60, 20);
		t += i < 60 ? 51 : 81;
	}
	live_writer_close(&w);
	anomaly_stop(thread);
	assert_int_equal(printed.lines, 1);
	assert_int_equal(printed.saved, 1);
}

/* ---- memory ---- */

static ow_status watch_all(struct mem *mem, struct ow_error *err)
{
	struct watch w;
	ow_status status;

	watch_init(&w, mem, 0, NULL);
	status = watch_add(&w, path, err);
	if (status == OW_OK)
		status = watch_turn_now(&w, err);
	if (status == OW_OK)
		status = watch_make_jobs(&w, err);
	watch_release(&w);
	return status;
}

static void fails_without_memory(void **state)
{
	struct live_writer w;
	bool done = false;

	(void)state;
	begin(&w, 2);
	for (uint64_t i = 0; i < 6; i++) {
		live_writer_step(&w, 1, 1000 + i * 51, 30, 20);
		live_writer_step(&w, 2, 1000 + i * 51, 20, 30);
	}
	live_writer_close(&w);
	for (uint64_t n = 1; !done && n < 100000; n++) {
		struct ow_error err = { 0 };
		struct mem mem;
		ow_status status;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = watch_all(&mem, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(mem.used, 0);
		done = status == OW_OK;
	}
	assert_true(done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_step_is_seen_once),
		TEST(is_what_the_view_says),
		TEST(the_slowest_rank_is_named),
		TEST(two_trainings_stay_two),
		TEST(long_waits_for_a_processor_are_whole),
		TEST(parts_are_of_the_same_steps),
		TEST(batches_are_no_steps),
		TEST(jobs_without_steps_have_phases),
		TEST(since_counts_from_now),
		TEST(a_file_that_begins_anew_is_a_new_job),
		TEST(the_first_step_is_shown_as_it_goes),
		TEST(steps_of_many_records_are_seen),
		TEST(a_slowdown_with_many_records_is_explained),
		TEST(a_slowdown_is_explained),
		TEST(no_more_is_saved_than_may_be),
		TEST(a_slow_rank_is_blamed),
		TEST(a_stall_is_told_once),
		TEST(steady_jobs_are_left_alone),
		TEST(the_thread_misses_nothing),
		TEST(fails_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
