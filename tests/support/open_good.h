/* open_good.h: opens a profile that must be readable, for tests that use it. */
#ifndef SUPPORT_OPEN_GOOD_H
#define SUPPORT_OPEN_GOOD_H

#include <opwatch/opwatch.h>

static inline ow_profile *open_good(const char *path)
{
	struct ow_error err = { 0 };
	ow_profile *p = NULL;

	if (ow_profile_open(&path, 1, NULL, &p, &err) != OW_OK)
		fail_msg("%s: %s", path, err.text);
	return p;
}

#endif
