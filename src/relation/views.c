/*
 * views.c: every view as a relation with options: op_view(order_by := 'micros'). Columns are those of the
 * view's result, made from a model with next to nothing in it, so that asking for them costs nothing; the view runs when
 * its rows are read. Times of tfprof's views are microseconds with decimals.
 */
#include "analyze/view.h"
#include "model/backing.h"
#include "model/builder.h"
#include "relation/columns.h"

/* ---- options ---- */

#define AT(field) (uint32_t) offsetof(struct view_options, field)

static const struct relation_param params[] = {
	{ "order_by", "column to sort by", RELATION_TEXT },
	{ "max_depth", "levels (op: rows) to show", RELATION_INT64 },
	{ "min_bytes", "hide what requests less memory", RELATION_INT64 },
	{ "min_peak_bytes", "hide what peaks below", RELATION_INT64 },
	{ "min_residual_bytes", "hide what leaves less behind", RELATION_INT64 },
	{ "min_output_bytes", "hide smaller outputs", RELATION_INT64 },
	{ "min_micros", "hide what takes less time", RELATION_INT64 },
	{ "min_accelerator_micros", "hide what takes less time on accelerators", RELATION_INT64 },
	{ "min_cpu_micros", "hide what takes less time on CPUs", RELATION_INT64 },
	{ "min_params", "hide what has fewer parameters", RELATION_INT64 },
	{ "min_float_ops", "hide what has fewer float operations", RELATION_INT64 },
	{ "min_occurrence", "hide what occurs less often", RELATION_INT64 },
	{ "step", "the step to show", RELATION_INT64 },
	{ "rank", "only what this rank recorded", RELATION_INT64 },
	{ "time_from", "nanoseconds from the first event", RELATION_INT64 },
	{ "time_to", "nanoseconds from the first event", RELATION_INT64 },
	{ "account_type_regexes", "count only ops one of whose types matches", RELATION_TEXT },
	{ "start_name_regexes", "show from these nodes down", RELATION_TEXT },
	{ "trim_name_regexes", "cut below these nodes", RELATION_TEXT },
	{ "show_name_regexes", "show only these", RELATION_TEXT },
	{ "hide_name_regexes", "hide these", RELATION_TEXT },
	{ "account_displayed_op_only", "totals count only what is shown", RELATION_BOOL },
	{ "full_names", "kernels by their whole name", RELATION_BOOL },
	{ "metric", "samples: what was measured", RELATION_TEXT },
	{ "style", "samples: words, see the view code", RELATION_TEXT },
	{ NULL, NULL, 0 },
};

/* Where the options are, in the order of params. */
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

/* "a,b" as a list. */
static ow_status read_list(struct arena *arena, struct str text, struct ow_list *list,
			   struct error *err)
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

/* The views take any word, as the original does, and then sort by name; whoever asks here is told. */
static ow_status check_order(const char *word, struct error *err)
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

static ow_status set_option(struct relation_table *t, const struct relation_arg *arg,
			    struct view_options *options, struct error *err)
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
	if (arg->param->type == RELATION_TEXT)
		return read_list(&t->arena, arg->text, (struct ow_list *)(void *)at, err);
	if (arg->param->type == RELATION_BOOL)
		*(bool *)(void *)at = arg->number != 0;
	else if (offset == AT(max_depth) || offset == AT(rank))
		*(int32_t *)(void *)at =
			(int32_t)MAX(MIN(arg->number, INT32_MAX), (int64_t)INT32_MIN);
	else
		*(int64_t *)(void *)at = arg->number;
	return OW_OK;
}

/* All columns and, unless said otherwise, all rows, costliest first. */
static ow_status read_options(struct relation_table *t, const struct view *view,
			      struct view_options *options, struct error *err)
{
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
	for (size_t i = 0; i < t->arg_count; i++)
		OW_TRY(set_option(t, &t->args[i], options, err));
	return OW_OK;
}

/* ---- columns ---- */

static ow_status run_view(struct relation_table *t, const struct view *view, struct model *m,
			  struct mem *mem, struct result **out, struct error *err)
{
	struct view_options options;
	struct result *r;
	ow_status status;

	*out = NULL;
	OW_TRY(read_options(t, view, &options, err));
	r = result_new(mem, view->name, err);
	if (!r)
		return OW_E_NO_MEMORY;
	status = view->run(m, &options, r, err);
	if (status == OW_OK && r->tree)
		status = tree_flatten(r, err);
	if (status == OW_OK && r->status != OW_OK)
		status = error_no_memory(err);
	if (status != OW_OK) {
		result_free(r);
		return status;
	}
	*out = r;
	return OW_OK;
}

static enum relation_type type_of(const struct result_column *c)
{
	if (c->unit == RESULT_MICROS)
		return RELATION_REAL; /* whole numbers or not, depending on the source */
	switch (c->type) {
	case RESULT_INT:
		return RELATION_INT64;
	case RESULT_REAL:
		return RELATION_REAL;
	case RESULT_BOOL:
		return RELATION_BOOL;
	default:
		return RELATION_TEXT;
	}
}

static enum column_unit unit_of(enum result_unit unit)
{
	switch (unit) {
	case RESULT_NS:
		return UNIT_NS;
	case RESULT_BYTES:
		return UNIT_BYTES;
	case RESULT_COUNT:
		return UNIT_COUNT;
	default:
		return UNIT_NONE;
	}
}

/* Words that SQL keeps for itself would have to be quoted. */
static const char *sql_name(const char *name)
{
	return strcmp(name, "where") == 0    ? "location"
	       : strcmp(name, "offset") == 0 ? "byte_offset"
					     : name;
}

/* The result's column of that name, or NULL. */
static const struct result_column *find_column(const struct result *r, const char *name)
{
	for (uint32_t i = 0; r && i < r->column_count; i++)
		if (strcmp(sql_name(r->columns[i].name), name) == 0)
			return &r->columns[i];
	return NULL;
}

static void put_value(const struct relation_column *c, const struct result_column *from,
		      uint64_t row, uint32_t i, struct relation_vec *out)
{
	switch (c->type) {
	case RELATION_TEXT:
		((struct str *)out->values)[i] = from->texts[row];
		return;
	case RELATION_REAL:
		((double *)out->values)[i] =
			from->type == RESULT_REAL ? from->reals[row] : (double)from->ints[row];
		return;
	case RELATION_BOOL:
		((bool *)out->values)[i] = from->ints[row] != 0;
		return;
	default:
		((int64_t *)out->values)[i] = from->ints[row];
	}
}

static ow_status fill(const struct relation_part *p, const struct relation_column *c,
		      uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	const struct result_column *from = find_column(p->state, c->name);

	(void)err;
	memset(out->values, 0, n * relation_value_size(c));
	for (uint32_t i = 0; i < n; i++) {
		if (from && (!from->known || from->known[first + i]))
			put_value(c, from, first + i, i, out);
		else if (c->type != RELATION_TEXT)
			vec_null(out, n, i);
	}
	return OW_OK;
}

static ow_status fill_depth(const struct relation_part *p, const struct relation_column *c,
			    uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	const struct result *r = p->state;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = r->depth ? r->depth[first + i] : 0;
	return OW_OK;
}

static const struct view *view_of(const struct relation *relation);

static ow_status add_columns(struct relation_table *t, const struct result *r, struct error *err)
{
	if (r->depth)
		OW_TRY(columns_add(
			t,
			&(struct relation_column){ .name = "depth",
						   .doc = "level in the tree; rows are in "
							  "its order",
						   .type = RELATION_INT64,
						   .fill = fill_depth },
			err));
	for (uint32_t i = 0; i < r->column_count; i++) {
		const struct result_column *c = &r->columns[i];

		OW_TRY(columns_add(t,
				   &(struct relation_column){ .name = sql_name(c->name),
							      .doc = c->title,
							      .type = type_of(c),
							      .unit = unit_of(c->unit),
							      .fill = fill },
				   err));
	}
	return OW_OK;
}

/* A step or a rank that no model without rows has would be an error: it is asked for later. */
static ow_status describe_empty(struct relation_table *t, struct model *m, struct error *err)
{
	struct relation_table without = { .arena = t->arena };
	struct result *r;
	ow_status status;

	status = run_view(&without, view_of(t->relation), m, t->mem, &r, err);
	t->arena = without.arena;
	OW_TRY(status);
	status = add_columns(t, r, err);
	result_free(r);
	return status;
}

/* An op that a line of code made: some views refuse to run without. */
static void add_something(struct builder *b)
{
	str_id name = builder_cstr(b, "x");
	op_id op = builder_new_op(b, &(struct op_row){ .name = name, .flags = OP_HAS_CODE });
	frame_id frame = builder_frame(b, &(struct frame_row){ .file = name, .line = 1 });
	stack_id stack = builder_stack(b, (stack_id){ 0 }, frame);

	BUILDER_SET(b, op, stack, op, stack);
	b->m->has_code = true;
}

static ow_status describe(struct relation_table *t, struct error *err)
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

static ow_status prepare(struct relation_table *t, struct relation_part *part, struct error *err)
{
	struct result *r;
	ow_status status = run_view(t, view_of(t->relation), part->m, t->mem, &r, err);

	if (status == OW_E_NOT_FOUND && !part->m->has_code && !t->arg_count)
		return OW_OK; /* a run without code has no rows of it */
	OW_TRY(status);
	part->state = r;
	part->rows = r->row_count;
	return OW_OK;
}

static void release(struct relation_part *part)
{
	result_free(part->state);
}

/* ---- the table ---- */

#define VIEW(view)                                                                                 \
	static const struct relation relation_of_##view = {                                        \
		.name = #view "_view",                                                             \
		.doc = "the view " #view ": docs/views/" #view ".md",                              \
		.params = params,                                                                  \
		.describe = describe,                                                              \
		.prepare = prepare,                                                                \
		.release = release,                                                                \
	};
#include "analyze/views.def"
#undef VIEW

static const struct relation *const view_relations[] = {
#define VIEW(view) &relation_of_##view,
#include "analyze/views.def"
#undef VIEW
};

const struct relation *view_relation_at(size_t index)
{
	return index < ARRAY_COUNT(view_relations) ? view_relations[index] : NULL;
}

/* The view of which the relation is made: both tables are in the same order. */
static const struct view *view_of(const struct relation *relation)
{
	for (size_t i = 0; i < ARRAY_COUNT(view_relations); i++)
		if (view_relations[i] == relation)
			return views[i];
	return NULL;
}
