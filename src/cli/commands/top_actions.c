/*
 * top_actions.c: what keys of `opwatch top` do outside of the screen: write the last minute or a flame graph to a file, and end
 * processes after a question.
 */
#include "cli/commands/top.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVE_NS (60 * 1000000000LL)
#define FLAME_NS (3 * 1000000000LL)
#define WRITTEN_MOST ((uint64_t)1 << 30) /* largest number of bytes that the key w writes */

size_t top_selected_pids(const struct top *t, int64_t *pids, size_t cap)
{
	const struct ow_job *job;
	size_t count;

	if (t->selected >= top_rows(t) || !cap)
		return 0;
	if (t->mode == TOP_PROCESSES) {
		pids[0] = t->rows[t->selected].pid;
		return 1;
	}
	job = &t->jobs[t->selected];
	count = MIN(job->pid_count, cap);
	for (size_t i = 0; i < count; i++)
		pids[i] = job->pids[i];
	return count;
}

/* Returns the job's index in the watch, whose order differs from the screen. */
static size_t watch_index(const struct top *t)
{
	struct ow_job job = { .size = sizeof(job) };

	for (size_t i = 0; ow_watch_job(t->watch, i, &job); i++)
		if (strcmp(job.path, t->jobs[t->selected].path) == 0)
			return i;
	return SIZE_MAX;
}

/* Finds an unused name: opwatch-20261116-120304.opw, or with -2 and so on. */
static bool free_name(struct top *t, const char *ending, char *to, size_t size)
{
	const char *name = recording_name(t->args->arena);
	int len = name ? (int)strlen(name) - 4 : 0;

	for (unsigned i = 1; len > 0 && i < 100; i++) {
		char number[8] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%u", i);
		snprintf(to, size, "%.*s%s%s", len, name, number, ending);
		if (access(to, F_OK) != 0)
			return true;
	}
	return false;
}

/* Saves the last minute of a job to a file that only the user may read. */
void top_save_job(struct top *t)
{
	mode_t old = umask(077);
	struct ow_error err = { 0 };
	char path[256];
	struct stat st;
	bool full = t->written_bytes >= WRITTEN_MOST;
	bool good = !full && free_name(t, ".opw", path, sizeof(path)) &&
		    ow_watch_save(t->watch, watch_index(t), SAVE_NS, path, &err) == OW_OK;

	umask(old);
	if (good && stat(path, &st) == 0)
		t->written_bytes += (uint64_t)st.st_size;
	if (full)
		snprintf(t->message, sizeof(t->message),
			 "not written: the files of this session already take %.1f GB; restart top "
			 "to write "
			 "more",
			 (double)t->written_bytes / 1e9);
	else if (!good)
		snprintf(t->message, sizeof(t->message), "not written: %.400s", err.text);
	else
		snprintf(t->message, sizeof(t->message), "written: %s", path);
}

static ow_status write_flame(ow_profile *profile, const char *view, const char *path,
			     struct ow_error *err)
{
	static const char *const columns[] = { "micros" };
	struct ow_view_options options;
	ow_result *result;
	ow_status status;

	ow_view_options_init(&options);
	options.select = (struct ow_list){ columns, 1 };
	options.defer_rows = true;
	status = ow_view(profile, view, &options, &result, err);
	if (status != OW_OK)
		return status;
	status = ow_result_write_file(result, "flamegraph", NULL, path, err);
	ow_result_free(result);
	return status;
}

static bool go_on(void *arg, const struct ow_stacks_summary *so_far)
{
	(void)arg;
	(void)so_far;
	return !screen_ended();
}

/* Makes a flame graph of stacks that are sampled now; false if that is impossible. */
static bool flame_of_processes(struct top *t, const char *path, struct ow_error *err)
{
	int64_t pids[TOP_TARGETS];
	size_t count = top_selected_pids(t, pids, TOP_TARGETS);
	struct ow_stacks_options options;
	ow_profile *profile;
	bool good;

	ow_stacks_options_init(&options);
	options.for_ns = FLAME_NS;
	options.no_children = true; /* children are already in the list */
	options.progress = go_on;
	snprintf(t->message, sizeof(t->message), "sampling stacks for three seconds …");
	top_draw(t);
	if (!count)
		return false;
	if (ow_stacks_record(pids, count, &options, &profile, NULL, err) != OW_OK) {
		options.native = true; /* for a program without Python */
		if (ow_stacks_record(pids, count, &options, &profile, NULL, err) != OW_OK)
			return false;
	}
	good = write_flame(profile, "code", path, err) == OW_OK;
	ow_profile_free(profile);
	return good;
}

static bool has_stacks(ow_profile *profile)
{
	struct ow_error err = { 0 };
	ow_result *functions;
	bool any;

	if (ow_view(profile, "functions", NULL, &functions, &err) != OW_OK)
		return false;
	any = ow_result_rows(functions) > 0;
	ow_result_free(functions);
	return any;
}

/* Writes a flame graph of recorded stacks of the last minute, else of stacks sampled now, else of
 * operations. Returns which, or NULL. */
static const char *write_any_flame(struct top *t, const char *path, struct ow_error *err)
{
	const char *what = "the Python stacks of the last minute";
	struct ow_error silent = { 0 };
	ow_profile *profile = NULL;
	bool good = t->mode == TOP_JOBS &&
		    ow_watch_profile(t->watch, watch_index(t), SAVE_NS, &profile, err) == OW_OK;

	if (good && has_stacks(profile)) {
		good = write_flame(profile, "code", path, err) == OW_OK;
	} else if (flame_of_processes(t, path, good ? &silent : err)) {
		what = "stacks";
		good = true;
	} else if (good) {
		what = "operations";
		good = write_flame(profile, "scope", path, err) == OW_OK;
	}
	ow_profile_free(profile);
	return good ? what : NULL;
}

void top_save_flame_graph(struct top *t)
{
	struct ow_error err = { 0 };
	const char *what;
	char path[256];

	if (!free_name(t, ".svg", path, sizeof(path)))
		return;
	what = write_any_flame(t, path, &err);
	if (what)
		snprintf(t->message, sizeof(t->message), "written: %s, of %s", path, what);
	else
		snprintf(t->message, sizeof(t->message), "no flame graph: %.400s", err.text);
}

void top_ask_end(struct top *t)
{
	struct ow_process p = { .size = sizeof(p) };
	int64_t pids[TOP_TARGETS];
	size_t count = top_selected_pids(t, pids, TOP_TARGETS);
	char name[128];
	struct buf escaped;

	t->target_count = 0;
	t->target_signal = SIGTERM;
	for (size_t i = 0; i < count; i++)
		if (ow_processes_find(t->processes, pids[i], &p))
			t->targets[t->target_count++] = (struct top_target){ p.pid, p.start };
	if (!t->target_count) {
		snprintf(t->message, sizeof(t->message),
			 "no process of this job runs on this host");
		return;
	}
	buf_init(&escaped, &t->mem);
	jobtext_add(&escaped,
		    str_from(t->mode == TOP_JOBS ? t->jobs[t->selected].name
						 : t->rows[t->selected].name),
		    40, false);
	snprintf(name, sizeof(name), "%.*s", STR_ARG(buf_str(&escaped)));
	buf_release(&escaped);
	if (t->target_count == 1)
		snprintf(t->message, sizeof(t->message),
			 "end %s, pid %" PRId64 "?  y: SIGTERM  9: SIGKILL  any other key: no",
			 name, t->targets[0].pid);
	else
		snprintf(t->message, sizeof(t->message),
			 "end %s, %zu processes?  y: SIGTERM  9: SIGKILL  any other key: no", name,
			 t->target_count);
}

void top_answer_end(struct top *t, int key)
{
	size_t count = t->target_count, sent = 0;
	struct ow_error err = { 0 };

	t->target_count = 0;
	if (key != 'y' && key != 'Y' && key != '9') {
		snprintf(t->message, sizeof(t->message), "not ended");
		return;
	}
	t->target_signal = key == '9' ? SIGKILL : SIGTERM;
	for (size_t i = 0; i < count; i++)
		sent += ow_process_signal(t->targets[i].pid, t->targets[i].start, t->target_signal,
					  &err) == OW_OK;
	if (sent == count)
		snprintf(t->message, sizeof(t->message), "sent %s to %zu process%s",
			 t->target_signal == SIGKILL ? "SIGKILL" : "SIGTERM", sent,
			 sent == 1 ? "" : "es");
	else
		snprintf(t->message, sizeof(t->message), "sent to %zu of %zu: %.300s", sent, count,
			 err.text);
}
