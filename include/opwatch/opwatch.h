/*
 * opwatch.h: the public interface of libopwatch, and the only header others may rely on.
 *
 * A profile (struct ow_profile) is opened from one or more files of any recognised format, then
 * frozen; after that it is read-only and may be used from any number of threads. Views, advice and
 * information come back as results (struct ow_result): a table of rows, possibly a tree, which can
 * be read cell by cell or written through a sink (text, json, csv, …).
 *
 * Every function that can fail returns an ow_status and fills the caller's `struct ow_error`
 * (nullable). Every handle has a paired free that accepts NULL. Strings returned are UTF-8,
 * NUL-terminated, and live as long as the handle they came from.
 */
#ifndef OPWATCH_OPWATCH_H
#define OPWATCH_OPWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OW_API __attribute__((visibility("default")))

/* ---- status and errors ---------------------------------------------------------------------- */

typedef enum ow_status {
	OW_OK = 0,
	OW_E_USAGE,	  /* the caller asked for something that makes no sense */
	OW_E_NOT_FOUND,	  /* no such file, step, column, … */
	OW_E_PERMISSION,  /* the system said no */
	OW_E_IO,	  /* reading or writing failed, or a file changed under us */
	OW_E_FORMAT,	  /* no importer recognises the bytes, or nothing usable in them */
	OW_E_CORRUPT,	  /* recognised, but damaged where damage cannot be skipped */
	OW_E_EMPTY,	  /* the file has no bytes */
	OW_E_NO_MEMORY,	  /* allocation failed, or the memory limit was reached */
	OW_E_LIMIT,	  /* another limit (regex steps, nesting, table size) was reached */
	OW_E_UNSUPPORTED, /* this build, or this source, cannot do it */
	OW_E_INTERRUPTED, /* cancelled by the caller */
	OW_E_INTERNAL	  /* a bug in opwatch */
} ow_status;

#define OW_ERROR_TEXT 1024

/* The caller's own; fixed size so that reporting an error never needs memory. */
struct ow_error {
	ow_status status;
	uint64_t offset; /* byte offset in the input, or OW_NO_OFFSET */
	char text[OW_ERROR_TEXT];
};
#define OW_NO_OFFSET UINT64_MAX

/* A short English name of a status: "not found". */
OW_API const char *ow_status_name(ow_status status);

#ifdef __cplusplus
}
#endif
#endif
