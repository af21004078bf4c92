/*
 * findings.c: what the advice rules found, as paragraphs in the order of what they save; rules that could not check anything come last.
 * `opwatch advise` prints all of it, the overview the first few, and the step after them.
 */
#include "cli/text/findings.h"
#include "cli/text/replay_text.h"

#define WORTH_NAMING 0.001 /* a lower end of a saving below this part of the step is not printed */

static const char *cell(const ow_result *r, uint32_t row, const char *column)
{
	return ow_result_text(r, row, ow_result_find(r, column), NULL);
}

static bool is_checked(const ow_result *r, uint32_t row)
{
	return ow_result_int(r, row, ow_result_find(r, "checked")) != 0;
}

/* Returns whether a row is a finding, which recommends a change; other rows are remarks. */
static bool is_finding(const ow_result *r, uint32_t row)
{
	const char *severity = cell(r, row, "severity");

	return is_checked(r, row) &&
	       (strcmp(severity, "high") == 0 || strcmp(severity, "medium") == 0);
}

static bool is_wanted(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	if (!is_checked(r, row) || !*cell(r, row, "what"))
		return false;
	if (!style->brief)
		return true;
	/* Remarks are shown where steps are unknown, so that nothing better is. The tops of the overview say the same as the
	 * last rule of tfprof. */
	return (is_finding(r, row) || !(extra_number(r, "step_ns") > 0)) &&
	       strcmp(cell(r, row, "rule"), "expensive_operation") != 0;
}

/* Prints "saves 12ms to 57ms of 175ms". */
static void print_saving(const ow_result *r, uint32_t row, FILE *to)
{
	uint32_t low = ow_result_find(r, "saving_low_ns"),
		 high = ow_result_find(r, "saving_high_ns");
	double step = extra_number(r, "step_ns");
	char text[WORDS_NUMBER];

	if (low == UINT32_MAX || high == UINT32_MAX || !ow_result_known(r, row, high))
		return;
	fprintf(to, ": saves ");
	if (ow_result_real(r, row, low) > WORTH_NAMING * step)
		fprintf(to, "%s to ", words_time(text, ow_result_real(r, row, low) / 1e3));
	else
		fprintf(to, "up to ");
	fprintf(to, "%s", words_time(text, ow_result_real(r, row, high) / 1e3));
	if (step > 0)
		fprintf(to, " of %s (%.0f %%)", words_time(text, step / 1e3),
			100 * ow_result_real(r, row, high) / step);
	if (strcmp(cell(r, row, "basis"), "mean") == 0)
		fprintf(to, ", of the mean step");
	if (strcmp(cell(r, row, "basis"), "bound") == 0)
		fprintf(to, ", as the device allows at best");
}

static void print_heading(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	fprintf(style->to, "%s%s: %s%s", style->colour ? "\033[1m" : "", cell(r, row, "severity"),
		cell(r, row, "rule"), style->colour ? "\033[0m" : "");
	print_saving(r, row, style->to);
	fputc('\n', style->to);
}

static void print_finding(const ow_result *r, uint32_t row, const struct findings_style *style)
{
	const char *advice = cell(r, row, "advice"), *where = cell(r, row, "where");
	const char *falsified = cell(r, row, "falsified_by");

	print_heading(r, row, style);
	words_wrap(style->to, "  ", cell(r, row, "what"), 2, style->width);
	if (*where && !style->brief)
		words_wrap(style->to, "  where: ", where, 4, style->width);
	if (*advice)
		words_wrap(style->to, "  → ", advice, 4, style->width);
	if (*falsified && !style->brief)
		words_wrap(style->to, "  check: ", falsified, 4, style->width);
}

/* Returns the reason without its beginning, which the heading contains. */
static const char *reason(const ow_result *r, uint32_t row)
{
	static const char before[] = "not checked: ";
	const char *why = cell(r, row, "why_not");

	return strncmp(why, before, strlen(before)) == 0 ? why + strlen(before) : why;
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
		words_wrap(style->to, "", reason(r, row), 4, style->width);
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

/* Returns the sum of saving_after_ns of the first `shown` findings, or a negative number if none
 * has one. */
static double saving_of_first(const ow_result *r, uint32_t shown,
			      const struct findings_style *style)
{
	uint32_t after = ow_result_find(r, "saving_after_ns"), found = 0;
	double sum = 0;
	bool any = false;

	for (uint32_t row = 0; row < ow_result_rows(r) && found < shown; row++) {
		if (!is_wanted(r, row, style))
			continue;
		found++;
		if (after == UINT32_MAX || !ow_result_known(r, row, after))
			continue;
		any = true;
		sum += ow_result_real(r, row, after);
	}
	return any ? sum : -1;
}

/* Returns the name of the time that savings refer to. */
static const char *span_name(const ow_result *r)
{
	const char *known = ow_result_extra(r, "steps_known");

	return known && strcmp(known, "false") == 0 ? "recording" : "step";
}

/* Returns whether most of the time is compute, so that no finding means that all is well. */
static bool is_healthy(const ow_result *r)
{
	const char *healthy = ow_result_extra(r, "healthy");

	return healthy && strcmp(healthy, "true") == 0;
}

/* Prints "With these the step takes 118ms instead of 175ms.". */
static void print_after(const ow_result *r, uint32_t shown, const struct findings_style *style)
{
	double step = extra_number(r, "step_ns"), saved = saving_of_first(r, shown, style);
	char now[WORDS_NUMBER], was[WORDS_NUMBER];

	/* a saving of the whole step would be meaningless */
	if (!(step > 0) || saved < 0 || saved >= step)
		return;
	fprintf(style->to, "%sWith %s the %s takes %s instead of %s.\n", style->brief ? "" : "\n",
		shown == 1 ? "this change" : "these changes", span_name(r),
		words_time(now, (step - saved) / 1e3), words_time(was, step / 1e3));
}

/* Returns whether one-off initialisation hides the work that repeats. */
static bool is_warm_up(const ow_result *r)
{
	const char *warm_up = ow_result_extra(r, "warm_up");

	return warm_up && strcmp(warm_up, "true") == 0;
}

static void print_nothing(const ow_result *r, const struct findings_style *style)
{
	double step = extra_number(r, "step_ns");
	char text[WORDS_NUMBER];

	if (!(step > 0)) {
		if (!style->brief)
			fprintf(style->to, "No rule found a problem.\n");
		return;
	}
	/* the verdict above already says this */
	if (style->brief && (is_healthy(r) || is_warm_up(r)))
		return;
	start_finding(style, 0);
	if (is_warm_up(r)) {
		fprintf(style->to,
			"%sThis is mostly warm-up: record %s to judge the work that repeats.\n",
			style->brief ? "" : "\n",
			strcmp(span_name(r), "step") == 0 ? "later steps"
							  : "a later part of the run");
		return;
	}
	fprintf(style->to, "%s%s %g %% of the %s of %s.\n", style->brief ? "" : "\n",
		is_healthy(r) ? "Nothing worth changing above"
			      : "No rule found a change that saves",
		100 * extra_number(r, "medium_from"), span_name(r), words_time(text, step / 1e3));
}

void findings_print(const ow_result *r, const struct findings_style *style)
{
	uint32_t found = 0, shown = 0, findings = 0;

	for (uint32_t row = 0; row < ow_result_rows(r); row++) {
		if (!is_wanted(r, row, style))
			continue;
		findings += is_finding(r, row);
		if (!style->limit || found < style->limit) {
			start_finding(style, found);
			print_finding(r, row, style);
			shown++;
		}
		found++;
	}
	if (findings)
		print_after(r, shown, style);
	else
		print_nothing(r, style);
	if (style->limit && found > style->limit)
		fprintf(style->to, "%s… and %u more%s\n", style->brief ? "  " : "\n",
			found - style->limit, style->brief ? ": opwatch advise" : "");
	if (style->brief)
		return;
	print_replayed(r, style->to);
	if (ow_result_extra(r, "muted") && strcmp(ow_result_extra(r, "muted"), "[]") != 0)
		fprintf(style->to, "Muted: %s\n", ow_result_extra(r, "muted"));
	print_not_checked(r, style);
}
