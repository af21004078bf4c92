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

/* Sums since the process began. */
struct process_sums {
	uint64_t ticks_ns; /* on a processor, in ticks of 10 ms */
	uint64_t run_ns,
		wait_ns;	/* of the threads that live: on a processor, and waiting for one */
	bool has_run;		/* of these two: the kernel keeps them */
	uint64_t read, written; /* by calls; from a disk or not */
	uint64_t disk_read, disk_written;
	bool has_io;
};

struct process_row {
	pid_t pid, parent;
	uid_t uid;
	char user[PROCESS_USER];
	char name[PROC_NAME];
	char arguments[PROCESS_ARGUMENTS]; /* the command line; of a kernel thread empty */
	char state;
	uint32_t threads;
	uint64_t start_ticks;
	struct process_sums sums;
	double cpu;			/* number of processors that it keeps busy */
	double wait;			/* threads of it that wait for a processor, on average */
	int64_t memory;			/* resident bytes */
	double read_rate, write_rate;	/* bytes a second */
	float history[PROCESS_HISTORY]; /* of cpu: reading n at n % PROCESS_HISTORY */
	uint64_t readings;
	int64_t read_ns; /* the last reading */
};

struct process_table {
	struct mem *mem;
	struct process_row *rows; /* by pid */
	size_t count, cap;
	struct process_row *before;
	size_t before_count, before_cap;
	struct pid_list pids;
	struct host_meter host, host_before;
	int64_t host_ns, host_before_ns;
	float host_history[PROCESS_HISTORY];
	uint64_t host_readings;
	int64_t cost_ns; /* of the last turn */
};

void process_table_init(struct process_table *t, struct mem *mem);
void process_table_release(struct process_table *t);
/* Reads these processes, or all of the host when `pids` is NULL. Rates are known from the second reading on. False
 * without memory. */
bool process_table_turn(struct process_table *t, const pid_t *pids, size_t count);
const struct process_row *process_table_find(const struct process_table *t, pid_t pid);

#endif
