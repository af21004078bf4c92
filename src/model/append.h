/*
 * append.h: the rows of one model added to another that is being built: files of our own opened beside
 * other inputs. Ops, devices, steps, shapes, sets, frames and stacks that both have become one; what one
 * op did in one step is added up.
 */
#ifndef MODEL_APPEND_H
#define MODEL_APPEND_H

#include "model/builder.h"

/* `from` was opened from a file; it is verified first, and not changed. Its inputs are not taken over:
 * the caller gives the new sources theirs, which are *first and the ones after it. */
ow_status model_append(struct builder *b, struct model *from, source_id *first, struct error *err);

#endif
