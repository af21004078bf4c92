/*
 * relation_phase.c: the relation `phase`: what every moment of a step went to, per step, input and device; see
 * analyze/phases.h. Shares add up to the step's time.
 */
#include "analyze/phases.h"
#include "model/backing.h"
#include "relation/rows.h"

struct phase {
	int64_t step, step_id, source_id, rank, device_id;
	struct str device;
	uint32_t phase;
	int64_t start, dur, share, total, exposed, overlapped;
	bool in_means;
};

#define MEMBER(type, unit, name, doc)                                                              \
	{                                                                                          \
#name, doc, type, unit, offsetof(struct phase, name), NULL                         \
	}

static const struct row_member members[] = {
	MEMBER(RELATION_INT64, UNIT_NONE, step, "number of the step"),
	MEMBER(RELATION_INT64, UNIT_NONE, step_id, "the step"),
	MEMBER(RELATION_INT64, UNIT_NONE, source_id, "the input"),
	MEMBER(RELATION_INT64, UNIT_NONE, rank, "rank of the input"),
	MEMBER(RELATION_INT64, UNIT_NONE, device_id, "the device"),
	MEMBER(RELATION_TEXT, UNIT_NONE, device, "its name; NULL without device work"),
	{ "phase", "what the time went to", RELATION_TEXT, UNIT_ENUM, offsetof(struct phase, phase),
	  &words_phase_class },
	MEMBER(RELATION_INT64, UNIT_NS, start, "begin of the step"),
	MEMBER(RELATION_INT64, UNIT_NS, dur, "duration of the step"),
	MEMBER(RELATION_INT64, UNIT_NS, share, "time that counts for this phase only"),
	MEMBER(RELATION_INT64, UNIT_NS, total, "time in which it was active, also below others"),
	MEMBER(RELATION_INT64, UNIT_NS, exposed, "total less overlapped"),
	MEMBER(RELATION_INT64, UNIT_NS, overlapped,
	       "copies and communication: time with compute; else total less share"),
	MEMBER(RELATION_BOOL, UNIT_NONE, in_means, "false for a first or incomplete step"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct relation_table *t, struct error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct phase), err);
}

static int64_t id_of(const struct relation_part *part, uint32_t row)
{
	return row ? part->id_base + row : ROW_UNKNOWN;
}

static void set_row(const struct relation_part *part, const struct phases *p,
		    const struct phase_row *row, unsigned class, struct phase *to)
{
	const struct model *m = part->m;
	const struct phase_window *window = &p->windows[row->window];
	const struct phase_lane *lane = &p->lanes[row->lane];
	int32_t rank = m->source.rank[window->source.v];

	*to = (struct phase){
		.step = window->step.v ? m->step.number[window->step.v] : ROW_UNKNOWN,
		.step_id = id_of(part, window->step.v),
		.source_id = id_of(part, window->source.v),
		.rank = window->source.v && rank >= 0 ? rank : ROW_UNKNOWN,
		.device_id = id_of(part, lane->device.v),
		.phase = class + 1,
		.start = window->start_ns,
		.dur = span_length(window->start_ns, window->end_ns),
		.share = row->sums.share[class],
		.total = row->sums.total[class],
		.exposed = row->sums.total[class] - row->sums.overlapped[class],
		.overlapped = row->sums.overlapped[class],
		.in_means = window->use == WINDOW_COUNTS,
	};
	if (lane->has_device)
		to->device = model_str(m, m->device.name[lane->device.v]);
}

static ow_status make_rows(struct relation_part *part, const struct phases *p, struct error *err)
{
	size_t count = (size_t)p->row_count * CLASS_COUNT;
	struct phase *rows = ARENA_ARRAY(&part->arena, struct phase, count + 1);

	if (!rows)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->row_count; i++)
		for (unsigned c = 0; c < CLASS_COUNT; c++)
			set_row(part, p, &p->rows[i], phase_class_order[c],
				&rows[i * CLASS_COUNT + c]);
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct relation_table *t, struct relation_part *part, struct error *err)
{
	struct event_filter all = EVENT_FILTER_ALL;
	struct phases p = { 0 };
	ow_status status;

	(void)t;
	status = phases_analyse(part->m, &all, &p, err);
	if (status == OW_OK)
		status = make_rows(part, &p, err);
	phases_release(&p);
	return status;
}

const struct relation relation_phase = {
	.name = "phase",
	.doc = "what the time of a step went to, per input and device",
	.describe = describe,
	.prepare = prepare,
};
