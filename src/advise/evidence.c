/*
 * evidence.c: the events and ranges that a finding is about, as JSON: ids are those of SQL, the timeline and the page. Used by advice.c,
 * which knows the cost of a finding, or only its phase where there is no replay.
 */
#include "advise/advice.h"

#include "base/json_escape.h"

#define EVIDENCE_MOST 5

/* A piece of time on a track. If no event covers it, event is 0 and the name is empty. */
struct stretch {
	uint32_t event;
	int64_t ts_ns, dur_ns;
	track_id track;
	source_id source;
	struct str name, line;
	uint32_t step; /* number of the step; 0: outside of all steps */
};

static void add_stretch(const struct advice *a, struct buf *to, const struct stretch *s, bool first)
{
	const struct model *m = a->m;
	int32_t rank = m->source.rank[s->source.v];

	buf_puts(to, first ? "{" : ", {");
	if (s->event)
		buf_printf(to, "\"event\": %u, ", s->event);
	buf_printf(to, "\"ts_ns\": %lld, \"dur_ns\": %lld", (long long)s->ts_ns,
		   (long long)s->dur_ns);
	if (s->track.v) {
		buf_puts(to, ", \"track\": ");
		json_quote(to, model_str(m, m->track.name[s->track.v]));
	}
	if (s->name.len) {
		buf_puts(to, ", \"op\": ");
		json_quote(to, s->name);
	}
	if (s->line.len) {
		buf_puts(to, ", \"line\": ");
		json_quote(to, s->line);
	}
	if (rank >= 0)
		buf_printf(to, ", \"rank\": %d", rank);
	if (s->step)
		buf_printf(to, ", \"step\": %lld", (long long)m->step.number[s->step]);
	buf_add_char(to, '}');
}

static ow_status finish(struct advice *a, struct buf *text, struct str *out)
{
	buf_add_char(text, ']');
	*out = (struct str){ 0 };
	if (!text->failed)
		*out = arena_str(a->arena, buf_str(text));
	buf_release(text);
	return out->ptr ? OW_OK : error_no_memory(a->err);
}

/* Returns the position of a new item in the list of the longest ones, longest first;
 * EVIDENCE_MOST if it is too short. */
static uint32_t place_of(uint32_t *top, int64_t *longest, uint32_t *count, uint32_t id, int64_t dur)
{
	uint32_t k = *count;

	while (k && longest[k - 1] < dur)
		k--;
	if (k == EVIDENCE_MOST)
		return k;
	*count = MIN(*count + 1, EVIDENCE_MOST);
	memmove(&top[k + 1], &top[k], (*count - 1 - k) * sizeof(*top));
	memmove(&longest[k + 1], &longest[k], (*count - 1 - k) * sizeof(*longest));
	top[k] = id;
	longest[k] = dur;
	return k;
}

ow_status evidence_of_cost(struct advice *a, const struct cost *cost, struct str *out)
{
	const struct graph *g = &a->s.g;
	int64_t longest[EVIDENCE_MOST];
	uint32_t top[EVIDENCE_MOST], count = 0;
	struct buf text;

	for (size_t i = 0; i < cost->count; i++)
		if (node_is_steady(a, cost->nodes[i]))
			place_of(top, longest, &count, cost->nodes[i],
				 g->weight_ns[cost->nodes[i]]);
	buf_init(&text, a->m->mem);
	buf_add_char(&text, '[');
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = top[i];
		char line[200];

		node_line(&a->s, node, line, sizeof(line));
		add_stretch(
			a, &text,
			&(struct stretch){ g->event[node], g->start_ns[node], g->weight_ns[node],
					   node_track(g, node), lane_of_node(g, node)->source,
					   node_name(&a->s, node), str_from(line),
					   g->step[node] ? g->steps[g->step[node] - 1].step.v : 0 },
			i == 0);
	}
	return finish(a, &text, out);
}

/* For time that no event covers, such as code that was not recorded: lists the steps themselves. */
static void add_windows(struct advice *a, struct buf *to)
{
	for (uint32_t i = 0; i < MIN(a->steady.used_count, EVIDENCE_MOST); i++) {
		const struct phase_window *w = &a->s.g.phases.windows[a->steady.used[i]];

		add_stretch(a, to,
			    &(struct stretch){ .ts_ns = w->start_ns,
					       .dur_ns = span_length(w->start_ns, w->end_ns),
					       .source = w->source,
					       .step = w->step.v },
			    i == 0);
	}
}

/* Finds the begin of the first and the end of the last judged step. */
static void find_span(const struct advice *a, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MAX;
	*to_ns = INT64_MIN;
	for (uint32_t i = 0; i < a->steady.used_count; i++) {
		const struct phase_window *w = &a->s.g.phases.windows[a->steady.used[i]];

		*from_ns = MIN(*from_ns, w->start_ns);
		*to_ns = MAX(*to_ns, w->end_ns);
	}
}

ow_status evidence_of_class(struct advice *a, enum phase_class class, struct str *out)
{
	const struct model *m = a->m;
	uint8_t *used = judged_steps(a);
	int64_t from_ns, to_ns;
	int64_t longest[EVIDENCE_MOST];
	uint32_t top[EVIDENCE_MOST], count = 0;
	struct buf text;

	find_span(a, &from_ns, &to_ns);
	for (uint32_t i = 1; used && i < m->event.count; i++)
		if (m->event.op[i].v && m->event.dur_ns[i] > 0 &&
		    (m->event.step[i].v
			     ? used[m->event.step[i].v]
			     : m->event.ts_ns[i] >= from_ns && m->event.ts_ns[i] < to_ns) &&
		    phase_class_of(m, i, a->s.g.has_device) == class)
			place_of(top, longest, &count, i, m->event.dur_ns[i]);
	buf_init(&text, a->m->mem);
	buf_add_char(&text, '[');
	for (uint32_t i = 0; i < count; i++) {
		uint32_t event = top[i];
		char line[200];

		event_line(&a->s, event, line, sizeof(line));
		add_stretch(a, &text,
			    &(struct stretch){ event, m->event.ts_ns[event], m->event.dur_ns[event],
					       m->event.track[event],
					       m->track.source[m->event.track[event].v],
					       model_str(m, m->op.name[m->event.op[event].v]),
					       str_from(line), m->event.step[event].v },
			    i == 0);
	}
	if (!count)
		add_windows(a, &text);
	return finish(a, &text, out);
}
