/*
 * append.c: adds the rows of one model to another that is being built; the importer of .opw files calls it when a file
 * is opened together with other inputs. It works on the described columns: ids are translated by the type of their
 * column, everything else is copied. Tables whose rows are equal by content (interned, or found by name or number) have
 * a list of their new ids; in all other tables rows keep their order, so one offset per table is enough. It does not
 * sort or nest: the freeze does.
 */
#include "model/append.h"

#include "model/backing.h"

struct append {
	struct builder *b;
	struct model *m, *from;
	uint32_t *strings;	     /* new id of each string */
	uint32_t *ids[TABLE_COUNT];  /* new id of each row, or NULL if `shift` applies */
	uint32_t shift[TABLE_COUNT]; /* amount by which the new ids are larger */
	struct ow_error *err;
};

static uint32_t rows_of(const struct model *m, int table)
{
	return *(const uint32_t *)(const void *)((const char *)m + model_tables[table].offset);
}

static void **column_of(struct model *m, int table, const struct column_info *column)
{
	return (void **)(void *)((char *)m + model_tables[table].offset + column->offset);
}

static uint32_t new_id(const struct append *a, int table, uint32_t old)
{
	if (!old)
		return 0;
	return a->ids[table] ? a->ids[table][old] : old + a->shift[table];
}

static str_id new_str(const struct append *a, str_id old)
{
	return (str_id){ a->strings[old.v] };
}

/* Returns the table that ids of that type belong to; TABLE_COUNT for strings, -1 if the type is
 * not an id. */
static int table_of_type(const char *type)
{
	size_t len = strlen(type);

	if (strcmp(type, "str_id") == 0)
		return TABLE_COUNT;
	for (int t = 0; t < TABLE_COUNT; t++)
		if (strlen(model_tables[t].name) + 3 == len &&
		    memcmp(type, model_tables[t].name, len - 3) == 0 &&
		    strcmp(type + len - 3, "_id") == 0)
			return t;
	return -1;
}

static uint32_t translate(const struct append *a, int table, uint32_t old)
{
	return table == TABLE_COUNT ? a->strings[old] : new_id(a, table, old);
}

/* Converts an id of a trace, which may be a text. */
static uint64_t new_text_id(const struct append *a, uint64_t id)
{
	uint64_t text = id & ~MODEL_TEXT_ID;

	if (!(id & MODEL_TEXT_ID) || text >= a->from->strings.count)
		return id;
	return MODEL_TEXT_ID | a->strings[text];
}

static int64_t new_text_number(const struct append *a, int64_t number)
{
	uint64_t text = (uint64_t)number - (uint64_t)MODEL_TEXT_NUMBER;

	if (number == MODEL_NO_ID || text >= a->from->strings.count)
		return number;
	return MODEL_TEXT_NUMBER + (int64_t)a->strings[text];
}

static void copy_values(const struct append *a, const struct column_info *column, const void *from,
			void *to, uint32_t count)
{
	int table = table_of_type(column->type);
	const uint32_t *old = from;
	uint32_t *new = to;

	if (table < 0)
		memcpy(to, from, (size_t)count * column->size);
	else
		for (uint32_t i = 0; i < count; i++)
			new[i] = translate(a, table, old[i]);
}

/* Appends all rows except nil to the existing rows. */
static ow_status copy_rows(struct append *a, int table)
{
	const struct table_info *info = &model_tables[table];
	uint32_t count = rows_of(a->from, table) - 1, at = rows_of(a->m, table);

	a->shift[table] = at - 1;
	if (!count)
		return OW_OK;
	if (!builder_grow(a->b, (enum table_id)table, count))
		return a->b->status;
	for (uint32_t c = 0; c < info->column_count; c++) {
		const struct column_info *column = &info->columns[c];
		const char *from = *column_of(a->from, table, column);
		void **to = column_of(a->m, table, column);

		if (from && !*to)
			builder_need_column(a->b, (enum table_id)table, column->offset);
		if (from && !*to)
			return a->b->status;
		if (from)
			copy_values(a, column, from + column->size,
				    (char *)*to + (size_t)at * column->size, count);
		else if (*to)
			memset((char *)*to + (size_t)at * column->size, 0,
			       (size_t)count * column->size);
	}
	*(uint32_t *)(void *)((char *)a->m + info->offset) = at + count;
	return OW_OK;
}

/* Copies one row over an existing row. */
static ow_status copy_row(struct append *a, int table, uint32_t old, uint32_t new)
{
	const struct table_info *info = &model_tables[table];

	for (uint32_t c = 0; c < info->column_count; c++) {
		const struct column_info *column = &info->columns[c];
		const char *from = *column_of(a->from, table, column);
		void **to = column_of(a->m, table, column);

		if (!from)
			continue;
		if (!*to)
			builder_need_column(a->b, (enum table_id)table, column->offset);
		if (!*to)
			return a->b->status;
		copy_values(a, column, from + (size_t)old * column->size,
			    (char *)*to + (size_t) new * column->size, 1);
	}
	return OW_OK;
}

static ow_status add_strings(struct append *a)
{
	for (uint32_t i = 1; i < a->from->strings.count; i++)
		a->strings[i] = builder_str(a->b, a->from->strings.text[i]).v;
	return a->b->status;
}

static ow_status add_devices(struct append *a)
{
	const struct device_table *t = &a->from->device;

	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t before = a->m->device.count;
		device_id id = builder_device(a->b, model_str(a->from, t->name[i]));

		a->ids[TABLE_device][i] = id.v;
		if (id.v >= before)
			a->m->device.kind[id.v] = t->kind[i];
	}
	return a->b->status;
}

static void widen(struct step_table *t, uint32_t step, int64_t start, int64_t end)
{
	if (start != TIME_UNKNOWN &&
	    (t->start_ns[step] == TIME_UNKNOWN || start < t->start_ns[step]))
		t->start_ns[step] = start;
	if (end != TIME_UNKNOWN && (t->end_ns[step] == TIME_UNKNOWN || end > t->end_ns[step]))
		t->end_ns[step] = end;
}

/* Returns whether the source is a single step whose number does not come from a marker. */
static bool is_numbered_by_us(const struct model *m, uint32_t step)
{
	if (m->step.name[step].v)
		return false;
	for (uint32_t i = 1; i < m->source.count; i++)
		if (m->source.step[i].v == step)
			return true;
	return false;
}

static int64_t next_number(const struct model *m)
{
	int64_t next = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		if (m->step.number[i] >= next && m->step.number[i] < INT64_MAX)
			next = m->step.number[i] + 1;
	return next;
}

/* The number of a step in the new model. A step that opwatch numbered itself gets the next free number if its own is
 * taken, as when the originals are opened together. Any other step is the same step if it has the same number. */
static int64_t step_number(const struct append *a, uint32_t old)
{
	int64_t number = a->from->step.number[old];

	if (model_find_step(a->m, number).v && is_numbered_by_us(a->from, old))
		return next_number(a->m);
	return number;
}

static ow_status add_steps(struct append *a)
{
	const struct step_table *t = &a->from->step;

	for (uint32_t i = 1; i < t->count; i++) {
		step_id id = COLUMN_GET(t->whole, i) ? builder_whole_step(a->b)
						     : builder_step(a->b, step_number(a, i));

		a->ids[TABLE_step][i] = id.v;
		if (!id.v)
			continue;
		widen(&a->m->step, id.v, t->start_ns[i], t->end_ns[i]);
		if (!a->m->step.name[id.v].v)
			a->m->step.name[id.v] = new_str(a, t->name[i]);
	}
	return a->b->status;
}

static ow_status add_shapes_and_sets(struct append *a)
{
	const struct model *from = a->from;

	for (uint32_t i = 1; i < from->shape.count; i++) {
		int32_t rank;
		const int64_t *dims = model_dims(from, (shape_id){ i }, &rank);

		a->ids[TABLE_shape][i] = builder_shape(a->b, dims, rank).v;
	}
	for (uint32_t i = 1; i < from->strset.count; i++) {
		uint32_t count;
		const str_id *items = model_strset(from, (strset_id){ i }, &count);
		strset_id set = { 0 };

		for (uint32_t k = 0; k < count; k++)
			set = builder_strset_add(a->b, set, new_str(a, items[k]));
		a->ids[TABLE_strset][i] = set.v;
	}
	return a->b->status;
}

static ow_status add_code(struct append *a)
{
	const struct frame_table *f = &a->from->frame;
	const struct stack_table *s = &a->from->stack;

	for (uint32_t i = 1; i < f->count; i++)
		a->ids[TABLE_frame][i] =
			builder_frame(
				a->b,
				&(struct frame_row){ .file = new_str(a, f->file[i]),
						     .function = new_str(a, f->function[i]),
						     .line = f->line[i],
						     .function_line = f->function_line[i],
						     .text = new_str(a, f->text[i]),
						     .module = new_str(a, COLUMN_GET(f->module, i)),
						     .address = COLUMN_GET(f->address, i),
						     .flags = COLUMN_GET(f->flags, i) })
				.v;
	for (uint32_t i = 1; i < s->count; i++) /* callers come before their callees */
		a->ids[TABLE_stack][i] =
			builder_stack(a->b, (stack_id){ a->ids[TABLE_stack][s->parent[i].v] },
				      (frame_id){ a->ids[TABLE_frame][s->frame[i].v] })
				.v;
	return a->b->status;
}

/* Sets the fields that the existing op does not have yet. */
static void merge_op(struct append *a, uint32_t old, uint32_t new)
{
	const struct op_table *from = &a->from->op;
	struct op_table *to = &a->m->op;

	to->flags[new] |= from->flags[old];
	if (!to->device[new].v)
		to->device[new] = new_str(a, from->device[old]);
	if (!to->type[new].v)
		to->type[new] = new_str(a, from->type[old]);
	if (!to->float_ops[new])
		to->float_ops[new] = from->float_ops[old];
	if (!to->shape[new].v)
		to->shape[new].v = new_id(a, TABLE_shape, from->shape[old].v);
}

static ow_status add_op(struct append *a, uint32_t old)
{
	const struct op_table *from = &a->from->op;
	struct op_table *to = &a->m->op;
	str_id name = new_str(a, from->name[old]);
	op_id id = builder_find_op(a->b, name);

	a->ids[TABLE_op][old] = id.v;
	if (id.v) {
		merge_op(a, old, id.v);
		return OW_OK;
	}
	id = builder_new_op(
		a->b, &(struct op_row){ .name = name,
					.type = new_str(a, from->type[old]),
					.types = { new_id(a, TABLE_strset, from->types[old].v) } });
	a->ids[TABLE_op][old] = id.v;
	if (!id.v)
		return a->b->status;
	OW_TRY(copy_row(a, TABLE_op, old, id.v));
	to->input_first[id.v] = to->input_count[id.v] = 0;
	to->output_first[id.v] = to->output_count[id.v] = 0;
	to->step_first[id.v] = to->step_count[id.v] = 0;
	return OW_OK;
}

/* Adds edges of new ops when all producers are known. */
static void add_edges(struct append *a, uint32_t old, uint32_t new)
{
	const struct model *from = a->from;
	struct model *m = a->m;
	uint32_t first = from->op.input_first[old], count = from->op.input_count[old];

	m->op.input_first[new] = m->op_input.count;
	m->op.input_count[new] = count;
	for (uint32_t i = first; i < first + count; i++)
		builder_add_op_input(
			a->b, &(struct op_input_row){
				      .src = { new_id(a, TABLE_op, from->op_input.src[i].v) },
				      .name = new_str(a, from->op_input.name[i]),
				      .index = from->op_input.index[i],
				      .port = from->op_input.port[i],
				      .shown_port = from->op_input.shown_port[i] });
	first = from->op.output_first[old];
	count = from->op.output_count[old];
	m->op.output_first[new] = m->op_output.count;
	m->op.output_count[new] = count;
	for (uint32_t i = first; i < first + count; i++)
		builder_add_op_output(
			a->b,
			&(struct op_output_row){
				.index = from->op_output.index[i],
				.shape = { new_id(a, TABLE_shape, from->op_output.shape[i].v) } });
}

static ow_status add_ops(struct append *a)
{
	uint32_t before = a->m->op.count;

	for (uint32_t i = 1; i < a->from->op.count; i++)
		OW_TRY(add_op(a, i));
	for (uint32_t i = 1; i < a->from->op.count; i++)
		if (a->ids[TABLE_op][i] >= before)
			add_edges(a, i, a->ids[TABLE_op][i]);
	return a->b->status;
}

static uint64_t hash_step(op_id op, step_id step)
{
	return map_hash_u64((uint64_t)op.v << 32 | step.v, 7);
}

static void add_up(struct op_step_table *to, uint32_t row, const struct op_step_table *from,
		   uint32_t old)
{
	to->run_count[row] = wrap_add(to->run_count[row], from->run_count[old]);
	to->accelerator_ns[row] = wrap_add(to->accelerator_ns[row], from->accelerator_ns[old]);
	to->cpu_ns[row] = wrap_add(to->cpu_ns[row], from->cpu_ns[old]);
	if (from->first_start_ns[old] &&
	    (!to->first_start_ns[row] || from->first_start_ns[old] < to->first_start_ns[row]))
		to->first_start_ns[row] = from->first_start_ns[old];
	to->latest_end_ns[row] = MAX(to->latest_end_ns[row], from->latest_end_ns[old]);
}

static uint32_t find_row(const struct model *m, const struct map *map, op_id op, step_id step)
{
	for (struct map_iter it = map_find(map, hash_step(op, step)); it.value;
	     it = map_next(map, it))
		if (m->op_step.op[it.value].v == op.v && m->op_step.step[it.value].v == step.v)
			return it.value;
	return 0;
}

static bool add_op_steps(struct append *a, struct map *map)
{
	const struct op_step_table *from = &a->from->op_step;
	struct op_step_table *to = &a->m->op_step;

	for (uint32_t i = 1; i < to->count; i++)
		if (!map_add(map, hash_step(to->op[i], to->step[i]), i))
			return false;
	for (uint32_t i = 1; i < from->count; i++) {
		op_id op = { new_id(a, TABLE_op, from->op[i].v) };
		step_id step = { new_id(a, TABLE_step, from->step[i].v) };
		uint32_t row = find_row(a->m, map, op, step);

		if (!row) {
			row = builder_add_op_step(a->b,
						  &(struct op_step_row){ .op = op, .step = step })
				      .v;
			if (!row || !map_add(map, hash_step(op, step), row))
				return false;
		}
		add_up(to, row, from, i);
		a->ids[TABLE_op_step][i] = row;
	}
	return true;
}

static ow_status add_sums(struct append *a)
{
	struct map map;
	bool added;

	map_init(&map, a->m->mem);
	added = add_op_steps(a, &map);
	map_release(&map);
	if (a->b->status != OW_OK)
		return a->b->status;
	return added ? OW_OK : builder_fail(a->b, error_no_memory(a->err));
}

/* Converts columns whose references do not have an id type. */
static void fix_columns(struct append *a)
{
	struct model *m = a->m;

	for (uint32_t i = 1 + a->shift[TABLE_track]; i < m->track.count; i++) {
		m->track.pid[i] = new_text_number(a, m->track.pid[i]);
		m->track.tid[i] = new_text_number(a, m->track.tid[i]);
	}
	for (uint32_t i = 1 + a->shift[TABLE_event_key]; i < m->event_key.count; i++)
		m->event_key.id[i] = new_text_id(a, m->event_key.id[i]);
	for (uint32_t i = 1 + a->shift[TABLE_flow]; i < m->flow.count; i++)
		m->flow.id[i] = new_text_id(a, m->flow.id[i]);
	for (uint32_t i = 1 + a->shift[TABLE_memory]; i < m->memory.count; i++)
		m->memory.op_step[i] = new_id(a, TABLE_op_step, m->memory.op_step[i]);
	for (uint32_t i = 1 + a->shift[TABLE_alloc]; i < m->alloc.count; i++)
		m->alloc.op_step[i] = new_id(a, TABLE_op_step, m->alloc.op_step[i]);
}

/* Tables with lists of ids; their dependents (dim, strset_item, op_input, op_output) are added with them. */
static const int shared[] = { TABLE_device, TABLE_step,	 TABLE_shape, TABLE_strset,
			      TABLE_frame,  TABLE_stack, TABLE_op,    TABLE_op_step };

static bool is_copied(int table)
{
	for (size_t i = 0; i < ARRAY_COUNT(shared); i++)
		if (shared[i] == table)
			return false;
	return table != TABLE_dim && table != TABLE_strset_item && table != TABLE_op_input &&
	       table != TABLE_op_output;
}

static ow_status add_all(struct append *a)
{
	OW_TRY(add_strings(a));
	OW_TRY(add_devices(a));
	OW_TRY(add_steps(a));
	OW_TRY(add_shapes_and_sets(a));
	OW_TRY(add_code(a));
	/* shifts first, because columns refer to tables that come later */
	for (int t = 0; t < TABLE_COUNT; t++)
		a->shift[t] = is_copied(t) ? rows_of(a->m, t) - 1 : 0;
	OW_TRY(add_ops(a));
	OW_TRY(add_sums(a));
	for (int t = 0; t < TABLE_COUNT; t++)
		if (is_copied(t))
			OW_TRY(copy_rows(a, t));
	fix_columns(a);
	return a->b->status;
}

static bool make_lists(struct append *a)
{
	a->strings = mem_zalloc(a->m->mem, a->from->strings.count * sizeof(*a->strings));
	for (size_t i = 0; a->strings && i < ARRAY_COUNT(shared); i++) {
		a->ids[shared[i]] =
			mem_zalloc(a->m->mem, rows_of(a->from, shared[i]) * sizeof(uint32_t));
		if (!a->ids[shared[i]])
			return false;
	}
	return a->strings != NULL;
}

static void free_lists(struct append *a)
{
	mem_free(a->m->mem, a->strings, a->from->strings.count * sizeof(*a->strings));
	for (size_t i = 0; i < ARRAY_COUNT(shared); i++)
		mem_free(a->m->mem, a->ids[shared[i]],
			 rows_of(a->from, shared[i]) * sizeof(uint32_t));
}

static void add_whole(struct model *m, const struct model *from)
{
	if (from->time_unit_ns > 0 && (!m->time_unit_ns || from->time_unit_ns < m->time_unit_ns))
		m->time_unit_ns = from->time_unit_ns;
	m->has_code |= from->has_code;
	m->missing_streams |= from->missing_streams;
	m->damaged |= from->damaged;
}

ow_status model_append(struct builder *b, struct model *from, source_id *first,
		       struct ow_error *err)
{
	struct append a = { .b = b, .m = b->m, .from = from, .err = err };
	struct guard guard;
	ow_status status;

	OW_TRY(model_require_rows(from, TABLES_ALL, err));
	*first = (source_id){ b->m->source.count };
	guard_enter(&guard);
	status = make_lists(&a) ? add_all(&a) : builder_fail(b, error_no_memory(err));
	free_lists(&a);
	guard_leave(&guard);
	if (status == OW_OK)
		add_whole(b->m, from);
	return from->backing && mapping_lost(&from->backing->map) ? model_lost(from, err) : status;
}
