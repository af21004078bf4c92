/*
 * model.h: the one model. Every source becomes these columns; every view, rule, query and sink only
 * reads them. The tables are in schema.def; this header makes structs of them.
 *
 * Life: builder (append only, one owner; builder.h) → model_freeze (sort, index, check) → read-only
 * from any thread. The parts in SCHEMA_DEFERRED are computed on first use behind a lock (model_require_…).
 *
 * Reading: m->op.name[id.v]. Row 0 is nil and reads as zero, so lookups need no null checks. RARE
 * columns are NULL while no row has a value: read them with COLUMN_GET.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id_map.h"
#include "base/input.h"
#include "base/map.h"
#include "base/str.h"

#include "model/schema.def"

#include <pthread.h>
#include <stdatomic.h>

/* One id type per table: the compiler refuses to mix them. */
#define MODEL_ID_TYPE(table, doc)                                                                  \
	typedef struct {                                                                           \
		uint32_t v;                                                                        \
	} table##_id;
typedef struct {
	uint32_t v;
} str_id;
SCHEMA_TABLES(MODEL_ID_TYPE)
#undef MODEL_ID_TYPE

#define TIME_UNKNOWN INT64_MIN

enum device_kind { DEVICE_UNKNOWN, DEVICE_CPU, DEVICE_GPU, DEVICE_TPU, DEVICE_OTHER };

enum track_kind {
	TRACK_OTHER,	   /* shown, but in no total */
	TRACK_HOST,	   /* a host thread; events nest */
	TRACK_DEVICE,	   /* a device's executor as TensorFlow reports it; events overlap */
	TRACK_ACCELERATOR, /* work of an accelerator (all streams) */
	TRACK_STREAM,	   /* one stream of a device */
	TRACK_COPY,	   /* a copy engine */
	TRACK_LOADER,	   /* a data-loading worker */
	TRACK_COMMUNICATION,
	TRACK_DERIVED, /* repeats other tracks of its device: in no sum */
	TRACK_SPAN,    /* the profiler's own bookkeeping: in no sum */
	TRACK_FRAMES,  /* Python frames of a thread; they nest separately from its operators */
	TRACK_ASYNC    /* asynchronous requests, which overlap freely */
};

enum track_flags {
	/* a track of a trace: its events nest; freeze sums them into op_step */
	TRACK_SLICES = 1 << 0,
	TRACK_NESTED = 1 << 1 /* the events have been nested and summed */
};

enum event_flags {
	/* the source has no end for the event; it is closed with the enclosing event */
	EVENT_UNFINISHED = 1 << 0,
	EVENT_OVERLAPS = 1 << 1, /* starts inside a slice of its track and ends after it */
	EVENT_UNMATCHED = 1 << 2 /* an end without a begin, kept as a point in time */
};

enum frame_flags {
	FRAME_KERNEL = 1 << 0,	/* a frame of an operating system's kernel */
	FRAME_INLINED = 1 << 1, /* inlined into its caller */
	FRAME_JIT = 1 << 2,	/* compiled at run time */
	FRAME_PROCESS = 1 << 3, /* not code: the process or thread of the frames below it */
	/* the source has an empty name, while other frames are called unknown */
	FRAME_NAMELESS = 1 << 4
};

/* sample.label of the last sample of `perf script` if no empty line follows it. */
#define SAMPLE_UNENDED "unended"

/* event_key.id and flow.id: an id is a number or a text; below 2^62 it is the number itself. */
#define MODEL_TEXT_ID ((uint64_t)1 << 63)
/* track.pid and track.tid: constants for no id, and for a text (+ the string). */
#define MODEL_NO_ID INT64_MIN
#define MODEL_TEXT_NUMBER (INT64_MIN + 1)

enum op_flags {
	OP_HAS_CODE = 1 << 0,	    /* a code trace is present, maybe without frames */
	OP_FROM_RUN = 1 << 1,	    /* not in the graph: created by a run-time record */
	OP_COVERED = 1 << 2,	    /* a run-time record was found for the op */
	OP_TRAINABLE = 1 << 3,	    /* the op is among the trainable variables of its graph */
	OP_INFERRED_FLOPS = 1 << 4, /* float_ops were computed from shapes */
	OP_UNKNOWN_FLOPS = 1 << 5,  /* the op has a formula, but its shapes are unknown */
	OP_SHORT_TYPE = 1 << 6,	    /* a kernel: its type is its shortened name */
	OP_WRAPS = 1 << 7, /* in a trace: only encloses others, as steps, ranges and sessions do */
	OP_WAITS = 1 << 8, /* in a trace: only waits for others, as a synchronisation does */
	OP_FRAMEWORK = 1 << 9,	  /* XProf counts it as an op of TensorFlow, JAX or tf.data */
	OP_INSTRUCTION = 1 << 10, /* an instruction of a program that XLA compiled */
	OP_STEP_MARK = 1 << 11,	  /* encloses one step and has its number in the name */
	OP_TO_HOST = 1 << 12, /* device op: moves data into the host's memory, or waits for that */
	/* device op: moves data from the host's memory, or waits for that */
	OP_FROM_HOST = 1 << 13,
};

enum event_phase {
	PHASE_UNKNOWN,
	PHASE_INPUT,
	PHASE_HOST,
	PHASE_LAUNCH,
	PHASE_HOST_TO_DEVICE,
	PHASE_COMPUTE,
	PHASE_DEVICE_TO_HOST,
	PHASE_COMMUNICATION,
	PHASE_SYNCHRONISATION,
	PHASE_IDLE,
	PHASE_ALLOCATION,     /* allocating and freeing memory of a device */
	PHASE_INITIALISATION, /* one-off work: initialising a context, a library, a module */
	PHASE_COUNT
};

/* The counter of a thread with the shares of processor time and waiting time since its last value. */
#define PROCESSOR_COUNTER "processor"
#define PROCESSOR_RUNNING "running"
#define PROCESSOR_WAITING "waiting"

enum link_kind {
	LINK_FLOW,
	LINK_LAUNCH,
	LINK_FORWARD_BACKWARD,
	LINK_MESSAGE,
	LINK_WAIT /* work of a device, and the call or the work of another stream that waits for it */
};

/* The kind of a heap change. Memory in use is the sum over HEAP_EXISTING, HEAP_ALLOC and HEAP_FREE; memory held by
 * the allocator is the sum over the segments. The sizes of other kinds are in no sum. */
enum heap_kind {
	HEAP_ALLOC,
	HEAP_FREE,
	HEAP_EXISTING,	    /* allocated before the source began; its time is unknown */
	HEAP_SEGMENT_ALLOC, /* the allocator took memory from the device */
	HEAP_SEGMENT_FREE,  /* the allocator returned a segment to the device */
	HEAP_SEGMENT_MAP,   /* a segment that can grow was mapped (below: unmapped) */
	HEAP_SEGMENT_UNMAP,
	HEAP_SEGMENT_EXISTING,
	HEAP_FREE_REQUESTED, /* released, but a stream still uses it: HEAP_FREE follows */
	HEAP_OUT_OF_MEMORY,  /* size is the request that failed */
	HEAP_SNAPSHOT,	     /* a marker, without a change */
	HEAP_TOTAL	     /* the row only states the memory in use */
};

enum fact_kind {
	FACT_OBJECT,
	FACT_LIST,
	FACT_INT,
	FACT_REAL,
	FACT_TEXT,
	FACT_BOOL,
	FACT_MICROS, /* number is in nanoseconds; written as microseconds with up to three decimals */
	FACT_NULL
};

enum note_kind {
	NOTE_INFO,	/* nothing lost: something the reader should know */
	NOTE_REPAIRED,	/* the meaning was guessed */
	NOTE_DROPPED,	/* readable data was not used; the text says why */
	NOTE_DAMAGED,	/* something could not be read */
	NOTE_TRUNCATED, /* the source ends too early */
	NOTE_MISSING	/* something the source should have and does not */
};

/* struct op_table { count, cap, columns… } and so on. count includes the nil row. */
#define MODEL_COLUMN(t, need, type, name, unit, doc) type *name;
#define MODEL_TABLE(table, doc)                                                                    \
	struct table##_table {                                                                     \
		uint32_t count, cap;                                                               \
		SCHEMA_##table(MODEL_COLUMN, table)                                                \
	};
SCHEMA_TABLES(MODEL_TABLE)
#undef MODEL_TABLE
#undef MODEL_COLUMN

#define COLUMN_GET(column, row) ((column) ? (column)[row] : (__typeof__(*(column))){ 0 })

/* All strings, interned: equal text has equal ids; id 0 is the empty string. NUL-terminated. */
struct strings {
	struct arena arena;
	struct map map;
	uint32_t count;
	size_t cap;
	struct str *text;
};

struct model;

/* Code traces: the calls that made the ops; frames of one op after those of another, outermost first. */
struct code_traces {
	frame_id *frames;
	size_t count, cap;
	uint32_t *first, *len; /* for each op: index of its first frame, and number of frames */
	uint32_t ops;	       /* number of entries in `first` and `len` */
};

/* Work that an importer defers until its result is needed. */
struct deferred {
	ow_status (*run)(struct model *m, void *state, struct ow_error *err);
	/* The first half of the work, which fills m->traces; `run` uses them if they exist. NULL = none. */
	ow_status (*trace)(struct model *m, void *state, struct ow_error *err);
	void (*release)(void *state);
	void *state;
	struct deferred *next;
};

/* The parts that a frozen model computes on first use: SCHEMA_DEFERRED. Only deferred.c changes this. */
enum deferred_part {
#define MODEL_DEFERRED(part, doc) DEFERRED_##part,
	SCHEMA_DEFERRED(MODEL_DEFERRED)
#undef MODEL_DEFERRED
		DEFERRED_COUNT
};

struct deferred_parts {
	pthread_mutex_t lock;
	struct {
		ow_status status;
		bool made;
	} part[DEFERRED_COUNT];
	struct deferred *rows, *stacks; /* work that importers have deferred */
	atomic_uint_fast64_t tables;	/* tables to which `rows` will add rows */
};

/* Reads arguments of events that are not text in the input: the importer of the source makes them on demand. */
struct args_reader {
	/* Sets the texts of the source's events: JSON objects in the arena. The text of an event without arguments is
	 * not changed. With `shared`, arguments that all events of a kind share are set there, as separate objects.
	 * Called from any thread, while the input is open.
	 */
	ow_status (*read)(void *state, const struct model *m, const uint32_t *rows, uint32_t n,
			  struct str *texts, struct str *shared, struct arena *arena,
			  struct ow_error *err);
	void (*release)(void *state);
	void *state;
};

struct model {
	struct mem *mem;
	struct arena arena;
	struct strings strings;

#define MODEL_MEMBER(table, doc) struct table##_table table;
	SCHEMA_TABLES(MODEL_MEMBER)
#undef MODEL_MEMBER

	int64_t time_unit_ns; /* resolution of the sources' times: averages are truncated to it */
	bool has_code;	      /* some op carries a code trace (tfprof's has_code_traces) */
	bool missing_streams; /* an accelerator reported events, but not its "stream:all" */
	bool frozen;
	bool damaged;			      /* some note says that something was lost */
	const struct advice_settings *advice; /* settings of advise/; NULL: the defaults */

	struct buf code;	  /* undecoded code traces; see deferred */
	struct id_map op_by_name; /* id of a name → op */
	struct map shape_map, strset_map, frame_map, stack_map, track_map, device_map, step_map,
		metric_map;
	uint32_t stacks_indexed; /* stack rows below this are in the lookup of builder_stack */

	struct deferred_parts deferred;
	/* traces.ops is 0 when there are none; see model_require_traces */
	struct code_traces traces;
	op_id *ops_by_name; /* all ops but nil, ascending byte order of names */

	struct input **inputs; /* kept open for args and records; index = source id */
	size_t input_cap;
	struct trace_listing *listings; /* index = source id; only sources that have a listing */
	size_t listing_cap;
	struct args_reader *args_readers; /* index = source id */
	size_t args_reader_cap;
	struct function_library *libraries; /* function libraries of graphs; freed by the freeze */
	size_t library_count, library_cap;

	struct backing *backing; /* the .opw file that holds the columns, or NULL; backing.h */
	atomic_bool no_lookups;	 /* the maps above are not made yet */
};

/* The offsets of a graph's functions in its source: read when all inputs are loaded
 * (import/tensorflow/graph/tf_library.h). */
struct function_library {
	source_id source;
	uint64_t offset, size;
};

/* A counter event: the table has a row for each of its series. */
struct trace_listing_counter {
	int64_t ts_ns;
	uint64_t args_offset;
	uint32_t args_size;
	str_id name, category;
	track_id track;
};

/* The list of events of a Chrome trace as it was in its file. The tables hold its events sorted, paired and joined.
 * With this and args_offset (for an event without arguments, the offset of the event itself) the list can be rebuilt
 * without reading the file. Not saved in .opw files.
 */
struct trace_listing {
	/* events and flows contain all data of their elements, and none was repaired */
	bool plain;
	bool labelled;	 /* args.name is the name of the op; objects (N, O, D) have none */
	uint64_t events; /* number of elements that each became an event */
	/* number of strings in the model when the file was read: later ones are not in the file */
	uint32_t strings;
	int64_t base_ns; /* base time that was added to every time */
	/* Elements that did not become events, in order: offset (40 bits), size (21), and flags. */
	uint64_t *elements;
#define LISTING_FLOW (UINT64_C(1) << 63)    /* the element is the next flow */
#define LISTING_COUNTER (UINT64_C(1) << 62) /* the element is the next counter */
#define LISTING_ALL (UINT64_C(1) << 61)	    /* the counter's rows contain all data of the element */
#define LISTING_SIZE_BITS 21
#define LISTING_PLACE_BITS 40
	size_t count, cap;
	struct trace_listing_counter *counters;
	size_t counter_count, counter_cap;
};

struct model *model_new(struct mem *mem, struct ow_error *err);
void model_free(struct model *m);

static inline uint64_t listing_place(uint64_t element)
{
	return element & ((UINT64_C(1) << LISTING_PLACE_BITS) - 1);
}
static inline uint32_t listing_size(uint64_t element)
{
	return (uint32_t)(element >> LISTING_PLACE_BITS) & ((UINT32_C(1) << LISTING_SIZE_BITS) - 1);
}

/* The listing of a source, made on the first call; NULL if memory runs out. */
struct trace_listing *model_make_listing(struct model *m, source_id source);
/* The listing of a source; NULL when it has none. */
static inline const struct trace_listing *model_listing(const struct model *m, uint32_t source)
{
	return source < m->listing_cap ? &m->listings[source] : NULL;
}

/* Registers a reader of arguments for a source; takes over the state. False if memory runs out. */
bool model_offer_args(struct model *m, source_id source,
		      const struct args_reader *reader) OW_MUST_CHECK;
/* The reader of a source's arguments; NULL when it has none, or its input is closed. */
static inline const struct args_reader *model_args_reader(const struct model *m, uint32_t source)
{
	return source < m->args_reader_cap && source < m->input_cap && m->inputs[source] &&
			       m->args_readers[source].read
		       ? &m->args_readers[source]
		       : NULL;
}
/* Whether some event may have arguments. */
bool model_has_args(const struct model *m);

static inline struct str model_str(const struct model *m, str_id id)
{
	return m->strings.text[id.v];
}
/* The id of a text, or 0 when the string does not exist (or is empty). */
str_id model_find_str(const struct model *m, struct str text);

/* Lookups, valid before and after freeze. */
op_id model_find_op(const struct model *m, struct str name);
/* The step with that number, or nil. */
step_id model_find_step(const struct model *m, int64_t number);
/* The number of runs that an event stands for: more than one where calls were sampled. */
static inline int64_t event_runs(const struct model *m, uint32_t event)
{
	uint32_t runs = COLUMN_GET(m->event.runs, event);

	return runs ? runs : 1;
}

/* The rows of memory that an op has in a step: returns their number; *first is the first row. Nearly always each op_step
 * has the memory row of the same number; then the columns for this do not exist. */
static inline uint32_t model_memory_of(const struct model *m, uint32_t op_step, uint32_t *first)
{
	if (m->op_step.memory_first && m->op_step.memory_count) {
		*first = m->op_step.memory_first[op_step];
		return m->op_step.memory_count[op_step];
	}
	*first = op_step;
	return op_step && op_step < m->memory.count;
}

/* The members of a set. */
static inline const str_id *model_strset(const struct model *m, strset_id id, uint32_t *count)
{
	*count = m->strset.item_count[id.v];
	return m->strset_item.text + m->strset.item_first[id.v];
}
/* Dimensions of a shape: NULL and rank 0 for the nil shape. */
static inline const int64_t *model_dims(const struct model *m, shape_id id, int32_t *rank)
{
	*rank = m->shape.rank[id.v];
	return m->dim.size + m->shape.dim_first[id.v];
}

/* Deferred parts: computed on first use, once, from any thread; for frozen models only. */
/* Ops in byte order of their names: op.count - 1 of them. NULL on failure. */
const op_id *model_ops_by_name(struct model *m, struct ow_error *err);
/* Fills op.stack, frame and stack. */
ow_status model_require_stacks(struct model *m, struct ow_error *err);
/* Computes event.self_ns and event.depth, if some track has slices. */
ow_status model_require_nesting(struct model *m, struct ow_error *err);
/* Makes the calls of model_require_stacks without their tree, which takes half the time. *out is NULL when there are
 * only stacks. */
ow_status model_require_traces(struct model *m, const struct code_traces **out,
			       struct ow_error *err);
/* code_traces_init makes an empty set for the model's ops; code_traces_release frees it. */
ow_status code_traces_init(struct code_traces *t, const struct model *m, struct ow_error *err);
void code_traces_release(struct code_traces *t, struct mem *mem);
/* Drops a computed part, after rows were added or changed. The next reader computes it again. */
void deferred_forget(struct model *m, enum deferred_part part);
/* Called by model.c. */
void deferred_init(struct model *m);
void deferred_release(struct model *m);
/* Functions that compute parts; only deferred.c calls these, behind its lock. */
ow_status nesting_make(struct model *m, struct ow_error *err);
ow_status name_order_make(struct model *m, struct ow_error *err);
ow_status lookups_make(struct model *m, struct ow_error *err);

enum table_id {
#define MODEL_ENUM(table, doc) TABLE_##table,
	SCHEMA_TABLES(MODEL_ENUM)
#undef MODEL_ENUM
		TABLE_COUNT
};

/* Sets of tables. */
#define TABLE_BIT(table) ((uint64_t)1 << TABLE_##table)
#define TABLES_ALL (UINT64_MAX >> (64 - TABLE_COUNT))
_Static_assert(TABLE_COUNT <= 64, "a bit per table");

/* The unit of a number, in the model and in every table after it; the first six are also the units of the public
 * header. Outputs for people format numbers accordingly, outputs for programs print them as they are. */
enum column_unit {
	UNIT_NONE,
	UNIT_NS,
	UNIT_MICROS, /* tfprof's unit: columns named *_micros */
	UNIT_BYTES,
	UNIT_COUNT, /* numbers may be abbreviated: 1.20k */
	UNIT_PERCENT,
	UNIT_FLAGS, /* internal units of the model */
	UNIT_ENUM   /* one of a few words */
};
enum column_need { NEED_ALWAYS, NEED_RARE, NEED_DEFERRED };

struct column_info {
	const char *name, *type, *doc;
	enum column_unit unit;
	enum column_need need;
	uint16_t size;	 /* bytes of one value */
	uint16_t offset; /* offset of the column pointer in its table's struct */
};

struct table_info {
	const char *name, *doc;
	const struct column_info *columns;
	uint32_t column_count;
	size_t offset; /* offset of the table in struct model; it starts with count and cap */
};

extern const struct table_info model_tables[TABLE_COUNT];

/* Call this before reading rows of these tables (TABLE_BIT each). Rows that an importer has deferred are made, once
 * and from any thread; a failure leaves the model unchanged, and the next call tries again. Rows in our own file
 * have their checksums and references checked, once: OW_E_CORRUPT, or OW_E_IO when the file became shorter. */
ow_status model_require_rows(struct model *m, uint64_t tables, struct ow_error *err);

/* Rows in an .opw file; these functions do nothing for other models. */
/* Checks arguments and records, which only this call checks. */
ow_status model_verify_rest(struct model *m, struct ow_error *err);
/* Sets the error for a file that became shorter. */
ow_status model_lost(const struct model *m, struct ow_error *err);
/* Call this before adding rows: verifies everything, makes the lookups, and lets the freeze run again. */
ow_status model_thaw(struct model *m, struct ow_error *err);
/* Ends reading: rows may be added again, and then frozen again. Until then the model, and anything made from it,
 * must not be used. */
void model_unfreeze(struct model *m);
/* Makes the maps that adding and finding need; builder.c. Runs once, from any thread. */
ow_status model_make_lookups(struct model *m, struct ow_error *err);
/* Checks a table for ids that name no row and ranges beyond a table: damaged or malicious content whose checksum is
 * right. */
ow_status model_check_table(struct model *m, enum table_id table, struct ow_error *err);
/* Checks all tables, and sets wrong values to nil; returns their number. */
uint64_t model_repair(struct model *m);

/* Converts microseconds; saturates, so that extreme numbers cannot overflow. */
static inline int64_t us_to_ns(int64_t us)
{
	if (us > INT64_MAX / 1000)
		return INT64_MAX;
	if (us < -(INT64_MAX / 1000))
		return -INT64_MAX;
	return us * 1000;
}

/* Two's-complement sum without undefined behaviour. */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}
/* A sum that stops at the limits of the type, for totals that users see. */
static inline int64_t sum_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (OW_LIKELY(!__builtin_add_overflow(a, b, &sum)))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

/* A product that stops at the limits of the type. */
static inline int64_t sum_mul(int64_t a, int64_t b)
{
	int64_t product;

	if (OW_LIKELY(!__builtin_mul_overflow(a, b, &product)))
		return product;
	return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

/* Longer durations are treated as damage and set aside: no recording is that long. */
#define DURATION_MAX_NS (INT64_C(366) * 24 * 3600 * 1000000000)

/* Larger weights of one sample are treated as damage, in any unit: an exabyte, 31 years. */
#define WEIGHT_MAX INT64_C(1000000000000000000)

static inline int64_t wrap_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

#endif
