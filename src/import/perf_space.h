/*
 * perf_space.h: what was where in the processes of a perf.data file: mappings and names of threads, as they
 * change over time, and the symbols that the file itself has. import_perf_data.c tells it what happened in
 * order of time and asks it between.
 */
#ifndef IMPORT_PERF_SPACE_H
#define IMPORT_PERF_SPACE_H

#include "model/builder.h"

struct perf_map {
	uint64_t start, end, pgoff;
	str_id name;
};

struct perf_process {
	int64_t pid;
	struct perf_map *maps; /* by start, apart from each other */
	size_t count, cap;
};

struct perf_thread {
	int64_t pid, tid;
	str_id comm;
};

struct perf_symbol {
	uint64_t start, end;
	str_id name;
};

struct perf_space {
	struct builder *b;
	struct mem *mem;
	struct perf_process *processes;
	size_t process_count, process_cap;
	struct map by_pid; /* → process + 1 */
	struct perf_thread *threads;
	size_t thread_count, thread_cap;
	struct map by_tid; /* → thread + 1 */
	struct perf_symbol *symbols;
	size_t symbol_count, symbol_cap;
	bool sorted;
};

#define PERF_KERNEL_PID (-1)

void perf_space_init(struct perf_space *s, struct builder *b);
void perf_space_release(struct perf_space *s);

/* All return false without memory. */
bool perf_space_map(struct perf_space *s, int64_t pid, const struct perf_map *map);
bool perf_space_comm(struct perf_space *s, int64_t pid, int64_t tid, str_id comm, bool exec);
bool perf_space_fork(struct perf_space *s, int64_t pid, int64_t parent_pid, int64_t tid,
		     int64_t parent_tid);
bool perf_space_symbol(struct perf_space *s, uint64_t start, uint64_t len, str_id name);

/* What is mapped at an address; NULL when nothing is known. */
const struct perf_map *perf_space_find(const struct perf_space *s, int64_t pid, uint64_t address);
/* The function there, among the symbols of the file; nil when there is none. */
str_id perf_space_function(struct perf_space *s, uint64_t address);
/* The name of a thread; nil when it never said one. */
str_id perf_space_name(const struct perf_space *s, int64_t pid, int64_t tid);

#endif
