/* job_file.c: see job_file.h. */
#include "cli/job_file.h"

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
	char *name = arena_printf(args->arena, "%s.opw", args->job);
	struct ow_error err = { 0 };

	for (char *c = name; c && *c; c++)
		*c = *c == '/' ? '_' : *c;
	if (!name || !scratch_make(&args->job_file, args->arena, name))
		return false;
	if (!give_name(args, args->job_file.path)) {
		complain("opwatch: no memory\n");
	} else if (ow_job_cut(args->socket, args->job, args->last_ns, args->job_file.path, NULL,
			      &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
	} else {
		insert(args, args->job_file.path);
		return true;
	}
	scratch_drop(&args->job_file);
	return false;
}

void job_file_drop(struct args *args)
{
	scratch_drop(&args->job_file);
}
