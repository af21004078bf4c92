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
	const char *cluster; /* NULL: a single server */
	/* nodes: HOST[:PORT] of the cluster's nodes, in its order; empty: as system.clusters lists them */
	struct ow_list nodes;
	struct ow_list tables; /* names of the tables to push; empty: all */
	const char *run;       /* name of the run, by which a repeated push is recognised */
	const char *content;   /* hash of the inputs */
	/* hash of everything else that the rows depend on: options of the import */
	uint64_t reading;
	uint32_t connections; /* number of concurrent connections */
	uint32_t batch_rows;
	uint32_t retry_ms; /* how long a node may be unreachable */
	/* wait for the server of the address, too, even if it has never answered */
	bool await;
	bool replace; /* replace other content that was published under the same name */
	/* Called now and then, from any thread but never concurrently; returns false to cancel. May be NULL. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	/* receives a line about each repetition and its reason; may be NULL */
	void (*note)(void *arg, const char *line);
	void *note_arg;
};

struct push_summary {
	uint64_t rows; /* rows of the run */
	uint64_t sent; /* rows sent by this call; a row counts once for each node of its shard */
	uint32_t batches, batches_found; /* batches_found: batches that the servers already had */
	uint32_t repeats;		 /* batches that had to be sent again */
	uint32_t nodes, shards, tables;
	bool published_before; /* the same content was published before: nothing was left to do */
	bool replaced;	       /* an older push of the same name was replaced */
};

ow_status push_run(struct model *m, const struct push_options *options, struct mem *mem,
		   struct push_summary *summary, struct ow_error *err);

#define CONTENT_HEX 32 /* hexadecimal digits of a content hash */

/* content.c: the hash of the bytes of files, for push_options.content. */
ow_status content_hash(const struct path_list *list, struct mem *mem, char hex[CONTENT_HEX + 1],
		       struct ow_error *err);

#endif
