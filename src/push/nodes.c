/* nodes.c: see nodes.h. */
#include "push/nodes.h"

#include <time.h>

#define NODES_MAX 4096
#define SLOTS_MAX 65536

/* ---- which ones ---- */

static ow_status one_node(struct nodes *nodes, const struct address *address, struct error *err)
{
	nodes->items = ARENA_ARRAY(&nodes->arena, struct node, 1);
	nodes->slots = ARENA_ARRAY(&nodes->arena, uint32_t, 1);
	if (!nodes->items || !nodes->slots)
		return error_no_memory(err);
	nodes->items[0].address = *address;
	nodes->count = nodes->shard_count = nodes->slot_count = 1;
	return OW_OK;
}

static ow_status no_cluster(struct click *entry, const char *cluster, struct error *err)
{
	struct buf known;
	ow_status status;

	buf_init(&known, entry->mem);
	status = click_runf(entry, &known, err,
			    "SELECT arrayStringConcat(groupUniqArray(cluster), ', ') FROM "
			    "system.clusters");
	if (status == OW_OK)
		status = error_set(err, OW_E_NOT_FOUND, "%s knows no cluster '%s'; it knows: %.*s",
				   entry->place, cluster, STR_ARG(str_trim(buf_str(&known))));
	buf_release(&known);
	return status;
}

/* A node as the caller names it; else by its host, the entry by the name that it was reached by. */
static ow_status place_node(struct nodes *nodes, struct node *node, const struct address *entry,
			    struct str host, bool local, const char *named, struct error *err)
{
	uint16_t port = entry->port;
	const char *copy;

	if (named && !address_split(str_from(named), &host, &port))
		return error_set(err, OW_E_USAGE, "a node is named HOST or HOST:PORT, not '%s'",
				 named);
	if (local && !named)
		host = str_from(entry->host);
	copy = arena_cstr(&nodes->arena, host);
	if (!copy)
		return error_no_memory(err);
	node->address = address_at(entry, copy, port);
	return OW_OK;
}

static ow_status bad_answer(const struct click *click, struct error *err)
{
	return error_set(err, OW_E_IO, "%s gave an answer that cannot be read", click->place);
}

static void add_slots(struct nodes *nodes, uint32_t shard, uint64_t weight)
{
	for (; weight && nodes->slot_count < SLOTS_MAX; weight--)
		nodes->slots[nodes->slot_count++] = shard;
}

/* Rows: shard, weight, host, whether it is the one that answers; ordered by shard. */
static ow_status read_nodes(struct nodes *nodes, const struct click *entry, struct str rest,
			    const struct ow_list *names, struct error *err)
{
	uint64_t shard, weight, local, last = UINT64_MAX;
	struct str line, host;

	while (click_line(&rest, &line)) {
		struct node *node = &nodes->items[nodes->count];
		const char *named = names->count > nodes->count ? names->items[nodes->count] : NULL;

		if (nodes->count == NODES_MAX)
			return error_set(err, OW_E_LIMIT, "the cluster has more than %d nodes",
					 NODES_MAX);
		if (!click_field_u64(&line, &shard) || !click_field_u64(&line, &weight) ||
		    !click_field(&line, &host) || !click_field_u64(&line, &local))
			return bad_answer(entry, err);
		if (names->count && !named)
			return error_set(err, OW_E_USAGE,
					 "fewer nodes are named than the cluster has");
		OW_TRY(place_node(nodes, node, &entry->address, host, local, named, err));
		if (shard != last)
			add_slots(nodes, nodes->shard_count++, weight);
		last = shard;
		node->shard = nodes->shard_count - 1;
		nodes->count++;
	}
	if (names->count > nodes->count)
		return error_set(err, OW_E_USAGE, "more nodes are named than the cluster has: %u",
				 nodes->count);
	return OW_OK;
}

static ow_status cluster_nodes(struct nodes *nodes, struct click *entry,
			       const struct push_options *options, struct error *err)
{
	struct buf name, answer;
	ow_status status;

	nodes->items = ARENA_ARRAY(&nodes->arena, struct node, NODES_MAX);
	nodes->slots = ARENA_ARRAY(&nodes->arena, uint32_t, SLOTS_MAX);
	if (!nodes->items || !nodes->slots)
		return error_no_memory(err);
	buf_init(&name, nodes->mem);
	buf_init(&answer, nodes->mem);
	click_quote(&name, str_from(options->cluster));
	status = buf_cstr(&name) ? click_runf(entry, &answer, err,
					      "SELECT shard_num, shard_weight, host_name, is_local "
					      "FROM system.clusters WHERE cluster = %s "
					      "ORDER BY shard_num, replica_num",
					      buf_cstr(&name))
				 : error_no_memory(err);
	if (status == OW_OK)
		status = read_nodes(nodes, entry, buf_str(&answer), &options->nodes, err);
	if (status == OW_OK && !nodes->count)
		status = no_cluster(entry, options->cluster, err);
	if (status == OW_OK && !nodes->slot_count)
		status = error_set(err, OW_E_USAGE, "no shard of the cluster '%s' has a weight",
				   options->cluster);
	buf_release(&name);
	buf_release(&answer);
	return status;
}

ow_status nodes_find(struct nodes *nodes, struct click *entry, const struct push_options *options,
		     struct mem *mem, struct error *err)
{
	*nodes = (struct nodes){ .mem = mem };
	arena_init(&nodes->arena, mem);
	if (!options->cluster)
		return one_node(nodes, &options->address, err);
	return cluster_nodes(nodes, entry, options, err);
}

void nodes_release(struct nodes *nodes)
{
	arena_release(&nodes->arena);
	*nodes = (struct nodes){ 0 };
}

/* ---- what they have ---- */

/* "(17,3)" of the push 17: 3. */
static bool batch_of(struct str partition, uint64_t push, uint64_t *number)
{
	struct str inner =
		str_first(str_skip(partition, 1), partition.len - MIN(partition.len, 2u));
	size_t comma = str_find_char(inner, ',');
	struct str first, second;
	uint64_t of;

	if (comma == STR_NONE)
		return false;
	first = str_first(inner, comma);
	second = str_trim(str_skip(inner, comma + 1));
	return click_field_u64(&first, &of) && of == push && click_field_u64(&second, number);
}

static const struct plan_table *table_of(const struct plan *plan, struct str name)
{
	for (uint32_t i = 0; i < plan->table_count; i++)
		if (str_starts(name, STR("opwatch_")) &&
		    str_eq(str_skip(name, 8), str_from(plan->tables[i].relation->name)))
			return &plan->tables[i];
	return NULL;
}

static ow_status ask_parts(const struct plan *plan, struct click *click, uint64_t push,
			   struct buf *answer, struct error *err)
{
	struct buf database;
	ow_status status;

	(void)plan;
	buf_init(&database, click->mem);
	click_quote(&database, str_from(click->address.database));
	status = buf_cstr(&database)
			 ? click_runf(click, answer, err,
				      "SELECT table, partition, sum(rows) FROM system.parts WHERE "
				      "active AND database = %s AND partition LIKE '(%" PRIu64
				      ",%%' GROUP BY table, partition",
				      buf_cstr(&database), push)
			 : error_no_memory(err);
	buf_release(&database);
	return status;
}

ow_status nodes_look(struct nodes *nodes, uint32_t index, const struct plan *plan,
		     struct click *click, uint32_t *strange, struct error *err)
{
	struct node *node = &nodes->items[index];
	struct str rest, line, name, partition;
	uint64_t number, rows;
	struct buf answer;
	ow_status status;

	*strange = 0;
	if (!node->rows)
		node->rows = ARENA_ARRAY(&nodes->arena, uint64_t, plan->batch_count + 1);
	if (!node->rows)
		return error_no_memory(err);
	memset(node->rows, 0, plan->batch_count * sizeof(*node->rows));
	buf_init(&answer, nodes->mem);
	status = ask_parts(plan, click, plan->push, &answer, err);
	for (rest = buf_str(&answer); status == OW_OK && click_line(&rest, &line);) {
		const struct plan_table *table;
		uint32_t batch;

		if (!click_field(&line, &name) || !click_field(&line, &partition) ||
		    !click_field_u64(&line, &rows)) {
			status = bad_answer(click, err);
			break;
		}
		table = table_of(plan, name);
		if (!table || !batch_of(partition, plan->push, &number))
			continue; /* somebody else's */
		batch = table->batch_first + (uint32_t)MIN(number, UINT32_MAX / 2);
		if (number >= table->batch_count || nodes_shard(nodes, batch) != node->shard)
			(*strange)++;
		else
			node->rows[batch] = rows;
	}
	buf_release(&answer);
	return status;
}

/* ---- dropping ---- */

static ow_status drop_partition(const char *table, uint64_t push, uint64_t batch,
				struct click *click, struct error *err)
{
	return click_runf(click, NULL, err,
			  "ALTER TABLE opwatch_%s DROP PARTITION (%" PRIu64 ", %" PRIu64 ")", table,
			  push, batch);
}

ow_status nodes_drop_batch(const struct plan *plan, uint32_t index, struct click *click,
			   struct error *err)
{
	const struct batch *batch = &plan->batches[index];

	return drop_partition(plan->tables[batch->table].relation->name, plan->push, batch->number,
			      click, err);
}

ow_status nodes_drop(const struct plan *plan, uint64_t push, struct click *click, struct error *err)
{
	struct str rest, line, name, partition;
	struct buf answer;
	uint64_t number;
	ow_status status;

	buf_init(&answer, click->mem);
	status = ask_parts(plan, click, push, &answer, err);
	for (rest = buf_str(&answer); status == OW_OK && click_line(&rest, &line);) {
		const struct plan_table *table;

		if (!click_field(&line, &name) || !click_field(&line, &partition))
			continue;
		table = table_of(plan, name);
		if (table && batch_of(partition, push, &number))
			status = drop_partition(table->relation->name, push, number, click, err);
	}
	buf_release(&answer);
	return status;
}

/* ---- insertions that nobody waits for ---- */

static ow_status count_running(struct click *click, const char *prefix, uint64_t *count,
			       struct error *err)
{
	struct buf answer;
	struct str line;
	ow_status status;

	buf_init(&answer, click->mem);
	status = click_runf(click, &answer, err,
			    "SELECT count() FROM system.processes WHERE query_id LIKE '%s%%'",
			    prefix);
	line = str_trim(buf_str(&answer));
	if (status == OW_OK && !click_field_u64(&line, count))
		status = bad_answer(click, err);
	buf_release(&answer);
	return status;
}

ow_status nodes_settle(struct click *click, const char *prefix, struct error *err)
{
	uint64_t began = click_now_ms(), count = 0;
	struct error ignored = { 0 };

	for (unsigned attempt = 1;; attempt++) {
		OW_TRY(count_running(click, prefix, &count, err));
		if (!count)
			return OW_OK;
		/* A user who may not do this waits until they end by themselves. */
		(void)click_runf(click, NULL, &ignored,
				 "KILL QUERY WHERE query_id LIKE '%s%%' ASYNC", prefix);
		if (!click_pause(click, attempt, began))
			return error_set(err, OW_E_IO,
					 "%s still works on rows that were sent to it before; "
					 "push again when it is done",
					 click->place);
	}
}
