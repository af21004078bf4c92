/*
 * read.h: parts of read.c, worker_facts.c and job.c that other files of this folder and the tests call.
 */
#ifndef RANKS_READ_H
#define RANKS_READ_H

#include "ranks/ranks.h"

/* What the name of a kernel, call or argument says. */
enum collective_kind collective_kind_of(struct str name);
void ranks_worker_release(struct worker *w, struct mem *mem);

/* ---- worker_lines.c ---- */

/* What read.c knows of a model while it is read. */
struct line_reading {
	struct ranks_job *job;
	struct model *m;
	const struct phases *phases;
	const uint32_t *worker_of; /* per track: 1 + the worker; 0 = none */
	const uint32_t *launch;	   /* per event: the call that started it; NULL without links */
	size_t first;		   /* worker of this model */
	struct arena *scratch;
};

/* Fills worker.lines of the workers from `first` on; recordings without call stacks have none. */
ow_status worker_lines_read(const struct line_reading *in, struct ow_error *err);

/* ---- worker_facts.c ---- */

/* Letters and digits in lower case: "ncclDevKernel_AllReduce" and "all-reduce" contain the same word. */
size_t worker_plain_name(struct str name, char *to, size_t size);

/* Where the names of a track and its process put a worker; -1 = they do not say. */
struct worker_place {
	int32_t dp, stage, tp;
};

struct worker_place worker_place_of(const struct model *m, uint32_t track);
/* A number that a recording states about itself; -1 without. */
int64_t worker_fact_number(const struct model *m, uint32_t source, const char *key);
struct str worker_host(const struct model *m, uint32_t source);
/* A rank that the content gives. Traces whose file name has a number get one from there, too, which does not count. */
int32_t worker_rank(const struct model *m, uint32_t source);
/* Sources are files, but for the ranks of a recording, which are sources of one file: "x.opw!rank 1". */
uint32_t worker_file(const struct model *m, uint32_t source);

#endif
