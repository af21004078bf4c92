/* bigquery.c: see bigquery.h. */
#include "sql/bigquery.h"

#include "relation/relation.h"
#include "sql/quote.h"

#include <strings.h>

/* ---- tokens ---- */

enum token_kind {
	TOKEN_BLANK, /* and comments */
	TOKEN_WORD,
	TOKEN_NUMBER,
	TOKEN_QUOTED, /* 'text', "name", $$text$$ */
	TOKEN_BACKTICK,
	TOKEN_OTHER /* one character */
};

struct token {
	enum token_kind kind;
	struct str text;
};

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Up to the end of what `quote` opened; doubled quotes are inside. */
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

/* $tag$ … $tag$; 0 when it is none. */
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

static size_t comment_len(struct str s)
{
	size_t end;

	if (str_starts(s, STR("--"))) {
		end = str_find_char(s, '\n');
		return end == STR_NONE ? s.len : end;
	}
	if (!str_starts(s, STR("/*")))
		return 0;
	end = str_find(str_skip(s, 2), STR("*/"));
	return end == STR_NONE ? s.len : end + 4;
}

static struct token read_token(struct str s)
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
		len = quoted_len(s, c, false);
	} else if (c == '`') {
		kind = TOKEN_BACKTICK;
		len = quoted_len(s, c, false);
	} else if (c == '$' && dollar_len(s)) {
		kind = TOKEN_QUOTED;
		len = dollar_len(s);
	} else if ((c == 'e' || c == 'E') && s.len > 1 && s.ptr[1] == '\'') {
		kind = TOKEN_QUOTED;
		len = 1 + quoted_len(str_skip(s, 1), '\'', true);
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
		struct token token = read_token(text);

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

/* ---- the text as a list ---- */

#define UNNESTS_MAX 8
#define KEYS_MAX 8

/* UNNEST(t.traceEvents) AS e WITH OFFSET AS i: tokens [at, end); with its table [begin, end). */
struct unnest {
	size_t begin, at, end;
	struct str table, element, offset;
	bool has_offset;
};

struct rewrite {
	struct token *tokens; /* of one statement */
	size_t count;
	const struct ow_list *runs;
	struct unnest unnests[UNNESTS_MAX];
	size_t unnest_count;
	struct buf *out;
};

static bool is_word(const struct rewrite *r, size_t i, const char *word)
{
	return i < r->count && r->tokens[i].kind == TOKEN_WORD &&
	       r->tokens[i].text.len == strlen(word) &&
	       strncasecmp(r->tokens[i].text.ptr, word, r->tokens[i].text.len) == 0;
}

static bool is_char(const struct rewrite *r, size_t i, char c)
{
	return i < r->count && r->tokens[i].kind == TOKEN_OTHER && r->tokens[i].text.ptr[0] == c;
}

/* The next or last token that says something; count when there is none. */
static size_t after(const struct rewrite *r, size_t i)
{
	for (i++; i < r->count && r->tokens[i].kind == TOKEN_BLANK; i++)
		;
	return MIN(i, r->count);
}

static size_t before(const struct rewrite *r, size_t i)
{
	while (i-- > 0)
		if (r->tokens[i].kind != TOKEN_BLANK)
			return i;
	return r->count;
}

static bool same_text(struct str a, struct str b)
{
	return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* A name without its quotes. */
static struct str plain_name(const struct token *token)
{
	struct str s = token->text;

	if (token->kind == TOKEN_BACKTICK || (token->kind == TOKEN_QUOTED && s.ptr[0] == '"'))
		s = s.len >= 2 ? str_make(s.ptr + 1, s.len - 2) : STR("");
	return s;
}

static bool is_name(const struct rewrite *r, size_t i)
{
	return i < r->count &&
	       (r->tokens[i].kind == TOKEN_WORD || r->tokens[i].kind == TOKEN_BACKTICK ||
		(r->tokens[i].kind == TOKEN_QUOTED && r->tokens[i].text.ptr[0] == '"'));
}

/* ---- tables ---- */

static struct str last_part(struct str name)
{
	size_t dot = str_rfind_char(name, '.');

	return dot == STR_NONE ? name : str_skip(name, dot + 1);
}

static bool is_run(const struct rewrite *r, struct str name)
{
	for (size_t i = 0; r->runs && i < r->runs->count; i++)
		if (same_text(str_from(r->runs->items[i]), name))
			return true;
	return false;
}

/* What trace_events a name of BigQuery means: a run's, or all. */
static void put_events(const struct rewrite *r, struct str table)
{
	if (!is_run(r, table)) {
		buf_puts(r->out, "trace_events");
		return;
	}
	buf_puts(r->out, "(SELECT * FROM trace_events WHERE lower(run) = lower(");
	sql_quote(r->out, table);
	buf_puts(r->out, "))");
}

/* Whether a table is expected there. */
static bool at_table(const struct rewrite *r, size_t i)
{
	size_t last = before(r, i);

	return is_word(r, last, "FROM") || is_word(r, last, "JOIN") || is_char(r, last, ',');
}

/* Words that may follow a table, and so are no alias. */
static bool ends_table(const struct rewrite *r, size_t i)
{
	static const char *const words[] = {
		"WITH",	     "WHERE",	"GROUP",       "ORDER",	 "LIMIT",   "JOIN",
		"INNER",     "LEFT",	"RIGHT",       "FULL",	 "CROSS",   "ON",
		"USING",     "HAVING",	"UNION",       "WINDOW", "QUALIFY", "EXCEPT",
		"INTERSECT", "NATURAL", "TABLESAMPLE", "OFFSET",
	};

	for (size_t k = 0; k < ARRAY_COUNT(words); k++)
		if (is_word(r, i, words[k]))
			return true;
	return false;
}

/* An alias may have to follow, so that `FROM p.d.tf115 … tf115.name` keeps its meaning. */
static void put_alias(const struct rewrite *r, size_t i, struct str name)
{
	size_t next = after(r, i);

	if (is_word(r, next, "AS") || (is_name(r, next) && !ends_table(r, next)))
		return;
	buf_puts(r->out, " AS ");
	sql_quote_name(r->out, name);
}

static void put_backtick(const struct rewrite *r, size_t i)
{
	struct str whole = plain_name(&r->tokens[i]), name = last_part(whole);
	bool dotted = name.len < whole.len;

	if (!at_table(r, i) || (!dotted && !is_run(r, name)) || relation_find(name)) {
		sql_quote_name(r->out, at_table(r, i) ? name : whole);
		return;
	}
	put_events(r, name);
	put_alias(r, i, name);
}

/* ---- UNNEST ---- */

/* The tokens of an [AS] name; the one after them. */
static size_t read_alias(const struct rewrite *r, size_t i, struct str *alias)
{
	if (is_word(r, i, "AS"))
		i = after(r, i);
	else if (ends_table(r, i))
		return i;
	if (!is_name(r, i))
		return i;
	*alias = plain_name(&r->tokens[i]);
	return after(r, i);
}

static bool read_unnest(const struct rewrite *r, size_t i, struct unnest *u)
{
	size_t next;

	*u = (struct unnest){ .at = i, .element = STR("e") };
	if (!is_word(r, i, "UNNEST") || !is_char(r, next = after(r, i), '('))
		return false;
	next = after(r, next);
	if (is_name(r, next) && is_char(r, after(r, next), '.')) {
		u->table = plain_name(&r->tokens[next]);
		next = after(r, after(r, next));
	}
	if (!is_name(r, next) || !same_text(plain_name(&r->tokens[next]), STR("traceEvents")) ||
	    !is_char(r, next = after(r, next), ')'))
		return false;
	next = read_alias(r, after(r, next), &u->element);
	if (is_word(r, next, "WITH") && is_word(r, after(r, next), "OFFSET")) {
		u->has_offset = true;
		u->offset = STR("offset");
		next = read_alias(r, after(r, after(r, next)), &u->offset);
	}
	u->end = next;
	return true;
}

/* Where the table before UNNEST begins: FROM `p.d.t` AS t, or CROSS JOIN after it. Sets its name. */
static size_t find_table(const struct rewrite *r, const struct unnest *u, struct str *name)
{
	size_t i = before(r, u->at), first;

	if (is_word(r, i, "JOIN")) {
		i = before(r, i);
		if (is_word(r, i, "CROSS") || is_word(r, i, "INNER") || is_word(r, i, "LEFT"))
			i = before(r, i);
	} else if (is_char(r, i, ',')) {
		i = before(r, i);
	} else {
		return r->count;
	}
	for (first = i; first < r->count && !is_word(r, first, "FROM"); first = before(r, first))
		if (is_char(r, first, ',') || is_char(r, first, ')') || is_word(r, first, "JOIN"))
			return r->count;
	if (first >= r->count)
		return r->count;
	first = after(r, first);
	*name = last_part(plain_name(&r->tokens[first]));
	for (size_t dot = after(r, first); is_char(r, dot, '.'); dot = after(r, after(r, dot)))
		*name = plain_name(&r->tokens[after(r, dot)]); /* dataset.table without quotes */
	return first;
}

static void put_unnest(const struct rewrite *r, const struct unnest *u)
{
	if (u->has_offset && !same_text(u->offset, STR("index"))) {
		buf_puts(r->out, "(SELECT *, \"index\" AS ");
		sql_quote_name(r->out, u->offset);
		buf_puts(r->out, " FROM ");
		put_events(r, u->table);
		buf_puts(r->out, ")");
	} else {
		put_events(r, u->table);
	}
	buf_puts(r->out, " AS ");
	sql_quote_name(r->out, u->element);
	buf_puts(r->out, " ");
}

/* The element that a name stands for, or NULL. */
static const struct unnest *element_of(const struct rewrite *r, size_t i)
{
	if (!is_name(r, i) || is_char(r, before(r, i), '.'))
		return NULL;
	for (size_t k = 0; k < r->unnest_count; k++)
		if (same_text(plain_name(&r->tokens[i]), r->unnests[k].element))
			return &r->unnests[k];
	return NULL;
}

/* The keys after e.args, up to KEYS_MAX; 0 when it is nothing of that kind. */
static size_t read_keys(const struct rewrite *r, size_t i, struct str keys[KEYS_MAX], size_t *end)
{
	size_t count = 0, dot = after(r, i), name = after(r, dot);

	if (!is_char(r, dot, '.') || !is_name(r, name) ||
	    !same_text(plain_name(&r->tokens[name]), STR("args")))
		return 0;
	while (count < KEYS_MAX && is_char(r, dot = after(r, name), '.') &&
	       is_name(r, after(r, dot))) {
		name = after(r, dot);
		keys[count++] = plain_name(&r->tokens[name]);
		*end = name + 1;
	}
	return count;
}

/* e.args.name and the like; false when it is none. *end becomes the token after it. */
static bool put_args(struct rewrite *r, size_t i, size_t *end)
{
	const struct unnest *u = element_of(r, i);
	struct str keys[KEYS_MAX];
	size_t count = u ? read_keys(r, i, keys, end) : 0;

	if (!count)
		return false;
	if (count == 1 && (same_text(keys[0], STR("name")) || same_text(keys[0], STR("op")))) {
		sql_quote_name(r->out, u->element);
		buf_puts(r->out, same_text(keys[0], STR("op")) ? ".arg_op" : ".arg_name");
		return true;
	}
	for (size_t k = 0; k < count; k++)
		buf_puts(r->out, "arg_value(");
	sql_quote_name(r->out, u->element);
	buf_puts(r->out, ".args");
	for (size_t k = 0; k < count; k++) {
		buf_puts(r->out, ", ");
		sql_quote(r->out, keys[k]);
		buf_puts(r->out, ")");
	}
	return true;
}

/* ---- a statement ---- */

static void find_unnests(struct rewrite *r)
{
	struct unnest *u = r->unnests;

	for (size_t i = 0; i < r->count && r->unnest_count < UNNESTS_MAX; i++) {
		if (!read_unnest(r, i, u))
			continue;
		u->begin = find_table(r, u, &u->table);
		if (u->begin == r->count)
			u->begin = u->at;
		i = u->end - 1;
		u++;
		r->unnest_count++;
	}
}

/* BigQuery's name for an offset without a name is a word that DuckDB wants in quotes. */
static bool is_offset_name(const struct rewrite *r, size_t i)
{
	size_t next = after(r, i);

	if (!is_word(r, i, "OFFSET") || (next < r->count && r->tokens[next].kind == TOKEN_NUMBER))
		return false;
	for (size_t k = 0; k < r->unnest_count; k++)
		if (same_text(r->unnests[k].offset, STR("offset")))
			return true;
	return false;
}

/* With names in back-ticks the statement is BigQuery's, where double quotes make a text. */
static bool is_bigquery(const struct rewrite *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->tokens[i].kind == TOKEN_BACKTICK)
			return true;
	return false;
}

static bool is_double_quoted(const struct rewrite *r, size_t i)
{
	return r->tokens[i].kind == TOKEN_QUOTED && r->tokens[i].text.ptr[0] == '"' &&
	       !is_word(r, before(r, i), "AS") && !is_char(r, before(r, i), '.');
}

static void put_statement(struct rewrite *r)
{
	bool bigquery = is_bigquery(r);
	size_t k = 0, end = 0;

	find_unnests(r);
	for (size_t i = 0; i < r->count; i++) {
		if (k < r->unnest_count && i == r->unnests[k].begin) {
			put_unnest(r, &r->unnests[k]);
			i = r->unnests[k++].end - 1;
		} else if (put_args(r, i, &end)) {
			i = end - 1;
		} else if (r->tokens[i].kind == TOKEN_BACKTICK) {
			put_backtick(r, i);
		} else if (bigquery && is_double_quoted(r, i)) {
			sql_quote(r->out, plain_name(&r->tokens[i]));
		} else if (is_offset_name(r, i)) {
			buf_puts(r->out, "\"offset\"");
		} else {
			buf_add_str(r->out, r->tokens[i].text);
		}
	}
}

/* A line of a notebook that says how to run the query. */
static bool is_magic(struct str text, size_t *len)
{
	struct str line = str_first(text, MIN(str_find_char(text, '\n'), text.len));

	*len = line.len;
	return str_starts(str_trim(line), STR("%%"));
}

static ow_status read_tokens(struct rewrite *r, struct str text, struct arena *scratch,
			     struct error *err)
{
	size_t count = 0;

	for (struct str rest = text; rest.len; count++)
		rest = str_skip(rest, read_token(rest).text.len);
	r->tokens = ARENA_ARRAY(scratch, struct token, count + 1);
	if (!r->tokens)
		return error_no_memory(err);
	for (r->count = 0; text.len; text = str_skip(text, r->tokens[r->count++].text.len))
		r->tokens[r->count] = read_token(text);
	return OW_OK;
}

ow_status bigquery_rewrite(struct str text, const struct ow_list *runs, struct arena *scratch,
			   struct buf *out, struct error *err)
{
	size_t len;

	while (text.len && is_magic(text, &len))
		text = str_skip(text, len + 1);
	while (text.len) {
		struct rewrite r = { .runs = runs, .out = out };
		struct str rest = text;
		bool ended = false;

		while (rest.len && !ended) {
			struct token token = read_token(rest);

			ended = token.kind == TOKEN_OTHER && token.text.ptr[0] == ';';
			rest = str_skip(rest, token.text.len);
		}
		OW_TRY(read_tokens(&r, str_first(text, text.len - rest.len), scratch, err));
		put_statement(&r);
		text = rest;
	}
	return out->failed ? error_no_memory(err) : OW_OK;
}
