/*
 * pbtxt_skip.c: values of fields that the tables do not know, passed over token by token. Brackets have to
 * match; nothing else is understood.
 */
#include "wire/pbtxt.h"
#include "wire/pbtxt_int.h"

static bool skip_string(struct text *t, struct buf *scratch)
{
	size_t before = scratch->len;
	uint64_t start;
	bool done = false;
	int quote;

	if (!text_quote(t, &quote, &start))
		return false;
	while (!done) {
		if (!text_string(t, quote, start, scratch, &done))
			return false;
		scratch->len = before;
	}
	return true;
}

/* One token of a value that nobody wants; brackets are matched. */
static bool skip_token(struct text *t, struct buf *scratch, char *open, size_t *depth)
{
	struct number number;
	struct str name;
	int c = text_peek(t);

	if (c == '"' || c == '\'')
		return skip_string(t, scratch);
	if (text_is_name(c))
		return text_name(t, &name);
	if (text_is_digit(c))
		return text_number(t, &number);
	if (c == '{' || c == '<' || c == '[') {
		if (*depth == PBTXT_DEPTH_MAX)
			return text_fail(t, "messages nested more than %d deep", PBTXT_DEPTH_MAX);
		open[(*depth)++] = text_closing(c);
	} else if (c == '}' || c == '>' || c == ']') {
		if (!*depth || open[*depth - 1] != c)
			return text_expected(t, "a value");
		(*depth)--;
	} else if (c <= 0 || !strchr("-.:,;/", c)) {
		return text_expected(t, "a value");
	}
	t->at++;
	return true;
}

bool text_skip_value(struct text *t, struct buf *scratch)
{
	char open[PBTXT_DEPTH_MAX];
	size_t depth = 0;
	bool string, sign;

	if (!text_blanks(t))
		return false;
	if (text_peek(t) == ':')
		t->at++;
	do {
		if (!text_blanks(t))
			return false;
		string = text_peek(t) == '"' || text_peek(t) == '\'';
		sign = text_peek(t) == '-';
		if (!skip_token(t, scratch, open, &depth) || !text_blanks(t))
			return false;
		if (string && !depth && (text_peek(t) == '"' || text_peek(t) == '\''))
			sign = true; /* adjacent strings */
	} while (depth || sign);
	return true;
}
