/*
 * code_lines_test.c: a folded code tree stands for the same nodes as one that was never folded. The
 * latter is got with an option that looks at single lines and changes nothing. Chains are found in stacks
 * and in traces.
 */
#include "analyze/view.h"

#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "support/tfprof_text.h"

#define DEEP 200u

static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

/* The first two give the same label. */
static struct small_frame random_frame(void)
{
	static const char *const files[] = { "/p/main.py", "/q/main.py", "lib.py" };
	static const char *const functions[] = { "f", "a_function_with_a_long_name" };

	return (struct small_frame){ files[pick(3)], (int)pick(3), functions[pick(2)] };
}

/* Mostly short and wild, now and then the deepest or a beginning of it. */
static void add_stack(struct small_model *s, op_id op, const struct small_frame *deepest)
{
	struct small_frame stack[DEEP + 1] = { { 0 } };
	uint32_t depth = 1 + pick(7), shared = pick(3) ? pick(3) : pick(DEEP);

	for (uint32_t i = 0; i < shared; i++)
		stack[i] = deepest[i];
	for (uint32_t i = shared; i < MIN(shared + depth, DEEP); i++)
		stack[i] = random_frame();
	small_code(s, op, stack);
}

static void open_random(struct small_model *s, uint64_t from)
{
	struct small_frame deepest[DEEP];
	uint32_t count = 2 + pick(60);

	seed = from;
	small_open(s);
	for (uint32_t i = 0; i < DEEP; i++)
		deepest[i] = random_frame();
	for (uint32_t i = 0; i < count; i++) {
		char name[64];
		op_id op;

		if (i && !pick(4))
			snprintf(name, sizeof(name), "gradients/n%u_grad/n%u", pick(i), i);
		else
			snprintf(name, sizeof(name), "n%u", i);
		op = small_op(s, name, "MatMul", "/cpu:0");
		s->m->op.float_ops[op.v] = pick(1000);
		if (!i || pick(6))
			add_stack(s, op, deepest);
	}
	small_freeze(s);
}

/* What an importer would have left: the stacks of ops as traces. */
static void add_traces(struct small_model *s)
{
	struct code_traces *t = &s->m->traces;

	assert_int_equal(code_traces_init(t, s->m, &s->err), OW_OK);
	for (uint32_t op = 1; op < s->m->op.count; op++) {
		uint32_t stack = COLUMN_GET(s->m->op.stack, op).v, depth = 0;

		for (uint32_t at = stack; at; at = s->m->stack.parent[at].v)
			depth++;
		assert_true(vec_reserve(&s->mem, t->frames, t->cap, t->count + depth + 1));
		t->first[op] = (uint32_t)t->count;
		t->len[op] = depth;
		t->count += depth;
		for (uint32_t at = stack; at; at = s->m->stack.parent[at].v)
			t->frames[t->first[op] + --depth] = s->m->stack.frame[at];
	}
}

static struct table *run(struct small_model *s, const char *order, int32_t max_depth,
			 uint32_t limit, bool fold)
{
	static const char *const nothing[] = { "no line is called so" };
	static const char *const select[] = { "float_ops", "params" };
	struct table *r = table_new(&s->mem, "code", &s->err);
	struct view_options options;

	assert_non_null(r);
	view_options_init(&options);
	options.select = (struct view_list){ select, ARRAY_COUNT(select) };
	options.order_by = order;
	options.max_depth = max_depth;
	options.limit = limit;
	if (!fold)
		options.hide_name_regexes = (struct view_list){ nothing, 1 };
	assert_int_equal(view_find("code")->run(s->m, &options, r, &s->err), OW_OK);
	assert_true(r->tree->folded == fold);
	assert_true((r->tree->traces != NULL) == (fold && s->m->traces.ops));
	assert_int_equal(tree_unfold(r->tree, &s->mem, &s->err), OW_OK);
	return r;
}

static void expect_same_code(const struct tree *a, const struct tree_node *x, const struct tree *b,
			     const struct tree_node *y)
{
	const struct code_node *code = &a->code_nodes[x->code], *other = &b->code_nodes[y->code];
	const op_id *ops, *other_ops;
	uint32_t count, other_count;

	assert_int_equal(code->frame.v, other->frame.v);
	assert_int_equal(code->gradient, other->gradient);
	assert_int_equal(code->chain_count, 0);
	assert_int_equal(a->nodes[x->parent].code, code->parent);
	ops = tree_ops(a, x, &count);
	other_ops = tree_ops(b, y, &other_count);
	assert_int_equal(count, other_count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(ops[i].v, other_ops[i].v);
}

static void expect_same(const struct tree *a, const struct tree *b)
{
	static const enum metric metrics[] = { METRIC_FLOAT_OPS, METRIC_PARAMS };

	assert_int_equal(a->node_count, b->node_count);
	assert_int_equal(a->code_node_count, b->code_node_count);
	for (uint32_t i = 0; i < a->node_count; i++) {
		const struct tree_node *x = &a->nodes[i], *y = &b->nodes[i];

		assert_true(str_eq(x->name, y->name));
		assert_int_equal(x->parent, y->parent);
		assert_int_equal(x->depth, y->depth);
		assert_int_equal(x->child_count, y->child_count);
		assert_int_equal(x->accounted, y->accounted);
		assert_int_equal(x->chain, 0);
		for (size_t k = 0; k < ARRAY_COUNT(metrics); k++) {
			assert_int_equal(tree_own(a, x, metrics[k]), tree_own(b, y, metrics[k]));
			assert_int_equal(tree_total(a, x, metrics[k]),
					 tree_total(b, y, metrics[k]));
		}
		if (i)
			expect_same_code(a, x, b, y);
	}
}

static void folded_is_the_same(void **state)
{
	static const char *const orders[] = { "name", "float_ops", "occurrence", "" };

	(void)state;
	for (uint64_t n = 1; n <= 300; n++) {
		struct small_model s;

		open_random(&s, n);
		if (n % 2)
			add_traces(&s);
		for (uint32_t i = 0; i < 8; i++) {
			int32_t depth = i < 4 ? 1000 : (int32_t)pick(i == 7 ? DEEP : DEEP / 20);
			uint32_t limit = i % 2 ? 1 + pick(200) : 0;
			struct table *a = run(&s, orders[i % 4], depth, limit, true);
			struct table *b = run(&s, orders[i % 4], depth, limit, false);

			expect_same(a->tree, b->tree);
			table_free(a);
			table_free(b);
		}
		small_close(&s);
	}
}

/* A hundred thousand calls deep, with an op at each level: neither slow nor large. */
static void deep_recursion(void **state)
{
	enum { LEVELS = 100000 };
	struct small_model s;
	stack_id stack = { 0 };
	struct table *r;
	frame_id frame;

	(void)state;
	small_open(&s);
	frame = builder_frame(&s.b, &(struct frame_row){ .file = builder_cstr(&s.b, "r.py"),
							 .function = builder_cstr(&s.b, "r"),
							 .line = 1 });
	for (uint32_t i = 0; i < LEVELS; i++) {
		char name[32];
		op_id op;

		snprintf(name, sizeof(name), "n%u", i);
		op = small_op(&s, name, "MatMul", "/cpu:0");
		stack = builder_stack(&s.b, stack, frame);
		BUILDER_SET(&s.b, op, stack, op, stack);
		s.m->op.float_ops[op.v] = 1;
		s.m->has_code = true;
	}
	small_freeze(&s);
	r = run(&s, "name", LEVELS + 2, 0, true);
	assert_int_equal(r->tree->node_count, LEVELS + 1);
	assert_int_equal(tree_total(r->tree, &r->tree->nodes[1], METRIC_FLOAT_OPS), LEVELS);
	assert_int_equal(tree_own(r->tree, &r->tree->nodes[LEVELS], METRIC_FLOAT_OPS), 1);
	table_free(r);
	small_close(&s);
}

/* Every allocation fails in turn, unfolding included. */
static void starve(bool traces)
{
	bool done = false;

	for (uint64_t n = 1; !done; n++) {
		struct small_model s;
		struct view_options options;
		struct table *r;
		ow_status status;

		open_random(&s, 5);
		if (traces)
			add_traces(&s);
		r = table_new(&s.mem, "code", &s.err);
		assert_non_null(r);
		view_options_init(&options);
		mem_fail_after(n, true);
		status = view_find("code")->run(s.m, &options, r, &s.err);
		if (status == OW_OK)
			status = tree_unfold(r->tree, &s.mem, &s.err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		done = status == OW_OK;
		table_free(r);
		small_close(&s);
	}
}

static void without_memory(void **state)
{
	(void)state;
	starve(false);
	starve(true);
}

/* Many ops below one long beginning, more labels than fit into a key of their own, and ops at one line. */
static void many_alike(void **state)
{
	enum { OPS = 3000 };
	struct small_model s;
	struct table *a, *b;

	(void)state;
	small_open(&s);
	for (int i = 0; i < OPS; i++) {
		struct small_frame stack[32] = { { 0 } };
		char name[64];
		op_id op;

		snprintf(name, sizeof(name), "n%d", i * 7 % OPS);
		op = small_op(&s, name, "MatMul", "/cpu:0");
		s.m->op.float_ops[op.v] = i;
		for (int k = 0; k < 20; k++)
			stack[k] = (struct small_frame){ "main.py", k, "f" };
		for (int k = 20; k < 20 + i % 9; k++)
			stack[k] = (struct small_frame){ "deep.py", i / 4 * k, "g" };
		small_code(&s, op, stack);
	}
	small_freeze(&s);
	add_traces(&s);
	a = run(&s, "name", 1000, 0, true);
	b = run(&s, "name", 1000, 0, false);
	expect_same(a->tree, b->tree);
	table_free(a);
	table_free(b);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(folded_is_the_same),
					    cmocka_unit_test(deep_recursion),
					    cmocka_unit_test(many_alike),
					    cmocka_unit_test(without_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
