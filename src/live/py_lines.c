/* py_lines.c: see py_lines.h. The layouts are described in CPython's Objects/lnotab_notes.txt (to 3.10) and
 * Objects/locations.md (from 3.11). */
#include "live/py_lines.h"

/* Damaged tables must not overflow. */
static int32_t add_line(int32_t line, int64_t delta)
{
	int64_t sum = line + delta;

	return sum < INT32_MIN || sum > INT32_MAX ? line : (int32_t)sum;
}

/* 3.8, 3.9: pairs of how far to go on, and then by how many lines. */
static int32_t line_in_lnotab(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		at += (uint8_t)table.ptr[i];
		if (at > offset)
			break;
		line = add_line(line, (int8_t)table.ptr[i + 1]);
	}
	return line;
}

/* 3.10: pairs of a length, and by how many lines it is behind the one before; -128 is no line. */
static int32_t line_in_ranges(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i + 1 < table.len; i += 2) {
		int8_t delta = (int8_t)table.ptr[i + 1];

		if (delta != INT8_MIN)
			line = add_line(line, delta);
		at += (uint8_t)table.ptr[i];
		if (offset < at)
			break;
	}
	return line;
}

/* Six bits a byte, the lowest first. */
static uint32_t take_varint(struct str table, size_t *i)
{
	uint32_t value = 0, shift = 0;

	while (*i < table.len) {
		uint8_t byte = (uint8_t)table.ptr[(*i)++];

		if (shift < 30)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int64_t take_signed(struct str table, size_t *i)
{
	uint32_t value = take_varint(table, i);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum { ENTRY_ONE_LINE = 10, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NONE = 15 };

/* 3.11 on: an entry's first byte has its kind and length in units of two bytes. */
static int32_t line_in_locations(struct str table, int32_t line, int64_t offset)
{
	int64_t at = 0;

	for (size_t i = 0; i < table.len;) {
		uint8_t byte = (uint8_t)table.ptr[i++];
		uint32_t kind = (byte >> 3) & 15;

		switch (kind) {
		case ENTRY_NONE:
			break;
		case ENTRY_LONG:
			line = add_line(line, take_signed(table, &i));
			for (int k = 0; k < 3; k++) /* the last line and the columns */
				take_varint(table, &i);
			break;
		case ENTRY_NO_COLUMNS:
			line = add_line(line, take_signed(table, &i));
			break;
		case ENTRY_ONE_LINE:
		case ENTRY_ONE_LINE + 1:
		case ENTRY_ONE_LINE + 2:
			line = add_line(line, (int64_t)kind - ENTRY_ONE_LINE);
			i += 2;
			break;
		default:
			i++;
		}
		at += ((byte & 7) + 1) * 2;
		if (offset < at)
			break;
	}
	return line;
}

int32_t py_line_at(uint32_t minor, struct str table, int32_t first, int64_t offset)
{
	if (offset < 0)
		return first;
	if (minor < 10)
		return line_in_lnotab(table, first, offset);
	if (minor == 10)
		return line_in_ranges(table, first, offset);
	return line_in_locations(table, first, offset);
}
