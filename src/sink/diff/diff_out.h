/*
 * diff_out.h: a comparison (`opwatch diff`) as the sinks junit, github and sarif need it: its limits and the lines that became slower, read
 * from the table and the values beside its rows. These sinks write nothing else.
 */
#ifndef SINK_DIFF_OUT_H
#define SINK_DIFF_OUT_H

#include "base/writer.h"
#include "sink/sink.h"

/* A limit, as the table's extra value `limits` gives it. */
struct diff_out_limit {
	struct str text;    /* the limit as the user wrote it: "step_time > 3%" */
	struct str gate;    /* outcome: within, beyond, inconclusive or not_comparable */
	struct str message; /* explanation of the outcome */
};

/* A row of the comparison that takes longer in the new runs and has a line of code. */
struct diff_out_line {
	struct str file, line, op, phase;
	int64_t line_number; /* 0 = unknown */
	int64_t delta_ns;
	struct str message;
};

struct diff_out {
	struct arena arena;
	struct str sentence, conclusion, gate; /* gate: empty if there are no limits */
	int64_t base_step_ns, new_step_ns;
	bool steps;	       /* the values are per step; false: per whole recording */
	struct str metric;     /* metric of samples; empty: the values are times */
	enum column_unit unit; /* unit of the values */
	struct diff_out_limit *limits;
	size_t limit_count, limit_cap;
	struct diff_out_line *lines; /* sorted by difference, the largest first */
	size_t line_count, line_cap;
};

/* Reads a comparison; OW_E_USAGE when the table is not one. The caller calls diff_out_release also after a failure. */
ow_status diff_out_read(struct diff_out *d, const struct table *t, const char *sink,
			struct ow_error *err);
void diff_out_release(struct diff_out *d);

/* Whether a limit is exceeded for certain. */
bool diff_out_is_beyond(const struct diff_out *d);

#endif
