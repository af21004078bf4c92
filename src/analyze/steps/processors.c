/*
 * processors.c: reads the counter of the processors and corrects the phases of a step by it; processors.h explains how. Called by
 * phases.c for each step. It does not know where within some 50 ms the thread ran or waited: sums of many steps are
 * right, single short steps are estimates.
 */
#include "analyze/steps/processors.h"

#include "model/model.h"

static bool is_processor_row(const struct model *m, uint32_t row, str_id name)
{
	return m->counter.name[row].v == name.v;
}

static str_id name_of_counter(const struct model *m)
{
	for (uint32_t i = 1; i < m->counter.count; i++)
		if (str_eq(model_str(m, m->counter.name[i]), STR(PROCESSOR_COUNTER)))
			return m->counter.name[i];
	return (str_id){ 0 };
}

static int by_begin(const void *a, const void *b)
{
	const struct processor_span *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

/* Joins rows with the same time to one span, which begins at the end of the span before. */
static void join_rows(struct processor_use *use)
{
	size_t kept = 0;

	qsort(use->items, use->count, sizeof(*use->items), by_begin);
	for (size_t i = 0; i < use->count; i++) {
		struct processor_span *last = kept ? &use->items[kept - 1] : NULL;
		struct processor_span span = use->items[i];

		if (last && last->end == span.end) {
			last->running = MAX(last->running, span.running);
			last->waiting = MAX(last->waiting, span.waiting);
			continue;
		}
		span.begin = last ? last->end : span.end;
		use->items[kept++] = span;
	}
	use->count = kept;
}

ow_status processors_find(const struct model *m, struct arena *arena, struct processor_use **uses,
			  struct ow_error *err)
{
	uint32_t sources = m->source.count ? m->source.count : 1;
	str_id name = name_of_counter(m);

	*uses = ARENA_ARRAY(arena, struct processor_use, sources);
	if (!*uses)
		return error_no_memory(err);
	if (!name.v)
		return OW_OK;
	for (uint32_t i = 1; i < m->counter.count; i++)
		if (is_processor_row(m, i, name))
			(*uses)[m->track.source[m->counter.track[i].v].v].count++;
	for (uint32_t i = 0; i < sources; i++) {
		struct processor_use *use = &(*uses)[i];

		use->items =
			use->count ? ARENA_ARRAY(arena, struct processor_span, use->count) : NULL;
		if (use->count && !use->items)
			return error_no_memory(err);
		use->count = 0;
	}
	for (uint32_t i = 1; i < m->counter.count; i++) {
		struct processor_use *use;
		bool runs;

		if (!is_processor_row(m, i, name))
			continue;
		use = &(*uses)[m->track.source[m->counter.track[i].v].v];
		runs = str_eq(model_str(m, m->counter.series[i]), STR(PROCESSOR_RUNNING));
		use->items[use->count++] =
			(struct processor_span){ .end = m->counter.ts_ns[i],
						 .running = runs ? m->counter.value[i] : 0,
						 .waiting = runs ? 0 : m->counter.value[i] };
	}
	for (uint32_t i = 0; i < sources; i++)
		if ((*uses)[i].count)
			join_rows(&(*uses)[i]);
	return OW_OK;
}

static size_t first_after(const struct processor_use *use, int64_t t)
{
	size_t low = 0, high = use->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (use->items[middle].end <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_up(const struct processor_use *use, int64_t from, int64_t to, double *running,
		   double *waiting)
{
	for (size_t i = first_after(use, from); i < use->count && use->items[i].begin < to; i++) {
		const struct processor_span *span = &use->items[i];
		double ns = (double)span_length(MAX(span->begin, from), MIN(span->end, to));

		*running += span->running * ns;
		*waiting += span->waiting * ns;
	}
}

/* Moves a part of one class's share to another class. Returns the amount. */
static int64_t move_share(struct phase_sums *s, enum phase_class from, enum phase_class to,
			  int64_t ns)
{
	ns = MAX(MIN(ns, s->share[from]), 0);
	s->share[from] -= ns;
	s->share[to] += ns;
	s->total[to] += ns;
	s->total[from] -= MIN(ns, s->total[from]);
	return ns;
}

/* Classes in which a thread computes on a processor, as far as it is recorded. */
static const enum phase_class computing[] = { CLASS_COMPUTE, CLASS_INITIALISATION, CLASS_ALLOCATION,
					      CLASS_LAUNCH, CLASS_HOST };

static int64_t computed(const struct phase_sums *s, bool has_device)
{
	int64_t ns = 0;

	for (size_t i = 0; i < ARRAY_COUNT(computing); i++)
		if (computing[i] != CLASS_COMPUTE || !has_device)
			ns = span_add(ns,
				      has_device ? s->total[computing[i]] : s->share[computing[i]]);
	return ns;
}

void processors_apply(const struct processor_use *use, int64_t from, int64_t to, bool has_device,
		      struct phase_sums *s)
{
	/* Classes in which a thread may lose its processor although it does not compute:
	 * reading, or going to sleep. */
	static const enum phase_class others[] = { CLASS_INPUT, CLASS_SYNCHRONISATION,
						   CLASS_COMMUNICATION };
	double running = 0, waiting = 0, free;
	int64_t recorded = computed(s, has_device), left;

	if (!use || !use->count)
		return;
	add_up(use, from, to, &running, &waiting);
	left = (int64_t)waiting;
	left -= move_share(s, CLASS_IDLE, CLASS_RUN_QUEUE, left);
	/* time in which the thread certainly computes is not moved */
	free = MIN((double)left, MAX((double)recorded - running, 0.0));
	for (size_t i = 0; i < ARRAY_COUNT(computing) && !has_device && free > 0; i++) {
		double part = recorded ? (double)s->share[computing[i]] / (double)recorded : 0;

		left -= move_share(s, computing[i], CLASS_RUN_QUEUE, (int64_t)(part * free));
	}
	for (size_t i = 0; i < ARRAY_COUNT(others) && !has_device && left > 0; i++)
		left -= move_share(s, others[i], CLASS_RUN_QUEUE, left);
	move_share(s, CLASS_IDLE, CLASS_HOST, (int64_t)running - computed(s, has_device));
	s->total[CLASS_IDLE] = s->share[CLASS_IDLE];
}
