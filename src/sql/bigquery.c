/*
 * bigquery.c: processes SQL as text: rewrites forms of BigQuery that DuckDB does not know, splits a text into
 * statements, quotes names and texts. query.c calls it. It knows only the names of tables, and does not change anything
 * that it does not recognise.
 */
#include "sql/bigquery.h"

#include "relation/relation.h"
#include "sql/bigquery_token.h"
#include "sql/sql.h"

#include <strings.h>

#define UNNESTS_MAX 8
#define KEYS_MAX 8

/* UNNEST(t.traceEvents) AS e WITH OFFSET AS i: the tokens [at, end); together with the table before it [begin, end). */
struct unnest {
	size_t begin, at, end;
	struct str table, element, offset;
	bool has_offset;
};

struct rewrite {
	struct str whole;     /* text of all statements */
	struct token *tokens; /* tokens of the current statement */
	size_t count;
	/* the statement has a mark of BigQuery: texts and functions have the meaning that they have there */
	bool bigquery;
	struct bigquery_names *names;
	struct unnest unnests[UNNESTS_MAX];
	size_t unnest_count;
	struct buf *out;
	struct ow_error *err;
	ow_status status; /* the first failure */
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

/* The next token (below: the previous one) that is not blank or a comment; `count` when there is none. */
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
	return a.len == b.len && (!a.len || strncasecmp(a.ptr, b.ptr, a.len) == 0);
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

static struct str last_part(struct str name)
{
	size_t dot = str_rfind_char(name, '.');

	return dot == STR_NONE ? name : str_skip(name, dot + 1);
}

static bool in_list(const struct ow_list *list, struct str name)
{
	for (size_t i = 0; i < list->count; i++)
		if (same_text(str_from(list->items[i]), name))
			return true;
	return false;
}

/* The name of a file without folders, archive and extensions. */
static struct str file_stem(const char *path)
{
	struct str name = str_from(path);

	name = str_skip(name, str_rfind_char(name, '/') + 1); /* without a '/', STR_NONE + 1 is 0 */
	name = str_skip(name, str_rfind_char(name, '!') + 1);
	return str_first(name, MIN(str_find_char(name, '.'), name.len));
}

static const char *find_file(const struct rewrite *r, struct str name)
{
	for (size_t i = 0; i < r->names->files.count; i++)
		if (same_text(file_stem(r->names->files.items[i]), name))
			return r->names->files.items[i];
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether two names differ in their numbers only: tf114, tf9. */
static bool differ_in_numbers(struct str a, struct str b)
{
	size_t i = 0, k = 0;

	while (i < a.len && k < b.len) {
		bool digits = is_digit(a.ptr[i]);

		if (digits != is_digit(b.ptr[k]) || (!digits && a.ptr[i] != b.ptr[k]))
			return false;
		for (i++; digits && i < a.len && is_digit(a.ptr[i]); i++)
			;
		for (k++; digits && k < b.len && is_digit(b.ptr[k]); k++)
			;
	}
	return i == a.len && k == b.len;
}

/* Whether a table name means all runs. If there is one run, any name means it: the table had another name where the
 * query was written. A name that differs from those of several files only in its number was meant to choose one. */
static bool means_all(const struct rewrite *r, struct str name)
{
	const struct ow_list *files = &r->names->files;

	if (r->names->runs.count > 1)
		return false;
	for (size_t i = 0; files->count > 1 && i < files->count; i++)
		if (differ_in_numbers(file_stem(files->items[i]), name))
			return false;
	return true;
}

#define LISTED_MAX 20

static void refuse_table(struct rewrite *r, struct str name)
{
	bool runs = r->names->runs.count > 1;
	const struct ow_list *list = runs ? &r->names->runs : &r->names->files;
	char text[600];
	size_t at = 0;

	for (size_t i = 0; i < list->count && i < LISTED_MAX && at < sizeof(text) - 80; i++) {
		struct str item = runs ? str_from(list->items[i]) : file_stem(list->items[i]);

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s", i ? ", " : "",
				       (int)MIN(item.len, 60), item.ptr);
		at = MIN(at, sizeof(text) - 1);
	}
	if (r->status == OW_OK)
		r->status =
			error_set(r->err, OW_E_NOT_FOUND,
				  "no run is called '%.*s'; %s %s%s. Use one of these names in the "
				  "query, trace_events for all of them, or name a run with --run "
				  "NAME=FILE",
				  STR_ARG(name), runs ? "the runs are" : "the files of the run are",
				  text, list->count > LISTED_MAX ? ", …" : "");
}

/* Writes the trace_events that a BigQuery name means: those of one run, of one file, or all. */
static void put_events(struct rewrite *r, struct str table)
{
	const char *file = NULL;

	if (in_list(&r->names->runs, table)) {
		buf_puts(r->out, "(SELECT * FROM trace_events WHERE lower(run) = lower(");
		sql_quote(r->out, table);
		buf_puts(r->out, "))");
	} else if ((file = find_file(r, table))) {
		buf_puts(r->out, "(SELECT * FROM trace_events WHERE source_id IN (SELECT id FROM "
				 "source WHERE path = ");
		sql_quote(r->out, str_from(file));
		buf_puts(r->out, "))");
	} else if (means_all(r, table)) {
		buf_puts(r->out, "trace_events");
	} else {
		refuse_table(r, table);
	}
}

/* Whether a comma separates tables: the last keyword before it, outside of parentheses, is FROM. */
static bool in_from(const struct rewrite *r, size_t i)
{
	static const char *const others[] = {
		"SELECT", "WHERE", "GROUP", "ORDER",   "HAVING",
		"LIMIT",  "ON",	   "USING", "QUALIFY", "WINDOW",
	};
	size_t depth = 0;

	for (i = before(r, i); i < r->count; i = before(r, i)) {
		if (is_char(r, i, ')')) {
			depth++;
		} else if (is_char(r, i, '(') && !depth--) {
			return false;
		} else if (!depth) {
			if (is_word(r, i, "FROM"))
				return true;
			for (size_t k = 0; k < ARRAY_COUNT(others); k++)
				if (is_word(r, i, others[k]))
					return false;
		}
	}
	return false;
}

/* Whether a table name is expected at this token. */
static bool at_table(const struct rewrite *r, size_t i)
{
	size_t last = before(r, i);

	return is_word(r, last, "FROM") || is_word(r, last, "JOIN") ||
	       (is_char(r, last, ',') && in_from(r, last));
}

/* Whether a word may follow a table, and so is not an alias. */
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

/* Adds an alias if necessary: after `FROM p.d.tf115`, the name tf115.name must keep its meaning. */
static void put_alias(const struct rewrite *r, size_t i, struct str name)
{
	size_t next = after(r, i);

	if (is_word(r, next, "AS") || (is_name(r, next) && !ends_table(r, next)))
		return;
	buf_puts(r->out, " AS ");
	sql_quote_name(r->out, name);
}

/* Whether the statement itself defines a table with this name: WITH t AS (…). */
static bool is_defined(const struct rewrite *r, struct str name)
{
	for (size_t i = 0; i < r->count; i++) {
		size_t last = before(r, i), next = after(r, i);

		if (!is_name(r, i) || !same_text(plain_name(&r->tokens[i]), name))
			continue;
		if (is_word(r, last, "WITH") || is_word(r, last, "RECURSIVE") ||
		    (is_word(r, next, "AS") && is_char(r, after(r, next), '(')))
			return true;
	}
	return false;
}

/* Whether a statement of the text creates a table or view with this name. */
static bool is_created(const struct rewrite *r, struct str name)
{
	struct token last = { 0 };

	for (struct str rest = r->whole; rest.len;) {
		struct token token = token_read(rest, false);

		rest = str_skip(rest, token.text.len);
		if (token.kind == TOKEN_BLANK)
			continue;
		if (last.kind == TOKEN_WORD && same_text(plain_name(&token), name) &&
		    (same_text(last.text, STR("TABLE")) || same_text(last.text, STR("VIEW")) ||
		     same_text(last.text, STR("EXISTS"))))
			return true;
		last = token;
	}
	return false;
}

/* Whether a name without dots differs from that of a run or file only in its number: then it was meant to be one. */
static bool means_other_run(const struct rewrite *r, struct str name)
{
	if (r->names->runs.count < 2 || is_defined(r, name) || is_created(r, name))
		return false;
	for (size_t i = 0; i < r->names->runs.count; i++)
		if (differ_in_numbers(str_from(r->names->runs.items[i]), name))
			return true;
	return false;
}

/* Writes a table name; `whole` is `dataset.table`, or the last part of `project`.`dataset`.`table`; `dotted`: it has
 * dots. */
static void put_table(struct rewrite *r, size_t i, struct str whole, bool dotted)
{
	struct str name = last_part(whole);

	dotted |= name.len < whole.len;
	if (relation_find(name) || in_list(&r->names->tables, name) ||
	    (!dotted && !in_list(&r->names->runs, name) && !means_other_run(r, name))) {
		sql_quote_name(r->out, name);
		return;
	}
	put_events(r, name);
	put_alias(r, i, name);
}

static void put_backtick(struct rewrite *r, size_t i)
{
	struct str whole = plain_name(&r->tokens[i]);

	if (at_table(r, i))
		put_table(r, i, whole, false);
	else
		sql_quote_name(r->out, whole);
}

/* Whether a name is a catalog of DuckDB: memory.main.mine is a table of the session. */
static bool is_catalog(struct str name)
{
	return same_text(name, STR("memory")) || same_text(name, STR("temp")) ||
	       same_text(name, STR("system"));
}

/* Rewrites a BigQuery table in parts, `project`.dataset.`table` or project.dataset.table. False for anything else;
 * *end becomes the token after it. */
static bool put_chain(struct rewrite *r, size_t i, size_t *end)
{
	size_t parts = 1, last = i, next;
	bool ticks;

	if (!is_name(r, i) || !at_table(r, i))
		return false;
	ticks = r->tokens[i].kind == TOKEN_BACKTICK;
	while (is_char(r, next = after(r, last), '.') && is_name(r, next = after(r, next))) {
		last = next;
		ticks |= r->tokens[last].kind == TOKEN_BACKTICK;
		parts++;
	}
	if (parts == 1 || is_char(r, after(r, last), '(') ||
	    !(ticks || (parts == 3 && !is_catalog(plain_name(&r->tokens[i])))))
		return false;
	put_table(r, last, plain_name(&r->tokens[last]), true);
	*end = last + 1;
	return true;
}

/* Reads an alias, [AS] name; returns the token after it. */
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

/* Finds the table before UNNEST (FROM `p.d.t` AS t, or CROSS JOIN after it) and its name. Returns the count of
 * tokens when the list comes from plain SQL: a subquery, or a table that the session or the statement made. */
static size_t find_table(const struct rewrite *r, const struct unnest *u, struct str *name)
{
	size_t i = before(r, u->at), first, next;
	struct str alias = { 0 };

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
	if (!is_name(r, first))
		return r->count;
	*name = last_part(plain_name(&r->tokens[first]));
	for (next = after(r, first); is_char(r, next, '.') && is_name(r, after(r, next));
	     next = after(r, after(r, next)))
		*name = plain_name(&r->tokens[after(r, next)]); /* dataset.table without quotes */
	(void)read_alias(r, next, &alias);
	if (u->table.ptr && !same_text(u->table, *name) && !same_text(u->table, alias))
		return r->count;
	if (in_list(&r->names->tables, *name) || is_defined(r, *name) || is_created(r, *name))
		return r->count;
	return first;
}

static void put_unnest(struct rewrite *r, const struct unnest *u)
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

/* The UNNEST whose element has this name, or NULL. */
static const struct unnest *element_of(const struct rewrite *r, size_t i)
{
	if (!is_name(r, i) || is_char(r, before(r, i), '.'))
		return NULL;
	for (size_t k = 0; k < r->unnest_count; k++)
		if (same_text(plain_name(&r->tokens[i]), r->unnests[k].element))
			return &r->unnests[k];
	return NULL;
}

/* Reads the keys after e.args, up to KEYS_MAX; 0 when the tokens are something else. */
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

/* Rewrites e.args.name and similar forms; false for anything else. *end becomes the token after it. */
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

static void find_unnests(struct rewrite *r)
{
	struct unnest *u = r->unnests;
	struct str table = { 0 };

	for (size_t i = 0; i < r->count && r->unnest_count < UNNESTS_MAX; i++) {
		if (!read_unnest(r, i, u))
			continue;
		u->begin = find_table(r, u, &table);
		i = u->end - 1;
		if (u->begin == r->count)
			continue;
		u->table = table;
		u++;
		r->unnest_count++;
	}
}

/* Whether a token is BigQuery's default name for an offset, which DuckDB accepts only in quotes. */
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

/* Whether a token is a text of BigQuery: 'text', or "text" where it is not the name of a column. */
static bool is_text(const struct rewrite *r, size_t i)
{
	char quote = r->tokens[i].text.ptr[0];

	if (!r->bigquery || r->tokens[i].kind != TOKEN_QUOTED)
		return false;
	return quote == '\'' ||
	       (quote == '"' && !is_word(r, before(r, i), "AS") && !is_char(r, before(r, i), '.'));
}

/* Rewrites subscripts: list[OFFSET(2)] counts from 0, list[ORDINAL(2)] and DuckDB from 1. */
static bool put_subscript(const struct rewrite *r, size_t i)
{
	bool offset = is_word(r, i, "OFFSET") || is_word(r, i, "SAFE_OFFSET");

	if (!is_char(r, before(r, i), '[') || !is_char(r, after(r, i), '(') ||
	    !(offset || is_word(r, i, "ORDINAL") || is_word(r, i, "SAFE_ORDINAL")))
		return false;
	buf_puts(r->out, offset ? "1 + " : "");
	return true;
}

/* Whether this is * EXCEPT (a, b), not SELECT … EXCEPT (SELECT …). */
static bool is_star_except(const struct rewrite *r, size_t i)
{
	size_t open = after(r, i), first = after(r, open);

	return is_word(r, i, "EXCEPT") && is_char(r, before(r, i), '*') && is_char(r, open, '(') &&
	       is_name(r, first) && !is_word(r, first, "SELECT") && !is_word(r, first, "FROM") &&
	       !is_word(r, first, "WITH") && !is_word(r, first, "VALUES");
}

/* The number of arguments of a call whose opening parenthesis is at `open`. */
static size_t count_arguments(const struct rewrite *r, size_t open)
{
	size_t count = 1, depth = 0, i = after(r, open);

	if (is_char(r, i, ')'))
		return 0;
	for (; i < r->count; i = after(r, i)) {
		if (is_char(r, i, '(') || is_char(r, i, '['))
			depth++;
		else if (is_char(r, i, ']') || (is_char(r, i, ')') && depth))
			depth -= depth > 0;
		else if (is_char(r, i, ')'))
			break;
		else
			count += !depth && is_char(r, i, ',');
	}
	return count;
}

static bool put_word(struct rewrite *r, size_t i)
{
	const char *renamed = NULL;

	if (put_subscript(r, i))
		return true;
	if (r->bigquery && is_char(r, after(r, i), '('))
		renamed = bigquery_renamed(r->tokens[i].text, count_arguments(r, after(r, i)));
	if (renamed) {
		r->names->functions |= bigquery_function(str_from(renamed));
		buf_puts(r->out, renamed);
		return true;
	}
	if (is_star_except(r, i))
		buf_puts(r->out, "EXCLUDE");
	else if (is_word(r, i, "SAFE_CAST") && is_char(r, after(r, i), '('))
		buf_puts(r->out, "TRY_CAST");
	else
		return false;
	return true;
}

static void put_token(struct rewrite *r, size_t i)
{
	const struct token *token = &r->tokens[i];

	if (token->kind == TOKEN_BACKTICK)
		put_backtick(r, i);
	else if (token->kind == TOKEN_RAW || is_text(r, i))
		token_put_text(r->out, token);
	else if (token->kind == TOKEN_BLANK && token->text.ptr[0] == '#')
		; /* a comment that DuckDB does not know is left out */
	else if (token->kind == TOKEN_WORD && put_word(r, i))
		;
	else if (is_offset_name(r, i))
		buf_puts(r->out, "\"offset\"");
	else
		buf_add_str(r->out, token->text);
}

/* Whether the statement creates a function: CREATE OR REPLACE TEMP MACRO. */
static bool defines_function(const struct rewrite *r, size_t i)
{
	size_t last = before(r, i);

	return (is_word(r, i, "MACRO") || is_word(r, i, "FUNCTION")) &&
	       (is_word(r, last, "CREATE") || is_word(r, last, "REPLACE") ||
		is_word(r, last, "TEMP") || is_word(r, last, "TEMPORARY"));
}

static void put_statement(struct rewrite *r)
{
	size_t k = 0, end = 0;

	find_unnests(r);
	for (size_t i = 0; i < r->count; i++) {
		if (k < r->unnest_count && i == r->unnests[k].begin) {
			put_unnest(r, &r->unnests[k]);
			i = r->unnests[k++].end - 1;
		} else if (put_chain(r, i, &end) || put_args(r, i, &end)) {
			i = end - 1;
		} else {
			r->names->defines |= defines_function(r, i);
			if (r->tokens[i].kind == TOKEN_WORD)
				r->names->functions |= bigquery_function(r->tokens[i].text);
			put_token(r, i);
		}
	}
}

/* Whether a text begins with a notebook line that says how to run the query; *len is its length. */
static bool is_magic(struct str text, size_t *len)
{
	struct str line = str_first(text, MIN(str_find_char(text, '\n'), text.len));

	*len = line.len;
	return str_starts(str_trim(line), STR("%%"));
}

static ow_status read_tokens(struct rewrite *r, struct str text, struct arena *scratch,
			     struct ow_error *err)
{
	size_t count = 0;

	for (struct str rest = text; rest.len; count++)
		rest = str_skip(rest, token_read(rest, r->bigquery).text.len);
	r->tokens = ARENA_ARRAY(scratch, struct token, count + 1);
	if (!r->tokens)
		return error_no_memory(err);
	for (r->count = 0; text.len; text = str_skip(text, r->tokens[r->count++].text.len))
		r->tokens[r->count] = token_read(text, r->bigquery);
	return OW_OK;
}

struct str bigquery_body(struct str text)
{
	size_t len;

	while (text.len && is_magic(text, &len))
		text = str_skip(text, len + 1);
	return text;
}

ow_status bigquery_rewrite(struct str text, struct bigquery_names *names, struct arena *scratch,
			   struct buf *out, struct ow_error *err)
{
	struct str whole = text = bigquery_body(text);

	while (text.len) {
		struct rewrite r = { .names = names, .whole = whole, .out = out, .err = err };
		size_t len = token_statement(text, &r.bigquery);

		OW_TRY(read_tokens(&r, str_first(text, len), scratch, err));
		put_statement(&r);
		OW_TRY(r.status);
		text = str_skip(text, len);
	}
	return out->failed ? error_no_memory(err) : OW_OK;
}

static void put_quoted(struct buf *to, char quote, struct str text)
{
	struct str piece;

	buf_add_char(to, quote);
	for (bool first = true; str_split(&text, quote, &piece); first = false) {
		if (!first) {
			buf_add_char(to, quote);
			buf_add_char(to, quote);
		}
		buf_add_str(to, piece);
	}
	buf_add_char(to, quote);
}

void sql_quote(struct buf *to, struct str text)
{
	put_quoted(to, '\'', text);
}

void sql_quote_name(struct buf *to, struct str name)
{
	put_quoted(to, '"', name);
}
