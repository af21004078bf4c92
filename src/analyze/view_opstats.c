/*
 * view_opstats.c: ops by the time that they themselves take, as XProf counts it (op_stats.h): first those of devices, then
 * those of hosts, each with a row for the time without any. The same numbers as XProf's "framework op stats".
 */
#include "analyze/op_stats.h"

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
	uint32_t op; /* 0 = without any op */
	struct op_stat stat;
};

static void add_columns(struct result *out)
{
	result_column(out, "rank", "rank", RESULT_INT, RESULT_PLAIN);
	result_column(out, "where", "where", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "type", "type", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "name", "operation", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "runs", "runs", RESULT_INT, RESULT_COUNT);
	result_column(out, "total_ns", "total", RESULT_INT, RESULT_NS);
	result_column(out, "average_ns", "per run", RESULT_REAL, RESULT_NS);
	result_column(out, "self_ns", "self", RESULT_INT, RESULT_NS);
	result_column(out, "percent", "share", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "cumulative_percent", "up to here", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "busy_percent", "without idle", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "total_ps", "total ps", RESULT_INT, RESULT_PLAIN);
	result_column(out, "self_ps", "self ps", RESULT_INT, RESULT_PLAIN);
	out->columns[COLUMN_TOTAL_PS].for_programs = true;
	out->columns[COLUMN_SELF_PS].for_programs = true;
}

struct listing {
	const struct model *m;
	const struct view_options *options;
	struct result *out;
	struct row *rows;
	uint32_t count;
	int64_t rank; /* goes on from devices to hosts */
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
	struct result *out = l->out;
	uint32_t at = result_row(out, 0);
	const struct op_stat *s = &row->stat;

	result_set_int(out, at, COLUMN_RANK, ++l->rank);
	result_set_text(out, at, COLUMN_WHERE, str_from(where));
	result_set_model_text(out, at, COLUMN_TYPE,
			      row->op ? model_str(l->m, l->m->op.type[row->op]) : STR("IDLE"));
	result_set_model_text(out, at, COLUMN_NAME, name_of(l->m, row));
	result_set_int(out, at, COLUMN_RUNS, s->runs);
	result_set_int(out, at, COLUMN_TOTAL, s->total_ps / 1000);
	if (s->runs)
		result_set_real(out, at, COLUMN_AVERAGE,
				(double)s->total_ps / 1000 / (double)s->runs);
	else
		result_set_unknown(out, at, COLUMN_AVERAGE);
	result_set_int(out, at, COLUMN_SELF, s->self_ps / 1000);
	result_set_real(out, at, COLUMN_PERCENT, share(s->self_ps, whole));
	result_set_real(out, at, COLUMN_CUMULATIVE, share(sum, whole));
	if (row->op)
		result_set_real(out, at, COLUMN_BUSY_PERCENT, share(s->self_ps, busy));
	else
		result_set_unknown(out, at, COLUMN_BUSY_PERCENT);
	result_set_int(out, at, COLUMN_TOTAL_PS, s->total_ps);
	result_set_int(out, at, COLUMN_SELF_PS, s->self_ps);
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
		sum = wrap_add(sum, l->rows[i].stat.self_ps);
		add_row(l, &l->rows[i], where, self, wrap_add(self, idle), sum);
	}
}

static ow_status run_in(struct model *m, const struct view_options *options, struct result *out,
			struct arena *scratch, struct error *err)
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

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
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
	.run = run,
};
