/*
 * process_table.h: what processes use now: processors, waiting for a processor, memory, reading and writing, with a
 * history, from two readings of /proc. For `opwatch top` and for samples of the whole host. Unknown is negative. It
 * reads only; other users' reading and writing is not known without their permission.
 */
#ifndef LIVE_PROCESS_TABLE_H
#define LIVE_PROCESS_TABLE_H

#include "live/proc/metrics.h"

#define PROCESS_HISTORY 240u
#define PROCESS_ARGUMENTS 256
#define PROCESS_USER 32

/* Sums since the start of the process. */
struct process_sums {
	uint64_t ticks_ns; /* time on processors, in ticks of 10 ms */
	uint64_t run_ns,
		/* for living threads: time on processors, and time waiting for one */
		wait_ns;
	bool has_run;		/* the kernel provides these two sums */
	uint64_t read, written; /* bytes that calls read and wrote, from a disk or not */
	uint64_t disk_read, disk_written;
	bool has_io;
};

struct process_row {
	pid_t pid, parent;
	uid_t uid;
	char user[PROCESS_USER];
	char name[PROC_NAME];
	char arguments[PROCESS_ARGUMENTS]; /* command line; empty for a kernel thread */
	char state;
	uint32_t threads;
	uint64_t start_ticks;
	struct process_sums sums;
	double cpu; /* number of processors that the process keeps busy */
	/* number of threads that wait for a processor, on average */
	double wait;
	int64_t memory;		      /* resident memory in bytes */
	double read_rate, write_rate; /* bytes per second */
	/* earlier values of cpu: reading n is at n % PROCESS_HISTORY */
	float history[PROCESS_HISTORY];
	uint64_t readings;
	int64_t read_ns; /* time of the last reading */
};

struct process_table {
	struct mem *mem;
	struct process_row *rows; /* rows, sorted by pid */
	size_t count, cap;
	struct process_row *before;
	size_t before_count, before_cap;
	struct pid_list pids;
	struct host_meter host, host_before;
	int64_t host_ns, host_before_ns;
	float host_history[PROCESS_HISTORY];
	uint64_t host_readings;
	int64_t cost_ns; /* processor time of the last turn */
};

void process_table_init(struct process_table *t, struct mem *mem);
void process_table_release(struct process_table *t);
/* Reads the given processes, or all of the host if `pids` is NULL. Rates are known from the second reading on. False
 * if memory runs out. */
bool process_table_turn(struct process_table *t, const pid_t *pids, size_t count);
const struct process_row *process_table_find(const struct process_table *t, pid_t pid);

#endif
