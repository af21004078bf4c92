/* option_test.c: sizes, times and lists as people write them, right and wrong; command lines and their commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/command.h"

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} good[] = { { "0", 0 },
		     { "500", 500 },
		     { "1k", 1024 },
		     { "8GB", 8ull << 30 },
		     { "2T", 2ull << 40 } };
	static const char *const bad[] = { "", "M", "-1", "1X", "99999999T", "1.5G" };
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
		assert_true(value_size(str_from(good[i].text), &size));
		assert_int_equal(size, good[i].size);
	}
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		assert_false(value_size(str_from(bad[i]), &size));
}

static void ranges(void **state)
{
	static const char *const bad[] = { "", ":", "5", "5:4", "a:b", "1x:2x", "-1:2", "1.x:2" };
	int64_t from = INT64_MIN, to = INT64_MAX;

	(void)state;
	assert_true(value_time_range(STR("100:250"), &from, &to));
	assert_int_equal(from, 100000000);
	assert_int_equal(to, 250000000);
	assert_true(value_time_range(STR("1.5s:2s"), &from, &to));
	assert_int_equal(from, 1500000000);
	from = INT64_MIN;
	to = INT64_MAX;
	assert_true(value_time_range(STR("7us:"), &from, &to));
	assert_int_equal(from, 7000);
	assert_true(to == INT64_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		from = INT64_MIN;
		to = INT64_MAX;
		if (value_time_range(str_from(bad[i]), &from, &to))
			fail_msg("'%s' was accepted", bad[i]);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = { { "10", 10000000000 },  { "500ms", 500000000 },  { "1.5s", 1500000000 },
		     { "2m", 120000000000 }, { "1h", 3600000000000 }, { "7us", 7000 } };
	static const char *const bad[] = { "", "0", "-1s", "s", "1d", "99999999999h" };
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
		assert_true(value_duration(str_from(good[i].text), &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		if (value_duration(str_from(bad[i]), &ns))
			fail_msg("'%s' was accepted", bad[i]);
}

static void lists(void **state)
{
	struct ow_list list = { 0 };
	struct arena arena;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	assert_true(value_words(&arena, &list, "a, b"));
	assert_true(value_word(&arena, &list, "c,d"));
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[1], "b");
	assert_string_equal(list.items[2], "c,d");
	arena_release(&arena);
}

static void parts(void **state)
{
	static const struct {
		const char *text;
		double part; /* 0: none */
	} cases[] = { { "20%", 0.2 }, { "0.2", 0.2 }, { "150%", 1.5 }, { "1", 1 },    { "", 0 },
		      { "%", 0 },     { "0", 0 },     { "-5%", 0 },    { "20 %", 0 }, { "x", 0 },
		      { "20%%", 0 },  { "nan", 0 },   { "1e9", 0 },    { "2,5%", 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		double part = -1;

		assert_int_equal(value_ratio(str_from(cases[i].text), &part), cases[i].part > 0);
		if (cases[i].part > 0)
			assert_true(part > cases[i].part * 0.999 && part < cases[i].part * 1.001);
	}
}

/* Parses a command line of up to 8 words; the arena stays for the fields. */
static bool parse(struct args *args, struct arena *arena, const char *const *words)
{
	char *argv[8];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = arena_cstr(arena, str_from(words[argc]));
	*args = (struct args){ .arena = arena, .output.sink = "text" };
	options_init(&args->options, true);
	return args_parse(args, argc, argv);
}

static void command_lines(void **state)
{
	static const struct {
		const char *words[8];
		const struct command *command;
		int max_depth;
		size_t files;
	} good[] = {
		{ { "op", "x", "--max-depth", "3" }, &cmd_view, 3, 1 },
		{ { "-max_depth", "4", "op", "x" }, &cmd_view, 4, 1 },
		{ { "view", "op", "--max_depth=5", "x", "y" }, &cmd_view, 5, 3 },
		{ { "x.json", "--json" }, &cmd_overview, 10, 1 },
		{ { "--ring", "64", "record", "-o", "x.opw", "--", "-a" }, &cmd_record, 10, 1 },
		{ { "convert", "x", "--show-memory", "false", "--", "true" }, &cmd_convert, 10, 2 },
		{ { "ask", "top_ops", "--device", "gpu", "x" }, &cmd_ask, 10, 2 },
		{ { "daemon", "--stacks", "--metrics=0" }, &cmd_daemon, 10, 0 },
	};
	static const char *const bad[][8] = {
		{ "op", "x", "--ring", "64" },	   { "steps", "x", "--max-depth", "3" },
		{ "record", "--ring", "0" },	   { "op", "x", "--no-such" },
		{ "op", "x", "--limit" },	   { "op", "x", "--json=1" },
		{ "op", "x", "--max-depth", "x" },
	};
	struct arena arena;
	struct args args;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
		assert_true(parse(&args, &arena, good[i].words));
		assert_ptr_equal(args.chosen, good[i].command);
		assert_int_equal(args.file_count, good[i].files);
		assert_int_equal(args.options.view.max_depth, good[i].max_depth);
	}
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		if (parse(&args, &arena, bad[i]))
			fail_msg("'%s %s' was accepted", bad[i][0], bad[i][2]);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),  cmocka_unit_test(sizes),
		cmocka_unit_test(ranges), cmocka_unit_test(durations),
		cmocka_unit_test(lists),  cmocka_unit_test(command_lines)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
