/* gradient.c: see gradient.h. */
#include "analyze/gradient.h"

bool gradient_of(struct str name, struct str *forward)
{
	size_t begin = str_find(name, STR("gradients/"));
	size_t end = begin == STR_NONE ? STR_NONE : str_find(name, STR("_grad/"));

	if (end == STR_NONE)
		return false;
	begin += strlen("gradients/");
	if (end == begin)
		return false;
	*forward = str_skip(name, begin);
	if (end > begin)
		*forward = str_first(*forward, end - begin);
	return true;
}
