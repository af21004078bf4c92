/*
 * tf_rules_cell.c: shape rules of stacks and TensorArrays, through which TensorFlow's loops hand tensors
 * to later iterations and to their gradients. What is written through one handle is read through
 * another; both lead to the op that made the cell, where the shape of its elements is kept
 * (tf_slot.handle). A gradient array has the elements of the array it is the gradient of.
 */
#include "import/tf_rule.h"

#define HOPS_MAX 32

static bool is_any(struct str type, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(type, str_from(names[i])))
			return true;
	return false;
}

/* The slot of the op that made the cell behind input 0; NULL when it is not found. */
static struct tf_slot *cell_of(const struct tf_infer *c)
{
	static const char *const makers[] = {
		"TensorArrayV3", "TensorArrayV2", "TensorArray",
		"StackV2",	 "Stack",	  "TensorListReserve"
	};
	static const char *const hops[] = {
		"Enter",	  "RefEnter",	       "Identity",
		"Switch",	  "RefIdentity",       "RefSwitch",
		"Exit",		  "TensorArrayGradV3", "TensorArrayGradV2",
		"TensorArrayGrad"
	};
	const struct model *m = c->flow->m;
	uint32_t op = c->op;

	for (int hop = 0; hop < HOPS_MAX; hop++) {
		uint32_t row = tf_flow_input_row(c->flow, op, 0);
		struct str type;

		op = row ? m->op_input.src[row].v : 0;
		if (!op)
			return NULL;
		type = model_str(m, m->op.type[op]);
		if (is_any(type, makers, ARRAY_COUNT(makers)))
			return tf_flow_output(c->flow, op, 0);
		if (!is_any(type, hops, ARRAY_COUNT(hops)))
			return NULL;
	}
	return NULL;
}

/* Adds to what is known of a cell's elements. Elements of several shapes are unusual; then what was
 * known first stays. */
static void write_cell(struct tf_infer *c, const struct tf_shape *element)
{
	struct tf_slot *cell = cell_of(c);
	struct tf_shape known;

	if (!cell)
		return;
	known = tf_shape_load(c->flow->m, cell->handle);
	if (tf_shape_merge(&known, element))
		cell->handle = tf_shape_store(c->flow->b, &known);
}

/* What was written may come later in the order than what reads it. */
static struct tf_shape read_cell(struct tf_infer *c)
{
	struct tf_slot *cell = cell_of(c);

	if (!cell)
		return tf_shape_unknown();
	if (!tf_shape_id_full(c->flow->m, cell->handle))
		c->flow->again = true;
	return tf_shape_load(c->flow->m, cell->handle);
}

static struct tf_shape without_first(const struct tf_shape *s)
{
	struct tf_shape rest = tf_shape_scalar();

	if (s->rank < 1)
		return tf_shape_unknown();
	for (int32_t i = 1; i < s->rank; i++)
		tf_shape_push(&rest, s->dim[i]);
	return rest;
}

/* arg 1: a TensorArray, which may declare its elements and has a second output. */
void tf_rule_cell(struct tf_infer *c)
{
	struct tf_shape pair = tf_shape_of_rank(1), scalar = tf_shape_scalar(), element;
	const struct tf_slot *size = tf_flow_input(c->flow, c->op, 0);
	struct tf_slot *slot = tf_flow_output(c->flow, c->op, 0);

	pair.dim[0] = 2;
	tf_out(c, 0, &pair);
	if (c->arg != 1)
		return;
	tf_out(c, 1, &scalar);
	element = tf_attr_shape(tf_attrs(c), "element_shape");
	if (!slot->handle.v)
		slot->handle = tf_shape_store(c->flow->b, &element);
	if (c->node.found && !tf_attr_bool(&c->node, "dynamic_size") && size)
		slot->value = size->value;
}

/* How many elements a TensorArray has, which was said when it was made. */
void tf_rule_cell_size(struct tf_infer *c)
{
	struct tf_slot *cell = cell_of(c), *out = tf_flow_output(c->flow, c->op, 0);
	struct tf_shape scalar = tf_shape_scalar();

	tf_out(c, 0, &scalar);
	if (cell)
		out->value = cell->value;
}

/* A constant that is pushed again and again stays one: the shapes that gradients ask for. */
void tf_rule_stack_push(struct tf_infer *c)
{
	const struct tf_slot *from = tf_flow_input(c->flow, c->op, 1);
	struct tf_shape element = tf_in(c, 1);
	struct tf_slot *cell = cell_of(c);

	tf_out_same(c, 0, 1);
	write_cell(c, &element);
	if (from && cell && !cell->value)
		cell->value = from->value;
}

void tf_rule_stack_pop(struct tf_infer *c)
{
	struct tf_slot *cell = cell_of(c), *out = tf_flow_output(c->flow, c->op, 0);
	struct tf_shape element = read_cell(c);

	tf_out(c, 0, &element);
	if (cell)
		out->value = cell->value;
}

/* Reads one element of a TensorArray. */
void tf_rule_cell_read(struct tf_infer *c)
{
	struct tf_shape element = read_cell(c);

	tf_out(c, 0, &element);
}

/* Writes input 2 as one element, or with arg 1 as many along its first dimension. */
void tf_rule_cell_write(struct tf_infer *c)
{
	struct tf_shape value = tf_in(c, 2), scalar = tf_shape_scalar();

	if (c->arg == 1)
		value = without_first(&value);
	write_cell(c, &value);
	tf_out(c, 0, &scalar);
}

/* Reads the elements that input 1 lists, stacked. */
void tf_rule_cell_gather(struct tf_infer *c)
{
	struct tf_shape element = read_cell(c), index = tf_in(c, 1), out = tf_shape_scalar();
	struct tf_shape declared = tf_attr_shape(tf_attrs(c), "element_shape");

	(void)tf_shape_merge(&element, &declared);
	if (element.rank == TF_UNKNOWN)
		return;
	tf_shape_push(&out, index.rank == 1 ? index.dim[0] : TF_UNKNOWN);
	for (int32_t i = 0; i < element.rank; i++)
		tf_shape_push(&out, element.dim[i]);
	tf_out(c, 0, &out);
}
