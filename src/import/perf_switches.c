/*
 * perf_switches.c: what perf.data says beside samples: when threads were taken from their processors (`perf record --switch-events`), and
 * what counters stood at when threads ended (`perf record --stat`). See perf_data.h. Time off the processors becomes a metric of its own,
 * "off-cpu"; where in the code a thread waited these records do not say.
 */
#include "import/perf_data.h"

#include "import/trace_sort.h"

#define MISC_OUT (1 << 13)
#define MISC_PREEMPTED (1 << 14)

/* ---- while reading ---- */

ow_status perf_switch_read(struct perf_file *f, const struct perf_trailer *who, uint16_t misc)
{
	struct perf_switches *s = &f->switches;
	const struct perf_thread *t;
	void *items = s->items;

	if (!who->time || who->time > INT64_MAX || who->tid < 0)
		return OW_OK; /* nobody knows who or when */
	t = perf_space_thread(&f->space, who->pid, who->tid);
	if (!t || s->count >= UINT32_MAX - 1 ||
	    !mem_grow(f->mem, &items, &s->cap, s->count + 1, sizeof(*s->items)))
		return import_no_memory(f->ctx);
	s->items = items;
	s->items[s->count++] = (struct perf_switch){ .time = (int64_t)who->time,
						     .thread = (uint32_t)(t - f->space.threads),
						     .out = misc & MISC_OUT,
						     .preempted = misc & MISC_PREEMPTED };
	return OW_OK;
}

ow_status perf_count_read(struct perf_file *f, struct perf_bytes b, const struct perf_trailer *who)
{
	int32_t pid = (int32_t)perf_take_u32(&b), tid = (int32_t)perf_take_u32(&b);
	struct perf_switches *s = &f->switches;
	const struct perf_attr *attr = f->event_count ? &f->events[0].attr : NULL;
	const struct perf_thread *t;
	struct perf_value value;
	void *counts = s->counts;
	uint32_t event;

	if (!attr || attr->read_format & PERF_READ_GROUP ||
	    !perf_take_values(attr, &b, &value, 1)) {
		perf_note_bad(f);
		return OW_OK;
	}
	event = perf_event_of(f, value.id ? value.id : who->id, 0);
	t = perf_space_thread(&f->space, pid, tid);
	if (!t || !mem_grow(f->mem, &counts, &s->count_cap, s->count_count + 1, sizeof(*s->counts)))
		return import_no_memory(f->ctx);
	s->counts = counts;
	s->counts[s->count_count++] =
		(struct perf_count){ .time = who->time <= INT64_MAX ? (int64_t)who->time : 0,
				     .value = value.value,
				     .thread = (uint32_t)(t - f->space.threads),
				     .event = event };
	return OW_OK;
}

void perf_switches_release(struct perf_file *f)
{
	mem_free(f->mem, f->switches.items, f->switches.cap * sizeof(*f->switches.items));
	mem_free(f->mem, f->switches.counts, f->switches.count_cap * sizeof(*f->switches.counts));
}

/* ---- rows ---- */

static stack_id stack_named(struct perf_file *f, const char *name)
{
	struct frame_row row = { .function = builder_cstr(f->b, name) };

	return builder_stack(f->b, (stack_id){ 0 }, builder_frame(f->b, &row));
}

static int64_t wall_of(const struct perf_file *f, int64_t time)
{
	return f->has_clock ? wrap_add(time, f->clock_offset) : time;
}

/* In order of time; out: per thread, the switch that took it away, + 1. */
static ow_status add_waits(struct perf_file *f, const struct trace_ref *order, uint32_t *out)
{
	struct perf_switches *s = &f->switches;
	stack_id waiting = stack_named(f, "[waiting]"), preempted = stack_named(f, "[preempted]");

	for (size_t i = 0; i < s->count; i++) {
		const struct perf_switch *now = &s->items[order[i].row];
		const struct perf_switch *left =
			out[now->thread] ? &s->items[out[now->thread] - 1] : NULL;

		out[now->thread] = now->out ? order[i].row + 1 : 0;
		if (now->out || !left)
			continue;
		if (!s->metric.v)
			s->metric = builder_metric(f->b, STR("off-cpu"), STR("ns"));
		builder_add_sample(
			f->b, &(struct sample_row){ .ts_ns = wall_of(f, left->time),
						    .weight = now->time - left->time,
						    .metric = s->metric,
						    .stack = left->preempted ? preempted : waiting,
						    .track = perf_thread_track(f, now->thread) });
	}
	return f->b->status;
}

static ow_status resolve_switches(struct perf_file *f)
{
	const struct perf_switches *s = &f->switches;
	size_t size = 2 * s->count * sizeof(struct trace_ref);
	size_t out_size = f->space.thread_count * sizeof(uint32_t);
	struct trace_ref *order = mem_alloc(f->mem, size);
	uint32_t *out = mem_zalloc(f->mem, out_size);
	ow_status status;

	if (order && out) {
		for (uint32_t i = 0; i < s->count; i++)
			order[i] = (struct trace_ref){ .ts = s->items[i].time, .row = i };
		trace_sort(order, s->count, order + s->count);
		status = add_waits(f, order, out);
	} else {
		status = import_no_memory(f->ctx);
	}
	mem_free(f->mem, order, order ? size : 0);
	mem_free(f->mem, out, out ? out_size : 0);
	return status;
}

ow_status perf_switches_resolve(struct perf_file *f)
{
	const struct perf_switches *s = &f->switches;

	for (size_t i = 0; i < s->count_count; i++) {
		const struct perf_count *c = &s->counts[i];

		builder_add_counter(
			f->b,
			&(struct counter_row){
				.track = perf_thread_track(f, c->thread),
				.name = f->b->m->metric.name[perf_event_metric(f, c->event).v],
				.ts_ns = wall_of(f, c->time),
				.value = (double)c->value });
	}
	OW_TRY(f->b->status);
	return s->count ? resolve_switches(f) : OW_OK;
}
