/*
 * live_stacks.c: the stacks of a recording (wire/live_file.h): frames and stacks are interned as they come, samples are
 * kept until the tracks are known. Called by live_read.c and live_rows.c. What names something that is not there is
 * damage, and left out.
 */
#include "import/live_read.h"

#define NUMBER_MAX ((uint32_t)1 << 23)

static void damage(struct live_data *d, uint64_t at)
{
	d->damaged++;
	d->damaged_at = MIN(d->damaged_at, at);
}

/* Room for the number; new ones are zero. */
static bool reserve(struct live_data *d, struct live_ids *ids, uint32_t number)
{
	size_t old = ids->cap;
	void *items = ids->items;

	if (number < old)
		return true;
	if (!mem_grow(d->mem, &items, &ids->cap, (size_t)number + 1, sizeof(*ids->items)))
		return false;
	ids->items = items;
	memset(ids->items + old, 0, (ids->cap - old) * sizeof(*ids->items));
	return true;
}

static uint32_t get(const struct live_ids *ids, uint32_t number)
{
	return number < ids->cap ? ids->items[number] : 0;
}

static ow_status put(struct live_data *d, struct live_ids *ids, uint32_t number, uint32_t id)
{
	if (!reserve(d, ids, number))
		return import_no_memory(d->ctx);
	ids->items[number] = id;
	return builder_status(d->b);
}

ow_status live_take_source(struct live_data *d, uint32_t number, struct str text)
{
	if (!number || number >= NUMBER_MAX)
		return OW_OK;
	text = str_first(text, utf8_valid_prefix(text));
	return put(d, &d->sources, number, builder_str(d->b, text).v);
}

ow_status live_take_frame(struct live_data *d, const struct live_frame *row, uint64_t at)
{
	frame_id frame;

	if (!row->number || row->number >= NUMBER_MAX || !get(&d->sources, row->function)) {
		damage(d, at);
		return OW_OK;
	}
	frame = builder_frame(d->b,
			      &(struct frame_row){ .function = { get(&d->sources, row->function) },
						   .file = { get(&d->sources, row->file) },
						   .line = row->line,
						   .function_line = row->function_line });
	return put(d, &d->frames, row->number, frame.v);
}

ow_status live_take_stack(struct live_data *d, const struct live_stack *row, uint64_t at)
{
	uint32_t frame = get(&d->frames, row->frame), parent = get(&d->stacks, row->parent);
	stack_id stack;

	if (!row->number || row->number >= NUMBER_MAX || !frame || (row->parent && !parent)) {
		damage(d, at);
		return OW_OK;
	}
	stack = builder_stack(d->b, (stack_id){ parent }, (frame_id){ frame });
	return put(d, &d->stacks, row->number, stack.v);
}

ow_status live_take_sample(struct live_data *d, const struct live_sample *row, uint64_t at)
{
	uint32_t stack = get(&d->stacks, row->stack), lane;
	void *samples = d->samples;

	if (!row->process || row->process > d->job_count || !d->jobs[row->process - 1].known ||
	    !stack || row->ts_ns < 0 || row->wall_ns < 0 || row->cpu_ns < 0) {
		damage(d, at);
		return OW_OK;
	}
	lane = live_lane_of(d, row->process - 1, LIVE_LANE_THREAD, row->tid);
	if (!lane ||
	    !mem_grow(d->mem, &samples, &d->sample_cap, d->sample_count + 1, sizeof(*d->samples)))
		return import_no_memory(d->ctx);
	d->samples = samples;
	d->lanes[lane - 1].used = true;
	d->samples[d->sample_count] = (struct live_sampled){ .row = *row, .lane = lane - 1 };
	d->samples[d->sample_count++].row.stack = stack;
	return OW_OK;
}

ow_status live_add_samples(struct live_data *d, str_id run, int32_t rank)
{
	int64_t to_wall =
		(int64_t)((uint64_t)d->session.wall_ns - (uint64_t)d->session.monotonic_ns);
	metric_id wall = { 0 }, cpu = { 0 };

	for (size_t i = 0; i < d->sample_count; i++) {
		const struct live_sampled *s = &d->samples[i];
		const struct live_lane *lane = &d->lanes[s->lane];
		struct sample_row row = { .ts_ns = (int64_t)((uint64_t)s->row.ts_ns +
							     (uint64_t)to_wall),
					  .stack = { s->row.stack },
					  .track = { lane->track },
					  .weight = s->row.wall_ns };

		if (d->jobs[lane->job].rank != rank || d->jobs[lane->job].run.v != run.v)
			continue;
		if (!wall.v) {
			wall = builder_metric(d->b, STR("wall"), STR("ns"));
			cpu = builder_metric(d->b, STR("cpu"), STR("ns"));
			OW_TRY(builder_status(d->b));
			d->b->m->metric.is_default[wall.v] = 1;
		}
		row.metric = wall;
		builder_add_sample(d->b, &row);
		if (s->row.cpu_ns) {
			row.metric = cpu;
			row.weight = s->row.cpu_ns;
			builder_add_sample(d->b, &row);
		}
	}
	return builder_status(d->b);
}

void live_release_stacks(struct live_data *d)
{
	struct live_ids *all[] = { &d->sources, &d->frames, &d->stacks };

	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		mem_free(d->mem, all[i]->items, all[i]->cap * sizeof(*all[i]->items));
	mem_free(d->mem, d->samples, d->sample_cap * sizeof(*d->samples));
}
