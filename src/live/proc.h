/* proc.h: what /proc says about a process. Everything may fail at any time, since processes end. */
#ifndef LIVE_PROC_H
#define LIVE_PROC_H

#include "base/base.h"

#include <sys/types.h>

/* /proc/PID/io: calls that read and their bytes, and what came from a disk, by whatever means. */
struct proc_io {
	uint64_t read_calls, read_bytes, storage_bytes;
};
bool proc_read_io(pid_t pid, struct proc_io *io);
/* Instances of io_uring among its first descriptors. */
uint64_t proc_count_urings(pid_t pid);
/* What a thread is called. */
bool proc_thread_name(pid_t pid, pid_t tid, char name[16]);
/* The content of /proc/PID/what, ended with NUL; its length, or -1. */
ssize_t proc_read(pid_t pid, const char *what, char *to, size_t size);

#endif
