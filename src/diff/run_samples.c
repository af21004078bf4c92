/*
 * run_samples.c: reads the cells of a profile of samples (run.h): each sample counts for the function and the line that
 * ran, in the unit of its metric, so that the cells sum to all samples. With the option `frames` it also reads the call
 * stacks, for flame graphs. run.c calls it for recordings without timed events, and if a metric was asked for.
 */
#include "diff/run.h"

#include "base/vec.h"

#define LINE_BYTES 256

struct reader {
	const struct model *m;
	struct mem *mem;
	struct ow_error *err;
	struct diff_run *run;
	struct arena scratch;
	const char *metric;
	bool counted;	 /* each sample weighs one */
	int64_t *sums;	 /* for each stack: the sum of its samples' weights */
	int64_t *counts; /* for each stack: the number of its samples */
};

static bool has_metric(const struct model *m, struct str name)
{
	for (uint32_t i = 1; i < m->metric.count; i++)
		if (str_eq(name, model_str(m, m->metric.name[i])))
			return true;
	return false;
}

/* Chooses the metric to compare: the one that the user asked for, or the default. `chosen` has an entry for each
 * metric, because every source has its own. */
static ow_status choose_metric(struct reader *r, bool *chosen)
{
	const struct model *m = r->m;
	struct str name = r->metric ? str_from(r->metric) : STR("");
	struct str path = model_str(m, m->source.path[m->source.count > 1]);

	r->counted = r->metric && strcmp(r->metric, METRIC_SAMPLES) == 0 && !has_metric(m, name);
	if (r->counted)
		name = STR("");
	for (uint32_t i = 1; i < m->metric.count && !name.len; i++)
		if (m->metric.is_default[i])
			name = model_str(m, m->metric.name[i]);
	for (uint32_t i = 1; i < m->metric.count; i++) {
		chosen[i] = str_eq(name, model_str(m, m->metric.name[i]));
		if (chosen[i] && !r->run->metric.len) {
			/* the text lives as long as the run */
			r->run->metric = model_str(m, m->metric.name[i]);
			r->run->unit = model_str(m, m->metric.unit[i]);
		}
	}
	r->run->own_metric = r->run->metric;
	if (r->counted && r->run->metric.len) {
		r->run->metric = STR(METRIC_SAMPLES);
		r->run->unit = STR("samples");
	}
	if (r->metric && m->sample.count > 1 && !r->run->metric.len)
		return error_set(r->err, OW_E_USAGE,
				 "%.*s has no samples of '%s'; runs are compared by one metric, "
				 "which --metric chooses",
				 (int)MIN(path.len, 200u), path.ptr, r->metric);
	return OW_OK;
}

static ow_status sum_stacks(struct reader *r, int64_t *samples)
{
	const struct model *m = r->m;
	bool *chosen = ARENA_ARRAY(&r->scratch, bool, m->metric.count + 1);

	r->sums = ARENA_ARRAY(&r->scratch, int64_t, m->stack.count + 1);
	r->counts = ARENA_ARRAY(&r->scratch, int64_t, m->stack.count + 1);
	if (!chosen || !r->sums || !r->counts)
		return error_no_memory(r->err);
	OW_TRY(choose_metric(r, chosen));
	for (uint32_t i = 1; i < m->sample.count; i++) {
		uint32_t stack = m->sample.stack[i].v;

		if (!chosen[m->sample.metric[i].v] || m->sample.weight[i] <= 0)
			continue;
		r->sums[stack] = span_add(r->sums[stack], r->counted ? 1 : m->sample.weight[i]);
		r->counts[stack]++;
		++*samples;
	}
	return OW_OK;
}

static struct str function_of(const struct model *m, uint32_t frame)
{
	struct str function = model_str(m, m->frame.function[frame]);

	return function.len ? function : STR("[unknown]");
}

/* Sets the line of a cell: "model.py:41"; without a number the whole file, without a file the module. */
static ow_status set_line(struct reader *r, uint32_t frame, struct diff_cell *cell)
{
	const struct model *m = r->m;
	size_t slash;
	char text[LINE_BYTES];

	cell->file = model_str(m, m->frame.file[frame]);
	cell->line = cell->file.len ? cell->file : model_str(m, COLUMN_GET(m->frame.module, frame));
	if (!cell->file.len || m->frame.line[frame] <= 0)
		return OW_OK;
	cell->line_number = m->frame.line[frame];
	slash = str_rfind_char(cell->file, '/');
	cell->line = slash == STR_NONE ? cell->file : str_skip(cell->file, slash + 1);
	snprintf(text, sizeof(text), "%.*s:%d", (int)MIN(cell->line.len, LINE_BYTES - 16u),
		 cell->line.ptr, (int)cell->line_number);
	cell->line = arena_str(&r->run->arena, str_from(text));
	return cell->line.ptr ? OW_OK : error_no_memory(r->err);
}

static ow_status add_cell(struct reader *r, uint32_t frame, int64_t sum, int64_t count)
{
	struct diff_cell cell = { .class = CLASS_HOST,
				  .rank = -1,
				  .op = function_of(r->m, frame),
				  .ns = sum,
				  .count = count };

	OW_TRY(set_line(r, frame, &cell));
	r->run->total_ns = span_add(r->run->total_ns, sum);
	return vec_push(r->mem, r->run->cells, r->run->cell_count, r->run->cell_cap, cell)
		       ? OW_OK
		       : error_no_memory(r->err);
}

/* Adds a cell for each frame that is the innermost frame of a sample. */
static ow_status add_cells(struct reader *r)
{
	const struct model *m = r->m;
	int64_t *sums = ARENA_ARRAY(&r->scratch, int64_t, m->frame.count + 1);
	int64_t *counts = ARENA_ARRAY(&r->scratch, int64_t, m->frame.count + 1);

	if (!sums || !counts)
		return error_no_memory(r->err);
	for (uint32_t s = 0; s < m->stack.count; s++) {
		uint32_t frame = m->stack.frame[s].v;

		sums[frame] = span_add(sums[frame], r->sums[s]);
		counts[frame] += r->counts[s];
	}
	for (uint32_t f = 0; f < m->frame.count; f++)
		if (sums[f])
			OW_TRY(add_cell(r, f, sums[f], counts[f]));
	return OW_OK;
}

/* Adds the frames. Stacks come after their callers in the model, so one pass backwards sums and one pass forwards
 * numbers. */
static ow_status add_frames(struct reader *r)
{
	const struct model *m = r->m;
	uint32_t *number = ARENA_ARRAY(&r->scratch, uint32_t, m->stack.count + 1);
	int64_t *totals = ARENA_ARRAY(&r->scratch, int64_t, m->stack.count + 1);

	if (!number || !totals)
		return error_no_memory(r->err);
	for (uint32_t s = m->stack.count; s-- > 0;) {
		uint32_t parent = m->stack.parent[s].v;

		totals[s] = span_add(totals[s], r->sums[s]);
		if (parent && parent < s)
			totals[parent] = span_add(totals[parent], totals[s]);
	}
	for (uint32_t s = 0; s < m->stack.count; s++) {
		uint32_t parent = m->stack.parent[s].v;
		struct diff_frame frame = { parent < s ? number[parent] : 0,
					    function_of(m, m->stack.frame[s].v), totals[s],
					    r->sums[s] };

		if (!totals[s])
			continue;
		if (!vec_push(r->mem, r->run->frames, r->run->frame_count, r->run->frame_cap,
			      frame))
			return error_no_memory(r->err);
		number[s] = (uint32_t)r->run->frame_count;
	}
	return OW_OK;
}

static ow_status read_all(struct reader *r, bool frames)
{
	int64_t samples = 0;

	OW_TRY(sum_stacks(r, &samples));
	OW_TRY(add_cells(r));
	r->run->steps = r->run->cell_count != 0;
	r->run->counts_unknown = r->run->cell_count != 0;
	if (str_eq(r->run->unit, STR("count")) &&
	    (r->run->total_ns == samples || str_eq(r->run->metric, STR(METRIC_SAMPLES))))
		/* the recording does not say how much each sample stands for */
		r->run->unit = STR("samples");
	return frames ? add_frames(r) : OW_OK;
}

ow_status diff_samples_read(const struct model *m, const struct diff_read_options *options,
			    struct diff_run *run, struct ow_error *err)
{
	struct reader r = {
		.m = m, .mem = m->mem, .err = err, .run = run, .metric = options->metric
	};
	ow_status status;

	arena_init(&r.scratch, m->mem);
	status = read_all(&r, options->frames);
	arena_release(&r.scratch);
	return status;
}
