/*
 * merge.h: merges many Chrome-trace files into one. Called by api/merge.c. This is the only code that reads traces
 * without the model: events are copied as text, and only what must change is changed (pids, ids, times, names of
 * processes). Memory does not depend on the size of the inputs. Files are read in parts by several threads and written
 * in order, so the output depends on the inputs and the options only.
 */
#ifndef MERGE_MERGE_H
#define MERGE_MERGE_H

#include "base/input.h"
#include "wire/json/json_scan.h"
#include "wire/container/pack.h"

enum merge_align {
	/* times stay as they are, apart from the difference between the files' base times */
	ALIGN_KEEP,
	ALIGN_START,	/* every file starts at zero */
	ALIGN_SEQUENCE, /* one file after the other */
	/* the times of all files are converted to one clock, by merge_options.clocks */
	ALIGN_CLOCKS,
};

/* From `from_ns` on, t + offset + drift × (t - origin) is the common time. Times are in nanoseconds and include the
 * base time of the file. */
struct merge_clock_piece {
	int64_t from_ns, origin_ns;
	double offset_ns, drift;
};

/* Conversion of a file's clock; a clock that was set during the recording has several pieces. */
struct merge_clock {
	const char *path; /* path as in merge_path, or "archive!member" */
	const struct merge_clock_piece *pieces;
	size_t piece_count; /* 0: this file has the common clock */
};

struct merge_options {
	enum merge_align align;
	/* for ALIGN_CLOCKS; files that are not listed keep their times */
	const struct merge_clock *clocks;
	size_t clock_count;
	bool labels; /* processes are named after their file, rank or step */
	/* Filters: lists of patterns, of which one must match the whole text; an empty list accepts everything. */
	struct ow_list names, categories, pids;
	/* range of time since the first event of the merged trace; INT64_MIN, INT64_MAX = all */
	int64_t from_ns, to_ns;
	int64_t first_step, last_step; /* range of steps; INT64_MIN, INT64_MAX = all */
	const char *writer;	       /* name of the program for the metadata: "opwatch 1.0" */
	/* Called now and then, from any thread but never concurrently; returns false to cancel. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	/* Receives one line for each problem of a file. */
	void (*note)(void *arg, const char *text);
	void *note_arg;
	/* for tests; 0 = the default */
	unsigned threads;
	size_t part_bytes, sample_bytes;
};

/* Receives the output bytes, in order. */
struct merge_out {
	ow_status (*write)(void *arg, const void *bytes, size_t len, struct ow_error *err);
	/* Discards all output that was written; NULL when that is impossible. */
	ow_status (*restart)(void *arg, struct ow_error *err);
	void *arg;
	enum pack_kind pack;
};

struct merge_counts {
	/* files that were merged; files that were not, because they are unreadable or not traces */
	uint64_t files, skipped_files;
	uint64_t events_in, events_out;
	uint64_t filtered; /* events that the filters left out */
	/* added events that name processes without a name; not counted in events_out */
	uint64_t added;
	uint64_t repaired; /* events that were not strict JSON and were rewritten */
	uint64_t others;   /* elements of event lists that are not events, and were left out */
	uint64_t damaged, damaged_bytes, truncated_files;
	uint64_t untimed; /* times that could not be moved because they are not numbers */
	/* values that were left out because their keys look like environment variables */
	uint64_t hidden;
	uint64_t bytes_in, bytes_out;
	bool unrelated_clocks; /* the files' times are years apart */
};

void merge_options_init(struct merge_options *options);

struct merge_path {
	const char *name;
	bool found; /* found in a directory, so it need not be a trace */
};

/* Merges the files. A file that cannot be used is reported and skipped, as long as at least one file can be used. */
ow_status merge_files(struct mem *mem, const struct merge_path *paths, size_t count,
		      const struct merge_options *options, const struct merge_out *out,
		      struct merge_counts *counts, struct ow_error *err);

#endif
