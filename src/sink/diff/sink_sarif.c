/*
 * sink_sarif.c: the sink `sarif`: a comparison as a SARIF 2.1.0 log, for code scanning pages and editors: a result for each limit that is exceeded
 * or about which nothing can be said, and one at each line of code that takes longer.
 */
#include "sink/diff/diff_out.h"

#include "opwatch_config.h"

#define SCHEMA_ADDRESS                                                                             \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"                      \
	"sarif-schema-2.1.0.json"

/* Writes a path as a URI reference: characters that RFC 3986 does not allow in a path are escaped, and so is a colon
 * in the first segment, which would look like a scheme. */
static void put_uri(struct writer *w, struct str path)
{
	static const char plain[] = "-._~/!$&'()*+,;=@";
	size_t colon = str_find_char(path, ':'), slash = str_find_char(path, '/');

	writer_char(w, '"');
	if (path.len && path.ptr[0] == '/')
		writer_puts(w, "file://");
	else if (colon != STR_NONE && (slash == STR_NONE || colon < slash))
		writer_puts(w, "./");
	for (size_t i = 0; i < path.len; i++) {
		unsigned char c = (unsigned char)path.ptr[i];
		bool letter =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (letter || (c && strchr(plain, c)))
			writer_char(w, (char)c);
		else
			writer_printf(w, "%%%02X", c);
	}
	writer_char(w, '"');
}

static void put_rules(struct writer *w)
{
	static const char *const rules[][2] = {
		{ "limit", "A limit on the time of a step, on memory or on launches" },
		{ "slower-line", "A line of code that takes longer than before" }
	};

	writer_puts(w, "\"rules\": [");
	for (size_t i = 0; i < ARRAY_COUNT(rules); i++)
		writer_printf(w, "%s{\"id\": \"%s\", \"shortDescription\": {\"text\": \"%s\"}}",
			      i ? ", " : "", rules[i][0], rules[i][1]);
	writer_puts(w, "]");
}

static void begin_result(struct writer *w, bool *any, const char *rule, int index,
			 const char *level, struct str message, struct str more)
{
	writer_printf(w,
		      "%s\n      {\"ruleId\": \"%s\", \"ruleIndex\": %d, \"level\": \"%s\", "
		      "\"message\": {\"text\": ",
		      *any ? "," : "", rule, index, level);
	*any = true;
	if (more.len) {
		struct buf text;

		buf_init(&text, w->mem);
		buf_add_str(&text, message);
		buf_puts(&text, ": ");
		buf_add_str(&text, more);
		if (text.failed)
			writer_fail(w, error_no_memory(w->err));
		writer_json(w, buf_str(&text));
		buf_release(&text);
	} else {
		writer_json(w, message);
	}
	writer_char(w, '}');
}

static void put_location(struct writer *w, const struct diff_out_line *line)
{
	writer_puts(w, ", \"locations\": [{\"physicalLocation\": {\"artifactLocation\": "
		       "{\"uri\": ");
	put_uri(w, line->file);
	writer_char(w, '}');
	if (line->line_number > 0)
		writer_printf(w, ", \"region\": {\"startLine\": %lld}",
			      (long long)line->line_number);
	writer_puts(w, "}}]");
}

/* Writes a limit as a result. Code scanning pages show only results with a location, so a limit is shown at the line
 * whose time grew most. */
static void put_limit(struct writer *w, bool *any, const struct diff_out *d,
		      const struct diff_out_limit *limit)
{
	if (str_eq(limit->gate, STR("within")))
		return;
	begin_result(w, any, "limit", 0, str_eq(limit->gate, STR("beyond")) ? "error" : "warning",
		     limit->text, limit->message);
	if (d->line_count)
		put_location(w, &d->lines[0]);
	writer_char(w, '}');
}

static void put_line(struct writer *w, bool *any, const struct diff_out_line *line, bool beyond)
{
	begin_result(w, any, "slower-line", 1, beyond ? "warning" : "note", line->message, STR(""));
	put_location(w, line);
	writer_char(w, '}');
}

static void put_log(struct writer *w, const struct diff_out *d)
{
	bool any = false;

	writer_puts(w, "{\n  \"$schema\": \"" SCHEMA_ADDRESS "\",\n"
		       "  \"version\": \"2.1.0\",\n"
		       "  \"runs\": [{\n"
		       "    \"tool\": {\"driver\": {\"name\": \"opwatch\", \"version\": ");
	writer_json(w, str_from(OPWATCH_VERSION));
	writer_puts(w, ", ");
	put_rules(w);
	writer_puts(w, "}},\n    \"results\": [");
	for (size_t i = 0; i < d->limit_count; i++)
		put_limit(w, &any, d, &d->limits[i]);
	for (size_t i = 0; i < d->line_count; i++)
		put_line(w, &any, &d->lines[i], diff_out_is_beyond(d));
	writer_puts(w, any ? "\n    ],\n" : "],\n");
	writer_puts(w, "    \"properties\": {\"sentence\": ");
	writer_json(w, d->sentence);
	writer_puts(w, ", \"conclusion\": ");
	writer_json(w, d->conclusion);
	writer_puts(w, "}\n  }]\n}\n");
}

static ow_status sarif_write(struct table *table, const struct sink_options *options,
			     const struct out *out, struct ow_error *err)
{
	struct diff_out d;
	struct writer w;
	ow_status status = diff_out_read(&d, table, "sarif", err);

	(void)options;
	if (status == OW_OK) {
		writer_init(&w, table->mem, out, err);
		put_log(&w, &d);
		status = writer_finish(&w);
	}
	diff_out_release(&d);
	return status;
}

const struct sink sink_sarif = {
	.name = "sarif",
	.summary = "limits and slower lines of a comparison as a SARIF 2.1.0 log",
	.extension = "sarif",
	.accepts = SINK_RESULT,
	.write = sarif_write,
};
