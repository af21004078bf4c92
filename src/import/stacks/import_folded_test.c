/* import_folded_test.c: folded stacks of several writers, in several encodings, with bad lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/stack_model.h"

#define LOAD(s, text) stack_open(s, "folded", text, sizeof(text) - 1)

static void plain(void **state)
{
	static const char text[] =
		"a;b c;d 3\n# comment\n// another\nnonsense\n\na;b c 2\na;b c;d 4";
	struct small_model s;

	(void)state;
	LOAD(&s, text);
	stack_expect(&s, "|0|0|-|samples 3|a;b c;d\n"
			 "|0|0|-|samples 2|a;b c\n"
			 "|0|0|-|samples 4|a;b c;d\n");
	assert_true(stack_noted(&s, "not folded stacks"));
	assert_int_equal(s.m->note.times[1], 1);
	assert_int_equal(s.m->note.offset[1], 31);
	assert_true(s.m->has_code);
	small_close(&s);
	stack_survives("folded", text, sizeof(text) - 1);
}

static void encodings(void **state)
{
	static const char little[] = "\xff\xfe\x61\0;\0\x3d\xd8\x0a\xde \0\x37\0\r\0\n\0";
	static const char big[] = "\xfe\xff\0a\0;\0b\0 \0\x37";
	static const char marked[] = "\xef\xbb\xbf"
				     "a;b 7\r\n";
	struct small_model s;

	(void)state;
	LOAD(&s, little);
	stack_expect(&s, "|0|0|-|samples 7|a;\xf0\x9f\x98\x8a\n");
	small_close(&s);
	LOAD(&s, big);
	stack_expect(&s, "|0|0|-|samples 7|a;b\n");
	small_close(&s);
	LOAD(&s, marked);
	stack_expect(&s, "|0|0|-|samples 7|a;b\n");
	small_close(&s);
	stack_survives("folded", little, sizeof(little) - 1);
}

static void mangled(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s, "main;_ZN4Deep5innerEi;_RNvC5crate4main 4\nmain;_Zork;_ 1\nmain;_Z3addIiET_S0_ 2\n"
		 "main;_ZN12_GLOBAL__N_11fEv;_ZNK1AclEi 3\n");
	stack_expect(&s, "|0|0|-|samples 4|main;Deep::inner;crate::main\n"
			 "|0|0|-|samples 1|main;_Zork;_\n"
			 "|0|0|-|samples 2|main;int add<int>\n"
			 "|0|0|-|samples 3|main;(anonymous namespace)::f;A::operator()\n");
	small_close(&s);
}

static void writers(void **state)
{
	struct small_model s;

	(void)state;
	LOAD(&s, "main (a.py:3);step (b.py:7) 4\n");
	stack_expect(&s, "|0|0|-|samples 4|main:3;step:7\n");
	assert_string_equal(model_str(s.m, s.m->frame.file[1]).ptr, "a.py");
	small_close(&s);
	LOAD(&s, "model.py(12):_forward;nn.py(3):_call 9\n");
	stack_expect(&s, "|0|0|-|samples 9|forward:12;call:3\n");
	small_close(&s);
	LOAD(&s, "P12;T0:13;a.py:f:3;b.py:g:9 100\n");
	stack_expect(&s, "T0:13|12|13|-|samples 100|f:3;g:9\n");
	small_close(&s);
	LOAD(&s, "a;b 1 2\na;c 3 0\n");
	stack_expect(&s, "|0|0|-|after 2|a;b\n|0|0|-|before 1|a;b\n"
			 "|0|0|-|after 0|a;c\n|0|0|-|before 3|a;c\n");
	small_close(&s);
	LOAD(&s, "a;b 1.5\n");
	stack_expect(&s, "|0|0|-|samples 2|a;b\n");
	assert_true(stack_noted(&s, "rounded"));
	small_close(&s);
}

static int sniffed(const char *text)
{
	struct sniff sniff = { .head = str_from(text),
			       .tail = str_from(text),
			       .size = strlen(text) };

	return import_folded.sniff(&sniff);
}

static void recognition(void **state)
{
	struct small_model s;

	(void)state;
	assert_true(sniffed("a;b 3\na;c 4\n") > 50);
	assert_int_equal(sniffed("dim { size: 3 }\nrank: 4\n"), 0);
	assert_int_equal(sniffed("<svg> 3\n"), 0);
	assert_int_equal(sniffed("\x08\x03\x10\x01\"\x04 1\n"), 0);
	assert_int_equal(sniffed("some words\nand more of them\na;b 3\n"), 0);
	small_open(&s);
	assert_int_equal(stack_load(&s, "folded", "no\nstacks\n", 10), OW_E_FORMAT);
	small_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),   cmocka_unit_test(encodings),	  cmocka_unit_test(mangled),
		cmocka_unit_test(writers), cmocka_unit_test(recognition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
