/*
 * answer.h: the answer about a job that hangs while it is made; shared by answer.c (what the waits show), answer_stacks.c
 * (what stacks show), answer_words.c (sentences) and answer_table.c (rows and values). Others call hang_table of hang.h.
 */
#ifndef HANG_ANSWER_H
#define HANG_ANSWER_H

#include "hang/waits.h"

#include <sys/types.h>

enum conclusion {
	CONCLUDE_HANG,
	CONCLUDE_DEADLOCK,
	CONCLUDE_MISMATCH,
	CONCLUDE_CRASH,
	CONCLUDE_NONE,
	CONCLUDE_CANNOT_TELL
};

struct answer {
	struct waits *w;
	struct hang_job *job;
	struct mem *mem;
	enum conclusion conclusion;
	bool certain;
	int32_t *ranks; /* to blame */
	size_t rank_count, rank_cap;
	ssize_t meeting; /* the meeting that the answer is about; -1: none */
	struct str collective;
	int64_t sequence;
	struct buf sentence, why;
	const char **states; /* per rank */
};

/* Adds a rank to those to blame, once; false without memory. */
bool answer_blame(struct answer *a, int32_t rank);
/* What the rank was doing, according to a dump of its stacks; empty without a dump. */
struct str answer_stack(const struct answer *a, int32_t rank);
/* The last of its operations; NULL without any. */
const struct hang_op *answer_last_op(const struct answer *a, int32_t rank);

/* ---- answer_words.c ---- */

struct str words_group(const struct hang_group *g);
/* "rank 3", "ranks 1, 2 and 5", "12 ranks (0, 1, 2, …)" */
void words_ranks(struct buf *to, const int32_t *ranks, size_t count);
/* "all_reduce 41 of group default_pg" */
void words_meeting(struct answer *a, struct buf *to, const struct hang_meeting *m);
/* A line of a stack: "load_batch (dir/train.py:88)". */
bool words_frame(struct str line, struct str *name, struct str *file, struct str *number);
/* The innermost call of the user's own program: "train.py:88 load_batch"; else the innermost. */
bool words_place(struct buf *to, struct str stack);
/* Adds "; it is in …" to the sentence, where that is known. */
void words_whereabouts(struct answer *a, int32_t rank);
void words_duration(struct buf *to, int64_t ns);

/* ---- answer_stacks.c ---- */

/* Concludes from stacks alone; false without memory. Leaves the sentence empty when there are none. */
bool answer_by_stacks(struct answer *a);

/* ---- answer_table.c ---- */

void answer_columns(struct table *t);
void answer_row(struct answer *a, struct table *t, int32_t rank);
ow_status answer_extras(struct answer *a, struct table *out, struct ow_error *err);

#endif
