/*
 * attend.h: attention (attention.h) for all jobs of a daemon, in one thread beside it. It asks for the jobs as anybody may
 * (live/jobs.h) and reads their rings on disk, so the daemon neither waits for it nor knows of it.
 */
#ifndef WATCH_ATTEND_H
#define WATCH_ATTEND_H

#include "watch/attention.h"

struct attend;

/* `options` as for one job; recording, prefix and job are set for each. Files go to the daemon's folder. socket_path NULL:
 * as jobs_connect finds it. The daemon need not be there yet. */
ow_status attend_start(const char *socket_path, const struct attention_options *options,
		       struct attend **out, struct error *err);
/* Saves what is pending, and ends. NULL is fine. */
void attend_stop(struct attend *attend);

#endif
