/*
 * tf_flow.c: lays out the graph for shape inference (tf_flow.h): slots, values, order. It knows only one op type: the
 * edge from NextIteration back to Merge is left out of the order, so that a loop's body uses the shapes that enter the
 * loop.
 */
#include "import/tensorflow/shapes/tf_flow.h"

#include "base/vec.h"

/* Resolves edges whose producer came after them; the freeze would do the same later. */
static void resolve_inputs(struct tf_flow *flow)
{
	struct op_input_table *t = &flow->m->op_input;

	for (uint32_t i = 1; i < t->count; i++)
		if (!t->src[i].v)
			t->src[i] = builder_find_op(flow->b, t->name[i]);
}

static int by_port(const void *a, const void *b)
{
	const struct tf_slot *x = a, *y = b;

	return (x->port > y->port) - (x->port < y->port);
}

/* Counts, for each op, the references to outputs other than 0; the same output may be counted several times. */
static void count_ports(struct tf_flow *flow, uint32_t *count)
{
	struct model *m = flow->m;

	for (uint32_t i = 1; i < m->op_input.count; i++)
		if (m->op_input.port[i] > 0 && m->op_input.src[i].v)
			count[m->op_input.src[i].v]++;
	for (size_t i = 0; flow->calls && i < flow->calls->return_count; i++)
		count[flow->calls->returns[i].op] += flow->calls->returns[i].port > 0;
	for (uint32_t op = 1; op < flow->op_count; op++)
		for (uint32_t i = 0; i < m->op.output_count[op]; i++)
			count[op] += m->op_output.index[m->op.output_first[op] + i] > 0;
}

static void put_port(struct tf_flow *flow, uint32_t *next, uint32_t op, int32_t port)
{
	flow->slots[next[op]++] = (struct tf_slot){ .port = port };
}

static void put_ports(struct tf_flow *flow, uint32_t *next)
{
	struct model *m = flow->m;

	for (uint32_t op = 0; op < flow->op_count; op++)
		put_port(flow, next, op, 0);
	for (uint32_t i = 1; i < m->op_input.count; i++)
		if (m->op_input.port[i] > 0 && m->op_input.src[i].v)
			put_port(flow, next, m->op_input.src[i].v, m->op_input.port[i]);
	for (size_t i = 0; flow->calls && i < flow->calls->return_count; i++)
		if (flow->calls->returns[i].port > 0)
			put_port(flow, next, flow->calls->returns[i].op,
				 flow->calls->returns[i].port);
	for (uint32_t op = 1; op < flow->op_count; op++)
		for (uint32_t i = 0; i < m->op.output_count[op]; i++) {
			int32_t port = m->op_output.index[m->op.output_first[op] + i];

			if (port > 0)
				put_port(flow, next, op, port);
		}
}

/* Sorts the ports of each op, removes duplicates and closes the gaps. */
static void close_slots(struct tf_flow *flow)
{
	size_t to = 0;

	for (uint32_t op = 0; op < flow->op_count; op++) {
		uint32_t first = flow->slot_first[op], end = flow->slot_first[op + 1];

		if (end - first > 2)
			qsort(flow->slots + first, end - first, sizeof(*flow->slots), by_port);
		flow->slot_first[op] = (uint32_t)to;
		for (uint32_t i = first; i < end; i++)
			if (i == first || flow->slots[i].port != flow->slots[to - 1].port)
				flow->slots[to++] = flow->slots[i];
	}
	flow->slot_first[flow->op_count] = (uint32_t)to;
}

static ow_status lay_slots(struct tf_flow *flow)
{
	struct mem *mem = flow->m->mem;
	size_t bytes = ((size_t)flow->op_count + 1) * sizeof(uint32_t);
	uint32_t *next = mem_zalloc(mem, bytes);
	uint64_t total = 0;

	flow->slot_first = mem_alloc(mem, bytes);
	if (!next || !flow->slot_first)
		goto fail;
	count_ports(flow, next);
	for (uint32_t op = 0; op < flow->op_count; op++) {
		uint32_t count = next[op] + 1;

		flow->slot_first[op] = next[op] = (uint32_t)total;
		total += count;
		if (total > UINT32_MAX / 2)
			goto fail;
	}
	flow->slot_first[flow->op_count] = (uint32_t)total;
	flow->slots = mem_alloc(mem, total * sizeof(*flow->slots));
	if (!flow->slots)
		goto fail;
	flow->slot_count = total;
	put_ports(flow, next);
	close_slots(flow);
	mem_free(mem, next, bytes);
	return OW_OK;
fail:
	mem_free(mem, next, bytes);
	return builder_no_memory(flow->b);
}

struct tf_slot *tf_flow_output(const struct tf_flow *flow, uint32_t op, int32_t port)
{
	uint32_t first = flow->slot_first[op], end = flow->slot_first[op + 1];

	if (port == 0)
		return &flow->slots[first];
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (flow->slots[middle].port == port)
			return &flow->slots[middle];
		if (flow->slots[middle].port < port)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

uint32_t tf_flow_input_row(const struct tf_flow *flow, uint32_t op, uint32_t index)
{
	const struct model *m = flow->m;
	uint32_t first = m->op.input_first[op], count = m->op.input_count[op];

	if (index < count && m->op_input.index[first + index] == (int32_t)index)
		return first + index;
	for (uint32_t i = 0; i < MIN(count, 256u); i++)
		if (m->op_input.index[first + i] == (int32_t)index)
			return first + i;
	return 0;
}

const struct tf_slot *tf_flow_input(const struct tf_flow *flow, uint32_t op, uint32_t index)
{
	uint32_t row = tf_flow_input_row(flow, op, index);
	const struct op_input_table *t = &flow->m->op_input;

	if (!row || t->port[row] < 0 || !t->src[row].v)
		return NULL;
	return tf_flow_output(flow, t->src[row].v, t->port[row]);
}

static bool all_known(const struct tf_flow *flow)
{
	for (size_t i = 0; i < flow->slot_first[flow->op_count]; i++)
		if (!tf_shape_id_full(flow->m, flow->slots[i].shape))
			return false;
	return true;
}

/* Fills the shapes of the graph, and where it has none those seen in a run. */
static ow_status fill_shapes(struct tf_flow *flow)
{
	struct model *m = flow->m;

	for (uint32_t op = 1; op < flow->op_count; op++)
		for (uint32_t i = 0; i < m->op.output_count[op]; i++) {
			uint32_t row = m->op.output_first[op] + i;
			int32_t port = m->op_output.index[row];

			if (port >= 0)
				tf_flow_output(flow, op, port)->shape = m->op_output.shape[row];
		}
	if (all_known(flow))
		return OW_OK;
	OW_TRY(model_require_rows(m, TABLE_BIT(tensor), flow->b->err));
	for (uint32_t i = 1; i < m->tensor.count; i++) {
		struct tf_slot *slot;

		if (!m->tensor.op[i].v || !m->tensor.step[i].v || m->tensor.slot[i] < 0)
			continue;
		slot = tf_flow_output(flow, m->tensor.op[i].v, m->tensor.slot[i]);
		if (slot && !slot->traced.v && tf_shape_id_full(m, m->tensor.shape[i]))
			slot->traced = m->tensor.shape[i];
	}
	return OW_OK;
}

enum { UNSEEN, OPEN, DONE };

struct visit {
	struct tf_flow *flow;
	uint8_t *state;
	/* stack: ops being visited; next: how many of their inputs were visited */
	uint32_t *stack, *next;
	uint32_t depth;
	str_id merge, next_iteration;
};

static void visit_push(struct visit *v, uint32_t op)
{
	v->state[op] = OPEN;
	v->stack[v->depth] = op;
	v->next[v->depth++] = 0;
}

/* The next return value of a call, which counts as a further input after the real ones. */
static uint32_t next_return(const struct visit *v, uint32_t op, uint32_t *at)
{
	const struct tf_call *call = tf_call_of(v->flow->calls, op);
	uint32_t inputs = v->flow->m->op.input_count[op];

	while (call && *at - inputs < call->branches * call->outputs) {
		uint32_t src = v->flow->calls->returns[call->first + (*at)++ - inputs].op;

		if (src && v->state[src] == UNSEEN)
			return src;
	}
	return 0;
}

/* The next producer that has to come before the op on top of the stack; 0 when there is none. An edge to an op on
 * the stack closes a cycle and is left out. */
static uint32_t next_producer(struct visit *v)
{
	const struct model *m = v->flow->m;
	uint32_t op = v->stack[v->depth - 1], *at = &v->next[v->depth - 1];

	while (*at < m->op.input_count[op]) {
		uint32_t row = m->op.input_first[op] + (*at)++;
		uint32_t src = m->op_input.src[row].v;

		if (!src || m->op_input.port[row] < 0 || v->state[src] != UNSEEN)
			continue;
		if (v->merge.v && m->op.type[op].v == v->merge.v &&
		    m->op.type[src].v == v->next_iteration.v)
			continue;
		return src;
	}
	return next_return(v, op, at);
}

static void visit_op(struct visit *v, uint32_t op)
{
	visit_push(v, op);
	while (v->depth) {
		uint32_t src = next_producer(v);

		if (src) {
			visit_push(v, src);
			continue;
		}
		op = v->stack[--v->depth];
		v->state[op] = DONE;
		v->flow->order[v->flow->order_count++] = op;
	}
}

static ow_status make_order(struct tf_flow *flow)
{
	struct mem *mem = flow->m->mem;
	size_t count = flow->op_count;
	struct visit v = { .flow = flow,
			   .merge = model_find_str(flow->m, STR("Merge")),
			   .next_iteration = model_find_str(flow->m, STR("NextIteration")) };

	flow->order = mem_alloc(mem, count * sizeof(*flow->order));
	v.state = mem_zalloc(mem, count);
	v.stack = mem_alloc(mem, count * sizeof(*v.stack));
	v.next = mem_alloc(mem, count * sizeof(*v.next));
	if (flow->order && v.state && v.stack && v.next)
		for (uint32_t op = 1; op < count; op++)
			if (v.state[op] == UNSEEN)
				visit_op(&v, op);
	mem_free(mem, v.next, count * sizeof(*v.next));
	mem_free(mem, v.stack, count * sizeof(*v.stack));
	mem_free(mem, v.state, count);
	return flow->order_count == count - 1 ? OW_OK : builder_no_memory(flow->b);
}

bool tf_flow_value(const struct tf_flow *flow, const struct tf_slot *slot, struct tf_value *value)
{
	if (!slot || !slot->value)
		return false;
	value->count = (uint32_t)flow->values[slot->value];
	memcpy(value->item, flow->values + slot->value + 1, value->count * sizeof(int64_t));
	return true;
}

static uint64_t hash_value(const struct tf_value *value)
{
	uint64_t hash = map_hash_u64(value->count, 5);

	for (uint32_t i = 0; i < value->count; i++)
		hash = map_hash_u64(hash, (uint64_t)value->item[i]);
	return hash;
}

static bool same_value(const struct tf_flow *flow, uint32_t at, const struct tf_value *value)
{
	return flow->values[at] == (int64_t)value->count &&
	       memcmp(flow->values + at + 1, value->item, value->count * sizeof(int64_t)) == 0;
}

/* Sets the value of a slot. Equal values are stored once: a model repeats its few shapes. */
void tf_flow_set_value(struct tf_flow *flow, struct tf_slot *slot, const struct tf_value *value)
{
	uint64_t hash = hash_value(value);
	struct map_iter it = map_find(&flow->value_map, hash);
	size_t at = MAX(flow->value_count, (size_t)1), need = at + 1 + value->count;

	for (; it.value; it = map_next(&flow->value_map, it))
		if (same_value(flow, it.value, value)) {
			slot->value = it.value;
			return;
		}
	if (need > UINT32_MAX)
		return;
	if (!vec_reserve(flow->m->mem, flow->values, flow->value_cap, need)) {
		builder_no_memory(flow->b);
		return;
	}
	if (!map_add(&flow->value_map, hash, (uint32_t)at)) {
		builder_no_memory(flow->b);
		return;
	}
	flow->values[at] = value->count;
	memcpy(flow->values + at + 1, value->item, value->count * sizeof(int64_t));
	flow->value_count = need;
	slot->value = (uint32_t)at;
}

static ow_status find_producers(struct tf_flow *flow)
{
	struct model *m = flow->m;
	str_id key = model_find_str(m, STR("producer"));

	flow->source_count = m->source.count;
	flow->producers = mem_zalloc(m->mem, flow->source_count * sizeof(*flow->producers));
	if (!flow->producers)
		return builder_no_memory(flow->b);
	for (uint32_t i = 1; i < m->fact.count && key.v; i++)
		if (m->fact.key[i].v == key.v && m->fact.kind[i] == FACT_INT)
			flow->producers[m->fact.source[i].v] = m->fact.number[i];
	return OW_OK;
}

ow_status tf_flow_init(struct tf_flow *flow, struct builder *b, const struct tf_calls *calls)
{
	*flow = (struct tf_flow){ .b = b, .m = b->m, .calls = calls, .op_count = b->m->op.count };
	map_init(&flow->value_map, b->m->mem);
	resolve_inputs(flow);
	OW_TRY(find_producers(flow));
	OW_TRY(lay_slots(flow));
	OW_TRY(fill_shapes(flow));
	return make_order(flow);
}

void tf_flow_release(struct tf_flow *flow)
{
	struct mem *mem = flow->m->mem;
	size_t count = flow->op_count;

	mem_free(mem, flow->slot_first, (count + 1) * sizeof(uint32_t));
	mem_free(mem, flow->slots, flow->slot_count * sizeof(*flow->slots));
	mem_free(mem, flow->order, count * sizeof(*flow->order));
	mem_free(mem, flow->values, flow->value_cap * sizeof(int64_t));
	mem_free(mem, flow->producers, flow->source_count * sizeof(*flow->producers));
	map_release(&flow->value_map);
}
