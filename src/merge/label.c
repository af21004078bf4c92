/*
 * label.c: what the processes of a file are labelled with: its rank, its step, both, or its name, whichever
 * tells all files apart. Numbers are padded, so that viewers, which sort by name, keep the order.
 */
#include "merge/merge_int.h"

#define COMPONENTS_MAX 8 /* of a path, to tell equal names apart */

/* ---- numbers in names ---- */

static bool same_letter(char a, char b)
{
	return a == b || (a >= 'A' && a <= 'Z' && (a | 0x20) == b);
}

/* The digits behind the last place where the word stands: rank3, rank-3, rank_3. */
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

/* The last `count` components of a path; '!' stands before the name in an archive. */
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

/* ---- telling apart ---- */

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

/* Whether all files differ in this; *order is scratch for as many pointers. */
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
			i = SIZE_MAX; /* from the start */
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
	for (size_t i = 0; i < m->file_count; i++) { /* the same file twice */
		const char *name = arena_printf(&m->arena, "%s (%zu)", m->files[i]->path, i + 1);

		if (!name)
			return error_no_memory(m->err);
		m->files[i]->name = str_from(name);
	}
	return OW_OK;
}

/* ---- labels ---- */

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

/* Labels of ranks, steps or both; false when they are not known of all files or do not differ. */
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
