/*
 * work.h: the part of a push that takes time: several threads, each with connections of its own, that send
 * the batches which nodes do not have as they should. Made and looked at by push.c.
 */
#ifndef PUSH_WORK_H
#define PUSH_WORK_H

#include "push/claim.h"
#include "push/nodes.h"

#include <pthread.h>
#include <stdatomic.h>

struct work {
	const struct push_options *options;
	const struct plan *plan;
	struct nodes *nodes;
	struct claim *claim; /* NULL before it is taken */
	struct mem *mem;
	struct push_summary *summary;
	atomic_uint next;		/* batch */
	atomic_uint_fast64_t rows_done; /* of all batches, each node of a shard counted */
	uint64_t rows_total;
	atomic_bool stop;     /* something failed, or the caller cancelled */
	pthread_mutex_t lock; /* of what follows, the summary and the caller's functions */
	ow_status status;
	struct error error; /* the first one */
};

void work_init(struct work *work, const struct push_options *options, struct mem *mem,
	       struct push_summary *summary);
void work_release(struct work *work);

/* For http_options.cancelled; also gives signs of life and tells progress. */
bool work_cancelled(void *work);
/* Why, when a statement ended with OW_E_INTERRUPTED. */
ow_status work_why(struct work *work, struct error *err);

/* A connection to a node for statements of push.c or of a worker. */
ow_status work_open(struct work *work, const struct address *address, struct click *click,
		    struct error *err);

/* Sends every batch that a node has not got. */
ow_status work_run(struct work *work, struct error *err);

#endif
