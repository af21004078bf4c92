/*
 * interpret_int.h: between the files of the interpretation (interpret.c, interpret_*.c, producer_*.c); no other room
 * includes it.
 *
 * interpret.c runs the passes in order. Each pass fills its own columns of the model: interpret_make_ops event.op and
 * event.name, interpret_links.c the table link, interpret_steps.c event.step, interpret_phases.c event.phase,
 * interpret_frames.c event.stack, interpret_memory.c the table heap. What differs between producers is in producer_*.c,
 * one struct producer each (producers.def). A decision about a name or a category is made once per distinct text.
 */
#ifndef IMPORT_INTERPRET_INT_H
#define IMPORT_INTERPRET_INT_H

#include "base/parallel.h"
#include "import/interpret/interpret.h"
#include "import/interpret/interpret_names.h"
#include "wire/json/json.h"

/* The number that a text ends with, as in "GPU 3" or "stream 7"; -1 if there is none. */
int64_t trailing_number(struct str text);
bool str_has_ignoring_case(struct str s, const char *lower);

/* Events of a track: rows [first, last). */
struct interpret_track {
	uint32_t first, last;
	uint32_t categories; /* a bit 1 << enum category_class for each category of its slices */
};

/* A step marked by the host. */
struct interpret_marker {
	int64_t start, end;
	int64_t number; /* number of the step; INT64_MIN: numbered in order */
	str_id name;
};

struct interpret_markers {
	struct interpret_marker *list;
	size_t count, cap;
};

/* An op before it is made; all fields are strings. */
struct op_draft {
	str_id type, device;
	uint32_t flags;
};

struct interpret_rows {
	uint32_t *list;
	size_t count, cap;
};

struct producer;

/* State of the interpretation. Until interpret_make_ops has run the source has no ops: producers change the names in
 * the draft of the events, and only names that are still used at the end become ops. */
struct interpret {
	struct builder *b;
	struct model *m;
	struct mem *mem;
	struct ow_error *err;
	const struct interpret_input *in;
	source_id source;
	const struct producer *producer;
	struct arena scratch;

	uint32_t first_event, last_event, first_track, last_track, first_flow, last_flow,
		first_link;
	struct interpret_track *tracks; /* index = track - first_track */
	/* a bit 1 << enum category_class for each category of slices */
	uint32_t categories;
	bool kineto_categories;
	/* string_count: length of the arrays indexed by string below; later strings have no entry */
	uint32_t string_count;
	uint8_t *category_of; /* for each string: enum category_class */
	struct name_class *name_of;
	uint8_t *name_known;
	uint32_t *first_of; /* for each string: the first event with this name, 0 = none */
	/* strings that are names of events; the model may have far more strings */
	struct interpret_rows names;
	struct op_draft *drafts; /* drafts of ops, indexed by string */
	size_t draft_cap;

	bool shared;		  /* several threads read, so lookups are not cached */
	bool has_device;	  /* some device track has slices */
	bool no_phases, no_steps; /* times are artificial, so there are no phases or steps */
	struct interpret_markers markers;
	step_id only_step; /* the step of all events, if there are no markers */
	/* own_steps: index = event - first_event: the step that its arguments give; NULL = none */
	int64_t *own_steps;
	char title[64]; /* name of the producer, for people */
};

/* The functions that a producer adds to the interpretation. Where a function is NULL, the general rules for traces
 * apply. */
struct producer {
	const char *name;  /* name for tests and docs */
	const char *title; /* name for people */
	bool (*recognise)(const struct interpret *x);
	ow_status (*tracks)(struct interpret *x); /* sets kinds and devices of tracks */
	/* sets names and types of ops, and correlation numbers */
	ow_status (*ops)(struct interpret *x);
	ow_status (*links)(struct interpret *x); /* links launches; flows are linked in addition */
	ow_status (*steps)(struct interpret *x); /* fills x->markers */
	/* without markers a file is one step; false: it is a recording of any length */
	bool file_is_step;
	/* The phase of a device slice; PHASE_IDLE: decided by its name. */
	enum event_phase (*device_phase)(const struct interpret *x, uint32_t event);
	/* The phase of a host slice whose name does not decide it; PHASE_IDLE: the general rules apply. */
	enum event_phase (*host_phase)(const struct interpret *x, uint32_t event);
	/* makes changes of memory; called after everything else */
	ow_status (*memory)(struct interpret *x);
	/* computes float operations; called after everything else */
	ow_status (*costs)(struct interpret *x);
	/* The kind of link for flows of a category; -1 for none. NULL: LINK_FLOW. */
	int (*flow_link)(const struct interpret *x, struct str category);
};

#define PRODUCER(name) extern const struct producer producer_##name;
#include "import/interpret/producers.def"
#undef PRODUCER

/* The name of an event's op; while there are no ops, the name in the draft. */
static inline str_id interpret_op_name(const struct interpret *x, uint32_t event)
{
	const struct event_draft *draft = x->in->draft;

	return draft->op_name ? draft->op_name[event - draft->first]
			      : x->m->op.name[x->m->event.op[event].v];
}
/* The event's own name, or that of its op if it has none. */
static inline str_id interpret_name(const struct interpret *x, uint32_t event)
{
	str_id own = COLUMN_GET(x->m->event.name, event);

	return own.v ? own : interpret_op_name(x, event);
}
static inline struct str interpret_text(const struct interpret *x, str_id id)
{
	return model_str(x->m, id);
}
static inline enum category_class interpret_category(const struct interpret *x, uint32_t event)
{
	str_id category = COLUMN_GET(x->m->event.category, event);

	return category.v < x->string_count ? (enum category_class)x->category_of[category.v]
					    : CATEGORY_OTHER;
}
/* Classifies a name that was not classified yet. */
struct name_class interpret_new_name_class(struct interpret *x, str_id name);
OW_ALWAYS_INLINE struct name_class interpret_name_class(struct interpret *x, str_id name)
{
	if (OW_LIKELY(name.v < x->string_count && x->name_known[name.v]))
		return x->name_of[name.v];
	return interpret_new_name_class(x, name);
}
static inline struct interpret_track *interpret_track(const struct interpret *x, uint32_t track)
{
	return &x->tracks[track - x->first_track];
}
/* The number of threads that are worth starting. */
static inline unsigned interpret_threads(const struct interpret *x)
{
	return x->last_event - x->first_event < 50000 ? 1 : parallel_threads();
}

static inline bool interpret_is_slice(const struct interpret *x, uint32_t event)
{
	uint8_t ph;

	if (x->in->only_slices)
		return true;
	ph = COLUMN_GET(x->m->event.ph, event);
	return x->m->event.dur_ns[event] != TIME_UNKNOWN && (!ph || ph == 'X' || ph == 'B');
}
static inline int64_t interpret_end(const struct interpret *x, uint32_t event)
{
	int64_t dur = x->m->event.dur_ns[event], end;

	if (dur == TIME_UNKNOWN || dur < 0)
		dur = 0;
	return __builtin_add_overflow(x->m->event.ts_ns[event], dur, &end) ? INT64_MAX : end;
}
static inline struct str interpret_process(const struct interpret *x, uint32_t track)
{
	return model_str(x->m, x->m->track.process[track]);
}
static inline struct str interpret_thread(const struct interpret *x, uint32_t track)
{
	return model_str(x->m, x->m->track.name[track]);
}
static inline ow_status interpret_no_memory(struct interpret *x)
{
	return builder_fail(x->b, error_no_memory(x->err));
}
/* Marks that events differ from the file, so that the file's list cannot be restored from them; see struct
 * trace_listing. */
static inline void interpret_not_as_listed(struct interpret *x)
{
	if (x->source.v < x->m->listing_cap)
		x->m->listings[x->source.v].plain = false;
}
/* Whether slices of the track are work of a device (below: of the host). */
bool interpret_on_device(const struct interpret *x, uint32_t track);
bool interpret_on_host(const struct interpret *x, uint32_t track);
bool interpret_has_process(const struct interpret *x, bool (*test)(struct str process));
/* Whether the test holds for the name of some event. */
bool interpret_has_name(const struct interpret *x, bool (*test)(struct str name));

ow_status interpret_rows_add(struct interpret *x, struct interpret_rows *rows, uint32_t event);
void interpret_rows_release(struct interpret *x, struct interpret_rows *rows);
/* Called with the arguments of events, in the order of the file. */
typedef void (*interpret_args_fn)(struct interpret *x, uint32_t event, struct str args, void *arg);
ow_status interpret_read_args(struct interpret *x, struct interpret_rows *rows,
			      interpret_args_fn take, void *arg);
/* Reads the arguments of one event, for few events. The text is in scratch memory. */
ow_status interpret_args_of(struct interpret *x, uint32_t event, struct buf *text);
/* Reads a number, which may be written as a text. */
bool interpret_number(struct json_value value, int64_t *number);
/* The decoded text of a value, interned; nil for none. */
str_id interpret_string(struct interpret *x, struct json_value value);

/* Makes the event a run of the op of that name; the event keeps its own name. Call it before interpret_make_ops. */
ow_status interpret_rename(struct interpret *x, uint32_t event, str_id name);
/* Renames all events with the first name. */
ow_status interpret_rename_all(struct interpret *x,
			       /* indexed by string, with x->string_count entries */
			       const str_id *to);
/* The draft of the op with that name; NULL if memory runs out. */
struct op_draft *interpret_draft(struct interpret *x, str_id name);
/* Gives kernels a short type; their name is unchanged. */
ow_status interpret_shorten_kernels(struct interpret *x);
ow_status interpret_make_ops(struct interpret *x);

/* interpret_links.c: maps a number that events carry to one of the events. */

/* One event for each number except 0. First all numbers are announced, then places are requested. It does not use
 * the builder, so each thread may have its own. */
struct interpret_numbers {
	const struct interpret *x;
	uint32_t seen, lowest, highest;
	uint32_t span; /* size of the table; 0: the list and its map are used */
	uint32_t *table;
	struct interpret_number {
		uint32_t number, event;
	} * list; /* index 0 is unused */
	uint32_t count;
	size_t cap;
	struct map map;
};
void interpret_numbers_see(struct interpret_numbers *n, uint32_t number);
bool interpret_numbers_start(const struct interpret *x, struct interpret_numbers *n) OW_MUST_CHECK;
void interpret_numbers_release(struct interpret_numbers *n);
/* Prefetches the table entry of a number that is needed soon (`far`) and what the entry of an earlier one points to (`near`), because
 * events that follow each other have numbers without order. 0 prefetches nothing. */
void interpret_numbers_prefetch(const struct interpret_numbers *n, uint32_t far, uint32_t near);
#define INTERPRET_FAR 16
#define INTERPRET_NEAR 8
/* The place for the event of a number that was seen, 0 for none yet; valid until the next call. NULL if memory runs
 * out. */
uint32_t *interpret_numbers_place(struct interpret_numbers *n, uint32_t number);
/* The event of a number; 0 when there is none. */
uint32_t interpret_numbers_find(const struct interpret_numbers *n, uint32_t number);
typedef ow_status (*interpret_number_fn)(void *arg, uint32_t number, uint32_t event);
/* Calls `take` for all numbers in ascending order, after the last place was requested. */
ow_status interpret_numbers_each(struct interpret_numbers *n, interpret_number_fn take, void *arg);

ow_status interpret_add_link(struct interpret *x, uint32_t src, uint32_t dst, enum link_kind kind);
/* Links device slices and calls with the same correlation number. */
ow_status interpret_link_correlations(struct interpret *x);
/* Collects the host's calls by their correlation number. The first call of a number counts: a driver's call lies
 * inside the runtime's. */
ow_status interpret_collect_calls(struct interpret *x, struct interpret_numbers *calls);
/* Links device slices and the last earlier host slice of the same op, on tracks for which `is_call` returns true. */
ow_status interpret_link_ops(struct interpret *x,
			     bool (*is_call)(const struct interpret *x, uint32_t track));
/* interpret_waits.c: links recorded waits for events and streams, after launches are linked. */
ow_status interpret_link_waits(struct interpret *x);
/* Links the source's flows (arrows). */
ow_status interpret_link_flows(struct interpret *x);

ow_status interpret_add_marker(struct interpret *x, const struct interpret_marker *marker);
/* A test of a name; called once per distinct name. */
typedef bool (*interpret_name_fn)(void *arg, struct str name);
/* Marks host slices whose name passes the test as steps. */
ow_status interpret_mark_slices(struct interpret *x, interpret_name_fn test, void *arg);
/* Each slice has its step as an argument: {"step": 16}. */
ow_status interpret_mark_by_args(struct interpret *x);
/* Marks repetitions of the same programs, in the same order, as steps; is_program returns true for slices that start
 * one. Adds nothing if nothing repeats. */
ow_status interpret_mark_repeats(struct interpret *x, interpret_name_fn is_program, void *arg);
ow_status interpret_mark_optimizer_steps(struct interpret *x);
/* interpret_loops.c: marks repetitions of calls of one thread, or of its sampled stacks, as steps. Adds nothing if
 * the repetition is uncertain. */
ow_status interpret_mark_loops(struct interpret *x);
ow_status interpret_steps(struct interpret *x);
/* The number in the name of a file of a series: timeline-12.json; any: whatever comes before the number. */
bool interpret_file_number(struct str path, bool any, int64_t *number);

/* Makes stacks of events from frame slices and from "Call stack" arguments. */
ow_status interpret_stacks(struct interpret *x);

/* Makes heaps from the [memory] events of PyTorch. */
ow_status interpret_torch_memory(struct interpret *x);

/* Computes float operations and bytes of PyTorch's matrix products and convolutions, from their shapes. */
ow_status interpret_torch_flops(struct interpret *x);

ow_status interpret_phases(struct interpret *x);
/* interpret_calls.c: corrects the phases of calls that wait or initialise, although their names do not show it. */
ow_status interpret_calls(struct interpret *x);
/* Whether an event is a range that users write around operators. The first Kineto had no category for them. */
bool interpret_is_annotation(const struct interpret *x, uint32_t event, str_id name);
/* A host_phase function for producers whose slices are unknown. */
enum event_phase interpret_no_phase(const struct interpret *x, uint32_t event);

#endif
