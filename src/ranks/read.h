/*
 * read.h: parts of read.c and job.c that other files of this folder and the tests call.
 */
#ifndef RANKS_READ_H
#define RANKS_READ_H

#include "ranks/ranks.h"

/* What the name of a kernel, call or argument says. */
enum collective_kind collective_kind_of(struct str name);
void ranks_worker_release(struct worker *w, struct mem *mem);

#endif
