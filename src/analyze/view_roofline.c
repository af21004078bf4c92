/*
 * view_roofline.c: how fast operations are, and how fast they could be: float operations and bytes of each, its time, what it
 * achieves, and what the device lets it attain at that intensity. Needs float operations or bytes of ops, from whatever source
 * (XSpace, graphs with shapes); times are own times of op_stats.h, or those of TensorFlow's profiles.
 */
#include "analyze/op_stats.h"
#include "analyze/peaks.h"

enum {
	COLUMN_WHERE,
	COLUMN_TYPE,
	COLUMN_NAME,
	COLUMN_RUNS,
	COLUMN_TIME,
	COLUMN_PERCENT,
	COLUMN_FLOPS,
	COLUMN_BYTES,
	COLUMN_RATE,
	COLUMN_BANDWIDTH,
	COLUMN_INTENSITY,
	COLUMN_ATTAINABLE,
	COLUMN_EFFICIENCY,
	COLUMN_BOUND,
	COLUMN_PEAK_FLOPS,
	COLUMN_PEAK_BYTES
};

struct row {
	uint32_t op; /* 0 = all of them */
	bool device;
	int64_t runs, time_ps;
	double flops, bytes; /* of all runs */
};

struct roofline {
	const struct model *m;
	struct peaks peaks;
	struct row *rows;
	uint32_t count;
	struct row all[2]; /* host, device */
};

/* ---- ops ---- */

static bool is_container(struct str type)
{
	return str_eq(type, STR("call")) || str_eq(type, STR("conditional")) ||
	       str_eq(type, STR("while")) || str_eq(type, STR("megacore fusion"));
}

static void add_op(struct roofline *r, uint32_t op, bool device, int64_t runs, int64_t time_ps)
{
	const struct op_table *t = &r->m->op;
	double flops = (double)t->float_ops[op] * (double)runs;
	double bytes = (double)COLUMN_GET(t->accessed, op) * (double)runs;
	struct row *all = &r->all[device];

	if (runs <= 0 || time_ps <= 0)
		return;
	if (!is_container(model_str(r->m, t->type[op]))) {
		all->runs += runs;
		all->time_ps = wrap_add(all->time_ps, time_ps);
		all->flops += flops;
		all->bytes += bytes;
	}
	if (flops > 0 || bytes > 0)
		r->rows[r->count++] = (struct row){ op, device, runs, time_ps, flops, bytes };
}

/* Profiles that have sums only. */
static void add_sums(struct roofline *r, uint32_t op, uint32_t step)
{
	const struct op_step_table *t = &r->m->op_step;
	int64_t runs = 0, accelerator = 0, cpu = 0;
	uint32_t first = r->m->op.step_first[op], last = first + r->m->op.step_count[op];

	for (uint32_t i = first; i < last; i++) {
		if (step && t->step[i].v != step)
			continue;
		runs = wrap_add(runs, t->run_count[i]);
		accelerator = wrap_add(accelerator, t->accelerator_ns[i]);
		cpu = wrap_add(cpu, t->cpu_ns[i]);
	}
	add_op(r, op, accelerator > 0, runs, us_to_ns(accelerator > 0 ? accelerator : cpu));
}

static void add_ops(struct roofline *r, const struct op_stats *stats, uint32_t step)
{
	bool traced = false;

	for (uint32_t t = 1; t < r->m->track.count; t++)
		traced |= (COLUMN_GET(r->m->track.flags, t) & TRACK_SLICES) != 0;
	for (uint32_t op = 1; op < r->m->op.count; op++) {
		if (!traced) {
			add_sums(r, op, step);
			continue;
		}
		add_op(r, op, true, stats->device[op].turns, stats->device[op].self_ps);
		if (!stats->device[op].runs)
			add_op(r, op, false, stats->host[op].turns, stats->host[op].self_ps);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->device != y->device)
		return x->device ? -1 : 1;
	if (x->time_ps != y->time_ps)
		return x->time_ps > y->time_ps ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

/* ---- rows ---- */

static void add_columns(struct result *out)
{
	result_column(out, "where", "where", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "type", "type", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "name", "operation", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "runs", "runs", RESULT_INT, RESULT_COUNT);
	result_column(out, "time_ns", "time", RESULT_INT, RESULT_NS);
	result_column(out, "percent", "share", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "flops", "FLOPs", RESULT_REAL, RESULT_COUNT);
	result_column(out, "bytes", "bytes", RESULT_REAL, RESULT_BYTES);
	result_column(out, "gflops_per_second", "GFLOP/s", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "gbytes_per_second", "GB/s", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "intensity", "FLOP/byte", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "attainable_gflops_per_second", "attainable", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "efficiency_percent", "of peak", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "bound_by", "bound by", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "peak_gflops_per_second", "peak GFLOP/s", RESULT_REAL, RESULT_PLAIN);
	result_column(out, "peak_gbytes_per_second", "peak GB/s", RESULT_REAL, RESULT_PLAIN);
	out->columns[COLUMN_PEAK_FLOPS].for_programs = true;
	out->columns[COLUMN_PEAK_BYTES].for_programs = true;
}

static void set_known(struct result *out, uint32_t row, uint32_t column, double value)
{
	if (value > 0)
		result_set_real(out, row, column, value);
	else
		result_set_unknown(out, row, column);
}

static void set_limits(const struct roofline *r, struct result *out, uint32_t at,
		       const struct row *row, double rate, double bandwidth)
{
	const struct peaks none = { 0 }, *p = row->device ? &r->peaks : &none;
	double compute = p->flops > 0 ? rate / p->flops : 0;
	double memory = p->bytes > 0 ? bandwidth / p->bytes : 0;
	double best = MAX(compute, memory), attainable = p->flops;

	if (row->bytes > 0 && p->bytes > 0) {
		double limit = row->flops / row->bytes * p->bytes;

		attainable = attainable > 0 ? MIN(attainable, limit) : limit;
	}
	set_known(out, at, COLUMN_ATTAINABLE, row->flops > 0 ? attainable / 1e9 : 0);
	set_known(out, at, COLUMN_EFFICIENCY, best * 100);
	result_set_text(out, at, COLUMN_BOUND,
			best <= 0	    ? STR("unknown")
			: compute >= memory ? STR("compute")
					    : STR("memory"));
	set_known(out, at, COLUMN_PEAK_FLOPS, p->flops / 1e9);
	set_known(out, at, COLUMN_PEAK_BYTES, p->bytes / 1e9);
}

static void add_row(const struct roofline *r, struct result *out, const struct row *row)
{
	const struct model *m = r->m;
	uint32_t at = result_row(out, 0);
	double seconds = (double)row->time_ps / 1e12;
	double rate = row->flops / seconds, bandwidth = row->bytes / seconds;
	int64_t whole = r->all[row->device].time_ps;

	result_set_text(out, at, COLUMN_WHERE, row->device ? STR("device") : STR("host"));
	result_set_model_text(out, at, COLUMN_TYPE,
			      row->op ? model_str(m, m->op.type[row->op]) : STR("program"));
	result_set_model_text(out, at, COLUMN_NAME,
			      row->op ? model_str(m, m->op.name[row->op]) : STR("all operations"));
	result_set_int(out, at, COLUMN_RUNS, row->runs);
	result_set_int(out, at, COLUMN_TIME, row->time_ps / 1000);
	result_set_real(out, at, COLUMN_PERCENT,
			whole > 0 ? 100.0 * (double)row->time_ps / (double)whole : 0);
	set_known(out, at, COLUMN_FLOPS, row->op ? row->flops / (double)row->runs : row->flops);
	set_known(out, at, COLUMN_BYTES, row->op ? row->bytes / (double)row->runs : row->bytes);
	set_known(out, at, COLUMN_RATE, rate / 1e9);
	set_known(out, at, COLUMN_BANDWIDTH, bandwidth / 1e9);
	set_known(out, at, COLUMN_INTENSITY, row->bytes > 0 ? row->flops / row->bytes : 0);
	set_limits(r, out, at, row, rate, bandwidth);
}

#define ABOVE 1.05 /* of the peak: more than what measuring explains */

/* Operations of the device that are faster than it can be. */
static uint32_t count_above(const struct roofline *r)
{
	const struct peaks *p = &r->peaks;
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		const struct row *row = &r->rows[i];
		double seconds = (double)row->time_ps / 1e12 * ABOVE;

		if (row->device && ((p->flops > 0 && row->flops / seconds > p->flops) ||
				    (p->bytes > 0 && row->bytes / seconds > p->bytes)))
			count++;
	}
	return count;
}

static ow_status add_footer(const struct roofline *r, struct result *out, struct error *err)
{
	const struct peaks *p = &r->peaks;
	uint32_t above = count_above(r);
	char more[256] = "";

	if (above)
		snprintf(more, sizeof(more),
			 "\nabove the peak: %u operation%s; the bytes come from a cache or move "
			 "while "
			 "others run (copy-start), or the peak is higher than that: --peak",
			 above, above == 1 ? "" : "s");
	if (!r->count)
		out->footer = arena_printf(
			&out->arena, "no operation that ran has float operations or bytes: a "
				     "profile of XProf has "
				     "them, or a graph beside the profile (with --input-shape)");
	else if (p->flops <= 0 && p->bytes <= 0)
		out->footer = arena_printf(
			&out->arena,
			"what the device could do is not known: say so with --peak A100 or --peak "
			"312T:2.04T (operations and bytes per second)");
	else
		out->footer = arena_printf(&out->arena,
					   "peak: %.4g TFLOP/s, %.4g GB/s (from %s); compute and "
					   "memory are in balance "
					   "at %.3g FLOP/byte%s",
					   p->flops / 1e12, p->bytes / 1e9, p->from,
					   p->bytes > 0 ? p->flops / p->bytes : 0, more);
	return out->footer ? OW_OK : error_no_memory(err);
}

static ow_status list(struct roofline *r, const struct view_options *options, struct result *out,
		      struct arena *scratch, struct error *err)
{
	struct event_filter filter;
	struct op_stats stats;

	OW_TRY(view_filter(r->m, options, &filter, err));
	OW_TRY(op_stats_make(r->m, &filter, scratch, &stats, err));
	r->rows = ARENA_ARRAY(scratch, struct row, r->m->op.count);
	if (!r->rows)
		return error_no_memory(err);
	r->all[1].device = true;
	add_ops(r, &stats, filter.step);
	qsort(r->rows, r->count, sizeof(*r->rows), by_time);
	for (int side = 1; side >= 0 && r->count; side--)
		if (r->all[side].flops > 0 || r->all[side].bytes > 0)
			add_row(r, out, &r->all[side]);
	for (uint32_t i = 0; i < r->count && (!options->limit || i < options->limit); i++)
		add_row(r, out, &r->rows[i]);
	return add_footer(r, out, err);
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct roofline r = { .m = m };
	struct arena scratch;
	ow_status status;

	add_columns(out);
	if (options->peak && *options->peak)
		OW_TRY(peaks_parse(options->peak, &r.peaks, err));
	else
		peaks_find(m, &r.peaks);
	arena_init(&scratch, m->mem);
	status = list(&r, options, out, &scratch, err);
	arena_release(&scratch);
	OW_TRY(status);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_roofline = {
	.name = "roofline",
	.summary = "operations against what the device could do",
	.run = run,
};
