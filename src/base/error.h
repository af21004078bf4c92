/*
 * error.h: filling a caller's struct ow_error.
 *
 * `struct error` is the public struct ow_error; it is always the last argument and may be NULL.
 * error_set states what failed; each level on the way up may put one phrase of context in front
 * with error_wrap ("loading x.pb: …"). A message says what, where and what to try.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/base.h"

#define error ow_error

/* Sets the status and text, with no offset; returns the status so that `return error_set(…)`. */
ow_status error_set(struct error *err, ow_status status, const char *format, ...) OW_PRINTF(3, 4);

/* The same, for a place in the input. The offset is added to the text as " (at byte N)". */
ow_status error_at(struct error *err, ow_status status, uint64_t offset, const char *format, ...)
	OW_PRINTF(4, 5);

/* From errno-style codes: "<what>: No such file or directory". */
ow_status error_errno(struct error *err, int code, const char *format, ...) OW_PRINTF(3, 4);

/* Puts "<context>: " before the text unless status is OW_OK; returns status. */
ow_status error_wrap(struct error *err, ow_status status, const char *format, ...) OW_PRINTF(3, 4);

/* The memory-limit message, in one place. */
void error_set_no_memory(struct error *err);

/* Inline, so that whoever reads the caller (a compiler, an analyser) sees that it is no success. */
static inline ow_status error_no_memory(struct error *err)
{
	error_set_no_memory(err);
	return OW_E_NO_MEMORY;
}

void error_clear(struct error *err);

#endif
