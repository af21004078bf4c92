/*
 * model.c: makes and frees a model, describes its tables, and looks things up in it. Rows are added by builder.c and sorted by
 * freeze.c.
 */
#include "model/backing.h"

#include "base/vec.h"

#define MODEL_TYPE_SIZE(t, need, type, name, unit, doc)                                            \
	{ #name,                                                                                   \
	  #type,                                                                                   \
	  doc,                                                                                     \
	  UNIT_##unit,                                                                             \
	  NEED_##need,                                                                             \
	  sizeof(type),                                                                            \
	  (uint16_t)offsetof(struct t##_table, name) },
#define MODEL_COLUMNS(table, doc)                                                                  \
	static const struct column_info table##_columns[] = { SCHEMA_##table(MODEL_TYPE_SIZE,      \
									     table) };
SCHEMA_TABLES(MODEL_COLUMNS)

#define MODEL_INFO(table, doc)                                                                     \
	[TABLE_##table] = { #table, doc, table##_columns, ARRAY_COUNT(table##_columns),            \
			    offsetof(struct model, table) },
const struct table_info model_tables[TABLE_COUNT] = { SCHEMA_TABLES(MODEL_INFO) };

static ow_status init_strings(struct model *m, struct ow_error *err)
{
	void *text = NULL;

	arena_init(&m->strings.arena, m->mem);
	map_init(&m->strings.map, m->mem);
	if (!mem_grow(m->mem, &text, &m->strings.cap, 64, sizeof(struct str)))
		return error_no_memory(err);
	m->strings.text = text;
	m->strings.text[0] = STR("");
	m->strings.count = 1;
	return OW_OK;
}

static void init_maps(struct model *m)
{
	struct map *maps[] = { &m->shape_map, &m->strset_map, &m->frame_map, &m->stack_map,
			       &m->track_map, &m->device_map, &m->step_map,  &m->metric_map };

	id_map_init(&m->op_by_name, m->mem);
	for (size_t i = 0; i < ARRAY_COUNT(maps); i++)
		map_init(maps[i], m->mem);
}

struct model *model_new(struct mem *mem, struct ow_error *err)
{
	struct model *m = mem_zalloc(mem, sizeof(*m));

	if (!m) {
		error_no_memory(err);
		return NULL;
	}
	m->mem = mem;
	arena_init(&m->arena, mem);
	buf_init(&m->code, mem);
	init_maps(m);
	deferred_init(m);
	if (init_strings(m, err) != OW_OK) {
		model_free(m);
		return NULL;
	}
	return m;
}

static void free_tables(struct model *m)
{
	for (size_t t = 0; t < TABLE_COUNT; t++) {
		char *table = (char *)m + model_tables[t].offset;
		uint32_t cap = ((uint32_t *)table)[1];

		for (uint32_t c = 0; c < model_tables[t].column_count; c++) {
			const struct column_info *column = &model_tables[t].columns[c];
			void *values = *(void **)(table + column->offset);

			if (!backing_has(m, values))
				mem_free(m->mem, values, (size_t)cap * column->size);
		}
	}
}

struct trace_listing *model_make_listing(struct model *m, source_id source)
{
	if (!vec_reserve_zero(m->mem, m->listings, m->listing_cap, (size_t)source.v + 1))
		return NULL;
	return &m->listings[source.v];
}

bool model_offer_args(struct model *m, source_id source, const struct args_reader *reader)
{
	if (!vec_reserve_zero(m->mem, m->args_readers, m->args_reader_cap, (size_t)source.v + 1))
		return false;
	m->args_readers[source.v] = *reader;
	return true;
}

bool model_has_args(const struct model *m)
{
	if (m->event.count > 1 &&
	    (m->event.args_size || m->event.shared_size || m->event_args.count > 1))
		return true;
	for (uint32_t source = 1; source < m->source.count; source++)
		if (model_args_reader(m, source))
			return true;
	return false;
}

static void free_args_readers(struct model *m)
{
	for (size_t i = 0; i < m->args_reader_cap; i++)
		if (m->args_readers[i].release)
			m->args_readers[i].release(m->args_readers[i].state);
	mem_free(m->mem, m->args_readers, m->args_reader_cap * sizeof(*m->args_readers));
}

void model_free(struct model *m)
{
	if (!m)
		return;
	free_args_readers(m);
	deferred_release(m);
	free_tables(m);
	backing_free(m->backing, m->mem);
	for (size_t i = 0; i < m->input_cap; i++) {
		if (!m->inputs[i])
			continue;
		input_close(m->inputs[i]);
		mem_free(m->mem, m->inputs[i], sizeof(struct input));
	}
	mem_free(m->mem, m->inputs, m->input_cap * sizeof(*m->inputs));
	mem_free(m->mem, m->libraries, m->library_cap * sizeof(*m->libraries));
	for (size_t i = 0; i < m->listing_cap; i++) {
		struct trace_listing *l = &m->listings[i];

		mem_free(m->mem, l->elements, l->cap * sizeof(*l->elements));
		mem_free(m->mem, l->counters, l->counter_cap * sizeof(*l->counters));
	}
	mem_free(m->mem, m->listings, m->listing_cap * sizeof(*m->listings));
	id_map_release(&m->op_by_name);
	map_release(&m->shape_map);
	map_release(&m->strset_map);
	map_release(&m->frame_map);
	map_release(&m->stack_map);
	map_release(&m->track_map);
	map_release(&m->device_map);
	map_release(&m->step_map);
	map_release(&m->metric_map);
	map_release(&m->strings.map);
	mem_free(m->mem, m->strings.text, m->strings.cap * sizeof(struct str));
	arena_release(&m->strings.arena);
	buf_release(&m->code);
	arena_release(&m->arena);
	mem_free(m->mem, m, sizeof(*m));
}

#define SEARCHES_MAX 8

/* Whether the lookups exist. Those of a stored model are made after a few searches: a view that needs one name gets
 * it sooner by searching. If memory for the lookups runs out, every request searches. */
static bool has_lookups(const struct model *m)
{
	if (OW_LIKELY(!atomic_load_explicit(&m->no_lookups, memory_order_acquire)))
		return true;
	if (!m->backing || atomic_fetch_add(&m->backing->searches, 1) < SEARCHES_MAX)
		return false;
	return model_make_lookups((struct model *)(uintptr_t)m, NULL) == OW_OK;
}

static str_id search_str(const struct model *m, struct str text)
{
	for (uint32_t i = 1; i < m->strings.count; i++)
		if (str_eq(m->strings.text[i], text))
			return (str_id){ i };
	return (str_id){ 0 };
}

str_id model_find_str(const struct model *m, struct str text)
{
	if (!text.len)
		return (str_id){ 0 };
	if (!has_lookups(m))
		return search_str(m, text);
	for (struct map_iter it = map_find(&m->strings.map, str_hash(text)); it.value;
	     it = map_next(&m->strings.map, it))
		if (str_eq(m->strings.text[it.value], text))
			return (str_id){ it.value };
	return (str_id){ 0 };
}

/* Finds an op by name. An op may have the empty name, whose id is 0, so the map is searched by id and not by text. */
op_id model_find_op(const struct model *m, struct str name)
{
	str_id id = model_find_str(m, name);

	if (!id.v && name.len)
		return (op_id){ 0 };
	if (!has_lookups(m)) {
		for (uint32_t op = 1; op < m->op.count; op++)
			if (m->op.name[op].v == id.v)
				return (op_id){ op };
		return (op_id){ 0 };
	}
	return (op_id){ id_map_find(&m->op_by_name, id.v) };
}

/* Whether the step has this number; sets *found unless it already has a better one. */
static bool is_step(const struct model *m, uint32_t step, int64_t number, step_id *found)
{
	if (m->step.number[step] != number)
		return false;
	if (!COLUMN_GET(m->step.whole, step)) {
		found->v = step;
		return true;
	}
	found->v = found->v ? found->v : step;
	return false;
}

step_id model_find_step(const struct model *m, int64_t number)
{
	step_id found = { 0 };

	if (!has_lookups(m)) {
		for (uint32_t step = 1; step < m->step.count; step++)
			if (is_step(m, step, number, &found))
				break;
		return found;
	}
	for (struct map_iter it = map_find(&m->step_map, map_hash_u64((uint64_t)number, 2));
	     it.value; it = map_next(&m->step_map, it))
		if (is_step(m, it.value, number, &found))
			break;
	return found;
}
