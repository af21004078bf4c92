/*
 * nodes.c: finds the nodes and shards of a cluster in system.clusters, matches them with the user's list, and asks each
 * node which batches it has. Used by push.c. It sends no rows.
 */
#include "push/nodes.h"

#include <time.h>

#define NODES_MAX 4096
#define SLOTS_MAX 65536

static ow_status one_node(struct nodes *nodes, const struct address *address, struct ow_error *err)
{
	nodes->items = ARENA_ARRAY(&nodes->arena, struct node, 1);
	nodes->slots = ARENA_ARRAY(&nodes->arena, uint32_t, 1);
	if (!nodes->items || !nodes->slots)
		return error_no_memory(err);
	nodes->items[0].address = *address;
	nodes->count = nodes->shard_count = nodes->slot_count = 1;
	return OW_OK;
}

static ow_status no_cluster(struct click *entry, const char *cluster, struct ow_error *err)
{
	struct buf known;
	ow_status status;

	buf_init(&known, entry->mem);
	status = click_runf(entry, &known, err,
			    "SELECT arrayStringConcat(groupUniqArray(cluster), ', ') FROM "
			    "system.clusters");
	if (status == OW_OK)
		status =
			error_set(err, OW_E_NOT_FOUND, "%s has no cluster '%s'; its clusters: %.*s",
				  entry->place, cluster, STR_ARG(str_trim(buf_str(&known))));
	buf_release(&known);
	return status;
}

/* Sets a node's address: as the caller's list names it, else by the host in system.clusters; the node of the entry
 * connection keeps the name by which it was reached. */
static ow_status place_node(struct nodes *nodes, struct node *node, const struct address *entry,
			    struct str host, bool local, const char *named, struct ow_error *err)
{
	uint16_t port = entry->port;
	const char *copy;

	if (named && !address_split(str_from(named), &host, &port))
		return error_set(err, OW_E_USAGE, "'%s' is not a node; write HOST or HOST:PORT",
				 named);
	if (local && !named)
		host = str_from(entry->host);
	copy = arena_cstr(&nodes->arena, host);
	if (!copy)
		return error_no_memory(err);
	node->address = address_at(entry, copy, port);
	return OW_OK;
}

static ow_status bad_answer(const struct click *click, struct ow_error *err)
{
	return error_set(err, OW_E_IO, "%s gave an answer that cannot be read", click->place);
}

static void add_slots(struct nodes *nodes, uint32_t shard, uint64_t weight)
{
	for (; weight && nodes->slot_count < SLOTS_MAX; weight--)
		nodes->slots[nodes->slot_count++] = shard;
}

/* Reads the rows of system.clusters: shard, weight, host, whether this node answers the query; ordered by shard. */
static ow_status read_nodes(struct nodes *nodes, const struct click *entry, struct str rest,
			    const struct ow_list *names, struct ow_error *err)
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
			       const struct push_options *options, struct ow_error *err)
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
		     struct mem *mem, struct ow_error *err)
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

static const struct plan_table *table_of(const struct plan *plan, struct str name)
{
	for (uint32_t i = 0; i < plan->table_count; i++)
		if (str_starts(name, STR("opwatch_")) &&
		    str_eq(str_skip(name, 8), str_from(plan->tables[i].relation->name)))
			return &plan->tables[i];
	return NULL;
}

/* Appends the condition of a push's rows: run = 'r' AND opwatch_push = 7. */
static ow_status quote_rows(const struct plan *plan, uint64_t push, struct buf *to,
			    struct ow_error *err)
{
	buf_puts(to, "run = ");
	click_quote(to, str_from(plan->run));
	buf_printf(to, " AND opwatch_push = toUInt64(%" PRIu64 ")", push);
	return buf_cstr(to) ? OW_OK : error_no_memory(err);
}

/* Asks for lines of table, batch, rows. The primary key begins with the run, so no other run is read. */
static ow_status ask_rows(const struct plan *plan, struct click *click, uint64_t push,
			  struct buf *answer, struct ow_error *err)
{
	struct buf text, rows;
	ow_status status;

	buf_init(&text, click->mem);
	buf_init(&rows, click->mem);
	status = quote_rows(plan, push, &rows, err);
	for (uint32_t i = 0; status == OW_OK && i < plan->table_count; i++) {
		const char *name = plan->tables[i].relation->name;

		buf_printf(&text,
			   "%sSELECT 'opwatch_%s' AS t, opwatch_batch, count() FROM opwatch_%s "
			   "WHERE %s "
			   "GROUP BY opwatch_batch",
			   i ? " UNION ALL " : "", name, name, buf_cstr(&rows));
	}
	if (status == OW_OK)
		status = text.failed ? error_no_memory(err)
				     : click_run(click, buf_str(&text), CLICK_REPEAT, answer, err);
	buf_release(&text);
	buf_release(&rows);
	return status;
}

ow_status nodes_count_batch(const struct plan *plan, uint32_t index, struct click *click,
			    uint64_t *rows, struct ow_error *err)
{
	const struct batch *batch = &plan->batches[index];
	struct buf answer, where;
	struct str line;
	ow_status status;

	buf_init(&answer, click->mem);
	buf_init(&where, click->mem);
	status = quote_rows(plan, plan->push, &where, err);
	if (status == OW_OK)
		status = click_runf(click, &answer, err,
				    "SELECT count() FROM opwatch_%s WHERE %s AND opwatch_batch = "
				    "toUInt32(%u)",
				    plan->tables[batch->table].relation->name, buf_cstr(&where),
				    batch->number);
	line = str_trim(buf_str(&answer));
	if (status == OW_OK && !click_field_u64(&line, rows))
		status = bad_answer(click, err);
	buf_release(&answer);
	buf_release(&where);
	return status;
}

ow_status nodes_list_batches(struct nodes *nodes, uint32_t index, const struct plan *plan,
			     struct click *click, uint32_t *strange, struct ow_error *err)
{
	struct node *node = &nodes->items[index];
	struct str rest, line, name;
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
	status = ask_rows(plan, click, plan->push, &answer, err);
	for (rest = buf_str(&answer); status == OW_OK && click_line(&rest, &line);) {
		const struct plan_table *table;
		uint32_t batch;

		if (!click_field(&line, &name) || !click_field_u64(&line, &number) ||
		    !click_field_u64(&line, &rows)) {
			status = bad_answer(click, err);
			break;
		}
		table = table_of(plan, name);
		if (!table)
			continue; /* a table that opwatch did not create */
		batch = table->batch_first + (uint32_t)MIN(number, UINT32_MAX / 2);
		if (number >= table->batch_count || nodes_shard(nodes, batch) != node->shard)
			(*strange)++;
		else
			node->rows[batch] = rows;
	}
	buf_release(&answer);
	return status;
}

/* time limit of a deletion: the server rewrites all parts that contain deleted rows */
#define DELETION_MS 3600000

static ow_status await_deletion(const char *table, struct click *click, struct ow_error *err)
{
	const struct http_options *http = &click->options.http;
	uint64_t began = click_now_ms(), left = 1;
	struct buf answer, database;
	ow_status status;

	buf_init(&answer, click->mem);
	buf_init(&database, click->mem);
	click_quote(&database, str_from(click->address.database));
	status = buf_cstr(&database) ? OW_OK : error_no_memory(err);
	for (long pause = 5; status == OW_OK && left; pause = MIN(2 * pause, 500)) {
		struct str line;

		status = click_runf(
			click, &answer, err,
			"SELECT count() FROM system.mutations WHERE NOT is_done AND database = "
			"%s AND table = 'opwatch_%s'",
			buf_cstr(&database), table);
		line = str_trim(buf_str(&answer));
		if (status == OW_OK && !click_field_u64(&line, &left))
			status = bad_answer(click, err);
		if (status != OW_OK || !left)
			break;
		if (http->keep_going && !http->keep_going(http->keep_going_arg))
			status = error_set(err, OW_E_INTERRUPTED, "interrupted");
		else if (click_now_ms() - began > DELETION_MS)
			status = error_set(
				err, OW_E_IO,
				"%s still deletes rows of an earlier push; push again when "
				"system.mutations says that it is done",
				click->place);
		nanosleep(&(struct timespec){ pause / 1000, pause % 1000 * 1000000 }, NULL);
	}
	buf_release(&answer);
	buf_release(&database);
	return status;
}

/* Deletes rows of a push; `which` is empty, or an additional condition that chooses a batch. */
static ow_status delete_rows(const struct plan *plan, const char *table, uint64_t push,
			     const char *which, struct click *click, struct ow_error *err)
{
	struct buf rows;
	ow_status status;

	buf_init(&rows, click->mem);
	status = quote_rows(plan, push, &rows, err);
	if (status == OW_OK)
		status = click_runf(click, NULL, err, "ALTER TABLE opwatch_%s DELETE WHERE %s%s",
				    table, buf_cstr(&rows), which);
	buf_release(&rows);
	return status;
}

ow_status nodes_drop_batch(const struct plan *plan, uint32_t index, struct click *click,
			   struct ow_error *err)
{
	const struct batch *batch = &plan->batches[index];
	uint64_t rows = 0;
	char which[64];

	OW_TRY(nodes_count_batch(plan, index, click, &rows, err));
	if (!rows)
		return OW_OK;
	snprintf(which, sizeof(which), " AND opwatch_batch = toUInt32(%u)", batch->number);
	OW_TRY(delete_rows(plan, plan->tables[batch->table].relation->name, plan->push, which,
			   click, err));
	return await_deletion(plan->tables[batch->table].relation->name, click, err);
}

/* The next table in the answer, each once: rows of a table are adjacent. */
static const struct plan_table *next_table(const struct plan *plan, struct str *rest,
					   const struct plan_table *last)
{
	struct str line, name;

	while (click_line(rest, &line)) {
		const struct plan_table *table =
			click_field(&line, &name) ? table_of(plan, name) : NULL;

		if (table && table != last)
			return table;
	}
	return NULL;
}

/* Starts all deletions before waiting for the first, because a deletion takes a second or more. */
ow_status nodes_drop(const struct plan *plan, uint64_t push, struct click *click,
		     struct ow_error *err)
{
	const struct plan_table *table = NULL;
	struct buf answer;
	struct str rest;
	ow_status status;

	buf_init(&answer, click->mem);
	status = ask_rows(plan, click, push, &answer, err);
	for (rest = buf_str(&answer); status == OW_OK && (table = next_table(plan, &rest, table));)
		status = delete_rows(plan, table->relation->name, push, "", click, err);
	for (rest = buf_str(&answer); status == OW_OK && (table = next_table(plan, &rest, table));)
		status = await_deletion(table->relation->name, click, err);
	buf_release(&answer);
	return status;
}

static ow_status count_running(struct click *click, const char *prefix, uint64_t *count,
			       struct ow_error *err)
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

ow_status nodes_await_inserts(struct click *click, const char *prefix, struct ow_error *err)
{
	uint64_t began = click_now_ms(), count = 0;
	struct ow_error ignored = { 0 };

	for (unsigned attempt = 1;; attempt++) {
		OW_TRY(count_running(click, prefix, &count, err));
		if (!count)
			return OW_OK;
		/* A user without the right to KILL QUERY waits until the insertions end. */
		(void)click_runf(click, NULL, &ignored,
				 "KILL QUERY WHERE query_id LIKE '%s%%' ASYNC", prefix);
		if (!click_pause(click, attempt, began))
			return error_set(err, OW_E_IO,
					 "%s still works on rows that were sent to it before; "
					 "push again when it is done",
					 click->place);
	}
}
