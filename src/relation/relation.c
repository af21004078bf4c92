/*
 * relation.c: the table of relations; opening, preparing and reading them. What their columns are is in
 * relation_<name>.c, most of it by columns.c. Reading an opwatch file is verified and guarded here.
 */
#include "relation/columns.h"

#include "model/backing.h"

#include <strings.h>

#define RELATION(name) extern const struct relation relation_##name;
#include "relation/relations.def"
#undef RELATION

static const struct relation *const relations[] = {
#define RELATION(name) &relation_##name,
#include "relation/relations.def"
#undef RELATION
};

const struct relation *relation_at(size_t index)
{
	if (index < ARRAY_COUNT(relations))
		return relations[index];
	return view_relation_at(index - ARRAY_COUNT(relations));
}

static bool same_name(struct str a, const char *b)
{
	return strlen(b) == a.len && strncasecmp(a.ptr, b, a.len) == 0;
}

const struct relation *relation_find(struct str name)
{
	const struct relation *relation;

	for (size_t i = 0; (relation = relation_at(i)); i++)
		if (same_name(name, relation->name))
			return relation;
	return NULL;
}

/* ---- opening ---- */

static ow_status fill_run(const struct relation_part *p, const struct relation_column *c,
			  uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	uint32_t *codes = out->values;

	(void)p;
	(void)c;
	(void)first;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		codes[i] = 1;
	return OW_OK;
}

static ow_status add_parts(struct relation_table *t, const struct relation_run *runs, size_t count,
			   struct error *err)
{
	struct relation_run *copies = ARENA_ARRAY(&t->arena, struct relation_run, count + 1);

	t->parts = ARENA_ARRAY(&t->arena, struct relation_part, count + 1);
	if (!copies || !t->parts)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct relation_part *part = &t->parts[i];

		OW_ASSERT(runs[i].number > 0);
		copies[i] = runs[i];
		part->run = &copies[i];
		part->m = runs[i].m;
		part->id_base = (int64_t)(runs[i].number - 1) << 32;
		part->run_texts[1] = str_from(runs[i].name);
		part->run_name = (struct relation_dict){ part->run_texts, 2 };
		arena_init(&part->arena, t->mem);
		t->part_count++;
	}
	return OW_OK;
}

static ow_status copy_args(struct relation_table *t, const struct relation_arg *args, size_t count,
			   struct error *err)
{
	struct relation_arg *copies = ARENA_ARRAY(&t->arena, struct relation_arg, count + 1);

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

static ow_status open_table(struct relation_table *t, const struct relation_run *runs, size_t count,
			    const struct relation_arg *args, size_t arg_count, struct error *err)
{
	OW_TRY(add_parts(t, runs, count, err));
	OW_TRY(copy_args(t, args, arg_count, err));
	t->columns = ARENA_ARRAY(&t->arena, struct relation_column, RELATION_COLUMNS_MAX);
	if (!t->columns)
		return error_no_memory(err);
	t->column_cap = RELATION_COLUMNS_MAX;
	OW_TRY(columns_add(t,
			   &(struct relation_column){ .name = "run",
						      .doc = "name of the run",
						      .type = RELATION_TEXT,
						      .fill = fill_run,
						      .dict = DICT_RUN },
			   err));
	if (t->relation->is_table)
		OW_TRY(columns_of_table(t, t->relation->table, err));
	return t->relation->describe ? t->relation->describe(t, err) : OW_OK;
}

ow_status relation_open(const struct relation *relation, const struct relation_run *runs,
			size_t run_count, const struct relation_arg *args, size_t arg_count,
			struct mem *mem, struct relation_table **table, struct error *err)
{
	struct relation_table *t = mem_zalloc(mem, sizeof(*t));
	ow_status status;

	*table = NULL;
	if (!t)
		return error_no_memory(err);
	t->relation = relation;
	t->mem = mem;
	arena_init(&t->arena, mem);
	pthread_mutex_init(&t->lock, NULL);
	status = open_table(t, runs, run_count, args, arg_count, err);
	if (status != OW_OK) {
		relation_close(t);
		return status;
	}
	*table = t;
	return OW_OK;
}

void relation_close(struct relation_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->part_count; i++) {
		if (t->relation->release)
			t->relation->release(&t->parts[i]);
		arena_release(&t->parts[i].arena);
	}
	pthread_mutex_destroy(&t->lock);
	arena_release(&t->arena);
	mem_free(t->mem, t, sizeof(*t));
}

/* ---- opwatch files ---- */

static ow_status check_part(const struct relation_part *part, struct error *err)
{
	const struct model *m = part->m;

	if (!m->backing)
		return OW_OK;
	if (mapping_lost(&m->backing->map))
		return model_lost(m, err);
	return input_check_unchanged(&m->backing->file, err);
}

ow_status relation_check(const struct relation_table *t, struct error *err)
{
	for (uint32_t i = 0; i < t->part_count; i++)
		OW_TRY(check_part(&t->parts[i], err));
	return OW_OK;
}

/* ---- reading ---- */

static ow_status prepare_part(struct relation_table *t, struct relation_part *part,
			      struct error *err)
{
	struct guard guard;
	ow_status status;

	OW_TRY(check_part(part, err));
	guard_enter(&guard);
	status = model_require_rows(part->m, t->tables, err);
	/* Others that show code ask for it when such a column is read. */
	if (status == OW_OK && t->relation->is_table &&
	    (t->relation->table == TABLE_stack || t->relation->table == TABLE_frame))
		status = model_require_stacks(part->m, err);
	part->strings = (struct relation_dict){ part->m->strings.text, part->m->strings.count };
	if (t->relation->is_table)
		part->rows = table_rows(part->m, t->relation->table);
	if (status == OW_OK && t->relation->prepare)
		status = t->relation->prepare(t, part, err);
	guard_leave(&guard);
	return status == OW_OK ? check_part(part, err) : status;
}

/* As it was before: another try may have more memory. */
static void forget(struct relation_table *t)
{
	for (uint32_t i = 0; i < t->part_count; i++) {
		struct relation_part *part = &t->parts[i];

		if (t->relation->release)
			t->relation->release(part);
		arena_clear(&part->arena);
		part->state = NULL;
		part->row_data = NULL;
		part->dicts = NULL;
		part->rows = 0;
	}
}

ow_status relation_start(struct relation_table *t, struct error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; !t->prepared && i < t->part_count && status == OW_OK; i++)
		status = prepare_part(t, &t->parts[i], err);
	if (!t->prepared && status != OW_OK)
		forget(t);
	t->prepared |= status == OW_OK;
	pthread_mutex_unlock(&t->lock);
	return status;
}

static ow_status need_of_part(const struct relation_table *t, struct relation_part *part,
			      uint32_t column, struct error *err)
{
	struct guard guard;
	ow_status status;

	guard_enter(&guard);
	status = t->relation->need(part, &t->columns[column], err);
	guard_leave(&guard);
	return status == OW_OK ? check_part(part, err) : status;
}

ow_status relation_need(struct relation_table *t, uint32_t column, struct error *err)
{
	ow_status status = OW_OK;

	OW_ASSERT(t->prepared && column < t->column_count);
	if (!t->relation->need)
		return OW_OK;
	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; !t->needed[column] && i < t->part_count && status == OW_OK; i++)
		status = need_of_part(t, &t->parts[i], column, err);
	t->needed[column] |= status == OW_OK;
	pthread_mutex_unlock(&t->lock);
	return status;
}

ow_status relation_prepare(struct relation_table *t, struct error *err)
{
	OW_TRY(relation_start(t, err));
	for (uint32_t i = 0; i < t->column_count; i++)
		OW_TRY(relation_need(t, i, err));
	return OW_OK;
}

uint64_t relation_rows(const struct relation_table *t)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < t->part_count; i++)
		rows += t->parts[i].rows;
	return rows;
}

uint64_t relation_estimate(const struct relation_table *t)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; t->relation->is_table && i < t->part_count; i++)
		rows += table_rows(t->parts[i].m, t->relation->table);
	return rows;
}

uint32_t relation_find_column(const struct relation_table *t, struct str name)
{
	for (uint32_t i = 0; i < t->column_count; i++)
		if (same_name(name, t->columns[i].name))
			return i;
	return UINT32_MAX;
}

const struct relation_dict *relation_dict(const struct relation_table *t, uint32_t part,
					  uint32_t column)
{
	const struct relation_column *c = &t->columns[column];
	const struct relation_part *p = &t->parts[part];

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

size_t relation_value_size(const struct relation_column *c)
{
	switch (c->type) {
	case RELATION_BOOL:
		return sizeof(bool);
	case RELATION_INT32:
		return sizeof(int32_t);
	case RELATION_TEXT:
		return c->dict == DICT_NONE ? sizeof(struct str) : sizeof(uint32_t);
	default:
		return sizeof(int64_t);
	}
}

ow_status relation_fill(const struct relation_table *t, uint32_t part, uint32_t column,
			uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	const struct relation_column *c = &t->columns[column];
	const struct relation_part *p = &t->parts[part];
	struct guard guard;
	ow_status status;

	OW_ASSERT(t->prepared && first + n <= p->rows);
	out->has_nulls = false;
	if (!p->m->backing)
		return c->fill(p, c, first, n, out, err);
	guard_enter(&guard);
	status = c->fill(p, c, first, n, out, err);
	guard_leave(&guard);
	return mapping_lost(&p->m->backing->map) ? model_lost(p->m, err) : status;
}
