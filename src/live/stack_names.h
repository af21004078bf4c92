/*
 * stack_names.h: the frames and stacks of a recording (wire/live_file.h): each is written once to a file and named by a
 * number. Used by who samples (stack_feed.c) and by who copies samples from other files (stack_copy.c).
 */
#ifndef LIVE_STACK_NAMES_H
#define LIVE_STACK_NAMES_H

#include "base/arena.h"
#include "base/map.h"
#include "live/recording.h"

/* Equal rows have one number. */
struct stack_names_rows {
	struct map map;
	uint32_t (*keys)[4]; /* 0 is not used */
	size_t count, cap;
};

struct stack_names {
	struct mem *mem;
	struct recording *to;
	struct arena arena;
	struct map text_map;
	struct str *texts; /* 0 is not used */
	size_t text_count, text_cap;
	struct stack_names_rows frames, stacks;
	bool no_memory; /* sticks, until the next file */
};

void stack_names_init(struct stack_names *t, struct mem *mem, struct recording *to);
void stack_names_release(struct stack_names *t);
/* Another file: what was written is forgotten, and numbers begin anew. */
void stack_names_begin(struct stack_names *t, struct recording *to);

/* Numbers; 0 without memory. */
uint32_t stack_names_text(struct stack_names *t, struct str text);
/* Its number is not looked at. */
uint32_t stack_names_frame(struct stack_names *t, const struct live_frame *frame);
/* Parent 0: the outermost. */
uint32_t stack_names_stack(struct stack_names *t, uint32_t parent, uint32_t frame);

#endif
