/*
 * backing.h: a model whose columns are in an .opw file, mapped or in memory. The importer of the format makes it. The
 * rest of the model must handle three things: columns that it does not own, rows that are checked before they are first
 * read, and lookups that are not made yet. Columns in a backing may be written to: the mapping is private, the file
 * does not change. Tables grow by moving to allocated memory (builder_grow).
 */
#ifndef MODEL_BACKING_H
#define MODEL_BACKING_H

#include "base/guard.h"
#include "model/model.h"

struct backing {
	struct input file;		  /* the file; its name is used in messages */
	struct mapping map;		  /* mapping of the file, unless its bytes are in memory */
	const unsigned char *begin, *end; /* range in which columns may lie */
	/* rows are in frozen order and all columns are filled, so a freeze has nothing to do */
	bool frozen;

	/* Checks the checksums of a table's columns, or of everything outside the tables
	 * (TABLE_COUNT). */
	ow_status (*verify)(void *state, int table, struct ow_error *err);
	void (*release)(void *state);
	void *state;

	pthread_mutex_t lock;	       /* guards the verification */
	atomic_uint_fast64_t verified; /* one bit per verified table */
	atomic_uint searches;	       /* number of lookups that were answered by searching */
};

struct backing *backing_new(struct mem *mem, struct ow_error *err);
/* Frees the backing with its file. Columns in it must not be used any more. */
void backing_free(struct backing *backing, struct mem *mem);

static inline bool backing_has(const struct model *m, const void *column)
{
	const struct backing *backing = m->backing;
	const unsigned char *at = column;

	return backing && at >= backing->begin && at < backing->end;
}

/* Checks rows of these tables before they are first read; see model_require_rows. */
ow_status backing_verify(struct model *m, uint64_t tables, struct ow_error *err);

/* Exchanges tables, strings, lookups, inputs and facts about the whole between two models of one struct mem; both
 * keep their arena, their lock and their deferred work. */
void model_swap(struct model *a, struct model *b);

#endif
