/*
 * bigquery_token.c: splits SQL into tokens and statements, and converts texts of BigQuery to DuckDB's form. bigquery.c,
 * query.c and ask call it.
 */
#include "sql/bigquery_token.h"

#include "sql/bigquery.h"

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of a quoted part, up to its closing quote; doubled quotes do not close it. */
static size_t quoted_len(struct str s, char quote, bool escapes)
{
	for (size_t i = 1; i < s.len; i++) {
		if (escapes && s.ptr[i] == '\\') {
			i++;
		} else if (s.ptr[i] == quote) {
			if (i + 1 == s.len || s.ptr[i + 1] != quote)
				return i + 1;
			i++;
		}
	}
	return s.len;
}

/* Whether a text begins with three quotes. */
static bool is_triple(struct str s)
{
	return s.len >= 3 && s.ptr[1] == s.ptr[0] && s.ptr[2] == s.ptr[0];
}

/* The length of a BigQuery text, in which doubled quotes are the end of one text and the begin of another. */
static size_t text_len(struct str s)
{
	size_t quotes = is_triple(s) ? 3 : 1;

	for (size_t i = quotes; i < s.len; i++) {
		if (s.ptr[i] == '\\')
			i++;
		else if (s.ptr[i] == s.ptr[0] && (quotes == 1 || is_triple(str_skip(s, i))))
			return i + quotes;
	}
	return s.len;
}

/* The length of $tag$ … $tag$; 0 when the text does not begin so. */
static size_t dollar_len(struct str s)
{
	size_t tag = 1, end;

	while (tag < s.len && s.ptr[tag] != '$' && is_word_char(s.ptr[tag]))
		tag++;
	if (tag >= s.len || s.ptr[tag] != '$' || (tag > 1 && s.ptr[1] >= '0' && s.ptr[1] <= '9'))
		return 0;
	end = str_find(str_skip(s, tag + 1), str_first(s, tag + 1));
	return end == STR_NONE ? s.len : tag + 1 + end + tag + 1;
}

/* Whether # begins a comment, as in BigQuery; DuckDB's #1 is the first column. */
static bool is_hash_comment(struct str s)
{
	return s.ptr[0] == '#' && (s.len == 1 || s.ptr[1] < '0' || s.ptr[1] > '9');
}

static size_t comment_len(struct str s)
{
	size_t end;

	if (str_starts(s, STR("--")) || is_hash_comment(s)) {
		end = str_find_char(s, '\n');
		return end == STR_NONE ? s.len : end;
	}
	if (!str_starts(s, STR("/*")))
		return 0;
	end = str_find(str_skip(s, 2), STR("*/"));
	return end == STR_NONE ? s.len : end + 4;
}

struct token token_read(struct str s, bool bigquery)
{
	char c = s.ptr[0];
	size_t len = comment_len(s);
	enum token_kind kind = TOKEN_BLANK;

	if (len)
		return (struct token){ kind, str_first(s, len) };
	if (strchr(" \t\r\n\f\v", c)) {
		for (len = 1; len < s.len && s.ptr[len] && strchr(" \t\r\n\f\v", s.ptr[len]); len++)
			;
	} else if (c == '\'' || c == '"') {
		kind = TOKEN_QUOTED;
		len = bigquery ? text_len(s) : quoted_len(s, c, false);
	} else if (c == '`') {
		kind = TOKEN_BACKTICK;
		len = quoted_len(s, c, false);
	} else if (c == '$' && dollar_len(s)) {
		kind = TOKEN_QUOTED;
		len = dollar_len(s);
	} else if ((c == 'e' || c == 'E') && s.len > 1 && s.ptr[1] == '\'') {
		kind = TOKEN_QUOTED;
		len = 1 + quoted_len(str_skip(s, 1), '\'', true);
	} else if ((c == 'r' || c == 'R') && s.len > 1 && (s.ptr[1] == '\'' || s.ptr[1] == '"')) {
		kind = TOKEN_RAW;
		len = 1 + (bigquery ? text_len(str_skip(s, 1))
				    : quoted_len(str_skip(s, 1), s.ptr[1], true));
	} else if (is_word_char(c)) {
		kind = c >= '0' && c <= '9' ? TOKEN_NUMBER : TOKEN_WORD;
		for (len = 1; len < s.len && is_word_char(s.ptr[len]); len++)
			;
	} else {
		kind = TOKEN_OTHER;
		len = 1;
	}
	return (struct token){ kind, str_first(s, len) };
}

struct str bigquery_statement(struct str text, size_t n)
{
	const char *begin = text.ptr;
	bool any = false;

	while (text.len) {
		struct token token = token_read(text, false);

		text = str_skip(text, token.text.len);
		if (token.kind == TOKEN_OTHER && token.text.ptr[0] == ';') {
			if (any && !n--)
				return str_make(begin, (size_t)(token.text.ptr - begin));
			any = false;
			begin = text.ptr;
		} else {
			any |= token.kind != TOKEN_BLANK;
		}
	}
	return any && !n ? str_make(begin, (size_t)(text.ptr - begin)) : (struct str){ "", 0 };
}

struct str bigquery_first_word(struct str statement)
{
	while (statement.len) {
		struct token token = token_read(statement, false);

		if (token.kind == TOKEN_WORD)
			return token.text;
		if (token.kind != TOKEN_BLANK)
			break;
		statement = str_skip(statement, token.text.len);
	}
	return STR("");
}

static bool has_end(const struct token *token)
{
	struct str s = token->text;
	char quote = s.len ? s.ptr[s.len - 1] : 0;

	return token->kind != TOKEN_QUOTED ||
	       (s.len > 1 && (quote == s.ptr[0] || quote == '\'' || quote == '$'));
}

/* Whether a token is a mark of BigQuery, which no statement of DuckDB has. */
static bool is_mark(const struct token *token)
{
	return token->kind == TOKEN_BACKTICK ||
	       (token->kind == TOKEN_RAW && token->text.ptr[1] == '"') ||
	       (token->kind == TOKEN_BLANK && str_starts(token->text, STR("#standardSQL")));
}

/* The length of a statement, with texts of one dialect; *ended says whether its last text is closed. */
static size_t statement_len(struct str s, bool bigquery, bool *marked, bool *ended)
{
	struct str rest = s;

	*marked = false;
	*ended = true;
	while (rest.len) {
		struct token token = token_read(rest, bigquery);

		rest = str_skip(rest, token.text.len);
		*marked |= is_mark(&token);
		*ended = has_end(&token);
		if (token.kind == TOKEN_OTHER && token.text.ptr[0] == ';')
			break;
	}
	return s.len - rest.len;
}

size_t token_statement(struct str s, bool *bigquery)
{
	bool marked, ended;
	size_t len = statement_len(s, false, &marked, &ended), other;

	*bigquery = false;
	if (!marked && ended)
		return len;
	other = statement_len(s, true, &marked, &ended);
	*bigquery = marked;
	return marked ? other : len;
}

/* The value of up to `most` digits of a base; *used is the number of digits. */
static uint32_t read_digits(struct str s, size_t most, uint32_t base, size_t *used)
{
	uint32_t value = 0;

	for (*used = 0; *used < most && *used < s.len; ++*used) {
		char c = s.ptr[*used];
		uint32_t digit = c >= '0' && c <= '9'	? (uint32_t)(c - '0')
				 : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
							: 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	return value;
}

/* Appends a character; a quote is doubled. */
static void put_character(struct buf *to, uint32_t c)
{
	char bytes[4];

	if (c == '\'')
		buf_add_char(to, '\'');
	buf_add_str(to, str_make(bytes, utf8_encode(c, bytes)));
}

/* Appends the character that the escape after a backslash stands for; returns the length of the escape. An unknown
 * escape, which is an error in BigQuery, is kept: '\d' in a pattern is meant as it is written. */
static size_t put_escape(struct buf *to, struct str s)
{
	static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
	const char *at = memchr(letters, s.ptr[0], sizeof(letters) - 1);
	size_t most = s.ptr[0] == 'U' ? 8 : s.ptr[0] == 'u' ? 4 : 2, used;
	uint32_t c;

	if (at) {
		put_character(to, (unsigned char)values[at - letters]);
		return 1;
	}
	if (str_find_char(STR("\\?\"'`"), s.ptr[0]) != STR_NONE) {
		put_character(to, (unsigned char)s.ptr[0]);
		return 1;
	}
	if (str_find_char(STR("xXuU"), s.ptr[0]) != STR_NONE) {
		c = read_digits(str_skip(s, 1), most, 16, &used);
		if (used == most && c && c < 0x110000) {
			put_character(to, c);
			return 1 + used;
		}
	} else {
		c = read_digits(s, 3, 8, &used);
		if (used == 3 && c && c < 0x100) {
			put_character(to, c);
			return used;
		}
	}
	buf_add_char(to, '\\');
	return 0;
}

void token_put_text(struct buf *to, const struct token *token)
{
	bool raw = token->kind == TOKEN_RAW;
	struct str s = str_skip(token->text, raw);
	size_t quotes = is_triple(s) && s.len >= 6 ? 3 : 1;

	s = str_make(s.ptr + quotes, s.len >= 2 * quotes ? s.len - 2 * quotes : 0);
	buf_add_char(to, '\'');
	for (size_t i = 0; i < s.len; i++) {
		if (!raw && s.ptr[i] == '\\' && i + 1 < s.len) {
			i += put_escape(to, str_skip(s, i + 1));
			continue;
		}
		if (s.ptr[i] == '\'')
			buf_add_char(to, '\'');
		buf_add_char(to, s.ptr[i]);
	}
	buf_add_char(to, '\'');
}
