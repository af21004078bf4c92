/*
 * load.c: opening the files that the command line names: a job of the daemon in their place, progress on a terminal, damage
 * in a few lines, exit codes, and the check that no input is overwritten. Called by every command that reads files. Which
 * files are one run is in runs.c.
 */
#include "cli/command.h"

#include <glob.h>
#include <sys/stat.h>

static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (!progress_due(line))
		return true;
	if (done < total)
		progress_show(line, "reading %.50s: %3.0f %% of %.1f MB", file,
			      100.0 * (double)done / (double)total, (double)total / 1e6);
	else /* also for a stream, whose length is unknown */
		progress_show(line, "reading %.50s: %.1f MB", file, (double)total / 1e6);
	return true;
}

static ow_status open_all(struct args *args, ow_profile **profile, struct ow_error *err)
{
	struct ow_file_options options = { .size = sizeof(options),
					   .format = args->input.format,
					   .step = INT64_MIN };

	if (!args->input.format && !args->input.checkpoint)
		return ow_profile_open(args->files, args->file_count, &args->input.open, profile,
				       err);
	if (!args->input.format) {
		OW_TRY(ow_profile_open(args->files, args->file_count, &args->input.open, profile,
				       err));
		return ow_profile_set_checkpoint(*profile, args->input.checkpoint, err);
	}
	OW_TRY(ow_profile_new(&args->input.open, profile, err));
	for (size_t i = 0; i < args->file_count; i++)
		OW_TRY(ow_profile_add_file(*profile, args->files[i], &options, NULL, err));
	if (args->input.checkpoint)
		OW_TRY(ow_profile_set_checkpoint(*profile, args->input.checkpoint, err));
	return ow_profile_freeze(*profile, err);
}

#define NOTES_PRINTED 3

static const char *note_text(const ow_result *notes, uint32_t row, const char *column)
{
	return ow_result_text(notes, row, ow_result_find(notes, column), NULL);
}

void note_place(const ow_result *notes, uint32_t row, char *text, size_t size)
{
	uint32_t offset = ow_result_find(notes, "offset");
	long long at = ow_result_int(notes, row, offset);
	long long count = ow_result_int(notes, row, ow_result_find(notes, "count"));
	bool placed = ow_result_known(notes, row, offset) &&
		      strcmp(note_text(notes, row, "kind"), "info") != 0 &&
		      !strstr(note_text(notes, row, "text"), "(at byte ");

	*text = '\0';
	if (placed && count > 1)
		snprintf(text, size, " (%lld times, first at byte %lld)", count, at);
	else if (placed)
		snprintf(text, size, " (at byte %lld)", at);
	else if (count > 1)
		snprintf(text, size, " (%lld times)", count);
}

static void print_note(const ow_result *notes, uint32_t row)
{
	const char *source = note_text(notes, row, "source");
	char place[NOTE_PLACE];

	note_place(notes, row, place, sizeof(place));
	complain("opwatch: %s%s%s%s\n", source, *source ? ": " : "", note_text(notes, row, "text"),
		 place);
}

/* Prints the first few notes of damage; the overview shows them itself. */
static void print_damage(const struct args *args, ow_profile *profile)
{
	uint32_t printed = 0, left = 0;
	struct ow_error err;
	ow_result *notes;

	if (!ow_profile_damaged(profile) || strcmp(args->command, "notes") == 0 ||
	    strcmp(args->command, "overview") == 0)
		return;
	if (ow_view(profile, "notes", NULL, &notes, &err) != OW_OK)
		return;
	for (uint32_t row = 0; row < ow_result_rows(notes); row++) {
		if (strcmp(note_text(notes, row, "kind"), "info") == 0)
			continue;
		if (printed++ < NOTES_PRINTED)
			print_note(notes, row);
		else
			left++;
	}
	if (left)
		complain("opwatch: … and %u more: opwatch notes %s%s%s\n", left,
			 args->input.job ? "--job " : "",
			 args->input.job ? args->input.job : args->files[0],
			 args->file_count > 1 ? " …" : "");
	ow_result_free(notes);
}

int missing_file(const struct args *args)
{
	complain("opwatch %s: no file given. Try 'opwatch %s --help'.\n", args->command,
		 args->command);
	return EXIT_USAGE;
}

ow_profile *load_files(struct args *args, int *exit_code)
{
	struct progress_line line;
	ow_profile *profile = NULL;
	struct ow_error err = { 0 };
	ow_status status;

	if (!args->file_count) {
		*exit_code = missing_file(args);
		return NULL;
	}
	progress_begin(&line, args->terminal.err);
	/* for diff and report --base, which compare files of one command */
	args->input.open.redact_alike = true;
	args->input.open.progress = on_progress;
	args->input.open.progress_arg = &line;
	status = open_all(args, &profile, &err);
	job_file_drop(args);
	progress_clear(&line);
	if (status != OW_OK) {
		ow_profile_free(profile);
		*exit_code = report_error(&err, status);
		return NULL;
	}
	print_damage(args, profile);
	return profile;
}

int finish_code(const struct args *args, const ow_profile *profile, ow_status status)
{
	if (status == OW_E_USAGE)
		return EXIT_USAGE;
	if (status != OW_OK)
		return EXIT_FAILED;
	return args->input.strict && ow_profile_damaged(profile) ? EXIT_DAMAGED : EXIT_GOOD;
}

/* Inserts a file. There is room, because the option and its value were words, too. */
static void insert_file(struct args *args, const char *path)
{
	/* for ask, the name of a query comes before the files */
	size_t at = strcmp(args->command, "ask") == 0 && args->file_count ? 1 : 0;

	memmove(&args->files[at + 1], &args->files[at],
		(args->file_count - at) * sizeof(*args->files));
	args->files[at] = path;
	args->file_count++;
}

/* Makes tables and messages show the name of the job, not the path of the temporary file. */
static bool name_job_file(struct args *args, const char *path)
{
	const char **pair = ARENA_ARRAY(args->arena, const char *, 2);

	if (!pair)
		return false;
	pair[0] = path;
	pair[1] = args->input.job;
	args->input.open.renamed = (struct ow_list){ pair, 2 };
	return true;
}

bool job_file_make(struct args *args)
{
	char *name = arena_printf(args->arena, "%s.opw", args->input.job);
	struct ow_error err = { 0 };

	for (char *c = name; c && *c; c++)
		*c = *c == '/' ? '_' : *c;
	if (!name || !scratch_make(&args->input.job_file, args->arena, name))
		return false;
	if (!name_job_file(args, args->input.job_file.path)) {
		complain("opwatch: out of memory\n");
	} else if (ow_job_cut(args->input.socket, args->input.job, args->input.last_ns,
			      args->input.job_file.path, NULL, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
	} else {
		insert_file(args, args->input.job_file.path);
		return true;
	}
	scratch_drop(&args->input.job_file);
	return false;
}

void job_file_drop(struct args *args)
{
	scratch_drop(&args->input.job_file);
}

static bool is_same_file(const char *path, const struct stat *out)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == out->st_dev && st.st_ino == out->st_ino;
}

/* Returns whether a word names a file, or is a pattern that matches it. */
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

/* Returns whether a word NAME=PATH[,PATH…] names the file. */
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
	for (size_t i = 0; i < args->run.given.count && !found; i++)
		found = run_names_file(args->arena, args->run.given.items[i], &out);
	if (found)
		complain("opwatch: %s is one of the inputs and would be overwritten; choose "
			 "another name "
			 "with --out\n",
			 path);
	return found;
}
