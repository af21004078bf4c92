/* sample_tree.h: sampled call stacks as the tree of the code view; called by view_code.c. */
#ifndef ANALYZE_SAMPLE_TREE_H
#define ANALYZE_SAMPLE_TREE_H

#include "analyze/view.h"

ow_status sample_tree_run(struct model *m, const struct view_options *options, struct result *out,
			  struct error *err);

#endif
