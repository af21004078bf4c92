/* look.c: see look.h. */
#include "watch/look.h"

#include "analyze/op_stats.h"
#include "import/importer.h"

static ow_status make_model(struct look *look, const struct buf *file, const char *step_marker,
			    struct error *err)
{
	struct import_options options = { .step = INT64_MIN, .step_marker = step_marker };
	struct builder b;
	struct input in;

	look->m = model_new(look->mem, err);
	if (!look->m)
		return OW_E_NO_MEMORY;
	builder_init(&b, look->m, err);
	OW_TRY(input_from_memory(&in, look->mem, "recording", file->ptr, file->len, err));
	OW_TRY(import_input(&b, &in, importer_find(STR("live")), &options, NULL, err));
	OW_TRY(import_finish(&b, &options, err));
	return model_freeze(&b);
}

static enum look_marker marker_of(const struct model *m, const struct phase_window *w,
				  const char *step_marker)
{
	struct str name = model_str(m, m->step.name[w->step.v]);
	bool marked = false;

	for (uint32_t i = 1; i < m->window.count && !marked; i++)
		marked = m->window.source[i].v == w->source.v;
	if (!marked)
		return LOOK_NO_STEPS;
	if (step_marker)
		return LOOK_GIVEN;
	return str_starts(name, STR("enumerate(DataLoader)")) ? LOOK_LOADER : LOOK_OPTIMIZER;
}

static ow_status make_steps(struct look *look, const char *step_marker, struct error *err)
{
	const struct phases *p = &look->phases;
	uint32_t source = UINT32_MAX;
	enum look_marker marker = LOOK_NO_STEPS;

	look->steps = ARENA_ARRAY(&look->arena, struct look_step, p->window_count);
	if (!look->steps)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->window_count; i++) {
		const struct phase_window *w = &p->windows[i];
		struct look_step *step = &look->steps[look->count];
		struct phase_row mean;

		if (!w->row_count || w->end_ns <= w->start_ns)
			continue;
		if (w->source.v != source)
			marker = marker_of(look->m, w, step_marker);
		phases_mean(p->rows + w->row_first, w->row_count, &mean);
		*step = (struct look_step){ .rank = look->m->source.rank[w->source.v],
					    .marker = marker,
					    .start_ns = w->start_ns,
					    .end_ns = w->end_ns,
					    .device_busy_ns = mean.sums.device_busy,
					    .has_device = p->lanes[mean.lane].has_device,
					    .first = w->source.v != source };
		memcpy(step->share, mean.sums.share, sizeof(step->share));
		source = w->source.v;
		look->count++;
	}
	return OW_OK;
}

ow_status look_make(struct look *look, struct mem *mem, const struct buf *file,
		    const char *step_marker, struct error *err)
{
	const struct event_filter all = EVENT_FILTER_ALL;

	*look = (struct look){ .mem = mem };
	arena_init(&look->arena, mem);
	arena_init(&look->phases.arena, mem);
	OW_TRY(make_model(look, file, step_marker, err));
	OW_TRY(phases_analyse(look->m, &all, &look->phases, err));
	return make_steps(look, step_marker, err);
}

void look_release(struct look *look)
{
	phases_release(&look->phases);
	arena_release(&look->arena);
	if (look->m)
		model_free(look->m);
	look->m = NULL;
}

/* ---- operations ---- */

static int by_time(const void *a, const void *b)
{
	const struct look_op *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Keeps the longest `cap`, by putting the new one in the place of the shortest. */
static void keep(struct look_op *ops, size_t cap, size_t *count, struct str name,
		 const struct op_stat *stat)
{
	size_t at = *count;

	if (!stat->runs || stat->self_ps < 1000 || !cap)
		return;
	if (at == cap) {
		at = 0;
		for (size_t i = 1; i < cap; i++)
			at = ops[i].self_ns < ops[at].self_ns ? i : at;
		if (ops[at].self_ns >= stat->self_ps / 1000)
			return;
	} else {
		++*count;
	}
	name = str_first(name, LOOK_NAME - 1);
	name = str_first(name, utf8_valid_prefix(name));
	memcpy(ops[at].name, name.ptr, name.len);
	ops[at].name[name.len] = '\0';
	ops[at].self_ns = stat->self_ps / 1000;
	ops[at].runs = stat->runs;
}

ow_status look_ops(struct look *look, int64_t from_ns, int64_t to_ns, int32_t rank,
		   struct look_op *ops, size_t cap, size_t *count, struct error *err)
{
	struct event_filter filter = { .from_ns = from_ns, .to_ns = to_ns, .rank = rank };
	const struct model *m = look->m;
	struct op_stats stats;

	*count = 0;
	OW_TRY(op_stats_make(m, &filter, &look->arena, &stats, err));
	for (uint32_t i = 1; i < m->op.count; i++)
		keep(ops, cap, count, model_str(m, m->op.name[i]),
		     stats.devices ? &stats.device[i] : &stats.host[i]);
	if (*count)
		qsort(ops, *count, sizeof(*ops), by_time);
	return OW_OK;
}
