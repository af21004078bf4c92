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

/* size of a part; together with its output it fits into the cache */
#define PART_BYTES ((size_t)1 << 20)
#define SAMPLE_BYTES ((size_t)128 << 10) /* bytes of the events that are searched for pids first */
#define VALUE_MAX ((uint64_t)64 << 20)	 /* larger values of top-level members are left out */
#define MEMBERS_MAX 10000		 /* limit of top-level members of one file */

#define LABEL_SEPARATOR " \xc2\xb7 "

#define NO_TIME INT64_MIN
#define NO_NUMBER INT64_MIN

/* A member of the trace's top-level object, apart from the events. */
struct merge_member {
	struct str key; /* key as in the file, with escapes */
	enum json_kind kind;
	uint64_t offset, size;
	bool complete;
};

/* A range of time on the file's own clock, [from, to). */
struct time_range {
	int64_t from, to;
};

struct merge_step {
	int64_t number;
	struct time_range span;
};

/* Counts of elements that could not be read. */
struct faults {
	uint64_t damaged, damaged_bytes, first_damage;
	uint64_t others; /* elements of the event lists that are not events */
	uint64_t lost_members;
	uint64_t truncated_at;
	bool truncated;
};

/* Top-level members that affect how the file's events are written. They may come after the events. */
struct facts {
	int64_t base_ns, rank;
	bool has_base;
};

struct merge_file {
	struct merge *m;
	uint32_t number;  /* index of the file, from 0 */
	const char *path; /* path as given; "archive!member" for a member of an archive */
	struct str name;  /* name to show: the shortest path end that is unique */
	struct input in;
	unsigned users;	     /* number of users of `in` (file_enter) */
	bool opened, reopen; /* opened: `in` is open; reopen: it may be closed between uses */
	bool found;	     /* found in a directory, so it need not be a trace */
	uint64_t size;
	struct timespec mtime;

	/* Fields that sources.c writes before all passes. */
	struct json_doc doc_at_events; /* state of the JSON reader at the first event list */
	uint64_t events_offset;	       /* offset of the first event list; UINT64_MAX: none */
	bool events_bare;
	struct merge_member *members;
	size_t member_count, member_cap, header_members;
	struct faults header_faults;
	struct facts facts, assumed; /* assumed: the facts that the previous pass used */
	int64_t name_rank, step;     /* numbers from the file's name; NO_NUMBER: none */

	/* Fields that the measuring pass (merge.c) writes. */
	/* NO_TIME: no times; max_ns is the end of an event */
	int64_t min_ns, min_positive_ns, max_ns;
	bool has_pairs;
	struct merge_step *steps;
	size_t step_count, step_cap;

	/* Fields that clock.c, process.c and filter.c write before the write pass. */
	struct str label; /* label of the file's processes; "" = none */
	/* added to all times; if `clock` is set, only an approximation */
	int64_t shift_ns;
	int64_t base_shift_ns;		 /* if `clock` is set: the shift without the clock */
	const struct merge_clock *clock; /* fitted clock of the file, or NULL */
	/* a time of 0 means "no time": it is moved to the file's start */
	bool zeros_apart;
	int64_t start_ns;	  /* start of the file in the output */
	bool dropped;		  /* the file has no wanted step */
	struct time_range range;  /* wanted range of time */
	struct time_range *spans; /* wanted steps, in order; NULL: all */
	size_t span_count;

	/* Fields that a pass changes while it goes through the file, in order. */
	struct json_doc doc;
	uint64_t expected; /* offset of the next event */
	bool bare, finished;
	uint64_t openers; /* number of B, b and S events that the filter has met */
	struct buf opener_kept;
	struct faults faults;
	uint64_t events_in, events_out, filtered, repaired, untimed;
};

enum pid_kind { PID_NONE, PID_INT, PID_TEXT };

struct process {
	uint32_t id, file;
	enum pid_kind kind;
	int64_t value;
	struct str text; /* text of the pid, as in the file */
	bool quoted;	 /* the pid is a string in the file */
	bool changed;
	int64_t pid;	  /* new pid, if it has to be changed */
	char written[24]; /* the new pid as text */
	uint8_t written_len;
	bool used, named; /* the output has events of this process; has its name */
};

struct processes {
	pthread_mutex_t lock;
	struct arena arena;
	struct map map;	  /* (file, pid) → process */
	struct map taken; /* pid in the output → process */
	struct process **list;
	size_t count, cap;
	int64_t stride, next; /* numbers from which new pids are made */
	/* the processes found in samples have numbers; new ones get a number when they are added */
	bool numbered;
};

struct merge_slice {
	uint64_t name; /* hash of the name, 0 = none */
	uint64_t ordinal;
	int64_t start;
	uint32_t below; /* index of the next slice in the stack, or in the list of free entries */
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
	struct merge_slice *slices; /* index 0 means none */
	size_t slice_count, slice_cap;
	uint32_t free;
	bool failed;
};

struct filter {
	bool active; /* some filter is set */
	bool names, categories, pids, times;
	struct regex_list name, category, pid;
	struct pairs pairs;
	struct buf text;
};

struct pass;

struct merge {
	struct mem *mem;
	struct arena arena;
	const struct merge_options *options;
	struct ow_error *err;
	/* m->err has the reason why a file is not merged, and no note has reported it yet */
	bool first_unreported;
	const struct merge_out *out;
	struct merge_counts *counts;
	struct merge_file **files;
	size_t file_count, file_cap;
	pthread_mutex_t files_lock;
	size_t held;		 /* bytes of inputs in memory that cannot be closed */
	struct input_pool *pool; /* shared descriptors of inputs that cannot be opened again */
	struct processes processes;
	struct filter filter;
	unsigned threads;
	unsigned id_bits; /* ids of file k are increased by k << id_bits */
	int64_t base_ns;  /* base time of the output */
	int64_t zero_ns;  /* first time in the output, if measured */
	bool several;	  /* there is more than one file */
	bool measured;	  /* first and last times are known exactly */
	bool facts_final; /* all top-level members of all files are known */

	/* Output of merge.c. */
	bool any_event; /* the output has an event */
	uint32_t crc;
	uint64_t unpacked_out;
	struct zstd_packer zstd;
	struct gzip_packer gzip;
	struct buf packed;

	/* State of progress reports. */
	pthread_mutex_t progress_lock;
	atomic_uint_fast64_t done;
	uint64_t total;
	struct progress poll; /* progress callback of every input */
	atomic_bool cancelled;
};

/* Bytes [at, at + len) of an event's text become [from, from + size) of the worker's scratch. */
struct edit {
	uint32_t at, len, from, size;
};

enum process_mark { MARK_USED = 1, MARK_NAMED = 2 };

/* Counts of one part; added to the totals when the part turns out to be valid. */
struct part_counts {
	uint64_t events, written, filtered, repaired, untimed;
	struct faults faults;
};

#define PID_CACHE 64

struct merge_worker {
	struct merge *m;
	struct pass *pass;
	struct json_scan scan;
	struct merge_file *file; /* file that the scanner reads */
	size_t unit;
	bool my_turn;
	struct ow_error err;
	ow_status status;
	/* The part that this worker reads. */
	uint64_t start, end;
	bool read, ended, truncated, wrong_guess;
	uint64_t truncated_at;
	struct part_counts n;
	struct buf out, scratch, edited, packed;
	bool is_packed;
	uint32_t crc; /* checksum of `out`, if the output is compressed */
	struct gzip_packer gzip;
	struct edit *edits;
	size_t edit_count, edit_cap;
	/* Cache of pids. */
	struct {
		uint64_t word;
		struct process *process;
		uint8_t len, kind;
	} cache[PID_CACHE];
	uint32_t *marked; /* processes marked by this part */
	size_t marked_count, marked_cap;
	uint8_t *marks;
	size_t marks_cap;
	/* Results of the measuring pass. */
	int64_t min_ns, min_positive_ns, max_ns;
	bool has_pairs;
	struct merge_step *steps;
	size_t step_count, step_cap;
	int64_t first_ns; /* in the write pass: a time in this part */
};

struct pass {
	struct merge *m;
	/* Handles one event; may call worker_take_turn. */
	void (*event)(struct merge_worker *w, const struct json_event *ev);
	void (*begin)(struct merge_worker *w); /* called at the beginning of a part */
	/* called when a part was read, before its turn; may be NULL */
	void (*prepare)(struct merge_worker *w);
	/* called in turn, for a part that turned out to be valid */
	ow_status (*commit)(struct merge_worker *w);
	/* called in turn at the end of a file; may be NULL */
	ow_status (*file_end)(struct merge_worker *w);
	unsigned threads;
	struct merge_worker *workers;
	/* for each file: number of its first part; one more entry marks the end */
	size_t *first_unit;
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
/* Waits until all earlier parts are done. Returns false when this part is invalid: it began at a wrong place, or
 * something failed. */
bool worker_take_turn(struct merge_worker *w);
void worker_fail(struct merge_worker *w, ow_status status);

ow_status sources_open(struct merge *m, const struct merge_path *paths, size_t count);
void sources_release(struct merge *m);
/* Makes file->in readable; the caller calls file_leave afterwards. May be called from any thread. */
ow_status file_enter(struct merge_file *file, struct ow_error *err);
void file_leave(struct merge_file *file);
void merge_note(struct merge *m, const char *format, ...) OW_PRINTF(2, 3);

ow_status outline_sample(struct merge *m);
/* Continues after an event list, with file->doc: up to the next list (file->expected), or the end (file->finished). */
ow_status outline_walk(struct merge_file *file, struct json_scan *scan, struct ow_error *err);
/* Returns to the first event list. */
void outline_rewind(struct merge_file *file);
/* Reads the text of a member's value; empty when it is longer than `max`. */
ow_status member_read(struct merge_file *file, const struct merge_member *member, uint64_t max,
		      struct buf *text, struct ow_error *err);
const struct merge_member *member_find(const struct merge_file *file, const char *key);
void faults_add(struct faults *to, const struct faults *more);
void fault_damage(struct faults *faults, uint64_t offset, uint64_t size);

ow_status labels_choose(struct merge *m);
void label_numbers(struct merge_file *file);

void processes_init(struct processes *p, struct mem *mem);
void processes_release(struct processes *p);
/* Numbers the processes found so far, in their order; from now on new ones are numbered at once. */
ow_status processes_number(struct merge *m);
/* The process of a pid in a file. NULL if it is unknown and `add` is false, or if memory runs out. */
struct process *process_of(struct merge *m, uint32_t file, const struct json_value *pid, bool add);

/* The event's ph (phase), if it is one character; else 0. */
static inline char event_ph(const struct json_event *ev)
{
	const struct json_value *ph = &ev->value[FIELD_PH];

	return json_event_has(ev, FIELD_PH) && ph->kind == JSON_STRING && ph->len == 1 ? *ph->at
										       : 0;
}

/* The range from ts to ts + dur, in nanoseconds of the file's own clock; false when there is no ts. */
bool event_span(const struct json_event *ev, struct time_range *span);
ow_status clocks_choose(struct merge *m);
/* Checks whether the files' times belong together, as far as they are known. */
void clocks_compare(struct merge *m);

ow_status filter_init(struct merge *m);
void filter_release(struct filter *f);
bool filter_keep(struct merge_worker *w, const struct json_event *ev);
/* Whether the filter accepts the event's time. */
bool filter_time(const struct merge_file *file, const struct json_event *ev);
void filter_begin_file(struct merge *m);
void pair_pass(struct pass *pass);

void write_pass(struct pass *pass);
/* Rewrites an element of the list "samples" of the worker's file. */
void rewrite_sample(struct merge_worker *w, const struct json_event *ev);

/* rewrite.c: appends an id as it is in the output; false when the id is not changed. */
bool id_move(const struct merge *m, uint32_t file, const struct json_value *id, struct buf *out);
bool frame_id_move(uint32_t file, const struct json_value *id, struct buf *out);

/* clock.c: appends a decimal number increased by shift_ns / 1000; false when the text is not a number. */
bool decimal_shift(struct str text, int64_t shift_ns, struct buf *out);
/* clock.c: the shift that is added to a time of the file. */
int64_t clock_shift(const struct merge_file *file, int64_t ns);

/* Whether the times of the file are changed. */
static inline bool file_moves(const struct merge_file *file)
{
	return file->shift_ns || file->clock;
}

/* Writes bytes to the output, in order, compressed if wanted. */
ow_status merged_write(struct merge *m, struct str bytes, struct ow_error *err);
/* Writes a piece of gzip that was compressed before; `len` and `crc` describe the uncompressed bytes. */
ow_status merged_piece(struct merge *m, size_t len, uint32_t crc, struct str packed,
		       struct ow_error *err);

ow_status top_level_write(struct merge *m);

/* Reports progress; returns false if the caller wants to cancel. */
bool merge_poll(struct merge *m);

#endif
