/*
 * display_test.c: what holds for the scope, graph, op and code views on any model: totals add up, trees
 * are well-formed, chains and cycles and odd names are survived, failures are clean. Exact texts are in
 * sink_tfprof_test.c and in the recorded runs.
 */
#include "analyze/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/tfprof_text.h"

static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void add_inputs(struct small_model *s, op_id op, uint32_t count, uint32_t below)
{
	struct model *m = s->m;

	m->op.input_first[op.v] = m->op_input.count;
	m->op.input_count[op.v] = count;
	for (uint32_t i = 0; i < count; i++) {
		op_id src = { 1 + pick(below) };

		builder_add_op_input(&s->b,
				     &(struct op_input_row){ .src = src,
							     .name = m->op.name[src.v],
							     .index = (int32_t)(count - i) });
	}
}

static void add_name(struct buf *name, uint32_t number)
{
	static const char *const parts[] = { "a",    "b", "a-1",       "a.1",
					     "conv", "",  "gradients", "x_grad" };

	buf_clear(name);
	for (uint32_t i = pick(5); i > 0; i--)
		buf_printf(name, "%s/", parts[pick(ARRAY_COUNT(parts))]);
	buf_printf(name, "%s%u", parts[pick(ARRAY_COUNT(parts))], number);
}

static void add_stack(struct small_model *s, op_id op)
{
	static const struct small_frame frames[] = { { "/p/main.py", 1, "main" },
						     { "/q/main.py", 1, "main" },
						     { "/p/lib.py", 7, "helper" },
						     { "/p/lib.py", 8,
						       "a_function_with_a_long_name" },
						     { "x.py", 9, "f" } };
	struct small_frame stack[6] = { { 0 } };

	for (uint32_t i = pick(6); i > 0; i--)
		stack[i - 1] = frames[pick(ARRAY_COUNT(frames))];
	small_code(s, op, stack);
}

/* Inputs may form cycles; rows of inputs come in the wrong order on purpose. */
static void open_random(struct small_model *s, uint64_t from)
{
	static const char *const types[] = { "MatMul", "Add", "Const" };
	static const char *const devices[] = { NULL, CPU0, GPU0 };
	uint32_t count = 2 + pick(80);
	struct buf name;

	seed = from;
	small_open(s);
	buf_init(&name, &s->mem);
	for (uint32_t i = 0; i < count; i++) {
		const char *device = devices[pick(3)];
		op_id op;

		add_name(&name, i);
		op = small_op(s, buf_cstr(&name), types[pick(3)], device);
		s->m->op.float_ops[op.v] = pick(1000);
		if (device && pick(4))
			small_run(s, op, pick(3), 1000, pick(500), pick(300));
		if (pick(5))
			add_stack(s, op);
	}
	for (uint32_t i = 1; i <= count; i++)
		add_inputs(s, (op_id){ i }, pick(4), count);
	buf_release(&name);
	small_freeze(s);
}

/* Pre-order, depths, child counts. */
static void check_form(const struct tree *tree)
{
	uint32_t *children = calloc(tree->node_count, sizeof(*children));

	assert_non_null(children);
	assert_true(tree->node_count > 0);
	assert_int_equal(tree->nodes[0].depth, 0);
	assert_true(str_eq(tree->nodes[0].name, STR("_TFProfRoot")));
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		assert_true(node->parent < i);
		assert_int_equal(node->depth, tree->nodes[node->parent].depth + 1);
		assert_true(node->depth <= tree->nodes[i - 1].depth + 1);
		children[node->parent]++;
	}
	for (uint32_t i = 0; i < tree->node_count; i++)
		assert_int_equal(children[i], tree->nodes[i].child_count);
	free(children);
}

/* total = own + totals of the children, for every node. */
static void check_sums(const struct tree *tree, enum metric metric)
{
	int64_t *sums = calloc(tree->node_count, sizeof(*sums));
	int64_t own = 0;

	assert_non_null(sums);
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		sums[i] += node->accounted ? tree_own(tree, node, metric) : 0;
		own += node->accounted ? tree_own(tree, node, metric) : 0;
		if (i)
			sums[node->parent] += tree_total(tree, node, metric);
	}
	for (uint32_t i = 0; i < tree->node_count; i++)
		assert_int_equal(sums[i], tree_total(tree, &tree->nodes[i], metric));
	assert_int_equal(own, tree_total(tree, tree->nodes, metric));
	free(sums);
}

static const enum metric summed[] = { METRIC_MICROS,	 METRIC_ACCELERATOR_MICROS,
				      METRIC_CPU_MICROS, METRIC_FLOAT_OPS,
				      METRIC_RUN_COUNT,	 METRIC_DEFINITION_COUNT };
#define SELECT "-select micros,float_ops,occurrence,params,bytes -max_depth 1000 "

static bool has_frames(const struct small_model *s)
{
	bool any = false;

	for (uint32_t i = 1; i < s->m->op.count; i++)
		any |= COLUMN_GET(s->m->op.stack, i).v &&
		       !str_has(model_str(s->m, s->m->op.name[i]), STR("_grad/"));
	return any;
}

static void sums(void **state)
{
	static const char *const options[] = { SELECT "-step -1",
					       SELECT "-step -1 -order_by micros",
					       SELECT "-account_type_regexes MatMul|.*gpu.*",
					       SELECT "-order_by ''" };
	static const char *const views_with_trees[] = { "scope", "graph", "code" };

	(void)state;
	for (uint64_t n = 1; n <= 60; n++) {
		struct small_model s;

		open_random(&s, n);
		for (size_t v = 0; v < 3; v++) {
			if (v == 2 && !has_frames(&s))
				continue;
			for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
				struct table *r = tfprof_run(&s, views_with_trees[v], options[i]);

				assert_int_equal(tree_unfold(r->tree, &s.mem, &s.err), OW_OK);
				check_form(r->tree);
				for (size_t k = 0; k < ARRAY_COUNT(summed); k++)
					check_sums(r->tree, summed[k]);
				table_free(r);
			}
		}
		small_close(&s);
	}
}

/* In the op view the totals run from the end; the root's is the sum of all. */
static void op_sums(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 40; n++) {
		struct small_model s;
		struct table *r, *scope;
		struct tree *tree;

		open_random(&s, n);
		r = tfprof_run(&s, "op", SELECT "-order_by micros");
		scope = tfprof_run(&s, "scope", SELECT);
		tree = r->tree;
		for (size_t k = 0; k < 5; k++) {
			int64_t below = 0;

			for (uint32_t i = tree->node_count; i-- > 1;) {
				below += tree_own(tree, &tree->nodes[i], summed[k]);
				assert_int_equal(tree_total(tree, &tree->nodes[i], summed[k]),
						 below);
			}
			assert_int_equal(tree_total(tree, tree->nodes, summed[k]), below);
			assert_int_equal(tree_total(scope->tree, scope->tree->nodes, summed[k]),
					 below);
		}
		table_free(r);
		table_free(scope);
		small_close(&s);
	}
}

/* Whatever is hidden: the form stays, and with account_displayed_op_only totals are of what is shown. */
static void filters(void **state)
{
	static const char *const options[] = {
		"-hide_name_regexes .*a.* -account_displayed_op_only true ",
		"-show_name_regexes .*[02468] -max_depth 3 -account_displayed_op_only true ",
		"-start_name_regexes .*conv.*,b.* -account_displayed_op_only true ",
		"-trim_name_regexes .*1.* -min_micros 50 -account_displayed_op_only true ",
		"-min_occurrence 1 -order_by cpu_micros -account_displayed_op_only true "
	};

	(void)state;
	for (uint64_t n = 1; n <= 40; n++) {
		struct small_model s;

		open_random(&s, n);
		for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
			struct table *scope = tfprof_run(&s, "scope", options[i]);
			struct table *graph = tfprof_run(&s, "graph", options[i]);

			check_form(scope->tree);
			check_form(graph->tree);
			check_sums(scope->tree, METRIC_MICROS);
			check_sums(graph->tree, METRIC_MICROS);
			table_free(graph);
			table_free(scope);
		}
		small_close(&s);
	}
}

/* A limit gives the first rows of the whole. */
static void limits(void **state)
{
	static const char *const names[] = { "scope", "graph", "code" };

	(void)state;
	for (size_t v = 0; v < ARRAY_COUNT(names); v++) {
		struct small_model s;
		struct table *all, *some;
		struct view_options options;

		open_random(&s, 7);
		all = tfprof_run(&s, names[v], "-order_by micros");
		some = table_new(&s.mem, names[v], &s.err);
		assert_non_null(some);
		view_options_init(&options);
		options.order_by = "micros";
		options.limit = 5;
		assert_int_equal(view_find(names[v])->run(s.m, &options, some, &s.err), OW_OK);
		assert_int_equal(tree_unfold(all->tree, &s.mem, &s.err), OW_OK);
		assert_int_equal(tree_unfold(some->tree, &s.mem, &s.err), OW_OK);
		assert_int_equal(some->tree->node_count, 5);
		check_form(some->tree);
		for (uint32_t i = 0; i < 5; i++)
			assert_true(str_eq(some->tree->nodes[i].name, all->tree->nodes[i].name));
		assert_int_equal(tree_flatten(some, &s.err), OW_OK);
		assert_int_equal(some->row_count, 5);
		table_free(some);
		table_free(all);
		small_close(&s);
	}
}

/* ---- hostile shapes ---- */

#define LONG 100000

static void long_chain(void **state)
{
	struct small_model s;
	struct table *r;
	char name[32];

	(void)state;
	small_open(&s);
	for (uint32_t i = 1; i <= LONG; i++) {
		op_id op;

		snprintf(name, sizeof(name), "n%06u", i);
		op = small_op(&s, name, "T", CPU0);
		builder_add_op_step(&s.b, &(struct op_step_row){ .op = op,
								 .step = builder_step(&s.b, 0),
								 .run_count = 1,
								 .cpu_ns = 1000 });
		if (i == 1)
			continue;
		s.m->op.input_first[i] = s.m->op_input.count;
		s.m->op.input_count[i] = 1;
		builder_add_op_input(&s.b, &(struct op_input_row){ .src = { i - 1 },
								   .name = s.m->op.name[i - 1] });
	}
	small_freeze(&s);
	r = tfprof_run(&s, "graph", "-max_depth 1000000");
	assert_int_equal(r->tree->node_count, LONG + 1);
	check_form(r->tree);
	check_sums(r->tree, METRIC_MICROS);
	table_free(r);
	r = tfprof_run(&s, "graph", "-max_depth 1000000 -hide_name_regexes n.*[1-9]");
	assert_int_equal(r->tree->node_count, LONG / 10 + 1);
	check_form(r->tree);
	table_free(r);
	r = tfprof_run(&s, "graph", "-start_name_regexes n000001");
	assert_int_equal(r->tree->node_count, 2);
	table_free(r);
	small_close(&s);
}

static void deep_names(void **state)
{
	struct small_model s;
	struct table *r;
	char *name = malloc(2 * LONG);

	(void)state;
	assert_non_null(name);
	for (uint32_t i = 0; i < LONG; i++)
		memcpy(name + 2 * (size_t)i, "a/", 2);
	name[2 * LONG - 1] = '\0';
	small_open(&s);
	small_run(&s, small_op(&s, name, "T", CPU0), 0, 10, 5, 0);
	small_freeze(&s);
	r = tfprof_run(&s, "scope", "-max_depth 1000000");
	assert_int_equal(r->tree->node_count, LONG + 1);
	assert_int_equal(r->tree->nodes[LONG].depth, LONG);
	check_sums(r->tree, METRIC_MICROS);
	table_free(r);
	r = tfprof_run(&s, "scope", "-max_depth 3");
	assert_int_equal(r->tree->node_count, 3);
	table_free(r);
	small_close(&s);
	free(name);
}

/* Scopes that byte order tears apart, empty names and parts, the root's own name. */
static void odd_names(void **state)
{
	static const char *const names[] = { "a/x/y", "a/x-1", "a/x.2/z", "a/x",  "a",		"",
					     "/x",    "//",    "b/",	  "b//c", "_TFProfRoot" };
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		small_run(&s, small_op(&s, names[i], "T", CPU0), 0, 1, 1, 0);
	small_freeze(&s);
	tfprof_expect(&s, &sink_tfprof, "scope", "-select cpu_micros",
		      "node name | cpu execution time\n"
		      "_TFProfRoot (--/11us)\n"
		      "  _TFProfRoot (1us/1us)\n"
		      "   (1us/3us)\n"
		      "    / (0us/1us)\n"
		      "      // (1us/1us)\n"
		      "    /x (1us/1us)\n"
		      "  a (1us/5us)\n"
		      "    a/x (1us/2us)\n"
		      "      a/x/y (1us/1us)\n"
		      "    a/x-1 (1us/1us)\n"
		      "    a/x.2 (0us/1us)\n"
		      "      a/x.2/z (1us/1us)\n"
		      "  b (0us/2us)\n"
		      "    b/ (1us/2us)\n"
		      "      b//c (1us/1us)\n");
	r = tfprof_run(&s, "graph", "-order_by cpu_micros");
	assert_true(str_eq(r->tree->nodes[1].name, STR("_TFProfRoot")));
	assert_int_equal(r->tree->node_count, 12);
	table_free(r);
	small_close(&s);
}

static void cycles(void **state)
{
	static const uint32_t src[] = { 2, 1, 2, 4 }; /* 1 <-> 2, 3 reads 2, 4 reads itself */
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	small_op(&s, "a", "T", CPU0);
	small_op(&s, "b", "T", CPU0);
	small_op(&s, "c", "T", CPU0);
	small_op(&s, "d", "T", CPU0);
	for (uint32_t i = 1; i <= 4; i++) {
		s.m->op.input_first[i] = s.m->op_input.count;
		s.m->op.input_count[i] = 1;
		builder_add_op_input(&s.b,
				     &(struct op_input_row){ .src = { src[i - 1] },
							     .name = s.m->op.name[src[i - 1]] });
	}
	small_freeze(&s);
	tfprof_expect(&s, &sink_tfprof, "graph", "-select occurrence",
		      "node name | op count (run|defined)\n"
		      "_TFProfRoot (--/0|--/3)\n"
		      "  c (0/0|1/3)\n"
		      "    b (0/0|1/2)\n"
		      "      a (0/0|1/1)\n");
	r = tfprof_run(&s, "scope", "");
	assert_int_equal(r->tree->node_count, 5);
	table_free(r);
	small_close(&s);
}

/* ---- failures ---- */

static void expect_error(struct small_model *s, const char *view, const char *options,
			 ow_status want, const char *text)
{
	struct tfprof_options o;
	struct table *r = table_new(&s->mem, view, &s->err);

	assert_non_null(r);
	tfprof_parse(&o, options);
	assert_int_equal(view_find(view)->run(s->m, &o.view, r, &s->err), want);
	assert_string_equal(s->err.text, text);
	table_free(r);
}

static void errors(void **state)
{
	struct small_model s;
	struct table *r;

	(void)state;
	small_open(&s);
	small_run(&s, small_op(&s, "gradients/x_grad/y", "T", CPU0), 7, 1, 1, 0);
	builder_step(&s.b, 3);
	small_freeze(&s);
	expect_error(&s, "op", "-step 5", OW_E_NOT_FOUND,
		     "Options -step=5 not found.\nAvailable steps: 3 7 ");
	expect_error(&s, "code", "", OW_E_NOT_FOUND, "No code trace information");
	s.m->has_code = true; /* but no frames */
	expect_error(&s, "code", "", OW_E_NOT_FOUND, "No code trace information");
	r = tfprof_run(&s, "scope", "-show_name_regexes ( -account_type_regexes T,[z-a]");
	assert_int_equal(r->tree->node_count, 1);
	assert_int_equal(r->tree->message_count, 4);
	assert_string_equal(r->tree->messages[0].ptr,
			    "Error parsing '[z-a]': invalid character class range: z-a");
	assert_string_equal(r->tree->messages[1].ptr,
			    "Invalid RE2: invalid character class range: z-a");
	assert_string_equal(r->tree->messages[2].ptr, "Error parsing '(': missing closing ): (");
	table_free(r);
	small_close(&s);
}

/* Every allocation fails once; the end is OW_E_NO_MEMORY, and nothing leaks. */
static void no_memory(void **state)
{
	static const char *const names[] = { "scope", "graph", "op", "code" };
	static const char *const options =
		"-select micros,bytes,params,occurrence,input_shapes,device,op_types,odd -order_by "
		"micros "
		"-hide_name_regexes .*a1.*,( -account_displayed_op_only true";
	struct small_model s;

	(void)state;
	open_random(&s, 11);
	assert_non_null(model_ops_by_name(s.m, &s.err));
	assert_int_equal(model_require_stacks(s.m, &s.err), OW_OK);
	for (size_t v = 0; v < ARRAY_COUNT(names); v++) {
		struct tfprof_options o;
		uint32_t again = 0;
		bool failed = true;

		tfprof_parse(&o, options);
		for (uint64_t n = 1; failed; n++) {
			struct ow_error err = { 0 };
			size_t used = atomic_load(&s.mem.used);
			struct table *r;
			ow_status status;
			bool made;

			mem_fail_after(n, false);
			r = table_new(&s.mem, names[v], &err);
			status = r ? view_find(names[v])->run(s.m, &o.view, r, &err) : err.status;
			made = status == OW_OK;
			if (made)
				status = tree_flatten(r, &err);
			failed = !mem_fail_left();
			mem_fail_after(0, false);
			if (made &&
			    status != OW_OK) { /* with more memory it can be asked for again */
				assert_int_equal(tree_flatten(r, &err), OW_OK);
				assert_int_equal(r->status, OW_OK);
				again = r->column_count;
			}
			if (!failed)
				assert_int_equal(r->column_count, again);
			table_free(r);
			assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
			assert_int_equal(atomic_load(&s.mem.used), used);
			assert_true(n < 10000);
		}
	}
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),	      cmocka_unit_test(op_sums),
		cmocka_unit_test(filters),    cmocka_unit_test(limits),
		cmocka_unit_test(long_chain), cmocka_unit_test(deep_names),
		cmocka_unit_test(odd_names),  cmocka_unit_test(cycles),
		cmocka_unit_test(errors),     cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
