/*
 * xspace_steps.c: what an XSpace says about steps, as the meaning pass wants it: markers of the best kind that
 * the file has. Also the links between its events: who produced what somebody else consumes.
 */
#include "import/xspace_int.h"

#define CROWD                                                                                      \
	64 /* so many producers and as many consumers of one id say nothing about each other */

/* ---- steps ---- */

static struct recorded_step *step_of_group(struct xspace *x, int64_t number)
{
	uint64_t hash = map_hash_u64((uint64_t)number, 7);

	for (struct map_iter it = map_find(&x->groups, hash); it.value;
	     it = map_next(&x->groups, it))
		if (x->steps[it.value - 1].number == number)
			return &x->steps[it.value - 1];
	return NULL;
}

ow_status xspace_mark(struct xspace *x, enum xstep_source source, int64_t start, int64_t end,
		      int64_t number, str_id name)
{
	void *steps = x->steps;
	struct recorded_step *known;

	if (source < x->step_source)
		return OW_OK;
	if (source > x->step_source) { /* a better kind of marker makes those before it void */
		x->step_count = 0;
		map_release(&x->groups);
		map_init(&x->groups, x->mem);
	}
	x->step_source = source;
	known = source == XSTEP_GROUP ? step_of_group(x, number) : NULL;
	if (known) {
		known->start_ns = MIN(known->start_ns, start);
		known->end_ns = MAX(known->end_ns, end);
		return OW_OK;
	}
	if (!mem_grow(x->mem, &steps, &x->step_cap, x->step_count + 1, sizeof(*x->steps)))
		return xspace_no_memory(x);
	x->steps = steps;
	x->steps[x->step_count++] = (struct recorded_step){ start, end, number, name };
	if (source == XSTEP_GROUP &&
	    !map_add(&x->groups, map_hash_u64((uint64_t)number, 7), (uint32_t)x->step_count))
		return xspace_no_memory(x);
	return OW_OK;
}

/* One group is no step: everything belongs to it. */
void xspace_finish_steps(struct xspace *x)
{
	if (x->step_source == XSTEP_GROUP && x->step_count < 2)
		x->step_count = 0;
}

/* ---- links ---- */

ow_status xspace_add_end(struct xspace *x, int64_t type, uint64_t id, uint32_t event, bool consumer)
{
	void *ends = x->ends;

	if (!mem_grow(x->mem, &ends, &x->end_cap, x->end_count + 1, sizeof(*x->ends)))
		return xspace_no_memory(x);
	x->ends = ends;
	x->ends[x->end_count++] = (struct xend){ id, type, event, consumer };
	x->producer_count += !consumer;
	return OW_OK;
}

static int by_id(const void *a, const void *b)
{
	const struct xend *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->consumer != y->consumer)
		return x->consumer ? 1 : -1;
	return (x->event > y->event) - (x->event < y->event);
}

/* Launches on a GPU and on a TPU; anything else is some arrow. */
static uint8_t link_kind_of(int64_t type)
{
	return type == 9 || type == 12 ? LINK_LAUNCH : LINK_FLOW;
}

static ow_status link_group(struct xspace *x, size_t first, size_t middle, size_t last)
{
	if (middle - first >= CROWD && last - middle >= CROWD)
		return OW_OK;
	for (size_t p = first; p < middle; p++)
		for (size_t c = middle; c < last; c++)
			builder_add_link(
				x->b, &(struct link_row){ .src = { x->ends[p].event },
							  .dst = { x->ends[c].event },
							  .kind = link_kind_of(x->ends[p].type) });
	return builder_status(x->b);
}

/* Events of one line mostly wait for the same, one after the other. */
static bool in_order(const struct xspace *x)
{
	for (size_t i = 1; i < x->end_count; i++)
		if (by_id(&x->ends[i - 1], &x->ends[i]) > 0)
			return false;
	return true;
}

ow_status xspace_link_ends(struct xspace *x)
{
	size_t first, middle, last;

	if (!x->producer_count || x->producer_count == x->end_count)
		return OW_OK;
	if (!in_order(x))
		qsort(x->ends, x->end_count, sizeof(*x->ends), by_id);
	for (first = 0; first < x->end_count; first = last) {
		const struct xend *e = &x->ends[first];

		for (middle = first; middle < x->end_count && !x->ends[middle].consumer &&
				     x->ends[middle].id == e->id && x->ends[middle].type == e->type;
		     middle++)
			;
		for (last = middle; last < x->end_count && x->ends[last].id == e->id &&
				    x->ends[last].type == e->type;
		     last++)
			;
		OW_TRY(link_group(x, first, middle, last));
	}
	return OW_OK;
}
