/* append.c: see append.h. */
#include "model/append.h"

ow_status model_append(struct builder *b, struct model *from, struct error *err)
{
	(void)b;
	(void)from;
	return error_set(err, OW_E_UNSUPPORTED, "an opwatch file cannot be opened beside other files");
}
