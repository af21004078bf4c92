/*
 * firefox_profile.h: a profile of the Firefox Profiler while it is read. import_firefox.c reads the document, firefox_tables.c its
 * tables and makes frames and stacks of them, firefox_rows.c adds samples, markers and counters to the model.
 *
 * Tables come in two forms. Processed profiles have a list per column. Firefox itself and `perf script gecko` write a list per row,
 * and a schema that says which column is where. Both become lists of numbers here. Up to version 59 each thread has its own tables;
 * later all threads share the tables of the profile.
 */
#ifndef IMPORT_FIREFOX_PROFILE_H
#define IMPORT_FIREFOX_PROFILE_H

#include "import/importer.h"
#include "import/common/model_text.h"
#include "import/interpret/interpret.h"
#include "import/perf/perf_names.h"
#include "import/common/stack_facts.h"

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

/* The data of a marker. */
struct fx_payload {
	uint64_t offset;
	int64_t stack;	    /* FX_NONE: none */
	int64_t start, end; /* times in ns, only in old versions */
	uint32_t size;
	char interval; /* of old versions: s start, e end, or 0 */
	bool tracing;  /* of old versions: a marker with an interval is one half of a pair */
	bool request;  /* to the network or to another process: these overlap */
};

struct fx_lib {
	str_id name;	     /* path of the library, if known */
	uint64_t start, end; /* addresses of its mapping; 0 in processed profiles */
};

struct fx_category {
	str_id name, label;
	int64_t sum; /* sum of the weights of samples in it */
};

struct fx_stacks {
	stack_id *stacks;
	uint16_t *categories; /* for each item: its category + 1 */
	size_t count;
	bool made;
};

struct fx_thread {
	str_id name, process, process_type;
	int64_t pid, tid;
	track_id track;
};

/* Each group of fields names the file that writes it. */
struct firefox {
	/* import_firefox.c: the whole file. */
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct event_draft draft;
	struct json_pull *p;
	struct buf text;
	struct perf_names names;
	uint64_t *
		profiles; /* offsets of profiles; the first is the file's, the others of processes */
	size_t profile_count, profile_cap;
	str_id product, imported_from;
	int64_t version, processed_version;
	struct name_sums by_category;
	bool truncated; /* set by fx_cut */
	uint64_t truncated_at;
	/* import_firefox.c: the current profile. */
	int64_t base_ns, interval_ns;
	bool untimed;  /* its "times" are offsets in a file */
	int cpu_scale; /* of threadCPUDelta: power of ten to get ns; -1: cycles */
	struct fx_category *categories;
	size_t category_count, category_cap;
	size_t default_category; /* index + 1 */
	struct fx_lib *libs;
	size_t lib_count, lib_cap;
	struct fx_thread thread; /* the current one; firefox_rows.c sets its track */
	/* firefox_tables.c: tables of the current profile and of the current thread. */
	struct fx_tables shared, own;
	struct fx_stacks shared_stacks, own_stacks;
	struct fx_payload *payloads;
	size_t payload_count, payload_cap;
	uint64_t nameless, bad_stacks, bad_frames, bad_strings;
	uint64_t idle; /* samples of threads that waited */
	/* firefox_rows.c: threads of the current profile, and sums over the file. */
	track_id *tracks;
	size_t track_count, track_cap;
	int64_t thread_end; /* the last time in the current thread */
	int64_t threads, samples, markers, counters;
	bool has_default; /* a metric has been marked as the default */
	uint64_t rounded, unequal, unmatched, unfinished, no_time;
};

/* Notes that the document ends or is damaged here. */
void fx_cut(struct firefox *f);
/* Skips a value; false when the document ends in it. */
bool fx_skip(struct firefox *f);

/* If the last key names a table or strings, reads its value into `to` and sets *taken. */
ow_status fx_read_table(struct firefox *f, struct fx_tables *to, bool *taken);
/* Reads one table whose key has been read. */
ow_status fx_read_columns(struct firefox *f, enum fx_table_kind kind, struct fx_table *to);
void fx_tables_clear(struct firefox *f, struct fx_tables *t);
void fx_tables_release(struct firefox *f, struct fx_tables *t);
void fx_table_release(struct firefox *f, struct fx_table *t);

static inline int64_t fx_value(const struct fx_column *c, size_t i)
{
	return i < c->count ? c->values[i] : FX_NONE;
}
/* A value of a column of whole numbers that are not negative; -1 for null. */
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

/* The stacks of the current thread, indexed as in its table; NULL if memory runs out. */
const struct fx_stacks *fx_stacks_of(struct firefox *f);
void fx_stacks_release(struct firefox *f, struct fx_stacks *s);

/* Adds samples and markers of the current thread. */
ow_status fx_add_thread(struct firefox *f);
/* Reads one counter of a list. */
ow_status fx_read_counter(struct firefox *f);

#endif
