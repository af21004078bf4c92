/*
 * live.h: what the commands on running programs share (record, attach, daemon, jobs, top, stacks, capture): their common
 * options, the name of a recording, and what is printed at its end.
 */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "cli/command.h"

/* The first member of the own struct of each of these commands. */
struct live_args {
	const char *job, *socket; /* name of a job of the daemon, and the daemon's socket */
	const char *out;
	int64_t for_ns;
	struct ow_record_options record;
	bool stacks;
	uint32_t stacks_hz;
};
/* Sets the defaults; for struct command.init. */
void live_args_init(void *own);
/* Returns the rate of Python stacks per second: the given one, or the default. */
uint32_t live_stacks_hz(const struct live_args *live);

#define LIVE_JOB(sentence)                                                                         \
	{                                                                                          \
		"job", STORE_NAME(struct live_args, job), .argument = "NAME", .help = (sentence)   \
	}
#define LIVE_SOCKET                                                                                \
	{                                                                                          \
		"socket", STORE_TEXT(struct live_args, socket),                                    \
			.argument = "PATH", .help = "socket of the daemon",                        \
			.usual = "$XDG_RUNTIME_DIR/opwatch/socket"                                 \
	}
#define LIVE_OUT(what, sentence)                                                                   \
	{                                                                                          \
		"out", 'o', STORE_NAME(struct live_args, out), .argument = (what),                 \
							       .help = (sentence)                  \
	}
#define LIVE_STEP_MARKER                                                                           \
	{                                                                                          \
		"step-marker", STORE_NAME(struct live_args, record.step_marker),                   \
			.argument = "FUNCTION",                                                    \
			.help = "a step begins with each call of this function: C, Python, or a "  \
				"recorded call"                                                    \
	}
#define LIVE_FOR(sentence, default_time)                                                           \
	{                                                                                          \
		"for", STORE_TIME(struct live_args, for_ns),                                       \
			.argument = "TIME", .help = (sentence), .usual = (default_time)            \
	}
/* The options --stacks, --max-size, --on-slowdown, --on-stall, --memory-limit. */
extern const struct option_group recording_options;

/* Reads the words of the command line as process ids; `pids` has room for args->file_count. Reports a word
 * that is not one. */
bool live_pids(const struct args *args, int64_t *pids);

/* Prints a message to stderr; for ow_record_options. */
void live_message(void *arg, const char *text, size_t len);
/* Returns whether no signal was caught; for ow_record_options. */
bool live_keep_going(void *arg);
/* Returns a name such as opwatch-20261116-030405.opw, in the working directory; NULL if memory runs out. */
const char *recording_name(struct arena *arena);
void print_recording(const char *path, const struct ow_record_summary *summary);
/* Prints "x.opw: the last 2.0 s of job train, 10 records and 20 stacks of 1 process". */
void print_cut(const char *path, const char *what, const char *job,
	       const struct ow_cut_summary *summary);

#endif
