/*
 * merge.h: many Chrome-trace files into one. Called by api/merge.c; the one path that reads traces past the
 * model: events are copied as text, and only what must change is changed (pids, ids, times, names of
 * processes). Memory does not depend on the size of the inputs.
 *
 * Files are read in parts by several threads and written in order, so the output depends on the inputs and
 * the options only.
 */
#ifndef MERGE_MERGE_H
#define MERGE_MERGE_H

#include "base/input.h"
#include "wire/json/json_scan.h"
#include "wire/container/pack.h"

enum merge_align {
	ALIGN_KEEP,	/* times stay, but for the difference of what they count from */
	ALIGN_START,	/* every file starts at zero */
	ALIGN_SEQUENCE, /* one file after the other */
	ALIGN_CLOCKS,	/* times of all files on the clock of one, as `clocks` says */
};

/* t + offset + drift × (t - origin) is the common time, from `from_ns` on. Times are nanoseconds with the base of the file. */
struct merge_clock_piece {
	int64_t from_ns, origin_ns;
	double offset_ns, drift;
};

/* How the clock of a file runs; a clock that was set during the recording has several pieces. */
struct merge_clock {
	const char *path; /* as in merge_path, or "archive!member" */
	const struct merge_clock_piece *pieces;
	size_t piece_count; /* 0: it is the clock of all */
};

struct merge_options {
	enum merge_align align;
	const struct merge_clock *clocks; /* ALIGN_CLOCKS; files without one keep their times */
	size_t clock_count;
	bool labels; /* processes are named after their file, rank or step */
	/* Filters: patterns of which one must match all of the text; none = everything. */
	struct ow_list names, categories, pids;
	int64_t from_ns, to_ns; /* from the first event of the merged trace; INT64_MIN, MAX = all */
	int64_t first_step, last_step; /* INT64_MIN, MAX = all */
	const char *writer;	       /* "opwatch 1.0", for the metadata */
	/* Called now and then from any thread, but one at a time; returns false to cancel. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	/* Gets a line for each thing that is wrong with a file. */
	void (*note)(void *arg, const char *text);
	void *note_arg;
	/* for tests; 0 = the default */
	unsigned threads;
	size_t part_bytes, sample_bytes;
};

/* Where the bytes go, in order. */
struct merge_out {
	ow_status (*write)(void *arg, const void *bytes, size_t len, struct ow_error *err);
	/* Forgets all that was written; NULL when that is impossible. */
	ow_status (*restart)(void *arg, struct ow_error *err);
	void *arg;
	enum pack_kind pack;
};

struct merge_counts {
	uint64_t files, skipped_files; /* merged; not merged: unreadable, or no trace */
	uint64_t events_in, events_out;
	uint64_t filtered; /* left out by the filters */
	uint64_t added;	   /* names of processes that had none; not in events_out */
	uint64_t repaired; /* events that were not strict JSON */
	uint64_t others;   /* elements of the lists that are not events, left out */
	uint64_t damaged, damaged_bytes, truncated_files;
	uint64_t untimed; /* times that could not be moved: no numbers */
	uint64_t hidden;  /* values of what looks like environment variables, left out */
	uint64_t bytes_in, bytes_out;
	bool unrelated_clocks; /* the files are years apart */
};

void merge_options_init(struct merge_options *options);

struct merge_path {
	const char *name;
	bool found; /* in a directory: it need not be a trace */
};

/* Merges the files. Those that cannot be used are reported and skipped as long as another one can. */
ow_status merge_files(struct mem *mem, const struct merge_path *paths, size_t count,
		      const struct merge_options *options, const struct merge_out *out,
		      struct merge_counts *counts, struct ow_error *err);

#endif
