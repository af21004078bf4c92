/*
 * jobs.c: which of the traces that were opened together belong to one job (source.run). Called by import_finish. Traces belong to one job only if
 * their content says so: different ranks, or no ranks, whose times overlap; consecutive windows of one process; step files of one graph on the
 * same kind of device within a day.
 * Names do not decide: the rank in the name of a file counts only where its content has none and its collectives are those of another rank's
 * file. Traces that cannot be of one job get a run each and a note, so that nothing pools them. Sources without timed slices
 * (graphs, checkpoints, samples) and recordings, which know their job, stay as they are.
 */
#include "import/jobs.h"

#include "base/error.h"
#include "import/interpret/interpret.h"
#include "model/event_filter.h"

#include <stdlib.h>

#define WALL_CLOCK_NS                                                                              \
	((int64_t)1000000000 * 1000000000)	 /* the year 2001: later times are of a calendar */
#define NEAR_NS ((int64_t)3600 * 1000000000)	 /* between two windows of one process */
#define DAY_NS ((int64_t)24 * 3600 * 1000000000) /* between two step files of one graph */
#define NOTES_MAX 3

/* A source, as far as it decides which sources belong to one job. */
struct trace {
	uint32_t source;
	int64_t first_ns, last_ns, pid, world;
	uint64_t events, hash;	    /* hash of times: equal in copies */
	uint64_t calls, calls_hash; /* number of collectives, and hash of their names and counts */
	int32_t name_rank;	    /* rank in the name of the file; -1 = none */
	bool of_steps;		    /* holds single steps of a graph, not a window of a process */
	bool has_device;	    /* the trace has ops on an accelerator */
};

struct jobs {
	struct builder *b;
	struct model *m;
	struct arena scratch;
	struct trace *list;
	uint32_t count;
	uint32_t *job; /* per trace: the first trace of its job */
	uint64_t *
		*ops; /* per trace that begins a job of step files: a bit per op; NULL = not made */
};

static int64_t world_size(const struct model *m, uint32_t source)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.source[i].v == source && m->fact.kind[i] == FACT_INT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("world_size")))
			return m->fact.number[i];
	return -1;
}

static bool is_step_file(const struct model *m, uint32_t source)
{
	uint32_t step = m->source.step[source].v;

	if (interpret_writes_steps(model_str(m, m->source.producer[source])))
		return true;
	if (!step || COLUMN_GET(m->step.whole, step))
		return false;
	for (uint32_t i = 1; i < m->window.count; i++)
		if (m->window.source[i].v == source)
			return false; /* a marker says it, the file may hold more */
	return true;
}

static void add_event(struct trace *t, const struct model *m, uint32_t event)
{
	uint32_t track = m->event.track[event].v;

	t->has_device |= m->device.kind[m->track.device[track].v] >= DEVICE_GPU;
	t->first_ns = MIN(t->first_ns, m->event.ts_ns[event]);
	t->last_ns = MAX(t->last_ns, event_end(m, event));
	t->hash += ((uint64_t)m->event.ts_ns[event] * 31 + (uint64_t)m->event.dur_ns[event]) *
		   0x9e3779b97f4a7c15u;
	if (COLUMN_GET(m->event.phase, event) == PHASE_COMMUNICATION) {
		t->calls++;
		t->calls_hash += ((uint64_t)m->event.op[event].v + 1) * 0x9e3779b97f4a7c15u;
	}
	if (!t->events++ || t->pid == INT64_MIN)
		t->pid = track_work(m, m->event.track[event]) == WORK_HOST ? m->track.pid[track]
									   : INT64_MIN;
}

static bool read_traces(struct jobs *j)
{
	const struct model *m = j->m;
	struct trace *all = ARENA_ARRAY(&j->scratch, struct trace, m->source.count);
	uint8_t *work = ARENA_ARRAY(&j->scratch, uint8_t, m->track.count);

	if (!all || !work)
		return false;
	for (uint32_t i = 0; i < m->source.count; i++)
		all[i] = (struct trace){
			.source = i, .first_ns = INT64_MAX, .last_ns = INT64_MIN, .pid = INT64_MIN
		};
	for (uint32_t i = 1; i < m->track.count; i++)
		work[i] = track_work(m, (track_id){ i }) != WORK_NONE;
	for (uint32_t i = 1; i < m->event.count; i++)
		if (work[m->event.track[i].v] && event_is_slice(m, i))
			add_event(&all[m->track.source[m->event.track[i].v].v], m, i);
	j->list = all;
	for (uint32_t i = 1; i < m->source.count; i++) {
		if (!all[i].events || str_eq(model_str(m, m->source.format[i]), STR("live")))
			continue;
		all[i].world = world_size(m, i);
		all[i].of_steps = is_step_file(m, i);
		if (interpret_writes_steps(model_str(m, m->source.producer[i])))
			all[i].pid = INT64_MIN;
		all[i].name_rank = m->source.rank[i] < 0
					   ? interpret_file_rank(model_str(m, m->source.path[i]))
					   : -1;
		j->list[j->count++] = all[i];
	}
	return true;
}

static int by_calls(const void *x, const void *y)
{
	const struct trace *const *a = x, *const *b = y;

	if ((*a)->calls_hash != (*b)->calls_hash)
		return (*a)->calls_hash < (*b)->calls_hash ? -1 : 1;
	if ((*a)->calls != (*b)->calls)
		return (*a)->calls < (*b)->calls ? -1 : 1;
	return ((*a)->name_rank > (*b)->name_rank) - ((*a)->name_rank < (*b)->name_rank);
}

static bool has_same_calls(const struct trace *a, const struct trace *b)
{
	return a->calls_hash == b->calls_hash && a->calls == b->calls;
}

/* Traces [first, end) have the same collectives: their names count if all of them differ, and none is a copy. */
static void take_names(struct jobs *j, struct trace **list, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
		if (list[i]->name_rank == list[i - 1]->name_rank ||
		    list[i]->hash == list[first]->hash)
			return;
	for (size_t i = first; i < end && end - first > 1; i++)
		j->m->source.rank[list[i]->source] = list[i]->name_rank;
}

static bool confirm_ranks(struct jobs *j)
{
	struct trace **list = ARENA_ARRAY(&j->scratch, struct trace *, (size_t)j->count + 1);
	size_t count = 0;

	if (!list)
		return false;
	for (uint32_t i = 0; i < j->count; i++)
		if (j->list[i].name_rank >= 0 && j->list[i].calls)
			list[count++] = &j->list[i];
	if (count)
		qsort(list, count, sizeof(*list), by_calls);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && has_same_calls(list[first], list[end]); end++)
			;
		take_names(j, list, first, end);
	}
	return true;
}

static bool overlap(const struct trace *a, const struct trace *b)
{
	return a->first_ns < b->last_ns && b->first_ns < a->last_ns;
}

static bool on_wall_clock(const struct trace *a, const struct trace *b)
{
	return a->first_ns > WALL_CLOCK_NS && b->first_ns > WALL_CLOCK_NS;
}

/* The time between two traces; 0 where they overlap, or where a clock without a date does not say. */
static int64_t distance(const struct trace *a, const struct trace *b)
{
	if (overlap(a, b) || !on_wall_clock(a, b))
		return 0;
	return b->first_ns >= a->last_ns ? b->first_ns - a->last_ns : a->first_ns - b->last_ns;
}

/* A later window of the same process. */
static bool is_continued(const struct trace *a, const struct trace *b)
{
	return a->pid == b->pid && a->pid != INT64_MIN && !overlap(a, b) &&
	       (b->first_ns >= a->last_ns ? b->first_ns - a->last_ns < NEAR_NS
					  : a->first_ns - b->last_ns < NEAR_NS);
}

static bool is_copy(const struct jobs *j, const struct trace *a, const struct trace *b)
{
	return a->events == b->events && a->hash == b->hash && a->first_ns == b->first_ns &&
	       a->last_ns == b->last_ns &&
	       j->m->source.rank[a->source] == j->m->source.rank[b->source];
}

/* The ops of a source, a bit each. */
static uint64_t *ops_of(struct jobs *j, uint32_t trace)
{
	const struct model *m = j->m;
	uint64_t *bits = j->ops[trace];

	if (bits)
		return bits;
	bits = ARENA_ARRAY(&j->scratch, uint64_t, m->op.count / 64 + 1);
	for (uint32_t i = 1; bits && i < m->event.count; i++)
		if (m->track.source[m->event.track[i].v].v == j->list[trace].source)
			bits[m->event.op[i].v / 64] |= (uint64_t)1 << m->event.op[i].v % 64;
	j->ops[trace] = bits;
	return bits;
}

/* Half of the ops of the smaller are in the other, too. */
static bool is_same_graph(struct jobs *j, uint32_t a, uint32_t b)
{
	const uint64_t *x = ops_of(j, a), *y = ops_of(j, b);
	uint32_t only_x = 0, only_y = 0, both = 0;

	if (!x || !y)
		return true;
	for (uint32_t i = 0; i <= j->m->op.count / 64; i++) {
		both += (uint32_t)__builtin_popcountll(x[i] & y[i]);
		only_x += (uint32_t)__builtin_popcountll(x[i] & ~y[i]);
		only_y += (uint32_t)__builtin_popcountll(y[i] & ~x[i]);
	}
	return both >= MIN(only_x, only_y);
}

static bool is_same_job(struct jobs *j, uint32_t first, uint32_t second)
{
	const struct trace *a = &j->list[first], *b = &j->list[second];
	int32_t rank_a = j->m->source.rank[a->source], rank_b = j->m->source.rank[b->source];

	if (is_copy(j, a, b) || (a->world > 0 && b->world > 0 && a->world != b->world))
		return false;
	if (rank_a >= 0 && rank_b >= 0 && rank_a != rank_b)
		return overlap(a, b) || !on_wall_clock(a, b);
	if (is_continued(a, b))
		return true;
	if (rank_a >= 0 || rank_b >= 0)
		return false;
	if (a->of_steps && b->of_steps)
		return a->has_device == b->has_device && distance(a, b) < DAY_NS &&
		       is_same_graph(j, first, second);
	return on_wall_clock(a, b) && overlap(a, b);
}

static void note_copy(const struct jobs *j, const struct trace *a, const struct trace *b)
{
	source_id kept = j->b->source;

	j->b->source = (source_id){ b->source };
	builder_note(j->b, NOTE_INFO, OW_NO_OFFSET,
		     "has the same events as %.*s: it is a copy, and the two are not summed",
		     STR_ARG(model_str(j->m, j->m->source.path[a->source])));
	j->b->source = kept;
}

static uint32_t find_job(struct jobs *j, uint32_t trace, uint32_t *notes)
{
	for (uint32_t k = 0; k < trace; k++) {
		if (is_copy(j, &j->list[k], &j->list[trace])) {
			if (++*notes <= NOTES_MAX)
				note_copy(j, &j->list[k], &j->list[trace]);
			return trace;
		}
		if (is_same_job(j, k, trace))
			return j->job[k];
	}
	return trace;
}

static void set_runs(struct jobs *j)
{
	struct model *m = j->m;
	uint32_t highest = 0, first_run = 1;
	uint32_t *run = ARENA_ARRAY(&j->scratch, uint32_t, (size_t)j->count + 1);

	if (!run)
		return;
	for (uint32_t i = 1; i < m->source.count; i++)
		if (str_eq(model_str(m, m->source.format[i]), STR("live")))
			highest = MAX(highest, m->source.run[i]);
	first_run = highest + 1;
	for (uint32_t i = 0, next = first_run; i < j->count; i++) {
		run[i] = j->job[i] == i ? next++ : run[j->job[i]];
		m->source.run[j->list[i].source] = run[i];
	}
}

ow_status import_find_jobs(struct builder *b, struct ow_error *err)
{
	struct jobs j = { .b = b, .m = b->m };
	uint32_t notes = 0;
	bool ok;

	if (b->m->source.count <= 2 || !b->m->event.count)
		return OW_OK;
	arena_init(&j.scratch, b->m->mem);
	ok = read_traces(&j);
	j.job = ARENA_ARRAY(&j.scratch, uint32_t, (size_t)j.count + 1);
	j.ops = ARENA_ARRAY(&j.scratch, uint64_t *, (size_t)j.count + 1);
	ok = ok && j.job && j.ops && confirm_ranks(&j);
	for (uint32_t i = 0; ok && i < j.count; i++)
		j.job[i] = find_job(&j, i, &notes);
	if (ok)
		set_runs(&j);
	arena_release(&j.scratch);
	return ok ? b->status : error_no_memory(err);
}
