/*
 * shell.c: the shell: load once, then ask many questions. Under the name tfprof it takes the original's lines and prints
 * its texts; under our own name it also takes every view, both spellings of options, quotes, SQL and `help WORD`. The
 * lines come from lineedit.c, SQL goes to sqlshell.c, and show.c runs the views.
 */
#include "cli/shell/shell.h"

#include "cli/command.h"
#include "base/nearest.h"
#include "cli/shell/lineedit.h"
#include "cli/words.h"

#include <dirent.h>
#include <sys/stat.h>

/* Options in addition to tfprof's 21, for the shell of opwatch. */
struct shell_option {
	const char *spelling; /* short spelling: "-n" */
	const char *longer;   /* long spelling: "--limit", or the same */
	const char *help;
};
enum { SHELL_LIMIT, SHELL_TO, SHELL_OUT, SHELL_JSON, SHELL_CSV, SHELL_OPTIONS };
static const struct shell_option shell_options[SHELL_OPTIONS] = {
	{ "-n", "--limit", "print at most N rows" },
	{ "-t", "--to", "write another output: json, csv, flamegraph, ..." },
	{ "-o", "--out", "write to this file" },
	{ "--json", "--json", "the same as --to json" },
	{ "--csv", "--csv", "the same as --to csv" },
};

static bool shell_next_word(struct str *rest, struct str *word)
{
	while (rest->len && rest->ptr[0] == ' ')
		*rest = str_skip(*rest, 1);
	if (!rest->len)
		return false;
	*word = str_first(*rest, MIN(str_find_char(*rest, ' '), rest->len));
	*rest = str_skip(*rest, word->len);
	return true;
}

/* Returns the offset of a quote in the first word: at its start, or behind the first '='. STR_NONE if
 * there is no closing quote. */
static size_t quote_at(struct str rest)
{
	struct str word = str_first(rest, MIN(str_find_char(rest, ' '), rest.len));
	size_t at = 0;

	if (word.ptr[0] == '-')
		at = str_find_char(word, '=') +
		     1; /* without '=' the offset is 0, because STR_NONE + 1 is 0 */
	if (at >= word.len || (word.ptr[at] != '\'' && word.ptr[at] != '"') ||
	    str_find_char(str_skip(rest, at + 1), word.ptr[at]) == STR_NONE)
		return STR_NONE;
	return at;
}

static bool shell_next_quoted(struct arena *arena, struct str *rest, struct str *word)
{
	struct str inside, before;
	const char *text;
	size_t at;

	while (rest->len && rest->ptr[0] == ' ')
		*rest = str_skip(*rest, 1);
	if (!rest->len)
		return false;
	at = quote_at(*rest);
	if (at == STR_NONE)
		return shell_next_word(rest, word);
	before = str_first(*rest, at);
	inside = str_skip(*rest, at + 1);
	inside = str_first(inside, str_find_char(inside, rest->ptr[at]));
	*rest = str_skip(*rest, at + inside.len + 2);
	text = arena_printf(arena, "%.*s%.*s", STR_ARG(before), STR_ARG(inside));
	*word = str_from(text ? text : "");
	return text != NULL;
}

static const struct option *shell_option_named(struct str word, bool tfprof)
{
	char name[64];
	size_t dashes = !tfprof && str_starts(word, STR("--")) ? 2 : 1;

	if (word.len < 2 || word.ptr[0] != '-' || word.len >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", STR_ARG(str_skip(word, dashes)));
	for (char *c = name; !tfprof && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return option_find(str_from(name));
}

static bool shell_option_is(struct str word, size_t option)
{
	return str_eq(word, str_from(shell_options[option].spelling)) ||
	       str_eq(word, str_from(shell_options[option].longer));
}

struct shell {
	struct show show;
	struct options initial;	 /* options that the command reset restores */
	struct options defaults; /* options that the command set changes */
	struct arena keep;	 /* memory of the strings in `defaults` */
	struct arena line;	 /* memory of the line being run */
	struct mem mem;
	ow_sql *sql; /* SQL session, opened with the first query */
	bool quit;
};

struct shell_command {
	const char *name, *help;
	bool tfprof; /* the command exists in tfprof, so completion offers it there */
	void (*run)(struct shell *shell, const char *name, const struct options *options);
};

static void run_view(struct shell *shell, const char *name, const struct options *options)
{
	(void)show_view(&shell->show, name, options);
}

static void run_advise(struct shell *shell, const char *name, const struct options *options)
{
	(void)name;
	(void)show_advice(&shell->show, options);
}

static void run_set(struct shell *shell, const char *name, const struct options *options)
{
	struct arena fresh;
	struct options copy;

	(void)name;
	arena_init(&fresh, &shell->mem);
	if (!options_copy(&copy, options, &fresh)) {
		arena_release(&fresh);
		complain("E: out of memory\n");
		return;
	}
	arena_release(&shell->keep);
	shell->keep = fresh;
	shell->defaults = copy;
}

static void run_reset(struct shell *shell, const char *name, const struct options *options)
{
	(void)name;
	(void)options;
	shell->defaults = shell->initial;
}

static void run_quit(struct shell *shell, const char *name, const struct options *options)
{
	(void)name;
	(void)options;
	shell->quit = true;
}

static void run_help(struct shell *shell, const char *name, const struct options *options);

/* Commands in the order of tfprof's completions. */
static const struct shell_command commands[] = {
	{ "scope", "nodes by name scope", true, run_view },
	{ "graph", "nodes by inputs and outputs", true, run_view },
	{ "code", "source lines and their callers", true, run_view },
	{ "op", "operation types", true, run_view },
	{ "advise", "what is slow or wasteful, and what to change", true, run_advise },
	{ "set", "make options the default: set -max_depth 5 -select micros,bytes", true, run_set },
	{ "help", "list the commands; help COMMAND and help -OPTION describe one", true, run_help },
	{ "reset", "set all options to what they were at the start", true, run_reset },
	{ "quit", "leave (also exit, Ctrl-D)", true, run_quit },
	{ "exit", "leave", true, run_quit },
};

/* Runs a command of the command line with the options of the shell; prints text, JSON or CSV. */
static void run_report(struct shell *shell, const char *name, const struct options *options)
{
	struct args args = *shell->show.args;
	const char *type = options->output.type;

	args.options = *options;
	args.terminal = shell->show.terminal;
	args.output.sink = strcmp(type, "stdout") == 0 ? "text" : type;
	if (options->output.outfile && *options->output.outfile) {
		complain("%s cannot write to a file here; use 'opwatch %s FILE --out …'\n", name,
			 name);
		return;
	}
	if (!output_is_table(&args))
		complain("%s is text, JSON or CSV here\n", name);
	else if (strcmp(name, "memory") == 0)
		(void)memory_show(&args, shell->show.profile);
	else
		(void)overview_show(&args, shell->show.profile);
}

static const struct shell_command own_commands[] = {
	{ "overview", "contents, where the time goes and advice", false, run_report },
	{ "memory", "memory over time, at the peak by its users, from step to step", false,
	  run_report },
};

/* Returns the number of commands that only opwatch has; 0 under the name tfprof. */
static size_t own_command_count(const struct shell *shell)
{
	return shell->show.tfprof || !shell->show.args ? 0 : ARRAY_COUNT(own_commands);
}

static const struct shell_command *find_command(const struct shell *shell, struct str word)
{
	static const struct shell_command any_view = { "", "", false, run_view };
	struct ow_part_info view = { .size = sizeof(view) };

	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (str_eq(word, str_from(commands[i].name)))
			return &commands[i];
	for (size_t i = 0; i < own_command_count(shell); i++)
		if (str_eq(word, str_from(own_commands[i].name)))
			return &own_commands[i];
	for (size_t i = 0; !shell->show.tfprof && ow_view_info(i, &view); i++)
		if (str_eq(word, str_from(view.name)))
			return &any_view;
	return NULL;
}

static const char sql_help[] = "run a query: sql SELECT …; sql alone starts a prompt";

static void list_commands(const struct shell *shell)
{
	struct ow_part_info view = { .size = sizeof(view) };
	struct page page;
	FILE *to = page_open(&page);

	fprintf(to, "Commands:\n");
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
	for (size_t i = 0; i < own_command_count(shell); i++)
		fprintf(to, "  %-12s %s\n", own_commands[i].name, own_commands[i].help);
	for (size_t i = 0; !shell->show.tfprof && ow_view_info(i, &view); i++)
		if (!*view.detail)
			fprintf(to, "  %-12s %s\n", view.name, view.summary);
	if (!shell->show.tfprof)
		fprintf(to, "  %-12s %s\n", "sql", sql_help);
	fprintf(to, "An empty line shows the current options. Tab completes.\n"
		    "'help -select', 'help -order_by', … describe an option.\n");
	(void)page_close(&page, shell->show.pager && shell->show.terminal.out,
			 shell->show.terminal.height);
}

static void help_option(const struct option *option, bool extended)
{
	char text[1024] = "one of";
	const char *value;

	printf("-%s: %s\n", option->name, option->help);
	if (option->kind == OPTION_TFPROF_SELECT)
		snprintf(text, sizeof(text), "any of");
	for (size_t i = 0; (value = option_value(option, extended, i)); i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s %s", i ? "," : "", value);
	}
	if (option_value(option, extended, 0))
		words_wrap(stdout, "", text, 2, 80);
}

static void print_own_option(const struct shell_option *option)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s%s", option->spelling,
		 option->spelling == option->longer ? "" : ", ",
		 option->spelling == option->longer ? "" : option->longer);
	printf("  %-28s%s\n", name, option->help);
}

static bool help_own_option(const struct shell *shell, struct str word)
{
	for (size_t i = 0; !shell->show.tfprof && i < SHELL_OPTIONS; i++)
		if (shell_option_is(word, i)) {
			print_own_option(&shell_options[i]);
			return true;
		}
	return false;
}

/* Prints help on a word. tfprof ignores the text after `help`. */
static bool help_about(const struct shell *shell, struct str word)
{
	const struct shell_command *command = find_command(shell, word);
	const struct option *option = NULL;
	struct ow_part_info view = { .size = sizeof(view) };

	if (help_own_option(shell, word))
		return true;
	option = shell_option_named(word, shell->show.tfprof);
	if (option) {
		help_option(option, !shell->show.tfprof);
		return true;
	}
	if (!shell->show.tfprof && str_eq(word, STR("sql"))) {
		printf("sql: %s\n", sql_help);
		return true;
	}
	if (!command)
		return false;
	for (size_t i = 0; ow_view_info(i, &view); i++)
		if (str_eq(word, str_from(view.name))) {
			printf("%s: %s\nOptions:\n", view.name, view.summary);
			for (size_t k = 0; k < OPTION_COUNT; k++)
				printf("  -%-27s%s\n", option_table[k].name, option_table[k].help);
			for (size_t k = 0; !shell->show.tfprof && k < SHELL_OPTIONS; k++)
				print_own_option(&shell_options[k]);
			return true;
		}
	printf("%s: %s\n", command->name, command->help);
	return true;
}

static void run_help(struct shell *shell, const char *name, const struct options *options)
{
	(void)name;
	(void)options;
	if (shell->show.tfprof)
		tfprof_print_help();
	else
		list_commands(shell);
}

/* Parses an option as tfprof does: exact names, one dash. */
static bool parse_tfprof_word(struct shell *shell, struct options *options, struct str word,
			      struct str next, bool *used)
{
	struct ow_error err = { 0 };

	if (option_parse_word(options, &shell->line, word, next, used, &err))
		return true;
	complain("E: Invalid argument: %s\n", err.text);
	return false;
}

static bool unknown_option(struct str word, struct str name)
{
	size_t least = nearest_limit(name);
	const char *best = NULL;

	for (size_t i = 0; i < OPTION_COUNT; i++)
		nearest_try(name, option_table[i].name, &best, &least);
	complain("unknown option '%.*s'", STR_ARG(word));
	if (best)
		complain("; did you mean -%s?", best);
	complain("\n");
	return false;
}

/* Turns "--max-depth" into -max_depth, as on the command line; NULL if memory runs out. */
static const char *plain_name(struct shell *shell, struct str word)
{
	char *name = arena_cstr(&shell->line, word), *from = name;

	while (from && *from == '-')
		from++;
	for (char *at = from; at && *at; at++)
		if (*at == '-')
			*at = '_';
	return from;
}

static bool parse_limit(struct options *options, struct str value)
{
	int64_t number;

	if (!str_to_i64(value, &number) || number < 0 || number > UINT32_MAX) {
		complain("-n takes a number of rows, not '%.*s'\n", STR_ARG(value));
		return false;
	}
	options->view.limit = (uint32_t)number;
	return true;
}

/* Detects --to and --out, which -output combines. False if the name is neither. */
static bool is_output(const char *name, bool *file)
{
	*file = strcmp(name, "out") == 0 || strcmp(name, "o") == 0;
	return *file || strcmp(name, "to") == 0 || strcmp(name, "t") == 0;
}

static bool parse_output(struct shell *shell, struct output *output, bool file, struct str value)
{
	struct ow_error err = { 0 };

	if (!value.len) {
		complain("%s\n", file ? "--out needs a file" : "--to needs an output");
		return false;
	}
	if (!file && output_parse(output, true, &shell->line, value, &err))
		return true;
	if (!file) {
		complain("%s\n", err.text);
		return false;
	}
	output->outfile = arena_cstr(&shell->line, value);
	if (strcmp(output->type, "stdout") == 0)
		output->type = "file";
	return output->outfile;
}

/* Parses an option of opwatch's shell: either spelling, --name=value, and -n, --to, --out,
 * --json, --csv. */
static bool parse_own_word(struct shell *shell, struct options *options, struct str word,
			   struct str next, bool *used)
{
	size_t equals = str_find_char(word, '=');
	struct str value = equals == STR_NONE ? next : str_skip(word, equals + 1);
	const char *name = plain_name(shell, str_first(word, MIN(equals, word.len)));
	const struct option *option = name ? option_find(str_from(name)) : NULL;
	struct ow_error err = { 0 };
	char flag[64];
	bool file;

	*used = false;
	if (!name || word.ptr[0] != '-')
		return unknown_option(word, word);
	if (strcmp(name, "json") == 0 || strcmp(name, "csv") == 0) {
		options->output = (struct output){ .type = name };
		return true;
	}
	if (is_output(name, &file)) {
		*used = equals == STR_NONE && value.ptr;
		return parse_output(shell, &options->output, file, value);
	}
	if (!option && strcmp(name, "n") != 0 && strcmp(name, "limit") != 0)
		return unknown_option(word, str_from(name));
	*used = equals == STR_NONE && value.ptr;
	if (!option)
		return parse_limit(options, value);
	snprintf(flag, sizeof(flag), "-%s", name);
	if (option_parse_word(options, &shell->line, str_from(flag), value, used, &err)) {
		*used = *used && equals == STR_NONE;
		options->ordered |= option->kind == OPTION_TFPROF_ORDER;
		return option_check_regexes(options, option);
	}
	if (value.ptr)
		option_explain(option, flag, value);
	else
		complain("%s needs a value\n", flag);
	return false;
}

/* Orders by the selected column, the most expensive first, as on the command line. */
static void order_by_selected(struct ow_view_options *view)
{
	const char *metric = main_metric(&view->select);

	view->order_by = metric ? metric : "micros";
}

static bool take_word(struct shell *shell, struct str *rest, struct str *word)
{
	return shell->show.tfprof ? shell_next_word(rest, word)
				  : shell_next_quoted(&shell->line, rest, word);
}

static bool parse_options(struct shell *shell, struct str rest, struct options *options)
{
	struct str word;

	bool tfprof = shell->show.tfprof;

	while (take_word(shell, &rest, &word)) {
		struct str after = rest, next = { 0 };
		bool used, good;

		if (!take_word(shell, &after, &next))
			next.ptr = NULL;
		good = tfprof ? parse_tfprof_word(shell, options, word, next, &used)
			      : parse_own_word(shell, options, word, next, &used);
		if (!good)
			return false;
		if (used)
			rest = after;
	}
	if (!tfprof && !options->ordered)
		order_by_selected(&options->view);
	return true;
}

static void list_options(struct shell *shell)
{
	struct buf text;

	buf_init(&text, &shell->mem);
	options_list(&shell->defaults, &text);
	fwrite(text.ptr, 1, text.len, stdout);
	buf_release(&text);
}

static void unknown_command(const struct shell *shell, struct str word)
{
	size_t least = nearest_limit(word);
	struct ow_part_info view = { .size = sizeof(view) };
	const char *best = NULL;

	if (shell->show.tfprof) {
		complain("E: Invalid argument: First string must be a valid command.\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		nearest_try(word, commands[i].name, &best, &least);
	for (size_t i = 0; i < own_command_count(shell); i++)
		nearest_try(word, own_commands[i].name, &best, &least);
	for (size_t i = 0; ow_view_info(i, &view); i++)
		nearest_try(word, view.name, &best, &least);
	complain("unknown command '%.*s'", STR_ARG(word));
	complain(best ? "; did you mean '%s'?\n" : "; 'help' lists the commands\n", best);
}

/* Handles words after `help`; false if there are none. tfprof parses options there and ignores
 * them. */
static bool help_words(const struct shell *shell, struct str rest)
{
	struct str word;

	if (!shell_next_word(&rest, &word))
		return false;
	if (shell->show.tfprof)
		return !str_trim(rest).len && help_about(shell, word);
	do {
		if (help_about(shell, word))
			continue;
		if (word.ptr[0] == '-')
			(void)unknown_option(word, str_skip(word, 1));
		else
			unknown_command(shell, word);
	} while (shell_next_word(&rest, &word));
	fflush(stdout);
	return true;
}

static bool open_sql(struct shell *shell)
{
	struct ow_run run = { shell->show.profile, "run" };
	struct ow_sql_options options;
	struct ow_error err = { 0 };

	if (shell->sql)
		return true;
	ow_sql_options_init(&options);
	options.keep_going = sqlshell_go_on;
	if (ow_sql_open(&run, 1, &options, &shell->sql, &err) == OW_OK)
		return true;
	complain("opwatch: %s\n", err.text);
	return false;
}

/* Runs SQL: `sql SELECT …` runs one query; `sql` alone prompts until Ctrl-D. */
static void run_sql(struct shell *shell, struct str text)
{
	struct sqlshell sql = { .terminal = shell->show.terminal,
				.sink = "text",
				.pager = shell->show.pager };

	text = str_trim(text);
	if (sqlshell_is_dot(text)) {
		(void)sqlshell_dot(text);
		return;
	}
	if (!open_sql(shell))
		return;
	sql.sql = shell->sql;
	if (text.len)
		(void)sqlshell_run(&sql, text);
	else
		sqlshell_loop(&sql);
}

static void run_line(struct shell *shell, struct str line)
{
	const struct shell_command *command;
	struct options options = shell->defaults;
	struct str rest = line, word;
	char name[64];

	options.given = 0; /* options of `set` apply only to views that use them */

	terminal_measure(&shell->show.terminal);
	if (!shell_next_word(&rest, &word)) {
		list_options(shell);
		return;
	}
	if (!shell->show.tfprof && str_eq(word, STR("sql"))) {
		run_sql(shell, rest);
		fflush(stdout);
		return;
	}
	command = find_command(shell, word);
	if (!command) {
		unknown_command(shell, word);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", STR_ARG(word));
	if (command->run == run_help && help_words(shell, rest))
		return;
	if (!parse_options(shell, rest, &options))
		return;
	command->run(shell, name, &options);
	fflush(stdout);
}

static void add_options(bool tfprof, struct str prefix, struct completions *out)
{
	bool longer = prefix.len > 1 && prefix.ptr[1] == '-';
	char name[64];

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (longer && !tfprof)
			option_spell(name, sizeof(name), option_table[i].name);
		else
			snprintf(name, sizeof(name), "-%s", option_table[i].name);
		completion_add(out, arena_cstr(out->arena, str_from(name)), prefix);
	}
	for (size_t i = 0; !tfprof && i < SHELL_OPTIONS; i++)
		completion_add(out, shell_options[i].longer, prefix);
}

/* Adds values of an option; values of lists are completed piece by piece, and more may follow. */
static void add_values(const struct option *option, bool tfprof, struct str value,
		       struct completions *out)
{
	bool list = option->kind == OPTION_TFPROF_SELECT;
	size_t comma = list ? str_rfind_char(value, ',') : STR_NONE;
	const char *candidate;

	if (comma != STR_NONE) {
		out->word += comma + 1;
		value = str_skip(value, comma + 1);
	}
	out->goes_on = list && !tfprof;
	for (size_t i = 0; (candidate = option_value(option, !tfprof, i)); i++)
		completion_add(out, candidate, value);
}

/* Adds a file name. Names with blanks are left out, because they would need quotes. */
static void add_file(const char *folder, const char *name, struct str prefix,
		     struct completions *out)
{
	const char *path = arena_printf(out->arena, "%s%s", folder, name);
	struct stat st;

	if (!path || strchr(name, ' ') || (name[0] == '.' && !prefix.len) ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		completion_add(out, arena_printf(out->arena, "%s/", name), prefix);
	else
		completion_add(out, arena_cstr(out->arena, str_from(name)), prefix);
}

static void add_files(struct str typed, struct completions *out)
{
	/* without '/' the offset is 0, because STR_NONE + 1 is 0 */
	size_t slash = str_rfind_char(typed, '/') + 1;
	const char *folder = arena_cstr(out->arena, str_first(typed, slash));
	struct dirent *entry;
	DIR *dir;

	dir = folder ? opendir(*folder ? folder : ".") : NULL;
	if (!dir)
		return;
	out->word += slash;
	while ((entry = readdir(dir)))
		add_file(folder, entry->d_name, str_skip(typed, slash), out);
	closedir(dir);
	completions_sort(out);
}

/* Adds values of an option whose name is complete; false if it has none. */
static bool add_value(bool tfprof, struct str name, struct str value, struct completions *out)
{
	static const struct str outfile = STR("outfile=");
	const struct option *option = shell_option_named(name, tfprof);
	size_t at;

	if (!tfprof && shell_option_is(name, SHELL_OUT)) {
		add_files(value, out);
		return true;
	}
	if (!tfprof && shell_option_is(name, SHELL_TO))
		option = option_find(STR("output"));
	if (!option)
		return false;
	at = option->kind == OPTION_TFPROF_OUTPUT ? str_find(value, outfile) : STR_NONE;
	if (at != STR_NONE) {
		out->word += at + outfile.len;
		add_files(str_skip(value, at + outfile.len), out);
	} else {
		add_values(option, tfprof, value, out);
	}
	return true;
}

/* Returns the last word of a text. */
static struct str last_word(struct str text)
{
	while (text.len && text.ptr[text.len - 1] == ' ')
		text.len--;
	return str_skip(text, str_rfind_char(text, ' ') + 1);
}

static void shell_complete_option(bool tfprof, struct str before, struct completions *out)
{
	size_t blank = str_rfind_char(before, ' ');
	struct str word = str_skip(before, blank + 1),
		   previous = last_word(str_first(before, blank));
	size_t equals = str_find_char(word, '=');

	out->word = blank + 1;
	if (!tfprof && word.len && word.ptr[0] == '-' && equals != STR_NONE) {
		out->word += equals + 1;
		(void)add_value(tfprof, str_first(word, equals), str_skip(word, equals + 1), out);
		return;
	}
	if (word.len && word.ptr[0] == '-')
		add_options(tfprof, word, out);
	else if (!add_value(tfprof, previous, word, out) || (tfprof && !out->count))
		add_options(tfprof, word, out);
}

static void complete_command(const struct shell *shell, struct str prefix, struct completions *out)
{
	struct ow_part_info view = { .size = sizeof(view) };

	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		completion_add(out, commands[i].name, prefix);
	for (size_t i = 0; i < own_command_count(shell); i++)
		completion_add(out, own_commands[i].name, prefix);
	for (size_t i = 0; !shell->show.tfprof && ow_view_info(i, &view); i++)
		if (!*view.detail)
			completion_add(out, view.name, prefix);
	if (!shell->show.tfprof)
		completion_add(out, "sql", prefix);
}

static void complete(void *arg, struct str before, struct completions *out)
{
	const struct shell *shell = arg;
	size_t blank = str_rfind_char(before, ' ');

	if (blank == STR_NONE) {
		complete_command(shell, before, out);
		return;
	}
	if (str_starts(before, STR("help "))) {
		out->word = blank + 1;
		complete_command(shell, str_skip(before, blank + 1), out);
	}
	if (!out->count)
		shell_complete_option(shell->show.tfprof, before, out);
}

int shell_run(const struct show *show, const struct options *defaults)
{
	struct shell shell = { .show = *show, .initial = *defaults, .defaults = *defaults };
	struct line_reader *reader;

	if (!show->tfprof && !defaults->ordered)
		order_by_selected(&shell.initial.view);
	shell.defaults = shell.initial;

	mem_init(&shell.mem, 0);
	arena_init(&shell.keep, &shell.mem);
	arena_init(&shell.line, &shell.mem);
	reader = line_open(show->tfprof ? "tfprof> " : "opwatch> ", complete, &shell);
	if (!reader) {
		complain("out of memory\n");
		return EXIT_FAILED;
	}
	interrupts_catch(true);
	while (!shell.quit) {
		struct str line;
		enum line_result result = line_read(reader, &line);

		if (result == LINE_END)
			break;
		if (result == LINE_READ)
			run_line(&shell, line);
		arena_clear(&shell.line);
	}
	interrupts_catch(false);
	ow_sql_close(shell.sql);
	line_close(reader);
	arena_release(&shell.line);
	arena_release(&shell.keep);
	return EXIT_GOOD;
}
