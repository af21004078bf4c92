/*
 * view_verdict.c: the view `verdict`: the sentence of verdict.h as a table of one cell, so commands, SQL and Python can ask for it.
 */
#include "analyze/verdict/verdict.h"
#include "analyze/view.h"

static ow_status run_verdict_view(struct model *m, const struct view_options *options,
				  struct table *out, struct ow_error *err)
{
	uint32_t column = table_add_column(out, "verdict", "verdict", TYPE_TEXT, UNIT_NONE);
	struct event_filter filter;
	struct buf text;
	ow_status status;

	OW_TRY(view_filter(m, options, &filter, err));
	out->columns[column].fixed = true;
	buf_init(&text, m->mem);
	status = verdict_write(m, &filter, options->metric, &text, err);
	if (status == OW_OK)
		table_set_text(out, table_add_row(out, 0), column, buf_str(&text));
	buf_release(&text);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_verdict = {
	.name = "verdict",
	.summary = "one sentence on where the time goes",
	.uses = VIEW_USES_PART | VIEW_USES_METRIC,
	.run = run_verdict_view,
};
