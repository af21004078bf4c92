/* runs.c: see runs.h. */
#include "cli/runs.h"

#include <sys/stat.h>

/* A plain file, and what decides which run it is of. */
struct item {
	const char *path;
	struct str
		pattern; /* the name with each number as one #; empty for directories and patterns */
	bool model_part, graph;
	size_t run; /* number + 1 */
};

struct grouping {
	struct args *args;
	struct item *items;
	size_t item_count;
	struct run_files *runs;
	size_t run_count;
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
	return str_skip(name, str_rfind_char(name, '/') + 1); /* STR_NONE + 1 is 0 */
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

/* timeline-12.json → timeline-#.json, with its directory. */
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

static void look_at(struct item *item)
{
	static const char *const graphs[] = { "graphdef", "metagraph", "savedmodel" };
	static const char *const parts[] = { "runmeta", "oplog", "checkpoint" };
	struct ow_estimate estimate = { .size = sizeof(estimate) };

	if (ow_estimate_file(item->path, &estimate, NULL) != OW_OK || !estimate.format)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
		item->graph |= strcmp(estimate.format, graphs[i]) == 0;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		item->model_part |= strcmp(estimate.format, parts[i]) == 0;
}

/* ---- groups ---- */

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

/* Whether two plain files are of one run. One graph takes the parts; of two nobody knows which. */
static bool belong_together(const struct grouping *g, const struct item *a, const struct item *b,
			    size_t graphs)
{
	(void)g;
	if (graphs == 1 && (a->graph || a->model_part) && (b->graph || b->model_part))
		return true;
	return a->pattern.len && str_eq(a->pattern, b->pattern) && !a->graph;
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

/* NAME=PATH[,PATH…] */
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

/* ---- names ---- */

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

	if (!name || args->open.redact)
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
	const struct ow_list *names = &g->args->names;

	if (names->count > g->run_count) {
		complain(
			"opwatch: %zu names for %zu run%s; --one-run and --run say what is a run\n",
			names->count, g->run_count, g->run_count == 1 ? "" : "s");
		return false;
	}
	for (size_t i = 0; i < g->run_count; i++) {
		struct run_files *run = &g->runs[i];
		const char *name = i < names->count ? names->items[i] : run->name;

		if (!name)
			name = short_name(g->args, run->paths[0], run->count > 1);
		if (name && is_taken(g, i, name) && (i < names->count || run->name)) {
			complain("opwatch: two runs are called '%s'\n", name);
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

/* ---- all of it ---- */

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
		if (plain > 1) /* a file alone need not be looked at twice */
			look_at(item);
	}
	return true;
}

bool runs_group(struct args *args, struct run_files **runs, size_t *count)
{
	struct grouping g = { .args = args };
	size_t most = args->file_count + args->given_runs.count + 1;

	g.items = ARENA_ARRAY(args->arena, struct item, most);
	g.runs = ARENA_ARRAY(args->arena, struct run_files, most);
	if (!g.items || !g.runs)
		return no_memory();
	if (args->one_run || (args->names.count == 1 && !args->given_runs.count)) {
		for (size_t i = 0; i < args->file_count; i++)
			if (!add_path(&g, &g.runs[0], args->files[i]))
				return false;
		g.run_count = args->file_count ? 1 : 0;
	} else if (!read_items(&g) || !group_items(&g)) {
		return false;
	}
	for (size_t i = 0; i < args->given_runs.count; i++)
		if (!add_given(&g, args->given_runs.items[i]))
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
	run->profile = load_files(args, exit_code);
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
		complain("opwatch %s: which file? Try 'opwatch help %s'.\n", args->command,
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

	for (size_t i = 0; i < runs->count && code == EXIT_GOOD; i++)
		code = finish_code(args, runs->items[i].profile, status);
	return runs->count ? code : EXIT_FAILED;
}
