/*
 * tf_rules_source.c: shape rules of ops that bring tensors into the graph or hand them on: constants,
 * variables, placeholders, identities and control flow.
 */
#include "import/tf_rule.h"

#include "wire/pb.h"

enum { DT_INT32 = 3, DT_INT64 = 9 };

/* A TensorProto, as far as we look into it. */
struct tensor {
	int64_t dtype;
	struct tf_shape shape;
	struct str content;
	struct tf_value listed; /* from int_val or int64_val */
};

static void add_listed(struct tf_value *listed, const struct pb_field *f)
{
	struct pb_values values = pb_values(f, PB_VARINT);
	uint64_t value;

	while (listed->count < TF_VALUE_MAX && pb_value(&values, &value))
		listed->item[listed->count++] = (int64_t)value;
}

static void read_tensor(struct str message, struct tensor *t)
{
	struct pb r = pb_over(message.ptr, message.len);
	struct pb_field f;

	t->dtype = 0;
	t->shape = tf_shape_scalar();
	t->content = STR("");
	t->listed.count = 0;
	while (pb_next(&r, &f))
		switch (pb_number(&f)) {
		case 1:
			t->dtype = f.tag == PB_TAG(1, PB_VARINT) ? (int64_t)f.value : 0;
			break;
		case 2:
			if (f.tag == PB_TAG(2, PB_BYTES))
				t->shape = tf_shape_from_proto(pb_str(&f));
			break;
		case 4:
			if (f.tag == PB_TAG(4, PB_BYTES))
				t->content = pb_str(&f);
			break;
		case 7:
		case 10:
			add_listed(&t->listed, &f);
			break;
		default:
			break;
		}
}

/* Fewer values than elements mean that the last one is repeated; none at all, zeros. */
static void spread_listed(struct tf_value *value, const struct tf_value *listed)
{
	for (uint32_t i = 0; i < value->count; i++)
		value->item[i] = listed->count ? listed->item[MIN(i, listed->count - 1)] : 0;
}

static bool tensor_value(const struct tensor *t, struct tf_value *value)
{
	size_t size = t->dtype == DT_INT64 ? 8 : 4;
	const uint8_t *at = (const uint8_t *)t->content.ptr;
	int64_t count;

	if (t->dtype != DT_INT32 && t->dtype != DT_INT64)
		return false;
	if (!tf_shape_elements(&t->shape, &count) || count > TF_VALUE_MAX)
		return false;
	value->count = (uint32_t)count;
	if (!t->content.len) {
		spread_listed(value, &t->listed);
		return true;
	}
	if (t->content.len != size * (size_t)count)
		return false;
	for (uint32_t i = 0; i < value->count; i++, at += size)
		value->item[i] = size == 8 ? (int64_t)pb_load64(at) : (int32_t)pb_load32(at);
	return true;
}

void tf_rule_const(struct tf_infer *c)
{
	struct str message = tf_attr_tensor(tf_attrs(c), "value");
	struct tf_value value;
	struct tensor t;

	if (!message.ptr)
		return;
	read_tensor(message, &t);
	tf_out(c, 0, &t.shape);
	if (tensor_value(&t, &value))
		tf_out_value(c, 0, &value);
}

/* arg 1: an old op whose empty shape stands for an unknown one. */
void tf_rule_variable(struct tf_infer *c)
{
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape");

	if (c->arg && shape.rank == 0)
		shape = tf_shape_unknown();
	tf_out(c, 0, &shape);
}

/* Before version 24 of the graph format an empty shape could not be told from an unknown one. */
void tf_rule_placeholder(struct tf_infer *c)
{
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape");

	if (shape.rank == 0 && c->flow->producers[COLUMN_GET(c->flow->m->op.source, c->op).v] < 24)
		shape = tf_shape_unknown();
	tf_out(c, 0, &shape);
}

/* Its static shape is the declared one, which may say less than the default does: what is fed may differ. */
void tf_rule_placeholder_with_default(struct tf_infer *c)
{
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape");

	tf_out(c, 0, &shape);
}

void tf_rule_var_handle(struct tf_infer *c)
{
	struct tf_slot *slot = tf_flow_output(c->flow, c->op, 0);
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape"), scalar = tf_shape_scalar();

	slot->handle = tf_shape_store(c->flow->b, &shape);
	tf_out(c, 0, &scalar);
}

static struct tf_shape handle_shape(const struct tf_infer *c)
{
	const struct tf_slot *slot = tf_flow_input(c->flow, c->op, 0);

	return slot ? tf_shape_load(c->flow->m, slot->handle) : tf_shape_unknown();
}

void tf_rule_read_variable(struct tf_infer *c)
{
	struct tf_shape shape = handle_shape(c);

	tf_out(c, 0, &shape);
}

static void out_shape_vector(struct tf_infer *c, int32_t port, const struct tf_shape *of)
{
	struct tf_shape vector = tf_shape_of_rank(1);
	struct tf_value value = { 0 };

	if (of->rank != TF_UNKNOWN)
		vector.dim[0] = of->rank;
	tf_out(c, port, &vector);
	if (of->rank == TF_UNKNOWN)
		return;
	for (int32_t i = 0; i < of->rank; i++)
		value.item[value.count++] = of->dim[i] < 0 ? TF_VALUE_UNKNOWN : of->dim[i];
	tf_out_value(c, port, &value);
}

void tf_rule_variable_shape(struct tf_infer *c)
{
	struct tf_shape shape = handle_shape(c);

	out_shape_vector(c, 0, &shape);
}

/* Shape and ShapeN. */
void tf_rule_shape(struct tf_infer *c)
{
	for (uint32_t i = 0; i < tf_port_count(c); i++) {
		struct tf_shape shape = tf_in(c, (uint32_t)tf_port_at(c, i));

		out_shape_vector(c, tf_port_at(c, i), &shape);
	}
}

static void out_scalar_value(struct tf_infer *c, bool known, int64_t item)
{
	struct tf_value value = { .count = 1, .item = { item } };
	struct tf_shape scalar = tf_shape_scalar();

	tf_out(c, 0, &scalar);
	if (known)
		tf_out_value(c, 0, &value);
}

void tf_rule_size(struct tf_infer *c)
{
	struct tf_shape shape = tf_in(c, 0);
	int64_t count = 0;
	bool known = tf_shape_elements(&shape, &count);

	out_scalar_value(c, known, count);
}

void tf_rule_rank(struct tf_infer *c)
{
	struct tf_shape shape = tf_in(c, 0);

	out_scalar_value(c, shape.rank != TF_UNKNOWN, shape.rank);
}

/* Outputs as an attribute declares them: iterators, functional control flow. */
void tf_rule_declared(struct tf_infer *c)
{
	struct tf_shape_list list = tf_attr_shapes(tf_attrs(c), "output_shapes");

	for (uint32_t i = 0; i < tf_port_count(c); i++) {
		struct tf_shape shape = tf_shape_list_at(&list, tf_port_at(c, i));

		tf_out(c, tf_port_at(c, i), &shape);
	}
}

/* Hands on input number arg, to every output: Identity, Switch, Enter, an update of a variable … */
void tf_rule_pass(struct tf_infer *c)
{
	for (uint32_t i = 0; i < tf_port_count(c); i++)
		tf_out_same(c, tf_port_at(c, i), (uint32_t)c->arg);
}

/* Output i is input i: IdentityN. */
void tf_rule_pass_each(struct tf_infer *c)
{
	for (uint32_t i = 0; i < tf_port_count(c); i++)
		tf_out_same(c, tf_port_at(c, i), (uint32_t)tf_port_at(c, i));
}

/* What all branches agree on. What comes round a loop has the shape of what entered it: TensorFlow
 * refuses to build other loops. */
void tf_rule_merge(struct tf_infer *c)
{
	struct model *m = c->flow->m;
	str_id loop = model_find_str(m, STR("NextIteration"));
	struct tf_shape out = tf_shape_unknown(), scalar = tf_shape_scalar();
	bool first = true;

	for (uint32_t i = 0; i < c->inputs; i++) {
		uint32_t row = tf_flow_input_row(c->flow, c->op, i);
		struct tf_shape in = tf_in(c, i);

		if (row && loop.v && m->op.type[m->op_input.src[row].v].v == loop.v)
			continue;
		if (first)
			out = in;
		else
			tf_shape_weaken(&out, &in);
		first = false;
	}
	tf_out(c, 0, &out);
	tf_out(c, 1, &scalar);
	if (c->inputs && !first) { /* handles never change shape between branches */
		const struct tf_slot *from = tf_flow_input(c->flow, c->op, 0);

		if (from)
			tf_flow_output(c->flow, c->op, 0)->handle = from->handle;
	}
}
