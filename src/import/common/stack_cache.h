/*
 * stack_cache.h: the stacks that an importer asked for most recently, in front of builder_stack. Samples share most of their callers,
 * so that most lookups end in one load here instead of three in the tables of the model. Used by the importers of sampled stacks;
 * it holds ids only, and forgets whatever falls onto the same slot.
 */
#ifndef IMPORT_STACK_CACHE_H
#define IMPORT_STACK_CACHE_H

#include "model/builder.h"

#define STACK_CACHE_SLOTS 32768u

struct stack_cache {
	struct {
		uint32_t parent, frame, stack; /* key and value; stack 0: empty */
	} slots[STACK_CACHE_SLOTS];
};

/* Makes a cache; NULL if memory runs out. */
static inline struct stack_cache *stack_cache_new(struct mem *mem)
{
	return mem_zalloc(mem, sizeof(struct stack_cache));
}

static inline void stack_cache_free(struct stack_cache *c, struct mem *mem)
{
	mem_free(mem, c, sizeof(*c));
}

static inline stack_id stack_cache_push(struct stack_cache *c, struct builder *b, stack_id parent,
					frame_id frame)
{
	uint64_t mixed = ((uint64_t)parent.v << 32 | frame.v) * 0x9e3779b97f4a7c15ull;
	uint32_t at = (uint32_t)(mixed >> 49) & (STACK_CACHE_SLOTS - 1);
	stack_id stack;

	if (stack_is_next(b->m, parent, frame))
		return (stack_id){ parent.v + 1 };
	if (OW_LIKELY(c->slots[at].parent == parent.v && c->slots[at].frame == frame.v &&
		      c->slots[at].stack))
		return (stack_id){ c->slots[at].stack };
	stack = builder_stack(b, parent, frame);
	if (stack.v == parent.v + 1)
		return stack;
	c->slots[at].parent = parent.v;
	c->slots[at].frame = frame.v;
	c->slots[at].stack = stack.v;
	return stack;
}

#endif
