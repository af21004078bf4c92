/*
 * show.h: running one command of the tfprof family (scope, graph, op, code, advise) on a profile and
 * sending the result where -output says, with the original's texts. Used by the one-shot command line
 * and by the shell, under both names.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/option.h"
#include "cli/terminal/output.h"

struct args;

struct show {
	ow_profile *profile;
	/* command line, which names the inputs; NULL under the name tfprof */
	const struct args *args;
	struct terminal terminal;
	bool tfprof; /* print tfprof's text on stdout; else tables fitted to the terminal */
	bool pager;
};

/* These functions return a status for the exit code; errors were already printed on stderr. */
ow_status show_view(const struct show *show, const char *view, const struct options *options);
/* Shows an existing result; `name` is for messages. */
ow_status show_result(const struct show *show, ow_result *result, const char *name,
		      const struct options *options);
ow_status show_advice(const struct show *show, const struct options *options);

#endif
