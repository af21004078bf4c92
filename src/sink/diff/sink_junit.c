/*
 * sink_junit.c: the sink `junit`: the limits of a comparison as test cases, for CI systems that show JUnit's XML (GitLab, Jenkins, Azure). A
 * limit that is exceeded for certain is a failure; one about which nothing can be said is skipped, with the reason.
 */
#include "sink/diff/diff_out.h"

static size_t count_gates(const struct diff_out *d, const char *gate)
{
	size_t count = 0;

	for (size_t i = 0; i < d->limit_count; i++)
		count += str_eq(d->limits[i].gate, str_from(gate));
	return count;
}

static void put_attribute(struct writer *w, const char *name, struct str value)
{
	writer_printf(w, " %s=\"", name);
	writer_xml(w, value);
	writer_char(w, '"');
}

static void put_limit(struct writer *w, const struct diff_out_limit *limit)
{
	bool beyond = str_eq(limit->gate, STR("beyond"));

	writer_puts(w, "    <testcase classname=\"opwatch.diff\"");
	put_attribute(w, "name", limit->text);
	writer_puts(w, " time=\"0\">\n");
	if (beyond) {
		writer_puts(w, "      <failure type=\"beyond\"");
		put_attribute(w, "message", limit->message);
		writer_puts(w, ">");
		writer_xml(w, limit->message);
		writer_puts(w, "</failure>\n");
	} else if (!str_eq(limit->gate, STR("within"))) {
		writer_puts(w, "      <skipped");
		put_attribute(w, "message", limit->message);
		writer_puts(w, "/>\n");
	} else {
		writer_puts(w, "      <system-out>");
		writer_xml(w, limit->message);
		writer_puts(w, "</system-out>\n");
	}
	writer_puts(w, "    </testcase>\n");
}

static void put_suite(struct writer *w, const struct diff_out *d)
{
	size_t tests = d->limit_count, failures = count_gates(d, "beyond");
	size_t skipped = tests - failures - count_gates(d, "within");

	writer_printf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	writer_printf(w,
		      "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
		      tests, failures, skipped);
	writer_printf(w,
		      "  <testsuite name=\"opwatch diff\" tests=\"%zu\" failures=\"%zu\" "
		      "errors=\"0\" skipped=\"%zu\" time=\"0\">\n",
		      tests, failures, skipped);
	for (size_t i = 0; i < tests; i++)
		put_limit(w, &d->limits[i]);
	writer_puts(w, "    <system-out>");
	writer_xml(w, d->sentence);
	for (size_t i = 0; i < d->line_count; i++) {
		writer_puts(w, "\n");
		writer_xml(w, d->lines[i].line);
		writer_puts(w, ": ");
		writer_xml(w, d->lines[i].message);
	}
	writer_puts(w, "</system-out>\n  </testsuite>\n</testsuites>\n");
}

static ow_status junit_write(struct table *table, const struct sink_options *options,
			     const struct out *out, struct ow_error *err)
{
	struct diff_out d;
	struct writer w;
	ow_status status = diff_out_read(&d, table, "junit", err);

	(void)options;
	if (status == OW_OK) {
		writer_init(&w, table->mem, out, err);
		put_suite(&w, &d);
		status = writer_finish(&w);
	}
	diff_out_release(&d);
	return status;
}

const struct sink sink_junit = {
	.name = "junit",
	.summary = "limits of a comparison as test cases in JUnit's XML",
	.extension = "xml",
	.accepts = SINK_RESULT,
	.write = junit_write,
};
