/* quote.c: see quote.h. */
#include "sql/quote.h"

static void put_quoted(struct buf *to, char quote, struct str text)
{
	struct str piece;

	buf_add_char(to, quote);
	for (bool first = true; str_split(&text, quote, &piece); first = false) {
		if (!first) {
			buf_add_char(to, quote);
			buf_add_char(to, quote);
		}
		buf_add_str(to, piece);
	}
	buf_add_char(to, quote);
}

void sql_quote(struct buf *to, struct str text)
{
	put_quoted(to, '\'', text);
}

void sql_quote_name(struct buf *to, struct str name)
{
	put_quoted(to, '"', name);
}
