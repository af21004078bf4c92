/* work.c: see work.h. */
#include "push/work.h"

#include "base/parallel.h"
#include "push/native.h"

#define CONNECT_MS 10000
#define SILENCE_MS 300000 /* a server that merges may say nothing for long */
#define COUNT_REPEATS 3	  /* a batch whose rows do not come out right is not sent for ever */

struct worker {
	struct work *work;
	struct click *clicks; /* one per node, opened when needed */
	struct native native;
	struct error err;
	unsigned number;
};

void work_init(struct work *work, const struct push_options *options, struct mem *mem,
	       struct push_summary *summary)
{
	memset(work, 0, sizeof(*work));
	work->options = options;
	work->mem = mem;
	work->summary = summary;
	pthread_mutex_init(&work->lock, NULL);
}

void work_release(struct work *work)
{
	pthread_mutex_destroy(&work->lock);
}

/* ---- going on, or not ---- */

static void fail(struct work *work, ow_status status, const struct error *err)
{
	pthread_mutex_lock(&work->lock);
	/* That others were interrupted follows from the first failure. */
	if (work->status == OW_OK ||
	    (work->status == OW_E_INTERRUPTED && status != OW_E_INTERRUPTED)) {
		work->status = status;
		work->error = *err;
	}
	pthread_mutex_unlock(&work->lock);
	atomic_store(&work->stop, true);
}

static void fail_lost(struct work *work)
{
	struct error err = { 0 };

	(void)error_set(&err, OW_E_IO,
			"nothing was heard of this push for %d s, so that another may have taken "
			"over",
			CLAIM_LOST_MS / 1000);
	fail(work, OW_E_IO, &err);
}

bool work_cancelled(void *arg)
{
	struct work *work = arg;
	const struct push_options *options = work->options;
	struct error err = { 0 };
	bool go_on = true;

	if (atomic_load(&work->stop))
		return true;
	if (work->claim && !claim_beat(work->claim)) {
		fail_lost(work);
		return true;
	}
	if (!options->progress || pthread_mutex_trylock(&work->lock) != 0)
		return false;
	go_on = options->progress(options->progress_arg, atomic_load(&work->rows_done),
				  work->rows_total);
	pthread_mutex_unlock(&work->lock);
	if (!go_on) {
		(void)error_set(&err, OW_E_INTERRUPTED, "interrupted");
		fail(work, OW_E_INTERRUPTED, &err);
	}
	return !go_on;
}

ow_status work_why(struct work *work, struct error *err)
{
	pthread_mutex_lock(&work->lock);
	if (work->status != OW_OK && err)
		*err = work->error;
	pthread_mutex_unlock(&work->lock);
	return work->status != OW_OK ? work->status : OW_E_INTERRUPTED;
}

static void note(struct work *work, const char *line)
{
	if (!work->options->note)
		return;
	pthread_mutex_lock(&work->lock);
	work->options->note(work->options->note_arg, line);
	pthread_mutex_unlock(&work->lock);
}

ow_status work_open(struct work *work, const struct address *address, struct click *click,
		    struct error *err)
{
	struct click_options options = {
		.http = { CONNECT_MS, SILENCE_MS, work_cancelled, work },
		.password = work->options->password,
		.retry_ms = work->options->retry_ms,
	};

	return click_open(click, work->mem, address, &options, err);
}

/* ---- one batch ---- */

static void name_batch(const struct plan *plan, uint32_t index, char *to, size_t size)
{
	const struct batch *batch = &plan->batches[index];

	snprintf(to, size, "opwatch-%016" PRIx64 "-%s-%u-", plan->push,
		 plan->tables[batch->table].relation->name, batch->number);
}

static ow_status insert(struct worker *w, struct click *click, uint32_t index, unsigned attempt)
{
	const struct plan *plan = w->work->plan;
	const struct batch *batch = &plan->batches[index];
	const struct plan_table *table = &plan->tables[batch->table];
	char query_id[128], text[128];
	size_t len;

	name_batch(plan, index, query_id, sizeof(query_id));
	len = strlen(query_id);
	snprintf(query_id + len, sizeof(query_id) - len, "%u-%s", attempt, w->work->claim->owner);
	snprintf(text, sizeof(text), "INSERT INTO opwatch_%s FORMAT Native", table->relation->name);
	native_start(&w->native, table->rows, 0, batch->first, batch->rows, plan->push,
		     batch->number, &w->err);
	return click_insert(click, str_from(text), query_id, native_take, &w->native, &w->err);
}

/* How many rows of the batch the node has. */
static ow_status count_rows(struct worker *w, struct click *click, uint32_t index, uint64_t *rows)
{
	const struct plan *plan = w->work->plan;
	const struct batch *batch = &plan->batches[index];
	struct buf answer, database;
	struct str line;
	ow_status status;

	buf_init(&answer, w->work->mem);
	buf_init(&database, w->work->mem);
	click_quote(&database, str_from(click->address.database));
	status = !buf_cstr(&database)
			 ? error_no_memory(&w->err)
			 : click_runf(
				   click, &answer, &w->err,
				   "SELECT sum(rows) FROM system.parts WHERE active AND database = "
				   "%s AND table = 'opwatch_%s' AND partition = '(%" PRIu64 ",%u)'",
				   buf_cstr(&database), plan->tables[batch->table].relation->name,
				   plan->push, batch->number);
	line = str_trim(buf_str(&answer));
	if (status == OW_OK && !click_field_u64(&line, rows))
		status = error_set(&w->err, OW_E_IO, "%s gave an answer that cannot be read",
				   click->place);
	buf_release(&answer);
	buf_release(&database);
	return status;
}

static ow_status drop(struct worker *w, struct click *click, uint32_t index)
{
	char prefix[128];

	name_batch(w->work->plan, index, prefix, sizeof(prefix));
	OW_TRY(nodes_settle(click, prefix, &w->err));
	return nodes_drop_batch(w->work->plan, index, click, &w->err);
}

static void tell_repeat(struct worker *w, const struct click *click, uint32_t index)
{
	const struct plan *plan = w->work->plan;
	const struct batch *batch = &plan->batches[index];
	char line[OW_ERROR_TEXT + 200];

	snprintf(line, sizeof(line), "batch %u of table %s is sent to %s again: %s", batch->number,
		 plan->tables[batch->table].relation->name, click->place, w->err.text);
	note(w->work, line);
	pthread_mutex_lock(&w->work->lock);
	w->work->summary->repeats++;
	pthread_mutex_unlock(&w->work->lock);
}

/* Sent, and counted by the node. */
static ow_status send_once(struct worker *w, struct click *click, uint32_t index, unsigned attempt,
			   bool *miscounted)
{
	uint64_t rows = 0, wanted = w->work->plan->batches[index].rows;

	*miscounted = false;
	OW_TRY(insert(w, click, index, attempt));
	OW_TRY(count_rows(w, click, index, &rows));
	if (rows == wanted)
		return OW_OK;
	*miscounted = true;
	return error_set(&w->err, OW_E_IO, "%s has %" PRIu64 " rows of a batch instead of %" PRIu64,
			 click->place, rows, wanted);
}

static ow_status send_batch(struct worker *w, struct click *click, uint32_t index, bool dirty)
{
	uint64_t began = click_now_ms();
	unsigned miscounts = 0;

	for (unsigned attempt = 1;; attempt++) {
		bool miscounted;
		ow_status status;

		error_clear(&w->err);
		if (dirty)
			OW_TRY(drop(w, click, index));
		status = send_once(w, click, index, attempt, &miscounted);
		if (status == OW_OK)
			return OW_OK;
		miscounts += miscounted;
		if ((!click->transient && !miscounted) || miscounts > COUNT_REPEATS)
			return status;
		tell_repeat(w, click, index);
		if (!click_pause(click, attempt, began))
			return status;
		dirty = true;
	}
}

/* ---- all of them ---- */

static ow_status click_for(struct worker *w, uint32_t node, struct click **click)
{
	*click = &w->clicks[node];
	if ((*click)->http)
		return OW_OK;
	OW_TRY(work_open(w->work, &w->work->nodes->items[node].address, *click, &w->err));
	(*click)->proven = true; /* its tables were made */
	return OW_OK;
}

static ow_status serve_node(struct worker *w, uint32_t index, uint32_t node)
{
	uint64_t there = w->work->nodes->items[node].rows[index];
	uint64_t rows = w->work->plan->batches[index].rows;
	struct click *click;

	if (there == rows)
		return OW_OK;
	OW_TRY(click_for(w, node, &click));
	OW_TRY(send_batch(w, click, index, there != 0));
	atomic_fetch_add(&w->work->rows_done, rows);
	pthread_mutex_lock(&w->work->lock);
	w->work->summary->sent += rows;
	pthread_mutex_unlock(&w->work->lock);
	return OW_OK;
}

static ow_status serve(struct worker *w)
{
	struct work *work = w->work;
	uint32_t index;

	while ((index = atomic_fetch_add(&work->next, 1)) < work->plan->batch_count)
		for (uint32_t node = 0; node < work->nodes->count; node++) {
			if (work->nodes->items[node].shard != nodes_shard(work->nodes, index))
				continue;
			if (work_cancelled(work))
				return work_why(work, &w->err);
			OW_TRY(serve_node(w, index, node));
		}
	return OW_OK;
}

static ow_status worker_init(struct worker *w, struct work *work)
{
	size_t size = work->nodes->count * sizeof(*w->clicks);

	w->work = work;
	w->clicks = mem_zalloc(work->mem, size);
	if (!w->clicks)
		return error_no_memory(&w->err);
	return native_init(&w->native, work->mem, &w->err);
}

static void worker_release(struct worker *w)
{
	size_t size = w->work->nodes->count * sizeof(*w->clicks);

	for (uint32_t i = 0; w->clicks && i < w->work->nodes->count; i++)
		if (w->clicks[i].mem)
			click_close(&w->clicks[i]);
	if (w->clicks)
		mem_free(w->work->mem, w->clicks, size);
	if (w->native.mem)
		native_release(&w->native);
}

static void run_worker(void *arg, unsigned thread)
{
	struct worker w = { .number = thread };
	struct work *work = arg;
	ow_status status = worker_init(&w, work);

	if (status == OW_OK)
		status = serve(&w);
	if (status != OW_OK)
		fail(work, status, &w.err);
	worker_release(&w);
}

ow_status work_run(struct work *work, struct error *err)
{
	atomic_store(&work->next, 0);
	parallel_run(MAX(1, MIN(work->options->connections, PARALLEL_MAX)), run_worker, work);
	if (work->status == OW_OK)
		return OW_OK;
	return work_why(work, err);
}
