/*
 * verdict_idle.c: which line of the user's code runs while nothing is recorded, from sampled stacks. A thread with operators is judged by
 * the samples beside its events; where no thread has operators, all threads are.
 */
#include "analyze/verdict/verdict_int.h"

#include "analyze/samples/samples.h"

#define FEW 5 /* fewer samples than this are too few for a conclusion */

struct idle {
	const struct model *m;
	const struct phases *p;
	struct sample_choice choice;
	uint8_t *operators; /* for each track: 1 if operators run on it */
	int64_t *weight;    /* weight of each frame */
	int64_t all;
	uint32_t count;
	/* Position of the search: samples and events are sorted by track and time, windows by
	 * input and time. */
	uint32_t track, event, window;
	int64_t covered_ns; /* end of the recorded time on the track so far */
};

static void find_operators(struct idle *s)
{
	const struct model *m = s->m;
	bool any = false;

	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->event.phase[i] == PHASE_COMPUTE || m->event.phase[i] == PHASE_LAUNCH) {
			s->operators[m->event.track[i].v] = 1;
			any |= track_work(m, m->event.track[i]) == WORK_HOST;
		}
	if (!any)
		memset(s->operators, 1, m->track.count);
}

static bool is_in_step(struct idle *s, source_id source, int64_t ts_ns)
{
	const struct phase_window *w = s->p->windows;
	uint32_t count = s->p->window_count;

	while (s->window < count &&
	       (w[s->window].source.v != source.v || w[s->window].end_ns <= ts_ns))
		s->window++;
	return s->window < count && w[s->window].start_ns <= ts_ns &&
	       w[s->window].use == STEP_STEADY;
}

static bool is_covered(struct idle *s, uint32_t track, int64_t ts_ns)
{
	const struct event_table *e = &s->m->event;

	for (; s->event < e->count &&
	       (e->track[s->event].v < track ||
		(e->track[s->event].v == track && e->ts_ns[s->event] <= ts_ns));
	     s->event++)
		if (e->track[s->event].v == track && e->phase[s->event] != PHASE_UNKNOWN &&
		    event_is_slice(s->m, s->event))
			s->covered_ns = MAX(s->covered_ns, event_end(s->m, s->event));
	return s->covered_ns > ts_ns;
}

static void count_idle_sample(struct idle *s, uint32_t row, const uint32_t *own)
{
	const struct sample_table *t = &s->m->sample;
	uint32_t track = t->track[row].v;
	int64_t *weight;

	if (track != s->track) {
		s->track = track;
		s->window = 0;
		s->covered_ns = INT64_MIN;
	}
	if (!s->operators[track] || t->ts_ns[row] == TIME_UNKNOWN ||
	    !sample_counts(&s->choice, row) ||
	    !is_in_step(s, s->m->track.source[track], t->ts_ns[row]) ||
	    is_covered(s, track, t->ts_ns[row]))
		return;
	weight = &s->weight[own[t->stack[row].v]];
	*weight = sum_add(*weight, t->weight[row]);
	s->all = sum_add(s->all, t->weight[row]);
	s->count++;
}

static void write_idle_part(const struct idle *s, struct buf *text)
{
	uint32_t top = 0;
	char name[256];

	for (uint32_t i = 1; i < s->m->frame.count; i++)
		if (s->weight[i] > s->weight[top])
			top = i;
	if (!top || s->count < FEW || s->all <= 0)
		return;
	own_line_name(s->m, top, name, sizeof(name));
	buf_printf(text, "; %.0f %% of that is in %s", samples_percent(s->weight[top], s->all),
		   name);
}

static ow_status search_idle(struct idle *s, struct arena *scratch, struct buf *text,
			     struct ow_error *err)
{
	const uint32_t *own = line_own_frames(s->m, scratch);

	s->operators = ARENA_ARRAY(scratch, uint8_t, s->m->track.count);
	s->weight = ARENA_ARRAY(scratch, int64_t, s->m->frame.count);
	if (!own || !s->operators || !s->weight)
		return error_no_memory(err);
	find_operators(s);
	for (uint32_t i = 1; i < s->m->sample.count; i++)
		count_idle_sample(s, i, own);
	write_idle_part(s, text);
	return OW_OK;
}

ow_status verdict_idle(struct model *m, const struct event_filter *filter, const struct phases *p,
		       struct arena *scratch, struct buf *text, struct ow_error *err)
{
	struct view_options options;
	struct idle s = { .m = m, .p = p, .event = 1, .covered_ns = INT64_MIN };

	if (m->sample.count <= 1 && str_eq(model_str(m, m->source.format[1]), STR("live")))
		buf_puts(text, ", and a recording with --stacks shows what runs there");
	if (m->sample.count <= 1)
		return OW_OK;
	OW_TRY(model_require_stacks(m, err));
	view_options_init(&options);
	OW_TRY(samples_choose(m, &options, scratch, &s.choice, err));
	s.choice.filter = *filter;
	return search_idle(&s, scratch, text, err);
}
