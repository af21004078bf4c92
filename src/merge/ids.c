/*
 * ids.c: ids of flows, asynchronous events and frames, which must not meet those of other files. The first
 * file keeps its ids; those of file k are moved by k times a power of two, so that no list of them is needed
 * and numbers stay numbers (viewers read them as such, up to 2^53 exactly).
 */
#include "merge/merge_int.h"

enum id_form { ID_DECIMAL, ID_HEX, ID_BARE_HEX, ID_OTHER };

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_id(struct str text, unsigned base, uint64_t *value)
{
	uint64_t sum = 0;

	if (!text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = hex_value(text.ptr[i]);

		if (digit < 0 || (unsigned)digit >= base ||
		    sum > (UINT64_MAX - (unsigned)digit) / base)
			return false;
		sum = sum * base + (unsigned)digit;
	}
	*value = sum;
	return true;
}

static enum id_form form_of(const struct json_value *id, bool *negative, uint64_t *value)
{
	struct str text = json_text(*id);

	*negative = text.len > 1 && *text.ptr == '-';
	if (parse_id(str_skip(text, *negative), 10, value))
		return ID_DECIMAL;
	if (*negative || id->kind != JSON_STRING)
		return ID_OTHER;
	if (text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 0x20) == 'x')
		return parse_id(str_skip(text, 2), 16, value) ? ID_HEX : ID_OTHER;
	return parse_id(text, 16, value) ? ID_BARE_HEX : ID_OTHER;
}

/* Large ids are hashes or random numbers; a large odd step leads away from all of the others. */
static uint64_t move_value(const struct merge *m, uint32_t file, uint64_t value)
{
	if (value >> m->id_bits == 0)
		return value + ((uint64_t)file << m->id_bits);
	do
		value += file * 0x9e3779b97f4a7c15ull;
	while (value >> m->id_bits < m->file_count);
	return value;
}

static void add_prefixed(struct buf *out, uint32_t file, struct str raw)
{
	buf_printf(out, "\"%" PRIu32 ":", file + 1);
	json_escape_raw(out, raw);
	buf_add_char(out, '"');
}

bool id_move(const struct merge *m, uint32_t file, const struct json_value *id, struct buf *out)
{
	const char *quote = id->kind == JSON_STRING ? "\"" : "";
	uint64_t value = 0;
	bool negative;

	if (!file || (id->kind != JSON_STRING && id->kind != JSON_NUMBER))
		return false;
	switch (form_of(id, &negative, &value)) {
	case ID_DECIMAL:
		buf_printf(out, "%s%s%" PRIu64 "%s", quote, negative ? "-" : "",
			   move_value(m, file, value), quote);
		break;
	case ID_HEX:
		buf_printf(out, "\"0x%0*" PRIx64 "\"", (int)MIN(id->len - 2, 16u),
			   move_value(m, file, value));
		break;
	case ID_BARE_HEX:
		buf_printf(out, "\"%0*" PRIx64 "\"", (int)MIN(id->len, 16u),
			   move_value(m, file, value));
		break;
	case ID_OTHER:
		add_prefixed(out, file, json_text(*id));
		break;
	}
	return true;
}

/* Frames are keys of a table, so text in any case. */
bool frame_id_move(uint32_t file, const struct json_value *id, struct buf *out)
{
	if (!file || (id->kind != JSON_STRING && id->kind != JSON_NUMBER))
		return false;
	add_prefixed(out, file, json_text(*id));
	return true;
}
