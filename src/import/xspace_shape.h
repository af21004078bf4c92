/*
 * xspace_shape.h: events that look like others. A profiler writes events of one kind in one form: the same stats in
 * the same order, numbers of mostly the same lengths. Such a form is remembered, as the bytes that are the same in all
 * of them; an event that has these bytes needs no parsing: all that is asked for lies at known places. For
 * xspace_line.c, which asks here before it reads an event itself.
 */
#ifndef IMPORT_XSPACE_SHAPE_H
#define IMPORT_XSPACE_SHAPE_H

#include "import/xspace_event.h"

#define XSHAPE_BYTES 128 /* the longest event, its tag and length included */
#define XSHAPE_HALF 64
#define XSHAPE_VALUES 4
#define XSHAPE_SETS 64
#define XSHAPE_WAYS 4 /* shapes of a set: the one that fitted last comes first */

/* A varint: where it is, and which of the eight bytes from there are its; 0 = there is none. */
struct xplace {
	uint64_t bits;
	uint8_t at, stat;
};

struct xshape {
	uint8_t mask[XSHAPE_BYTES], bytes[XSHAPE_BYTES]; /* bytes are masked */
	struct xplace entry, offset, duration;
	struct xplace values[XSHAPE_VALUES];
	uint64_t has; /* XSTAT_BIT of the values */
	uint8_t size; /* 0 = no shape */
	uint8_t value_count, stat_count;
};

struct xshapes {
	struct xshape sets[XSHAPE_SETS][XSHAPE_WAYS];
};

/* Of an event of the usual form, from its tag on; it is forgotten what has not fitted for longest.
 * False when it has none: numbers that are too long or too many. */
bool xshape_learn(const struct xplane *plane, struct xshapes *shapes, const uint8_t *at);

typedef uint64_t xshape_part __attribute__((vector_size(16), aligned(1), may_alias));

OW_ALWAYS_INLINE xshape_part xshape_differs(const struct xshape *s, const uint8_t *at, size_t i)
{
	return (*(const xshape_part *)(at + i) & *(const xshape_part *)(s->mask + i)) ^
	       *(const xshape_part *)(s->bytes + i);
}

/* Reads XSHAPE_HALF bytes, or twice as many when the event is longer than that. */
OW_ALWAYS_INLINE bool xshape_fits(const struct xshape *s, const uint8_t *at)
{
	xshape_part d = xshape_differs(s, at, 0) | xshape_differs(s, at, 16) |
			xshape_differs(s, at, 32) | xshape_differs(s, at, 48);

	if (OW_UNLIKELY(s->size > XSHAPE_HALF))
		d |= xshape_differs(s, at, 64) | xshape_differs(s, at, 80) |
		     xshape_differs(s, at, 96) | xshape_differs(s, at, 112);
	return !(d[0] | d[1]);
}

/* By the length of the event, and by whether the id of its entry is a short one. */
OW_ALWAYS_INLINE struct xshape *xshape_set(struct xshapes *shapes, const uint8_t *at)
{
	return shapes->sets[(at[1] ^ (at[3] >> 7 << 5)) % XSHAPE_SETS];
}

/* Another than the first that fits, which becomes the first. */
const struct xshape *xshape_find_other(struct xshape *set, const uint8_t *at);

/* The shape of the event whose tag is at `at`; NULL when it is not known. */
OW_ALWAYS_INLINE const struct xshape *xshape_find(struct xshapes *shapes, const uint8_t *at)
{
	struct xshape *set = xshape_set(shapes, at);

	if (OW_LIKELY(set[0].size == at[1] + 2 && xshape_fits(&set[0], at)))
		return &set[0];
	return xshape_find_other(set, at);
}

OW_ALWAYS_INLINE uint64_t xshape_value(const struct xplace *p, const uint8_t *at, bool gathers)
{
	return pb_wide_pick(pb_load64(at + p->at), p->bits, gathers);
}

/* What the stats say. `gathers` is a constant: see pb_wide.h. */
OW_ALWAYS_INLINE void xshape_stats(const struct xshape *s, const uint8_t *at, struct xevent *ev,
				   bool gathers)
{
	ev->has = s->has;
	ev->inlined = 0;
	ev->stat_count = s->stat_count;
	/* few have more; those that have fewer write to the place that nobody reads */
	ev->bits[s->values[0].stat] = xshape_value(&s->values[0], at, gathers);
	ev->bits[s->values[1].stat] = xshape_value(&s->values[1], at, gathers);
	for (unsigned i = 2; OW_UNLIKELY(i < s->value_count); i++)
		ev->bits[s->values[i].stat] = xshape_value(&s->values[i], at, gathers);
}

#endif
