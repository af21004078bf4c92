/* signals.c: see signals.h. */
#include "cli/signals.h"

#include "cli/output.h"

#include <signal.h>

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught = number;
	interrupted = 1;
}

void signals_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal }, old;

	for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

bool signals_caught(void)
{
	return caught != 0;
}

void signals_pass_on(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
}
