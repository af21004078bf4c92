/*
 * export_arrow.c: writes files of Arrow's IPC format: a schema, a dictionary for each text column, batches of rows, and
 * a footer with their offsets. A dictionary is written once, before all batches, because many readers require that; so
 * all texts are read before the first file of a group is written. Texts without a dictionary in the table are written
 * directly. The messages are in table/arrow_ipc.h.
 */
#include "base/vec.h"
#include "export/format.h"
#include "table/arrow_ipc.h"

static const char magic[8] = "ARROW1\0";

struct arrow_blocks {
	struct arrow_block *items;
	size_t count, cap;
};

struct arrow_file {
	struct arrow_ipc ipc;
	struct arrow_blocks dictionaries, batches;
};

/* Reads the columns that have dictionaries, to collect their texts. */
static ow_status collect_texts(struct export_table *table, struct arrow_file *a,
			       struct ow_error *err)
{
	bool skip[TABLE_COLUMNS_MAX];
	struct rows rows;
	ow_status status;

	memset(skip, true, sizeof(skip));
	for (uint32_t i = 0; i < a->ipc.column_count; i++)
		if (a->ipc.columns[i].has_dictionary)
			skip[a->ipc.columns[i].index] = false;
	OW_TRY(rows_open(&rows, table->t, skip, err));
	status = group_start(&rows, table->group, err);
	while (status == OW_OK && (status = rows_next(&rows, err)) == OW_OK && rows.n) {
		status = arrow_ipc_collect(&a->ipc, &rows, err);
		if (status == OW_OK)
			status = export_progress(table, err);
	}
	rows_close(&rows);
	return status;
}

static ow_status prepare(struct export_table *table, struct ow_error *err)
{
	struct arrow_file *a = mem_zalloc(table->t->mem, sizeof(*a));

	if (!a)
		return error_no_memory(err);
	table->state = a;
	OW_TRY(arrow_ipc_init(&a->ipc, &table->rows, table->names, true,
			      table->packing == PACKING_ZSTD, err));
	return collect_texts(table, a, err);
}

static void release(struct export_table *table)
{
	struct arrow_file *a = table->state;
	struct mem *mem = table->t->mem;

	if (!a)
		return;
	arrow_ipc_release(&a->ipc);
	mem_free(mem, a->dictionaries.items, a->dictionaries.cap * sizeof(*a->dictionaries.items));
	mem_free(mem, a->batches.items, a->batches.cap * sizeof(*a->batches.items));
	mem_free(mem, a, sizeof(*a));
	table->state = NULL;
}

/* Stores the offset of a message for the footer, and writes the buffered bytes. */
static ow_status note_block(struct export_table *table, struct arrow_blocks *blocks,
			    struct arrow_block block, struct ow_error *err)
{
	if (!block.meta_length)
		return OW_OK;
	block.offset += (int64_t)table->stream.taken;
	if (!vec_push(table->t->mem, blocks->items, blocks->count, blocks->cap, block))
		return error_no_memory(err);
	return stream_flush(&table->stream, err);
}

static ow_status begin(struct export_table *table, struct ow_error *err)
{
	struct arrow_file *a = table->state;
	struct buf *to = &table->stream.in;

	a->ipc.rows = 0;
	a->dictionaries.count = a->batches.count = 0;
	buf_add(to, magic, sizeof(magic));
	OW_TRY(arrow_ipc_schema(&a->ipc, to, err));
	for (uint32_t i = 0; i < a->ipc.column_count; i++) {
		struct arrow_block block;

		if (!a->ipc.columns[i].has_dictionary)
			continue;
		OW_TRY(arrow_ipc_dictionary(&a->ipc, i, to, &block, err));
		OW_TRY(note_block(table, &a->dictionaries, block, err));
	}
	return OW_OK;
}

static ow_status flush_batch(struct export_table *table, struct ow_error *err)
{
	struct arrow_file *a = table->state;
	struct arrow_block block;

	OW_TRY(arrow_ipc_flush(&a->ipc, &table->stream.in, &block, err));
	return note_block(table, &a->batches, block, err);
}

static ow_status block(struct export_table *table, struct ow_error *err)
{
	struct arrow_file *a = table->state;
	bool full = false;

	OW_TRY(arrow_ipc_add(&a->ipc, &table->rows, &full, err));
	return full ? flush_batch(table, err) : OW_OK;
}

static ow_status end(struct export_table *table, struct ow_error *err)
{
	struct arrow_file *a = table->state;
	struct buf *to = &table->stream.in;

	OW_TRY(flush_batch(table, err));
	arrow_ipc_end_stream(to);
	OW_TRY(arrow_ipc_footer(&a->ipc, to, a->dictionaries.items, a->dictionaries.count,
				a->batches.items, a->batches.count, err));
	buf_add(to, magic, 6);
	return OW_OK;
}

const struct export_format export_arrow = {
	.name = "arrow",
	.extension = ".arrow",
	.doc = "Arrow's IPC file format (Feather 2)",
	.packings = 1u << PACKING_NONE | 1u << PACKING_ZSTD,
	.usual = PACKING_NONE,
	.packs_itself = true,
	.prepare = prepare,
	.begin = begin,
	.block = block,
	.end = end,
	.release = release,
};
