/*
 * nsys_marks.h: NVTX ranges that PyTorch and its profilers write, whose text is more than a name: operators of emit_nvtx
 * ("aten::mm, seq = 7, sizes = …"), and texts of PyProf and DLProf ({'mod': 'Tensor', 'op': 'add', …} and {'traceMarker':
 * ['train.py:12', …], …}). Used by nsys_rows.c and by interpret/producer_nsys.c.
 */
#ifndef IMPORT_NSYS_MARKS_H
#define IMPORT_NSYS_MARKS_H

#include "model/builder.h"

enum nsys_mark {
	MARK_PLAIN,    /* a range that the user's program wrote */
	MARK_OPERATOR, /* an operator of a framework */
	MARK_STACK     /* a range whose text is the call stack of the operators inside */
};

enum nsys_mark nsys_mark_of(struct str text);
/* The name of a range without numbers and shapes; nil when the name is the whole text. */
str_id nsys_mark_name(struct builder *b, struct str text);
/* The stack in the text of a MARK_STACK range. */
stack_id nsys_mark_stack(struct builder *b, struct str text);

#endif
