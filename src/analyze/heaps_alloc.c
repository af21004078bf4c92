/*
 * heaps_alloc.c: the changes of memory that profiles of TensorFlow 1 tell, as a list in order of time:
 * allocations and releases of ops (table alloc), and what allocators said to be in use when an op ended
 * (memory.in_use), which is a heap of its own: it includes what was there before and what no op asked for.
 */
#include "analyze/heaps.h"

struct change {
	int64_t ts, size, total;
	uint32_t op_step;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->op_step != y->op_step)
		return x->op_step < y->op_step ? -1 : 1;
	return (x->size < y->size) -
	       (x->size > y->size); /* what is taken, before what is given back */
}

static size_t gather(const struct model *m, struct change *to)
{
	size_t count = 0;

	for (uint32_t i = 1; i < m->alloc.count; i++)
		if (m->alloc.size[i])
			to[count++] = (struct change){ m->alloc.ts_ns[i], m->alloc.size[i], 0,
						       m->alloc.op_step[i] };
	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++)
		if (m->memory.in_use[i] > 0)
			to[count++] = (struct change){ m->memory.ts_ns[i], 0, m->memory.in_use[i],
						       m->memory.op_step[i] };
	return count;
}

struct columns {
	int64_t *ts, *size, *total;
	uint8_t *kind;
	op_id *op;
	str_id *device, *allocator;
	step_id *step;
};

static bool make_columns(struct arena *arena, struct columns *c, size_t count)
{
	c->ts = ARENA_ARRAY(arena, int64_t, count);
	c->size = ARENA_ARRAY(arena, int64_t, count);
	c->total = ARENA_ARRAY(arena, int64_t, count);
	c->kind = ARENA_ARRAY(arena, uint8_t, count);
	c->op = ARENA_ARRAY(arena, op_id, count);
	c->device = ARENA_ARRAY(arena, str_id, count);
	c->step = ARENA_ARRAY(arena, step_id, count);
	c->allocator = ARENA_ARRAY(arena, str_id, count);
	return c->ts && c->size && c->total && c->kind && c->op && c->device && c->step &&
	       c->allocator;
}

/* Rows begin at 1, as those of tables do. */
static void fill(const struct model *m, const struct change *from, size_t count, struct columns *c)
{
	for (size_t i = 1; i <= count; i++, from++) {
		op_id op = m->op_step.op[from->op_step];

		c->ts[i] = from->ts;
		c->size[i] = from->size;
		c->total[i] = from->total;
		c->kind[i] = from->total ? HEAP_TOTAL : from->size < 0 ? HEAP_FREE : HEAP_ALLOC;
		c->op[i] = op;
		c->device[i] = m->op.device[op.v];
		c->step[i] = m->op_step.step[from->op_step];
		c->allocator[i] = (str_id){ from->total ? HEAP_ALL_OF_DEVICE : 0 };
	}
}

ow_status heaps_from_allocs(struct heaps *h, struct heap_list *list)
{
	const struct model *m = h->m;
	size_t most = (size_t)m->alloc.count + (m->memory.in_use ? m->memory.count : 0), count;
	struct change *changes;
	struct columns c;

	*list = (struct heap_list){ 0 };
	if (m->alloc.count <= 1 && !m->memory.in_use)
		return OW_OK;
	changes = mem_alloc(m->mem, most * sizeof(*changes));
	if (!changes)
		return error_no_memory(h->err);
	count = gather(m, changes);
	if (count)
		qsort(changes, count, sizeof(*changes), by_time);
	if (!make_columns(&h->arena, &c, count + 1)) {
		mem_free(m->mem, changes, most * sizeof(*changes));
		return error_no_memory(h->err);
	}
	fill(m, changes, count, &c);
	mem_free(m->mem, changes, most * sizeof(*changes));
	*list = (struct heap_list){ .first = 1,
				    .count = (uint32_t)count + 1,
				    .ts_ns = c.ts,
				    .size = c.size,
				    .kind = c.kind,
				    .op = c.op,
				    .device_name = c.device,
				    .allocator = c.allocator,
				    .step = c.step,
				    .allocated = c.total };
	return OW_OK;
}
