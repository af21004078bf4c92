/*
 * xspace_reading.h: a line of an XSpace that is being read, and how one of its events becomes a row. Shared by xspace_line.c, which
 * reads lines and takes nearly all events in one go, and xspace_take.c, which takes any event. What is inlined here is done for each
 * of millions of events.
 */
#ifndef IMPORT_XSPACE_READING_H
#define IMPORT_XSPACE_READING_H

#include "import/xspace_event.h"
#include "import/xspace_tally.h"

struct reading {
	struct xspace *x;
	struct xplane *plane;
	const struct xline *line;
	bool device, frames; /* frames: only those are wanted */
	bool counters;	     /* events are values of counters */
	bool skipped_frames;
	bool tame;     /* the line begins at a time that no offset makes overflow */
	uint64_t rest; /* XSTAT_BIT of what only few events have, and has to be looked at */
	track_id track;
	int64_t line_ps; /* of the line, from the start of the profile, for the facts */
	int64_t base_ns; /* of the line: what its offsets count from */
	int64_t last_ns, last_end_ns;
	struct tally tally; /* of the line */
};

/* Any event; its message is for what only few have. */
ow_status xspace_take_event(struct reading *r, struct xevent *ev, struct pb message);
/* XSTAT_BIT of what only few events have. Groups count while there is no better marker. */
uint64_t xspace_rest_bits(const struct xspace *x);
/* Times of hostile files are held within what can be counted. */
int64_t xspace_held(struct xspace *x, int64_t a, int64_t b);
/* The ops that stats of a kernel name: nil for none. */
str_id xspace_resolve_op(struct reading *r, const struct xevent *ev);
str_id xspace_op_of_instruction(struct reading *r, const struct xevent *ev);

#define TAME_PS ((uint64_t)1 << 61)

OW_ALWAYS_INLINE uint64_t number_of(const struct xevent *ev, enum xstat stat)
{
	return ev->has & XSTAT_BIT(stat) ? ev->bits[stat] : 0;
}

/* Those that are references are looked up once. */
OW_ALWAYS_INLINE str_id op_of_text(struct reading *r, const struct xevent *ev)
{
	uint64_t ref = ev->bits[XSTAT_TF_OP];

	if (OW_LIKELY(!(ev->inlined & XSTAT_BIT(XSTAT_TF_OP)) && ref < r->plane->wanted_count &&
		      r->plane->ref_ops[ref]))
		return (str_id){ r->plane->ref_ops[ref] - 1 };
	return xspace_resolve_op(r, ev);
}

/* The op that the stats of a kernel name: nil for none. */
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

/* Columns that only some files need: that they are there, and those that few events need filled. */
OW_ALWAYS_INLINE bool add_rare(struct builder *b, const struct event_row *row)
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

/* Room for it has been made. Its step is told later, for all events: mean_steps.c. */
OW_ALWAYS_INLINE ow_status add_row(struct builder *b, const struct event_row *row)
{
	struct event_table *e = &b->m->event;
	/* Bit by bit: compilers make one load of tests of neighbours, which then has to wait for both stores. */
	uint64_t rare = (uint64_t)row->bytes | (uint32_t)(row->ts_rest | row->end_rest);
	uint32_t at = e->count;

	if (OW_UNLIKELY(!e->name || !e->correlation || rare) && !add_rare(b, row))
		return builder_status(b);
	e->ts_ns[at] = row->ts_ns;
	e->dur_ns[at] = row->dur_ns;
	e->op[at] = row->op;
	e->track[at] = row->track;
	if (OW_LIKELY(e->name))
		e->name[at] = row->name;
	if (OW_LIKELY(e->correlation))
		e->correlation[at] = row->correlation;
	e->count = at + 1;
	return OW_OK;
}

/* Lines are in order of time in all files that were seen. */
OW_ALWAYS_INLINE void watch_order(struct reading *r, const struct event_row *row)
{
	int64_t end = row->ts_ns + row->dur_ns;

	if (OW_UNLIKELY(row->ts_ns < r->last_ns ||
			(row->ts_ns == r->last_ns && end > r->last_end_ns)))
		r->x->unsorted = true;
	r->last_ns = row->ts_ns;
	r->last_end_ns = end;
}

OW_ALWAYS_INLINE void name_kernel(struct reading *r, const struct xevent *ev, struct event_row *row)
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

#endif
