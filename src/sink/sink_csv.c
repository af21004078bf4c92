/*
 * sink_csv.c: any result as comma-separated values (RFC 4180: CR LF after each record, quotes where
 * needed, a header). Numbers are exact and unscaled, unknown values empty; a tree has its depth in a
 * first column. Nothing is done about cells that a spreadsheet takes for formulas.
 */
#include "sink/writer.h"

#include <math.h>

static bool needs_quotes(struct str s)
{
	if (!s.len)
		return true; /* an empty text differs from an unknown one */
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == ',' || s.ptr[i] == '"' || s.ptr[i] == '\n' || s.ptr[i] == '\r')
			return true;
	return s.ptr[0] == ' ' || s.ptr[s.len - 1] == ' ';
}

static void put_text(struct writer *w, struct str s)
{
	struct str piece;

	if (!needs_quotes(s)) {
		writer_utf8(w, s);
		return;
	}
	writer_char(w, '"');
	for (bool first = true; str_split(&s, '"', &piece); first = false) {
		writer_puts(w, first ? "" : "\"\"");
		writer_utf8(w, piece);
	}
	writer_char(w, '"');
}

static void put_value(struct writer *w, const struct result_column *c, uint32_t row)
{
	if (c->known && !c->known[row])
		return;
	if (c->type == RESULT_TEXT)
		put_text(w, c->texts[row]);
	else if (c->type == RESULT_NUMBER)
		writer_str(w, c->texts[row]);
	else if (c->type == RESULT_BOOL)
		writer_puts(w, c->ints[row] ? "true" : "false");
	else if (c->type == RESULT_INT)
		writer_int(w, c->ints[row]);
	else if (isfinite(c->reals[row]))
		writer_real(w, c->reals[row]);
}

static void put_header(struct writer *w, const struct result *r)
{
	if (r->depth)
		writer_puts(w, "depth");
	for (uint32_t c = 0; c < r->column_count; c++) {
		writer_puts(w, c || r->depth ? "," : "");
		put_text(w, str_from(r->columns[c].name));
	}
	writer_puts(w, "\r\n");
}

static ow_status csv_write(struct result *result, const struct sink_options *options,
			   const struct out *out, struct error *err)
{
	struct writer w;

	writer_init(&w, result->mem, out, err);
	if (!options->continued)
		put_header(&w, result);
	for (uint32_t row = 0; row < result->row_count && w.status == OW_OK; row++) {
		if (result->depth)
			writer_int(&w, result->depth[row]);
		for (uint32_t c = 0; c < result->column_count; c++) {
			writer_puts(&w, c || result->depth ? "," : "");
			put_value(&w, &result->columns[c], row);
		}
		writer_puts(&w, "\r\n");
	}
	return writer_finish(&w);
}

const struct sink sink_csv = {
	.name = "csv",
	.summary = "comma-separated values with a header",
	.extension = "csv",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = csv_write,
};
