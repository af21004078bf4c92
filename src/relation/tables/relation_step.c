/*
 * relation_step.c: the relation `step`: one training or inference step, with the times that the view `steps` shows
 * (analyze/steps/steady.h), so that steps of a rank do not overlap. If there are several ranks, the times are the first
 * rank's; the relation `phase` has those of each rank.
 */
#include "analyze/steps/phases.h"
#include "model/backing.h"
#include "relation/columns.h"

struct step {
	int64_t id, number, start_ns, end_ns, dur;
	struct str name, left_out;
	bool whole, steady;
};

#define MEMBER(type, unit, name, doc)                                                              \
	{                                                                                          \
#name, doc, type, unit, offsetof(struct step, name), NULL                          \
	}

static const struct row_member members[] = {
	MEMBER(TYPE_INT, UNIT_NONE, id, "number of the row, unique over all runs"),
	MEMBER(TYPE_INT, UNIT_NONE, number,
	       "number of the step, as given by the source or the user; NULL for a whole "
	       "recording"),
	MEMBER(TYPE_INT, UNIT_NS, start_ns, "begin of the step"),
	MEMBER(TYPE_INT, UNIT_NS, end_ns,
	       "end of the step, with the device work that was launched in it"),
	MEMBER(TYPE_TEXT, UNIT_NONE, name, "name of the marker that delimits the step, if any"),
	MEMBER(TYPE_BOOL, UNIT_NONE, whole,
	       "true: not a step, but a whole recording, because nothing marks its steps"),
	MEMBER(TYPE_INT, UNIT_NS, dur, "time from the begin to the end of the step"),
	MEMBER(TYPE_BOOL, UNIT_NONE, steady,
	       "true: the step is complete, after the warm-up and not the last one"),
	MEMBER(TYPE_TEXT, UNIT_NONE, left_out, "reason why the step is not steady"),
	{ NULL, NULL, 0, 0, 0, NULL },
};

static ow_status describe(struct table *t, struct ow_error *err)
{
	columns_need(t, TABLES_ALL);
	return rows_describe(t, members, sizeof(struct step), err);
}

static void set_row(const struct table_part *part, uint32_t step, const struct step_times *times,
		    struct step *to)
{
	const struct model *m = part->m;
	str_id name = m->step.name[step];
	const char *why = times->known ? step_use_words[times->use] : "";

	*to = (struct step){
		.id = part->id_base + step,
		.number = times->known ? m->step.number[step] : ROW_UNKNOWN,
		.start_ns = times->start_ns,
		.end_ns = times->end_ns,
		.dur = ROW_UNKNOWN,
		.whole = !times->known,
		.steady = times->known && times->use == STEP_STEADY,
	};
	if (name.v)
		to->name = model_str(m, name);
	if (*why)
		to->left_out = str_from(why);
	if (times->start_ns == TIME_UNKNOWN || times->end_ns == TIME_UNKNOWN ||
	    __builtin_sub_overflow(times->end_ns, times->start_ns, &to->dur))
		to->dur = ROW_UNKNOWN;
}

static ow_status make_rows(struct table_part *part, struct phases *p, struct ow_error *err)
{
	uint32_t count = part->m->step.count ? part->m->step.count - 1 : 0;
	struct step *rows = ARENA_ARRAY(&part->arena, struct step, (size_t)count + 1);
	struct step_times *times;

	if (!rows)
		return error_no_memory(err);
	OW_TRY(steady_times(part->m, p, &p->arena, &times, err));
	for (uint32_t i = 0; i < count; i++)
		set_row(part, i + 1, &times[i + 1], &rows[i]);
	rows_set(part, rows, count);
	return OW_OK;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	(void)t;
	return rows_of_phases(part, make_rows, err);
}

const struct table_source relation_step = {
	.name = "step",
	.doc = "one training or inference step",
	.describe = describe,
	.prepare = prepare,
};
