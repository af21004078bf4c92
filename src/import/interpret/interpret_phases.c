/*
 * interpret_phases.c: sets the phase of every slice: for a device from its category and name; for the host from its
 * name, its category, and whether there is a device that it feeds. analyze/steps/phases.h computes the shares of a step
 * from these. Frames, repetitions and bookkeeping have no phase.
 */
#include "import/interpret/interpret_int.h"

#include "base/prefault.h"
#include "base/vec.h"

static enum event_phase device_phase(struct interpret *x, uint32_t event)
{
	enum event_phase own = PHASE_IDLE;

	if (interpret_category(x, event) == CATEGORY_COLLECTIVE)
		return PHASE_COMMUNICATION;
	if (x->producer->device_phase)
		own = x->producer->device_phase(x, event);
	if (own != PHASE_IDLE)
		return own;
	return device_name_phases[interpret_name_class(x, interpret_name(x, event)).device];
}

bool interpret_is_annotation(const struct interpret *x, uint32_t event, str_id name)
{
	enum category_class category = interpret_category(x, event);

	return category == CATEGORY_ANNOTATION ||
	       (category == CATEGORY_OPERATOR &&
		str_find_char(model_str(x->m, name), '#') != STR_NONE);
}

enum event_phase interpret_no_phase(const struct interpret *x, uint32_t event)
{
	(void)x;
	(void)event;
	return PHASE_UNKNOWN;
}

static enum event_phase plain_phase(struct interpret *x, uint32_t event, str_id name)
{
	enum event_phase own = PHASE_IDLE;

	if (interpret_category(x, event) == CATEGORY_RUNTIME)
		return PHASE_LAUNCH;
	if (x->producer->host_phase)
		own = x->producer->host_phase(x, event);
	if (own != PHASE_IDLE)
		return own;
	return x->has_device || interpret_is_annotation(x, event, name) ? PHASE_HOST
									: PHASE_COMPUTE;
}

/* The phase of a sleeping call. Threads that always sleep have none; the producer knows these threads. */
static enum event_phase sleep_phase(struct interpret *x, uint32_t event)
{
	enum event_phase own = PHASE_IDLE;

	if (x->producer->host_phase)
		own = x->producer->host_phase(x, event);
	return own == PHASE_UNKNOWN ? PHASE_UNKNOWN : PHASE_SYNCHRONISATION;
}

static enum event_phase host_phase(struct interpret *x, uint32_t event)
{
	str_id name = interpret_name(x, event);

	switch ((enum host_name)interpret_name_class(x, name).host) {
	case HOST_INPUT:
		return PHASE_INPUT;
	case HOST_PIPELINE:
	case HOST_MARKER:
		return PHASE_UNKNOWN;
	case HOST_COMMUNICATION:
		return PHASE_COMMUNICATION;
	case HOST_ENQUEUE:
		return x->has_device ? PHASE_HOST : PHASE_COMMUNICATION;
	case HOST_SYNC:
		return PHASE_SYNCHRONISATION;
	case HOST_EXECUTOR:
		return x->has_device ? PHASE_LAUNCH : PHASE_HOST;
	case HOST_ALLOCATION:
		return PHASE_ALLOCATION;
	case HOST_INITIALISATION:
		return PHASE_INITIALISATION;
	case HOST_SLEEP:
		return sleep_phase(x, event);
	case HOST_WRAPPER:
	case HOST_PLAIN:
		break;
	}
	return plain_phase(x, event, name);
}

struct waiting {
	int64_t end;
	uint8_t phase;
};

/* Without a device, operators are the compute, except inside input, communication or synchronisation, whose phase
 * they inherit: collating a batch is part of loading it. */
static void inherit(struct interpret *x, const struct interpret_track *track)
{
	struct waiting around = { INT64_MIN, PHASE_UNKNOWN };
	uint8_t *phase = x->m->event.phase;

	for (uint32_t e = track->first; e < track->last; e++) {
		int64_t end = interpret_end(x, e);

		if (!interpret_is_slice(x, e))
			continue;
		if (x->m->event.ts_ns[e] < around.end && end <= around.end) {
			if (phase[e] == PHASE_COMPUTE || phase[e] == PHASE_HOST)
				phase[e] = around.phase;
			continue;
		}
		if (phase[e] == PHASE_INPUT || phase[e] == PHASE_COMMUNICATION ||
		    phase[e] == PHASE_SYNCHRONISATION)
			around = (struct waiting){ end, phase[e] };
	}
}

static bool is_communication(struct str name)
{
	return str_starts(name, STR("nccl:")) || str_eq(name, STR("record_param_comms"));
}

/* One bit for each call: its innermost operator or range starts a communication. */
struct callers {
	struct interpret *x;
	uint64_t *bits;
	struct waiting *open; /* open operators; phase 1: a communication */
	size_t count, cap;
};

static bool open_operator(struct callers *c, uint32_t event)
{
	struct interpret *x = c->x;

	return vec_push(x->mem, c->open, c->count, c->cap,
			(struct waiting){
				interpret_end(x, event),
				is_communication(model_str(x->m, interpret_name(x, event))),
			});
}

static ow_status find_callers(struct callers *c, const struct interpret_track *track)
{
	struct interpret *x = c->x;

	c->count = 0;
	for (uint32_t e = track->first; e < track->last; e++) {
		enum category_class category = interpret_category(x, e);

		while (c->count && c->open[c->count - 1].end <= x->m->event.ts_ns[e])
			c->count--;
		if (category == CATEGORY_RUNTIME) {
			if (c->count && c->open[c->count - 1].phase)
				c->bits[e / 64] |= (uint64_t)1 << e % 64;
		} else if (interpret_is_slice(x, e) && !open_operator(c, e)) {
			return interpret_no_memory(x);
		}
	}
	return OW_OK;
}

static void use_callers(const struct callers *c)
{
	struct interpret *x = c->x;
	const struct link_table *l = &x->m->link;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		uint32_t call = l->src[i].v, work = l->dst[i].v;

		if (l->kind[i] == LINK_LAUNCH && c->bits[call / 64] >> call % 64 & 1 &&
		    interpret_category(x, work) == CATEGORY_KERNEL)
			x->m->event.phase[work] = PHASE_COMMUNICATION;
	}
}

static bool has_communication(const struct interpret *x)
{
	return x->has_device && x->m->link.count > x->first_link &&
	       x->categories & 1u << CATEGORY_RUNTIME && interpret_has_name(x, is_communication);
}

static ow_status find_communication(struct interpret *x)
{
	struct callers c = { .x = x };
	ow_status status = OW_OK;

	if (!has_communication(x))
		return OW_OK;
	c.bits = ARENA_ARRAY(&x->scratch, uint64_t, (size_t)x->last_event / 64 + 1);
	if (!c.bits)
		return interpret_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++)
		if (interpret_on_host(x, t) &&
		    interpret_track(x, t)->categories & 1u << CATEGORY_RUNTIME)
			status = find_callers(&c, interpret_track(x, t));
	if (status == OW_OK)
		use_callers(&c);
	mem_free(x->mem, c.open, c.cap * sizeof(*c.open));
	return status;
}

/* A cache for XSpace, where only the name, the op, and whether the event is a launch decide. So the phase of the
 * last event with the same op and name is mostly right: a comparison replaces an unpredictable branch. */
struct last_phase {
	uint32_t name;
	/* phase for non-launches and for launches; PHASE_IDLE, which no event has: unknown */
	uint8_t phases[2];
};

static void phases_by_op(struct interpret *x, const struct interpret_track *track, bool device,
			 struct last_phase *lasts)
{
	const struct event_table *e = &x->m->event;

	for (uint32_t i = track->first; i < track->last; i++) {
		struct last_phase *last = &lasts[e->op[i].v];
		uint32_t name = e->name ? e->name[i].v : 0;
		bool launch = e->correlation && e->correlation[i];

		if (OW_UNLIKELY(last->name != name || last->phases[launch] == PHASE_IDLE)) {
			if (last->name != name)
				*last = (struct last_phase){ name, { PHASE_IDLE, PHASE_IDLE } };
			last->phases[launch] =
				(uint8_t)(device ? device_phase(x, i) : host_phase(x, i));
		}
		e->phase[i] = last->phases[launch];
	}
}

/* Sets phases by the fast path; false if memory runs out, which is not a failure. */
static bool phases_fast(struct interpret *x, const struct interpret_track *track, bool device)
{
	size_t size = (size_t)x->m->op.count * sizeof(struct last_phase);
	struct last_phase *lasts;

	if (!x->in->xspace || track->last - track->first < x->m->op.count)
		return false;
	lasts = mem_alloc(x->mem, size);
	for (uint32_t op = 0; lasts && op < x->m->op.count; op++)
		lasts[op] = (struct last_phase){ 0, { PHASE_IDLE, PHASE_IDLE } };
	if (lasts)
		phases_by_op(x, track, device, lasts);
	mem_free(x->mem, lasts, size);
	return lasts != NULL;
}

static void phases_of(struct interpret *x, uint32_t t)
{
	const struct interpret_track *track = interpret_track(x, t);
	bool device = interpret_on_device(x, t), host = interpret_on_host(x, t);
	bool done = (device || host) && phases_fast(x, track, device);

	if (!device && !host)
		return;
	for (uint32_t e = track->first; e < track->last && !done; e++)
		if (interpret_is_slice(x, e))
			x->m->event.phase[e] =
				(uint8_t)(device ? device_phase(x, e) : host_phase(x, e));
	if (host && !x->has_device)
		inherit(x, track);
}

/* Sets the phase of a stream on which only one kind of work runs. */
static void refine_stream(struct interpret *x, uint32_t t)
{
	const struct interpret_track *track = interpret_track(x, t);
	bool copies = true, messages = true, any = false;

	for (uint32_t e = track->first; e < track->last && (copies || messages); e++) {
		uint8_t phase = x->m->event.phase[e];

		if (!phase)
			continue;
		any = true;
		messages &= phase == PHASE_COMMUNICATION;
		copies &= phase == PHASE_HOST_TO_DEVICE || phase == PHASE_DEVICE_TO_HOST;
	}
	if (any && messages)
		x->m->track.kind[t] = TRACK_COMMUNICATION;
	else if (any && copies)
		x->m->track.kind[t] = TRACK_COPY;
}

struct phasing {
	struct interpret *x;
	atomic_uint next;
};

/* The function of a thread, which takes one track after the other. */
static void phases_thread(void *arg, unsigned thread)
{
	struct phasing *p = arg;
	struct interpret *x = p->x;

	(void)thread;
	for (;;) {
		uint32_t t = atomic_fetch_add(&p->next, 1);

		if (t >= x->last_track)
			return;
		phases_of(x, t);
	}
}

ow_status interpret_phases(struct interpret *x)
{
	struct phasing p = { .x = x };

	if (x->no_phases)
		return OW_OK;
	if (!builder_need_column(x->b, TABLE_event, offsetof(struct event_table, phase)))
		return builder_status(x->b);
	/* All names are looked up before, so that the threads only read the results. */
	for (size_t i = 0; i < x->names.count; i++)
		interpret_name_class(x, (str_id){ x->names.list[i] });
	prefault(x->m->event.phase, x->first_event, x->last_event);
	x->shared = true;
	atomic_store(&p.next, x->first_track);
	parallel_run(interpret_threads(x), phases_thread, &p);
	x->shared = false;
	OW_TRY(find_communication(x));
	OW_TRY(interpret_calls(x));
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (x->m->track.kind[t] == TRACK_STREAM &&
		    x->m->device.kind[x->m->track.device[t].v] >= DEVICE_GPU)
			refine_stream(x, t);
	return builder_status(x->b);
}
