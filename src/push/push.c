/* push.c: see push.h: the order of things. What takes time is in work.c. */
#include "push/push.h"

#include "push/claim.h"
#include "push/nodes.h"
#include "push/schema.h"
#include "push/work.h"

#include <time.h>

#define ROUNDS 3
#define ABANDONED_MAX 64
#define READERS_MS 2000 /* readers that saw the older push published have begun to read it */

struct push {
	const struct push_options *options;
	struct mem *mem;
	struct arena arena;
	struct plan plan;
	struct nodes nodes;
	struct work work;
	struct claim claim;
	struct click *clicks; /* one per node */
	struct click entry, beat;
	struct push_summary *summary;
};

/* ---- nodes ---- */

static ow_status find_nodes(struct push *p, struct error *err)
{
	OW_TRY(work_open(&p->work, &p->options->address, &p->entry, err));
	/* The first word to it: wrong hosts, users and databases end here. */
	OW_TRY(click_runf(&p->entry, NULL, err, "SELECT 1"));
	OW_TRY(nodes_find(&p->nodes, &p->entry, p->options, p->mem, err));
	p->summary->nodes = p->nodes.count;
	p->summary->shards = p->nodes.shard_count;
	p->clicks = ARENA_ARRAY(&p->arena, struct click, p->nodes.count);
	if (!p->clicks)
		return error_no_memory(err);
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		OW_TRY(work_open(&p->work, &p->nodes.items[i].address, &p->clicks[i], err));
		OW_TRY(click_runf(&p->clicks[i], NULL, err, "SELECT 1"));
	}
	return OW_OK;
}

static ow_status make_tables(struct push *p, struct error *err)
{
	for (uint32_t i = 0; i < p->nodes.count; i++)
		OW_TRY(schema_make(&p->plan, p->options->cluster, &p->clicks[i], err));
	return OW_OK;
}

/* Compares what the nodes have with the plan. */
static ow_status look(struct push *p, bool *complete, struct error *err)
{
	uint64_t total = 0, done = 0;
	uint32_t strange;

	*complete = true;
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];

		OW_TRY(nodes_look(&p->nodes, i, &p->plan, &p->clicks[i], &strange, err));
		if (strange) { /* the cluster was another one when the push began */
			OW_TRY(nodes_drop(&p->plan, p->plan.push, &p->clicks[i], err));
			OW_TRY(nodes_look(&p->nodes, i, &p->plan, &p->clicks[i], &strange, err));
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

/* ---- before ---- */

static ow_status take_claim(struct push *p, struct error *err)
{
	struct click_options options = { .http = { 5000, 10000, NULL, NULL },
					 .password = p->options->password };

	OW_TRY(click_open(&p->beat, p->mem, &p->nodes.items[0].address, &options, err));
	OW_TRY(claim_take(&p->claim, &p->clicks[0], &p->beat, &p->arena, p->options->run,
			  p->plan.push, err));
	p->work.claim = &p->claim;
	return OW_OK;
}

static ow_status publish(struct push *p, uint64_t push, struct error *err)
{
	for (uint32_t i = p->nodes.count; i-- > 0;) /* home last */
		if (p->nodes.items[i].shard == 0)
			OW_TRY(published_set(&p->claim, &p->clicks[i], push, p->options->content,
					     push ? p->plan.rows : 0, err));
	return OW_OK;
}

/* What is published under the name may stand in the way, be replaced, or be this. */
static ow_status look_at_published(struct push *p, struct published *published, bool *done,
				   struct error *err)
{
	bool complete;

	*done = false;
	OW_TRY(published_find(&p->claim, published, err));
	if (!published->push)
		return OW_OK;
	if (strcmp(published->content, p->options->content) != 0 && !p->options->replace)
		return error_set(err, OW_E_USAGE,
				 "%s already has a run '%s' of other files; give this one another "
				 "--name, or --replace that one",
				 p->entry.place, p->options->run);
	if (published->push != p->plan.push)
		return OW_OK;
	OW_TRY(look(p, &complete, err));
	*done = complete;
	/* Somebody took rows away: nobody should see them come back one by one. */
	return complete ? OW_OK : publish(p, 0, err);
}

static ow_status drop_push(struct push *p, uint64_t push, struct error *err)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "opwatch-%016" PRIx64 "-", push);
	for (uint32_t i = 0; i < p->nodes.count; i++) {
		OW_TRY(nodes_settle(&p->clicks[i], prefix, err));
		OW_TRY(nodes_drop(&p->plan, push, &p->clicks[i], err));
	}
	return claim_forget(&p->claim, push, err);
}

static ow_status drop_abandoned(struct push *p, uint64_t published, struct error *err)
{
	uint64_t pushes[ABANDONED_MAX];
	size_t count;

	OW_TRY(claim_abandoned(&p->claim, published, pushes, ABANDONED_MAX, &count, err));
	for (size_t i = 0; i < count; i++)
		OW_TRY(drop_push(p, pushes[i], err));
	return OW_OK;
}

/* Insertions of an earlier attempt may still run. */
static ow_status settle(struct push *p, struct error *err)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "opwatch-%016" PRIx64 "-", p->plan.push);
	for (uint32_t i = 0; i < p->nodes.count; i++)
		OW_TRY(nodes_settle(&p->clicks[i], prefix, err));
	return OW_OK;
}

/* ---- rows ---- */

static ow_status send_all(struct push *p, struct error *err)
{
	bool complete;

	for (unsigned round = 0;; round++) {
		OW_TRY(look(p, &complete, err));
		if (!round)
			p->summary->batches_found = batches_there(p);
		if (complete)
			return OW_OK;
		if (round == ROUNDS)
			return error_set(err, OW_E_IO, "nodes lose rows that they had confirmed");
		OW_TRY(work_run(&p->work, err));
	}
}

/* The inputs are as they were, and the cluster as a whole shows what its nodes have. */
static ow_status verify(struct push *p, struct error *err)
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
		status = relation_check(table->rows, err);
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

static ow_status replace_older(struct push *p, const struct published *older, struct error *err)
{
	struct timespec pause = { READERS_MS / 1000, READERS_MS % 1000 * 1000000 };

	if (!older->push || older->push == p->plan.push)
		return OW_OK;
	p->summary->replaced = true;
	nanosleep(&pause, NULL);
	return drop_push(p, older->push, err);
}

static ow_status send_and_publish(struct push *p, uint64_t published, struct error *err)
{
	OW_TRY(drop_abandoned(p, published, err));
	OW_TRY(settle(p, err));
	OW_TRY(send_all(p, err));
	OW_TRY(verify(p, err));
	if (work_cancelled(&p->work))
		return work_why(&p->work, err);
	return publish(p, p->plan.push, err);
}

/* What to expect after a failure on the way. */
static ow_status add_comfort(struct push *p, ow_status status, struct error *err)
{
	static const char comfort[] =
		"; nothing was published, and pushing again goes on where this ended";
	size_t len;

	if (status == OW_E_INTERRUPTED)
		status = work_why(&p->work, err);
	if (status == OW_OK || !err)
		return status;
	len = MIN(strlen(err->text), sizeof(err->text) - sizeof(comfort));
	memcpy(err->text + len, comfort, sizeof(comfort));
	return status;
}

static ow_status push_claimed(struct push *p, struct error *err)
{
	struct published older;
	bool done;

	OW_TRY(look_at_published(p, &older, &done, err));
	if (done) {
		p->summary->published_before = true;
		p->summary->batches_found = p->plan.batch_count;
		return OW_OK;
	}
	OW_TRY(add_comfort(p, send_and_publish(p, older.push, err), err));
	return error_wrap(err, replace_older(p, &older, err),
			  "the run is published, but its older form could not be removed");
}

static ow_status push_all(struct push *p, struct model *m, struct error *err)
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
		   struct push_summary *summary, struct error *err)
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
