/*
 * sink_tfprof.c: writes the text that the original tfprof prints for its four views, byte for byte, its spelling
 * included. The text is never fitted to a terminal and never coloured. The callers write the lines around the text of
 * Python calls, and the files of -output.
 */
#include "sink/tfprof/tfprof_numbers.h"
#include "base/writer.h"
#include "sink/sink.h"

#include "table/tree/tree_text.h"

/* Limit of the output's size. Indentation makes the text of deep chains grow with the square of the depth; deeper
 * lines are not readable. */
#define TEXT_LIMIT ((uint64_t)4 << 30)

static const char warning[] =
	"\n\nFound accelerator operation but misses accelerator stream stats!\n\n"
	"It's likely a gpu tracing issue rather than tf-profiler issue.\n"
	"If you found your operation missing accelerator time, consider filing a bug to "
	"xprof-dev@!\n\n";

#define HELP_TOTAL "total execution time: Sum of accelerator execution time and cpu execution time."
#define HELP_CPU                                                                                   \
	"cpu execution time: The time from the start to the end of the operation. It's the sum "   \
	"of "                                                                                      \
	"actual cpu run time plus the time that it spends waiting if part of computation is "      \
	"launched asynchronously."
#define HELP_ACCELERATOR                                                                           \
	"accelerator execution time: Time spent executing on the accelerator. This is normally "   \
	"measured by the actual hardware library."

static const char *const select_help[SELECT_COUNT] = {
	HELP_ACCELERATOR,
	"requested bytes: The memory requested by the operation, accumulatively.",
	HELP_CPU,
	"device: which device is placed on.",
	"flops: Number of float operations. Note: Please read the implementation for the math "
	"behind "
	"it.",
	"input shape: The shape of input tensors",
	HELP_TOTAL "\n" HELP_CPU "\n" HELP_ACCELERATOR,
	"occurrence: The number of times it occurs",
	"op_types: The attributes of the operation, includes the Kernel name device placed on and "
	"user-defined strings.",
	"output bytes: The memory that is output from the operation (not necessarilty allocated by "
	"the operation)",
	"param: Number of parameters (in the Variable).",
	"peak bytes: The peak amount of memory that the operation is holding at some point.",
	"residual bytes: The memory not de-allocated after the operation finishes.",
	"tensor_value: Not supported now.",
};

/* The help line of each view. The graph view has the line of the scope view: an error of the original that is kept. */
static const char *const kind_help[] = {
	[TREE_SCOPE] = "scope: The nodes in the model graph are organized by their names, which is "
		       "hierarchical like filesystem.",
	[TREE_GRAPH] = "scope: The nodes in the model graph are organized by their names, which is "
		       "hierarchical like filesystem.",
	[TREE_CODE] =
		"code: When python trace is available, the nodes are python lines and their are "
		"organized by the python call stack.",
	[TREE_OP] = "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes "
		    "belonging to the same type are aggregated together.",
};

enum field_kind {
	FIELD_TIME,
	FIELD_MEMORY,
	FIELD_PARAMS,
	FIELD_FLOAT_OPS,
	FIELD_DEVICE,
	FIELD_TYPES,
	FIELD_OCCURRENCE,
	FIELD_INPUTS
};

struct field {
	uint32_t select; /* the field is shown when one of these columns is selected */
	enum field_kind kind;
	enum metric metric;
	const char *caption;
};

#define TIME_FIELDS                                                                                \
	{ SELECT_MICROS, FIELD_TIME, METRIC_MICROS, "total execution time" },                      \
		{ SELECT_MICROS | SELECT_ACCELERATOR_MICROS, FIELD_TIME,                           \
		  METRIC_ACCELERATOR_MICROS, "accelerator execution time" },                       \
	{                                                                                          \
		SELECT_MICROS | SELECT_CPU_MICROS, FIELD_TIME, METRIC_CPU_MICROS,                  \
			"cpu execution time"                                                       \
	}
#define MEMORY_FIELDS                                                                              \
	{ SELECT_BYTES, FIELD_MEMORY, METRIC_BYTES, "requested bytes" },                           \
		{ SELECT_PEAK_BYTES, FIELD_MEMORY, METRIC_PEAK_BYTES, "peak bytes" },              \
		{ SELECT_RESIDUAL_BYTES, FIELD_MEMORY, METRIC_RESIDUAL_BYTES, "residual bytes" },  \
	{                                                                                          \
		SELECT_OUTPUT_BYTES, FIELD_MEMORY, METRIC_OUTPUT_BYTES, "output bytes"             \
	}
#define COUNT_FIELDS                                                                               \
	{ SELECT_PARAMS, FIELD_PARAMS, METRIC_PARAMS, "# parameters" },                            \
	{                                                                                          \
		SELECT_FLOAT_OPS, FIELD_FLOAT_OPS, METRIC_FLOAT_OPS, "# float_ops"                 \
	}
#define TEXT_FIELDS(occurrence)                                                                    \
	{ SELECT_DEVICE, FIELD_DEVICE, METRIC_COUNT, "assigned devices" },                         \
		{ SELECT_OP_TYPES, FIELD_TYPES, METRIC_COUNT, "op types" },                        \
		{ SELECT_OCCURRENCE, FIELD_OCCURRENCE, METRIC_RUN_COUNT, occurrence },             \
	{                                                                                          \
		SELECT_INPUT_SHAPES, FIELD_INPUTS, METRIC_COUNT, "input shapes"                    \
	}

static const struct field node_fields[] = { COUNT_FIELDS, MEMORY_FIELDS, TIME_FIELDS,
					    TEXT_FIELDS("op count (run|defined)") };
static const struct field multi_fields[] = { MEMORY_FIELDS, TIME_FIELDS, COUNT_FIELDS,
					     TEXT_FIELDS("op occurrence (run|defined)") };
#define FIELDS ARRAY_COUNT(node_fields)

/* Columns whose values are not numbers. */
#define NOT_NUMBERS (SELECT_DEVICE | SELECT_OP_TYPES | SELECT_TENSOR_VALUE)

struct text {
	struct writer w;
	struct buf line;
	struct tree *tree;
	const struct sink_options *options;
	struct tree_text sets;
	struct tree_node last;		    /* the node of the previous line */
	const struct field *fields[FIELDS]; /* the selected fields, in order */
	size_t field_count;
	/* only numbers are selected, so a line depends on the node's values alone */
	bool numbers_only;
	bool first; /* the current line has no field yet */
};

static void select_fields(struct text *t)
{
	bool multi = t->tree->kind == TREE_OP || t->tree->kind == TREE_CODE;
	const struct field *all = multi ? multi_fields : node_fields;

	for (size_t i = 0; i < FIELDS; i++)
		if (t->tree->select & all[i].select)
			t->fields[t->field_count++] = &all[i];
	t->numbers_only = t->tree->kind == TREE_CODE && !(t->tree->select & NOT_NUMBERS);
}

static void begin_field(struct text *t)
{
	if (!t->first)
		buf_add(&t->line, ", ", 2);
	t->first = false;
}

static size_t put_number(char *to, enum field_kind kind, int64_t value)
{
	switch (kind) {
	case FIELD_TIME:
		return tfprof_micros(to, value);
	case FIELD_MEMORY:
		return tfprof_memory(to, value);
	default:
		return tfprof_count(to, value);
	}
}

static void add_number(struct text *t, enum field_kind kind, int64_t value)
{
	char number[TFPROF_NUMBER_BYTES];

	buf_add(&t->line, number, put_number(number, kind, value));
}

/* Writes own/total, with -- for values that are not accounted. It writes directly into the line, because there are
 * millions. */
static void add_pair(struct text *t, enum field_kind kind, bool accounted, int64_t own,
		     int64_t total)
{
	char *to, *begin;

	if (!buf_reserve(&t->line, 2 * TFPROF_NUMBER_BYTES + 1))
		return;
	begin = to = t->line.ptr + t->line.len;
	if (accounted) {
		to += put_number(to, kind, own);
	} else {
		*to++ = '-';
		*to++ = '-';
	}
	*to++ = '/';
	to += put_number(to, kind, total);
	t->line.len += (size_t)(to - begin);
}

static void add_metric(struct text *t, const struct field *f, const struct tree_node *node)
{
	begin_field(t);
	add_pair(t, f->kind, node->accounted, tree_own_shown(t->tree, node, f->metric),
		 tree_total_shown(t->tree, node, f->metric));
	if (f->kind == FIELD_PARAMS)
		buf_puts(&t->line, " params");
	if (f->kind == FIELD_FLOAT_OPS)
		buf_puts(&t->line, " flops");
}

/* Removes the beginning of a field that turned out to be empty. */
static void drop_field(struct text *t, size_t len, bool first)
{
	t->line.len = len;
	t->first = first;
}

static void add_shape(struct text *t, const struct tree_node *node)
{
	const struct model *m = t->tree->model;
	size_t before = t->line.len, begin;
	bool first = t->first;

	if (t->tree->kind == TREE_CODE)
		return;
	begin_field(t);
	begin = t->line.len;
	tree_text_shape(m, m->op.shape[node->op.v], &t->line);
	if (t->line.len == begin)
		drop_field(t, before, first);
}

static void add_device(struct text *t, const struct tree_node *node)
{
	size_t before = t->line.len;
	bool first = t->first;

	begin_field(t);
	if (!tree_text_devices(&t->sets, node, &t->line))
		drop_field(t, before, first);
}

static void add_occurrence(struct text *t, const struct tree_node *node)
{
	begin_field(t);
	if (t->tree->kind == TREE_CODE) {
		buf_puts(&t->line, "occurrence N/A in code view");
		return;
	}
	add_pair(t, FIELD_OCCURRENCE, node->accounted, tree_own(t->tree, node, METRIC_RUN_COUNT),
		 tree_total(t->tree, node, METRIC_RUN_COUNT));
	buf_add_char(&t->line, '|');
	add_pair(t, FIELD_OCCURRENCE, node->accounted, 1,
		 tree_total(t->tree, node, METRIC_DEFINITION_COUNT));
}

static void add_field(struct text *t, const struct field *f, const struct tree_node *node)
{
	switch (f->kind) {
	case FIELD_PARAMS:
		add_shape(t, node);
		add_metric(t, f, node);
		return;
	case FIELD_TIME:
	case FIELD_MEMORY:
	case FIELD_FLOAT_OPS:
		add_metric(t, f, node);
		return;
	case FIELD_DEVICE:
		add_device(t, node);
		return;
	case FIELD_TYPES:
		begin_field(t);
		tree_text_types(&t->sets, node, &t->line);
		return;
	case FIELD_OCCURRENCE:
		add_occurrence(t, node);
		return;
	case FIELD_INPUTS:
		begin_field(t);
		if (t->tree->kind == TREE_CODE)
			buf_puts(&t->line, "input_shapes N/A in code view");
		else
			tree_text_inputs(t->tree->model, node->op, "|", &t->line);
		return;
	}
}

static void send_message(struct text *t, struct str line)
{
	if (t->options->message && line.len)
		t->options->message(t->options->message_arg, line);
}

/* Writes the tensor of a checkpoint that has the node's name, after the node's line. */
static void add_tensor(struct text *t, const struct tree_node *node)
{
	struct buf message;
	struct str rest, line;

	if (t->tree->kind == TREE_CODE) {
		send_message(t, STR("code view has no tensor value to show"));
		return;
	}
	if (!t->options->tensor || str_eq(node->name, STR("_TFProfRoot")))
		return;
	buf_init(&message, t->w.mem);
	t->options->tensor(t->options->tensor_arg, node->name, &t->line, &message);
	rest = buf_str(&message);
	while (str_split(&rest, '\n', &line))
		send_message(t, line);
	t->line.failed |= message.failed;
	buf_release(&message);
}

/* Whether the fields of a node are the same as on the previous line: callers with a single callee have the values of
 * that callee. */
static bool same_fields(const struct text *t, const struct tree_node *node)
{
	return t->numbers_only && node != t->tree->nodes && t->last.total_row == node->total_row &&
	       t->last.own_row == node->own_row && t->last.accounted == node->accounted;
}

static void write_node(struct text *t, const struct tree_node *node)
{
	writer_repeat(&t->w, ' ', 2 * (size_t)node->depth);
	writer_str(&t->w, node->name);
	if (same_fields(t, node)) {
		writer_str(&t->w, buf_str(&t->line));
		return;
	}
	t->last = *node;
	buf_clear(&t->line);
	buf_add(&t->line, " (", 2);
	t->first = true;
	for (size_t i = 0; i < t->field_count; i++)
		add_field(t, t->fields[i], node);
	buf_add(&t->line, ")\n", 2);
	if (t->tree->select & SELECT_TENSOR_VALUE)
		add_tensor(t, node);
	writer_str(&t->w, buf_str(&t->line));
}

/* Writes the lines that are folded into a node. */
static void write_chain(struct text *t, const struct tree_node *node)
{
	const struct code_node *code = &t->tree->code_nodes[node->code];
	struct tree_node line = *node;
	uint32_t labels[CODE_CHAIN_MAX];

	tree_chain(t->tree, code, labels);
	for (uint32_t i = 0; i < node->chain; i++) {
		line.name = t->tree->labels[labels[i]];
		line.depth++;
		line.own_row = i + 1 < code->chain_count ? 0 : tree_code_row(code);
		write_node(t, &line);
	}
}

/* The value from which percentages are computed. If the source has whole microseconds only, it is in microseconds,
 * as in the original, so that percentages round alike. */
static double percent_base(const struct text *t, const struct field *f, int64_t value)
{
	int64_t base = value;

	if (t->tree->model->time_unit_ns % 1000 == 0)
		base = tree_shown(t->tree, f->metric, value);
	return (double)base;
}

static void add_percents(struct text *t, const struct field *f, const struct tree_node *node)
{
	static const char *const words[] = { [FIELD_PARAMS] = " params",
					     [FIELD_FLOAT_OPS] = " float_ops",
					     [FIELD_TIME] = "",
					     [FIELD_MEMORY] = "" };
	int64_t own = tree_own_stored(t->tree, node, f->metric);
	int64_t total = tree_total_stored(t->tree, node, f->metric);
	double root = percent_base(t, f, tree_total_stored(t->tree, t->tree->nodes, f->metric));
	double below = 0, share = 0;
	char text[512], number[TFPROF_NUMBER_BYTES];
	size_t len = put_number(number, f->kind, tree_shown(t->tree, f->metric, own));

	if (percent_base(t, f, f->kind == FIELD_MEMORY ? own : total) > 0) {
		below = 100.0 * percent_base(t, f, total) / root;
		share = 100.0 * percent_base(t, f, own) / root;
	}
	snprintf(text, sizeof(text), "%.*s%s (%.2f%%, %.2f%%)", (int)len, number, words[f->kind],
		 below, share);
	begin_field(t);
	buf_printf(&t->line, "%30s", text);
}

static void add_runs(struct text *t, const struct tree_node *node)
{
	char text[64];
	uint32_t op_count;

	(void)tree_ops(t->tree, node, &op_count);
	snprintf(text, sizeof(text), "%" PRId64 "|%" PRIu32,
		 tree_own(t->tree, node, METRIC_RUN_COUNT), op_count);
	begin_field(t);
	buf_printf(&t->line, "%10s", text);
}

static void add_op_field(struct text *t, const struct field *f, const struct tree_node *node)
{
	switch (f->kind) {
	case FIELD_TIME:
	case FIELD_MEMORY:
	case FIELD_PARAMS:
	case FIELD_FLOAT_OPS:
		add_percents(t, f, node);
		return;
	case FIELD_DEVICE:
		begin_field(t);
		(void)tree_text_devices(&t->sets, node, &t->line);
		return;
	case FIELD_TYPES:
		begin_field(t);
		tree_text_types(&t->sets, node, &t->line);
		return;
	case FIELD_OCCURRENCE:
		add_runs(t, node);
		return;
	case FIELD_INPUTS: /* these fields have lines of their own */
		return;
	}
}

static void add_signatures(struct text *t, const struct tree_node *node)
{
	const struct tree_group *group = &t->tree->groups[node - t->tree->nodes];
	const struct tree_signature *sign;

	if (!group->signature_count)
		return;
	sign = t->tree->signatures + group->signature_first;
	buf_add_char(&t->line, '\n');
	for (uint32_t i = 0; i < group->signature_count; i++) {
		buf_puts(&t->line, "input_type: ");
		buf_add_str(&t->line, sign[i].text);
		buf_printf(&t->line, "\t(run*%" PRId64 "|defined*%" PRId64 ")\texec_time: ",
			   sign[i].run_count, sign[i].defined);
		add_number(t, FIELD_TIME, tree_shown(t->tree, METRIC_MICROS, sign[i].exec_time));
		buf_add_char(&t->line, '\n');
	}
	buf_add_char(&t->line, '\n');
}

static void write_op(struct text *t, const struct tree_node *node)
{
	size_t pad = node->name.len < 25 ? 25 - node->name.len : 0;

	buf_clear(&t->line);
	buf_add_str(&t->line, node->name);
	buf_add_repeat(&t->line, ' ', pad);
	t->first = true;
	for (size_t i = 0; i < t->field_count; i++)
		add_op_field(t, t->fields[i], node);
	buf_add_char(&t->line, '\n');
	add_signatures(t, node);
	writer_str(&t->w, buf_str(&t->line));
}

/* Writes one help entry for each selected word, in the order of the words; unknown words are included. */
static void write_doc(struct text *t)
{
	const struct tree *tree = t->tree;
	uint32_t unknown = 0;
	const char *gap = "";

	writer_puts(&t->w, "\nDoc:\n");
	writer_puts(&t->w, kind_help[tree->kind]);
	writer_char(&t->w, '\n');
	for (uint32_t i = 0; i <= SELECT_COUNT; i++) {
		for (; unknown < tree->unknown_select_count; unknown++) {
			const char *word = tree->unknown_select[unknown];

			if (i < SELECT_COUNT && strcmp(word, select_names[i]) > 0)
				break;
			if (unknown && !strcmp(word, tree->unknown_select[unknown - 1]))
				continue;
			writer_puts(&t->w, gap);
			writer_puts(&t->w, "Unknown select: ");
			writer_puts(&t->w, word);
			gap = "\n";
		}
		if (i == SELECT_COUNT || !(tree->select & 1u << i))
			continue;
		writer_puts(&t->w, gap);
		writer_puts(&t->w, select_help[i]);
		gap = "\n";
	}
	writer_puts(&t->w, "\n\nProfile:\n");
}

static void write_legend(struct text *t)
{
	writer_puts(&t->w, "node name | ");
	for (size_t i = 0; i < t->field_count; i++) {
		writer_puts(&t->w, i ? " | " : "");
		writer_puts(&t->w, t->fields[i]->caption);
	}
	writer_char(&t->w, '\n');
}

static void write_rows(struct text *t)
{
	const struct tree *tree = t->tree;
	bool op = tree->kind == TREE_OP;

	for (uint32_t i = op; i < tree->node_count; i++) {
		if (t->w.status != OW_OK || t->line.failed)
			return;
		tree_fetch_ahead(tree, i);
		if (op)
			write_op(t, &tree->nodes[i]);
		else
			write_node(t, &tree->nodes[i]);
		if (tree->nodes[i].chain)
			write_chain(t, &tree->nodes[i]);
	}
}

static ow_status check_size(const struct tree *tree, struct ow_error *err)
{
	uint64_t bytes = 0;
	uint32_t depth = 0;

	for (uint32_t i = 0; i < tree->node_count; i++) {
		uint64_t rows = tree->nodes[i].chain + 1u, last = tree->nodes[i].depth + rows - 1;

		/* the names of a chain are assumed to be as long as the first */
		bytes += rows * (tree->nodes[i].depth + last + tree->nodes[i].name.len);
		depth = MAX(depth, (uint32_t)last);
	}
	if (bytes <= TEXT_LIMIT)
		return OW_OK;
	return error_set(err, OW_E_LIMIT,
			 "the tree is %" PRIu32 " levels deep and would take %" PRIu64
			 " GB of text, most of it indentation: give a smaller -max_depth",
			 depth, bytes / 1000000000);
}

static ow_status write_tfprof(struct table *result, const struct sink_options *options,
			      const struct out *out, struct ow_error *err)
{
	struct text t = { .tree = result->tree, .options = options };

	if (t.tree->select & NOT_NUMBERS)
		OW_TRY(tree_unfold(t.tree, result->mem, err));
	OW_TRY(check_size(t.tree, err));
	writer_init(&t.w, result->mem, out, err);
	buf_init(&t.line, result->mem);
	tree_text_init(&t.sets, t.tree, result->mem);
	select_fields(&t);
	if (t.tree->model->missing_streams)
		writer_puts(&t.w, warning);
	write_doc(&t);
	if (t.tree->kind == TREE_OP && t.tree->empty_store) {
		write_op(&t, &t.tree->nodes[0]);
	} else {
		write_legend(&t);
		write_rows(&t);
	}
	if (t.line.failed)
		writer_fail(&t.w, error_no_memory(err));
	tree_text_release(&t.sets);
	buf_release(&t.line);
	return writer_finish(&t.w);
}

const struct sink sink_tfprof = {
	.name = "tfprof",
	.summary = "the text of the original tfprof, byte for byte",
	.extension = "txt",
	.accepts = SINK_TREES,
	.folded = true,
	.write = write_tfprof,
};
