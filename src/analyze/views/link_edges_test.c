/*
 * link_edges_test.c: the graph view of traces that have no graph but links between their events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyze/views/link_edges.h"
#include "analyze/view.h"
#include "support/trace_model.h"

/* a → b → c, b → c again, c → d → c (a cycle), e alone. */
static void make(struct small_model *s)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	static const uint32_t links[][2] = { { 0, 1 }, { 1, 2 }, { 1, 2 },
					     { 2, 3 }, { 3, 2 }, { 4, 4 } };
	event_id events[ARRAY_COUNT(names)];
	source_id source;
	track_id track;

	small_open(s);
	source = trace_source(s, "t.json", 0);
	track = trace_track(s, source, "thread", TRACK_HOST, NULL);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		events[i] = trace_slice(s, track, names[i], PHASE_HOST, 10 * (int64_t)i,
					10 * (int64_t)i + 5);
	for (size_t i = 0; i < ARRAY_COUNT(links); i++)
		builder_add_link(&s->b, &(struct link_row){ .src = events[links[i][0]],
							    .dst = events[links[i][1]],
							    .kind = LINK_FLOW });
	small_freeze(s);
}

static uint32_t op_of(const struct small_model *s, const char *name)
{
	return model_find_op(s->m, str_from(name)).v;
}

static void each_pair_once(void **state)
{
	struct small_model s;
	struct op_edges e;
	struct arena scratch;

	(void)state;
	make(&s);
	arena_init(&scratch, &s.mem);
	assert_true(link_edges_only(s.m));
	assert_int_equal(link_edges_make(s.m, &scratch, &e, NULL), OW_OK);
	assert_int_equal(e.edges, 1 + 4);
	assert_int_equal(e.count[op_of(&s, "a")], 0);
	assert_int_equal(e.count[op_of(&s, "b")], 1);
	assert_int_equal(e.count[op_of(&s, "c")], 2);
	assert_int_equal(e.src[e.first[op_of(&s, "c")]].v, op_of(&s, "b"));
	assert_int_equal(e.src[e.first[op_of(&s, "c")] + 1].v, op_of(&s, "d"));
	assert_int_equal(e.count[op_of(&s, "e")], 0);
	arena_release(&scratch);
	small_close(&s);
}

/* d and c read each other and nobody else reads them; no time is lost for that. */
static void the_view_shows_all_ops(void **state)
{
	struct view_options options;
	struct small_model s;
	struct table *r;
	uint32_t found = 0;

	(void)state;
	make(&s);
	view_options_init(&options);
	options.max_depth = 100;
	r = table_new(&s.mem, "graph", NULL);
	assert_non_null(r);
	assert_int_equal(view_graph.run(s.m, &options, r, NULL), OW_OK);
	assert_int_equal(r->tree->node_count, 1 + 5);
	assert_int_equal(tree_total(r->tree, &r->tree->nodes[0], METRIC_MICROS), 5 * 5 * MS);
	for (uint32_t i = 1; i < r->tree->node_count; i++) {
		const struct tree_node *node = &r->tree->nodes[i];

		if (str_eq(node->name, STR("a"))) /* below b, which is below c */
			found += node->depth == 3;
		if (str_eq(node->name, STR("e")))
			found += node->depth == 1;
	}
	assert_int_equal(found, 2);
	table_free(r);
	small_close(&s);
}

static void every_allocation_may_fail(void **state)
{
	struct small_model s;
	unsigned failed = 0;

	(void)state;
	make(&s);
	for (uint64_t n = 1; n < 8; n++) {
		struct ow_error err = { 0 };
		struct op_edges e;
		struct arena scratch;
		ow_status status;

		arena_init(&scratch, &s.mem);
		mem_fail_after(n, false);
		status = link_edges_make(s.m, &scratch, &e, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		failed += status != OW_OK;
		arena_release(&scratch);
	}
	assert_true(failed > 1 && failed < 7);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_once),
		cmocka_unit_test(the_view_shows_all_ops),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
