/*
 * table.c: tables in memory and the reading of any table; see table.h. Columns of a held table grow together. A failed
 * growth changes nothing and is remembered in `status`; after it, adding rows and setting values do nothing. Reads of
 * an opwatch file are verified and guarded here. The meaning of columns is up to the views and relation/.
 */
#include "table/table.h"

#include "base/json_escape.h"
#include "model/backing.h"
#include "table/tree/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

struct table *table_new(struct mem *mem, const char *name, struct ow_error *err)
{
	struct table *t = mem_zalloc(mem, sizeof(*t));

	if (!t) {
		error_no_memory(err);
		return NULL;
	}
	t->mem = mem;
	t->name = name;
	t->parts = &t->held;
	t->part_count = 1;
	arena_init(&t->arena, mem);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

static size_t cell_size(const struct table_column *c)
{
	return c->type == TYPE_TEXT || c->type == TYPE_NUMBER ? sizeof(struct str)
							      : sizeof(int64_t);
}

static void free_columns(struct table *t)
{
	for (uint32_t i = 0; i < t->column_count; i++) {
		struct table_column *c = &t->columns[i];

		mem_free(t->mem, c->ints, (size_t)t->row_cap * cell_size(c));
		mem_free(t->mem, c->known, t->row_cap);
	}
	if (t->row_cap)
		mem_free(t->mem, t->depth, (size_t)t->row_cap * sizeof(*t->depth));
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; t->source && i < t->part_count; i++) {
		if (t->source->release)
			t->source->release(&t->parts[i]);
		arena_release(&t->parts[i].arena);
	}
	if (!t->source)
		free_columns(t);
	tree_free(t->tree, t->mem);
	pthread_mutex_destroy(&t->lock);
	arena_release(&t->arena);
	mem_free(t->mem, t, sizeof(*t));
}

static ow_status add_parts(struct table *t, const struct table_run *runs, size_t count,
			   struct ow_error *err)
{
	struct table_run *copies = ARENA_ARRAY(&t->arena, struct table_run, count + 1);

	t->parts = ARENA_ARRAY(&t->arena, struct table_part, count + 1);
	if (!copies || !t->parts)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct table_part *part = &t->parts[i];

		OW_ASSERT(runs[i].number > 0);
		copies[i] = runs[i];
		part->run = &copies[i];
		part->m = runs[i].m;
		part->id_base = (int64_t)(runs[i].number - 1) << 32;
		part->run_texts[1] = str_from(runs[i].name);
		part->run_name = (struct table_dict){ part->run_texts, 2 };
		arena_init(&part->arena, t->mem);
		t->part_count++;
	}
	return OW_OK;
}

static ow_status copy_args(struct table *t, const struct table_arg *args, size_t count,
			   struct ow_error *err)
{
	struct table_arg *copies = ARENA_ARRAY(&t->arena, struct table_arg, count + 1);

	if (!copies)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		copies[i] = args[i];
		copies[i].text = arena_str(&t->arena, args[i].text);
		if (!copies[i].text.ptr)
			return error_no_memory(err);
	}
	t->args = copies;
	t->arg_count = count;
	return OW_OK;
}

ow_status table_open(const struct table_source *source, const struct table_run *runs,
		     size_t run_count, const struct table_arg *args, size_t arg_count,
		     struct mem *mem, struct table **table, struct ow_error *err)
{
	struct table *t = table_new(mem, source->name, err);
	ow_status status;

	*table = NULL;
	if (!t)
		return OW_E_NO_MEMORY;
	t->source = source;
	t->part_count = 0;
	status = add_parts(t, runs, run_count, err);
	if (status == OW_OK)
		status = copy_args(t, args, arg_count, err);
	if (status != OW_OK) {
		table_free(t);
		return status;
	}
	*table = t;
	return OW_OK;
}

/* Reads texts; an empty text has a ptr, unlike NULL. */
static void fill_texts(const struct table_column *c, uint64_t first, uint32_t n, struct str *to)
{
	for (uint32_t i = 0; i < n; i++) {
		struct str text = c->texts[first + i];

		if (c->known && !c->known[first + i])
			to[i] = (struct str){ 0 };
		else
			to[i] = text.ptr ? text : STR("");
	}
}

static ow_status fill_held(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	(void)p;
	(void)err;
	if (c->type == TYPE_TEXT || c->type == TYPE_NUMBER) {
		fill_texts(c, first, n, out->values);
		return OW_OK;
	}
	if (c->type == TYPE_BOOL)
		for (uint32_t i = 0; i < n; i++)
			((bool *)out->values)[i] = c->ints[first + i] != 0;
	else
		memcpy(out->values, c->ints + first, n * sizeof(*c->ints));
	for (uint32_t i = 0; c->known && i < n; i++)
		if (!c->known[first + i])
			vec_null(out, n, i);
	return OW_OK;
}

/* Fills the column depth; part.state is the tree. */
static ow_status fill_depth(const struct table_part *p, const struct table_column *c,
			    uint64_t first, uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct table *t = p->state;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = t->depth[first + i];
	return OW_OK;
}

/* Fills the column parent; part.row_data has the parents, -1 = none. */
static ow_status fill_parent(const struct table_part *p, const struct table_column *c,
			     uint64_t first, uint32_t n, struct table_vec *out,
			     struct ow_error *err)
{
	const int64_t *parents = p->row_data;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++) {
		to[i] = MAX(parents[first + i], 0);
		if (parents[first + i] < 0)
			vec_null(out, n, i);
	}
	return OW_OK;
}

static ow_status find_parents(const struct table *t, struct arena *arena, const void **out,
			      struct ow_error *err)
{
	uint32_t deepest = 0;
	int64_t *parents, *path;

	for (uint32_t row = 0; row < t->row_count; row++)
		deepest = MAX(deepest, t->depth[row]);
	parents = ARENA_ARRAY(arena, int64_t, (size_t)t->row_count + 1);
	/* for each depth: the last row at that depth */
	path = ARENA_ARRAY(arena, int64_t, (size_t)deepest + 1);
	if (!parents || !path)
		return error_no_memory(err);
	for (uint32_t row = 0; row < t->row_count; row++) {
		path[t->depth[row]] = row;
		parents[row] = t->depth[row] && row ? path[t->depth[row] - 1] : -1;
	}
	*out = parents;
	return OW_OK;
}

static ow_status prepare_levels(struct table *t, struct table_part *part, struct ow_error *err)
{
	const struct table *tree = t->tree_rows;

	part->state = (void *)(uintptr_t)tree;
	part->rows = tree->row_count;
	return find_parents(tree, &part->arena, &part->row_data, err);
}

static const struct table_source levels_source = { .prepare = prepare_levels };

ow_status table_levels(const struct table *t, struct table **out, struct ow_error *err)
{
	struct table *levels = table_new(t->mem, t->name, err);

	*out = NULL;
	if (!levels)
		return OW_E_NO_MEMORY;
	levels->source = &levels_source;
	levels->tree_rows = t;
	arena_init(&levels->held.arena, t->mem);
	levels->columns[0] = (struct table_column){ .name = "depth",
						    .title = "depth",
						    .doc = "level in the tree; rows are in its "
							   "order",
						    .type = TYPE_INT,
						    .fill = fill_depth };
	levels->columns[1] = (struct table_column){ .name = "parent",
						    .title = "parent",
						    .doc = "row of the parent, from 0",
						    .type = TYPE_INT,
						    .fill = fill_parent };
	levels->column_count = 2;
	for (uint32_t i = 0; i < t->column_count && levels->column_count < TABLE_COLUMNS_MAX; i++)
		levels->columns[levels->column_count++] = t->columns[i];
	*out = levels;
	return OW_OK;
}

void table_clear_columns(struct table *t)
{
	free_columns(t);
	t->column_count = t->row_count = t->row_cap = 0;
	t->depth = NULL;
	t->status = OW_OK;
}

static void fail(struct table *t)
{
	if (t->status == OW_OK)
		t->status = OW_E_NO_MEMORY;
}

uint32_t table_add_column(struct table *t, const char *name, const char *title,
			  enum column_type type, enum column_unit unit)
{
	OW_ASSERT(t->column_count < TABLE_COLUMNS_MAX && !t->row_cap);
	t->columns[t->column_count] = (struct table_column){
		.name = name, .title = title, .type = type, .unit = unit, .fill = fill_held
	};
	return t->column_count++;
}

void table_document(struct table *t, const char *const *sentences, uint32_t count)
{
	OW_ASSERT(t->column_count == count);
	for (uint32_t i = 0; i < count; i++)
		t->columns[i].doc = sentences[i];
}

/* depth is never NULL for a tree: a tree without rows is still a tree. */
static uint32_t no_depth[1];

void table_make_tree(struct table *t)
{
	OW_ASSERT(!t->row_cap);
	t->depth = no_depth;
}

static void *larger(struct table *t, const void *old, size_t size, uint32_t rows)
{
	char *fresh = mem_alloc(t->mem, (size_t)rows * size);

	if (!fresh)
		return NULL;
	if (t->row_count)
		memcpy(fresh, old, (size_t)t->row_count * size);
	memset(fresh + (size_t)t->row_count * size, 0, (size_t)(rows - t->row_count) * size);
	return fresh;
}

/* Frees the old arrays and keeps the new ones, or the other way round after a failure. */
static void settle(struct table *t, struct table_column *old, uint32_t count, uint32_t *depth,
		   uint32_t rows, bool ok)
{
	uint32_t cap = ok ? t->row_cap : rows;

	for (uint32_t i = 0; i < count; i++) {
		struct table_column *c = &t->columns[i];
		struct table_column drop = ok ? old[i] : *c;

		mem_free(t->mem, drop.ints, (size_t)cap * cell_size(c));
		mem_free(t->mem, drop.known, cap);
		if (!ok)
			*c = old[i];
	}
	if (ok && t->depth) {
		if (t->row_cap)
			mem_free(t->mem, t->depth, (size_t)t->row_cap * sizeof(*t->depth));
		t->depth = depth;
	}
	if (ok)
		t->row_cap = rows;
}

bool table_reserve(struct table *t, uint32_t rows)
{
	struct table_column old[TABLE_COLUMNS_MAX];
	uint32_t *depth = NULL, done = 0;
	bool ok = true;

	if (t->status != OW_OK)
		return false;
	if (rows <= t->row_cap)
		return true;
	for (; ok && done < t->column_count; done++) {
		struct table_column *c = &t->columns[done];

		old[done] = *c;
		c->known = NULL;
		c->ints = larger(t, old[done].ints, cell_size(c), rows);
		if (old[done].known) {
			c->known = larger(t, old[done].known, 1, rows);
			if (c->known)
				memset(c->known + t->row_count, 1, rows - t->row_count);
		}
		ok = c->ints && (c->known || !old[done].known);
	}
	if (ok && t->depth) {
		depth = larger(t, t->depth, sizeof(*depth), rows);
		ok = depth != NULL;
	}
	settle(t, old, done, depth, rows, ok);
	if (!ok)
		fail(t);
	return ok;
}

uint32_t table_add_row(struct table *t, uint32_t depth)
{
	uint64_t want = (uint64_t)t->row_cap + t->row_cap / 2 + 8;

	if (t->status != OW_OK)
		return UINT32_MAX;
	if (t->row_count == t->row_cap &&
	    (t->row_count == UINT32_MAX || !table_reserve(t, (uint32_t)MIN(want, UINT32_MAX)))) {
		fail(t);
		return UINT32_MAX;
	}
	if (t->depth)
		t->depth[t->row_count] = depth;
	return t->row_count++;
}

void table_set_int(struct table *t, uint32_t row, uint32_t column, int64_t value)
{
	if (row < t->row_count)
		t->columns[column].ints[row] = value;
}

void table_set_real(struct table *t, uint32_t row, uint32_t column, double value)
{
	if (row < t->row_count)
		t->columns[column].reals[row] = value;
}

void table_set_text(struct table *t, uint32_t row, uint32_t column, struct str value)
{
	struct str copy = arena_str(&t->arena, value);

	if (!copy.ptr)
		fail(t);
	else
		table_set_model_text(t, row, column, copy);
}

void table_set_known_text(struct table *t, uint32_t row, uint32_t column, struct str value)
{
	if (value.len)
		table_set_text(t, row, column, value);
	else
		table_set_unknown(t, row, column);
}

void table_set_model_text(struct table *t, uint32_t row, uint32_t column, struct str value)
{
	if (row < t->row_count)
		t->columns[column].texts[row] = value;
}

static void add_extra(struct table *t, const char *name, const char *json)
{
	struct table_extra *extras =
		arena_grow(&t->arena, t->extras, t->extra_count, &t->extra_cap, sizeof(*extras));

	if (!extras || !json) {
		t->status = OW_E_NO_MEMORY;
		return;
	}
	t->extras = extras;
	t->extras[t->extra_count++] = (struct table_extra){ name, json };
}

void table_add_extra(struct table *t, const char *name, const char *json_format, ...)
{
	va_list args, again;
	char *text;
	int len;

	va_start(args, json_format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, json_format, again);
	va_end(again);
	text = len < 0 ? NULL : arena_push(&t->arena, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, json_format, args);
	va_end(args);
	add_extra(t, name, text);
}

void table_add_extra_text(struct table *t, const char *name, const char *text)
{
	struct buf quoted;

	if (!text) {
		add_extra(t, name, "null");
		return;
	}
	buf_init(&quoted, t->mem);
	json_quote(&quoted, str_from(text));
	add_extra(t, name, quoted.failed ? NULL : arena_cstr(&t->arena, buf_str(&quoted)));
	buf_release(&quoted);
}

const char *table_extra(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->extra_count; i++)
		if (strcmp(t->extras[i].name, name) == 0)
			return t->extras[i].json;
	return NULL;
}

void table_set_unknown(struct table *t, uint32_t row, uint32_t column)
{
	struct table_column *c = &t->columns[column];

	if (row >= t->row_count)
		return;
	if (!c->known) {
		c->known = mem_alloc(t->mem, t->row_cap);
		if (!c->known) {
			fail(t);
			return;
		}
		memset(c->known, 1, t->row_cap);
	}
	c->known[row] = 0;
}

ow_status table_add_columns_of(struct table *t, const struct table *from, struct ow_error *err)
{
	for (uint32_t i = 0; i < from->column_count; i++) {
		const struct table_column *c = &from->columns[i];
		char *name = arena_cstr(&t->arena, str_from(c->name));

		if (!name)
			return error_no_memory(err);
		if (t->column_count == TABLE_COLUMNS_MAX)
			return error_set(err, OW_E_LIMIT,
					 "more than %d columns: name those you need",
					 TABLE_COLUMNS_MAX);
		table_add_column(t, name, name, c->type, c->unit);
		t->columns[t->column_count - 1].logical = c->logical;
	}
	return OW_OK;
}

static void append_texts(struct table *t, uint32_t column, uint32_t row,
			 const struct table_column *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!from->known || from->known[i])
			table_set_text(t, row + i, column, from->texts[i]);
}

ow_status table_append(struct table *t, const struct table *from, struct ow_error *err)
{
	uint32_t first = t->row_count, count = from->row_count;
	uint64_t want = MAX((uint64_t)first + count, (uint64_t)t->row_cap + t->row_cap / 2);

	if (!count) /* both counts are 0: neither table has memory yet */
		return OW_OK;
	if (count > UINT32_MAX - 1 - first)
		return error_set(err, OW_E_LIMIT,
				 "more than 2^32 rows do not fit into one result; add a LIMIT");
	if (first + count > t->row_cap && !table_reserve(t, (uint32_t)MIN(want, UINT32_MAX)))
		return error_no_memory(err);
	t->row_count += count;
	for (uint32_t c = 0; c < t->column_count; c++) {
		const struct table_column *column = &from->columns[c];

		if (column->type == TYPE_TEXT || column->type == TYPE_NUMBER)
			append_texts(t, c, first, column, count);
		else
			memcpy(t->columns[c].ints + first, column->ints,
			       count * sizeof(*column->ints));
		for (uint32_t i = 0; column->known && i < count; i++)
			if (!column->known[i])
				table_set_unknown(t, first + i, c);
	}
	return t->status == OW_OK ? OW_OK : error_no_memory(err);
}

void table_limit(struct table *t, uint32_t rows)
{
	t->row_count = MIN(t->row_count, rows);
}

static bool is_narrow(const struct table *t, const struct table_column *c)
{
	int64_t value;

	if (c->type != TYPE_NUMBER)
		return false;
	for (uint32_t i = 0; i < t->row_count; i++)
		if ((!c->known || c->known[i]) && !str_to_i64(c->texts[i], &value))
			return false;
	return t->row_count > 0;
}

void table_narrow(struct table *t)
{
	for (uint32_t n = 0; n < t->column_count; n++) {
		struct table_column *c = &t->columns[n];
		int64_t *ints = is_narrow(t, c)
					? mem_zalloc(t->mem, (size_t)t->row_cap * sizeof(*ints))
					: NULL;

		if (!ints)
			continue;
		for (uint32_t i = 0; i < t->row_count; i++)
			if (!c->known || c->known[i])
				(void)str_to_i64(c->texts[i], &ints[i]);
		mem_free(t->mem, c->texts, (size_t)t->row_cap * sizeof(*c->texts));
		c->ints = ints;
		c->type = TYPE_INT;
	}
}

static ow_status check_part(const struct table_part *part, struct ow_error *err)
{
	const struct model *m = part->m;

	if (!m || !m->backing)
		return OW_OK;
	if (mapping_lost(&m->backing->map))
		return model_lost(m, err);
	return input_check_unchanged(&m->backing->file, err);
}

ow_status table_check(const struct table *t, struct ow_error *err)
{
	for (uint32_t i = 0; i < t->part_count; i++)
		OW_TRY(check_part(&t->parts[i], err));
	return OW_OK;
}

static ow_status prepare_part(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct guard guard;
	ow_status status;

	OW_TRY(check_part(part, err));
	guard_enter(&guard);
	status = part->m ? model_require_rows(part->m, t->tables, err) : OW_OK;
	/* Tables that show code need stacks when one of their code columns is read. */
	if (status == OW_OK && t->source->is_table &&
	    (t->source->table == TABLE_stack || t->source->table == TABLE_frame))
		status = model_require_stacks(part->m, err);
	if (part->m)
		part->strings =
			(struct table_dict){ part->m->strings.text, part->m->strings.count };
	if (t->source->is_table)
		part->rows = model_table_rows(part->m, t->source->table);
	if (status == OW_OK && t->source->prepare)
		status = t->source->prepare(t, part, err);
	guard_leave(&guard);
	return status == OW_OK ? check_part(part, err) : status;
}

/* Resets a source that could not be prepared, so that it can be tried again. */
static void forget(struct table *t)
{
	for (uint32_t i = 0; i < t->part_count; i++) {
		struct table_part *part = &t->parts[i];

		if (t->source->release)
			t->source->release(part);
		arena_clear(&part->arena);
		part->state = NULL;
		part->row_data = NULL;
		part->dicts = NULL;
		part->rows = 0;
	}
}

/* Starts reading a held table. Rows may have been added since the last time; a tree becomes columns when they are
 * first needed. */
static ow_status start_held(struct table *t, struct ow_error *err)
{
	if (t->tree && !t->column_count)
		OW_TRY(tree_flatten(t, err));
	t->held.rows = t->row_count;
	return t->status == OW_OK ? OW_OK : error_no_memory(err);
}

ow_status table_start(struct table *t, struct ow_error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&t->lock);
	if (!t->source)
		status = start_held(t, err);
	for (uint32_t i = 0; t->source && !t->prepared && i < t->part_count && status == OW_OK; i++)
		status = prepare_part(t, &t->parts[i], err);
	if (t->source && !t->prepared && status != OW_OK)
		forget(t);
	t->prepared |= status == OW_OK;
	pthread_mutex_unlock(&t->lock);
	return status;
}

static ow_status need_of_part(const struct table *t, struct table_part *part, uint32_t column,
			      struct ow_error *err)
{
	struct guard guard;
	ow_status status;

	guard_enter(&guard);
	status = t->source->need(part, &t->columns[column], err);
	guard_leave(&guard);
	return status == OW_OK ? check_part(part, err) : status;
}

ow_status table_need(struct table *t, uint32_t column, struct ow_error *err)
{
	ow_status status = OW_OK;

	OW_ASSERT(t->prepared && column < t->column_count);
	if (!t->source || !t->source->need)
		return OW_OK;
	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; !t->needed[column] && i < t->part_count && status == OW_OK; i++)
		status = need_of_part(t, &t->parts[i], column, err);
	t->needed[column] |= status == OW_OK;
	pthread_mutex_unlock(&t->lock);
	return status;
}

ow_status table_prepare(struct table *t, struct ow_error *err)
{
	OW_TRY(table_start(t, err));
	for (uint32_t i = 0; i < t->column_count; i++)
		OW_TRY(table_need(t, i, err));
	return OW_OK;
}

uint64_t table_row_count(const struct table *t)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < t->part_count; i++)
		rows += t->parts[i].rows;
	return rows;
}

uint64_t table_estimate(const struct table *t)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; t->source && t->source->is_table && i < t->part_count; i++)
		rows += model_table_rows(t->parts[i].m, t->source->table);
	return rows;
}

static bool same_name(struct str a, const char *b)
{
	return strlen(b) == a.len && strncasecmp(a.ptr, b, a.len) == 0;
}

uint32_t table_find_column(const struct table *t, struct str name)
{
	for (uint32_t i = 0; i < t->column_count; i++)
		if (same_name(name, t->columns[i].name))
			return i;
	return UINT32_MAX;
}

const struct table_dict *table_dict(const struct table *t, uint32_t part, uint32_t column)
{
	const struct table_column *c = &t->columns[column];
	const struct table_part *p = &t->parts[part];

	switch (c->dict) {
	case DICT_STRINGS:
		return &p->strings;
	case DICT_WORDS:
		return c->words;
	case DICT_RUN:
		return &p->run_name;
	case DICT_PART:
		return &p->dicts[c->number];
	default:
		return NULL;
	}
}

size_t column_value_size(const struct table_column *c)
{
	switch (c->type) {
	case TYPE_BOOL:
		return sizeof(bool);
	case TYPE_INT32:
		return sizeof(int32_t);
	case TYPE_TEXT:
		return c->dict == DICT_NONE ? sizeof(struct str) : sizeof(uint32_t);
	case TYPE_NUMBER:
		return sizeof(struct str);
	default:
		return sizeof(int64_t);
	}
}

ow_status table_read(const struct table *t, uint32_t part, uint32_t column, uint64_t first,
		     uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct table_column *c = &t->columns[column];
	const struct table_part *p = &t->parts[part];
	struct guard guard;
	ow_status status;

	OW_ASSERT(t->prepared && first + n <= p->rows);
	out->has_nulls = false;
	if (!p->m || !p->m->backing)
		return c->fill(p, c, first, n, out, err);
	guard_enter(&guard);
	status = c->fill(p, c, first, n, out, err);
	guard_leave(&guard);
	return mapping_lost(&p->m->backing->map) ? model_lost(p->m, err) : status;
}

uint64_t model_table_rows(const struct model *m, enum table_id table)
{
	uint32_t count =
		*(const uint32_t *)(const void *)((const char *)m + model_tables[table].offset);

	return count ? count - 1 : 0;
}

const char *column_type_name(enum column_type type)
{
	static const char *const names[] = {
		[TYPE_INT] = "int",    [TYPE_REAL] = "real",	 [TYPE_TEXT] = "text",
		[TYPE_BOOL] = "bool",  [TYPE_NUMBER] = "number", [TYPE_INT32] = "int",
		[TYPE_UINT64] = "int",
	};

	return names[type];
}

const char *column_unit_name(enum column_unit unit)
{
	static const char *const names[] = {
		[UNIT_NS] = "ns",	[UNIT_MICROS] = "us",	    [UNIT_BYTES] = "bytes",
		[UNIT_COUNT] = "count", [UNIT_PERCENT] = "percent", [UNIT_ENUM] = NULL
	};

	return names[unit];
}
