/*
 * profile_view.h: a file as a profile, and a view of it, for unit tests that look at what was written through the public
 * functions. Whatever fails there fails the test, with the message. Needs cmocka.h before it.
 */
#ifndef SUPPORT_PROFILE_VIEW_H
#define SUPPORT_PROFILE_VIEW_H

#include "opwatch/opwatch.h"

static inline ow_profile *profile_of(const char *path)
{
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;

	if (ow_profile_open(&path, 1, NULL, &profile, &err) != OW_OK)
		fail_msg("%s", err.text);
	return profile;
}

static inline ow_result *view_of(ow_profile *profile, const char *which)
{
	struct ow_error err = { 0 };
	ow_result *result = NULL;

	if (ow_view(profile, which, NULL, &result, &err) != OW_OK)
		fail_msg("%s", err.text);
	return result;
}

#endif
