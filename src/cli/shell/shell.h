/*
 * shell.h: the interactive shell, and the same grammar for lines from a pipe. Under the name tfprof
 * it speaks as the original does; as `opwatch shell` it has more commands.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/terminal/show.h"

#include <opwatch/sql.h>

/* Runs the shell until the end of input, quit or exit; returns the program's exit code. */
int shell_run(const struct show *show, const struct options *defaults);

/* sqlshell.c: SQL, for `opwatch sql` and `sql` in the shell. */

struct sqlshell {
	ow_sql *sql;
	struct terminal terminal;
	const char *sink; /* name of the output: text, json or csv */
	uint32_t limit;	  /* largest number of rows of a statement; 0 = all */
	bool pager;
};

/* Runs statements and dot commands of a text, up to the first failure or .quit. Reports errors on stderr. */
ow_status sqlshell_run(const struct sqlshell *shell, struct str text);
/* Reads statements until the end of input or .quit. */
void sqlshell_loop(const struct sqlshell *shell);

/* Returns whether a text is a dot command (.tables, .schema [table], .help), which needs no
 * session. */
bool sqlshell_is_dot(struct str text);
ow_status sqlshell_dot(struct str text);

/* Returns false after Ctrl-C; for ow_sql_options.keep_going. */
bool sqlshell_go_on(void *arg);

#endif
