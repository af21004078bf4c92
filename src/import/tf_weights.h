/*
 * tf_weights.h: the parameters of a graph without variables. Freezing turns variables into constants, so
 * that nothing in such a graph counts as a parameter any more; these constants are found again.
 */
#ifndef IMPORT_TF_WEIGHTS_H
#define IMPORT_TF_WEIGHTS_H

#include "import/tf_rule.h"

/* Constants of a floating or quantised type that have more than one element, or whose reading op
 * NAME/read shows that they were variables, get op.shape, as variables have it; a note tells how many
 * there are. Does nothing when the graph has variables. Uses the op fields of `c` as it likes. */
ow_status tf_weights_find(struct tf_infer *c);

/* A shape as the importers keep static ones: a scalar is [1]. */
shape_id tf_kept_shape(struct builder *b, shape_id id);

#endif
