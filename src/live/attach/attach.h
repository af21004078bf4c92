/*
 * attach.h: loads the recorder into a process that is already running. One of its threads is stopped for some
 * milliseconds, loads and starts the library, and continues where it was. The library's own thread does everything
 * else. It needs the kernel's permission to trace the process. Called by src/api for `opwatch attach`.
 */
#ifndef LIVE_ATTACH_H
#define LIVE_ATTACH_H

#include "base/error.h"
#include "base/mem.h"

#include <sys/types.h>

struct attach_report {
	/* longest time for which a thread was stopped or ran calls for opwatch */
	int64_t stopped_ns;
	/* part of that time in which the thread was ready but had no processor */
	int64_t waited_ns;
};

/* Attaches to a process. step_marker: name of the function whose calls begin steps; or NULL. */
ow_status attach_process(struct mem *mem, pid_t pid, const char *library, const char *socket_path,
			 const char *step_marker, struct attach_report *report,
			 struct ow_error *err);

#endif
