/*
 * tf_finish.c: runs once, after all TensorFlow inputs are read and before the freeze: computes float operations if no
 * op log has them, the static shapes they need, shapes that the user gives for inputs, and the weights of frozen
 * graphs. Called by import_finish. Shapes are computed in one forward pass through the graph (tf_flow.h, tf_rule.h):
 * shapes of the source first, then those inferred by rules, then those seen at run time. Every op's formula
 * (tf_flops.h) is applied as soon as its shapes are final. Numbers that a source gave are never changed.
 */
#include "import/tensorflow/tf_finish.h"
#include "import/tensorflow/shapes/tf_flops.h"
#include "import/importer.h"
#include "import/tensorflow/shapes/tf_flow.h"
#include "import/tensorflow/graph/tf_node.h"
#include "import/tensorflow/shapes/tf_rule.h"

/* Input shapes: shapes that the user gives for inputs of the graph, as NAME=100x784. Sizes may be "?" and the whole
 * "scalar"; NAME may end in the number of an output, as in NAME:1.
 */

static bool is_placeholder(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	return str_eq(type, STR("Placeholder")) || str_eq(type, STR("PlaceholderV2")) ||
	       str_eq(type, STR("PlaceholderWithDefault"));
}

/* Whether an op brings tensors into the graph, so that the user could give it a shape. */
static bool is_entry(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	return is_placeholder(m, op) || str_ends(type, STR("GetNext")) ||
	       str_has(type, STR("Dequeue"));
}

static bool parse_size(struct str text, int64_t *size)
{
	if (str_eq(text, STR("?")) || str_eq(text, STR("-1"))) {
		*size = TF_UNKNOWN;
		return true;
	}
	return str_to_i64(text, size) && *size >= 0;
}

static bool parse_shape(struct str text, struct tf_shape *shape)
{
	struct str piece;
	int64_t size;

	*shape = tf_shape_scalar();
	if (str_eq(text, STR("scalar")))
		return true;
	while (str_split(&text, 'x', &piece)) {
		if (!parse_size(piece, &size) || shape->rank == TF_RANK_MAX)
			return false;
		tf_shape_push(shape, size);
	}
	return true;
}

/* Finds an output: "name" or "name:1". */
static uint32_t find_output(const struct model *m, struct str name, int32_t *port)
{
	size_t colon = str_rfind_char(name, ':');
	op_id op = model_find_op(m, name);
	int64_t number;

	*port = 0;
	if (op.v || colon == STR_NONE)
		return op.v;
	if (!str_to_i64(str_skip(name, colon + 1), &number) || number < 0 || number > INT32_MAX)
		return 0;
	*port = (int32_t)number;
	return model_find_op(m, str_first(name, colon)).v;
}

static void list_placeholders(const struct model *m, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t op = 1; op < m->op.count && len + 1 < size; op++) {
		struct str name = model_str(m, m->op.name[op]);

		if (!is_placeholder(m, op))
			continue;
		if (len + name.len + 8 > size) {
			snprintf(text + len, size - len, ", …");
			return;
		}
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", len ? ", " : "",
					STR_ARG(name));
	}
}

static ow_status no_such_op(const struct model *m, const char *text, struct str name,
			    struct ow_error *err)
{
	char names[512];

	list_placeholders(m, names, sizeof(names));
	return error_set(err, OW_E_USAGE, "--input-shape %s: the graph has no node '%.*s'; %s%s",
			 text, STR_ARG(name),
			 names[0] ? "its placeholders are " : "it has no placeholders", names);
}

/* The shape that the graph declares for an output: its static shape, or that of an attribute. */
static struct tf_shape declared_shape(struct tf_flow *flow, struct tf_reader *reader, uint32_t op,
				      const struct tf_slot *slot)
{
	struct tf_shape shape = tf_shape_load(flow->m, slot->shape);
	struct tf_shape_list list;
	struct tf_node node;

	if (shape.rank != TF_UNKNOWN)
		return shape;
	tf_reader_node(reader, op, &node);
	list = tf_attr_shapes(&node, "output_shapes");
	shape = tf_shape_list_at(&list, slot->port);
	return shape.rank == TF_UNKNOWN && !slot->port ? tf_attr_shape(&node, "shape") : shape;
}

static ow_status apply_one(struct tf_flow *flow, struct tf_reader *reader, const char *text,
			   struct ow_error *err)
{
	struct str whole = str_from(text), name;
	size_t equals = str_rfind_char(whole, '=');
	struct tf_shape shape, known;
	struct tf_slot *slot;
	char shown[128];
	int32_t port;
	uint32_t op;

	if (equals == STR_NONE || !equals || !parse_shape(str_skip(whole, equals + 1), &shape))
		return error_set(err, OW_E_USAGE,
				 "--input-shape %s: expected NAME=100x784, with ? for an unknown "
				 "size, or NAME=scalar",
				 text);
	name = str_first(whole, equals);
	op = find_output(flow->m, name, &port);
	slot = op ? tf_flow_output(flow, op, port) : NULL;
	if (!slot)
		return no_such_op(flow->m, text, name, err);
	/* In an old graph an empty shape may stand for an unknown one, so a scalar may be replaced. */
	known = declared_shape(flow, reader, op, slot);
	if (known.rank > 0 && !tf_shape_merge(&shape, &known))
		return error_set(err, OW_E_USAGE, "--input-shape %s: the graph declares it as %s",
				 text, tf_shape_text(&known, shown, sizeof(shown)));
	slot->shape = tf_shape_store(flow->b, &shape);
	return reader->status == OW_OK ? builder_status(flow->b) : reader->status;
}

/* Applies the user's shapes to the graph. OW_E_USAGE, with the list of placeholders, for a text that cannot be
 * parsed, an unknown name or a shape that contradicts the declared one. */
static ow_status tf_input_shapes_apply(struct tf_flow *flow, struct tf_reader *reader,
				       const struct import_options *options, struct ow_error *err)
{
	for (size_t i = 0; i < options->input_shape_count; i++)
		OW_TRY(apply_one(flow, reader, options->input_shapes[i], err));
	return OW_OK;
}

/* Writes "--input-shape NAME=Nx784", or "NAME:1=…"; sizes that the user has to give are shown as N. */
static size_t tf_input_shape_print(const struct tf_flow *flow, uint32_t op,
				   const struct tf_slot *slot, char *text, size_t size)
{
	struct tf_shape shape = tf_shape_load(flow->m, slot->shape);
	char sizes[128] = "…", port[16] = "";

	if (shape.rank != TF_UNKNOWN)
		tf_shape_text(&shape, sizes, sizeof(sizes));
	for (char *at = sizes; *at; at++)
		if (*at == '?')
			*at = 'N';
	if (slot->port)
		snprintf(port, sizeof(port), ":%" PRId32, slot->port);
	return (size_t)snprintf(text, size, "--input-shape %.*s%s=%s",
				STR_ARG(model_str(flow->m, flow->m->op.name[op])), port, sizes);
}

/* Writes "--input-shape X=Nx784 --input-shape Y=…" for placeholders and similar ops whose shape is unknown, for the
 * user to fill in. At most `most` of them; returns the number of all. */
static size_t tf_input_shapes_wanted(const struct tf_flow *flow, size_t most, char *text,
				     size_t size)
{
	struct model *m = flow->m;
	size_t len = 0, count = 0;

	text[0] = '\0';
	for (uint32_t op = 1; op < m->op.count; op++) {
		if (!is_entry(m, op))
			continue;
		for (uint32_t i = flow->slot_first[op]; i < flow->slot_first[op + 1]; i++) {
			if (tf_shape_id_full(m, flow->slots[i].shape) || count++ >= most ||
			    len + model_str(m, m->op.name[op]).len + 192 > size)
				continue;
			if (len)
				text[len++] = ' ';
			len += tf_input_shape_print(flow, op, &flow->slots[i], text + len,
						    size - len);
		}
	}
	return count;
}

/* Weights: the parameters of a graph without variables. Freezing turns variables into constants, so nothing in the
 * graph counts as a parameter; these constants are found again.
 */

struct weights {
	uint64_t nodes;
	int64_t elements;
};

/* A shape in the form in which importers store static shapes: a scalar is [1]. */
static shape_id tf_kept_shape(struct builder *b, shape_id id)
{
	int32_t rank;

	(void)model_dims(b->m, id, &rank);
	return id.v && rank == 0 ? builder_shape(b, &(int64_t){ 1 }, 1) : id;
}

static bool has_type(const struct tf_infer *c, struct str text)
{
	const struct model *m = c->flow->m;
	str_id name = model_find_str(m, text);

	for (uint32_t op = 1; op < m->op.count && name.v; op++)
		if (m->op.type[op].v == name.v && tf_reader_has(c->reader, op))
			return true;
	return false;
}

static bool has_variables(const struct tf_infer *c)
{
	return has_type(c, STR("VariableV2")) || has_type(c, STR("VarHandleOp")) ||
	       has_type(c, STR("Variable")) || has_type(c, STR("AutoReloadVariable"));
}

/* Whether a data type can be a weight: float, double, the quantised types, bfloat16 and half. */
static bool is_weight_type(int64_t dtype)
{
	return dtype == 1 || dtype == 2 || (dtype >= 11 && dtype <= 16) || dtype == 19;
}

/* Whether a constant was a variable: the freezing tool keeps the Identity through which it was read. */
static bool was_variable(const struct model *m, uint32_t op)
{
	struct str name = model_str(m, m->op.name[op]);
	char read[512];

	if (name.len + sizeof("/read") > sizeof(read))
		return false;
	memcpy(read, name.ptr, name.len);
	memcpy(read + name.len, "/read", sizeof("/read"));
	return model_find_op(m, str_from(read)).v != 0;
}

static void add_constant(struct tf_infer *c, uint32_t op, struct weights *w)
{
	struct model *m = c->flow->m;
	shape_id id = tf_flow_output(c->flow, op, 0)->shape;
	struct tf_shape shape = tf_shape_load(m, id);
	int64_t count;

	if (m->op.shape[op].v || !tf_shape_elements(&shape, &count) || !count)
		return;
	c->op = op;
	c->have_node = false;
	if (!is_weight_type(tf_attr_type(tf_attrs(c), "dtype")))
		return;
	if (count == 1 && !was_variable(m, op))
		return;
	m->op.shape[op] = tf_kept_shape(c->flow->b, id);
	w->nodes++;
	if (__builtin_add_overflow(w->elements, count, &w->elements))
		w->elements = INT64_MAX;
}

/* Sets op.shape, as variables have it, for constants of a floating or quantised type that have more than one element,
 * or whose reading op NAME/read shows that they were variables; a note gives their number. Does nothing when the graph
 * has variables. It overwrites the op fields of `c`.
 */
static ow_status tf_weights_find(struct tf_infer *c)
{
	struct model *m = c->flow->m;
	str_id name = model_find_str(m, STR("Const"));
	struct weights w = { 0 };

	if (!name.v || has_variables(c))
		return OW_OK;
	for (uint32_t op = 1; op < m->op.count; op++) {
		if (m->op.type[op].v == name.v && tf_reader_has(c->reader, op))
			add_constant(c, op, &w);
		if (c->reader->status != OW_OK)
			return c->reader->status;
	}
	if (w.nodes)
		builder_note(c->flow->b, NOTE_INFO, OW_NO_OFFSET,
			     "the graph has no variables, as after freezing: %" PRId64
			     " parameters were found in %" PRIu64 " constants",
			     w.elements, w.nodes);
	return builder_status(c->flow->b);
}

#define TOP_TYPES 8
#define MISSING_MAX 128 /* limit of op types with a formula */
#define PASSES_MAX 3
#define HOPS_MAX 100000

/* Properties of an op type that occurs in the graph. */
struct type {
	str_id name;
	const struct tf_rule *rule;
	const struct tf_flops *flops;
	uint64_t missing[FLOPS_RESULTS]; /* number of ops without float operations, by reason */
};

struct finish {
	struct builder *b;
	struct model *m;
	struct ow_error *err;
	struct type *types; /* [0]: every other type */
	size_t type_count, type_cap;
	struct map type_map;
	struct tf_calls calls;
	struct tf_flow flow;
	struct tf_reader reader;
	struct tf_infer infer;
};

static struct type *find_type(struct finish *f, str_id name)
{
	struct map_iter it = map_find(&f->type_map, map_hash_u64(name.v, 11));

	for (; it.value; it = map_next(&f->type_map, it))
		if (f->types[it.value].name.v == name.v)
			return &f->types[it.value];
	return &f->types[0];
}

/* The entry of a type, if the model has such an op; NULL otherwise, or if memory runs out. */
static struct type *add_type(struct finish *f, const char *text)
{
	str_id name = model_find_str(f->m, str_from(text));
	struct type *type;

	if (!name.v)
		return NULL;
	type = find_type(f, name);
	if (type != f->types)
		return type;
	if (!map_add(&f->type_map, map_hash_u64(name.v, 11), (uint32_t)f->type_count)) {
		builder_fail(f->b, error_no_memory(f->err));
		return NULL;
	}
	type = &f->types[f->type_count++];
	*type = (struct type){ .name = name };
	return type;
}

static ow_status make_types(struct finish *f)
{
	f->type_cap = tf_rule_count + tf_flops_count + 1;
	f->types = mem_zalloc(f->m->mem, f->type_cap * sizeof(*f->types));
	if (!f->types)
		return builder_fail(f->b, error_no_memory(f->err));
	f->type_count = 1;
	for (size_t i = 0; i < tf_rule_count; i++) {
		struct type *type = add_type(f, tf_rules[i].type);

		if (type)
			type->rule = &tf_rules[i];
	}
	for (size_t i = 0; i < tf_flops_count; i++) {
		struct type *type = add_type(f, tf_flops_table[i].type);

		if (type)
			type->flops = &tf_flops_table[i];
	}
	return builder_status(f->b);
}

/* Whether some op lacks float operations that could be computed. */
static bool something_to_do(struct finish *f)
{
	const struct model *m = f->m;

	for (uint32_t op = 1; op < m->op.count; op++)
		if (!m->op.float_ops[op] && tf_reader_has(&f->reader, op) &&
		    find_type(f, m->op.type[op])->flops)
			return true;
	return false;
}

/* Restores scalars: importers store a scalar as [1], as tfprof shows it; the rules need the real shape. */
static void settle_scalars(struct finish *f)
{
	struct tf_flow *flow = &f->flow;
	struct tf_shape_list list;
	bool read = false;

	if (!f->m->op.output_count[f->infer.op])
		return;
	for (uint32_t i = flow->slot_first[f->infer.op]; i < flow->slot_first[f->infer.op + 1];
	     i++) {
		struct tf_slot *slot = &flow->slots[i];
		struct tf_shape shape;
		int32_t rank;
		const int64_t *dims = model_dims(f->m, slot->shape, &rank);

		if (!slot->shape.v || rank != 1 || dims[0] != 1)
			continue;
		if (!read)
			list = tf_attr_shapes(tf_attrs(&f->infer), "_output_shapes");
		read = true;
		shape = tf_shape_list_at(&list, slot->port);
		if (shape.rank == 0)
			slot->shape = tf_shape_store(f->b, &shape);
	}
}

/* Whether a rule cannot add anything: all shapes are known, and the tensors are too large to be followed as values. */
static bool is_settled(const struct finish *f, uint32_t op)
{
	const struct tf_flow *flow = &f->flow;

	for (uint32_t i = flow->slot_first[op]; i < flow->slot_first[op + 1]; i++) {
		struct tf_shape shape = tf_shape_load(f->m, flow->slots[i].shape);
		int64_t count;

		if (!tf_shape_elements(&shape, &count) || count <= TF_VALUE_MAX)
			return false;
	}
	return true;
}

static void add_traced(struct finish *f, uint32_t op)
{
	struct tf_flow *flow = &f->flow;

	for (uint32_t i = flow->slot_first[op]; i < flow->slot_first[op + 1]; i++) {
		struct tf_slot *slot = &flow->slots[i];
		struct tf_shape known, traced;

		if (!slot->traced.v || tf_shape_id_full(f->m, slot->shape))
			continue;
		known = tf_shape_load(f->m, slot->shape);
		traced = tf_shape_load(f->m, slot->traced);
		if (tf_shape_merge(&known, &traced))
			slot->shape = tf_shape_store(f->b, &known);
	}
}

static void count_flops(struct finish *f, const struct type *type)
{
	uint32_t op = f->infer.op;
	int64_t flops;

	if (!type->flops || f->m->op.float_ops[op] ||
	    tf_flops(&f->infer, type->flops, &flops) != FLOPS_OK || !flops)
		return;
	f->m->op.float_ops[op] = flops;
	f->m->op.flags[op] |= OP_INFERRED_FLOPS;
}

static void begin_op(struct finish *f, uint32_t op)
{
	struct model *m = f->m;

	f->infer.op = op;
	f->infer.have_node = false;
	f->infer.inputs = 0;
	for (uint32_t i = 0; i < m->op.input_count[op]; i++)
		f->infer.inputs += m->op_input.port[m->op.input_first[op] + i] >= 0;
}

static void finish_op(struct finish *f, uint32_t op)
{
	struct type *type = find_type(f, f->m->op.type[op]);

	begin_op(f, op);
	settle_scalars(f);
	if (type->rule && !is_settled(f, op)) {
		f->infer.arg = type->rule->arg;
		type->rule->run(&f->infer);
	}
	if (tf_call_of(&f->calls, op))
		tf_call_shapes(&f->infer);
	add_traced(f, op);
	count_flops(f, type);
}

static ow_status run_pass(struct finish *f)
{
	f->flow.again = false;
	for (uint32_t i = 0; i < f->flow.order_count; i++) {
		uint32_t op = f->flow.order[i];

		if (tf_reader_has(&f->reader, op))
			finish_op(f, op);
		else
			add_traced(f, op);
		if (f->reader.status != OW_OK)
			return f->reader.status;
		OW_TRY(builder_status(f->b));
	}
	return OW_OK;
}

/* Runs the passes. Nearly every graph needs one; the gradient of a loop may need shapes that come after it. */
static ow_status run_graph(struct finish *f)
{
	for (int pass = 0; pass < PASSES_MAX; pass++) {
		OW_TRY(run_pass(f));
		if (!f->flow.again)
			break;
	}
	return OW_OK;
}

static void update_outputs(struct finish *f, uint32_t op)
{
	struct model *m = f->m;

	for (uint32_t i = 0; i < m->op.output_count[op]; i++) {
		uint32_t row = m->op.output_first[op] + i;
		const struct tf_slot *slot =
			m->op_output.index[row] < 0
				? NULL
				: tf_flow_output(&f->flow, op, m->op_output.index[row]);

		if (slot && slot->shape.v && !tf_shape_id_full(m, m->op_output.shape[row]))
			m->op_output.shape[row] = tf_kept_shape(f->b, slot->shape);
	}
}

static void add_outputs(struct finish *f, uint32_t op)
{
	struct model *m = f->m;
	uint32_t first = m->op_output.count, count = 0;

	for (uint32_t i = f->flow.slot_first[op]; i < f->flow.slot_first[op + 1]; i++) {
		const struct tf_slot *slot = &f->flow.slots[i];

		if (!slot->shape.v)
			continue;
		if (!builder_add_op_output(
			     f->b,
			     &(struct op_output_row){ .index = slot->port,
						      .shape = tf_kept_shape(f->b, slot->shape) })
			     .v)
			return;
		count++;
	}
	m->op.output_first[op] = count ? first : 0;
	m->op.output_count[op] = count;
}

static ow_status keep_shapes(struct finish *f)
{
	for (uint32_t op = 1; op < f->flow.op_count; op++) {
		if (!tf_reader_has(&f->reader, op))
			continue;
		if (f->m->op.output_count[op])
			update_outputs(f, op);
		else
			add_outputs(f, op);
	}
	return builder_status(f->b);
}

/* Counts, for each reason, the ops with a formula but without float operations. */
static ow_status find_missing(struct finish *f)
{
	struct model *m = f->m;

	for (uint32_t op = 1; op < m->op.count; op++) {
		struct type *type = find_type(f, m->op.type[op]);
		enum tf_flops_result result;
		int64_t flops;

		if (!type->flops || m->op.float_ops[op] || !tf_reader_has(&f->reader, op))
			continue;
		begin_op(f, op);
		result = tf_flops(&f->infer, type->flops, &flops);
		if (result != FLOPS_OK && result != FLOPS_NONE)
			m->op.flags[op] |= OP_UNKNOWN_FLOPS;
		type->missing[result]++;
		if (f->reader.status != OW_OK)
			return f->reader.status;
	}
	return OW_OK;
}

struct missing {
	uint64_t count;
	struct str type;
};

static int by_count(const void *a, const void *b)
{
	const struct missing *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return str_cmp(x->type, y->type);
}

/* Writes "Conv2D 3, MatMul 2, …", the most frequent first. Returns the number of ops. */
static uint64_t list_missing(const struct finish *f, enum tf_flops_result why, char *text,
			     size_t size)
{
	struct missing found[MISSING_MAX];
	size_t count = 0, len = 0;
	uint64_t total = 0;

	text[0] = '\0';
	for (size_t i = 1; i < f->type_count && count < MISSING_MAX; i++) {
		uint64_t n = f->types[i].missing[why];

		if (n)
			found[count++] = (struct missing){ n, model_str(f->m, f->types[i].name) };
		total += n;
	}
	if (count)
		qsort(found, count, sizeof(*found), by_count);
	for (size_t i = 0; i < MIN(count, (size_t)TOP_TYPES); i++)
		len += (size_t)snprintf(text + len, size - len, "%s%.*s %" PRIu64, i ? ", " : "",
					STR_ARG(found[i].type), found[i].count);
	if (count > TOP_TYPES)
		snprintf(text + len, size - len, ", …");
	return total;
}

/* An input of the op that is not fully known; its producer and output. */
static const struct tf_slot *unknown_input(const struct finish *f, uint32_t op, uint32_t *src)
{
	const struct model *m = f->m;

	for (uint32_t i = 0; i < m->op.input_count[op]; i++) {
		uint32_t row = m->op.input_first[op] + i;
		const struct tf_slot *slot;

		if (m->op_input.port[row] < 0 || !m->op_input.src[row].v)
			continue;
		slot = tf_flow_output(&f->flow, m->op_input.src[row].v, m->op_input.port[row]);
		*src = m->op_input.src[row].v;
		if (slot && !tf_shape_id_full(m, slot->shape))
			return slot;
	}
	return NULL;
}

/* Describes the first op whose shape is unknown although all input shapes are known: it depends on values, which
 * only a run knows, or its type has no rule. */
static void describe_blocker(const struct finish *f, char *text, size_t size)
{
	const struct tf_slot *slot = NULL, *before;
	uint32_t op = 0, src = 0;
	char shape[384];

	text[0] = '\0';
	for (uint32_t i = 0; i < f->flow.order_count && !op; i++)
		if (f->m->op.flags[f->flow.order[i]] & OP_UNKNOWN_FLOPS)
			op = f->flow.order[i];
	for (int hop = 0; hop < HOPS_MAX && op && (before = unknown_input(f, op, &src)); hop++) {
		slot = before;
		op = src;
	}
	if (!slot || model_str(f->m, f->m->op.name[op]).len > sizeof(shape) / 2)
		return;
	tf_input_shape_print(&f->flow, op, slot, shape, sizeof(shape));
	snprintf(text, size,
		 "; the first depends on '%.*s' (%.64s), whose size is not in the graph: %s",
		 STR_ARG(model_str(f->m, f->m->op.name[op])),
		 model_str(f->m, f->m->op.type[op]).ptr, shape);
}

static ow_status note_missing(struct finish *f)
{
	char types[320], wanted[512], blocker[768] = "";
	uint64_t count;
	size_t inputs;

	OW_TRY(find_missing(f));
	count = list_missing(f, FLOPS_NO_SHAPE, types, sizeof(types));
	inputs = tf_input_shapes_wanted(&f->flow, 2, wanted, sizeof(wanted));
	if (count && !inputs)
		describe_blocker(f, blocker, sizeof(blocker));
	if (count)
		builder_note(f->b, NOTE_INFO, OW_NO_OFFSET,
			     "%" PRIu64 " ops have no float operations because their shapes are "
			     "unknown: %s%s%s%s%s",
			     count, types, blocker,
			     inputs && wanted[0] ? "; give the shapes of inputs: " : "",
			     inputs ? wanted : "", inputs > 2 ? " …" : "");
	count = list_missing(f, FLOPS_TOO_LARGE, types, sizeof(types));
	if (count)
		builder_note(f->b, NOTE_INFO, OW_NO_OFFSET,
			     "%" PRIu64 " ops have more float operations than can be counted: %s",
			     count, types);
	count = list_missing(f, FLOPS_FORMAT, types, sizeof(types));
	if (count)
		builder_note(f->b, NOTE_INFO, OW_NO_OFFSET,
			     "%" PRIu64
			     " ops have no float operations because TensorFlow's formula "
			     "holds for data_format NHWC only: %s",
			     count, types);
	return builder_status(f->b);
}

static source_id graph_source(const struct finish *f)
{
	for (uint32_t op = 1; op < f->m->op.count; op++)
		if (tf_reader_has(&f->reader, op))
			return f->m->op.source[op];
	return (source_id){ 0 };
}

static ow_status finish_graph(struct finish *f, const struct import_options *options)
{
	source_id before = f->b->source;
	ow_status status;

	OW_TRY(tf_flow_init(&f->flow, f->b, &f->calls));
	OW_TRY(tf_input_shapes_apply(&f->flow, &f->reader, options, f->err));
	f->infer.flow = &f->flow;
	f->infer.reader = &f->reader;
	OW_TRY(run_graph(f));
	f->b->source = graph_source(f);
	status = tf_weights_find(&f->infer);
	if (status == OW_OK)
		status = note_missing(f);
	f->b->source = before;
	OW_TRY(status);
	return keep_shapes(f);
}

ow_status tf_finish(struct builder *b, const struct import_options *options, struct ow_error *err)
{
	struct finish *f;
	ow_status status;

	if (!options->infer || options->estimate || b->status != OW_OK)
		return b->status;
	f = mem_zalloc(b->m->mem, sizeof(*f));
	if (!f)
		return builder_fail(b, error_no_memory(err));
	f->b = b;
	f->m = b->m;
	f->err = err;
	map_init(&f->type_map, b->m->mem);
	tf_reader_init(&f->reader, b->m, err);
	status = tf_inline(&f->calls, b, &f->reader);
	if (status == OW_OK)
		status = make_types(f);
	if (status == OW_OK && (options->input_shape_count || something_to_do(f)))
		status = finish_graph(f, options);
	if (f->flow.m)
		tf_flow_release(&f->flow);
	tf_calls_release(&f->calls);
	tf_reader_release(&f->reader);
	map_release(&f->type_map);
	mem_free(b->m->mem, f->types, f->type_cap * sizeof(*f->types));
	mem_free(b->m->mem, f, sizeof(*f));
	return status;
}
