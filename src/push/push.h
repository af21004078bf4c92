/*
 * push.h: writes the rows of one run into the tables of a ClickHouse server or cluster. Readers see all rows or none, also
 * after failures. Called by api/remote.c.
 *
 * Rows are split into batches. Each batch is a partition of its table on the nodes of one shard, and its number of rows is
 * known before it is sent. A batch that failed, or of which the server has another number of rows, is dropped and
 * sent again. So a repeated push continues where a killed one stopped. When all batches are complete, one row in
 * opwatch_publish makes the run visible: users query views, and the views show published pushes only
 * (docs/clickhouse.md).
 */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include "base/paths.h"
#include "push/click.h"
#include "relation/relation.h"

struct push_options {
	struct address address;
	const char *password;
	const char *cluster; /* NULL: the one server */
	struct ow_list
		nodes; /* HOST[:PORT] of the cluster's nodes, in its order; else as it says */
	struct ow_list tables; /* which ones; none: all */
	const char *run;       /* its name, and what a repeated push is known by */
	const char *content;   /* hash of the inputs */
	uint64_t reading;      /* hash of what else the rows depend on: options of the import */
	uint32_t connections;  /* at once */
	uint32_t batch_rows;
	uint32_t retry_ms; /* how long a node may be away */
	bool await;	   /* the server of the address from the beginning, too */
	bool replace;	   /* another content of the same name may be replaced */
	/* Called now and then, from any thread but one at a time; false cancels. May be NULL. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	void (*note)(void *arg, const char *line); /* what was repeated, and why; may be NULL */
	void *note_arg;
};

struct push_summary {
	uint64_t rows; /* of the run */
	uint64_t sent; /* of these, sent by this call, each node of a shard counted */
	uint32_t batches, batches_found; /* found: there already */
	uint32_t repeats;		 /* batches that had to be sent again */
	uint32_t nodes, shards, tables;
	bool published_before; /* nothing was left to do */
	bool replaced;	       /* an older push of the same name */
};

ow_status push_run(struct model *m, const struct push_options *options, struct mem *mem,
		   struct push_summary *summary, struct ow_error *err);

#define CONTENT_HEX 32 /* digits */

/* content.c: the hash of the bytes of files, for push_options.content. */
ow_status content_hash(const struct path_list *list, struct mem *mem, char hex[CONTENT_HEX + 1],
		       struct ow_error *err);

#endif
