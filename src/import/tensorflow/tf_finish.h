/*
 * tf_finish.h: computations after all TensorFlow inputs are read: static shapes, float operations and parameters, when
 * no op log has them.
 */
#ifndef IMPORT_TF_FINISH_H
#define IMPORT_TF_FINISH_H

#include "import/importer.h"

ow_status tf_finish(struct builder *b, const struct import_options *options, struct ow_error *err);

#endif
