/*
 * tree.c: see tree.h. Making and freeing trees, the metrics of one op, and turning a tree into the
 * columns that tables, JSON and SQL want. How rows were chosen is the views' business.
 */
#include "model/tree.h"

#include "model/metrics.h"
#include "model/tree_text.h"

#include <stdarg.h>

const char *const select_names[SELECT_COUNT] = {
	"accelerator_micros", "bytes",	      "cpu_micros", "device",
	"float_ops",	      "input_shapes", "micros",	    "occurrence",
	"op_types",	      "output_bytes", "params",	    "peak_bytes",
	"residual_bytes",     "tensor_value",
};

void tree_free(struct tree *tree, struct mem *mem)
{
	if (!tree)
		return;
	if (tree->code_node_cap)
		mem_free(mem, tree->code_nodes, tree->code_node_cap * sizeof(*tree->code_nodes));
	arena_release(&tree->arena);
	mem_free(mem, tree, sizeof(*tree));
}

void tree_set_metrics(struct tree *tree, uint32_t mask)
{
	tree->width = 0;
	for (uint32_t i = 0; i < METRIC_COUNT; i++)
		tree->places[i] = mask & METRIC_BIT(i) ? (uint8_t)tree->width++ : TREE_NO_VALUE;
}

/* Row 0 stays zero, for nodes that nobody gave values. */
ow_status tree_reserve(struct tree *tree, uint32_t nodes, bool rows, struct error *err)
{
	size_t values = ((size_t)nodes + 1) * tree->width;

	tree->nodes = ARENA_ARRAY(&tree->arena, struct tree_node, nodes);
	if (rows) {
		tree->own_rows = ARENA_ARRAY(&tree->arena, int64_t, values);
		tree->total_rows = ARENA_ARRAY(&tree->arena, int64_t, values);
	}
	return tree->nodes && tree->own_rows && tree->total_rows ? OW_OK : error_no_memory(err);
}

ow_status tree_message(struct tree *tree, struct error *err, const char *format, ...)
{
	uint32_t count = tree->message_count;
	struct str *grown = tree->messages;
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = arena_push_aligned(&tree->arena, (size_t)MAX(len, 0) + 1, 1);
	if (!(count & (count + 1))) /* full at 0, 1, 3, 7, … */
		grown = ARENA_ARRAY(&tree->arena, struct str, 2 * (size_t)count + 1);
	if (!text || !grown)
		return error_no_memory(err);
	va_start(args, format);
	vsnprintf(text, (size_t)MAX(len, 0) + 1, format, args);
	va_end(args);
	if (grown != tree->messages && count)
		memcpy(grown, tree->messages, count * sizeof(*grown));
	tree->messages = grown;
	tree->messages[tree->message_count++] = str_from(text);
	return OW_OK;
}

void tree_op_metrics(const struct model *m, op_id op, int64_t step, int64_t out[METRIC_COUNT])
{
	struct metric_plan plan;

	metric_plan_init(&plan, m, step, METRIC_ALL);
	metric_eval(&plan, op, out);
}

/* ---- columns ---- */

struct number_column {
	uint32_t select;       /* shown when one of these is selected */
	uint32_t share_select; /* when this is, the op view also tells the share of the whole */
	enum metric metric;
	enum result_unit unit;
	const char *own, *own_title, *share, *total, *total_title;
};

/* In the order in which people look for them. */
static const struct number_column number_columns[] = {
	{ SELECT_MICROS, SELECT_MICROS, METRIC_MICROS, RESULT_MICROS, "micros", "time",
	  "micros_percent", "total_micros", "total time" },
	{ SELECT_MICROS | SELECT_ACCELERATOR_MICROS, SELECT_ACCELERATOR_MICROS,
	  METRIC_ACCELERATOR_MICROS, RESULT_MICROS, "accelerator_micros", "accelerator",
	  "accelerator_micros_percent", "total_accelerator_micros", "total accelerator" },
	{ SELECT_MICROS | SELECT_CPU_MICROS, SELECT_CPU_MICROS, METRIC_CPU_MICROS, RESULT_MICROS,
	  "cpu_micros", "cpu", "cpu_micros_percent", "total_cpu_micros", "total cpu" },
	{ SELECT_BYTES, SELECT_BYTES, METRIC_BYTES, RESULT_BYTES, "bytes", "memory",
	  "bytes_percent", "total_bytes", "total memory" },
	{ SELECT_PEAK_BYTES, SELECT_PEAK_BYTES, METRIC_PEAK_BYTES, RESULT_BYTES, "peak_bytes",
	  "peak memory", "peak_bytes_percent", "total_peak_bytes", "total peak memory" },
	{ SELECT_RESIDUAL_BYTES, SELECT_RESIDUAL_BYTES, METRIC_RESIDUAL_BYTES, RESULT_BYTES,
	  "residual_bytes", "not released", "residual_bytes_percent", "total_residual_bytes",
	  "total not released" },
	{ SELECT_OUTPUT_BYTES, SELECT_OUTPUT_BYTES, METRIC_OUTPUT_BYTES, RESULT_BYTES,
	  "output_bytes", "output memory", "output_bytes_percent", "total_output_bytes",
	  "total output memory" },
	{ SELECT_PARAMS, SELECT_PARAMS, METRIC_PARAMS, RESULT_COUNT, "params", "parameters",
	  "params_percent", "total_params", "total parameters" },
	{ SELECT_FLOAT_OPS, SELECT_FLOAT_OPS, METRIC_FLOAT_OPS, RESULT_COUNT, "float_ops",
	  "float ops", "float_ops_percent", "total_float_ops", "total float ops" },
	{ SELECT_OCCURRENCE, 0, METRIC_RUN_COUNT, RESULT_COUNT, "run_count", "runs", NULL,
	  "total_run_count", "total runs" },
	{ SELECT_OCCURRENCE, 0, METRIC_DEFINITION_COUNT, RESULT_COUNT, NULL, NULL, NULL,
	  "definition_count", "defined" },
};

#define NO_COLUMN UINT32_MAX

struct flat {
	struct result *r;
	struct tree *tree;
	struct tree_text text;
	struct buf buf;
	bool whole_micros; /* times have no part below a microsecond */
	uint32_t own[ARRAY_COUNT(number_columns)], share[ARRAY_COUNT(number_columns)];
	uint32_t total[ARRAY_COUNT(number_columns)];
	uint32_t name, shape, device, types, inputs;
};

static uint32_t add_number_column(struct flat *f, const char *name, const char *title,
				  enum result_unit unit)
{
	bool real = unit == RESULT_MICROS && !f->whole_micros;

	return result_column(f->r, name, title, real ? RESULT_REAL : RESULT_INT, unit);
}

static uint32_t add_text_column(struct flat *f, uint32_t select, const char *name,
				const char *title)
{
	return f->tree->select & select
		       ? result_column(f->r, name, title, RESULT_TEXT, RESULT_PLAIN)
		       : NO_COLUMN;
}

/* In the op view totals add up from the last row, as in tfprof, which puzzles people: they get the share
 * of the whole instead. Run counts have no total there. */
static void add_columns(struct flat *f)
{
	bool op = f->tree->kind == TREE_OP, scope = f->tree->kind <= TREE_GRAPH;

	f->name = result_column(f->r, "name", "name", RESULT_TEXT, RESULT_PLAIN);
	for (size_t i = 0; i < ARRAY_COUNT(number_columns); i++) {
		const struct number_column *c = &number_columns[i];

		f->own[i] = f->share[i] = f->total[i] = NO_COLUMN;
		if (!(f->tree->select & c->select))
			continue;
		if (c->own)
			f->own[i] = add_number_column(f, c->own, c->own_title, c->unit);
		if (op && f->tree->select & c->share_select)
			f->share[i] =
				result_column(f->r, c->share, "share", RESULT_REAL, RESULT_PERCENT);
		if (op && c->metric == METRIC_RUN_COUNT)
			continue;
		f->total[i] = add_number_column(f, c->total, c->total_title, c->unit);
		f->r->columns[f->total[i]].for_programs = op && c->own;
	}
	f->shape = add_text_column(f, scope ? SELECT_PARAMS : 0, "shape", "shape");
	f->device = add_text_column(f, SELECT_DEVICE, "device", "device");
	f->types = add_text_column(f, SELECT_OP_TYPES, "op_types", "op types");
	f->inputs =
		add_text_column(f, scope ? SELECT_INPUT_SHAPES : 0, "input_shapes", "input shapes");
}

static void set_number(struct flat *f, uint32_t row, uint32_t column, enum result_unit unit,
		       int64_t value)
{
	if (unit != RESULT_MICROS)
		result_set_int(f->r, row, column, value);
	else if (f->whole_micros)
		result_set_int(f->r, row, column, value / 1000);
	else
		result_set_real(f->r, row, column, (double)value / 1000.0);
}

static int64_t total_of(const struct flat *f, const struct tree_node *node, enum metric metric)
{
	if (metric == METRIC_DEFINITION_COUNT && f->tree->kind >= TREE_OP)
		return f->tree->kind == TREE_OP ? tree_own(f->tree, node, metric)
						: tree_total(f->tree, node, metric);
	return tree_total(f->tree, node, metric);
}

static void set_share(struct flat *f, uint32_t row, uint32_t column, int64_t own, int64_t whole)
{
	if (whole > 0)
		result_set_real(f->r, row, column, 100.0 * (double)own / (double)whole);
	else
		result_set_unknown(f->r, row, column);
}

static void set_numbers(struct flat *f, uint32_t row, const struct tree_node *node)
{
	for (size_t i = 0; i < ARRAY_COUNT(number_columns); i++) {
		const struct number_column *c = &number_columns[i];

		if (f->total[i] != NO_COLUMN)
			set_number(f, row, f->total[i], c->unit, total_of(f, node, c->metric));
		if (f->share[i] != NO_COLUMN)
			set_share(f, row, f->share[i], tree_own(f->tree, node, c->metric),
				  tree_total(f->tree, f->tree->nodes, c->metric));
		if (f->own[i] == NO_COLUMN)
			continue;
		if (node->accounted)
			set_number(f, row, f->own[i], c->unit, tree_own(f->tree, node, c->metric));
		else
			result_set_unknown(f->r, row, f->own[i]);
	}
}

/* Takes what is in buf; an empty text is a missing value. */
static void set_text(struct flat *f, uint32_t row, uint32_t column)
{
	if (f->buf.len)
		result_set_text(f->r, row, column, buf_str(&f->buf));
	else
		result_set_unknown(f->r, row, column);
	buf_clear(&f->buf);
}

static void set_texts(struct flat *f, uint32_t row, const struct tree_node *node)
{
	struct model *m = f->tree->model;

	/* most names are whole strings of the model; a scope's may be the beginning of one */
	if (node->name.ptr[node->name.len])
		result_set_text(f->r, row, f->name, node->name);
	else
		result_set_model_text(f->r, row, f->name, node->name);
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
}

/* The root is a row of its own, but in the op view. */
ow_status tree_flatten(struct result *r, struct error *err)
{
	struct flat f = { .r = r, .tree = r->tree };
	uint32_t first = f.tree->kind == TREE_OP, count;

	OW_TRY(tree_unfold(f.tree, r->mem, err));
	count = f.tree->node_count;
	if (f.tree->limit && count > first && f.tree->limit < count - first)
		count = first + f.tree->limit;
	f.whole_micros = f.tree->model->time_unit_ns % 1000 == 0;
	tree_text_init(&f.text, f.tree, r->mem);
	buf_init(&f.buf, r->mem);
	add_columns(&f);
	if (f.tree->kind != TREE_OP)
		result_make_tree(r);
	if (count > first && !result_reserve(r, count - first))
		count = first;
	for (uint32_t i = first; i < count && r->status == OW_OK && !f.buf.failed; i++) {
		const struct tree_node *node = &f.tree->nodes[i];
		uint32_t row = result_row(r, node->depth);

		set_numbers(&f, row, node);
		set_texts(&f, row, node);
	}
	if (f.buf.failed)
		r->status = OW_E_NO_MEMORY;
	tree_text_release(&f.text);
	buf_release(&f.buf);
	return r->status == OW_OK ? OW_OK : error_no_memory(err);
}
