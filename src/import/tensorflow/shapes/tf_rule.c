/*
 * tf_rule.c: the table of shape rules, made from tf_rules.def, and the functions that a rule may call (tf_rule.h). The
 * rules are in tf_rules_*.c.
 */
#include "import/tensorflow/shapes/tf_rule.h"

#define RULE(type, rule, arg) { #type, tf_rule_##rule, arg },
const struct tf_rule tf_rules[] = {
#include "import/tensorflow/shapes/tf_rules.def"
};
#undef RULE
const size_t tf_rule_count = ARRAY_COUNT(tf_rules);

const struct tf_rule *tf_rule_find(struct str type)
{
	for (size_t i = 0; i < tf_rule_count; i++)
		if (str_eq(type, str_from(tf_rules[i].type)))
			return &tf_rules[i];
	return NULL;
}

const struct tf_node *tf_attrs(struct tf_infer *c)
{
	if (!c->have_node)
		tf_reader_node(c->reader, c->op, &c->node);
	c->have_node = true;
	return &c->node;
}

struct tf_shape tf_in(const struct tf_infer *c, uint32_t index)
{
	const struct tf_slot *slot = tf_flow_input(c->flow, c->op, index);

	return slot ? tf_shape_load(c->flow->m, slot->shape) : tf_shape_unknown();
}

bool tf_in_value(const struct tf_infer *c, uint32_t index, struct tf_value *value)
{
	return tf_flow_value(c->flow, tf_flow_input(c->flow, c->op, index), value);
}

bool tf_in_scalar(const struct tf_infer *c, uint32_t index, int64_t *value)
{
	struct tf_value all;

	if (!tf_in_value(c, index, &all) || all.count != 1 || all.item[0] == TF_VALUE_UNKNOWN)
		return false;
	*value = all.item[0];
	return true;
}

struct tf_shape tf_in_as_shape(const struct tf_infer *c, uint32_t index)
{
	struct tf_shape s = tf_shape_scalar(), of;
	struct tf_value value;

	if (tf_in_value(c, index, &value)) {
		for (uint32_t i = 0; i < value.count; i++)
			tf_shape_push(&s, value.item[i]);
		return s;
	}
	of = tf_in(c, index);
	return of.rank == 1 ? tf_shape_of_rank(of.dim[0]) : tf_shape_unknown();
}

void tf_out(struct tf_infer *c, int32_t port, const struct tf_shape *shape)
{
	struct tf_slot *slot = tf_flow_output(c->flow, c->op, port);
	struct tf_shape known;

	if (!slot || shape->rank == TF_UNKNOWN || tf_shape_id_full(c->flow->m, slot->shape))
		return;
	known = tf_shape_load(c->flow->m, slot->shape);
	if (tf_shape_merge(&known, shape))
		slot->shape = tf_shape_store(c->flow->b, &known);
}

void tf_out_value(struct tf_infer *c, int32_t port, const struct tf_value *value)
{
	struct tf_slot *slot = tf_flow_output(c->flow, c->op, port);

	if (slot && value->count <= TF_VALUE_MAX)
		tf_flow_set_value(c->flow, slot, value);
}

void tf_out_same(struct tf_infer *c, int32_t port, uint32_t input)
{
	const struct tf_slot *from = tf_flow_input(c->flow, c->op, input);
	struct tf_slot *to = tf_flow_output(c->flow, c->op, port);
	struct tf_shape shape;

	if (!from || !to)
		return;
	if (!to->shape.v) {
		to->shape = from->shape;
	} else {
		shape = tf_shape_load(c->flow->m, from->shape);
		tf_out(c, port, &shape);
	}
	to->value = from->value;
	to->handle = from->handle;
}

uint32_t tf_port_count(const struct tf_infer *c)
{
	return c->flow->slot_first[c->op + 1] - c->flow->slot_first[c->op];
}

int32_t tf_port_at(const struct tf_infer *c, uint32_t n)
{
	return c->flow->slots[c->flow->slot_first[c->op] + n].port;
}

void tf_out_all(struct tf_infer *c, const struct tf_shape *shape)
{
	for (uint32_t i = 0; i < tf_port_count(c); i++)
		tf_out(c, tf_port_at(c, i), shape);
}
