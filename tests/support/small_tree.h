/*
 * small_tree.h: builds results and trees by hand for tests of sinks, and collects the output of a sink as one text. The
 * model comes from small_model.h; trees are added in pre-order.
 */
#ifndef SUPPORT_SMALL_TREE_H
#define SUPPORT_SMALL_TREE_H

#include "sink/sink.h"
#include "support/small_model.h"

#define SMALL_NODES 4096

/* A result whose tree has only a root. */
static inline struct table *small_tree(struct small_model *s, enum tree_kind kind, int64_t step)
{
	struct table *r = table_new(&s->mem, "hand-made", &s->err);
	struct tree *tree = mem_zalloc(&s->mem, sizeof(*tree));

	assert_non_null(r);
	assert_non_null(tree);
	arena_init(&tree->arena, &s->mem);
	tree->kind = kind;
	tree->step = step;
	tree->model = s->m;
	tree->select = SELECT_MICROS;
	tree_set_metrics(tree, (1u << METRIC_COUNT) - 1);
	assert_int_equal(tree_reserve(tree, SMALL_NODES, true, &s->err), OW_OK);
	tree->code_nodes = ARENA_ARRAY(&tree->arena, struct code_node, SMALL_NODES);
	tree->code_ops = ARENA_ARRAY(&tree->arena, op_id, SMALL_NODES);
	assert_non_null(tree->code_ops);
	tree->nodes[0].name = STR("_TFProfRoot");
	tree->node_count = tree->code_node_count = 1;
	r->tree = tree;
	return r;
}

/* Adds a node below `parent`; times in microseconds. The root's total grows by top-level ones. */
static inline uint32_t small_node(struct table *r, uint32_t parent, const char *name, op_id op,
				  int64_t own_us, int64_t total_us)
{
	struct tree *tree = r->tree;
	struct tree_node *node = &tree->nodes[tree->node_count];

	assert_true(tree->node_count < SMALL_NODES);
	*node = (struct tree_node){ .name = str_from(name),
				    .parent = parent,
				    .depth = tree->nodes[parent].depth + 1,
				    .op = op,
				    .accounted = true };
	tree_set(tree, tree->node_count, METRIC_MICROS, own_us * 1000, total_us * 1000);
	tree->nodes[parent].child_count++;
	if (!parent)
		tree_set(tree, 0, METRIC_MICROS, 0,
			 tree_total(tree, tree->nodes, METRIC_MICROS) + total_us * 1000);
	return tree->node_count++;
}

/* Adds a node of the complete code tree, as the last child of `parent`. */
static inline uint32_t small_code_node(struct table *r, uint32_t parent, frame_id frame,
				       bool gradient)
{
	struct tree *tree = r->tree;
	struct code_node *nodes = tree->code_nodes;
	uint32_t at = tree->code_node_count++, *link = &nodes[parent].first_child;

	assert_true(at < SMALL_NODES);
	nodes[at] = (struct code_node){ .parent = parent, .frame = frame, .gradient = gradient };
	while (*link)
		link = &nodes[*link].next_sibling;
	*link = at;
	return at;
}

static inline ow_status small_collect(void *arg, const void *bytes, size_t len,
				      struct ow_error *err)
{
	buf_add(arg, bytes, len);
	return ((struct buf *)arg)->failed ? error_no_memory(err) : OW_OK;
}

static inline void small_line(void *arg, struct str line)
{
	buf_add_str(arg, line);
	buf_add_char(arg, '\n');
}

/* Collects the sink's output, NUL-terminated; the sink must succeed. */
static inline void small_write(const struct sink *sink, struct table *r,
			       const struct sink_options *options, struct buf *text)
{
	struct ow_error err = { 0 };
	struct out out = { .write = small_collect };

	buf_init(text, r->mem);
	out.arg = text;
	if (sink->write(r, options, &out, &err) != OW_OK)
		fail_msg("%s: %s", sink->name, err.text);
	buf_add_char(text, '\0');
	assert_false(text->failed);
	text->len--;
}

static inline void small_expect(const struct sink *sink, struct table *r,
				const struct sink_options *options, const char *want)
{
	struct buf text;

	small_write(sink, r, options, &text);
	assert_string_equal(text.ptr, want);
	buf_release(&text);
}

static inline void small_refuse(const struct sink *sink, struct table *r,
				const struct sink_options *options, ow_status want)
{
	struct buf text;
	struct out out = { small_collect, &text };
	struct ow_error err = { 0 };

	buf_init(&text, r->mem);
	assert_int_equal(sink->write(r, options, &out, &err), want);
	assert_int_equal(err.status, want);
	assert_int_equal(text.len, 0);
	buf_release(&text);
}

/* A stream that discards its input without allocating, for tests that make the first, second, … allocation fail
 * until none does; nothing may leak. */
static inline ow_status small_discard(void *arg, const void *bytes, size_t len,
				      struct ow_error *err)
{
	(void)arg;
	(void)bytes;
	(void)len;
	(void)err;
	return OW_OK;
}

static inline void small_starve(const struct sink *sink, struct table *r,
				const struct sink_options *options)
{
	struct out out = { small_discard, NULL };
	size_t used = atomic_load(&r->mem->used);
	ow_status status = OW_E_NO_MEMORY;

	for (uint64_t n = 1; status != OW_OK; n++) {
		struct ow_error err = { 0 };

		mem_fail_after(n, false);
		status = sink->write(r, options, &out, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(err.status, status);
		assert_int_equal(atomic_load(&r->mem->used), used);
		assert_true(n < 10000);
	}
}

/* A stream that stops accepting bytes: the sink must report it and release everything. */
static inline ow_status small_closed(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	(void)arg;
	(void)bytes;
	(void)len;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

static inline void small_hang_up(const struct sink *sink, struct table *r,
				 const struct sink_options *options)
{
	struct out out = { small_closed, NULL };
	size_t used = atomic_load(&r->mem->used);
	struct ow_error err = { 0 };

	assert_int_equal(sink->write(r, options, &out, &err), OW_E_INTERRUPTED);
	assert_int_equal(atomic_load(&r->mem->used), used);
}

#endif
