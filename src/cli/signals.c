/* signals.c: see signals.h. */
#include "cli/signals.h"

#include "cli/output.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t caught;
static char guarded_part[4128], guarded_file[4096], guarded_folder[4096];

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

/* Only what a handler may call. */
static void on_end(int number)
{
	unlink(guarded_part);
	if (guarded_folder[0]) {
		unlink(guarded_file);
		rmdir(guarded_folder);
	}
	signal(number, SIG_DFL);
	raise(number);
}

void signals_pass_on(void)
{
	if (caught)
		on_end(caught);
}

static void guard(void (*from)(int), void (*to)(int))
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = to }, old;

	for (size_t i = 0; i < ARRAY_COUNT(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == from)
			sigaction(signals[i], &action, NULL);
}

void signals_release(void)
{
	guard(on_signal, SIG_DFL);
}

void signals_guard_cut(const char *file, const char *folder)
{
	snprintf(guarded_part, sizeof(guarded_part), "%.4095s.tmp%d", file, (int)getpid());
	snprintf(guarded_file, sizeof(guarded_file), "%s", file);
	snprintf(guarded_folder, sizeof(guarded_folder), "%s", folder ? folder : "");
	guard(SIG_DFL, on_end);
}

void signals_guard_end(void)
{
	guard(on_end, SIG_DFL);
	guarded_part[0] = guarded_file[0] = guarded_folder[0] = '\0';
}
