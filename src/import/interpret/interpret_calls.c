/*
 * interpret_calls.c: corrects the phases of calls of a device's library whose names do not show what they do. A copy
 * that returns only when it is done, long after the device needed for it, waits: it is synchronisation. A call that
 * takes a hundred times as long as similar calls, once, initialises a context, a library, or a module that is loaded
 * when its first kernel starts: it is initialisation, as is a long allocation that is the first call of all.
 * interpret_phases.c calls this when phases and launch links are known; only the phases launch and allocation change.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"
#include "import/interpret/call_lengths.h"

/* A copy waits if its call lasts longer than the copy by this much and by this factor. */
#define WAIT_NS 50000
#define WAIT_FACTOR 2
#define GROUP_FEW 4 /* fewer calls of a name are compared with all calls */
/* The first call of a process makes the context: an allocation then lasts this long, and this many times as long as others of its name. */
#define FIRST_CALL_NS 20000000
#define FIRST_CALL_FACTOR 10

static bool is_call(const struct interpret *x, uint32_t event)
{
	enum category_class category = interpret_category(x, event);

	return category == CATEGORY_RUNTIME || category == CATEGORY_TF_OP;
}

static bool is_copy(struct interpret *x, uint32_t work)
{
	enum event_phase phase = (enum event_phase)x->m->event.phase[work];

	return interpret_category(x, work) == CATEGORY_COPY || phase == PHASE_HOST_TO_DEVICE ||
	       phase == PHASE_DEVICE_TO_HOST;
}

static void find_waiting_copies(struct interpret *x)
{
	const struct link_table *l = &x->m->link;
	struct event_table *e = &x->m->event;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		uint32_t call = l->src[i].v, work = l->dst[i].v;
		int64_t dur;

		if (l->kind[i] != LINK_LAUNCH || e->phase[call] != PHASE_LAUNCH ||
		    !is_call(x, call) || !interpret_is_slice(x, call) ||
		    !interpret_is_slice(x, work) || !is_copy(x, work))
			continue;
		dur = MAX(e->dur_ns[work], (int64_t)0);
		if (interpret_end(x, call) >= interpret_end(x, work) &&
		    e->dur_ns[call] - dur >= WAIT_NS && e->dur_ns[call] / WAIT_FACTOR >= dur)
			e->phase[call] = PHASE_SYNCHRONISATION;
	}
}

/* A long call; `work` is the work that it launched, 0 for none. */
struct candidate {
	uint32_t event, work;
};

struct once {
	struct interpret *x;
	struct candidate *list;
	size_t count, cap;
	struct call_lengths all, *groups; /* lengths of all calls, and of names with candidates */
	uint32_t *group_of;		  /* group of each op, + 1 */
	uint32_t group_count;
	int64_t *first_ns; /* for each op that candidates launched: start of its first run */
	int64_t last_ns;   /* start of the last work of a device */
};

/* Returns whether a call only asks for a property, which cannot take long. */
static bool is_query(struct str name)
{
	return str_has(name, STR("Get")) || str_has(name, STR("Set")) || str_has(name, STR("Is"));
}

static bool may_be_once(const struct interpret *x, uint32_t event)
{
	uint8_t phase = x->m->event.phase[event];

	return (phase == PHASE_LAUNCH || phase == PHASE_ALLOCATION) && is_call(x, event) &&
	       interpret_is_slice(x, event);
}

static bool has_calls(const struct interpret *x, uint32_t track)
{
	const uint32_t calls = 1u << CATEGORY_RUNTIME | 1u << CATEGORY_TF_OP;

	return interpret_on_host(x, track) && interpret_track(x, track)->categories & calls;
}

typedef ow_status (*call_fn)(struct once *o, uint32_t event);

static ow_status each_call(struct once *o, call_fn take)
{
	struct interpret *x = o->x;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!has_calls(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (may_be_once(x, e))
				OW_TRY(take(o, e));
	}
	return OW_OK;
}

static ow_status add_candidate(struct once *o, uint32_t event)
{
	if (o->x->m->event.dur_ns[event] < SINGLE_CALL_NS)
		return OW_OK;
	return vec_push(o->x->mem, o->list, o->count, o->cap, (struct candidate){ event, 0 })
		       ? OW_OK
		       : interpret_no_memory(o->x);
}

static ow_status count_one(struct once *o, uint32_t event)
{
	uint32_t group = o->group_of[o->x->m->event.op[event].v];
	int64_t dur = o->x->m->event.dur_ns[event];

	call_lengths_add(&o->all, dur);
	if (group)
		call_lengths_add(&o->groups[group - 1], dur);
	return OW_OK;
}

static ow_status make_groups(struct once *o)
{
	struct interpret *x = o->x;

	o->groups = ARENA_ARRAY(&x->scratch, struct call_lengths, o->count);
	o->group_of = ARENA_ARRAY(&x->scratch, uint32_t, x->m->op.count);
	o->first_ns = ARENA_ARRAY(&x->scratch, int64_t, x->m->op.count);
	if (!o->groups || !o->group_of || !o->first_ns)
		return interpret_no_memory(x);
	for (size_t i = 0; i < o->count; i++) {
		uint32_t *group = &o->group_of[x->m->event.op[o->list[i].event].v];

		if (!*group)
			*group = ++o->group_count;
	}
	return each_call(o, count_one);
}

/* Finds the work that the candidates launched. They are in the order of the rows. */
static void find_work(struct once *o)
{
	const struct link_table *l = &o->x->m->link;

	for (uint32_t i = o->x->first_link; i < l->count; i++) {
		size_t low = 0, high = o->count;

		if (l->kind[i] != LINK_LAUNCH)
			continue;
		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (o->list[middle].event < l->src[i].v)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < o->count && o->list[low].event == l->src[i].v && !o->list[low].work)
			o->list[low].work = l->dst[i].v;
	}
}

static void find_first_runs(struct once *o)
{
	struct interpret *x = o->x;
	const struct event_table *e = &x->m->event;

	for (size_t i = 0; i < o->count; i++)
		if (o->list[i].work)
			o->first_ns[e->op[o->list[i].work].v] = INT64_MAX;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_device(x, t))
			continue;
		for (uint32_t i = track->first; i < track->last; i++) {
			o->last_ns = MAX(o->last_ns, e->ts_ns[i]);
			if (o->first_ns[e->op[i].v])
				o->first_ns[e->op[i].v] = MIN(o->first_ns[e->op[i].v], e->ts_ns[i]);
		}
	}
}

/* Returns whether a launch is the first of its work: otherwise it loads nothing, and if its work starts
 * much later, it waited for room in the queue. */
static bool launches_first(const struct once *o, const struct candidate *c)
{
	const struct event_table *e = &o->x->m->event;
	int64_t delay;

	if (!c->work)
		return true;
	return o->first_ns[e->op[c->work].v] == e->ts_ns[c->work] &&
	       !__builtin_sub_overflow(e->ts_ns[c->work], interpret_end(o->x, c->event), &delay) &&
	       delay < e->dur_ns[c->event];
}

/* Returns whether a call frees memory when the device has done its work: it makes nothing ready. */
static bool is_at_end(const struct once *o, const struct candidate *c)
{
	const struct event_table *e = &o->x->m->event;

	return e->phase[c->event] == PHASE_ALLOCATION && e->ts_ns[c->event] > o->last_ns &&
	       o->last_ns != INT64_MIN &&
	       str_has(interpret_text(o->x, interpret_name(o->x, c->event)), STR("Free"));
}

static bool initialises(const struct once *o, const struct candidate *c)
{
	const struct interpret *x = o->x;
	const struct call_lengths *group = &o->groups[o->group_of[x->m->event.op[c->event].v] - 1];

	if (interpret_category(x, c->event) == CATEGORY_RUNTIME &&
	    x->m->event.phase[c->event] == PHASE_LAUNCH && !c->work &&
	    is_query(interpret_text(x, interpret_name(x, c->event))))
		return true;
	if (group->count < GROUP_FEW)
		group = &o->all;
	if (is_at_end(o, c) || !launches_first(o, c))
		return false;
	/* Every kernel has a first launch, which may load its module, so there may be many long launches. A first
	 * copy loads nothing. */
	return call_is_single(group, x->m->event.dur_ns[c->event]) ||
	       (c->work && interpret_category(x, c->work) == CATEGORY_KERNEL &&
		group->short_count >= GROUP_FEW &&
		call_is_long(group, x->m->event.dur_ns[c->event]));
}

/* The first call on a track that is not a query of a property; 0 for none. */
static uint32_t first_call(const struct interpret *x, uint32_t track)
{
	const struct interpret_track *t = interpret_track(x, track);

	for (uint32_t e = t->first; e < t->last && has_calls(x, track); e++)
		if (may_be_once(x, e) && !is_query(interpret_text(x, interpret_name(x, e))))
			return e;
	return 0;
}

static bool is_first_of_process(const struct interpret *x, uint32_t event)
{
	const struct track_table *tracks = &x->m->track;
	int64_t pid = tracks->pid[x->m->event.track[event].v];

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		uint32_t other = tracks->pid[t] == pid ? first_call(x, t) : 0;

		if (other && x->m->event.ts_ns[other] < x->m->event.ts_ns[event])
			return false;
	}
	return true;
}

/* Returns whether an allocation is the first call of its process, and so long that it makes the context. */
static bool makes_context(const struct once *o, const struct candidate *c)
{
	const struct event_table *e = &o->x->m->event;
	const struct call_lengths *group = &o->groups[o->group_of[e->op[c->event].v] - 1];
	double dur = (double)e->dur_ns[c->event];

	return e->phase[c->event] == PHASE_ALLOCATION && e->dur_ns[c->event] >= FIRST_CALL_NS &&
	       (group->sum_ns - dur) * FIRST_CALL_FACTOR <= dur * (double)(group->count - 1) &&
	       is_first_of_process(o->x, c->event);
}

static ow_status find_initialisation(struct once *o)
{
	OW_TRY(each_call(o, add_candidate));
	if (!o->count)
		return OW_OK;
	OW_TRY(make_groups(o));
	find_work(o);
	find_first_runs(o);
	for (size_t i = 0; i < o->count; i++)
		if (initialises(o, &o->list[i]) || makes_context(o, &o->list[i]))
			o->x->m->event.phase[o->list[i].event] = PHASE_INITIALISATION;
	return OW_OK;
}

ow_status interpret_calls(struct interpret *x)
{
	struct once o = { .x = x, .last_ns = INT64_MIN };
	ow_status status;

	find_waiting_copies(x);
	status = find_initialisation(&o);
	mem_free(x->mem, o.list, o.cap * sizeof(*o.list));
	return status;
}
