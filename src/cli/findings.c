/* findings.c: see findings.h. Most severe first; rules that could not check anything come last. */
#include "cli/findings.h"

static const char *cell(const ow_result *r, uint32_t row, const char *column)
{
	return ow_result_text(r, row, ow_result_find(r, column), NULL);
}

static bool is_checked(const ow_result *r, uint32_t row)
{
	return ow_result_int(r, row, ow_result_find(r, "checked")) != 0;
}

/* The tops of the overview say the same as this rule. */
static bool is_wanted(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	if (!is_checked(r, row) || !*cell(r, row, "what"))
		return false;
	return !style->brief || strcmp(cell(r, row, "rule"), "expensive_operation") != 0;
}

static void print_heading(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	uint32_t gain = ow_result_find(r, "gain_ns");
	char text[WORDS_NUMBER];

	fprintf(style->to, "%s%s: %s%s", style->colour ? "\033[1m" : "", cell(r, row, "severity"),
		cell(r, row, "rule"), style->colour ? "\033[0m" : "");
	if (ow_result_known(r, row, gain))
		fprintf(style->to, " (could save %s per step)",
			words_time(text, ow_result_real(r, row, gain) / 1e3));
	fputc('\n', style->to);
}

static void print_finding(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	const char *advice = cell(r, row, "advice");

	if (!style->brief)
		print_heading(r, row, style);
	words_wrap(style->to, style->brief ? "- " : "", cell(r, row, "what"), 2, style->width);
	if (*advice)
		words_wrap(style->to, "  → ", advice, 4, style->width);
}

/* The heading says the beginning already. */
static const char *reason(const char *what)
{
	static const char before[] = "not checked: ";

	return strncmp(what, before, strlen(before)) == 0 ? what + strlen(before) : what;
}

static void print_not_checked(const ow_result *r, const struct findings_style *style)
{
	bool any = false;

	for (uint32_t row = 0; row < ow_result_rows(r); row++) {
		if (is_checked(r, row))
			continue;
		if (!any)
			fprintf(style->to, "\nNot checked:\n");
		any = true;
		fprintf(style->to, "  %s\n", cell(r, row, "rule"));
		words_wrap(style->to, "", reason(cell(r, row, "what")), 4, style->width);
	}
}

static void start_finding(const struct findings_style *style, uint32_t number)
{
	if (!number && style->title)
		fprintf(style->to, "\n%s%s%s\n", style->colour ? "\033[1m" : "", style->title,
			style->colour ? "\033[0m" : "");
	if (number && !style->brief)
		fputc('\n', style->to);
}

void findings_print(const ow_result *r, const struct findings_style *style)
{
	static const char *const severities[] = { "high", "medium", "low", "info" };
	uint32_t found = 0;

	for (size_t i = 0; i < ARRAY_COUNT(severities); i++)
		for (uint32_t row = 0; row < ow_result_rows(r); row++) {
			if (strcmp(cell(r, row, "severity"), severities[i]) != 0 ||
			    !is_wanted(r, row, style))
				continue;
			if (!style->limit || found < style->limit) {
				start_finding(style, found);
				print_finding(r, row, style);
			}
			found++;
		}
	if (style->limit && found > style->limit)
		fprintf(style->to, "%s… and %u more%s\n", style->brief ? "  " : "\n",
			found - style->limit, style->brief ? ": opwatch advise" : "");
	if (style->brief)
		return;
	if (!found)
		fprintf(style->to, "No rule found anything to complain about.\n");
	print_not_checked(r, style);
}
