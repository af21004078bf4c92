/*
 * perf_space.h: mappings and names of threads in the processes of a perf.data file, as they change over time, and the kernel symbols
 * in the file itself. perf_resolve.c applies changes in order of time; perf_samples.c looks up addresses between them.
 */
#ifndef IMPORT_PERF_SPACE_H
#define IMPORT_PERF_SPACE_H

#include "model/builder.h"

struct perf_map {
	uint64_t start, end, pgoff;
	str_id name;
	uint64_t device, inode; /* device and inode of the file; 0 = unknown */
	bool jit;		/* memory without a file: code that was compiled at run time */
};

struct perf_process {
	int64_t pid;
	struct perf_map *maps; /* sorted by start, without overlaps */
	size_t count, cap;
	uint32_t changed; /* number of the last change of the process */
};

struct perf_thread {
	int64_t pid, tid;
	str_id comm;
	track_id track;	   /* cached by the caller; valid while perf_space.names equals track_at */
	uint64_t track_at; /* value of perf_space.names when `track` was cached */
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
	struct map by_pid; /* pid → 1 + index of the process */
	struct perf_thread *threads;
	size_t thread_count, thread_cap;
	size_t last_thread; /* index of the thread that was looked up last */
	struct map by_tid;  /* tid → 1 + index of the thread */
	struct perf_symbol *symbols;
	size_t symbol_count, symbol_cap;
	bool sorted;
	uint32_t changes; /* number of changes of mappings so far */
	uint64_t names;	  /* number of thread names so far */
};

#define PERF_KERNEL_PID (-1)

void perf_space_init(struct perf_space *s, struct builder *b);
void perf_space_release(struct perf_space *s);

/* These four functions return false if memory runs out. */
bool perf_space_map(struct perf_space *s, int64_t pid, const struct perf_map *map);
/* Sets a new name of a thread, also when it starts another program. Mappings stay until others replace them: while
 * the kernel loads the new program, the thread is still in a call of the old one. */
bool perf_space_comm(struct perf_space *s, int64_t pid, int64_t tid, str_id comm);
bool perf_space_fork(struct perf_space *s, int64_t pid, int64_t parent_pid, int64_t tid,
		     int64_t parent_tid);
bool perf_space_symbol(struct perf_space *s, uint64_t start, uint64_t len, str_id name);

/* The mapping at an address, or NULL. */
const struct perf_map *perf_space_find(const struct perf_space *s, int64_t pid, uint64_t address);
/* The function at an address, by the symbols in the recording (KSYMBOL); nil when there is none. */
str_id perf_space_function(struct perf_space *s, uint64_t address);
/* The number of the last change of this process or the kernel. */
uint32_t perf_space_changed(const struct perf_space *s, int64_t pid);
/* The entry of a thread, which is added if necessary; valid until the next call. NULL if memory runs out. */
struct perf_thread *perf_space_thread(struct perf_space *s, int64_t pid, int64_t tid);
/* The name of a thread; nil when it has none. */
str_id perf_space_name(const struct perf_space *s, int64_t pid, int64_t tid);

#endif
