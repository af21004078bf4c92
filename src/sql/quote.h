/* quote.h: names and texts as SQL writes them, for everything in this folder that makes statements. */
#ifndef SQL_QUOTE_H
#define SQL_QUOTE_H

#include "base/buf.h"

/* A text as a literal: 'it''s'. */
void sql_quote(struct buf *to, struct str text);
/* A name that may be any text: "a ""b""". */
void sql_quote_name(struct buf *to, struct str name);

#endif
