/*
 * jobtext.h: a running job as text: the lines of `opwatch top`, on a screen of any size, as plain text, and as JSON. Knows
 * nothing of terminals but how many columns there are and whether they have colours.
 */
#ifndef CLI_JOBTEXT_H
#define CLI_JOBTEXT_H

#include "base/buf.h"

/* "52.1 ms": three digits and a unit, in `size` bytes; "-" for what is not known. */
void jobtext_time(char *to, size_t size, int64_t ns);

enum job_order {
	ORDER_NAME,
	ORDER_STEP,
	ORDER_TREND,
	ORDER_INPUT,
	ORDER_WAIT,
	ORDER_CPU,
	JOB_ORDERS
};
extern const char *const job_order_names[JOB_ORDERS];
/* For qsort of struct ow_job; `order` says by what. */
void jobtext_sort(struct ow_job *jobs, size_t count, enum job_order order);

struct jobtext {
	struct buf *to; /* lines with \n */
	uint32_t width;
	bool colour;
};

/* The table: its head, and a row. */
void jobtext_head(const struct jobtext *t, enum job_order order);
void jobtext_row(const struct jobtext *t, const struct ow_job *job, bool selected);
/* All of one job in at most so many lines. */
void jobtext_detail(const struct jobtext *t, const struct ow_job *job, uint32_t lines);
/* What the letters and colours of the bar mean. */
void jobtext_legend(const struct jobtext *t);

/* An array of objects. */
void jobtext_json(struct buf *to, const struct ow_job *jobs, size_t count);

/* Part of the step: of phases with such a name. */
double job_share(const struct ow_job *job, const char *phase);

#endif
