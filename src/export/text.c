/* text.c: values as text, for the formats that are text; see format.h. */
#include "export/format.h"

void put_uint(struct buf *to, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char text[20], *at = text + sizeof(text);

	for (; value >= 100; value /= 100)
		memcpy(at -= 2, pairs + value % 100 * 2, 2);
	if (value >= 10)
		memcpy(at -= 2, pairs + value * 2, 2);
	else
		*--at = (char)('0' + value);
	buf_add(to, at, (size_t)(text + sizeof(text) - at));
}

void put_int(struct buf *to, int64_t value)
{
	if (value >= 0) {
		put_uint(to, (uint64_t)value);
		return;
	}
	buf_add_char(to, '-');
	put_uint(to, -(uint64_t)value);
}

void put_real(struct buf *to, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_puts(to, text);
}

void put_utf8(struct buf *to, struct str text)
{
	while (text.len) {
		size_t valid = utf8_valid_prefix(text);

		buf_add(to, text.ptr, valid);
		if (valid == text.len)
			return;
		buf_puts(to, "\xef\xbf\xbd");
		text = str_skip(text, valid + 1);
	}
}

static void put_escape(struct buf *to, unsigned char c)
{
	static const char letters[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
	};
	char text[8] = { '\\', (char)c };

	if (c < 32 && letters[c])
		text[1] = letters[c];
	else if (c < 32)
		snprintf(text, sizeof(text), "\\u%04x", c);
	buf_puts(to, text);
}

void put_json(struct buf *to, struct str text)
{
	size_t i = 0, plain = 0;

	buf_add_char(to, '"');
	for (; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c >= 32 && c != '"' && c != '\\')
			continue;
		put_utf8(to, str_make(text.ptr + plain, i - plain));
		put_escape(to, c);
		plain = i + 1;
	}
	put_utf8(to, str_make(text.ptr + plain, text.len - plain));
	buf_add_char(to, '"');
}
