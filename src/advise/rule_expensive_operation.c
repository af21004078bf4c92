/*
 * rule_expensive_operation.c: the three operation types, scopes and source lines that take the most
 * time; tfprof's ExpensiveOperationChecker, with its text. Runs the op, scope and code views and reads
 * their trees: up to three findings, each with several lines. What ran outside of steps, which tfprof's files
 * do not have, is not part of them: what a program reads while it starts would else be set against single steps.
 */
#include "advise/rule.h"
#include "analyze/samples/samples.h"

#define CHECKER "ExpensiveOperationChecker"
#define TOP 3
#define CODE_MAX_DEPTH 3
#define CODE_MIN_MICROS 1000
#define TYPES_ADVICE                                                                               \
	"these kinds of operation take the most time: the op view lists the others, with -select " \
	"input_shapes the sizes they work on"

struct search {
	struct model *m;
	struct findings *out;
	struct ow_error *err;
	struct buf text; /* text of the report, lines joined with newlines */
	bool no_code;	 /* no source lines are known */
	bool outside;	 /* some operations ran outside of steps */
};

/* Formats a time exactly as tfprof's FormatTime does. */
static void add_time(struct buf *text, int64_t us)
{
	if (us < 1000)
		buf_printf(text, "%" PRId64 "us", us);
	else if (us < 1000000)
		buf_printf(text, "%.2fms", (double)us / 1000.0);
	else
		buf_printf(text, "%.2fsec", (double)us / 1000000.0);
}

/* Adds own times or totals; `value` is tree_own_shown or tree_total_shown. */
static void add_times(struct buf *text, const struct tree *tree, const struct tree_node *node,
		      int64_t (*value)(const struct tree *, const struct tree_node *, enum metric))
{
	buf_puts(text, ", cpu: ");
	add_time(text, value(tree, node, METRIC_CPU_MICROS));
	buf_puts(text, ", accelerator: ");
	add_time(text, value(tree, node, METRIC_ACCELERATOR_MICROS));
	buf_puts(text, ", total: ");
	add_time(text, value(tree, node, METRIC_MICROS));
}

static void begin_line(struct buf *text, bool *first)
{
	if (!*first)
		buf_add_char(text, '\n');
	*first = false;
}

static void set_options(struct view_options *options, int32_t max_depth, int64_t min_micros)
{
	static const char *const everything[] = { ".*" };
	static const char *const columns[] = { "micros", "occurrence" };

	view_options_init(options);
	options->max_depth = max_depth;
	options->min_micros = min_micros;
	options->step = -1;
	options->order_by = "micros";
	options->account_type_regexes = (struct view_list){ everything, 1 };
	options->start_name_regexes = (struct view_list){ everything, 1 };
	options->show_name_regexes = (struct view_list){ everything, 1 };
	options->trim_name_regexes = (struct view_list){ NULL, 0 };
	options->hide_name_regexes = (struct view_list){ NULL, 0 };
	options->account_displayed_op_only = false;
	options->select = (struct view_list){ columns, ARRAY_COUNT(columns) };
	options->limit = 0;
}

/* Runs a view and returns its result, with a tree if the view makes one; or NULL and the status. */
static struct table *run_view(struct search *s, const char *name, int32_t max_depth,
			      int64_t min_micros, ow_status *status)
{
	const struct view *view = view_find(name);
	struct view_options options;
	struct table *result;

	if (!view) {
		*status = error_set(s->err, OW_E_INTERNAL, "the view '%s' is missing", name);
		return NULL;
	}
	set_options(&options, max_depth, min_micros);
	if (samples_only(s->m) || samples_show_code(s->m, &options))
		options.min_micros = 0; /* functions of samples have no lower limit */
	result = table_new(s->m->mem, name, s->err);
	if (!result) {
		*status = OW_E_NO_MEMORY;
		return NULL;
	}
	*status = view->run(s->m, &options, result, s->err);
	if (*status == OW_OK && result->tree)
		*status = tree_unfold(result->tree, s->m->mem, s->err);
	if (*status == OW_OK)
		return result;
	table_free(result);
	return NULL;
}

/* Adds the report that was gathered so far. An empty report is added, too, because tfprof prints
 * an empty line for it. */
static ow_status report(struct search *s, struct str where, struct str advice)
{
	struct finding finding = { .severity = SEVERITY_INFO,
				   .what = buf_str(&s->text),
				   .where = where,
				   .advice = advice,
				   .confidence = 1 };

	if (s->text.failed || finding_add(s->out, &finding) != OW_OK)
		return error_no_memory(s->err);
	return OW_OK;
}

/* Returns whether some operations belong to steps and some do not. */
static bool runs_outside_of_steps(const struct model *m)
{
	const struct op_step_table *t = &m->op_step;
	bool inside = false, outside = false;

	for (uint32_t i = 1; i < t->count; i++) {
		inside |= t->step[i].v && t->run_count[i];
		outside |= !t->step[i].v && t->run_count[i];
	}
	return inside && outside;
}

/* Reports the costliest rows of the view `work`. */
static ow_status report_work(struct search *s, const struct table *work)
{
	enum { NAME, TIME, PERCENT, ACCELERATOR, CPU };
	const struct table_column *c = work->columns;
	uint32_t shown = MIN(work->row_count, (uint32_t)TOP);
	bool first = true;

	for (uint32_t i = 0; i < shown; i++) {
		begin_line(&s->text, &first);
		buf_printf(&s->text, "top %u operation type: %.*s, cpu: ", i + 1,
			   STR_ARG(c[NAME].texts[i]));
		add_time(&s->text, c[CPU].ints[i] / 1000);
		buf_puts(&s->text, ", accelerator: ");
		add_time(&s->text, c[ACCELERATOR].ints[i] / 1000);
		buf_puts(&s->text, ", total: ");
		add_time(&s->text, c[TIME].ints[i] / 1000);
		buf_printf(&s->text, " (%.2f%%)", c[PERCENT].reals[i]);
	}
	return shown ? report(s, c[NAME].texts[0], STR(TYPES_ADVICE)) : OW_OK;
}

/* In the op view the nodes follow the root in display order. */
static ow_status report_types(struct search *s, const struct tree *tree)
{
	double unit = tree->in_micros ? 1 : 1000;
	double all = (double)tree_total_stored(tree, tree->nodes, METRIC_MICROS) / unit + 1e-10;
	uint32_t shown = MIN(tree->node_count - 1, (uint32_t)TOP);
	double own;
	bool first = true;

	if (!shown)
		return OW_OK;
	for (uint32_t i = 1; i <= shown; i++) {
		const struct tree_node *node = &tree->nodes[i];

		begin_line(&s->text, &first);
		buf_printf(&s->text, "top %u operation type: %.*s", i, STR_ARG(node->name));
		add_times(&s->text, tree, node, tree_own_shown);
		own = (double)tree_own_stored(tree, node, METRIC_MICROS) / unit;
		buf_printf(&s->text, " (%.2f%%)", 100.0 * own / all);
	}
	return report(s, tree->nodes[1].name, STR(TYPES_ADVICE));
}

static ow_status check_types(struct search *s)
{
	struct table *result;
	ow_status status;

	if (s->m->step.count <= 1) {
		if (finding_message(s->out, STR("Missing RunMetadata info. Skip " CHECKER)) !=
			    OW_OK ||
		    finding_message(s->out, STR("Missing run_meta for " CHECKER)) != OW_OK)
			return error_no_memory(s->err);
		return OW_OK;
	}
	result = run_view(s, s->outside ? "work" : "op", 3, 1, &status);
	if (!result)
		return status;
	if (s->outside)
		status = report_work(s, result);
	else if (result->tree) /* without ops the view shows functions of samples */
		status = report_types(s, result->tree);
	table_free(result);
	return status;
}

/* Reports own times, as tfprof does, although the order is by total times. */
static ow_status report_scopes(struct search *s, const struct tree *tree)
{
	uint32_t shown = 0;
	struct str where = STR("");
	bool first = true;

	for (uint32_t i = 1; i < tree->node_count && shown < TOP; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->depth != 1 || (s->outside && !node->child_count))
			continue; /* a scope with a single op repeats what the report by type says */
		if (!shown++)
			where = node->name;
		begin_line(&s->text, &first);
		buf_printf(&s->text, "top %u graph node: %.*s", shown, STR_ARG(node->name));
		add_times(&s->text, tree, node, tree_own_shown);
	}
	if (!shown)
		return OW_OK;
	return report(s, where,
		      STR("these scopes take the most time, contents included: the scope view, "
			  "ordered by "
			  "micros, shows which part of them"));
}

static ow_status check_scopes(struct search *s)
{
	struct table *result;
	ow_status status;

	result = run_view(s, "scope", 100, 100, &status);
	if (!result)
		return status;
	if (result->tree)
		status = report_scopes(s, result->tree);
	table_free(result);
	return status;
}

/* Returns the next sibling: nodes are in pre-order, so all deeper nodes that follow a node are
 * below it. */
static uint32_t next_sibling(const struct tree *tree, uint32_t node)
{
	uint32_t next = node + 1;

	while (next < tree->node_count && tree->nodes[next].depth > tree->nodes[node].depth)
		next++;
	return next < tree->node_count && tree->nodes[next].depth == tree->nodes[node].depth ? next
											     : 0;
}

/* Adds lines recursively; the depth of the tree is at most CODE_MAX_DEPTH. */
static void add_lines(struct search *s, const struct tree *tree, uint32_t node, uint32_t depth,
		      bool *first)
{
	uint32_t child = node + 1;

	if (tree->nodes[node].child_count <= 1 || depth > CODE_MAX_DEPTH)
		return;
	for (int i = 0; i < TOP && child; i++, child = next_sibling(tree, child)) {
		const struct tree_node *line = &tree->nodes[child];

		if (tree_total_shown(tree, line, METRIC_MICROS) < CODE_MIN_MICROS)
			continue;
		begin_line(&s->text, first);
		buf_add_repeat(&s->text, ' ', (size_t)depth * 2);
		buf_add_str(&s->text, line->name);
		add_times(&s->text, tree, line, tree_total_shown);
		add_lines(s, tree, child, depth + 1, first);
	}
}

/* Lines that call just one other line are library code; the report starts where the paths part. */
static ow_status report_lines(struct search *s, const struct tree *tree)
{
	uint32_t node = 0;
	bool first = true;

	while (tree->nodes[node].child_count == 1)
		node++;
	if (!tree->nodes[node].child_count)
		return OW_OK;
	add_lines(s, tree, node, 0, &first);
	return report(
		s, tree->nodes[node + 1].name,
		STR("these lines of your program made the operations that take the most time: "
		    "start reading there"));
}

static ow_status without_code(struct search *s)
{
	s->no_code = true;
	if (finding_message(s->out, STR("Missing op_log (code traces) for " CHECKER)) != OW_OK)
		return error_no_memory(s->err);
	return OW_OK;
}

static ow_status check_lines(struct search *s)
{
	struct table *result;
	ow_status status;

	if (!s->m->has_code)
		return without_code(s);
	result = run_view(s, "code", 100, 1, &status);
	/* the code traces have no frames, or belong to gradients only */
	if (!result && status == OW_E_NOT_FOUND)
		return without_code(s);
	if (!result)
		return status;
	if (result->tree)
		status = report_lines(s, result->tree);
	table_free(result);
	return status;
}

static ow_status check(struct model *m, struct findings *out, struct ow_error *err)
{
	static ow_status (*const checks[])(struct search *) = { check_types, check_scopes,
								check_lines };
	struct search s = { .m = m, .out = out, .err = err, .outside = runs_outside_of_steps(m) };
	ow_status status = OW_OK;

	buf_init(&s.text, m->mem);
	for (size_t i = 0; status == OW_OK && i < ARRAY_COUNT(checks); i++) {
		buf_clear(&s.text);
		status = checks[i](&s);
	}
	buf_release(&s.text);
	if (m->step.count <= 1)
		out->not_checked = STR("not checked: no run-time statistics");
	else if (s.no_code)
		out->not_checked = STR("source lines not checked: no code traces");
	return status;
}

const struct rule rule_expensive_operation = {
	.name = "expensive_operation",
	.summary = "the operation types, scopes and source lines that take the most time",
	.checker = CHECKER,
	.doc = "expensive_operation",
	.check = check,
};
