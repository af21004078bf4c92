/*
 * columns.c: columns that are paths through the model's tables, described by model/schema.def: their type, unit and
 * name, the value that stands for NULL, and reading them, a block of rows at a time. See columns.h.
 */
#include "relation/columns.h"

#include "analyze/steps/phases.h"
#include "model/backing.h"

#include <math.h>

/* Columns that have a meaning only inside the model, or that a relation shows differently. */
static const char *const hidden[] = {
	"dim_first",	"item_first",	"input_first", "output_first",	"step_first",
	"memory_first", "memory_count", "code_offset", "code_size",	"record_offset",
	"record_size",	"args_offset",	"args_size",   "shared_offset", "shared_size",
	"flags",	"run",		"id",
};

/* Columns that have another name in SQL; columns of times get short names. */
static const struct {
	const char *model, *sql;
} names[] = {
	{ "ts_ns", "ts" },
	{ "dur_ns", "dur" },
	{ "self_ns", "self_dur" },
	{ "offset", "byte_offset" }, /* "offset" is a keyword of SQL */
};

static const struct {
	enum table_id table;
	const char *column;
	enum null_rule rule;
	/* replaces the schema's description if that describes the value inside the model */
	const char *doc;
} null_rules[] = {
	{ TABLE_source, "rank", NULL_NEGATIVE,
	  "rank of the source within its job, NULL when unknown" },
	{ TABLE_track, "pid", NULL_NO_ID, NULL },
	{ TABLE_track, "tid", NULL_NO_ID, NULL },
	{ TABLE_op, "float_ops", NULL_ZERO,
	  "number of float operations of one run, NULL when unknown" },
	{ TABLE_op, "accessed", NULL_ZERO,
	  "number of bytes that one run reads and writes, NULL when unknown" },
	{ TABLE_op, "foreign_id", NULL_ABSENT, NULL },
	{ TABLE_op_step, "first_start_ns", NULL_ZERO,
	  "earliest start of a run, NULL when unknown" },
	{ TABLE_op_step, "latest_end_ns", NULL_ZERO, "latest end of a run, NULL when unknown" },
	{ TABLE_event, "self_ns", NULL_ABSENT, NULL },
	{ TABLE_event, "bytes", NULL_ZERO, NULL },
	{ TABLE_event, "correlation", NULL_ZERO, NULL },
	{ TABLE_memory, "in_use", NULL_ZERO, NULL },
	{ TABLE_tensor, "address", NULL_ZERO, NULL },
	{ TABLE_frame, "line", NULL_ZERO, "line number of the frame, NULL when unknown" },
	{ TABLE_frame, "function_line", NULL_ZERO,
	  "line where the frame's function starts, NULL when unknown" },
	{ TABLE_frame, "address", NULL_ZERO, NULL },
	{ TABLE_sample, "cpu", NULL_COUNTED, "number of the processor, from 0; NULL when unknown" },
	{ TABLE_heap, "address", NULL_ZERO, "address of the block; NULL when unknown" },
	{ TABLE_heap, "allocated", NULL_ZERO,
	  "bytes in use after the change, as the source reports them; NULL when unknown" },
	{ TABLE_heap, "reserved", NULL_ZERO,
	  "bytes that the allocator holds after the change; NULL when unknown" },
	{ TABLE_heap, "available", NULL_ZERO,
	  "bytes that the allocator could still provide; NULL when unknown" },
	{ TABLE_heap, "peak", NULL_ZERO,
	  "largest number of bytes ever in use, as the source reports it; NULL when unknown" },
	{ TABLE_heap, "requested", NULL_ZERO, NULL },
	{ TABLE_heap, "fragmentation", NULL_ABSENT, NULL },
	{ TABLE_heap, "dtype", NULL_ZERO, NULL },
	{ TABLE_note, "offset", NULL_MAX,
	  "byte offset of the first occurrence, NULL when unknown" },
	{ TABLE_shape, "rank", NULL_NEGATIVE, NULL },
};

static bool is_hidden(const char *column)
{
	for (size_t i = 0; i < ARRAY_COUNT(hidden); i++)
		if (strcmp(hidden[i], column) == 0)
			return true;
	return false;
}

static const char *doc_of(enum table_id table, const struct column_info *info)
{
	for (size_t i = 0; i < ARRAY_COUNT(null_rules); i++)
		if (null_rules[i].table == table && null_rules[i].doc &&
		    strcmp(null_rules[i].column, info->name) == 0)
			return null_rules[i].doc;
	return info->doc;
}

static enum null_rule null_rule(enum table_id table, const struct column_info *info)
{
	for (size_t i = 0; i < ARRAY_COUNT(null_rules); i++)
		if (null_rules[i].table == table && strcmp(null_rules[i].column, info->name) == 0)
			return null_rules[i].rule;
	return info->unit == UNIT_NS ? NULL_TIME : NULL_NEVER;
}

static bool is(const struct column_info *info, const char *type)
{
	return strcmp(info->type, type) == 0;
}

/* The table whose rows a column refers to; TABLE_COUNT when its values are not rows. */
static enum table_id target_of(const struct column_info *info)
{
	size_t len = strlen(info->type);

	if (is(info, "uint32_t") && strcmp(info->name, "op_step") == 0)
		return TABLE_op_step;
	if (len <= 3 || strcmp(info->type + len - 3, "_id") != 0)
		return TABLE_COUNT;
	for (int t = 0; t < TABLE_COUNT; t++)
		if (strlen(model_tables[t].name) == len - 3 &&
		    memcmp(model_tables[t].name, info->type, len - 3) == 0)
			return (enum table_id)t;
	return TABLE_COUNT;
}

static bool is_small(const struct column_info *info)
{
	return info->size == 1;
}

/* Sets the type and dictionary of a column, from the last table of its path. */
static void set_type(struct table_column *c, const struct column_info *info)
{
	enum table_id target = target_of(info);

	c->unit = info->unit;
	c->fill = fill_path;
	if (is(info, "str_id")) {
		c->type = TYPE_TEXT;
		c->dict = DICT_STRINGS;
	} else if (target == TABLE_shape || target == TABLE_strset) {
		c->type = TYPE_TEXT;
	} else if (target != TABLE_COUNT) {
		c->type = TYPE_INT;
		c->refers = true;
	} else if (info->unit == UNIT_ENUM) {
		c->type = TYPE_TEXT;
		c->dict = DICT_WORDS;
		c->words = words_of(info->doc);
		/* An unknown phase is NULL; for other enums, 0 has a word, too. */
		c->number = c->words == &words_event_phase ? 0 : 1;
	} else if (info->unit == UNIT_FLAGS) {
		c->type = TYPE_BOOL;
	} else if (is_small(info)) {
		c->type = TYPE_TEXT;
		c->dict = DICT_WORDS;
		c->words = &words_letters;
	} else if (is(info, "double")) {
		c->type = TYPE_REAL;
	} else if (is(info, "uint64_t") && info->unit == UNIT_NONE) {
		c->type = TYPE_UINT64;
	} else if (is(info, "int32_t") || is(info, "uint16_t")) {
		c->type = TYPE_INT32;
	} else {
		c->type = TYPE_INT;
	}
}

/* Adds the words of an enum to the column's description, for comparisons in queries; the schema only gives the
 * enum's name in C. */
static ow_status list_words(struct table *t, struct table_column *c, struct ow_error *err)
{
	struct buf text;

	buf_init(&text, t->mem);
	for (uint32_t i = 1; i < c->words->count; i++)
		buf_printf(&text, "%s%.*s", i == 1 ? "one of " : ", ", STR_ARG(c->words->texts[i]));
	c->doc = text.failed ? NULL : arena_cstr(&t->arena, buf_str(&text));
	buf_release(&text);
	return c->doc ? OW_OK : error_no_memory(err);
}

ow_status columns_add(struct table *t, const struct table_column *column, struct ow_error *err)
{
	if (t->column_count == TABLE_COLUMNS_MAX)
		return error_set(err, OW_E_LIMIT, "%s has more than %d columns", t->name,
				 TABLE_COLUMNS_MAX);
	t->columns[t->column_count] = *column;
	if (column->dict == DICT_WORDS && str_starts(str_from(column->doc), STR("enum ")))
		OW_TRY(list_words(t, &t->columns[t->column_count], err));
	t->column_count++;
	return OW_OK;
}

void columns_need(struct table *t, uint64_t tables)
{
	t->tables |= tables;
}

static ow_status fill_id(const struct table_part *p, const struct table_column *c, uint64_t first,
			 uint32_t n, struct table_vec *out, struct ow_error *err)
{
	int64_t *to = out->values, base = p->id_base + 1 + (int64_t)first;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = base + i;
	return OW_OK;
}

ow_status columns_id(struct table *t, struct ow_error *err)
{
	return columns_add(t,
			   &(struct table_column){ .name = "id",
						   .doc = "number of the row, unique over all runs",
						   .type = TYPE_INT,
						   .fill = fill_id },
			   err);
}

static const struct column_info *find_column(enum table_id table, struct str name)
{
	for (uint32_t i = 0; i < model_tables[table].column_count; i++)
		if (str_eq(str_from(model_tables[table].columns[i].name), name))
			return &model_tables[table].columns[i];
	return NULL;
}

static ow_status read_path(struct table *t, enum table_id table, const char *text,
			   struct model_path *path)
{
	struct str rest = str_from(text), name;

	while (str_split(&rest, '.', &name)) {
		const struct column_info *info =
			table < TABLE_COUNT ? find_column(table, name) : NULL;

		/* holds because all paths are written in this program */
		OW_ASSERT(info && path->count < PATH_HOPS);
		if (!info || path->count == PATH_HOPS)
			return OW_E_INTERNAL;
		columns_need(t, (uint64_t)1 << table);
		path->hops[path->count].table = table;
		path->hops[path->count++].info = info;
		path->null_rule = null_rule(table, info);
		path->needs_stacks |= table == TABLE_op && target_of(info) == TABLE_stack;
		path->needs_nesting |=
			table == TABLE_event &&
			(strcmp(info->name, "self_ns") == 0 || strcmp(info->name, "depth") == 0);
		table = target_of(info);
	}
	/* Columns whose text is composed of other tables. */
	if (table == TABLE_shape)
		columns_need(t, TABLE_BIT(shape) | TABLE_BIT(dim));
	if (table == TABLE_strset)
		columns_need(t, TABLE_BIT(strset) | TABLE_BIT(strset_item));
	return OW_OK;
}

ow_status columns_path(struct table *t, enum table_id from, const char *name, const char *text,
		       const char *doc, struct ow_error *err)
{
	struct table_column column = { .name = name, .doc = doc };
	struct model_path *path = ARENA_NEW(&t->arena, struct model_path);
	const struct column_info *last;

	if (!path)
		return error_no_memory(err);
	if (read_path(t, from, text, path) != OW_OK)
		return error_set(err, OW_E_INTERNAL, "%s.%s: no such path", name, text);
	last = path->hops[path->count - 1].info;
	if (!doc)
		column.doc = doc_of(path->hops[path->count - 1].table, last);
	column.path = path;
	set_type(&column, last);
	return columns_add(t, &column, err);
}

const struct path_column columns_op_step[] = {
	{ "op_id", "op_step.op", NULL },
	{ "op", "op_step.op.name", "name of the op" },
	{ "op_type", "op_step.op.type", NULL },
	{ "device", "op_step.op.device", "device of the op" },
	{ "step", "op_step.step.number", "number of the step" },
	{ NULL, NULL, NULL },
};

ow_status columns_paths(struct table *t, enum table_id from, const struct path_column *columns,
			struct ow_error *err)
{
	for (; columns->name; columns++)
		OW_TRY(columns_path(t, from, columns->name, columns->path, columns->doc, err));
	return OW_OK;
}

/* The SQL name of a column: ts for ts_ns, track_id for track. */
static const char *sql_name(struct table *t, const struct column_info *info)
{
	enum table_id target = target_of(info);

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strcmp(names[i].model, info->name) == 0)
			return names[i].sql;
	if (target == TABLE_COUNT || target == TABLE_shape || target == TABLE_strset)
		return info->name;
	return arena_printf(&t->arena, "%s_id", info->name);
}

ow_status columns_of_table(struct table *t, enum table_id table, struct ow_error *err)
{
	const struct table_info *info = &model_tables[table];

	OW_TRY(columns_id(t, err));
	for (uint32_t i = 0; i < info->column_count; i++) {
		const char *name;

		if (is_hidden(info->columns[i].name))
			continue;
		name = sql_name(t, &info->columns[i]);
		if (!name)
			return error_no_memory(err);
		OW_TRY(columns_path(t, table, name, info->columns[i].name, NULL, err));
	}
	return OW_OK;
}

static ow_status fill_flag(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct column_info *info = c->path->hops[0].info;
	const void *values = column_values(p->m, c->path->hops[0].table, info);
	const uint8_t *small = values;
	const uint32_t *wide = values;
	bool *to = out->values;

	(void)err;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t flags = !values	  ? 0
				 : is_small(info) ? small[first + 1 + i]
						  : wide[first + 1 + i];

		to[i] = (flags & c->number) != 0;
	}
	return OW_OK;
}

ow_status columns_flag(struct table *t, enum table_id table, const char *name, uint32_t bit,
		       const char *doc, struct ow_error *err)
{
	struct table_column *c;

	OW_TRY(columns_path(t, table, name, "flags", doc, err));
	c = &t->columns[t->column_count - 1];
	c->type = TYPE_BOOL;
	c->unit = UNIT_NONE;
	c->fill = fill_flag;
	c->number = bit;
	return OW_OK;
}

/* Reads a member of a row struct. column.number is the offset of the member; column.stride the size of a row;
 * part.row_data the first row. */
static ow_status fill_member(const struct table_part *p, const struct table_column *c,
			     uint64_t first, uint32_t n, struct table_vec *out,
			     struct ow_error *err)
{
	const char *at = (const char *)p->row_data + first * c->stride + c->number;

	(void)err;
	for (uint32_t i = 0; i < n; i++, at += c->stride) {
		const void *member = at;
		int64_t number;
		double real;

		switch (c->type) {
		case TYPE_TEXT:
			if (c->dict == DICT_WORDS)
				((uint32_t *)out->values)[i] = *(const uint32_t *)member;
			else
				((struct str *)out->values)[i] = *(const struct str *)member;
			break;
		case TYPE_REAL:
			real = *(const double *)member;
			((double *)out->values)[i] = isnan(real) ? 0 : real;
			if (isnan(real))
				vec_null(out, n, i);
			break;
		case TYPE_BOOL:
			((bool *)out->values)[i] = *(const bool *)member;
			break;
		default:
			number = *(const int64_t *)member;
			if (number == ROW_UNKNOWN) {
				vec_null(out, n, i);
				number = 0;
			}
			((int64_t *)out->values)[i] = number;
		}
	}
	return OW_OK;
}

ow_status rows_describe(struct table *t, const struct row_member *members, size_t row_size,
			struct ow_error *err)
{
	for (; members->name; members++)
		OW_TRY(columns_add(
			t,
			&(struct table_column){ .name = members->name,
						.doc = members->doc,
						.type = members->type,
						.unit = members->unit,
						.fill = fill_member,
						.dict = members->words ? DICT_WORDS : DICT_NONE,
						.words = members->words,
						.number = members->offset,
						.stride = (uint32_t)row_size },
			err));
	return OW_OK;
}

void rows_set(struct table_part *part, const void *rows, uint64_t count)
{
	part->row_data = rows;
	part->rows = count;
}

ow_status rows_of_phases(struct table_part *part,
			 ow_status (*make)(struct table_part *part, struct phases *p,
					   struct ow_error *err),
			 struct ow_error *err)
{
	struct phases p = { 0 };
	ow_status status = phases_analyse(part->m, &EVENT_FILTER_ALL, &p, err);

	if (status == OW_OK)
		status = make(part, &p, err);
	phases_release(&p);
	return status;
}
