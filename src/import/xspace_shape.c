/* xspace_shape.c: see xspace_shape.h; here shapes are made. */
#include "import/xspace_shape.h"

/* An event whose shape is being found: what was looked at counts. */
struct look {
	const struct xplane *plane;
	const uint8_t *event;
	size_t at, size;
	struct xshape shape;
};

/* The next byte is the same in all events of the shape. */
static bool same(struct look *l, uint8_t byte)
{
	if (l->at >= l->size || l->event[l->at] != byte)
		return false;
	l->shape.mask[l->at] = 0xff;
	l->shape.bytes[l->at] = byte;
	l->at++;
	return true;
}

/* A varint, of which only the length is the same. */
static bool number(struct look *l, struct xplace *place)
{
	size_t first = l->at;
	bool more = true;

	for (; more && l->at < l->size && l->at - first < PB_WIDE_BYTES; l->at++) {
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
	return l->at >= l->size || l->event[l->at] != tag || (same(l, tag) && number(l, place));
}

static bool id_of_stat(struct look *l, size_t *id)
{
	uint8_t first = l->at < l->size ? l->event[l->at] : 0xff, second;

	*id = first & 0x7f;
	if (!same(l, first))
		return false;
	if (first < 0x80)
		return true;
	second = l->at < l->size ? l->event[l->at] : 0xff;
	*id |= (size_t)second << 7;
	return second < 0x80 && same(l, second);
}

/* The value of a stat that is wanted, up to `end`. */
static bool value(struct look *l, struct xwanted wanted, size_t end)
{
	struct xshape *s = &l->shape;
	uint8_t tag = l->event[l->at];

	if (s->value_count == XSHAPE_VALUES || s->has & XSTAT_BIT(wanted.stat) ||
	    !(xkinds_of_tag[tag] & wanted.kinds))
		return false;
	s->has |= XSTAT_BIT(wanted.stat);
	s->values[s->value_count].stat = wanted.stat;
	return same(l, tag) && number(l, &s->values[s->value_count++]) && l->at == end;
}

static bool stat(struct look *l)
{
	size_t end, id;
	uint8_t len;

	if (!same(l, PB_TAG(4, PB_BYTES)) || l->at >= l->size)
		return false;
	len = l->event[l->at];
	if (len > 0x7f || !same(l, len))
		return false;
	end = l->at + len;
	if (end > l->size || !same(l, PB_TAG(1, PB_VARINT)) || !id_of_stat(l, &id) || l->at > end ||
	    id >= l->plane->wanted_count)
		return false;
	l->shape.stat_count++;
	if (l->plane->wanted[id].kinds && (l->at == end || !value(l, l->plane->wanted[id], end)))
		return false;
	l->at = end;
	return true;
}

static bool look_at(struct look *l)
{
	if (!same(l, PB_TAG(4, PB_BYTES)) || !same(l, (uint8_t)(l->size - 2)) ||
	    !same(l, PB_TAG(1, PB_VARINT)) || !number(l, &l->shape.entry) ||
	    !optional(l, PB_TAG(2, PB_VARINT), &l->shape.offset) ||
	    !optional(l, PB_TAG(3, PB_VARINT), &l->shape.duration))
		return false;
	while (l->at < l->size)
		if (!stat(l))
			return false;
	l->shape.size = (uint8_t)l->size;
	return true;
}

bool xshape_learn(const struct xplane *plane, struct xshapes *shapes, const uint8_t *at)
{
	struct look l = { .plane = plane, .event = at, .size = (size_t)at[1] + 2 };
	struct xshape *set = xshape_set(shapes, at);

	if (at[1] > XSHAPE_BYTES - 2 || !look_at(&l))
		return false;
	memmove(set + 1, set, (XSHAPE_WAYS - 1) * sizeof(*set));
	set[0] = l.shape;
	return true;
}

const struct xshape *xshape_find_other(struct xshape *set, const uint8_t *at)
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
