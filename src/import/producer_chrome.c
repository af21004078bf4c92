/*
 * producer_chrome.c: Chrome and what is built on it. Real processes and threads, begins and ends, much that
 * is asynchronous; the importer does all of that.
 */
#include "import/mean_int.h"

static bool recognise(const struct meaning *x)
{
	return x->categories & 1u << CATEGORY_CHROME || x->in->members & MEMBER_CLIENT_INFO;
}

const struct producer producer_chrome = {
	.name = "chrome",
	.title = "Chrome",
	.recognise = recognise,
	.host_phase = mean_no_phase,
};
