/*
 * producer_nsys.c: interprets exports of Nsight Systems (import_nsys.c). Categories and names are those of PyTorch's
 * profiler where both record the same; steps are repeated ranges that the program itself marks through NVTX.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"
#include "import/nsys/nsys_marks.h"

#define LEAST_STEPS 3
/* limit of nesting levels in which steps are searched, if the outer ranges do not repeat */
#define LEVELS 4
#define PATTERN_MAX 128 /* bytes of a name that are compared */

/* Recognises the producer by the importer. */
static bool recognise_nsys(const struct interpret *x)
{
	(void)x;
	return false;
}

/* Gives operators the same op whatever their number and shapes; events keep the whole text. */
static ow_status nsys_ops(struct interpret *x)
{
	str_id *to = ARENA_ARRAY(&x->scratch, str_id, x->string_count);
	bool any = false;

	if (!to)
		return interpret_no_memory(x);
	for (uint32_t i = 1; i < x->string_count && builder_status(x->b) == OW_OK; i++) {
		enum category_class class;
		struct op_draft *draft;

		if (!x->first_of[i])
			continue;
		class = interpret_category(x, x->first_of[i]);
		if (class != CATEGORY_ANNOTATION && class != CATEGORY_OPERATOR)
			continue;
		to[i] = nsys_mark_name(x->b, model_str(x->m, (str_id){ i }));
		if (!to[i].v)
			continue;
		draft = interpret_draft(x, to[i]);
		if (!draft)
			break;
		draft->type = to[i];
		any = true;
	}
	OW_TRY(builder_status(x->b));
	if (any)
		OW_TRY(interpret_rename_all(x, to));
	return interpret_shorten_kernels(x);
}

/* Outermost ranges of one thread with the same name; digits are ignored if the name sounds like a step. */
struct pattern {
	uint64_t hash;
	int64_t first_ns, total_ns;
	uint32_t count;
	bool named;	   /* the name sounds like a step */
	bool seen_through; /* the ranges inside are examined instead */
};

struct patterns {
	struct interpret *x;
	uint64_t leader; /* hash of the pattern with which a step begins */
	bool any_seen_through;
	struct pattern *list; /* index 0 is unused */
	size_t count, cap;
	struct map map;
};

static bool sounds_like_step(struct str name)
{
	static const char *const words[] = { "step", "iter", "batch", "epoch" };

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_has_ignoring_case(name, words[i]))
			return true;
	return false;
}

/* Hash of a name. Digits count unless the name sounds like a step: Identity_0 to Identity_15 are layers of a
 * network, not 16 steps. */
static uint64_t hash_pattern(struct str name)
{
	char text[PATTERN_MAX];
	size_t len = 0;

	if (!sounds_like_step(name))
		return str_hash(name) | 1;
	for (size_t i = 0; i < name.len && len < sizeof(text); i++)
		if (name.ptr[i] < '0' || name.ptr[i] > '9')
			text[len++] = name.ptr[i];
	return str_hash(str_make(text, len)) | 1;
}

static struct pattern *find_pattern(struct patterns *p, uint64_t hash)
{
	for (struct map_iter it = map_find(&p->map, hash); it.value; it = map_next(&p->map, it))
		if (p->list[it.value].hash == hash)
			return &p->list[it.value];
	return NULL;
}

static ow_status add_pattern(struct patterns *p, uint32_t event)
{
	struct interpret *x = p->x;
	struct str name = model_str(x->m, interpret_name(x, event));
	uint64_t hash = hash_pattern(name);
	struct pattern *found = find_pattern(p, hash);

	if (!found) {
		if (!vec_reserve(x->mem, p->list, p->cap, p->count + 1))
			return interpret_no_memory(x);
		if (!map_add(&p->map, hash, (uint32_t)p->count))
			return interpret_no_memory(x);
		found = &p->list[p->count++];
		*found = (struct pattern){ .hash = hash,
					   .first_ns = x->m->event.ts_ns[event],
					   .named = sounds_like_step(name) };
	}
	found->count++;
	found->total_ns = wrap_add(found->total_ns, x->m->event.dur_ns[event]);
	return OW_OK;
}

/* Whether a range may be a step: not if a library marks its own calls, or PyProf an operator with a text like
 * {'mod': …}. */
static bool may_be_step(struct interpret *x, uint32_t event)
{
	str_id name = interpret_name(x, event);
	enum host_name class = (enum host_name)interpret_name_class(x, name).host;

	return interpret_category(x, event) == CATEGORY_ANNOTATION &&
	       interpret_is_slice(x, event) &&
	       !(COLUMN_GET(x->m->event.flags, event) & EVENT_UNFINISHED) &&
	       (class == HOST_PLAIN || class == HOST_INPUT || class == HOST_MARKER ||
		class == HOST_WRAPPER) &&
	       !str_starts(model_str(x->m, name), STR("{"));
}

static bool sees_through(struct patterns *p, uint32_t event)
{
	const struct pattern *found;

	if (!p->any_seen_through)
		return false;
	found = find_pattern(p, hash_pattern(model_str(p->x->m, interpret_name(p->x, event))));
	return found && found->seen_through;
}

/* Called for ranges that begin when the previous one is over. */
typedef ow_status (*range_fn)(struct patterns *p, uint32_t event);

static ow_status each_outer_range(struct patterns *p, const struct interpret_track *track,
				  range_fn take)
{
	struct interpret *x = p->x;
	int64_t end = INT64_MIN;

	for (uint32_t e = track->first; e < track->last; e++) {
		if (x->m->event.ts_ns[e] < end || !may_be_step(x, e) || sees_through(p, e))
			continue;
		end = interpret_end(x, e);
		OW_TRY(take(p, e));
	}
	return OW_OK;
}

/* The pattern that begins steps: one that sounds like a step, else the most frequent; among equally frequent ones
 * the first. */
static const struct pattern *leading_pattern(const struct patterns *p)
{
	const struct pattern *best = NULL;

	for (size_t i = 1; i < p->count; i++) {
		const struct pattern *one = &p->list[i];

		if (one->count < LEAST_STEPS || one->seen_through)
			continue;
		if (!best || (one->named && !best->named) ||
		    (one->named == best->named && one->count > best->count))
			best = one;
	}
	for (size_t i = 1; best && i < p->count; i++)
		if (p->list[i].count == best->count && p->list[i].first_ns < best->first_ns)
			best = &p->list[i];
	return best;
}

/* Adds a step: from a range with the leading name to the last range before the next one with it. Programs that do
 * not mark steps mark the parts of them, repeatedly. */
static ow_status add_step(struct patterns *p, uint32_t event)
{
	struct interpret *x = p->x;
	str_id name = interpret_name(x, event);
	int64_t number = trailing_number(model_str(x->m, name));

	if (hash_pattern(model_str(x->m, name)) != p->leader) {
		if (x->markers.count)
			x->markers.list[x->markers.count - 1].end = interpret_end(x, event);
		return OW_OK;
	}
	return interpret_add_marker(
		x, &(struct interpret_marker){ .start = x->m->event.ts_ns[event],
					       .end = interpret_end(x, event),
					       .number = number >= 0 ? number : INT64_MIN,
					       .name = name });
}

/* Finds the steps of a track. A range around the whole training is not a step; the ranges inside it may be. */
static ow_status find_steps(struct patterns *p, const struct interpret_track *track)
{
	for (int level = 0; level < LEVELS; level++) {
		size_t before = p->count;
		const struct pattern *leader;

		OW_TRY(each_outer_range(p, track, add_pattern));
		leader = leading_pattern(p);
		if (leader) {
			p->leader = leader->hash;
			return each_outer_range(p, track, add_step);
		}
		if (p->count == before)
			return OW_OK;
		for (size_t i = before; i < p->count; i++)
			p->list[i].seen_through = true;
		p->any_seen_through = true;
	}
	return OW_OK;
}

static ow_status steps_of_thread(struct interpret *x, const struct interpret_track *track)
{
	struct patterns p = { .x = x, .count = 1 };
	ow_status status;

	map_init(&p.map, x->mem);
	status = find_steps(&p, track);
	map_release(&p.map);
	mem_free(x->mem, p.list, p.cap * sizeof(*p.list));
	return status;
}

/* Whether ranges are steps: if they cover little of the time from the first to the last, they are only parts of
 * steps. */
static bool cover_steps(const struct interpret_markers *m)
{
	int64_t sum = 0;

	for (size_t i = 0; i < m->count; i++)
		sum = wrap_add(sum, m->list[i].end - m->list[i].start);
	return m->count && sum >= (m->list[m->count - 1].end - m->list[0].start) / 2;
}

/* Marks the steps of the first thread that has any. Threads are sorted, the main thread of a process first. */
static ow_status nsys_steps(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track && !x->markers.count; t++)
		if (interpret_on_host(x, t) &&
		    interpret_track(x, t)->categories & 1u << CATEGORY_ANNOTATION)
			OW_TRY(steps_of_thread(x, interpret_track(x, t)));
	if (x->markers.count && !cover_steps(&x->markers))
		x->markers.count = 0;
	return OW_OK;
}

static const struct {
	const char *beginning;
	enum event_phase phase;
} calls[] = {
	{ "poll", PHASE_SYNCHRONISATION },
	{ "ppoll", PHASE_SYNCHRONISATION },
	{ "epoll_", PHASE_SYNCHRONISATION },
	{ "select", PHASE_SYNCHRONISATION },
	{ "pselect", PHASE_SYNCHRONISATION },
	{ "sem_wait", PHASE_SYNCHRONISATION },
	{ "sem_timedwait", PHASE_SYNCHRONISATION },
	{ "sem_clockwait", PHASE_SYNCHRONISATION },
	{ "pthread_cond_", PHASE_SYNCHRONISATION },
	{ "pthread_mutex_lock", PHASE_SYNCHRONISATION },
	{ "pthread_join", PHASE_SYNCHRONISATION },
	{ "pthread_rwlock_", PHASE_SYNCHRONISATION },
	{ "pthread_barrier_", PHASE_SYNCHRONISATION },
	{ "futex", PHASE_SYNCHRONISATION },
	{ "wait", PHASE_SYNCHRONISATION },
	{ "nanosleep", PHASE_SYNCHRONISATION },
	{ "usleep", PHASE_SYNCHRONISATION },
	{ "sleep", PHASE_SYNCHRONISATION },
	{ "read", PHASE_INPUT },
	{ "pread", PHASE_INPUT },
	{ "fread", PHASE_INPUT },
	{ "open", PHASE_INPUT },
	{ "fopen", PHASE_INPUT },
	{ "fgets", PHASE_INPUT },
	{ "getline", PHASE_INPUT },
};

/* Whether a thread does work: threads that always wait for others say nothing about a step. */
static bool does_work(const struct interpret *x, uint32_t track)
{
	const uint32_t working = 1u << CATEGORY_RUNTIME | 1u << CATEGORY_ANNOTATION;

	return interpret_track(x, track)->categories & working ||
	       x->m->track.tid[track] == x->m->track.pid[track];
}

static enum event_phase nsys_host_phase(const struct interpret *x, uint32_t event)
{
	struct str category = interpret_text(x, COLUMN_GET(x->m->event.category, event));
	struct str name = interpret_text(x, interpret_name(x, event));

	if (str_eq(category, STR("mpi")) || str_eq(category, STR("nvtx,MPI")))
		return str_starts(name, STR("MPI_Init")) ? PHASE_INITIALISATION
							 : PHASE_COMMUNICATION;
	if (!str_eq(category, STR("osrt")))
		return PHASE_IDLE;
	if (!does_work(x, x->m->event.track[event].v))
		return PHASE_UNKNOWN;
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
		if (str_starts(name, str_from(calls[i].beginning)))
			return calls[i].phase;
	return PHASE_HOST;
}

const struct producer producer_nsys = {
	.name = "nsys",
	.title = "Nsight Systems",
	.recognise = recognise_nsys,
	.ops = nsys_ops,
	.links = interpret_link_correlations,
	.steps = nsys_steps,
	.host_phase = nsys_host_phase,
};
