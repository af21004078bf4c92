/* proc.h: what /proc says about a process. Everything may fail at any time, since processes end. */
#ifndef LIVE_PROC_H
#define LIVE_PROC_H

#include "base/base.h"

#include <sys/types.h>

/* Calls and bytes of read and its kin, through whatever way they were made. */
bool proc_read_io(pid_t pid, uint64_t *calls, uint64_t *bytes);
/* What a thread is called. */
bool proc_thread_name(pid_t pid, pid_t tid, char name[16]);
/* The content of /proc/PID/what, ended with NUL; its length, or -1. */
ssize_t proc_read(pid_t pid, const char *what, char *to, size_t size);

#endif
