/*
 * sample_lines.c: the view `lines` for sampled stacks, and which frames are the user's own code. A sample counts for the innermost line
 * outside of libraries, because that line can be found and changed. The total of a line counts each sample whose stack contains it once.
 * Called by view_lines.c and verdict.c.
 */
#include "analyze/samples/samples.h"

#include "base/vec.h"

/* Detects the folders of installed packages and the names that interpreters use for their own
 * code. */
bool line_is_library(struct str file)
{
	static const char *const places[] = { "/site-packages/",
					      "/dist-packages/",
					      "/tensorflow/python/",
					      "/tensorflow_core/",
					      "/lib/python",
					      "<frozen ",
					      "<string>",
					      "<built-in",
					      "/torch/",
					      "/jax/" };

	static const char *const packages[] = { "torch/", "torchvision/", "jax/", "tensorflow/",
						"keras/" };

	for (size_t i = 0; i < ARRAY_COUNT(places); i++)
		if (str_has(file, str_from(places[i])))
			return true;
	/* paths in traces begin with the name of the package */
	for (size_t i = 0; i < ARRAY_COUNT(packages); i++)
		if (str_starts(file, str_from(packages[i])))
			return true;
	return !file.len;
}

/* Computes own frames in one pass, because parents come before their children in the table. */
uint32_t *line_own_frames(const struct model *m, struct arena *scratch)
{
	uint32_t *own = ARENA_ARRAY(scratch, uint32_t, m->stack.count);
	uint8_t *library = ARENA_ARRAY(scratch, uint8_t, m->frame.count);

	if (!own || !library)
		return NULL;
	for (uint32_t i = 1; i < m->frame.count; i++)
		library[i] = line_is_library(model_str(m, m->frame.file[i]));
	for (uint32_t i = 1; i < m->stack.count; i++) {
		uint32_t frame = m->stack.frame[i].v, parent = m->stack.parent[i].v;
		uint32_t outer = parent < i ? own[parent] : 0;

		own[i] = library[frame] && outer && !library[outer] ? outer : frame;
	}
	return own;
}

enum {
	COLUMN_NAME,
	COLUMN_SELF, /* the first of four cost columns */
	COLUMN_FILE = COLUMN_SELF + 4,
	COLUMN_LINE,
	COLUMN_FUNCTION,
	COLUMN_MODULE
};

struct sample_line {
	uint32_t frame; /* one of the frames of this line */
	int64_t self, total;
};

struct sample_lines {
	struct model *m;
	struct sample_line *items; /* lines, from index 1 */
	size_t count, cap;
	struct map map;
	/* for each frame: its line; frames of one line differ in their address */
	uint32_t *of_frame;
	int64_t all;
};

static bool same_line(const struct frame_table *f, uint32_t a, uint32_t b)
{
	return f->file[a].v == f->file[b].v && f->line[a] == f->line[b] &&
	       f->function[a].v == f->function[b].v &&
	       COLUMN_GET(f->module, a).v == COLUMN_GET(f->module, b).v;
}

static uint32_t line_of(struct sample_lines *l, uint32_t frame)
{
	const struct frame_table *f = &l->m->frame;
	uint64_t hash =
		map_hash_u64((uint64_t)f->file[frame].v << 32 | (uint32_t)f->line[frame],
			     (uint64_t)f->function[frame].v << 32 | COLUMN_GET(f->module, frame).v);

	if (l->of_frame[frame])
		return l->of_frame[frame];
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (same_line(f, l->items[it.value].frame, frame))
			return l->of_frame[frame] = it.value;
	if (!vec_reserve(l->m->mem, l->items, l->cap, MAX(l->count, 1) + 1))
		return 0;
	l->count = MAX(l->count, 1);
	if (!map_add(&l->map, hash, (uint32_t)l->count))
		return 0;
	l->items[l->count] = (struct sample_line){ .frame = frame };
	return l->of_frame[frame] = (uint32_t)l->count++;
}

/* Adds the own cost of each sample to its line, as view_functions.c does for functions. */
static bool add_own_costs(struct sample_lines *l, const int64_t *self, const uint32_t *own,
			  bool *used)
{
	const struct stack_table *s = &l->m->stack;

	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t line = self[i] ? line_of(l, own[i]) : 0;

		if (!self[i])
			continue;
		if (!line)
			return false;
		l->items[line].self = sum_add(l->items[line].self, self[i]);
		l->all = sum_add(l->all, samples_size(self[i]));
		for (uint32_t at = i; at && !used[at]; at = s->parent[at].v) {
			used[at] = true;
			if (!line_of(l, s->frame[at].v))
				return false;
		}
	}
	return true;
}

static bool add_stacks(struct sample_lines *l, const int64_t *self, const uint32_t *own,
		       struct arena *scratch)
{
	bool *used = ARENA_ARRAY(scratch, bool, l->m->stack.count);
	int64_t *totals;

	if (!used || !add_own_costs(l, self, own, used))
		return false;
	totals = samples_totals(l->m, self, used, l->of_frame, MAX(l->count, 1), scratch);
	for (size_t i = 1; totals && i < l->count; i++)
		l->items[i].total = totals[i];
	return totals != NULL;
}

int frame_cmp(const struct model *m, uint32_t a, uint32_t b)
{
	int order = str_cmp(model_str(m, m->frame.file[a]), model_str(m, m->frame.file[b]));

	if (order)
		return order;
	if (m->frame.line[a] != m->frame.line[b])
		return m->frame.line[a] < m->frame.line[b] ? -1 : 1;
	return str_cmp(model_str(m, m->frame.function[a]), model_str(m, m->frame.function[b]));
}

static int by_self(const void *a, const void *b, void *arg)
{
	const struct sample_line *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return frame_cmp(arg, x->frame, y->frame);
}

static void add_columns(struct table *out, enum column_unit unit)
{
	table_add_column(out, "name", "line", TYPE_TEXT, UNIT_NONE);
	samples_add_cost_columns(out, unit);
	table_add_column(out, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "line", "number", TYPE_INT, UNIT_NONE);
	table_add_column(out, "function", "function", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "module", "module", TYPE_TEXT, UNIT_NONE);
	out->columns[COLUMN_LINE].for_programs = out->columns[COLUMN_FUNCTION].for_programs = true;
}

void own_line_name(const struct model *m, uint32_t frame, char *to, size_t size)
{
	struct str file = model_str(m, m->frame.file[frame]);
	struct str function = model_str(m, m->frame.function[frame]);
	size_t slash = str_rfind_char(file, '/');
	struct str base = slash == STR_NONE ? file : str_skip(file, slash + 1);

	if (base.len && m->frame.line[frame])
		snprintf(to, size, "%.*s:%d %.*s", STR_ARG(base), (int)m->frame.line[frame],
			 STR_ARG(function));
	else if (base.len)
		snprintf(to, size, "%.*s %.*s", STR_ARG(base), STR_ARG(function));
	else
		snprintf(to, size, "%.*s", STR_ARG(function.len ? function : STR("[unknown]")));
}

static void add_row(const struct sample_lines *l, const struct sample_line *item, struct table *out)
{
	const struct model *m = l->m;
	const struct frame_table *f = &m->frame;
	struct str file = model_str(m, f->file[item->frame]);
	struct str function = model_str(m, f->function[item->frame]);
	uint32_t row = table_add_row(out, 0);
	char name[512];

	own_line_name(m, item->frame, name, sizeof(name));
	table_set_text(out, row, COLUMN_NAME, str_from(name));
	samples_set_cost(out, row, COLUMN_SELF, item->self, item->total, l->all);
	table_set_model_text(out, row, COLUMN_FILE, file);
	table_set_int(out, row, COLUMN_LINE, f->line[item->frame]);
	table_set_model_text(out, row, COLUMN_FUNCTION, function);
	table_set_model_text(out, row, COLUMN_MODULE,
			     model_str(m, COLUMN_GET(f->module, item->frame)));
}

static ow_status collect_lines(struct sample_lines *l, const struct view_options *options,
			       struct arena *scratch, struct table *out, struct ow_error *err)
{
	struct sample_choice choice;
	uint32_t *own, limit = options->limit ? options->limit : UINT32_MAX;
	int64_t *self;

	OW_TRY(samples_choose(l->m, options, scratch, &choice, err));
	self = samples_by_stack(&choice, scratch);
	own = line_own_frames(l->m, scratch);
	l->of_frame = ARENA_ARRAY(scratch, uint32_t, l->m->frame.count);
	if (!self || !own || !l->of_frame || !add_stacks(l, self, own, scratch))
		return error_no_memory(err);
	add_columns(out, choice.shown_as);
	if (l->count > 1)
		qsort_r(l->items + 1, l->count - 1, sizeof(*l->items), by_self, (void *)l->m);
	for (size_t i = 1; i < l->count && out->row_count < limit; i++)
		add_row(l, &l->items[i], out);
	return samples_add_footer(&choice, options, out, err);
}

ow_status sample_lines_run(struct model *m, const struct view_options *options, struct table *out,
			   struct ow_error *err)
{
	struct sample_lines l = { .m = m };
	struct arena scratch;
	ow_status status;

	arena_init(&scratch, m->mem);
	map_init(&l.map, m->mem);
	status = collect_lines(&l, options, &scratch, out, err);
	mem_free(m->mem, l.items, l.cap * sizeof(*l.items));
	map_release(&l.map);
	arena_release(&scratch);
	return status;
}
