/* environment.h: the variables with which a job loads the recorder: its own, and lists that others use, too, to
 * which the recorder is added at the end, so that what the user wanted to come first still does. */
#ifndef LIVE_ENVIRONMENT_H
#define LIVE_ENVIRONMENT_H

#include "base/arena.h"

/* The environment of this process with the recorder's variables; NULL without memory. */
char *const *environment_make(struct arena *arena, const char *recorder, const char *socket_path,
			      uint32_t ring_records);

#endif
