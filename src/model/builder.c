/*
 * builder.c: grows the tables of a model that is being built, and keeps the first failure of a build. Every importer
 * and the live recorder call it. intern.c finds rows that exist already, notes.c adds notes and facts, and freeze.c
 * sorts and checks; this file does not interpret rows.
 */
#include "model/builder.h"

#include "model/backing.h"

ow_status builder_fail(struct builder *b, ow_status status)
{
	if (b->status == OW_OK)
		b->status = status;
	return status;
}

ow_status builder_no_memory(struct builder *b)
{
	if (b->status == OW_OK)
		b->status = error_no_memory(b->err);
	return b->status;
}

struct table_head {
	uint32_t count, cap;
};

static struct table_head *table_of(struct model *m, enum table_id table)
{
	return (struct table_head *)(void *)((char *)m + model_tables[table].offset);
}

static void **column_of(struct table_head *head, const struct column_info *column)
{
	return (void **)(void *)((char *)head + column->offset);
}

/* Resizes a column; one that lies in a file is copied to its own memory. */
static void *resize_column(struct model *m, void *column, size_t old_size, size_t size, bool zero)
{
	void *moved;

	if (!backing_has(m, column))
		return (zero ? mem_realloc_zero : mem_realloc)(m->mem, column, old_size, size);
	OW_ASSERT(column); /* the column lies in the file */
	moved = (zero ? mem_zalloc : mem_alloc)(m->mem, size);
	if (moved)
		memcpy(moved, column, MIN(old_size, size));
	return moved;
}

/* Grows every allocated column to the new capacity. A failure half-way leaves some columns larger than the old cap:
 * they are cut back, and cap stays true for all. */
static bool grow_columns(struct builder *b, const struct table_info *info, struct table_head *head,
			 uint32_t cap)
{
	struct mem *mem = b->m->mem;
	uint32_t c;

	for (c = 0; c < info->column_count; c++) {
		void **column = column_of(head, &info->columns[c]);
		size_t size = info->columns[c].size;
		void *moved;

		if (!*column && (info->columns[c].need != NEED_ALWAYS || !cap))
			continue;
		/* RARE and DEFERRED columns must read as zero where nothing was written */
		moved = resize_column(b->m, *column, (size_t)head->cap * size, (size_t)cap * size,
				      info->columns[c].need != NEED_ALWAYS);
		if (!moved)
			break;
		*column = moved;
		if (!head->cap)
			memset(moved, 0, size); /* the nil row */
	}
	if (c == info->column_count)
		return true;
	while (c--) {
		void **column = column_of(head, &info->columns[c]);
		size_t size = info->columns[c].size;
		void *cut;

		if (!*column)
			continue;
		if (!head->cap) {
			mem_free(mem, *column, (size_t)cap * size);
			*column = NULL;
			continue;
		}
		cut = mem_realloc(mem, *column, (size_t)cap * size, (size_t)head->cap * size);
		OW_ASSERT(cut);
		*column = cut;
	}
	return false;
}

bool builder_grow(struct builder *b, enum table_id table, uint32_t more)
{
	const struct table_info *info = &model_tables[table];
	struct table_head *head = table_of(b->m, table);
	uint64_t need = (uint64_t)MAX(head->count, 1u) + more;
	uint64_t cap = head->cap + head->cap / 2;

	if (b->status != OW_OK)
		return false;
	if (need > UINT32_MAX) {
		builder_fail(b, error_set(b->err, OW_E_LIMIT,
					  "more than 4 billion rows in table %s", info->name));
		return false;
	}
	if (need <= head->cap) { /* room was reserved more than once for the same rows */
		head->count = MAX(head->count, 1u);
		return true;
	}
	cap = MAX(cap, need);
	cap = MAX(cap, 16);
	cap = MIN(cap, UINT32_MAX);
	if (!grow_columns(b, info, head, (uint32_t)cap) &&
	    (cap == need || !grow_columns(b, info, head, (uint32_t)(cap = need)))) {
		builder_no_memory(b);
		return false;
	}
	head->cap = (uint32_t)cap;
	if (!head->count)
		head->count = 1;
	return true;
}

void builder_reserve(struct builder *b, enum table_id table, uint32_t more)
{
	struct table_head *head = table_of(b->m, table);
	uint64_t need = (uint64_t)head->count + more;

	if (b->status != OW_OK || need <= head->cap || need > UINT32_MAX)
		return;
	if (grow_columns(b, &model_tables[table], head, (uint32_t)need))
		head->cap = (uint32_t)need;
}

/* Prepares a builder. Every table starts with its nil row, so lookups of nil ids always work. */
void builder_init(struct builder *b, struct model *m, struct ow_error *err)
{
	*b = (struct builder){ .m = m, .err = err };
	for (int table = 0; table < TABLE_COUNT; table++)
		if (!table_of(m, (enum table_id)table)->cap)
			builder_grow(b, (enum table_id)table, 0);
}

bool builder_need_column(struct builder *b, enum table_id table, size_t column_offset)
{
	const struct table_info *info = &model_tables[table];
	struct table_head *head = table_of(b->m, table);

	for (uint32_t c = 0; c < info->column_count; c++) {
		void **column = column_of(head, &info->columns[c]);

		if (info->columns[c].offset != column_offset)
			continue;
		if (!*column)
			*column = mem_zalloc(b->m->mem, (size_t)head->cap * info->columns[c].size);
		if (!*column)
			builder_no_memory(b);
		return *column != NULL;
	}
	return false;
}

source_id builder_new_source(struct builder *b, const struct source_row *row)
{
	source_id id = builder_add_source(b, row);

	if (id.v)
		b->source = id;
	return id;
}
