/*
 * account.c: prepares the options of the four tfprof views and adds up hierarchies (account.h). Only metrics that are selected, sorted by or
 * tested are computed. The default minimum 0 hides negative totals, so it is tested, but only if a column can be negative.
 */
#include "analyze/tfprof/account.h"

static const uint32_t select_metrics[SELECT_COUNT] = {
	METRIC_BIT(METRIC_ACCELERATOR_MICROS),
	METRIC_BIT(METRIC_BYTES),
	METRIC_BIT(METRIC_CPU_MICROS),
	0, /* device */
	METRIC_BIT(METRIC_FLOAT_OPS),
	0, /* input_shapes */
	METRIC_BIT(METRIC_MICROS) | METRIC_BIT(METRIC_ACCELERATOR_MICROS) |
		METRIC_BIT(METRIC_CPU_MICROS),
	METRIC_BIT(METRIC_RUN_COUNT) | METRIC_BIT(METRIC_DEFINITION_COUNT),
	0, /* op_types */
	METRIC_BIT(METRIC_OUTPUT_BYTES),
	METRIC_BIT(METRIC_PARAMS),
	METRIC_BIT(METRIC_PEAK_BYTES),
	METRIC_BIT(METRIC_RESIDUAL_BYTES),
	0, /* tensor_value */
};

static const struct {
	const char *name;
	enum metric metric;
} order_names[] = {
	{ "bytes", METRIC_BYTES },
	{ "peak_bytes", METRIC_PEAK_BYTES },
	{ "residual_bytes", METRIC_RESIDUAL_BYTES },
	{ "output_bytes", METRIC_OUTPUT_BYTES },
	{ "micros", METRIC_MICROS },
	{ "accelerator_micros", METRIC_ACCELERATOR_MICROS },
	{ "cpu_micros", METRIC_CPU_MICROS },
	{ "params", METRIC_PARAMS },
	{ "float_ops", METRIC_FLOAT_OPS },
};

const char *view_order_at(size_t index)
{
	if (!index)
		return "name";
	if (index <= ARRAY_COUNT(order_names))
		return order_names[index - 1].name;
	return index == ARRAY_COUNT(order_names) + 1 ? "occurrence" : NULL;
}

static bool is_multi(const struct account *a)
{
	return a->tree->kind == TREE_OP || a->tree->kind == TREE_CODE;
}

static int by_word(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static ow_status read_select(struct account *a)
{
	const struct view_list *words = &a->options->select;
	struct tree *tree = a->tree;

	tree->unknown_select = ARENA_ARRAY(&tree->arena, char *, words->count);
	if (!tree->unknown_select)
		return error_no_memory(a->err);
	for (size_t i = 0; i < words->count; i++) {
		uint32_t bit = 0;

		while (bit < SELECT_COUNT && strcmp(words->items[i], select_names[bit]) != 0)
			bit++;
		if (bit < SELECT_COUNT) {
			tree->select |= 1u << bit;
			continue;
		}
		tree->unknown_select[tree->unknown_select_count] =
			arena_cstr(&tree->arena, str_from(words->items[i]));
		if (!tree->unknown_select[tree->unknown_select_count++])
			return error_no_memory(a->err);
	}
	qsort(tree->unknown_select, tree->unknown_select_count, sizeof(char *), by_word);
	return OW_OK;
}

static void read_order(struct account *a)
{
	const char *word = a->options->order_by ? a->options->order_by : "name";

	a->order = *word ? ORDER_NAME : ORDER_NONE;
	if (!strcmp(word, "occurrence") && is_multi(a))
		a->order = ORDER_OPS;
	for (size_t i = 0; i < ARRAY_COUNT(order_names); i++) {
		if (strcmp(word, order_names[i].name) != 0)
			continue;
		a->order = ORDER_METRIC;
		a->order_metric = order_names[i].metric;
	}
}

static void add_test(struct account *a, enum metric metric, int64_t min, bool own)
{
	if (min > 0 || a->negatives & METRIC_BIT(metric))
		a->tests[a->test_count++] = (struct min_test){ metric, min, own };
}

static int64_t least_time(const struct account *a, int64_t micros)
{
	return a->tree->in_micros ? micros : us_to_ns(micros);
}

static void read_tests(struct account *a)
{
	const struct view_options *o = a->options;
	bool own = !is_multi(a);

	a->negatives = metric_negatives(a->m);
	a->tree->in_micros = metric_need_micros(a->m, a->negatives);
	add_test(a, METRIC_BYTES, o->min_bytes, false);
	add_test(a, METRIC_PEAK_BYTES, o->min_peak_bytes, false);
	add_test(a, METRIC_RESIDUAL_BYTES, o->min_residual_bytes, false);
	add_test(a, METRIC_OUTPUT_BYTES, o->min_output_bytes, false);
	add_test(a, METRIC_MICROS, least_time(a, o->min_micros), false);
	add_test(a, METRIC_ACCELERATOR_MICROS, least_time(a, o->min_accelerator_micros), false);
	add_test(a, METRIC_CPU_MICROS, least_time(a, o->min_cpu_micros), false);
	add_test(a, METRIC_PARAMS, o->min_params, own);
	add_test(a, METRIC_FLOAT_OPS, o->min_float_ops, own);
	if (own) /* the op view counts ops instead; the code view does not test this value */
		add_test(a, METRIC_RUN_COUNT, o->min_occurrence, true);
}

void account_set_metrics(struct account *a, uint32_t mask)
{
	tree_set_metrics(a->tree, mask);
	a->places = a->tree->places;
	a->width = a->tree->width;
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		if (mask & METRIC_BIT(i))
			a->metrics[a->places[i]] = (uint8_t)i;
}

/* Plans the metrics. Timelines need times whatever is selected; input signatures need run
 * counts. */
static void plan_metrics(struct account *a)
{
	uint32_t mask = a->options->all_metrics ? METRIC_ALL : METRIC_BIT(METRIC_MICROS);

	for (uint32_t i = 0; i < SELECT_COUNT; i++)
		if (a->tree->select & 1u << i)
			mask |= select_metrics[i];
	if (a->tree->kind == TREE_OP && a->tree->select & SELECT_INPUT_SHAPES)
		mask |= METRIC_BIT(METRIC_RUN_COUNT);
	if (a->order == ORDER_METRIC)
		mask |= METRIC_BIT(a->order_metric);
	for (uint32_t i = 0; i < a->test_count; i++)
		mask |= METRIC_BIT(a->tests[i].metric);
	metric_plan_init(&a->plan, a->m, a->options->step, mask);
	a->plan.in_micros = a->tree->in_micros;
	metric_plan_filter(&a->plan, a->tree->sums);
	a->plan.all_steps = a->tree->all_steps = metric_all_steps(&a->plan, a->options->rank);
	account_set_metrics(a, mask);
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Makes exactly tfprof's message for a missing step. */
static ow_status step_missing(struct account *a)
{
	uint32_t count = a->m->step.count - 1;
	int64_t *numbers = ARENA_ARRAY(&a->scratch, int64_t, (size_t)count + 1);
	struct buf text;
	ow_status status;

	if (!numbers)
		return error_no_memory(a->err);
	memcpy(numbers, a->m->step.number + 1, count * sizeof(*numbers));
	qsort(numbers, count, sizeof(*numbers), by_number);
	buf_init(&text, a->mem);
	buf_printf(&text,
		   "Options -step=%" PRId64 " not found.\nAvailable steps: ", a->options->step);
	for (uint32_t i = 0; i < count; i++)
		buf_printf(&text, "%" PRId64 " ", numbers[i]);
	status = buf_cstr(&text) ? error_set(a->err, OW_E_NOT_FOUND, "%s", buf_cstr(&text))
				 : error_no_memory(a->err);
	buf_release(&text);
	return status;
}

static void report_invalid(void *arg, struct str pattern, const char *why)
{
	struct account *a = arg;

	if (a->message_status == OW_OK)
		a->message_status = tree_message(a->tree, a->err, "Error parsing '%.*s%s': %s",
						 STR_ARG(str_first(pattern, 100)),
						 pattern.len > 100 ? "..." : "", why);
	if (a->message_status == OW_OK)
		a->message_status = tree_message(a->tree, a->err, "Invalid RE2: %s", why);
}

static ow_status compile_regexes(struct account *a)
{
	const struct view_options *o = a->options;
	const struct {
		struct regex_list *list;
		const struct view_list *from;
		bool all; /* the only pattern is .*, so names are not examined */
	} lists[] = {
		{ &a->types, &o->account_type_regexes, true },
		{ &a->start, &o->start_name_regexes, true },
		{ &a->trim, &o->trim_name_regexes, false },
		{ &a->show, &o->show_name_regexes, true },
		{ &a->hide, &o->hide_name_regexes, false },
	};

	for (size_t i = 0; i < ARRAY_COUNT(lists); i++)
		OW_TRY((lists[i].all ? regex_list_init_all : regex_list_init)(
			lists[i].list, a->mem, lists[i].from->items, lists[i].from->count,
			report_invalid, a, a->err));
	return a->message_status;
}

static bool has_incomplete_shape(const struct model *m)
{
	bool incomplete = false;

	for (uint32_t i = 1; i < m->shape.count && !incomplete; i++)
		(void)metric_params(m, (shape_id){ i }, &incomplete);
	if (!incomplete)
		return false;
	incomplete = false;
	for (uint32_t i = 1; i < m->op.count && !incomplete; i++)
		if (m->op.shape[i].v)
			(void)metric_params(m, m->op.shape[i], &incomplete);
	return incomplete;
}

static ow_status make_tree(struct account *a, enum tree_kind kind, struct table *out)
{
	struct tree *tree = mem_zalloc(a->mem, sizeof(*tree));

	if (!tree)
		return error_no_memory(a->err);
	arena_init(&tree->arena, a->mem);
	tree->kind = kind;
	tree->model = a->m;
	tree->step = a->options->step;
	tree->limit = a->options->limit;
	tree->empty_store = a->m->op.count <= 1;
	out->tree = a->tree = tree;
	return view_sums(a->m, a->options, &tree->arena, &tree->sums, a->err);
}

ow_status account_begin(struct account *a, struct model *m, const struct view_options *options,
			enum tree_kind kind, struct table *out, struct ow_error *err)
{
	*a = (struct account){ .m = m, .options = options, .mem = out->mem, .err = err };
	arena_init(&a->scratch, a->mem);
	if (options->step >= 0 && !model_find_step(m, options->step).v)
		return step_missing(a);
	OW_TRY(make_tree(a, kind, out));
	OW_TRY(read_select(a));
	OW_TRY(compile_regexes(a));
	a->set_matches = ARENA_ARRAY(&a->scratch, uint8_t, m->strset.count);
	if (!a->set_matches)
		return error_no_memory(err);
	read_order(a);
	read_tests(a);
	plan_metrics(a);
	a->has_root_name = model_find_str(m, ROOT_NAME).v != 0;
	return has_incomplete_shape(m) ? tree_message(a->tree, err, "Incomplete shape.") : OW_OK;
}

ow_status account_end(struct account *a, ow_status status)
{
	struct regex_list *lists[] = { &a->types, &a->start, &a->trim, &a->show, &a->hide };

	for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
		if (status == OW_OK)
			status = regex_list_status(lists[i], a->err);
		regex_list_release(lists[i]);
	}
	arena_release(&a->scratch);
	return status;
}

bool account_types(struct account *a, strset_id types)
{
	uint8_t *known = &a->set_matches[types.v];
	uint32_t count;
	const str_id *items;

	if (a->types.everything)
		return true;
	if (*known)
		return *known == 2;
	*known = 1;
	items = model_strset(a->m, types, &count);
	for (uint32_t i = 0; i < count && *known == 1; i++)
		if (regex_match(&a->types, model_str(a->m, items[i])))
			*known = 2;
	return *known == 2;
}

void account_eval(const struct account *a, op_id op, int64_t *row)
{
	int64_t values[METRIC_COUNT];

	metric_eval(&a->plan, op, values);
	for (uint32_t i = 0; i < a->width; i++)
		row[i] = values[a->metrics[i]];
}

ow_status account_eval_all(struct account *a, uint32_t more)
{
	size_t count = a->m->op.count, row = a->width * sizeof(int64_t);
	int64_t *rows = arena_push_aligned(&a->tree->arena, (count + more) * row, 16);

	if (!rows)
		return error_no_memory(a->err);
	memset(rows, 0, row);
	for (uint32_t op = 1; op < count; op++)
		account_eval(a, (op_id){ op }, rows + (size_t)op * a->width);
	memset(rows + count * a->width, 0, more * row);
	a->tree->own_rows = rows;
	return OW_OK;
}

ow_status hierarchy_total(struct hierarchy *h)
{
	uint32_t width = h->a->width;

	h->totals = arena_push_aligned(&h->a->tree->arena,
				       (size_t)h->count * width * sizeof(*h->totals), 16);
	h->a->tree->total_rows = h->totals;
	if (!h->totals)
		return error_no_memory(h->a->err);
	/* this loop is separate so that the processor can fetch several rows at once */
	for (uint32_t i = 0; i < h->count; i++) {
		int64_t *total = h->totals + (size_t)i * width;
		const int64_t *own = h->flags[i] & NODE_ACCOUNTED ? hierarchy_own(h, i) : NULL;

		for (uint32_t k = 0; k < width; k++)
			total[k] = own ? own[k] : 0;
	}
	for (uint32_t i = h->count; i-- > 1;) {
		uint32_t parent = hierarchy_link(h, i)->parent;

		if (!h->flags[i])
			continue;
		h->flags[i] |= NODE_KEPT;
		h->flags[parent] |= NODE_KEPT;
		row_add(h->totals + (size_t)parent * width, h->totals + (size_t)i * width, width);
	}
	h->flags[0] |= NODE_KEPT;
	return OW_OK;
}

/* Marks, during summation, a row that still belongs to the child. */
#define BORROWED 0x80000000u

struct rows {
	struct hierarchy *h;
	uint32_t count;
};

static int64_t *row_at(const struct rows *r, uint32_t row)
{
	return r->h->totals + (size_t)(row & ~BORROWED) * r->h->a->width;
}

/* Adds values to a node's row. A node without a row gets one, or takes over its child's. */
static void add_to(struct rows *r, uint32_t node, const int64_t *values)
{
	uint32_t *row = &r->h->total_row[node], width = r->h->a->width;

	if (!*row || *row & BORROWED) {
		memcpy(row_at(r, r->count), row_at(r, *row), width * sizeof(*values));
		*row = r->count++;
	}
	row_add(row_at(r, *row), values, width);
}

ow_status hierarchy_total_shared(struct hierarchy *h, uint32_t *total_row, size_t rows)
{
	struct rows r = { h, 1 };
	size_t row = h->a->width * sizeof(*h->totals);

	h->total_row = total_row;
	h->totals = arena_push_aligned(&h->a->tree->arena, rows * row, 16);
	h->a->tree->total_rows = h->totals;
	if (!h->totals)
		return error_no_memory(h->a->err);
	memset(h->totals, 0, row);
	for (uint32_t i = h->count; i-- > 1;) {
		uint32_t parent = hierarchy_link(h, i)->parent;

		if (!h->flags[i])
			continue;
		if (h->flags[i] & NODE_ACCOUNTED && h->own_row(h->view, i))
			add_to(&r, i, hierarchy_own(h, i));
		total_row[i] &= ~BORROWED;
		h->flags[i] |= NODE_KEPT;
		h->flags[parent] |= NODE_KEPT;
		if (total_row[parent])
			add_to(&r, parent, row_at(&r, total_row[i]));
		else if (total_row[i])
			total_row[parent] = total_row[i] | BORROWED;
	}
	total_row[0] &= ~BORROWED;
	h->flags[0] |= NODE_KEPT;
	return OW_OK;
}
