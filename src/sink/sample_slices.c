/*
 * sample_slices.c: see sample_slices.h. A sample of a clock lasts as long as it weighs, one of something else (cycles, page faults)
 * until the next, but not much longer than usual. Small gaps, which clocks have, are closed.
 */
#include "sink/sample_slices.h"

#define DEPTH_MAX 2048 /* frames beyond it are left out, at the leaf's end */

struct open_frame {
	uint64_t key;
	uint32_t frame;
	int64_t start;
};

struct slices {
	const struct model *m;
	const struct event_filter *filter;
	const uint8_t *wanted, *skip; /* per metric; per track */
	sample_slice_fn emit;
	void *arg;
	uint32_t track, depth;
	int64_t end, usual; /* of what is open; how far samples of this track are apart */
	struct open_frame open[DEPTH_MAX];
	uint32_t path[DEPTH_MAX]; /* frames of the sample at hand, the root first */
	char text[512];
};

bool sample_slices_any(const struct model *m)
{
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (m->sample.ts_ns[i] != TIME_UNKNOWN)
			return true;
	return false;
}

static bool is_wanted(const struct slices *s, uint32_t i)
{
	const struct sample_table *t = &s->m->sample;

	return t->ts_ns[i] != TIME_UNKNOWN && !s->skip[t->track[i].v] &&
	       s->wanted[t->metric[i].v] && t->ts_ns[i] >= s->filter->from_ns &&
	       t->ts_ns[i] < s->filter->to_ns && filter_track(s->filter, s->m, t->track[i]) &&
	       filter_step(s->filter, COLUMN_GET(t->step, i));
}

/* ---- frames ---- */

/* What makes two frames one slice: the function, else what stands for it. */
static uint64_t key_of(const struct model *m, uint32_t frame)
{
	uint32_t function = m->frame.function[frame].v;

	if (function)
		return function;
	return (uint64_t)1 << 63 | (uint64_t)COLUMN_GET(m->frame.module, frame).v << 31 |
	       m->frame.file[frame].v;
}

static struct str name_of(struct slices *s, uint32_t frame)
{
	const struct frame_table *f = &s->m->frame;
	struct str module = model_str(s->m, COLUMN_GET(f->module, frame));
	size_t slash = str_rfind_char(module, '/');

	if (f->function[frame].v)
		return model_str(s->m, f->function[frame]);
	if (f->file[frame].v)
		return model_str(s->m, f->file[frame]);
	if (!module.len)
		return STR("[unknown]");
	if (slash != STR_NONE)
		module = str_skip(module, slash + 1);
	snprintf(s->text, sizeof(s->text), "[%.*s]", (int)MIN(module.len, 480), module.ptr);
	return str_from(s->text);
}

static uint32_t find_path(struct slices *s, stack_id stack)
{
	const struct stack_table *t = &s->m->stack;
	uint32_t depth = 0, count;

	for (stack_id at = stack; at.v; at = t->parent[at.v])
		depth++;
	count = MIN(depth, DEPTH_MAX);
	for (stack_id at = stack; at.v; at = t->parent[at.v])
		if (--depth < count)
			s->path[depth] = t->frame[at.v].v;
	return count;
}

/* ---- slices ---- */

static void close_down_to(struct slices *s, uint32_t depth)
{
	while (s->depth > depth) {
		const struct open_frame *o = &s->open[--s->depth];

		s->emit(s->arg, s->track, name_of(s, o->frame), o->start,
			wrap_sub(s->end, o->start));
	}
}

static void add_sample(struct slices *s, uint32_t i, int64_t end)
{
	uint32_t count = find_path(s, s->m->sample.stack[i]), same = 0;
	int64_t ts = s->m->sample.ts_ns[i];

	if (s->end < ts)
		close_down_to(s, 0);
	while (same < count && same < s->depth && s->open[same].key == key_of(s->m, s->path[same]))
		same++;
	close_down_to(s, same);
	for (; s->depth < count; s->depth++)
		s->open[s->depth] = (struct open_frame){ key_of(s->m, s->path[s->depth]),
							 s->path[s->depth], ts };
	s->end = end;
}

/* Where a sample ends; next: the one behind it on its track, or 0. */
static int64_t end_of(const struct slices *s, uint32_t i, uint32_t next)
{
	const struct sample_table *t = &s->m->sample;
	bool clock = str_eq(model_str(s->m, s->m->metric.unit[t->metric[i].v]), STR("ns"));
	int64_t ts = t->ts_ns[i], gap = next ? wrap_sub(t->ts_ns[next], ts) : INT64_MAX, dur;

	dur = clock ? MAX(t->weight[i], 0) : MIN(gap, s->usual);
	if (gap >= 0 && (gap < dur || gap - dur <= dur / 2))
		dur = gap;
	return ts > INT64_MAX - dur ? INT64_MAX : ts + dur;
}

static uint32_t next_of(const struct slices *s, uint32_t i)
{
	const struct sample_table *t = &s->m->sample;

	for (uint32_t k = i + 1; k < t->count && t->track[k].v == t->track[i].v; k++)
		if (is_wanted(s, k))
			return k;
	return 0;
}

/* A new track: four times the mean distance of its samples is a long one. */
static void begin_track(struct slices *s, uint32_t first)
{
	const struct sample_table *t = &s->m->sample;
	uint32_t last = first;

	close_down_to(s, 0);
	s->track = t->track[first].v;
	while (last + 1 < t->count && t->track[last + 1].v == s->track)
		last++;
	s->usual = wrap_sub(t->ts_ns[last], t->ts_ns[first]) / MAX((int64_t)(last - first), 1);
	s->usual = MAX(MIN(s->usual, INT64_MAX / 4) * 4, 1);
	s->end = INT64_MIN;
}

bool sample_slices(const struct model *m, const struct event_filter *filter, const uint8_t *wanted,
		   const uint8_t *skip, sample_slice_fn emit, void *arg)
{
	struct slices *s = mem_zalloc(m->mem, sizeof(*s));

	if (!s)
		return false;
	s->m = m;
	s->filter = filter;
	s->wanted = wanted;
	s->skip = skip;
	s->emit = emit;
	s->arg = arg;
	for (uint32_t i = 1, next; i < m->sample.count; i = next) {
		next = i + 1;
		if (!is_wanted(s, i))
			continue;
		if (m->sample.track[i].v != s->track)
			begin_track(s, i);
		next = next_of(s, i);
		add_sample(s, i, end_of(s, i, next));
		next = next ? next : i + 1;
	}
	close_down_to(s, 0);
	mem_free(m->mem, s, sizeof(*s));
	return true;
}
