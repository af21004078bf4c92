/*
 * repaired_text.h: text of a file that says it is UTF-8 and is not, as a string of the model. For importers, which
 * count what they repair and tell.
 */
#ifndef IMPORT_REPAIRED_TEXT_H
#define IMPORT_REPAIRED_TEXT_H

#include "model/builder.h"

/* Each byte that belongs to no character becomes U+FFFD. */
str_id repaired_text(struct builder *b, struct str text);

#endif
