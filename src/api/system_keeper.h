/* system_keeper.h: the daemon's samples of the whole host: half-minutes one after the other in DIR/system, the oldest removed. */
#ifndef API_SYSTEM_KEEPER_H
#define API_SYSTEM_KEEPER_H

#include "opwatch/live.h"

struct system_keeper;

/* Starts sampling. Fails if the kernel does not allow it, or the folder cannot be created. */
ow_status system_keeper_start(const struct ow_daemon_options *options, struct system_keeper **out,
			      struct ow_error *err);
/* Stops sampling; samples taken so far are kept. Accepts NULL. */
void system_keeper_stop(struct system_keeper *keeper);

#endif
