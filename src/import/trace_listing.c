/*
 * trace_listing.c: keeps what is needed to tell the list of events again as it stands in the file (struct trace_listing):
 * the places of elements that are no slices, and whether all the others are told by their rows. Judged while the
 * event is at hand, event by event; nothing is kept for those that are as they should be.
 */
#include "import/trace_int.h"

#define LARGE_ARGS ((uint32_t)16 << 20) /* which nobody reads by their row */

OW_ALWAYS_INLINE bool is_text(const struct json_event *ev, enum json_field field)
{
	return ev->value[field].kind == JSON_STRING && ev->value[field].len;
}

OW_ALWAYS_INLINE bool is_number_or_none(const struct json_event *ev, enum json_field field)
{
	return !json_event_has(ev, field) || ev->value[field].kind == JSON_NUMBER;
}

OW_ALWAYS_INLINE bool is_text_or_none(const struct json_event *ev, enum json_field field)
{
	return !json_event_has(ev, field) || is_text(ev, field);
}

/* What slices and flows have in common. Times that do not fit nanoseconds are found when they are read. */
OW_ALWAYS_INLINE bool is_plain(const struct json_event *ev, uint8_t ph)
{
	return ph < 0x80 && ev->value[FIELD_PH].len == 1 &&
	       ev->value[FIELD_TS].kind == JSON_NUMBER && is_number_or_none(ev, FIELD_PID) &&
	       is_number_or_none(ev, FIELD_TID) && is_text_or_none(ev, FIELD_CAT);
}

/* An empty object is an argument list, too, which the model does not tell from none. A T with a duration cannot be
 * told from one that was made of a pair. */
bool trace_slice_is_plain(const struct json_event *ev, uint8_t ph)
{
	const struct json_value *args = &ev->value[FIELD_ARGS];

	if (!is_plain(ev, ph) || !json_event_has(ev, FIELD_NAME) || !is_text(ev, FIELD_NAME) ||
	    ph == 'T')
		return false;
	if (json_event_has(ev, FIELD_DUR) &&
	    (ph != 'X' || ev->value[FIELD_DUR].kind != JSON_NUMBER))
		return false;
	return !json_event_has(ev, FIELD_ARGS) || args->kind != JSON_OBJECT ||
	       (args->len > 2 && args->len <= LARGE_ARGS);
}

static bool has_label(const struct trace_worker *w, const struct json_event *ev)
{
	static const struct json_pick picks[] = { JSON_PICK("name"), JSON_PICK("op") };
	struct json_value found[ARRAY_COUNT(picks)] = { { 0 } };
	const struct json_value *args = &ev->value[FIELD_ARGS];

	if (!json_event_has(ev, FIELD_ARGS) || args->kind != JSON_OBJECT)
		return false;
	json_scan_pick(&w->scan, args, picks, ARRAY_COUNT(picks), found);
	return found[0].kind != JSON_NONE || found[1].kind != JSON_NONE;
}

void trace_list_unlabelled(struct trace_worker *w, const struct json_event *ev, uint8_t ph)
{
	if (ph != 'N' && ph != 'O' && ph != 'D')
		w->faults.unlabelled++;
	else if (has_label(w, ev))
		w->faults.odd++;
}

static bool flow_is_plain(const struct json_event *ev, uint8_t ph)
{
	return is_plain(ev, ph) && is_text_or_none(ev, FIELD_NAME) &&
	       !json_event_has(ev, FIELD_DUR) &&
	       (!json_event_has(ev, FIELD_ARGS) || ev->value[FIELD_ARGS].kind != JSON_OBJECT);
}

static bool counter_is_plain(const struct trace_worker *w, const struct json_event *ev)
{
	return is_plain(ev, 'C') && is_text_or_none(ev, FIELD_NAME) &&
	       !json_event_has(ev, FIELD_DUR) && !has_label(w, ev);
}

void trace_list_element(struct trace_worker *w, const struct json_event *ev, uint8_t ph,
			bool has_ts)
{
	uint64_t *place = TRACE_NEW_ROW(w, elements, element_count, element_cap);

	if (!place)
		return;
	*place = ev->offset | (uint64_t)ev->len << LISTING_PLACE_BITS;
	if (!ph &&
	    json_event_has(ev,
			   FIELD_TS)) /* it may become an event, which cannot be told from an X */
		w->faults.odd++;
	if (ph == 'E' && json_event_has(ev, FIELD_ARGS)) /* its begin may take them over */
		w->faults.odd++;
	if (ev->offset >> LISTING_PLACE_BITS || ev->len >> LISTING_SIZE_BITS) {
		*place = 0;
		w->faults.odd++;
	}
	if ((ph == 's' || ph == 't' || ph == 'f') && has_ts)
		*place |= LISTING_FLOW | (flow_is_plain(ev, ph) ? LISTING_ALL : 0);
	if (ph == 'C')
		*place |= LISTING_COUNTER | (counter_is_plain(w, ev) ? LISTING_ALL : 0);
}

static ow_status collect_elements(struct trace *t, struct trace_listing *list)
{
	size_t count = 0;

	for (size_t i = 0; i < t->accepted_count; i++)
		count += t->accepted[i].last.elements - t->accepted[i].first.elements;
	list->elements = mem_alloc(t->mem, count * sizeof(*list->elements));
	if (!list->elements)
		return error_no_memory(t->ctx->err);
	list->cap = count;
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		size_t n = p->last.elements - p->first.elements;

		if (n)
			memcpy(list->elements + list->count,
			       t->workers[p->worker].elements + p->first.elements,
			       n * sizeof(*list->elements));
		list->count += n;
	}
	for (unsigned i = 0; i < t->worker_count; i++) { /* before the columns are made */
		struct trace_worker *w = &t->workers[i];

		mem_free(t->mem, w->elements, w->element_cap * sizeof(*w->elements));
		w->elements = NULL;
		w->element_count = w->element_cap = 0;
	}
	return OW_OK;
}

static str_id plain_string(const struct trace *t, uint32_t string)
{
	return (str_id){ string == t->string_count ? 0 : string };
}

static ow_status collect_counters(struct trace *t, struct trace_listing *list)
{
	size_t count = t->tallies[0].by_ph['C'];

	list->counters = mem_alloc(t->mem, count * sizeof(*list->counters));
	if (!list->counters)
		return error_no_memory(t->ctx->err);
	list->counter_cap = count;
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.counters; r < p->last.counters; r++) {
			const struct trace_counter *c = &w->counters[r];

			if (!c->first)
				continue;
			OW_ASSERT(list->counter_count < count);
			list->counters[list->counter_count++] = (struct trace_listing_counter){
				.ts_ns = c->ts,
				.args_offset = c->args_offset,
				.args_size = c->args_size,
				.name = plain_string(t, c->name),
				.category = plain_string(t, c->category),
				.track = t->lanes[c->track].id
			};
		}
	}
	return OW_OK;
}

/* Times near the limits are cut when the base is added. */
static bool is_usual(int64_t base)
{
	return base > -(INT64_C(1) << 61) && base < INT64_C(1) << 61;
}

ow_status trace_list(struct trace *t)
{
	struct trace_listing *list = model_make_listing(t->b->m, t->b->source);
	const struct trace_tally *y = &t->tallies[0];

	if (!list)
		return error_no_memory(t->ctx->err);
	*list = (struct trace_listing){ .plain = true,
					.labelled = true,
					.base_ns = t->base_ns,
					.events = y->slices,
					.strings = t->b->m->strings.count };
	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_faults *f = &t->accepted[i].faults;

		list->plain &= !f->odd && !f->others && !f->damaged && !t->accepted[i].samples;
		list->labelled &= !f->unlabelled;
	}
	list->plain &= is_usual(t->base_ns) && (y->min_ts == TIME_UNKNOWN || is_usual(y->min_ts)) &&
		       is_usual(y->max_ts);
	if (!list->plain)
		return OW_OK;
	OW_TRY(collect_counters(t, list));
	return collect_elements(t, list);
}
