/* settings_test.c: what opwatch.toml may say, and the messages for what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "advise/settings.h"

static ow_status parse(const char *text, struct advice_settings *s, struct ow_error *err)
{
	*s = (struct advice_settings)ADVICE_SETTINGS_DEFAULT;
	memset(err, 0, sizeof(*err));
	return settings_parse(s, str_from(text), "opwatch.toml", err);
}

static void good_files(void **state)
{
	struct advice_settings s;
	struct ow_error err;

	(void)state;
	assert_int_equal(parse("", &s, &err), OW_OK);
	assert_int_equal(s.muted_count, 0);
	assert_int_equal(
		parse("# mine\n[advise] # here\nmute = [\"roof\",\n  'precision', # slow\n]\n"
		      "medium = \"5%\"\r\nhigh=0.2\n",
		      &s, &err),
		OW_OK);
	assert_int_equal(s.muted_count, 2);
	assert_string_equal(s.muted[1], "precision");
	assert_true(s.medium > 0.0499 && s.medium < 0.0501 && s.high > 0.199 && s.high < 0.201);
	assert_int_equal(parse("[advise]\nmute=[]", &s, &err), OW_OK);
}

static void bad_files(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "[advise]\nmut = []",
		  "opwatch.toml:2: 'mut' is not a setting of [advise]; did you mean 'mute'?" },
		{ "[advice]", "opwatch.toml:1: 'advice' is not a part of the settings; did you "
			      "mean 'advise'?" },
		{ "\n[advise]\nmute = [\"precison\"]",
		  "opwatch.toml:3: 'precison' is not a rule; did you mean 'precision'?" },
		{ "mute = []", "must come after the heading [advise]" },
		{ "[advise]\nmute = \"roof\"", "wants a list" },
		{ "[advise]\nmute = [\"roof\" \"op\"]", "not followed by" },
		{ "[advise]\nmute = [\"roof", "no closing quote" },
		{ "[advise]\nmute = [", "not a text in quotes" },
		{ "[advise]\nmedium = 3", "'3' is not a part of a step" },
		{ "[advise]\nmedium = 0.5", "must ascend" },
		{ "[advise]\nmedium = 0.05 0.06", "unexpected at the end of this line" },
		{ "[advise]\nmedium", "has no value" },
		{ "[advise\n", "without ']'" },
		{ "[advise]\n\x01", "is not a key" },
	};
	struct advice_settings s;
	struct ow_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(cases[i].text, &s, &err), OW_E_USAGE);
		if (!strstr(err.text, cases[i].message))
			fail_msg("%s: %s", cases[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_files),
		cmocka_unit_test(bad_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
