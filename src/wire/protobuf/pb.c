/*
 * pb.c: the rare and slow parts of the protobuf reader: long varints, groups, fixed values, problems. What happens for
 * nearly every field is inline in pb.h.
 */
#include "wire/protobuf/pb.h"

/* Joins the seven low bits of each byte of a little-endian word. */
static uint64_t join_sevens(uint64_t x)
{
	x = (x & 0x007f007f007f007full) | (x & 0x7f007f007f007f00ull) >> 1;
	x = (x & 0x00003fff00003fffull) | (x & 0x3fff00003fff0000ull) >> 2;
	return (x & 0x0fffffffull) | (x & 0x0fffffff00000000ull) >> 4;
}

/* Reads a varint byte by byte: 9 and 10 bytes long, or one that does not end. */
static struct pb_varint varint_bytes(const uint8_t *at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < PB_VARINT_BYTES; i++) {
		if (at + i >= end)
			return (struct pb_varint){ NULL, PB_TRUNCATED };
		value |= (uint64_t)(at[i] & 0x7f) << (7 * i); /* bits above the 64th are dropped */
		if (at[i] < 0x80)
			return (struct pb_varint){ at + i + 1, value };
	}
	return (struct pb_varint){ NULL, PB_LONG_VARINT };
}

/* Loads the last bytes of a message, fewer than eight; missing bytes read as if a varint
 * continued. */
static uint64_t load_tail(const uint8_t *at, size_t len)
{
	uint64_t word = UINT64_MAX << (8 * len);

	if (len >= 4)
		return word | pb_load32(at) | (uint64_t)pb_load32(at + len - 4) << (8 * (len - 4));
	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)at[i] << (8 * i);
	return word;
}

struct pb_varint pb_varint_long(const uint8_t *at, const uint8_t *end)
{
	size_t left = (size_t)(end - at);
	uint64_t word = left < 8 ? load_tail(at, left) : pb_load64(at);
	uint64_t last = ~word & 0x8080808080808080ull;

	if (OW_UNLIKELY(!last))
		return varint_bytes(at, end);
	/* last ^ (last - 1) covers everything up to the stop bit of the varint's last byte */
	return (struct pb_varint){ at + (unsigned)__builtin_ctzll(last) / 8 + 1,
				   join_sevens(word & (last ^ (last - 1))) };
}

/* Reads one varint and moves *at; returns PB_OK or the problem. */
static enum pb_problem read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	struct pb_varint v;

	if (*at >= end)
		return PB_TRUNCATED;
	v = pb_varint_at(*at, end);
	if (!v.next)
		return (enum pb_problem)v.value;
	*at = v.next;
	*value = v.value;
	return PB_OK;
}

static enum pb_problem skip_bytes(const uint8_t **at, const uint8_t *end, uint64_t len)
{
	if (len > (uint64_t)(end - *at))
		return PB_TRUNCATED;
	*at += len;
	return PB_OK;
}

/* Skips the value of a field that is neither the start nor the end of a group. */
static enum pb_problem skip_value(const uint8_t **at, const uint8_t *end, uint32_t wire)
{
	enum pb_problem problem;
	uint64_t value = 0;

	switch (wire) {
	case PB_VARINT:
		return read_varint(at, end, &value);
	case PB_FIXED64:
		return skip_bytes(at, end, 8);
	case PB_FIXED32:
		return skip_bytes(at, end, 4);
	case PB_BYTES:
		problem = read_varint(at, end, &value);
		return problem ? problem : skip_bytes(at, end, value);
	default:
		return PB_BAD_WIRE_TYPE;
	}
}

/* Skips from behind the start of group `number` to behind its end. */
static enum pb_problem skip_group(const uint8_t **at, const uint8_t *end, uint32_t number)
{
	uint32_t open[PB_DEPTH_MAX];
	size_t depth = 0;

	open[depth++] = number;
	while (depth) {
		enum pb_problem problem;
		uint64_t tag = 0;

		problem = read_varint(at, end, &tag);
		if (problem)
			return problem;
		if (tag < 8 || tag > UINT32_MAX)
			return PB_BAD_NUMBER;
		if ((tag & 7) == PB_GROUP_END) {
			if (open[--depth] != tag >> 3)
				return PB_STRAY_GROUP;
		} else if ((tag & 7) == PB_GROUP) {
			if (depth == PB_DEPTH_MAX)
				return PB_DEEP_GROUP;
			open[depth++] = (uint32_t)tag >> 3;
		} else if ((problem = skip_value(at, end, tag & 7))) {
			return problem;
		}
	}
	return PB_OK;
}

bool pb_next_rare(struct pb *r, struct pb_field *f)
{
	for (;;) {
		const uint8_t *at = r->at;
		enum pb_problem problem;
		uint64_t tag = 0;

		if (at >= r->end)
			return false;
		problem = read_varint(&at, r->end, &tag);
		if (problem)
			return pb_fail(r, problem);
		if (tag < 8 || tag > UINT32_MAX)
			return pb_fail(r, PB_BAD_NUMBER);
		f->tag = (uint32_t)tag;
		f->ptr = at;
		switch (tag & 7) {
		case PB_GROUP:
			problem = skip_group(&at, r->end, (uint32_t)tag >> 3);
			if (problem)
				return pb_fail(r, problem);
			r->at = at;
			continue;
		case PB_GROUP_END:
			return pb_fail(r, PB_STRAY_GROUP);
		case PB_VARINT:
		case PB_BYTES: /* the value follows a group */
			problem = read_varint(&at, r->end, &f->value);
			if (!problem && (tag & 7) == PB_BYTES) {
				f->ptr = at;
				problem = skip_bytes(&at, r->end, f->value);
			}
			break;
		default:
			problem = skip_value(&at, r->end, tag & 7);
			if (!problem)
				f->value = (tag & 7) == PB_FIXED64 ? pb_load64(f->ptr)
								   : pb_load32(f->ptr);
			break;
		}
		if (problem)
			return pb_fail(r, problem);
		r->at = at;
		return true;
	}
}

size_t pb_scalar_size(const uint8_t *at, enum pb_wire wire)
{
	size_t size = 1;

	if (wire != PB_VARINT)
		return wire == PB_FIXED64 ? 8 : 4;
	while (*at++ >= 0x80)
		size++;
	return size;
}

bool pb_value_fixed(struct pb_values *v, uint64_t *value)
{
	ptrdiff_t size = v->elem == PB_FIXED64 ? 8 : 4;

	if (v->end - v->at < size) {
		v->problem = PB_TRUNCATED;
		v->end = v->at;
		return false;
	}
	*value = size == 8 ? pb_load64(v->at) : pb_load32(v->at);
	v->at += size;
	return true;
}

const char *pb_problem_text(enum pb_problem problem)
{
	static const char *const texts[] = {
		[PB_OK] = "no problem",
		[PB_TRUNCATED] = "the message ends inside a field",
		[PB_LONG_VARINT] = "a varint of more than 10 bytes",
		[PB_BAD_WIRE_TYPE] = "a field of an impossible wire type",
		[PB_BAD_NUMBER] = "an impossible field number",
		[PB_STRAY_GROUP] = "the end of a group that did not begin",
		[PB_DEEP_GROUP] = "groups nested too deeply",
	};

	return (unsigned)problem < ARRAY_COUNT(texts) ? texts[problem] : "an unknown problem";
}

ow_status pb_error(const struct pb *r, const void *base, uint64_t base_offset, struct ow_error *err)
{
	if (!r->problem)
		return OW_OK;
	return error_at(err, OW_E_CORRUPT, base_offset + (uint64_t)(r->at - (const uint8_t *)base),
			"damaged protobuf data: %s", pb_problem_text(r->problem));
}
