/*
 * firefox_int.h: between import_firefox.c (the document), firefox_tables.c (tables of numbers), firefox_stacks.c (frames and
 * stacks out of them) and firefox_rows.c (samples, markers and counters); nobody else includes it.
 *
 * Tables come in two forms. Profiles that were processed have a list per column; what Firefox itself and `perf script gecko`
 * write has a list per row and says first what stands where. Both end as lists of numbers here. Up to version 59 each
 * thread has its own tables, later all share those of the profile.
 */
#ifndef IMPORT_FIREFOX_INT_H
#define IMPORT_FIREFOX_INT_H

#include "import/importer.h"
#include "import/json_text.h"
#include "import/perf_names.h"
#include "import/stack_facts.h"

#define FX_NONE INT64_MIN
#define FX_WIDTH 8
#define FX_MILLION INT64_C(1000000)

enum fx_table_kind {
	FX_SAMPLES,
	FX_JS_ALLOCATIONS,
	FX_NATIVE_ALLOCATIONS,
	FX_MARKERS,
	FX_FRAMES,
	FX_FUNCS,
	FX_STACKS,
	FX_RESOURCES,
	FX_SOURCES,
	FX_TABLES
};

enum {
	SAMPLE_STACK,
	SAMPLE_TIME,
	SAMPLE_DELTA,
	SAMPLE_WEIGHT,
	SAMPLE_DURATION,
	SAMPLE_CPU,
	SAMPLE_COUNT
};
enum {
	MARKER_NAME,
	MARKER_START,
	MARKER_END,
	MARKER_PHASE,
	MARKER_CATEGORY,
	MARKER_TIME,
	MARKER_DATA
};
enum {
	FX_FRAME_FUNC,
	FX_FRAME_ADDRESS,
	FX_FRAME_LINE,
	FX_FRAME_CATEGORY,
	FX_FRAME_LIB,
	FX_FRAME_FLAGS,
	FX_FRAME_INLINE,
	FX_FRAME_LOCATION
};
enum { FUNC_NAME, FUNC_RESOURCE, FUNC_FILE, FUNC_SOURCE, FUNC_LINE, FUNC_FLAGS };
enum { STACK_FRAME, STACK_PREFIX, STACK_OFFSET };
enum { RESOURCE_NAME, RESOURCE_LIB };
enum { SOURCE_FILE };

struct fx_column {
	int64_t *values; /* times 10^scale; FX_NONE for null */
	size_t count, cap;
	int scale;
};

enum fx_weight { WEIGHT_SAMPLES, WEIGHT_MS, WEIGHT_BYTES };

struct fx_table {
	bool there;
	uint8_t weight; /* enum fx_weight */
	struct fx_column column[FX_WIDTH];
};

/* Tables of a thread, or of the whole profile. */
struct fx_tables {
	struct fx_table table[FX_TABLES];
	str_id *strings;
	size_t string_count, string_cap;
	bool has_strings;
};

/* What a marker carries. */
struct fx_payload {
	uint64_t offset;
	int64_t stack;	    /* FX_NONE: none */
	int64_t start, end; /* ns, in old versions */
	uint32_t size;
	char interval; /* s start, e end, of old versions; or 0 */
	bool tracing;  /* old: what has an interval is one half of a pair */
	bool request;  /* of the network, or between processes: they overlap freely */
};

struct fx_lib {
	str_id name;	     /* its path, when that is known */
	uint64_t start, end; /* where it was mapped; 0 in processed profiles */
};

struct fx_category {
	str_id name, label;
	int64_t sum; /* of the weights of samples in it */
};

struct fx_stacks {
	stack_id *stacks;
	uint16_t *categories; /* of each, + 1 */
	size_t count;
	bool made;
};

struct fx_thread {
	str_id name, process, process_type;
	int64_t pid, tid;
	track_id track;
};

struct firefox {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct json_pull *p;
	struct buf text;
	struct perf_names names;
	uint64_t *
		profiles; /* where profiles of processes stand that are to be read; the first is the file's */
	size_t profile_count, profile_cap;
	/* of the profile that is read */
	int64_t base_ns, interval_ns;
	bool untimed;  /* "times" are offsets in a file */
	int cpu_scale; /* of threadCPUDelta: power of ten that makes ns of it; -1: cycles */
	struct fx_category *categories;
	size_t category_count, category_cap;
	size_t default_category; /* + 1 */
	struct fx_lib *libs;
	size_t lib_count, lib_cap;
	struct fx_tables shared, own;
	struct fx_stacks shared_stacks, own_stacks;
	track_id *tracks; /* of its threads */
	size_t track_count, track_cap;
	/* of the thread that is read */
	struct fx_thread thread;
	int64_t thread_end; /* the last time in it */
	struct fx_payload *payloads;
	size_t payload_count, payload_cap;
	/* of all */
	str_id product, imported_from;
	int64_t version, processed_version;
	int64_t threads, samples, markers, counters;
	bool has_default; /* some metric is the one that views show */
	struct name_sums by_category;
	uint64_t nameless, truncated_at, bad_stacks, bad_frames, bad_strings, rounded, unequal,
		unmatched, unfinished, unordered, no_time;
	bool truncated;
};

/* import_firefox.c */
ow_status fx_no_memory(struct firefox *f);
void fx_cut(struct firefox *f);
bool fx_skip(struct firefox *f);

/* firefox_tables.c */
/* The value of the last key, when that names a table or strings, goes to `to`; *taken says so. */
ow_status fx_read_table(struct firefox *f, struct fx_tables *to, bool *taken);
/* One table whose key has been read. */
ow_status fx_read_columns(struct firefox *f, enum fx_table_kind kind, struct fx_table *to);
void fx_tables_clear(struct firefox *f, struct fx_tables *t);
void fx_tables_release(struct firefox *f, struct fx_tables *t);
void fx_table_release(struct firefox *f, struct fx_table *t);

static inline int64_t fx_value(const struct fx_column *c, size_t i)
{
	return i < c->count ? c->values[i] : FX_NONE;
}
/* Of a column of whole numbers, none of which is negative; -1 for null. */
static inline int64_t fx_index(const struct fx_column *c, size_t i)
{
	int64_t value = fx_value(c, i);

	if (value < 0)
		return -1;
	return c->scale ? value / FX_MILLION : value;
}
static inline const struct fx_table *fx_table(const struct firefox *f, enum fx_table_kind kind)
{
	return f->own.table[kind].there ? &f->own.table[kind] : &f->shared.table[kind];
}
str_id fx_string(struct firefox *f, int64_t index);

/* firefox_stacks.c: the stacks that indexes of the current thread mean; NULL without memory. */
const struct fx_stacks *fx_stacks_of(struct firefox *f);
void fx_stacks_release(struct firefox *f, struct fx_stacks *s);

/* firefox_rows.c: what the current thread has; a counter whose key has been read. */
ow_status fx_add_thread(struct firefox *f);
ow_status fx_read_counter(struct firefox *f);

#endif
