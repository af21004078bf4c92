/*
 * interpret_waits.c: links work of a device to the stream or call that waits for it, as PyTorch's profiler records
 * waits (category cuda_sync): a stream that waits for an event of another stream, and calls that wait for an event or a
 * stream. Called by producer_kineto.c after launches are linked. An event stands for all work that its stream received
 * before the event was recorded, so the wait is for the last of that work. Waits for the whole device need no link:
 * they are for all streams.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"

/* One synchronisation event with its arguments; -1 where there is none. */
struct wait {
	uint32_t event;
	int64_t correlation, stream, wait_stream, record;
};

struct waits {
	struct interpret *x;
	struct interpret_numbers calls;
	struct wait *list;
	size_t count, cap;
	bool no_memory;
};

static int64_t number_of(struct str args, const char *key)
{
	int64_t number;

	if (!interpret_number(json_find(args, key), &number) || number < 0 || number >= UINT32_MAX)
		return -1;
	return number;
}

static void take_wait(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	struct waits *w = arg;
	struct wait wait = { .event = event,
			     .correlation = number_of(args, "correlation"),
			     .stream = number_of(args, "stream"),
			     .wait_stream = number_of(args, "wait_on_stream"),
			     .record = number_of(args, "wait_on_cuda_event_record_corr_id") };

	if (!vec_push(x->mem, w->list, w->count, w->cap, wait))
		w->no_memory = true;
}

static ow_status collect_waits(struct waits *w)
{
	struct interpret *x = w->x;
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!(track->categories & 1u << CATEGORY_SYNC))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++)
			if (interpret_category(x, e) == CATEGORY_SYNC)
				status = interpret_rows_add(x, &rows, e);
	}
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_wait, w);
	interpret_rows_release(x, &rows);
	return status == OW_OK && w->no_memory ? interpret_no_memory(x) : status;
}

/* Returns the track of the device's stream that the wait is on; 0 if there is none. */
static uint32_t find_stream(const struct waits *w, const struct wait *wait, int64_t stream)
{
	const struct interpret *x = w->x;
	int64_t pid = x->m->track.pid[x->m->event.track[wait->event].v];

	for (uint32_t t = x->first_track; t < x->last_track && stream >= 0; t++)
		if (x->m->track.tid[t] == stream && x->m->track.pid[t] == pid &&
		    interpret_on_device(x, t))
			return t;
	return 0;
}

/* Returns the call with the number; -1 means none. */
static uint32_t find_call(const struct waits *w, int64_t number)
{
	return number > 0 ? interpret_numbers_find(&w->calls, (uint32_t)number) : 0;
}

/* Returns when the stream received the work: at its launch. */
static int64_t given_ns(const struct waits *w, uint32_t event)
{
	const struct event_table *e = &w->x->m->event;
	uint32_t call = find_call(w, e->correlation[event]);

	return e->ts_ns[call ? call : event];
}

/* The first work that a stream received at or after time t. Streams run their work in the order in which they
 * received it. */
static uint32_t first_given(const struct waits *w, uint32_t track, int64_t t)
{
	uint32_t low = interpret_track(w->x, track)->first,
		 high = interpret_track(w->x, track)->last;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (given_ns(w, middle) < t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the last work that a stream received before a call; 0 if there is none. */
static uint32_t last_before(const struct waits *w, uint32_t stream, uint32_t call)
{
	uint32_t at = first_given(w, stream, w->x->m->event.ts_ns[call]);

	return at > interpret_track(w->x, stream)->first ? at - 1 : 0;
}

/* Returns the first work that a stream received after a call; 0 if there is none. */
static uint32_t first_after(const struct waits *w, uint32_t stream, uint32_t call)
{
	uint32_t at = first_given(w, stream, w->x->m->event.ts_ns[call] + 1);

	return at < interpret_track(w->x, stream)->last ? at : 0;
}

static ow_status link_wait(struct waits *w, const struct wait *wait)
{
	struct interpret *x = w->x;
	struct str name = model_str(x->m, interpret_name(x, wait->event));
	uint32_t call = find_call(w, wait->correlation), record = find_call(w, wait->record);
	uint32_t stream = find_stream(w, wait, wait->stream), work = 0, waiting = call;
	uint32_t other = find_stream(w, wait, wait->wait_stream);

	if (!call || str_has(model_str(x->m, interpret_name(x, call)), STR("Query")))
		return OW_OK; /* a query checks and does not wait */
	if (str_eq(name, STR("Stream Sync")) && stream)
		work = last_before(w, stream, call);
	else if (record && other)
		work = last_before(w, other, record);
	if (str_eq(name, STR("Stream Wait Event")))
		waiting = stream && stream != other ? first_after(w, stream, call) : 0;
	return work && waiting ? interpret_add_link(x, work, waiting, LINK_WAIT) : OW_OK;
}

ow_status interpret_link_waits(struct interpret *x)
{
	struct waits w = { .x = x };
	ow_status status;

	/* without launches the work that an event stands for is unknown */
	if (!(x->categories & 1u << CATEGORY_SYNC) || x->m->link.count == x->first_link)
		return OW_OK;
	status = collect_waits(&w);
	if (status == OW_OK && w.count)
		status = interpret_collect_calls(x, &w.calls);
	for (size_t i = 0; i < w.count && status == OW_OK; i++)
		status = link_wait(&w, &w.list[i]);
	interpret_numbers_release(&w.calls);
	mem_free(x->mem, w.list, w.cap * sizeof(*w.list));
	return status;
}
