/*
 * live_programs.c: finds the processes of a recording that are separate programs with repeated calls, if no process
 * marks steps: for example two numpy jobs that a shell starts under one `record`. live_ranks.c then gives each its own
 * run, as for trainings, so that each has its own steps. Processes that such a program started belong to it, and
 * processes of Python's multiprocessing belong to the process that started them.
 */
#include "import/own/own_int.h"

#include "base/vec.h"
#include "import/interpret/loop.h"

/* samples on a processor that a program needs to count as one that computes */
#define LEAST_SAMPLES 64u

/* The same rules as for calls in interpret_loops.c. */
static const struct loop_rules rules = { .least = 8,
					 .least_alone = 16,
					 .shortest_ns = 1000000,
					 .spread = 0.7,
					 .spread_alone = 0.25,
					 .covered = 1.0 / 3 };

struct calls {
	struct loop_call *list;
	size_t count, cap;
	struct map keys;
	uint32_t key_count;
};

/* Hash of a call; it includes the size, because reads of a header and of data differ in it. */
static uint64_t hash_of(const struct live_slice *s)
{
	unsigned size = s->bytes > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)s->bytes) : 0;

	return map_hash_u64(s->name, size + 1u);
}

/* Adds a call to the sequence; false if memory runs out. */
static bool add_call(struct live_data *d, struct calls *c, const struct live_slice *s)
{
	uint64_t hash = hash_of(s);
	struct map_iter it = map_find(&c->keys, hash);
	uint32_t key = it.value ? it.value - 1 : c->key_count;

	if (!it.value && !map_add(&c->keys, hash, ++c->key_count))
		return false;
	return vec_push(d->mem, c->list, c->count, c->cap,
			(struct loop_call){ s->ts_ns, s->ts_ns + s->dur_ns, key });
}

/* Whether a thread's outermost calls repeat, apart from opening and writing files: logs and checkpoints come
 * irregularly. The slices of a thread are adjacent and sorted by time. */
static ow_status repeats_calls(struct live_data *d, size_t first, size_t end, bool *found)
{
	struct calls c = { 0 };
	struct arena arena;
	struct loop loop = { 0 };
	int64_t until = INT64_MIN;
	bool good = true;

	map_init(&c.keys, d->mem);
	arena_init(&arena, d->mem);
	for (size_t i = first; i < end && good; i++) {
		const struct live_slice *s = &d->slices[i];

		if (s->ts_ns < MAX(until, (int64_t)0) || s->ts_ns > INT64_MAX / 2 || s->calls > 1 ||
		    s->category == RING_FILE_OPEN || s->category == RING_FILE_WRITE)
			continue;
		until = s->ts_ns + s->dur_ns;
		good = add_call(d, &c, s);
	}
	if (good && c.count)
		good = loop_find(&arena, &(struct loop_calls){ c.list, c.count, c.key_count },
				 &rules, &loop);
	*found = loop.steps > 0;
	map_release(&c.keys);
	vec_free(d->mem, c.list, c.cap);
	arena_release(&arena);
	return good ? OW_OK : import_no_memory(d->ctx);
}

/* Whether the process runs a separate program, that is not part of the program that started it. */
static bool is_program(const struct live_data *d, const struct live_job *job)
{
	return job->known && job->rank < 0 && !(job->row.flags & LIVE_FORKED) &&
	       str_find(model_str(d->b->m, job->command), STR("multiprocessing.")) == STR_NONE;
}

static ow_status mark_calls(struct live_data *d)
{
	size_t end;

	for (size_t first = 0; first < d->slice_count; first = end) {
		const struct live_lane *lane = &d->lanes[d->slices[first].lane];
		struct live_job *job = &d->jobs[lane->job];
		bool found = false;

		for (end = first;
		     end < d->slice_count && d->slices[end].lane == d->slices[first].lane;)
			end++;
		if (lane->kind != LIVE_LANE_THREAD || job->repeats || !is_program(d, job))
			continue;
		OW_TRY(repeats_calls(d, first, end, &found));
		job->repeats = found;
	}
	return OW_OK;
}

static ow_status mark_samples(struct live_data *d)
{
	uint32_t *counts;

	if (!d->sample_count)
		return OW_OK;
	counts = mem_zalloc(d->mem, d->job_count * sizeof(*counts));
	if (!counts)
		return import_no_memory(d->ctx);
	for (size_t i = 0; i < d->sample_count; i++) {
		uint32_t job = d->lanes[d->samples[i].lane].job;

		if (d->samples[i].row.cpu_ns > 0 && ++counts[job] >= LEAST_SAMPLES)
			d->jobs[job].repeats |= is_program(d, &d->jobs[job]);
	}
	mem_free(d->mem, counts, d->job_count * sizeof(*counts));
	return OW_OK;
}

/* The parent of a process; processes are sorted by their begin. */
static struct live_job *parent_of(struct live_data *d, const struct live_job *job)
{
	for (size_t i = (size_t)(job - d->jobs); i-- > 0;)
		if (d->jobs[i].known && d->jobs[i].row.pid == job->row.parent)
			return &d->jobs[i];
	return NULL;
}

ow_status live_find_programs(struct live_data *d)
{
	OW_TRY(mark_calls(d));
	OW_TRY(mark_samples(d));
	/* from the last to the first: children are visited before their parents */
	for (size_t i = d->job_count; i-- > 0;)
		for (const struct live_job *p = &d->jobs[i];
		     d->jobs[i].repeats && (p = parent_of(d, p)) != NULL;)
			if (p->repeats)
				d->jobs[i].repeats = false;
	return OW_OK;
}
