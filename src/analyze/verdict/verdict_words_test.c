/* verdict_words_test.c: a verdict behind a sentence about the same class does not repeat it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyze/verdict/verdict.h"

static void expect(const char *verdict, struct verdict_subject subject, const char *want)
{
	struct mem mem;
	struct buf text;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	verdict_after(str_from(verdict), subject, &text);
	assert_string_equal(buf_cstr(&text), want);
	buf_release(&text);
}

#define REST "; the costliest call is nccl; 38 % computes."

static void lead(void **state)
{
	struct verdict_subject whole = { .class = CLASS_COMMUNICATION, .whole = true };
	struct verdict_subject hidden = { .class = CLASS_INPUT, .hidden = true };

	(void)state;
	expect("62 % of a step is communication that compute does not hide" REST, whole,
	       "Now this takes 62 % of a step" REST);
	expect("Over 99 % of the recording is communication that compute does not hide" REST, whole,
	       "Now this takes over 99 % of the recording" REST);
	expect("33 % of a step waits for input; 55 % computes.", hidden,
	       "In 33 % of a step nothing hides that; 55 % computes.");
	/* about something else, or about a part of it */
	expect("33 % of a step waits for input; 55 % computes.", whole,
	       "33 % of a step waits for input; 55 % computes.");
	expect("33 % of a step waits for input; 55 % computes.",
	       (struct verdict_subject){ .class = CLASS_INPUT },
	       "33 % of a step waits for input; 55 % computes.");
	expect("33 % of a step waits for input; 55 % computes.",
	       (struct verdict_subject){ .class = CLASS_COUNT },
	       "33 % of a step waits for input; 55 % computes.");
}

static void tail(void **state)
{
	struct verdict_subject host = { .class = CLASS_HOST, .whole = true };

	(void)state;
	expect("Compute-bound: 91 % of a step computes; the costliest op is Conv; 9 % is host "
	       "code.",
	       host, "Compute-bound: 91 % of a step computes; the costliest op is Conv.");
	expect("Compute-bound: 91 % of a step computes; 9 % launches.", host,
	       "Compute-bound: 91 % of a step computes; 9 % launches.");
	expect("78 % of op time is A.", host, "78 % of op time is A.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lead),
		cmocka_unit_test(tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
