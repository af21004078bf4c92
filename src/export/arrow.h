/*
 * arrow.h: the metadata of Arrow's IPC format (its Schema.fbs, Message.fbs and File.fbs, version 5), made
 * with flat.h. What goes into the bodies is export_arrow.c's.
 */
#ifndef EXPORT_ARROW_H
#define EXPORT_ARROW_H

#include "base/arena.h"
#include "export/flat.h"
#include "relation/relation.h"

struct arrow_field {
	const char *name;
	const struct relation_column *column;
	int64_t dictionary; /* its id, or -1 */
};

struct arrow_node {
	int64_t length, nulls;
};

struct arrow_buffer {
	int64_t offset, length; /* in the body */
};

/* Where a message is in a file. */
struct arrow_block {
	int64_t offset;
	int32_t meta_length; /* with what is before it */
	int32_t pad;
	int64_t body_length;
};

struct arrow_batch {
	int64_t length;
	const struct arrow_node *nodes;
	size_t node_count;
	const struct arrow_buffer *buffers;
	size_t buffer_count;
	bool zstd;
	int64_t body_length;
	int64_t dictionary; /* of which this is the content, or -1 */
};

/* Each gives a whole flatbuffer; ptr is NULL when there was no memory. */
struct str arrow_schema_message(struct flat *f, const struct arrow_field *fields, size_t count);
struct str arrow_batch_message(struct flat *f, const struct arrow_batch *batch);
struct str arrow_footer(struct flat *f, const struct arrow_field *fields, size_t count,
			const struct arrow_block *dictionaries, size_t dictionary_count,
			const struct arrow_block *batches, size_t batch_count);

#endif
