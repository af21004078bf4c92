/*
 * nsys_int.h: between the files of the importer of Nsight Systems' SQLite exports (import_nsys.c, nsys_*.c); nobody
 * else includes it.
 *
 * Tables are read one after the other, each from its first row to the last, into slices and points that know their
 * lane and the number of their name. Then the texts that these numbers stand for are fetched, and no others: an export
 * also has the environment of the program and what it printed. At the end everything is put in order of lanes and of
 * time into the model, and the meaning pass of traces does the rest.
 */
#ifndef IMPORT_NSYS_INT_H
#define IMPORT_NSYS_INT_H

#include "import/importer.h"
#include "wire/sqlite_file.h"

/* ---- names ---- */

/* A text of the table StringIds that some row refers to. */
struct nsys_name {
	int64_t id;
	str_id text;
	int64_t kernel_ns, kernel_count; /* as the short name of kernels */
	int64_t call_ns, call_count; /* as a call of the CUDA library, copies of a call included */
};

/* What a slice is called: the place of a nsys_name, or a string with this bit. */
#define NSYS_TEXT ((uint32_t)1 << 31)

/* ---- lanes ---- */

enum nsys_lane_kind {
	LANE_NONE,
	LANE_CALLS,    /* of a thread: calls and ranges, which nest */
	LANE_OVERHEAD, /* of a thread: the profiler's own work */
	LANE_CPU,      /* of a thread: when it ran on a processor */
	LANE_RANGES,   /* of a process: ranges that begin and end anywhere */
	LANE_STREAM,   /* of a device */
	LANE_UNIFIED,  /* pages that move between host and device by themselves */
	LANE_WAITS,    /* of a stream: what it waits for, which restates calls */
	LANE_VALUES,   /* counters of a device */
	LANE_KINDS
};

struct nsys_kept;

struct nsys_lane {
	uint8_t kind;	 /* enum nsys_lane_kind */
	bool used;	 /* by samples or values */
	bool unsorted;	 /* its list is not in order of time, then length */
	int64_t process; /* globalPid */
	int64_t number;	 /* thread, or stream */
	int64_t device, context;
	int64_t rank;	/* of the name: the lowest wins */
	uint32_t name;	/* place or string, 0 = none */
	uint32_t count; /* slices and points */
	struct nsys_kept *list;
	size_t cap;
	track_id track;
};

struct nsys_process {
	int64_t id; /* globalPid */
	str_id name;
	uint32_t lowest, highest; /* correlation numbers */
	uint32_t shift;		  /* added to them, so that those of several processes differ */
	bool correlated, beyond;
};

/* A domain of ranges, which has a name of its own. */
struct nsys_domain {
	int64_t process, id;
	str_id name;
	uint32_t text; /* place or string */
};

/* ---- rows ---- */

enum nsys_category {
	NSYS_RUNTIME,
	NSYS_DRIVER,
	NSYS_KERNEL,
	NSYS_GRAPH,
	NSYS_COPY,
	NSYS_SET,
	NSYS_SYNC,
	NSYS_RANGE, /* of NVTX */
	NSYS_OSRT,
	NSYS_MPI,
	NSYS_LIBRARY, /* cuDNN, cuBLAS and other libraries */
	NSYS_OVERHEAD,
	NSYS_CPU,
	NSYS_CATEGORIES
};

/* A row as it is read. */
struct nsys_slice {
	int64_t ts, dur; /* dur TIME_UNKNOWN: a point in time */
	int64_t bytes;
	uint32_t lane, name;
	uint32_t correlation;
	uint32_t chain;	 /* call stack: its number in the tables of call chains */
	uint16_t domain; /* of a range */
	uint8_t category;
	bool open; /* no end was seen */
};

/* The same as it is kept by its lane: there are many. */
struct nsys_kept {
	int64_t ts, dur;
	uint32_t name, correlation;
	uint32_t extra; /* bytes and call stack, 0 = none */
	uint16_t domain;
	uint8_t category;
	bool open;
};

struct nsys_extra {
	int64_t bytes;
	uint32_t chain;
};

/* A call chain that was recorded beside the call it belongs to. */
struct nsys_backtrace {
	uint32_t lane, correlation, chain;
};

/* Rows of a table of call chains. */
struct nsys_chain_row {
	int64_t id;
	uint32_t symbol, module;
	uint16_t depth; /* 0 is the innermost */
	bool kernel;	/* of the operating system */
};

struct nsys_chains {
	struct nsys_chain_row *rows; /* by id, the innermost first */
	size_t row_count, row_cap;
	uint32_t *ids; /* ascending */
	stack_id *stacks;
	size_t count;
};

enum { CHAINS_CUDA, CHAINS_OSRT, CHAINS_SAMPLES, CHAINS_KINDS };

struct nsys_sample {
	int64_t ts, weight;
	uint32_t lane, chain;
	int32_t cpu; /* + 1 */
};

struct nsys_value {
	int64_t ts;
	double value;
	uint32_t lane, name, series;
};

/* Which device a process means by a number. */
struct nsys_gpu {
	int64_t pid; /* -1 = any */
	int64_t number, gpu;
};

/* What a table of the export has in all, for `info`. */
struct nsys_tally {
	int64_t rows, total_ns, first_ns, last_ns;
};

struct nsys_counts {
	uint64_t no_time, negative, clamped, open, unmatched, numbers, no_text, markers;
	uint64_t chains_broken;
	uint64_t warnings, errors; /* of the profiler, about the recording */
};

#define NSYS_NO_RANK (-1)
#define NSYS_MANY_RANKS (-2)

struct nsys {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct sqlite_file db;
	int64_t epoch_ns; /* added to all times */
	char version[64]; /* of the program that exported */

	struct nsys_name *names; /* [0] is unused */
	size_t name_count, name_cap;
	struct map name_map;
	uint32_t recent_names[256]; /* places, by the last digits of their ids */
	struct nsys_lane *lanes;    /* [0] is unused */
	size_t lane_count, lane_cap;
	struct map lane_map;
	uint32_t last_lane[LANE_KINDS];
	struct nsys_process *processes; /* [0] is unused */
	size_t process_count, process_cap;
	struct map process_map;
	uint32_t last_process;
	struct nsys_domain *domains; /* [0]: the default */
	size_t domain_count, domain_cap;
	struct map domain_map;

	size_t slice_count;
	struct nsys_extra *extras; /* [0] is none */
	size_t extra_count, extra_cap;
	struct nsys_backtrace *backtraces;
	size_t backtrace_count, backtrace_cap;
	struct nsys_sample *samples;
	size_t sample_count, sample_cap;
	struct nsys_value *values;
	size_t value_count, value_cap;
	struct nsys_chains chains[CHAINS_KINDS];
	struct nsys_gpu *gpus;
	size_t gpu_count, gpu_cap;
	int64_t last_number, last_number_of, last_gpu; /* the answer to the last question */
	int64_t last_ns;			       /* of all slices */
	int64_t rank;				       /* of MPI */

	struct nsys_tally kernels, calls;
	int64_t range_types[128];
	int64_t ranges, ranges_with_end;
	struct nsys_counts counts;
};

/* ---- nsys_names.c ---- */

#define NSYS_GROW(n, list, cap, need)                                                              \
	({                                                                                         \
		void *list_ = (n)->list;                                                           \
		bool grown_ = mem_grow((n)->mem, &list_, &(n)->cap, need, sizeof(*(n)->list));     \
		(n)->list = list_;                                                                 \
		grown_ ? OW_OK : nsys_no_memory(n);                                                \
	})

ow_status nsys_no_memory(struct nsys *n);
/* The place of a text by its number in StringIds; 0 without memory. */
uint32_t nsys_name(struct nsys *n, int64_t id);
/* The same for a text at hand. */
uint32_t nsys_text(struct nsys *n, struct str text);
/* Fetches the texts of all names. */
ow_status nsys_fetch_names(struct nsys *n);
/* After that. */
str_id nsys_string(const struct nsys *n, uint32_t name);
/* Bytes that are no UTF-8 are replaced. */
str_id nsys_utf8(struct nsys *n, struct str text);

/* 0 without memory. */
uint32_t nsys_lane(struct nsys *n, const struct nsys_lane *key);
uint32_t nsys_thread_lane(struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid);
struct nsys_process *nsys_process(struct nsys *n, int64_t global_pid);
/* Those that are there; 0 and NULL when none. */
uint32_t nsys_find_thread(const struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid);
struct nsys_process *nsys_find_process(const struct nsys *n, int64_t global_pid);
uint16_t nsys_domain(struct nsys *n, int64_t process, int64_t id);

static inline int64_t nsys_process_of(int64_t global_tid)
{
	return global_tid & ~(int64_t)0xffffff;
}
static inline int64_t nsys_pid(int64_t global)
{
	return global >> 24 & 0xffffff;
}
static inline int64_t nsys_tid(int64_t global)
{
	return global & 0xffffff;
}

/* ---- nsys_calls.c, nsys_device.c, nsys_ranges.c, nsys_values.c ---- */

/* From when to when; false for a row without a start. */
bool nsys_interval(struct nsys *n, const struct sqlite_rows *rows, int start, int end,
		   struct nsys_slice *slice);
ow_status nsys_add_slice(struct nsys *n, const struct nsys_slice *slice);
void nsys_take_correlation(struct nsys *n, struct nsys_slice *slice, int64_t process, int64_t id);
void nsys_tally_add(struct nsys_tally *t, const struct nsys_slice *slice, int64_t epoch_ns);

ow_status nsys_read_gpus(struct nsys *n);
/* The device that the process calls so. */
int64_t nsys_gpu(const struct nsys *n, int64_t process, int64_t number);
ow_status nsys_read_calls(struct nsys *n);
ow_status nsys_read_device(struct nsys *n);
ow_status nsys_read_ranges(struct nsys *n);
/* Names of the threads and processes that were seen. */
ow_status nsys_read_owners(struct nsys *n);
void nsys_ranks_from_names(struct nsys *n);
ow_status nsys_read_values(struct nsys *n);

/* ---- nsys_chains.c ---- */

ow_status nsys_read_chains(struct nsys *n);
/* After the names were fetched: makes stacks. */
ow_status nsys_make_stacks(struct nsys *n);
stack_id nsys_stack(const struct nsys *n, int kind, uint32_t chain);
void nsys_free_chains(struct nsys *n);

/* ---- nsys_rows.c, nsys_facts.c ---- */

ow_status nsys_make_rows(struct nsys *n);
ow_status nsys_facts(struct nsys *n);

#endif
