/*
 * jobtext.h: a running job as text: the lines of `opwatch top`, on a screen of any size, as plain text, and as JSON. Of the
 * terminal it uses only the width and whether it has colours.
 */
#ifndef CLI_JOBTEXT_H
#define CLI_JOBTEXT_H

#include "base/buf.h"

#include <opwatch/live.h>

/* Writes a time such as "52.1 ms": three digits and a unit, in `size` bytes; "-" if unknown. */
void jobtext_time(char *to, size_t size, int64_t ns);

enum job_order {
	ORDER_NAME,
	ORDER_STEP,
	ORDER_THROUGHPUT,
	ORDER_TREND,
	ORDER_INPUT,
	ORDER_WAIT, /* sort by time waiting for other ranks */
	ORDER_CPU,
	ORDER_QUEUE, /* sort by time waiting for a processor */
	ORDER_MEMORY,
	ORDER_READ,
	ORDER_WRITTEN,
	JOB_ORDERS
};

/* Resources that the processes of a job use together; unknown values are negative. */
struct job_use {
	/* name of the user; "" if unknown; "+" is appended if there are other users */
	char user[33];
	double wait; /* threads that wait for a processor */
	int64_t memory;
	double read_rate, write_rate;
};
/* Adds the resources of one process; begin with { .wait = -1, .memory = -1, .read_rate = -1,
 * .write_rate = -1 }. */
void job_use_add(struct job_use *use, const struct ow_process *process);
#define JOB_USE_NONE                                                                               \
	(struct job_use)                                                                           \
	{                                                                                          \
		.wait = -1, .memory = -1, .read_rate = -1, .write_rate = -1                        \
	}
/* Returns the steps per second of the first rank or process that takes steps; negative if there
 * are none. */
double job_throughput(const struct ow_job *job);
extern const char *const job_order_names[JOB_ORDERS];
/* Sorts jobs together with their resources, the largest first, or the smallest. */
void jobtext_sort(struct ow_job *jobs, struct job_use *uses, size_t count, enum job_order order,
		  bool reverse);

struct jobtext {
	struct buf *to; /* lines that end with \n */
	uint32_t width;
	bool colour;
};

/* Write the head and a row of the table. */
void jobtext_head(const struct jobtext *t, enum job_order order);
void jobtext_row(const struct jobtext *t, const struct ow_job *job, const struct job_use *use,
		 bool selected);
/* Writes one job in at most this many lines: its state, phases, ranks and last steps. Returns
 * the number of lines. */
uint32_t jobtext_detail(const struct jobtext *t, const struct ow_job *job, uint32_t lines);
/* Writes the operations with their head, in at most this many lines. */
void jobtext_ops(const struct jobtext *t, const struct ow_job *job, uint32_t lines);
/* Writes the meaning of the letters and colours of the bar. */
void jobtext_legend(const struct jobtext *t);

/* Writes the members of one job's JSON object, without its braces. */
void jobtext_json(struct buf *to, const struct ow_job *job, const struct job_use *use);

/* Text in at most this many columns, with blanks up to there if `pad`. What could drive the terminal or turn the direction
 * of text is escaped: \x1b, \u202e. */
void jobtext_add(struct buf *to, struct str text, size_t columns, bool pad);
void jobtext_right(struct buf *to, const char *text, size_t columns);
/* Writes numbers as a picture of one line, the newest at the right; a full block is `most`, or with 0 the
 * largest number, at least 1. */
void jobtext_spark(const struct jobtext *t, const double *values, size_t count, double most,
		   size_t columns);

/* Returns the share of the step that a phase takes; -1 if unknown. */
double job_share(const struct ow_job *job, const char *phase);

#endif
