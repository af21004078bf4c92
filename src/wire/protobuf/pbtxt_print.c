/*
 * pbtxt_print.c: prints a binary message in the text format, as Python's protobuf does (pb_print_text in pbtxt.h). The
 * timeline describes tensors with it. Never reads text.
 */
#include "wire/protobuf/pbtxt.h"

#include "wire/protobuf/pb.h"

#include <math.h>

#define DEPTH_MAX 32

static void print_message(struct buf *out, const struct pb_message *type, struct str bytes,
			  unsigned depth);

/* Prints a string with C escapes; bytes beyond ASCII in octal. */
static void print_string(struct buf *out, struct str text)
{
	buf_add_char(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '\n')
			buf_puts(out, "\\n");
		else if (c == '\r')
			buf_puts(out, "\\r");
		else if (c == '\t')
			buf_puts(out, "\\t");
		else if (c == '"' || c == '\'' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(out, "\\%03o", c);
		else
			buf_add_char(out, (char)c);
	}
	buf_add_char(out, '"');
}

static void print_enum(struct buf *out, const struct pb_enum *values, int32_t number)
{
	for (size_t i = 0; i < values->count; i++)
		if (values->values[i].number == number) {
			buf_puts(out, values->values[i].name);
			return;
		}
	buf_printf(out, "%d", number);
}

static void print_real(struct buf *out, double value, int digits)
{
	if (isnan(value))
		buf_puts(out, "nan");
	else if (isinf(value))
		buf_puts(out, value < 0 ? "-inf" : "inf");
	else if (value == floor(value) && fabs(value) < 1e15)
		buf_printf(out, "%.1f", value);
	else
		buf_printf(out, "%.*g", digits, value);
}

static void print_scalar(struct buf *out, const struct pb_field_desc *field, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	double real;
	float single;

	switch ((enum pb_type)field->type) {
	case PBT_INT32:
		buf_printf(out, "%d", (int32_t)low);
		break;
	case PBT_INT64:
		buf_printf(out, "%" PRId64, (int64_t)bits);
		break;
	case PBT_SINT64:
		buf_printf(out, "%" PRId64, (int64_t)(bits >> 1 ^ (0 - (bits & 1))));
		break;
	case PBT_UINT32:
	case PBT_FIXED32:
		buf_printf(out, "%u", low);
		break;
	case PBT_BOOL:
		buf_puts(out, bits ? "true" : "false");
		break;
	case PBT_ENUM:
		print_enum(out, field->values, (int32_t)low);
		break;
	case PBT_FLOAT:
		memcpy(&single, &low, sizeof(single));
		print_real(out, (double)single, 9);
		break;
	case PBT_DOUBLE:
		memcpy(&real, &bits, sizeof(real));
		print_real(out, real, 17);
		break;
	default:
		buf_printf(out, "%" PRIu64, bits);
	}
}

static bool is_repeated(const struct pb_field_desc *field)
{
	return field->flags & PBF_REPEATED;
}

static bool is_bytes(const struct pb_field_desc *field)
{
	return field->type == PBT_STRING || field->type == PBT_BYTES || field->type == PBT_MESSAGE;
}

static void print_name(struct buf *out, const struct pb_field_desc *field, unsigned depth)
{
	buf_add_repeat(out, ' ', 2 * (size_t)depth);
	buf_puts(out, field->name);
}

static void print_value(struct buf *out, const struct pb_field_desc *field, uint64_t bits,
			struct str bytes, unsigned depth)
{
	print_name(out, field, depth);
	if (field->type == PBT_MESSAGE) {
		buf_puts(out, " {\n");
		print_message(out, field->message, bytes, depth + 1);
		buf_add_repeat(out, ' ', 2 * (size_t)depth);
		buf_puts(out, "}\n");
		return;
	}
	buf_puts(out, ": ");
	if (is_bytes(field))
		print_string(out, bytes);
	else
		print_scalar(out, field, bits);
	buf_add_char(out, '\n');
}

static void print_packed(struct buf *out, const struct pb_field_desc *field, struct str packed,
			 unsigned depth)
{
	size_t width = field->type == PBT_DOUBLE || field->type == PBT_FIXED64	? 8
		       : field->type == PBT_FLOAT || field->type == PBT_FIXED32 ? 4
										: 0;

	while (packed.len) {
		uint64_t bits = 0;
		size_t used = 0;

		if (width) {
			used = MIN(width, packed.len);
			memcpy(&bits, packed.ptr, used);
		} else {
			for (unsigned shift = 0; used < packed.len && shift < 64; shift += 7) {
				unsigned char c = (unsigned char)packed.ptr[used++];

				bits |= (uint64_t)(c & 0x7f) << shift;
				if (!(c & 0x80))
					break;
			}
		}
		print_value(out, field, bits, STR(""), depth);
		packed = str_skip(packed, used);
	}
}

/* All occurrences of one field. Of a single value the last counts; messages are merged, which for the
 * wire format means one behind the other. */
static void print_field(struct buf *out, const struct pb_field_desc *field, struct str bytes,
			unsigned depth)
{
	struct pb r = pb_over(bytes.ptr, bytes.len);
	struct str last = STR("");
	struct buf merged;
	uint64_t bits = 0;
	unsigned seen = 0;
	struct pb_field f;

	buf_init(&merged, out->mem);
	while (pb_next(&r, &f)) {
		bool has_bytes = (f.tag & 7) == PB_BYTES;

		if (pb_number(&f) != field->number)
			continue;
		if (is_repeated(field) && has_bytes && !is_bytes(field)) {
			print_packed(out, field, pb_str(&f), depth);
			continue;
		}
		if (has_bytes != is_bytes(field))
			continue;
		bits = f.value;
		last = has_bytes ? pb_str(&f) : STR("");
		seen++;
		if (is_repeated(field))
			print_value(out, field, bits, last, depth);
		else if (field->type == PBT_MESSAGE)
			buf_add_str(&merged, last);
	}
	if (seen && !is_repeated(field)) {
		if (field->type == PBT_MESSAGE)
			print_value(out, field, 0, buf_str(&merged), depth);
		else if (is_bytes(field) ? last.len : bits)
			print_value(out, field, bits, last, depth);
	}
	out->failed |= merged.failed;
	buf_release(&merged);
}

static const struct pb_field_desc *next_field(const struct pb_message *type, uint32_t after)
{
	const struct pb_field_desc *best = NULL;

	for (size_t i = 0; i < type->count; i++) {
		const struct pb_field_desc *field = &type->fields[i];

		if (field->number > after && (!best || field->number < best->number))
			best = field;
	}
	return best;
}

static void print_message(struct buf *out, const struct pb_message *type, struct str bytes,
			  unsigned depth)
{
	const struct pb_field_desc *field = NULL;

	if (depth >= DEPTH_MAX)
		return;
	while ((field = next_field(type, field ? field->number : 0)) && !out->failed)
		print_field(out, field, bytes, depth);
}

void pb_print_text(struct buf *out, const struct pb_message *type, struct str bytes)
{
	print_message(out, type, bytes, 0);
}
