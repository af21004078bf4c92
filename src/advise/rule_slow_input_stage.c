/*
 * rule_slow_input_stage.c: the stage of the input pipeline that slows down the rest, when steps wait for input. It reads the view `pipeline`. The floor
 * is none of the stage's own time, by replay. A wait of which no stages were recorded is the rule input_wait alone.
 */
#include "advise/advice.h"

/* Stages of known kinds, by a part of their name, and what makes each of them cheaper. */
static const struct {
	const char *name, *advice;
} kinds[] = {
	{ "MatchingFiles", "list the files once before the training and pass the list to the "
			   "pipeline: it lists them again while steps run" },
	{ "DecodeJpeg", "decode in parallel (num_parallel_calls=tf.data.AUTOTUNE), crop while "
			"decoding, or store the images resized" },
	{ "ParseExample", "parse whole batches: batch() before map(), and tf.io.parse_example" },
	{ "ParseSingleExample",
	  "parse whole batches: batch() before map(), and tf.io.parse_example" },
	{ "ReadFile", "read several files at once: interleave with "
		      "num_parallel_calls=tf.data.AUTOTUNE; few large record files instead of "
		      "many small ones" },
	{ "ReaderRead", "read several files at once: interleave with "
			"num_parallel_calls=tf.data.AUTOTUNE" },
};

struct str input_stage_advice(struct str stage)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_has(stage, str_from(kinds[i].name)))
			return str_from(kinds[i].advice);
	return (struct str){ 0 };
}

static struct str what_to_try(const struct advice *a, struct str stage)
{
	struct str known = input_stage_advice(stage);

	if (known.len)
		return known;
	if (a->framework == FRAMEWORK_TENSORFLOW)
		return STR(
			"num_parallel_calls=tf.data.AUTOTUNE, cache() before it, or vectorise it "
			"(batch before map)");
	return STR("do this stage in more workers, once and for all before the training, or on the "
		   "device");
}

static ow_status find_stage(struct advice *a, struct str *stage, bool *any, struct ow_error *err)
{
	struct table *t = table_new(a->m->mem, "pipeline", err);
	const struct view *view = view_find("pipeline");
	struct view_options options;
	ow_status status = t && view ? OW_OK : OW_E_NO_MEMORY;

	*any = false;
	view_options_init(&options);
	if (status == OW_OK)
		status = view->run(a->m, &options, t, err);
	if (status == OW_OK) {
		uint32_t mark = table_find_column(t, STR("bottleneck"));
		uint32_t name = table_find_column(t, STR("stage"));
		uint32_t kind = table_find_column(t, STR("kind"));

		*any = t->row_count > 0;
		for (uint32_t i = 0; i < t->row_count && mark != UINT32_MAX && name != UINT32_MAX &&
				     kind != UINT32_MAX;
		     i++)
			if (t->columns[mark].type == TYPE_BOOL && t->columns[mark].ints[i] &&
			    !str_eq(t->columns[kind].texts[i], STR("wait")))
				*stage = arena_str(a->arena, t->columns[name].texts[i]);
	}
	table_free(t);
	return status;
}

/* Selects the stage's own time in waits for input and on threads that prepare input ahead. */
static ow_status select_stage(struct advice *a, struct str stage, struct cost *cost)
{
	const struct graph *g = &a->s.g;

	for (uint32_t l = 0; l < g->lane_count; l++)
		for (uint32_t i = g->lanes[l].first;
		     !g->lanes[l].device && i < g->lanes[l].first + g->lanes[l].count; i++)
			if (g->event[i] &&
			    str_eq(model_str(a->m, a->m->op.name[node_op(g, i).v]), stage))
				OW_TRY(cost_add(a, cost, i));
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = { .falsified_by = STR(
					 "replace the stage by a constant: if input is as slow as "
					 "before, another stage is the cause"),
				 .most = CONFIDENCE_MEDIUM,
				 .class = CLASS_INPUT };
	struct cost cost = { .effect = EFFECT_TIME };
	struct str stage = { 0 };
	char time[TIME_TEXT];
	bool any;

	if (!a->has_steps)
		return advice_not_checked(a, "no steps with timed work");
	OW_TRY(find_stage(a, &stage, &any, err));
	if (!any)
		return advice_not_checked(a,
					  "no stages of an input pipeline are in this recording");
	if (!stage.len || !share_is_large(a, CLASS_INPUT))
		return OW_OK;
	report.where = stage;
	report.advice = what_to_try(a, stage);
	report.what = advice_text(a, "the slowest stage of the input pipeline is %.*s",
				  (int)MIN(stage.len, 200), stage.ptr);
	if (!advice_has_nodes(a))
		return advice_remark(a, SEVERITY_LOW, -1, -1, false, &report, (struct str){ 0 });
	OW_TRY(select_stage(a, stage, &cost));
	report.what = advice_text(a, "the slowest stage of the input pipeline is %.*s: %s per step",
				  (int)MIN(stage.len, 200), stage.ptr,
				  time_text(time, cost_per_step(a, &cost, NULL)));
	return advice_report(a, &cost, &report);
}

const struct rule rule_slow_input_stage = {
	.name = "slow_input_stage",
	.summary = "the stage of the input pipeline that slows down the rest",
	.doc = "slow_input_stage",
	.advise = advise,
};
