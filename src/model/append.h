/*
 * append.h: adds the rows of one model to another that is being built, for .opw files opened together with other
 * inputs. Ops, devices, steps, shapes, sets, frames and stacks that both have become one; the numbers of an op in a
 * step are added.
 */
#ifndef MODEL_APPEND_H
#define MODEL_APPEND_H

#include "model/builder.h"

/* `from` was opened from a file; it is verified first, and not changed. Its inputs are not taken over: the caller
 * assigns inputs to the new sources, which are *first and the ones after it. */
ow_status model_append(struct builder *b, struct model *from, source_id *first,
		       struct ow_error *err);

#endif
