/*
 * command.h: what a command of opwatch is. One file cmd_<name>.c exports `const struct command
 * cmd_<name>`; one line COMMAND(<name>) in commands.def registers it for dispatch, --help and the
 * completion scripts. Every view is a command, too, without a line of its own: see cmd_view.c.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/cli.h"
#include "cli/scratch.h"
#include "cli/show.h"

struct args {
	struct arena *arena;
	const char *command; /* the word that chose the command: for views, the view's name */
	const char **files;
	size_t file_count;
	struct options options; /* tfprof's */
	struct ow_open_options open;
	struct ow_merge_options merge;
	struct ow_export_options export;
	struct ow_list names;		   /* of the runs */
	struct ow_list params, query_dirs; /* of named queries */
	bool show;
	struct ow_push_options push;
	struct ow_record_options record;
	struct ow_stacks_options stacks;
	bool record_stacks; /* --stacks */
	struct ow_capture_options capture;
	bool kineto; /* capture */
	struct ow_daemon_options daemon;
	const char *job, *socket; /* of the daemon */
	struct scratch job_file;  /* job_file.h */
	int64_t last_ns;
	bool env, detach;
	bool once;	     /* top */
	const char *on;	     /* a server to ask instead of files */
	const char *push_to; /* --to, when it is a server */
	const char *password_file;
	const char *checkpoint, *format, *out_file;
	char *out_part;	  /* args_redirect: standard output is this until it is whole */
	const char *sink; /* "text", or what --json, --csv, --to ask for */
	struct terminal terminal;
	bool strict, no_pager, estimate, verify, verbose, version, help;
	bool hide_dataflow, show_memory; /* timelines */
	/* runs: cli/runs.h */
	struct ow_list given_runs; /* --run; names are in names */
	bool one_run;
	/* sql */
	const char *query_file, *temp_dir;
	uint32_t threads;
	bool allow_io, parquet;
	bool limit_given, depth_given, select_given, order_given;
	const struct flag **given; /* flags as they came */
	size_t given_count;
};

struct command {
	const char *name, *usage, *summary;
	const char *help; /* more lines for --help, or NULL */
	/* The flags it takes, separated by blanks, beside those that only it has: others are refused; NULL = all, and its
	 * help tells those that are not another command's. */
	const char *flags;
	const char *out; /* what --out is of it, where it is not for what is printed; or NULL */
	int (*run)(struct args *args);
	bool takes_job; /* itself; for others --job is a file */
};

#define COMMAND(name) extern const struct command cmd_##name;
#include "cli/commands.def"
#undef COMMAND

extern const struct command *const command_table[];
extern const size_t command_count;
const struct command *command_find(const char *name);

/* load.c: opens the files of the command line, with progress on a terminal; says what went wrong and
 * returns NULL. Damage is told in one line on stderr. */
ow_profile *load_files(struct args *args, int *exit_code);

/* Where the damage that a note tells of is, unless its text says so, and how often: " (3 times, first at
 * byte 100)". Empty when there is nothing to say. */
#define NOTE_PLACE 80
void note_place(const ow_result *notes, uint32_t row, char *text, size_t size);
/* Exit code for a command that worked: --strict turns damage into EXIT_DAMAGED. */
int finish_code(const struct args *args, const ow_profile *profile, ow_status status);

/* args.c */
bool args_parse(struct args *args, int argc, char **argv);
/* Refuses what the command would not heed, wherever it stands. */
bool args_check_given(const struct args *args);
/* Moves --to, --json, --csv and --out into options.output; complains and returns false when that makes no
 * sense. */
bool args_choose_output(struct args *args);
/* Sends standard output to --out, for commands that print more than one result. Called when the files are loaded; a
 * file appears at the end of the program, whole, and only when the command worked. */
bool args_redirect(struct args *args);
int args_finish_output(struct args *args, int code);
/* Those of a command, or all when it is NULL. */
void args_print_options(FILE *to, const char *command, bool views);

/* cmd_help.c: on one command, or on everything; NULL is the short form. */
int print_help(const struct args *args, const char *topic);
void print_short_help(void);

/* cmd_info.c */
int print_estimates(struct args *args);

void show_from_args(const struct args *args, ow_profile *profile, struct show *show);

#endif
