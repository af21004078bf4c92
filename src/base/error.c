/*
 * error.c: formats messages into the caller's struct ow_error and names statuses; every module that can fail calls
 * it. Nothing here allocates, so it also works when memory has run out; a message that is too long is cut. It does
 * not print or log: the CLI and the API decide where a message goes.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>

static void set_text(struct ow_error *err, ow_status status, const char *format, va_list args)
{
	err->status = status;
	err->offset = OW_NO_OFFSET;
	vsnprintf(err->text, sizeof(err->text), format, args);
}

ow_status error_set(struct ow_error *err, ow_status status, const char *format, ...)
{
	va_list args;

	if (!err)
		return status;
	va_start(args, format);
	set_text(err, status, format, args);
	va_end(args);
	return status;
}

ow_status error_at(struct ow_error *err, ow_status status, uint64_t offset, const char *format, ...)
{
	va_list args;
	size_t len;

	if (!err)
		return status;
	va_start(args, format);
	set_text(err, status, format, args);
	va_end(args);
	len = strlen(err->text);
	if (offset != UINT64_MAX) /* the error has a position in the input */
		snprintf(err->text + len, sizeof(err->text) - len, " (at byte %" PRIu64 ")",
			 offset);
	err->offset = offset;
	return status;
}

static ow_status status_of_errno(int code)
{
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		return OW_E_NOT_FOUND;
	case EACCES:
	case EPERM:
		return OW_E_PERMISSION;
	case ENOMEM:
		return OW_E_NO_MEMORY;
	case EINTR:
		return OW_E_INTERRUPTED;
	default:
		return OW_E_IO;
	}
}

ow_status error_errno(struct ow_error *err, int code, const char *format, ...)
{
	ow_status status = status_of_errno(code);
	va_list args;
	size_t len;

	if (!err)
		return status;
	va_start(args, format);
	set_text(err, status, format, args);
	va_end(args);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(code));
	return status;
}

ow_status error_wrap(struct ow_error *err, ow_status status, const char *format, ...)
{
	char old[OW_ERROR_TEXT];
	uint64_t offset;
	va_list args;
	size_t len;

	if (!err || status == OW_OK)
		return status;
	memcpy(old, err->text, sizeof(old));
	offset = err->offset;
	va_start(args, format);
	set_text(err, status, format, args);
	va_end(args);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", old);
	err->offset = offset;
	return status;
}

void error_set_no_memory(struct ow_error *err)
{
	error_set(err, OW_E_NO_MEMORY,
		  "out of memory: the memory limit or the machine's memory is exhausted; "
		  "raise --memory-limit or open fewer files at once");
}

void error_clear(struct ow_error *err)
{
	if (!err)
		return;
	err->status = OW_OK;
	err->offset = OW_NO_OFFSET;
	err->text[0] = '\0';
}

const char *ow_status_name(ow_status status)
{
	static const char *const names[] = {
		[OW_OK] = "ok",
		[OW_E_USAGE] = "wrong usage",
		[OW_E_NOT_FOUND] = "not found",
		[OW_E_PERMISSION] = "permission denied",
		[OW_E_IO] = "input/output error",
		[OW_E_FORMAT] = "unknown format",
		[OW_E_CORRUPT] = "damaged data",
		[OW_E_EMPTY] = "empty",
		[OW_E_NO_MEMORY] = "out of memory",
		[OW_E_LIMIT] = "limit reached",
		[OW_E_UNSUPPORTED] = "not supported",
		[OW_E_INTERRUPTED] = "interrupted",
		[OW_E_INTERNAL] = "internal error",
	};
	return (unsigned)status < ARRAY_COUNT(names) ? names[status] : "unknown status";
}
