/*
 * xspace_event.h: decodes one event of an XSpace, for xspace_line.c, which makes rows. There are two ways:
 * xevent_fast_…, for events as profilers write them (entry, offset, duration, then stats that are short numbers and
 * references), most of which are skipped after one table lookup; and xevent_read, for any event.
 */
#ifndef IMPORT_XSPACE_EVENT_H
#define IMPORT_XSPACE_EVENT_H

#include "import/xspace/xspace_int.h"
#include "wire/protobuf/pb_fast_varint.h"

/* Stats whose value is a text, with an index for the text. */
enum xtext { XTEXT_TF_OP, XTEXT_HLO_OP, XTEXT_STEP_NAME, XTEXT_DETAILS, XTEXT_COUNT };

struct xevent {
	uint64_t entry; /* id of the event's entry */
	int64_t offset_ps, duration_ps, occurrences;
	uint64_t has; /* XSTAT_BIT of the wanted stats that the event has */
	/* stats whose text is in `texts`; the text of others is the entry with the id in `bits` */
	uint64_t inlined;
	uint32_t stat_count;
	bool aggregated;
	uint64_t bits[XSTAT_COUNT]; /* numbers, and ids of texts; valid for the stats in `has` */
	struct str texts[XTEXT_COUNT];
};

/* Decodes an event; false when it is damaged. */
bool xevent_read(const struct xplane *plane, struct pb message, struct xevent *ev);
/* The text of a stat that the event has. */
struct str xevent_text(const struct xplane *plane, const struct xevent *ev, enum xstat stat);
/* Decodes a stat that does not have the usual layout, from its first tag on; returns its end, or NULL. */
const uint8_t *xevent_odd_stat(const struct xplane *plane, const uint8_t *at, const uint8_t *end,
			       struct xevent *ev);

#define XEVENT_SLACK 64 /* bytes after an event that may be read */

/* The kind of a stat's value, by the tag of the varint. */
extern const uint8_t xkinds_of_tag[256];

/* Decodes a wanted stat, whose value begins after the tag at `tag`; false when it is not a short number or
 * reference. */
OW_ALWAYS_INLINE bool xevent_fast_value(struct xwanted wanted, const uint8_t *tag,
					const uint8_t *last, struct xevent *ev, bool gathers)
{
	uint64_t value = pb_load64(tag + 1), stop = ~value & PB_FAST_VARINT_STOPS;

	if (OW_UNLIKELY(!(xkinds_of_tag[*tag] & wanted.kinds) || !stop ||
			tag + (__builtin_ctzll(stop) >> 3) + 2 != last))
		return false;
	ev->bits[wanted.stat] = pb_fast_gather(value & (stop ^ (stop - 1)), gathers);
	ev->has |= XSTAT_BIT(wanted.stat);
	ev->inlined &= ~XSTAT_BIT(wanted.stat);
	return true;
}

/* Whether a stat begins with a tag, a length (2 to 127), the tag of the id and an id of one byte. */
OW_ALWAYS_INLINE bool xevent_is_short(uint32_t word)
{
	return ((word | (word - 0x200)) & 0x80ff80ff) ==
	       (PB_TAG(1, PB_VARINT) << 16 | PB_TAG(4, PB_BYTES));
}

/* Decodes stats from `at` to the end. Only the fields of the stats present are set in `ev`. */
OW_ALWAYS_INLINE bool xevent_fast_stats(const struct xplane *plane, const uint8_t *at,
					const uint8_t *end, struct xevent *ev, bool gathers)
{
	const struct xwanted *table = plane->wanted;
	uint32_t count = 0;

	for (; at < end; count++) {
		uint32_t word = pb_load32(at);
		struct xwanted wanted;
		const uint8_t *last;

		if (OW_LIKELY(xevent_is_short(word))) {
			wanted = table[word >> 24];
			last = at + at[1] + 2;
			if (!wanted.kinds ||
			    OW_LIKELY(xevent_fast_value(wanted, at + 4, last, ev, gathers))) {
				at = last;
				continue;
			}
		}
		at = xevent_odd_stat(plane, at, end, ev);
		if (!at)
			return false;
	}
	ev->stat_count = count;
	return at == end;
}

/* The fields of an event before its stats: its time and its entry. */
struct xtimes {
	uint64_t entry, offset_ps, duration_ps;
	/* where the stats begin; NULL when the event does not have the usual layout */
	const uint8_t *next;
};

OW_ALWAYS_INLINE struct xtimes xevent_fast_times(const uint8_t *at, const uint8_t *end,
						 bool gathers)
{
	struct xtimes t = { 0 };
	struct pb_varint v;

	if (OW_UNLIKELY(at == end || *at != PB_TAG(1, PB_VARINT)))
		return t;
	v = pb_fast_varint(at + 1, gathers);
	t.entry = v.value;
	if (OW_UNLIKELY(!v.next))
		return t;
	if (OW_LIKELY(v.next < end && *v.next == PB_TAG(2, PB_VARINT))) {
		v = pb_fast_varint(v.next + 1, gathers);
		t.offset_ps = v.value;
		if (OW_UNLIKELY(!v.next))
			return t;
	}
	if (OW_LIKELY(v.next < end && *v.next == PB_TAG(3, PB_VARINT))) {
		v = pb_fast_varint(v.next + 1, gathers);
		t.duration_ps = v.value;
	}
	t.next = v.next;
	return t;
}

#endif
