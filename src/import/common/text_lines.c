/* text_lines.c: reads an input line by line; UTF-16 is converted as a whole before. Knows no format. */
#include "import/common/text_lines.h"

#define PEEK ((size_t)256 << 10)

static bool is_utf16(struct str head, bool *big)
{
	*big = str_starts(head, STR("\xfe\xff"));
	return *big || str_starts(head, STR("\xff\xfe"));
}

static uint32_t unit_at(const unsigned char *p, bool big)
{
	return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

/* Decodes one character from `size` bytes; returns how many it takes. Lone surrogates become
 * U+FFFD. */
static size_t decode_utf16(const unsigned char *p, size_t size, bool big, uint32_t *code)
{
	uint32_t low;

	*code = unit_at(p, big);
	if (*code < 0xd800 || *code > 0xdfff)
		return 2;
	if (*code < 0xdc00 && size >= 4) {
		low = unit_at(p + 2, big);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
			return 4;
		}
	}
	*code = 0xfffd;
	return 2;
}

static ow_status convert(struct text_lines *t, const struct input *in, bool big,
			 struct ow_error *err)
{
	uint64_t at = 2;

	while (at + 1 < in->size) {
		struct str some = window_peek(&t->window, at, PEEK);
		const unsigned char *p = (const unsigned char *)some.ptr;
		size_t used = 0;

		if (!some.ptr)
			return t->window.status;
		some.len = MIN(some.len, PEEK);
		/* a surrogate pair that the piece cuts is read with the next one */
		while (used + 2 <= some.len &&
		       (used + 4 <= some.len || at + some.len + 1 >= in->size)) {
			uint32_t code;
			char bytes[4];

			used += decode_utf16(p + used, some.len - used, big, &code);
			buf_add(&t->utf8, bytes, utf8_encode(code, bytes));
		}
		if (!used || t->utf8.failed)
			break;
		at += used;
	}
	if (t->utf8.failed)
		return error_no_memory(err);
	OW_TRY(input_from_memory(&t->converted, in->mem, in->name, buf_str(&t->utf8).ptr,
				 t->utf8.len, err));
	window_release(&t->window);
	window_init(&t->window, &t->converted, err);
	t->size = t->utf8.len;
	t->utf16 = true;
	return OW_OK;
}

ow_status text_lines_init(struct text_lines *t, const struct input *in, struct ow_error *err)
{
	struct str head;
	bool big;

	*t = (struct text_lines){ .size = in->size };
	window_init(&t->window, in, err);
	buf_init(&t->utf8, in->mem);
	head = window_peek(&t->window, 0, 4);
	if (!head.ptr)
		return t->window.status;
	if (is_utf16(head, &big))
		return convert(t, in, big, err);
	if (str_starts(head, STR("\xef\xbb\xbf")))
		t->at = 3;
	return OW_OK;
}

void text_lines_seek(struct text_lines *t, uint64_t offset)
{
	t->at = offset;
}

ow_status text_lines_status(const struct text_lines *t)
{
	return t->window.status;
}

void text_lines_release(struct text_lines *t)
{
	window_release(&t->window);
	if (t->utf16)
		input_close(&t->converted);
	buf_release(&t->utf8);
}

/* Skips the rest of a line that was cut. */
static void skip_rest(struct text_lines *t)
{
	t->cut = false;
	while (t->at < t->size) {
		struct str some = window_peek(&t->window, t->at, 1);
		const char *end;

		if (!some.ptr)
			return;
		some.len = (size_t)MIN((uint64_t)some.len, t->size - t->at);
		end = memchr(some.ptr, '\n', some.len);
		t->at += end ? (uint64_t)(end - some.ptr) + 1 : some.len;
		if (end)
			return;
	}
}

/* The loaded part of the line at t->at, up to the longest that is returned whole. More is read only when its end is not among it:
 * moving the window for every line would copy the whole window each time. */
static struct str peek_line(struct text_lines *t, const char **end)
{
	size_t most = (size_t)MIN((uint64_t)TEXT_LINE_MAX, t->size - t->at), want = 1;

	for (;;) {
		struct str some = window_peek(&t->window, t->at, want);

		if (!some.ptr)
			return some;
		some.len = MIN(some.len, most);
		*end = memchr(some.ptr, '\n', some.len);
		if (*end || some.len == most)
			return some;
		want = some.len < PEEK ? MIN(PEEK, most) : most;
	}
}

bool text_lines_next(struct text_lines *t, struct str *line)
{
	const char *end = NULL;
	struct str some;

	if (t->cut)
		skip_rest(t);
	t->offset = t->at;
	if (t->at >= t->size)
		return false;
	some = peek_line(t, &end);
	if (!some.ptr)
		return false;
	if (!end && some.len < t->size - t->at) {
		*line = some;
		t->at += line->len;
		t->too_long++;
		return t->cut = true;
	}
	t->last_open = !end;
	*line = end ? str_make(some.ptr, (size_t)(end - some.ptr)) : some;
	t->at += line->len + (end ? 1 : 0);
	if (line->len && line->ptr[line->len - 1] == '\r') {
		line->len--;
		t->crlf = true;
	}
	return true;
}

struct str text_head(struct str head, char *to, size_t size)
{
	size_t len = 0, at = 2;
	bool big;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		return str_skip(head, 3);
	if (!is_utf16(head, &big))
		return head;
	while (at + 2 <= head.len && len + 4 <= size) {
		uint32_t code;

		at += decode_utf16((const unsigned char *)head.ptr + at, head.len - at, big, &code);
		len += utf8_encode(code, to + len);
	}
	return str_make(to, len);
}
