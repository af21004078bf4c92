/*
 * tree_columns.c: the columns of a tree, and the table that is made from it (tree_flatten), for tables, JSON and SQL.
 */
#include "table/tree/tree_columns.h"

#include "table/tree/tree_text.h"

struct number_column {
	uint32_t select; /* shown if one of these columns is selected */
	/* if this column is selected, the op view also shows the share of the whole */
	uint32_t share_select;
	enum metric metric;
	enum column_unit unit;
	const char *own, *own_title, *share, *total, *total_title;
};

/* Columns in the order in which users look for them. */
static const struct number_column number_columns[] = {
	{ SELECT_MICROS, SELECT_MICROS, METRIC_MICROS, UNIT_MICROS, "micros", "time",
	  "micros_percent", "total_micros", "total time" },
	{ SELECT_MICROS | SELECT_ACCELERATOR_MICROS, SELECT_ACCELERATOR_MICROS,
	  METRIC_ACCELERATOR_MICROS, UNIT_MICROS, "accelerator_micros", "accelerator",
	  "accelerator_micros_percent", "total_accelerator_micros", "total accelerator" },
	{ SELECT_MICROS | SELECT_CPU_MICROS, SELECT_CPU_MICROS, METRIC_CPU_MICROS, UNIT_MICROS,
	  "cpu_micros", "cpu", "cpu_micros_percent", "total_cpu_micros", "total cpu" },
	{ SELECT_BYTES, SELECT_BYTES, METRIC_BYTES, UNIT_BYTES, "bytes", "memory", "bytes_percent",
	  "total_bytes", "total memory" },
	{ SELECT_PEAK_BYTES, SELECT_PEAK_BYTES, METRIC_PEAK_BYTES, UNIT_BYTES, "peak_bytes",
	  "peak memory", "peak_bytes_percent", "total_peak_bytes", "total peak memory" },
	{ SELECT_RESIDUAL_BYTES, SELECT_RESIDUAL_BYTES, METRIC_RESIDUAL_BYTES, UNIT_BYTES,
	  "residual_bytes", "not released", "residual_bytes_percent", "total_residual_bytes",
	  "total not released" },
	{ SELECT_OUTPUT_BYTES, SELECT_OUTPUT_BYTES, METRIC_OUTPUT_BYTES, UNIT_BYTES, "output_bytes",
	  "output memory", "output_bytes_percent", "total_output_bytes", "total output memory" },
	{ SELECT_PARAMS, SELECT_PARAMS, METRIC_PARAMS, UNIT_COUNT, "params", "parameters",
	  "params_percent", "total_params", "total parameters" },
	{ SELECT_FLOAT_OPS, SELECT_FLOAT_OPS, METRIC_FLOAT_OPS, UNIT_COUNT, "float_ops",
	  "float ops", "float_ops_percent", "total_float_ops", "total float ops" },
	{ SELECT_OCCURRENCE, 0, METRIC_RUN_COUNT, UNIT_COUNT, "run_count", "runs", NULL,
	  "total_run_count", "total runs" },
	{ SELECT_OCCURRENCE, 0, METRIC_DEFINITION_COUNT, UNIT_COUNT, NULL, NULL, NULL,
	  "definition_count", "defined" },
};

static void add_column(struct tree_columns *to, struct tree_column column)
{
	to->list[to->count++] = column;
}

/* Lists the columns. In the op view totals add up from the last row, as in tfprof, which confuses people: they get
 * the share of the whole instead. Run counts have no total there. */
void tree_columns(const struct tree *tree, struct tree_columns *to)
{
	bool op = tree->kind == TREE_OP;

	to->count = 0;
	to->whole_micros = tree->model->time_unit_ns % 1000 == 0;
	for (size_t i = 0; i < ARRAY_COUNT(number_columns); i++) {
		const struct number_column *c = &number_columns[i];
		struct tree_column column = { .metric = c->metric, .unit = c->unit };

		if (!(tree->select & c->select))
			continue;
		column.real = c->unit == UNIT_MICROS && !to->whole_micros;
		column.name = c->own;
		column.title = c->own_title;
		column.value = TREE_OWN;
		if (c->own)
			add_column(to, column);
		column.name = c->total;
		column.title = c->total_title;
		column.value = TREE_TOTAL;
		column.for_programs = op && c->own;
		if (op && tree->select & c->share_select)
			add_column(to, (struct tree_column){ .name = c->share,
							     .title = "share",
							     .metric = c->metric,
							     .unit = UNIT_PERCENT,
							     .value = TREE_SHARE,
							     .real = true });
		if (!op || c->metric != METRIC_RUN_COUNT)
			add_column(to, column);
	}
}

_Static_assert(ARRAY_COUNT(number_columns) * 3 <= TREE_COLUMNS_MAX, "room for all columns");

bool tree_has_texts(const struct tree *tree)
{
	uint32_t texts = SELECT_DEVICE | SELECT_OP_TYPES;

	if (tree->kind <= TREE_GRAPH)
		texts |= SELECT_PARAMS | SELECT_INPUT_SHAPES |
			 (tree->tensor ? SELECT_TENSOR_VALUE : 0);
	return tree->select & texts;
}

#define NO_COLUMN UINT32_MAX

struct flat {
	struct table *r;
	struct tree *tree;
	struct tree_text text;
	struct buf buf;
	struct tree_columns numbers;
	uint32_t places[TREE_COLUMNS_MAX]; /* places of the number columns in r */
	uint32_t name, shape, device, types, inputs, tensor;
};

static uint32_t add_text_column(struct flat *f, uint32_t select, const char *name,
				const char *title)
{
	return f->tree->select & select ? table_add_column(f->r, name, title, TYPE_TEXT, UNIT_NONE)
					: NO_COLUMN;
}

static void add_columns(struct flat *f)
{
	bool scope = f->tree->kind <= TREE_GRAPH;

	f->name = table_add_column(f->r, "name", "name", TYPE_TEXT, UNIT_NONE);
	tree_columns(f->tree, &f->numbers);
	for (uint32_t i = 0; i < f->numbers.count; i++) {
		const struct tree_column *c = &f->numbers.list[i];

		f->places[i] = table_add_column(f->r, c->name, c->title,
						c->real ? TYPE_REAL : TYPE_INT, c->unit);
		f->r->columns[f->places[i]].for_programs = c->for_programs;
	}
	f->shape = add_text_column(f, scope ? SELECT_PARAMS : 0, "shape", "shape");
	f->device = add_text_column(f, SELECT_DEVICE, "device", "device");
	f->types = add_text_column(f, SELECT_OP_TYPES, "op_types", "op types");
	f->inputs =
		add_text_column(f, scope ? SELECT_INPUT_SHAPES : 0, "input_shapes", "input shapes");
	f->tensor = add_text_column(f, scope && f->tree->tensor ? SELECT_TENSOR_VALUE : 0,
				    "tensor_value", "value");
}

static void set_number(struct flat *f, uint32_t row, uint32_t column, const struct tree_column *c,
		       int64_t value)
{
	if (c->unit != UNIT_MICROS)
		table_set_int(f->r, row, column, value);
	else if (!c->real)
		table_set_int(f->r, row, column, value / 1000);
	else
		table_set_real(f->r, row, column, (double)value / 1000.0);
}

static int64_t total_of(const struct flat *f, const struct tree_node *node, enum metric metric)
{
	if (metric == METRIC_DEFINITION_COUNT && f->tree->kind == TREE_OP)
		return tree_own(f->tree, node, metric);
	return tree_total(f->tree, node, metric);
}

static void set_share(struct flat *f, uint32_t row, uint32_t column, int64_t own, int64_t whole)
{
	if (whole > 0)
		table_set_real(f->r, row, column, 100.0 * (double)own / (double)whole);
	else
		table_set_unknown(f->r, row, column);
}

static void set_numbers(struct flat *f, uint32_t row, const struct tree_node *node)
{
	for (uint32_t i = 0; i < f->numbers.count; i++) {
		const struct tree_column *c = &f->numbers.list[i];
		int64_t own = tree_own(f->tree, node, c->metric);

		if (c->value == TREE_TOTAL)
			set_number(f, row, f->places[i], c, total_of(f, node, c->metric));
		else if (c->value == TREE_SHARE)
			set_share(f, row, f->places[i], own,
				  tree_total(f->tree, f->tree->nodes, c->metric));
		else if (node->accounted)
			set_number(f, row, f->places[i], c, own);
		else
			table_set_unknown(f->r, row, f->places[i]);
	}
}

/* Sets a text from buf; an empty one is a missing value. */
static void set_text(struct flat *f, uint32_t row, uint32_t column)
{
	if (f->buf.len)
		table_set_text(f->r, row, column, buf_str(&f->buf));
	else
		table_set_unknown(f->r, row, column);
	buf_clear(&f->buf);
}

static void set_texts(struct flat *f, uint32_t row, const struct tree_node *node)
{
	struct model *m = f->tree->model;

	/* most names are whole strings of the model; a scope's may be the beginning of one */
	if (node->name.ptr[node->name.len])
		table_set_text(f->r, row, f->name, node->name);
	else
		table_set_model_text(f->r, row, f->name, node->name);
	if (f->shape != NO_COLUMN) {
		tree_text_shape(m, m->op.shape[node->op.v], &f->buf);
		set_text(f, row, f->shape);
	}
	if (f->device != NO_COLUMN) {
		(void)tree_text_devices(&f->text, node, &f->buf);
		set_text(f, row, f->device);
	}
	if (f->types != NO_COLUMN) {
		tree_text_types(&f->text, node, &f->buf);
		set_text(f, row, f->types);
	}
	if (f->inputs != NO_COLUMN) {
		tree_text_inputs(m, node->op, "|", &f->buf);
		set_text(f, row, f->inputs);
	}
	if (f->tensor != NO_COLUMN) {
		f->tree->tensor(f->tree->tensor_arg, node->name, &f->buf);
		set_text(f, row, f->tensor);
	}
}

static ow_status flatten_weights(struct table *r, struct ow_error *err)
{
	const struct tree *tree = r->tree;
	uint32_t count = tree->limit ? MIN(tree->limit, tree->node_count) : tree->node_count;
	int64_t whole = tree_total(tree, tree->nodes, METRIC_WEIGHT);
	enum { NAME, SELF, SELF_PERCENT, TOTAL, TOTAL_PERCENT };

	table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
	table_add_column(r, "self", "self", TYPE_INT, tree->weight_unit);
	table_add_column(r, "self_percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(r, "total", "total", TYPE_INT, tree->weight_unit);
	table_add_column(r, "total_percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_make_tree(r);
	if (count && !table_reserve(r, count))
		count = 0;
	for (uint32_t i = 0; i < count && r->status == OW_OK; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t row = table_add_row(r, node->depth);
		int64_t own = tree_own(tree, node, METRIC_WEIGHT);
		int64_t total = tree_total(tree, node, METRIC_WEIGHT);

		table_set_text(r, row, NAME, node->name);
		table_set_int(r, row, SELF, own);
		table_set_int(r, row, TOTAL, total);
		table_set_real(r, row, SELF_PERCENT,
			       whole > 0 ? 100.0 * (double)own / (double)whole : 0);
		table_set_real(r, row, TOTAL_PERCENT,
			       whole > 0 ? 100.0 * (double)total / (double)whole : 0);
	}
	return r->status == OW_OK ? OW_OK : error_no_memory(err);
}

/* Makes rows from the tree; the root is a row, too, except in the op view. */
ow_status tree_flatten(struct table *r, struct ow_error *err)
{
	struct flat f = { .r = r, .tree = r->tree };
	uint32_t first = f.tree->kind == TREE_OP, count;

	table_clear_columns(r); /* columns of an earlier call that failed */
	if (f.tree->weight_name.ptr)
		return flatten_weights(r, err);
	OW_TRY(tree_unfold(f.tree, r->mem, err));
	count = f.tree->node_count;
	if (f.tree->limit && count > first && f.tree->limit < count - first)
		count = first + f.tree->limit;
	tree_text_init(&f.text, f.tree, r->mem);
	buf_init(&f.buf, r->mem);
	add_columns(&f);
	if (f.tree->kind != TREE_OP)
		table_make_tree(r);
	if (count > first && !table_reserve(r, count - first))
		count = first;
	for (uint32_t i = first; i < count && r->status == OW_OK && !f.buf.failed; i++) {
		const struct tree_node *node = &f.tree->nodes[i];
		uint32_t row = table_add_row(r, node->depth);

		set_numbers(&f, row, node);
		set_texts(&f, row, node);
	}
	if (f.buf.failed)
		r->status = OW_E_NO_MEMORY;
	tree_text_release(&f.text);
	buf_release(&f.buf);
	return r->status == OW_OK ? OW_OK : error_no_memory(err);
}
