/*
 * trace_int.h: between the files of the Chrome-trace importer; no other room includes it.
 *
 * A file is loaded in stages. Each stage has one file, writes one struct and gets those of earlier stages const:
 *
 *	import_trace.c	reads the file in parts, on several threads	struct trace_raw, struct trace_header
 *	  trace_rows.c	  one event becomes rows of its worker
 *	trace_merge.c	one set of strings and tracks for all workers	struct trace_names, struct trace_tally
 *	trace_frames.c	the table stackFrames				struct trace_frames
 *	trace_pair.c	joins begins and ends				struct trace_pairs, further slices
 *	trace_place.c	moves the rows into the model, frees them	the model, drafts of its events
 *	  trace_samples.c  sampled stacks among the events		the model
 *	trace_facts.c	what `info` shows, and the notes		the model
 *
 * import_trace.c also runs them all. Each event becomes a row of its worker: a slice (anything with a place of its own on a
 * track), a point (to be paired or joined later), a counter sample or metadata. Rows refer to strings and tracks by
 * numbers of their worker until trace_merge.c replaces these by numbers of the file.
 *
 * Bytes per slice while reading: 41 to 49. The rest of the budget is in docs/formats/trace.md.
 */
#ifndef IMPORT_TRACE_INT_H
#define IMPORT_TRACE_INT_H

#include "base/parallel.h"
#include "import/importer.h"
#include "import/interpret/interpret.h"
#include "import/chrome/trace_sort.h"
#include "wire/json/json.h"
#include "wire/json/json_scan.h"

/* An id as written in a file: numbers and texts of digits are the same, other texts are texts. */
enum trace_id_kind { ID_NONE, ID_INT, ID_TEXT };
struct trace_id {
	int64_t value; /* the number, or the string's number in the dictionary */
	uint8_t kind;
};

struct trace_track {
	struct trace_id pid, tid;
	uint8_t layer;
};

/* Interned raw (still escaped) text; id 0 = no text. A look-up touches two places in memory: the slot
 * and the text. Texts begin at multiples of eight bytes. */
struct trace_dict {
	struct trace_slot {
		uint32_t tag; /* upper bits of the hash, which also choose the slot */
		uint32_t id;  /* number of the text; 0 = empty slot */
		uint32_t len, place;
	} * slots;
	size_t mask; /* number of slots - 1 */
	char *bytes;
	size_t bytes_used, bytes_cap;
	struct trace_text {
		uint32_t len, place;
	} * texts; /* texts by id */
	size_t text_cap;
	uint32_t count;
	struct trace_category *categories; /* properties of texts that are used as categories */
	size_t category_cap;
	uint32_t *types; /* for texts that are used as a label: type of that op; 0 = unknown */
	size_t type_cap;
};

static inline struct str trace_dict_text(const struct trace_dict *d, uint32_t id)
{
	return id ? str_make(d->bytes + (size_t)d->texts[id].place * 8, d->texts[id].len) : STR("");
}

/* Properties of the slices of a category. */
struct trace_category {
	uint8_t layer;	/* layer + 1; 0 = not determined yet */
	uint8_t wanted; /* enum trace_wanted */
};

struct trace_tracks {
	struct map map;
	struct trace_track *list;
	size_t cap;
	uint32_t count;
	struct {
		int64_t pid, tid;
		uint32_t track, layer;
	} cache[512]; /* cache of tracks with two numbers; track 0 = empty */
};

/* Texts (name, category, label, scope) are numbers of the worker's dictionary until trace_merge.c has run, then
 * strings of the model. The union is the place of a row; three stages use the same word in turn: */
union trace_where {
	uint32_t track; /* track of the worker, while reading */
	uint32_t lane;	/* lane of the file, after trace_merge.c */
	/* place of a slice among the rows of the model, from 0; set by trace_place.c */
	uint32_t place;
};

/* The number that joins a slice to others; the category decides which of both it is. trace_place.c separates them. */
union trace_number {
	uint32_t correlation; /* for a launch or work of a device */
	uint32_t sequence;    /* for an operator of PyTorch: trace_sequence */
};

struct trace_slices {
	size_t count, cap;
	int64_t *ts, *dur; /* start and duration; dur TIME_UNKNOWN: none given */
	uint64_t *args_offset;
	uint32_t *args_size, *name, *category;
	union trace_where *where;
	uint8_t *ph;
	uint32_t *label; /* op that ran, if it differs from the name; NULL while no slice has one */
	union trace_number *number; /* NULL while no slice has one */
};

enum trace_point_flags {
	POINT_NO_TS = 1 << 0,	  /* the event has no time: counted, not used */
	POINT_LOCAL_ID = 1 << 1,  /* the id is local to the process */
	POINT_ENCLOSING = 1 << 2, /* a flow that binds to the slice around it */
	POINT_OF_SLICE = 1 << 3,  /* a flow end that is written in slice `at` itself */
	POINT_ODD_PH = 1 << 4,	  /* ph is not one character: id is its text, or none */
	POINT_SAMPLE = 1 << 5,	  /* an item of the top-level samples; id is the frame */
};

struct trace_point {
	int64_t ts;
	int64_t id; /* value of a trace_id, with id_kind */
	uint64_t args_offset;
	uint32_t args_size;
	uint32_t name, category, scope;
	union trace_where where;
	uint32_t at; /* number of slices of this worker before the mark */
	uint8_t ph, flags, id_kind;
};

struct trace_counter {
	int64_t ts;
	double value;
	uint32_t name, series, category;
	union trace_where where;
	uint32_t instance; /* string of the id, 0 = none */
	uint32_t args_size;
	uint64_t args_offset;
	bool first; /* first series of its event */
	bool no_ts, no_value;
};

enum trace_meta_kind {
	META_OTHER,
	META_PROCESS_NAME,
	META_PROCESS_LABELS,
	META_PROCESS_SORT,
	META_THREAD_NAME,
	META_THREAD_SORT
};

struct trace_meta {
	int64_t number;
	uint32_t text, name, category, track;
	uint8_t kind;
};

/* Properties that few slices have: an id, a scope, a stack frame, arguments of their end. */
struct trace_mark {
	uint32_t slice;
	uint32_t scope; /* string of the scope, 0 = none */
	struct trace_id id, frame;
	uint64_t args_offset;
	uint32_t args_size;
	uint8_t flags; /* enum event_flags */
};

struct trace_counts {
	size_t slices, points, counters, metas, marks, elements, changes;
	uint32_t strings;
};

/* Counts of damage and oddities in one part of the file, which become notes. */
struct trace_faults {
	uint64_t others, first_other;	 /* elements that are not objects */
	uint64_t damaged, damaged_bytes; /* unreadable ranges of bytes */
	uint64_t first_damage;
	uint64_t clamped, first_clamped;    /* times out of range */
	uint64_t negative, first_negative;  /* negative durations */
	uint64_t bad_times, first_bad_time; /* ts or dur that is not a number */
	uint64_t labels;		    /* counter values that are not numbers */
	uint64_t odd;	     /* events that the rows do not keep completely: struct trace_listing */
	uint64_t unlabelled; /* slices with arguments and without a label */
};

struct trace_part {
	uint64_t start, end; /* offset of the first event, and where the next part continues */
	bool read;	     /* the part was read, and its rows exist */
	bool list_ended, truncated;
	bool samples; /* a part of the top-level samples, not of events */
	/* begin of the unfinished event; the size of the input if there is none */
	uint64_t truncated_at;
	unsigned worker;
	/* rows [first, last) of the worker that come from this part */
	struct trace_counts first, last;
	struct trace_faults faults;
};

struct trace_worker {
	struct mem *mem;
	struct json_scan scan;
	struct ow_error err;
	ow_status status;
	struct trace_dict dict;
	struct trace_tracks tracks;
	struct trace_slices slices;
	struct trace_point *points;
	size_t point_count, point_cap;
	struct trace_counter *counters;
	size_t counter_count, counter_cap;
	struct trace_meta *metas;
	size_t meta_count, meta_cap;
	struct trace_mark *marks;
	size_t mark_count, mark_cap;
	uint64_t *elements; /* places of elements that are not slices; see struct trace_listing */
	size_t element_count, element_cap;
	/* changes by slices called [memory]; event: the slice, until it is placed */
	struct memory_change *changes;
	size_t change_count, change_cap;
	struct trace_faults faults; /* faults of the part that is being read */
	struct {
		uint64_t head; /* first bytes of the text */
		uint32_t len, id;
	} categories[16]; /* few short texts, found without hashing the whole text */
};

struct trace_options {
	size_t part_bytes; /* size of the part that one worker reads */
	unsigned threads;
	enum json_path path;
};

/* Data that all stages use; constant while a file is loaded. */
struct trace_job {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct trace_options options;
};

/* import_trace.c: the rows of all workers, and which of them count. trace_merge.c renumbers them, trace_pair.c adds slices and
 * durations, trace_place.c frees them. */
struct trace_raw {
	struct trace_worker *workers; /* one more than threads: the last one reads in order */
	unsigned worker_count;
	struct trace_part *accepted; /* accepted parts, in file order */
	size_t accepted_count, accepted_cap;
};

/* import_trace.c: data of the file other than its events. */
struct trace_header {
	uint64_t documents;
	bool has_list;	  /* the file has a list of events, maybe empty */
	bool object_form; /* the file is an object with a list, not a list */
	bool truncated;
	uint64_t truncated_at;
	int64_t base_ns; /* nanoseconds to add to every time */
	uint64_t frames_offset, frames_size;
	uint32_t member_bits; /* enum trace_member_bit */
};

/* A process of the file, and a lane: the slices of one layer of a thread. */
struct trace_process {
	struct trace_id pid; /* process id; from here on a text id is a string of the model */
	str_id name, labels;
	int32_t sort;
};

struct trace_lane {
	struct trace_track key;
	uint32_t process; /* index into trace_names.processes */
	uint32_t thread;  /* lane of the thread's own layer */
	str_id name;
	int32_t sort;
	bool used;    /* an event is on the lane */
	size_t count; /* number of slices to be placed; trace_pair.c adds to it */
	/* Members that trace_place.c sets: */
	/* for a thread's own lane: another layer's lane that has the slices, 0 = none */
	uint32_t proxy;
	bool wanted; /* the lane needs a row in the model, because counters or flows are on it */
	track_id id;
	size_t first; /* position of the first of its slices */
};

/* trace_merge.c: the strings, tracks and processes of the file. trace_pair.c adds lanes of asynchronous slices. */
struct trace_names {
	struct trace_numbers {	   /* for one worker: its numbers in the file */
		uint32_t *strings; /* string of the model; string_count stands for the empty text */
		/* the same string, numbered from 1 in this file: its index in a tally */
		uint32_t *locals;
		uint32_t *lanes;
	} numbers[PARALLEL_MAX + 1];
	uint32_t string_count;	 /* number of strings of the model */
	uint32_t *local_strings; /* model strings by the file's own numbers; [0] = none */
	/* number of these strings, which is the size of the arrays of a tally */
	uint32_t local_count;
	size_t local_cap;
	struct trace_lane *lanes; /* lane 0 is nil */
	uint32_t lane_count;
	size_t lane_cap;
	struct map lane_map;
	struct trace_process *processes; /* process 0 is for events without pid */
	uint32_t process_count;
	size_t process_cap;
	struct map process_map;
};

/* trace_merge.c: sums for the facts. Arrays are indexed by the file's own number of a string, because the model of
 * many files has many times more strings than each file. */
struct trace_tally {
	uint64_t by_ph[256]; /* counts by ph; [0]: events without ph */
	uint64_t events, x_without_dur;
	uint64_t slices; /* number of events that are a row each; others are made of pairs later */
	int64_t min_ts, max_ts, max_x_end; /* TIME_UNKNOWN if there is none */
	uint64_t *category_count;
	int64_t *category_dur; /* duration of X events by category */
	uint8_t *category_x;   /* for each category: 1 if an X event has it */
	uint64_t *x_count;
	int64_t *x_dur;
	uint64_t *odd_ph;    /* counts by the text of ph */
	size_t *lane_slices; /* slices by lane; NULL in the sum of all workers */
	uint64_t unknown_ph, no_ts;
	bool has_categories;
};

/* trace_frames.c: stacks of the model by the ids that events use. */
struct trace_frames {
	struct trace_frame *list; /* frame 0 is nil */
	uint32_t count;
	size_t cap;
	struct map map;
};

/* trace_pair.c: counts of events without a partner. */
struct trace_pairs {
	uint64_t unfinished, surplus_ends, unmatched_async;
};

/* trace_facts.c: numbers of distinct flow ids. */
struct trace_flows {
	uint64_t started, ended, both;
	/* number of flows with one end: calls that start nothing on a device */
	uint64_t plain_calls;
	bool failed; /* memory ran out */
};

/* Results of the stages before trace_place.c, read-only. */
struct trace_stages {
	const struct trace_job *job;
	const struct trace_raw *rows;
	const struct trace_header *header;
	const struct trace_names *names;
	const struct trace_tally *tally;
	const struct trace_frames *frames;
	const struct trace_pairs *pairs;
};

static inline ow_status trace_no_memory(const struct trace_job *job)
{
	return error_no_memory(job->ctx->err);
}

/* Return the text, or the string id, for a string number of a merged row; nil for the empty text. */
static inline struct str trace_str(const struct trace_job *job, const struct trace_names *names,
				   uint32_t string)
{
	return string == names->string_count ? STR("") : model_str(job->b->m, (str_id){ string });
}
static inline str_id trace_str_id(const struct trace_names *names, uint32_t string)
{
	return (str_id){ string == names->string_count ? 0 : string };
}

/* Free parts of the rows when they have been placed or listed: places of elements, points with
 * counters, all rows. */
void trace_worker_drop_elements(struct trace_worker *w);
void trace_worker_drop_points(struct trace_worker *w);
void trace_worker_drop_rows(struct trace_worker *w);
struct trace_counts trace_worker_counts(const struct trace_worker *w);
/* Sets w->status to "no memory". */
void trace_fail(struct trace_worker *w);
bool trace_make_room(struct trace_worker *w);
static inline bool trace_slice_room(struct trace_worker *w)
{
	return OW_LIKELY(w->slices.count < w->slices.cap) || trace_make_room(w);
}
bool trace_add_mark(struct trace_worker *w, const struct trace_mark *mark);

/* Makes room for one more row in an array; NULL if memory runs out. */
#define TRACE_NEW_ROW(w, array, count_, cap_)                                                      \
	({                                                                                         \
		void *ptr_ = (w)->array;                                                           \
		bool ok_ = mem_grow((w)->mem, &ptr_, &(w)->cap_, (w)->count_ + 1,                  \
				    sizeof(*(w)->array));                                          \
		if (!ok_)                                                                          \
			trace_fail(w);                                                             \
		else                                                                               \
			(w)->array = ptr_;                                                         \
		ok_ ? &(w)->array[(w)->count_++] : NULL;                                           \
	})

/* trace_rows.c: turns one event into rows. */
/* Stores one event; on failure w->status is set. */
void trace_take_event(struct trace_worker *w, const struct json_event *ev);

/* import_trace.c: strings and tracks of a worker. */
/* Adds a text; TRACE_FULL if memory runs out. */
uint32_t trace_dict_add_hashed(struct trace_dict *d, struct mem *mem, struct str raw,
			       uint64_t hash);
static inline uint32_t trace_dict_add(struct trace_dict *d, struct mem *mem, struct str raw)
{
	return trace_dict_add_hashed(d, mem, raw, str_hash(raw));
}
/* Returns the hash of a text that will be added soon, and prefetches its slot. */
static inline uint64_t trace_dict_prefetch(const struct trace_dict *d, struct str raw)
{
	uint64_t hash = str_hash(raw);

	if (OW_LIKELY(d->slots))
		__builtin_prefetch(&d->slots[(hash >> 32) & d->mask]);
	return hash;
}
/* Prefetches the text that the new text will probably be compared with. */
static inline void trace_dict_prefetch_text(const struct trace_dict *d, uint64_t hash)
{
	const struct trace_slot *slot;

	if (OW_UNLIKELY(!d->slots))
		return;
	slot = &d->slots[(hash >> 32) & d->mask];
	__builtin_prefetch(d->bytes + (size_t)slot->place * 8);
	__builtin_prefetch(d->bytes + (size_t)slot->place * 8 + slot->len);
}
/* Returns the properties of a category; NULL if memory runs out. */
const struct trace_category *trace_dict_category(struct trace_dict *d, struct mem *mem,
						 uint32_t category);
/* Returns the type of an op with that label, to be set; NULL if memory runs out. */
uint32_t *trace_dict_type(struct trace_dict *d, struct mem *mem, uint32_t label);
uint32_t trace_tracks_add(struct trace_tracks *t, struct mem *mem, const struct trace_track *key);
#define TRACE_FULL UINT32_MAX
#define TRACE_EMPTY (UINT32_MAX - 1)

/* The stages of loading, in their order. */

ow_status trace_merge(const struct trace_job *job, struct trace_raw *rows,
		      struct trace_names *names, struct trace_tally *tally);
void trace_names_release(const struct trace_job *job, const struct trace_raw *rows,
			 struct trace_names *names);
void trace_tally_release(const struct trace_job *job, const struct trace_names *names,
			 struct trace_tally *tally);
/* Finds or adds the lane of that key; TRACE_FULL if memory runs out. Text ids are model strings. */
uint32_t trace_lane_of(const struct trace_job *job, struct trace_names *names,
		       const struct trace_track *key);

/* Called after the merge, when ids of events and frames are strings of the model. */
ow_status trace_frames_read(const struct trace_job *job, const struct trace_header *header,
			    struct trace_frames *frames);
void trace_frames_release(const struct trace_job *job, struct trace_frames *frames);
/* Returns the stack of a frame; nil if there is no such frame. */
stack_id trace_frames_find(const struct trace_frames *frames, struct trace_id id);

ow_status trace_pair(const struct trace_job *job, struct trace_raw *rows, struct trace_names *names,
		     const struct trace_tally *tally, struct trace_pairs *pairs);

/* Returns the lane of an arrow's end: arrows name a thread, not a layer, so they go to the lane
 * with its slices. */
static inline uint32_t trace_arrow_lane(const struct trace_names *names, uint32_t lane)
{
	return names->lanes[lane].count || !names->lanes[lane].proxy ? lane
								     : names->lanes[lane].proxy;
}

static inline bool trace_is_flow(const struct trace_point *p)
{
	return (p->ph == 's' || p->ph == 't' || p->ph == 'f') && !(p->flags & POINT_NO_TS);
}

/* Computes the order of the tracks in the model: by process, thread, layer. [0] is 0. The caller
 * frees it. */
ow_status trace_order_lanes(const struct trace_job *job, struct trace_names *names,
			    uint32_t **order);
/* Adds a track for each lane that has slices, counters or flows. */
ow_status trace_make_tracks(const struct trace_job *job, const struct trace_raw *rows,
			    struct trace_names *names, const uint32_t *order);

/* trace_sniff.c: recognises a trace. */
int trace_sniff(const struct sniff *sniff);

/* Places the rows in the model, and runs the interpretation when the rows of the workers are
 * freed. */
ow_status trace_place(const struct trace_stages *made, struct trace_raw *rows,
		      struct trace_names *names);

/* trace_samples.c: turns sampled stacks among the placed events into samples, before the draft is
 * interpreted. */
ow_status trace_samples(const struct trace_job *job, const struct event_draft *draft,
			int64_t base_ns);

/* Counts flows. Needs only the merged points, so trace_place.c runs it concurrently. */
void trace_count_flows(const struct trace_job *job, const struct trace_raw *rows,
		       const struct trace_names *names, struct trace_flows *flows);
ow_status trace_facts(const struct trace_stages *t, const struct trace_flows *flows);
/* Stores how the list was written in the file: struct trace_listing. Called when tracks have
 * their rows. */
ow_status trace_list(const struct trace_stages *t);

/* Runs the whole importer with given options, for tests. */
ow_status trace_load_with(struct import_ctx *ctx, const struct trace_options *options);

#endif
