/* tf_weights.c: see tf_weights.h. */
#include "import/tf_weights.h"

struct weights {
	uint64_t nodes;
	int64_t elements;
};

shape_id tf_kept_shape(struct builder *b, shape_id id)
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

/* float, double, the quantised types, bfloat16 and half. */
static bool is_weight_type(int64_t dtype)
{
	return dtype == 1 || dtype == 2 || (dtype >= 11 && dtype <= 16) || dtype == 19;
}

/* The freezing tool keeps the Identity through which the variable was read. */
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

ow_status tf_weights_find(struct tf_infer *c)
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
