/*
 * mean_memory.c: the [memory] events of PyTorch's profiler (profile_memory=True) become rows of `heap`: who
 * asked is the innermost operator that is open on the thread, with its stack. In the oldest traces these
 * events have a thread of their own, whose number is that of the operators' thread.
 */
#include "import/mean_int.h"

#define TRACKS_MAX 4096 /* beyond, threads are not searched for by number */

struct memory {
	struct meaning *x;
	str_id name;	 /* "[memory]" */
	uint32_t *owner; /* by event - first_event: the operator's event */
	struct mean_rows rows;
	uint32_t *open; /* operators that are open */
	size_t open_count, open_cap;
	uint64_t odd;
};

static bool is_memory(const struct memory *y, uint32_t event)
{
	return mean_name(y->x, event).v == y->name.v;
}

/* ---- who asked ---- */

static ow_status open_operator(struct memory *y, uint32_t event)
{
	void *open = y->open;

	while (y->open_count &&
	       mean_end(y->x, y->open[y->open_count - 1]) <= y->x->m->event.ts_ns[event])
		y->open_count--;
	if (!mem_grow(y->x->mem, &open, &y->open_cap, y->open_count + 1, sizeof(*y->open)))
		return mean_no_memory(y->x);
	y->open = open;
	y->open[y->open_count++] = event;
	return OW_OK;
}

static uint32_t owner_at(const struct memory *y, int64_t ts)
{
	for (size_t i = y->open_count; i-- > 0;)
		if (mean_end(y->x, y->open[i]) >= ts)
			return y->open[i];
	return 0;
}

static bool is_operator(const struct meaning *x, uint32_t event)
{
	return mean_category(x, event) == CATEGORY_OPERATOR && mean_is_slice(x, event);
}

/* Events of both tracks are in order of time. */
static ow_status find_owners(struct memory *y, const struct mean_track *of,
			     const struct mean_track *operators)
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
		y->owner[e - y->x->first_event] = owner_at(y, ts[e]);
		OW_TRY(mean_rows_add(y->x, &y->rows, e));
	}
	return OW_OK;
}

/* The number of a thread, also when it is written as text. */
static bool thread_number(const struct meaning *x, uint32_t track, int64_t *number)
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

static bool has_operators(const struct meaning *x, uint32_t track)
{
	return mean_track(x, track)->categories >> CATEGORY_OPERATOR & 1;
}

static const struct mean_track *operators_for(const struct meaning *x, uint32_t track)
{
	int64_t number, other;

	if (has_operators(x, track) || x->last_track - x->first_track > TRACKS_MAX ||
	    !thread_number(x, track, &number))
		return mean_track(x, track);
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (t != track && x->m->track.pid[t] == x->m->track.pid[track] &&
		    has_operators(x, t) && thread_number(x, t, &other) && other == number)
			return mean_track(x, t);
	return mean_track(x, track);
}

static bool has_memory(const struct memory *y, const struct mean_track *track)
{
	for (uint32_t e = track->first; e < track->last; e++)
		if (is_memory(y, e))
			return true;
	return false;
}

static ow_status find_events(struct memory *y)
{
	struct meaning *x = y->x;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (has_memory(y, track))
			OW_TRY(find_owners(y, track, operators_for(x, t)));
	}
	return OW_OK;
}

/* ---- rows ---- */

/* c10's DeviceType; other numbers are accelerators that came later. */
static device_id device_of(struct meaning *x, int64_t type, int64_t number)
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

static int64_t number_of(struct str args, const char *key)
{
	int64_t number;

	return mean_number(json_find(args, key), &number) ? number : 0;
}

static void take_memory(struct meaning *x, uint32_t event, struct str args, void *arg)
{
	struct memory *y = arg;
	const struct event_table *e = &x->m->event;
	uint32_t owner = y->owner[event - x->first_event];
	int64_t bytes, allocated, reserved;

	if (!mean_number(json_find(args, "Bytes"), &bytes)) {
		y->odd++;
		return;
	}
	allocated = number_of(args, "Total Allocated");
	reserved = number_of(args, "Total Reserved");
	builder_add_heap(x->b,
			 &(struct heap_row){ .ts_ns = e->ts_ns[event],
					     .size = bytes,
					     .kind = bytes < 0 ? HEAP_FREE : HEAP_ALLOC,
					     .device = device_of(x, number_of(args, "Device Type"),
								 number_of(args, "Device Id")),
					     .op = owner ? e->op[owner] : (op_id){ 0 },
					     .source = x->source,
					     .address = (uint64_t)number_of(args, "Addr"),
					     .step = e->step[event],
					     .track = e->track[event],
					     .stack = COLUMN_GET(e->stack, owner),
					     .allocated = MAX(allocated, 0),
					     .reserved = MAX(reserved, 0) });
}

ow_status mean_torch_memory(struct meaning *x)
{
	struct memory y = { .x = x, .name = model_find_str(x->m, STR("[memory]")) };
	ow_status status = OW_OK;

	if (!y.name.v || y.name.v >= x->string_count || !x->first_of[y.name.v])
		return OW_OK;
	y.owner = ARENA_ARRAY(&x->scratch, uint32_t, (size_t)(x->last_event - x->first_event) + 1);
	if (!y.owner)
		return mean_no_memory(x);
	status = find_events(&y);
	if (status == OW_OK)
		status = mean_read_args(x, &y.rows, take_memory, &y);
	if (status == OW_OK && y.odd)
		builder_note_many(x->b, NOTE_DAMAGED, OW_NO_OFFSET, y.odd,
				  "[memory] events do not say how many bytes, and are not counted");
	mean_rows_release(x, &y.rows);
	mem_free(x->mem, y.open, y.open_cap * sizeof(*y.open));
	return status;
}
