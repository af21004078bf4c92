/*
 * profile_view.h: opens a file as a profile and runs a view on it, for unit tests that check written files through the
 * public functions. Any failure fails the test, with the message. Include cmocka.h before it.
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
