/*
 * nsys_stats.h: the reports of `nsys stats`, with the same columns, names and rounding, from any model that has kernels, calls of a device's
 * library, ranges or calls of the operating system; so also from traces of PyTorch. Called by api/nsys_stats.c. Numbers are texts of
 * digits, because their rounding is part of the report.
 */
#ifndef ANALYZE_NSYS_STATS_H
#define ANALYZE_NSYS_STATS_H

#include "analyze/view.h"

struct nsys_report {
	const char *name, *old_name; /* name of the report in newer and in older versions of nsys */
	const char *title;
	const char *total, *count, *label; /* column headings that differ between reports */
	bool style;			   /* the report has a column with the style of a range */
	bool bytes;			   /* the report sums megabytes, not times */
	bool launches;			   /* the report is about launches: four times for each */
};

extern const struct nsys_report nsys_reports[];
extern const size_t nsys_report_count;
const struct nsys_report *nsys_report_find(const char *name);

ow_status nsys_report_run(struct model *m, const struct nsys_report *report,
			  const struct view_options *options, struct table *out,
			  struct ow_error *err);

/* Declarations that nsys_stats.c and nsys_groups.c share. */

/* parts of a launch: total, call, queue, kernel; other reports have one part */
#define NSYS_PARTS 4

/* A group of rows that a report counts together. */
struct nsys_group {
	uint32_t key[5];	/* key of the group; its meaning depends on the report */
	struct str label, call; /* texts in the scratch arena or in the model */
	int64_t pid, tid, device;
	bool start_end;
};

struct nsys_value {
	uint32_t slot; /* group × NSYS_PARTS + part */
	int64_t value;
};

struct nsys_groups {
	const struct model *m;
	struct event_filter filter;
	struct mem *mem;
	struct arena scratch;
	struct ow_error *err;
	struct map map;
	struct nsys_group *list; /* groups; item 0 is unused */
	size_t count, cap;
	struct nsys_value *values;
	size_t value_count, value_cap;
	bool long_names; /* for copies: the name is Host-to-Device, not HtoD */
};

#endif
