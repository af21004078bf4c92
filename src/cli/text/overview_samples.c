/*
 * overview_samples.c: the part of `opwatch FILE…` that shows sampled profiles: how many samples of what, and the functions and lines that cost
 * most. It runs the views metrics, functions and lines, and computes nothing but the base of their shares.
 */
#include "cli/text/overview.h"
#include "cli/words.h"

#include <math.h>

/* Returns the metric that the views show: the one that the user chose, else the first default. */
static uint32_t shown_metric(const struct overview *o, const ow_result *metrics)
{
	const char *asked = o->args->options.view.metric;

	for (uint32_t i = 0; i < ow_result_rows(metrics); i++)
		if (asked ? str_eq(overview_text(metrics, i, "name"), str_from(asked))
			  : ow_result_int(metrics, i, ow_result_find(metrics, "is_default")) != 0)
			return i;
	return 0;
}

static bool same_metric(const ow_result *metrics, uint32_t a, uint32_t b)
{
	return str_eq(overview_text(metrics, a, "name"), overview_text(metrics, b, "name")) &&
	       str_eq(overview_text(metrics, a, "unit"), overview_text(metrics, b, "unit"));
}

/* Sums a value over all inputs that measure the same metric. */
static double metric_sum(const ow_result *metrics, uint32_t shown, const char *column)
{
	double sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(metrics); i++)
		if (same_metric(metrics, i, shown))
			sum += overview_real(metrics, i, column);
	return sum;
}

static void print_other_metrics(const struct overview *o, const ow_result *metrics, uint32_t shown)
{
	unsigned others = 0;

	for (uint32_t i = 0; i < ow_result_rows(metrics) && others < 4; i++) {
		bool printed = same_metric(metrics, i, shown);

		for (uint32_t k = 0; k < i; k++)
			printed |= same_metric(metrics, i, k);
		if (printed)
			continue;
		fputs(others++ ? ", " : "; also ", o->to);
		words_name(o->to, overview_text(metrics, i, "name"), 40);
	}
}

/* Prints "12.3k samples of cycles on 5 threads over 2.3s; also instructions". */
static void print_samples(const struct overview *o, const ow_result *metrics)
{
	uint32_t shown = shown_metric(o, metrics);
	double samples = metric_sum(metrics, shown, "samples");
	double threads = metric_sum(metrics, shown, "threads");
	char text[WORDS_NUMBER];

	if (!ow_result_known(metrics, shown, ow_result_find(metrics, "samples"))) {
		samples = metric_sum(metrics, shown, "stacks");
		fprintf(o->to, "%s stack%s", words_count(text, samples),
			words_plural((uint64_t)samples));
	} else {
		fprintf(o->to, "%s sample%s", words_count(text, samples),
			words_plural((uint64_t)samples));
	}
	if (!str_eq(overview_text(metrics, shown, "name"), STR("samples"))) {
		fputs(" of ", o->to);
		words_name(o->to, overview_text(metrics, shown, "name"), 40);
	}
	if (threads > 1)
		fprintf(o->to, " on %s threads", words_count(text, threads));
	if (overview_real(metrics, shown, "span_ns") > 0)
		fprintf(o->to, " over %s",
			words_time(text, overview_real(metrics, shown, "span_ns") / 1e3));
	print_other_metrics(o, metrics, shown);
	fputc('\n', o->to);
}

/* Prints the whole of which the listed weights are parts: "of 43.7ms", "of 2.20M cycles". */
static void print_weights_base(const struct overview *o, const char *title, double sum,
			       const ow_result *metrics, uint32_t shown)
{
	struct str unit = overview_text(metrics, shown, "unit");
	struct str name = overview_text(metrics, shown, "name");
	/* every sample has the weight 1 */
	bool each = fabs(sum - metric_sum(metrics, shown, "samples")) < 0.5;
	char text[WORDS_NUMBER], remark[100];

	if (str_eq(unit, STR("ns")))
		snprintf(remark, sizeof(remark), "of %s", words_time(text, sum / 1e3));
	else if (str_eq(unit, STR("bytes")))
		snprintf(remark, sizeof(remark), "of %s", words_bytes(text, sum));
	else if (each)
		snprintf(remark, sizeof(remark), "of %s sample%s", words_count(text, sum),
			 words_plural((uint64_t)(sum + 0.5)));
	else if (str_eq(name, STR("samples")))
		snprintf(remark, sizeof(remark), "of %s", words_count(text, sum));
	else
		snprintf(remark, sizeof(remark), "of %s %.*s", words_count(text, sum),
			 (int)MIN(name.len, 40), name.ptr);
	overview_heading(o, title, remark);
}

static void print_weights(const struct overview *o, const char *view, const char *title,
			  const ow_result *metrics)
{
	struct ow_view_options options;
	size_t widest = 0;
	ow_result *r;

	overview_part(o, &options);
	options.limit = TOP_ROWS;
	options.metric = o->args->options.view.metric;
	r = overview_view(o, view, &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		widest = MAX(widest, utf8_width(overview_text(r, i, "name")));
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		double self = overview_real(r, i, "self"),
		       share = overview_real(r, i, "self_percent");
		char text[WORDS_NUMBER];

		if (self <= 0 || share <= 0)
			break;
		if (!i)
			print_weights_base(o, title, round(100 * self / share), metrics,
					   shown_metric(o, metrics));
		ow_result_show(r, i, ow_result_find(r, "self"), text, sizeof(text));
		overview_row(o, text, share, overview_text(r, i, "name"), MIN(widest, 60),
			     overview_text(r, i, "module"));
	}
	ow_result_free(r);
}

static bool has_lines(const struct overview *o)
{
	struct ow_view_options options;
	ow_result *r;
	bool found = false;

	overview_part(o, &options);
	options.limit = TOP_ROWS;
	options.metric = o->args->options.view.metric;
	r = overview_view(o, "lines", &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r) && !found; i++)
		found = overview_text(r, i, "file").len > 0;
	ow_result_free(r);
	return found;
}

/* The summary of a sampled profile. */
void overview_print_samples(const struct overview *o)
{
	ow_result *metrics = overview_view(o, "metrics", NULL);

	if (metrics && ow_result_rows(metrics)) {
		print_samples(o, metrics);
		print_weights(o, "functions", "Functions by own cost", metrics);
		if (has_lines(o))
			print_weights(o, "lines", "Lines of code by own cost", metrics);
	}
	ow_result_free(metrics);
}
