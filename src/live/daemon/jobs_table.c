/*
 * jobs_table.c: the list of jobs as a table, for ow_jobs and so for `opwatch jobs`. The list itself comes from the daemon:
 * jobs.c asks for it.
 */
#include "live/daemon/jobs.h"

#include "base/buf.h"

#include <pwd.h>
#include <time.h>

static void user_name(uint32_t uid, char *to, size_t size)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found)
		snprintf(to, size, "%s", entry.pw_name);
	else
		snprintf(to, size, "%u", uid);
}

static void join_pids(const struct jobs *jobs, uint32_t job, struct buf *to)
{
	buf_clear(to);
	for (size_t i = 0; i < jobs->process_count; i++)
		if (jobs->processes[i].job == job)
			buf_printf(to, "%s%u", to->len ? "," : "", jobs->processes[i].pid);
}

enum {
	COLUMN_JOB,
	COLUMN_ID,
	COLUMN_RANKS,
	COLUMN_PIDS,
	COLUMN_USER,
	COLUMN_FRAMEWORK,
	COLUMN_SINCE,
	COLUMN_STEPS,
	COLUMN_STEP_NS,
	COLUMN_EVENTS,
	COLUMN_DROPS,
	COLUMN_DISK,
	COLUMN_SAVED,
	COLUMN_STATE,
	COLUMN_IDENTITY,
	COLUMN_RING
};

void jobs_columns(struct table *r)
{
	static const char *const sentences[] = {
		"name of the job",
		"number of the job at this daemon",
		"number of ranks of the job",
		"process ids of the job",
		"user who runs the job",
		"framework that the job uses, when known",
		"when the job first connected to the daemon",
		"number of recorded steps",
		"median duration of the job's last steps",
		"number of recorded events",
		"number of events that were lost because a ring was full",
		"size of the job's ring on disk",
		"size of the files that were saved around anomalies",
		"state of the job: running, awaited (its processes may connect again) or ended",
		"how the daemon identified the job, such as slurm 4711 or process 815",
		"folder of the job's ring",
	};

	table_add_column(r, "job", "job", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "id", "id", TYPE_INT, UNIT_NONE);
	table_add_column(r, "ranks", "ranks", TYPE_INT, UNIT_NONE);
	table_add_column(r, "pids", "pids", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "user", "user", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "framework", "framework", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "since", "since", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "steps", "steps", TYPE_INT, UNIT_NONE);
	table_add_column(r, "step_ns", "step", TYPE_INT, UNIT_NS);
	table_add_column(r, "events", "events", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "drops", "drops", TYPE_INT, UNIT_COUNT);
	table_add_column(r, "disk_bytes", "on disk", TYPE_INT, UNIT_BYTES);
	table_add_column(r, "saved_bytes", "saved", TYPE_INT, UNIT_BYTES);
	table_add_column(r, "state", "state", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "identity", "known by", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "ring", "ring", TYPE_TEXT, UNIT_NONE);
	table_document(r, sentences, ARRAY_COUNT(sentences));
	r->columns[COLUMN_IDENTITY].for_programs = r->columns[COLUMN_RING].for_programs = true;
	r->columns[COLUMN_ID].for_programs = true;
}

static void format_time(int64_t ns, char *to, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	to[0] = '\0';
	if (localtime_r(&seconds, &tm))
		(void)!strftime(to, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static void add_job(struct table *r, const struct jobs *jobs, const struct job_info *job,
		    struct buf *pids)
{
	uint32_t row = table_add_row(r, 0);
	char text[64];

	if (row == UINT32_MAX)
		return;
	join_pids(jobs, job->id, pids);
	table_set_text(r, row, COLUMN_JOB, str_from(job->name));
	table_set_int(r, row, COLUMN_ID, job->id);
	table_set_int(r, row, COLUMN_RANKS, job->ranks);
	table_set_text(r, row, COLUMN_PIDS, buf_str(pids));
	user_name(job->uid, text, sizeof(text));
	table_set_text(r, row, COLUMN_USER, str_from(text));
	table_set_text(r, row, COLUMN_FRAMEWORK, str_from(job->framework));
	format_time(job->since_ns, text, sizeof(text));
	table_set_text(r, row, COLUMN_SINCE, str_from(text));
	table_set_int(r, row, COLUMN_STEPS, (int64_t)job->steps);
	if (job->step_ns)
		table_set_int(r, row, COLUMN_STEP_NS, job->step_ns);
	else
		table_set_unknown(r, row, COLUMN_STEP_NS);
	table_set_int(r, row, COLUMN_EVENTS, (int64_t)job->records);
	table_set_int(r, row, COLUMN_DROPS, (int64_t)job->dropped);
	table_set_int(r, row, COLUMN_DISK, (int64_t)job->disk_bytes);
	table_set_int(r, row, COLUMN_SAVED, (int64_t)job->saved_bytes);
	table_set_text(r, row, COLUMN_STATE, str_from(job_state_name(job->state)));
	table_set_text(r, row, COLUMN_IDENTITY, str_from(job->identity));
	table_set_text(r, row, COLUMN_RING, str_from(job->folder));
}

enum {
	ANOMALY_TIME,
	ANOMALY_JOB,
	ANOMALY_ID,
	ANOMALY_KIND,
	ANOMALY_WHY,
	ANOMALY_TIME_NS,
	ANOMALY_SAVED,
	ANOMALY_BYTES,
	ANOMALY_FILE
};

ow_status jobs_fill_anomalies(const struct jobs *jobs, struct table *r, struct ow_error *err)
{
	static const char *const sentences[] = {
		"when the anomaly began",
		"name of the job",
		"number of the job",
		"kind of the anomaly: slow or stall",
		"a sentence on the cause of the anomaly",
		"when the anomaly began, in nanoseconds since 1970",
		"whether the minute around the anomaly was saved",
		"size of the saved file",
		"path at which the minute around the anomaly was or will be saved",
	};

	table_add_column(r, "time", "time", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "job", "job", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "id", "id", TYPE_INT, UNIT_NONE);
	table_add_column(r, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "why", "why", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "time_ns", "time of day", TYPE_INT, UNIT_NS);
	table_add_column(r, "saved", "saved", TYPE_BOOL, UNIT_NONE);
	table_add_column(r, "bytes", "size", TYPE_INT, UNIT_BYTES);
	table_add_column(r, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_document(r, sentences, ARRAY_COUNT(sentences));
	r->columns[ANOMALY_ID].for_programs = r->columns[ANOMALY_TIME_NS].for_programs = true;
	for (size_t i = 0; i < jobs->anomaly_count; i++) {
		const struct job_anomaly *a = &jobs->anomalies[i];
		uint32_t row = table_add_row(r, 0);
		char text[64];

		if (row == UINT32_MAX)
			break;
		format_time(a->time_ns, text, sizeof(text));
		table_set_text(r, row, ANOMALY_TIME, str_from(text));
		table_set_text(r, row, ANOMALY_JOB, str_from(a->name));
		table_set_int(r, row, ANOMALY_ID, a->job);
		table_set_text(r, row, ANOMALY_KIND, str_from(a->kind));
		table_set_known_text(r, row, ANOMALY_WHY, str_from(a->why));
		table_set_int(r, row, ANOMALY_TIME_NS, a->time_ns);
		table_set_int(r, row, ANOMALY_SAVED, a->saved != 0);
		if (a->saved)
			table_set_int(r, row, ANOMALY_BYTES, (int64_t)a->bytes);
		else
			table_set_unknown(r, row, ANOMALY_BYTES);
		table_set_text(r, row, ANOMALY_FILE, str_from(a->path));
	}
	return r->status != OW_OK ? error_no_memory(err) : OW_OK;
}

ow_status jobs_fill_table(const struct jobs *jobs, struct table *r, struct ow_error *err)
{
	struct buf pids;
	bool failed;

	buf_init(&pids, r->mem);
	jobs_columns(r);
	for (size_t i = 0; i < jobs->count; i++)
		add_job(r, jobs, &jobs->items[i], &pids);
	failed = r->status != OW_OK || pids.failed;
	buf_release(&pids);
	return failed ? error_no_memory(err) : OW_OK;
}
