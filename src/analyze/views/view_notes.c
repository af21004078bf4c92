/*
 * view_notes.c: the view `notes`: everything that was lost, damaged, repaired or doubtful while the inputs were read, in the order in which it
 * was found. Look here first when numbers seem wrong.
 */
#include "analyze/view.h"
#include "model/names.h"

enum { COLUMN_KIND, COLUMN_SOURCE, COLUMN_OFFSET, COLUMN_COUNT, COLUMN_TEXT };

static void add_columns(struct table *out)
{
	table_add_column(out, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "source", "source", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "offset", "at byte", TYPE_INT, UNIT_NONE);
	table_add_column(out, "count", "times", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "text", "what", TYPE_TEXT, UNIT_NONE);
}

static void add_note(struct table *out, const struct model *m, uint32_t note)
{
	uint32_t row = table_add_row(out, 0);
	source_id source = m->note.source[note];
	uint64_t offset = m->note.offset[note];

	table_set_model_text(out, row, COLUMN_KIND, str_from(note_kind_name(m->note.kind[note])));
	if (source.v)
		table_set_model_text(out, row, COLUMN_SOURCE,
				     model_str(m, m->source.path[source.v]));
	else
		table_set_unknown(out, row, COLUMN_SOURCE);
	if (offset <= INT64_MAX)
		table_set_int(out, row, COLUMN_OFFSET, (int64_t)offset);
	else
		table_set_unknown(out, row, COLUMN_OFFSET);
	table_set_int(out, row, COLUMN_COUNT,
		      (int64_t)MIN(m->note.times[note], (uint64_t)INT64_MAX));
	table_set_model_text(out, row, COLUMN_TEXT, model_str(m, m->note.text[note]));
}

static ow_status run_notes_view(struct model *m, const struct view_options *options,
				struct table *out, struct ow_error *err)
{
	struct event_filter filter;

	OW_TRY(view_filter(m, options, &filter, err));
	add_columns(out);
	for (uint32_t note = 1; note < m->note.count; note++)
		if (filter_source(&filter, m, m->note.source[note]))
			add_note(out, m, note);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_notes = {
	.name = "notes",
	.summary = "what was lost, damaged or doubtful in the inputs",
	.uses = VIEW_USES_RANK,
	.run = run_notes_view,
};
