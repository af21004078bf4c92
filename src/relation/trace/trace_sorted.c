/*
 * trace_sorted.c: lists the rows of a listed source in the order of its file, see trace_list.h. The model has events by
 * track and time. All tracks are read side by side, one section of the file at a time, which keeps the written rows in
 * the cache. A track that is not quite in the order of the file only takes longer.
 */
#include "relation/trace/trace_list.h"

#include "base/vec.h"
#include "relation/trace/trace_order.h"

#define AT_ONCE ((uint64_t)2 << 20) /* bytes of one section of the file */
#define SHORT 1024		    /* tracks with fewer rows than this are read together */

/* Consecutive events of one source. */
struct lane {
	uint32_t next, end;
};

struct sorting {
	const struct trace_list *list;
	const struct model *m;
	uint32_t source;
	struct lane *lanes;
	size_t count, cap;
	struct trace_order order;
	uint32_t *refs;
	uint64_t others;
};

static bool add_lane(struct sorting *s, uint32_t first, uint32_t end)
{
	if (first == end)
		return true;
	return vec_push(s->list->mem, s->lanes, s->count, s->cap, (struct lane){ first, end });
}

static bool find_lanes(struct sorting *s)
{
	const struct model *m = s->m;
	uint32_t first = 1, i = 1;

	s->count = 0;
	while (i < m->event.count) {
		uint32_t track = m->event.track[i].v;
		bool ours = m->track.source[track].v == s->source;

		if ((!ours || i - first >= SHORT) && !add_lane(s, first, i))
			return false;
		if (!ours || i - first >= SHORT)
			first = i;
		while (i < m->event.count && m->event.track[i].v == track)
			i++;
		if (!ours)
			first = i;
	}
	return add_lane(s, first, i);
}

static void add_place(struct sorting *s, uint32_t event)
{
	trace_order_add(&s->order, s->m->event.args_offset[event]);
}

static void place_event(struct sorting *s, uint32_t event)
{
	s->refs[trace_order_at(&s->order, s->m->event.args_offset[event])] = event;
	s->others += !trace_list_is_label(s->list, event);
}

static inline void each_event(struct sorting *s, void (*take)(struct sorting *s, uint32_t event))
{
	const uint64_t *place = s->m->event.args_offset;
	size_t left = s->count;

	for (uint64_t end = AT_ONCE; left;
	     end = end < UINT64_MAX - AT_ONCE ? end + AT_ONCE : UINT64_MAX) {
		left = 0;
		for (size_t k = 0; k < s->count; k++) {
			struct lane *lane = &s->lanes[k];

			for (; lane->next < lane->end &&
			       (place[lane->next] < end || end >= s->order.size);
			     lane->next++)
				if (!trace_is_made(s->m, lane->next))
					take(s, lane->next);
			left += lane->next < lane->end;
		}
	}
}

static bool add_places(struct sorting *s)
{
	const struct trace_listing *l = model_listing(s->m, s->source);

	if (!find_lanes(s))
		return false;
	each_event(s, add_place);
	for (size_t i = 0; i < l->count; i++) {
		if (listing_size(l->elements[i]) >= TRACE_TINY)
			trace_order_add(&s->order, listing_place(l->elements[i]));
		else if (!trace_order_add_tiny(&s->order, listing_place(l->elements[i])))
			return false;
	}
	trace_order_count(&s->order);
	return true;
}

/* Places elements that did not become events; the next one to be read has the number `element`. */
static void place_elements(const struct sorting *s, const uint32_t *flows, uint64_t element)
{
	const struct trace_listing *l = model_listing(s->m, s->source);
	uint64_t flow = 0, counter = 0;

	for (size_t i = 0; i < l->count; i++) {
		uint32_t *ref = &s->refs[trace_order_at(&s->order, listing_place(l->elements[i]))];

		if (!(l->elements[i] & LISTING_ALL))
			*ref = trace_make_ref(REF_ELEMENT, element++);
		else if (l->elements[i] & LISTING_FLOW)
			*ref = trace_make_ref(REF_FLOW, flows[flow]);
		else
			*ref = trace_make_ref(REF_LISTED, counter);
		flow += (l->elements[i] & LISTING_FLOW) != 0;
		counter += (l->elements[i] & LISTING_COUNTER) != 0;
	}
}

ow_status trace_list_order(const struct trace_list *list, uint32_t source, const uint32_t *flows,
			   uint32_t *refs, uint64_t *others, bool *done, struct ow_error *err)
{
	struct sorting s = { .list = list, .m = list->m, .source = source, .refs = refs };
	uint64_t size = list->m->inputs[source]->size;
	ow_status status = OW_OK;

	if (!trace_order_init(&s.order, list->mem, size, trace_order_shift(size)) ||
	    !add_places(&s))
		status = error_no_memory(err);
	*done = status == OW_OK && !s.order.failed &&
		list->elements.count + model_listing(list->m, source)->count < TRACE_OTHERS_MAX;
	if (*done && !find_lanes(&s))
		status = error_no_memory(err);
	if (*done && status == OW_OK) {
		each_event(&s, place_event);
		place_elements(&s, flows, list->elements.count);
	}
	*others = s.others;
	trace_order_release(&s.order);
	mem_free(list->mem, s.lanes, s.cap * sizeof(*s.lanes));
	return status;
}
