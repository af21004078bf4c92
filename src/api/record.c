/*
 * record.c: the bodies of the functions that make profiles: a program records itself (ow_recorder_..., over
 * wire/own/journal.c), opwatch records a program or a running process (ow_record, ow_attach, over live/record and
 * live/attach), or samples stacks (ow_stacks_..., over live/record/stacks.c).
 */
#include "api/api_int.h"
#include "opwatch/record.h"

#include "base/clock.h"
#include "live/attach/attach.h"
#include "live/follow/follow.h"
#include "live/proc/proc.h"
#include "live/record/launch.h"
#include "live/record/stack_feed.h"
#include "live/record/stacks.h"
#include "watch/anomaly.h"
#include "wire/own/journal.h"

#include "opwatch_config.h"

#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

struct ow_recorder {
	struct mem mem;
	struct journal journal;
};

void ow_recorder_options_init(struct ow_recorder_options *options)
{
	*options = (struct ow_recorder_options){ .size = sizeof(*options) };
}

ow_status ow_recorder_open(const char *path, const struct ow_recorder_options *options,
			   ow_recorder **recorder, struct ow_error *err)
{
	ow_recorder *r = calloc(1, sizeof(*r));
	struct ow_recorder_options full;
	ow_status status;

	error_clear(err);
	*recorder = NULL;
	if (!r)
		return error_no_memory(err);
	ow_recorder_options_init(&full);
	SIZED_IN(&full, options);
	mem_init(&r->mem, (size_t)full.memory_limit);
	status = journal_open(&r->journal, &r->mem, path, "opwatch " OPWATCH_VERSION, err);
	if (status != OW_OK) {
		free(r);
		return status;
	}
	r->journal.next_step = full.first_step;
	*recorder = r;
	return OW_OK;
}

ow_status ow_recorder_close(ow_recorder *r, struct ow_error *err)
{
	ow_status status;

	error_clear(err);
	if (!r)
		return OW_OK;
	status = journal_close(&r->journal, err);
	free(r);
	return status;
}

bool ow_recorder_is_ours(const ow_recorder *r)
{
	return journal_is_ours(&r->journal);
}

int64_t ow_recorder_now(const ow_recorder *r)
{
	return journal_now(&r->journal);
}

uint32_t ow_recorder_name(ow_recorder *r, const char *text, size_t len)
{
	return journal_name(&r->journal, str_make(text, len));
}

void ow_recorder_name_thread(ow_recorder *r, uint32_t name)
{
	journal_name_thread(&r->journal, name);
}

void ow_recorder_mark(ow_recorder *r, uint32_t name)
{
	journal_mark(&r->journal, name);
}

void ow_recorder_slice(ow_recorder *r, uint32_t name, int64_t start_ns, int64_t end_ns)
{
	journal_slice(&r->journal, name, start_ns, end_ns);
}

int64_t ow_recorder_step(ow_recorder *r, int64_t number, int64_t start_ns)
{
	return journal_step(&r->journal, number,
			    start_ns == INT64_MIN ? journal_now(&r->journal) : start_ns);
}

void ow_recorder_end_step(ow_recorder *r, bool drop)
{
	journal_end_step(&r->journal, drop);
}

void ow_recorder_value(ow_recorder *r, uint32_t name, double value)
{
	journal_value(&r->journal, name, value);
}

void ow_record_options_init(struct ow_record_options *options)
{
	*options = (struct ow_record_options){ .size = sizeof(*options) };
}

/* A recording and the parts that fill it. */
struct live {
	struct ow_record_options options;
	char recorder[PATH_MAX];
	struct mem mem;
	struct recording recording;
	struct collector collector;
	struct stack_feed stacks;
	struct anomaly_thread *attention;
	const char *out_path;
	char prefix[PATH_MAX]; /* prefix of the files that anomaly detection saves */
};

/* Names the files of anomaly detection: next to the recording, with its name as a prefix. */
static ow_status name_attention(struct live *l, struct ow_error *err)
{
	struct str prefix = str_from(l->out_path);

	if (str_ends(prefix, STR(".opw")))
		prefix = str_first(prefix, prefix.len - 4);
	if (prefix.len >= sizeof(l->prefix))
		return error_set(err, OW_E_USAGE, "%s: the name is too long", l->out_path);
	memcpy(l->prefix, prefix.ptr, prefix.len);
	l->prefix[prefix.len] = '\0';
	return OW_OK;
}

#define SAVED_LIMIT ((uint64_t)1 << 30) /* largest size of the minutes that one recording saves */

static ow_status anomaly_open(struct live *l, struct ow_error *err)
{
	const struct ow_record_options *o = &l->options;
	struct anomaly_options options = { .slowdown = o->on_slowdown,
					   .stall_ns = o->on_stall_ns,
					   .recording = l->out_path,
					   .prefix = l->prefix,
					   .message = o->message,
					   .message_arg = o->message_arg,
					   .saved_limit = SAVED_LIMIT,
					   .save_answer = api_save_table,
					   .save = follow_save };

	if (!(o->on_slowdown > 0) && o->on_stall_ns <= 0)
		return OW_OK;
	return anomaly_start(&options, &l->attention, err);
}

static void report_problem(const struct live *l, const struct ow_error *problem)
{
	if (l->options.message)
		l->options.message(l->options.message_arg, problem->text, strlen(problem->text));
}

/* Starts the recording once the job runs. A failure here does not affect the job. */
static void begin_recording(void *arg)
{
	struct live *l = arg;
	struct ow_error problem = { 0 };

	if (recording_appear(&l->recording, &problem) != OW_OK)
		report_problem(l, &problem);
	if (anomaly_open(l, &problem) != OW_OK)
		report_problem(l, &problem);
}

#define MAX_HZ 10000u

static ow_status live_open(struct live *l, const char *out_path,
			   const struct ow_record_options *options, struct ow_error *err)
{
	struct ow_record_options *o = &l->options;
	ow_status status;

	ow_record_options_init(o);
	SIZED_IN(o, options);
	if (o->ring_records & (o->ring_records - 1) || o->ring_records > RING_RECORDS_MAX ||
	    (o->ring_records && o->ring_records < RING_RECORDS_MIN))
		return error_set(err, OW_E_USAGE,
				 "a ring holds a power of two of records, from %u to %u, not %u",
				 RING_RECORDS_MIN, RING_RECORDS_MAX, o->ring_records);
	OW_TRY(step_marker_check(o->step_marker, err));
	if (o->stacks_hz > MAX_HZ)
		return error_set(err, OW_E_USAGE, "stacks can be sampled at most %u times a second",
				 MAX_HZ);
	if (o->recorder)
		snprintf(l->recorder, sizeof(l->recorder), "%s", o->recorder);
	else
		OW_TRY(recorder_find(l->recorder, sizeof(l->recorder), err));
	mem_init(&l->mem, (size_t)o->memory_limit);
	l->out_path = out_path;
	OW_TRY(name_attention(l, err));
	OW_TRY(recording_open_beside(&l->recording, &l->mem, out_path, "opwatch " OPWATCH_VERSION,
				     err));
	l->recording.bytes_limit = o->file_limit;
	status = collector_open(&l->collector, &l->mem, &l->recording, err);
	if (status != OW_OK) {
		recording_close(&l->recording, NULL);
		return status;
	}
	l->collector.message = o->message;
	l->collector.message_arg = o->message_arg;
	if (o->stacks_hz)
		stack_feed_open(&l->stacks, &l->mem, &l->collector, o->stacks_hz);
	return OW_OK;
}

/* Closes everything; the first failure is returned. */
static ow_status live_close(struct live *l, ow_status status, struct ow_record_summary *summary,
			    struct ow_error *err)
{
	const struct collector_totals *t = &l->collector.totals;
	ow_status closed;

	if (l->options.stacks_hz)
		stack_feed_close(&l->stacks);
	collector_close(&l->collector);
	closed = recording_close(&l->recording, status == OW_OK ? err : NULL);
	anomaly_stop(l->attention);
	summary->processes = t->processes;
	summary->refused_processes = t->refused;
	summary->records = t->records;
	summary->dropped = t->dropped;
	summary->unnamed = t->texts_lost + t->rings_lost;
	return status != OW_OK ? status : closed;
}

static ow_status run_program(struct live *l, const char *const *argv,
			     struct ow_record_summary *summary, struct ow_error *err)
{
	struct launch launch = { .argv = argv,
				 .begun = begin_recording,
				 .begun_arg = l,
				 .recorder = l->recorder,
				 .ring_records = l->options.ring_records,
				 .step_marker = l->options.step_marker,
				 .wait_children = l->options.wait_children };
	ow_status status = launch_job(&launch, &l->collector, err);

	summary->started = launch.started;
	summary->exit_code = launch.exit_code;
	summary->exit_signal = launch.exit_signal;
	summary->left_processes = launch.left;
	return live_close(l, status, summary, err);
}

ow_status ow_record(const char *const *argv, const char *out_path,
		    const struct ow_record_options *options, struct ow_record_summary *summary,
		    struct ow_error *err)
{
	struct ow_record_summary sums = { .exit_code = -1 };
	struct live *l = calloc(1, sizeof(*l));
	ow_status status;

	error_clear(err);
	if (argv[0] &&
	    !launch_is_there(argv[0])) { /* also if a folder of PATH cannot be searched */
		sums.exit_code = 127;	 /* exit codes as in shells */
		status = error_errno(err, ENOENT, "%s", argv[0]);
	} else {
		status = l ? live_open(l, out_path, options, err) : error_no_memory(err);
		if (status == OW_OK)
			status = run_program(l, argv, &sums, err);
	}
	SIZED_OUT(summary, &sums);
	free(l);
	return status;
}

#define STOP_PATIENCE_NS (10000 * 1000000LL)

/* Attaches to all processes. One success is enough; failures of others are reported. */
static ow_status attach_all(struct live *l, const int64_t *pids, size_t count,
			    struct ow_record_summary *summary, struct ow_error *err)
{
	ow_status first = OW_OK;
	size_t attached = 0;

	for (size_t i = 0; i < count; i++) {
		struct attach_report report = { 0 };
		struct ow_error problem = { 0 };
		ow_status status;
		uid_t owner;
		pid_t pid = 0;

		status = proc_to_pid(pids[i], &pid, &problem);
		if (status == OW_OK && proc_owner(pid, &owner))
			collector_allow_user(&l->collector, owner);
		if (status == OW_OK)
			status = attach_process(&l->mem, pid, l->recorder, l->collector.socket_path,
						l->options.step_marker, &report, &problem);
		if (report.stopped_ns > summary->stopped_ns) {
			summary->stopped_ns = report.stopped_ns;
			summary->waited_ns = report.waited_ns;
		}
		attached += status == OW_OK;
		if (status == OW_OK)
			continue;
		if (count > 1)
			report_problem(l, &problem);
		if (first == OW_OK && err)
			*err = problem;
		first = first == OW_OK ? status : first;
	}
	return attached ? OW_OK : first;
}

/* Checks the pids before the file is created, because that would replace an existing file. */
static ow_status check_pids(const int64_t *pids, size_t count, struct ow_error *err)
{
	uid_t owner;
	pid_t pid = 0;

	for (size_t i = 0; i < count; i++)
		if (proc_to_pid(pids[i], &pid, NULL) == OW_OK && proc_owner(pid, &owner))
			return OW_OK;
	return count ? error_set(err, OW_E_NOT_FOUND, "there is no process %" PRId64, pids[0])
		     : error_set(err, OW_E_USAGE, "no process id given");
}

static bool is_over(const struct live *l, int64_t begin_ns)
{
	const struct ow_record_options *o = &l->options;

	return (o->keep_going && !o->keep_going(o->keep_going_arg)) ||
	       (o->duration_ns && steady_ns() - begin_ns >= o->duration_ns);
}

static void collect_records(struct live *l, struct ow_record_summary *summary)
{
	int64_t begin = steady_ns();

	while (!is_over(l, begin)) {
		if (!collector_turn(&l->collector, -1))
			break;
		if (!collector_live(&l->collector) && l->collector.totals.processes)
			return; /* the processes have ended */
	}
	summary->hooks_left = !collector_stop(&l->collector, STOP_PATIENCE_NS);
}

ow_status ow_attach(const int64_t *pids, size_t count, const char *out_path,
		    const struct ow_record_options *options, struct ow_record_summary *summary,
		    struct ow_error *err)
{
	struct ow_record_summary sums = { .exit_code = -1 };
	struct live *l = calloc(1, sizeof(*l));
	ow_status status;

	error_clear(err);
	status = l ? check_pids(pids, count, err) : error_no_memory(err);
	if (status == OW_OK)
		status = live_open(l, out_path, options, err);
	if (status == OW_OK) {
		l->collector.attached = true;
		status = attach_all(l, pids, count, &sums, err);
		if (status == OW_OK) {
			sums.started = true;
			error_clear(err);
			begin_recording(l);
			collect_records(l, &sums);
		}
		status = live_close(l, status, &sums, err);
	}
	SIZED_OUT(summary, &sums);
	free(l);
	return status;
}

void ow_stacks_options_init(struct ow_stacks_options *options)
{
	*options = (struct ow_stacks_options){ .size = sizeof(*options), .hz = 100 };
}

ow_status ow_stacks_record(const int64_t *pids, size_t count,
			   const struct ow_stacks_options *options, ow_profile **profile,
			   struct ow_stacks_summary *summary, struct ow_error *err)
{
	struct ow_stacks_summary sums = { .size = sizeof(sums) };
	struct ow_stacks_options full;
	struct ow_open_options open;
	ow_profile *p;
	ow_status status;

	error_clear(err);
	*profile = NULL;
	ow_stacks_options_init(&full);
	SIZED_IN(&full, options);
	ow_open_options_init(&open);
	open.memory_limit = full.memory_limit;
	OW_TRY(ow_profile_new(&open, &p, err));
	status = stacks_record(&p->b, &p->mem, &full, pids, count, &sums, err);
	SIZED_OUT(summary, &sums);
	if (status == OW_OK)
		status = ow_profile_freeze(p, err);
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	*profile = p;
	return OW_OK;
}

ow_status ow_stacks_now(const int64_t *pids, size_t count, const struct ow_stacks_options *options,
			ow_result **out, struct ow_error *err)
{
	ow_result *result = calloc(1, sizeof(*result));
	struct ow_stacks_options full;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!result)
		return error_no_memory(err);
	ow_stacks_options_init(&full);
	SIZED_IN(&full, options);
	mem_init(&result->own, (size_t)full.memory_limit);
	result->r = table_new(&result->own, "stacks", err);
	status = result->r
			 ? stacks_now(result->r, &result->own, pids, count, !full.no_children, err)
			 : OW_E_NO_MEMORY;
	if (status != OW_OK) {
		ow_result_free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}
