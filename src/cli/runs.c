/*
 * runs.c: which files of a command line are one run, what the runs are called, and runs on a ClickHouse server; for the
 * commands that compare runs (sql, ask, export, push). A directory or a pattern is one run. Plain files are one run each,
 * unless they belong together: parts of one TensorFlow model (a graph with its run metadata, op log, checkpoint), or files
 * whose names differ in numbers only and which are ranks by their content, or steps by their names. For a query that
 * compares runs each file is one. --one-run, --run NAME=PATH,… and one --name for all override that; several --name
 * name the runs in order, and split files that differ in numbers when there are as many names.
 */
#include "cli/runs.h"

#include <sys/stat.h>

/* A plain file, with the properties that decide which run it belongs to. */
struct item {
	const char *path;
	/* name with each number replaced by #; empty for directories and patterns */
	struct str pattern;
	bool model_part, graph;
	/* the name shows that the file is one step of many: timeline-12.json, step_3.json */
	bool step;
	int32_t rank; /* rank in the file's content, -1 = unknown */
	size_t run;   /* number of the run + 1 */
};

struct grouping {
	struct args *args;
	struct item *items;
	size_t item_count;
	struct run_files *runs;
	size_t run_count;
	bool apart; /* files whose names differ only in numbers are separate runs */
};

static bool no_memory(void)
{
	complain("opwatch: out of memory\n");
	return false;
}

static struct str base_name(const char *path)
{
	struct str name = str_from(path);

	while (name.len > 1 && name.ptr[name.len - 1] == '/')
		name.len--;
	/* without '/' the result is the whole name, because STR_NONE + 1 is 0 */
	return str_skip(name, str_rfind_char(name, '/') + 1);
}

static bool is_plain(const char *path)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return false;
	if (stat(path, &st) == 0)
		return !S_ISDIR(st.st_mode);
	return !strpbrk(path, "*?[");
}

/* Replaces numbers in a name, with its directory: timeline-12.json → timeline-#.json. */
static struct str pattern_of(struct arena *arena, const char *path)
{
	size_t len = strlen(path), dir = len - base_name(path).len, at = 0;
	char *to = arena_push(arena, len + 1);

	if (!to)
		return (struct str){ 0 };
	for (size_t i = 0; i < len; i++) {
		bool digit = i >= dir && path[i] >= '0' && path[i] <= '9';

		if (!digit)
			to[at++] = path[i];
		else if (!at || to[at - 1] != '#')
			to[at++] = '#';
	}
	return str_make(to, at);
}

/* Returns whether a pattern names one step of many: timeline-#.json, run_step_#.json. */
static bool is_step_name(struct str pattern)
{
	size_t at = str_rfind_char(pattern, '#');
	struct str before;

	if (at == STR_NONE || at < 2)
		return false;
	before = str_first(pattern, at - 1);
	return strchr("-_", pattern.ptr[at - 1]) &&
	       (str_ends(before, STR("timeline")) || str_ends(before, STR("step")));
}

static void identify_part(struct item *item)
{
	static const char *const graphs[] = { "graphdef", "metagraph", "savedmodel" };
	static const char *const parts[] = { "runmeta", "oplog", "checkpoint" };
	struct ow_estimate estimate = { .size = sizeof(estimate) };

	if (ow_estimate_file(item->path, &estimate, NULL) != OW_OK || !estimate.format)
		return;
	item->rank = estimate.rank;
	for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
		item->graph |= strcmp(estimate.format, graphs[i]) == 0;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		item->model_part |= strcmp(estimate.format, parts[i]) == 0;
}

static bool add_path(struct grouping *g, struct run_files *run, const char *path)
{
	const char **paths = ARENA_ARRAY(g->args->arena, const char *, run->count + 1);

	if (!paths)
		return no_memory();
	if (run->count)
		memcpy(paths, run->paths, run->count * sizeof(*paths));
	paths[run->count++] = path;
	run->paths = paths;
	return true;
}

/* Returns whether two plain files belong to one run. One graph takes the other parts; with two graphs
 * their owner is unclear. */
static bool belong_together(const struct grouping *g, const struct item *a, const struct item *b,
			    size_t graphs)
{
	if (graphs == 1 && (a->graph || a->model_part) && (b->graph || b->model_part))
		return true;
	if (g->apart || g->args->run.each || !a->pattern.len || !str_eq(a->pattern, b->pattern) ||
	    a->graph)
		return false;
	return (a->step && b->step) || (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank);
}

static bool group_items(struct grouping *g)
{
	size_t graphs = 0;

	for (size_t i = 0; i < g->item_count; i++)
		graphs += g->items[i].graph;
	for (size_t i = 0; i < g->item_count; i++) {
		struct item *item = &g->items[i];

		for (size_t k = 0; k < i && !item->run; k++)
			if (belong_together(g, &g->items[k], item, graphs))
				item->run = g->items[k].run;
		if (!item->run)
			item->run = ++g->run_count;
		if (!add_path(g, &g->runs[item->run - 1], item->path))
			return false;
	}
	return true;
}

/* Parses NAME=PATH[,PATH…]. */
static bool add_given(struct grouping *g, const char *text)
{
	struct run_files *run = &g->runs[g->run_count];
	struct str rest = str_from(text), path;
	size_t equals = str_find_char(rest, '=');

	if (equals == STR_NONE || !equals || equals + 1 == rest.len) {
		complain("opwatch: --run takes NAME=PATH or NAME=PATH,PATH, not '%s'\n", text);
		return false;
	}
	run->name = arena_cstr(g->args->arena, str_first(rest, equals));
	rest = str_skip(rest, equals + 1);
	while (str_split(&rest, ',', &path)) {
		char *copy = arena_cstr(g->args->arena, path);

		if (!copy || !run->name)
			return no_memory();
		if (*copy && !add_path(g, run, copy))
			return false;
	}
	g->run_count++;
	return true;
}

static bool is_name_char(char c)
{
	return c != '#' && c != '*' && c != '?' && c != '[' && c != ']';
}

/* A name for people: without directory, endings, and what numbers or patterns stood for. Files of a profile whose names
 * are hidden hide theirs, too. */
static const char *short_name(const struct args *args, const char *path, bool series)
{
	struct str base = base_name(path);
	char *name = arena_push(args->arena, base.len + 8);
	size_t at = 0;

	if (!name || args->input.open.redact)
		return name ? "run" : NULL;
	for (size_t i = 0; i < base.len; i++) {
		bool digit = base.ptr[i] >= '0' && base.ptr[i] <= '9';

		if (base.ptr[i] == '.' && i > 0 && !digit)
			break;
		if (is_name_char(base.ptr[i]) && !(series && digit))
			name[at++] = base.ptr[i];
	}
	while (at && strchr("-_. ", name[at - 1]))
		at--;
	name[at] = '\0';
	if (!at)
		memcpy(name, strcmp(path, "-") == 0 ? "stdin" : "run", 6);
	return name;
}

static bool is_taken(const struct grouping *g, size_t before, const char *name)
{
	for (size_t i = 0; i < before; i++)
		if (strcmp(g->runs[i].name, name) == 0)
			return true;
	return false;
}

static bool name_runs(struct grouping *g)
{
	const struct ow_list *names = &g->args->run.names;

	if (names->count > g->run_count) {
		complain("opwatch: %zu names for %zu run%s; group the files with --one-run or "
			 "--run\n",
			 names->count, g->run_count, g->run_count == 1 ? "" : "s");
		return false;
	}
	for (size_t i = 0; i < g->run_count; i++) {
		struct run_files *run = &g->runs[i];
		const char *name = i < names->count ? names->items[i] : run->name;

		if (!name)
			name = short_name(g->args, run->paths[0], run->count > 1);
		if (name && is_taken(g, i, name) && (i < names->count || run->name)) {
			complain("opwatch: two runs have the name '%s'\n", name);
			return false;
		}
		for (size_t k = 2; name && is_taken(g, i, name); k++)
			name = arena_printf(g->args->arena, "%s-%zu",
					    short_name(g->args, run->paths[0], run->count > 1), k);
		if (!name)
			return no_memory();
		run->name = name;
	}
	return true;
}

static bool read_items(struct grouping *g)
{
	struct args *args = g->args;
	size_t plain = 0;

	for (size_t i = 0; i < args->file_count; i++)
		plain += is_plain(args->files[i]);
	for (size_t i = 0; i < args->file_count; i++) {
		struct item *item = &g->items[g->item_count++];

		item->path = args->files[i];
		if (!is_plain(item->path))
			continue;
		item->pattern = pattern_of(args->arena, item->path);
		if (!item->pattern.ptr)
			return no_memory();
		item->step = is_step_name(item->pattern);
		item->rank = -1;
		if (plain > 1) /* a single file is always one run */
			identify_part(item);
	}
	return true;
}

/* Splits runs if there are more names than runs: each file that was grouped by its number gets
 * its own name. */
static bool split_by_names(struct grouping *g)
{
	if (g->args->run.names.count <= g->run_count + g->args->run.given.count)
		return true;
	for (size_t i = 0; i < g->item_count; i++)
		g->items[i].run = 0;
	memset(g->runs, 0, g->run_count * sizeof(*g->runs));
	g->run_count = 0;
	g->apart = true;
	return group_items(g);
}

bool runs_group(struct args *args, struct run_files **runs, size_t *count)
{
	struct grouping g = { .args = args };
	size_t most = args->file_count + args->run.given.count + 1;

	g.items = ARENA_ARRAY(args->arena, struct item, most);
	g.runs = ARENA_ARRAY(args->arena, struct run_files, most);
	if (!g.items || !g.runs)
		return no_memory();
	if (args->run.one || (args->run.names.count == 1 && !args->run.given.count)) {
		for (size_t i = 0; i < args->file_count; i++)
			if (!add_path(&g, &g.runs[0], args->files[i]))
				return false;
		g.run_count = args->file_count ? 1 : 0;
	} else if (!read_items(&g) || !group_items(&g) || !split_by_names(&g)) {
		return false;
	}
	for (size_t i = 0; i < args->run.given.count; i++)
		if (!add_given(&g, args->run.given.items[i]))
			return false;
	*runs = g.runs;
	*count = g.run_count;
	return name_runs(&g);
}

static bool load_run(struct args *args, struct runs *runs, const struct run_files *files,
		     int *exit_code)
{
	const char **all_files = args->files;
	size_t all_count = args->file_count;
	struct ow_run *run = &runs->items[runs->count];

	args->files = files->paths;
	args->file_count = files->count;
	run->profile = load_advised(args, exit_code);
	run->name = files->name;
	args->files = all_files;
	args->file_count = all_count;
	runs->count += run->profile != NULL;
	return run->profile != NULL;
}

bool runs_load(struct args *args, size_t first, struct runs *runs, int *exit_code)
{
	const char **all_files = args->files;
	size_t all_count = args->file_count, count = 0;
	struct run_files *files = NULL;
	bool good;

	*runs = (struct runs){ 0 };
	*exit_code = EXIT_USAGE;
	first = MIN(first, all_count);
	args->files += first;
	args->file_count -= first;
	good = runs_group(args, &files, &count);
	args->files = all_files;
	args->file_count = all_count;
	if (!good)
		return false;
	if (!count) {
		complain("opwatch %s: no file given. Try 'opwatch %s --help'.\n", args->command,
			 args->command);
		return false;
	}
	*exit_code = EXIT_FAILED;
	runs->items = ARENA_ARRAY(args->arena, struct ow_run, count);
	if (!runs->items)
		return no_memory();
	for (size_t i = 0; i < count && good; i++)
		good = load_run(args, runs, &files[i], exit_code);
	if (!good)
		runs_free(runs);
	return good;
}

void runs_free(struct runs *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		ow_profile_free(runs->items[i].profile);
	runs->count = 0;
}

int runs_finish_code(const struct args *args, const struct runs *runs, ow_status status)
{
	int code = EXIT_GOOD;

	if (status == OW_E_INTERRUPTED && interrupted)
		return EXIT_INTERRUPTED;

	for (size_t i = 0; i < runs->count && code == EXIT_GOOD; i++)
		code = finish_code(args, runs->items[i].profile, status);
	return runs->count ? code : EXIT_FAILED;
}

static bool keep_going(void *arg)
{
	(void)arg;
	return !interrupted;
}

ow_remote *remote_open(const struct args *args, const char *address, int *exit_code)
{
	struct ow_remote_options options;
	struct ow_error err = { 0 };
	ow_remote *remote;
	ow_status status;

	ow_remote_options_init(&options);
	options.password_file = args->run.password_file;
	options.memory_limit = args->input.open.memory_limit;
	options.keep_going = keep_going;
	interrupts_catch(true);
	status = ow_remote_open(address, &options, &remote, &err);
	if (status == OW_OK)
		return remote;
	*exit_code = report_error(&err, status);
	return NULL;
}

static ow_status show_stdout(const struct args *args, ow_result *result, struct ow_error *err)
{
	static struct output_stream out;
	struct ow_write_options write;
	ow_status status;

	ow_write_options_init(&write);
	write.width = args->terminal.out ? args->terminal.width : 0;
	write.colour = args->terminal.colour;
	write.limit = args->options.view.limit;
	output_start(&out, output_paged(args), args->terminal.height);
	status = ow_result_write(result, args->output.sink, &write, output_write, &out, err);
	if (!output_end(&out))
		return output_failure(err);
	return status == OW_E_INTERRUPTED ? OW_OK : status; /* the reader has closed the pipe */
}

static ow_status ask_and_show(const struct args *args, ow_remote *remote, const char *text,
			      struct ow_error *err)
{
	ow_result *result;
	ow_status status;

	OW_TRY(ow_remote_query(remote, text, &result, err));
	if (!ow_result_columns(result))
		status = OW_OK; /* the statement returned no rows */
	else if (args->output.file && !is_standard_output(args->output.file))
		status = ow_result_write_file(result, args->output.sink, NULL, args->output.file,
					      err);
	else
		status = show_stdout(args, result, err);
	ow_result_free(result);
	return status;
}

int remote_run(struct args *args, const char *text)
{
	struct ow_error err = { 0 };
	int code = EXIT_FAILED;
	ow_remote *remote;
	ow_status status;

	remote = remote_open(args, args->run.server, &code);
	if (!remote)
		return code;
	status = ask_and_show(args, remote, text, &err);
	ow_remote_free(remote);
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return status == OW_E_INTERRUPTED && interrupted ? EXIT_INTERRUPTED : EXIT_FAILED;
}
