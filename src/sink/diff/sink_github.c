/*
 * sink_github.c: the sink `github`: a comparison as commands of GitHub Actions on standard output, which become annotations: one for each limit
 * that is exceeded or about which nothing can be said, and one at each line of code that takes longer.
 */
#include "sink/diff/diff_out.h"

/* Escapes the data of a workflow command: %, CR and LF; in a property also : and , (the rules of GitHub's toolkit). */
static void put_escaped(struct writer *w, struct str text, bool property)
{
	for (size_t i = 0, from = 0; i <= text.len; i++) {
		char c = i < text.len ? text.ptr[i] : '\0';
		bool special =
			c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));

		if (i < text.len && !special)
			continue;
		writer_utf8(w, str_make(text.ptr + from, i - from));
		if (i < text.len)
			writer_printf(w, "%%%02X", (unsigned char)c);
		from = i + 1;
	}
}

static void put_limit(struct writer *w, const struct diff_out_limit *limit)
{
	bool beyond = str_eq(limit->gate, STR("beyond"));

	if (str_eq(limit->gate, STR("within")))
		return;
	writer_puts(w, beyond ? "::error title=" : "::warning title=");
	put_escaped(w, limit->text, true);
	writer_puts(w, "::");
	put_escaped(w, limit->message, false);
	writer_char(w, '\n');
}

static void put_line(struct writer *w, const struct diff_out *d, const struct diff_out_line *line)
{
	bool beyond = diff_out_is_beyond(d);

	writer_puts(w, beyond ? "::error file=" : "::notice file=");
	put_escaped(w, line->file, true);
	if (line->line_number > 0)
		writer_printf(w, ",line=%lld", (long long)line->line_number);
	writer_puts(w, ",title=");
	if (d->unit == UNIT_NS) {
		writer_puts(w, d->steps ? "slower per step" : "slower");
	} else {
		writer_puts(w, "more ");
		put_escaped(w, d->metric, true);
	}
	writer_puts(w, "::");
	put_escaped(w, line->message, false);
	writer_char(w, '\n');
}

static ow_status github_write(struct table *table, const struct sink_options *options,
			      const struct out *out, struct ow_error *err)
{
	struct diff_out d;
	struct writer w;
	ow_status status = diff_out_read(&d, table, "github", err);

	(void)options;
	if (status == OW_OK) {
		writer_init(&w, table->mem, out, err);
		writer_puts(&w, "::notice title=opwatch diff::");
		put_escaped(&w, d.sentence, false);
		writer_char(&w, '\n');
		for (size_t i = 0; i < d.limit_count; i++)
			put_limit(&w, &d.limits[i]);
		for (size_t i = 0; i < d.line_count; i++)
			put_line(&w, &d, &d.lines[i]);
		status = writer_finish(&w);
	}
	diff_out_release(&d);
	return status;
}

const struct sink sink_github = {
	.name = "github",
	.summary = "a comparison as annotations of GitHub Actions",
	.extension = "txt",
	.accepts = SINK_RESULT,
	.write = github_write,
};
