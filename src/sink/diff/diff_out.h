/*
 * diff_out.h: a comparison (`opwatch diff`) as the sinks junit, github and sarif need it: its limits and the lines that became slower, read
 * from the table and the values beside its rows. These sinks write nothing else.
 */
#ifndef SINK_DIFF_OUT_H
#define SINK_DIFF_OUT_H

#include "base/writer.h"
#include "sink/sink.h"

/* A limit, as `limits` beside the rows says it. */
struct diff_out_limit {
	struct str text;    /* "step_time > 3%" */
	struct str gate;    /* within, beyond, inconclusive, not_comparable */
	struct str message; /* what came out */
};

/* A row that takes longer, with a line of code. */
struct diff_out_line {
	struct str file, line, op, phase;
	int64_t line_number; /* 0: unknown */
	int64_t delta_ns;
	struct str message;
};

struct diff_out {
	struct arena arena;
	struct str sentence, conclusion, gate; /* gate: empty without limits */
	int64_t base_step_ns, new_step_ns;
	bool steps;	       /* these are steps; else whole recordings */
	struct str metric;     /* of samples; empty: time */
	enum column_unit unit; /* of the values */
	struct diff_out_limit *limits;
	size_t limit_count, limit_cap;
	struct diff_out_line *lines; /* the largest difference first */
	size_t line_count, line_cap;
};

/* OW_E_USAGE when the table is not a comparison. diff_out_release is due in any case. */
ow_status diff_out_read(struct diff_out *d, const struct table *t, const char *sink,
			struct ow_error *err);
void diff_out_release(struct diff_out *d);

/* Whether a limit is exceeded for certain. */
bool diff_out_is_beyond(const struct diff_out *d);

#endif
