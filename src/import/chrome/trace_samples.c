/*
 * trace_samples.c: converts sampled stacks in a Chrome trace to samples of the model, so that the views of functions
 * and flame graphs have them: the list `samples` beside the events, whose frames are in `stackFrames`, and CPU profiles
 * of V8, which Chrome's DevTools write into the arguments of the events Profile, ProfileChunk and CpuProfile.
 * trace_place.c calls it when the events are placed; they stay events, too.
 */
#include "import/chrome/trace_int.h"

#include "base/vec.h"
#include "import/stacks/v8_profile.h"

#define ARGS_MAX ((uint32_t)1 << 30)

/* An event that holds a piece of a profile. */
struct piece {
	uint32_t event;
	int64_t pid;
	uint64_t id; /* id of the profile in its process */
	bool begins; /* a Profile event, on the sampled thread */
	bool whole;  /* a CpuProfile event, which holds a whole profile */
};

struct collecting {
	const struct trace_job *job;
	struct model *m;
	int64_t base_ns;
	struct piece *pieces;
	size_t count, cap;
	struct buf text;
};

/* Adds the list `samples`: events of phase P with a stack. Each counts once. */
static ow_status add_listed(const struct trace_job *job, uint32_t first)
{
	struct builder *b = job->b;
	const struct event_table *e = &b->m->event;
	metric_id metric = { 0 };

	for (uint32_t i = first; i < e->count && e->stack && e->ph; i++) {
		if (e->ph[i] != 'P' || !e->stack[i].v)
			continue;
		if (!metric.v) {
			metric = builder_metric(b, STR("samples"), STR("count"));
			OW_TRY(builder_status(b));
			b->m->metric.is_default[metric.v] = 1;
		}
		builder_add_sample(b, &(struct sample_row){ .ts_ns = e->ts_ns[i],
							    .weight = 1,
							    .metric = metric,
							    .stack = e->stack[i],
							    .track = e->track[i] });
	}
	return builder_status(b);
}

/* Returns the id of an event, which few events have; both lists ascend. */
static uint64_t id_of(const struct model *m, uint32_t event)
{
	uint32_t low = 1, high = m->event_key.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->event_key.event[middle].v < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->event_key.count && m->event_key.event[low].v == event ? m->event_key.id[low]
									      : 0;
}

static ow_status find_pieces(struct collecting *c, const struct event_draft *draft)
{
	str_id begin = model_find_str(c->m, STR("Profile"));
	str_id chunk = model_find_str(c->m, STR("ProfileChunk"));
	str_id whole = model_find_str(c->m, STR("CpuProfile"));
	const struct event_table *e = &c->m->event;

	if ((!chunk.v && !whole.v) || !e->args_offset || !e->args_size)
		return OW_OK;
	for (uint32_t i = draft->first; i < e->count; i++) {
		uint32_t name = draft->op_name[i - draft->first].v;
		struct piece piece = { .event = i,
				       .pid = c->m->track.pid[e->track[i].v],
				       .begins = begin.v && name == begin.v,
				       .whole = whole.v && name == whole.v };

		if ((!piece.begins && !piece.whole && (!chunk.v || name != chunk.v)) ||
		    !e->args_size[i])
			continue;
		piece.id = piece.whole ? UINT64_MAX - i : id_of(c->m, i);
		if (!vec_push(c->job->mem, c->pieces, c->count, c->cap, piece))
			return trace_no_memory(c->job);
	}
	return OW_OK;
}

static int by_profile(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->begins != y->begins)
		return x->begins ? -1 : 1;
	return (x->event > y->event) - (x->event < y->event);
}

static ow_status take_piece(struct collecting *c, struct v8_profile *profile,
			    const struct piece *piece)
{
	uint32_t size = c->m->event.args_size[piece->event];

	if (size > ARGS_MAX)
		return OW_OK;
	buf_clear(&c->text);
	if (!buf_reserve(&c->text, size))
		return trace_no_memory(c->job);
	OW_TRY(input_read_at(c->job->ctx->in, c->m->event.args_offset[piece->event], c->text.ptr,
			     size, c->job->ctx->err));
	return v8_profile_take(profile, str_make(c->text.ptr, size));
}

/* Adds the pieces [first, end) of one profile; the thread is that of its begin. */
static ow_status add_profile(struct collecting *c, size_t first, size_t end)
{
	struct v8_profile *profile = v8_profile_new(c->job->ctx);
	track_id track = c->m->event.track[c->pieces[first].event];
	ow_status status = OW_OK;

	if (!profile)
		return trace_no_memory(c->job);
	for (size_t i = first; i < end && status == OW_OK; i++)
		status = take_piece(c, profile, &c->pieces[i]);
	if (status == OW_OK)
		status = v8_profile_finish(profile, track, c->base_ns);
	v8_profile_free(profile);
	return status;
}

ow_status trace_samples(const struct trace_job *job, const struct event_draft *draft,
			int64_t base_ns)
{
	struct collecting c = { .job = job, .m = job->b->m, .base_ns = base_ns };
	ow_status status = add_listed(job, draft->first);

	buf_init(&c.text, job->mem);
	if (status == OW_OK)
		status = find_pieces(&c, draft);
	if (c.count > 1)
		qsort(c.pieces, c.count, sizeof(*c.pieces), by_profile);
	for (size_t first = 0, end; status == OW_OK && first < c.count; first = end) {
		end = first + 1;
		while (end < c.count && c.pieces[end].pid == c.pieces[first].pid &&
		       c.pieces[end].id == c.pieces[first].id)
			end++;
		status = add_profile(&c, first, end);
	}
	buf_release(&c.text);
	mem_free(job->mem, c.pieces, c.cap * sizeof(*c.pieces));
	return status;
}
