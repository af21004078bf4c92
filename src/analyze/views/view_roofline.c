/*
 * view_roofline.c: the view `roofline`: float operations, bytes and time of each operation, the rate that it reaches, and the rate that the
 * device allows at that intensity. It needs float operations or bytes of ops from any source (XSpace, graphs with shapes); times are own
 * times of op_stats.h, or those of TensorFlow's profiles. The first half finds the peak rates of the device (peaks.h).
 */
#include "analyze/views/op_stats.h"

#include "analyze/views/peaks.h"

/* Dense 16-bit matrix products, memory bandwidth, and 32-bit products (without TF32), from data sheets. The longest name that fits counts:
 * A100 80GB is not A10. */
static const struct {
	const char *name;
	double tflops, gbytes, tflops32;
} known[] = {
	{ "B200", 2250, 8000, 80 },
	{ "H200", 989.4, 4800, 66.9 },
	{ "H100 PCIe", 756, 2000, 51 },
	{ "H100", 989.4, 3350, 66.9 },
	{ "A100-SXM4-40GB", 312, 1555, 19.5 },
	{ "A100-PCIE-40GB", 312, 1555, 19.5 },
	{ "A100", 312, 2039, 19.5 },
	{ "A30", 165, 933, 10.3 },
	{ "A10G", 70, 600, 31.5 },
	{ "A10", 125, 600, 31.2 },
	{ "L40S", 362, 864, 91.6 },
	{ "L40", 181, 864, 90.5 },
	{ "L4", 121, 300, 30.3 },
	{ "V100", 125, 900, 15.7 },
	{ "T4", 65, 320, 8.1 },
	{ "P100", 21.2, 732, 10.6 },
	{ "RTX 4090", 165.2, 1008, 82.6 },
	{ "RTX 3090", 71, 936, 35.6 },
	{ "MI300X", 1307.4, 5300, 163.4 },
	{ "MI300A", 980.6, 5300, 122.6 },
	{ "MI250X", 191.5, 1638, 47.9 },
	{ "MI250", 181, 1638, 45.3 },
	{ "MI210", 181, 1638, 45.3 },
	{ "MI100", 184.6, 1229, 46.1 },
	{ "TPU v2", 23, 350, 0 },
	{ "TPU v3", 61.5, 450, 0 },
	{ "TPU v4", 275, 1228, 0 },
	{ "TPU v5 Lite", 197, 819, 0 },
	{ "TPU v5e", 197, 819, 0 },
	{ "TPU v5p", 459, 2765, 0 },
	{ "TPU v6 Lite", 918, 1638, 0 },
	{ "TPU v6e", 918, 1638, 0 },
};

/* Finds the peaks of a known device whose name is part of `name`; false if there is none. */
bool peaks_known(struct str name, struct peaks *out)
{
	size_t longest = 0;

	for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
		size_t len = strlen(known[i].name);

		if (len <= longest || !str_has(name, str_from(known[i].name)))
			continue;
		longest = len;
		out->flops = known[i].tflops * 1e12;
		out->bytes = known[i].gbytes * 1e9;
		out->flops32 = known[i].tflops32 * 1e12;
		snprintf(out->from, sizeof(out->from), "the data sheet of %s", known[i].name);
	}
	return longest > 0;
}

/* Parses a rate such as "312T" or "2.5e12"; *rest becomes the text behind it. */
static bool parse_rate(const char *text, double *rate, const char **rest)
{
	static const char units[] = "kMGTP";
	const char *unit;
	char *end;

	*rate = strtod(text, &end);
	if (end == text || !(*rate > 0 && *rate < 1e30))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		*rate *= 1000;
	*rest = end + (unit ? 1 : 0);
	return true;
}

ow_status peaks_parse(const char *text, struct peaks *out, struct ow_error *err)
{
	const char *rest = text;

	*out = (struct peaks){ .from = "the option --peak" };
	if (peaks_known(str_from(text), out))
		return OW_OK;
	if ((*rest == ':' || parse_rate(rest, &out->flops, &rest)) &&
	    (!*rest || (*rest == ':' && parse_rate(rest + 1, &out->bytes, &rest) && !*rest)))
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "--peak takes the name of a known device, such as A100, or operations and "
			 "bytes per second, such as 312T:2.04T, not '%s'",
			 text);
}

static uint32_t find_child(const struct model *m, uint32_t parent, const char *key)
{
	for (uint32_t i = parent + 1; i < m->fact.count; i++)
		if (m->fact.parent[i].v == parent &&
		    str_eq(model_str(m, m->fact.key[i]), str_from(key)))
			return i;
	return 0;
}

static double number_of(const struct model *m, uint32_t object, const char *key)
{
	uint32_t at = find_child(m, object, key);

	if (!at)
		return 0;
	return m->fact.kind[at] == FACT_REAL ? m->fact.real[at] : (double)m->fact.number[at];
}

static struct str text_of(const struct model *m, uint32_t object, const char *key)
{
	uint32_t at = find_child(m, object, key);

	return at ? model_str(m, m->fact.text[at]) : STR("");
}

/* Returns the largest number of float operations of one GPU processor in a cycle, from the
 * nearest known capability below. */
static double flops_per_cycle(bool amd, double capability)
{
	static const struct {
		double capability, flops;
	} nvidia[] = { { 10, 8192 }, { 9, 4096 },   { 8.9, 1024 }, { 8.6, 1024 },
		       { 8, 2048 },  { 7.5, 1024 }, { 7, 1024 },   { 6, 256 },
		       { 5, 256 },   { 3, 384 },    { 2, 64 } },
	  gfx[] = { { 9.5, 4096 }, { 9.4, 2048 }, { 9, 1024 } };

	for (size_t i = 0; amd && i < ARRAY_COUNT(gfx); i++)
		if (capability > gfx[i].capability - 0.05)
			return gfx[i].flops;
	for (size_t i = 0; !amd && i < ARRAY_COUNT(nvidia); i++)
		if (capability > nvidia[i].capability - 0.05)
			return nvidia[i].flops;
	return 0;
}

#define HBM3 9.4 /* AMD capability from which on memory makes four transfers per clock */

/* Reads the capabilities of a plane of an XSpace. */
static bool use_capabilities(const struct model *m, uint32_t object, struct peaks *out)
{
	double capability = number_of(m, object, "compute_cap_major") +
			    number_of(m, object, "compute_cap_minor") / 10;
	bool amd = str_eq(text_of(m, object, "device_vendor"), STR("AMD"));
	double tflops = number_of(m, object, "peak_teraflops_per_second");

	*out = (struct peaks){ 0 };
	if (tflops > 0) {
		out->flops = tflops * 1e12;
		out->bytes = number_of(m, object, "peak_hbm_bw_gigabytes_per_second") * 1e9;
		snprintf(out->from, sizeof(out->from), "the file: %.*s",
			 STR_ARG(str_first(text_of(m, object, "device_type_string"), 60)));
		return true;
	}
	if (capability > 0)
		out->flops = number_of(m, object, "core_count") *
			     number_of(m, object, "clock_rate") * 1e3 *
			     flops_per_cycle(amd, capability);
	out->bytes = number_of(m, object, "memory_bandwidth");
	if (amd &&
	    capability >
		    HBM3 - 0.05) /* the writer computed the value for two transfers per clock */
		out->bytes *= 2;
	snprintf(out->from, sizeof(out->from),
		 "the file: %.0f processors of capability %.1f at %.2f GHz",
		 number_of(m, object, "core_count"), capability,
		 number_of(m, object, "clock_rate") / 1e6);
	return out->flops > 0 || out->bytes > 0;
}

/* Finds names of devices anywhere in a source: gpu_device_name, or the device names in PyTorch's files. */
static bool use_names(const struct model *m, struct peaks *out)
{
	for (uint32_t i = 1; i < m->fact.count; i++) {
		struct str key = model_str(m, m->fact.key[i]);

		if (m->fact.kind[i] == FACT_TEXT &&
		    (str_has(key, STR("device")) || str_has(key, STR("gpu")) ||
		     str_eq(key, STR("name"))) &&
		    peaks_known(model_str(m, m->fact.text[i]), out))
			return true;
	}
	for (uint32_t i = 1; i < m->device.count; i++)
		if (peaks_known(model_str(m, m->device.name[i]), out))
			return true;
	return false;
}

void peaks_find(const struct model *m, struct peaks *out)
{
	*out = (struct peaks){ 0 };
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.kind[i] == FACT_OBJECT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("capabilities")) &&
		    use_capabilities(m, i, out))
			return;
	if (!use_names(m, out))
		*out = (struct peaks){ 0 };
}

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
	uint32_t op; /* op of the row; 0 = all ops */
	bool device;
	int64_t runs, time_ps;
	double flops, bytes; /* sums over all runs */
};

struct roofline {
	struct model *m;
	struct peaks peaks;
	double withdrawn_flops,
		/* peaks that were dropped because operations exceed them; 0 = none */
		withdrawn_bytes;
	struct row *rows;
	uint32_t count;
	struct row all[2]; /* sums of the host and of the device */
};

static bool is_container(struct str type)
{
	return str_eq(type, STR("call")) || str_eq(type, STR("conditional")) ||
	       str_eq(type, STR("while")) || str_eq(type, STR("megacore fusion"));
}

/* Returns whether an op starts a transfer or waits for one: the bytes move concurrently, or through other
 * memory than the device's. */
static bool is_transfer(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	return m->op.flags[op] & (OP_TO_HOST | OP_FROM_HOST) || str_ends(type, STR("-start")) ||
	       str_ends(type, STR("-done"));
}

static void add_op(struct roofline *r, uint32_t op, bool device, int64_t runs, int64_t time_ps)
{
	const struct op_table *t = &r->m->op;
	double flops = (double)t->float_ops[op] * (double)runs;
	double bytes =
		is_transfer(r->m, op) ? 0 : (double)COLUMN_GET(t->accessed, op) * (double)runs;
	struct row *all = &r->all[device];

	if (runs <= 0 || time_ps <= 0)
		return;
	if (!is_container(model_str(r->m, t->type[op]))) {
		all->runs += runs;
		all->time_ps = sum_add(all->time_ps, time_ps);
		all->flops += flops;
		all->bytes += bytes;
	}
	if (flops > 0 || bytes > 0)
		r->rows[r->count++] = (struct row){ op, device, runs, time_ps, flops, bytes };
}

/* Adds profiles that have only sums; `part` has the sums of a part of the time or of a rank, or
 * is NULL. */
static void add_sums(struct roofline *r, const struct event_sums *part, uint32_t op, uint32_t step)
{
	const struct op_step_table *t = &r->m->op_step;
	const int64_t *run_count = part ? part->run_count : t->run_count;
	const int64_t *accelerator_ns = part ? part->accelerator_ns : t->accelerator_ns;
	const int64_t *cpu_ns = part ? part->cpu_ns : t->cpu_ns;
	int64_t runs = 0, accelerator = 0, cpu = 0;
	uint32_t first = r->m->op.step_first[op], last = first + r->m->op.step_count[op];

	for (uint32_t i = first; i < last; i++) {
		if (step && t->step[i].v != step)
			continue;
		runs = sum_add(runs, run_count[i]);
		accelerator = sum_add(accelerator, accelerator_ns[i]);
		cpu = sum_add(cpu, cpu_ns[i]);
	}
	add_op(r, op, accelerator > 0, runs, us_to_ns(accelerator > 0 ? accelerator : cpu));
}

static bool is_traced(const struct model *m)
{
	for (uint32_t t = 1; t < m->track.count; t++)
		if (COLUMN_GET(m->track.flags, t) & TRACK_SLICES)
			return true;
	return false;
}

static void add_ops(struct roofline *r, const struct op_stats *stats)
{
	for (uint32_t op = 1; op < r->m->op.count; op++) {
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

static void add_columns(struct table *out)
{
	table_add_column(out, "where", "where", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "type", "type", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "name", "operation", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "runs", "runs", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "time_ns", "time", TYPE_INT, UNIT_NS);
	table_add_column(out, "percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "flops", "FLOPs", TYPE_REAL, UNIT_COUNT);
	table_add_column(out, "bytes", "bytes", TYPE_REAL, UNIT_BYTES);
	table_add_column(out, "gflops_per_second", "GFLOP/s", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "gbytes_per_second", "GB/s", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "intensity", "FLOP/byte", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "attainable_gflops_per_second", "attainable", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "efficiency_percent", "of peak", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "bound_by", "bound by", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "peak_gflops_per_second", "peak GFLOP/s", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "peak_gbytes_per_second", "peak GB/s", TYPE_REAL, UNIT_NONE);
	out->columns[COLUMN_PEAK_FLOPS].for_programs = true;
	out->columns[COLUMN_PEAK_BYTES].for_programs = true;
}

static void set_known(struct table *out, uint32_t row, uint32_t column, double value)
{
	if (value > 0)
		table_set_real(out, row, column, value);
	else
		table_set_unknown(out, row, column);
}

#define ABOVE 1.05 /* a rate above this many times the peak is more than a measuring error */
/* operations that take more than one part in this many of the device's time decide whether a
 * peak is wrong */
#define WEIGHTY 100

static bool is_above(double amount, int64_t time_ps, double peak)
{
	return peak > 0 && amount / ((double)time_ps / 1e12 * ABOVE) > peak;
}

/* A peak that operations exceed is not one: it is withdrawn, and the footer says so. Short operations may get their bytes from a
 * cache. */
static void withdraw_peaks(struct roofline *r)
{
	struct peaks found = r->peaks;

	for (uint32_t i = 0; i < r->count; i++) {
		const struct row *row = &r->rows[i];

		if (!row->device || row->time_ps < r->all[1].time_ps / WEIGHTY)
			continue;
		if (is_above(row->flops, row->time_ps, found.flops))
			r->peaks.flops = 0;
		if (is_above(row->bytes, row->time_ps, found.bytes))
			r->peaks.bytes = 0;
	}
	r->withdrawn_flops = r->peaks.flops > 0 ? 0 : found.flops;
	r->withdrawn_bytes = r->peaks.bytes > 0 ? 0 : found.bytes;
}

/* Counts operations of the device that are faster than its peak. */
static uint32_t count_above(const struct roofline *r)
{
	const struct peaks *p = &r->peaks;
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++) {
		const struct row *row = &r->rows[i];

		if (row->device && (is_above(row->flops, row->time_ps, p->flops) ||
				    is_above(row->bytes, row->time_ps, p->bytes)))
			count++;
	}
	return count;
}

static void set_limits(const struct roofline *r, struct table *out, uint32_t at,
		       const struct row *row, double rate, double bandwidth)
{
	const struct peaks none = { 0 }, *p = row->device ? &r->peaks : &none;
	double compute = p->flops > 0 ? rate / p->flops : 0;
	double memory = p->bytes > 0 ? bandwidth / p->bytes : 0;
	double best, attainable = p->flops;

	/* a rate above the peak comes from a cache or from imprecise times */
	compute = compute > ABOVE ? 0 : compute;
	memory = memory > ABOVE ? 0 : memory;
	best = MAX(compute, memory);

	if (row->bytes > 0 && p->bytes > 0) {
		double limit = row->flops / row->bytes * p->bytes;

		attainable = attainable > 0 ? MIN(attainable, limit) : limit;
	}
	set_known(out, at, COLUMN_ATTAINABLE, row->flops > 0 ? attainable / 1e9 : 0);
	set_known(out, at, COLUMN_EFFICIENCY, best * 100);
	table_set_text(out, at, COLUMN_BOUND,
		       best <= 0	   ? STR("unknown")
		       : compute >= memory ? STR("compute")
					   : STR("memory"));
	set_known(out, at, COLUMN_PEAK_FLOPS, p->flops / 1e9);
	set_known(out, at, COLUMN_PEAK_BYTES, p->bytes / 1e9);
}

static void add_row(const struct roofline *r, struct table *out, const struct row *row)
{
	const struct model *m = r->m;
	uint32_t at = table_add_row(out, 0);
	double seconds = (double)row->time_ps / 1e12;
	double rate = row->flops / seconds, bandwidth = row->bytes / seconds;
	int64_t whole = r->all[row->device].time_ps;

	table_set_text(out, at, COLUMN_WHERE, row->device ? STR("device") : STR("host"));
	table_set_model_text(out, at, COLUMN_TYPE,
			     row->op ? model_str(m, m->op.type[row->op]) : STR("program"));
	table_set_model_text(out, at, COLUMN_NAME,
			     row->op ? model_str(m, m->op.name[row->op]) : STR("all operations"));
	table_set_int(out, at, COLUMN_RUNS, row->runs);
	table_set_int(out, at, COLUMN_TIME, row->time_ps / 1000);
	table_set_real(out, at, COLUMN_PERCENT,
		       whole > 0 ? 100.0 * (double)row->time_ps / (double)whole : 0);
	set_known(out, at, COLUMN_FLOPS, row->op ? row->flops / (double)row->runs : row->flops);
	set_known(out, at, COLUMN_BYTES, row->op ? row->bytes / (double)row->runs : row->bytes);
	set_known(out, at, COLUMN_RATE, rate / 1e9);
	set_known(out, at, COLUMN_BANDWIDTH, bandwidth / 1e9);
	set_known(out, at, COLUMN_INTENSITY, row->bytes > 0 ? row->flops / row->bytes : 0);
	set_limits(r, out, at, row, rate, bandwidth);
}

/* Writes a peak such as "1307 TFLOP/s", or "unknown". */
static void write_peak(char *to, size_t size, double peak, double withdrawn, const char *unit)
{
	if (peak > 0)
		snprintf(to, size, "%.4g %s", peak, unit);
	else if (withdrawn > 0)
		snprintf(to, size, "not %.4g %s, which operations exceed", withdrawn, unit);
	else
		snprintf(to, size, "unknown %s", unit);
}

static ow_status add_footer(const struct roofline *r, struct table *out, struct ow_error *err)
{
	const struct peaks *p = &r->peaks;
	char flops[100], bytes[100], balance[80] = "", more[160] = "";
	uint32_t above = count_above(r);

	if (!r->count)
		out->footer = arena_printf(
			&out->arena, "no operation that ran has float operations or bytes: a "
				     "profile of XProf has "
				     "them, or a graph beside the profile (with --input-shape)");
	else if (!*p->from)
		out->footer = arena_printf(
			&out->arena,
			"the peak of the device is unknown; give it with --peak A100, or --peak "
			"312T:2.04T (operations and bytes per second)");
	if (out->footer)
		return OW_OK;
	write_peak(flops, sizeof(flops), p->flops / 1e12, r->withdrawn_flops / 1e12, "TFLOP/s");
	write_peak(bytes, sizeof(bytes), p->bytes / 1e9, r->withdrawn_bytes / 1e9, "GB/s");
	if (p->flops > 0 && p->bytes > 0)
		snprintf(balance, sizeof(balance),
			 "; compute and memory are in balance at %.3g FLOP/byte",
			 p->flops / p->bytes);
	if (above || r->withdrawn_flops > 0 || r->withdrawn_bytes > 0)
		snprintf(more, sizeof(more),
			 "\nshort operations above the peak: %u; their bytes come from a cache, or "
			 "the peak is higher: --peak gives it",
			 above);
	out->footer = arena_printf(&out->arena, "peak: %s, %s (from %s)%s%s", flops, bytes, p->from,
				   balance, more);
	return out->footer ? OW_OK : error_no_memory(err);
}

static ow_status list(struct roofline *r, const struct view_options *options, struct table *out,
		      struct arena *scratch, struct ow_error *err)
{
	const struct event_sums *part;
	struct event_filter filter;
	struct op_stats stats;

	OW_TRY(view_filter(r->m, options, &filter, err));
	r->rows = ARENA_ARRAY(scratch, struct row, r->m->op.count);
	if (!r->rows)
		return error_no_memory(err);
	r->all[1].device = true;
	if (is_traced(r->m)) {
		OW_TRY(op_stats_make(r->m, &filter, scratch, &stats, err));
		add_ops(r, &stats);
	} else {
		OW_TRY(view_sums(r->m, options, scratch, &part, err));
		for (uint32_t op = 1; op < r->m->op.count; op++)
			add_sums(r, part, op, filter.step);
	}
	withdraw_peaks(r);
	qsort(r->rows, r->count, sizeof(*r->rows), by_time);
	for (int side = 1; side >= 0 && r->count; side--)
		if (r->all[side].flops > 0 || r->all[side].bytes > 0)
			add_row(r, out, &r->all[side]);
	for (uint32_t i = 0; i < r->count && (!options->limit || i < options->limit); i++)
		add_row(r, out, &r->rows[i]);
	return add_footer(r, out, err);
}

static ow_status run_roofline_view(struct model *m, const struct view_options *options,
				   struct table *out, struct ow_error *err)
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
	.summary = "rates of operations, compared with the peak of the device",
	.uses = VIEW_USES_PART | VIEW_USES_PEAK,
	.run = run_roofline_view,
};
