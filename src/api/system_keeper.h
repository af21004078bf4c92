/* system_keeper.h: the daemon's samples of the whole host: half-minutes one after the other in DIR/system, the oldest removed. */
#ifndef API_SYSTEM_KEEPER_H
#define API_SYSTEM_KEEPER_H

#include "opwatch/live.h"

struct system_keeper;

/* Fails when the kernel does not let us sample, or the folder cannot be made. */
ow_status system_keeper_start(const struct ow_daemon_options *options, struct system_keeper **out,
			      struct ow_error *err);
/* Keeps what was sampled so far. NULL is fine. */
void system_keeper_stop(struct system_keeper *keeper);

#endif
