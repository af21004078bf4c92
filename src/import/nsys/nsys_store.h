/*
 * nsys_store.h: data read from an SQLite export of Nsight Systems, before it becomes rows of the model. import_nsys.c
 * opens the export and runs the steps in order. nsys_host.c and nsys_device.c read the tables, each from its first row
 * to its last, and add slices, samples, values and names here. Each slice has its lane and the number of its name. Then
 * nsys_fetch_names reads the texts of these numbers from StringIds, and only those: an export also contains the
 * environment of the program and its output. Finally nsys_rows.c copies everything into the model, lane by lane in
 * order of time. Only nsys_store.c writes the fields of struct nsys, except where a group of fields names another file.
 */
#ifndef IMPORT_NSYS_STORE_H
#define IMPORT_NSYS_STORE_H

#include "base/vec.h"
#include "import/importer.h"
#include "wire/sqlite/sqlite_file.h"

/* A text of the table StringIds that some row refers to. */
struct nsys_name {
	int64_t id;
	str_id text;
	int64_t kernel_ns, kernel_count; /* sums over the kernels with this short name */
	int64_t call_ns,
		call_count; /* sums over the CUDA calls with this name, repeated rows included */
};

/* The name of a slice is an index into `names`, or a str_id with this bit set. 0 means no name. */
#define NSYS_TEXT ((uint32_t)1 << 31)

enum nsys_lane_kind {
	LANE_NONE,
	LANE_CALLS,    /* slices of a thread: calls and ranges, which nest */
	LANE_OVERHEAD, /* slices of a thread: the profiler's own overhead */
	LANE_CPU,      /* slices of a thread: when it ran on a processor */
	LANE_RANGES, /* slices of a process: ranges that may start on one thread and end on another */
	LANE_STREAM, /* a stream of a device */
	LANE_UNIFIED, /* slices of a device: pages that unified memory moves between host and device */
	LANE_WAITS,  /* slices of a stream: waits, which repeat calls of the host */
	LANE_VALUES, /* values of a device's counters */
	LANE_KINDS
};

/* A slice or point as its lane stores it. There are many, so rare values are in struct nsys_extra. */
struct nsys_kept {
	int64_t ts, dur; /* dur TIME_UNKNOWN: a point in time */
	uint32_t name, correlation;
	uint32_t extra; /* index into extras, 0 = none */
	uint16_t domain;
	uint8_t category;
	bool open;
};

struct nsys_lane {
	uint8_t kind;	 /* enum nsys_lane_kind */
	bool used;	 /* the lane has samples or values */
	bool unsorted;	 /* `list` is not sorted by time, then by length */
	int64_t process; /* globalPid of the process */
	int64_t number;	 /* number of the thread or the stream */
	int64_t device, context;
	int64_t rank; /* rank of the name: the name with the lowest rank wins */
	uint32_t name;
	uint32_t count;		/* number of slices and points in `list` */
	struct nsys_kept *list; /* nsys_rows.c frees the list when its rows are made */
	size_t cap;
	track_id track; /* set by nsys_rows.c */
};

struct nsys_process {
	int64_t id; /* globalPid */
	str_id name;
	uint32_t lowest, highest; /* smallest and largest correlation number */
	bool correlated;	  /* the process has correlation numbers */
	/* Set by nsys_rows.c: the number that makes correlation numbers unique over all processes when it is added. */
	uint32_t shift;
	bool beyond; /* the shifted numbers would not fit into 32 bits */
};

/* A domain of NVTX ranges, which has a name of its own. */
struct nsys_domain {
	int64_t process, id;
	uint32_t text; /* index of the domain's name */
};

enum nsys_category {
	NSYS_RUNTIME,
	NSYS_DRIVER,
	NSYS_KERNEL,
	NSYS_GRAPH,
	NSYS_COPY,
	NSYS_SET,
	NSYS_SYNC,
	NSYS_RANGE, /* an NVTX range */
	NSYS_OSRT,
	NSYS_MPI,
	NSYS_LIBRARY, /* cuDNN, cuBLAS and other libraries */
	NSYS_OVERHEAD,
	NSYS_CPU,
	NSYS_CATEGORIES
};

/* A row of the export, as a reader passes it to nsys_add_slice. */
struct nsys_slice {
	int64_t ts, dur; /* dur TIME_UNKNOWN: a point in time */
	int64_t bytes;
	uint32_t lane, name;
	uint32_t correlation;
	uint32_t chain;	 /* number of the call chain, 0 = none */
	uint16_t domain; /* domain of an NVTX range */
	uint8_t category;
	bool open; /* the export has no end for the slice */
};

struct nsys_extra {
	int64_t bytes;
	uint32_t chain;
};

/* A call chain that is a row of its own, separate from the row of its call. */
struct nsys_backtrace {
	uint32_t lane, correlation, chain;
};

enum { CHAINS_CUDA, CHAINS_OSRT, CHAINS_SAMPLES, CHAINS_KINDS };

struct nsys_chain_row {
	int64_t id;
	uint32_t symbol, module;
	uint16_t depth; /* 0 is the innermost frame */
	bool kernel;	/* a frame of the operating system's kernel */
};

/* One table of call chains. Each table counts its chains from 1. */
struct nsys_chains {
	struct nsys_chain_row *rows; /* sorted by id, the innermost frame first */
	size_t row_count, row_cap;
	uint32_t *ids; /* ids of the chains, ascending */
	stack_id *stacks;
	size_t count;
};

struct nsys_sample {
	int64_t ts, weight;
	uint32_t lane, chain;
	int32_t cpu; /* number of the processor + 1 */
};

struct nsys_reading {
	int64_t ts;
	double value;
	uint32_t lane, name;
};

/* The GPU that a process means by a CUDA device number. */
struct nsys_gpu {
	int64_t pid; /* -1 = any process */
	int64_t number, gpu;
};

/* Sums over a table of the export, for `info`. */
struct nsys_tally {
	int64_t rows, total_ns, first_ns, last_ns;
};

/* Kinds of problems with rows, which are counted. import_nsys.c turns each count into a note. */
enum nsys_problem {
	NSYS_NO_TIME,
	NSYS_NEGATIVE,
	NSYS_CLAMPED,
	NSYS_OPEN,
	NSYS_UNMATCHED,
	NSYS_BIG_NUMBER,
	NSYS_NO_TEXT,
	NSYS_BROKEN_CHAIN,
	NSYS_WARNING, /* a warning of the profiler about the recording */
	NSYS_ERROR,
	NSYS_PROBLEMS
};

#define NSYS_NO_RANK (-1)
#define NSYS_MANY_RANKS (-2)

struct nsys {
	/* Fields that import_nsys.c sets before tables are read. */
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct sqlite_file db;
	int64_t epoch_ns; /* added to all times */
	char version[64]; /* version of the program that exported the database */

	/* Lists whose element [0] is unused or a default. */
	struct nsys_name *names;
	size_t name_count, name_cap;
	struct nsys_lane *lanes;
	size_t lane_count, lane_cap;
	struct nsys_process *processes;
	size_t process_count, process_cap;
	struct nsys_domain *domains;
	size_t domain_count, domain_cap;
	struct nsys_extra *extras;
	size_t extra_count, extra_cap;
	struct map name_map, lane_map, process_map, domain_map;
	uint32_t recent_names[256]; /* cache of indexes, by the last digits of the ids */
	uint32_t last_lane[LANE_KINDS], last_process;

	struct nsys_backtrace *backtraces;
	size_t backtrace_count, backtrace_cap;
	struct nsys_sample *samples;
	size_t sample_count, sample_cap;
	struct nsys_reading *readings;
	size_t reading_count, reading_cap;
	struct nsys_chains chains[CHAINS_KINDS];
	size_t slice_count;
	int64_t last_ns; /* end of the last slice */
	struct nsys_tally kernels, calls;
	uint64_t problems[NSYS_PROBLEMS];

	/* Fields that nsys_host.c writes. */
	int64_t range_types[128];
	int64_t ranges, ranges_with_end;
	int64_t rank; /* MPI rank */

	/* Fields that nsys_device.c writes. */
	struct nsys_gpu *gpus;
	size_t gpu_count, gpu_cap;
	/* arguments and result of the last call of gpu_of */
	int64_t last_number, last_number_of, last_gpu;
};

#define NSYS_GROW(n, list, cap, need)                                                              \
	(vec_reserve((n)->mem, (n)->list, (n)->cap, need) ? OW_OK : import_no_memory((n)->ctx))

ow_status nsys_init(struct nsys *n);
void nsys_release(struct nsys *n);

/* Calls `add` for each row of a table; does nothing when the export does not have the table. */
static inline __attribute__((always_inline)) ow_status
nsys_each_row(struct nsys *n, const char *table, const char *const *columns, size_t count,
	      ow_status (*add)(struct nsys *, const struct sqlite_rows *))
{
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, table, columns, count);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add(n, &rows);
	sqlite_rows_close(&rows);
	return status;
}

static inline void nsys_problem(struct nsys *n, enum nsys_problem problem)
{
	n->problems[problem]++;
}

/* The name for a number of StringIds; 0 if memory runs out. */
uint32_t nsys_name(struct nsys *n, int64_t id);
/* The name for a text. */
uint32_t nsys_text(struct nsys *n, struct str text);
/* Reads the texts of all names from the export. */
ow_status nsys_fetch_names(struct nsys *n);
/* The text of a name, after nsys_fetch_names. */
str_id nsys_string(const struct nsys *n, uint32_t name);
/* Interns a string in the model; bytes that are not UTF-8 are replaced. */
str_id nsys_utf8(struct nsys *n, struct str text);

/* The lane with the key's kind, process, number, device and context; it is added if necessary. 0 if memory runs out. */
uint32_t nsys_lane(struct nsys *n, const struct nsys_lane *key);
uint32_t nsys_thread_lane(struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid);
/* The lane of a thread; 0 if it does not exist. */
uint32_t nsys_find_thread(const struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid);
/* Names a lane, unless it has a name of a lower rank. */
ow_status nsys_name_lane(struct nsys *n, uint32_t lane, uint32_t name, int64_t rank);

/* Finds a process; NULL if it does not exist. */
struct nsys_process *nsys_find_process(const struct nsys *n, int64_t global_pid);
/* The index of a domain. 0 is the default domain. */
uint16_t nsys_domain(struct nsys *n, int64_t process, int64_t id);

static inline int64_t nsys_process_of(int64_t global_tid)
{
	return global_tid & ~(int64_t)0xffffff;
}
static inline int64_t nsys_pid(int64_t global)
{
	return global >> 24 & 0xffffff;
}

/* Reads the start and the end of a row into *slice. Returns false for a row without a start. `end` < 0: the table
 * has no such column. */
bool nsys_interval(struct nsys *n, const struct sqlite_rows *rows, int start, int end,
		   struct nsys_slice *slice);
/* Sets the correlation number of a slice. Numbers count per process, and have 32 bits. */
void nsys_correlate(struct nsys *n, struct nsys_slice *slice, int64_t process, int64_t id);
ow_status nsys_add_slice(struct nsys *n, const struct nsys_slice *slice);
ow_status nsys_add_sample(struct nsys *n, const struct nsys_sample *sample);
ow_status nsys_add_reading(struct nsys *n, const struct nsys_reading *reading);
/* Stores the call chain of a slice for the call with the same correlation number. */
ow_status nsys_add_backtrace(struct nsys *n, const struct nsys_slice *slice);
/* Adds a slice to the sums over kernels (by their short name), or (below) over CUDA calls. */
void nsys_tally_kernel(struct nsys *n, const struct nsys_slice *slice, uint32_t short_name);
void nsys_tally_call(struct nsys *n, const struct nsys_slice *slice);

ow_status nsys_read_chains(struct nsys *n);
/* Makes stacks from all call chains, after nsys_fetch_names. */
ow_status nsys_make_stacks(struct nsys *n);
stack_id nsys_stack(const struct nsys *n, int kind, uint32_t chain);

/* Reads calls of threads, when threads ran on a processor, and samples. */
ow_status nsys_read_host(struct nsys *n);
/* Reads NVTX ranges and marks. */
ow_status nsys_read_ranges(struct nsys *n);
/* Reads names of the threads and processes that rows refer to, and MPI ranks. Called after all other tables are
 * read. */
ow_status nsys_read_owners(struct nsys *n);
/* Finds MPI ranks in names of threads, after nsys_fetch_names. */
void nsys_ranks_from_names(struct nsys *n);

/* Reads the work of GPUs. */
ow_status nsys_read_device(struct nsys *n);
/* Reads counters of GPUs, allocations of their memory, and the number of the profiler's warnings. */
ow_status nsys_read_values(struct nsys *n);

ow_status nsys_make_rows(struct nsys *n);

#endif
