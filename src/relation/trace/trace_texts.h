/*
 * trace_texts.h: the dictionary of trace_events: the strings of the model under their own numbers, followed by the
 * texts that only the file has. A dictionary may continue another one, whose codes it keeps.
 */
#ifndef RELATION_TRACE_TEXTS_H
#define RELATION_TRACE_TEXTS_H

#include "relation/relation.h"

struct trace_texts {
	struct mem *mem;
	const struct model *m;
	const struct trace_texts *base; /* dictionary that is searched first; may be NULL */
	struct str *list;		/* index 0 stands for none */
	size_t count, cap;
	struct map map; /* texts that neither the model nor `base` has */
	struct arena arena;
};

/* False if memory runs out; the caller calls trace_texts_release in any case. */
bool trace_texts_init(struct trace_texts *t, struct mem *mem, const struct model *m,
		      const struct trace_texts *base) OW_MUST_CHECK;
void trace_texts_release(struct trace_texts *t);
bool trace_texts_intern(struct trace_texts *t, struct str text, uint32_t *code) OW_MUST_CHECK;

static inline struct table_dict trace_texts_dict(const struct trace_texts *t)
{
	return (struct table_dict){ t->list, (uint32_t)t->count };
}

#endif
