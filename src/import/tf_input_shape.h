/*
 * tf_input_shape.h: shapes that the user gives for inputs of the graph, as NAME=100x784. Sizes may be
 * "?" and the whole "scalar"; NAME may end in the number of an output, as in NAME:1.
 */
#ifndef IMPORT_TF_INPUT_SHAPE_H
#define IMPORT_TF_INPUT_SHAPE_H

#include "import/importer.h"
#include "import/tf_flow.h"
#include "import/tf_node.h"

/* Takes the shapes into the graph. OW_E_USAGE, with the placeholders that there are, for a text that
 * makes no sense, a name that nothing has or a shape that contradicts the declared one. */
ow_status tf_input_shapes_apply(struct tf_flow *flow, struct tf_reader *reader,
				const struct import_options *options, struct error *err);

/* "--input-shape X=Nx784 --input-shape Y=…": placeholders and the like whose shape is not known, as
 * something to be filled in. At most `most` of them; the number of all is returned. */
size_t tf_input_shapes_wanted(const struct tf_flow *flow, size_t most, char *text, size_t size);

/* "--input-shape NAME=Nx784", or "NAME:1=…"; sizes that are wanted are shown as N. */
size_t tf_input_shape_print(const struct tf_flow *flow, uint32_t op, const struct tf_slot *slot,
			    char *text, size_t size);

#endif
