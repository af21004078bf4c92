/*
 * nsys_marks.h: ranges of NVTX that PyTorch and its profilers write, which say more than a name: operators of emit_nvtx
 * ("aten::mm, seq = 7, sizes = …"), and the texts of PyProf and DLProf ({'mod': 'Tensor', 'op': 'add', …} and
 * {'traceMarker': ['train.py:12', …], …}). For the importer of exports of Nsight Systems and its producer.
 */
#ifndef IMPORT_NSYS_MARKS_H
#define IMPORT_NSYS_MARKS_H

#include "model/builder.h"

enum nsys_mark {
	MARK_PLAIN,    /* a range that people wrote */
	MARK_OPERATOR, /* an operator of a framework */
	MARK_STACK     /* where the operators in it were called */
};

enum nsys_mark nsys_mark_of(struct str text);
/* What all ranges of the kind are called, without numbers and shapes; nil when that is the text itself. */
str_id nsys_mark_name(struct builder *b, struct str text);
/* The stack that a MARK_STACK tells. */
stack_id nsys_mark_stack(struct builder *b, struct str text);

#endif
