/*
 * pb.h: pull reader of the protobuf wire format over contiguous memory. No copies, no objects, no
 * allocation: a reader is three words, bytes fields are slices of the caller's memory.
 *
 *	struct pb r = pb_over(ptr, len), sub;
 *	struct pb_field f;
 *
 *	while (pb_next(&r, &f))
 *		switch (f.tag) {
 *		case PB_TAG(1, PB_BYTES):
 *			name = pb_str(&f);
 *			break;
 *		case PB_TAG(2, PB_VARINT):
 *			count = (int64_t)f.value;
 *			break;
 *		case PB_TAG(3, PB_BYTES):
 *			sub = pb_message(&f);
 *			…
 *		}
 *	if (r.problem)
 *		return pb_error(&r, ptr, offset_of_ptr_in_the_file, err);
 *
 * Switching on the whole tag makes a known field with an unexpected wire type an unknown field, which
 * is what the format asks for. Groups are skipped inside pb_next and never seen. Nothing here knows
 * presence, defaults, merging or UTF-8: that is the importers' business. For messages too large to be
 * contiguous see pb_stream.h; for writing, pb_write.h.
 */
#ifndef WIRE_PB_H
#define WIRE_PB_H

#include "base/error.h"
#include "base/str.h"

enum pb_wire {
	PB_VARINT = 0,
	PB_FIXED64 = 1,
	PB_BYTES = 2,
	PB_GROUP = 3,
	PB_GROUP_END = 4,
	PB_FIXED32 = 5,
};

#define PB_TAG(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))
#define PB_DEPTH_MAX 100   /* largest nesting of groups, and of messages for readers that descend */
#define PB_VARINT_BYTES 10 /* length of the longest varint */

enum pb_problem {
	PB_OK = 0,
	PB_TRUNCATED,	  /* the message ends inside a field */
	PB_LONG_VARINT,	  /* a varint has more than 10 bytes */
	PB_BAD_WIRE_TYPE, /* the wire type is 6 or 7 */
	PB_BAD_NUMBER,	  /* the field number is 0, or the tag has more than 32 bits */
	PB_STRAY_GROUP,	  /* a group ends that did not begin */
	PB_DEEP_GROUP,	  /* groups are nested more than PB_DEPTH_MAX deep */
};

struct pb {
	const uint8_t *at; /* next field; after a problem, the field that has it */
	const uint8_t *end;
	enum pb_problem problem; /* first problem; it stays */
};

struct pb_field {
	uint32_t tag;	    /* PB_TAG(number, wire) */
	uint64_t value;	    /* varint, fixed bits, or length of the bytes */
	const uint8_t *ptr; /* the bytes; for other wire types, the encoded value */
};

OW_ALWAYS_INLINE struct pb pb_over(const void *ptr, size_t len)
{
	return (struct pb){ ptr, (const uint8_t *)ptr + len, PB_OK };
}

OW_ALWAYS_INLINE uint32_t pb_number(const struct pb_field *f)
{
	return f->tag >> 3;
}

/* Returns the content of a PB_BYTES field. */
OW_ALWAYS_INLINE struct str pb_str(const struct pb_field *f)
{
	return str_make(f->ptr, (size_t)f->value);
}

OW_ALWAYS_INLINE struct pb pb_message(const struct pb_field *f)
{
	return pb_over(f->ptr, (size_t)f->value);
}

OW_ALWAYS_INLINE float pb_float(uint64_t bits)
{
	uint32_t half = (uint32_t)bits;
	float value;

	memcpy(&value, &half, sizeof(value));
	return value;
}

OW_ALWAYS_INLINE double pb_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

OW_ALWAYS_INLINE uint32_t pb_load32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

OW_ALWAYS_INLINE uint64_t pb_load64(const uint8_t *at)
{
	return pb_load32(at) | (uint64_t)pb_load32(at + 4) << 32;
}

/* Varints: */

/* A varint, returned in two registers. After a failure `next` is NULL and `value` is an enum
 * pb_problem. */
struct pb_varint {
	const uint8_t *next;
	uint64_t value;
};

/* Reads a varint of any length; called by pb_varint_at. */
struct pb_varint pb_varint_long(const uint8_t *at, const uint8_t *end);

/* Reads a varint; requires `at < end`. */
OW_ALWAYS_INLINE struct pb_varint pb_varint_at(const uint8_t *at, const uint8_t *end)
{
	uint64_t first = at[0];

	if (OW_LIKELY(first < 0x80))
		return (struct pb_varint){ at + 1, first };
	if (OW_LIKELY(end - at >= 2 && at[1] < 0x80))
		return (struct pb_varint){ at + 2, first + ((uint64_t)at[1] << 7) - 0x80 };
	if (OW_LIKELY(end - at >= 3 && at[2] < 0x80))
		return (struct pb_varint){ at + 3, first + ((uint64_t)at[1] << 7) +
							   ((uint64_t)at[2] << 14) - 0x4080 };
	return pb_varint_long(at, end);
}

/* Fields: */

/* Handles wire types other than varint and bytes: reads fixed values and skips groups until
 * there is a field to return. Returns as pb_next does. */
bool pb_next_rare(struct pb *r, struct pb_field *f);

OW_ALWAYS_INLINE bool pb_fail(struct pb *r, enum pb_problem problem)
{
	r->problem = problem;
	r->end = r->at; /* so that pb_next finds no further field */
	return false;
}

/* Reads the next field; false at the end or after a problem (r->problem). */
OW_ALWAYS_INLINE bool pb_next(struct pb *r, struct pb_field *f)
{
	const uint8_t *end = r->end;
	struct pb_varint v;

	if (r->at >= end)
		return false;
	v = pb_varint_at(r->at, end);
	if (OW_UNLIKELY(!v.next))
		return pb_fail(r, (enum pb_problem)v.value);
	f->tag = (uint32_t)v.value;
	if (OW_UNLIKELY(v.value < 8 || v.value > UINT32_MAX))
		return pb_fail(r, PB_BAD_NUMBER);
	if (OW_UNLIKELY(v.value & 5)) /* neither varint nor bytes */
		return pb_next_rare(r, f);
	if (OW_UNLIKELY(v.next >= end))
		return pb_fail(r, PB_TRUNCATED);
	f->ptr = v.next;
	v = pb_varint_at(v.next, end);
	if (OW_UNLIKELY(!v.next))
		return pb_fail(r, (enum pb_problem)v.value);
	f->value = v.value;
	if (f->tag & 2) {
		if (OW_UNLIKELY(v.value > (uint64_t)(end - v.next)))
			return pb_fail(r, PB_TRUNCATED);
		f->ptr = v.next;
		v.next += v.value;
	}
	r->at = v.next;
	return true;
}

/*
 * Writers put the fields of a message in one order, nearly all of them. Who reads the same message millions of times
 * asks for each field in its turn, which costs a third of pb_next and a switch, and leaves what is left, or all of it in
 * another order, to the general loop:
 *
 *	pb_take(&r, PB_TAG(1, PB_VARINT), &f) && (row.size = (int64_t)f.value);
 *	…
 *	while (pb_next(&r, &f))
 *		…
 *
 * True when the next field has this tag, of one byte and for a varint or bytes; otherwise nothing changes: problems, too,
 * are pb_next's.
 */
OW_ALWAYS_INLINE bool pb_take(struct pb *r, uint32_t tag, struct pb_field *f)
{
	const uint8_t *at = r->at;
	struct pb_varint v;

	if (r->end - at < 2 || *at != tag)
		return false;
	v = pb_varint_at(at + 1, r->end);
	if (OW_UNLIKELY(!v.next))
		return false;
	f->tag = tag;
	f->value = v.value;
	f->ptr = at + 1;
	if ((tag & 7) == PB_BYTES) {
		if (OW_UNLIKELY(v.value > (uint64_t)(r->end - v.next)))
			return false;
		f->ptr = v.next;
		v.next += v.value;
	}
	r->at = v.next;
	return true;
}

/* Repeated scalars: */

/* Returns the encoded size of a scalar that is known to be complete. */
size_t pb_scalar_size(const uint8_t *at, enum pb_wire wire);

/*
 * The values in one mention of a repeated scalar field, packed or not:
 *
 *	case PB_TAG(4, PB_BYTES):
 *	case PB_TAG(4, PB_VARINT):
 *		for (values = pb_values(&f, PB_VARINT); pb_value(&values, &value);)
 *			add((int64_t)value);
 *
 * A field whose wire type is neither PB_BYTES nor `elem` gives no values.
 */
struct pb_values {
	const uint8_t *at, *end;
	enum pb_wire elem; /* PB_VARINT, PB_FIXED32 or PB_FIXED64 */
	enum pb_problem problem;
};

OW_ALWAYS_INLINE struct pb_values pb_values(const struct pb_field *f, enum pb_wire elem)
{
	struct pb_values values = { f->ptr, f->ptr, elem, PB_OK };

	if (OW_LIKELY((f->tag & 7) == PB_BYTES))
		values.end = f->ptr + f->value;
	else if ((f->tag & 7) == elem) /* a single value, which pb_next has checked */
		values.end = f->ptr + pb_scalar_size(f->ptr, elem);
	return values;
}

bool pb_value_fixed(struct pb_values *v, uint64_t *value);

OW_ALWAYS_INLINE bool pb_value(struct pb_values *v, uint64_t *value)
{
	struct pb_varint got;

	if (v->at >= v->end)
		return false;
	if (v->elem != PB_VARINT)
		return pb_value_fixed(v, value);
	got = pb_varint_at(v->at, v->end);
	if (OW_UNLIKELY(!got.next)) {
		v->problem = (enum pb_problem)got.value;
		v->end = v->at;
		return false;
	}
	v->at = got.next;
	*value = got.value;
	return true;
}

/* Problems: */

/* Returns a problem in words: "a varint of more than 10 bytes". */
const char *pb_problem_text(enum pb_problem problem);

/* Fills err with the reader's problem, where `base` lies `base_offset` bytes into the input and is
 * at or before the reader's memory; OW_OK if there is none. */
ow_status pb_error(const struct pb *r, const void *base, uint64_t base_offset,
		   struct ow_error *err);

#endif
