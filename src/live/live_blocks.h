/*
 * live_blocks.h: the blocks of a segment of a recording (wire/live_file.h) as bytes, for whoever copies them or looks for
 * a few: who follows recordings and cuts parts out of them (follow.h), and the daemon that takes up a ring after its
 * restart. Importing is import/live_read.c's.
 */
#ifndef LIVE_LIVE_BLOCKS_H
#define LIVE_LIVE_BLOCKS_H

#include "wire/live_file.h"
#include "wire/opw.h"

enum live_block {
	LIVE_BLOCK_SESSION,
	LIVE_BLOCK_PROCESS,
	LIVE_BLOCK_TEXT,
	LIVE_BLOCK_PLACE,
	LIVE_BLOCK_RUN,
	LIVE_BLOCK_RECORD,
	LIVE_BLOCK_COUNT,
	LIVE_BLOCK_END,
	LIVE_BLOCK_FRAME,
	LIVE_BLOCK_STACK,
	LIVE_BLOCK_SAMPLE,
	LIVE_BLOCKS
};

struct live_blocks {
	struct buf bytes;
	struct str all[LIVE_BLOCKS]; /* empty when there is none, or it is damaged */
};

void live_blocks_init(struct live_blocks *b, struct mem *mem);
void live_blocks_release(struct live_blocks *b);
/* Those of `wanted`, a bit each. Fails when the file cannot be read, or without memory. */
ow_status live_blocks_read(struct live_blocks *b, const struct input *in,
			   const struct opw_segment *segment, unsigned wanted, struct error *err);

/* The same of a segment that is in memory, which the blocks are parts of. False when something is damaged. */
bool live_blocks_find(struct str segment, unsigned wanted, struct str all[LIVE_BLOCKS]);

/* Goes through the rows of a block, which need not be aligned. */
#define LIVE_EACH_ROW(block, type, row, body)                                                      \
	do {                                                                                       \
		struct str left_ = (block);                                                        \
		for (; left_.len >= sizeof(type); left_ = str_skip(left_, sizeof(type))) {         \
			type row;                                                                  \
			memcpy(&row, left_.ptr, sizeof(row));                                      \
			body;                                                                      \
		}                                                                                  \
	} while (0)

/* Takes the first text off a block of texts; false when there is none, or it is cut short. */
bool live_text_next(struct str *block, struct live_text *head, struct str *text);

#endif
