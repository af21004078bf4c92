/* shell.c: see shell.h. */
#include "cli/shell.h"

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/lineedit.h"
#include "cli/shell_complete.h"
#include "cli/shell_words.h"
#include "cli/sqlshell.h"
#include "cli/words.h"

struct shell {
	struct show show;
	struct options initial;	 /* what reset goes back to */
	struct options defaults; /* what set changes */
	struct arena keep;	 /* strings of defaults */
	struct arena line;	 /* of the line being run */
	struct mem mem;
	ow_sql *sql; /* opened with the first question */
	bool quit;
};

struct shell_command {
	const char *name, *help;
	bool tfprof; /* known to the original: offered by completion there */
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

/* The original's order is the order of its completions. */
static const struct shell_command commands[] = {
	{ "scope", "nodes by name scope", true, run_view },
	{ "graph", "nodes by inputs and outputs", true, run_view },
	{ "code", "source lines and their callers", true, run_view },
	{ "op", "operation types", true, run_view },
	{ "advise", "what to look at first", true, run_advise },
	{ "set", "make options the default: set -max_depth 5 -select micros,bytes", true, run_set },
	{ "help", "this; help COMMAND and help -OPTION say more", true, run_help },
	{ "reset", "options back to what they were at the start", true, run_reset },
	{ "quit", "leave (also exit, Ctrl-D)", true, run_quit },
	{ "exit", "leave", true, run_quit },
};

static const struct shell_command *find_command(const struct shell *shell, struct str word)
{
	static const struct shell_command any_view = { "", "", false, run_view };
	struct ow_part_info view;

	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		if (str_eq(word, str_from(commands[i].name)))
			return &commands[i];
	for (size_t i = 0; !shell->show.tfprof && ow_view_info(i, &view); i++)
		if (str_eq(word, str_from(view.name)))
			return &any_view;
	return NULL;
}

/* ---- help ------------------------------------------------------------------------------------- */

static const char sql_help[] = "a query: sql SELECT … ; alone, a prompt for many; sql .tables";

static void list_commands(const struct shell *shell)
{
	struct ow_part_info view;
	struct page page;
	FILE *to = page_open(&page);

	fprintf(to, "Commands:\n");
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
	for (size_t i = 0; !shell->show.tfprof && ow_view_info(i, &view); i++)
		if (!*view.detail)
			fprintf(to, "  %-12s %s\n", view.name, view.summary);
	if (!shell->show.tfprof)
		fprintf(to, "  %-12s %s\n", "sql", sql_help);
	fprintf(to, "An empty line shows the options in force. Tab completes.\n"
		    "Options: 'help -select', 'help -order_by', … say what they take.\n");
	(void)page_close(&page, shell->show.pager && shell->show.terminal.out,
			 shell->show.terminal.height);
}

static void help_option(const struct option *option, bool extended)
{
	char text[1024] = "one of";
	const char *value;

	printf("-%s: %s\n", option->name, option->help);
	if (option->kind == OPTION_SELECT)
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

/* help WORD; an extension of ours: the original ignores what follows. */
static bool help_about(const struct shell *shell, struct str word)
{
	const struct shell_command *command = find_command(shell, word);
	const struct option *option = NULL;
	struct ow_part_info view;

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
			printf("%s: %s\nTakes every option:\n", view.name, view.summary);
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

/* ---- lines ------------------------------------------------------------------------------------ */

/* The original's way: exact names, one dash. */
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

/* "--max-depth" is -max_depth, as on the command line; NULL when there is no memory. */
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
		complain("-n takes a number of rows\n");
		return false;
	}
	options->view.limit = (uint32_t)number;
	return true;
}

/* --to and --out of the command line; -output says both at once. False when the name is neither. */
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

/* opwatch's way: either spelling, --name=value, and -n, --to, --out, --json, --csv. */
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
		options->ordered |= option->kind == OPTION_ORDER;
		return option_check_regexes(options, option);
	}
	if (value.ptr)
		option_explain(option, flag, value);
	else
		complain("%s needs a value\n", flag);
	return false;
}

/* As on the command line: the most expensive first, by what is shown. */
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
	struct ow_part_info view;
	const char *best = NULL;

	if (shell->show.tfprof) {
		complain("E: Invalid argument: First string must be a valid command.\n");
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		nearest_try(word, commands[i].name, &best, &least);
	for (size_t i = 0; ow_view_info(i, &view); i++)
		nearest_try(word, view.name, &best, &least);
	complain("no command is called '%.*s'", STR_ARG(word));
	complain(best ? "; did you mean '%s'?\n" : "; 'help' lists them\n", best);
}

/* False when nothing is asked for. The original takes options after `help` and does nothing with them. */
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

/* ---- SQL -------------------------------------------------------------------------------------- */

static bool open_sql(struct shell *shell)
{
	struct ow_run run = { shell->show.profile, "run" };
	struct ow_sql_options options;
	struct ow_error err = { 0 };

	if (shell->sql)
		return true;
	ow_sql_options_init(&options);
	options.progress = sqlshell_go_on;
	if (ow_sql_open(&run, 1, &options, &shell->sql, &err) == OW_OK)
		return true;
	complain("opwatch: %s\n", err.text);
	return false;
}

/* `sql SELECT …` asks once; `sql` alone asks until Ctrl-D. */
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

/* ---- completion ------------------------------------------------------------------------------- */

static void complete_command(const struct shell *shell, struct str prefix, struct completions *out)
{
	struct ow_part_info view;

	for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
		completion_add(out, commands[i].name, prefix);
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
