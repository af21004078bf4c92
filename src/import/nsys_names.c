/*
 * nsys_names.c: what the rows of an export refer to: texts by their number, threads, streams, processes, domains. All
 * are noted while rows are read; texts are fetched afterwards, those that were noted and no others.
 */
#include "import/nsys_int.h"

#include "import/repaired_text.h"

ow_status nsys_no_memory(struct nsys *n)
{
	return import_no_memory(n->ctx);
}

/* ---- texts ---- */

static uint32_t find_name(const struct nsys *n, int64_t id, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->name_map, hash); it.value;
	     it = map_next(&n->name_map, it))
		if (n->names[it.value].id == id)
			return it.value;
	return 0;
}

uint32_t nsys_name(struct nsys *n, int64_t id)
{
	uint32_t *recent = &n->recent_names[(uint64_t)id % ARRAY_COUNT(n->recent_names)], place;
	uint64_t hash;

	if (OW_LIKELY(*recent && n->names[*recent].id == id))
		return *recent;
	hash = map_hash_u64((uint64_t)id, 1);
	place = find_name(n, id, hash);
	if (place)
		return *recent = place;
	if (n->name_count >= NSYS_TEXT - 1 ||
	    NSYS_GROW(n, names, name_cap, n->name_count + 1) != OW_OK)
		return 0;
	n->names[n->name_count] = (struct nsys_name){ .id = id };
	if (!map_add(&n->name_map, hash, (uint32_t)n->name_count)) {
		nsys_no_memory(n);
		return 0;
	}
	*recent = (uint32_t)n->name_count;
	return (uint32_t)n->name_count++;
}

str_id nsys_utf8(struct nsys *n, struct str text)
{
	return OW_LIKELY(utf8_valid(text)) ? builder_str(n->b, text) : repaired_text(n->b, text);
}

uint32_t nsys_text(struct nsys *n, struct str text)
{
	return nsys_utf8(n, text).v | NSYS_TEXT;
}

/* Only the numbers are looked at, until one is wanted. */
ow_status nsys_fetch_names(struct nsys *n)
{
	static const char *const columns[] = { "id", "value" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "StringIds", columns, 2);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		int64_t id = sqlite_int(&rows, 0);
		uint32_t place = find_name(n, id, map_hash_u64((uint64_t)id, 1));

		if (!place)
			continue;
		n->names[place].text = nsys_utf8(n, sqlite_text(&rows, 1));
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

str_id nsys_string(const struct nsys *n, uint32_t name)
{
	if (name & NSYS_TEXT)
		return (str_id){ name & ~NSYS_TEXT };
	return n->names[name].text;
}

/* ---- lanes ---- */

static bool same_lane(const struct nsys_lane *a, const struct nsys_lane *b)
{
	return a->number == b->number && a->process == b->process && a->device == b->device &&
	       a->context == b->context && a->kind == b->kind;
}

static uint64_t hash_lane(const struct nsys_lane *key)
{
	return map_hash_u64((uint64_t)key->process ^ (uint64_t)key->number << 8 ^ key->kind,
			    (uint64_t)key->device << 32 ^ (uint64_t)key->context);
}

static uint32_t find_lane(const struct nsys *n, const struct nsys_lane *key, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->lane_map, hash); it.value;
	     it = map_next(&n->lane_map, it))
		if (same_lane(&n->lanes[it.value], key))
			return it.value;
	return 0;
}

uint32_t nsys_lane(struct nsys *n, const struct nsys_lane *key)
{
	uint32_t *last = &n->last_lane[key->kind], found;
	uint64_t hash;

	if (OW_LIKELY(*last && same_lane(&n->lanes[*last], key)))
		return *last;
	hash = hash_lane(key);
	found = find_lane(n, key, hash);
	if (found)
		return *last = found;
	if (!nsys_process(n, key->process) ||
	    NSYS_GROW(n, lanes, lane_cap, n->lane_count + 1) != OW_OK)
		return 0;
	n->lanes[n->lane_count] = *key;
	n->lanes[n->lane_count].rank = INT64_MAX;
	if (!map_add(&n->lane_map, hash, (uint32_t)n->lane_count)) {
		nsys_no_memory(n);
		return 0;
	}
	*last = (uint32_t)n->lane_count++;
	return *last;
}

static struct nsys_lane thread_key(enum nsys_lane_kind kind, int64_t global_tid)
{
	return (struct nsys_lane){ .kind = (uint8_t)kind,
				   .process = nsys_process_of(global_tid),
				   .number = nsys_tid(global_tid) };
}

uint32_t nsys_thread_lane(struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid)
{
	struct nsys_lane key = thread_key(kind, global_tid);

	return nsys_lane(n, &key);
}

uint32_t nsys_find_thread(const struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid)
{
	struct nsys_lane key = thread_key(kind, global_tid);

	return find_lane(n, &key, hash_lane(&key));
}

/* ---- processes and domains ---- */

static uint64_t hash_process(int64_t global_pid)
{
	return map_hash_u64((uint64_t)global_pid, 2);
}

struct nsys_process *nsys_find_process(const struct nsys *n, int64_t global_pid)
{
	for (struct map_iter it = map_find(&n->process_map, hash_process(global_pid)); it.value;
	     it = map_next(&n->process_map, it))
		if (n->processes[it.value].id == global_pid)
			return &n->processes[it.value];
	return NULL;
}

struct nsys_process *nsys_process(struct nsys *n, int64_t global_pid)
{
	struct nsys_process *found;

	if (OW_LIKELY(n->last_process && n->processes[n->last_process].id == global_pid))
		return &n->processes[n->last_process];
	found = nsys_find_process(n, global_pid);
	if (found) {
		n->last_process = (uint32_t)(found - n->processes);
		return found;
	}
	if (NSYS_GROW(n, processes, process_cap, n->process_count + 1) != OW_OK)
		return NULL;
	n->processes[n->process_count] =
		(struct nsys_process){ .id = global_pid, .lowest = UINT32_MAX };
	if (!map_add(&n->process_map, hash_process(global_pid), (uint32_t)n->process_count)) {
		nsys_no_memory(n);
		return NULL;
	}
	n->last_process = (uint32_t)n->process_count++;
	return &n->processes[n->last_process];
}

/* Number 0 is the default, and what has no more place. */
uint16_t nsys_domain(struct nsys *n, int64_t process, int64_t id)
{
	uint64_t hash = map_hash_u64((uint64_t)process, (uint64_t)id);

	if (!id)
		return 0;
	for (struct map_iter it = map_find(&n->domain_map, hash); it.value;
	     it = map_next(&n->domain_map, it))
		if (n->domains[it.value].id == id && n->domains[it.value].process == process)
			return (uint16_t)it.value;
	if (n->domain_count > UINT16_MAX ||
	    NSYS_GROW(n, domains, domain_cap, n->domain_count + 1) != OW_OK)
		return 0;
	n->domains[n->domain_count] = (struct nsys_domain){ .process = process, .id = id };
	if (!map_add(&n->domain_map, hash, (uint32_t)n->domain_count)) {
		nsys_no_memory(n);
		return 0;
	}
	return (uint16_t)n->domain_count++;
}
