/*
 * hurry.h: this thread gets a processor before others for some milliseconds, as far as its user may ask for that: attach.c
 * does so while a thread of another process stands still for it. Root, and whoever has CAP_SYS_NICE, is served first of all
 * (SCHED_RR). Others can do two things, which help on a machine that has more to run than processors:
 * - ask for the shortest slices: from Linux 6.12 on who needs a processor for a short time only gets it sooner;
 * - work in a session of their own, which the kernel serves as one among others (autogroups), however much runs in the
 *   session they come from.
 * A better `nice` is no substitute: it makes the other one wait.
 */
#ifndef LIVE_HURRY_H
#define LIVE_HURRY_H

#include "base/base.h"

struct hurry {
	int policy, priority; /* as they were */
	bool first;	      /* of all */
	bool short_slices;
};

void hurry_begin(struct hurry *hurry);
void hurry_end(struct hurry *hurry);

/* Does the work in a process with a session of its own, which ends with it. What it leaves in `result`, which holds no pointers that
 * matter, is handed back. False when there is no such process, or it ended before: nothing is in the result then. */
bool hurry_apart(void (*work)(void *arg, void *result), void *arg, void *result, size_t size);

#endif
