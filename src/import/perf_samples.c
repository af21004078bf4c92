/*
 * perf_samples.c: rows from the records of perf.data, see perf_data.h. Samples and what happened to processes
 * are brought into order of time first, because a file has them by processor: what an address means
 * depends on what was mapped then.
 */
#include "import/perf_data.h"

#define CONTEXT_MARKS ((uint64_t)-4095)
#define FRAMES_MAX 4096

#define MODE_KERNEL 1

static int by_time(const void *a, const void *b, void *arg)
{
	const struct raw_sample *samples = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (samples[x].time != samples[y].time)
		return samples[x].time < samples[y].time ? -1 : 1;
	return (x > y) - (x < y);
}

static int by_change_time(const void *a, const void *b, void *arg)
{
	const struct change *changes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (changes[x].time != changes[y].time)
		return changes[x].time < changes[y].time ? -1 : 1;
	return (x > y) - (x < y);
}

/* ---- frames ---- */

static frame_id frame_at(struct perf_file *f, int64_t pid, uint64_t address, bool caller,
			 bool kernel)
{
	uint64_t look = caller && address ? address - 1 : address; /* where the call is */
	const struct perf_map *map =
		perf_space_find(&f->space, kernel ? PERF_KERNEL_PID : pid, look);
	struct frame_row row = { .address = address };

	row.function = perf_space_function(&f->space, look);
	if (map)
		row.module = map->name;
	row.flags = kernel ? FRAME_KERNEL : 0;
	return builder_frame(f->b, &row);
}

/* The chain has the leaf first, between marks that say whose addresses follow. */
static stack_id stack_of(struct perf_file *f, const struct raw_sample *raw)
{
	const uint64_t *chain = f->chains + raw->chain;
	uint32_t count = raw->chain_count, kept = 0;
	frame_id frames[FRAMES_MAX];
	bool kernel = raw->mode == MODE_KERNEL;
	stack_id stack = { 0 };

	for (uint32_t i = 0; i < count && kept < FRAMES_MAX; i++) {
		if (chain[i] >= CONTEXT_MARKS) {
			kernel = (int64_t)chain[i] == -128;
			continue;
		}
		frames[kept] = frame_at(f, raw->pid, chain[i], kept > 0, kernel);
		kept++;
	}
	while (kept--)
		stack = builder_stack(f->b, stack, frames[kept]);
	return stack;
}

/* Stacks come again and again. What a chain means is known until something happens to a process. */
static stack_id known_stack(struct perf_file *f, uint32_t sample)
{
	const struct raw_sample *raw = &f->samples[sample];
	const uint64_t *chain = f->chains + raw->chain;
	uint64_t hash = map_hash_u64((uint32_t)raw->pid, raw->mode);
	stack_id stack;

	for (uint32_t i = 0; i < raw->chain_count; i++)
		hash = map_hash_u64(hash, chain[i]);
	for (struct map_iter it = map_find(&f->known, hash); it.value;
	     it = map_next(&f->known, it)) {
		const struct raw_sample *other = &f->samples[it.value - 1];

		if (other->pid == raw->pid && other->mode == raw->mode &&
		    other->chain_count == raw->chain_count &&
		    memcmp(f->chains + other->chain, chain, raw->chain_count * sizeof(*chain)) == 0)
			return other->stack;
	}
	stack = stack_of(f, raw);
	f->samples[sample].stack = stack;
	if (!map_add(&f->known, hash, sample + 1))
		builder_fail(f->b, error_no_memory(f->ctx->err));
	return stack;
}

/* ---- rows ---- */

static bool apply(struct perf_file *f, const struct change *c)
{
	switch (c->kind) {
	case CHANGE_MAP:
		return perf_space_map(&f->space, c->pid, &c->map);
	case CHANGE_COMM:
	case CHANGE_EXEC:
		return perf_space_comm(&f->space, c->pid, c->tid, c->map.name,
				       c->kind == CHANGE_EXEC);
	case CHANGE_FORK:
		return perf_space_fork(&f->space, c->pid, c->parent_pid, c->tid, c->parent_tid);
	}
	return true;
}

static metric_id metric_of(struct perf_file *f, struct perf_event *event)
{
	bool clock = event->attr.type == 1 && event->attr.config <= 1;
	char name[40];

	if (event->metric.v)
		return event->metric;
	perf_attr_name(&event->attr, name);
	event->metric = builder_metric(
		f->b, event->name.v ? model_str(f->b->m, event->name) : str_from(name),
		clock ? STR("ns") : STR("count"));
	return event->metric;
}

static track_id track_of(struct perf_file *f, const struct raw_sample *raw)
{
	str_id comm = perf_space_name(&f->space, raw->pid, raw->tid);
	str_id process = perf_space_name(&f->space, raw->pid, raw->pid);

	if (!comm.v) /* the idle threads never say a name */
		comm = raw->pid ? builder_cstr(f->b, ":unknown") : builder_cstr(f->b, "swapper");
	return builder_track(f->b, &(struct track_row){ .name = comm,
							.process = process.v ? process : comm,
							.pid = raw->pid,
							.tid = raw->tid,
							.kind = TRACK_HOST,
							.source = f->b->source });
}

static int64_t time_of(const struct perf_file *f, const struct raw_sample *raw)
{
	if (!raw->has_time || raw->time > INT64_MAX)
		return TIME_UNKNOWN;
	return f->has_clock ? wrap_add((int64_t)raw->time, f->clock_offset) : (int64_t)raw->time;
}

static void add_sample(struct perf_file *f, uint32_t sample)
{
	const struct raw_sample *raw = &f->samples[sample];

	builder_add_sample(
		f->b, &(struct sample_row){
			      .ts_ns = time_of(f, raw),
			      .weight = (int64_t)MIN(raw->period, (uint64_t)INT64_MAX),
			      .metric = metric_of(f, &f->events[raw->event]),
			      .stack = known_stack(f, sample),
			      .track = track_of(f, raw),
			      .cpu = raw->cpu >= 0 && raw->cpu < INT32_MAX ? raw->cpu + 1 : 0 });
}

static bool in_order(const struct perf_file *f)
{
	for (size_t i = 1; i < f->sample_count; i++)
		if (f->samples[i - 1].time > f->samples[i].time)
			return false;
	return true;
}

static ow_status add_in_order(struct perf_file *f, uint32_t *samples, uint32_t *changes)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < f->sample_count; i++)
		samples[i] = i;
	for (uint32_t i = 0; i < f->change_count; i++)
		changes[i] = i;
	if (!in_order(f))
		qsort_r(samples, f->sample_count, sizeof(*samples), by_time, f->samples);
	if (f->change_count)
		qsort_r(changes, f->change_count, sizeof(*changes), by_change_time, f->changes);
	for (uint32_t i = 0; i < f->sample_count; i++) {
		const struct raw_sample *raw = &f->samples[samples[i]];

		for (; next < f->change_count; next++) {
			const struct change *c = &f->changes[changes[next]];

			if (raw->has_time && c->time > raw->time)
				break;
			map_release(&f->known);
			map_init(&f->known, f->mem);
			if (!apply(f, c))
				return builder_fail(f->b, error_no_memory(f->ctx->err));
		}
		add_sample(f, samples[i]);
		if (f->b->status != OW_OK)
			return f->b->status;
	}
	return OW_OK;
}

ow_status perf_samples_add(struct perf_file *f)
{
	size_t a = f->sample_count * sizeof(uint32_t), b = f->change_count * sizeof(uint32_t);
	uint32_t *samples, *changes;
	ow_status status;

	if (f->sample_count >= UINT32_MAX || f->change_count >= UINT32_MAX)
		return error_set(f->ctx->err, OW_E_LIMIT, "more than 4 billion records");
	samples = mem_alloc(f->mem, a + 4);
	changes = samples ? mem_alloc(f->mem, b + 4) : NULL;
	if (changes)
		status = add_in_order(f, samples, changes);
	else
		status = builder_fail(f->b, error_no_memory(f->ctx->err));
	mem_free(f->mem, changes, b + 4);
	mem_free(f->mem, samples, a + 4);
	return status;
}
