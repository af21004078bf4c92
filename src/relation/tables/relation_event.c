/* relation_event.c: the relation `event`: one run of an op, or any other slice of time. */
#include "relation/columns.h"

/* Fills the name of an event: its own, or else its op's. */
static ow_status fill_name(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct model *m = p->m;
	const str_id *own = m->event.name ? m->event.name + first + 1 : NULL;
	const op_id *op = m->event.op + first + 1;
	uint32_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = own && own[i].v ? own[i].v : m->op.name[op[i].v].v;
	return OW_OK;
}

/* Fills the letter ph of an event; a complete slice has none in the model. */
static ow_status fill_ph(const struct table_part *p, const struct table_column *c, uint64_t first,
			 uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct model *m = p->m;
	uint32_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t ph = COLUMN_GET(m->event.ph, first + 1 + i);

		to[i] = !ph							  ? 'X'
			: ph < words_letters.count && words_letters.texts[ph].ptr ? ph
										  : 0;
	}
	return OW_OK;
}

static const struct path_column derived[] = {
	{ "op", "op.name", "name of the op" },
	{ "op_type", "op.type", NULL },
	{ "step", "step.number", NULL },
	{ "track", "track.name", "name of the track: thread, stream or device" },
	{ "thread", "track.name", "name of the track, under the column name that traces use" },
	{ "process", "track.process", NULL },
	{ "pid", "track.pid", NULL },
	{ "tid", "track.tid", NULL },
	{ "track_kind", "track.kind", "kind of the track: host, device, stream, copy, …" },
	{ "device", "track.device.name", "name of the device" },
	{ "rank", "track.source.rank", NULL },
	{ "source_id", "track.source", NULL },
	{ NULL, NULL, NULL },
};

static void replace(struct table *t, const char *name, const char *doc, table_fill_fn fill)
{
	struct table_column *c = &t->columns[table_find_column(t, str_from(name))];

	c->fill = fill;
	c->doc = doc;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	replace(t, "name", "name of the event itself, or of its op", fill_name);
	replace(t, "ph", "phase letter of the trace event; X for a complete slice", fill_ph);
	OW_TRY(columns_paths(t, TABLE_event, derived, err));
	OW_TRY(columns_flag(
		t, TABLE_event, "unfinished", EVENT_UNFINISHED,
		"true: the source gives no end, so the event ends with the slice around it", err));
	OW_TRY(columns_flag(
		t, TABLE_event, "overlaps", EVENT_OVERLAPS,
		"true: the event starts inside a slice of its track and ends after that slice",
		err));
	return columns_flag(t, TABLE_event, "unmatched", EVENT_UNMATCHED,
			    "true: the source has an end without a begin; kept as a point in time",
			    err);
}

const struct table_source relation_event = {
	.name = "event",
	.doc = "one run of an op, or any other slice of time",
	.is_table = true,
	.table = TABLE_event,
	.describe = describe,
};
