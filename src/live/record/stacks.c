/*
 * stacks.c: the bodies of the ow_stacks functions: stacks of running processes as a profile, or as a table. The work is
 * in src/live.
 */
#include "api/api_int.h"

#include "base/clock.h"
#include "live/metric_rows.h"
#include "live/native_rows.h"
#include "live/processes.h"
#include "live/sample_rows.h"

#include "opwatch_config.h"

#include <sys/resource.h>
#include <time.h>

#define SECOND_NS 1000000000
#define MAX_HZ 10000
#define METRICS_NS (SECOND_NS / 2)
#define LOOKS 500
#define LOOK_AGAIN_NS 4000000

void ow_stacks_options_init(struct ow_stacks_options *options)
{
	*options = (struct ow_stacks_options){ .size = sizeof(*options), .hz = 100 };
}

static struct ow_stacks_options full_options(const struct ow_stacks_options *options)
{
	struct ow_stacks_options full;

	ow_stacks_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	return full;
}

static int64_t own_cpu_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return ((int64_t)use.ru_utime.tv_sec + use.ru_stime.tv_sec) * SECOND_NS +
	       ((int64_t)use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

static ow_status check_pids(const int64_t *pids, size_t count, struct error *err)
{
	if (!count)
		return error_set(err, OW_E_USAGE, "no process is named");
	for (size_t i = 0; i < count; i++) {
		if (pids[i] <= 0 || pids[i] > INT32_MAX)
			return error_set(err, OW_E_NOT_FOUND, "%" PRId64 " is no process id",
					 pids[i]);
		OW_TRY(proc_check_first((pid_t)pids[i], err));
	}
	return OW_OK;
}

static ow_status add_processes(struct sampler *s, const int64_t *pids, size_t count,
			       struct error *err)
{
	OW_TRY(check_pids(pids, count, err));
	for (size_t i = 0; i < count; i++)
		OW_TRY(sampler_add(s, (pid_t)pids[i], err));
	return OW_OK;
}

/* ---- for some time ---- */

struct recording {
	struct sampler sampler;
	struct sampler_clock clock;
	struct sample_rows rows;
	struct metric_rows metrics;
	struct native_rows native;
	const struct ow_stacks_options *options;
	struct builder *b;
	int64_t to_wall_ns; /* from the steady clock to time of day */
	int64_t begin_ns, begin_cpu_ns;
};

static void sum_up(const struct recording *r, struct ow_stacks_summary *summary)
{
	struct sampler_sums sums;

	sampler_sums(&r->sampler, &sums);
	*summary = (struct ow_stacks_summary){
		.size = sizeof(*summary),
		.ticks = r->clock.ticks,
		.late_ticks = r->clock.late_ticks,
		.samples = sums.samples + r->native.samples,
		.torn = sums.torn,
		.elapsed_ns = clock_ns(CLOCK_MONOTONIC) - r->begin_ns,
		.processes = MAX(sums.processes, r->native.processes),
		.alive = MAX(sums.alive, (uint32_t)r->native.count),
		.left_out = sums.left_out,
	};
}

/* What the machine and the processes do, a few times a second. */
static bool measure(struct recording *r)
{
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC) + r->to_wall_ns;
	struct pid_list pids = { .mem = r->sampler.mem };
	bool good;

	if (r->metrics.last_ns != INT64_MIN && now_ns - r->metrics.last_ns < METRICS_NS)
		return true;
	good = sampler_pids(&r->sampler, &pids) &&
	       metric_rows_read(&r->metrics, pids.items, pids.count, now_ns);
	pid_list_release(&pids);
	return good;
}

static bool go_on(void *arg)
{
	struct recording *r = arg;
	struct ow_stacks_summary so_far;

	if (!measure(r) || (r->options->native && !native_rows_read(&r->native))) {
		error_set_no_memory(r->b->err);
		builder_fail(r->b, OW_E_NO_MEMORY);
	}
	if (r->b->status != OW_OK)
		return false;
	if (!r->options->progress)
		return true;
	sum_up(r, &so_far);
	return r->options->progress(r->options->progress_arg, &so_far);
}

/* Python stacks are read as soon as there is a native one. */
static void wait_for_native(void *arg, int64_t until_ns)
{
	struct recording *r = arg;

	while (native_rows_wait(&r->native, until_ns))
		if (!native_rows_read(&r->native))
			return; /* go_on finds out */
}

static int64_t time_of_day(void *arg)
{
	struct recording *r = arg;

	return r->rows.now_ns = clock_ns(CLOCK_MONOTONIC) + r->to_wall_ns;
}

static void name_source(struct recording *r, const int64_t *pids, size_t count)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "pid");

	for (size_t i = 0; i < count && (size_t)len < sizeof(text) - 32; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%" PRId64, i ? "," : " ",
				pids[i]);
	r->b->source = builder_new_source(
		r->b,
		&(struct source_row){ .path = builder_cstr(r->b, text),
				      .format = builder_cstr(r->b, "stacks"),
				      .producer = builder_cstr(r->b, "opwatch " OPWATCH_VERSION),
				      .rank = -1,
				      .run = 1 });
}

static void tell_losses(struct recording *r, const struct ow_stacks_summary *s)
{
	if (s->torn)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, s->torn,
				  "samples dropped, since the stack changed while it was read");
	if (s->left_out)
		builder_note_many(
			r->b, NOTE_INFO, OW_NO_OFFSET, s->left_out,
			"samples left out, since looking may not take more of a processor");
	if (r->native.unjoined)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, r->native.unjoined,
				  "native samples without the functions of Python, which were at "
				  "another place when they were read");
	if (r->native.refused.count)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, r->native.refused.count,
				  "processes without native stacks, which the kernel does not give "
				  "of them");
	if (native_rows_refused(&r->native))
		builder_note_many(
			r->b, NOTE_INFO, OW_NO_OFFSET, native_rows_refused(&r->native),
			"threads without native stacks: the kernel gives no more memory for "
			"them (kernel.perf_event_mlock_kb, ulimit -l)");
	if (s->late_ticks)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, s->late_ticks,
				  "samples not taken, since the machine was busy");
}

/* Processes of any kind: those that run Python are sampled both ways. */
static ow_status add_native(struct recording *r, const int64_t *pids, size_t count,
			    struct error *err)
{
	OW_TRY(check_pids(pids, count, err));
	for (size_t i = 0; i < count; i++) {
		OW_TRY(native_rows_add(&r->native, (pid_t)pids[i], err));
		if (!sampler_watch(&r->sampler, (pid_t)pids[i]))
			return error_no_memory(err);
	}
	return OW_OK;
}

/* What people see first are the stacks that there are. */
static void choose_metric(struct recording *r)
{
	struct sampler_sums sums;

	sampler_sums(&r->sampler, &sums);
	if ((sums.samples && !r->native.joined) || !r->native.samples || r->b->status != OW_OK)
		return;
	r->b->m->metric.is_default[r->rows.wall.v] = 0;
	r->b->m->metric.is_default[r->native.metric.v] = 1;
}

static ow_status sample(struct recording *r, pid_t pid, struct ow_stacks_summary *summary,
			struct error *err)
{
	struct proc_stat first;
	ow_status status;

	if (!proc_stat_read(pid, 0, &first))
		first.name[0] = 0;
	metric_rows_init(&r->metrics, r->b, first.name, pid);
	status = sampler_run(&r->sampler, &r->clock, sample_rows_take, &r->rows, err);
	if (r->options->native && !native_rows_read(&r->native) && status == OW_OK)
		status = error_no_memory(err);
	choose_metric(r);
	sum_up(r, summary);
	summary->cpu_ns = own_cpu_ns() - r->begin_cpu_ns;
	tell_losses(r, summary);
	metric_rows_release(&r->metrics);
	return status;
}

static ow_status record(struct recording *r, const int64_t *pids, size_t count,
			struct ow_stacks_summary *summary, struct error *err)
{
	ow_status status = OW_OK;

	if (!r->options->native)
		OW_TRY(add_processes(&r->sampler, pids, count, err));
	name_source(r, pids, count);
	sample_rows_init(&r->rows, r->b, &r->sampler, SECOND_NS / r->clock.hz);
	if (r->options->native) {
		native_rows_init(&r->native, r->b, &r->sampler, r->clock.hz, r->to_wall_ns);
		r->clock.wait = wait_for_native;
		status = add_native(r, pids, count, err);
	}
	if (status == OW_OK)
		status = sample(r, (pid_t)pids[0], summary, err);
	if (r->options->native)
		native_rows_release(&r->native);
	sample_rows_release(&r->rows);
	return status;
}

static ow_status check_rate(const struct ow_stacks_options *options, struct error *err)
{
	if (options->hz && options->hz <= MAX_HZ)
		return OW_OK;
	return error_set(err, OW_E_USAGE, "stacks can be sampled 1 to %d times a second", MAX_HZ);
}

static ow_status record_profile(ow_profile *p, const struct ow_stacks_options *options,
				const int64_t *pids, size_t count,
				struct ow_stacks_summary *summary, struct error *err)
{
	struct recording r = { .options = options, .b = &p->b };
	ow_status status;

	r.clock = (struct sampler_clock){ .hz = options->hz,
					  .for_ns = options->for_ns,
					  .go_on = go_on,
					  .now = time_of_day,
					  .arg = &r };
	r.begin_ns = clock_ns(CLOCK_MONOTONIC);
	r.begin_cpu_ns = own_cpu_ns();
	r.to_wall_ns = clock_ns(CLOCK_REALTIME) - r.begin_ns;
	sampler_init(&r.sampler, &p->mem, !options->no_children);
	sampler_limit(&r.sampler, options->hz, !options->native);
	status = record(&r, pids, count, summary, err);
	sampler_release(&r.sampler);
	return status == OW_OK ? ow_profile_freeze(p, err) : status;
}

ow_status ow_stacks_record(const int64_t *pids, size_t count,
			   const struct ow_stacks_options *options, ow_profile **profile,
			   struct ow_stacks_summary *summary, struct error *err)
{
	struct ow_stacks_options full = full_options(options);
	struct ow_stacks_summary sums = { .size = sizeof(sums) };
	struct ow_open_options open;
	ow_profile *p;
	ow_status status;

	error_clear(err);
	*profile = NULL;
	OW_TRY(check_rate(&full, err));
	ow_open_options_init(&open);
	open.memory_limit = full.memory_limit;
	OW_TRY(ow_profile_new(&open, &p, err));
	status = record_profile(p, &full, pids, count, &sums, err);
	if (summary)
		memcpy(summary, &sums, MIN(summary->size, sizeof(sums)));
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	*profile = p;
	return OW_OK;
}

/* ---- once ---- */

enum {
	COLUMN_PID,
	COLUMN_PROCESS,
	COLUMN_TID,
	COLUMN_THREAD,
	COLUMN_DEPTH,
	COLUMN_FUNCTION,
	COLUMN_FILE,
	COLUMN_LINE
};

static void make_columns(struct result *r)
{
	result_column(r, "pid", "pid", RESULT_INT, RESULT_PLAIN);
	result_column(r, "process", "process", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "tid", "tid", RESULT_INT, RESULT_PLAIN);
	result_column(r, "thread", "thread", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "depth", "depth", RESULT_INT, RESULT_PLAIN);
	result_column(r, "function", "function", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "file", "file", RESULT_TEXT, RESULT_PLAIN);
	result_column(r, "line", "line", RESULT_INT, RESULT_PLAIN);
}

static void add_rows(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct result *r = arg;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct py_frame *frame = &thread->frames[i];
		uint32_t row = result_row(r, 0);

		if (row == UINT32_MAX)
			return;
		result_set_int(r, row, COLUMN_PID, p->pid);
		result_set_text(r, row, COLUMN_PROCESS, str_from(p->name));
		result_set_int(r, row, COLUMN_TID,
			       thread->tid ? thread->tid : (int64_t)thread->number);
		result_set_text(r, row, COLUMN_THREAD, str_from(thread->name));
		result_set_int(r, row, COLUMN_DEPTH, (int64_t)i);
		result_set_text(r, row, COLUMN_FUNCTION, frame->code->name);
		result_set_text(r, row, COLUMN_FILE, frame->code->file);
		result_set_int(r, row, COLUMN_LINE, frame->line);
	}
}

/* Until all threads could be read at the same time, or for so often. */
static ow_status look_until_whole(struct sampler *sampler, struct result *r, struct error *err)
{
	struct sampler_sums before, after;
	uint32_t alive;

	sampler_sums(sampler, &before);
	alive = before.alive;
	for (int i = 0; i < LOOKS; i++) {
		r->row_count = 0;
		sampler_sums(sampler, &before);
		OW_TRY(sampler_tick(sampler, clock_ns(CLOCK_MONOTONIC), add_rows, r, err));
		sampler_sums(sampler, &after);
		if (after.torn == before.torn && after.alive >= alive)
			return OW_OK; /* none had to be looked for anew, either */
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
	}
	if (r->row_count)
		return OW_OK;
	return error_set(
		err, OW_E_LIMIT,
		"the stacks changed while they were read, %d times in a row; try again, or "
		"sample them: 'opwatch stacks PID --for 5s'",
		LOOKS);
}

static ow_status look_once(struct result *r, struct mem *mem, const int64_t *pids, size_t count,
			   bool children, struct error *err)
{
	struct sampler sampler;
	ow_status status;

	make_columns(r);
	sampler_init(&sampler, mem, children);
	status = add_processes(&sampler, pids, count, err);
	if (status == OW_OK)
		status = look_until_whole(&sampler, r, err);
	sampler_release(&sampler);
	if (status == OW_OK && r->status != OW_OK)
		return error_no_memory(err);
	return status;
}

ow_status ow_stacks_now(const int64_t *pids, size_t count, const struct ow_stacks_options *options,
			ow_result **out, struct error *err)
{
	struct ow_stacks_options full = full_options(options);
	ow_result *result = calloc(1, sizeof(*result));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!result)
		return error_no_memory(err);
	mem_init(&result->own, (size_t)full.memory_limit);
	result->r = result_new(&result->own, "stacks", err);
	status = result->r ? look_once(result->r, &result->own, pids, count, !full.no_children, err)
			   : OW_E_NO_MEMORY;
	if (status != OW_OK) {
		if (result->r)
			ow_result_free(result);
		else
			free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}
