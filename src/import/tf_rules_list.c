/*
 * tf_rules_list.c: shape rules of tensor lists, which the loops of TensorFlow 2 use where TensorFlow 1 has TensorArrays. A list is
 * a value that ops take and return, so what is known of it travels along: tf_slot.handle is the shape that its elements have
 * when stacked, their number first.
 */
#include "import/tf_rule.h"

/* An input that says what elements are like; a scalar stands for any shape. */
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

/* Elements as the list, as an input and as an op that adds one know them. */
static struct tf_shape element_known(const struct tf_infer *c, uint32_t declared)
{
	struct tf_shape list = list_in(c), element = element_of(&list),
			said = element_input(c, declared);

	(void)tf_shape_merge(&element, &said);
	return element;
}

/* Elements as input 0 says; arg 1: input 1 says how many. */
void tf_rule_list_new(struct tf_infer *c)
{
	struct tf_shape element = element_input(c, 0), list;
	int64_t count = TF_UNKNOWN;

	if (c->arg == 1)
		(void)tf_in_scalar(c, 1, &count);
	list = stacked(count < 0 ? TF_UNKNOWN : count, &element);
	out_list(c, &list);
}

/* The parts of input 0 along its first dimension; arg 1: spread over a list of input 3's length. */
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

/* One more element, input 1; the length is what a loop makes of it. */
void tf_rule_list_push(struct tf_infer *c)
{
	struct tf_shape item = tf_in(c, 1), list = list_in(c), more = stacked(TF_UNKNOWN, &item);

	if (list.rank > 0)
		list.dim[0] = TF_UNKNOWN;
	(void)tf_shape_merge(&list, &more);
	out_list(c, &list);
}

/* Input 2 takes the place of an element. */
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

/* All elements; arg 1: those that input 1 lists. */
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
