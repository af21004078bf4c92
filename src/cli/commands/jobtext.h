/*
 * jobtext.h: a running job as text: the lines of `opwatch top`, on a screen of any size, as plain text, and as JSON. Of the
 * terminal it uses only the width and whether it has colours.
 */
#ifndef CLI_JOBTEXT_H
#define CLI_JOBTEXT_H

#include "base/buf.h"

#include <opwatch/live.h>

/* "52.1 ms": three digits and a unit, in `size` bytes; "-" for what is not known. */
void jobtext_time(char *to, size_t size, int64_t ns);

enum job_order {
	ORDER_NAME,
	ORDER_STEP,
	ORDER_THROUGHPUT,
	ORDER_TREND,
	ORDER_INPUT,
	ORDER_WAIT, /* for other ranks */
	ORDER_CPU,
	ORDER_QUEUE, /* for a processor */
	ORDER_MEMORY,
	ORDER_READ,
	ORDER_WRITTEN,
	JOB_ORDERS
};

/* What the processes of a job use together; unknown is negative. */
struct job_use {
	char user[33]; /* "" when unknown; "+" is appended when there are other users */
	double wait;   /* for a processor */
	int64_t memory;
	double read_rate, write_rate;
};
/* Adds one process; begin with { .wait = -1, .memory = -1, .read_rate = -1, .write_rate = -1 }. */
void job_use_add(struct job_use *use, const struct ow_process *process);
#define JOB_USE_NONE                                                                               \
	(struct job_use)                                                                           \
	{                                                                                          \
		.wait = -1, .memory = -1, .read_rate = -1, .write_rate = -1                        \
	}
/* Steps per second of the first rank, or process, that takes steps; negative when there are none. */
double job_throughput(const struct ow_job *job);
extern const char *const job_order_names[JOB_ORDERS];
/* Sorts jobs, and what they use with them. The largest comes first, or the smallest. */
void jobtext_sort(struct ow_job *jobs, struct job_use *uses, size_t count, enum job_order order,
		  bool reverse);

struct jobtext {
	struct buf *to; /* lines with \n */
	uint32_t width;
	bool colour;
};

/* The table: its head, and a row. */
void jobtext_head(const struct jobtext *t, enum job_order order);
void jobtext_row(const struct jobtext *t, const struct ow_job *job, const struct job_use *use,
		 bool selected);
/* One job in at most this many lines: its state, phases, ranks and last steps. Returns the lines. */
uint32_t jobtext_detail(const struct jobtext *t, const struct ow_job *job, uint32_t lines);
/* The operations with their head, at most this many lines. */
void jobtext_ops(const struct jobtext *t, const struct ow_job *job, uint32_t lines);
/* What the letters and colours of the bar mean. */
void jobtext_legend(const struct jobtext *t);

/* The members of one job's object, without its braces. */
void jobtext_json(struct buf *to, const struct ow_job *job, const struct job_use *use);

/* Text in at most this many columns, with blanks up to there if `pad`. What could drive the terminal or turn the direction
 * of text is escaped: \x1b, \u202e. */
void jobtext_add(struct buf *to, struct str text, size_t columns, bool pad);
void jobtext_right(struct buf *to, const char *text, size_t columns);
/* Numbers as a picture of one line, the newest at the right; `most` is a full block, 0: the largest, at least 1. */
void jobtext_spark(const struct jobtext *t, const double *values, size_t count, double most,
		   size_t columns);

/* The share of the step that a phase takes; -1 when it is not known. */
double job_share(const struct ow_job *job, const char *phase);

#endif
