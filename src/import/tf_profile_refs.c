/*
 * tf_profile_refs.c: nodes of a ProfileProto name their inputs by id, and ids are any numbers; here
 * they become ops. References to nodes that are not there are dropped and counted.
 */
#include "import/tf_profile.h"

/* From id to op: an array where ids are small, as they nearly always are, else a hash. */
struct id_table {
	uint32_t *dense;
	size_t size;
	struct map map;
	const struct known_id *ids;
};

static bool make_id_table(struct profile *p, struct id_table *t)
{
	int64_t max = 0;
	bool dense = true;

	*t = (struct id_table){ .ids = p->ids };
	map_init(&t->map, p->m->mem);
	for (size_t i = 0; i < p->id_count; i++) {
		dense &= p->ids[i].id >= 0;
		max = MAX(max, p->ids[i].id);
	}
	if (dense && (uint64_t)max < p->id_count * 4 + 1024) {
		t->size = (size_t)max + 1;
		t->dense = mem_zalloc(p->m->mem, t->size * sizeof(*t->dense));
		for (size_t i = 0; t->dense && i < p->id_count; i++)
			t->dense[p->ids[i].id] = p->ids[i].op.v;
		return t->dense != NULL;
	}
	for (size_t i = 0; i < p->id_count; i++)
		if (!map_add(&t->map, map_hash_u64((uint64_t)p->ids[i].id, 10), (uint32_t)i + 1))
			return false;
	return true;
}

static op_id op_of_id(const struct id_table *t, int64_t id)
{
	if (t->dense)
		return (op_id){ id >= 0 && (uint64_t)id < t->size ? t->dense[id] : 0 };
	for (struct map_iter it = map_find(&t->map, map_hash_u64((uint64_t)id, 10)); it.value;
	     it = map_next(&t->map, it))
		if (t->ids[it.value - 1].id == id)
			return t->ids[it.value - 1].op;
	return (op_id){ 0 };
}

/* Edges from ids to ops; those to nodes that are not there are dropped. */
static void resolve_inputs(struct profile *p, const struct id_table *table)
{
	struct op_input_table *t = &p->m->op_input;
	struct model *m = p->m;
	uint32_t to = p->input_base;

	for (uint32_t op = p->op_base; op < m->op.count; op++) {
		uint32_t first = m->op.input_first[op], end = first + m->op.input_count[op];

		m->op.input_first[op] = to;
		for (uint32_t i = first; i < end; i++) {
			op_id src = op_of_id(table, p->input_ids[i - p->input_base]);

			if (!src.v) {
				p->dangling++;
				continue;
			}
			t->src[to] = src;
			t->name[to] = m->op.name[src.v];
			t->index[to] = t->index[i];
			t->port[to] = t->port[i];
			t->shown_port[to] = t->shown_port[i];
			to++;
		}
		m->op.input_count[op] = to - m->op.input_first[op];
	}
	t->count = to;
}

static void set_port(struct model *m, uint32_t op, op_id src, int32_t port)
{
	uint32_t first = m->op.input_first[op], end = first + m->op.input_count[op];

	for (uint32_t i = first; i < end; i++)
		if (m->op_input.src[i].v == src.v)
			m->op_input.port[i] = m->op_input.shown_port[i] = port;
}

/* The same for an op with so many of both that looking for each would take too long. */
static void set_many_ports(struct profile *p, const struct id_table *table, size_t first,
			   size_t end)
{
	struct model *m = p->m;
	uint32_t op = p->ports[first].op.v;
	uint32_t input = m->op.input_first[op], input_end = input + m->op.input_count[op];
	struct map ports;

	map_init(&ports, m->mem);
	for (size_t i = first; i < end; i++)
		if (!map_add(&ports, map_hash_u64(op_of_id(table, p->ports[i].id).v, 11),
			     (uint32_t)i + 1))
			builder_no_memory(p->r.b);
	for (; input < input_end; input++) {
		uint32_t src = m->op_input.src[input].v;
		struct map_iter it = map_find(&ports, map_hash_u64(src, 11));

		while (it.value && op_of_id(table, p->ports[it.value - 1].id).v != src)
			it = map_next(&ports, it);
		if (it.value)
			m->op_input.port[input] = m->op_input.shown_port[input] =
				p->ports[it.value - 1].port;
	}
	map_release(&ports);
}

static void resolve_ports(struct profile *p, const struct id_table *table)
{
	for (size_t i = 0, end; i < p->port_count; i = end) {
		uint32_t op = p->ports[i].op.v;

		for (end = i; end < p->port_count && p->ports[end].op.v == op; end++)
			p->dangling += !op_of_id(table, p->ports[end].id).v;
		if ((end - i) * p->m->op.input_count[op] > 4096) {
			set_many_ports(p, table, i, end);
			continue;
		}
		for (size_t k = i; k < end; k++)
			set_port(p->m, op, op_of_id(table, p->ports[k].id), p->ports[k].port);
	}
}

void profile_resolve(struct profile *p)
{
	struct id_table table;

	if (p->r.b->status != OW_OK)
		return;
	if (make_id_table(p, &table)) {
		resolve_inputs(p, &table);
		resolve_ports(p, &table);
	} else {
		builder_no_memory(p->r.b);
	}
	mem_free(p->m->mem, table.dense, table.size * sizeof(*table.dense));
	map_release(&table.map);
}
