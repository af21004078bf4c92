/*
 * trace_rows.c: makes rows from one event; this is the hot path of the importer. Most events are complete slices and
 * need no further work. The other events become points (halves of pairs, flows), counters or metadata. Called by
 * import_trace.c, one worker per thread. It also decides whether the rows contain all data of the event (struct
 * trace_listing).
 */
#include "import/chrome/trace_int.h"

/* Whether a value is missing or null. */
static bool is_null(struct json_value v)
{
	return v.kind == JSON_LITERAL && v.len == 4 && memcmp(v.at, "null", 4) == 0;
}

/* Returns any value as text: strings unchanged, numbers and the rest as written. 0 = none. */
static uint32_t text_of(struct trace_worker *w, struct json_value v)
{
	uint32_t id;

	if (is_null(v))
		return 0;
	id = trace_dict_add(&w->dict, w->mem, json_text(v));
	if (OW_LIKELY(id != TRACE_FULL))
		return id;
	trace_fail(w);
	return 0;
}

static uint32_t field_text(struct trace_worker *w, const struct json_event *ev,
			   enum json_field field)
{
	return json_event_has(ev, field) ? text_of(w, ev->value[field]) : 0;
}

/* Returns the first bytes of text in the window, where eight bytes can always be read. */
static uint64_t first_bytes(struct str text)
{
	uint64_t head;

	memcpy(&head, text.ptr, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	head = __builtin_bswap64(head);
#endif
	return text.len < 8 ? head & (((uint64_t)1 << 8 * text.len) - 1) : head;
}

static uint32_t category_of(struct trace_worker *w, const struct json_event *ev)
{
	struct str text;
	uint64_t head;
	size_t slot;

	if (!json_event_has(ev, FIELD_CAT))
		return 0;
	if (OW_UNLIKELY(ev->value[FIELD_CAT].kind != JSON_STRING))
		return text_of(w, ev->value[FIELD_CAT]);
	text = json_text(ev->value[FIELD_CAT]);
	head = first_bytes(text);
	slot = ((head ^ text.len) * 0x9e3779b97f4a7c15ull) >> 60;
	if (OW_LIKELY(w->categories[slot].head == head && w->categories[slot].len == text.len &&
		      w->categories[slot].id &&
		      (text.len <= 8 ||
		       str_eq(trace_dict_text(&w->dict, w->categories[slot].id), text))))
		return w->categories[slot].id;
	w->categories[slot].head = head;
	w->categories[slot].len = (uint32_t)text.len;
	return w->categories[slot].id = text_of(w, ev->value[FIELD_CAT]);
}

/* Returns whether a text has the digits that an integer would be printed with. */
static bool is_canonical(struct str s)
{
	if (s.len && s.ptr[0] == '-')
		s = str_skip(s, 1);
	return s.len && (s.ptr[0] != '0' || s.len == 1);
}

/* Reads an escaped number such as "\u0031", which is unusual but valid. */
static bool is_escaped_number(struct str text, int64_t *value)
{
	char plain[24];
	size_t len;

	if (text.len > 6 * sizeof(plain) || !memchr(text.ptr, '\\', text.len))
		return false;
	len = json_decode_short(text, plain, sizeof(plain));
	return len <= sizeof(plain) && is_canonical(str_make(plain, len)) &&
	       str_to_i64(str_make(plain, len), value);
}

static struct trace_id id_of(struct trace_worker *w, struct json_value v)
{
	struct trace_id id = { .kind = ID_INT };
	struct str text = json_text(v);

	if (OW_LIKELY(v.kind == JSON_NUMBER)) {
		if (v.len == 1 && *v.at >= '0' && *v.at <= '9') {
			id.value = *v.at - '0';
			return id;
		}
		if (OW_LIKELY(json_decimal_padded(text, 0, &id.value) == JSON_EXACT))
			return id;
		w->faults.odd++;
		/* this function accepts the smallest number, too */
		if (str_to_i64(text, &id.value))
			return id;
	} else if (v.kind == JSON_STRING) {
		if ((is_canonical(text) && str_to_i64(text, &id.value)) ||
		    is_escaped_number(text, &id.value))
			return id;
	} else if (is_null(v)) {
		return (struct trace_id){ 0 };
	}
	id.kind = ID_TEXT;
	id.value = trace_dict_add(&w->dict, w->mem, text);
	if (id.value == TRACE_FULL)
		trace_fail(w);
	return id;
}

static struct trace_id field_id(struct trace_worker *w, const struct json_event *ev,
				enum json_field field)
{
	return json_event_has(ev, field) ? id_of(w, ev->value[field]) : (struct trace_id){ 0 };
}

static uint32_t track_of(struct trace_worker *w, const struct json_event *ev, uint8_t layer)
{
	struct trace_track key = { .pid = field_id(w, ev, FIELD_PID),
				   .tid = field_id(w, ev, FIELD_TID),
				   .layer = layer };
	uint32_t track = trace_tracks_add(&w->tracks, w->mem, &key);

	if (OW_LIKELY(track != TRACE_FULL))
		return track;
	trace_fail(w);
	return 0;
}

static void count_fault(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if (!(*count)++)
		*first = offset;
}

static bool escaped_time(struct str text, int64_t *ns)
{
	char plain[64];
	size_t len;

	if (text.len > 6 * sizeof(plain) || !memchr(text.ptr, '\\', text.len))
		return false;
	len = json_decode_short(text, plain, sizeof(plain));
	return len <= sizeof(plain) &&
	       json_decimal(str_make(plain, len), 3, ns) != JSON_NOT_A_NUMBER;
}

/* Reads a time in nanoseconds; false if there is none. */
static bool time_of(struct trace_worker *w, const struct json_event *ev, enum json_field field,
		    int64_t *ns)
{
	struct trace_faults *f = &w->faults;
	struct json_value v;

	if (!json_event_has(ev, field))
		return false;
	v = ev->value[field];
	if (OW_LIKELY(v.kind == JSON_NUMBER || v.kind == JSON_STRING)) {
		switch (json_decimal_padded(json_text(v), 3, ns)) {
		case JSON_EXACT:
			return true;
		case JSON_ROUNDED:
			f->odd++;
			return true;
		case JSON_CLAMPED:
			f->odd++;
			count_fault(&f->clamped, &f->first_clamped, ev->offset);
			return true;
		case JSON_NOT_A_NUMBER:
			if (escaped_time(json_text(v), ns))
				return true;
			break;
		}
	}
	if (!is_null(v))
		count_fault(&f->bad_times, &f->first_bad_time, ev->offset);
	return false;
}

static uint64_t args_place(const struct json_event *ev, uint32_t *size)
{
	const struct json_value *args = &ev->value[FIELD_ARGS];

	*size = 0;
	if (!json_event_has(ev, FIELD_ARGS) || args->kind != JSON_OBJECT || args->len <= 2)
		return 0;
	*size = args->len;
	return ev->offset + (uint64_t)(args->at - ev->text);
}

#define LARGE_ARGS ((uint32_t)16 << 20) /* larger arguments are not read for each row */

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

/* Returns whether a slice or flow has only common fields. Times that do not fit nanoseconds are found when
 * they are read. */
OW_ALWAYS_INLINE bool is_plain(const struct json_event *ev, uint8_t ph)
{
	return ph < 0x80 && ev->value[FIELD_PH].len == 1 &&
	       ev->value[FIELD_TS].kind == JSON_NUMBER && is_number_or_none(ev, FIELD_PID) &&
	       is_number_or_none(ev, FIELD_TID) && is_text_or_none(ev, FIELD_CAT);
}

/* Whether a slice has only data that the rows keep. An empty argument object is stored like none. A T with a
 * duration is stored like one that was made from a pair. */
static bool slice_is_plain(const struct json_event *ev, uint8_t ph)
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

static void list_unlabelled(struct trace_worker *w, const struct json_event *ev, uint8_t ph)
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

static void list_element(struct trace_worker *w, const struct json_event *ev, uint8_t ph,
			 bool has_ts)
{
	uint64_t *place = TRACE_NEW_ROW(w, elements, element_count, element_cap);

	if (!place)
		return;
	*place = ev->offset | (uint64_t)ev->len << LISTING_PLACE_BITS;
	if (!ph &&
	    json_event_has(ev,
			   FIELD_TS)) /* the point may become an event, which is stored like an X */
		w->faults.odd++;
	if (ph == 'E' && json_event_has(ev, FIELD_ARGS)) /* the begin may take over the arguments */
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
	p->name = field_text(w, ev, FIELD_NAME);
	p->category = category_of(w, ev);
	p->args_offset = args_place(ev, &p->args_size);
	return p;
}

/* Reads the id; id2 takes precedence over id, and its local form belongs to the process. */
static void read_id(struct trace_worker *w, const struct json_event *ev, struct trace_id *id,
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
	*id = v.kind != JSON_NONE ? id_of(w, v) : field_id(w, ev, FIELD_ID);
}

static void take_point(struct trace_worker *w, const struct json_event *ev, uint8_t ph, bool has_ts,
		       int64_t ts)
{
	struct trace_point *p = add_point(w, ev, ph, has_ts, ts);
	struct trace_id id;
	bool local;

	if (!p)
		return;
	p->where.track = track_of(w, ev, LAYER_THREAD);
	if (ph == 'E')
		return;
	if (ph == 'X') { /* an X without a time; its duration is counted all the same */
		if (!time_of(w, ev, FIELD_DUR, &p->id))
			p->id = TIME_UNKNOWN;
		return;
	}
	read_id(w, ev, &id, &local);
	p->id = id.value;
	p->id_kind = id.kind;
	p->flags |= local ? POINT_LOCAL_ID : 0;
	p->scope = field_text(w, ev, FIELD_SCOPE);
	if (json_event_has(ev, FIELD_BP) && str_eq(json_text(ev->value[FIELD_BP]), STR("e")))
		p->flags |= POINT_ENCLOSING;
}

/* Stores an event without ph, or with one that is not a single character. */
static void take_odd(struct trace_worker *w, const struct json_event *ev)
{
	int64_t ts = 0;
	bool has_ts = time_of(w, ev, FIELD_TS, &ts);
	struct trace_point *p = add_point(w, ev, 0, has_ts, ts);

	if (!p)
		return;
	p->where.track = track_of(w, ev, LAYER_THREAD);
	p->flags |= POINT_ODD_PH;
	if (json_event_has(ev, FIELD_PH)) {
		p->id_kind = ID_TEXT;
		p->id = text_of(w, ev->value[FIELD_PH]);
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

static void take_counter(struct trace_worker *w, const struct json_event *ev)
{
	struct trace_counter c = { .name = field_text(w, ev, FIELD_NAME),
				   .category = category_of(w, ev),
				   .where.track = track_of(w, ev, LAYER_THREAD),
				   .instance = field_text(w, ev, FIELD_ID) };
	struct json_reader r;
	struct json_value value;
	struct str key;
	bool first = true;

	c.no_ts = !time_of(w, ev, FIELD_TS, &c.ts);
	if (json_event_has(ev, FIELD_ARGS) && ev->value[FIELD_ARGS].kind == JSON_OBJECT) {
		c.args_size = ev->value[FIELD_ARGS].len;
		c.args_offset = ev->offset + (uint64_t)(ev->value[FIELD_ARGS].at - ev->text);
		r = json_over(json_text(ev->value[FIELD_ARGS]));
		for (; json_next_member(&r, &key, &value); first = false)
			take_series(w, &c, key, value, first);
	}
	if (!first)
		return;
	/* a counter without series has nothing to show, but is counted */
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

static void take_meta(struct trace_worker *w, const struct json_event *ev)
{
	struct trace_meta *m = TRACE_NEW_ROW(w, metas, meta_count, meta_cap);
	struct json_value v = { 0 };

	if (!m)
		return;
	*m = (struct trace_meta){ .name = field_text(w, ev, FIELD_NAME),
				  .category = category_of(w, ev),
				  .track = track_of(w, ev, LAYER_THREAD) };
	for (size_t i = 0; m->name && i < ARRAY_COUNT(metas); i++) {
		if (!json_key_is(trace_dict_text(&w->dict, m->name), metas[i].name))
			continue;
		if (json_event_has(ev, FIELD_ARGS))
			v = json_find(json_text(ev->value[FIELD_ARGS]), metas[i].arg);
		if (v.kind == JSON_NONE) /* some writers put sort_index next to the arguments */
			v = json_find(str_make(ev->text, ev->len), metas[i].arg);
		if (v.kind == JSON_NONE || is_null(v))
			return;
		m->kind = (uint8_t)metas[i].kind;
		if (m->kind == META_PROCESS_SORT || m->kind == META_THREAD_SORT)
			json_decimal(json_text(v), 0, &m->number);
		else
			m->text = text_of(w, v);
		return;
	}
}

/* Stores properties that few slices have, next to the row. */
static void take_mark(struct trace_worker *w, const struct json_event *ev, uint32_t slice)
{
	struct trace_mark mark = { .slice = slice };
	bool local;

	read_id(w, ev, &mark.id, &local);
	mark.frame = field_id(w, ev, FIELD_SF);
	mark.scope = field_text(w, ev, json_event_has(ev, FIELD_S) ? FIELD_S : FIELD_SCOPE);
	trace_add_mark(w, &mark);
}

/* Stores flows of the second version: the slice itself says that it sends or receives. */
static void take_slice_flow(struct trace_worker *w, const struct json_event *ev, uint32_t slice,
			    enum json_field field, uint8_t ph)
{
	struct trace_point *p;
	struct trace_id id;

	if (!json_event_has(ev, field) || ev->value[field].len < 4 ||
	    memcmp(ev->value[field].at, "true", 4) != 0)
		return;
	id = id_of(w, ev->value[FIELD_BIND_ID]);
	p = TRACE_NEW_ROW(w, points, point_count, point_cap);
	if (!p)
		return;
	*p = (struct trace_point){ .ph = ph,
				   .at = slice,
				   .ts = w->slices.ts[slice],
				   .name = w->slices.name[slice],
				   .category = w->slices.category[slice],
				   .where = w->slices.where[slice],
				   .id = id.value,
				   .id_kind = id.kind,
				   .flags = POINT_OF_SLICE };
}

#define MARK_FIELDS                                                                                \
	(1u << FIELD_SF | 1u << FIELD_S | 1u << FIELD_ID | 1u << FIELD_ID2 | 1u << FIELD_BIND_ID)

static void take_extras(struct trace_worker *w, const struct json_event *ev, uint32_t slice)
{
	bool plain_instant = json_event_has(ev, FIELD_S) && ev->value[FIELD_S].len == 1 &&
			     ev->value[FIELD_S].at[0] == 't';

	if (json_event_has(ev, FIELD_BIND_ID)) {
		take_slice_flow(w, ev, slice, FIELD_FLOW_IN, 'f');
		take_slice_flow(w, ev, slice, FIELD_FLOW_OUT, 's');
	}
	if (ev->have & (1u << FIELD_SF | 1u << FIELD_ID | 1u << FIELD_ID2) ||
	    (json_event_has(ev, FIELD_S) && !plain_instant))
		take_mark(w, ev, slice);
}

/* A value that was picked from the arguments. */
struct picked {
	struct json_value value, second;
	uint64_t hash;
};

/* Makes a rare column, zero for earlier slices. */
static bool need_column(struct trace_worker *w, void **column)
{
	if (!*column)
		*column = mem_zalloc(w->mem, w->slices.cap * sizeof(uint32_t));
	if (!*column)
		trace_fail(w);
	return *column;
}

static void take_label(struct trace_worker *w, const struct json_value *args,
		       const struct picked *picked, size_t at)
{
	static const struct json_pick op = JSON_PICK("op");
	struct json_value found;
	uint32_t label, *type;

	if (picked->value.kind != JSON_STRING || !picked->value.len)
		return;
	label = trace_dict_add_hashed(&w->dict, w->mem, json_text(picked->value), picked->hash);
	if (OW_UNLIKELY(label == TRACE_FULL)) {
		trace_fail(w);
		return;
	}
	type = trace_dict_type(&w->dict, w->mem, label);
	if (!type) {
		trace_fail(w);
		return;
	}
	/* an op has one type, which is searched when the op is first met */
	if (OW_UNLIKELY(!*type)) {
		json_scan_pick(&w->scan, args, &op, 1, &found);
		*type = found.kind == JSON_STRING ? text_of(w, found) : w->slices.name[at];
	}
	if (need_column(w, (void **)&w->slices.label))
		w->slices.label[at] = label;
}

static void take_correlation(struct trace_worker *w, struct json_value found, size_t at)
{
	int64_t number;

	if ((found.kind == JSON_NUMBER || found.kind == JSON_STRING) &&
	    json_decimal_padded(json_text(found), 0, &number) == JSON_EXACT && number > 0 &&
	    number <= UINT32_MAX && need_column(w, (void **)&w->slices.number))
		w->slices.number[at].correlation = (uint32_t)number;
}

/* Reads a number that operators of both directions have; backward ones also name the forward
 * thread. */
static void take_sequence(struct trace_worker *w, const struct picked *picked, size_t at)
{
	int64_t number, thread;

	if (picked->value.kind != JSON_NUMBER || picked->second.kind != JSON_NUMBER ||
	    json_decimal_padded(json_text(picked->value), 0, &number) != JSON_EXACT ||
	    json_decimal_padded(json_text(picked->second), 0, &thread) != JSON_EXACT)
		return;
	if (number >= 0 && number < TRACE_SEQUENCE_MAX &&
	    need_column(w, (void **)&w->slices.number))
		w->slices.number[at].sequence = trace_sequence(number, thread > 0);
}

/* The one argument that affects the kind of the slice. Strings are hashed, and their slots prefetched, while the
 * rest of the event is read. */
static struct picked pick_arg(struct trace_worker *w, const struct json_event *ev,
			      enum trace_wanted wanted)
{
	static const struct json_pick picks[] = {
		[WANT_LABEL] = JSON_PICK("name"), [WANT_CORRELATION] = JSON_PICK("correlation")
	};
	static const struct json_pick sequence[] = { JSON_PICK("Sequence number"),
						     JSON_PICK("Fwd thread id") };
	struct json_value pair[2];
	const struct json_value *args = &ev->value[FIELD_ARGS];
	struct picked picked = { 0 };

	if (!wanted || !json_event_has(ev, FIELD_ARGS) || args->kind != JSON_OBJECT)
		return picked;
	if (wanted == WANT_SEQUENCE) {
		json_scan_pick(&w->scan, args, sequence, 2, pair);
		picked.value = pair[0];
		picked.second = pair[1];
		return picked;
	}
	json_scan_pick(&w->scan, args, &picks[wanted], 1, &picked.value);
	if (wanted == WANT_LABEL && picked.value.kind == JSON_STRING)
		picked.hash = trace_dict_prefetch(&w->dict, json_text(picked.value));
	return picked;
}

static void take_picked(struct trace_worker *w, const struct json_event *ev,
			enum trace_wanted wanted, const struct picked *picked, size_t at)
{
	if (w->slices.label)
		w->slices.label[at] = 0;
	if (w->slices.number)
		w->slices.number[at].correlation = 0;
	if (wanted == WANT_LABEL)
		take_label(w, &ev->value[FIELD_ARGS], picked, at);
	else if (wanted == WANT_CORRELATION)
		take_correlation(w, picked->value, at);
	else if (wanted == WANT_SEQUENCE)
		take_sequence(w, picked, at);
}

/* Returns the layer; the end of a begin may come without its category. */
static uint8_t layer_of(const struct json_event *ev, uint8_t ph, uint32_t category,
			const struct trace_category *about)
{
	if (OW_UNLIKELY(ph == 'B'))
		return LAYER_THREAD;
	if (OW_UNLIKELY(!category && json_event_has(ev, FIELD_NAME)))
		return (uint8_t)layer_without_category(json_text(ev->value[FIELD_NAME]));
	return (uint8_t)(about->layer - 1);
}

OW_ALWAYS_INLINE bool is_memory_event(const struct json_event *ev)
{
	const struct json_value *name = &ev->value[FIELD_NAME];

	return json_event_has(ev, FIELD_NAME) && name->len == sizeof(MEMORY_EVENT) - 1 &&
	       memcmp(name->at, MEMORY_EVENT, sizeof(MEMORY_EVENT) - 1) == 0;
}

/* Stores the content of a PyTorch [memory] event while its arguments are in memory: they are spread over the file, and
 * reading them again would take longer than everything else. interpret_memory.c reads what is missing here: names
 * written with escapes, arguments that an end adds.
 */
static void take_change(struct trace_worker *w, const struct json_event *ev, size_t slice)
{
	struct memory_change *c = TRACE_NEW_ROW(w, changes, change_count, change_cap);

	if (!c)
		return;
	*c = (struct memory_change){ .event = (uint32_t)slice };
	memory_change_read(json_text(ev->value[FIELD_ARGS]), c);
}

static void take_slice(struct trace_worker *w, const struct json_event *ev, uint8_t ph, int64_t ts)
{
	struct trace_slices *s = &w->slices;
	int64_t dur = TIME_UNKNOWN;
	const struct trace_category *about;
	enum trace_wanted wanted;
	struct picked picked;
	uint32_t category;
	size_t at = s->count;

	if (!trace_slice_room(w))
		return;
	category = category_of(w, ev);
	about = trace_dict_category(&w->dict, w->mem, category);
	if (!about) {
		trace_fail(w);
		return;
	}
	wanted = (enum trace_wanted)about->wanted;
	picked = pick_arg(w, ev, wanted);
	s->ts[at] = ts;
	s->category[at] = category;
	s->where[at].track = track_of(w, ev, layer_of(ev, ph, category, about));
	s->args_offset[at] = args_place(ev, &s->args_size[at]);
	if (!s->args_size[at])
		s->args_offset[at] = ev->offset; /* keeps the order of the file */
	s->ph[at] = ph;
	if (picked.hash)
		trace_dict_prefetch_text(&w->dict, picked.hash);
	if (OW_LIKELY(ph == 'X' || ph == 'T') && time_of(w, ev, FIELD_DUR, &dur) &&
	    OW_UNLIKELY(dur < 0)) {
		count_fault(&w->faults.negative, &w->faults.first_negative, ev->offset);
		w->faults.odd++;
		dur = 0;
	}
	s->dur[at] = dur;
	s->name[at] = field_text(w, ev, FIELD_NAME);
	if (wanted || s->label || s->number)
		take_picked(w, ev, wanted, &picked, at);
	w->faults.odd += !slice_is_plain(ev, ph);
	if (s->args_size[at] && (!s->label || !s->label[at]))
		list_unlabelled(w, ev, ph);
	s->count = at + 1;
	if (OW_UNLIKELY(is_memory_event(ev)) && s->args_size[at])
		take_change(w, ev, at);
	if (OW_UNLIKELY(ev->have & MARK_FIELDS))
		take_extras(w, ev, (uint32_t)at);
}

enum take { TAKE_SLICE, TAKE_POINT, TAKE_COUNTER, TAKE_META };

static const uint8_t takes[256] = {
	['E'] = TAKE_POINT, ['b'] = TAKE_POINT, ['n'] = TAKE_POINT, ['e'] = TAKE_POINT,
	['S'] = TAKE_POINT, ['T'] = TAKE_POINT, ['p'] = TAKE_POINT, ['F'] = TAKE_POINT,
	['s'] = TAKE_POINT, ['t'] = TAKE_POINT, ['f'] = TAKE_POINT, ['C'] = TAKE_COUNTER,
	['M'] = TAKE_META,
};

/* Returns the phase letter; 0 if there is none, or more than one character. */
static uint8_t phase_of(const struct json_event *ev)
{
	const struct json_value *v = &ev->value[FIELD_PH];
	char plain[2];

	if (!json_event_has(ev, FIELD_PH) || v->kind != JSON_STRING)
		return 0;
	if (OW_LIKELY(v->len == 1))
		return (uint8_t)v->at[0];
	if (v->len && v->at[0] == '\\' && json_decode_short(json_text(*v), plain, 1) == 1)
		return (uint8_t)plain[0];
	return 0;
}

void trace_take_event(struct trace_worker *w, const struct json_event *ev)
{
	int64_t ts = 0;
	uint8_t ph;
	bool has_ts;

	ph = phase_of(ev);
	if (OW_UNLIKELY(!ph)) {
		list_element(w, ev, ph, false);
		take_odd(w, ev);
		return;
	}
	switch ((enum take)takes[ph]) {
	case TAKE_META:
		list_element(w, ev, ph, false);
		take_meta(w, ev);
		return;
	case TAKE_COUNTER:
		list_element(w, ev, ph, false);
		take_counter(w, ev);
		return;
	case TAKE_SLICE:
	case TAKE_POINT:
		break;
	}
	has_ts = time_of(w, ev, FIELD_TS, &ts);
	/* a T with a duration is a state of the thread, not a step of an asynchronous event */
	if (OW_LIKELY(has_ts &&
		      (takes[ph] == TAKE_SLICE || (ph == 'T' && json_event_has(ev, FIELD_DUR)))))
		take_slice(w, ev, ph, ts);
	else {
		list_element(w, ev, ph, has_ts);
		take_point(w, ev, ph, has_ts, ts);
	}
}
