/*
 * xspace_line.c: the events of the lines of a plane, straight from the bytes into the model's columns. This is
 * where the time goes when a large file is loaded: an event has some 50 bytes and five stats, most of which are
 * passed over by a look at a table.
 *
 * Python's frames are on the line of their thread among its other events; they become a track of their own, as
 * frames of any trace do, by reading such a line twice.
 */
#include "base/populate.h"
#include "import/xspace_reading.h"
#include "import/xspace_shape.h"

#define CHUNK ((size_t)64 << 10)
#define LEARN_MAX                                                                                  \
	64 /* shapes that are looked for in a chunk: files in which no two events are alike exist */
#define LEARN_IN_VAIN 8 /* of these, what it takes to find that an event has no shape */
#define EPOCH_NS                                                                                   \
	((int64_t)100000000000000000) /* a larger timestamp is a date, not a time since the start */

static int64_t sum_of(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a > 0 ? INT64_MAX : INT64_MIN;
}

/* Of a line, to its plane. */
static void use_tally(struct reading *r)
{
	struct xplane *plane = r->plane;
	const struct tally *t = &r->tally;

	plane->event_count += t->events;
	plane->event_stats += t->stats;
	if (t->min_start_ps > t->max_end_ps)
		return;
	plane->min_start_ps = MIN(plane->min_start_ps, sum_of(r->line_ps, t->min_start_ps));
	plane->max_end_ps = MAX(plane->max_end_ps, sum_of(r->line_ps, t->max_end_ps));
}

/* The same for nearly all events, about which nothing is new or out of range; false for others. */
OW_ALWAYS_INLINE bool take_plain(struct reading *r, const struct xtimes *t, const struct xevent *ev,
				 struct tally *tally)
{
	uint64_t start_ps = t->offset_ps, end_ps = start_ps + t->duration_ps;
	uint64_t start = start_ps / 1000, end = end_ps / 1000;
	uint32_t at = xids_find(&r->plane->event_ids, t->entry);
	struct xevent_entry *entry;
	struct event_row row;

	if (OW_UNLIKELY(!at || (start_ps | t->duration_ps) >= TAME_PS || ev->has & r->rest))
		return false;
	entry = &r->plane->events[at];
	if (OW_UNLIKELY(!entry->resolved || entry->kind != XEVENT_PLAIN))
		return false;
	tally_event(tally, entry, (int64_t)start_ps, (int64_t)end_ps, (int64_t)t->duration_ps,
		    false);
	row = (struct event_row){ .ts_ns = (int64_t)start + r->base_ns,
				  .dur_ns = (int64_t)(end - start),
				  .op = { entry->op.v },
				  .name = entry->label,
				  .track = r->track,
				  .ts_rest = (uint16_t)(start_ps - start * 1000),
				  .end_rest = (uint16_t)(end_ps - end * 1000),
				  .correlation = correlation_of(ev) };
	if (r->device)
		name_kernel(r, ev, &row);
	watch_order(r, &row);
	return add_row(r->x->b, &row) == OW_OK;
}

/* ---- lines ---- */

/* Fields of a line beside its events: those after them are read here. */
static ow_status take_field(struct reading *r, const struct pb_field *f)
{
	struct xline *line = &r->plane->lines[r->line - r->plane->lines];

	if (f->tag != PB_TAG(11, PB_BYTES) || line->display.len)
		return OW_OK;
	line->display = arena_str(&r->x->shelf, pb_str(f));
	return line->display.ptr ? OW_OK : xspace_no_memory(r->x);
}

/* One field of the line, whatever it is. */
static ow_status take_any(struct reading *r, const struct pb_field *f, uint64_t offset)
{
	struct xevent ev;
	bool whole;

	if (f->tag != PB_TAG(4, PB_BYTES))
		return take_field(r, f);
	whole = xevent_read(r->plane, pb_message(f), &ev);
	r->tally.stats += r->frames ? 0 : ev.stat_count;
	if (whole)
		return xspace_take_event(r, &ev, pb_message(f));
	if (!r->frames)
		xspace_damage(r->x, offset);
	return OW_OK;
}

/* What has been read so far is an event like any other. */
static ow_status take_timed(struct reading *r, const struct xtimes *times, struct xevent *ev,
			    struct pb message)
{
	ev->entry = times->entry;
	ev->offset_ps = (int64_t)times->offset_ps;
	ev->duration_ps = (int64_t)times->duration_ps;
	ev->aggregated = false;
	return xspace_take_event(r, ev, message);
}

/* When an event was and what its stats say; false when it is not of the usual form. */
OW_ALWAYS_INLINE bool read_usual(struct reading *r, const uint8_t *at, struct pb message,
				 struct xtimes *times, struct xevent *ev, unsigned *learned,
				 bool gathers)
{
	const struct xshape *shape = xshape_find(r->plane->shapes, at);

	if (OW_LIKELY(shape)) {
		times->entry = xshape_value(&shape->entry, at, gathers);
		times->offset_ps = xshape_value(&shape->offset, at, gathers);
		times->duration_ps = xshape_value(&shape->duration, at, gathers);
		xshape_stats(shape, at, ev, gathers);
		return true;
	}
	ev->has = ev->inlined = 0;
	*times = xevent_fast_times(message.at, message.end, gathers);
	if (!times->next || !xevent_fast_stats(r->plane, times->next, message.end, ev, gathers))
		return false;
	if (*learned < LEARN_MAX)
		*learned += xshape_learn(r->plane, r->plane->shapes, at) ? 1 : LEARN_IN_VAIN;
	return true;
}

/* The events from p on, as far as they are of the usual form; `last` is the end of what can be read. */
OW_ALWAYS_INLINE ow_status take_usual(struct reading *r, struct pb *p, const uint8_t *last,
				      bool gathers)
{
	const uint8_t *at = p->at, *limit = MIN(p->end, last - XEVENT_SLACK);
	unsigned learned = 0;
	struct tally tally;
	struct xevent ev;

	tally_init(&tally);
	while (OW_LIKELY(limit - at > 4 && *at == PB_TAG(4, PB_BYTES))) {
		struct pb_varint len = pb_varint_at(at + 1, limit);
		struct xtimes times;
		struct pb message;

		if (OW_UNLIKELY(!len.next || len.value > (uint64_t)(limit - len.next)))
			break;
		message = pb_over(len.next, len.value);
		if (OW_UNLIKELY(!read_usual(r, at, message, &times, &ev, &learned, gathers)))
			break;
		if (OW_UNLIKELY(!take_plain(r, &times, &ev, &tally)) &&
		    OW_UNLIKELY(take_timed(r, &times, &ev, message) != OW_OK))
			break;
		tally.stats += ev.stat_count;
		at = message.end;
	}
	tally_add(&r->tally, &tally);
	p->at = at;
	return builder_status(r->x->b);
}

/* Both ways; which of them is told by the processor. */
static ow_status take_gathered(struct reading *r, struct pb *p, const uint8_t *last)
{
	return take_usual(r, p, last, true);
}

static ow_status take_shifted(struct reading *r, struct pb *p, const uint8_t *last)
{
	return take_usual(r, p, last, false);
}

/* The fields from p on; p is left behind the last whole one. */
static ow_status take_fields(struct reading *r, struct pb *p, const uint8_t *last, uint64_t offset)
{
	bool gathers = pb_wide_gathers();
	const uint8_t *begin = p->at;
	struct pb_field f;

	for (;;) {
		if (r->track.v && r->tame && !r->frames && !r->counters)
			OW_TRY(gathers ? take_gathered(r, p, last) : take_shifted(r, p, last));
		if (!pb_next(p, &f))
			return OW_OK;
		OW_TRY(take_any(r, &f, offset + (uint64_t)(f.ptr - begin)));
	}
}

#define AHEAD ((uint32_t)128 << 10) /* rows whose memory is asked for at once */

#define POPULATE(e, column, first, last)                                                           \
	populate((e)->column, (size_t)(first) * sizeof(*(e)->column),                              \
		 (size_t)(last) * sizeof(*(e)->column))

/* Memory of columns that every event has, for the next rows. */
static void ask_ahead(struct xspace *x)
{
	const struct event_table *e = &x->b->m->event;
	uint32_t first = MAX(e->count, x->populated), last = first + MIN(AHEAD, e->cap - first);

	if (e->count < AHEAD || x->populated > e->count + AHEAD / 2)
		return; /* small files, and rows that have it */
	POPULATE(e, ts_ns, first, last);
	POPULATE(e, dur_ns, first, last);
	POPULATE(e, op, first, last);
	POPULATE(e, track, first, last);
	POPULATE(e, name, first, last);
	POPULATE(e, correlation, first, last);
	x->populated = last;
}

/* No field is longer, as a rule; and no event is shorter than two bytes. */
static bool make_room(struct xspace *x, size_t bytes)
{
	struct builder *b = x->b;

	if (b->m->event.cap - b->m->event.count <= bytes / 2 &&
	    !builder_grow(b, TABLE_event, (uint32_t)(bytes / 2 + 1)))
		return false;
	ask_ahead(x);
	return true;
}

/* Where rows from `first` on came from. */
static ow_status remember(struct reading *r, uint64_t offset, size_t size, uint32_t first)
{
	uint32_t count = r->x->b->m->event.count - first;

	if (!count || size > UINT32_MAX)
		return OW_OK;
	return xspace_add_piece(r->x,
				&(struct xpiece){ .offset = offset,
						  .base_ns = r->base_ns,
						  .size = (uint32_t)size,
						  .first = first,
						  .count = count,
						  .plane = (uint32_t)(r->plane - r->x->planes),
						  .frames = r->frames });
}

static ow_status read_line(struct reading *r)
{
	struct xspace *x = r->x;
	uint64_t at = r->line->offset, end = at + r->line->size;
	size_t want = CHUNK;

	while (at < end) {
		struct str bytes =
			window_peek(&x->window, at, (size_t)MIN(end - at, (uint64_t)want));
		size_t mine = (size_t)MIN(end - at, (uint64_t)MIN(bytes.len, want));
		uint32_t first = x->b->m->event.count;
		struct pb p;

		if (!bytes.ptr)
			return x->window.status;
		if (!make_room(x, mine))
			return builder_status(x->b);
		p = pb_over(bytes.ptr, mine);
		OW_TRY(take_fields(r, &p, p.at + bytes.len, at));
		if (p.at == (const uint8_t *)bytes.ptr) {
			/* more of it may be there */
			if (p.problem != PB_TRUNCATED || mine >= end - at) {
				if (p.problem && !r->frames)
					xspace_damage(x, at);
				return OW_OK;
			}
			want = want < SIZE_MAX / 4 ? want * 4 : want;
			continue;
		}
		OW_TRY(remember(r, at, (size_t)(p.at - (const uint8_t *)bytes.ptr), first));
		at += (uint64_t)(p.at - (const uint8_t *)bytes.ptr);
		want = CHUNK;
	}
	return OW_OK;
}

/* ---- tracks ---- */

/* The line and all others of the same id. */
static ow_status read_track(struct reading *r, size_t first, fact_id list)
{
	struct xplane *plane = r->plane;
	struct xspace *x = r->x;

	r->track.v = 0;
	r->last_ns = r->last_end_ns = INT64_MIN;
	for (size_t i = first, more = 1; more; more = i = plane->lines[i].next) {
		bool epoch = plane->lines[i].timestamp_ns > EPOCH_NS;

		r->line = &plane->lines[i];
		r->counters = xspace_has_counters(plane, r->line);
		r->base_ns = xspace_held(x, epoch ? 0 : x->start_ns, r->line->timestamp_ns);
		r->tame = r->base_ns > -(int64_t)TAME_PS && r->base_ns < (int64_t)TAME_PS;
		r->line_ps = us_to_ns(r->line->timestamp_ns);
		tally_init(&r->tally);
		OW_TRY(read_line(r));
		if (!r->frames)
			xspace_line_facts(x, r->line, list, r->tally.events, r->tally.sum_ps);
		use_tally(r);
	}
	r->line = &plane->lines[first];
	if (r->track.v)
		x->b->m->track.name[r->track.v] =
			xspace_text(x, r->line->display.len ? r->line->display : r->line->name);
	return builder_status(x->b);
}

static ow_status read_thread(struct xspace *x, struct xplane *plane, size_t i, fact_id list)
{
	struct reading r = {
		.x = x, .plane = plane, .device = plane->device, .rest = xspace_rest_bits(x)
	};

	OW_TRY(read_track(&r, i, list));
	if (!r.skipped_frames)
		return OW_OK;
	r.frames = true;
	return read_track(&r, i, list);
}

ow_status xspace_read_lines(struct xspace *x, struct xplane *plane)
{
	fact_id object = fact_object(x->b, x->plane_list, NULL);
	fact_id list = fact_list(x->b, object, "line_list");

	plane->shapes = plane->line_count ? ARENA_ARRAY(&x->shelf, struct xshapes, 1) : NULL;
	if (plane->line_count && !plane->shapes)
		return xspace_no_memory(x);
	for (size_t i = 0; i < plane->line_count; i++)
		if (!plane->lines[i].joined)
			OW_TRY(read_thread(x, plane, i, list));
	xspace_plane_facts(x, plane, object);
	x->event_total += plane->event_count;
	x->line_total += plane->line_count;
	return builder_status(x->b);
}
