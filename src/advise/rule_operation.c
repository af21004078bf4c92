/*
 * rule_operation.c: operations for which TensorFlow has a faster variant: unfused batch normalisation,
 * and the NHWC layout on a GPU; tfprof's OperationChecker, with its text. Looks at the graph only, not
 * at how much time the operations take.
 */
#include "advise/rule.h"

struct seen {
	uint32_t batch_norm, nhwc; /* numbers of ops with a faster variant */
	uint32_t first_batch_norm, first_nhwc;
	bool fused;
};

static bool has_type(const struct model *m, uint32_t op, str_id type)
{
	uint32_t count;
	const str_id *types = model_strset(m, m->op.types[op], &count);

	for (uint32_t i = 0; type.v && i < count; i++)
		if (types[i].v == type.v)
			return true;
	return false;
}

static void count_slow_variants(const struct model *m, uint32_t op, str_id fused, str_id nhwc,
				struct seen *seen)
{
	if (str_has(model_str(m, m->op.name[op]), STR("BatchNorm")) && !seen->batch_norm++)
		seen->first_batch_norm = op;
	seen->fused = seen->fused || has_type(m, op, fused);
	if (nhwc.v && COLUMN_GET(m->op.data_format, op).v == nhwc.v &&
	    rule_is_accelerator(model_str(m, m->op.device[op])) && !seen->nhwc++)
		seen->first_nhwc = op;
}

/* Formats a place such as "net/bn/BatchNorm and 3 more"; NULL if memory runs out. */
static char *place(struct findings *out, const struct model *m, uint32_t op, uint32_t count)
{
	struct str name = model_str(m, m->op.name[op]);

	if (count > 1)
		return arena_printf(out->arena, "%.*s and %u more", STR_ARG(name), count - 1);
	return arena_cstr(out->arena, name);
}

static ow_status report(struct findings *out, char *where, struct str what, struct str advice)
{
	if (!where)
		return OW_E_NO_MEMORY;
	return finding_add(out, &(struct finding){ .severity = SEVERITY_LOW,
						   .what = what,
						   .where = str_from(where),
						   .advice = advice,
						   .confidence = 0.5 });
}

/* Returns whether the model comes from TensorFlow. The advice is about TensorFlow's ops; names
 * in traces of other producers only look alike. */
static bool is_tensorflow(const struct model *m)
{
	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str format = model_str(m, m->source.format[i]);
		struct str producer = model_str(m, m->source.producer[i]);

		if (!str_eq(format, STR("trace")) || str_starts(producer, STR("TF")))
			return true;
	}
	return m->source.count <= 1;
}

static ow_status check(struct model *m, struct findings *out, struct ow_error *err)
{
	str_id fused = model_find_str(m, STR("FusedBatchNorm"));
	str_id nhwc = model_find_str(m, STR("NHWC"));
	struct seen seen = { 0 };
	ow_status status = OW_OK;

	if (!is_tensorflow(m)) {
		out->not_checked = STR("not checked: no TensorFlow graph or profile");
		return OW_OK;
	}
	for (uint32_t op = 1; op < m->op.count; op++)
		count_slow_variants(m, op, fused, nhwc, &seen);
	if (seen.batch_norm && !seen.fused)
		status = report(out, place(out, m, seen.first_batch_norm, seen.batch_norm),
				STR("Maybe use faster FusedBatchNorm instead of BatchNorm"),
				STR("pass fused=True to the batch normalisation layer: one kernel "
				    "instead of a dozen"));
	if (status == OW_OK && seen.nhwc)
		status = report(
			out, place(out, m, seen.first_nhwc, seen.nhwc),
			STR("Found operation using NHWC data_format on GPU. Maybe NCHW is "
			    "faster."),
			STR("build the model with data_format='channels_first' (NCHW), which "
			    "cuDNN prefers without tensor cores, and measure both"));
	if (status != OW_OK)
		return error_no_memory(err);
	if (m->op.count <= 1)
		out->not_checked = STR("not checked: no operations");
	return OW_OK;
}

const struct rule rule_operation = {
	.name = "operation",
	.summary = "operations that have a faster variant: batch normalisation, data layout",
	.checker = "OperationChecker",
	.doc = "operation",
	.check = check,
};
