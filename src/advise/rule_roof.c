/*
 * rule_roof.c: how far operations are from what the device can do, by the view `roofline`. It needs float operations and the peak of the device. It
 * names the operation that takes most time, if that is far below the roof. The floor is the time at the roof: a bound, so that this is a remark.
 */
#include "advise/advice.h"

#define FAR_PERCENT 20.0

/* Replays the kernels of the operation at the peak rate of the device; without a replay only the
 * text is reported. */
static ow_status report_op(struct advice *a, struct str op, double part,
			   const struct report *report)
{
	const struct graph *g = &a->s.g;
	struct cost cost = { .effect = EFFECT_SCALE };

	for (uint32_t i = 0; advice_replays(a) && i < g->node_count; i++)
		if (g->kind[i] == NODE_KERNEL &&
		    str_eq(model_str(a->m, a->m->op.name[node_op(g, i).v]), op))
			OW_TRY(cost_add(a, &cost, i));
	if (!cost.count)
		return advice_remark(a, SEVERITY_INFO, -1, -1, false, report, (struct str){ 0 });
	cost.factors = ARENA_ARRAY(&a->scratch, double, cost.count);
	if (!cost.factors)
		return error_no_memory(a->err);
	for (size_t i = 0; i < cost.count; i++)
		cost.factors[i] = part;
	return advice_report_bound(a, &cost, report);
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("larger batches or tiles, shapes that are multiples of 8, fused "
			      "operations, 16-bit types; 'opwatch roofline' shows all"),
		.falsified_by = STR("run the operation alone with these shapes: if it is as slow "
				    "then, the shapes are the cause"),
		.most = CONFIDENCE_LOW,
		.class = CLASS_COUNT
	};
	const struct view *view = view_find("roofline");
	struct table *t = table_new(a->m->mem, "roofline", err);
	struct view_options options;
	uint32_t roof, name;
	ow_status status;

	if (!t || !view)
		return OW_E_NO_MEMORY;
	view_options_init(&options);
	status = view->run(a->m, &options, t, err);
	roof = table_find_column(t, STR("efficiency_percent"));
	name = table_find_column(t, STR("name"));
	if (status == OW_OK && (!t->row_count || roof == UINT32_MAX || name == UINT32_MAX ||
				t->columns[roof].type != TYPE_REAL || t->row_count < 2 ||
				(t->columns[roof].known && !t->columns[roof].known[1])))
		status = advice_not_checked(a, "needs float operations and the peak rates of the "
					       "device: 'opwatch roofline --peak'");
	else if (status == OW_OK && t->columns[roof].reals[1] < FAR_PERCENT) {
		struct str op = t->columns[name].texts[1];

		report.where = arena_str(a->arena, op);
		report.what = advice_text(a, "%.*s reaches %.0f %% of what the device can do",
					  (int)MIN(op.len, 200), op.ptr, t->columns[roof].reals[1]);
		status = report_op(a, op, t->columns[roof].reals[1] / 100, &report);
	}
	table_free(t);
	return status;
}

const struct rule rule_roof = {
	.name = "roof",
	.summary = "operations far below what the device can do",
	.doc = "roof",
	.advise = advise,
};
