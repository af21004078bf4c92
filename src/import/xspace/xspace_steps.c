/*
 * xspace_steps.c: finds the steps of an XSpace, for the interpretation: it uses the best kind of marker that the file
 * has. Newer profilers leave grouping to the viewer: then the roots are steps, as in XProf (by level first, then time),
 * or the iterations of a loop inside a TensorFlow graph. It also adds the links between events: producers and their
 * consumers.
 */
#include "import/xspace/xspace_int.h"

#include "base/vec.h"

/* The time during which the executor ran for one iteration of a call. */
struct xiteration {
	uint64_t id;
	int64_t number, start, end;
};

/* Adds a run of the executor for an iteration of a call. Iterations become steps, except for those of calls that
 * tf.data makes; files without a loop have none. */
static ow_status xspace_take_iteration(struct xspace *x, uint64_t id, int64_t number, int64_t start,
				       int64_t end)
{
	uint64_t hash = map_hash_u64(id, (uint64_t)number);

	for (struct map_iter it = map_find(&x->iteration_map, hash); it.value;
	     it = map_next(&x->iteration_map, it)) {
		struct xiteration *known = &x->iterations[it.value - 1];

		if (known->id != id || known->number != number)
			continue;
		known->start = MIN(known->start, start);
		known->end = MAX(known->end, end);
		return OW_OK;
	}
	if (x->iteration_count >= UINT32_MAX - 1 ||
	    !vec_push(x->mem, x->iterations, x->iteration_count, x->iteration_cap,
		      (struct xiteration){ id, number, start, end }))
		return xspace_no_memory(x);
	return map_add(&x->iteration_map, hash, (uint32_t)x->iteration_count) ? OW_OK
									      : xspace_no_memory(x);
}

static void xspace_release_iterations(struct xspace *x)
{
	mem_free(x->mem, x->iterations, x->iteration_cap * sizeof(*x->iterations));
	map_release(&x->iteration_map);
	x->iterations = NULL;
	x->iteration_count = x->iteration_cap = 0;
}

static int by_call(const void *a, const void *b)
{
	const struct xiteration *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int by_start(const void *a, const void *b)
{
	const struct xiteration *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Keeps the iterations of loops that tf.data did not capture; returns the number of calls they belong to. */
static size_t keep_loops(struct xspace *x, const uint64_t *captured, size_t captured_count)
{
	struct xiteration *all = x->iterations;
	size_t kept = 0, calls = 0, last;

	qsort(all, x->iteration_count, sizeof(*all), by_call);
	for (size_t first = 0; first < x->iteration_count; first = last) {
		bool loop;

		for (last = first; last < x->iteration_count && all[last].id == all[first].id;)
			last++;
		loop = last - first > 1 || all[first].number != 0;
		if (!loop ||
		    bsearch(&all[first].id, captured, captured_count, sizeof(*captured), by_value))
			continue;
		memmove(all + kept, all + first, (last - first) * sizeof(*all));
		kept += last - first;
		calls++;
	}
	x->iteration_count = kept;
	return calls;
}

/* Makes steps from iterations. A step begins at the latest where the one before it ends, because iterations may
 * overlap. */
static ow_status xspace_steps_of_loops(struct xspace *x, uint64_t *captured, size_t captured_count)
{
	size_t calls;

	if (x->iteration_count < 2)
		return OW_OK;
	qsort(captured, captured_count, sizeof(*captured), by_value);
	calls = keep_loops(x, captured, captured_count);
	if (x->iteration_count < 2)
		return OW_OK;
	qsort(x->iterations, x->iteration_count, sizeof(*x->iterations), by_start);
	for (size_t i = 0; i < x->iteration_count; i++) {
		const struct xiteration *it = &x->iterations[i];
		int64_t end = it->end;

		if (i + 1 < x->iteration_count)
			end = MIN(end, it[1].start);
		OW_TRY(xspace_mark(x, XSTEP_ROOT, it->start, MAX(end, it->start),
				   calls == 1 ? it->number : INT64_MIN, (str_id){ 0 }));
	}
	return OW_OK;
}

#define LEVELS_MAX 8 /* limit of levels; profilers use two or three */

/* A possible root of a step; runs of a function inside tf.data are not steps. */
struct xroot {
	int64_t start, end, level, number; /* number INT64_MIN: numbered in order */
	uint64_t id;
	bool has_id, captured;
	uint32_t track;
	str_id name;
};

/* Names of roots that only enclose work that the user started; such roots have no name of their own. */
static const char *const implicit[] = { "FunctionRun", "SessionRun", "RunGraph",
					"ExecutorState::Process" };

static bool is_implicit(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(implicit); i++)
		if (str_eq(name, str_from(implicit[i])))
			return true;
	return false;
}

/* Names of loop events in a newer runtime, none of which has the iteration: XProf does not group such files. */
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

	x->ungrouped |= is_ungrouped(name);
	read_stats(plane, message, &root);
	if (root.has_id && root.number != INT64_MIN && str_eq(name, STR("ExecutorState::Process")))
		OW_TRY(xspace_take_iteration(x, root.id, root.number, root.start, root.end));
	if (!root.captured && root.level <= 0)
		return OW_OK;
	if (!is_implicit(name))
		root.name = xspace_text(x, name);
	if (!vec_push(x->mem, x->roots, x->root_count, x->root_cap, root))
		return xspace_no_memory(x);
	return builder_status(x->b);
}

void xspace_release_roots(struct xspace *x)
{
	mem_free(x->mem, x->roots, x->root_cap * sizeof(*x->roots));
	x->roots = NULL;
	x->root_count = x->root_cap = 0;
	xspace_release_iterations(x);
}

static int by_root_id(const void *a, const void *b)
{
	const struct xroot *x = a, *y = b;

	if (x->has_id != y->has_id)
		return x->has_id ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return y->captured - x->captured;
}

/* Removes captured functions, and roots with an id that a captured function has. */
static void drop_captured(struct xspace *x)
{
	size_t kept = 0;
	bool captured = false;
	uint64_t id = 0;

	qsort(x->roots, x->root_count, sizeof(*x->roots), by_root_id);
	for (size_t i = 0; i < x->root_count; i++) {
		const struct xroot *root = &x->roots[i];

		captured = root->has_id && (root->captured || (captured && root->id == id));
		id = root->id;
		if (!captured && !root->captured)
			x->roots[kept++] = *root;
	}
	x->root_count = kept;
}

/* Sorts by track, then by begin, the outer before the inner. */
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

/* Moves the roots of a level to the front, in order; a root inside another one belongs to its group. The order of
 * the others is undefined afterwards. */
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

/* The next lower level; 0 when there is none. */
static int64_t level_below(const struct xspace *x, int64_t level)
{
	int64_t below = 0;

	for (size_t i = 0; i < x->root_count; i++)
		if (x->roots[i].level < level)
			below = MAX(below, x->roots[i].level);
	return below;
}

/* Collects the ids of calls that tf.data makes. */
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

/* Chooses the steps: iterations, else the roots of the highest level that has several. */
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

#define CROWD 64 /* if this many producers and consumers share an id, they are not linked */

static struct recorded_step *step_of_group(struct xspace *x, int64_t number)
{
	uint64_t hash = map_hash_u64((uint64_t)number, 7);

	for (struct map_iter it = map_find(&x->groups, hash); it.value;
	     it = map_next(&x->groups, it))
		if (x->steps[it.value - 1].number == number)
			return &x->steps[it.value - 1];
	return NULL;
}

ow_status xspace_mark(struct xspace *x, enum xstep_source source, int64_t start, int64_t end,
		      int64_t number, str_id name)
{
	struct recorded_step *known;

	if (source < x->step_source)
		return OW_OK;
	if (source > x->step_source) { /* a better kind of marker replaces the earlier markers */
		x->step_count = 0;
		map_release(&x->groups);
		map_init(&x->groups, x->mem);
	}
	x->step_source = source;
	known = source == XSTEP_GROUP ? step_of_group(x, number) : NULL;
	if (known) {
		known->start_ns = MIN(known->start_ns, start);
		known->end_ns = MAX(known->end_ns, end);
		return OW_OK;
	}
	if (!vec_push(x->mem, x->steps, x->step_count, x->step_cap,
		      (struct recorded_step){ start, end, number, name }))
		return xspace_no_memory(x);
	if (source == XSTEP_GROUP &&
	    !map_add(&x->groups, map_hash_u64((uint64_t)number, 7), (uint32_t)x->step_count))
		return xspace_no_memory(x);
	return OW_OK;
}

/* Finishes the steps. A single group contains everything, so it is not a step. */
void xspace_finish_steps(struct xspace *x)
{
	if (x->step_source == XSTEP_GROUP && x->step_count < 2)
		x->step_count = 0;
}

ow_status xspace_add_end(struct xspace *x, int64_t type, uint64_t id, uint32_t event, bool consumer)
{
	if (!vec_push(x->mem, x->ends, x->end_count, x->end_cap,
		      (struct xend){ id, type, event, consumer }))
		return xspace_no_memory(x);
	x->producer_count += !consumer;
	return OW_OK;
}

static int by_id(const void *a, const void *b)
{
	const struct xend *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->consumer != y->consumer)
		return x->consumer ? 1 : -1;
	return (x->event > y->event) - (x->event < y->event);
}

/* The kind of a link: launches on a GPU and on a TPU are known, anything else is a plain arrow. */
static uint8_t link_kind_of(int64_t type)
{
	return type == 9 || type == 12 ? LINK_LAUNCH : LINK_FLOW;
}

static ow_status link_group(struct xspace *x, size_t first, size_t middle, size_t last)
{
	if (middle - first >= CROWD && last - middle >= CROWD)
		return OW_OK;
	for (size_t p = first; p < middle; p++)
		for (size_t c = middle; c < last; c++)
			builder_add_link(
				x->b, &(struct link_row){ .src = { x->ends[p].event },
							  .dst = { x->ends[c].event },
							  .kind = link_kind_of(x->ends[p].type) });
	return builder_status(x->b);
}

/* Whether the ends are sorted already: events of one line mostly wait for the same producer, one after the other. */
static bool in_order(const struct xspace *x)
{
	for (size_t i = 1; i < x->end_count; i++)
		if (by_id(&x->ends[i - 1], &x->ends[i]) > 0)
			return false;
	return true;
}

ow_status xspace_link_ends(struct xspace *x)
{
	size_t first, middle, last;

	if (!x->producer_count || x->producer_count == x->end_count)
		return OW_OK;
	if (!in_order(x))
		qsort(x->ends, x->end_count, sizeof(*x->ends), by_id);
	for (first = 0; first < x->end_count; first = last) {
		const struct xend *e = &x->ends[first];

		for (middle = first; middle < x->end_count && !x->ends[middle].consumer &&
				     x->ends[middle].id == e->id && x->ends[middle].type == e->type;
		     middle++)
			;
		for (last = middle; last < x->end_count && x->ends[last].id == e->id &&
				    x->ends[last].type == e->type;
		     last++)
			;
		OW_TRY(link_group(x, first, middle, last));
	}
	return OW_OK;
}
