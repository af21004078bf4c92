/*
 * op_stats.c: see op_stats.h. Threads and TPUs nest: an op is the child of the innermost one that is open when it begins, and
 * one that ends closes all that began after it. GPUs run kernels side by side: nothing nests, and of the kernels of an op
 * the one that ran most often says how often the op ran.
 */
#include "analyze/op_stats.h"

#include "analyze/spans.h"

#define FAR_NS ((int64_t)9000000000000000) /* beyond which picoseconds do not fit */

struct open_op {
	int64_t end; /* picoseconds from the first event of the track */
	uint32_t op;
};

struct making {
	const struct model *m;
	const struct event_filter *filter;
	struct op_stats *out;
	struct open_op *open;
	size_t count, cap;
	int64_t *first, *last, *self; /* by device; TIME_UNKNOWN when nothing ran */
	struct map kernels;	      /* (op, name) → row of the list + 1 */
	struct kernel {
		uint32_t op, name;
		int64_t runs;
	} * list;
	size_t kernel_count, kernel_cap;
};

int64_t ps_of(int64_t ns, int64_t rest)
{
	if (ns > FAR_NS || ns < -FAR_NS)
		return ns > 0 ? FAR_NS * 1000 : -FAR_NS * 1000;
	return ns * 1000 + rest;
}

int64_t event_dur_ps(const struct model *m, uint32_t event)
{
	int64_t dur = m->event.dur_ns[event];

	if (dur == TIME_UNKNOWN || dur < 0)
		return 0;
	return ps_of(dur, (int64_t)COLUMN_GET(m->event.end_rest, event) -
				  COLUMN_GET(m->event.ts_rest, event));
}

static bool counts(const struct making *k, uint32_t event)
{
	const struct model *m = k->m;
	uint32_t op = m->event.op[event].v, flags = m->op.flags[op];
	int64_t start = m->event.ts_ns[event];

	if (!op || !event_is_slice(m, event) || !filter_step(k->filter, m->event.step[event]) ||
	    start < k->filter->from_ns || start >= k->filter->to_ns)
		return false;
	return k->out->all ? !(flags & (OP_WRAPS | OP_WAITS)) : (flags & OP_FRAMEWORK) != 0;
}

/* ---- what nests ---- */

static bool push(struct making *k, int64_t end, uint32_t op)
{
	void *open = k->open;

	if (!mem_grow(k->m->mem, &open, &k->cap, k->count + 1, sizeof(*k->open)))
		return false;
	k->open = open;
	k->open[k->count++] = (struct open_op){ end, op };
	return true;
}

/* The events [first, last) of a track. Adds the time without any op to *idle. */
static bool add_nested(struct making *k, uint32_t first, uint32_t last, struct op_stat *stats,
		       int64_t *idle, int64_t *all_self)
{
	const struct model *m = k->m;
	int64_t begin = 0, end = 0, self = 0, base = m->event.ts_ns[first];
	bool any = false;

	k->count = 0;
	for (uint32_t e = first; e < last; e++) {
		uint32_t op = m->event.op[e].v;
		int64_t start, dur, own_end;

		if (!counts(k, e))
			continue;
		start = ps_of(span_length(base, m->event.ts_ns[e]),
			      COLUMN_GET(m->event.ts_rest, e));
		dur = event_dur_ps(m, e);
		for (size_t i = 0; i < k->count; i++)
			if (k->open[i].end <= start)
				k->count = i;
		if (k->count) {
			struct op_stat *around = &stats[k->open[k->count - 1].op];

			around->self_ps = wrap_sub(around->self_ps, dur);
			self = wrap_sub(self, dur);
		}
		stats[op].runs++;
		stats[op].turns++;
		stats[op].total_ps = wrap_add(stats[op].total_ps, dur);
		stats[op].self_ps = wrap_add(stats[op].self_ps, dur);
		self = wrap_add(self, dur);
		begin = any ? begin : start;
		own_end = span_add(start, dur);
		end = MAX(end, own_end);
		any = true;
		if (!push(k, own_end, op))
			return false;
	}
	*idle = wrap_add(*idle, any ? wrap_sub(wrap_sub(end, begin), self) : 0);
	*all_self = wrap_add(*all_self, self);
	k->out->host_tracks += any && stats == k->out->host;
	k->out->devices += any && stats == k->out->device;
	return true;
}

/* ---- GPUs ---- */

static struct kernel *kernel_of(struct making *k, uint32_t op, uint32_t name)
{
	uint64_t hash = map_hash_u64(op, name);
	void *list = k->list;

	for (struct map_iter it = map_find(&k->kernels, hash); it.value;
	     it = map_next(&k->kernels, it))
		if (k->list[it.value - 1].op == op && k->list[it.value - 1].name == name)
			return &k->list[it.value - 1];
	if (!mem_grow(k->m->mem, &list, &k->kernel_cap, k->kernel_count + 1, sizeof(*k->list)))
		return NULL;
	k->list = list;
	k->list[k->kernel_count++] = (struct kernel){ op, name, 0 };
	return map_add(&k->kernels, hash, (uint32_t)k->kernel_count) ? &k->list[k->kernel_count - 1]
								     : NULL;
}

static bool add_stream(struct making *k, uint32_t first, uint32_t last, uint32_t device)
{
	const struct model *m = k->m;

	for (uint32_t e = first; e < last; e++) {
		uint32_t op = m->event.op[e].v;
		struct op_stat *stat = &k->out->device[op];
		struct kernel *kernel;
		int64_t dur;

		if (!counts(k, e))
			continue;
		kernel = kernel_of(k, op, COLUMN_GET(m->event.name, e).v);
		if (!kernel)
			return false;
		kernel->runs++;
		dur = event_dur_ps(m, e);
		stat->total_ps = wrap_add(stat->total_ps, dur);
		stat->self_ps = wrap_add(stat->self_ps, dur);
		k->self[device] = wrap_add(k->self[device], dur);
		if (k->first[device] == TIME_UNKNOWN || m->event.ts_ns[e] < k->first[device])
			k->first[device] = m->event.ts_ns[e];
		if (k->last[device] == TIME_UNKNOWN || event_end(m, e) > k->last[device])
			k->last[device] = event_end(m, e);
	}
	return true;
}

static void finish_streams(struct making *k)
{
	struct op_stats *out = k->out;

	for (size_t i = 0; i < k->kernel_count; i++) {
		struct op_stat *stat = &out->device[k->list[i].op];

		stat->turns = MAX(stat->turns, k->list[i].runs);
		if (k->m->op.flags[k->list[i].op] & OP_INSTRUCTION)
			stat->runs += k->list[i].runs;
		else
			stat->runs = MAX(stat->runs, k->list[i].runs);
	}
	for (uint32_t d = 0; d < k->m->device.count; d++) {
		if (k->first[d] == TIME_UNKNOWN)
			continue;
		out->devices++;
		out->device_self_ps = wrap_add(out->device_self_ps, k->self[d]);
		out->device_idle_ps = wrap_add(
			out->device_idle_ps,
			wrap_sub(ps_of(span_length(k->first[d], k->last[d]), 0), k->self[d]));
	}
}

/* ---- all ---- */

static bool add_track(struct making *k, uint32_t track, uint32_t first, uint32_t last)
{
	const struct model *m = k->m;
	struct op_stats *out = k->out;
	uint32_t device = m->track.device[track].v;

	if (!(COLUMN_GET(m->track.flags, track) & TRACK_SLICES) ||
	    !filter_track(k->filter, m, (track_id){ track }))
		return true;
	switch ((enum track_kind)m->track.kind[track]) {
	case TRACK_HOST:
	case TRACK_LOADER:
		return add_nested(k, first, last, out->host, &out->host_idle_ps,
				  &out->host_self_ps);
	case TRACK_STREAM:
	case TRACK_COPY:
	case TRACK_COMMUNICATION:
	case TRACK_ACCELERATOR:
		if (m->device.kind[device] == DEVICE_TPU)
			return add_nested(k, first, last, out->device, &out->device_idle_ps,
					  &out->device_self_ps);
		return add_stream(k, first, last, device);
	default:
		return true;
	}
}

static bool add_all(struct making *k)
{
	const track_id *track = k->m->event.track;
	uint32_t last;

	for (uint32_t e = 1; e < k->m->event.count; e = last) {
		for (last = e + 1; last < k->m->event.count && track[last].v == track[e].v; last++)
			;
		if (!add_track(k, track[e].v, e, last))
			return false;
	}
	finish_streams(k);
	return true;
}

ow_status op_stats_make(const struct model *m, const struct event_filter *filter,
			struct arena *arena, struct op_stats *out, struct error *err)
{
	struct making k = { .m = m, .filter = filter, .out = out };
	bool ok;

	*out = (struct op_stats){ .all = true };
	for (uint32_t i = 1; i < m->op.count && out->all; i++)
		out->all = !(m->op.flags[i] & OP_FRAMEWORK);
	out->host = ARENA_ARRAY(arena, struct op_stat, m->op.count);
	out->device = ARENA_ARRAY(arena, struct op_stat, m->op.count);
	k.first = ARENA_ARRAY(arena, int64_t, m->device.count + 1);
	k.last = ARENA_ARRAY(arena, int64_t, m->device.count + 1);
	k.self = ARENA_ARRAY(arena, int64_t, m->device.count + 1);
	if (!out->host || !out->device || !k.first || !k.last || !k.self)
		return error_no_memory(err);
	for (uint32_t d = 0; d <= m->device.count; d++)
		k.first[d] = k.last[d] = TIME_UNKNOWN;
	map_init(&k.kernels, m->mem);
	ok = add_all(&k);
	map_release(&k.kernels);
	mem_free(m->mem, k.list, k.kernel_cap * sizeof(*k.list));
	mem_free(m->mem, k.open, k.cap * sizeof(*k.open));
	return ok ? OW_OK : error_no_memory(err);
}
