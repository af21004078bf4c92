/*
 * xspace_args.c: reads the stats of an XSpace event as its arguments, a JSON object, on demand: for the table arg,
 * arg(event, 'key') and .opw files. Nothing is stored per event: for each piece of a line the rows that came from it
 * are known, and the piece is read again. The dictionaries of a plane are also read again, once, when one is needed.
 * This file also decodes events and stats that do not have the usual layout (xspace_event.h).
 */
#include "import/xspace/xspace_event.h"

#include "base/vec.h"
#include "wire/json/json_strict.h"

static struct xwanted wanted_of(const struct xplane *plane, uint64_t id)
{
	uint32_t row;

	if (OW_LIKELY(id < plane->wanted_count))
		return plane->wanted[id];
	row = xids_find(&plane->stat_ids, id);
	return row ? xspace_wanted(plane, (enum xstat)plane->stats[row].stat)
		   : (struct xwanted){ 0 };
}

/* Whether a stat is not used, judged by its first bytes; most stats are not. */
static bool is_unwanted(const struct xplane *plane, struct pb stat)
{
	struct pb_field f;

	return pb_next(&stat, &f) && f.tag == PB_TAG(1, PB_VARINT) &&
	       f.value < plane->wanted_count && plane->wanted[f.value].stat == XSTAT_OTHER;
}

static enum xtext text_of(unsigned stat)
{
	switch ((enum xstat)stat) {
	case XSTAT_TF_OP:
		return XTEXT_TF_OP;
	case XSTAT_HLO_OP:
		return XTEXT_HLO_OP;
	case XSTAT_STEP_NAME:
		return XTEXT_STEP_NAME;
	default:
		return XTEXT_DETAILS;
	}
}

/* Reads a stat; false when it is damaged. */
static bool take_stat(const struct xplane *plane, struct xevent *ev, struct pb message)
{
	struct xwanted wanted;
	struct xvalue value;

	if (is_unwanted(plane, message))
		return true;
	if (!xvalue_read(message, &value))
		return false;
	wanted = wanted_of(plane, value.stat);
	if (wanted.stat == XSTAT_OTHER)
		return true;
	ev->has |= XSTAT_BIT(wanted.stat);
	if (wanted.kinds == XKIND_NUMBER) {
		ev->bits[wanted.stat] = (uint64_t)xvalue_int(&value);
		return true;
	}
	ev->bits[wanted.stat] = value.bits;
	ev->inlined |= XSTAT_BIT(wanted.stat);
	if (value.field == 7)
		ev->inlined ^= XSTAT_BIT(wanted.stat);
	ev->texts[text_of(wanted.stat)] = value.field == 5 ? value.text : STR("");
	return true;
}

bool xevent_read(const struct xplane *plane, struct pb message, struct xevent *ev)
{
	struct pb_field f;

	*ev = (struct xevent){ 0 };
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			ev->entry = f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			ev->offset_ps = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_VARINT):
			ev->duration_ps = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			ev->occurrences = (int64_t)f.value;
			ev->aggregated = true;
			break;
		case PB_TAG(4, PB_BYTES):
			ev->stat_count++;
			if (!take_stat(plane, ev, pb_message(&f)))
				return false;
			break;
		default:
			break;
		}
	}
	return !message.problem;
}

struct str xevent_text(const struct xplane *plane, const struct xevent *ev, enum xstat stat)
{
	uint32_t row;

	if (ev->inlined & XSTAT_BIT(stat))
		return ev->texts[text_of(stat)];
	row = xids_find(&plane->stat_ids, ev->bits[stat]);
	return row ? plane->stats[row].name : STR("");
}

const uint8_t xkinds_of_tag[256] = {
	[PB_TAG(3, PB_VARINT)] = XKIND_NUMBER,
	[PB_TAG(4, PB_VARINT)] = XKIND_NUMBER,
	[PB_TAG(7, PB_VARINT)] = XKIND_REF,
};

/* Reads a stat whose id has two bytes: profilers number names and texts in the order of their occurrence. */
static const uint8_t *long_id(const struct xplane *plane, const uint8_t *at, const uint8_t *end,
			      struct xevent *ev)
{
	size_t id = (size_t)(at[3] & 0x7f) | (size_t)at[4] << 7;
	const uint8_t *last = at + 2 + at[1];

	if (at[0] != PB_TAG(4, PB_BYTES) || at[1] < 3 || at[1] > 0x7f ||
	    at[2] != PB_TAG(1, PB_VARINT) || at[3] < 0x80 || at[4] > 0x7f || last > end ||
	    id >= plane->wanted_count)
		return NULL;
	return !plane->wanted[id].kinds ||
			       xevent_fast_value(plane->wanted[id], at + 5, last, ev, false)
		       ? last
		       : NULL;
}

const uint8_t *xevent_odd_stat(const struct xplane *plane, const uint8_t *at, const uint8_t *end,
			       struct xevent *ev)
{
	const uint8_t *last = long_id(plane, at, end, ev);
	struct pb event = pb_over(at, (size_t)(end - at));
	struct pb_field f;

	if (last)
		return last;
	if (!pb_next(&event, &f) || f.tag != PB_TAG(4, PB_BYTES) ||
	    !take_stat(plane, ev, pb_message(&f)))
		return NULL;
	return event.at;
}

/* A plane whose dictionaries are read when they are needed. */
struct known_plane {
	struct xspace x; /* an xspace with this plane only */
	struct xplane plane;
	bool known;
};

struct xargs {
	struct mem *mem;
	struct xpiece *pieces;
	size_t piece_count, piece_cap;
	uint32_t *order; /* row → its index in the order of the file; NULL when both are the same */
	uint32_t rows;	 /* number of entries in `order` */
	uint32_t source;
	pthread_mutex_t lock; /* protects planes until their dictionaries are read */
	struct known_plane *planes;
	size_t plane_count;
};

ow_status xspace_add_piece(struct xspace *x, const struct xpiece *piece)
{
	if (!vec_push(x->mem, x->pieces, x->piece_count, x->piece_cap, *piece))
		return xspace_no_memory(x);
	return OW_OK;
}

/* Reads a plane with the importer's own functions; the builder receives failures only. */
static ow_status read_plane(struct known_plane *p, struct input *in, struct ow_error *err)
{
	struct builder b = { .err = err };
	struct import_ctx ctx = { .in = in, .b = &b, .err = err };
	ow_status status;

	p->x.ctx = &ctx;
	p->x.b = &b;
	window_init(&p->x.window, in, err);
	status = xspace_read_plane(&p->x, &p->plane);
	window_release(&p->x.window);
	p->x.ctx = NULL;
	p->x.b = NULL;
	if (status != OW_OK)
		xspace_release_plane(&p->x, &p->plane);
	return status;
}

static ow_status know_plane(struct xargs *a, const struct model *m, uint32_t number,
			    struct ow_error *err)
{
	struct known_plane *p = &a->planes[number];
	ow_status status = OW_OK;

	pthread_mutex_lock(&a->lock);
	if (!p->known)
		status = read_plane(p, m->inputs[a->source], err);
	p->known |= status == OW_OK;
	pthread_mutex_unlock(&a->lock);
	return status;
}

static bool is_stored(const struct xplane *plane, const struct xpiece *piece,
		      const struct xevent *ev)
{
	uint32_t row = xids_find(&plane->event_ids, ev->entry);
	bool release;
	uint8_t kind = XEVENT_PLAIN;

	if (row)
		kind = xspace_kind_of(plane->texts[row].name, &release);
	if (ev->aggregated)
		return false;
	return piece->frames ? kind == XEVENT_FRAME : kind == XEVENT_PLAIN || kind == XEVENT_ROOT;
}

struct args_writer {
	const struct xplane *plane;
	struct buf text;
	uint64_t written[64]; /* stats of the event itself, by the low bits of their ids */
	bool any;	      /* the current object has members */
};

static void put_number(struct buf *text, const struct xvalue *v)
{
	double real = pb_double(v->bits);

	if (v->field == 3)
		buf_printf(text, "%" PRIu64, v->bits);
	else if (v->field == 4)
		buf_printf(text, "%" PRId64, (int64_t)v->bits);
	else if (real - real == 0)
		buf_printf(text, "%.17g", real);
	else
		buf_puts(text, "null");
}

static void put_member(struct args_writer *t, struct str key, const struct xvalue *v)
{
	buf_puts(&t->text, t->any ? ", " : "{");
	t->any = true;
	json_quote(&t->text, key);
	buf_puts(&t->text, ": ");
	if (v->field == 5 || v->field == 7)
		json_quote(&t->text, xvalue_text(t->plane, v));
	else if (v->field == 6)
		buf_printf(&t->text, "\"%zu bytes\"", v->text.len);
	else if (v->field)
		put_number(&t->text, v);
	else
		buf_puts(&t->text, "null");
}

/* Whether the event has a value of its own, which overrides that of its entry. */
static bool is_written(const struct args_writer *t, struct pb event, uint64_t stat)
{
	struct xvalue value;
	struct pb_field f;

	if (!(t->written[stat % 64] & (uint64_t)1 << (stat >> 6) % 64))
		return false;
	while (pb_next(&event, &f))
		if (f.tag == PB_TAG(4, PB_BYTES) && xvalue_read(pb_message(&f), &value) &&
		    value.stat == stat)
			return true;
	return false;
}

static void put_stat(struct args_writer *t, struct pb stat, const struct pb *event)
{
	struct xvalue value;
	uint32_t row;

	if (!xvalue_read(stat, &value) || (event && is_written(t, *event, value.stat)))
		return;
	row = xids_find(&t->plane->stat_ids, value.stat);
	if (!event)
		t->written[value.stat % 64] |= (uint64_t)1 << (value.stat >> 6) % 64;
	if (row && t->plane->stats[row].name.len)
		put_member(t, t->plane->stats[row].name, &value);
}

static void put_own(struct args_writer *t, struct pb event)
{
	struct pb_field f;

	memset(t->written, 0, sizeof(t->written));
	while (pb_next(&event, &f))
		if (f.tag == PB_TAG(4, PB_BYTES))
			put_stat(t, pb_message(&f), NULL);
}

/* Writes the arguments that an entry gives to all of its events. */
static void put_shared(struct args_writer *t, struct pb event, uint64_t entry)
{
	uint32_t row = xids_find(&t->plane->event_ids, entry);
	struct xvalue name = { .field = 5 };
	struct pb_field f;
	struct pb r;

	if (!row)
		return;
	r = pb_over(t->plane->texts[row].stats.ptr, t->plane->texts[row].stats.len);
	while (pb_next(&r, &f))
		put_stat(t, pb_message(&f), &event);
	name.text = t->plane->texts[row].name;
	if (t->plane->texts[row].display.len && name.text.len)
		put_member(t, STR("long_name"), &name);
}

/* Ends the current object and begins the next. */
static ow_status end_object(struct args_writer *t, struct arena *arena, struct str *text,
			    struct ow_error *err)
{
	bool any = t->any;

	t->any = false;
	if (!any)
		return OW_OK;
	buf_puts(&t->text, "}");
	if (t->text.failed)
		return error_no_memory(err);
	*text = arena_str(arena, buf_str(&t->text));
	buf_clear(&t->text);
	return text->ptr ? OW_OK : error_no_memory(err);
}

/* Writes own and shared arguments in one object, unless the caller wants the shared ones separately. */
static ow_status write_args(struct args_writer *t, struct pb event, uint64_t entry,
			    struct arena *arena, struct str *text, struct str *shared,
			    struct ow_error *err)
{
	buf_clear(&t->text);
	t->any = false;
	put_own(t, event);
	if (shared)
		OW_TRY(end_object(t, arena, text, err));
	put_shared(t, event, entry);
	return end_object(t, arena, shared ? shared : text, err);
}

/* A row whose arguments are requested: its index in the order of the file, and where its text goes. */
struct asked {
	uint32_t place, row, at;
};

static int by_place(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return (x->place > y->place) - (x->place < y->place);
}

static const struct xpiece *find_piece(const struct xargs *a, uint32_t place)
{
	size_t low = 0, high = a->piece_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (a->pieces[middle].first <= place)
			low = middle + 1;
		else
			high = middle;
	}
	return low && place - a->pieces[low - 1].first < a->pieces[low - 1].count
		       ? &a->pieces[low - 1]
		       : NULL;
}

static int64_t start_of(const struct xpiece *piece, const struct xevent *ev)
{
	int64_t ns = ev->offset_ps / 1000 - (ev->offset_ps % 1000 < 0);

	return wrap_add(ns, piece->base_ns);
}

struct reading {
	struct xargs *a;
	const struct model *m;
	struct window window;
	struct args_writer writer;
	struct str *texts, *shared; /* shared may be NULL */
	struct arena *arena;
	struct ow_error *err;
};

/* Reads the requested rows of one piece. An event whose time differs from that of its row is a different event and gets no
 * arguments. */
static ow_status read_piece(struct reading *r, const struct xpiece *piece,
			    const struct asked *asked, uint32_t n)
{
	const struct xplane *plane = &r->a->planes[piece->plane].plane;
	const unsigned char *bytes = window_at(&r->window, piece->offset, piece->size);
	uint32_t place = piece->first, next = 0;
	struct pb p;
	struct pb_field f;

	if (!bytes)
		return r->window.status;
	r->writer.plane = plane;
	p = pb_over(bytes, piece->size);
	while (next < n && pb_next(&p, &f)) {
		struct xevent ev;

		if (f.tag != PB_TAG(4, PB_BYTES) || !xevent_read(plane, pb_message(&f), &ev) ||
		    !is_stored(plane, piece, &ev))
			continue;
		for (; next < n && asked[next].place == place; next++) {
			uint32_t at = asked[next].at;

			if (r->m->event.ts_ns[asked[next].row] == start_of(piece, &ev))
				OW_TRY(write_args(&r->writer, pb_message(&f), ev.entry, r->arena,
						  &r->texts[at], r->shared ? &r->shared[at] : NULL,
						  r->err));
		}
		place++;
	}
	return OW_OK;
}

static ow_status read_asked(struct reading *r, const struct asked *asked, uint32_t n)
{
	uint32_t last;

	for (uint32_t i = 0; i < n; i = last) {
		const struct xpiece *piece = find_piece(r->a, asked[i].place);

		for (last = i + 1;
		     piece && last < n && asked[last].place - piece->first < piece->count; last++)
			;
		if (!piece)
			continue;
		OW_TRY(know_plane(r->a, r->m, piece->plane, r->err));
		OW_TRY(read_piece(r, piece, asked + i, last - i));
	}
	return OW_OK;
}

static ow_status read_args(void *state, const struct model *m, const uint32_t *rows, uint32_t n,
			   struct str *texts, struct str *shared, struct arena *arena,
			   struct ow_error *err)
{
	struct xargs *a = state;
	struct asked *asked = ARENA_ARRAY(arena, struct asked, n + 1);
	struct reading r = {
		.a = a, .m = m, .texts = texts, .shared = shared, .arena = arena, .err = err
	};
	ow_status status;

	if (!asked)
		return error_no_memory(err);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t place = a->order && rows[i] < a->rows ? a->order[rows[i]] : rows[i];

		asked[i] = (struct asked){ place, rows[i], i };
	}
	qsort(asked, n, sizeof(*asked), by_place);
	window_init(&r.window, m->inputs[a->source], err);
	buf_init(&r.writer.text, a->mem);
	status = read_asked(&r, asked, n);
	buf_release(&r.writer.text);
	window_release(&r.window);
	return status;
}

static void release_args(void *state)
{
	struct xargs *a = state;

	for (size_t i = 0; i < a->plane_count; i++) {
		xspace_release_plane(&a->planes[i].x, &a->planes[i].plane);
		arena_release(&a->planes[i].x.arena);
		arena_release(&a->planes[i].x.shelf);
	}
	mem_free(a->mem, a->planes, a->plane_count * sizeof(*a->planes));
	mem_free(a->mem, a->pieces, a->piece_cap * sizeof(*a->pieces));
	mem_free(a->mem, a->order, a->rows * sizeof(*a->order));
	pthread_mutex_destroy(&a->lock);
	mem_free(a->mem, a, sizeof(*a));
}

/* Stores the offsets and kinds of the planes. */
static bool take_planes(struct xargs *a, const struct xspace *x)
{
	a->planes = mem_zalloc(a->mem, x->plane_count * sizeof(*a->planes));
	if (!a->planes)
		return false;
	a->plane_count = x->plane_count;
	for (size_t i = 0; i < x->plane_count; i++) {
		struct known_plane *p = &a->planes[i];

		p->x.mem = a->mem;
		arena_init(&p->x.arena, a->mem);
		arena_init(&p->x.shelf, a->mem);
		p->plane = (struct xplane){ .offset = x->planes[i].offset,
					    .size = x->planes[i].size,
					    .kind = x->planes[i].kind };
	}
	return true;
}

ow_status xspace_offer_args(struct xspace *x)
{
	struct xargs *a = x->piece_count ? mem_zalloc(x->mem, sizeof(*a)) : NULL;

	if (!x->piece_count)
		return OW_OK;
	if (!a)
		return xspace_no_memory(x);
	a->mem = x->mem;
	a->source = x->b->source.v;
	pthread_mutex_init(&a->lock, NULL);
	a->pieces = x->pieces;
	a->piece_count = x->piece_count;
	a->piece_cap = x->piece_cap;
	a->order = x->order;
	a->rows = x->order_rows;
	x->pieces = NULL;
	x->order = NULL;
	x->piece_count = x->piece_cap = x->order_rows = 0;
	if (take_planes(a, x) &&
	    model_offer_args(x->b->m, x->b->source,
			     &(struct args_reader){ read_args, release_args, a }))
		return OW_OK;
	release_args(a);
	return xspace_no_memory(x);
}
