/*
 * tf_rules_source.c: shape rules of ops that bring tensors into the graph or pass them on: constants, variables,
 * placeholders, identities, control flow, calls, lists, stacks and arrays. Each rule is a line of tf_rules.def.
 */
#include "import/tensorflow/shapes/tf_rule.h"
#include "wire/protobuf/pb.h"

enum { DT_INT32 = 3, DT_INT64 = 9 };

/* A TensorProto, as far as it is read. */
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

/* Fills a value: if there are fewer listed values than elements, the last one is repeated; if there are none, all
 * are zero. */
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

/* Variables; arg 1: an old op whose empty shape stands for an unknown one. */
void tf_rule_variable(struct tf_infer *c)
{
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape");

	if (c->arg && shape.rank == 0)
		shape = tf_shape_unknown();
	tf_out(c, 0, &shape);
}

/* Placeholders: before version 24 of the graph format an empty shape stood for an unknown one. */
void tf_rule_placeholder(struct tf_infer *c)
{
	struct tf_shape shape = tf_attr_shape(tf_attrs(c), "shape");

	if (shape.rank == 0 && c->flow->producers[COLUMN_GET(c->flow->m->op.source, c->op).v] < 24)
		shape = tf_shape_unknown();
	tf_out(c, 0, &shape);
}

/* PlaceholderWithDefault: its static shape is the declared one, which may be less specific than that of the default,
 * because another value may be fed. */
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

/* Outputs with the shapes that an attribute declares: iterators, functional control flow. */
void tf_rule_declared(struct tf_infer *c)
{
	struct tf_shape_list list = tf_attr_shapes(tf_attrs(c), "output_shapes");

	for (uint32_t i = 0; i < tf_port_count(c); i++) {
		struct tf_shape shape = tf_shape_list_at(&list, tf_port_at(c, i));

		tf_out(c, tf_port_at(c, i), &shape);
	}
}

/* Passes input number arg to every output: Identity, Switch, Enter, an update of a variable … */
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

/* Merge: the shape on which all branches agree. A value in a later iteration of a loop has the shape of the initial
 * value, because TensorFlow rejects other loops. */
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

/* Calls: shapes that go into and come out of functions that tf_inline.c has copied into the graph. A call returns what
 * its body returns; with several branches, what they agree on; a loop, the shape that entered it, as for Merge.
 */

/* The argument of a loop in later iterations: the same shape as the initial value, but another value. */
void tf_rule_loop_arg(struct tf_infer *c)
{
	const struct tf_slot *from = tf_flow_input(c->flow, c->op, 0);
	struct tf_shape shape = tf_in(c, 0);

	tf_out(c, 0, &shape);
	if (from)
		tf_flow_output(c->flow, c->op, 0)->handle = from->handle;
}

static const struct tf_slot *returned(const struct tf_infer *c, const struct tf_call *call,
				      uint32_t branch, int32_t port)
{
	const struct tf_return *r;

	if (port < 0 || (uint32_t)port >= call->outputs)
		return NULL;
	r = &c->flow->calls->returns[call->first + branch * call->outputs + (uint32_t)port];
	return r->op ? tf_flow_output(c->flow, r->op, r->port) : NULL;
}

static void out_returned(struct tf_infer *c, const struct tf_call *call, int32_t port)
{
	struct tf_slot *to = tf_flow_output(c->flow, c->op, port);
	const struct tf_slot *from = returned(c, call, 0, port);
	struct tf_shape shape, other;

	if (!from || !to)
		return;
	shape = tf_shape_load(c->flow->m, from->shape);
	for (uint32_t i = 1; i < call->branches; i++) {
		const struct tf_slot *next = returned(c, call, i, port);

		other = next ? tf_shape_load(c->flow->m, next->shape) : tf_shape_unknown();
		tf_shape_weaken(&shape, &other);
	}
	tf_out(c, port, &shape);
	to->handle = from->handle;
	if (call->branches == 1)
		to->value = from->value;
}

static void out_loop(struct tf_infer *c, const struct tf_call *call, int32_t port)
{
	struct tf_slot *to = tf_flow_output(c->flow, c->op, port);
	const struct tf_slot *entered = tf_flow_input(c->flow, c->op, (uint32_t)port);
	const struct tf_slot *last = returned(c, call, 0, port);
	struct tf_shape shape = tf_in(c, (uint32_t)port);

	tf_out(c, port, &shape);
	if (!to)
		return;
	if (last && last->handle.v)
		to->handle = last->handle;
	else if (entered)
		to->handle = entered->handle;
}

void tf_call_shapes(struct tf_infer *c)
{
	const struct tf_call *call = tf_call_of(c->flow->calls, c->op);

	for (uint32_t i = 0; call && i < tf_port_count(c); i++)
		if (call->kind == TF_CALL_LOOP)
			out_loop(c, call, tf_port_at(c, i));
		else
			out_returned(c, call, tf_port_at(c, i));
}

/* Lists: tensor lists, which the loops of TensorFlow 2 use where TensorFlow 1 has TensorArrays. A list is a value that
 * ops take and return, so its shape is stored with it: tf_slot.handle is the shape of its elements when stacked, their
 * number first.
 */

/* The element shape that an input gives; a scalar stands for any shape. */
static struct tf_shape element_input(const struct tf_infer *c, uint32_t index)
{
	struct tf_shape of = tf_in(c, index);

	return of.rank == 0 ? tf_shape_unknown() : tf_in_as_shape(c, index);
}

static struct tf_shape stacked(int64_t count, const struct tf_shape *element)
{
	struct tf_shape s = tf_shape_of_rank(1);

	if (element->rank == TF_UNKNOWN)
		return tf_shape_unknown();
	s.dim[0] = count;
	for (int32_t i = 0; i < element->rank; i++)
		tf_shape_push(&s, element->dim[i]);
	return s;
}

static struct tf_shape element_of(const struct tf_shape *list)
{
	struct tf_shape s = tf_shape_scalar();

	if (list->rank < 1)
		return tf_shape_unknown();
	for (int32_t i = 1; i < list->rank; i++)
		tf_shape_push(&s, list->dim[i]);
	return s;
}

static struct tf_shape list_in(const struct tf_infer *c)
{
	const struct tf_slot *slot = tf_flow_input(c->flow, c->op, 0);

	return slot ? tf_shape_load(c->flow->m, slot->handle) : tf_shape_unknown();
}

static void out_list(struct tf_infer *c, const struct tf_shape *list)
{
	struct tf_shape scalar = tf_shape_scalar();

	tf_out(c, 0, &scalar);
	tf_flow_output(c->flow, c->op, 0)->handle = tf_shape_store(c->flow->b, list);
}

/* The element shape that follows from the list, from an input and from an op that adds an element. */
static struct tf_shape element_known(const struct tf_infer *c, uint32_t declared)
{
	struct tf_shape list = list_in(c), element = element_of(&list),
			said = element_input(c, declared);

	(void)tf_shape_merge(&element, &said);
	return element;
}

/* A new list: input 0 gives the element shape; arg 1: input 1 gives the number. */
void tf_rule_list_new(struct tf_infer *c)
{
	struct tf_shape element = element_input(c, 0), list;
	int64_t count = TF_UNKNOWN;

	if (c->arg == 1)
		(void)tf_in_scalar(c, 1, &count);
	list = stacked(count < 0 ? TF_UNKNOWN : count, &element);
	out_list(c, &list);
}

/* A list from the parts of input 0 along its first dimension; arg 1: scattered into a list of input 3's length. */
void tf_rule_list_from(struct tf_infer *c)
{
	struct tf_shape list = tf_in(c, 0);
	int64_t count = TF_UNKNOWN;

	if (list.rank < 1)
		list = tf_shape_unknown();
	if (c->arg == 1 && list.rank > 0)
		list.dim[0] = tf_in_scalar(c, 3, &count) && count >= 0 ? count : TF_UNKNOWN;
	out_list(c, &list);
}

/* Adds an element, input 1; the length is unknown, because loops add elements. */
void tf_rule_list_push(struct tf_infer *c)
{
	struct tf_shape item = tf_in(c, 1), list = list_in(c), more = stacked(TF_UNKNOWN, &item);

	if (list.rank > 0)
		list.dim[0] = TF_UNKNOWN;
	(void)tf_shape_merge(&list, &more);
	out_list(c, &list);
}

/* Replaces an element by input 2. */
void tf_rule_list_set(struct tf_infer *c)
{
	struct tf_shape item = tf_in(c, 2), list = list_in(c), more = stacked(TF_UNKNOWN, &item);

	(void)tf_shape_merge(&list, &more);
	out_list(c, &list);
}

void tf_rule_list_resize(struct tf_infer *c)
{
	struct tf_shape list = list_in(c);
	int64_t count;

	if (list.rank > 0)
		list.dim[0] = tf_in_scalar(c, 1, &count) && count >= 0 ? count : TF_UNKNOWN;
	out_list(c, &list);
}

void tf_rule_list_get(struct tf_infer *c)
{
	struct tf_shape element = element_known(c, 2);

	tf_out(c, 0, &element);
}

void tf_rule_list_pop(struct tf_infer *c)
{
	struct tf_shape element = element_known(c, 1), list = stacked(TF_UNKNOWN, &element);

	out_list(c, &list);
	tf_out(c, 1, &element);
}

/* Stacks all elements; arg 1: those that input 1 lists. */
void tf_rule_list_stack(struct tf_infer *c)
{
	struct tf_shape list = list_in(c), element = element_known(c, c->arg == 1 ? 2 : 1), out;
	int64_t count = list.rank > 0 ? list.dim[0] : TF_UNKNOWN, declared;

	if (c->arg == 1) {
		struct tf_shape index = tf_in(c, 1);

		count = index.rank == 1 ? index.dim[0] : TF_UNKNOWN;
	} else {
		declared = tf_attr_int(tf_attrs(c), "num_elements", TF_UNKNOWN);
		count = declared >= 0 ? declared : count;
	}
	out = stacked(count, &element);
	tf_out(c, 0, &out);
}

void tf_rule_list_length(struct tf_infer *c)
{
	struct tf_shape list = list_in(c), scalar = tf_shape_scalar();
	struct tf_value value = { .count = 1 };

	tf_out(c, 0, &scalar);
	if (list.rank < 1 || list.dim[0] < 0)
		return;
	value.item[0] = list.dim[0];
	tf_out_value(c, 0, &value);
}

/* Stacks and arrays: Stacks and TensorArrays, through which TensorFlow 1's loops pass tensors to later iterations and
 * to their gradients. Elements are written through one handle and read through another; both lead to the op that made
 * the container, where the shape of its elements is stored (tf_slot.handle). A gradient array has the elements of the
 * array it belongs to.
 */

#define HOPS_MAX 32

static bool is_any(struct str type, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(type, str_from(names[i])))
			return true;
	return false;
}

/* The slot of the op that made the container of input 0; NULL when it is not found. */
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

/* Adds to the known shape of a container's elements. Elements of several shapes are unusual; then the first known
 * shape stays. */
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

/* The element shape of a container. The op that writes it may come later in the order than the op that reads it. */
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

/* Makes a container; arg 1: a TensorArray, which may declare its elements and has a second output. */
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

/* The number of elements of a TensorArray, which was given when it was made. */
void tf_rule_cell_size(struct tf_infer *c)
{
	struct tf_slot *cell = cell_of(c), *out = tf_flow_output(c->flow, c->op, 0);
	struct tf_shape scalar = tf_shape_scalar();

	tf_out(c, 0, &scalar);
	if (cell)
		out->value = cell->value;
}

/* Pushes a value. A constant that is pushed repeatedly stays constant: gradients need such shapes. */
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
