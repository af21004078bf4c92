/* xspace_event.c: see xspace_event.h; here are the ways of events and stats that are not of the usual form. */
#include "import/xspace_event.h"

/* ---- any event ---- */

static struct xwanted wanted_of(const struct xplane *plane, uint64_t id)
{
	uint32_t row;

	if (OW_LIKELY(id < plane->wanted_count))
		return plane->wanted[id];
	row = xids_find(&plane->stat_ids, id);
	return row ? xspace_wanted(plane, (enum xstat)plane->stats[row].stat)
		   : (struct xwanted){ 0 };
}

/* Most stats are not wanted, which the first bytes tell: what else is in them does not matter. */
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

/* False when it is damaged. */
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

/* ---- an event as it is written ---- */

const uint8_t xkinds_of_tag[256] = {
	[PB_TAG(3, PB_VARINT)] = XKIND_NUMBER,
	[PB_TAG(4, PB_VARINT)] = XKIND_NUMBER,
	[PB_TAG(7, PB_VARINT)] = XKIND_REF,
};

/* With an id of two bytes: profilers give numbers to names and to texts, as they come. */
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
