/*
 * stacks.c: samples the stacks of running processes for some time into a model that is being built, or reads them once into
 * a table. Joins the samplers of Python and native stacks and the metrics of the machine. Called by ow_stacks_record and
 * ow_stacks_now; recordings of a job sample through stack_feed.c.
 */
#include "live/record/stacks.h"

#include "base/clock.h"
#include "live/proc/metrics.h"
#include "live/native/native_rows.h"
#include "live/proc/proc.h"
#include "live/pystack/sampler.h"

#include "opwatch_config.h"

#include <sys/resource.h>
#include <time.h>

#define SECOND_NS 1000000000
#define MAX_HZ 10000
#define METRICS_NS (SECOND_NS / 2)
#define READS 500
#define READ_AGAIN_NS 4000000

static int64_t own_cpu_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return ((int64_t)use.ru_utime.tv_sec + use.ru_stime.tv_sec) * SECOND_NS +
	       ((int64_t)use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

static ow_status check_pids(const int64_t *pids, size_t count, struct ow_error *err)
{
	if (!count)
		return error_set(err, OW_E_USAGE, "no process id given");
	for (size_t i = 0; i < count; i++) {
		pid_t pid;

		OW_TRY(proc_to_pid(pids[i], &pid, err));
		OW_TRY(proc_check_first(pid, err));
	}
	return OW_OK;
}

static ow_status add_processes(struct sampler *s, const int64_t *pids, size_t count,
			       struct ow_error *err)
{
	OW_TRY(check_pids(pids, count, err));
	for (size_t i = 0; i < count; i++)
		OW_TRY(sampler_add(s, (pid_t)pids[i], err));
	return OW_OK;
}

struct stack_recording {
	struct sampler sampler;
	struct sampler_clock clock;
	struct sample_rows rows;
	struct metric_rows metrics;
	struct native_rows native;
	const struct ow_stacks_options *options;
	struct builder *b;
	int64_t to_wall_ns; /* nanoseconds to add to the steady clock to get the time of day */
	int64_t begin_ns, begin_cpu_ns;
};

static void sum_up(const struct stack_recording *r, struct ow_stacks_summary *summary)
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

/* Reads metrics of the host and the processes, a few times a second. */
static bool read_metrics(struct stack_recording *r)
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
	struct stack_recording *r = arg;
	struct ow_stacks_summary so_far;

	if (!read_metrics(r) || (r->options->native && !native_rows_read(&r->native))) {
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

/* Waits for a native sample, after which Python stacks are read at once. */
static void wait_for_native(void *arg, int64_t until_ns)
{
	struct stack_recording *r = arg;

	while (native_rows_wait(&r->native, until_ns))
		if (!native_rows_read(&r->native))
			return; /* go_on detects the signal */
}

static int64_t time_of_day(void *arg)
{
	struct stack_recording *r = arg;

	return r->rows.now_ns = clock_ns(CLOCK_MONOTONIC) + r->to_wall_ns;
}

static void name_source(struct stack_recording *r, const int64_t *pids, size_t count)
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

static void note_losses(struct stack_recording *r, const struct ow_stacks_summary *s)
{
	if (s->torn)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, s->torn,
				  "samples dropped: the stack changed while it was read");
	if (s->left_out)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, s->left_out,
				  "samples skipped to keep sampling within its CPU limit");
	if (r->native.unjoined)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, r->native.unjoined,
				  "native samples without Python functions: the Python stack had "
				  "changed before it was read");
	if (r->native.refused.count)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, r->native.refused.count,
				  "processes without native stacks: the kernel does not provide "
				  "them");
	if (native_rows_refused(&r->native))
		builder_note_many(
			r->b, NOTE_INFO, OW_NO_OFFSET, native_rows_refused(&r->native),
			"threads without native stacks: the kernel gives no more memory for "
			"them (kernel.perf_event_mlock_kb, ulimit -l)");
	if (s->late_ticks)
		builder_note_many(r->b, NOTE_INFO, OW_NO_OFFSET, s->late_ticks,
				  "samples missed: the machine was busy");
}

/* Adds processes of any kind: those that run Python are sampled in both ways. */
static ow_status add_native(struct stack_recording *r, const int64_t *pids, size_t count,
			    struct ow_error *err)
{
	OW_TRY(check_pids(pids, count, err));
	for (size_t i = 0; i < count; i++) {
		OW_TRY(native_rows_add(&r->native, (pid_t)pids[i], err));
		if (!sampler_watch(&r->sampler, (pid_t)pids[i]))
			return error_no_memory(err);
	}
	return OW_OK;
}

/* Chooses the metric that is shown first: one that has stacks. */
static void choose_metric(struct stack_recording *r)
{
	struct sampler_sums sums;

	sampler_sums(&r->sampler, &sums);
	if ((sums.samples && !r->native.joined) || !r->native.samples || r->b->status != OW_OK)
		return;
	r->b->m->metric.is_default[r->rows.wall.v] = 0;
	r->b->m->metric.is_default[r->native.metric.v] = 1;
}

static ow_status sample_processes(struct stack_recording *r, pid_t pid,
				  struct ow_stacks_summary *summary, struct ow_error *err)
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
	note_losses(r, summary);
	metric_rows_release(&r->metrics);
	return status;
}

static ow_status record_stacks(struct stack_recording *r, const int64_t *pids, size_t count,
			       struct ow_stacks_summary *summary, struct ow_error *err)
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
		status = sample_processes(r, (pid_t)pids[0], summary, err);
	if (r->options->native)
		native_rows_release(&r->native);
	sample_rows_release(&r->rows);
	return status;
}

ow_status stacks_record(struct builder *b, struct mem *mem, const struct ow_stacks_options *options,
			const int64_t *pids, size_t count, struct ow_stacks_summary *summary,
			struct ow_error *err)
{
	struct stack_recording r = { .options = options, .b = b };
	ow_status status;

	if (!options->hz || options->hz > MAX_HZ)
		return error_set(err, OW_E_USAGE, "stacks can be sampled 1 to %d times a second",
				 MAX_HZ);
	r.clock = (struct sampler_clock){ .hz = options->hz,
					  .for_ns = options->for_ns,
					  .go_on = go_on,
					  .now = time_of_day,
					  .arg = &r };
	r.begin_ns = clock_ns(CLOCK_MONOTONIC);
	r.begin_cpu_ns = own_cpu_ns();
	r.to_wall_ns = clock_ns(CLOCK_REALTIME) - r.begin_ns;
	sampler_init(&r.sampler, mem, !options->no_children);
	sampler_limit(&r.sampler, options->hz, !options->native);
	status = record_stacks(&r, pids, count, summary, err);
	sampler_release(&r.sampler);
	return status;
}

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

static void make_columns(struct table *r)
{
	table_add_column(r, "pid", "pid", TYPE_INT, UNIT_NONE);
	table_add_column(r, "process", "process", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "tid", "tid", TYPE_INT, UNIT_NONE);
	table_add_column(r, "thread", "thread", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "depth", "depth", TYPE_INT, UNIT_NONE);
	table_add_column(r, "function", "function", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "line", "line", TYPE_INT, UNIT_NONE);
}

static void add_rows(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct table *r = arg;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct py_frame *frame = &thread->frames[i];
		uint32_t row = table_add_row(r, 0);

		if (row == UINT32_MAX)
			return;
		table_set_int(r, row, COLUMN_PID, p->pid);
		table_set_text(r, row, COLUMN_PROCESS, str_from(p->name));
		table_set_int(r, row, COLUMN_TID,
			      thread->tid ? thread->tid : (int64_t)thread->number);
		table_set_text(r, row, COLUMN_THREAD, str_from(thread->name));
		table_set_int(r, row, COLUMN_DEPTH, (int64_t)i);
		table_set_text(r, row, COLUMN_FUNCTION, frame->code->name);
		table_set_text(r, row, COLUMN_FILE, frame->code->file);
		table_set_int(r, row, COLUMN_LINE, frame->line);
	}
}

/* Reads until all threads could be read at the same time, or up to the given number of times. */
static ow_status read_until_whole(struct sampler *sampler, struct table *r, struct ow_error *err)
{
	struct sampler_sums before, after;
	uint32_t alive;

	sampler_sums(sampler, &before);
	alive = before.alive;
	for (int i = 0; i < READS; i++) {
		r->row_count = 0;
		sampler_sums(sampler, &before);
		OW_TRY(sampler_tick(sampler, clock_ns(CLOCK_MONOTONIC), add_rows, r, err));
		sampler_sums(sampler, &after);
		if (after.torn == before.torn && after.alive >= alive)
			return OW_OK; /* no interpreter had to be searched again, either */
		nanosleep(&(struct timespec){ .tv_nsec = READ_AGAIN_NS }, NULL);
	}
	if (r->row_count)
		return OW_OK;
	return error_set(
		err, OW_E_LIMIT,
		"the stacks changed while they were read, %d times in a row; try again, or "
		"sample them: 'opwatch stacks PID --for 5s'",
		READS);
}

ow_status stacks_now(struct table *r, struct mem *mem, const int64_t *pids, size_t count,
		     bool children, struct ow_error *err)
{
	struct sampler sampler;
	ow_status status;

	make_columns(r);
	sampler_init(&sampler, mem, children);
	status = add_processes(&sampler, pids, count, err);
	if (status == OW_OK)
		status = read_until_whole(&sampler, r, err);
	sampler_release(&sampler);
	if (status == OW_OK && r->status != OW_OK)
		return error_no_memory(err);
	return status;
}
