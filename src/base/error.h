/*
 * error.h: filling a caller's struct ow_error.
 *
 * It is the public type, always the last argument, and may be NULL.
 * error_set states what failed; each level on the way up may put one phrase of context in front
 * with error_wrap ("loading x.pb: …"). A message says what, where and what to try.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/base.h"

/* Sets the status and text, without an offset. Returns the status, for `return error_set(…)`. */
ow_status error_set(struct ow_error *err, ow_status status, const char *format, ...)
	OW_PRINTF(3, 4);

/* Sets an error with a position in the input. The offset is added to the text as " (at byte N)". */
ow_status error_at(struct ow_error *err, ow_status status, uint64_t offset, const char *format, ...)
	OW_PRINTF(4, 5);

/* Sets an error from an errno code: "<what>: No such file or directory". */
ow_status error_errno(struct ow_error *err, int code, const char *format, ...) OW_PRINTF(3, 4);

/* Puts "<context>: " before the text unless status is OW_OK; returns status. */
ow_status error_wrap(struct ow_error *err, ow_status status, const char *format, ...)
	OW_PRINTF(3, 4);

/* Sets the message for an exhausted memory limit. */
void error_set_no_memory(struct ow_error *err);

/* The function is inline so that compilers and analysers see that the result is never OW_OK. */
static inline ow_status error_no_memory(struct ow_error *err)
{
	error_set_no_memory(err);
	return OW_E_NO_MEMORY;
}

void error_clear(struct ow_error *err);

#endif
