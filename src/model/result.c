/*
 * result.c: see result.h. Columns grow together; a failed growth changes nothing and is remembered in
 * `status`, after which adding rows and setting values do nothing. Knows nothing of what the columns
 * mean.
 */
#include "model/result.h"

#include "model/tree.h"

struct result *result_new(struct mem *mem, const char *name, struct error *err)
{
	struct result *r = mem_zalloc(mem, sizeof(*r));

	if (!r) {
		error_no_memory(err);
		return NULL;
	}
	r->mem = mem;
	r->name = name;
	arena_init(&r->arena, mem);
	return r;
}

static size_t cell_size(const struct result_column *c)
{
	return c->type == RESULT_TEXT || c->type == RESULT_NUMBER ? sizeof(struct str)
								  : sizeof(int64_t);
}

static void free_columns(struct result *r)
{
	for (uint32_t i = 0; i < r->column_count; i++) {
		struct result_column *c = &r->columns[i];

		mem_free(r->mem, c->ints, (size_t)r->row_cap * cell_size(c));
		mem_free(r->mem, c->known, r->row_cap);
	}
	if (r->row_cap)
		mem_free(r->mem, r->depth, (size_t)r->row_cap * sizeof(*r->depth));
}

void result_clear_columns(struct result *r)
{
	free_columns(r);
	r->column_count = r->row_count = r->row_cap = 0;
	r->depth = NULL;
	r->status = OW_OK;
}

void result_free(struct result *r)
{
	if (!r)
		return;
	free_columns(r);
	tree_free(r->tree, r->mem);
	arena_release(&r->arena);
	mem_free(r->mem, r, sizeof(*r));
}

static void fail(struct result *r)
{
	if (r->status == OW_OK)
		r->status = OW_E_NO_MEMORY;
}

uint32_t result_column(struct result *r, const char *name, const char *title, enum result_type type,
		       enum result_unit unit)
{
	OW_ASSERT(r->column_count < RESULT_COLUMNS_MAX && !r->row_cap);
	r->columns[r->column_count] =
		(struct result_column){ .name = name, .title = title, .type = type, .unit = unit };
	return r->column_count++;
}

/* depth points at something from the start, so that a tree without rows is still a tree. */
static uint32_t no_depth[1];

void result_make_tree(struct result *r)
{
	OW_ASSERT(!r->row_cap);
	r->depth = no_depth;
}

static void *larger(struct result *r, const void *old, size_t size, uint32_t rows)
{
	char *fresh = mem_alloc(r->mem, (size_t)rows * size);

	if (!fresh)
		return NULL;
	if (r->row_count)
		memcpy(fresh, old, (size_t)r->row_count * size);
	memset(fresh + (size_t)r->row_count * size, 0, (size_t)(rows - r->row_count) * size);
	return fresh;
}

/* Takes the new arrays and frees the old ones, or the other way round. */
static void settle(struct result *r, struct result_column *old, uint32_t count, uint32_t *depth,
		   uint32_t rows, bool ok)
{
	uint32_t cap = ok ? r->row_cap : rows;

	for (uint32_t i = 0; i < count; i++) {
		struct result_column *c = &r->columns[i];
		struct result_column drop = ok ? old[i] : *c;

		mem_free(r->mem, drop.ints, (size_t)cap * cell_size(c));
		mem_free(r->mem, drop.known, cap);
		if (!ok)
			*c = old[i];
	}
	if (ok && r->depth) {
		if (r->row_cap)
			mem_free(r->mem, r->depth, (size_t)r->row_cap * sizeof(*r->depth));
		r->depth = depth;
	}
	if (ok)
		r->row_cap = rows;
}

bool result_reserve(struct result *r, uint32_t rows)
{
	struct result_column old[RESULT_COLUMNS_MAX];
	uint32_t *depth = NULL, done = 0;
	bool ok = true;

	if (r->status != OW_OK)
		return false;
	if (rows <= r->row_cap)
		return true;
	for (; ok && done < r->column_count; done++) {
		struct result_column *c = &r->columns[done];

		old[done] = *c;
		c->known = NULL;
		c->ints = larger(r, old[done].ints, cell_size(c), rows);
		if (old[done].known) {
			c->known = larger(r, old[done].known, 1, rows);
			if (c->known)
				memset(c->known + r->row_count, 1, rows - r->row_count);
		}
		ok = c->ints && (c->known || !old[done].known);
	}
	if (ok && r->depth) {
		depth = larger(r, r->depth, sizeof(*depth), rows);
		ok = depth != NULL;
	}
	settle(r, old, done, depth, rows, ok);
	if (!ok)
		fail(r);
	return ok;
}

uint32_t result_row(struct result *r, uint32_t depth)
{
	uint64_t want = (uint64_t)r->row_cap + r->row_cap / 2 + 8;

	if (r->status != OW_OK)
		return UINT32_MAX;
	if (r->row_count == r->row_cap &&
	    (r->row_count == UINT32_MAX || !result_reserve(r, (uint32_t)MIN(want, UINT32_MAX)))) {
		fail(r);
		return UINT32_MAX;
	}
	if (r->depth)
		r->depth[r->row_count] = depth;
	return r->row_count++;
}

void result_set_int(struct result *r, uint32_t row, uint32_t column, int64_t value)
{
	if (row < r->row_count)
		r->columns[column].ints[row] = value;
}

void result_set_real(struct result *r, uint32_t row, uint32_t column, double value)
{
	if (row < r->row_count)
		r->columns[column].reals[row] = value;
}

void result_set_text(struct result *r, uint32_t row, uint32_t column, struct str value)
{
	struct str copy = arena_str(&r->arena, value);

	if (!copy.ptr)
		fail(r);
	else
		result_set_model_text(r, row, column, copy);
}

void result_set_model_text(struct result *r, uint32_t row, uint32_t column, struct str value)
{
	if (row < r->row_count)
		r->columns[column].texts[row] = value;
}

void result_set_unknown(struct result *r, uint32_t row, uint32_t column)
{
	struct result_column *c = &r->columns[column];

	if (row >= r->row_count)
		return;
	if (!c->known) {
		c->known = mem_alloc(r->mem, r->row_cap);
		if (!c->known) {
			fail(r);
			return;
		}
		memset(c->known, 1, r->row_cap);
	}
	c->known[row] = 0;
}

void result_limit(struct result *r, uint32_t rows)
{
	r->row_count = MIN(r->row_count, rows);
}

static bool is_narrow(const struct result *r, const struct result_column *c)
{
	int64_t value;

	if (c->type != RESULT_NUMBER)
		return false;
	for (uint32_t i = 0; i < r->row_count; i++)
		if ((!c->known || c->known[i]) && !str_to_i64(c->texts[i], &value))
			return false;
	return r->row_count > 0;
}

void result_narrow(struct result *r)
{
	for (uint32_t n = 0; n < r->column_count; n++) {
		struct result_column *c = &r->columns[n];
		int64_t *ints = is_narrow(r, c)
					? mem_zalloc(r->mem, (size_t)r->row_cap * sizeof(*ints))
					: NULL;

		if (!ints)
			continue;
		for (uint32_t i = 0; i < r->row_count; i++)
			if (!c->known || c->known[i])
				(void)str_to_i64(c->texts[i], &ints[i]);
		mem_free(r->mem, c->texts, (size_t)r->row_cap * sizeof(*c->texts));
		c->ints = ints;
		c->type = RESULT_INT;
	}
}
