/* words.c: see words.h. */
#include "cli/words.h"

static const char *scaled(char *to, double value, double factor, const char *const *units,
			  size_t count)
{
	size_t unit = 0;
	int decimals;

	/* 999.5 and not 1000, so that nothing is rounded to four digits. */
	for (; value >= 999.5 && unit + 1 < count; unit++)
		value /= factor;
	decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	if (!unit && value == (double)(int64_t)value)
		decimals = 0;
	snprintf(to, WORDS_NUMBER, "%.*f%s", decimals, value, units[unit]);
	return to;
}

const char *words_time(char to[WORDS_NUMBER], double us)
{
	static const char *const units[] = { "us", "ms", "s" };

	return scaled(to, us, 1000, units, ARRAY_COUNT(units));
}

const char *words_bytes(char to[WORDS_NUMBER], double bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };

	return scaled(to, bytes, 1000, units, ARRAY_COUNT(units));
}

const char *words_count(char to[WORDS_NUMBER], double count)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P" };

	return scaled(to, count, 1000, units, ARRAY_COUNT(units));
}

const char *words_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void put_printable(FILE *to, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		fputc(c < 0x20 || c == 0x7f ? '?' : c, to);
	}
}

void words_json(FILE *to, const char *text)
{
	struct str rest = str_from(text);

	fputc('"', to);
	while (rest.len) {
		uint32_t point;
		size_t len = utf8_decode(rest, &point);

		if (point < 32)
			fprintf(to, "\\u%04x", point);
		else if (point == '"' || point == '\\')
			fprintf(to, "\\%c", (int)point);
		else if (point == 0xfffd)
			fputs("\xef\xbf\xbd", to); /* also what is no text */
		else
			fwrite(rest.ptr, 1, len, to);
		rest = str_skip(rest, len);
	}
	fputc('"', to);
}

void words_csv(FILE *to, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text; text++)
		fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', to);
}

static void start_line(FILE *to, const char *mark, uint32_t indent)
{
	size_t wide = utf8_width(str_from(mark));

	fprintf(to, "%s%*s", mark, (int)(indent - MIN(wide, indent)), "");
}

static void wrap_line(FILE *to, const char *mark, struct str line, uint32_t indent, uint32_t width)
{
	size_t column = indent, own = line.len - str_trim(line).len;
	bool fresh = true;
	struct str word;

	start_line(to, mark, indent);
	indent += own ? (uint32_t)own + 2 : 0; /* what goes on hangs below what began */
	while (str_split(&line, ' ', &word)) {
		size_t wide = utf8_width(word);

		if (!fresh && width && column + 1 + wide > width) {
			fputc('\n', to);
			start_line(to, "", indent);
			column = indent;
			fresh = true;
		}
		if (!fresh)
			fputc(' ', to);
		put_printable(to, word);
		column += wide + !fresh;
		fresh = false;
	}
	fputc('\n', to);
}

void words_wrap(FILE *to, const char *mark, const char *text, uint32_t indent, uint32_t width)
{
	struct str rest = str_from(text), line;

	if (rest.len && rest.ptr[rest.len - 1] == '\n')
		rest.len--;
	while (str_split(&rest, '\n', &line)) {
		wrap_line(to, mark, line, indent, width);
		mark = "";
	}
}

size_t words_name(FILE *to, struct str name, size_t room)
{
	struct str shown;

	if (utf8_width(name) <= room) {
		put_printable(to, name);
		return utf8_width(name);
	}
	shown = utf8_fit(name, room ? room - 1 : 0);
	put_printable(to, shown);
	fputs("…", to);
	return utf8_width(shown) + 1;
}
