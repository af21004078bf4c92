/*
 * tree_out.c: shared by the sinks that draw trees; see tree_out.h.
 */
#include "sink/tree_out.h"

ow_status tree_out_measure(const struct tree *tree, const struct sink_options *options,
			   struct tree_measure *measure, struct error *err)
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
	return error_set(err, OW_E_USAGE, "no metric is called '%s'; there are %s", options->metric,
			 names);
}

static int64_t add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

ow_status tree_out_child_sums(const struct tree *tree, enum metric metric, struct mem *mem,
			      int64_t **sums, struct error *err)
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
