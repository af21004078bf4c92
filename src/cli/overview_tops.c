/* overview_tops.c: see overview.h. What costs most: types of ops, scopes, lines, and what samples say. */
#include "cli/overview.h"
#include "cli/words.h"

#define TOP_ROWS 5
#define TOP_SCOPES 3

/* One row of a short table; `mostly` is a second name or empty. */
static void print_row(const struct overview *o, const char *value, double share, struct str name,
		      size_t name_width, struct str mostly)
{
	size_t room = o->width > 40 ? o->width - 22 : 18, taken;

	fprintf(o->to, "  %9s %6.1f%%  ", value, share);
	taken = words_name(o->to, name, room);
	if (mostly.len && name_width + 10 < room) {
		fprintf(o->to, "%*s", (int)(name_width + 2 - MIN(taken, name_width)), "");
		words_name(o->to, mostly, room - name_width - 2);
	}
	fputc('\n', o->to);
}

/* The costliest operation types; false when nothing was timed. */
bool overview_print_top_types(const struct overview *o)
{
	const ow_result *r = o->work;
	double sum = overview_sum(r, "time_ns") / 1e3;
	bool both = overview_sum(r, "accelerator_ns") > 0 && overview_sum(r, "cpu_ns") > 0;
	char text[WORDS_NUMBER], remark[100];

	if (sum <= 0)
		return false;
	snprintf(remark, sizeof(remark), "of %s%s in %s step", words_time(text, sum),
		 both ? " on host and device" : "",
		 o->args->options.view.step < 0 ? "an average" : "the");
	overview_heading(o, "Operations that take the time", remark);
	for (uint32_t i = 0; i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = overview_real(r, i, "time_ns") / 1e3;

		if (value > 0)
			print_row(o, words_time(text, value), overview_real(r, i, "percent"),
				  overview_text(r, i, "name"), 0, STR(""));
	}
	return true;
}

/* How many rows are right below one. */
static uint32_t children(const ow_result *r, uint32_t row)
{
	uint32_t depth = ow_result_depth(r, row), count = 0;

	for (uint32_t i = row + 1; i < ow_result_rows(r) && ow_result_depth(r, i) > depth; i++)
		count += ow_result_depth(r, i) == depth + 1;
	return count;
}

/* In a trace of plain names the scopes are the operations once more. */
static bool has_scopes(const ow_result *r)
{
	for (uint32_t i = 1; i < ow_result_rows(r); i++)
		if (ow_result_depth(r, i) == 1 && children(r, i) > 1)
			return true;
	return false;
}

void overview_print_top_scopes(const struct overview *o)
{
	struct ow_view_options options;
	double sum = overview_sum(o->work, "time_ns") / 1e3;
	uint32_t shown = 0;
	ow_result *r;

	overview_part(o, &options);
	options.order_by = "micros";
	options.max_depth = 3; /* the root, scopes, what is in them */
	options.min_micros = 1;
	r = overview_view(o, "scope", &options);
	if (!r || !has_scopes(r)) {
		ow_result_free(r);
		return;
	}
	for (uint32_t i = 1; i < ow_result_rows(r) && shown < TOP_SCOPES; i++) {
		double value = overview_real(r, i, "total_micros");
		char text[WORDS_NUMBER];

		if (ow_result_depth(r, i) != 1 || !children(r, i))
			continue;
		if (!shown++)
			overview_heading(o, "Name scopes they are in", "");
		print_row(o, words_time(text, value), 100 * value / sum,
			  overview_text(r, i, "name"), 0, STR(""));
	}
	ow_result_free(r);
}

/* The lines of the user's code that created the costliest ops, and what they mostly create. */
void overview_print_top_lines(const struct overview *o)
{
	struct ow_view_options options;
	size_t widest = 0;
	ow_result *r;

	if (!ow_profile_has_code(o->profile))
		return;
	overview_part(o, &options);
	options.limit = TOP_ROWS;
	r = overview_view(o, "lines", &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		widest = MAX(widest, utf8_width(overview_text(r, i, "name")));
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		double time = overview_real(r, i, "time_ns") / 1e3;
		char text[WORDS_NUMBER];

		if (time <= 0)
			break;
		if (!i)
			overview_heading(o, "Lines of code that made them", "and mostly what");
		print_row(o, words_time(text, time), overview_real(r, i, "percent"),
			  overview_text(r, i, "name"), widest, overview_text(r, i, "top_type"));
	}
	ow_result_free(r);
}

/* Which of the metrics the views below show: the one that was asked for, else the first default. */
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

/* Of all inputs that measure the same. */
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
		bool told = same_metric(metrics, i, shown);

		for (uint32_t k = 0; k < i; k++)
			told |= same_metric(metrics, i, k);
		if (told)
			continue;
		fputs(others++ ? ", " : "; also ", o->to);
		words_name(o->to, overview_text(metrics, i, "name"), 40);
	}
}

/* "12.3k samples of cycles on 5 threads over 2.3s; also instructions" */
static void print_samples(const struct overview *o, const ow_result *metrics)
{
	uint32_t shown = shown_metric(o, metrics);
	double samples = metric_sum(metrics, shown, "samples");
	double threads = metric_sum(metrics, shown, "threads");
	char text[WORDS_NUMBER];

	fprintf(o->to, "%s sample%s", words_count(text, samples), words_plural((uint64_t)samples));
	if (!str_eq(overview_text(metrics, shown, "name"), STR("samples"))) {
		fputs(" of ", o->to);
		words_name(o->to, overview_text(metrics, shown, "name"), 40);
	}
	if (threads > 1)
		fprintf(o->to, " on %s threads", words_count(text, threads));
	if (ow_result_known(metrics, shown, ow_result_find(metrics, "span_ns")))
		fprintf(o->to, " over %s",
			words_time(text, overview_real(metrics, shown, "span_ns") / 1e3));
	print_other_metrics(o, metrics, shown);
	fputc('\n', o->to);
}

static void print_weights(const struct overview *o, const char *name, const char *title)
{
	struct ow_view_options options;
	size_t widest = 0;
	ow_result *r;

	overview_part(o, &options);
	options.limit = TOP_ROWS;
	options.metric = o->args->options.view.metric;
	r = overview_view(o, name, &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		widest = MAX(widest, utf8_width(overview_text(r, i, "name")));
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		char text[WORDS_NUMBER];

		if (overview_real(r, i, "self") <= 0)
			break;
		if (!i)
			overview_heading(o, title, "themselves");
		ow_result_show(r, i, ow_result_find(r, "self"), text, sizeof(text));
		print_row(o, text, overview_real(r, i, "self_percent"), overview_text(r, i, "name"),
			  MIN(widest, 60), overview_text(r, i, "module"));
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

/* What a profile of samples has to tell. */
void overview_print_sampled(const struct overview *o)
{
	ow_result *metrics = overview_view(o, "metrics", NULL);

	if (metrics && ow_result_rows(metrics)) {
		print_samples(o, metrics);
		print_weights(o, "functions", "Functions that take the most");
		if (has_lines(o))
			print_weights(o, "lines", "Lines of code that take the most");
	}
	ow_result_free(metrics);
}

/* A graph without times still tells where the work and the weights are. */
void overview_print_static_top(const struct overview *o, const char *metric, const char *title)
{
	ow_result *r = overview_types(o, metric);
	double sum = overview_sum(r, metric);

	for (uint32_t i = 0; sum > 0 && i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = overview_real(r, i, metric);
		char text[WORDS_NUMBER];

		if (value <= 0)
			break;
		if (!i)
			overview_heading(o, title, "");
		print_row(o, words_count(text, value), 100 * value / sum,
			  overview_text(r, i, "name"), 0, STR(""));
	}
	ow_result_free(r);
}
