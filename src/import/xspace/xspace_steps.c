/*
 * xspace_roots.c: steps of an XSpace whose events have no groups yet, which newer profilers leave to the viewer: the
 * events that are told to be roots, as XProf groups by them (their level first, then their time), or the iterations of
 * a loop inside of a graph (xspace_loops.c). What they start on other threads and on devices belongs to them by what
 * they hand over (mean_consumed.c), by launches and by time, as with any other marker.
 */
#include "import/xspace_int.h"

#define LEVELS_MAX 8 /* profilers have two or three */

/* Runs of a function inside of tf.data are no steps of their own. */
struct xroot {
	int64_t start, end, level, number; /* number INT64_MIN: in order */
	uint64_t id;
	bool has_id, captured;
	uint32_t track;
	str_id name;
};

/* Roots that only go around what the user has started have no name. */
static const char *const implicit[] = { "FunctionRun", "SessionRun", "RunGraph",
					"ExecutorState::Process" };

static bool is_implicit(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(implicit); i++)
		if (str_eq(name, str_from(implicit[i])))
			return true;
	return false;
}

/* A newer runtime's loops, of which no event tells the iteration: XProf does not group such files. */
static const char *const ungrouped[] = { "WhileOp-EvalCond", "WhileOp-StartBody", "ForOp",
					 "ParallelForOp", "ForeverOp" };

static bool is_ungrouped(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(ungrouped); i++)
		if (str_eq(name, str_from(ungrouped[i])))
			return true;
	return false;
}

static int64_t level_of(struct str name)
{
	if (str_eq(name, STR("ProcessBatch")))
		return 2;
	return str_eq(name, STR("TraceContext")) || str_eq(name, STR("BatchingSessionRun")) ? 1 : 0;
}

static void read_stats(const struct xplane *plane, struct pb message, struct xroot *root)
{
	struct xvalue value;
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.tag != PB_TAG(4, PB_BYTES) || !xvalue_read(pb_message(&f), &value))
			continue;
		switch (xvalue_stat(plane, &value)) {
		case XSTAT_ID:
			root->id = (uint64_t)xvalue_int(&value);
			root->has_id = true;
			break;
		case XSTAT_ITER_NUM:
			root->number = xvalue_int(&value);
			break;
		case XSTAT_ROOT:
			root->level = xvalue_int(&value);
			break;
		default:
			break;
		}
	}
}

ow_status xspace_take_root(struct xspace *x, const struct xplane *plane, struct str name,
			   struct pb message, uint32_t event)
{
	const struct event_table *e = &x->b->m->event;
	struct xroot root = { .start = e->ts_ns[event],
			      .end = wrap_add(e->ts_ns[event], e->dur_ns[event]),
			      .level = level_of(name),
			      .number = INT64_MIN,
			      .captured = xspace_is_captured(name),
			      .track = e->track[event].v };
	void *roots = x->roots;

	x->ungrouped |= is_ungrouped(name);
	read_stats(plane, message, &root);
	if (root.has_id && root.number != INT64_MIN && str_eq(name, STR("ExecutorState::Process")))
		OW_TRY(xspace_take_iteration(x, root.id, root.number, root.start, root.end));
	if (!root.captured && root.level <= 0)
		return OW_OK;
	if (!is_implicit(name))
		root.name = xspace_text(x, name);
	if (!mem_grow(x->mem, &roots, &x->root_cap, x->root_count + 1, sizeof(*x->roots)))
		return xspace_no_memory(x);
	x->roots = roots;
	x->roots[x->root_count++] = root;
	return builder_status(x->b);
}

void xspace_release_roots(struct xspace *x)
{
	mem_free(x->mem, x->roots, x->root_cap * sizeof(*x->roots));
	x->roots = NULL;
	x->root_count = x->root_cap = 0;
	xspace_release_iterations(x);
}

/* ---- which of them are steps ---- */

static int by_id(const void *a, const void *b)
{
	const struct xroot *x = a, *y = b;

	if (x->has_id != y->has_id)
		return x->has_id ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return y->captured - x->captured;
}

/* Those of an id that a captured function has, and the captured functions themselves, are taken out. */
static void drop_captured(struct xspace *x)
{
	size_t kept = 0;
	bool captured = false;
	uint64_t id = 0;

	qsort(x->roots, x->root_count, sizeof(*x->roots), by_id);
	for (size_t i = 0; i < x->root_count; i++) {
		const struct xroot *root = &x->roots[i];

		captured = root->has_id && (root->captured || (captured && root->id == id));
		id = root->id;
		if (!captured && !root->captured)
			x->roots[kept++] = *root;
	}
	x->root_count = kept;
}

/* By track, and on each in the order in which they begin, the outer before the inner. */
static int by_place(const void *a, const void *b)
{
	const struct xroot *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->level < y->level) - (x->level > y->level);
}

/* Those of a level, in order, at the front; one inside of another is part of its group. The others are in no order then. */
static size_t take_outer(struct xroot *roots, size_t count, int64_t level)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct xroot *last = kept ? &roots[kept - 1] : NULL;
		struct xroot root = roots[i];

		if (root.level != level)
			continue;
		if (last && last->track == root.track && root.end <= last->end)
			continue;
		roots[i] = roots[kept];
		roots[kept++] = root;
	}
	return kept;
}

/* The next level below; 0 when there is none. */
static int64_t level_below(const struct xspace *x, int64_t level)
{
	int64_t below = 0;

	for (size_t i = 0; i < x->root_count; i++)
		if (x->roots[i].level < level)
			below = MAX(below, x->roots[i].level);
	return below;
}

/* Ids of calls that tf.data makes. */
static ow_status mark_loops(struct xspace *x)
{
	uint64_t *captured = ARENA_ARRAY(&x->shelf, uint64_t, x->root_count + 1);
	size_t count = 0;

	if (!captured)
		return xspace_no_memory(x);
	for (size_t i = 0; i < x->root_count; i++)
		if (x->roots[i].captured && x->roots[i].has_id)
			captured[count++] = x->roots[i].id;
	return xspace_steps_of_loops(x, captured, count);
}

/* Iterations, else the roots of the highest level of which there are several. */
ow_status xspace_steps_of_roots(struct xspace *x)
{
	int64_t level = INT64_MAX;
	size_t count = 0;
	int tried = 0;

	if (x->step_source != XSTEP_NONE || x->ungrouped)
		return OW_OK;
	OW_TRY(mark_loops(x));
	if (x->step_source != XSTEP_NONE || !x->root_count)
		return OW_OK;
	drop_captured(x);
	while (count < 2 && tried++ < LEVELS_MAX && (level = level_below(x, level)) > 0) {
		qsort(x->roots, x->root_count, sizeof(*x->roots), by_place);
		count = take_outer(x->roots, x->root_count, level);
	}
	for (size_t i = 0; count > 1 && i < count; i++)
		OW_TRY(xspace_mark(x, XSTEP_ROOT, x->roots[i].start, x->roots[i].end,
				   x->roots[i].number, x->roots[i].name));
	return OW_OK;
}
