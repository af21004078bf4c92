/*
 * sample_tree.c: see sample_tree.h. Below the root are processes, where the source has them, then frames;
 * frames of equal labels under one caller are one node, whatever their addresses. Samples lie by track,
 * so those of one process are added up per stack first, and each stack is looked for once.
 */
#include "analyze/sample_tree.h"

#include "analyze/display.h"
#include "analyze/sample_labels.h"

/* tfprof's name of a root would say nothing here. */
#define SAMPLES_ROOT STR("all")

struct sample_tree {
	struct account *a;
	struct model *m;
	struct sample_choice choice;
	struct sample_labels labels;
	struct code_node *nodes;
	int64_t *own; /* per node */
	size_t node_cap, own_cap;
	uint32_t count;
	struct map children;	/* (parent, label) → node */
	uint32_t *of_stack;	/* node + 1 in the process at hand, or 0 */
	int64_t *weight;	/* of a stack, in that process */
	uint32_t *touched;	/* stacks of that process */
	uint32_t *track_label;	/* per track */
	uint32_t *first, *last; /* per track, its samples */
	uint32_t *label_rank;
};

static ow_status no_memory(struct sample_tree *t)
{
	return error_no_memory(t->a->err);
}

static struct str node_name(const void *view, uint32_t node)
{
	const struct sample_tree *t = view;

	return node ? t->labels.texts[t->nodes[node].label] : SAMPLES_ROOT;
}

static uint32_t node_rank(const void *view, uint32_t node)
{
	const struct sample_tree *t = view;

	return t->label_rank[t->nodes[node].label];
}

static uint32_t node_own_row(const void *view, uint32_t node)
{
	(void)view;
	return node + 1;
}

static uint32_t node_op_count(const void *view, uint32_t node)
{
	(void)view;
	(void)node;
	return 0;
}

static void node_fill(const void *view, uint32_t node, struct tree_node *to)
{
	(void)view;
	to->code = node;
}

/* ---- nodes ---- */

static bool add_node(struct sample_tree *t, uint32_t parent, uint32_t label, frame_id frame,
		     uint32_t *node)
{
	void *nodes = t->nodes, *own = t->own;

	if (t->count == UINT32_MAX - 2 ||
	    !mem_grow(t->a->mem, &nodes, &t->node_cap, (size_t)t->count + 1, sizeof(*t->nodes)))
		return false;
	t->nodes = nodes;
	if (!mem_grow(t->a->mem, &own, &t->own_cap, (size_t)t->count + 1, sizeof(*t->own)))
		return false;
	t->own = own;
	*node = t->count++;
	t->nodes[*node] = (struct code_node){ .parent = parent,
					      .label = label & 0x7fffffffu,
					      .frame = frame };
	t->own[*node] = 0;
	if (!*node)
		return true;
	t->nodes[*node].next_sibling = t->nodes[parent].first_child;
	t->nodes[parent].first_child = *node;
	return map_add(&t->children, map_hash_u64(parent, label), *node);
}

static bool child_of(struct sample_tree *t, uint32_t parent, uint32_t label, frame_id frame,
		     uint32_t *node)
{
	uint64_t hash = map_hash_u64(parent, label);

	for (struct map_iter it = map_find(&t->children, hash); it.value;
	     it = map_next(&t->children, it))
		if (t->nodes[it.value].parent == parent && t->nodes[it.value].label == label) {
			*node = it.value;
			return true;
		}
	return add_node(t, parent, label, frame, node);
}

/* The node of a stack in a process: from the nearest caller that has one down to it. The callers wait in
 * `touched`, behind the stacks that are listed there: a stack has fewer callers than there are stacks. */
static bool place_stack(struct sample_tree *t, uint32_t stack, uint32_t root, bool java,
			uint32_t *waiting)
{
	const struct stack_table *s = &t->m->stack;
	uint32_t count = 0, parent = root;

	for (uint32_t at = stack; at; at = s->parent[at].v) {
		if (t->of_stack[at]) {
			parent = t->of_stack[at] - 1;
			break;
		}
		waiting[count++] = at;
	}
	while (count--) {
		frame_id frame = s->frame[waiting[count]];
		uint32_t label = sample_label(&t->labels, frame, java);

		if (!label ||
		    (label != LABEL_DROPPED && !child_of(t, parent, label, frame, &parent)))
			return false;
		t->of_stack[waiting[count]] = parent + 1;
	}
	return true;
}

/* ---- processes ---- */

/* The scripts lose a last sample that no empty line ends. */
static bool is_lost(const struct sample_tree *t, uint32_t sample)
{
	return t->labels.style & STYLE_STACKCOLLAPSE &&
	       str_eq(model_str(t->m, COLUMN_GET(t->m->sample.label, sample)), STR(SAMPLE_UNENDED));
}

/* Adds up the samples of all tracks with the label of `first`. */
static ow_status add_process(struct sample_tree *t, uint32_t first)
{
	const struct sample_table *s = &t->m->sample;
	uint32_t label = t->track_label[first], root = 0, count = 0;
	bool java = label && str_eq(t->labels.texts[label], STR("java"));
	uint32_t *waiting;

	memset(t->of_stack, 0, (size_t)t->m->stack.count * sizeof(*t->of_stack));
	for (uint32_t track = first; track < t->m->track.count; track++) {
		if (t->track_label[track] != label)
			continue;
		for (uint32_t i = t->first[track]; i < t->last[track]; i++) {
			uint32_t stack = s->stack[i].v;

			if (!sample_counts(&t->choice, i) || is_lost(t, i))
				continue;
			if (!t->of_stack[stack]) {
				t->touched[count++] = stack;
				t->of_stack[stack] = 1;
				t->weight[stack] = 0;
			}
			t->weight[stack] = wrap_add(t->weight[stack], s->weight[i]);
		}
		t->first[track] = t->last[track]; /* done */
	}
	if (!count)
		return OW_OK;
	for (uint32_t i = 0; i < count; i++)
		t->of_stack[t->touched[i]] = 0;
	if (label && !child_of(t, 0, label, (frame_id){ 0 }, &root))
		return no_memory(t);
	waiting = t->touched + t->m->stack.count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t stack = t->touched[i], node;

		if (!place_stack(t, stack, root, java, waiting))
			return no_memory(t);
		node = stack ? t->of_stack[stack] - 1 : root;
		t->own[node] = wrap_add(t->own[node], t->weight[stack]);
	}
	return OW_OK;
}

/* first and last of every track: samples are sorted by it. */
static uint32_t find_ranges(struct sample_tree *t)
{
	const struct sample_table *s = &t->m->sample;
	uint32_t tracks = 0;

	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t track = s->track[i].v;

		if (i == 1 || track != s->track[i - 1].v) {
			t->first[track] = i;
			tracks++;
		}
		t->last[track] = i + 1;
	}
	return tracks;
}

static ow_status build(struct sample_tree *t)
{
	struct arena *scratch = &t->a->scratch;
	struct model *m = t->m;
	uint32_t root;
	bool several;

	t->of_stack = ARENA_ARRAY(scratch, uint32_t, m->stack.count);
	t->weight = ARENA_ARRAY(scratch, int64_t, m->stack.count);
	t->touched = ARENA_ARRAY(scratch, uint32_t, 2 * (size_t)m->stack.count);
	t->track_label = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	t->first = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	t->last = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	if (!t->of_stack || !t->weight || !t->touched || !t->track_label || !t->first || !t->last ||
	    !sample_labels_init(&t->labels, m, sample_style_parse(t->a->options->style),
				&t->a->tree->arena, scratch) ||
	    !add_node(t, 0, 0, (frame_id){ 0 }, &root))
		return no_memory(t);
	several = find_ranges(t) > 1;
	for (uint32_t i = 0; i < m->track.count; i++)
		if (!sample_track_label(&t->labels, (track_id){ i }, several, &t->track_label[i]))
			return no_memory(t);
	for (uint32_t i = 0; i < m->track.count; i++)
		if (t->first[i] < t->last[i])
			OW_TRY(add_process(t, i));
	return OW_OK;
}

/* ---- the whole ---- */

static int by_label(const void *a, const void *b, void *arg)
{
	const struct sample_labels *l = arg;

	return str_cmp(l->texts[*(const uint32_t *)a], l->texts[*(const uint32_t *)b]);
}

static ow_status rank_labels(struct sample_tree *t)
{
	size_t count = t->labels.count;
	uint32_t *order = ARENA_ARRAY(&t->a->scratch, uint32_t, count);
	struct tree *tree = t->a->tree;

	t->label_rank = ARENA_ARRAY(&t->a->scratch, uint32_t, count);
	tree->labels = ARENA_ARRAY(&tree->arena, struct str, count);
	if (!order || !t->label_rank || !tree->labels)
		return no_memory(t);
	memcpy(tree->labels, t->labels.texts, count * sizeof(*tree->labels));
	tree->labels[0] = SAMPLES_ROOT;
	for (uint32_t i = 1; i < count; i++)
		order[i] = i;
	qsort_r(order + 1, count - 1, sizeof(*order), by_label, &t->labels);
	for (uint32_t i = 1; i < count; i++)
		t->label_rank[order[i]] = i;
	return OW_OK;
}

static ow_status display(struct sample_tree *t)
{
	struct account *a = t->a;
	struct hierarchy h = { .a = a,
			       .view = t,
			       .count = t->count,
			       .links = t->nodes,
			       .link_stride = sizeof(*t->nodes),
			       .name = node_name,
			       .rank = node_rank,
			       .own_row = node_own_row,
			       .op_count = node_op_count,
			       .fill = node_fill };

	a->tree->own_rows = ARENA_ARRAY(&a->tree->arena, int64_t, (size_t)t->count + 1);
	h.flags = ARENA_ARRAY(&a->scratch, uint8_t, t->count);
	if (!a->tree->own_rows || !h.flags)
		return no_memory(t);
	memcpy(a->tree->own_rows + 1, t->own, t->count * sizeof(*t->own));
	memset(h.flags, NODE_ACCOUNTED, t->count);
	OW_TRY(rank_labels(t));
	OW_TRY(hierarchy_total(&h));
	a->tree->code_nodes = t->nodes;
	a->tree->code_node_count = t->count;
	a->tree->code_node_cap = t->node_cap;
	OW_TRY(display_hierarchy(&h));
	if (a->tree->node_count)
		a->tree->nodes[0].name = SAMPLES_ROOT;
	return OW_OK;
}

/* One value per node: the weight. What selects or tests others does not apply. */
static ow_status plan(struct sample_tree *t)
{
	const struct view_options *o = t->a->options;
	struct account *a = t->a;

	OW_TRY(samples_choose(t->m, o, &a->scratch, &t->choice, a->err));
	account_set_metrics(a, METRIC_BIT(METRIC_WEIGHT));
	if (a->order == ORDER_METRIC || a->order == ORDER_OPS)
		a->order = ORDER_METRIC;
	a->order_metric = METRIC_WEIGHT;
	a->test_count = 0;
	if (t->choice.shown_as == RESULT_NS && o->min_micros > 0)
		a->tests[a->test_count++] =
			(struct min_test){ METRIC_WEIGHT, us_to_ns(o->min_micros), false };
	if (t->choice.shown_as == RESULT_BYTES && o->min_bytes > 0)
		a->tests[a->test_count++] = (struct min_test){ METRIC_WEIGHT, o->min_bytes, false };
	a->tree->weight_name = model_str(t->m, t->choice.name);
	a->tree->weight_source_unit = model_str(t->m, t->choice.unit);
	a->tree->weight_unit = t->choice.shown_as;
	a->tree->empty_store = false;
	return OW_OK;
}

static ow_status tell_others(struct sample_tree *t)
{
	struct account *a = t->a;
	char *text;

	OW_TRY(samples_left_out(&t->choice, a->options, &a->scratch, &text, a->err));
	return text ? tree_message(a->tree, a->err, "%s", text) : OW_OK;
}

ow_status sample_tree_run(struct model *m, const struct view_options *options, struct result *out,
			  struct error *err)
{
	struct account a;
	struct sample_tree t = { .a = &a, .m = m, .labels = { .mem = m->mem } };
	ow_status status = account_begin(&a, m, options, TREE_CODE, out, err);

	map_init(&t.labels.map, m->mem);
	buf_init(&t.labels.text, m->mem);
	map_init(&t.children, a.mem);
	if (status == OW_OK)
		status = plan(&t);
	if (status == OW_OK)
		status = build(&t);
	if (status == OW_OK)
		status = display(&t);
	if (status == OW_OK)
		status = tell_others(&t);
	if (!a.tree || a.tree->code_nodes != t.nodes)
		mem_free(a.mem, t.nodes, t.node_cap * sizeof(*t.nodes));
	mem_free(a.mem, t.own, t.own_cap * sizeof(*t.own));
	map_release(&t.children);
	sample_labels_release(&t.labels);
	return account_end(&a, status);
}
