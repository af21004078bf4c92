/*
 * relation_phase.c: the relation `phase`: how the time of a step was spent, per step, input and device; see
 * analyze/steps/phases.h. Shares add up to the step's time.
 */
#include "analyze/steps/phases.h"
#include "model/backing.h"
#include "relation/columns.h"

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
	MEMBER(TYPE_INT, UNIT_NONE, step, "number of the step; NULL for a recording without steps"),
	MEMBER(TYPE_INT, UNIT_NONE, step_id, "the step"),
	MEMBER(TYPE_INT, UNIT_NONE, source_id, "the input"),
	MEMBER(TYPE_INT, UNIT_NONE, rank, "rank of the input"),
	MEMBER(TYPE_INT, UNIT_NONE, device_id, "the device"),
	MEMBER(TYPE_TEXT, UNIT_NONE, device, "name of the device; NULL without device work"),
	{ "phase", "name of the phase: what the time was spent on", TYPE_TEXT, UNIT_ENUM,
	  offsetof(struct phase, phase), &words_phase_class },
	MEMBER(TYPE_INT, UNIT_NS, start, "begin of the step"),
	MEMBER(TYPE_INT, UNIT_NS, dur, "duration of the step"),
	MEMBER(TYPE_INT, UNIT_NS, share, "time of the step that belongs to this phase alone"),
	MEMBER(TYPE_INT, UNIT_NS, total,
	       "time in which the phase was active, also during other phases"),
	MEMBER(TYPE_INT, UNIT_NS, exposed, "total time of the phase minus the overlapped time"),
	MEMBER(TYPE_INT, UNIT_NS, overlapped,
	       "for copies and communication: time in which the device also computed; else total "
	       "minus share"),
	MEMBER(TYPE_BOOL, UNIT_NONE, in_means,
	       "false: the step is not steady but warm-up, last or incomplete"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct phase), err);
}

static int64_t id_of(const struct table_part *part, uint32_t row)
{
	return row ? part->id_base + row : ROW_UNKNOWN;
}

static void set_row(const struct table_part *part, const struct phases *p,
		    const struct phase_row *row, unsigned class, struct phase *to)
{
	const struct model *m = part->m;
	const struct phase_window *window = &p->windows[row->window];
	const struct phase_lane *lane = &p->lanes[row->lane];
	int32_t rank = m->source.rank[window->source.v];

	*to = (struct phase){
		.step = window->known ? m->step.number[window->step.v] : ROW_UNKNOWN,
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
		.in_means = window->use == STEP_STEADY,
	};
	if (lane->has_device)
		to->device = model_str(m, m->device.name[lane->device.v]);
}

static ow_status make_rows(struct table_part *part, struct phases *p, struct ow_error *err)
{
	struct phase *rows =
		ARENA_ARRAY(&part->arena, struct phase, (size_t)p->row_count * CLASS_COUNT + 1);
	size_t count = 0;

	if (!rows)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->row_count; i++)
		for (unsigned c = 0; c < CLASS_COUNT; c++)
			if (phase_class_order[c] != CLASS_RUN_QUEUE || p->processors)
				set_row(part, p, &p->rows[i], phase_class_order[c], &rows[count++]);
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_phases(part, make_rows, err);
}

const struct table_source relation_phase = {
	.name = "phase",
	.doc = "phases of a step: what its time was spent on, per input and device",
	.describe = describe,
	.prepare = prepare,
};
