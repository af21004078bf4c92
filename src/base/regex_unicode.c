/*
 * regex_unicode.c: categories, scripts and letter cases of Unicode for regular expressions: \p{Greek},
 * \pL, (?i). Seldom used, so small tables and plain scans.
 */
#include "base/regex_int.h"
#include "base/regex_unicode_tables.h"

uint32_t unicode_next_case(uint32_t rune)
{
	for (size_t i = 0; i < ARRAY_COUNT(folds); i++)
		if (folds[i].lo <= rune && rune <= folds[i].hi &&
		    (rune - folds[i].lo) % folds[i].stride == 0)
			return (uint32_t)((int32_t)rune + folds[i].delta);
	return rune;
}

void unicode_cased(uint32_t lo, uint32_t hi, void (*each)(void *arg, uint32_t rune), void *arg)
{
	for (size_t i = 0; i < ARRAY_COUNT(folds); i++)
		for (uint32_t c = folds[i].lo; c <= MIN(folds[i].hi, hi); c += folds[i].stride)
			if (c >= lo)
				each(arg, c);
}

/* Runs whose kind is wanted: kinds are the low `bits` of a run. */
static void add_runs(struct ranges *r, const uint32_t *runs, size_t count, unsigned bits,
		     const bool *wanted)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t end = i + 1 < count ? runs[i + 1] >> bits : RUNE_MAX + 1;

		if (wanted[runs[i] & ((1u << bits) - 1)])
			ranges_add(r, runs[i] >> bits, end - 1);
	}
}

bool unicode_class(struct ranges *r, struct str name)
{
	bool wanted[256] = { false }, known = false;

	if (str_eq(name, STR("Any"))) {
		ranges_add(r, 0, RUNE_MAX);
		return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(category_names);
	     i++) { /* "Lu", or "L" for all of them */
		wanted[i] = name.len && str_starts(str_from(category_names[i]), name);
		known |= wanted[i];
	}
	if (known) {
		add_runs(r, category_runs, ARRAY_COUNT(category_runs), 5, wanted);
		return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(script_names) && !known; i++)
		known = wanted[i] = str_eq(name, str_from(script_names[i]));
	if (known)
		add_runs(r, script_runs, ARRAY_COUNT(script_runs), 8, wanted);
	return known;
}
