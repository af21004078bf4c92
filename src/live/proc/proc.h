/*
 * proc.h: reads /proc and the memory of other processes. Each call reads one small file or one directory. A
 * process may end at any time: every call may fail, and a process that has ended is simply not found. `struct
 * remote` reads memory of a process that keeps running: the result may be half changed, and callers check it.
 * Nothing is written or stopped.
 */
#ifndef LIVE_PROC_H
#define LIVE_PROC_H

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

#define PROC_NAME 16

struct proc_stat {
	char name[PROC_NAME]; /* name as the kernel keeps it, at most 15 bytes */
	char state;	      /* state: R, S, D, Z, … */
	bool exits;	      /* the process is ending and may have no memory any more */
	pid_t parent;
	uint64_t user_ticks, system_ticks, start_ticks;
	uint64_t minor_faults, major_faults;
	uint64_t io_wait_ticks; /* time of waiting for a disk */
	uint32_t threads;
	uint32_t processor; /* processor that the thread runs on or ran on last */
	uint32_t policy;    /* scheduling policy: SCHED_OTHER, … */
};

/* Reads a whole file below /proc; false if it is missing or memory runs out. */
bool proc_read_file(struct buf *to, const char *path);
/* Reads a file that the job may have chosen, for instance below /proc/PID/root; never blocks. */
bool proc_read_job_file(struct buf *to, const char *path);
/* Reads a file into a fixed buffer, NUL-terminated; returns the length, 0 if it is missing. */
size_t proc_read_text(const char *path, char *to, size_t size);

/* Reads the stat of a process, or of one of its threads if tid is not 0. */
bool proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat);
bool proc_owner(pid_t pid, uid_t *uid);
/* Returns a number in the status of a process or thread, such as "Tgid:"; -1 if there is none. */
int64_t proc_status_number(pid_t pid, const char *name);
/* Fails for a thread that is not the main thread, and names its process: the kernel takes that number for a
 * process at most places. A number that does not exist is OW_OK: later calls report it. */
ow_status proc_check_first(pid_t pid, struct ow_error *err);

struct pid_list {
	struct mem *mem;
	pid_t *items;
	size_t count, cap;
};
void pid_list_release(struct pid_list *list);
bool pid_list_add(struct pid_list *list, pid_t pid);
bool pid_list_has(const struct pid_list *list, pid_t pid);
/* Adds the threads of a process. False if memory runs out. */
bool proc_threads(pid_t pid, struct pid_list *list);
/* Adds the processes that a process has started, those of all of its threads, and theirs, that are not in the list
 * yet. False if memory runs out. */
bool proc_descendants(pid_t pid, struct pid_list *list);

/* One mapping: a line of /proc/PID/maps. */
struct proc_map {
	uint64_t start, end, offset;
	struct str path; /* path of the mapped file, a name such as "[stack]", or empty */
	bool deleted;	 /* the file was removed or replaced */
	bool executable;
};
/* Cuts the next mapping off *rest, the text of a maps file. Damaged lines are skipped. */
bool proc_next_map(struct str *rest, struct proc_map *map);
/* Cuts off the next mapping of a file. */
bool proc_next_file_map(struct str *rest, struct proc_map *map);

/* Content of /proc/PID/io: bytes that calls read and wrote, and bytes from and to disks. */
struct proc_io {
	uint64_t read_calls, read_bytes, storage_bytes;
};
bool proc_read_io(pid_t pid, struct proc_io *io);
/* Counts the io_uring instances among the first descriptors of a process. */
uint64_t proc_count_urings(pid_t pid);
/* Reads the name of a thread. */
bool proc_thread_name(pid_t pid, pid_t tid, char name[16]);
/* Reads how long a thread was on a processor, and how long it was ready and waited for one. */
bool proc_schedule(pid_t pid, pid_t tid, uint64_t *running_ns, uint64_t *waiting_ns);
/* Reads /proc/PID/what, NUL-terminated; returns its length, or -1. */
ssize_t proc_read(pid_t pid, const char *what, char *to, size_t size);

struct remote {
	pid_t pid;
	int failure;	/* errno of the last failed read */
	uint64_t reads; /* number of system calls */
};

/* One of the pieces that a single call reads. */
struct remote_part {
	uint64_t at;
	void *to;
	size_t len;
};
#define REMOTE_PARTS 256

/* Reads all bytes, or returns false. */
bool remote_read(struct remote *r, uint64_t at, void *to, size_t len);
/* Reads at most REMOTE_PARTS pieces. Returns how many, from the first on, were read completely. */
size_t remote_read_parts(struct remote *r, const struct remote_part *parts, size_t count);
/* Returns eight bytes of the data at any alignment. */
static inline uint64_t remote_word(const unsigned char *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}
/* Returns whether the process is gone, as opposed to an invalid address. */
static inline bool remote_is_gone(const struct remote *r)
{
	return r->failure == 3; /* 3 is ESRCH */
}

/* Converts a number to a process id; fails if no process can have it. */
ow_status proc_to_pid(int64_t number, pid_t *pid, struct ow_error *err);

#endif
