/*
 * cmd_export.c: `opwatch export`: the tables as files for other programs: Parquet, newline-delimited JSON, CSV, Arrow. The
 * last word of the command line is the folder. Files appear whole or not at all, however it ends.
 */
#include "cli/runs.h"

struct export_args {
	struct ow_export_options export;
};

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

static void print_summary(const struct args *args, const char *dir,
			  const struct ow_export_summary *s)
{
	const struct export_args *own = args->own;

	if (strcmp(args->output.sink, "json") == 0) {
		printf("{\"schema_version\":1,\"tables\":%" PRIu64 ",\"files\":%" PRIu64
		       ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
		       s->tables, s->files, s->rows, s->bytes);
		return;
	}
	printf("%s: %" PRIu64 " rows of %" PRIu64 " table%s in %" PRIu64 " file%s, %.1f %s\n", dir,
	       s->rows, s->tables, s->tables == 1 ? "" : "s", s->files, s->files == 1 ? "" : "s",
	       (double)s->bytes / (s->bytes < 1000000 ? 1e3 : 1e6),
	       s->bytes < 1000000 ? "kB" : "MB");
	if (own->export.bigquery)
		printf("%s/load.sh loads them into BigQuery\n", dir);
}

/* Takes the last word as the folder, unless -o names it; files may also be given with --run. */
static bool take_words(struct args *args, const char **dir)
{
	struct export_args *own = args->own;
	size_t least = (args->output.file ? 0u : 1u) + (args->run.given.count ? 0u : 1u);

	if (!own->export.format && own->export.bigquery)
		own->export.format =
			"parquet"; /* BigQuery's loader handles Parquet best: typed and small */
	if (!own->export.format) {
		complain("opwatch export: no format given. Use --to parquet, ndjson, csv or "
			 "arrow.\n");
		return false;
	}
	if (args->file_count < least) {
		complain("opwatch export: give FILE… and, last, the folder to write to. Try "
			 "'opwatch export --help'.\n");
		return false;
	}
	*dir = args->output.file ? args->output.file : args->files[--args->file_count];
	return true;
}

static int run_export(struct args *args)
{
	struct export_args *own = args->own;
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
	own->export.progress = on_progress;
	own->export.progress_arg = &line;
	signals_catch();
	status = ow_export(runs.items, runs.count, &own->export, dir, &summary, &err);
	progress_clear(&line);
	if (status != OW_OK && !signals_caught())
		complain("opwatch: %s\n", err.text);
	if (status == OW_OK)
		print_summary(args, dir, &summary);
	code = runs_finish_code(args, &runs, status);
	runs_free(&runs);
	signals_pass_on();
	return code;
}

static void init_export(void *own)
{
	ow_export_options_init(&((struct export_args *)own)->export);
}

static const struct option options[] = {
	{ "to", 't', STORE_TEXT(struct export_args, export.format), .argument = "FORMAT",
	  .help = "parquet, ndjson, csv or arrow" },
	{ "out", 'o', STORE_NAME(struct args, output.file), .argument = "DIR",
	  .help = "write to this folder; then all arguments are files" },
	{ "table", STORE_LIST(struct export_args, export.tables), .argument = "LIST",
	  .help = "export only these tables: event,op", .usual = "all but the views" },
	{ "partition", STORE_TEXT(struct export_args, export.partition), .argument = "BY",
	  .help = "run: folders run=NAME; step: folders run=NAME/step=5" },
	{ "sort", STORE_TEXT(struct export_args, export.sort), .argument = "COLUMN",
	  .help = "sort the rows by this column, such as ts", .usual = "the table's order" },
	{ "compress", STORE_TEXT(struct export_args, export.compress), .argument = "HOW",
	  .help = "gzip, zstd or none", .usual = "zstd for Parquet, none for others" },
	{ "split", STORE_SIZE(struct export_args, export.file_bytes, 1), .argument = "SIZE",
	  .help = "start another file after about this many bytes: 256M" },
	{ "bigquery", STORE_FLAG(struct export_args, export.bigquery),
	  .help = "also write schemas for BigQuery, and load.sh with the bq load commands; without "
		  "--to: Parquet" },
	{ "overwrite", STORE_FLAG(struct export_args, export.overwrite),
	  .help = "replace existing files" },
	{ "json", STORE_WORD(struct args, output.sink), .help = "print the summary as JSON" },
};

const struct command cmd_export = {
	.name = "export",
	.usage = "FILE… --to parquet|ndjson|csv|arrow DIR [options]",
	.summary = "write the tables as files for other programs",
	.help = "A table becomes one file, such as DIR/event.parquet, or a folder when it is\n"
		"partitioned or split. Files appear whole or not at all. Several files are\n"
		"several runs, as in 'opwatch sql'.\n",
	.examples = { "opwatch export run.opw --to parquet tables",
		      "opwatch export run.opw --to csv --table event,op tables --overwrite" },
	.own = OPTIONS(options),
	.groups = { &run_options, &input_options },
	.own_size = sizeof(struct export_args),
	.init = init_export,
	.run = run_export,
};
