/*
 * command.h: what a command of opwatch is, and what its command line became. One file cmd_<name>.c exports
 * `const struct command cmd_<name>`; one line COMMAND(<name>) in commands.def registers it for dispatch, --help and the
 * completion scripts. Every view is a command, too, without a line of its own: cmd_view.c.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/atomic_file.h"
#include "cli/option.h"
#include "cli/terminal/scratch.h"
#include "cli/terminal/show.h"

#include <opwatch/live.h>
#include <opwatch/push.h>
#include <opwatch/sql.h>

/* Exit codes: 0 something usable was read, 1 nothing was or the work failed, 2 wrong usage, 3 damage with --strict, 130
 * Ctrl-C ended a query. */
enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DAMAGED = 3, EXIT_INTERRUPTED = 130 };

/* One command line. A command reads the groups that it lists, and its own struct in `own`. */
struct args {
	struct arena *arena;
	const struct command *chosen;
	const char *command; /* the word that chose the command: for views, the view's name */
	bool named;	     /* the command line has that word */
	const char **files;
	size_t file_count;
	size_t files_before; /* while an option is parsed: files before it on the command line */
	struct terminal terminal;
	void *own;		     /* of the command: own_size bytes */
	const struct option **given; /* options in the order of the command line */
	size_t given_count;
	bool verbose, version, help;

	struct options options; /* tree_options, part_options, --limit */

	struct { /* input_options */
		struct ow_open_options open;
		const char *format, *checkpoint;
		const char *job, *socket; /* a job of the daemon instead of a file */
		int64_t last_ns;
		struct scratch job_file; /* the job's records while the command reads them */
		bool strict;
	} input;

	struct {		  /* output_options */
		const char *sink; /* "text", or what --json, --csv or --to name */
		const char *file;
		struct atomic_path
			*part; /* output_redirect: standard output is this file until it is whole */
		bool no_pager;
	} output;

	struct { /* run_options, server_options */
		struct ow_list names, given;
		bool one;
		bool each; /* every plain file is a run: the command compares them */
		const char *server, *password_file;
	} run;
};

struct command {
	const char *name, *usage;
	const char *summary; /* a sentence without a full stop */
	const char *help;    /* paragraphs for --help, or NULL */
	const char *columns; /* the table of SQL whose columns --help lists, or NULL */
	bool has_answer;     /* --help lists the columns of ow_answer_columns */
	const char *examples[2];
	struct option_group own; /* fields of args->own, or of args */
	const struct option_group *groups[6];
	size_t own_size;
	void (*init)(void *own); /* defaults of args->own, beside zeroes; or NULL */
	/* Whether the view `word` takes an option of the groups; NULL: all. */
	bool (*takes)(const char *word, const struct option *option);
	/* Takes options that it does not list, with their value: the parameters of a query; or NULL. */
	bool (*take_other)(struct args *args, struct str name, const char *value);
	int (*run)(struct args *args);
};

#define COMMAND(name) extern const struct command cmd_##name;
#include "cli/commands.def"
#undef COMMAND

extern const struct command *const command_table[];
extern const size_t command_count;
const struct command *command_find(const char *name);

/* ---- options that several commands share (groups.c) ---- */

extern const struct option_group
	general_options;			/* of every command: --verbose, --version, --help */
extern const struct option_group input_options; /* how files are read; a job instead of a file */
extern const struct option_group
	output_options; /* --json, --csv, --ndjson, --arrow, --parquet, --to, --out, … */
extern const struct option_group part_options;	 /* which part of a profile: --step, --rank, … */
extern const struct option_group tree_options;	 /* tfprof's 21 */
extern const struct option_group peak_options;	 /* --peak, of the roofline */
extern const struct option_group run_options;	 /* which files are one run, and its name */
extern const struct option_group server_options; /* --on, --password-file */

#define OPTION_STEP                                                                                \
	{                                                                                          \
		"step", .kind = OPTION_TFPROF_INT64,                                               \
			.offset = offsetof(struct ow_view_options, step), .argument = "N",         \
			.help = "show this step; -1 shows the average of all", .usual = "-1"       \
	}
/* Single options of these groups, for commands that take no more of them. */
#define OPTION_JSON                                                                                \
	{                                                                                          \
		"json", STORE_WORD(struct args, output.sink), .help = "print JSON"                 \
	}
#define OPTION_CSV                                                                                 \
	{                                                                                          \
		"csv", STORE_WORD(struct args, output.sink),                                       \
			.help = "print comma-separated values"                                     \
	}
/* The other outputs that programs read as tables. */
#define OPTIONS_FOR_PROGRAMS                                                                       \
	{ "ndjson", STORE_WORD(struct args, output.sink),                                          \
	  .help = "print newline-delimited JSON, an object per row" },                             \
		{ "arrow", STORE_WORD(struct args, output.sink),                                   \
		  .help = "write a stream of Arrow's IPC format, to a pipe or -o FILE" },          \
	{                                                                                          \
		"parquet", STORE_WORD(struct args, output.sink),                                   \
			.help = "write a Parquet file, to -o FILE"                                 \
	}
#define OPTION_OUT(sentence)                                                                       \
	{                                                                                          \
		"out", 'o', STORE_NAME(struct args, output.file), .argument = "FILE",              \
								  .help = (sentence)               \
	}
#define OPTION_LIMIT                                                                               \
	{                                                                                          \
		"limit", 'n', STORE_UINT32(struct args, options.view.limit, 0, UINT32_MAX),        \
			.argument = "N", .help = "print at most N rows; 0: all"                    \
	}
#define OPTION_MEMORY_LIMIT                                                                        \
	{                                                                                          \
		"memory-limit", STORE_SIZE(struct args, input.open.memory_limit, 0),               \
			.argument = "SIZE", .help = "fail instead of using more memory: 500M, 8G"  \
	}
#define OPTION_STRICT                                                                              \
	{                                                                                          \
		"strict", STORE_FLAG(struct args, input.strict),                                   \
			.help = "exit with status 3 when an input is damaged"                      \
	}
#define OPTION_STEP_MARKER                                                                         \
	{                                                                                          \
		"step-marker", STORE_TEXT(struct args, input.open.step_marker),                    \
			.argument = "REGEX",                                                       \
			.help = "slices of a trace with a matching name are the steps"             \
	}

/* Also what --keep-time of merge is. */
bool parse_time_range(struct args *args, const struct option *option, const char *value);
#define OPTION_TIME_RANGE                                                                          \
	{                                                                                          \
		"time-range", STORE_PARSED(parse_time_range),                                      \
			.argument = "A:B",                                                         \
			.help = "show only this time, from the first event on: 100:250 (ms), "     \
				"1.5s:2s"                                                          \
	}

bool parse_style(struct args *args, const struct option *option, const char *value);
#define OPTION_STYLE                                                                               \
	{                                                                                          \
		"style", STORE_PARSED(parse_style),                                                \
			.argument = "WORDS",                                                       \
			.help = "stacks and flame graphs: inverted, left-heavy, icicle, kernel, "  \
				"lines, …"                                                       \
	}
#define OPTION_METRIC                                                                              \
	{                                                                                          \
		"metric", STORE_TEXT(struct args, options.view.metric),                            \
			.argument = "NAME",                                                        \
			.help = "sampled profiles: show this metric; 'opwatch metrics' lists "     \
				"them"                                                             \
	}

/* ---- files (load.c) ---- */

/* Opens the files of the command line, with progress on a terminal. Reports damage in a few lines. On failure reports
 * what went wrong and returns NULL. */
ow_profile *load_files(struct args *args, int *exit_code);
/* cmd_advise.c: settings of the advice: the file (NULL: ./opwatch.toml, if it exists), muted rules (may be NULL), and from which part of a
 * step on (0: unchanged). False after a message; *exit_code is set. */
bool apply_settings(ow_profile *profile, const char *file, const struct ow_list *mute,
		    double medium, int *exit_code);
/* load_files for what shows advice: with the settings of ./opwatch.toml, if it exists. */
ow_profile *load_advised(struct args *args, int *exit_code);
/* The exit code for a command that worked: --strict turns damage into EXIT_DAMAGED. */
int finish_code(const struct args *args, const ow_profile *profile, ow_status status);
/* "which file? …": returns EXIT_USAGE. */
int missing_file(const struct args *args);
/* Where the damage is that a note describes, unless its text says so, and how often: " (3 times, first at byte 100)". */
#define NOTE_PLACE 80
void note_place(const ow_result *notes, uint32_t row, char *text, size_t size);

/* With --job: copies the records of the job to a temporary file and puts that before the files. */
bool job_file_make(struct args *args);
void job_file_drop(struct args *args);
/* Reports, and returns true, when writing to `path` would destroy a file that the command line names as input. */
bool overwrites_input(const struct args *args, const char *path);

/* ---- where the output goes (groups.c) ---- */

/* Moves --to, --json, --csv and --out into args->options.output; reports and returns false when that makes no sense. */
bool output_choose(struct args *args);
/* Sends standard output to --out, for commands that print more than one table. Called when the files are loaded; the file
 * appears at the end of the program, whole, and only when the command worked. */
bool output_redirect(struct args *args);
int output_finish(struct args *args, int code);
bool output_is_text(const struct args *args);
/* text, json or csv. */
bool output_is_table(const struct args *args);
/* Whether what is printed may go through a pager. */
bool output_paged(const struct args *args);

/* The commands overview and memory on a profile that is open already, also for the shell. */
ow_status overview_show(struct args *args, ow_profile *profile);
ow_status memory_show(struct args *args, ow_profile *profile);
void show_from_args(const struct args *args, ow_profile *profile, struct show *show);
/* Prints an error of the library; returns the exit code for it. */
int report_error(const struct ow_error *err, ow_status status);

/* cmd_help.c: help on one command, or on everything; NULL is the short form. */
int print_help(const struct args *args, const char *topic);
void print_short_help(void);
/* cmd_view.c: options of an example for the help on a view. */
const char *view_example(const char *view);
/* cmd_info.c */
int print_estimates(struct args *args);

/* shell/tfprof.c: the program under the name tfprof. */
int tfprof_main(int argc, char **argv);
void tfprof_print_help(void);

#endif
