/*
 * words.c: numbers, names and paragraphs for people, and JSON and CSV texts, for what the program prints itself. Tables are
 * written by the library.
 */
#include "cli/words.h"

#include "base/human.h"
#include "base/json_escape.h"

const char *words_time(char to[WORDS_NUMBER], double us)
{
	human_real(to, us, HUMAN_UNIT_US_TO_S, false);
	return to;
}

const char *words_bytes(char to[WORDS_NUMBER], double bytes)
{
	human_real(to, bytes, HUMAN_UNIT_BYTES, false);
	return to;
}

const char *words_count(char to[WORDS_NUMBER], double count)
{
	human_real(to, count, HUMAN_UNIT_COUNT, false);
	return to;
}

const char *words_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void put_printable(FILE *to, struct str s)
{
	while (s.len) {
		uint32_t c = 0;
		size_t len = utf8_decode(s, &c);
		bool plain = c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !utf8_turns_text(c);

		if (plain && c != 0xfffd)
			fwrite(s.ptr, 1, len, to);
		else
			fputs("\xef\xbf\xbd", to);
		s = str_skip(s, len);
	}
}

void words_json(FILE *to, const char *text)
{
	struct str rest = str_from(text);
	char escape[JSON_ESCAPE_MAX];

	fputc('"', to);
	while (rest.len) {
		struct str piece = json_escape_next(&rest, JSON_UTF8, escape);

		fwrite(piece.ptr, 1, piece.len, to);
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

static bool is_unit(struct str word)
{
	static const char *const units[] = { "%", "ns", "us", "ms", "s", "min", "h" };

	while (word.len && strchr(".,;:)", word.ptr[word.len - 1]))
		word.len--;
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_eq(word, str_from(units[i])))
			return true;
	return false;
}

/* Takes the next word off a line; a number and its unit are one word. */
static bool next_word(struct str *line, struct str *word)
{
	struct str rest, unit;

	if (!str_split(line, ' ', word))
		return false;
	rest = *line;
	if (word->len && word->ptr[word->len - 1] >= '0' && word->ptr[word->len - 1] <= '9' &&
	    str_split(&rest, ' ', &unit) && is_unit(unit)) {
		*word = (struct str){ word->ptr, word->len + 1 + unit.len };
		*line = rest;
	}
	return true;
}

static void wrap_line(FILE *to, const char *mark, struct str line, uint32_t indent, uint32_t width)
{
	size_t column = MAX(utf8_width(str_from(mark)), (size_t)indent);
	size_t own = line.len - str_trim(line).len;
	bool fresh = true;
	struct str word;

	start_line(to, mark, indent);
	/* continuation lines are indented below the first line */
	indent += own ? (uint32_t)own + 2 : 0;
	while (next_word(&line, &word)) {
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
	if (name.ptr[0] == '/') { /* paths differ in their last part */
		shown = human_fit_end(name, room ? room - 1 : 0);
		fputs("…", to);
		put_printable(to, shown);
	} else {
		shown = utf8_fit(name, room ? room - 1 : 0);
		put_printable(to, shown);
		fputs("…", to);
	}
	return utf8_width(shown) + 1;
}
