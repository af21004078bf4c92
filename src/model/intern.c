/*
 * intern.c: the functions of builder.h that search an equal row before they add one: strings, shapes, sets, frames,
 * stacks, devices, tracks, metrics, steps and ops. A model from an .opw file has no lookups; they are made when rows
 * are first added to it (model_make_lookups).
 */
#include "model/backing.h"

#include "base/vec.h"
#include "model/builder.h"

#include <strings.h>

/* Makes the lookups of a model from an .opw file, which has none; adding rows needs them. */
static bool need_lookups(struct builder *b)
{
	if (OW_LIKELY(!atomic_load_explicit(&b->m->no_lookups, memory_order_relaxed)))
		return true;
	if (b->status == OW_OK)
		builder_fail(b, model_make_lookups(b->m, b->err));
	return b->status == OW_OK;
}

str_id builder_str_hashed(struct builder *b, struct str text, uint64_t hash)
{
	struct strings *s = &b->m->strings;
	struct str copy;

	if (!text.len || !need_lookups(b))
		return (str_id){ 0 };
	for (struct map_iter it = map_find(&s->map, hash); it.value; it = map_next(&s->map, it))
		if (str_eq(s->text[it.value], text))
			return (str_id){ it.value };
	if (b->status != OW_OK)
		return (str_id){ 0 };
	if (s->count == UINT32_MAX) {
		builder_fail(b, error_set(b->err, OW_E_LIMIT, "more than 4 billion strings"));
		return (str_id){ 0 };
	}
	if (!vec_reserve(b->m->mem, s->text, s->cap, (size_t)s->count + 1)) {
		builder_no_memory(b);
		return (str_id){ 0 };
	}
	copy = arena_str(&s->arena, text);
	if (!copy.ptr || !map_add(&s->map, hash, s->count)) {
		builder_no_memory(b);
		return (str_id){ 0 };
	}
	s->text[s->count] = copy;
	return (str_id){ s->count++ };
}

str_id builder_str(struct builder *b, struct str text)
{
	return text.len ? builder_str_hashed(b, text, str_hash(text)) : (str_id){ 0 };
}

static uint64_t hash_dims(const int64_t *dims, int32_t rank)
{
	uint64_t hash = map_hash_u64((uint64_t)rank, 3);

	for (int32_t i = 0; i < rank; i++)
		hash = map_hash_u64(hash, (uint64_t)dims[i]);
	return hash;
}

shape_id builder_shape(struct builder *b, const int64_t *dims, int32_t rank)
{
	struct model *m = b->m;
	uint64_t hash = hash_dims(dims, rank);
	shape_id id;

	if (!need_lookups(b))
		return (shape_id){ 0 };
	for (struct map_iter it = map_find(&m->shape_map, hash); it.value;
	     it = map_next(&m->shape_map, it)) {
		int32_t have;
		const int64_t *old = model_dims(m, (shape_id){ it.value }, &have);

		if (have == rank &&
		    (rank <= 0 || memcmp(old, dims, (size_t)rank * sizeof(*dims)) == 0))
			return (shape_id){ it.value };
	}
	id = builder_add_shape(b, &(struct shape_row){ .dim_first = m->dim.count, .rank = rank });
	for (int32_t i = 0; i < rank; i++)
		builder_add_dim(b, &(struct dim_row){ .size = dims[i] });
	if (!id.v || b->status != OW_OK)
		return (shape_id){ 0 };
	if (!map_add(&m->shape_map, hash, id.v))
		builder_no_memory(b);
	return id;
}

/* Hash of a set's members. Sets are found by (base set, new member) as well as by content: the first makes adding
 * cheap, the second gives equal sets equal ids. Both are in one map with different hash seeds. */
static uint64_t hash_set(const str_id *items, uint32_t count)
{
	uint64_t hash = map_hash_u64(count, 4);

	for (uint32_t i = 0; i < count; i++)
		hash = map_hash_u64(hash, items[i].v);
	return hash;
}

static strset_id find_set(struct builder *b, const str_id *items, uint32_t count, uint64_t hash)
{
	struct model *m = b->m;

	for (struct map_iter it = map_find(&m->strset_map, hash); it.value;
	     it = map_next(&m->strset_map, it)) {
		uint32_t have;
		const str_id *old = model_strset(m, (strset_id){ it.value }, &have);

		if (have == count && memcmp(old, items, count * sizeof(*items)) == 0)
			return (strset_id){ it.value };
	}
	return (strset_id){ 0 };
}

strset_id builder_strset_add(struct builder *b, strset_id set, str_id member)
{
	struct model *m = b->m;
	str_id small[32], *items = small;
	uint32_t count = 0, at = 0;
	const str_id *old = set.v ? model_strset(m, set, &count) : NULL;
	strset_id found;
	uint64_t hash;

	if (!need_lookups(b))
		return set;
	for (; at < count; at++) {
		int order = str_cmp(model_str(m, old[at]), model_str(m, member));

		if (order == 0)
			return set;
		if (order > 0)
			break;
	}
	if (count + 1 > ARRAY_COUNT(small)) {
		items = mem_alloc(m->mem, ((size_t)count + 1) * sizeof(*items));
		if (!items) {
			builder_no_memory(b);
			return set;
		}
	}
	if (count) {
		memcpy(items, old, at * sizeof(*items));
		memcpy(items + at + 1, old + at, (count - at) * sizeof(*items));
	}
	items[at] = member;
	count++;
	hash = hash_set(items, count);
	found = find_set(b, items, count, hash);
	if (!found.v) {
		found = builder_add_strset(b,
					   &(struct strset_row){ .item_first = m->strset_item.count,
								 .item_count = count });
		for (uint32_t i = 0; i < count; i++)
			builder_add_strset_item(b, &(struct strset_item_row){ .text = items[i] });
		if (b->status == OW_OK && !map_add(&m->strset_map, hash, found.v))
			builder_no_memory(b);
	}
	if (items != small)
		mem_free(m->mem, items, (size_t)count * sizeof(*items));
	return b->status == OW_OK ? found : set;
}

static uint64_t hash_frame(const struct frame_row *row)
{
	uint64_t hash =
		map_hash_u64((uint64_t)row->file.v << 32 | row->function.v,
			     (uint64_t)(uint32_t)row->line << 32 | (uint32_t)row->function_line);

	hash = map_hash_u64(hash, row->text.v);
	if (!row->module.v && !row->address && !row->flags)
		return hash;
	return map_hash_u64(map_hash_u64(hash, (uint64_t)row->module.v << 8 | row->flags),
			    row->address);
}

static bool is_frame(const struct frame_table *f, uint32_t i, const struct frame_row *row)
{
	return f->file[i].v == row->file.v && f->function[i].v == row->function.v &&
	       f->line[i] == row->line && f->function_line[i] == row->function_line &&
	       f->text[i].v == row->text.v && COLUMN_GET(f->module, i).v == row->module.v &&
	       COLUMN_GET(f->address, i) == row->address && COLUMN_GET(f->flags, i) == row->flags;
}

frame_id builder_frame(struct builder *b, const struct frame_row *row)
{
	struct model *m = b->m;
	uint64_t hash = hash_frame(row);
	frame_id id;

	if (!need_lookups(b))
		return (frame_id){ 0 };
	for (struct map_iter it = map_find(&m->frame_map, hash); it.value;
	     it = map_next(&m->frame_map, it))
		if (is_frame(&m->frame, it.value, row))
			return (frame_id){ it.value };
	id = builder_add_frame(b, row);
	if (id.v && !map_add(&m->frame_map, hash, id.v))
		builder_no_memory(b);
	return id;
}

/* Adds stack rows to the lookup that are not in it: the newest, and those that were added without it. A row directly
 * after its caller, as most rows of deep stacks are, is found there and has no entry. */
static bool index_stacks(struct model *m)
{
	for (uint32_t i = MAX(m->stacks_indexed, 1); i < m->stack.count; i++) {
		uint32_t parent = m->stack.parent[i].v;

		if (parent + 1 != i &&
		    !map_add(&m->stack_map, map_hash_u64(parent, m->stack.frame[i].v), i))
			return false;
		m->stacks_indexed = i + 1;
	}
	return true;
}

stack_id builder_stack(struct builder *b, stack_id parent, frame_id frame)
{
	struct model *m = b->m;
	stack_id id;

	if (!need_lookups(b))
		return (stack_id){ 0 };
	if (OW_UNLIKELY(m->stacks_indexed < m->stack.count) && !index_stacks(m)) {
		builder_no_memory(b);
		return (stack_id){ 0 };
	}
	if (stack_is_next(m, parent, frame))
		return (stack_id){ parent.v + 1 };
	if (parent.v + 1 < m->stack.count) { /* the last row has no callees */
		uint64_t hash = map_hash_u64(parent.v, frame.v);

		for (struct map_iter it = map_find(&m->stack_map, hash); it.value;
		     it = map_next(&m->stack_map, it))
			if (m->stack.parent[it.value].v == parent.v &&
			    m->stack.frame[it.value].v == frame.v)
				return (stack_id){ it.value };
	}
	id = builder_add_stack(b, &(struct stack_row){ .parent = parent, .frame = frame });
	if (id.v && !index_stacks(m))
		builder_no_memory(b);
	return id;
}

/* Whether a text contains a word, ignoring ASCII case; device names are ASCII. */
static bool has_nocase(struct str s, const char *needle)
{
	size_t len = strlen(needle);

	for (size_t i = 0; i + len <= s.len; i++)
		if (strncasecmp(s.ptr + i, needle, len) == 0)
			return true;
	return false;
}

static enum device_kind guess_device_kind(struct str name)
{
	if (has_nocase(name, "gpu") || has_nocase(name, "cuda") || has_nocase(name, "sycl"))
		return DEVICE_GPU;
	if (has_nocase(name, "tpu"))
		return DEVICE_TPU;
	if (has_nocase(name, "cpu") || has_nocase(name, "host"))
		return DEVICE_CPU;
	return DEVICE_OTHER;
}

device_id builder_device(struct builder *b, struct str name)
{
	struct model *m = b->m;
	str_id text = builder_str(b, name);
	uint64_t hash = map_hash_u64(text.v, 5);
	device_id id;

	for (struct map_iter it = map_find(&m->device_map, hash); it.value;
	     it = map_next(&m->device_map, it))
		if (m->device.name[it.value].v == text.v)
			return (device_id){ it.value };
	id = builder_add_device(
		b, &(struct device_row){ .name = text, .kind = (uint8_t)guess_device_kind(name) });
	if (id.v && !map_add(&m->device_map, hash, id.v))
		builder_no_memory(b);
	return id;
}

static uint64_t hash_track(const struct track_row *row)
{
	uint64_t hash = map_hash_u64((uint64_t)row->name.v << 32 | row->source.v, row->kind);

	return map_hash_u64(hash, map_hash_u64((uint64_t)row->pid, (uint64_t)row->tid));
}

track_id builder_track(struct builder *b, const struct track_row *row)
{
	struct model *m = b->m;
	uint64_t hash = hash_track(row);
	track_id id;

	if (!need_lookups(b))
		return (track_id){ 0 };
	for (struct map_iter it = map_find(&m->track_map, hash); it.value;
	     it = map_next(&m->track_map, it)) {
		uint32_t i = it.value;

		if (m->track.name[i].v == row->name.v && m->track.kind[i] == row->kind &&
		    m->track.pid[i] == row->pid && m->track.tid[i] == row->tid &&
		    m->track.source[i].v == row->source.v)
			return (track_id){ i };
	}
	id = builder_add_track(b, row);
	if (id.v && !map_add(&m->track_map, hash, id.v))
		builder_no_memory(b);
	return id;
}

static uint64_t hash_metric(str_id name, str_id unit, source_id source)
{
	return map_hash_u64((uint64_t)name.v << 32 | unit.v, source.v);
}

metric_id builder_metric(struct builder *b, struct str name, struct str unit)
{
	struct model *m = b->m;
	str_id name_id = builder_str(b, name), unit_id = builder_str(b, unit);
	uint64_t hash = hash_metric(name_id, unit_id, b->source);
	metric_id id;

	if (!need_lookups(b))
		return (metric_id){ 0 };
	for (struct map_iter it = map_find(&m->metric_map, hash); it.value;
	     it = map_next(&m->metric_map, it)) {
		uint32_t i = it.value;

		if (m->metric.name[i].v == name_id.v && m->metric.unit[i].v == unit_id.v &&
		    m->metric.source[i].v == b->source.v)
			return (metric_id){ i };
	}
	id = builder_add_metric(
		b, &(struct metric_row){ .name = name_id, .unit = unit_id, .source = b->source });
	if (id.v && !map_add(&m->metric_map, hash, id.v))
		builder_no_memory(b);
	return id;
}

static step_id add_step(struct builder *b, int64_t number, uint8_t whole)
{
	step_id id = builder_add_step(b, &(struct step_row){ .number = number,
							     .start_ns = TIME_UNKNOWN,
							     .end_ns = TIME_UNKNOWN,
							     .whole = whole });

	if (id.v && !map_add(&b->m->step_map, map_hash_u64((uint64_t)number, 2), id.v))
		builder_no_memory(b);
	return id;
}

step_id builder_step(struct builder *b, int64_t number)
{
	step_id id = need_lookups(b) ? model_find_step(b->m, number) : (step_id){ 0 };

	return id.v && !COLUMN_GET(b->m->step.whole, id.v) ? id : add_step(b, number, 0);
}

step_id builder_whole_step(struct builder *b)
{
	const struct step_table *t = &b->m->step;
	int64_t next = 0;

	if (!need_lookups(b))
		return (step_id){ 0 };
	for (uint32_t i = 1; i < t->count; i++)
		if (t->number[i] >= next && t->number[i] < INT64_MAX)
			next = t->number[i] + 1;
	return add_step(b, next, 1);
}

op_id builder_find_op(const struct builder *b, str_id name)
{
	return (op_id){ id_map_find(&b->m->op_by_name, name.v) };
}

op_id builder_new_op(struct builder *b, const struct op_row *row)
{
	struct op_row full = *row;
	op_id id;

	if (!full.types.v)
		full.types = builder_strset_add(b, (strset_id){ 0 }, row->type);
	id = builder_add_op(b, &full);
	if (id.v && !id_map_add(&b->m->op_by_name, row->name.v, id.v))
		builder_no_memory(b);
	return id;
}

static bool add_strings(struct model *m)
{
	struct map *map = &m->strings.map;

	if (!map_reserve(map, m->strings.count))
		return false;
	for (uint32_t i = 1; i < m->strings.count; i++)
		if (m->strings.text[i].len && !map_add(map, str_hash(m->strings.text[i]), i))
			return false;
	return true;
}

static bool add_shapes_and_sets(struct model *m)
{
	for (uint32_t i = 1; i < m->shape.count; i++) {
		int32_t rank;
		const int64_t *dims = model_dims(m, (shape_id){ i }, &rank);

		if (!map_add(&m->shape_map, hash_dims(dims, rank), i))
			return false;
	}
	for (uint32_t i = 1; i < m->strset.count; i++) {
		uint32_t count;
		const str_id *items = model_strset(m, (strset_id){ i }, &count);

		if (!map_add(&m->strset_map, hash_set(items, count), i))
			return false;
	}
	return true;
}

static bool add_code(struct model *m)
{
	if (!map_reserve(&m->frame_map, m->frame.count))
		return false;
	for (uint32_t i = 1; i < m->frame.count; i++) {
		struct frame_row row = { .file = m->frame.file[i],
					 .function = m->frame.function[i],
					 .line = m->frame.line[i],
					 .function_line = m->frame.function_line[i],
					 .text = m->frame.text[i],
					 .module = COLUMN_GET(m->frame.module, i),
					 .address = COLUMN_GET(m->frame.address, i),
					 .flags = COLUMN_GET(m->frame.flags, i) };

		if (!map_add(&m->frame_map, hash_frame(&row), i))
			return false;
	}
	return index_stacks(m);
}

static bool add_places(struct model *m)
{
	for (uint32_t i = 1; i < m->device.count; i++)
		if (!map_add(&m->device_map, map_hash_u64(m->device.name[i].v, 5), i))
			return false;
	for (uint32_t i = 1; i < m->track.count; i++) {
		struct track_row row = { .name = m->track.name[i],
					 .pid = m->track.pid[i],
					 .tid = m->track.tid[i],
					 .kind = m->track.kind[i],
					 .source = m->track.source[i] };

		if (!map_add(&m->track_map, hash_track(&row), i))
			return false;
	}
	for (uint32_t i = 1; i < m->step.count; i++)
		if (!map_add(&m->step_map, map_hash_u64((uint64_t)m->step.number[i], 2), i))
			return false;
	for (uint32_t i = 1; i < m->metric.count; i++)
		if (!map_add(&m->metric_map,
			     hash_metric(m->metric.name[i], m->metric.unit[i], m->metric.source[i]),
			     i))
			return false;
	return true;
}

static bool add_ops(struct model *m)
{
	for (uint32_t i = 1; i < m->op.count; i++)
		if (!id_map_add(&m->op_by_name, m->op.name[i].v, i))
			return false;
	return true;
}

static void drop_lookups(struct model *m)
{
	struct map *maps[] = { &m->strings.map, &m->shape_map, &m->strset_map,
			       &m->frame_map,	&m->stack_map, &m->track_map,
			       &m->device_map,	&m->step_map,  &m->metric_map };

	id_map_release(&m->op_by_name);
	m->stacks_indexed = 0;
	for (size_t i = 0; i < ARRAY_COUNT(maps); i++) {
		map_release(maps[i]);
		map_init(maps[i], m->mem);
	}
}

ow_status lookups_make(struct model *m, struct ow_error *err)
{
	if (!atomic_load(&m->no_lookups))
		return OW_OK;
	if (!add_strings(m) || !add_ops(m) || !add_shapes_and_sets(m) || !add_code(m) ||
	    !add_places(m)) {
		drop_lookups(m);
		return error_no_memory(err);
	}
	atomic_store_explicit(&m->no_lookups, false, memory_order_release);
	return OW_OK;
}
