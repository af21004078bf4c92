/*
 * nest_order.c: sorts the events of a model by track and time, with all rows that refer to them. Importers normally add
 * events in order; this is for those that did not. nest.c calls it.
 */
#include "model/nest.h"

/* Whether two events are in order. Events of unknown duration are points in time, which come after slices of the
 * same start. */
OW_ALWAYS_INLINE bool in_order(const struct event_table *e, uint32_t a, uint32_t b)
{
	if (e->track[a].v != e->track[b].v)
		return e->track[a].v < e->track[b].v;
	if (e->ts_ns[a] != e->ts_ns[b])
		return e->ts_ns[a] < e->ts_ns[b];
	return e->dur_ns[a] >= e->dur_ns[b];
}

static int by_place(const void *a, const void *b, void *arg)
{
	const struct event_table *e = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (!in_order(e, x, y))
		return 1;
	if (!in_order(e, y, x))
		return -1;
	return (x > y) - (x < y);
}

static void renumber(event_id *refs, uint32_t count, const uint32_t *where)
{
	for (uint32_t i = 1; refs && i < count; i++)
		refs[i].v = where[refs[i].v];
}

static ow_status move_events(struct builder *b, uint32_t *order, uint32_t *where)
{
	struct model *m = b->m;

	for (uint32_t i = 0; i < m->event.count; i++)
		order[i] = i;
	qsort_r(order + 1, m->event.count - 1, sizeof(*order), by_place, &m->event);
	for (uint32_t i = 0; i < m->event.count; i++)
		where[order[i]] = i;
	OW_TRY(builder_permute(b, TABLE_event, order));
	renumber(m->event_key.event, m->event_key.count, where);
	renumber(m->event_args.event, m->event_args.count, where);
	renumber(m->flow.event, m->flow.count, where);
	renumber(m->link.src, m->link.count, where);
	renumber(m->link.dst, m->link.count, where);
	return OW_OK;
}

ow_status nest_order_events(struct builder *b)
{
	size_t size = b->m->event.count * sizeof(uint32_t);
	uint32_t *order = mem_alloc(b->m->mem, size);
	uint32_t *where = order ? mem_alloc(b->m->mem, size) : NULL;
	ow_status status;

	if (where)
		status = move_events(b, order, where);
	else
		status = builder_no_memory(b);
	mem_free(b->m->mem, where, size);
	mem_free(b->m->mem, order, size);
	return status;
}
