/*
 * native.h: rows of a table in ClickHouse's format Native: blocks of columns, each with its name and type, numbers as they are in
 * memory. The server reads it several times faster than JSON, because it need not parse. push.c decides which rows go where.
 */
#ifndef PUSH_NATIVE_H
#define PUSH_NATIVE_H

#include "base/buf.h"
#include "relation/relation.h"

/* Columns before those of the relation: which push and which batch the row belongs to. */
#define NATIVE_PUSH "opwatch_push"
#define NATIVE_BATCH "opwatch_batch"

/* "Nullable(Int64)": a literal. */
const char *native_type(const struct table_column *column);
/* `run` and `id` are always there; anything else may be unknown. */
bool native_nullable(const struct table_column *column);

#define NATIVE_ROWS 16384 /* of a block */

/* Makes the bytes of some rows, block by block. One per connection; may be used again. */
struct native {
	struct mem *mem;
	struct arena scratch;
	struct table_memo memo; /* of the rows of a block */
	struct buf block;
	size_t taken; /* bytes of the block that were handed out */
	void *values;
	uint64_t *valid;
	/* what is made */
	const struct table *table;
	uint32_t part;
	uint64_t next, end; /* rows */
	uint64_t push;
	uint32_t batch;
	struct ow_error *err; /* of a failure */
};

ow_status native_init(struct native *native, struct mem *mem, struct ow_error *err);
void native_release(struct native *native);

void native_start(struct native *native, const struct table *table, uint32_t part, uint64_t first,
		  uint64_t rows, uint64_t push, uint32_t batch, struct ow_error *err);

/* An http_body_fn. */
size_t native_take(void *native, void *to, size_t cap);

#endif
