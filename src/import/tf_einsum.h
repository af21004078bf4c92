/*
 * tf_einsum.h: the equation of an Einsum ("abc,cd->abd", "...ij,...jk->...ik") on the shapes of its inputs: what comes out, and how
 * many products are summed up. Used by its shape rule and by its formula.
 */
#ifndef IMPORT_TF_EINSUM_H
#define IMPORT_TF_EINSUM_H

#include "import/tf_rule.h"

struct tf_einsum {
	struct tf_shape out;
	uint32_t terms;	     /* inputs */
	struct tf_shape all; /* one dimension per letter, and those under "..." */
};

/* False when the equation does not fit the inputs. */
bool tf_einsum(struct tf_infer *c, struct tf_einsum *e);

#endif
