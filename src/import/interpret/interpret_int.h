/*
 * mean_int.h: between the files of the meaning pass (meaning.c, mean_*.c, producer_*.c); nobody else
 * includes it.
 *
 * meaning.c runs the steps; what differs between producers is in producer_<name>.c, one line each in
 * producers.def. Whatever can be decided once per distinct name or category is decided once.
 */
#ifndef IMPORT_MEAN_INT_H
#define IMPORT_MEAN_INT_H

#include "base/parallel.h"
#include "import/meaning.h"
#include "wire/json.h"

/* ---- names, classified ---- */

enum host_name {
	HOST_PLAIN,
	HOST_INPUT,	    /* waits for data */
	HOST_PIPELINE,	    /* works ahead for it */
	HOST_COMMUNICATION, /* until all have taken part */
	HOST_ENQUEUE,	    /* only starts a communication on a device */
	HOST_SYNC,
	HOST_EXECUTOR, /* TensorFlow's: starts what is ready */
	HOST_MARKER,   /* a step, nothing by itself */
	HOST_WRAPPER,  /* goes around what does the work */
};

enum device_name {
	DEVICE_PLAIN,
	DEVICE_COMMUNICATION,
	DEVICE_TO_DEVICE, /* copies between devices count as communication */
	DEVICE_FROM_HOST,
	DEVICE_TO_HOST,
	DEVICE_LOCAL_COPY, /* and memset */
	DEVICE_WAIT,
};

struct name_class {
	uint8_t host, device;
};

struct name_class classify_name(struct str name);
/* "GPU 3", "stream 7": the number that a text ends with, or -1. */
int64_t trailing_number(struct str text);
bool str_has_ignoring_case(struct str s, const char *lower);

/* ---- the pass ---- */

/* Events of a track: rows [first, last). */
struct mean_track {
	uint32_t first, last;
	uint32_t categories; /* 1 << enum category_class, of its slices */
};

/* A step as the host marks it. */
struct mean_marker {
	int64_t start, end;
	int64_t number; /* INT64_MIN: in order */
	str_id name;
};

struct mean_markers {
	struct mean_marker *list;
	size_t count, cap;
};

/* What an op will be; all strings. */
struct op_draft {
	str_id type, device;
	uint32_t flags;
};

struct mean_rows {
	uint32_t *list;
	size_t count, cap;
};

struct producer;

/* Until mean_make_ops has run, event.op holds strings, not ops: producers rename what they like, and no op
 * is made that nobody uses in the end. */
struct meaning {
	struct builder *b;
	struct model *m;
	struct mem *mem;
	struct error *err;
	const struct meaning_input *in;
	source_id source;
	const struct producer *producer;
	struct arena scratch;

	uint32_t first_event, last_event, first_track, last_track, first_flow, last_flow,
		first_link;
	struct mean_track *tracks; /* [track - first_track] */
	uint32_t categories;	   /* 1 << enum category_class, of slices */
	bool kineto_categories;
	uint32_t
		string_count; /* of the arrays by string below; later strings have no place in them */
	uint8_t *category_of; /* enum category_class */
	struct name_class *name_of;
	uint8_t *name_known;
	uint32_t *first_of;	 /* string → the first event called so, 0 = none */
	struct mean_rows names;	 /* strings with a first event: other files have far more */
	struct op_draft *drafts; /* by string: ops to be */
	size_t draft_cap;

	bool made_ops;		  /* event.op holds ops by now */
	bool shared;		  /* several threads are at it: what is looked up is not kept */
	bool has_device;	  /* some device track has slices */
	bool no_phases, no_steps; /* times are made up */
	struct mean_markers markers;
	step_id only_step; /* without markers */
	char title[64];	   /* of the producer, for people */
};

/* What a producer adds. Functions that are NULL mean: as any other trace. */
struct producer {
	const char *name;  /* for tests and docs */
	const char *title; /* for people */
	bool (*recognise)(const struct meaning *x);
	ow_status (*tracks)(struct meaning *x); /* kinds and devices */
	ow_status (*ops)(struct meaning *x);	/* names and types, correlation */
	ow_status (*links)(struct meaning *x);	/* launches; flows come on top */
	ow_status (*steps)(struct meaning *x);	/* x->markers */
	/* The phase of a device slice, PHASE_IDLE for "as its name says". */
	enum event_phase (*device_phase)(const struct meaning *x, uint32_t event);
	/* The phase of a host slice whose name says nothing, PHASE_IDLE for "as usual". */
	enum event_phase (*host_phase)(const struct meaning *x, uint32_t event);
	ow_status (*memory)(struct meaning *x); /* changes of memory, when all else is known */
	/* Kind of link that flows of a category make; -1 for none. NULL: LINK_FLOW. */
	int (*flow_link)(const struct meaning *x, struct str category);
};

#define PRODUCER(name) extern const struct producer producer_##name;
#include "import/producers.def"
#undef PRODUCER

/* ---- reading what the importer made ---- */

/* The name of an event's op. */
static inline str_id mean_op_name(const struct meaning *x, uint32_t event)
{
	op_id op = x->m->event.op[event];

	return x->made_ops ? x->m->op.name[op.v] : (str_id){ op.v };
}
/* The event's own name: that of its op unless it has another. */
static inline str_id mean_name(const struct meaning *x, uint32_t event)
{
	str_id own = COLUMN_GET(x->m->event.name, event);

	return own.v ? own : mean_op_name(x, event);
}
static inline struct str mean_text(const struct meaning *x, str_id id)
{
	return model_str(x->m, id);
}
static inline enum category_class mean_category(const struct meaning *x, uint32_t event)
{
	str_id category = COLUMN_GET(x->m->event.category, event);

	return category.v < x->string_count ? (enum category_class)x->category_of[category.v]
					    : CATEGORY_OTHER;
}
/* Of a name that nobody has asked for yet. */
struct name_class mean_new_name_class(struct meaning *x, str_id name);
OW_ALWAYS_INLINE struct name_class mean_name_class(struct meaning *x, str_id name)
{
	if (OW_LIKELY(name.v < x->string_count && x->name_known[name.v]))
		return x->name_of[name.v];
	return mean_new_name_class(x, name);
}
static inline struct mean_track *mean_track(const struct meaning *x, uint32_t track)
{
	return &x->tracks[track - x->first_track];
}
/* How many threads are worth starting. */
static inline unsigned mean_threads(const struct meaning *x)
{
	return x->last_event - x->first_event < 50000 ? 1 : parallel_threads();
}

static inline bool mean_is_slice(const struct meaning *x, uint32_t event)
{
	uint8_t ph;

	if (x->in->only_slices)
		return true;
	ph = COLUMN_GET(x->m->event.ph, event);
	return x->m->event.dur_ns[event] != TIME_UNKNOWN && (!ph || ph == 'X' || ph == 'B');
}
static inline int64_t mean_end(const struct meaning *x, uint32_t event)
{
	int64_t dur = x->m->event.dur_ns[event], end;

	if (dur == TIME_UNKNOWN || dur < 0)
		dur = 0;
	return __builtin_add_overflow(x->m->event.ts_ns[event], dur, &end) ? INT64_MAX : end;
}
static inline struct str mean_process(const struct meaning *x, uint32_t track)
{
	return model_str(x->m, x->m->track.process[track]);
}
static inline struct str mean_thread(const struct meaning *x, uint32_t track)
{
	return model_str(x->m, x->m->track.name[track]);
}
static inline ow_status mean_no_memory(struct meaning *x)
{
	return builder_fail(x->b, error_no_memory(x->err));
}
/* Events are no longer what the file says of them, see struct trace_listing. */
static inline void mean_not_as_listed(struct meaning *x)
{
	if (x->source.v < x->m->listing_cap)
		x->m->listings[x->source.v].plain = false;
}
/* Whether slices of the track are work of a device, or of the host. */
bool mean_on_device(const struct meaning *x, uint32_t track);
bool mean_on_host(const struct meaning *x, uint32_t track);
bool mean_has_process(const struct meaning *x, bool (*test)(struct str process));
/* Whether the test holds for the name of some event. */
bool mean_has_name(const struct meaning *x, bool (*test)(struct str name));

/* ---- mean_consumed.c ---- */

/* Of an XSpace: what a host thread does for another belongs to the other's step. */
ow_status mean_assign_consumed(struct meaning *x);

/* ---- mean_args.c ---- */

ow_status mean_rows_add(struct meaning *x, struct mean_rows *rows, uint32_t event);
void mean_rows_release(struct meaning *x, struct mean_rows *rows);
/* Shows the arguments of events, in the order of the file. */
typedef void (*mean_args_fn)(struct meaning *x, uint32_t event, struct str args, void *arg);
ow_status mean_read_args(struct meaning *x, struct mean_rows *rows, mean_args_fn take, void *arg);
/* The same for one event; for a few of them. The text is in scratch memory. */
ow_status mean_args_of(struct meaning *x, uint32_t event, struct buf *text);
/* Values as they are meant: numbers may be text. */
bool mean_number(struct json_value value, int64_t *number);
/* The decoded text of a value, interned; nil for none. */
str_id mean_string(struct meaning *x, struct json_value value);

/* ---- mean_ops.c ---- */

/* Before mean_make_ops: the event is one of the op of that name, and keeps its own name. */
ow_status mean_rename(struct meaning *x, uint32_t event, str_id name);
/* All events of the first name. */
ow_status mean_rename_all(struct meaning *x, const str_id *to); /* by string, of x->string_count */
/* What the op of that name will be; NULL without memory. */
struct op_draft *mean_draft(struct meaning *x, str_id name);
/* Gives kernels a short type; their name stays what it is. */
ow_status mean_shorten_kernels(struct meaning *x);
ow_status mean_make_ops(struct meaning *x);

/* ---- mean_inputs.c ---- */

/* Edges of the graph from the arguments of TensorFlow 1. */
ow_status mean_tf_inputs(struct meaning *x);

/* ---- producer_tf1.c, for tfprof's timelines, too ---- */

/* Device and kind of a track from a name like /device:GPU:0/stream:7; `numbered`: there are such streams. */
void mean_tf_device(struct meaning *x, uint32_t track, struct str name, bool numbered);
/* Whether ops of an accelerator are scheduled there. */
bool mean_tf_schedules(const struct meaning *x, uint32_t track);
enum event_phase mean_tf_phase(const struct meaning *x, uint32_t event);

/* ---- mean_numbers.c ---- */

/* One event of each number, which is not 0. First all numbers are seen, then places are asked for. Uses no
 * builder: threads may each have their own. */
struct mean_numbers {
	const struct meaning *x;
	uint32_t seen, lowest, highest;
	uint32_t span; /* of the table; 0: the list and its map are used */
	uint32_t *table;
	struct mean_number {
		uint32_t number, event;
	} * list; /* from 1 */
	uint32_t count;
	size_t cap;
	struct map map;
};
void mean_numbers_see(struct mean_numbers *n, uint32_t number);
bool mean_numbers_start(const struct meaning *x, struct mean_numbers *n) OW_MUST_CHECK;
void mean_numbers_release(struct mean_numbers *n);
/* The places of a number to be asked for soon, and a little later what is there: neighbours in time have
 * numbers that may lie anywhere. 0 is no number. */
void mean_numbers_prefetch(const struct mean_numbers *n, uint32_t far, uint32_t near);
#define MEAN_FAR 16
#define MEAN_NEAR 8
/* 0 when there is none. */
uint32_t mean_numbers_find(const struct mean_numbers *n, uint32_t number);
/* Where the event of a seen number is to be put, 0 for none yet; NULL without memory. Until the next call. */
uint32_t *mean_numbers_place(struct mean_numbers *n, uint32_t number);
typedef ow_status (*mean_number_fn)(void *arg, uint32_t number, uint32_t event);
/* In ascending order, when no more places are asked for. */
ow_status mean_numbers_each(struct mean_numbers *n, mean_number_fn take, void *arg);

/* ---- mean_links.c ---- */

ow_status mean_add_link(struct meaning *x, uint32_t src, uint32_t dst, enum link_kind kind);
/* Device slices and calls of the same correlation. */
ow_status mean_link_correlations(struct meaning *x);
/* Device slices and the last earlier host slice of the same op, on tracks of which `is_call` holds. */
ow_status mean_link_ops(struct meaning *x,
			bool (*is_call)(const struct meaning *x, uint32_t track));
/* Flows, by mean_flows.c. */
ow_status mean_link_flows(struct meaning *x);

/* ---- mean_steps.c ---- */

ow_status mean_add_marker(struct meaning *x, const struct mean_marker *marker);
/* Called once per distinct name. */
typedef bool (*mean_name_fn)(void *arg, struct str name);
/* Host slices with such a name are steps. */
ow_status mean_mark_slices(struct meaning *x, mean_name_fn test, void *arg);
/* One step from the end of each such slice to the end of the next; at least two make steps. */
ow_status mean_mark_ends(struct meaning *x, mean_name_fn test, void *arg);
ow_status mean_steps(struct meaning *x);
/* The number in the name of a file of a series: timeline-12.json; any: whatever stands before it. */
bool mean_file_number(struct str path, bool any, int64_t *number);
int32_t mean_file_rank(struct str path);

/* ---- mean_frames.c ---- */

/* "file.py(12): function", "$file.py:12 function" and the like. */
frame_id mean_frame(struct meaning *x, struct str text);
/* Stacks of events from frame slices and from "Call stack" arguments. */
ow_status mean_stacks(struct meaning *x);

/* ---- mean_memory.c ---- */

/* Heaps from the [memory] events of PyTorch. */
ow_status mean_torch_memory(struct meaning *x);

/* ---- mean_phases.c ---- */

ow_status mean_phases(struct meaning *x);
/* Ranges that people write around operators. The first Kineto had no category for them. */
bool mean_is_annotation(const struct meaning *x, uint32_t event, str_id name);
/* host_phase for producers of whose slices nothing is known. */
enum event_phase mean_no_phase(const struct meaning *x, uint32_t event);

#endif
