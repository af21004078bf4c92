/*
 * nodes.h: the servers that a push writes to, and the batches that each of them has. It is either the server of the
 * address alone, or all servers of a cluster according to system.clusters. That table has no HTTP ports: the port of
 * the address is used for all nodes, unless the caller lists the nodes.
 */
#ifndef PUSH_NODES_H
#define PUSH_NODES_H

#include "push/plan.h"

struct node {
	struct address address;
	uint32_t shard; /* number of the shard, from 0 */
	uint64_t *rows; /* for each batch of the plan: the number of its rows that the node has */
};

struct nodes {
	struct mem *mem;
	struct arena arena;
	struct node *items;
	uint32_t count, shard_count;
	uint32_t *slots; /* numbers of shards, each repeated as often as its weight says */
	uint32_t slot_count;
};

/* Finds the nodes by asking the server at the address; `entry` is a connection to it. */
ow_status nodes_find(struct nodes *nodes, struct click *entry, const struct push_options *options,
		     struct mem *mem, struct ow_error *err);
void nodes_release(struct nodes *nodes);

/* The shard of a batch; batches are distributed over the shards in turn. */
static inline uint32_t nodes_shard(const struct nodes *nodes, uint32_t batch)
{
	return nodes->slots[batch % nodes->slot_count];
}

/* Counts the rows of each batch that a node has. *strange counts batches of the push that are not in the plan, or
 * belong to another shard. */
ow_status nodes_list_batches(struct nodes *nodes, uint32_t node, const struct plan *plan,
			     struct click *click, uint32_t *strange, struct ow_error *err);

/* Counts the rows of a batch that a node has. */
ow_status nodes_count_batch(const struct plan *plan, uint32_t batch, struct click *click,
			    uint64_t *rows, struct ow_error *err);

/* Deletes the rows of a push, or of one batch of it, on a node, and waits until they are gone. */
ow_status nodes_drop(const struct plan *plan, uint64_t push, struct click *click,
		     struct ow_error *err);
ow_status nodes_drop_batch(const struct plan *plan, uint32_t batch, struct click *click,
			   struct ow_error *err);

/* Ends insertions of the push (or of one batch: `prefix` is the beginning of their query_id) that still run, and
 * waits until they are gone, because they must not write after the deletion. */
ow_status nodes_await_inserts(struct click *click, const char *prefix, struct ow_error *err);

#endif
