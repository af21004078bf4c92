/* load.c: opening what the command line names: progress, damage in one line, exit codes. */
#include "cli/command.h"
#include "cli/job_file.h"
#include "cli/progress.h"

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
	else /* also of a stream: nobody knows how much will come */
		progress_show(line, "reading %.50s: %.1f MB", file, (double)total / 1e6);
	return true;
}

static ow_status open_all(struct args *args, ow_profile **profile, struct ow_error *err)
{
	struct ow_file_options options = { .size = sizeof(options),
					   .format = args->format,
					   .step = INT64_MIN };

	if (!args->format && !args->checkpoint)
		return ow_profile_open(args->files, args->file_count, &args->open, profile, err);
	if (!args->format) {
		OW_TRY(ow_profile_open(args->files, args->file_count, &args->open, profile, err));
		return ow_profile_set_checkpoint(*profile, args->checkpoint, err);
	}
	OW_TRY(ow_profile_new(&args->open, profile, err));
	for (size_t i = 0; i < args->file_count; i++)
		OW_TRY(ow_profile_add_file(*profile, args->files[i], &options, NULL, err));
	if (args->checkpoint)
		OW_TRY(ow_profile_set_checkpoint(*profile, args->checkpoint, err));
	return ow_profile_freeze(*profile, err);
}

#define NOTES_TOLD 3

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

static void tell_note(const ow_result *notes, uint32_t row)
{
	const char *source = note_text(notes, row, "source");
	char place[NOTE_PLACE];

	note_place(notes, row, place, sizeof(place));
	complain("opwatch: %s%s%s%s\n", source, *source ? ": " : "", note_text(notes, row, "text"),
		 place);
}

/* The first few notes of damage; the overview shows them itself. */
static void tell_damage(const struct args *args, ow_profile *profile)
{
	uint32_t told = 0, left = 0;
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
		if (told++ < NOTES_TOLD)
			tell_note(notes, row);
		else
			left++;
	}
	if (left)
		complain("opwatch: … and %u more: opwatch notes %s%s%s\n", left,
			 args->job ? "--job " : "", args->job ? args->job : args->files[0],
			 args->file_count > 1 ? " …" : "");
	ow_result_free(notes);
}

ow_profile *load_files(struct args *args, int *exit_code)
{
	struct progress_line line;
	ow_profile *profile = NULL;
	struct ow_error err = { 0 };
	ow_status status;

	if (!args->file_count) {
		complain("opwatch %s: which file? Try 'opwatch help %s'.\n", args->command,
			 args->command);
		*exit_code = EXIT_USAGE;
		return NULL;
	}
	progress_begin(&line, args->terminal.err);
	args->open.progress = on_progress;
	args->open.progress_arg = &line;
	status = open_all(args, &profile, &err);
	job_file_drop(args);
	progress_clear(&line);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		ow_profile_free(profile);
		*exit_code = status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
		return NULL;
	}
	tell_damage(args, profile);
	return profile;
}

int finish_code(const struct args *args, const ow_profile *profile, ow_status status)
{
	if (status == OW_E_USAGE)
		return EXIT_USAGE;
	if (status != OW_OK)
		return EXIT_FAILED;
	return args->strict && ow_profile_damaged(profile) ? EXIT_DAMAGED : EXIT_GOOD;
}

void show_from_args(const struct args *args, ow_profile *profile, struct show *show)
{
	*show = (struct show){ .profile = profile,
			       .args = args,
			       .terminal = args->terminal,
			       .pager = !args->no_pager && args->terminal.in };
}
