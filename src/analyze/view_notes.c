/*
 * view_notes.c: everything that was lost, damaged, repaired or doubtful while reading the inputs, in
 * the order in which it was found. The first place to look when numbers seem wrong.
 */
#include "analyze/view.h"
#include "model/names.h"

enum { COLUMN_KIND, COLUMN_SOURCE, COLUMN_OFFSET, COLUMN_COUNT, COLUMN_TEXT };

static void add_columns(struct result *out)
{
	result_column(out, "kind", "kind", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "source", "source", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "offset", "at byte", RESULT_INT, RESULT_PLAIN);
	result_column(out, "count", "times", RESULT_INT, RESULT_COUNT);
	result_column(out, "text", "what", RESULT_TEXT, RESULT_PLAIN);
}

static void add_note(struct result *out, const struct model *m, uint32_t note)
{
	uint32_t row = result_row(out, 0);
	source_id source = m->note.source[note];
	uint64_t offset = m->note.offset[note];

	result_set_model_text(out, row, COLUMN_KIND, str_from(note_kind_name(m->note.kind[note])));
	if (source.v)
		result_set_model_text(out, row, COLUMN_SOURCE,
				      model_str(m, m->source.path[source.v]));
	else
		result_set_unknown(out, row, COLUMN_SOURCE);
	if (offset <= INT64_MAX)
		result_set_int(out, row, COLUMN_OFFSET, (int64_t)offset);
	else
		result_set_unknown(out, row, COLUMN_OFFSET);
	result_set_int(out, row, COLUMN_COUNT,
		       (int64_t)MIN(m->note.times[note], (uint64_t)INT64_MAX));
	result_set_model_text(out, row, COLUMN_TEXT, model_str(m, m->note.text[note]));
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct event_filter filter;

	OW_TRY(view_filter(m, options, &filter, err));
	add_columns(out);
	for (uint32_t note = 1; note < m->note.count; note++)
		if (filter_source(&filter, m, m->note.source[note]))
			add_note(out, m, note);
	if (options->limit)
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_notes = {
	.name = "notes",
	.summary = "what was lost, damaged or doubtful in the inputs",
	.run = run,
};
