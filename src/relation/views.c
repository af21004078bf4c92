/*
 * views.c: every view as a relation with options: op_view(order_by := 'micros'). The columns are found by running the
 * view on a nearly empty model, so listing them costs nothing. The view runs when its rows are read. Times of tfprof's
 * views are microseconds with decimals.
 */
#include "analyze/view.h"
#include "model/backing.h"
#include "model/builder.h"
#include "relation/columns.h"

#define AT(field) (uint32_t) offsetof(struct view_options, field)

static const struct table_param params[] = {
	{ "order_by", "column to sort by", TYPE_TEXT },
	{ "max_depth", "number of levels to show; view op: number of rows", TYPE_INT },
	{ "min_bytes", "hide rows that request less memory", TYPE_INT },
	{ "min_peak_bytes", "hide rows with a lower peak of memory", TYPE_INT },
	{ "min_residual_bytes", "hide rows that leave less memory allocated", TYPE_INT },
	{ "min_output_bytes", "hide rows with smaller outputs", TYPE_INT },
	{ "min_micros", "hide rows that take less time", TYPE_INT },
	{ "min_accelerator_micros", "hide rows that take less time on accelerators", TYPE_INT },
	{ "min_cpu_micros", "hide rows that take less time on CPUs", TYPE_INT },
	{ "min_params", "hide rows with fewer parameters", TYPE_INT },
	{ "min_float_ops", "hide rows with fewer float operations", TYPE_INT },
	{ "min_occurrence", "hide rows that occur less often", TYPE_INT },
	{ "step", "number of the step to show", TYPE_INT },
	{ "rank", "show only rows that this rank recorded", TYPE_INT },
	{ "time_from", "start of the time range, in nanoseconds from the first event", TYPE_INT },
	{ "time_to", "end of the time range, in nanoseconds from the first event", TYPE_INT },
	{ "account_type_regexes", "count only ops with a matching type", TYPE_TEXT },
	{ "start_name_regexes", "start the tree at nodes with a matching name", TYPE_TEXT },
	{ "trim_name_regexes", "leave out the rows below nodes with a matching name", TYPE_TEXT },
	{ "show_name_regexes", "show only nodes with a matching name", TYPE_TEXT },
	{ "hide_name_regexes", "hide nodes with a matching name", TYPE_TEXT },
	{ "account_displayed_op_only", "count only the shown rows in the totals", TYPE_BOOL },
	{ "full_names", "show the whole names of kernels", TYPE_BOOL },
	{ "metric", "for samples: the metric to show", TYPE_TEXT },
	{ "style", "for samples: words that choose the stacks; see the view code", TYPE_TEXT },
	{ NULL, NULL, 0 },
};

/* Offsets of the options in the options struct, in the order of params. */
static const uint32_t offsets[] = {
	AT(order_by),
	AT(max_depth),
	AT(min_bytes),
	AT(min_peak_bytes),
	AT(min_residual_bytes),
	AT(min_output_bytes),
	AT(min_micros),
	AT(min_accelerator_micros),
	AT(min_cpu_micros),
	AT(min_params),
	AT(min_float_ops),
	AT(min_occurrence),
	AT(step),
	AT(rank),
	AT(time_from_ns),
	AT(time_to_ns),
	AT(account_type_regexes),
	AT(start_name_regexes),
	AT(trim_name_regexes),
	AT(show_name_regexes),
	AT(hide_name_regexes),
	AT(account_displayed_op_only),
	AT(full_names),
	AT(metric),
	AT(style),
};
_Static_assert(ARRAY_COUNT(offsets) == ARRAY_COUNT(params) - 1, "one for each");

/* Splits "a,b" into a list. */
static ow_status read_list(struct arena *arena, struct str text, struct ow_list *list,
			   struct ow_error *err)
{
	const char **items = ARENA_ARRAY(arena, const char *, text.len / 2 + 2);
	struct str piece;
	size_t count = 0;

	if (!items)
		return error_no_memory(err);
	while (str_split(&text, ',', &piece)) {
		if (!piece.len)
			continue;
		items[count] = arena_cstr(arena, piece);
		if (!items[count++])
			return error_no_memory(err);
	}
	*list = (struct ow_list){ items, count };
	return OW_OK;
}

/* Checks the option order_by. The views accept any word, as tfprof does, and then sort by name; here an unknown word
 * is an error. */
static ow_status check_order(const char *word, struct ow_error *err)
{
	char known[256];
	size_t len = 0;

	for (size_t i = 0; view_order_at(i); i++) {
		if (!strcmp(word, view_order_at(i)) || !*word)
			return OW_OK;
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
					view_order_at(i));
		OW_ASSERT(len < sizeof(known));
	}
	return error_set(err, OW_E_USAGE, "order_by does not know '%s'; it takes %s", word, known);
}

static ow_status set_option(struct table *t, const struct table_arg *arg,
			    struct view_options *options, struct ow_error *err)
{
	uint32_t offset = offsets[arg->param - params];
	char *at = (char *)options + offset;

	if (offset == AT(order_by) || offset == AT(metric) || offset == AT(style)) {
		const char *text = arena_cstr(&t->arena, arg->text);

		*(const char **)(void *)at = text;
		if (!text)
			return error_no_memory(err);
		return offset == AT(order_by) ? check_order(text, err) : OW_OK;
	}
	if (arg->param->type == TYPE_TEXT)
		return read_list(&t->arena, arg->text, (struct ow_list *)(void *)at, err);
	if (arg->param->type == TYPE_BOOL)
		*(bool *)(void *)at = arg->number != 0;
	else if (offset == AT(max_depth) || offset == AT(rank))
		*(int32_t *)(void *)at =
			(int32_t)MAX(MIN(arg->number, INT32_MAX), (int64_t)INT32_MIN);
	else
		*(int64_t *)(void *)at = arg->number;
	return OW_OK;
}

/* Makes the view's options: all columns and, unless the query says otherwise, all rows, costliest first. */
static ow_status read_options(struct table *t, const struct view *view, const struct model *m,
			      struct view_options *options, struct ow_error *err)
{
	struct view_options asked;

	static const char *const columns[] = {
		"bytes",     "peak_bytes",	   "residual_bytes", "output_bytes",
		"micros",    "accelerator_micros", "cpu_micros",     "params",
		"float_ops", "occurrence",	   "device",	     "op_types",
	};

	view_options_init(options);
	options->select = (struct ow_list){ columns, ARRAY_COUNT(columns) };
	options->max_depth = INT32_MAX / 2;
	if (view->tree)
		options->order_by = "micros";
	view_options_init(&asked);
	asked.order_by = NULL;
	asked.max_depth = OW_DEFAULT_DEPTH;
	for (size_t i = 0; i < t->arg_count; i++) {
		OW_TRY(set_option(t, &t->args[i], options, err));
		OW_TRY(set_option(t, &t->args[i], &asked, err));
	}
	return view_options_check(view, m, &asked, err);
}

static ow_status run_view(struct table *t, const struct view *view, struct model *m,
			  struct mem *mem, struct table **out, struct ow_error *err)
{
	struct view_options options;
	struct table *r;
	ow_status status;

	*out = NULL;
	OW_TRY(read_options(t, view, m, &options, err));
	r = table_new(mem, view->name, err);
	if (!r)
		return OW_E_NO_MEMORY;
	status = view->run(m, &options, r, err);
	if (status == OW_OK && r->tree)
		status = tree_flatten(r, err);
	view_describe(view, r);
	if (status == OW_OK && r->status != OW_OK)
		status = error_no_memory(err);
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	*out = r;
	return OW_OK;
}

static enum column_type type_of(const struct table_column *c)
{
	if (c->unit == UNIT_MICROS)
		return TYPE_REAL; /* the source decides whether the values are whole numbers */
	switch (c->type) {
	case TYPE_INT:
		return TYPE_INT;
	case TYPE_REAL:
		return TYPE_REAL;
	case TYPE_BOOL:
		return TYPE_BOOL;
	default:
		return TYPE_TEXT;
	}
}

static enum column_unit unit_of(enum column_unit unit)
{
	switch (unit) {
	case UNIT_NS:
		return UNIT_NS;
	case UNIT_BYTES:
		return UNIT_BYTES;
	case UNIT_COUNT:
		return UNIT_COUNT;
	default:
		return UNIT_NONE;
	}
}

/* The name of a column in SQL; keywords of SQL are replaced, because they would have to be quoted. */
static const char *sql_name(const char *name)
{
	return strcmp(name, "where") == 0    ? "location"
	       : strcmp(name, "offset") == 0 ? "byte_offset"
					     : name;
}

/* The result's column with this name, or NULL. */
static const struct table_column *find_column(const struct table *r, const char *name)
{
	for (uint32_t i = 0; r && i < r->column_count; i++)
		if (strcmp(sql_name(r->columns[i].name), name) == 0)
			return &r->columns[i];
	return NULL;
}

static void put_value(const struct table_column *c, const struct table_column *from, uint64_t row,
		      uint32_t i, struct table_vec *out)
{
	switch (c->type) {
	case TYPE_TEXT:
		((struct str *)out->values)[i] = from->texts[row];
		return;
	case TYPE_REAL:
		((double *)out->values)[i] =
			from->type == TYPE_REAL ? from->reals[row] : (double)from->ints[row];
		return;
	case TYPE_BOOL:
		((bool *)out->values)[i] = from->ints[row] != 0;
		return;
	default:
		((int64_t *)out->values)[i] = from->ints[row];
	}
}

static ow_status fill(const struct table_part *p, const struct table_column *c, uint64_t first,
		      uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct table_column *from = find_column(p->state, c->name);

	(void)err;
	memset(out->values, 0, n * column_value_size(c));
	for (uint32_t i = 0; i < n; i++) {
		if (from && (!from->known || from->known[first + i]))
			put_value(c, from, first + i, i, out);
		else if (c->type != TYPE_TEXT)
			vec_null(out, n, i);
	}
	return OW_OK;
}

static ow_status fill_depth(const struct table_part *p, const struct table_column *c,
			    uint64_t first, uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct table *r = p->state;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = r->depth ? r->depth[first + i] : 0;
	return OW_OK;
}

static const struct view *view_of(const struct table_source *relation);

static ow_status add_columns(struct table *t, const struct table *r, struct ow_error *err)
{
	if (r->depth)
		OW_TRY(columns_add(t,
				   &(struct table_column){ .name = "depth",
							   .doc = "level in the tree; rows are in "
								  "its order",
							   .type = TYPE_INT,
							   .fill = fill_depth },
				   err));
	for (uint32_t i = 0; i < r->column_count; i++) {
		const struct table_column *c = &r->columns[i];

		OW_TRY(columns_add(t,
				   &(struct table_column){ .name = sql_name(c->name),
							   .title = c->title,
							   .doc = c->doc ? c->doc : c->title,
							   .type = type_of(c),
							   .unit = unit_of(c->unit),
							   .fill = fill },
				   err));
	}
	return OW_OK;
}

/* Describes the columns from an empty model. Options for a step or a rank are left out, because they would be errors
 * there. */
static ow_status describe_empty(struct table *t, struct model *m, struct ow_error *err)
{
	struct table without = { .arena = t->arena };
	struct table *r;
	ow_status status;

	status = run_view(&without, view_of(t->source), m, t->mem, &r, err);
	t->arena = without.arena;
	OW_TRY(status);
	status = add_columns(t, r, err);
	table_free(r);
	return status;
}

/* Adds an op with a line of code to the empty model, because some views refuse to run without one. */
static void add_something(struct builder *b)
{
	str_id name = builder_cstr(b, "x");
	op_id op = builder_new_op(b, &(struct op_row){ .name = name, .flags = OP_HAS_CODE });
	frame_id frame = builder_frame(b, &(struct frame_row){ .file = name, .line = 1 });
	stack_id stack = builder_stack(b, (stack_id){ 0 }, frame);

	BUILDER_SET(b, op, stack, op, stack);
	b->m->has_code = true;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	struct builder b;
	struct model *m = model_new(t->mem, err);
	ow_status status;

	if (!m)
		return OW_E_NO_MEMORY;
	columns_need(t, TABLES_ALL);
	builder_init(&b, m, err);
	add_something(&b);
	status = builder_status(&b);
	if (status == OW_OK)
		status = model_freeze(&b);
	if (status == OW_OK)
		status = describe_empty(t, m, err);
	model_free(m);
	if (status == OW_E_NO_MEMORY)
		return error_no_memory(err);
	return status;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct table *r;
	ow_status status = run_view(t, view_of(t->source), part->m, t->mem, &r, err);

	if (status == OW_E_NOT_FOUND && !part->m->has_code && !t->arg_count)
		return OW_OK; /* a run without code has no rows of this view */
	OW_TRY(status);
	part->state = r;
	part->rows = r->row_count;
	return OW_OK;
}

static void release(struct table_part *part)
{
	table_free(part->state);
}

#define VIEW(view)                                                                                 \
	static const struct table_source relation_of_##view = {                                    \
		.name = #view "_view",                                                             \
		.doc = "the view " #view ": docs/views/" #view ".md",                              \
		.params = params,                                                                  \
		.describe = describe,                                                              \
		.prepare = prepare,                                                                \
		.release = release,                                                                \
	};
#include "analyze/views.def"
#undef VIEW

static const struct table_source *const view_relations[] = {
#define VIEW(view) &relation_of_##view,
#include "analyze/views.def"
#undef VIEW
};

const struct table_source *view_relation_at(size_t index)
{
	return index < ARRAY_COUNT(view_relations) ? view_relations[index] : NULL;
}

/* The view of a relation: both tables have the same order. */
static const struct view *view_of(const struct table_source *relation)
{
	for (size_t i = 0; i < ARRAY_COUNT(view_relations); i++)
		if (view_relations[i] == relation)
			return views[i];
	return NULL;
}
