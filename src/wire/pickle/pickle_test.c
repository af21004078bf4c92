/*
 * pickle_test.c: the reader of pickles: values of all opcodes, what is not run, ends that come too early,
 * hostile numbers, and failing allocations. Whole snapshots in all protocols are tests/cli/memory_test.py's.
 */
#include "wire/pickle/pickle.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct mem mem;

struct read {
	struct input in;
	struct pickle p;
	struct ow_error err;
	ow_status status;
};

static void read_bytes(struct read *r, const void *bytes, size_t len)
{
	r->err = (struct ow_error){ 0 };
	assert_int_equal(input_from_memory(&r->in, &mem, "x.pickle", bytes, len, &r->err), OW_OK);
	pickle_init(&r->p, &r->in, &r->err);
	r->status = pickle_run(&r->p);
}

static void done(struct read *r)
{
	pickle_release(&r->p);
	input_close(&r->in);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* The value as text: nested ones in brackets. Only for small ones. */
static void show(const struct pickle *p, struct pickle_value v, struct buf *to, int depth)
{
	static const char *const open[] = {
		[PICKLE_LIST] = "[", [PICKLE_TUPLE] = "(", [PICKLE_SET] = "<", [PICKLE_DICT] = "{"
	};
	const struct pickle_object *o = pickle_object(p, v);

	assert_true(depth < 10);
	switch (v.kind) {
	case PICKLE_NONE:
		buf_puts(to, "None");
		break;
	case PICKLE_BOOL:
		buf_puts(to, v.number ? "True" : "False");
		break;
	case PICKLE_INT:
		buf_printf(to, "%lld", (long long)v.number);
		break;
	case PICKLE_REAL:
		buf_printf(to, "%g", v.real);
		break;
	case PICKLE_BIG:
		buf_puts(to, "big");
		break;
	case PICKLE_TEXT:
		buf_printf(to, "'%.*s'", (int)o->count, o->text);
		break;
	case PICKLE_BYTES:
		buf_printf(to, "%u bytes", o->count);
		break;
	case PICKLE_FOREIGN:
		buf_printf(to, "foreign %.*s", (int)o->count, o->text);
		break;
	default:
		buf_puts(to, open[v.kind]);
		for (uint32_t i = 0; i < o->count; i++) {
			if (i)
				buf_puts(to, " ");
			show(p, o->items[i], to, depth + 1);
		}
		buf_puts(to, v.kind == PICKLE_LIST   ? "]"
			     : v.kind == PICKLE_SET  ? ">"
			     : v.kind == PICKLE_DICT ? "}"
						     : ")");
	}
}

static void reads_as(const void *bytes, size_t len, const char *expected)
{
	struct read r;
	struct buf text;

	read_bytes(&r, bytes, len);
	assert_int_equal(r.status, OW_OK);
	buf_init(&text, &mem);
	show(&r.p, r.p.root, &text, 0);
	assert_string_equal(buf_cstr(&text), expected);
	assert_null(r.p.damage);
	buf_release(&text);
	done(&r);
}
#define READS_AS(literal, expected) reads_as(literal, sizeof(literal) - 1, expected)

static void numbers(void **state)
{
	(void)state;
	READS_AS("I42\n.", "42");
	READS_AS("I01\n.", "True");
	READS_AS("I00\n.", "False");
	READS_AS("L-123456789012L\n.", "-123456789012");
	READS_AS("L99999999999999999999999L\n.", "big");
	READS_AS("F1.5\n.", "1.5");
	READS_AS("J\xff\xff\xff\xff.", "-1");
	READS_AS("K\xff.", "255");
	READS_AS("M\x01\x02.", "513");
	READS_AS("\x8a\x00.", "0");
	READS_AS("\x8a\x01\x80.", "-128");
	READS_AS("\x8a\x02\xff\x00.", "255");
	READS_AS("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "-9223372036854775808");
	READS_AS("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x01.", "big");
	READS_AS("\x8b\x01\x00\x00\x00\x7f.", "127");
	READS_AS("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5");
	READS_AS("\x88.", "True");
	READS_AS("\x89.", "False");
	READS_AS("N.", "None");
}

static void texts(void **state)
{
	(void)state;
	READS_AS("S'a\\x41\\n\\'\\\\'\n.", "'aA\n'\\'");
	READS_AS("V\\u00e9\\U0001f600x\n.", "'\xc3\xa9\xf0\x9f\x98\x80x'");
	READS_AS("V\xe9\n.", "'\xc3\xa9'"); /* bytes are Latin-1 there */
	READS_AS("V\\ud800\n.", "'\xef\xbf\xbd'");
	READS_AS("U\x02hi.", "'hi'");
	READS_AS("T\x02\x00\x00\x00hi.", "'hi'");
	READS_AS("X\x02\x00\x00\x00hi.", "'hi'");
	READS_AS("\x8c\x02hi.", "'hi'");
	READS_AS("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", "'hi'");
	READS_AS("C\x03xyz.", "3 bytes");
	READS_AS("B\x03\x00\x00\x00xyz.", "3 bytes");
	READS_AS("\x96\x03\x00\x00\x00\x00\x00\x00\x00xyz.", "3 bytes");
}

static void containers(void **state)
{
	(void)state;
	READS_AS("(lp0\nI1\naI2\na.", "[1 2]");
	READS_AS("(I1\nI2\nl.", "[1 2]");
	READS_AS("](K\x01K\x02K\x03"
		 "e.",
		 "[1 2 3]");
	READS_AS("(dp0\nS'a'\nI1\ns.", "{'a' 1}");
	READS_AS("(S'a'\nI1\nd.", "{'a' 1}");
	READS_AS("}(\x8c\x01"
		 "aK\x01\x8c\x01"
		 "bK\x02u.",
		 "{'a' 1 'b' 2}");
	READS_AS(").", "()");
	READS_AS("(K\x01K\x02t.", "(1 2)");
	READS_AS("K\x01\x85.", "(1)");
	READS_AS("K\x01K\x02\x86.", "(1 2)");
	READS_AS("K\x01K\x02K\x03\x87.", "(1 2 3)");
	READS_AS("\x8f(K\x01\x90.", "<1>");
	READS_AS("(K\x01\x91.", "<1>");
	READS_AS("(K\x01K\x02"
		 "1N.",
		 "None");
	READS_AS("K\x01"
		 "20.",
		 "1");
	READS_AS("(0N.", "None"); /* POP takes a mark away, too */
}

static void sharing(void **state)
{
	(void)state;
	READS_AS("](\x8c\x01"
		 "a\x94h\x00h\x00"
		 "e.",
		 "['a' 'a' 'a']");
	READS_AS("](K\x07\x94h\x00"
		 "e.",
		 "[7 7]"); /* numbers, too */
	READS_AS("](\x8c\x01"
		 "aq\x05h\x05"
		 "e.",
		 "['a' 'a']");
	READS_AS("](\x8c\x01"
		 "ar\x05\x00\x00\x00j\x05\x00\x00\x00"
		 "e.",
		 "['a' 'a']");
	READS_AS("((S'a'\np3\ng3\nl.", "['a' 'a']");
}

static void foreign(void **state)
{
	struct read r;
	static const char evil[] = "(cos\nsystem\n(S'touch /tmp/x'\ntRS'a'\nl.";

	(void)state;
	READS_AS("cos\nsystem\n(S'x'\ntR.", "foreign os.system");
	READS_AS("\x8c\x02os\x8c\x06system\x93)R.", "foreign os.system");
	READS_AS("ccollections\nOrderedDict\n)R(\x8c\x01"
		 "aK\x01u.",
		 "{'a' 1}");
	READS_AS("(ios\nsystem\n.", "foreign os.system");
	READS_AS("(cos\nsystem\nK\x01o.", "foreign os.system");
	READS_AS("cos\nsystem\n)\x81}b.", "foreign os.system");
	READS_AS("cos\nsystem\n)}\x92.", "foreign os.system");
	READS_AS("\x82\x01.", "foreign extension code");
	READS_AS("P12\n.", "foreign persistent id");
	READS_AS("K\x01Q.", "foreign persistent id");
	READS_AS("\x97\x98.", "foreign buffer");
	READS_AS("cos\nsystem\n)R(K\x01"
		 "e.",
		 "foreign os.system"); /* items are swallowed */
	read_bytes(&r, evil, sizeof(evil) - 1);
	assert_int_equal(r.p.foreign_count, 1);
	assert_int_equal(r.p.foreign_names, 1);
	assert_true(str_eq(pickle_text(&r.p, r.p.foreign[0]), STR("os.system")));
	done(&r);
}

/* What a list was being filled with is in it. */
static void ends_too_early(void **state)
{
	static const char whole[] = "\x80\x04}\x94(\x8c\x01"
				    "a]\x94(K\x01K\x02}\x94(\x8c\x01"
				    "bK\x03ue\x8c\x01"
				    "cK\x04u.";
	struct read r;
	struct buf text;

	(void)state;
	reads_as(whole, sizeof(whole) - 1, "{'a' [1 2 {'b' 3}] 'c' 4}");
	for (size_t len = 3; len + 1 < sizeof(whole); len++) {
		read_bytes(&r, whole, len);
		assert_int_equal(r.status, OW_OK);
		assert_non_null(r.p.damage);
		assert_true(r.p.truncated);
		assert_int_equal(r.p.root.kind, PICKLE_DICT);
		done(&r);
	}
	read_bytes(&r, whole, 23); /* inside the inner dictionary */
	buf_init(&text, &mem);
	show(&r.p, r.p.root, &text, 0);
	assert_string_equal(buf_cstr(&text), "{'a' [1 2 {'b' 3}]}");
	buf_release(&text);
	done(&r);
}

static void is_refused(const void *bytes, size_t len)
{
	struct read r;

	read_bytes(&r, bytes, len);
	assert_true(r.status == OW_E_CORRUPT || r.p.damage);
	done(&r);
}
#define IS_REFUSED(literal) is_refused(literal, sizeof(literal) - 1)

static void hostile(void **state)
{
	struct read r;
	char *deep = malloc(2000000);

	(void)state;
	IS_REFUSED("");
	IS_REFUSED(".");
	IS_REFUSED("u.");
	IS_REFUSED("a.");
	IS_REFUSED("(u.");
	IS_REFUSED("K\x01"
		   "a.");
	IS_REFUSED("}(K\x01u.");
	IS_REFUSED("K\x01K\x02K\x03s.");
	IS_REFUSED("\x85.");
	IS_REFUSED("1.");
	IS_REFUSED("0.");
	IS_REFUSED("2.");
	IS_REFUSED("R.");
	IS_REFUSED("h\x00.");
	IS_REFUSED("Nr\xff\xff\xff\xff.");
	IS_REFUSED("Np-1\n.");
	IS_REFUSED("Np99999999999999999999\n.");
	IS_REFUSED("\x8d\xff\xff\xff\xff\xff\xff\xff\xffx.");
	IS_REFUSED("\x8e\xff\xff\xff\xff\xff\xff\xff\x7fx.");
	IS_REFUSED("\x8b\xff\xff\xff\xff.");
	IS_REFUSED("Ix\n.");
	IS_REFUSED("I\n.");
	IS_REFUSED("Fx\n.");
	IS_REFUSED("Sx\n.");
	IS_REFUSED("Sno end");
	IS_REFUSED("\xfe.");
	assert_non_null(deep);
	for (size_t i = 0; i < 1000000; i++)
		memcpy(deep + 2 * i, "](", 2);
	read_bytes(&r, deep, 2000000);
	assert_int_equal(r.status, OW_OK);
	assert_int_equal(r.p.root.kind, PICKLE_LIST);
	done(&r);
	memset(deep, '(', 2000000);
	is_refused(deep, 2000000);
	free(deep);
}

static bool take_dict(void *arg, struct pickle *p, uint32_t list, struct pickle_value item)
{
	(void)list;
	if (item.kind != PICKLE_DICT)
		return false;
	*(int64_t *)arg += pickle_find(p, item, "a")->number;
	return true;
}

/* Taken items are not kept, and their memory serves the next. */
static void items_are_taken(void **state)
{
	static const char head[] = "\x80\x04]\x94(\x8c\x01"
				   "a\x94",
			  item[] = "}\x94(h\x01K\x02u";
	struct read r = { 0 };
	struct buf bytes;
	int64_t sum = 0;

	(void)state;
	buf_init(&bytes, &mem);
	buf_add(&bytes, head, sizeof(head) - 1);
	for (int i = 0; i < 1000; i++)
		buf_add(&bytes, item, sizeof(item) - 1);
	buf_puts(&bytes, "e.");
	assert_int_equal(input_from_memory(&r.in, &mem, "x", bytes.ptr, bytes.len, &r.err), OW_OK);
	pickle_init(&r.p, &r.in, &r.err);
	r.p.take = take_dict;
	r.p.arg = &sum;
	assert_int_equal(pickle_run(&r.p), OW_OK);
	assert_int_equal(sum, 2000);
	assert_int_equal(pickle_object(&r.p, r.p.root)->count, 1); /* the text */
	buf_release(&bytes);
	done(&r);
}

static void allocation_failures(void **state)
{
	static const char bytes[] = "\x80\x04}\x94(\x8c\x01"
				    "a](K\x01K\x02K\x03K\x04K\x05K\x06S'x\\n'\nK\x07\x85"
				    "e\x8c\x01"
				    "bcos\nx\n)RK\x01\x94sNu.";

	(void)state;
	for (uint64_t n = 1; n < 1000; n++) {
		struct read r = { 0 };

		assert_int_equal(
			input_from_memory(&r.in, &mem, "x", bytes, sizeof(bytes) - 1, NULL), OW_OK);
		mem_fail_after(n, false);
		pickle_init(&r.p, &r.in, &r.err);
		r.status = pickle_run(&r.p);
		mem_fail_after(0, false);
		done(&r);
		if (r.status == OW_OK)
			return;
		assert_int_equal(r.status, OW_E_NO_MEMORY);
	}
	fail_msg("never enough allocations");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(texts),
		cmocka_unit_test(containers),
		cmocka_unit_test(sharing),
		cmocka_unit_test(foreign),
		cmocka_unit_test(ends_too_early),
		cmocka_unit_test(hostile),
		cmocka_unit_test(items_are_taken),
		cmocka_unit_test(allocation_failures),
	};

	mem_init(&mem, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
