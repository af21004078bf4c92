/*
 * sqlshell.c: SQL from a person or a text: statements over several lines, the dot commands .tables, .schema, .help and
 * .quit, and completion of tables and columns. Called by `opwatch sql` and by `sql` in the shell; the library runs the
 * statements.
 */
#include "cli/shell/shell.h"

#include "base/nearest.h"
#include "cli/shell/lineedit.h"

#include <strings.h>

bool sqlshell_go_on(void *arg)
{
	(void)arg;
	return !interrupted;
}

bool sqlshell_is_dot(struct str text)
{
	text = str_trim(text);
	return text.len > 1 && text.ptr[0] == '.' && text.ptr[1] >= 'a' && text.ptr[1] <= 'z';
}

static void list_tables(void)
{
	struct ow_part_info table = { .size = sizeof(table) };

	for (size_t i = 0; ow_relation_info(i, &table); i++)
		printf("%-14s %s\n", table.name, table.summary);
}

static void print_column(void *arg, const struct ow_relation_column *c)
{
	(void)arg;
	printf("  %-26s %-8s %s%s%s%s\n", c->name, c->type, c->doc, *c->unit ? " (" : "", c->unit,
	       *c->unit ? ")" : "");
}

static ow_status print_schema(const struct ow_part_info *table)
{
	struct ow_error err = { 0 };
	ow_status status;

	printf("%s: %s\n", table->name, table->summary);
	status = ow_relation_columns(table->name, print_column, NULL, &err);
	if (status == OW_OK && *table->detail) {
		printf("  Options, as %s(NAME := VALUE):\n", table->name);
		status = ow_relation_options(table->name, print_column, NULL, &err);
	}
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status;
}

static ow_status show_schema(struct str name)
{
	size_t least = nearest_limit(name);
	struct ow_part_info table = { .size = sizeof(table) };
	const char *best = NULL;
	bool any = false;

	for (size_t i = 0; ow_relation_info(i, &table); i++) {
		if (name.len && (strlen(table.name) != name.len ||
				 strncasecmp(table.name, name.ptr, name.len) != 0)) {
			nearest_try(name, table.name, &best, &least);
			continue;
		}
		if (any)
			putchar('\n');
		any = true;
		OW_TRY(print_schema(&table));
	}
	if (any)
		return OW_OK;
	complain("opwatch: unknown table '%.*s'", STR_ARG(name));
	complain(best ? "; did you mean '%s'?\n" : "; .tables lists the tables\n", best);
	return OW_E_NOT_FOUND;
}

ow_status sqlshell_dot(struct str text)
{
	struct str rest = str_trim(text), word, name;
	size_t blank = 0;

	while (rest.len && rest.ptr[rest.len - 1] == ';')
		rest = str_trim(str_first(rest, rest.len - 1));
	while (blank < rest.len && rest.ptr[blank] != ' ' && rest.ptr[blank] != '\t')
		blank++;
	word = str_first(rest, blank);
	name = str_trim(str_skip(rest, blank));
	if (str_eq(word, STR(".tables"))) {
		list_tables();
		return OW_OK;
	}
	if (str_eq(word, STR(".schema")))
		return show_schema(name);
	if (str_eq(word, STR(".help"))) {
		printf("End a statement with ;. It may have several lines. Tab completes, Ctrl-C "
		       "cancels.\n"
		       "  .tables          list the tables\n"
		       "  .schema [TABLE]  describe the columns\n"
		       "  .quit            leave (also Ctrl-D)\n");
		return OW_OK;
	}
	complain("opwatch: unknown command '%.*s'; .help lists the commands\n", STR_ARG(word));
	return OW_E_USAGE;
}

static ow_status run_statements(const struct sqlshell *shell, const char *text)
{
	static struct output_stream out; /* 64 KiB, too large for the stack */
	struct ow_write_options options;
	struct terminal terminal = shell->terminal;
	struct ow_error err = { 0 };
	ow_status status;

	terminal_measure(&terminal);
	ow_write_options_init(&options);
	options.width = terminal.out ? terminal.width : 0;
	options.colour = terminal.colour;
	options.limit = shell->limit;
	output_start(&out, shell->pager && terminal.out, terminal.height);
	status = ow_sql_write(shell->sql, text, shell->sink, &options, output_write, &out, &err);
	if (!output_end(&out))
		return output_complain();
	if (status == OW_E_INTERRUPTED && !interrupted)
		return OW_OK; /* the reader has closed the pipe */
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	return status;
}

/* Returns whether the text ends a statement: with a semicolon outside of strings and comments. */
static bool is_complete(struct str text)
{
	char quote = 0, last = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : '\0';

		if (quote) {
			if (quote == '*' ? c == '*' && next == '/' : c == quote) {
				i += quote == '*';
				quote = 0;
			}
		} else if (c == '\'' || c == '"' || c == '`') {
			quote = last = c;
		} else if (c == '-' && next == '-') {
			while (i < text.len && text.ptr[i] != '\n')
				i++;
		} else if (c == '/' && next == '*') {
			quote = '*';
			i++;
		} else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			last = c;
		}
	}
	return !quote && last == ';';
}

static bool is_quit(struct str line)
{
	return str_eq(line, STR(".quit")) || str_eq(line, STR(".exit")) ||
	       str_eq(line, STR("quit")) || str_eq(line, STR("exit"));
}

static ow_status run_text(const struct sqlshell *shell, struct str text)
{
	ow_status status;
	char *copy = malloc(text.len + 1);

	if (!copy) {
		complain("opwatch: out of memory\n");
		return OW_E_NO_MEMORY;
	}
	memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	status = run_statements(shell, copy);
	free(copy);
	return status;
}

/* Returns the offset of the first line that is a dot command and not part of a statement; the end of the
 * text if there is none. */
static size_t find_dot(struct str text)
{
	size_t at = 0, line;

	do {
		struct str before = str_trim(str_first(text, at));

		if (sqlshell_is_dot(str_skip(text, at)) && (!before.len || is_complete(before)))
			return at;
		line = str_find_char(str_skip(text, at), '\n');
		at += line + 1;
	} while (line != STR_NONE);
	return text.len;
}

ow_status sqlshell_run(const struct sqlshell *shell, struct str text)
{
	while (text.len) {
		size_t dot = find_dot(text);
		struct str line;

		if (dot)
			OW_TRY(run_text(shell, str_first(text, dot)));
		text = str_skip(text, dot);
		if (!text.len || !str_split(&text, '\n', &line) || is_quit(str_trim(line)))
			break;
		if (str_trim(line).len)
			OW_TRY(sqlshell_dot(line));
		fflush(stdout);
	}
	return OW_OK;
}

struct completing {
	struct completions *out;
	struct str prefix;
};

static void offer_column(void *arg, const struct ow_relation_column *c)
{
	struct completing *x = arg;
	char *name = arena_cstr(x->out->arena, str_from(c->name));

	for (size_t i = 0; name && i < x->out->count; i++)
		if (strcmp(x->out->items[i], name) == 0)
			return;
	if (name)
		completion_add(x->out, name, x->prefix);
}

static bool is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

static void complete(void *arg, struct str before, struct completions *out)
{
	static const char *const words[] = { "SELECT", "FROM",	"WHERE", "GROUP BY", "ORDER BY",
					     "HAVING", "LIMIT", "JOIN",	 "DESC",     "count(*)",
					     "sum(",   "avg(",	"AS" };
	static const char *const dots[] = { ".tables", ".schema", ".help", ".quit" };
	struct ow_part_info table = { .size = sizeof(table) };
	struct completing x = { .out = out };
	size_t begin = before.len;

	(void)arg;
	while (begin && is_word_char(before.ptr[begin - 1]))
		begin--;
	out->word = begin;
	x.prefix = str_skip(before, begin);
	if (!begin && x.prefix.len && x.prefix.ptr[0] == '.') {
		for (size_t i = 0; i < ARRAY_COUNT(dots); i++)
			completion_add(out, dots[i], x.prefix);
		return;
	}
	for (size_t i = 0; ow_relation_info(i, &table); i++)
		completion_add(out, table.name, x.prefix);
	if (!x.prefix.len)
		return;
	for (size_t i = 0; ow_relation_info(i, &table); i++)
		if (!*table.detail)
			(void)!ow_relation_columns(table.name, offer_column, &x, NULL);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		completion_add(out, words[i], x.prefix);
}

/* Handles one more line; false to leave. */
static bool take_line(const struct sqlshell *shell, struct buf *text, struct str line)
{
	if (!text->len && is_quit(str_trim(line)))
		return false;
	if (!text->len && sqlshell_is_dot(line)) {
		(void)sqlshell_dot(line);
		fflush(stdout);
		return true;
	}
	if (!text->len && !str_trim(line).len)
		return true;
	buf_add_str(text, line);
	buf_add_char(text, '\n');
	if (!text->failed && is_complete(buf_str(text))) {
		(void)sqlshell_run(shell, buf_str(text));
		buf_clear(text);
	}
	return !text->failed;
}

void sqlshell_loop(const struct sqlshell *shell)
{
	struct line_reader *reader = line_open("sql> ", complete, NULL);
	struct buf text;
	struct mem mem;
	bool on = reader != NULL;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	interrupts_catch(true);
	while (on) {
		struct str line;
		enum line_result result;

		line_prompt(reader, text.len ? "...> " : "sql> ");
		result = line_read(reader, &line);
		if (result == LINE_END)
			break;
		if (result == LINE_INTERRUPTED)
			buf_clear(&text);
		else
			on = take_line(shell, &text, line);
	}
	if (str_trim(buf_str(&text)).len) /* runs a last statement without a semicolon */
		(void)sqlshell_run(shell, buf_str(&text));
	buf_release(&text);
	line_close(reader);
}
