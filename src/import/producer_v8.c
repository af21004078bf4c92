/*
 * producer_v8.c: node and other programs on V8. Their asynchronous hooks are not balanced by design.
 */
#include "import/mean_int.h"

static bool recognise(const struct meaning *x)
{
	return x->categories & 1u << CATEGORY_V8 && !(x->categories & 1u << CATEGORY_CHROME);
}

const struct producer producer_v8 = {
	.name = "v8",
	.title = "V8 or Node.js",
	.recognise = recognise,
	.host_phase = mean_no_phase,
};
