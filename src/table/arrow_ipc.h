/*
 * arrow_ipc.h: rows of any table in Arrow's IPC format (version 5): the metadata (Schema.fbs, Message.fbs, File.fbs,
 * written as FlatBuffers) and the bodies of batches. Used by the sink arrow, which writes a stream, and by the export
 * arrow, which writes a file with dictionaries. Arrow's C data interface is table/arrow_c.h.
 *
 *	arrow_ipc_init(&a, &rows, NULL, false, false, err);
 *	arrow_ipc_schema(&a, &buf, err);
 *	for each block of rows:
 *		arrow_ipc_add(&a, &rows, &full, err);
 *		if (full)
 *			arrow_ipc_flush(&a, &buf, &block, err);
 *	arrow_ipc_flush(&a, &buf, &block, err);
 *	arrow_ipc_end_stream(&buf);
 *	arrow_ipc_release(&a);
 */
#ifndef TABLE_ARROW_IPC_H
#define TABLE_ARROW_IPC_H

#include "base/map.h"
#include "table/rows.h"
#include "wire/container/pack.h"

/* A small writer of FlatBuffers. It grows from the end to the beginning: an object is written before the references
 * to it. Places are distances from the end. A failed allocation is remembered. */
#define FLAT_SLOTS 8

struct flat {
	struct mem *mem;
	unsigned char *ptr;
	size_t cap, len;
	bool failed;
	uint32_t slots[FLAT_SLOTS]; /* places of the fields of the open table; 0 = absent */
	size_t table;		    /* length of the buffer when the open table was begun */
};

struct arrow_node {
	int64_t length, nulls;
};

struct arrow_buffer {
	int64_t offset, length; /* range in the body */
};

/* The position of a message in a file. */
struct arrow_block {
	int64_t offset;
	int32_t meta_length; /* length with its 8-byte prefix */
	int32_t pad;
	int64_t body_length;
};

/* The texts of a column in some rows, numbered from 0: codes of the dictionaries of all runs become numbers in one
 * dictionary. */
struct arrow_dictionary {
	struct mem *mem;
	/* for each part, by code: the number + 1, 0 = not met; NULL = none met */
	uint32_t **numbers;
	struct str *texts;
	size_t count, cap;
	struct map map; /* text → number + 1 */
};

/* Values of a column that are collected for the next batch. */
struct arrow_column {
	const char *name;
	const struct table_column *c;
	uint32_t index; /* index of the column in the table */
	struct buf values, offsets, valid;
	int64_t nulls;
	struct arrow_dictionary dictionary;
	bool has_dictionary;
};

struct arrow_ipc {
	struct mem *mem;
	const struct table *t;
	struct arrow_column *columns;
	uint32_t column_count;
	int64_t rows; /* number of rows in the columns */
	bool pack;    /* compress the bodies with zstd */
	struct flat meta;
	struct buf body, packed;
	struct zstd_packer zstd;
	struct arrow_node *nodes;
	struct arrow_buffer *buffers;
	size_t buffer_count;
};

/* Prepares the columns of `rows`; `names` are those of all columns of the table, NULL = their own. With dictionaries,
 * columns of texts that have one in the table are written as numbers, and arrow_ipc_collect must get all rows first.
 * The caller releases `a` in any case.
 */
ow_status arrow_ipc_init(struct arrow_ipc *a, const struct rows *rows, const char *const *names,
			 bool dictionaries, bool pack, struct ow_error *err);
void arrow_ipc_release(struct arrow_ipc *a);

/* Collects the texts of a block; rows has the columns with dictionaries only, in their order. */
ow_status arrow_ipc_collect(struct arrow_ipc *a, const struct rows *rows, struct ow_error *err);

/* Append messages. *block is set to the position of the message, counted from the previous length of `to`. */
ow_status arrow_ipc_schema(struct arrow_ipc *a, struct buf *to, struct ow_error *err);
ow_status arrow_ipc_dictionary(struct arrow_ipc *a, uint32_t column, struct buf *to,
			       struct arrow_block *block, struct ow_error *err);
/* Appends the rows that were added; block->meta_length is 0 when there were none. */
ow_status arrow_ipc_flush(struct arrow_ipc *a, struct buf *to, struct arrow_block *block,
			  struct ow_error *err);
void arrow_ipc_end_stream(struct buf *to);
ow_status arrow_ipc_footer(struct arrow_ipc *a, struct buf *to,
			   const struct arrow_block *dictionaries, size_t dictionary_count,
			   const struct arrow_block *batches, size_t batch_count,
			   struct ow_error *err);

/* Adds the rows of a block; *full: the caller should flush. */
ow_status arrow_ipc_add(struct arrow_ipc *a, const struct rows *rows, bool *full,
			struct ow_error *err);

#endif
