/* step_meter.c: see step_meter.h. */
#include "live/step_meter.h"

enum step_mark step_mark_of(struct str name)
{
	if (str_starts(name, STR("Optimizer.step#")))
		return STEP_MARK_OPTIMIZER;
	return str_starts(name, STR("enumerate(DataLoader)#")) ? STEP_MARK_LOADER : STEP_MARK_NONE;
}

void step_meter_see(struct step_meter *m, enum step_mark mark, int64_t start_ns, int64_t dur_ns)
{
	struct step_marks *marks = &m->marks[mark];
	int64_t now = mark == STEP_MARK_OPTIMIZER ? start_ns + dur_ns : start_ns;

	if (mark == STEP_MARK_NONE || now <= 0)
		return;
	if (marks->count && now > marks->last_ns)
		marks->durations[(marks->count - 1) % STEP_METER_LAST] = now - marks->last_ns;
	else if (marks->count)
		return; /* of another thread, or from a clock that went back */
	marks->count++;
	marks->last_ns = now;
}

static const struct step_marks *marks_of(const struct step_meter *m)
{
	const struct step_marks *optimizer = &m->marks[STEP_MARK_OPTIMIZER];

	return optimizer->count ? optimizer : &m->marks[STEP_MARK_LOADER];
}

uint64_t step_meter_count(const struct step_meter *m)
{
	const struct step_marks *marks = marks_of(m);

	/* Each optimizer's step ends one; a wait for a batch ends the step before it. */
	return marks->count && m->marks[STEP_MARK_OPTIMIZER].count == 0 ? marks->count - 1
									: marks->count;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t step_meter_median(const struct step_meter *m)
{
	const struct step_marks *marks = marks_of(m);
	int64_t sorted[STEP_METER_LAST];
	size_t count;

	if (marks->count < 2)
		return 0;
	count = (size_t)MIN(marks->count - 1, (uint64_t)STEP_METER_LAST);
	memcpy(sorted, marks->durations, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return sorted[count / 2];
}
