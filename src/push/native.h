/*
 * native.h: rows of a table in ClickHouse's format Native: blocks of columns, each with its name and type, numbers as they are in
 * memory. The server reads it several times faster than JSON, because it need not parse. push.c decides which rows go where.
 */
#ifndef PUSH_NATIVE_H
#define PUSH_NATIVE_H

#include "base/buf.h"
#include "relation/relation.h"

/* Columns before those of the relation: the push and the batch that the row belongs to. */
#define NATIVE_PUSH "opwatch_push"
#define NATIVE_BATCH "opwatch_batch"

/* The ClickHouse type of a column, "Nullable(Int64)"; a string literal. */
const char *native_type(const struct table_column *column);
/* Whether a column may be NULL: all but `run` and `id` may. */
bool native_nullable(const struct table_column *column);

#define NATIVE_ROWS 16384 /* rows of a block */

/* Produces the bytes of rows, block by block. There is one for each connection; it can be used again. */
struct native {
	struct mem *mem;
	struct arena scratch;
	struct table_memo memo; /* memo for the rows of a block */
	struct buf block;
	size_t taken; /* bytes of the block that were returned so far */
	void *values;
	uint64_t *valid;
	/* The rows to produce. */
	const struct table *table;
	uint32_t part;
	uint64_t next, end; /* range of rows */
	uint64_t push;
	uint32_t batch;
	struct ow_error *err; /* receives the reason of a failure */
};

ow_status native_init(struct native *native, struct mem *mem, struct ow_error *err);
void native_release(struct native *native);

void native_start(struct native *native, const struct table *table, uint32_t part, uint64_t first,
		  uint64_t rows, uint64_t push, uint32_t batch, struct ow_error *err);

/* An http_body_fn that returns the next bytes. */
size_t native_take(void *native, void *to, size_t cap);

#endif
