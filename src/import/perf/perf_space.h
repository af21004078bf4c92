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
	uint64_t device,
		inode; /* of the file, when no build id stands in their place; 0 = unknown */
	bool jit;      /* no file: code that was made while running */
};

struct perf_process {
	int64_t pid;
	struct perf_map *maps; /* by start, apart from each other */
	size_t count, cap;
	uint32_t changed; /* the last change of it */
};

struct perf_thread {
	int64_t pid, tid;
	str_id comm;
	track_id track; /* the caller's, and when it was found, in names */
	uint64_t track_at;
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
	size_t last_thread; /* asked for */
	struct map by_tid;  /* → thread + 1 */
	struct perf_symbol *symbols;
	size_t symbol_count, symbol_cap;
	bool sorted;
	uint32_t changes; /* of what lies where, so far */
	uint64_t names;	  /* of threads, said so far */
};

#define PERF_KERNEL_PID (-1)

void perf_space_init(struct perf_space *s, struct builder *b);
void perf_space_release(struct perf_space *s);

/* All return false without memory. */
bool perf_space_map(struct perf_space *s, int64_t pid, const struct perf_map *map);
/* A name, also of a new program. What was mapped stays until something else is there: while the kernel loads it, its thread is
 * in the call of the program before. */
bool perf_space_comm(struct perf_space *s, int64_t pid, int64_t tid, str_id comm);
bool perf_space_fork(struct perf_space *s, int64_t pid, int64_t parent_pid, int64_t tid,
		     int64_t parent_tid);
bool perf_space_symbol(struct perf_space *s, uint64_t start, uint64_t len, str_id name);

/* What is mapped at an address; NULL when nothing is known. */
const struct perf_map *perf_space_find(const struct perf_space *s, int64_t pid, uint64_t address);
/* The function there, among the symbols of the file; nil when there is none. */
str_id perf_space_function(struct perf_space *s, uint64_t address);
/* The last change that an address of this process can have seen: its own, or one of the kernel. */
uint32_t perf_space_changed(const struct perf_space *s, int64_t pid);
/* The entry of a thread, made when it is not there; valid until the next one. NULL without memory. */
struct perf_thread *perf_space_thread(struct perf_space *s, int64_t pid, int64_t tid);
/* The name of a thread; nil when it never said one. */
str_id perf_space_name(const struct perf_space *s, int64_t pid, int64_t tid);

#endif
