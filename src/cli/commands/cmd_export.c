/*
 * cmd_export.c: the tables as files for other programs: Parquet, newline-delimited JSON, CSV, Arrow. The last
 * word of the command line is the folder. Whatever ends it early, nothing half-written stays behind.
 */
#include "cli/progress.h"
#include "cli/runs.h"
#include "cli/signals.h"

/* ---- progress ---- */

static bool on_progress(void *arg, const char *table, uint64_t done, uint64_t total)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (progress_due(line))
		progress_show(line, "writing %.50s: %3.0f %% of %.2f million rows", table,
			      total ? 100.0 * (double)done / (double)total : 100.0,
			      (double)total / 1e6);
	return true;
}

/* ---- the command ---- */

static void tell(const struct args *args, const char *dir, const struct ow_export_summary *s)
{
	if (strcmp(args->sink, "json") == 0) {
		printf("{\"tables\":%" PRIu64 ",\"files\":%" PRIu64 ",\"rows\":%" PRIu64
		       ",\"bytes\":%" PRIu64 "}\n",
		       s->tables, s->files, s->rows, s->bytes);
		return;
	}
	printf("%s: %" PRIu64 " rows of %" PRIu64 " table%s in %" PRIu64 " file%s, %.1f %s\n", dir,
	       s->rows, s->tables, s->tables == 1 ? "" : "s", s->files, s->files == 1 ? "" : "s",
	       (double)s->bytes / (s->bytes < 1000000 ? 1e3 : 1e6),
	       s->bytes < 1000000 ? "kB" : "MB");
	if (args->export.bigquery)
		printf("%s/load.sh loads them into BigQuery\n", dir);
}

/* The last word is the folder, unless -o names it; files may also come with --run. */
static bool take_words(struct args *args, const char **dir)
{
	size_t least = (args->out_file ? 0u : 1u) + (args->given_runs.count ? 0u : 1u);

	if (!args->export.format) {
		complain("opwatch export: into what? Give --to parquet, ndjson, csv or arrow.\n");
		return false;
	}
	if (args->file_count < least) {
		complain("opwatch export: give FILE… and, last, the folder to write to. Try "
			 "'opwatch help export'.\n");
		return false;
	}
	*dir = args->out_file ? args->out_file : args->files[--args->file_count];
	return true;
}

static int run(struct args *args)
{
	struct progress_line line;
	struct ow_export_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	struct runs runs;
	const char *dir;
	ow_status status;
	int code;

	if (!take_words(args, &dir))
		return EXIT_USAGE;
	if (!runs_load(args, 0, &runs, &code))
		return code;
	progress_begin(&line, args->terminal.err);
	args->export.progress = on_progress;
	args->export.progress_arg = &line;
	signals_catch();
	status = ow_export(runs.items, runs.count, &args->export, dir, &summary, &err);
	progress_clear(&line);
	if (status != OW_OK && !signals_caught())
		complain("opwatch: %s\n", err.text);
	if (status == OW_OK)
		tell(args, dir, &summary);
	code = runs_finish_code(args, &runs, status);
	runs_free(&runs);
	signals_pass_on();
	return code;
}

const struct command cmd_export = {
	.name = "export",
	.usage = "FILE… --to parquet|ndjson|csv|arrow DIR [options]",
	.summary = "write the tables as files for other programs",
	.help = "A table becomes one file DIR/event.parquet, or a folder when it is partitioned\n"
		"or split. Files appear whole or not at all. What is a run: as in opwatch sql.\n\n"
		"  --table event,op        only these tables (default: all but the views)\n"
		"  --partition run|step    folders run=NAME, run=NAME/step=5\n"
		"  --sort ts               by this column (default: the table's own order)\n"
		"  --compress gzip|zstd|none   (default: zstd for Parquet, none for others)\n"
		"  --split 256M            another file after about so many bytes\n"
		"  --bigquery              also schemas, and load.sh with the bq load lines\n"
		"  --overwrite             replace what is there\n",
	.run = run,
};
