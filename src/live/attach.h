/*
 * attach.h: brings the recorder into a process that runs already. One of its threads is stopped for some
 * milliseconds, made to load the library and to start it, and goes on where it was; everything else is done by the
 * library's own thread. It is done only where the kernel allows the user to trace the process.
 */
#ifndef LIVE_ATTACH_H
#define LIVE_ATTACH_H

#include "base/error.h"
#include "base/mem.h"

#include <sys/types.h>

struct attach_report {
	int64_t stopped_ns; /* the longest that a thread was stopped, or did what it was told to */
	int64_t waited_ns;  /* meanwhile it could have run, but others had the processors */
};

ow_status attach_process(struct mem *mem, pid_t pid, const char *library, const char *socket_path,
			 struct attach_report *report, struct error *err);

#endif
