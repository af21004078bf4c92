/* attend.c: see attend.h. */
#include "watch/attend.h"

#include "base/error.h"
#include "live/jobs.h"
#include "watch/ticker.h"

#define ASK_TURNS 4 /* the daemon is asked every two seconds */

struct attended {
	uint32_t job;
	bool listed; /* it still runs */
	struct attention attention;
};

struct attend {
	struct mem mem;
	struct attention_options options;
	char socket_path[JOBS_SOCKET_PATH];
	struct attended **items;
	size_t count, cap;
	unsigned turns;
	struct ticker *ticker;
};

static void drop(struct attend *a, size_t at)
{
	struct error err = { 0 };

	(void)!attention_turn(&a->items[at]->attention, true,
			      &err); /* without memory nothing is saved */
	attention_release(&a->items[at]->attention);
	mem_free(&a->mem, a->items[at], sizeof(*a->items[at]));
	a->items[at] = a->items[--a->count];
}

static ow_status add(struct attend *a, const struct jobs *jobs, const struct job_info *job,
		     struct error *err)
{
	struct attention_options options = a->options;
	char prefix[JOBS_PATH + JOBS_NAME + 32];
	struct attended *item;
	void *list = a->items;
	ow_status status;

	if (!mem_grow(&a->mem, &list, &a->cap, a->count + 1, sizeof(*a->items)))
		return error_no_memory(err);
	a->items = list;
	item = mem_zalloc(&a->mem, sizeof(*item));
	if (!item)
		return error_no_memory(err);
	snprintf(prefix, sizeof(prefix), "%s/%s-%u", jobs->server.folder, job->name, job->id);
	options.recording = job->folder;
	options.prefix = prefix;
	options.job = job->name;
	options.uid = job->uid;
	item->job = job->id;
	status = attention_init(&item->attention, &a->mem, &options, err);
	if (status != OW_OK) {
		mem_free(&a->mem, item, sizeof(*item));
		return status;
	}
	a->items[a->count++] = item;
	return OW_OK;
}

static struct attended *find(const struct attend *a, uint32_t job)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->items[i]->job == job)
			return a->items[i];
	return NULL;
}

static ow_status take_list(struct attend *a, const struct jobs *jobs, struct error *err)
{
	for (size_t i = 0; i < a->count; i++)
		a->items[i]->listed = false;
	for (size_t i = 0; i < jobs->count; i++) {
		struct attended *item = find(a, jobs->items[i].id);

		if (jobs->items[i].state != JOB_RUNNING)
			continue;
		if (!item) {
			OW_TRY(add(a, jobs, &jobs->items[i], err));
			item = a->items[a->count - 1];
		}
		item->listed = true;
	}
	for (size_t i = a->count; i-- > 0;)
		if (!a->items[i]->listed)
			drop(a, i);
	return OW_OK;
}

/* A daemon that does not answer is not there yet, or ends. */
static ow_status ask(struct attend *a, struct error *err)
{
	struct error silent = { 0 };
	struct jobs jobs;
	ow_status status =
		jobs_list(&jobs, &a->mem, a->socket_path[0] ? a->socket_path : NULL, &silent);

	if (status == OW_OK)
		status = take_list(a, &jobs, err);
	else
		status = status == OW_E_NO_MEMORY ? error_no_memory(err) : OW_OK;
	jobs_release(&jobs);
	return status;
}

static ow_status turn(struct attend *a, unsigned number, struct error *err)
{
	if (number % ASK_TURNS == 0)
		OW_TRY(ask(a, err));
	for (size_t i = 0; i < a->count; i++)
		OW_TRY(attention_turn(&a->items[i]->attention, false, err));
	return OW_OK;
}

static bool tick(void *arg, bool last)
{
	static const char text[] = "attention has ended: out of memory";
	struct attend *a = arg;
	struct error err = { 0 };

	if (!last && turn(a, a->turns++, &err) == OW_OK)
		return true;
	if (!last && a->options.message)
		a->options.message(a->options.message_arg, text, sizeof(text) - 1);
	while (a->count)
		drop(a, a->count - 1);
	return false;
}

ow_status attend_start(const char *socket_path, const struct attention_options *options,
		       struct attend **out, struct error *err)
{
	struct attend *a = calloc(1, sizeof(*a));
	ow_status status;

	*out = NULL;
	if (!a)
		return error_no_memory(err);
	mem_init(&a->mem, 0);
	a->options = *options;
	snprintf(a->socket_path, sizeof(a->socket_path), "%s", socket_path ? socket_path : "");
	status = ticker_start(tick, a, &a->ticker, err);
	if (status == OW_OK)
		*out = a;
	else
		free(a);
	return status;
}

void attend_stop(struct attend *a)
{
	if (!a)
		return;
	ticker_stop(a->ticker);
	mem_free(&a->mem, a->items, a->cap * sizeof(*a->items));
	free(a);
}
