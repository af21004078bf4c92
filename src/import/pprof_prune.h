/*
 * pprof_prune.h: drop_frames and keep_frames of profile.proto: which functions are details of the measurement that nobody
 * wants to see. import_pprof.c asks per function, and cuts stacks by the answers.
 */
#ifndef IMPORT_PPROF_PRUNE_H
#define IMPORT_PPROF_PRUNE_H

#include "base/regex.h"

struct pprof_prune {
	struct regex_list drop, keep;
	bool active;  /* there is something to drop */
	bool invalid; /* an expression that cannot be read: nothing is dropped */
};

/* Either text may be empty. Fails only for lack of memory; pprof_prune_release is due in any case. */
ow_status pprof_prune_init(struct pprof_prune *p, struct mem *mem, struct str drop, struct str keep,
			   struct error *err);
void pprof_prune_release(struct pprof_prune *p);

/* Whether a function of this name is to be dropped, with what it calls. Parameters do not count. */
bool pprof_prune_drops(struct pprof_prune *p, struct str function);

#endif
