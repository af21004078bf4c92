/*
 * steps_file.c: watches a file that a program writes about itself. watch.c calls it for files that follow.c does not
 * read. Its steps are handled like those of recordings. The process that writes the file is found by its thread id and
 * its open file, so that `opwatch top` can show its use of processors.
 */
#include "watch/steps_file.h"

#include "base/clock.h"
#include "base/input.h"
#include "base/vec.h"
#include "wire/own/opw.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_NS (400 * 1000000LL)
#define LOOK_PART 25
#define LOOK_GAP_MAX_NS (30 * 1000000000LL)
#define DESCRIPTORS_MOST 4096

bool steps_file_is(const char *path)
{
	char head[sizeof(struct opw_header) + sizeof(struct opw_head)];
	int fd = open_regular_file(path);
	ssize_t got = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);

	if (fd >= 0)
		close(fd);
	return got == (ssize_t)sizeof(head) &&
	       opw_starts_with(str_make(head, sizeof(head)), OPW_JOURNAL);
}

ow_status steps_file_open(struct watch *w, struct watch_file *f, const char *path,
			  struct ow_error *err)
{
	const char *slash = strrchr(path, '/');

	f->own_steps = true;
	f->follow = (struct follow){ .mem = w->mem,
				     .path_size = strlen(path) + 1,
				     .newest_ns = INT64_MIN,
				     .newest_sample_ns = INT64_MIN,
				     .caught_up = true };
	buf_init(&f->follow.block, w->mem);
	buf_init(&f->follow.heads, w->mem);
	f->follow.path = mem_alloc(w->mem, f->follow.path_size);
	if (!f->follow.path)
		return error_no_memory(err);
	memcpy(f->follow.path, path, f->follow.path_size);
	memcpy(f->follow.session.host, w->host, sizeof(f->follow.session.host));
	snprintf(f->name, sizeof(f->name), "%s", slash ? slash + 1 : path);
	return OW_OK;
}

static bool has_open(pid_t pid, const struct stat *file)
{
	char path[64];
	const struct dirent *entry;
	bool found = false;
	int looked = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && looked++ < DESCRIPTORS_MOST && (entry = readdir(dir))) {
		struct stat st;

		found = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
			st.st_ino == file->st_ino && st.st_dev == file->st_dev;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Finds the process that writes the file: the first of the threads named in the file whose process has the file
 * open. */
static ow_status find_writer(struct watch *w, struct watch_file *f, const struct model *m,
			     const struct stat *file, struct ow_error *err)
{
	for (uint32_t i = 1; i < m->track.count; i++) {
		int64_t tid = m->track.tid[i], pid;

		if (tid <= 0 || tid > INT32_MAX)
			continue;
		pid = proc_status_number((pid_t)tid, "Tgid:");
		if (pid <= 0 || !has_open((pid_t)pid, file))
			continue;
		if (!vec_reserve_zero(w->mem, f->follow.processes, f->follow.process_cap, 1))
			return error_no_memory(err);
		f->follow.processes[0] =
			(struct follow_process){ .row = { .number = 1, .pid = (uint32_t)pid },
						 .last_ns = INT64_MIN };
		buf_init(&f->follow.processes[0].texts, w->mem);
		map_init(&f->follow.processes[0].text_map, w->mem);
		f->follow.process_count = 1;
		return OW_OK;
	}
	return OW_OK;
}

static bool is_complete(const char *path)
{
	char end[sizeof(struct opw_header)];
	int fd = open_regular_file(path);
	struct stat st;
	bool found = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(end)) {
		ssize_t got = pread(fd, end, sizeof(end), st.st_size - (off_t)sizeof(end));

		for (ssize_t i = 0; !found && i + 8 <= got; i += 8)
			found = memcmp(end + i, OPW_END_MAGIC, 8) == 0;
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* Drops the last step of a growing file, which has not ended. */
static void drop_unfinished(struct window_summary *look, bool complete)
{
	for (uint32_t i = 0; i < look->count; i++) {
		look->steps[i].marker = look->m->step.count > 1 ? STEPS_GIVEN : STEPS_NONE;
		look->steps[i].first = false;
	}
	if (!complete && look->count && look->steps[look->count - 1].marker == STEPS_GIVEN)
		look->count--;
}

static ow_status look_at_file(struct watch *w, struct watch_file *f, const struct stat *file,
			      struct ow_error *err)
{
	bool complete = is_complete(f->follow.path);
	struct window_summary look;
	uint32_t taken;
	ow_status status = window_summary_read(&look, w->mem, f->follow.path, w->step_marker, err);

	if (status == OW_OK) {
		drop_unfinished(&look, complete);
		f->follow.records = look.m->event.count - 1;
		for (uint32_t i = 0; i < look.count; i++)
			f->follow.newest_ns = MAX(f->follow.newest_ns, look.steps[i].end_ns);
		status = watch_take_summary(w, f, &look, INT64_MIN, &taken, err);
	}
	if (status == OW_OK && !f->follow.process_count && !complete)
		status = find_writer(w, f, look.m, file, err);
	window_summary_release(&look);
	f->follow.closed = complete;
	return status == OW_E_EMPTY ? OW_OK : status;
}

ow_status steps_file_turn(struct watch *w, struct watch_file *f, bool now, struct ow_error *err)
{
	int64_t begin = steady_ns(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), cost;
	struct ow_error problem = { 0 };
	ow_status status = OW_OK;
	struct stat st;

	if (!now && (begin < f->due_ns || f->follow.closed))
		return OW_OK;
	if (stat(f->follow.path, &st) != 0) {
		f->follow.removed = true;
		return OW_OK;
	}
	f->follow.removed = false;
	if ((uint64_t)st.st_size > STEPS_FILE_MOST)
		snprintf(problem.text, sizeof(problem.text),
			 "the file is larger than %d MB, so it is not read again",
			 (int)(STEPS_FILE_MOST >> 20));
	else
		status = look_at_file(w, f, &st, &problem);
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	f->look_gap_ns = f->looked_ns ? begin - f->looked_ns : LOOK_NS;
	f->look_cost_ns = cost;
	f->looked_ns = begin;
	f->due_ns = begin + MIN(MAX(LOOK_NS, cost * LOOK_PART), LOOK_GAP_MAX_NS);
	snprintf(f->problem, sizeof(f->problem), "%.159s", problem.text);
	if (status == OW_E_NO_MEMORY && err)
		*err = problem;
	return status == OW_E_NO_MEMORY ? status : OW_OK;
}
