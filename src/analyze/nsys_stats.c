/*
 * nsys_stats.c: see nsys_stats.h. Sums, means and the like of what nsys_groups.c has put together, as the scripts of
 * Nsight Systems print them: shares of what is listed, the mean of the two middle values as the median, and the
 * deviation of a sample.
 */
#include "analyze/nsys_stats.h"

#include <math.h>

const struct nsys_report nsys_reports[] = {
	{ "cuda_gpu_kern_sum", "gpukernsum", "CUDA GPU Kernel Summary", "Total Time (ns)",
	  "Instances", "Name", .style = false },
	{ "cuda_api_sum", "cudaapisum", "CUDA API Summary", "Total Time (ns)", "Num Calls", "Name",
	  .style = false },
	{ "cuda_gpu_mem_time_sum", "gpumemtimesum", "CUDA GPU MemOps Summary (by Time)",
	  "Total Time (ns)", "Count", "Operation", .style = false },
	{ "cuda_gpu_mem_size_sum", "gpumemsizesum", "CUDA GPU MemOps Summary (by Size)",
	  "Total (MB)", "Count", "Operation", .bytes = true },
	{ "nvtx_sum", "nvtxsum", "NVTX Range Summary", "Total Time (ns)", "Instances", "Range",
	  .style = true },
	{ "osrt_sum", "osrtsum", "OS Runtime Summary", "Total Time (ns)", "Num Calls", "Name",
	  .style = false },
	{ "cuda_kern_exec_sum", "kernexecsum", "CUDA Kernel Launch & Exec Time Summary", "",
	  "Count", "Kernel Name", .launches = true },
};
const size_t nsys_report_count = ARRAY_COUNT(nsys_reports);

const struct nsys_report *nsys_report_find(const char *name)
{
	for (size_t i = 0; i < nsys_report_count; i++)
		if (strcmp(nsys_reports[i].name, name) == 0 ||
		    strcmp(nsys_reports[i].old_name, name) == 0)
			return &nsys_reports[i];
	return NULL;
}

/* ---- numbers ---- */

struct summary {
	int64_t count, total, least, most;
	double mean, median, deviation;
};

struct row {
	const struct nsys_group *group;
	struct summary parts[NSYS_PARTS];
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static struct summary summarise(int64_t *values, size_t count)
{
	struct summary s = { .count = (int64_t)count };
	double squares = 0, total = 0;
	size_t middle = count / 2;

	if (!count)
		return s;
	qsort(values, count, sizeof(*values), by_value);
	for (size_t i = 0; i < count; i++) {
		s.total = wrap_add(s.total, values[i]);
		total += (double)values[i];
	}
	s.least = values[0];
	s.most = values[count - 1];
	s.mean = total / (double)count;
	s.median = (double)values[middle];
	if (count % 2 == 0)
		s.median = (s.median + (double)values[middle - 1]) / 2;
	for (size_t i = 0; i < count; i++)
		squares += ((double)values[i] - s.mean) * ((double)values[i] - s.mean);
	if (count > 1)
		s.deviation = sqrt(squares / (double)(count - 1));
	return s;
}

/* Values by slot; each slot's are summarised. */
static ow_status make_rows(struct nsys_groups *g, struct row *rows)
{
	size_t slots = g->count * NSYS_PARTS;
	size_t *first = ARENA_ARRAY(&g->scratch, size_t, slots + 1);
	int64_t *values = mem_alloc(g->mem, (g->value_count + 1) * sizeof(*values));

	if (!first || !values) {
		mem_free(g->mem, values, (g->value_count + 1) * sizeof(*values));
		return error_no_memory(g->err);
	}
	for (size_t i = 0; i < g->value_count; i++)
		first[g->values[i].slot + 1]++;
	for (size_t i = 0; i < slots; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < g->value_count; i++)
		values[first[g->values[i].slot]++] = g->values[i].value;
	for (size_t i = 0; i < slots; i++) { /* first[i] is behind the last of it by now */
		size_t from = i ? first[i - 1] : 0;

		rows[i / NSYS_PARTS].parts[i % NSYS_PARTS] =
			summarise(values + from, first[i] - from);
	}
	for (size_t i = 0; i < g->count; i++)
		rows[i].group = &g->list[i];
	mem_free(g->mem, values, (g->value_count + 1) * sizeof(*values));
	return OW_OK;
}

static int by_total(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->parts[0].total != y->parts[0].total)
		return x->parts[0].total > y->parts[0].total ? -1 : 1;
	if (x->group->pid != y->group->pid)
		return x->group->pid < y->group->pid ? -1 : 1;
	return str_cmp(x->group->label, y->group->label);
}

/* ---- the table ---- */

static void put(struct result *out, uint32_t row, uint32_t column, double value, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", decimals, value);
	result_set_text(out, row, column, str_from(text));
}

static void put_int(struct result *out, uint32_t row, uint32_t column, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	result_set_text(out, row, column, str_from(text));
}

static uint32_t number_column(struct result *out, const char *name)
{
	return result_column(out, name, name, RESULT_NUMBER, RESULT_PLAIN);
}

static uint32_t text_column(struct result *out, const char *name)
{
	return result_column(out, name, name, RESULT_TEXT, RESULT_PLAIN);
}

static void sum_columns(const struct nsys_report *report, struct result *out)
{
	static const char *const times[] = { "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)",
					     "StdDev (ns)" };
	static const char *const sizes[] = { "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)",
					     "StdDev (MB)" };

	if (!report->bytes)
		number_column(out, "Time (%)");
	number_column(out, report->total);
	number_column(out, report->count);
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		number_column(out, report->bytes ? sizes[i] : times[i]);
	if (report->style)
		text_column(out, "Style");
	text_column(out, report->label);
}

static void add_time(struct result *out, uint32_t row, const struct summary *s, double sum,
		     uint32_t *column)
{
	put(out, row, (*column)++, sum > 0 ? 100 * (double)s->total / sum : 0, 1);
	put_int(out, row, (*column)++, s->total);
	put_int(out, row, (*column)++, s->count);
	put(out, row, (*column)++, s->mean, 1);
	put(out, row, (*column)++, s->median, 1);
	put_int(out, row, (*column)++, s->least);
	put_int(out, row, (*column)++, s->most);
	put(out, row, (*column)++, s->deviation, 1);
}

static void add_size(struct result *out, uint32_t row, const struct summary *s, uint32_t *column)
{
	const double mb = 1e6;

	put(out, row, (*column)++, (double)s->total / mb, 3);
	put_int(out, row, (*column)++, s->count);
	put(out, row, (*column)++, s->mean / mb, 3);
	put(out, row, (*column)++, s->median / mb, 3);
	put(out, row, (*column)++, (double)s->least / mb, 3);
	put(out, row, (*column)++, (double)s->most / mb, 3);
	put(out, row, (*column)++, s->deviation / mb, 3);
}

static void add_sums(const struct nsys_report *report, struct result *out, const struct row *rows,
		     size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)rows[i].parts[0].total;
	for (size_t i = 0; i < count; i++) {
		uint32_t row = result_row(out, 0), column = 0;

		if (report->bytes)
			add_size(out, row, &rows[i].parts[0], &column);
		else
			add_time(out, row, &rows[i].parts[0], sum, &column);
		if (report->style)
			result_set_model_text(out, row, column++,
					      rows[i].group->start_end ? STR("StartEnd")
								       : STR("PushPop"));
		result_set_text(out, row, column, rows[i].group->label);
	}
}

static const char *const launch_columns[NSYS_PARTS][5] = {
	{ "TAvg (ns)", "TMed (ns)", "TMin (ns)", "TMax (ns)", "TStdDev (ns)" },
	{ "AAvg (ns)", "AMed (ns)", "AMin (ns)", "AMax (ns)", "AStdDev (ns)" },
	{ "QAvg (ns)", "QMed (ns)", "QMin (ns)", "QMax (ns)", "QStdDev (ns)" },
	{ "KAvg (ns)", "KMed (ns)", "KMin (ns)", "KMax (ns)", "KStdDev (ns)" },
};

/* A part that never was, as waiting in the queue, is empty. */
static void add_part(struct result *out, uint32_t row, const struct summary *s, uint32_t column)
{
	if (!s->count) {
		for (uint32_t i = 0; i < 5; i++)
			result_set_unknown(out, row, column + i);
		return;
	}
	put(out, row, column, s->mean, 1);
	put(out, row, column + 1, s->median, 1);
	put_int(out, row, column + 2, s->least);
	put_int(out, row, column + 3, s->most);
	put(out, row, column + 4, s->deviation, 1);
}

static void add_launches(struct result *out, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *from = &rows[i];
		uint32_t row = result_row(out, 0), column = 5;

		put_int(out, row, 0, from->group->pid);
		put_int(out, row, 1, from->group->tid);
		put_int(out, row, 2, from->group->device);
		put_int(out, row, 3, from->parts[0].count);
		put_int(out, row, 4, from->parts[2].count);
		for (int part = 0; part < NSYS_PARTS; part++, column += 5)
			add_part(out, row, &from->parts[part], column);
		result_set_text(out, row, column, from->group->call);
		result_set_text(out, row, column + 1, from->group->label);
	}
}

static void launch_headings(struct result *out)
{
	static const char *const first[] = { "PID", "TID", "DevId", "Count", "QCount" };

	for (size_t i = 0; i < ARRAY_COUNT(first); i++)
		number_column(out, first[i]);
	for (int part = 0; part < NSYS_PARTS; part++)
		for (int i = 0; i < 5; i++)
			number_column(out, launch_columns[part][i]);
	text_column(out, "API Name");
	text_column(out, "Kernel Name");
}

static ow_status fill(struct nsys_groups *g, const struct nsys_report *report, struct result *out)
{
	struct row *rows;
	size_t count;

	OW_TRY(nsys_collect(g, report));
	rows = ARENA_ARRAY(&g->scratch, struct row, g->count);
	if (!rows)
		return error_no_memory(g->err);
	OW_TRY(make_rows(g, rows));
	count = g->count - 1;
	qsort(rows + 1, count, sizeof(*rows), by_total);
	if (report->launches)
		add_launches(out, rows + 1, count);
	else
		add_sums(report, out, rows + 1, count);
	return out->status == OW_OK ? OW_OK : error_no_memory(g->err);
}

ow_status nsys_report_run(struct model *m, const struct nsys_report *report,
			  const struct view_options *options, struct result *out, struct error *err)
{
	struct nsys_groups g = { .m = m, .mem = m->mem, .err = err, .count = 1 };
	ow_status status;

	OW_TRY(view_filter(m, options, &g.filter, err));
	if (report->launches)
		launch_headings(out);
	else
		sum_columns(report, out);
	arena_init(&g.scratch, m->mem);
	map_init(&g.map, m->mem);
	status = fill(&g, report, out);
	map_release(&g.map);
	mem_free(m->mem, g.list, g.cap * sizeof(*g.list));
	mem_free(m->mem, g.values, g.value_cap * sizeof(*g.values));
	arena_release(&g.scratch);
	if (status == OW_OK && options->limit)
		result_limit(out, options->limit);
	return status;
}
