/*
 * view_functions.c: the view `functions`: sampled functions by their own cost or, with the style "total", with everything that they call. The
 * command op shows it when a model has only samples. The first half adds up functions, also for the verdict: stacks are added up
 * first, so each stack is walked once.
 */
#include "analyze/samples/samples.h"

#include "base/vec.h"

static uint32_t find_function(struct functions *f, uint32_t frame)
{
	const struct model *m = f->m;
	struct str name = sample_frame_name(m, (frame_id){ frame }, f->scratch);
	uint32_t module = COLUMN_GET(m->frame.module, frame).v;
	uint64_t hash = map_hash_u64(str_hash(name), module);

	if (!name.ptr)
		return 0;
	for (struct map_iter it = map_find(&f->map, hash); it.value; it = map_next(&f->map, it))
		if (str_eq(f->items[it.value].name, name) &&
		    COLUMN_GET(m->frame.module, f->items[it.value].frame).v == module)
			return it.value;
	if (!vec_reserve(m->mem, f->items, f->cap, f->count + 1))
		return 0;
	if (!map_add(&f->map, hash, (uint32_t)f->count))
		return 0;
	f->items[f->count] = (struct function){ .frame = frame, .name = name };
	return (uint32_t)f->count++;
}

static uint32_t function_of(struct functions *f, uint32_t frame)
{
	if (!f->of_frame[frame])
		f->of_frame[frame] = find_function(f, frame);
	return f->of_frame[frame];
}

/* Adds samples without a stack to an unknown function. */
static bool add_without_stack(struct functions *f, int64_t self)
{
	uint32_t function;

	if (!self)
		return true;
	function = function_of(f, 0);
	f->all = sum_add(f->all, samples_size(self));
	f->items[function].self = sum_add(f->items[function].self, self);
	f->items[function].total = sum_add(f->items[function].total, self);
	return function != 0;
}

/* Finds stacks of samples whose weight was set to 0, so that their functions are shown, too. NULL if memory runs
 * out. */
static bool *stacks_without_weight(const struct functions *f)
{
	const struct sample_table *s = &f->m->sample;
	bool *seen = ARENA_ARRAY(f->scratch, bool, f->m->stack.count);

	for (uint32_t i = 1; seen && i < s->count; i++)
		if (OW_UNLIKELY(!s->weight[i]) && sample_counts(&f->choice, i))
			seen[s->stack[i].v] = true;
	return seen;
}

/* Own costs, and the functions in the order in which stacks name them. A stack whose caller is used ends the way out:
 * all further callers are used, too. */
static bool add_own_costs(struct functions *f, const int64_t *self, const bool *seen, bool *used)
{
	const struct stack_table *s = &f->m->stack;

	for (uint32_t i = 1; i < s->count; i++) {
		struct function *item;

		if (!self[i] && !seen[i])
			continue;
		for (uint32_t at = i; at && !used[at]; at = s->parent[at].v) {
			used[at] = true;
			if (!function_of(f, s->frame[at].v))
				return false;
		}
		f->all = sum_add(f->all, samples_size(self[i]));
		item = &f->items[function_of(f, s->frame[i].v)];
		item->self = sum_add(item->self, self[i]);
	}
	return true;
}

static bool add_stacks(struct functions *f, const int64_t *self)
{
	bool *used = ARENA_ARRAY(f->scratch, bool, f->m->stack.count);
	bool *seen = stacks_without_weight(f);
	int64_t *totals;

	if (!used || !seen || !add_own_costs(f, self, seen, used))
		return false;
	totals = samples_totals(f->m, self, used, f->of_frame, f->count, f->scratch);
	for (size_t i = 1; totals && i < f->count; i++)
		f->items[i].total = totals[i];
	return totals && add_without_stack(f, self[0]);
}

static int by_self(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return str_cmp(x->name, y->name);
}

static int by_total(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->total == y->total ? by_self(a, b) : x->total > y->total ? -1 : 1;
}

void sample_functions_sort(struct functions *f, bool by_totals)
{
	if (f->count > 1)
		qsort(f->items + 1, f->count - 1, sizeof(*f->items),
		      by_totals ? by_total : by_self);
}

ow_status sample_functions_make(struct functions *f, struct ow_error *err)
{
	int64_t *self = samples_by_stack(&f->choice, f->scratch);

	map_init(&f->map, f->m->mem);
	f->of_frame = ARENA_ARRAY(f->scratch, uint32_t, f->m->frame.count);
	if (!self || !f->of_frame || !vec_reserve(f->m->mem, f->items, f->cap, 64))
		return error_no_memory(err);
	f->count = 1;
	return add_stacks(f, self) ? OW_OK : error_no_memory(err);
}

void sample_functions_release(struct functions *f)
{
	mem_free(f->m->mem, f->items, f->cap * sizeof(*f->items));
	map_release(&f->map);
}

enum {
	COLUMN_NAME,
	COLUMN_SELF, /* the first of four cost columns */
	COLUMN_MODULE = COLUMN_SELF + 4,
	COLUMN_FILE,
	COLUMN_METRIC,
	COLUMN_UNIT
};

static void add_columns(struct table *out, enum column_unit unit)
{
	table_add_column(out, "name", "function", TYPE_TEXT, UNIT_NONE);
	samples_add_cost_columns(out, unit);
	table_add_column(out, "module", "module", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "metric", "metric", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "unit", "unit", TYPE_TEXT, UNIT_NONE);
	out->columns[COLUMN_METRIC].for_programs = out->columns[COLUMN_UNIT].for_programs = true;
}

static void add_rows(struct functions *f, const struct view_options *options, struct table *out)
{
	const struct model *m = f->m;
	uint32_t limit = options->limit ? options->limit : UINT32_MAX;

	for (size_t i = 1; i < f->count && out->row_count < limit; i++) {
		const struct function *item = &f->items[i];
		uint32_t row = table_add_row(out, 0);

		table_set_text(out, row, COLUMN_NAME, item->name);
		samples_set_cost(out, row, COLUMN_SELF, item->self, item->total, f->all);
		table_set_model_text(out, row, COLUMN_MODULE,
				     model_str(m, COLUMN_GET(m->frame.module, item->frame)));
		table_set_model_text(out, row, COLUMN_FILE,
				     model_str(m, m->frame.file[item->frame]));
		table_set_model_text(out, row, COLUMN_METRIC, model_str(m, f->choice.name));
		table_set_model_text(out, row, COLUMN_UNIT, model_str(m, f->choice.unit));
	}
}

/* Returns whether the style contains the word "total". */
static bool wants_totals(const struct view_options *options)
{
	struct str rest = str_from(options->style ? options->style : ""), word;

	while (str_split(&rest, ',', &word))
		if (str_eq(word, STR("total")))
			return true;
	return false;
}

static ow_status run_functions_view(struct model *m, const struct view_options *options,
				    struct table *out, struct ow_error *err)
{
	struct arena scratch;
	struct functions f = { .m = m, .scratch = &scratch };
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	arena_init(&scratch, m->mem);
	status = samples_choose(m, options, &scratch, &f.choice, err);
	if (status == OW_OK) {
		status = sample_functions_make(&f, err);
		add_columns(out, f.choice.shown_as);
		sample_functions_sort(&f, wants_totals(options));
		if (status == OW_OK) {
			add_rows(&f, options, out);
			status = samples_add_footer(&f.choice, options, out, err);
		}
		sample_functions_release(&f);
	}
	arena_release(&scratch);
	return status;
}

const struct view view_functions = {
	.name = "functions",
	.summary = "sampled functions by their own cost and their total cost",
	.uses = VIEW_USES_PART | VIEW_USES_METRIC | VIEW_USES_STYLE,
	.run = run_functions_view,
};
