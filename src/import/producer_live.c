/*
 * producer_live.c: recordings of running programs (live_rows.c). Names and categories are those that PyTorch and
 * others give, so most is known to the passes that traces share; here is what only recordings have: files, and steps
 * without any marker of a profiler.
 */
#include "import/mean_int.h"

static bool recognise(const struct meaning *x)
{
	return x->in->live;
}

static ow_status links(struct meaning *x)
{
	return mean_link_correlations(x);
}

static bool is_optimizer_step(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("Optimizer.step#"));
}

static bool is_loader_iteration(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("enumerate(DataLoader)#"));
}

static int by_start(const void *a, const void *b)
{
	const struct mean_marker *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* A step lasts from the begin of a wait for data to the begin of the next. What comes after the last one is the end
 * of the data. */
static ow_status mark_iterations(struct meaning *x)
{
	struct mean_markers *m = &x->markers;

	OW_TRY(mean_mark_slices(x, is_loader_iteration, NULL));
	if (m->count < 2) {
		m->count = 0;
		return OW_OK;
	}
	qsort(m->list, m->count, sizeof(*m->list), by_start);
	for (size_t i = 0; i + 1 < m->count; i++)
		m->list[i].end = m->list[i + 1].start;
	m->count--;
	for (size_t i = 0; i < m->count; i++)
		m->list[i].number = INT64_MIN;
	return OW_OK;
}

/* The first wait for data. */
static int64_t first_iteration(const struct meaning *x)
{
	int64_t first = INT64_MAX;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		for (uint32_t e = track->first; e < track->last; e++)
			if (x->m->event.ts_ns[e] < first &&
			    is_loader_iteration(NULL, model_str(x->m, mean_name(x, e))))
				first = x->m->event.ts_ns[e];
	}
	return first;
}

/* Steps end with the optimizer's; the first one does not begin with the program. */
static ow_status steps(struct meaning *x)
{
	struct mean_marker *first;
	int64_t begin;

	OW_TRY(mean_mark_ends(x, is_optimizer_step, NULL));
	if (!x->markers.count)
		return mark_iterations(x);
	begin = first_iteration(x);
	first = &x->markers.list[0];
	if (begin > first->start && begin < first->end)
		first->start = begin;
	return OW_OK;
}

static const struct {
	const char *category;
	enum event_phase phase;
} phases[] = {
	{ "file_read", PHASE_INPUT },	{ "file_open", PHASE_INPUT },
	{ "file_write", PHASE_HOST },	{ "opencl_wait", PHASE_SYNCHRONISATION },
	{ "opencl_build", PHASE_HOST }, { "cuda_wait", PHASE_SYNCHRONISATION },
};

static enum event_phase host_phase(const struct meaning *x, uint32_t event)
{
	struct str category = mean_text(x, COLUMN_GET(x->m->event.category, event));

	for (size_t i = 0; i < ARRAY_COUNT(phases); i++)
		if (str_eq(category, str_from(phases[i].category)))
			return phases[i].phase;
	return PHASE_IDLE;
}

const struct producer producer_live = {
	.name = "live",
	.title = "opwatch record",
	.recognise = recognise,
	.links = links,
	.steps = steps,
	.host_phase = host_phase,
};
