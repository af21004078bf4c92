/*
 * processes.h: what /proc tells about processes and threads. Each call reads one small file, or one directory; what
 * has ended meanwhile is simply not there.
 */
#ifndef LIVE_PROCESSES_H
#define LIVE_PROCESSES_H

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

#define PROC_NAME 16

struct proc_stat {
	char name[PROC_NAME]; /* as the kernel keeps it: 15 bytes */
	char state;	      /* R, S, D, Z, … */
	bool exits;	      /* it is on its way out, and may have no memory any more */
	pid_t parent;
	uint64_t user_ticks, system_ticks, start_ticks;
	uint64_t minor_faults, major_faults;
	uint64_t io_wait_ticks; /* waiting for a disk */
	uint32_t threads;
	uint32_t processor; /* that it runs on, or ran on last */
	uint32_t policy;    /* SCHED_OTHER, … */
};

/* A file below /proc, whole; false when it is not there or there is no memory. */
bool proc_read_file(struct buf *to, const char *path);
/* The same into a fixed room, NUL-terminated; how much, 0 when it is not there. */
size_t proc_read_text(const char *path, char *to, size_t size);

/* Of a process, or of a thread of it when tid is not 0. */
bool proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat);
bool proc_owner(pid_t pid, uid_t *uid);
/* A number in the status of a process or thread, such as "Tgid:"; -1 when there is none. */
int64_t proc_status_number(pid_t pid, const char *name);
/* Fails for a thread that is not the first of its process, and says whose it is: the kernel takes such a number for a
 * process at most places, and would tell one that does not exist. What is not there at all is OW_OK: others say so. */
ow_status proc_check_first(pid_t pid, struct error *err);

struct pid_list {
	struct mem *mem;
	pid_t *items;
	size_t count, cap;
};
void pid_list_release(struct pid_list *list);
bool pid_list_add(struct pid_list *list, pid_t pid);
bool pid_list_has(const struct pid_list *list, pid_t pid);
/* Adds the threads of a process. False without memory. */
bool proc_threads(pid_t pid, struct pid_list *list);
/* Adds the processes that a process has started, those of all of its threads, and theirs, that are not in the list
 * yet. False without memory. */
bool proc_descendants(pid_t pid, struct pid_list *list);

/* One mapping of a file, as a line of /proc/PID/maps has it. */
struct proc_map {
	uint64_t start, end, offset;
	struct str path;
	bool deleted;
};
/* Cuts the next line of a maps file off *rest; lines without a file are passed over. */
bool proc_next_map(struct str *rest, struct proc_map *map);

#endif
