/*
 * sqlshell.h: SQL from a person or a text: dot commands, statements over several lines, completion of tables and
 * columns. Used by `opwatch sql`, and by `sql` in the shell.
 */
#ifndef CLI_SQLSHELL_H
#define CLI_SQLSHELL_H

#include "cli/output.h"

struct sqlshell {
	ow_sql *sql;
	struct terminal terminal;
	const char *sink; /* text, json, csv */
	uint32_t limit;	  /* rows of a statement; 0 = all */
	bool pager;
};

/* Runs a text: statements and lines such as .tables, up to the first that fails or .quit. What went wrong is said on
 * stderr. */
ow_status sqlshell_run(const struct sqlshell *shell, struct str text);
/* Reads statements until the end of input or .quit. */
void sqlshell_loop(const struct sqlshell *shell);

/* .tables, .schema [table], .help: no session is needed for them. */
bool sqlshell_is_dot(struct str text);
ow_status sqlshell_dot(struct str text);

/* For ow_sql_options.progress: false after Ctrl-C. */
bool sqlshell_go_on(void *arg);

#endif
