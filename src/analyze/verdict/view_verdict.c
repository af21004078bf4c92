/*
 * view_verdict.c: the sentence of verdict.h as a table of one cell, so that it can be asked for like
 * everything else.
 */
#include "analyze/verdict.h"
#include "analyze/view.h"

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	uint32_t column = result_column(out, "verdict", "verdict", RESULT_TEXT, RESULT_PLAIN);
	struct event_filter filter;
	struct buf text;
	ow_status status;

	OW_TRY(view_filter(m, options, &filter, err));
	out->columns[column].fixed = true;
	buf_init(&text, m->mem);
	status = verdict_write(m, &filter, options->metric, &text, err);
	if (status == OW_OK)
		result_set_text(out, result_row(out, 0), column, buf_str(&text));
	buf_release(&text);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_verdict = {
	.name = "verdict",
	.summary = "one sentence on what the time goes to",
	.run = run,
};
