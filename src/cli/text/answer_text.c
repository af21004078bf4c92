/* answer_text.c: sentences above a table, broken at the width of the terminal; see answer_text.h. */
#include "cli/text/answer_text.h"

#include "cli/words.h"

#include <stdlib.h>

void answer_open(struct answer_text *a)
{
	*a = (struct answer_text){ 0 };
	a->to = open_memstream(&a->text, &a->len);
	if (!a->to)
		a->to = stdout; /* without memory the lines stay as long as they are */
}

void answer_close(struct answer_text *a, uint32_t width)
{
	if (a->to == stdout)
		return;
	if (fclose(a->to) == 0 && a->len)
		words_wrap(stdout, "", a->text, 0, width);
	free(a->text);
}

/* Escapes of control characters become blanks. */
void answer_json(FILE *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\\' && i + 1 < len && text[i + 1] == 'u') {
			i += 5;
			fputc(' ', to);
		} else if (text[i] == '\\' && i + 1 < len) {
			i++;
			fputc(text[i] == 'n' || text[i] == 't' || text[i] == 'r' ? ' ' : text[i],
			      to);
		} else {
			fputc(text[i], to);
		}
	}
}

bool answer_extra(FILE *to, const ow_result *r, const char *name, const char *before,
		  const char *after)
{
	const char *text = ow_result_extra(r, name);
	size_t len = text ? strlen(text) : 0;

	if (len < 3 || text[0] != '"')
		return false;
	fputs(before, to);
	answer_json(to, text + 1, len - 2);
	fputs(after, to);
	return true;
}
