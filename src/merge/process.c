/*
 * process.c: which process of which file gets which pid. A pid that no other file has stays; others get a
 * new number, if possible one that still shows the old: 5 becomes 305 in the fourth file. The order in which
 * processes are met decides, so new ones are added in file order only.
 */
#include "merge/merge_int.h"

#define PID_MAX INT32_MAX /* viewers keep pids in 32 bits */

void processes_init(struct processes *p, struct mem *mem)
{
	*p = (struct processes){ .stride = 100 };
	pthread_mutex_init(&p->lock, NULL);
	arena_init(&p->arena, mem);
	map_init(&p->map, mem);
	map_init(&p->taken, mem);
}

void processes_release(struct processes *p)
{
	struct mem *mem = p->arena.mem;

	mem_free(mem, p->list, p->cap * sizeof(*p->list));
	map_release(&p->map);
	map_release(&p->taken);
	arena_release(&p->arena);
	pthread_mutex_destroy(&p->lock);
}

/* ---- keys ---- */

/* What a pid is: numbers and text of digits are the same, other text is text, anything else is none. */
static void read_pid(const struct json_value *value, struct process *to)
{
	struct str text = json_text(*value);

	to->kind = PID_NONE;
	to->quoted = value->kind == JSON_STRING;
	to->text = (struct str){ "", 0 };
	to->value = 0;
	switch (value->kind) {
	case JSON_NUMBER:
		to->kind = json_decimal(text, 0, &to->value) == JSON_EXACT ? PID_INT : PID_TEXT;
		break;
	case JSON_STRING:
		to->kind = str_to_i64(text, &to->value) ? PID_INT : PID_TEXT;
		break;
	case JSON_LITERAL:
		to->kind = str_eq(text, STR("null")) ? PID_NONE : PID_TEXT;
		break;
	default:
		break;
	}
	if (to->kind == PID_TEXT) {
		to->text = text;
		to->value = 0;
	}
}

static uint64_t hash_pid(const struct process *p)
{
	return map_hash_u64(p->kind == PID_TEXT ? str_hash(p->text) : (uint64_t)p->value,
			    (uint64_t)p->kind + 1);
}

static bool same_pid(const struct process *a, const struct process *b)
{
	return a->kind == b->kind && a->value == b->value && str_eq(a->text, b->text);
}

static struct process *find(const struct processes *p, const struct process *key, uint64_t hash)
{
	for (struct map_iter it = map_find(&p->map, hash); it.value; it = map_next(&p->map, it)) {
		struct process *found = p->list[it.value - 1];

		if (found->file == key->file && same_pid(found, key))
			return found;
	}
	return NULL;
}

/* ---- new numbers ---- */

static bool is_taken(const struct processes *p, const struct process *key)
{
	uint64_t hash = hash_pid(key);

	for (struct map_iter it = map_find(&p->taken, hash); it.value;
	     it = map_next(&p->taken, it)) {
		const struct process *found = p->list[it.value - 1];
		struct process now = { .kind = PID_INT, .value = found->pid, .text = { "", 0 } };

		if (same_pid(found->changed ? &now : found, key))
			return true;
	}
	return false;
}

static int64_t new_pid(struct processes *p, const struct process *of)
{
	struct process key = { .kind = PID_INT, .text = { "", 0 } };

	if (of->kind == PID_INT && of->value >= 0 && of->value < p->stride &&
	    of->file < (PID_MAX - of->value) / p->stride) {
		key.value = of->value + (int64_t)of->file * p->stride;
		if (!is_taken(p, &key))
			return key.value;
	}
	do
		key.value = p->next++;
	while (is_taken(p, &key));
	return key.value;
}

static bool assign(struct processes *p, struct process *process)
{
	struct process now;

	process->changed = is_taken(p, process);
	if (process->changed) {
		process->pid = new_pid(p, process);
		process->written_len = (uint8_t)snprintf(process->written, sizeof(process->written),
							 "%" PRId64, process->pid);
	}
	now = *process;
	if (now.changed) {
		now.kind = PID_INT;
		now.value = now.pid;
		now.text = (struct str){ "", 0 };
	}
	return map_add(&p->taken, hash_pid(&now), process->id + 1);
}

ow_status processes_number(struct merge *m)
{
	struct processes *p = &m->processes;
	int64_t most = 0;

	for (size_t i = 0; i < p->count; i++)
		if (p->list[i]->kind == PID_INT && p->list[i]->value < PID_MAX / 2)
			most = MAX(most, p->list[i]->value);
	while (p->stride <= most)
		p->stride *= 10;
	p->next = most + 1;
	if (m->file_count < (size_t)(PID_MAX / 2 / p->stride)) /* behind all of the regular ones */
		p->next = MAX(p->next, (int64_t)m->file_count * p->stride);
	for (size_t i = 0; i < p->count; i++)
		if (!assign(p, p->list[i]))
			return error_no_memory(m->err);
	p->numbered = true;
	return OW_OK;
}

/* ---- the table ---- */

static struct process *add(struct processes *p, const struct process *key, uint64_t hash)
{
	struct process *process = ARENA_NEW(&p->arena, struct process);
	void *list = p->list;

	if (!process || !mem_grow(p->arena.mem, &list, &p->cap, p->count + 1, sizeof(*p->list)))
		return NULL;
	p->list = list;
	*process = *key;
	process->text = arena_str(&p->arena, key->text);
	process->id = (uint32_t)p->count;
	if (!process->text.ptr || !map_add(&p->map, hash, process->id + 1))
		return NULL;
	p->list[p->count++] = process;
	return p->numbered && !assign(p, process) ? NULL : process;
}

struct process *process_of(struct merge *m, uint32_t file, const struct json_value *pid,
			   bool may_add)
{
	struct processes *p = &m->processes;
	struct process key = { .file = file }, *found;
	uint64_t hash;

	read_pid(pid, &key);
	hash = map_hash_u64(hash_pid(&key), file);
	pthread_mutex_lock(&p->lock);
	found = find(p, &key, hash);
	if (!found && may_add)
		found = add(p, &key, hash);
	pthread_mutex_unlock(&p->lock);
	return found;
}
