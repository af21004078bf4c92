/*
 * trace_points.c: rows of events that are no slices of their own: halves of pairs, flows, counters, metadata and
 * what has no known letter. Called by trace_rows.c.
 */
#include "import/trace_int.h"

static struct trace_point *add_point(struct trace_worker *w, const struct json_event *ev,
				     uint8_t ph, bool has_ts, int64_t ts)
{
	struct trace_point *p = TRACE_NEW_ROW(w, points, point_count, point_cap);

	if (!p)
		return NULL;
	*p = (struct trace_point){ .ph = ph,
				   .ts = ts,
				   .flags = has_ts ? 0 : POINT_NO_TS,
				   .at = (uint32_t)w->slices.count };
	p->name = trace_field_text(w, ev, FIELD_NAME);
	p->category = trace_category_of(w, ev);
	p->args_offset = trace_args_place(ev, &p->args_size);
	return p;
}

/* id2 wins over id; its local form is of the process. */
void trace_read_id(struct trace_worker *w, const struct json_event *ev, struct trace_id *id,
		   bool *local)
{
	struct json_value v = { 0 };

	*local = false;
	if (json_event_has(ev, FIELD_ID2) && ev->value[FIELD_ID2].kind == JSON_OBJECT) {
		v = json_find(json_text(ev->value[FIELD_ID2]), "global");
		if (v.kind == JSON_NONE) {
			v = json_find(json_text(ev->value[FIELD_ID2]), "local");
			*local = v.kind != JSON_NONE;
		}
	}
	*id = v.kind != JSON_NONE ? trace_id_of(w, v) : trace_field_id(w, ev, FIELD_ID);
}

void trace_take_point(struct trace_worker *w, const struct json_event *ev, uint8_t ph, bool has_ts,
		      int64_t ts)
{
	struct trace_point *p = add_point(w, ev, ph, has_ts, ts);
	struct trace_id id;
	bool local;

	if (!p)
		return;
	p->track = trace_track_of(w, ev, LAYER_THREAD);
	if (ph == 'E')
		return;
	if (ph == 'X') { /* one without a time; its duration is counted all the same */
		if (!trace_time_of(w, ev, FIELD_DUR, &p->id))
			p->id = TIME_UNKNOWN;
		return;
	}
	trace_read_id(w, ev, &id, &local);
	p->id = id.value;
	p->id_kind = id.kind;
	p->flags |= local ? POINT_LOCAL_ID : 0;
	p->scope = trace_field_text(w, ev, FIELD_SCOPE);
	if (json_event_has(ev, FIELD_BP) && str_eq(json_text(ev->value[FIELD_BP]), STR("e")))
		p->flags |= POINT_ENCLOSING;
}

/* No ph, or one that is not a single character. */
void trace_take_odd(struct trace_worker *w, const struct json_event *ev)
{
	int64_t ts = 0;
	bool has_ts = trace_time_of(w, ev, FIELD_TS, &ts);
	struct trace_point *p = add_point(w, ev, 0, has_ts, ts);

	if (!p)
		return;
	p->track = trace_track_of(w, ev, LAYER_THREAD);
	p->flags |= POINT_ODD_PH;
	if (json_event_has(ev, FIELD_PH)) {
		p->id_kind = ID_TEXT;
		p->id = trace_text_of(w, ev->value[FIELD_PH]);
	}
}

static void take_series(struct trace_worker *w, const struct trace_counter *common, struct str key,
			struct json_value value, bool first)
{
	struct trace_counter *c = TRACE_NEW_ROW(w, counters, counter_count, counter_cap);

	if (!c)
		return;
	*c = *common;
	c->first = first;
	c->series = trace_dict_add(&w->dict, w->mem, key);
	if (c->series == TRACE_FULL)
		trace_fail(w);
	if ((value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	    json_double(json_text(value), &c->value))
		return;
	c->no_value = true;
	w->faults.labels++;
}

void trace_take_counter(struct trace_worker *w, const struct json_event *ev)
{
	struct trace_counter c = { .name = trace_field_text(w, ev, FIELD_NAME),
				   .category = trace_category_of(w, ev),
				   .track = trace_track_of(w, ev, LAYER_THREAD),
				   .instance = trace_field_text(w, ev, FIELD_ID) };
	struct json_reader r;
	struct json_value value;
	struct str key;
	bool first = true;

	c.no_ts = !trace_time_of(w, ev, FIELD_TS, &c.ts);
	if (json_event_has(ev, FIELD_ARGS) && ev->value[FIELD_ARGS].kind == JSON_OBJECT) {
		c.args_size = ev->value[FIELD_ARGS].len;
		c.args_offset = ev->offset + (uint64_t)(ev->value[FIELD_ARGS].at - ev->text);
		r = json_over(json_text(ev->value[FIELD_ARGS]));
		for (; json_next_member(&r, &key, &value); first = false)
			take_series(w, &c, key, value, first);
	}
	if (!first)
		return;
	/* A counter without series: nothing to show, but it is counted. */
	c.first = c.no_value = true;
	struct trace_counter *row = TRACE_NEW_ROW(w, counters, counter_count, counter_cap);
	if (row)
		*row = c;
}

static const struct {
	const char *name, *arg;
	enum trace_meta_kind kind;
} metas[] = {
	{ "process_name", "name", META_PROCESS_NAME },
	{ "process_labels", "labels", META_PROCESS_LABELS },
	{ "process_sort_index", "sort_index", META_PROCESS_SORT },
	{ "thread_name", "name", META_THREAD_NAME },
	{ "thread_sort_index", "sort_index", META_THREAD_SORT },
};

void trace_take_meta(struct trace_worker *w, const struct json_event *ev)
{
	struct trace_meta *m = TRACE_NEW_ROW(w, metas, meta_count, meta_cap);
	struct json_value v = { 0 };

	if (!m)
		return;
	*m = (struct trace_meta){ .name = trace_field_text(w, ev, FIELD_NAME),
				  .category = trace_category_of(w, ev),
				  .track = trace_track_of(w, ev, LAYER_THREAD) };
	for (size_t i = 0; m->name && i < ARRAY_COUNT(metas); i++) {
		if (!json_key_is(trace_dict_text(&w->dict, m->name), metas[i].name))
			continue;
		if (json_event_has(ev, FIELD_ARGS))
			v = json_find(json_text(ev->value[FIELD_ARGS]), metas[i].arg);
		if (v.kind == JSON_NONE) /* some writers put sort_index beside the arguments */
			v = json_find(str_make(ev->text, ev->len), metas[i].arg);
		if (v.kind == JSON_NONE || trace_is_null(v))
			return;
		m->kind = (uint8_t)metas[i].kind;
		if (m->kind == META_PROCESS_SORT || m->kind == META_THREAD_SORT)
			json_decimal(json_text(v), 0, &m->number);
		else
			m->text = trace_text_of(w, v);
		return;
	}
}
