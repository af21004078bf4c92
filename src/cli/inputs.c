/* inputs.c: see inputs.h. */
#include "cli/inputs.h"

#include <glob.h>
#include <sys/stat.h>

static bool is_same_file(const char *path, const struct stat *out)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == out->st_dev && st.st_ino == out->st_ino;
}

/* A file, or a pattern when there is no file of that name. */
static bool names_file(const char *word, const struct stat *out)
{
	bool found = false;
	struct stat st;
	glob_t files;

	if (is_same_file(word, out))
		return true;
	if (!strpbrk(word, "*?[") || stat(word, &st) == 0 || glob(word, 0, NULL, &files) != 0)
		return false;
	for (size_t i = 0; i < files.gl_pathc && !found; i++)
		found = is_same_file(files.gl_pathv[i], out);
	globfree(&files);
	return found;
}

/* NAME=PATH[,PATH…] */
static bool run_names_file(struct arena *arena, const char *word, const struct stat *out)
{
	struct str rest = str_from(word), path;

	rest = str_skip(rest, MIN(str_find_char(rest, '='), rest.len - 1) + 1);
	while (str_split(&rest, ',', &path)) {
		const char *copy = arena_cstr(arena, path);

		if (copy && names_file(copy, out))
			return true;
	}
	return false;
}

bool overwrites_input(const struct args *args, const char *path)
{
	bool found = false;
	struct stat out;

	if (!path || stat(path, &out) != 0 || !S_ISREG(out.st_mode))
		return false;
	for (size_t i = 0; i < args->file_count && !found; i++)
		found = names_file(args->files[i], &out);
	for (size_t i = 0; i < args->given_runs.count && !found; i++)
		found = run_names_file(args->arena, args->given_runs.items[i], &out);
	if (found)
		complain(
			"opwatch: %s would be overwritten, which is read here: give another name\n",
			path);
	return found;
}
