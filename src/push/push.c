/*
 * push.c: performs a whole push: finds the nodes, creates the tables, claims the run, sends the batches that nodes lack
 * from several threads, verifies the rows, and publishes all of them at once. plan.c chooses the batches, native.c
 * writes the rows. Called by ow_push.
 */
#include "push/push.h"

#include "base/parallel.h"
#include "push/claim.h"
#include "push/native.h"
#include "push/nodes.h"
#include "push/schema.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define ROUNDS 3
#define ABANDONED_MAX 64
/* an older push is deleted after this time, when its readers have begun to read it */
#define READERS_MS 2000
#define CONNECT_MS 10000
#define SILENCE_MS 300000 /* a server that merges parts may not answer for this long */
#define COUNT_REPEATS 3	  /* a batch whose row count is wrong is sent at most this often */

struct work {
	const struct push_options *options;
	const struct plan *plan;
	struct nodes *nodes;
	struct claim *claim; /* NULL before the run is claimed */
	struct mem *mem;
	struct push_summary *summary;
	atomic_uint next; /* index of the next batch */
	/* rows of all batches; a row counts once for each node of its shard */
	atomic_uint_fast64_t rows_done;
	uint64_t rows_total;
	atomic_bool stop; /* something failed, or the caller cancelled */
	/* protects the fields below, the summary and the calls of the caller's functions */
	pthread_mutex_t lock;
	ow_status status;
	struct ow_error error; /* the first error */
};

struct worker {
	struct work *work;
	struct click *clicks; /* one connection for each node, opened when needed */
	struct native native;
	struct ow_error err;
	unsigned number;
};

static void work_init(struct work *work, const struct push_options *options, struct mem *mem,
		      struct push_summary *summary)
{
	memset(work, 0, sizeof(*work));
	work->options = options;
	work->mem = mem;
	work->summary = summary;
	pthread_mutex_init(&work->lock, NULL);
}

static void work_release(struct work *work)
{
	pthread_mutex_destroy(&work->lock);
}

static void fail_work(struct work *work, ow_status status, const struct ow_error *err)
{
	pthread_mutex_lock(&work->lock);
	/* Only the first failure is kept: other workers are interrupted because of it. */
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
	struct ow_error err = { 0 };

	(void)error_set(&err, OW_E_IO,
			"this push reported nothing for %d s, so another may have taken "
			"over",
			CLAIM_LOST_MS / 1000);
	fail_work(work, OW_E_IO, &err);
}

static bool work_goes_on(void *arg)
{
	struct work *work = arg;
	const struct push_options *options = work->options;
	struct ow_error err = { 0 };
	bool go_on = true;

	if (atomic_load(&work->stop))
		return false;
	if (work->claim && !claim_beat(work->claim)) {
		fail_lost(work);
		return false;
	}
	if (!options->progress || pthread_mutex_trylock(&work->lock) != 0)
		return true;
	go_on = options->progress(options->progress_arg, atomic_load(&work->rows_done),
				  work->rows_total);
	pthread_mutex_unlock(&work->lock);
	if (!go_on) {
		(void)error_set(&err, OW_E_INTERRUPTED, "interrupted");
		fail_work(work, OW_E_INTERRUPTED, &err);
	}
	return go_on;
}

static ow_status work_why(struct work *work, struct ow_error *err)
{
	pthread_mutex_lock(&work->lock);
	if (work->status != OW_OK && err)
		*err = work->error;
	pthread_mutex_unlock(&work->lock);
	return work->status != OW_OK ? work->status : OW_E_INTERRUPTED;
}

static void send_note(struct work *work, const char *line)
{
	if (!work->options->note)
		return;
	pthread_mutex_lock(&work->lock);
	work->options->note(work->options->note_arg, line);
	pthread_mutex_unlock(&work->lock);
}

static void note_wait(void *arg, const char *line)
{
	send_note(arg, line);
}

static ow_status work_open(struct work *work, const struct address *address, struct click *click,
			   struct ow_error *err)
{
	struct click_options options = {
		.http = { CONNECT_MS, SILENCE_MS, work_goes_on, work, false },
		.password = work->options->password,
		.retry_ms = work->options->retry_ms,
	};

	return click_open(click, work->mem, address, &options, err);
}

static void name_batch(const struct plan *plan, uint32_t index, char *to, size_t size)
{
	const struct batch *batch = &plan->batches[index];

	snprintf(to, size, "opwatch-%016" PRIx64 "-%s-%u-", plan->push,
		 plan->tables[batch->table].relation->name, batch->number);
}

static ow_status insert_batch(struct worker *w, struct click *click, uint32_t index,
			      unsigned attempt)
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

static ow_status drop_batch(struct worker *w, struct click *click, uint32_t index)
{
	char prefix[128];

	name_batch(w->work->plan, index, prefix, sizeof(prefix));
	OW_TRY(nodes_await_inserts(click, prefix, &w->err));
	return nodes_drop_batch(w->work->plan, index, click, &w->err);
}

static void report_repeat(struct worker *w, const struct click *click, uint32_t index)
{
	const struct plan *plan = w->work->plan;
	const struct batch *batch = &plan->batches[index];
	char line[OW_ERROR_TEXT + 200];

	snprintf(line, sizeof(line), "sending batch %u of table %s to %s again: %s", batch->number,
		 plan->tables[batch->table].relation->name, click->place, w->err.text);
	send_note(w->work, line);
	pthread_mutex_lock(&w->work->lock);
	w->work->summary->repeats++;
	pthread_mutex_unlock(&w->work->lock);
}

/* Sends a batch and lets the node count its rows. */
static ow_status send_once(struct worker *w, struct click *click, uint32_t index, unsigned attempt,
			   bool *miscounted)
{
	uint64_t rows = 0, wanted = w->work->plan->batches[index].rows;

	*miscounted = false;
	OW_TRY(insert_batch(w, click, index, attempt));
	OW_TRY(nodes_count_batch(w->work->plan, index, click, &rows, &w->err));
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
			OW_TRY(drop_batch(w, click, index));
		status = send_once(w, click, index, attempt, &miscounted);
		if (status == OW_OK)
			return OW_OK;
		miscounts += miscounted;
		if ((!click->transient && !miscounted) || miscounts > COUNT_REPEATS)
			return status;
		report_repeat(w, click, index);
		if (!click_pause(click, attempt, began))
			return status;
		dirty = true;
	}
}

static ow_status click_for(struct worker *w, uint32_t node, struct click **click)
{
	*click = &w->clicks[node];
	if ((*click)->http)
		return OW_OK;
	OW_TRY(work_open(w->work, &w->work->nodes->items[node].address, *click, &w->err));
	(*click)->proven = true; /* the node has answered before, when its tables were created */
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

static ow_status serve_batches(struct worker *w)
{
	struct work *work = w->work;
	uint32_t index;

	while ((index = atomic_fetch_add(&work->next, 1)) < work->plan->batch_count)
		for (uint32_t node = 0; node < work->nodes->count; node++) {
			if (work->nodes->items[node].shard != nodes_shard(work->nodes, index))
				continue;
			if (!work_goes_on(work))
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
		status = serve_batches(&w);
	if (status != OW_OK)
		fail_work(work, status, &w.err);
	worker_release(&w);
}

static ow_status work_run(struct work *work, struct ow_error *err)
{
	atomic_store(&work->next, 0);
	parallel_run(MAX(1, MIN(work->options->connections, PARALLEL_MAX)), run_worker, work);
	if (work->status == OW_OK)
		return OW_OK;
	return work_why(work, err);
}

struct push {
	const struct push_options *options;
	struct mem *mem;
	struct arena arena;
	struct plan plan;
	struct nodes nodes;
	struct work work;
	struct claim claim;
	struct click *clicks; /* one connection for each node */
	struct click entry, beat;
	struct push_summary *summary;
};

static ow_status find_nodes(struct push *p, struct ow_error *err)
{
	OW_TRY(work_open(&p->work, &p->options->address, &p->entry, err));
	p->entry.options.await = p->options->await;
	p->entry.options.waits = note_wait;
	p->entry.options.waits_arg = &p->work;
	/* The first statement to the server: it detects wrong hosts, users and databases. */
	OW_TRY(click_runf(&p->entry, NULL, err, "SELECT 1"));
	OW_TRY(nodes_find(&p->nodes, &p->entry, p->options, p->mem, err));
	p->summary->nodes = p->nodes.count;
	p->summary->shards = p->nodes.shard_count;
	p->clicks = ARENA_ARRAY(&p->arena, struct click, p->nodes.count);
	if (!p->clicks)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		OW_TRY(work_open(&p->work, &p->nodes.items[i].address, &p->clicks[i], err));
		p->clicks[i].proven =
			true; /* the cluster lists this node: when it is down, wait for it */
		OW_TRY(click_runf(&p->clicks[i], NULL, err, "SELECT 1"));
	}
	return OW_OK;
}

static ow_status make_tables(struct push *p, struct ow_error *err)
{
	for (uint32_t i = 0; i < p->nodes.count; i++)
		OW_TRY(schema_make(&p->plan, p->options->cluster, &p->clicks[i], err));
	return OW_OK;
}

/* Compares the batches on the nodes with the plan. */
static ow_status find_missing_batches(struct push *p, bool *complete, struct ow_error *err)
{
	uint64_t total = 0, done = 0;
	uint32_t strange;

	*complete = true;
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];

		OW_TRY(nodes_list_batches(&p->nodes, i, &p->plan, &p->clicks[i], &strange, err));
		if (strange) { /* the cluster's shards have changed since the push began */
			OW_TRY(nodes_drop(&p->plan, p->plan.push, &p->clicks[i], err));
			OW_TRY(nodes_list_batches(&p->nodes, i, &p->plan, &p->clicks[i], &strange,
						  err));
		}
		for (uint32_t b = 0; b < p->plan.batch_count; b++) {
			if (nodes_shard(&p->nodes, b) != node->shard)
				continue;
			total += p->plan.batches[b].rows;
			if (node->rows[b] == p->plan.batches[b].rows)
				done += p->plan.batches[b].rows;
			else
				*complete = false;
		}
	}
	p->work.rows_total = total;
	atomic_store(&p->work.rows_done, done);
	return OW_OK;
}

static uint32_t batches_there(const struct push *p)
{
	uint32_t count = 0;

	for (uint32_t b = 0; b < p->plan.batch_count; b++) {
		bool there = true;

		for (uint32_t i = 0; i < p->nodes.count; i++)
			there &= p->nodes.items[i].shard != nodes_shard(&p->nodes, b) ||
				 p->nodes.items[i].rows[b] == p->plan.batches[b].rows;
		count += there;
	}
	return count;
}

static ow_status take_claim(struct push *p, struct ow_error *err)
{
	struct click_options options = { .http = { 5000, 10000, NULL, NULL, false },
					 .password = p->options->password };

	OW_TRY(click_open(&p->beat, p->mem, &p->nodes.items[0].address, &options, err));
	OW_TRY(claim_take(&p->claim, &p->clicks[0], &p->beat, &p->arena, p->options->run,
			  p->plan.push, err));
	p->work.claim = &p->claim;
	return OW_OK;
}

static ow_status publish(struct push *p, uint64_t push, struct ow_error *err)
{
	for (uint32_t i = p->nodes.count; i-- > 0;) /* the home node is last */
		if (p->nodes.items[i].shard == 0)
			OW_TRY(published_set(&p->claim, &p->clicks[i], push, p->options->content,
					     push ? p->plan.rows : 0, err));
	return OW_OK;
}

/* Reads the published version of the run. If it has the same name, it will be replaced, or is this very content
 * (*done), or makes the push fail. */
static ow_status read_published(struct push *p, struct published *published, bool *done,
				struct ow_error *err)
{
	bool complete;

	*done = false;
	OW_TRY(published_find(&p->claim, published, err));
	if (!published->push)
		return OW_OK;
	if (strcmp(published->content, p->options->content) != 0 && !p->options->replace)
		return error_set(err, OW_E_USAGE,
				 "%s already has a run '%s' with other content; choose another "
				 "--name, or overwrite it with --replace",
				 p->entry.place, p->options->run);
	if (published->push != p->plan.push)
		return OW_OK;
	OW_TRY(find_missing_batches(p, &complete, err));
	*done = complete;
	/* Rows of a published push are missing: hide the run, so that readers do not see the rows come back one by
	 * one. */
	return complete ? OW_OK : publish(p, 0, err);
}

static ow_status drop_push(struct push *p, uint64_t push, struct ow_error *err)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "opwatch-%016" PRIx64 "-", push);
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		OW_TRY(nodes_await_inserts(&p->clicks[i], prefix, err));
		OW_TRY(nodes_drop(&p->plan, push, &p->clicks[i], err));
	}
	return claim_forget(&p->claim, push, err);
}

static ow_status drop_abandoned(struct push *p, uint64_t published, struct ow_error *err)
{
	uint64_t pushes[ABANDONED_MAX];
	size_t count;

	OW_TRY(claim_abandoned(&p->claim, published, pushes, ABANDONED_MAX, &count, err));
	for (size_t i = 0; i < count; i++)
		OW_TRY(drop_push(p, pushes[i], err));
	return OW_OK;
}

/* Drops batches with a wrong number of rows; insertions of an earlier attempt may still run. */
static ow_status drop_wrong_batches(struct push *p, struct ow_error *err)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "opwatch-%016" PRIx64 "-", p->plan.push);
	for (uint32_t i = 0; i < p->nodes.count; i++)
		OW_TRY(nodes_await_inserts(&p->clicks[i], prefix, err));
	return OW_OK;
}

static ow_status send_all(struct push *p, struct ow_error *err)
{
	bool complete;

	for (unsigned round = 0;; round++) {
		OW_TRY(find_missing_batches(p, &complete, err));
		if (!round)
			p->summary->batches_found = batches_there(p);
		if (complete)
			return OW_OK;
		if (round == ROUNDS)
			return error_set(err, OW_E_IO,
					 "the nodes lost rows that they had confirmed");
		OW_TRY(work_run(&p->work, err));
	}
}

/* Verifies that the inputs have not changed, and that the cluster as a whole shows the rows of its nodes. */
static ow_status verify_rows(struct push *p, struct ow_error *err)
{
	uint64_t rows = 0;
	struct buf answer;
	struct str line;
	ow_status status = OW_OK;

	buf_init(&answer, p->mem);
	for (uint32_t i = 0; i < p->plan.table_count && status == OW_OK; i++) {
		const struct plan_table *table = &p->plan.tables[i];

		if (!table->chosen)
			continue;
		status = table_check(table->rows, err);
		if (status != OW_OK || !p->options->cluster)
			continue;
		status = click_runf(&p->entry, &answer, err,
				    "SELECT count() FROM opwatch_%s_all WHERE opwatch_push = "
				    "toUInt64(%" PRIu64 ")",
				    table->relation->name, p->plan.push);
		line = str_trim(buf_str(&answer));
		if (status == OW_OK &&
		    (!click_field_u64(&line, &rows) || rows != table->rows->parts[0].rows))
			status = error_set(err, OW_E_IO,
					   "the cluster, asked through %s, shows %" PRIu64
					   " rows of table %s instead of %" PRIu64
					   "; are these its nodes? Name them with --nodes",
					   p->entry.place, rows, table->relation->name,
					   table->rows->parts[0].rows);
	}
	buf_release(&answer);
	return status;
}

static ow_status replace_older(struct push *p, const struct published *older, struct ow_error *err)
{
	struct timespec pause = { READERS_MS / 1000, READERS_MS % 1000 * 1000000 };

	if (!older->push || older->push == p->plan.push)
		return OW_OK;
	p->summary->replaced = true;
	nanosleep(&pause, NULL);
	return drop_push(p, older->push, err);
}

static ow_status send_and_publish(struct push *p, uint64_t published, struct ow_error *err)
{
	OW_TRY(drop_abandoned(p, published, err));
	OW_TRY(drop_wrong_batches(p, err));
	OW_TRY(send_all(p, err));
	OW_TRY(verify_rows(p, err));
	if (!work_goes_on(&p->work))
		return work_why(&p->work, err);
	return publish(p, p->plan.push, err);
}

/* Adds to the error what the user can expect after a failure. */
static ow_status add_expectation(struct push *p, ow_status status, struct ow_error *err)
{
	static const char comfort[] =
		"; nothing was published; pushing again continues where this ended";
	size_t len;

	if (status == OW_E_INTERRUPTED)
		status = work_why(&p->work, err);
	if (status == OW_OK || !err)
		return status;
	len = MIN(strlen(err->text), sizeof(err->text) - sizeof(comfort));
	memcpy(err->text + len, comfort, sizeof(comfort));
	return status;
}

static ow_status push_claimed(struct push *p, struct ow_error *err)
{
	struct published older;
	bool done;

	OW_TRY(read_published(p, &older, &done, err));
	if (done) {
		p->summary->published_before = true;
		p->summary->batches_found = p->plan.batch_count;
		return OW_OK;
	}
	OW_TRY(add_expectation(p, send_and_publish(p, older.push, err), err));
	return error_wrap(err, replace_older(p, &older, err),
			  "the run is published, but its older form could not be removed");
}

static ow_status push_all(struct push *p, struct model *m, struct ow_error *err)
{
	ow_status status;

	OW_TRY(find_nodes(p, err));
	OW_TRY(plan_make(&p->plan, m, p->options, p->mem, err));
	p->summary->rows = p->plan.rows;
	p->summary->batches = p->plan.batch_count;
	p->summary->tables = p->plan.chosen_count;
	p->work.plan = &p->plan;
	p->work.nodes = &p->nodes;
	OW_TRY(make_tables(p, err));
	OW_TRY(take_claim(p, err));
	status = push_claimed(p, err);
	claim_end(&p->claim, status == OW_OK);
	return status;
}

ow_status push_run(struct model *m, const struct push_options *options, struct mem *mem,
		   struct push_summary *summary, struct ow_error *err)
{
	struct push p = { .options = options, .mem = mem, .summary = summary };
	ow_status status;

	*summary = (struct push_summary){ 0 };
	arena_init(&p.arena, mem);
	work_init(&p.work, options, mem, summary);
	status = push_all(&p, m, err);
	if (status == OW_E_INTERRUPTED && !p.work.claim)
		status = work_why(&p.work, err);
	for (uint32_t i = 0; p.clicks && i < p.nodes.count; i++)
		if (p.clicks[i].mem)
			click_close(&p.clicks[i]);
	if (p.entry.mem)
		click_close(&p.entry);
	if (p.beat.mem)
		click_close(&p.beat);
	work_release(&p.work);
	if (p.nodes.mem)
		nodes_release(&p.nodes);
	if (p.plan.mem)
		plan_release(&p.plan);
	arena_release(&p.arena);
	return status;
}
