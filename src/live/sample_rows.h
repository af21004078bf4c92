/*
 * sample_rows.h: sampled stacks as rows of the model: one track per thread, samples of the metrics `wall` (how long a
 * thread was there) and `cpu` (how long on a processor).
 */
#ifndef LIVE_SAMPLE_ROWS_H
#define LIVE_SAMPLE_ROWS_H

#include "live/sampler.h"
#include "model/builder.h"

struct sample_rows {
	struct builder *b;
	const struct sampler *sampler;
	struct sample_row_thread *threads; /* 0 is not used */
	size_t count, cap;
	metric_id wall, cpu;
	int64_t period_ns;
	int64_t now_ns; /* set by the caller before a tick */
};

/* Samples belong to b->source. */
void sample_rows_init(struct sample_rows *rows, struct builder *b, const struct sampler *sampler,
		      int64_t period_ns);
void sample_rows_release(struct sample_rows *rows);
/* A py_take_fn; arg is the struct sample_rows. Failures are the builder's. */
void sample_rows_take(void *arg, struct py_process *p, struct py_thread *thread);

#endif
