/*
 * interpret_memory.c: converts the [memory] events of PyTorch's profiler (profile_memory=True) to rows of `heap`: the
 * innermost operator that is open on the thread caused the change, with its stack. In the oldest traces these events
 * are on a separate thread, whose number is that of the operators' thread.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"

#define TRACKS_MAX 4096	 /* with more tracks, threads are not looked up by number */
#define ARGS_SIZE 4096	 /* longest arguments; usual ones have about 200 bytes */
#define READ_TOGETHER 64 /* number of events that a thread takes at a time */
/* changes are collected up to this number before their arguments are read, because page faults cost more than
 * starting threads */
#define CHANGES_MAX 16384

/* A change of memory, and the operator that caused it. */
struct change {
	struct memory_change is;
	uint32_t owner; /* event of the operator that caused the change */
	bool known;	/* the arguments need not be read */
};

struct memory {
	struct interpret *x;
	str_id name;		/* id of the string "[memory]" */
	struct change *changes; /* has room for CHANGES_MAX items */
	size_t count, unknown;
	size_t next;	/* index of the next entry in x->in->changes */
	uint32_t *open; /* operators that are open at the current time */
	size_t open_count, open_cap;
	uint64_t odd;
};

static bool is_memory(const struct memory *y, uint32_t event)
{
	return interpret_name(y->x, event).v == y->name.v;
}

static ow_status flush(struct memory *y);

static ow_status open_operator(struct memory *y, uint32_t event)
{
	while (y->open_count &&
	       interpret_end(y->x, y->open[y->open_count - 1]) <= y->x->m->event.ts_ns[event])
		y->open_count--;
	if (!vec_push(y->x->mem, y->open, y->open_count, y->open_cap, event))
		return interpret_no_memory(y->x);
	return OW_OK;
}

static uint32_t owner_at(const struct memory *y, int64_t ts)
{
	for (size_t i = y->open_count; i-- > 0;)
		if (interpret_end(y->x, y->open[i]) >= ts)
			return y->open[i];
	return 0;
}

static bool is_operator(const struct interpret *x, uint32_t event)
{
	return interpret_category(x, event) == CATEGORY_OPERATOR && interpret_is_slice(x, event);
}

static ow_status add_change(struct memory *y, uint32_t event, uint32_t owner)
{
	const struct interpret_input *in = y->x->in;
	struct change *c;

	if (y->count == CHANGES_MAX)
		OW_TRY(flush(y));
	c = &y->changes[y->count++];
	*c = (struct change){ .is.event = event, .owner = owner };
	/* events are requested in ascending order */
	while (y->next < in->change_count && in->changes[y->next].event < event)
		y->next++;
	if (y->next < in->change_count && in->changes[y->next].event == event) {
		c->is = in->changes[y->next];
		c->known = true;
	}
	y->unknown += !c->known;
	return OW_OK;
}

/* Finds the operators around the changes; events of both tracks are in order of time. */
static ow_status find_owners(struct memory *y, const struct interpret_track *of,
			     const struct interpret_track *operators)
{
	const int64_t *ts = y->x->m->event.ts_ns;
	uint32_t next = operators->first;

	y->open_count = 0;
	for (uint32_t e = of->first; e < of->last; e++) {
		if (!is_memory(y, e))
			continue;
		for (; next < operators->last && ts[next] <= ts[e]; next++)
			if (is_operator(y->x, next))
				OW_TRY(open_operator(y, next));
		OW_TRY(add_change(y, e, owner_at(y, ts[e])));
	}
	return OW_OK;
}

/* Returns the number of a thread, also if it is written as text. */
static bool thread_number(const struct interpret *x, uint32_t track, int64_t *number)
{
	int64_t tid = x->m->track.tid[track];
	uint64_t text = (uint64_t)tid - (uint64_t)MODEL_TEXT_NUMBER;

	*number = tid;
	if (tid == MODEL_NO_ID)
		return false;
	if (text < x->m->strings.count)
		return str_to_i64(model_str(x->m, (str_id){ (uint32_t)text }), number);
	return true;
}

static bool has_operators(const struct interpret *x, uint32_t track)
{
	return interpret_track(x, track)->categories >> CATEGORY_OPERATOR & 1;
}

static const struct interpret_track *operators_for(const struct interpret *x, uint32_t track)
{
	int64_t number, other;

	if (has_operators(x, track) || x->last_track - x->first_track > TRACKS_MAX ||
	    !thread_number(x, track, &number))
		return interpret_track(x, track);
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (t != track && x->m->track.pid[t] == x->m->track.pid[track] &&
		    has_operators(x, t) && thread_number(x, t, &other) && other == number)
			return interpret_track(x, t);
	return interpret_track(x, track);
}

static uint32_t count_events(const struct memory *y, const struct interpret_track *track)
{
	uint32_t count = 0;

	for (uint32_t e = track->first; e < track->last; e++)
		count += is_memory(y, e);
	return count;
}

static ow_status find_events(struct memory *y)
{
	struct interpret *x = y->x;
	uint32_t count = 0;

	for (uint32_t t = x->first_track; t < x->last_track; t++)
		count += count_events(y, interpret_track(x, t));
	if (count && !builder_grow(x->b, TABLE_heap, count))
		return builder_status(x->b);
	for (uint32_t t = x->first_track; count && t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (count_events(y, track))
			OW_TRY(find_owners(y, track, operators_for(x, t)));
	}
	return flush(y);
}

struct reading {
	struct memory *y;
	atomic_size_t next;
	atomic_int failed;   /* status of the first failure */
	struct ow_error err; /* error of the thread that failed first */
};

static void take_member(struct memory_change *c, struct str key, struct json_value value)
{
	int64_t *to = NULL, address;

	if (str_eq(key, STR("Bytes")))
		c->good = interpret_number(value, &c->bytes);
	else if (str_eq(key, STR("Addr")) && interpret_number(value, &address))
		c->address = (uint64_t)address;
	else if (str_eq(key, STR("Device Type")))
		to = &c->type;
	else if (str_eq(key, STR("Device Id")))
		to = &c->number;
	else if (str_eq(key, STR("Total Allocated")))
		to = &c->allocated;
	else if (str_eq(key, STR("Total Reserved")))
		to = &c->reserved;
	if (to && !interpret_number(value, to))
		*to = 0;
}

void memory_change_read(struct str args, struct memory_change *c)
{
	struct json_reader members = json_over(args);
	struct json_value value;
	struct str key;

	if (args.len > ARGS_SIZE)
		return;
	while (json_next_member(&members, &key, &value))
		take_member(c, key, value);
}

static ow_status read_change(const struct interpret *x, struct memory_change *c,
			     struct ow_error *err)
{
	uint32_t size = COLUMN_GET(x->m->event.args_size, c->event);
	char text[ARGS_SIZE];

	if (!size || size > sizeof(text))
		return OW_OK;
	OW_TRY(input_read_at(x->in->input, x->m->event.args_offset[c->event], text, size, err));
	memory_change_read(str_make(text, size), c);
	return OW_OK;
}

/* Reads some arguments; several threads share the work, because arguments are scattered over the
 * file. */
static void read_some(void *arg, unsigned thread)
{
	struct reading *r = arg;
	struct memory *y = r->y;
	struct ow_error err = { 0 };
	size_t first;

	(void)thread;
	while ((first = atomic_fetch_add(&r->next, READ_TOGETHER)) < y->count &&
	       !atomic_load(&r->failed))
		for (size_t i = first; i < MIN(first + READ_TOGETHER, y->count); i++) {
			struct change *c = &y->changes[i];
			int status = c->known ? OW_OK : (int)read_change(y->x, &c->is, &err);
			int none = 0;

			if (status == OW_OK)
				continue;
			if (atomic_compare_exchange_strong(&r->failed, &none, status))
				r->err = err;
			return;
		}
}

static ow_status read_changes(struct memory *y)
{
	struct reading r = { .y = y };

	if (!y->unknown)
		return OW_OK;
	parallel_run(interpret_threads(y->x), read_some, &r);
	if (!atomic_load(&r.failed))
		return OW_OK;
	if (y->x->err)
		*y->x->err = r.err;
	return builder_fail(y->x->b, (ow_status)atomic_load(&r.failed));
}

/* Returns the device of a c10 DeviceType; unknown numbers are newer accelerators. */
static device_id device_of(struct interpret *x, int64_t type, int64_t number)
{
	char name[64];

	if (type == 0)
		return builder_device(x->b, STR("CPU"));
	if (type == 1 || type == 6)
		snprintf(name, sizeof(name), "GPU %" PRId64, number);
	else
		snprintf(name, sizeof(name), "device %" PRId64 " of type %" PRId64, number, type);
	return builder_device(x->b, str_from(name));
}

static void add_rows(struct memory *y)
{
	const struct event_table *e = &y->x->m->event;
	const struct memory_change *last = NULL; /* last change whose device is known */
	device_id device = { 0 };

	for (size_t i = 0; i < y->count; i++) {
		const struct memory_change *c = &y->changes[i].is;
		uint32_t owner = y->changes[i].owner;

		if (!c->good) {
			y->odd++;
			continue;
		}
		if (!last || last->type != c->type || last->number != c->number)
			device = device_of(y->x, c->type, c->number);
		last = c;
		builder_add_heap(y->x->b,
				 &(struct heap_row){ .ts_ns = e->ts_ns[c->event],
						     .size = c->bytes,
						     .kind = c->bytes < 0 ? HEAP_FREE : HEAP_ALLOC,
						     .device = device,
						     .op = owner ? e->op[owner] : (op_id){ 0 },
						     .source = y->x->source,
						     .address = c->address,
						     .step = e->step[c->event],
						     .track = e->track[c->event],
						     .stack = COLUMN_GET(e->stack, owner),
						     .allocated = MAX(c->allocated, 0),
						     .reserved = MAX(c->reserved, 0) });
	}
}

/* Reads the changes found so far, and makes rows of them. */
static ow_status flush(struct memory *y)
{
	OW_TRY(read_changes(y));
	add_rows(y);
	y->count = y->unknown = 0;
	return builder_status(y->x->b);
}

ow_status interpret_torch_memory(struct interpret *x)
{
	struct memory y = { .x = x, .name = model_find_str(x->m, STR(MEMORY_EVENT)) };
	ow_status status;

	if (!y.name.v || y.name.v >= x->string_count || !x->first_of[y.name.v])
		return OW_OK;
	y.changes = mem_alloc(x->mem, CHANGES_MAX * sizeof(*y.changes));
	if (!y.changes)
		return interpret_no_memory(x);
	status = find_events(&y);
	if (status == OW_OK && y.odd)
		builder_note_many(x->b, NOTE_DAMAGED, OW_NO_OFFSET, y.odd,
				  "[memory] events do not say how many bytes: not counted");
	mem_free(x->mem, y.changes, CHANGES_MAX * sizeof(*y.changes));
	mem_free(x->mem, y.open, y.open_cap * sizeof(*y.open));
	return status;
}
