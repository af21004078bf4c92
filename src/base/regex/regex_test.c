/*
 * regex_test.c: whole-text matching with RE2's syntax: what matches, what is refused, that hostile
 * patterns end, and that lack of memory is survived.
 */
#include "base/regex/regex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

struct complaint {
	unsigned count;
	char why[256];
};

static void complain(void *arg, struct str pattern, const char *why)
{
	struct complaint *c = arg;

	(void)pattern;
	c->count++;
	snprintf(c->why, sizeof(c->why), "%s", why);
}

static bool matches(const char *pattern, struct str text)
{
	struct complaint c = { 0 };
	struct regex_list list;
	bool yes;

	assert_int_equal(regex_list_init(&list, &mem, &pattern, 1, complain, &c, NULL), OW_OK);
	if (c.count)
		fail_msg("%s: %s", pattern, c.why);
	yes = regex_match(&list, text);
	assert_int_equal(list.status, OW_OK);
	assert_int_equal(regex_match(&list, text), yes); /* from the cache */
	regex_list_release(&list);
	return yes;
}

struct example {
	const char *pattern, *text;
	bool yes;
};

static void test_matching(void **state)
{
	static const struct example examples[] = {
		{ "a", "a", true },
		{ "a", "ab", false },
		{ "", "", true },
		{ "", "a", false },
		{ ".*", "any/thing", true },
		{ "\\pL+", "日本", true },
		{ "[^😀]+", "日本", true },
		{ ".*", "two\nlines", false },
		{ "(?s).*", "two\nlines", true },
		{ "[^a]*", "two\nlines", true },
		{ "a|b|", "", true },
		{ "a|b|", "b", true },
		{ "a|bc", "ac", false },
		{ "(a|b)c", "ac", true },
		{ "a{2}", "aa", true },
		{ "a{2}", "aaa", false },
		{ "a{2,}", "aaaaa", true },
		{ "a{2,}", "a", false },
		{ "a{0,2}b", "b", true },
		{ "a{0,2}b", "aab", true },
		{ "a{0,2}b", "aaab", false },
		{ "a{0}b", "b", true },
		{ "a{0}b", "ab", false },
		{ "(ab){1,3}", "abababab", false },
		{ "a{", "a{", true },
		{ "a{,2}", "a{,2}", true },
		{ "a{01}", "a{01}", true },
		{ "x*?y+?z??", "xxyyz", true },
		{ "()*", "", true },
		{ "(|a)+", "aaa", true },
		{ "^a$", "a", true },
		{ "a^b", "ab", false },
		{ "a$", "a\n", false },
		{ "(?m)a$\n^b", "a\nb", true },
		{ "a$\n^b", "a\nb", false },
		{ "\\Aa\\z", "a", true },
		{ ".*\\bMat.*", "x/MatMul", true },
		{ ".*\\bMat.*", "x_MatMul", false },
		{ ".*\\BMat.*", "x_MatMul", true },
		{ "\\d+\\D\\s\\S\\w\\W", "12a b_-", true },
		{ "\\s", "\v", false },
		{ "[[:space:]]", "\v", true },
		{ "[[:^alpha:]]", "1", true },
		{ "[]a]+", "a]", true },
		{ "[^]a]", "]", false },
		{ "[a\\-z]+", "a-z", true },
		{ "[a-]+", "a-", true },
		{ "[[:foo]+", "[:fo", true },
		{ "\\.\\*\\_\\/", ".*_/", true },
		{ "\\Qa.b\\E+", "a.bbb", true },
		{ "\\Qa.b", "axb", false },
		{ "\\x41\\x{42}\\103\\a\\t", "ABC\a\t", true },
		{ "(?i)matMUL", "MATmul", true },
		{ "(?i:m)M", "mM", true },
		{ "(?i:m)M", "mm", false },
		{ "(?i)k", "\xe2\x84\xaa", true }, /* the Kelvin sign */
		{ "(?P<name>a)(?:b)", "ab", true },
		{ "\xc3\xa9.", "\xc3\xa9\xe4\xb8\xad", true },
		{ "[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true },
		{ "[^a]", "\xf0\x9f\x98\x80", true },
		{ "\\pL\\p{Greek}\\P{Lu}", "a\xce\xb1z", true },
		{ "[\\p{^L}\\d]+", "1-2", true },
		{ "\\p{Any}", "\xe4\xb8\xad", true },
		{ ".", "\xff", false },
		{ "\\C", "\xff", true },
		{ "[^\\x00-\\x{10FFFF}]", "a", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(examples); i++) {
		const struct example *e = &examples[i];

		if (matches(e->pattern, str_from(e->text)) != e->yes)
			fail_msg("%s on %s", e->pattern, e->text);
	}
	assert_true(matches("a.b", str_make("a\0b", 3)));
}

/* What RE2 refuses is refused, for the same reason, and never matches. */
static void test_refused(void **state)
{
	static const char *const patterns[][2] = {
		{ "(?=a)", "invalid perl operator: (?=" },
		{ "(?!a)", "invalid perl operator: (?!" },
		{ "(?<=a)", "invalid perl operator: (?<" },
		{ "(?<n>a)", "invalid perl operator: (?<" },
		{ "(?>a)", "invalid perl operator: (?>" },
		{ "(?#a)", "invalid perl operator: (?#" },
		{ "(?R)", "invalid perl operator: (?R" },
		{ "(?1)", "invalid perl operator: (?1" },
		{ "(?P=n)", "invalid perl operator: (?P" },
		{ "(?i-)", "invalid perl operator: (?i-)" },
		{ "(?i", "missing closing ): (?i" },
		{ "(a)\\1", "invalid escape sequence: \\1" },
		{ "\\K", "invalid escape sequence: \\K" },
		{ "\\G", "invalid escape sequence: \\G" },
		{ "\\Z", "invalid escape sequence: \\Z" },
		{ "\\8", "invalid escape sequence: \\8" },
		{ "\\x4", "invalid escape sequence: \\x4" },
		{ "\\x{110000}", "invalid escape sequence: \\x{110000" },
		{ "[\\b]", "invalid escape sequence: \\b" },
		{ "a\\", "trailing \\" },
		{ "a++", "bad repetition operator: ++" },
		{ "a**", "bad repetition operator: **" },
		{ "a*{2}", "bad repetition operator: *{2}" },
		{ "a{2}{3}", "bad repetition operator: {2}{3}" },
		{ "*a", "no argument for repetition operator: *" },
		{ "(|*)", "no argument for repetition operator: *" },
		{ "a{1001}", "invalid repetition size: {1001}" },
		{ "a{3,2}", "invalid repetition size: {3,2}" },
		{ "(a{100}){11}", "invalid repetition size: {11}" },
		{ "((a{9}){11}b){11}", "invalid repetition size: {11}" },
		{ "(a", "missing closing ): (a" },
		{ "a)", "unexpected ): a)" },
		{ "[a", "missing ]: [a" },
		{ "[]", "missing ]: []" },
		{ "[z-a]", "invalid character class range: z-a" },
		{ "[[:foo:]]", "invalid character class range: [:foo:]" },
		{ "\\p{Nothing}", "invalid character class range: \\p{Nothing}" },
		{ "(?P<n>a)(?P<n>b)", NULL },
		{ "(?P<n-1>a)", "invalid named capture group: (?P<n-1>" },
		{ "\xff", "invalid UTF-8" },
		{ "((((.{10}){10}){10}){1,1})", NULL },
		{ "(\\pL{900}|x){1}\\pL{900}", "pattern too large - compile failed" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
		struct complaint c = { 0 };
		struct regex_list list;

		assert_int_equal(
			regex_list_init(&list, &mem, &patterns[i][0], 1, complain, &c, NULL),
			OW_OK);
		assert_int_equal(c.count, patterns[i][1] != NULL);
		if (c.count) {
			assert_string_equal(c.why, patterns[i][1]);
			assert_false(regex_match(&list, STR("a")));
		}
		regex_list_release(&list);
	}
}

static void test_list(void **state)
{
	static const char *const patterns[] = { "a+", "(", "b.*", "c" }, *const all[] = { ".*" };
	struct complaint c = { 0 };
	struct regex_list list;

	(void)state;
	assert_int_equal(regex_list_init_all(&list, &mem, patterns, 4, complain, &c, NULL), OW_OK);
	assert_int_equal(c.count, 1);
	assert_true(regex_match(&list, STR("aaa")));
	assert_true(regex_match(&list, STR("bx")));
	assert_true(regex_match(&list, STR("c")));
	assert_false(regex_match(&list, STR("ab")));
	assert_false(regex_match(&list, STR("(")));
	regex_list_release(&list);

	assert_int_equal(regex_list_init_all(&list, &mem, patterns, 0, complain, &c, NULL), OW_OK);
	assert_false(regex_match(&list, STR("")));
	regex_list_release(&list);

	assert_int_equal(regex_list_init_all(&list, &mem, all, 1, complain, &c, NULL), OW_OK);
	assert_true(regex_match(&list, STR("two\nlines \xff")));
	regex_list_release(&list);
	assert_int_equal(regex_list_init(&list, &mem, all, 1, complain, &c, NULL), OW_OK);
	assert_false(regex_match(&list, STR("two\nlines")));
	regex_list_release(&list);
}

/* Patterns that take a backtracking matcher for ever, on a long text. */
static void test_hostile(void **state)
{
	static const char *const patterns[] = { "(a*)*b",	"(a|a)*b",
						"(a|aa)+b",	"(.*)(.*)(.*)(.*)(.*)b",
						"(x+x+)+y|a*c", "(a?){500}a{500}b",
						".*a.{14}b",	"((a*)*)*((a*)*)*b" };
	size_t len = 20000;
	char *text = malloc(len);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', len);
	for (size_t i = 0; i < ARRAY_COUNT(patterns); i++)
		assert_false(matches(patterns[i], str_make(text, len)));
	for (size_t i = 0; i < len; i++)
		text[i] = "ab"[(i * 2654435761u >> 13) & 1];
	(void)matches(".*a.{12}b.*c?", str_make(text, len)); /* many states: the cache is dropped */
	free(text);
}

static void test_deep(void **state)
{
	size_t depth = 20000;
	char *pattern = malloc(2 * depth + 3);
	struct complaint c = { 0 };
	struct regex_list list;
	const char *patterns[1];

	(void)state;
	assert_non_null(pattern);
	memset(pattern, '(', depth);
	pattern[depth] = 'a';
	memset(pattern + depth + 1, ')', depth);
	pattern[2 * depth + 1] = '\0';
	patterns[0] = pattern;
	assert_int_equal(regex_list_init(&list, &mem, patterns, 1, complain, &c, NULL), OW_OK);
	assert_int_equal(c.count, 0);
	assert_true(regex_match(&list, STR("a")));
	regex_list_release(&list);
	free(pattern);
}

static size_t put_utf8(uint32_t rune, char *to)
{
	size_t len = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;

	to[0] = (char)(len == 1 ? rune : (0xf00u >> len & 0xff) | rune >> (6 * (len - 1)));
	for (size_t i = 1; i < len; i++)
		to[i] = (char)(0x80 | (rune >> (6 * (len - 1 - i)) & 0x3f));
	to[len] = '\0';
	return len;
}

/* A class is what it says for each character that there is, wherever its ranges begin and end among the bytes. */
static void test_ranges(void **state)
{
	static const uint32_t ends[] = { 0x20,	  0x7e,	   0x80,    0xbf,    0x7ff,  0x800,
					 0x83f,	  0x1040,  0xfffd,  0x212a,  0x65e5, 0x10000,
					 0x1f5ff, 0x3ffff, 0x40000, 0x10ffff };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(ends) * ARRAY_COUNT(ends); i++) {
		uint32_t lo = ends[i / ARRAY_COUNT(ends)], hi = ends[i % ARRAY_COUNT(ends)];
		char pattern[32], text[5];
		const char *const patterns[] = { pattern };
		struct regex_list list;

		if (lo > hi)
			continue;
		snprintf(pattern, sizeof(pattern), "[\\x{%x}-\\x{%x}]", lo, hi);
		assert_int_equal(regex_list_init(&list, &mem, patterns, 1, NULL, NULL, NULL),
				 OW_OK);
		for (uint32_t rune = 1; rune < 0x110000; rune += rune < 0x3000 ? 1 : 61) {
			size_t len = put_utf8(rune, text);

			if ((rune < 0xd800 || rune > 0xdfff) &&
			    regex_match(&list, str_make(text, len)) != (rune >= lo && rune <= hi))
				fail_msg("%s: U+%04X", pattern, rune);
		}
		regex_list_release(&list);
	}
}

static void test_memory(void **state)
{
	static const char *const patterns[] = { "(a|b{2,3})*[^x\\pL]+.", "(?i)(?P<n>q)\\b.*" };
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	for (uint64_t n = 1; status != OW_OK && n < 1000; n++) {
		struct regex_list list;
		size_t before = mem.used;

		mem_fail_after(n, true);
		status = regex_list_init(&list, &mem, patterns, 2, NULL, NULL, NULL);
		if (status == OW_OK) {
			bool yes = regex_match(&list, STR("abb1-"));

			status = regex_list_status(&list, NULL);
			assert_true(yes == (status == OW_OK));
			regex_list_release(&list);
		}
		mem_fail_after(0, false);
		assert_int_equal(mem.used, before);
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_int_equal(status, OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matching), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_list),	 cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_deep),	 cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_memory),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
