/* job_file.c: see job_file.h. */
#include "cli/job_file.h"

#include "cli/signals.h"

#include <errno.h>
#include <unistd.h>

/* The name of a query comes before the files. */
static size_t place_of(const struct args *args)
{
	return strcmp(args->command, "ask") == 0 && args->file_count ? 1 : 0;
}

/* There is room: the option and its value were words, too. */
static void insert(struct args *args, const char *path)
{
	size_t at = place_of(args);

	memmove(&args->files[at + 1], &args->files[at],
		(args->file_count - at) * sizeof(*args->files));
	args->files[at] = path;
	args->file_count++;
}

/* It is called what people asked for it by. */
static bool give_name(struct args *args, const char *path)
{
	const char **pair = ARENA_ARRAY(args->arena, const char *, 2);

	if (!pair)
		return false;
	pair[0] = path;
	pair[1] = args->job;
	args->open.renamed = (struct ow_list){ pair, 2 };
	return true;
}

bool job_file_make(struct args *args)
{
	const char *base = getenv("TMPDIR");
	char *folder =
		arena_printf(args->arena, "%s/opwatch-XXXXXX", base && *base ? base : "/tmp");
	char *name = arena_cstr(args->arena, str_from(args->job));
	struct ow_error err = { 0 };
	char *path;

	if (!folder || !name || !mkdtemp(folder)) {
		complain("opwatch: %s: %s\n", folder ? folder : "memory", strerror(errno));
		return false;
	}
	args->job_folder = folder;
	for (char *c = name; *c; c++)
		*c = *c == '/' ? '_' : *c;
	path = arena_printf(args->arena, "%s/%s.opw", folder, name);
	args->job_file = path;
	if (path)
		signals_guard_cut(path, folder);
	if (path && !give_name(args, path))
		path = NULL;
	if (path && ow_job_cut(args->socket, args->job, args->last_ns, path, NULL, &err) == OW_OK) {
		insert(args, path);
		return true;
	}
	complain("opwatch: %s\n", path ? err.text : "no memory");
	job_file_drop(args);
	return false;
}

void job_file_drop(struct args *args)
{
	if (args->job_file)
		unlink(args->job_file);
	if (!args->job_folder)
		return;
	rmdir(args->job_folder);
	signals_guard_end();
	args->job_file = args->job_folder = NULL;
}
