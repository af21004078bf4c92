/* tree_out.c: metrics, totals and names for the sinks that draw trees; tree_out.h describes them. */
#include "sink/tree_out.h"

ow_status tree_out_measure(const struct tree *tree, const struct sink_options *options,
			   struct tree_measure *measure, struct ow_error *err)
{
	char names[256] = "";
	size_t len = 0;

	if (tree->weight_name.ptr) {
		*measure = (struct tree_measure){ METRIC_WEIGHT, tree->weight_unit,
						  tree->weight_name };
		return OW_OK;
	}
	measure->metric = metric_find(options->metric);
	if (measure->metric != METRIC_COUNT) {
		measure->unit = metric_infos[measure->metric].unit;
		measure->title = str_from(metric_infos[measure->metric].title);
		return OW_OK;
	}
	for (unsigned i = 0; i < METRIC_WEIGHT; i++) {
		int more = snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
				    metric_infos[i].name);

		if (more > 0)
			len = MIN(len + (size_t)more, sizeof(names) - 1);
	}
	return error_set(err, OW_E_USAGE, "there is no metric '%s'; metrics are: %s",
			 options->metric, names);
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

ow_status tree_out_child_sums(const struct tree *tree, enum metric metric, struct mem *mem,
			      int64_t **sums, struct ow_error *err)
{
	*sums = mem_zalloc(mem, ((size_t)tree->node_count + 1) * sizeof(**sums));
	if (!*sums)
		return error_no_memory(err);
	for (uint32_t i = 1; i < tree->node_count; i++) {
		int64_t *sum = &(*sums)[tree->nodes[i].parent];

		*sum = add_saturated(*sum, tree_out_total(tree, &tree->nodes[i], metric));
	}
	return OW_OK;
}

void tree_out_release(const struct tree *tree, struct mem *mem, int64_t *sums)
{
	if (sums)
		mem_free(mem, sums, ((size_t)tree->node_count + 1) * sizeof(*sums));
}

size_t tree_out_prefix(const struct tree *tree, const struct tree_node *node)
{
	struct str parent = tree->nodes[node->parent].name;

	if (tree->kind != TREE_SCOPE || !node->parent || node->name.len <= parent.len + 1)
		return 0;
	return str_starts(node->name, parent) && node->name.ptr[parent.len] == '/' ? parent.len + 1
										   : 0;
}

const struct metric_info metric_infos[METRIC_COUNT] = {
	[METRIC_BYTES] = { "bytes", "requested memory", UNIT_BYTES },
	[METRIC_PEAK_BYTES] = { "peak_bytes", "peak memory", UNIT_BYTES },
	[METRIC_RESIDUAL_BYTES] = { "residual_bytes", "memory not released", UNIT_BYTES },
	[METRIC_OUTPUT_BYTES] = { "output_bytes", "output memory", UNIT_BYTES },
	[METRIC_MICROS] = { "micros", "time", UNIT_NS },
	[METRIC_ACCELERATOR_MICROS] = { "accelerator_micros", "accelerator time", UNIT_NS },
	[METRIC_CPU_MICROS] = { "cpu_micros", "cpu time", UNIT_NS },
	[METRIC_PARAMS] = { "params", "parameters", UNIT_COUNT },
	[METRIC_FLOAT_OPS] = { "float_ops", "float operations", UNIT_COUNT },
	[METRIC_RUN_COUNT] = { "run_count", "runs", UNIT_COUNT },
	[METRIC_DEFINITION_COUNT] = { "definition_count", "definitions", UNIT_COUNT },
	[METRIC_WEIGHT] = { "weight", "weight",
			    UNIT_COUNT }, /* the tree has its own title and unit */
};

enum metric metric_find(const char *name)
{
	if (!name || !*name)
		return METRIC_MICROS;
	/* "occurrence" is the name of the column that shows both counts */
	if (!strcmp(name, "occurrence"))
		return METRIC_RUN_COUNT;
	for (unsigned i = 0; i < METRIC_WEIGHT; i++)
		if (!strcmp(name, metric_infos[i].name))
			return (enum metric)i;
	return METRIC_COUNT;
}
