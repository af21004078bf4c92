/*
 * process.c: decides which process of which file gets which pid, and the label of each file. A pid that only one file
 * has is kept; others get a new number, if possible one that still shows the old: 5 becomes 305 in the fourth file. The
 * result depends on the order in which processes are met, so new ones are added in file order only. A file is labelled
 * with its rank, its step, both, or its name, whatever distinguishes all files.
 */
#include "merge/merge_int.h"

#include "base/vec.h"

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

/* Reads a pid: numbers and text of digits are the same, other text is kept as text, any other value is none. */
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
	/* the new pid lies after the ranges of all files */
	if (m->file_count < (size_t)(PID_MAX / 2 / p->stride))
		p->next = MAX(p->next, (int64_t)m->file_count * p->stride);
	for (size_t i = 0; i < p->count; i++)
		if (!assign(p, p->list[i]))
			return error_no_memory(m->err);
	p->numbered = true;
	return OW_OK;
}

static struct process *add(struct processes *p, const struct process *key, uint64_t hash)
{
	struct process *process = ARENA_NEW(&p->arena, struct process);

	if (!process || !vec_reserve(p->arena.mem, p->list, p->cap, p->count + 1))
		return NULL;
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

#define COMPONENTS_MAX 8 /* limit of path components that are used to distinguish equal names */

static bool same_letter(char a, char b)
{
	return a == b || (a >= 'A' && a <= 'Z' && (a | 0x20) == b);
}

/* The number after the last occurrence of a word in a name: rank3, rank-3, rank_3. */
static int64_t number_after(struct str name, const char *word)
{
	size_t len = strlen(word);
	int64_t found = NO_NUMBER;

	for (size_t i = 0; i + len < name.len; i++) {
		size_t k = 0, from;
		int64_t number;

		while (k < len && same_letter(name.ptr[i + k], word[k]))
			k++;
		if (k < len)
			continue;
		from = i + len;
		if (from < name.len && strchr("-_ .=", name.ptr[from]) && name.ptr[from])
			from++;
		for (k = from; k < name.len && name.ptr[k] >= '0' && name.ptr[k] <= '9';)
			k++;
		if (str_to_i64(str_make(name.ptr + from, k - from), &number))
			found = number;
	}
	return found;
}

/* The last `count` components of a path; '!' separates an archive from a member's name. */
static struct str last_components(struct str path, unsigned count)
{
	size_t at = path.len;

	while (at > 0 && count) {
		at--;
		if (path.ptr[at] == '/' || path.ptr[at] == '!')
			count--;
	}
	return str_skip(path, count ? 0 : at + 1);
}

void label_numbers(struct merge_file *file)
{
	static const char *const words[] = { "timeline", "iter", "iteration", "step" };
	struct str name = last_components(str_from(file->path), 1);

	file->name_rank = number_after(name, "rank");
	file->step = NO_NUMBER;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		int64_t number = number_after(name, words[i]);

		if (number != NO_NUMBER)
			file->step = number;
	}
}

static int64_t rank_of(const struct merge_file *file)
{
	return file->facts.rank != NO_NUMBER ? file->facts.rank : file->name_rank;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp((*(struct merge_file *const *)a)->name,
		       (*(struct merge_file *const *)b)->name);
}

static int by_label(const void *a, const void *b)
{
	return str_cmp((*(struct merge_file *const *)a)->label,
		       (*(struct merge_file *const *)b)->label);
}

/* Whether all files differ in this text; `order` has room for one pointer for each file. */
static bool all_differ(struct merge *m, struct merge_file **order,
		       int (*compare)(const void *, const void *))
{
	memcpy(order, m->files, m->file_count * sizeof(*order));
	qsort(order, m->file_count, sizeof(*order), compare);
	for (size_t i = 1; i < m->file_count; i++)
		if (compare(&order[i - 1], &order[i]) == 0)
			return false;
	return true;
}

static struct str without_ending(struct str name)
{
	static const struct str endings[] = { STR(".gz"),   STR(".zst"),   STR(".zstd"),
					      STR(".json"), STR(".trace"), STR(".pt"),
					      STR(".txt") };

	for (size_t i = 0; i < ARRAY_COUNT(endings); i++)
		if (name.len > endings[i].len && str_ends(name, endings[i])) {
			name.len -= endings[i].len;
			i = SIZE_MAX; /* start again with the first file */
		}
	return name;
}

static ow_status choose_names(struct merge *m, struct merge_file **order)
{
	for (unsigned count = 1; count <= COMPONENTS_MAX; count++) {
		for (size_t i = 0; i < m->file_count; i++)
			m->files[i]->name = last_components(str_from(m->files[i]->path), count);
		if (all_differ(m, order, by_name))
			return OW_OK;
	}
	for (size_t i = 0; i < m->file_count; i++) { /* the same file was given twice */
		const char *name = arena_printf(&m->arena, "%s (%zu)", m->files[i]->path, i + 1);

		if (!name)
			return error_no_memory(m->err);
		m->files[i]->name = str_from(name);
	}
	return OW_OK;
}

static int width_of(struct merge *m, bool ranks)
{
	int width = 1;

	for (size_t i = 0; i < m->file_count; i++) {
		int64_t number = ranks ? rank_of(m->files[i]) : m->files[i]->step;
		int digits = snprintf(NULL, 0, "%" PRId64, number);

		width = MAX(width, digits);
	}
	return width;
}

/* Labels the files by rank, step or both; false when these are unknown for some file or do not differ. */
static ow_status try_numbers(struct merge *m, struct merge_file **order, bool ranks, bool steps,
			     bool *good)
{
	int rank_width, step_width;

	*good = false;
	for (size_t i = 0; i < m->file_count; i++)
		if ((ranks && rank_of(m->files[i]) == NO_NUMBER) ||
		    (steps && m->files[i]->step == NO_NUMBER))
			return OW_OK;
	rank_width = width_of(m, true);
	step_width = width_of(m, false);
	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];
		char rank[48] = "", step[48] = "";
		const char *label;

		if (ranks)
			snprintf(rank, sizeof(rank), "rank %0*" PRId64, rank_width, rank_of(file));
		if (steps)
			snprintf(step, sizeof(step), "%sstep %0*" PRId64, ranks ? " " : "",
				 step_width, file->step);
		label = arena_printf(&m->arena, "%s%s", rank, step);
		if (!label)
			return error_no_memory(m->err);
		file->label = str_from(label);
	}
	*good = all_differ(m, order, by_label);
	return OW_OK;
}

static ow_status choose_labels(struct merge *m, struct merge_file **order)
{
	static const struct {
		bool ranks, steps;
	} kinds[] = { { true, false }, { false, true }, { true, true } };
	bool good;

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		OW_TRY(try_numbers(m, order, kinds[i].ranks, kinds[i].steps, &good));
		if (good)
			return OW_OK;
	}
	for (size_t i = 0; i < m->file_count; i++)
		m->files[i]->label = without_ending(m->files[i]->name);
	if (!all_differ(m, order, by_label))
		for (size_t i = 0; i < m->file_count; i++)
			m->files[i]->label = m->files[i]->name;
	return OW_OK;
}

ow_status labels_choose(struct merge *m)
{
	size_t bytes = m->file_count * sizeof(struct merge_file *);
	struct merge_file **order = mem_alloc(m->mem, bytes);
	ow_status status;

	if (!order)
		return error_no_memory(m->err);
	status = choose_names(m, order);
	if (status == OW_OK && m->several && m->options->labels)
		status = choose_labels(m, order);
	mem_free(m->mem, order, bytes);
	return status;
}
