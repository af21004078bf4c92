/*
 * merge_int.h: between the files of src/merge; no other folder includes it.
 *
 *	sources.c	the files, archives unpacked, opened when they are needed; what stands around their events
 *	process.c	which pid in which file becomes which; what a file is called: rank, step or name
 *	parts.c		reads files in parts on several threads, in file order
 *	filter.c	which events are kept; ends follow their beginnings
 *	clock.c		moves times; where the clock of each file goes
 *	rewrite.c	writes one event; ids that must not meet those of other files
 *	merge_top_level.c	what follows the events
 *	merge.c		the order of the passes; measures times and steps; packs and writes the output
 *
 * A merge_file says per group of fields which file writes it, and when. From the write pass on only counters change.
 */
#ifndef MERGE_MERGE_INT_H
#define MERGE_MERGE_INT_H

#include "base/arena.h"
#include "base/map.h"
#include "base/parallel.h"
#include "base/regex/regex.h"
#include "merge/merge.h"
#include "wire/container/archive.h"
#include "wire/json/json.h"
#include "wire/json/json_strict.h"

#include <pthread.h>

#define PART_BYTES ((size_t)1 << 20)	 /* with what is written it stays in the cache */
#define SAMPLE_BYTES ((size_t)128 << 10) /* of the events, in which pids are looked for first */
#define VALUE_MAX ((uint64_t)64 << 20)	 /* larger values beside the events are left out */
#define MEMBERS_MAX 10000		 /* of one file */

#define LABEL_SEPARATOR " \xc2\xb7 "

#define NO_TIME INT64_MIN
#define NO_NUMBER INT64_MIN

/* ---- files ---- */

/* A member of a top-level object, beside the events. */
struct merge_member {
	struct str key; /* raw */
	enum json_kind kind;
	uint64_t offset, size;
	bool complete;
};

/* A span of time in the file's own clock, [from, to). */
struct time_range {
	int64_t from, to;
};

struct merge_step {
	int64_t number;
	struct time_range span;
};

/* What could not be read. */
struct faults {
	uint64_t damaged, damaged_bytes, first_damage;
	uint64_t others; /* elements that are not events */
	uint64_t lost_members;
	uint64_t truncated_at;
	bool truncated;
};

/* Members of a file that affect its events. They may come after the events. */
struct facts {
	int64_t base_ns, rank;
	bool has_base;
};

struct merge_file {
	struct merge *m;
	uint32_t number;  /* from 0 */
	const char *path; /* as given; "archive!member" */
	struct str name;  /* to show: as short as is unique */
	struct input in;
	unsigned users;	     /* of `in` */
	bool opened, reopen; /* it may be closed between its uses */
	bool found;	     /* it need not be a trace */
	uint64_t size;
	struct timespec mtime;

	/* sources.c, before all passes */
	struct json_doc doc_at_events; /* state of the walk at the first list */
	uint64_t events_offset;	       /* of the first list; UINT64_MAX: none */
	bool events_bare;
	struct merge_member *members;
	size_t member_count, member_cap, header_members;
	struct faults header_faults;
	struct facts facts, assumed; /* assumed: by the pass before */
	int64_t name_rank, step;     /* from the file's name; NO_NUMBER: none */

	/* merge.c, the pass that measures */
	int64_t min_ns, min_positive_ns, max_ns; /* NO_TIME: no times; max is an end */
	bool has_pairs;
	struct merge_step *steps;
	size_t step_count, step_cap;

	/* clock.c, process.c, filter.c: decided before writing */
	struct str label;		 /* "" = none */
	int64_t shift_ns;		 /* added to all times; with a clock: about so much */
	int64_t base_shift_ns;		 /* with a clock: without it */
	const struct merge_clock *clock; /* or NULL */
	bool zeros_apart;		 /* times of 0 mean none: they go to the file's start */
	int64_t start_ns;		 /* where the file starts in the output */
	bool dropped;			 /* no step of it is wanted */
	struct time_range range;	 /* wanted */
	struct time_range *spans;	 /* wanted steps, in order; NULL: all */
	size_t span_count;

	/* while a pass goes through it, in order */
	struct json_doc doc;
	uint64_t expected; /* where the next event is */
	bool bare, finished;
	uint64_t openers; /* B, b, S met by the filter */
	struct buf opener_kept;
	struct faults faults;
	uint64_t events_in, events_out, filtered, repaired, untimed;
};

/* ---- processes ---- */

enum pid_kind { PID_NONE, PID_INT, PID_TEXT };

struct process {
	uint32_t id, file;
	enum pid_kind kind;
	int64_t value;
	struct str text; /* raw */
	bool quoted;	 /* in the file */
	bool changed;
	int64_t pid;	  /* the new one, when changed */
	char written[24]; /* the same as text */
	uint8_t written_len;
	bool used, named; /* by what is in the output */
};

struct processes {
	pthread_mutex_t lock;
	struct arena arena;
	struct map map;	  /* (file, pid) → process */
	struct map taken; /* pid in the output → process */
	struct process **list;
	size_t count, cap;
	int64_t stride, next; /* for new pids */
	bool numbered; /* those of the samples have their numbers; others get one when added */
};

/* ---- filters ---- */

struct merge_slice {
	uint64_t name; /* hash, 0 = none */
	uint64_t ordinal;
	int64_t start;
	uint32_t below; /* next in the stack, or in the list of free ones */
	bool kept;
};

/* The open slices of each track and of each asynchronous id. */
struct pairs {
	struct mem *mem;
	struct map map;
	struct {
		uint64_t key;
		uint32_t top;
	} * tracks;
	size_t track_count, track_cap;
	struct merge_slice *slices; /* [0] is none */
	size_t slice_count, slice_cap;
	uint32_t free;
	bool failed;
};

struct filter {
	bool active; /* anything at all is left out */
	bool names, categories, pids, times;
	struct regex_list name, category, pid;
	struct pairs pairs;
	struct buf text;
};

/* ---- the whole ---- */

struct pass;

struct merge {
	struct mem *mem;
	struct arena arena;
	const struct merge_options *options;
	struct ow_error *err;
	bool first_unreported; /* err has the reason why a file is not merged, and no note says so yet */
	const struct merge_out *out;
	struct merge_counts *counts;
	struct merge_file **files;
	size_t file_count, file_cap;
	pthread_mutex_t files_lock;
	size_t held;		 /* bytes of inputs in memory that cannot be closed */
	struct input_pool *pool; /* of what cannot be opened again either */
	struct processes processes;
	struct filter filter;
	unsigned threads;
	unsigned id_bits; /* ids of file k are moved by k << id_bits */
	int64_t base_ns;  /* of the output */
	int64_t zero_ns;  /* first time in the output, when measured */
	bool several;	  /* files */
	bool measured;	  /* first and last times are known exactly */
	bool facts_final; /* all members of all files are known */

	/* merge.c: the output */
	bool any_event; /* in the output */
	uint32_t crc;
	uint64_t unpacked_out;
	struct zstd_packer zstd;
	struct gzip_packer gzip;
	struct buf packed;

	/* progress */
	pthread_mutex_t progress_lock;
	atomic_uint_fast64_t done;
	uint64_t total;
	struct progress poll; /* of every input */
	atomic_bool cancelled;
};

/* ---- reading in parts ---- */

/* Bytes [at, at + len) of an event's text become [from, from + size) of the worker's scratch. */
struct edit {
	uint32_t at, len, from, size;
};

enum process_mark { MARK_USED = 1, MARK_NAMED = 2 };

/* What one part had; added up when the part proves right. */
struct part_counts {
	uint64_t events, written, filtered, repaired, untimed;
	struct faults faults;
};

#define PID_CACHE 64

struct merge_worker {
	struct merge *m;
	struct pass *pass;
	struct json_scan scan;
	struct merge_file *file; /* of the scanner */
	size_t unit;
	bool my_turn;
	struct ow_error err;
	ow_status status;
	/* the part */
	uint64_t start, end;
	bool read, ended, truncated, wrong_guess;
	uint64_t truncated_at;
	struct part_counts n;
	struct buf out, scratch, edited, packed;
	bool is_packed;
	uint32_t crc; /* of `out`, when packed */
	struct gzip_packer gzip;
	struct edit *edits;
	size_t edit_count, edit_cap;
	/* pids */
	struct {
		uint64_t word;
		struct process *process;
		uint8_t len, kind;
	} cache[PID_CACHE];
	uint32_t *marked; /* processes with marks */
	size_t marked_count, marked_cap;
	uint8_t *marks;
	size_t marks_cap;
	/* the pass that measures */
	int64_t min_ns, min_positive_ns, max_ns;
	bool has_pairs;
	struct merge_step *steps;
	size_t step_count, step_cap;
	int64_t first_ns; /* write pass: a time of this part */
};

struct pass {
	struct merge *m;
	/* One event; may call worker_take_turn. */
	void (*event)(struct merge_worker *w, const struct json_event *ev);
	void (*begin)(struct merge_worker *w);	 /* of a part */
	void (*prepare)(struct merge_worker *w); /* of a part that was read, out of turn; or NULL */
	ow_status (*commit)(struct merge_worker *w);   /* of a part that proved right, in turn */
	ow_status (*file_end)(struct merge_worker *w); /* in turn; or NULL */
	unsigned threads;
	struct merge_worker *workers;
	size_t *first_unit; /* of each file, and of the end */
	atomic_size_t next_unit;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	size_t turn;
	atomic_bool stop;
};

/* Runs the pass over all files. The first failure is in m->err. */
ow_status pass_run(struct pass *pass);
void worker_init(struct merge_worker *w, struct merge *m, struct pass *pass);
void worker_release(struct merge_worker *w);
void worker_aim(struct merge_worker *w, struct merge_file *file);
/* Waits until all parts before are done. False when this part is void: a wrong guess, or a failure. */
bool worker_take_turn(struct merge_worker *w);
void worker_fail(struct merge_worker *w, ow_status status);

/* ---- the rest, by file ---- */

ow_status sources_open(struct merge *m, const struct merge_path *paths, size_t count);
void sources_release(struct merge *m);
/* Makes file->in readable; pairs with file_leave. Safe from any thread. */
ow_status file_enter(struct merge_file *file, struct ow_error *err);
void file_leave(struct merge_file *file);
void merge_note(struct merge *m, const char *format, ...) OW_PRINTF(2, 3);

ow_status outline_sample(struct merge *m);
/* Goes on behind a list, with file->doc: up to the next one (file->expected), or the end
 * (file->finished). */
ow_status outline_walk(struct merge_file *file, struct json_scan *scan, struct ow_error *err);
/* Back to the first list. */
void outline_rewind(struct merge_file *file);
/* The text of a member's value; empty when it is too large. */
ow_status member_read(struct merge_file *file, const struct merge_member *member, uint64_t max,
		      struct buf *text, struct ow_error *err);
const struct merge_member *member_find(const struct merge_file *file, const char *key);
void faults_add(struct faults *to, const struct faults *more);
void fault_damage(struct faults *faults, uint64_t offset, uint64_t size);

ow_status labels_choose(struct merge *m);
void label_numbers(struct merge_file *file);

void processes_init(struct processes *p, struct mem *mem);
void processes_release(struct processes *p);
/* Gives numbers to those that are there, in their order, and from now on to new ones at once. */
ow_status processes_number(struct merge *m);
/* NULL when it is not there and `add` is false, or for lack of memory. */
struct process *process_of(struct merge *m, uint32_t file, const struct json_value *pid, bool add);

/* The ph, if it is one character; else 0. */
static inline char event_ph(const struct json_event *ev)
{
	const struct json_value *ph = &ev->value[FIELD_PH];

	return json_event_has(ev, FIELD_PH) && ph->kind == JSON_STRING && ph->len == 1 ? *ph->at
										       : 0;
}

/* From ts to ts + dur, in nanoseconds of the file's own clock; false when there is no ts. */
bool event_span(const struct json_event *ev, struct time_range *span);
ow_status clocks_choose(struct merge *m);
/* Whether the files' times belong together, as far as they are known. */
void clocks_compare(struct merge *m);

ow_status filter_init(struct merge *m);
void filter_release(struct filter *f);
bool filter_keep(struct merge_worker *w, const struct json_event *ev);
/* Only by its time. */
bool filter_time(const struct merge_file *file, const struct json_event *ev);
void filter_begin_file(struct merge *m);
void pair_pass(struct pass *pass);

void write_pass(struct pass *pass);
/* An element of the top-level samples of the worker's file. */
void rewrite_sample(struct merge_worker *w, const struct json_event *ev);

/* rewrite.c: appends the id as it is in the output; false when it stays as it is. */
bool id_move(const struct merge *m, uint32_t file, const struct json_value *id, struct buf *out);
bool frame_id_move(uint32_t file, const struct json_value *id, struct buf *out);

/* clock.c: appends the decimal text plus shift_ns / 1000; false when it is not a number. */
bool decimal_shift(struct str text, int64_t shift_ns, struct buf *out);
/* clock.c: what is added to a time of the file. */
int64_t clock_shift(const struct merge_file *file, int64_t ns);

/* Whether times of the file change. */
static inline bool file_moves(const struct merge_file *file)
{
	return file->shift_ns || file->clock;
}

/* Bytes in order, packed by the way. */
ow_status merged_write(struct merge *m, struct str bytes, struct ow_error *err);
/* `len` bytes that were packed as a piece of gzip already. */
ow_status merged_piece(struct merge *m, size_t len, uint32_t crc, struct str packed,
		       struct ow_error *err);

ow_status top_level_write(struct merge *m);

/* Reports progress and asks whether to go on. */
bool merge_poll(struct merge *m);

#endif
