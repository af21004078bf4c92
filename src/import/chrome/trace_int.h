/*
 * trace_int.h: between the files of the Chrome-trace importer (import_trace.c, trace_*.c); nobody else
 * includes it.
 *
 * A file is read in parts by several workers. Each event becomes a row of its worker: a slice (anything
 * with a place of its own on a track), a point (what is paired or joined later), a counter sample or
 * metadata. Rows name strings and tracks by numbers of their worker. When all is read, the parts that
 * proved right are merged in file order, pairs are joined, and the slices are placed, sorted by track
 * and time, in the model's event table.
 *
 * Bytes per slice while reading: 41 to 49. The rest of the budget is in docs/formats/trace.md.
 */
#ifndef IMPORT_TRACE_INT_H
#define IMPORT_TRACE_INT_H

#include "base/parallel.h"
#include "import/importer.h"
#include "import/meaning.h"
#include "import/trace_sort.h"
#include "wire/json.h"
#include "wire/json_scan.h"

/* ---- strings and tracks of one worker ---- */

/* A name as written in a file: numbers and text of digits are the same, other text is text. */
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
		uint32_t tag; /* upper bits of the hash; they also choose the slot */
		uint32_t id;  /* 0 = empty */
		uint32_t len, place;
	} * slots;
	size_t mask; /* slots - 1 */
	char *bytes;
	size_t bytes_used, bytes_cap;
	struct trace_text {
		uint32_t len, place;
	} * texts; /* by id */
	size_t text_cap;
	uint32_t count;
	struct trace_category *categories; /* by text used as one */
	size_t category_cap;
	uint32_t *types; /* by text used as a label: the type of that op; 0 = not known */
	size_t type_cap;
};

static inline struct str trace_dict_text(const struct trace_dict *d, uint32_t id)
{
	return id ? str_make(d->bytes + (size_t)d->texts[id].place * 8, d->texts[id].len) : STR("");
}

/* What a category says about its slices. */
struct trace_category {
	uint8_t layer;	/* + 1; 0 = not looked up yet */
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
	} cache[512]; /* of those with two numbers; track 0 = empty */
};

/* ---- rows ---- */

struct trace_slices {
	size_t count, cap;
	int64_t *ts, *dur; /* dur TIME_UNKNOWN: none given */
	uint64_t *args_offset;
	uint32_t *args_size, *name, *category, *track;
	uint8_t *ph;
	uint32_t *label; /* the op that ran, when it is not the name; NULL while no slice has one */
	uint32_t *correlation; /* likewise */
};

enum trace_point_flags {
	POINT_NO_TS = 1 << 0,	  /* the event had no time: counted, not used */
	POINT_LOCAL_ID = 1 << 1,  /* the id is of the process */
	POINT_ENCLOSING = 1 << 2, /* a flow that binds to the slice around it */
	POINT_OF_SLICE = 1 << 3,  /* a flow end written in slice `at` itself */
	POINT_ODD_PH = 1 << 4,	  /* ph is not one character: id is its text, or nothing */
	POINT_SAMPLE = 1 << 5,	  /* of the top-level samples; id is the frame */
};

struct trace_point {
	int64_t ts;
	int64_t id; /* a trace_id, with id_kind */
	uint64_t args_offset;
	uint32_t args_size;
	uint32_t name, category, track, scope;
	uint32_t at; /* number of slices of this worker before it */
	uint8_t ph, flags, id_kind;
};

struct trace_counter {
	int64_t ts;
	double value;
	uint32_t name, series, category, track;
	uint32_t instance; /* string of the id, 0 = none */
	uint32_t args_size;
	uint64_t args_offset;
	bool first; /* series of its event */
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

/* What few slices have: an id, a scope, a stack frame, arguments of their end. */
struct trace_mark {
	uint32_t slice;
	uint32_t scope; /* string, 0 = none */
	struct trace_id id, frame;
	uint64_t args_offset;
	uint32_t args_size;
	uint8_t flags; /* enum event_flags */
};

struct trace_counts {
	size_t slices, points, counters, metas, marks, elements, changes;
	uint32_t strings;
};

/* ---- workers and parts ---- */

/* What was not as it should be, in one part. */
struct trace_faults {
	uint64_t others, first_other;	 /* elements that are no objects */
	uint64_t damaged, damaged_bytes; /* unreadable stretches */
	uint64_t first_damage;
	uint64_t clamped, first_clamped;    /* times out of range */
	uint64_t negative, first_negative;  /* durations */
	uint64_t bad_times, first_bad_time; /* ts or dur that is no number */
	uint64_t labels;		    /* counter values that are no number */
	uint64_t odd;	     /* not told by the model as written, see struct trace_listing */
	uint64_t unlabelled; /* slices with arguments and without a label */
};

struct trace_part {
	uint64_t start, end; /* first event, and where the next part goes on */
	bool read;	     /* rows are there */
	bool list_ended, truncated;
	bool samples;	       /* of the top level, not events */
	uint64_t truncated_at; /* begin of the unfinished event; the size of the input when none */
	unsigned worker;
	struct trace_counts first, last; /* rows [first, last) of the worker */
	struct trace_faults faults;
};

struct trace_worker {
	struct mem *mem;
	struct json_scan scan;
	struct error err;
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
	uint64_t *elements; /* that are no slices: their places, see struct trace_listing */
	size_t element_count, element_cap;
	struct memory_change
		*changes; /* of slices called [memory]; event: the slice, until it is placed */
	size_t change_count, change_cap;
	struct trace_faults faults; /* of the part being read */
	struct {
		uint64_t head; /* first bytes of the text */
		uint32_t len, id;
	} categories[16]; /* few, and short: found without hashing all of the text */
	/* when merged: what its numbers are in the whole file */
	uint32_t *strings;   /* model strings; trace.string_count stands for the empty text */
	uint32_t *locals;    /* the same, numbered from 1 in this file: the place in a tally */
	uint32_t *track_map; /* index into trace.lanes */
};

/* A process of the file, and a track: the slices of one layer of a thread. */
struct trace_process {
	struct trace_id pid; /* text ids are model strings from here on */
	str_id name, labels;
	int32_t sort;
};

struct trace_lane {
	struct trace_track key;
	uint32_t process; /* index into trace.processes */
	uint32_t thread;  /* the lane of the thread's own layer */
	uint32_t proxy;	  /* of that lane: one of another layer that has the slices, 0 = none */
	str_id name;
	int32_t sort;
	bool used;   /* some event is on it */
	bool wanted; /* needs a row in the model: counters or flows are on it */
	bool unsorted;
	track_id id;
	size_t count;	 /* slices to be placed */
	size_t first;	 /* position of the first of them */
	int64_t last_ns; /* end of the last event, TIME_UNKNOWN when there is none */
};

/* Sums for the facts, in one thread. Arrays by the file's own number of a string: models of many files have many
 * times more strings than each of them. */
struct trace_tally {
	uint64_t by_ph[256]; /* [0]: events without ph */
	uint64_t events, x_without_dur;
	uint64_t slices; /* events that are a row each; others are made of pairs later */
	int64_t min_ts, max_ts, max_x_end; /* TIME_UNKNOWN when none */
	uint64_t *category_count;
	int64_t *category_dur; /* of X */
	uint8_t *category_x;   /* 1: some X has the category */
	uint64_t *x_count;
	int64_t *x_dur;
	uint64_t *odd_ph;    /* by the text of ph */
	size_t *lane_slices; /* by lane */
	uint64_t unknown_ph, no_ts;
};

struct trace_options {
	size_t part_bytes; /* a part is read by one worker */
	unsigned threads;
	enum json_path path;
};

struct trace {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct trace_options options;
	struct trace_worker *workers; /* one more than threads: the last reads in order */
	unsigned worker_count;

	/* trace_read.c */
	struct trace_part *parts; /* guesses, by place */
	size_t part_count;
	uint64_t parts_from; /* offset of part 0 */
	atomic_size_t next_part;
	atomic_bool stop;
	atomic_uint_fast64_t bytes_done;
	struct trace_part *accepted; /* in file order */
	size_t accepted_count, accepted_cap;
	uint64_t documents;
	bool object_form, list_truncated, truncated;
	uint64_t truncated_at;

	/* trace_member.c */
	int64_t base_ns; /* added to every time */
	uint64_t frames_offset, frames_size;
	fact_id members;
	uint32_t member_bits; /* enum trace_member_bit */

	/* trace_merge.c */
	struct trace_lane *lanes; /* 0 = nil */
	uint32_t lane_count;
	size_t lane_cap;
	uint32_t *lane_order; /* [0] is 0; by process, thread, layer */
	uint32_t ordered;     /* how many lanes that has */
	struct map lane_map;
	struct trace_process *processes; /* 0 = of events without pid */
	uint32_t process_count;
	size_t process_cap;
	struct map process_map;
	uint32_t string_count;	 /* of the model */
	uint32_t *local_strings; /* model strings of the file's own numbers; [0] = none */
	uint32_t local_count;	 /* of those: size of the arrays of a tally */
	size_t local_cap;
	uint32_t tally_lanes;	     /* size of their lane_slices */
	struct trace_tally *tallies; /* one per worker; [0] is the sum in the end */

	/* trace_frames.c */
	struct trace_frame *frames; /* 0 = nil */
	uint32_t frame_count;
	size_t frame_cap;
	struct map frame_map;

	/* trace_pair.c */
	uint64_t unfinished, surplus_ends, unmatched_async;

	/* trace_place.c */
	uint32_t first_event; /* row of the first slice in the model */
	uint32_t first_track, first_flow;
	size_t placed;
	atomic_uint point_readers; /* jobs that still need the points and counters */
	str_id unnamed;		   /* what events without a name are called */
	bool has_categories, has_labels, has_correlations;
	uint32_t *type_of;	       /* by model string used as a label */
	struct memory_change *changes; /* of all workers, by event */
	size_t change_count;
	struct {
		uint64_t started, ended, both; /* distinct ids */
		bool failed;
	} flows; /* trace_facts.c */
};

/* The text of a string number of a merged row. */
static inline struct str trace_str(const struct trace *t, uint32_t string)
{
	return string == t->string_count ? STR("") : model_str(t->b->m, (str_id){ string });
}

/* ---- trace_worker.c: room for rows ---- */
ow_status trace_worker_init(struct trace_worker *w, struct mem *mem, const struct input *in,
			    enum json_path path);
void trace_worker_release(struct trace_worker *w);
/* When all has been read: room for further rows need not stay in memory. */
void trace_worker_trim(struct trace_worker *w);
/* After the rows have been placed. */
void trace_worker_drop_points(struct trace_worker *w);
void trace_worker_drop_rows(struct trace_worker *w);
struct trace_counts trace_worker_counts(const struct trace_worker *w);
/* There is no memory: w->status tells. */
void trace_fail(struct trace_worker *w);
bool trace_reserve_slices(struct trace_worker *w, size_t more);
bool trace_make_room(struct trace_worker *w);
static inline bool trace_slice_room(struct trace_worker *w)
{
	return OW_LIKELY(w->slices.count < w->slices.cap) || trace_make_room(w);
}
/* A slice made of a point, when pairs are joined, and a mark for a slice. */
bool trace_add_slice(struct trace *t, unsigned worker, const struct trace_point *p, int64_t dur,
		     uint32_t lane);
bool trace_add_mark(struct trace_worker *w, const struct trace_mark *mark);

/* Room for one row more in an array; NULL when there is none. */
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

/* ---- trace_rows.c: one event into rows ---- */
/* On failure w->status is set. */
void trace_take_event(struct trace_worker *w, const struct json_event *ev);
/* Values of an event, for trace_points.c: 0 or kind ID_NONE = there is none. */
bool trace_is_null(struct json_value v);
uint32_t trace_text_of(struct trace_worker *w, struct json_value v);
uint32_t trace_field_text(struct trace_worker *w, const struct json_event *ev,
			  enum json_field field);
uint32_t trace_category_of(struct trace_worker *w, const struct json_event *ev);
struct trace_id trace_id_of(struct trace_worker *w, struct json_value v);
struct trace_id trace_field_id(struct trace_worker *w, const struct json_event *ev,
			       enum json_field field);
uint32_t trace_track_of(struct trace_worker *w, const struct json_event *ev, uint8_t layer);
bool trace_time_of(struct trace_worker *w, const struct json_event *ev, enum json_field field,
		   int64_t *ns);
uint64_t trace_args_place(const struct json_event *ev, uint32_t *size);

/* ---- trace_points.c: events that are no slices ---- */
void trace_read_id(struct trace_worker *w, const struct json_event *ev, struct trace_id *id,
		   bool *local);
void trace_take_point(struct trace_worker *w, const struct json_event *ev, uint8_t ph, bool has_ts,
		      int64_t ts);
void trace_take_odd(struct trace_worker *w, const struct json_event *ev);
void trace_take_counter(struct trace_worker *w, const struct json_event *ev);
void trace_take_meta(struct trace_worker *w, const struct json_event *ev);

/* ---- trace_dict.c ---- */
void trace_dict_init(struct trace_dict *d);
void trace_dict_release(struct trace_dict *d, struct mem *mem);
/* TRACE_FULL when there is no memory. */
uint32_t trace_dict_add_hashed(struct trace_dict *d, struct mem *mem, struct str raw,
			       uint64_t hash);
static inline uint32_t trace_dict_add(struct trace_dict *d, struct mem *mem, struct str raw)
{
	return trace_dict_add_hashed(d, mem, raw, str_hash(raw));
}
/* The hash of a text that is going to be added soon, whose slot is fetched meanwhile. */
static inline uint64_t trace_dict_prefetch(const struct trace_dict *d, struct str raw)
{
	uint64_t hash = str_hash(raw);

	if (OW_LIKELY(d->slots))
		__builtin_prefetch(&d->slots[(hash >> 32) & d->mask]);
	return hash;
}
/* A little later: the text that it is probably going to be compared with. */
static inline void trace_dict_prefetch_text(const struct trace_dict *d, uint64_t hash)
{
	const struct trace_slot *slot;

	if (OW_UNLIKELY(!d->slots))
		return;
	slot = &d->slots[(hash >> 32) & d->mask];
	__builtin_prefetch(d->bytes + (size_t)slot->place * 8);
	__builtin_prefetch(d->bytes + (size_t)slot->place * 8 + slot->len);
}
/* NULL when there is no memory. */
const struct trace_category *trace_dict_category(struct trace_dict *d, struct mem *mem,
						 uint32_t category);
/* The type of an op with that label, to be set; NULL when there is no memory. */
uint32_t *trace_dict_type(struct trace_dict *d, struct mem *mem, uint32_t label);
void trace_tracks_init(struct trace_tracks *t, struct mem *mem);
void trace_tracks_release(struct trace_tracks *t, struct mem *mem);
uint32_t trace_tracks_add(struct trace_tracks *t, struct mem *mem, const struct trace_track *key);
#define TRACE_FULL UINT32_MAX
#define TRACE_EMPTY (UINT32_MAX - 1)

/* ---- trace_read.c: the file, in parts ---- */
ow_status trace_read(struct trace *t);

/* ---- trace_member.c: the members of the top-level object ---- */
ow_status trace_member(struct trace *t, const struct json_item *item);

/* ---- trace_merge.c: strings, tracks and metadata of all workers ---- */
ow_status trace_merge(struct trace *t);
/* The lane of that key, made if it is new; TRACE_FULL without memory. Text ids are model strings. */
uint32_t trace_lane_of(struct trace *t, const struct trace_track *key);
/* When all lanes are there. */
ow_status trace_order_lanes(struct trace *t);

/* ---- trace_tally.c: rows of workers get model strings and lanes, and are counted ---- */
ow_status trace_tally(struct trace *t);
void trace_tallies_release(struct trace *t);

/* ---- trace_listing.c: what the list was like in the file ---- */
/* Whether its row will tell all of an element of the list. */
bool trace_slice_is_plain(const struct json_event *ev, uint8_t ph);
/* A slice with arguments whose op is not called by them. */
void trace_list_unlabelled(struct trace_worker *w, const struct json_event *ev, uint8_t ph);
/* Notes the place of one that is no slice. */
void trace_list_element(struct trace_worker *w, const struct json_event *ev, uint8_t ph,
			bool has_ts);
ow_status trace_list(struct trace *t);

/* ---- trace_pair.c: begins and ends; trace_async.c: asynchronous ones ---- */
ow_status trace_pair(struct trace *t);
ow_status trace_pair_async(struct trace *t);

/* ---- trace_frames.c: stackFrames and samples ---- */
void trace_read_samples(struct trace *t, struct trace_worker *w, const struct json_item *item);
ow_status trace_read_frames(struct trace *t);
void trace_frames_release(struct trace *t);
ow_status trace_place_samples(struct trace *t);
stack_id trace_stack(struct trace *t, struct trace_id id);

/* ---- trace_order.c: the place of each slice ---- */
/* How many there are, and where each lane begins, in t->lanes. */
void trace_count_slices(struct trace *t);
/* What was the lane of a slice becomes its place, from 0. */
ow_status trace_find_places(struct trace *t);

/* ---- trace_changes.c: what [memory] events say ---- */
void trace_take_change(struct trace_worker *w, const struct json_event *ev, size_t slice);
/* When places are known. */
ow_status trace_place_changes(struct trace *t);

/* ---- trace_place.c: slices into the model ---- */
ow_status trace_place(struct trace *t);

/* ---- trace_facts.c: facts and notes ---- */
/* Needs nothing but the merged points; may run beside what else uses them. */
void trace_count_flows(struct trace *t);
ow_status trace_facts(struct trace *t);

/* The whole importer with given options, for tests. */
ow_status trace_load_with(struct import_ctx *ctx, const struct trace_options *options);

#endif
