/* live_blind.h: what a recording of running programs did not see of what they read, as far as the system tells; notes. */
#ifndef IMPORT_LIVE_BLIND_H
#define IMPORT_LIVE_BLIND_H

#include "import/live_read.h"

/* Finds what processes have read whose parents waited for them: once, before the notes. */
ow_status live_find_waited_for(struct live_data *d);
void live_add_blind_spots(struct live_data *d, const struct live_job *job);

#endif
