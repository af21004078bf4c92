/*
 * share_where.c: where the time of a phase goes when there is no replay: its costliest op in the steps that are judged, with the line
 * of code that made it. Used by rules that report the share of a phase.
 */
#include "advise/advice.h"

#include "analyze/samples/samples.h"

uint8_t *judged_steps(struct advice *a)
{
	uint8_t *used = ARENA_ARRAY(&a->scratch, uint8_t, (size_t)a->m->step.count + 1);

	for (uint32_t i = 0; used && i < a->steady.used_count; i++)
		used[a->s.g.phases.windows[a->steady.used[i]].step.v] = 1;
	return used;
}

struct str share_where(struct advice *a, enum phase_class class)
{
	const struct model *m = a->m;
	int64_t *sums = ARENA_ARRAY(&a->scratch, int64_t, (size_t)m->op.count + 1);
	uint8_t *used = judged_steps(a);
	uint32_t best = 0;
	struct str name;
	char line[200];

	for (uint32_t i = 1; sums && used && i < m->event.count; i++) {
		uint32_t op = m->event.op[i].v;

		if (!op || m->event.dur_ns[i] <= 0 || !used[m->event.step[i].v] ||
		    phase_class_of(m, i, true) != class)
			continue;
		sums[op] = span_add(sums[op], m->event.dur_ns[i]);
		if (!best || sums[op] > sums[m->event.op[best].v])
			best = i;
	}
	if (!best)
		return str_from(phase_class_names[class]);
	name = model_str(m, m->op.name[m->event.op[best].v]);
	if (model_require_stacks(a->m, NULL) != OW_OK)
		return name;
	/* includes the frames that were just decoded */
	a->s.own_line = line_own_frames(m, &a->s.arena);
	event_line(&a->s, best, line, sizeof(line));
	return advice_text(a, "%.*s%s%s", (int)MIN(name.len, 200), name.ptr, *line ? ", " : "",
			   line);
}
