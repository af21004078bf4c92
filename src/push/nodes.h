/*
 * nodes.h: the servers that a push writes to: the one of the address, or all of a cluster, as the table
 * system.clusters of the former has them; and what each of them holds of a push. system.clusters does not
 * know ports for HTTP: those are taken to be the same everywhere, unless the caller names the nodes.
 */
#ifndef PUSH_NODES_H
#define PUSH_NODES_H

#include "push/plan.h"

struct node {
	struct address address;
	uint32_t shard; /* from 0 */
	uint64_t *rows; /* per batch of the plan: what the node has of it */
};

struct nodes {
	struct mem *mem;
	struct arena arena;
	struct node *items;
	uint32_t count, shard_count;
	uint32_t *slots; /* shards, each as often as its weight says */
	uint32_t slot_count;
};

/* Asks the server at the address; `entry` is a connection to it. */
ow_status nodes_find(struct nodes *nodes, struct click *entry, const struct push_options *options,
		     struct mem *mem, struct error *err);
void nodes_release(struct nodes *nodes);

/* The shard of a batch: one after the other. */
static inline uint32_t nodes_shard(const struct nodes *nodes, uint32_t batch)
{
	return nodes->slots[batch % nodes->slot_count];
}

/* What a node has of each batch, from its system.parts. Partitions of the push that are no batches of the
 * plan, or not of this shard, are counted in *strange. */
ow_status nodes_look(struct nodes *nodes, uint32_t node, const struct plan *plan,
		     struct click *click, uint32_t *strange, struct error *err);

/* Drops what the node has of a push, or of one batch of it. */
ow_status nodes_drop(const struct plan *plan, uint64_t push, struct click *click,
		     struct error *err);
ow_status nodes_drop_batch(const struct plan *plan, uint32_t batch, struct click *click,
			   struct error *err);

/* Ends insertions of the push (of one batch: a prefix of their query_id) that still run, and waits until
 * they are gone: what they would write must not come after the drop. */
ow_status nodes_settle(struct click *click, const char *prefix, struct error *err);

#endif
