/*
 * producer_other.c: a trace of which nothing is known. Threads are threads, a name is an op; only names
 * that mean the same everywhere have a phase.
 */
#include "import/mean_int.h"

static bool recognise(const struct meaning *x)
{
	(void)x;
	return true;
}

const struct producer producer_other = {
	.name = "other",
	.title = "unknown",
	.recognise = recognise,
	.host_phase = mean_no_phase,
};
