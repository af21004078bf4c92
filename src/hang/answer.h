/*
 * answer.h: the state of an answer about a job that hangs, shared by answer.c (conclusions from waits), answer_stacks.c
 * (conclusions from stacks), answer_words.c (sentences) and answer_table.c (rows and values). Others call hang_table of
 * hang.h.
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
	int32_t *ranks; /* ranks to blame */
	size_t rank_count, rank_cap;
	ssize_t meeting; /* index of the meeting that the answer is about; -1: none */
	struct str collective;
	int64_t sequence;
	struct buf sentence, why;
	const char **states; /* state of each rank */
};

/* Adds a rank to those to blame, once; false if memory runs out. */
bool answer_blame(struct answer *a, int32_t rank);
/* The stack of a rank, from a dump of its stacks; empty if there is no dump. */
struct str answer_stack(const struct answer *a, int32_t rank);
/* Whether a process with this stack is in a collective, or waits for a device. */
bool answer_stack_waits(struct str stack);
/* The last operation of a rank; NULL if there is none. */
const struct hang_op *answer_last_op(const struct answer *a, int32_t rank);

struct str words_group(const struct hang_group *g);
/* Appends "rank 3", "ranks 1, 2 and 5" or "12 ranks (0, 1, 2, …)". */
void words_ranks(struct buf *to, const int32_t *ranks, size_t count);
/* Appends the name of a meeting: "all_reduce 41 of group default_pg". */
void words_meeting(struct answer *a, struct buf *to, const struct hang_meeting *m);
/* Splits a line of a stack, "load_batch (dir/train.py:88)", into function, file and line number. */
bool words_frame(struct str line, struct str *name, struct str *file, struct str *number);
/* Appends the innermost call of the user's own program, "train.py:88 load_batch"; if there is none, the innermost
 * call. */
bool words_place(struct buf *to, struct str stack);
/* Adds "; it is in …" to the sentence, if the rank's stack is known. */
void words_whereabouts(struct answer *a, int32_t rank);
void words_duration(struct buf *to, int64_t ns);

/* Draws conclusions from stacks alone; false if memory runs out. The sentence stays empty when there are no stacks. */
bool answer_by_stacks(struct answer *a);

void answer_columns(struct table *t);
void answer_row(struct answer *a, struct table *t, int32_t rank);
ow_status answer_extras(struct answer *a, struct table *out, struct ow_error *err);

#endif
