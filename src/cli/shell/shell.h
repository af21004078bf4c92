/*
 * shell.h: the interactive shell, and the same grammar for lines from a pipe. Under the name tfprof
 * it speaks as the original does; as `opwatch shell` it has more commands.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/terminal/show.h"

#include <opwatch/sql.h>

/* Runs until the end of input, quit or exit; returns the program's exit code. */
int shell_run(const struct show *show, const struct options *defaults);

/* ---- SQL: `opwatch sql`, and `sql` in the shell (sqlshell.c) ---- */

struct sqlshell {
	ow_sql *sql;
	struct terminal terminal;
	const char *sink; /* text, json, csv */
	uint32_t limit;	  /* rows of a statement; 0 = all */
	bool pager;
};

/* Runs a text: statements and dot commands, up to the first that fails or .quit. Reports what went wrong on stderr. */
ow_status sqlshell_run(const struct sqlshell *shell, struct str text);
/* Reads statements until the end of input or .quit. */
void sqlshell_loop(const struct sqlshell *shell);

/* .tables, .schema [table], .help: no session is needed for them. */
bool sqlshell_is_dot(struct str text);
ow_status sqlshell_dot(struct str text);

/* For ow_sql_options.keep_going: false after Ctrl-C. */
bool sqlshell_go_on(void *arg);

#endif
