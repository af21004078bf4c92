/*
 * proctext.h: processes, functions and the host as lines of `opwatch top`, and as JSON. Names come from other people's
 * programs: whatever could drive the terminal or turn the direction of text is shown escaped.
 */
#ifndef CLI_PROCTEXT_H
#define CLI_PROCTEXT_H

#include "cli/commands/jobtext.h"

enum process_order {
	PROCESS_BY_CPU,
	PROCESS_BY_WAIT,
	PROCESS_BY_MEMORY,
	PROCESS_BY_READ,
	PROCESS_BY_WRITTEN,
	PROCESS_BY_PID,
	PROCESS_BY_USER,
	PROCESS_BY_NAME,
	PROCESS_ORDERS
};
extern const char *const process_order_names[PROCESS_ORDERS];
/* Sorts processes, the largest first or the smallest; texts in ascending or descending order. */
void proctext_sort(struct ow_process *processes, size_t count, enum process_order order,
		   bool reverse);
/* Returns whether a text is part of a process's name, command line, user or number, ignoring
 * case. */
bool proctext_matches(const struct ow_process *process, const char *part);

/* The table: its head, and a row. `order` PROCESS_ORDERS: not sorted. With `steps` it has a column for steps per second, where a
 * row without any has a blank: `of` is NULL. */
void proctext_head(const struct jobtext *t, enum process_order order, bool steps);
void proctext_row(const struct jobtext *t, const struct ow_process *process, bool selected,
		  bool steps, const struct ow_job_rank *of);
/* Writes one process in at most this many lines: user, start, command line, and a picture of its
 * processors. */
void proctext_detail(const struct jobtext *t, const struct ow_process *process, uint32_t lines);

/* Writes one line: processors with a picture of the last minutes, memory, disks, networks. */
void proctext_host(const struct jobtext *t, const struct ow_host *host);

/* Writes functions with their head, in at most this many lines; `why` may be empty. */
void proctext_functions(const struct jobtext *t, ow_processes *from, size_t count, const char *why,
			uint32_t lines);

/* Writes the threads that ow_processes_threads read, with their head, in at most this many
 * lines. */
void proctext_threads(const struct jobtext *t, const ow_processes *from, size_t count,
		      uint32_t lines);

void proctext_json(struct buf *to, const struct ow_process *process);
void proctext_functions_json(struct buf *to, const ow_processes *from);
void proctext_host_json(struct buf *to, const struct ow_host *host);

#endif
