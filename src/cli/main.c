/* main.c: one program, two names: `tfprof` is the drop-in replacement, `opwatch` everything. */
#include "cli/cli.h"

#include <signal.h>

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc ? argv[0] : "opwatch";

	/* A closed pipe is an end of output, not of the program; a file that may not grow is an error to
	 * be told. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (strcmp(name, "tfprof") == 0)
		return tfprof_main(argc, argv);
	return opwatch_main(argc, argv);
}
