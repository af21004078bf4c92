/*
 * outlive.h: the processes of a job that run on when the one that was started has ended: daemons, workers in the
 * background. Those that have connected are known; others, which have recorded nothing yet or cannot, are found by
 * the collector's socket in the environment that they were started with, whoever their parent is by now. A process
 * that dropped or overwrote that, or is another user's, and has never connected, is not found. Nothing is kept of an
 * environment, and nothing is done to the processes.
 */
#ifndef LIVE_OUTLIVE_H
#define LIVE_OUTLIVE_H

#include "live/collector.h"
#include "live/processes.h"

/* Adds those that run, in the order of their numbers. False without memory. */
bool outlive_find(const struct collector *c, struct pid_list *list);
/* "2 processes that it started still run: 4711 (python3), 4712 (sh)"; the verb is `one` or `many`. */
void outlive_say(const struct pid_list *list, const char *one, const char *many, char *to,
		 size_t size);

#endif
