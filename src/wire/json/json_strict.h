/*
 * json_strict.h: which text is JSON to the letter (RFC 8259), and making such text of what only lenient
 * readers take. For merge, whose output every reader must take whatever the inputs were.
 *
 * Repairing keeps the meaning that json.h reads: comments and extra commas go, missing ones come, NaN and
 * Infinity become null, control characters are escaped, bytes that are not UTF-8 become U+FFFD, other
 * words become strings. Valid text stays as it is, byte for byte, up to the blanks around it.
 */
#ifndef WIRE_JSON_STRICT_H
#define WIRE_JSON_STRICT_H

#include "base/json_escape.h"

/* Returns whether the text is one strict JSON value without blanks around it. False also for
 * nesting beyond 1000 levels. */
bool json_strict(struct str text);

/* Returns whether the value of a member must not be written; the key is raw. */
typedef bool (*json_hide_fn)(struct str key);

/* Appends the first value in the text as valid JSON; a value that is cut off is closed. Members for which `hide`
 * (may be NULL) returns true get the value "(hidden)"; returns their number. */
size_t json_repair(struct str text, json_hide_fn hide, struct buf *out);

/* Append a string, with or without quotes, from raw text: valid escapes stay. For plain text see
 * base/json_escape.h. */
void json_quote_raw(struct buf *out, struct str raw);
void json_escape_raw(struct buf *out, struct str raw);

#endif
