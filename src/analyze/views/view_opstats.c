/*
 * view_opstats.c: the view `opstats`: ops by their own time, as XProf counts it (op_stats.h), first of devices, then of hosts, each with
 * a row for the time without any op. The numbers equal XProf's "framework op stats". The first half computes them, also for the views
 * pipeline, roofline and steps: threads and TPUs nest, so an op is the child of the innermost open op, and one that ends closes all
 * that began after it. GPUs run kernels side by side, so nothing nests, and the kernel of an op that ran most often says how often the
 * op ran.
 */
#include "analyze/views/op_stats.h"

#include "analyze/steps/spans.h"
#include "base/vec.h"

#define FAR_NS ((int64_t)9000000000000000) /* times beyond this limit do not fit into picoseconds */

struct open_op {
	int64_t end; /* end in picoseconds from the first event of the track */
	uint32_t op;
};

struct making {
	const struct model *m;
	const struct event_filter *filter;
	struct op_stats *out;
	struct open_op *open;
	size_t count, cap;
	int64_t *first, *last, *self; /* for each device; TIME_UNKNOWN if nothing ran */
	struct map kernels;	      /* maps (op, name) to the row of the list + 1 */
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

static bool push(struct making *k, int64_t end, uint32_t op)
{
	return vec_push(k->m->mem, k->open, k->count, k->cap, (struct open_op){ end, op });
}

/* Takes the time from start to end from the ops around it, the innermost first: each moment belongs to the op that started last, also
 * where one ends after the op that it started in. Returns how much was taken. Ops that end before it cannot own a moment again. */
static int64_t take_from_open(struct making *k, struct op_stat *stats, int64_t start, int64_t end)
{
	int64_t at = start;

	while (k->count && at < end) {
		const struct open_op *around = &k->open[k->count - 1];
		int64_t until = MIN(around->end, end);

		if (until > at) {
			stats[around->op].self_ps =
				wrap_sub(stats[around->op].self_ps, span_length(at, until));
			at = until;
		}
		if (around->end > end)
			break;
		k->count--;
	}
	return at - start;
}

/* Adds the events [first, last) of a track, and the time without any op to *idle. */
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
		own_end = span_add(start, dur);
		self = wrap_sub(self, take_from_open(k, stats, start, own_end));
		stats[op].runs++;
		stats[op].turns++;
		stats[op].total_ps = sum_add(stats[op].total_ps, dur);
		stats[op].self_ps = sum_add(stats[op].self_ps, dur);
		self = sum_add(self, dur);
		begin = any ? begin : start;
		end = MAX(end, own_end);
		any = true;
		if (!push(k, own_end, op))
			return false;
	}
	*idle = sum_add(*idle, any ? MAX(span_length(begin, end) - self, 0) : 0);
	*all_self = sum_add(*all_self, self);
	k->out->host_tracks += any && stats == k->out->host;
	k->out->devices += any && stats == k->out->device;
	return true;
}

static struct kernel *kernel_of(struct making *k, uint32_t op, uint32_t name)
{
	uint64_t hash = map_hash_u64(op, name);

	for (struct map_iter it = map_find(&k->kernels, hash); it.value;
	     it = map_next(&k->kernels, it))
		if (k->list[it.value - 1].op == op && k->list[it.value - 1].name == name)
			return &k->list[it.value - 1];
	if (!vec_push(k->m->mem, k->list, k->kernel_count, k->kernel_cap,
		      (struct kernel){ op, name, 0 }))
		return NULL;
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
		stat->total_ps = sum_add(stat->total_ps, dur);
		stat->self_ps = sum_add(stat->self_ps, dur);
		k->self[device] = sum_add(k->self[device], dur);
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
		out->device_self_ps = sum_add(out->device_self_ps, k->self[d]);
		out->device_idle_ps = sum_add(
			out->device_idle_ps,
			MAX(ps_of(span_length(k->first[d], k->last[d]), 0) - k->self[d], 0));
	}
}

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
			struct arena *arena, struct op_stats *out, struct ow_error *err)
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

enum {
	COLUMN_RANK,
	COLUMN_WHERE,
	COLUMN_TYPE,
	COLUMN_NAME,
	COLUMN_RUNS,
	COLUMN_TOTAL,
	COLUMN_AVERAGE,
	COLUMN_SELF,
	COLUMN_PERCENT,
	COLUMN_CUMULATIVE,
	COLUMN_BUSY_PERCENT,
	COLUMN_TOTAL_PS,
	COLUMN_SELF_PS
};

struct row {
	uint32_t op; /* op of the row; 0 = time without any op */
	struct op_stat stat;
};

static void add_columns(struct table *out)
{
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "where", "where", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "type", "type", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "name", "operation", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "runs", "runs", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "total_ns", "total", TYPE_INT, UNIT_NS);
	table_add_column(out, "average_ns", "per run", TYPE_REAL, UNIT_NS);
	table_add_column(out, "self_ns", "self", TYPE_INT, UNIT_NS);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "cumulative_percent", "up to here", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "busy_percent", "without idle", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "total_ps", "total ps", TYPE_INT, UNIT_NONE);
	table_add_column(out, "self_ps", "self ps", TYPE_INT, UNIT_NONE);
	out->columns[COLUMN_TOTAL_PS].for_programs = true;
	out->columns[COLUMN_SELF_PS].for_programs = true;
}

struct listing {
	const struct model *m;
	const struct view_options *options;
	struct table *out;
	struct row *rows;
	uint32_t count;
	int64_t rank; /* place of the row, continued from devices to hosts */
};

static struct str name_of(const struct model *m, const struct row *row)
{
	return row->op ? model_str(m, m->op.name[row->op]) : STR("IDLE");
}

static int by_self(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;

	if (x->stat.self_ps != y->stat.self_ps)
		return x->stat.self_ps > y->stat.self_ps ? -1 : 1;
	return str_cmp(name_of(arg, x), name_of(arg, y));
}

static double share(int64_t part, int64_t of)
{
	return of > 0 ? 100.0 * (double)part / (double)of : 0;
}

static void add_row(struct listing *l, const struct row *row, const char *where, int64_t busy,
		    int64_t whole, int64_t sum)
{
	struct table *out = l->out;
	uint32_t at = table_add_row(out, 0);
	const struct op_stat *s = &row->stat;

	table_set_int(out, at, COLUMN_RANK, ++l->rank);
	table_set_text(out, at, COLUMN_WHERE, str_from(where));
	table_set_model_text(out, at, COLUMN_TYPE,
			     row->op ? model_str(l->m, l->m->op.type[row->op]) : STR("IDLE"));
	table_set_model_text(out, at, COLUMN_NAME, name_of(l->m, row));
	table_set_int(out, at, COLUMN_RUNS, s->runs);
	table_set_int(out, at, COLUMN_TOTAL, s->total_ps / 1000);
	if (s->runs)
		table_set_real(out, at, COLUMN_AVERAGE,
			       (double)s->total_ps / 1000 / (double)s->runs);
	else
		table_set_unknown(out, at, COLUMN_AVERAGE);
	table_set_int(out, at, COLUMN_SELF, s->self_ps / 1000);
	table_set_real(out, at, COLUMN_PERCENT, share(s->self_ps, whole));
	table_set_real(out, at, COLUMN_CUMULATIVE, share(sum, whole));
	if (row->op)
		table_set_real(out, at, COLUMN_BUSY_PERCENT, share(s->self_ps, busy));
	else
		table_set_unknown(out, at, COLUMN_BUSY_PERCENT);
	table_set_int(out, at, COLUMN_TOTAL_PS, s->total_ps);
	table_set_int(out, at, COLUMN_SELF_PS, s->self_ps);
}

static void list(struct listing *l, const struct op_stat *stats, const char *where, int64_t self,
		 int64_t idle)
{
	int64_t sum = 0;

	l->count = 0;
	for (uint32_t op = 1; op < l->m->op.count; op++)
		if (stats[op].runs)
			l->rows[l->count++] = (struct row){ op, stats[op] };
	if (!l->count)
		return;
	l->rows[l->count++] = (struct row){ 0, { 0, idle, idle, 0 } };
	qsort_r(l->rows, l->count, sizeof(*l->rows), by_self, (void *)(uintptr_t)l->m);
	for (uint32_t i = 0; i < l->count && (!l->options->limit || i < l->options->limit); i++) {
		sum = sum_add(sum, l->rows[i].stat.self_ps);
		add_row(l, &l->rows[i], where, self, sum_add(self, idle), sum);
	}
}

static ow_status run_in(struct model *m, const struct view_options *options, struct table *out,
			struct arena *scratch, struct ow_error *err)
{
	struct listing l = { .m = m, .options = options, .out = out };
	struct event_filter filter;
	struct op_stats stats;

	OW_TRY(view_filter(m, options, &filter, err));
	OW_TRY(op_stats_make(m, &filter, scratch, &stats, err));
	l.rows = ARENA_ARRAY(scratch, struct row, (size_t)m->op.count + 1);
	if (!l.rows)
		return error_no_memory(err);
	list(&l, stats.device, "device", stats.device_self_ps, stats.device_idle_ps);
	list(&l, stats.host, "host", stats.host_self_ps, stats.host_idle_ps);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

static ow_status run_opstats_view(struct model *m, const struct view_options *options,
				  struct table *out, struct ow_error *err)
{
	struct arena scratch;
	ow_status status;

	add_columns(out);
	arena_init(&scratch, m->mem);
	status = run_in(m, options, out, &scratch, err);
	arena_release(&scratch);
	return status;
}

const struct view view_opstats = {
	.name = "opstats",
	.summary = "operations by self time on devices and hosts, as XProf counts it",
	.uses = VIEW_USES_PART,
	.run = run_opstats_view,
};
