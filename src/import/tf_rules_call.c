/*
 * tf_rules_call.c: shapes that go into and come out of functions that tf_inline.c has opened. What a call returns is what its body
 * returns; of several branches what they agree on; of a loop what entered it, as for Merge in tf_rules_source.c.
 */
#include "import/tf_rule.h"

/* What comes round a loop: of the same shape as what entered, but another value. */
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
