/* live.c: the bodies of ow_record and its kin; the work is in live/. */
#include "api/api_int.h"

#include "base/clock.h"
#include "live/attach.h"
#include "live/launch.h"
#include "live/processes.h"
#include "live/stack_feed.h"
#include "watch/attention.h"

#include "opwatch_config.h"

#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

void ow_record_options_init(struct ow_record_options *options)
{
	*options = (struct ow_record_options){ .size = sizeof(*options) };
}

/* A recording and who fills it. */
struct live {
	struct ow_record_options options;
	char recorder[PATH_MAX];
	struct mem mem;
	struct recording recording;
	struct collector collector;
	struct stack_feed stacks;
	struct attention_thread *attention;
	const char *out_path;
	char prefix[PATH_MAX]; /* of what attention saves */
};

/* What attention saves is beside the recording, and called like it. */
static ow_status name_attention(struct live *l, struct error *err)
{
	struct str prefix = str_from(l->out_path);

	if (str_ends(prefix, STR(".opw")))
		prefix = str_first(prefix, prefix.len - 4);
	if (prefix.len >= sizeof(l->prefix))
		return error_set(err, OW_E_USAGE, "%s: too long a name", l->out_path);
	memcpy(l->prefix, prefix.ptr, prefix.len);
	l->prefix[prefix.len] = '\0';
	return OW_OK;
}

#define SAVED_LIMIT ((uint64_t)1 << 30) /* of the minutes that one recording saves */

static ow_status attention_open(struct live *l, struct error *err)
{
	const struct ow_record_options *o = &l->options;
	struct attention_options options = { .slowdown = o->on_slowdown,
					     .stall_ns = o->on_stall_ns,
					     .recording = l->out_path,
					     .prefix = l->prefix,
					     .message = o->message,
					     .message_arg = o->message_arg,
					     .saved_limit = SAVED_LIMIT,
					     .save = api_save_cut };

	if (!(o->on_slowdown > 0) && o->on_stall_ns <= 0)
		return OW_OK;
	return attention_start(&options, &l->attention, err);
}

static void tell(const struct live *l, const struct error *problem)
{
	if (l->options.message)
		l->options.message(l->options.message_arg, problem->text, strlen(problem->text));
}

/* The job runs: from now on the file is its recording. What fails here does not concern the job. */
static void begin(void *arg)
{
	struct live *l = arg;
	struct error problem = { 0 };

	if (recording_appear(&l->recording, &problem) != OW_OK)
		tell(l, &problem);
	if (attention_open(l, &problem) != OW_OK)
		tell(l, &problem);
}

#define MAX_HZ 10000u

static ow_status live_open(struct live *l, const char *out_path,
			   const struct ow_record_options *options, struct error *err)
{
	struct ow_record_options *o = &l->options;
	ow_status status;

	ow_record_options_init(o);
	if (options)
		memcpy(o, options, MIN(options->size, sizeof(*o)));
	if (o->ring_records & (o->ring_records - 1) || o->ring_records > RING_RECORDS_MAX ||
	    (o->ring_records && o->ring_records < RING_RECORDS_MIN))
		return error_set(err, OW_E_USAGE,
				 "a ring holds a power of two of records, from %u to %u, not %u",
				 RING_RECORDS_MIN, RING_RECORDS_MAX, o->ring_records);
	if (o->stacks_hz > MAX_HZ)
		return error_set(err, OW_E_USAGE, "stacks can be sampled %u times a second at most",
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

/* The first failure counts. */
static ow_status live_close(struct live *l, ow_status status, struct ow_record_summary *summary,
			    struct error *err)
{
	const struct collector_totals *t = &l->collector.totals;
	ow_status closed;

	if (l->options.stacks_hz)
		stack_feed_close(&l->stacks);
	collector_close(&l->collector);
	closed = recording_close(&l->recording, status == OW_OK ? err : NULL);
	attention_stop(l->attention);
	summary->processes = t->processes;
	summary->refused_processes = t->refused;
	summary->records = t->records;
	summary->dropped = t->dropped;
	summary->unnamed = t->texts_lost + t->rings_lost;
	return status != OW_OK ? status : closed;
}

/* As much as the caller knows of it. */
static void summary_give(const struct ow_record_summary *summary, struct ow_record_summary *to)
{
	size_t size = to ? to->size : 0;

	if (!to)
		return;
	memcpy(to, summary, MIN(size, sizeof(*summary)));
	to->size = size;
}

static ow_status record(struct live *l, const char *const *argv, struct ow_record_summary *summary,
			struct error *err)
{
	struct launch launch = { .argv = argv,
				 .begun = begin,
				 .begun_arg = l,
				 .recorder = l->recorder,
				 .ring_records = l->options.ring_records,
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
		    struct error *err)
{
	struct ow_record_summary sums = { .exit_code = -1 };
	struct live *l = calloc(1, sizeof(*l));
	ow_status status;

	error_clear(err);
	if (argv[0] &&
	    !launch_is_there(argv[0])) { /* also where a folder of PATH cannot be searched */
		sums.exit_code = 127;	 /* as shells do */
		status = error_errno(err, ENOENT, "%s", argv[0]);
	} else {
		status = l ? live_open(l, out_path, options, err) : error_no_memory(err);
		if (status == OW_OK)
			status = record(l, argv, &sums, err);
	}
	summary_give(&sums, summary);
	free(l);
	return status;
}

#define STOP_PATIENCE_NS (10000 * 1000000LL)

/* Those that cannot be attached to are told; one is enough. */
static ow_status attach_all(struct live *l, const int *pids, size_t count,
			    struct ow_record_summary *summary, struct error *err)
{
	ow_status first = OW_OK;
	size_t attached = 0;

	for (size_t i = 0; i < count; i++) {
		struct attach_report report;
		struct error problem = { 0 };
		ow_status status;
		uid_t owner;

		if (proc_owner(pids[i], &owner))
			collector_let_in(&l->collector, owner);
		status = attach_process(&l->mem, pids[i], l->recorder, l->collector.socket_path,
					&report, &problem);
		if (report.stopped_ns > summary->stopped_ns) {
			summary->stopped_ns = report.stopped_ns;
			summary->waited_ns = report.waited_ns;
		}
		attached += status == OW_OK;
		if (status == OW_OK)
			continue;
		if (count > 1)
			tell(l, &problem);
		if (first == OW_OK && err)
			*err = problem;
		first = first == OW_OK ? status : first;
	}
	return attached ? OW_OK : first;
}

/* Before a file is made, which may be there already and hold something else. */
static ow_status check_pids(const int *pids, size_t count, struct error *err)
{
	uid_t owner;

	for (size_t i = 0; i < count; i++)
		if (proc_owner(pids[i], &owner))
			return OW_OK;
	return count ? error_set(err, OW_E_NOT_FOUND, "there is no process %d", pids[0]) : OW_OK;
}

static bool is_over(const struct live *l, int64_t begin_ns)
{
	const struct ow_record_options *o = &l->options;

	return (o->cancelled && o->cancelled(o->cancel_arg)) ||
	       (o->duration_ns && steady_ns() - begin_ns >= o->duration_ns);
}

static void collect(struct live *l, struct ow_record_summary *summary)
{
	int64_t begin = steady_ns();

	while (!is_over(l, begin)) {
		if (!collector_turn(&l->collector, -1))
			break;
		if (!collector_live(&l->collector) && l->collector.totals.processes)
			return; /* they have ended */
	}
	summary->hooks_left = !collector_stop(&l->collector, STOP_PATIENCE_NS);
}

ow_status ow_attach(const int *pids, size_t count, const char *out_path,
		    const struct ow_record_options *options, struct ow_record_summary *summary,
		    struct error *err)
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
			begin(l);
			collect(l, &sums);
		}
		status = live_close(l, status, &sums, err);
	}
	summary_give(&sums, summary);
	free(l);
	return status;
}
