/*
 * stack_copy.h: stacks of several recordings into one: each file has its own numbers of texts, frames and stacks, the copy
 * has others. Used by follow_cut.c, which gives what a file says in the order of the file.
 */
#ifndef LIVE_STACK_COPY_H
#define LIVE_STACK_COPY_H

#include "live/stack_names.h"

/* From the number in a file to that in the copy; 0: not known. */
struct stack_numbers {
	uint32_t *items;
	size_t cap;
};

struct stack_copy {
	struct stack_names table;
	struct stack_numbers texts, frames, stacks;
};

void stack_copy_init(struct stack_copy *c, struct mem *mem, struct recording *to);
void stack_copy_release(struct stack_copy *c);
/* What follows is of another file. */
void stack_copy_begin_file(struct stack_copy *c);
/* False without memory. What is damaged is left out. */
bool stack_copy_text(struct stack_copy *c, uint32_t number, struct str text);
bool stack_copy_frame(struct stack_copy *c, const struct live_frame *row);
bool stack_copy_stack(struct stack_copy *c, const struct live_stack *row);
/* What a stack is called in the copy; 0: it is not known. */
uint32_t stack_copy_number(const struct stack_copy *c, uint32_t number);

#endif
