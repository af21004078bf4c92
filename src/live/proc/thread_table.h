/*
 * thread_table.h: the threads of one process and what they use now, from two readings of /proc. A thread that ends stays
 * in the list for some seconds, with its name: pools and loaders start and end threads faster than a screen is drawn. For
 * `opwatch top`. It reads only; a thread that began and ended between two readings is not seen.
 */
#ifndef LIVE_THREAD_TABLE_H
#define LIVE_THREAD_TABLE_H

#include "live/proc/proc.h"

#define THREAD_ROWS 512u /* largest number of threads that are shown */

struct thread_row {
	pid_t tid;
	char name[PROC_NAME];
	char state;  /* state: R, S, D, …; X: ended */
	double cpu;  /* part of the time on a processor; negative: unknown */
	double wait; /* part of the time that the thread waited for a processor */
	uint64_t running_ns, waiting_ns, start_ticks;
	int64_t read_ns; /* time of the last reading */
	bool seen;	 /* the thread is in this reading */
};

struct thread_table {
	struct mem *mem;
	pid_t pid;
	struct thread_row *rows; /* rows, the busiest thread first */
	size_t count, cap;
	struct pid_list tids;
};

void thread_table_init(struct thread_table *t, struct mem *mem);
void thread_table_release(struct thread_table *t);
/* Reads the threads of this process; another process than before starts over. False if memory runs out. */
bool thread_table_turn(struct thread_table *t, pid_t pid, int64_t now_ns) OW_MUST_CHECK;

#endif
