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
	const char *command; /* word that chose the command; for views, the name of the view */
	bool named;	     /* the command line contains that word */
	const char **files;
	size_t file_count;
	/* while an option is parsed: number of files before it on the command line */
	size_t files_before;
	struct terminal terminal;
	void *own;		     /* the command's own struct, own_size bytes */
	const struct option **given; /* given options, in the order of the command line */
	size_t given_count;
	bool verbose, version, help;

	struct options
		options; /* values of tree_options, part_options, shown_options and --limit */

	struct { /* values of input_options */
		struct ow_open_options open;
		const char *format, *checkpoint;
		/* name of a daemon's job that is read instead of a file, and the daemon's socket */
		const char *job, *socket;
		int64_t last_ns;
		/* temporary file with the job's records while the command reads them */
		struct scratch job_file;
		bool strict;
	} input;

	struct { /* values of output_options */
		/* name of the output: "text", or the one that --json, --csv or --to choose */
		const char *sink;
		const char *file;
		/* output_redirect: temporary file that standard output is written to */
		struct atomic_path *part;
		bool no_pager;
	} output;

	struct { /* values of run_options and server_options */
		struct ow_list names, given;
		bool one;
		bool each; /* every plain file is a run, because the command compares runs */
		const char *server, *password_file;
	} run;
};

struct command {
	const char *name, *usage;
	const char *summary; /* one sentence without a full stop */
	const char *help;    /* paragraphs for --help, or NULL */
	const char *columns; /* SQL table whose columns --help lists, or NULL */
	bool has_answer;     /* --help lists the columns of ow_answer_columns */
	const char *examples[2];
	struct option_group own; /* options for fields of args->own, or of args */
	const struct option_group *groups[7];
	size_t own_size;
	void (*init)(void *own); /* sets the defaults of args->own that are not zero; or NULL */
	/* Returns whether the view `word` accepts an option of the groups; NULL: all options. */
	bool (*takes)(const char *word, const struct option *option);
	/* Receives unlisted options with their value (the parameters of a query); or NULL. */
	bool (*take_other)(struct args *args, struct str name, const char *value);
	int (*run)(struct args *args);
};

#define COMMAND(name) extern const struct command cmd_##name;
#include "cli/commands.def"
#undef COMMAND

extern const struct command *const command_table[];
extern const size_t command_count;
const struct command *command_find(const char *name);

/* groups.c: options that several commands share. */

extern const struct option_group
	general_options; /* options of every command: --verbose, --version, --help */
/* options for reading files, or a job instead of a file */
extern const struct option_group input_options;
extern const struct option_group
	output_options; /* options for the output: --json, --csv, --ndjson, --arrow, --parquet, --to, --out, … */
/* options that select a part of a profile: --step, --time-range, --rank */
extern const struct option_group part_options;
/* options for names and samples: --full-names, --metric, --style */
extern const struct option_group shown_options;
extern const struct option_group tree_options; /* the 21 options of tfprof */
extern const struct option_group peak_options; /* the option --peak of the roofline */
/* options that group files into runs and name them */
extern const struct option_group run_options;
extern const struct option_group server_options; /* options for a server: --on, --password-file */
/* Returns the options of part_options and shown_options alone, for functions that refuse all others; those of trees have tfprof's defaults. */
struct ow_view_options part_of_view(const struct args *args);

#define OPTION_STEP                                                                                \
	{                                                                                          \
		"step", .kind = OPTION_TFPROF_INT64,                                               \
			.offset = offsetof(struct ow_view_options, step), .argument = "N",         \
			.help = "show this step; -1 shows the average of all", .usual = "-1"       \
	}
/* Single options of these groups, for commands that accept only these. */
#define OPTION_JSON                                                                                \
	{                                                                                          \
		"json", STORE_WORD(struct args, output.sink), .help = "print JSON"                 \
	}
#define OPTION_CSV                                                                                 \
	{                                                                                          \
		"csv", STORE_WORD(struct args, output.sink),                                       \
			.help = "print comma-separated values"                                     \
	}
/* Options for the other outputs that programs read as tables. */
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

/* Parses the value of --time-range, and of --keep-time in merge. */
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

/* load.c: opening files. */

/* Opens the files of the command line, with progress on a terminal. Reports damage in a few lines. On failure reports
 * what went wrong and returns NULL. */
ow_profile *load_files(struct args *args, int *exit_code);
/* cmd_advise.c: settings of the advice: the file (NULL: ./opwatch.toml, if it exists), muted rules (may be NULL), and from which part of a
 * step on (0: unchanged). False after a message; *exit_code is set. */
bool apply_settings(ow_profile *profile, const char *file, const struct ow_list *mute,
		    double medium, int *exit_code);
/* Loads files for commands that show advice: with the settings of ./opwatch.toml, if it exists. */
ow_profile *load_advised(struct args *args, int *exit_code);
/* Returns the exit code for a command that worked: --strict turns damage into EXIT_DAMAGED. */
int finish_code(const struct args *args, const ow_profile *profile, ow_status status);
/* Prints that a file is missing and returns EXIT_USAGE. */
int missing_file(const struct args *args);
/* Writes how often a note's problem occurred and where, unless its text says so: " (3 times, first at byte
 * 100)". */
#define NOTE_PLACE 80
void note_place(const ow_result *notes, uint32_t row, char *text, size_t size);

/* For --job: copies the records of the job to a temporary file and inserts it before the files. */
bool job_file_make(struct args *args);
void job_file_drop(struct args *args);
/* Prints a message and returns true if writing to `path` would destroy an input file of the command line. */
bool overwrites_input(const struct args *args, const char *path);

/* groups.c: the output. */

/* Moves --to, --json, --csv and --out into args->options.output; prints a message and returns false if
 * they contradict each other. */
bool output_choose(struct args *args);
/* Sends standard output to --out, for commands that print more than one table. Called when the files are loaded; the file
 * appears at the end of the program, whole, and only when the command worked. */
bool output_redirect(struct args *args);
int output_finish(struct args *args, int code);
bool output_is_text(const struct args *args);
/* Returns whether the output is text, json or csv. */
bool output_is_table(const struct args *args);
/* Returns whether the output may go through a pager. */
bool output_paged(const struct args *args);

/* Run the commands overview and memory on a profile that is already open, also for the shell. */
ow_status overview_show(struct args *args, ow_profile *profile);
ow_status memory_show(struct args *args, ow_profile *profile);
void show_from_args(const struct args *args, ow_profile *profile, struct show *show);
/* Prints an error of the library; returns the exit code for it. */
int report_error(const struct ow_error *err, ow_status status);

/* cmd_help.c: prints help on one command, or on everything; NULL prints the short form. */
int print_help(const struct args *args, const char *topic);
void print_short_help(void);
/* cmd_view.c: returns options of an example for the help on a view. */
const char *view_example(const char *view);
/* cmd_info.c: prints the estimates of --estimate. */
int print_estimates(struct args *args);

/* shell/tfprof.c: the main function under the name tfprof. */
int tfprof_main(int argc, char **argv);
void tfprof_print_help(void);

#endif
