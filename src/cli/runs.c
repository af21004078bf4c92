/* runs.c: see runs.h. */
#include "cli/runs.h"

/* The last part of a path, or "run" when that is no text. */
static struct str file_name(const char *file)
{
	struct str name = str_from(file);
	size_t slash;

	while (name.len > 1 && str_ends(name, STR("/")))
		name = str_first(name, name.len - 1);
	slash = str_rfind_char(name, '/');
	if (slash != STR_NONE && slash + 1 < name.len)
		name = str_skip(name, slash + 1);
	if (!name.len || !utf8_valid(name) || str_eq(name, STR(".")) || str_eq(name, STR("..")) ||
	    str_eq(name, STR("-")))
		name = STR("run");
	return name;
}

static bool is_taken(const struct runs *runs, const char *name)
{
	for (size_t i = 0; i < runs->count; i++)
		if (strcmp(runs->items[i].name, name) == 0)
			return true;
	return false;
}

/* trace.json, and for another one of that name trace.json-2. */
static const char *name_run(struct args *args, const struct runs *runs, const char *file)
{
	struct str base = file_name(file);
	const char *name = arena_cstr(args->arena, base);

	for (unsigned n = 2; name && is_taken(runs, name); n++)
		name = arena_printf(args->arena, "%.*s-%u", STR_ARG(base), n);
	return name;
}

static bool check_names(const struct args *args, size_t files)
{
	const struct ow_list *names = &args->names;

	if (names->count > 1 && names->count != files) {
		complain("opwatch %s: %zu names for %zu files: give one --name for all, or one "
			 "for "
			 "each\n",
			 args->command, names->count, files);
		return false;
	}
	for (size_t i = 0; i < names->count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(names->items[i], names->items[k]) == 0) {
				complain("opwatch %s: --name %s is given twice\n", args->command,
					 names->items[i]);
				return false;
			}
	return true;
}

static bool load_run(struct args *args, struct runs *runs, const char **files, size_t count,
		     const char *name, int *exit_code)
{
	const char **all_files = args->files;
	size_t all_count = args->file_count;
	struct ow_run *run = &runs->items[runs->count];

	if (!name)
		return false;
	args->files = files;
	args->file_count = count;
	run->profile = load_files(args, exit_code);
	run->name = name;
	args->files = all_files;
	args->file_count = all_count;
	runs->count += run->profile != NULL;
	return run->profile != NULL;
}

bool runs_load(struct args *args, size_t first, struct runs *runs, int *exit_code)
{
	size_t count = args->file_count - MIN(first, args->file_count);
	const char **files = args->files + first;
	bool good = true;

	*runs = (struct runs){ .items = ARENA_ARRAY(args->arena, struct ow_run, count + 1) };
	*exit_code = EXIT_FAILED;
	if (!runs->items)
		return false;
	if (!check_names(args, count)) {
		*exit_code = EXIT_USAGE;
		return false;
	}
	if (!count || args->names.count == 1)
		return load_run(args, runs, files, count,
				args->names.count ? args->names.items[0] : "", exit_code);
	for (size_t i = 0; i < count && good; i++)
		good = load_run(args, runs, files + i, 1,
				args->names.count ? args->names.items[i]
						  : name_run(args, runs, files[i]),
				exit_code);
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
