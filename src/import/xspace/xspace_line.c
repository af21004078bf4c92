/*
 * xspace_line.c: decodes the events of the lines of a plane directly into the model's columns. Most of the time of
 * loading a large file is spent here: an event has some 50 bytes and five stats, most of which are skipped after one
 * table lookup. Python's frames are on the line of their thread among its other events; they become a separate track,
 * as frames of any trace do, by reading such a line twice.
 */
#include "base/prefault.h"
#include "base/vec.h"
#include "import/xspace/xspace_int.h"
#include "import/xspace/xspace_event.h"

struct tally {
	uint64_t events, stats;
	int64_t sum_ps;
	int64_t min_start_ps,
		/* relative to the start of the line; INT64_MAX and INT64_MIN when there are no events */
		max_end_ps;
};

static inline void tally_init(struct tally *t)
{
	*t = (struct tally){ .min_start_ps = INT64_MAX, .max_end_ps = INT64_MIN };
}

OW_ALWAYS_INLINE void tally_event(struct tally *t, struct xevent_entry *entry, int64_t start_ps,
				  int64_t end_ps, int64_t duration_ps, bool aggregated)
{
	t->events++;
	t->sum_ps = wrap_add(t->sum_ps, duration_ps);
	entry->sum_ps = wrap_add(entry->sum_ps, duration_ps);
	entry->runs++;
	if (aggregated)
		return;
	t->min_start_ps = MIN(t->min_start_ps, start_ps);
	t->max_end_ps = MAX(t->max_end_ps, end_ps);
}

/* Adds a tally to that of the line. */
static inline void tally_add(struct tally *to, const struct tally *t)
{
	to->events += t->events;
	to->stats += t->stats;
	to->sum_ps = wrap_add(to->sum_ps, t->sum_ps);
	to->min_start_ps = MIN(to->min_start_ps, t->min_start_ps);
	to->max_end_ps = MAX(to->max_end_ps, t->max_end_ps);
}

struct reading {
	struct xspace *x;
	struct xplane *plane;
	const struct xline *line;
	bool device, frames; /* frames: only Python frames are wanted */
	bool counters;	     /* the events are counter values */
	bool skipped_frames;
	bool tame;     /* the line's start is so small that adding any offset cannot overflow */
	uint64_t rest; /* XSTAT_BIT of rare stats, which need extra work */
	track_id track;
	int64_t line_ps; /* start of the line relative to the start of the profile, for the facts */
	int64_t base_ns; /* base time of the line's offsets */
	int64_t last_ns, last_end_ns;
	struct tally tally; /* sums of the line */
};

/* The op that the stats of a kernel name; nil for none. */
static str_id xspace_resolve_op(struct reading *r, const struct xevent *ev);
static str_id xspace_op_of_instruction(struct reading *r, const struct xevent *ev);

#define TAME_PS ((uint64_t)1 << 61)
#define DURATION_MAX_PS (INT64_C(1) << 62) /* 53 days; more is damage, and counts as 0 */

OW_ALWAYS_INLINE uint64_t number_of(const struct xevent *ev, enum xstat stat)
{
	return ev->has & XSTAT_BIT(stat) ? ev->bits[stat] : 0;
}

/* The op of a text; texts that are references are looked up once. */
OW_ALWAYS_INLINE str_id op_of_text(struct reading *r, const struct xevent *ev)
{
	uint64_t ref = ev->bits[XSTAT_TF_OP];

	if (OW_LIKELY(!(ev->inlined & XSTAT_BIT(XSTAT_TF_OP)) && ref < r->plane->wanted_count &&
		      r->plane->ref_ops[ref]))
		return (str_id){ r->plane->ref_ops[ref] - 1 };
	return xspace_resolve_op(r, ev);
}

/* The op that the stats of a kernel name; nil for none. */
OW_ALWAYS_INLINE str_id op_of_kernel(struct reading *r, const struct xevent *ev)
{
	str_id op = { 0 };

	if (OW_LIKELY(ev->has & XSTAT_BIT(XSTAT_TF_OP)))
		op = op_of_text(r, ev);
	if (OW_UNLIKELY(!op.v && ev->has & XSTAT_BIT(XSTAT_HLO_OP)))
		op = xspace_op_of_instruction(r, ev);
	return op;
}

#define NEED(b, column)                                                                            \
	((b)->m->event.column ||                                                                   \
	 builder_need_column(b, TABLE_event, offsetof(struct event_table, column)))

/* An event as it is going to be stored. */
struct xrow {
	int64_t ts_ns, dur_ns, bytes;
	str_id op; /* name of the op */
	str_id name;
	track_id track;
	uint32_t correlation;
	uint16_t ts_rest, end_rest;
};

/* Allocates columns that only some files need, and fills rare ones; false if memory runs out. */
OW_ALWAYS_INLINE bool add_rare(struct builder *b, const struct xrow *row)
{
	struct event_table *e = &b->m->event;

	if ((row->name.v && !NEED(b, name)) || (row->correlation && !NEED(b, correlation)) ||
	    (row->bytes && !NEED(b, bytes)) || (row->ts_rest && !NEED(b, ts_rest)) ||
	    (row->end_rest && !NEED(b, end_rest)))
		return false;
	if (row->bytes)
		e->bytes[e->count] = row->bytes;
	if (row->ts_rest)
		e->ts_rest[e->count] = row->ts_rest;
	if (row->end_rest)
		e->end_rest[e->count] = row->end_rest;
	return true;
}

/* Adds a row, for which there is room. interpret_steps.c sets the step of all events. */
OW_ALWAYS_INLINE ow_status add_row(struct xspace *x, const struct xrow *row)
{
	struct event_table *e = &x->b->m->event;
	/* Combined with bit operations: for separate tests of neighbouring fields, compilers make one load, which
	 * then has to wait for both stores. */
	uint64_t rare = (uint64_t)row->bytes | (uint32_t)(row->ts_rest | row->end_rest);
	uint32_t at = e->count;

	if (OW_UNLIKELY(!e->name || !e->correlation || rare) && !add_rare(x->b, row))
		return builder_status(x->b);
	e->ts_ns[at] = row->ts_ns;
	e->dur_ns[at] = row->dur_ns;
	x->draft.op_name[at - x->draft.first] = row->op;
	e->track[at] = row->track;
	if (OW_LIKELY(e->name))
		e->name[at] = row->name;
	if (OW_LIKELY(e->correlation))
		e->correlation[at] = row->correlation;
	e->count = at + 1;
	return OW_OK;
}

/* Checks whether events are sorted by time; they are in all files seen so far. */
OW_ALWAYS_INLINE void watch_order(struct reading *r, const struct xrow *row)
{
	int64_t end = row->ts_ns + row->dur_ns;

	if (OW_UNLIKELY(row->ts_ns < r->last_ns ||
			(row->ts_ns == r->last_ns && end > r->last_end_ns)))
		r->x->unsorted = true;
	r->last_ns = row->ts_ns;
	r->last_end_ns = end;
}

OW_ALWAYS_INLINE void name_kernel(struct reading *r, const struct xevent *ev, struct xrow *row)
{
	str_id op = op_of_kernel(r, ev);

	if (!op.v || op.v == row->op.v)
		return;
	row->name.v = row->name.v ? row->name.v : row->op.v;
	row->op.v = op.v;
}

OW_ALWAYS_INLINE uint32_t correlation_of(const struct xevent *ev)
{
	uint64_t number = number_of(ev, XSTAT_CORRELATION_ID);

	return number <= UINT32_MAX ? (uint32_t)number : 0;
}

#define XSHAPE_BYTES 128 /* longest event with a layout, its tag and length included */
#define XSHAPE_HALF 64
#define XSHAPE_VALUES 4
#define XSHAPE_SETS 64
#define XSHAPE_WAYS 4 /* layouts in a set; the one that fitted last comes first */

/* A varint: its position, and a mask of its bytes among the eight bytes from there; 0 = none. */
struct xplace {
	uint64_t bits;
	uint8_t at, stat;
};

struct xshape {
	/* an event fits the layout if its bytes, masked, equal `bytes` */
	uint8_t mask[XSHAPE_BYTES], bytes[XSHAPE_BYTES];
	struct xplace entry, offset, duration;
	struct xplace values[XSHAPE_VALUES];
	uint64_t has; /* XSTAT_BIT of the values */
	uint8_t size; /* 0 = no layout */
	uint8_t value_count, stat_count;
};

struct xshapes {
	struct xshape sets[XSHAPE_SETS][XSHAPE_WAYS];
};

typedef uint64_t xshape_part __attribute__((vector_size(16), aligned(1), may_alias));

OW_ALWAYS_INLINE xshape_part xshape_differs(const struct xshape *s, const uint8_t *at, size_t i)
{
	return (*(const xshape_part *)(at + i) & *(const xshape_part *)(s->mask + i)) ^
	       *(const xshape_part *)(s->bytes + i);
}

/* Whether an event fits a layout; compares XSHAPE_HALF bytes, or twice as many for a longer event. */
OW_ALWAYS_INLINE bool xshape_fits(const struct xshape *s, const uint8_t *at)
{
	xshape_part d = xshape_differs(s, at, 0) | xshape_differs(s, at, 16) |
			xshape_differs(s, at, 32) | xshape_differs(s, at, 48);

	if (OW_UNLIKELY(s->size > XSHAPE_HALF))
		d |= xshape_differs(s, at, 64) | xshape_differs(s, at, 80) |
		     xshape_differs(s, at, 96) | xshape_differs(s, at, 112);
	return !(d[0] | d[1]);
}

/* The set of layouts for an event, by its length and by whether the id of its entry is short. */
OW_ALWAYS_INLINE struct xshape *xshape_set(struct xshapes *shapes, const uint8_t *at)
{
	return shapes->sets[(at[1] ^ (at[3] >> 7 << 5)) % XSHAPE_SETS];
}

/* Finds another layout of the set that fits, and moves it to the front. */
static const struct xshape *xshape_find_other(struct xshape *set, const uint8_t *at);

/* The layout of the event whose tag is at `at`; NULL when it is unknown. */
OW_ALWAYS_INLINE const struct xshape *xshape_find(struct xshapes *shapes, const uint8_t *at)
{
	struct xshape *set = xshape_set(shapes, at);

	if (OW_LIKELY(set[0].size == at[1] + 2 && xshape_fits(&set[0], at)))
		return &set[0];
	return xshape_find_other(set, at);
}

OW_ALWAYS_INLINE uint64_t xshape_value(const struct xplace *p, const uint8_t *at, bool gathers)
{
	return pb_fast_pick(pb_load64(at + p->at), p->bits, gathers);
}

/* Extracts the stats with a layout. `gathers` is a constant: see pb_fast_varint.h. */
OW_ALWAYS_INLINE void xshape_stats(const struct xshape *s, const uint8_t *at, struct xevent *ev,
				   bool gathers)
{
	ev->has = s->has;
	ev->inlined = 0;
	ev->stat_count = s->stat_count;
	/* few layouts have more values; those with fewer write to a place that is never read */
	ev->bits[s->values[0].stat] = xshape_value(&s->values[0], at, gathers);
	ev->bits[s->values[1].stat] = xshape_value(&s->values[1], at, gathers);
	for (unsigned i = 2; OW_UNLIKELY(i < s->value_count); i++)
		ev->bits[s->values[i].stat] = xshape_value(&s->values[i], at, gathers);
}

/* State while the layout of an event is learned. */
struct look {
	const struct xplane *plane;
	const uint8_t *event;
	size_t at, size;
	struct xshape shape;
};

/* Records that the next byte is the same in all events of the layout. */
static bool expect_byte(struct look *l, uint8_t byte)
{
	if (l->at >= l->size || l->event[l->at] != byte)
		return false;
	l->shape.mask[l->at] = 0xff;
	l->shape.bytes[l->at] = byte;
	l->at++;
	return true;
}

/* Records a varint, of which only the length is the same. */
static bool number(struct look *l, struct xplace *place)
{
	size_t first = l->at;
	bool more = true;

	for (; more && l->at < l->size && l->at - first < PB_FAST_VARINT_BYTES; l->at++) {
		more = l->event[l->at] & 0x80;
		l->shape.mask[l->at] = 0x80;
		l->shape.bytes[l->at] = l->event[l->at] & 0x80;
		place->bits |= (uint64_t)0x7f << 8 * (l->at - first);
	}
	place->at = (uint8_t)first;
	return !more;
}

static bool optional(struct look *l, uint8_t tag, struct xplace *place)
{
	return l->at >= l->size || l->event[l->at] != tag ||
	       (expect_byte(l, tag) && number(l, place));
}

static bool id_of_stat(struct look *l, size_t *id)
{
	uint8_t first = l->at < l->size ? l->event[l->at] : 0xff, second;

	*id = first & 0x7f;
	if (!expect_byte(l, first))
		return false;
	if (first < 0x80)
		return true;
	second = l->at < l->size ? l->event[l->at] : 0xff;
	*id |= (size_t)second << 7;
	return second < 0x80 && expect_byte(l, second);
}

/* Records the value of a wanted stat, up to `end`. */
static bool value(struct look *l, struct xwanted wanted, size_t end)
{
	struct xshape *s = &l->shape;
	uint8_t tag = l->event[l->at];

	if (s->value_count == XSHAPE_VALUES || s->has & XSTAT_BIT(wanted.stat) ||
	    !(xkinds_of_tag[tag] & wanted.kinds))
		return false;
	s->has |= XSTAT_BIT(wanted.stat);
	s->values[s->value_count].stat = wanted.stat;
	return expect_byte(l, tag) && number(l, &s->values[s->value_count++]) && l->at == end;
}

static bool stat(struct look *l)
{
	size_t end, id;
	uint8_t len;

	if (!expect_byte(l, PB_TAG(4, PB_BYTES)) || l->at >= l->size)
		return false;
	len = l->event[l->at];
	if (len > 0x7f || !expect_byte(l, len))
		return false;
	end = l->at + len;
	if (end > l->size || !expect_byte(l, PB_TAG(1, PB_VARINT)) || !id_of_stat(l, &id) ||
	    l->at > end || id >= l->plane->wanted_count)
		return false;
	l->shape.stat_count++;
	if (l->plane->wanted[id].kinds && (l->at == end || !value(l, l->plane->wanted[id], end)))
		return false;
	l->at = end;
	return true;
}

static bool measure_event(struct look *l)
{
	if (!expect_byte(l, PB_TAG(4, PB_BYTES)) || !expect_byte(l, (uint8_t)(l->size - 2)) ||
	    !expect_byte(l, PB_TAG(1, PB_VARINT)) || !number(l, &l->shape.entry) ||
	    !optional(l, PB_TAG(2, PB_VARINT), &l->shape.offset) ||
	    !optional(l, PB_TAG(3, PB_VARINT), &l->shape.duration))
		return false;
	while (l->at < l->size)
		if (!stat(l))
			return false;
	l->shape.size = (uint8_t)l->size;
	return true;
}

/* Learns the layout of an event that begins with its tag at `at`. The layout that was unused for longest is replaced. False when
 * the event has no learnable layout: a number is too long, or there are too many. */
static bool xshape_learn(const struct xplane *plane, struct xshapes *shapes, const uint8_t *at)
{
	struct look l = { .plane = plane, .event = at, .size = (size_t)at[1] + 2 };
	struct xshape *set = xshape_set(shapes, at);

	if (at[1] > XSHAPE_BYTES - 2 || !measure_event(&l))
		return false;
	memmove(set + 1, set, (XSHAPE_WAYS - 1) * sizeof(*set));
	set[0] = l.shape;
	return true;
}

static const struct xshape *xshape_find_other(struct xshape *set, const uint8_t *at)
{
	for (size_t i = 1; i < XSHAPE_WAYS; i++) {
		struct xshape found;

		if (set[i].size != at[1] + 2 || !xshape_fits(&set[i], at))
			continue;
		found = set[i];
		set[i] = set[0];
		set[0] = found;
		return set;
	}
	return NULL;
}

static str_id xspace_resolve_op(struct reading *r, const struct xevent *ev)
{
	str_id op = xspace_op_of_text(r->x, xevent_text(r->plane, ev, XSTAT_TF_OP));
	uint64_t ref = ev->bits[XSTAT_TF_OP];

	if (!(ev->inlined & XSTAT_BIT(XSTAT_TF_OP)) && ref < r->plane->wanted_count &&
	    op.v < UINT32_MAX)
		r->plane->ref_ops[ref] = op.v + 1;
	return op;
}

static str_id xspace_op_of_instruction(struct reading *r, const struct xevent *ev)
{
	uint64_t program = number_of(ev, XSTAT_PROGRAM_ID);
	struct str name = xevent_text(r->plane, ev, XSTAT_HLO_OP);

	return xspace_hlo_op(r->x, xspace_hlo_find(r->x, program, name));
}

static ow_status add_sum(struct reading *r, const struct xevent *ev, str_id op)
{
	struct xspace *x = r->x;

	if (!vec_reserve(x->mem, x->sums, x->sum_cap, x->sum_count + 1))
		return xspace_no_memory(x);
	x->sums[x->sum_count++] =
		(struct xsum){ op, MAX(ev->occurrences, 0), MAX(ev->duration_ps, 0), r->device };
	return OW_OK;
}

/* Adds two times; in a damaged file the result is limited to the valid range. */
static int64_t xspace_held(struct xspace *x, int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum) && sum < INT64_MAX / 2 && sum > -INT64_MAX / 2)
		return sum;
	x->clamped++;
	return b > 0 ? INT64_MAX / 2 : -INT64_MAX / 2;
}

static int64_t floor_ns(int64_t ps, uint16_t *rest)
{
	int64_t ns = ps / 1000, over = ps % 1000;

	if (over < 0) {
		over += 1000;
		ns--;
	}
	*rest = (uint16_t)over;
	return ns;
}

static ow_status mark_step(struct reading *r, const struct xevent *ev, int64_t start, int64_t end,
			   str_id name, struct str text)
{
	bool grouped = ev->has & XSTAT_BIT(XSTAT_GROUP_ID);
	int64_t group = grouped ? (int64_t)ev->bits[XSTAT_GROUP_ID] : INT64_MIN;

	if (ev->has & XSTAT_BIT(XSTAT_STEP_NUM) && str_find_char(text, '/') == STR_NONE)
		return xspace_mark(r->x, XSTEP_NUMBER, start, end,
				   (int64_t)ev->bits[XSTAT_STEP_NUM], name);
	if (ev->has & XSTAT_BIT(XSTAT_STEP_NAME))
		return xspace_mark(r->x, XSTEP_NAME, start, end, group, name);
	return grouped ? xspace_mark(r->x, XSTEP_GROUP, start, end, group, (str_id){ 0 }) : OW_OK;
}

/* Names a run after its step; the op keeps its name. */
static ow_status use_step_name(struct reading *r, const struct xevent *ev, struct xrow *row)
{
	struct xspace *x = r->x;
	str_id name = xspace_text(x, xevent_text(r->plane, ev, XSTAT_STEP_NAME));
	struct xop *op = xspace_op(x, row->op);

	if (!op)
		return builder_status(x->b);
	if (!op->type)
		op->type = row->op.v;
	row->name.v = name.v == row->op.v ? 0 : name.v;
	return builder_status(x->b);
}

#define STEP_BITS (XSTAT_BIT(XSTAT_STEP_NUM) | XSTAT_BIT(XSTAT_STEP_NAME))
#define REST_BITS                                                                                  \
	(STEP_BITS | XSTAT_BIT(XSTAT_ROOT) | XSTAT_BIT(XSTAT_GROUP_ID) |                           \
	 XSTAT_BIT(XSTAT_PRODUCER_ID) | XSTAT_BIT(XSTAT_CONSUMER_ID) | XSTAT_BIT(XSTAT_DETAILS))

/* XSTAT_BIT of rare stats. Groups are included while there is no better marker of steps. */
static uint64_t xspace_rest_bits(const struct xspace *x)
{
	return x->step_source > XSTEP_GROUP ? REST_BITS & ~XSTAT_BIT(XSTAT_GROUP_ID) : REST_BITS;
}

static ow_status add_rest(struct reading *r, const struct xevent *ev, struct xrow *row,
			  struct str text)
{
	uint32_t event = r->x->b->m->event.count;

	if (ev->has & XSTAT_BIT(XSTAT_STEP_NAME))
		OW_TRY(use_step_name(r, ev, row));
	if (ev->has & (STEP_BITS | XSTAT_BIT(XSTAT_GROUP_ID)))
		OW_TRY(mark_step(r, ev, row->ts_ns, row->ts_ns + row->dur_ns,
				 row->name.v ? row->name : row->op, text));
	if (ev->has & XSTAT_BIT(XSTAT_PRODUCER_ID))
		OW_TRY(xspace_add_end(r->x, (int64_t)number_of(ev, XSTAT_PRODUCER_TYPE),
				      ev->bits[XSTAT_PRODUCER_ID], event, false));
	if (ev->has & XSTAT_BIT(XSTAT_CONSUMER_ID))
		OW_TRY(xspace_add_end(r->x, (int64_t)number_of(ev, XSTAT_CONSUMER_TYPE),
				      ev->bits[XSTAT_CONSUMER_ID], event, true));
	if (ev->has & XSTAT_BIT(XSTAT_DETAILS))
		row->bytes = tf_copy_bytes(xevent_text(r->plane, ev, XSTAT_DETAILS));
	return OW_OK;
}

/* Adds the track when its first event is read. */
static void start_track(struct reading *r)
{
	struct xspace *x = r->x;
	struct track_row row = { .process = xspace_text(x, r->plane->name),
				 .pid = r->plane->number,
				 .tid = r->line->id,
				 .kind = r->frames ? TRACK_FRAMES : TRACK_HOST,
				 .source = x->b->source,
				 .flags = TRACK_SLICES,
				 .process_sort_index = (int32_t)MIN(r->plane->number, INT32_MAX) };

	if (r->plane->kind == XPLANE_OTHER || r->counters)
		row.kind = TRACK_OTHER;
	r->track = builder_add_track(x->b, &row);
}

static ow_status store(struct reading *r, const struct xevent *ev, uint32_t entry_row,
		       int64_t start_ps, int64_t end_ps)
{
	struct xspace *x = r->x;
	const struct xevent_entry *entry = &r->plane->events[entry_row];
	struct xrow row = { .op = entry->op, .name = entry->label };
	int64_t start = floor_ns(start_ps, &row.ts_rest), end = floor_ns(end_ps, &row.end_rest);

	if (!r->track.v)
		start_track(r);
	row.track = r->track;
	row.ts_ns = xspace_held(x, start, r->base_ns);
	row.dur_ns = end - start;
	row.correlation = correlation_of(ev);
	if (r->device)
		name_kernel(r, ev, &row);
	OW_TRY(add_rest(r, ev, &row, r->plane->texts[entry_row].name));
	if (r->rest != xspace_rest_bits(x)) {
		r->rest = xspace_rest_bits(x);
		xspace_forget_groups(x, r->plane);
	}
	watch_order(r, &row);
	return add_row(x, &row);
}

/* Adds an entry for an event whose entry is missing in the file; it is named after its number. */
static uint32_t missing_entry(struct reading *r, uint64_t id)
{
	char *name = arena_printf(&r->x->shelf, "event %" PRIu64, id);
	struct xevent_text text = { str_from(name), STR(""), STR("") };

	r->x->unnamed++;
	return name ? xspace_add_entry(r->x, r->plane, id, &text) : 0;
}

static ow_status take_counter(struct reading *r, const struct xevent_entry *entry,
			      struct pb message, int64_t start_ps)
{
	uint16_t rest;

	if (!r->track.v)
		start_track(r);
	return xspace_take_counter(r->x, r->plane, entry->label.v ? entry->label : entry->op,
				   message, r->track,
				   xspace_held(r->x, floor_ns(start_ps, &rest), r->base_ns));
}

/* Stores any event; its message is needed for rare stats. */
static ow_status xspace_take_event(struct reading *r, struct xevent *ev, struct pb message)
{
	struct xspace *x = r->x;
	struct xevent_entry *entry;
	uint32_t row = xids_find(&r->plane->event_ids, ev->entry);
	int64_t start, end;

	if (OW_UNLIKELY(!row)) {
		row = missing_entry(r, ev->entry);
		if (!row)
			return xspace_no_memory(x);
	}
	entry = &r->plane->events[row];
	if (OW_UNLIKELY(!entry->resolved))
		OW_TRY(xspace_resolve(x, r->plane, row));
	if (ev->duration_ps < 0 || ev->duration_ps > DURATION_MAX_PS) {
		x->clamped++;
		ev->duration_ps = 0;
	}
	start = xspace_held(x, 0, ev->offset_ps);
	end = xspace_held(x, start, ev->duration_ps);
	if (!r->frames)
		tally_event(&r->tally, entry, start, end, ev->duration_ps, ev->aggregated);
	if (r->counters)
		return take_counter(r, entry, message, start);
	if (ev->aggregated)
		return r->frames ? OW_OK : add_sum(r, ev, entry->op);
	if ((entry->kind == XEVENT_FRAME) != r->frames) {
		r->skipped_frames |= entry->kind == XEVENT_FRAME;
		return OW_OK;
	}
	if (entry->kind == XEVENT_INTERNAL)
		return OW_OK;
	if (entry->kind == XEVENT_MEMORY)
		return xspace_take_memory(x, r->plane, message,
					  xspace_held(x, start / 1000, r->base_ns), entry->release);
	OW_TRY(store(r, ev, row, start, end));
	if (entry->kind == XEVENT_ROOT || ev->has & XSTAT_BIT(XSTAT_ROOT))
		return xspace_take_root(x, r->plane, tf_op_name_strip(r->plane->texts[row].name),
					message, x->b->m->event.count - 1);
	return OW_OK;
}

#define CHUNK ((size_t)64 << 10)
/* limit of layouts that are learned in a chunk, because in some files no two events are alike */
#define LEARN_MAX 64
#define LEARN_IN_VAIN 8 /* an event without a layout counts as this many learned layouts */
#define EPOCH_NS                                                                                   \
	((int64_t)100000000000000000) /* a larger timestamp is a date, not a time since the start */

static int64_t sum_of(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a > 0 ? INT64_MAX : INT64_MIN;
}

/* Adds the tally of a line to its plane. */
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

/* Fast path of storing, for nearly all events: entry and times are known and in range; false for others. */
OW_ALWAYS_INLINE bool take_plain(struct reading *r, const struct xtimes *t, const struct xevent *ev,
				 struct tally *tally)
{
	uint64_t start_ps = t->offset_ps, end_ps = start_ps + t->duration_ps;
	uint64_t start = start_ps / 1000, end = end_ps / 1000;
	uint32_t at = xids_find(&r->plane->event_ids, t->entry);
	struct xevent_entry *entry;
	struct xrow row;

	if (OW_UNLIKELY(!at || (start_ps | t->duration_ps) >= TAME_PS || ev->has & r->rest))
		return false;
	entry = &r->plane->events[at];
	if (OW_UNLIKELY(!entry->resolved || entry->kind != XEVENT_PLAIN))
		return false;
	tally_event(tally, entry, (int64_t)start_ps, (int64_t)end_ps, (int64_t)t->duration_ps,
		    false);
	row = (struct xrow){ .ts_ns = (int64_t)start + r->base_ns,
			     .dur_ns = (int64_t)(end - start),
			     .op = entry->op,
			     .name = entry->label,
			     .track = r->track,
			     .ts_rest = (uint16_t)(start_ps - start * 1000),
			     .end_rest = (uint16_t)(end_ps - end * 1000),
			     .correlation = correlation_of(ev) };
	if (r->device)
		name_kernel(r, ev, &row);
	watch_order(r, &row);
	return add_row(r->x, &row) == OW_OK;
}

/* Reads the fields of a line that come after its events. */
static ow_status take_field(struct reading *r, const struct pb_field *f)
{
	struct xline *line = &r->plane->lines[r->line - r->plane->lines];

	if (f->tag != PB_TAG(11, PB_BYTES) || line->display.len)
		return OW_OK;
	line->display = arena_str(&r->x->shelf, pb_str(f));
	return line->display.ptr ? OW_OK : xspace_no_memory(r->x);
}

/* Reads any field of the line. */
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

/* Stores an event whose times and stats have been decoded. */
static ow_status take_timed(struct reading *r, const struct xtimes *times, struct xevent *ev,
			    struct pb message)
{
	ev->entry = times->entry;
	ev->offset_ps = (int64_t)times->offset_ps;
	ev->duration_ps = (int64_t)times->duration_ps;
	ev->aggregated = false;
	return xspace_take_event(r, ev, message);
}

/* Decodes the times and stats of an event; false when it does not have the usual layout. */
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

/* Reads the events from p on, as long as they have the usual layout; `last` is the end of the readable bytes. */
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

/* Two versions of the loop, with and without the gather instruction; the processor decides which one runs. */
static ow_status take_gathered(struct reading *r, struct pb *p, const uint8_t *last)
{
	return take_usual(r, p, last, true);
}

static ow_status take_shifted(struct reading *r, struct pb *p, const uint8_t *last)
{
	return take_usual(r, p, last, false);
}

/* Reads the fields from p on; p then points after the last complete one. */
static ow_status take_fields(struct reading *r, struct pb *p, const uint8_t *last, uint64_t offset)
{
	bool gathers = pb_fast_varint_has_pext();
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

#define AHEAD ((uint32_t)128 << 10) /* rows whose memory is prefaulted at once */

#define POPULATE(e, column, first, last)                                                           \
	prefault((e)->column, (size_t)(first) * sizeof(*(e)->column),                              \
		 (size_t)(last) * sizeof(*(e)->column))

/* Prefaults the memory of columns that every event has, for the next rows. */
static void ask_ahead(struct xspace *x)
{
	const struct event_table *e = &x->b->m->event;
	uint32_t first = MAX(e->count, x->populated), last = first + MIN(AHEAD, e->cap - first);

	if (e->count < AHEAD || x->populated > e->count + AHEAD / 2)
		return; /* small files, and rows that are prefaulted already */
	POPULATE(e, ts_ns, first, last);
	POPULATE(e, dur_ns, first, last);
	prefault(x->draft.op_name, (first - x->draft.first) * sizeof(str_id),
		 (last - x->draft.first) * sizeof(str_id));
	POPULATE(e, track, first, last);
	POPULATE(e, name, first, last);
	POPULATE(e, correlation, first, last);
	x->populated = last;
}

/* Makes room for the rows of a chunk: an event has at least two bytes. */
static bool make_room(struct xspace *x, size_t bytes)
{
	struct builder *b = x->b;

	if (b->m->event.cap - b->m->event.count <= bytes / 2 &&
	    !builder_grow(b, TABLE_event, (uint32_t)(bytes / 2 + 1)))
		return false;
	if (b->m->event.cap - x->draft.first > x->draft.cap &&
	    !event_draft_reserve(&x->draft, b->m->event.cap - x->draft.first, false)) {
		builder_no_memory(b);
		return false;
	}
	ask_ahead(x);
	return true;
}

/* Stores the piece of the file that the rows from `first` on came from. */
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
			/* the rest of the field may follow in the next chunk */
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

/* Reads a line and all others with the same id. */
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
