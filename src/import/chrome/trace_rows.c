/*
 * trace_rows.c: makes rows of one event. The hot path of the importer: what most events are (complete
 * slices) goes straight through, the rest branches off to trace_points.c.
 */
#include "import/trace_int.h"

/* ---- values ---- */

bool trace_is_null(struct json_value v)
{
	return v.kind == JSON_LITERAL && v.len == 4 && memcmp(v.at, "null", 4) == 0;
}

/* Any value as text: strings as they are, numbers and the rest as written. 0 = none. */
uint32_t trace_text_of(struct trace_worker *w, struct json_value v)
{
	uint32_t id;

	if (trace_is_null(v))
		return 0;
	id = trace_dict_add(&w->dict, w->mem, json_text(v));
	if (OW_LIKELY(id != TRACE_FULL))
		return id;
	trace_fail(w);
	return 0;
}

uint32_t trace_field_text(struct trace_worker *w, const struct json_event *ev,
			  enum json_field field)
{
	return json_event_has(ev, field) ? trace_text_of(w, ev->value[field]) : 0;
}

/* Text in the window, where eight bytes can always be read. */
static uint64_t first_bytes(struct str text)
{
	uint64_t head;

	memcpy(&head, text.ptr, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	head = __builtin_bswap64(head);
#endif
	return text.len < 8 ? head & (((uint64_t)1 << 8 * text.len) - 1) : head;
}

uint32_t trace_category_of(struct trace_worker *w, const struct json_event *ev)
{
	struct str text;
	uint64_t head;
	size_t slot;

	if (!json_event_has(ev, FIELD_CAT))
		return 0;
	if (OW_UNLIKELY(ev->value[FIELD_CAT].kind != JSON_STRING))
		return trace_text_of(w, ev->value[FIELD_CAT]);
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
	return w->categories[slot].id = trace_text_of(w, ev->value[FIELD_CAT]);
}

/* Digits only, as an integer would be printed. */
static bool is_canonical(struct str s)
{
	if (s.len && s.ptr[0] == '-')
		s = str_skip(s, 1);
	return s.len && (s.ptr[0] != '0' || s.len == 1);
}

/* "\u0031": nobody writes it so, but it is a 1. */
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

struct trace_id trace_id_of(struct trace_worker *w, struct json_value v)
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
		if (str_to_i64(text, &id.value)) /* which knows the least number, too */
			return id;
	} else if (v.kind == JSON_STRING) {
		if ((is_canonical(text) && str_to_i64(text, &id.value)) ||
		    is_escaped_number(text, &id.value))
			return id;
	} else if (trace_is_null(v)) {
		return (struct trace_id){ 0 };
	}
	id.kind = ID_TEXT;
	id.value = trace_dict_add(&w->dict, w->mem, text);
	if (id.value == TRACE_FULL)
		trace_fail(w);
	return id;
}

struct trace_id trace_field_id(struct trace_worker *w, const struct json_event *ev,
			       enum json_field field)
{
	return json_event_has(ev, field) ? trace_id_of(w, ev->value[field])
					 : (struct trace_id){ 0 };
}

uint32_t trace_track_of(struct trace_worker *w, const struct json_event *ev, uint8_t layer)
{
	struct trace_track key = { .pid = trace_field_id(w, ev, FIELD_PID),
				   .tid = trace_field_id(w, ev, FIELD_TID),
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

/* A time in nanoseconds; false when there is none. */
bool trace_time_of(struct trace_worker *w, const struct json_event *ev, enum json_field field,
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
	if (!trace_is_null(v))
		count_fault(&f->bad_times, &f->first_bad_time, ev->offset);
	return false;
}

uint64_t trace_args_place(const struct json_event *ev, uint32_t *size)
{
	const struct json_value *args = &ev->value[FIELD_ARGS];

	*size = 0;
	if (!json_event_has(ev, FIELD_ARGS) || args->kind != JSON_OBJECT || args->len <= 2)
		return 0;
	*size = args->len;
	return ev->offset + (uint64_t)(args->at - ev->text);
}

/* ---- slices ---- */

/* What few slices carry, kept beside the row. */
static void take_mark(struct trace_worker *w, const struct json_event *ev, uint32_t slice)
{
	struct trace_mark mark = { .slice = slice };
	bool local;

	trace_read_id(w, ev, &mark.id, &local);
	mark.frame = trace_field_id(w, ev, FIELD_SF);
	mark.scope = trace_field_text(w, ev, json_event_has(ev, FIELD_S) ? FIELD_S : FIELD_SCOPE);
	trace_add_mark(w, &mark);
}

/* Flows of the second version: the slice itself says that it sends or receives. */
static void take_slice_flow(struct trace_worker *w, const struct json_event *ev, uint32_t slice,
			    enum json_field field, uint8_t ph)
{
	struct trace_point *p;
	struct trace_id id;

	if (!json_event_has(ev, field) || ev->value[field].len < 4 ||
	    memcmp(ev->value[field].at, "true", 4) != 0)
		return;
	id = trace_id_of(w, ev->value[FIELD_BIND_ID]);
	p = TRACE_NEW_ROW(w, points, point_count, point_cap);
	if (!p)
		return;
	*p = (struct trace_point){ .ph = ph,
				   .at = slice,
				   .ts = w->slices.ts[slice],
				   .name = w->slices.name[slice],
				   .category = w->slices.category[slice],
				   .track = w->slices.track[slice],
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

/* A value from the arguments. */
struct picked {
	struct json_value value, second;
	uint64_t hash;
};

/* A rare column, zero for the slices before. */
static bool need_column(struct trace_worker *w, uint32_t **column)
{
	if (!*column)
		*column = mem_zalloc(w->mem, w->slices.cap * sizeof(**column));
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
	/* An op has one type: it is looked for when the op is met for the first time. */
	if (OW_UNLIKELY(!*type)) {
		json_scan_pick(&w->scan, args, &op, 1, &found);
		*type = found.kind == JSON_STRING ? trace_text_of(w, found) : w->slices.name[at];
	}
	if (need_column(w, &w->slices.label))
		w->slices.label[at] = label;
}

static void take_correlation(struct trace_worker *w, struct json_value found, size_t at)
{
	int64_t number;

	if ((found.kind == JSON_NUMBER || found.kind == JSON_STRING) &&
	    json_decimal_padded(json_text(found), 0, &number) == JSON_EXACT && number > 0 &&
	    number <= UINT32_MAX && need_column(w, &w->slices.correlation))
		w->slices.correlation[at] = (uint32_t)number;
}

/* A number that operators of both directions have; the backward ones also name the forward thread. */
static void take_sequence(struct trace_worker *w, const struct picked *picked, size_t at)
{
	int64_t number, thread;

	if (picked->value.kind != JSON_NUMBER || picked->second.kind != JSON_NUMBER ||
	    json_decimal_padded(json_text(picked->value), 0, &number) != JSON_EXACT ||
	    json_decimal_padded(json_text(picked->second), 0, &thread) != JSON_EXACT)
		return;
	if (number >= 0 && number < TRACE_SEQUENCE_MAX && need_column(w, &w->slices.correlation))
		w->slices.correlation[at] = trace_sequence(number, thread > 0);
}

/* The one argument that makes a difference to what the slice is. Strings are hashed, and their slots
 * fetched, while the rest of the event is read. */
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
	if (w->slices.correlation)
		w->slices.correlation[at] = 0;
	if (wanted == WANT_LABEL)
		take_label(w, &ev->value[FIELD_ARGS], picked, at);
	else if (wanted == WANT_CORRELATION)
		take_correlation(w, picked->value, at);
	else if (wanted == WANT_SEQUENCE)
		take_sequence(w, picked, at);
}

/* The end of a begin may come without its category. */
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
	category = trace_category_of(w, ev);
	about = trace_dict_category(&w->dict, w->mem, category);
	if (!about) {
		trace_fail(w);
		return;
	}
	wanted = (enum trace_wanted)about->wanted;
	picked = pick_arg(w, ev, wanted);
	s->ts[at] = ts;
	s->category[at] = category;
	s->track[at] = trace_track_of(w, ev, layer_of(ev, ph, category, about));
	s->args_offset[at] = trace_args_place(ev, &s->args_size[at]);
	if (!s->args_size[at])
		s->args_offset[at] = ev->offset; /* which keeps the order of the file */
	s->ph[at] = ph;
	if (picked.hash)
		trace_dict_prefetch_text(&w->dict, picked.hash);
	if (OW_LIKELY(ph == 'X' || ph == 'T') && trace_time_of(w, ev, FIELD_DUR, &dur) &&
	    OW_UNLIKELY(dur < 0)) {
		count_fault(&w->faults.negative, &w->faults.first_negative, ev->offset);
		w->faults.odd++;
		dur = 0;
	}
	s->dur[at] = dur;
	s->name[at] = trace_field_text(w, ev, FIELD_NAME);
	if (wanted || s->label || s->correlation)
		take_picked(w, ev, wanted, &picked, at);
	w->faults.odd += !trace_slice_is_plain(ev, ph);
	if (s->args_size[at] && (!s->label || !s->label[at]))
		trace_list_unlabelled(w, ev, ph);
	s->count = at + 1;
	if (OW_UNLIKELY(is_memory_event(ev)) && s->args_size[at])
		trace_take_change(w, ev, at);
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

/* The letter; 0 when there is none, or more than one. */
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
		trace_list_element(w, ev, ph, false);
		trace_take_odd(w, ev);
		return;
	}
	switch ((enum take)takes[ph]) {
	case TAKE_META:
		trace_list_element(w, ev, ph, false);
		trace_take_meta(w, ev);
		return;
	case TAKE_COUNTER:
		trace_list_element(w, ev, ph, false);
		trace_take_counter(w, ev);
		return;
	case TAKE_SLICE:
	case TAKE_POINT:
		break;
	}
	has_ts = trace_time_of(w, ev, FIELD_TS, &ts);
	/* A T with a duration is a state of the thread, not a step of something asynchronous. */
	if (OW_LIKELY(has_ts &&
		      (takes[ph] == TAKE_SLICE || (ph == 'T' && json_event_has(ev, FIELD_DUR)))))
		take_slice(w, ev, ph, ts);
	else {
		trace_list_element(w, ev, ph, has_ts);
		trace_take_point(w, ev, ph, has_ts, ts);
	}
}
