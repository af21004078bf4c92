/* repaired_text.c: see repaired_text.h. */
#include "import/repaired_text.h"

str_id repaired_text(struct builder *b, struct str text)
{
	struct buf fixed;
	str_id id = { 0 };

	buf_init(&fixed, b->m->mem);
	while (text.len) {
		size_t good = utf8_valid_prefix(text);

		buf_add(&fixed, text.ptr, good);
		text = str_skip(text, good);
		if (text.len)
			buf_puts(&fixed, "\xef\xbf\xbd");
		text = str_skip(text, 1);
	}
	if (fixed.failed)
		builder_no_memory(b);
	else
		id = builder_str(b, buf_str(&fixed));
	buf_release(&fixed);
	return id;
}
