/*
 * sink_proto.c: the four views as the messages that TensorFlow's Python calls return: GraphNodeProto for scope and
 * graph, MultiGraphNodeProto for op and code, serialized. Children are nested in their parent as they are displayed;
 * the op view is a chain, each type the only child of the previous one. Lengths precede content in this format, so all
 * nodes are measured first, from the last to the first, and then written in one pass. Each node's own fields are
 * therefore encoded twice, but not kept in memory.
 */
#include "model/metrics.h"
#include "table/tree/tree_text.h"
#include "base/writer.h"
#include "sink/sink.h"
#include "wire/protobuf/pb_write.h"

enum { GRAPH, MULTI };

/* Field numbers of GraphNodeProto and MultiGraphNodeProto; 0 = the message does not have this field. */
static const struct {
	enum metric metric;
	uint8_t own[2], total[2];
} numbers[] = {
	{ METRIC_MICROS, { 2, 2 }, { 6, 6 } },
	{ METRIC_BYTES, { 3, 3 }, { 7, 7 } },
	{ METRIC_PARAMS, { 4, 4 }, { 8, 8 } },
	{ METRIC_FLOAT_OPS, { 13, 5 }, { 14, 9 } },
	{ METRIC_ACCELERATOR_MICROS, { 17, 12 }, { 19, 14 } },
	{ METRIC_CPU_MICROS, { 18, 13 }, { 20, 15 } },
	{ METRIC_RUN_COUNT, { 21, 0 }, { 22, 0 } },
	{ METRIC_DEFINITION_COUNT, { 0, 0 }, { 23, 0 } },
	{ METRIC_PEAK_BYTES, { 24, 16 }, { 27, 19 } },
	{ METRIC_RESIDUAL_BYTES, { 25, 17 }, { 28, 20 } },
	{ METRIC_OUTPUT_BYTES, { 26, 18 }, { 29, 21 } },
};

enum { NODE_NAME = 1, NODE_DEVICES = 10, NODE_CHILDREN = 12, NODE_INPUT_SHAPES = 16 };
enum { MULTI_GRAPH_NODES = 10, MULTI_CHILDREN = 11 };
enum { SHAPE_DIM = 2, SHAPE_UNKNOWN_RANK = 3, DIM_SIZE = 1 };

struct proto {
	const struct tree *tree;
	int form; /* which of the two messages is written: GRAPH or MULTI */
	struct buf fields;
	struct input_order order;
};

static void put_shape(struct buf *to, const struct model *m, shape_id shape)
{
	size_t message = pb_begin(to, 2), dim;
	uint32_t count;
	const int64_t *dims = metric_dims(m, shape, &count);

	if (!count)
		pb_put_varint(to, SHAPE_UNKNOWN_RANK, 1);
	for (uint32_t i = 0; i < count; i++) {
		dim = pb_begin(to, SHAPE_DIM);
		pb_put_int(to, DIM_SIZE, dims[i]);
		pb_end(to, dim);
	}
	pb_end(to, message);
}

static void put_inputs(struct proto *p, op_id op, struct buf *to)
{
	const struct model *m = p->tree->model;
	uint32_t first = m->op.input_first[op.v], count = m->op.input_count[op.v];
	bool sorted;

	if (!tree_input_order(m, op, &p->order, &sorted)) {
		to->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = sorted ? first + i : (uint32_t)p->order.rows[i];
		size_t entry = pb_begin(to, NODE_INPUT_SHAPES);

		pb_put_int(to, 1, m->op_input.index[row]);
		put_shape(to, m, tree_input_shape(m, row));
		pb_end(to, entry);
	}
}

static void put_op(struct proto *p, op_id op, struct buf *to)
{
	const struct model *m = p->tree->model;

	if (!op.v)
		return;
	if (m->op.device[op.v].v)
		pb_put_str(to, NODE_DEVICES, model_str(m, m->op.device[op.v]));
	put_inputs(p, op, to);
}

/* Writes an op of a line or a type as a nested GraphNodeProto. */
static void put_graph_node(struct proto *p, op_id op)
{
	const struct tree *tree = p->tree;
	size_t node = pb_begin(&p->fields, MULTI_GRAPH_NODES);
	int64_t values[METRIC_COUNT];

	tree_op_metrics(tree, op, values);
	values[METRIC_DEFINITION_COUNT] = 1;
	pb_put_str(&p->fields, NODE_NAME, model_str(tree->model, tree->model->op.name[op.v]));
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
		int64_t value = tree_shown(tree, numbers[i].metric, values[numbers[i].metric]);

		if (numbers[i].own[GRAPH])
			pb_put_int(&p->fields, numbers[i].own[GRAPH], value);
		pb_put_int(&p->fields, numbers[i].total[GRAPH], value);
	}
	put_op(p, op, &p->fields);
	pb_end(&p->fields, node);
}

/* Encodes all fields of a node except its children. */
static void encode(struct proto *p, const struct tree_node *node)
{
	const op_id *ops;
	uint32_t count;

	buf_clear(&p->fields);
	pb_put_str(&p->fields, NODE_NAME, node->name);
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
		enum metric metric = numbers[i].metric;

		if (numbers[i].own[p->form])
			pb_put_int(&p->fields, numbers[i].own[p->form],
				   tree_own_shown(p->tree, node, metric));
		if (numbers[i].total[p->form])
			pb_put_int(&p->fields, numbers[i].total[p->form],
				   tree_total_shown(p->tree, node, metric));
	}
	if (p->form == GRAPH) {
		put_op(p, node->op, &p->fields);
		return;
	}
	if (node == p->tree->nodes) /* the root has no fields of its own */
		return;
	ops = tree_ops(p->tree, node, &count);
	for (uint32_t i = 0; i < count; i++)
		put_graph_node(p, ops[i]);
}

static uint32_t parent_of(const struct tree *tree, uint32_t node)
{
	return tree->kind == TREE_OP ? node - 1 : tree->nodes[node].parent;
}

/* Computes sizes[i]: the encoded bytes of node i with everything below it. */
static ow_status measure(struct proto *p, uint64_t *sizes, struct ow_error *err)
{
	const struct tree *tree = p->tree;

	for (uint32_t i = tree->node_count; i-- > 0;) {
		encode(p, &tree->nodes[i]);
		if (p->fields.failed)
			return error_no_memory(err);
		sizes[i] += p->fields.len;
		if (i)
			sizes[parent_of(tree, i)] += 1 + pb_varint_size(sizes[i]) + sizes[i];
	}
	if (sizes[0] > INT32_MAX)
		return error_set(err, OW_E_LIMIT,
				 "the view needs a message of %" PRIu64
				 " bytes, but a protobuf message holds at most 2 GiB; "
				 "show fewer nodes or choose another output",
				 sizes[0]);
	return OW_OK;
}

static void write_nodes(struct proto *p, struct writer *w, const uint64_t *sizes)
{
	const struct tree *tree = p->tree;
	uint32_t children = p->form == GRAPH ? NODE_CHILDREN : MULTI_CHILDREN;

	for (uint32_t i = 0; i < tree->node_count && w->status == OW_OK; i++) {
		uint8_t head[1 + PB_VARINT_BYTES] = { (uint8_t)PB_TAG(children, PB_BYTES) };

		encode(p, &tree->nodes[i]);
		if (p->fields.failed) {
			writer_fail(w, error_no_memory(w->err));
			return;
		}
		if (i)
			writer_add(w, head, 1 + pb_encode_varint(head + 1, sizes[i]));
		writer_str(w, buf_str(&p->fields));
	}
}

static ow_status write_proto(struct table *r, const struct sink_options *options,
			     const struct out *out, struct ow_error *err)
{
	const struct tree *tree = r->tree;
	bool multi = tree->kind == TREE_OP || tree->kind == TREE_CODE;
	struct proto p = { .tree = tree, .form = multi ? MULTI : GRAPH, .order.mem = r->mem };
	uint64_t *sizes = mem_zalloc(r->mem, ((size_t)tree->node_count + 1) * sizeof(*sizes));
	struct writer w;
	ow_status status;

	(void)options;
	if (!sizes)
		return error_no_memory(err);
	buf_init(&p.fields, r->mem);
	status = measure(&p, sizes, err);
	if (status == OW_OK) {
		writer_init(&w, r->mem, out, err);
		write_nodes(&p, &w, sizes);
		status = writer_finish(&w);
	}
	buf_release(&p.fields);
	mem_free(r->mem, p.order.rows, p.order.cap * sizeof(*p.order.rows));
	mem_free(r->mem, sizes, ((size_t)tree->node_count + 1) * sizeof(*sizes));
	return status;
}

const struct sink sink_proto = {
	.name = "proto",
	.summary = "GraphNodeProto or MultiGraphNodeProto, what TensorFlow's Python calls return",
	.extension = ".pb",
	.accepts = SINK_TREES,
	.binary = true,
	.write = write_proto,
};
