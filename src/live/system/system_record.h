/*
 * system_record.h: records all processes of the host for some time, without loading anything into them: what runs on each
 * processor, where threads wait, and what each process uses. The samples become a recording of perf in a file, the
 * numbers a list; src/api makes a profile of both.
 */
#ifndef LIVE_SYSTEM_RECORD_H
#define LIVE_SYSTEM_RECORD_H

#include "base/error.h"
#include "base/mem.h"
#include "live/proc/process_table.h"

struct system_options {
	uint32_t hz;
	int64_t for_ns; /* how long to record; 0: until keep_going returns false */
	bool no_waits;
	uint64_t limit; /* largest size of the file */
	bool (*keep_going)(void *arg);
	void *arg;
};

/* Resources that a process used in the last second. */
struct system_use {
	pid_t pid;
	char name[PROC_NAME];
	int64_t ts_ns; /* nanoseconds since 1970 */
	double cpu, wait, read_rate, write_rate;
	int64_t memory;
};

struct system_recording {
	struct mem *mem;
	struct system_use *uses;
	size_t use_count, use_cap;
	struct host_meter *hosts; /* metrics of the host for each second */
	int64_t *host_ns;
	size_t host_count, host_cap, host_ns_cap;
	/* Sums: */
	uint64_t samples, waits, lost, throttled;
	/* number of user stacks unwound with tables, and with frame pointers only */
	uint64_t unwound, by_pointers;
	uint32_t processes, cpus;
	int64_t elapsed_ns, cpu_ns;
	bool no_waits;	/* threads that leave their processors could not be sampled */
	char why[160];	/* reason why waits are not recorded (no_waits) */
	bool no_unwind; /* built without libdw */
	int failure;	/* errno of the file; EFBIG: the limit was reached */
};

/* Records the host; the samples go to fd. Fails when nothing can be sampled; otherwise *r describes what is missing.
 * The caller releases *r in any case. */
ow_status system_record(struct system_recording *r, struct mem *mem, int fd,
			const struct system_options *options, struct ow_error *err);
void system_recording_release(struct system_recording *r);

#endif
