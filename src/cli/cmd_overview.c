/*
 * cmd_overview.c: `opwatch FILE…`: about one screen that says what is in the files, where the time goes,
 * what to do about it, and what could not be read. Made of ordinary views; draws nothing itself but
 * headings and the short tables.
 */
#include "cli/command.h"
#include "cli/findings.h"

#include <errno.h>

#define TOP_ROWS 5
#define TOP_SCOPES 3
#define SOURCES_SHOWN 6
#define DEVICES_SHOWN 4
#define NOTES_SHOWN 5
#define FINDINGS_SHOWN 3

struct overview {
	struct args *args;
	ow_profile *profile;
	FILE *to;
	ow_result *types; /* the op view: every type, the costliest first */
	ow_result *work;  /* what takes the time */
	uint32_t width;
	uint32_t source_count;
	bool colour;
	struct ow_error *failure; /* the first thing that could not be shown */
};

/* What the profile does not have is left out; what cannot be read is remembered. */
static bool worked(const struct overview *o, ow_status status, const struct ow_error *err)
{
	bool failed = status == OW_E_CORRUPT || status == OW_E_IO || status == OW_E_NO_MEMORY ||
		      status == OW_E_LIMIT || status == OW_E_INTERNAL;

	if (failed && o->failure->status == OW_OK)
		*o->failure = *err;
	return status == OW_OK;
}

static void heading(const struct overview *o, const char *text, const char *remark)
{
	fprintf(o->to, "\n%s%s%s%s%s\n", o->colour ? "\033[1m" : "", text,
		o->colour ? "\033[0m" : "", *remark ? ", " : "", remark);
}

static ow_result *view(const struct overview *o, const char *name,
		       const struct ow_view_options *options)
{
	struct ow_error err = { 0 };
	ow_result *result = NULL;

	if (!worked(o, ow_view(o->profile, name, options, &result, &err), &err))
		return NULL;
	return result;
}

static double real_at(const ow_result *r, uint32_t row, const char *column)
{
	return ow_result_real(r, row, ow_result_find(r, column));
}

static struct str text_at(const ow_result *r, uint32_t row, const char *column)
{
	size_t len;
	const char *text = ow_result_text(r, row, ow_result_find(r, column), &len);

	return str_make(text, len);
}

static double column_sum(const ow_result *r, const char *name)
{
	uint32_t column = r ? ow_result_find(r, name) : 0;
	double sum = 0;

	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		sum += MAX(ow_result_real(r, i, column), 0);
	return sum;
}

/* The step, rank and part of the time that were asked for, and no other option. */
static void part_init(const struct overview *o, struct ow_view_options *options)
{
	const struct ow_view_options *given = &o->args->options.view;

	ow_view_options_init(options);
	options->step = given->step;
	options->rank = given->rank;
	options->time_from_ns = given->time_from_ns;
	options->time_to_ns = given->time_to_ns;
	options->full_names = given->full_names;
}

static ow_result *plain_view(const struct overview *o, const char *name)
{
	struct ow_view_options options;

	part_init(o, &options);
	return view(o, name, &options);
}

/* Every type of op, the largest of a metric first. */
static ow_result *types_by(const struct overview *o, const char *metric)
{
	static const char *const metrics[] = { "micros", "occurrence", "float_ops", "params" };
	struct ow_view_options options;

	part_init(o, &options);
	options.order_by = metric;
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ metrics, ARRAY_COUNT(metrics) };
	return view(o, "op", &options);
}

/* ---- what was found --------------------------------------------------------------------------- */

static void print_sources(struct overview *o)
{
	ow_result *r = view(o, "sources", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0;

	o->source_count = rows;
	for (uint32_t i = 0; i < rows && i < SOURCES_SHOWN; i++) {
		struct str format = text_at(r, i, "format"), path = text_at(r, i, "path");
		char size[WORDS_NUMBER];

		words_name(o->to, path, SIZE_MAX);
		fprintf(o->to, ": %.*s, %s\n", STR_ARG(format),
			words_bytes(size, real_at(r, i, "bytes")));
	}
	if (rows > SOURCES_SHOWN)
		fprintf(o->to, "… and %u more: opwatch sources\n", rows - SOURCES_SHOWN);
	ow_result_free(r);
}

static void print_sum(const struct overview *o, const char *metric, const char *what)
{
	double sum = column_sum(o->types, metric);
	char text[WORDS_NUMBER];

	if (sum > 0)
		fprintf(o->to, ", %s %s", words_count(text, sum), what);
}

/* An optimizer has variables of its own: where the trainable ones are known, those count. */
static void print_parameters(const struct overview *o)
{
	static const char *const trainable = "_trainable_variables", *const metric = "params";
	struct ow_view_options options;
	char text[WORDS_NUMBER];
	ow_result *r;
	double sum;

	part_init(o, &options);
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ &metric, 1 };
	options.account_type_regexes = (struct ow_list){ &trainable, 1 };
	r = view(o, "op", &options);
	sum = r ? column_sum(r, metric) : 0;
	ow_result_free(r);
	if (sum > 0)
		fprintf(o->to, ", %s trainable parameters", words_count(text, sum));
	else
		print_sum(o, metric, "parameters");
}

static void print_counts(const struct overview *o)
{
	uint32_t types = o->types ? ow_result_rows(o->types) : 0;
	double defined = column_sum(o->types, "definition_count");

	if (!types)
		return;
	fprintf(o->to, "%.0f op%s of %u type%s", defined, words_plural((uint64_t)defined), types,
		words_plural(types));
	print_sum(o, "float_ops", "float ops");
	print_parameters(o);
	fprintf(o->to, "%s\n", ow_profile_has_code(o->profile) ? ", source lines" : "");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* "3 steps of 103ms (102ms to 199ms); slow: step 2" */
static void print_steps(const struct overview *o)
{
	ow_result *r = plain_view(o, "steps");
	uint32_t rows = r ? ow_result_rows(r) : 0, slow = 0;
	double *times = rows ? calloc(rows, sizeof(*times)) : NULL;
	char middle[WORDS_NUMBER], low[WORDS_NUMBER], high[WORDS_NUMBER];

	for (uint32_t i = 0; times && i < rows; i++)
		times[i] = real_at(r, i, "duration_ns") / 1e3;
	if (times) {
		qsort(times, rows, sizeof(*times), by_value);
		fprintf(o->to, "%u step%s of %s", rows, words_plural(rows),
			words_time(middle, times[rows / 2]));
		if (rows > 1)
			fprintf(o->to, " (%s to %s)", words_time(low, times[0]),
				words_time(high, times[rows - 1]));
		for (uint32_t i = 0; i < rows; i++)
			if (ow_result_int(r, i, ow_result_find(r, "outlier")) && slow++ < 3)
				fprintf(o->to, "%s%lld", slow == 1 ? ", slow: step " : ", ",
					(long long)ow_result_int(r, i, ow_result_find(r, "step")));
		fprintf(o->to, "%s\n", slow > 3 ? ", …" : "");
	}
	free(times);
	ow_result_free(r);
}

/* "/job:localhost/replica:0/task:0/device:gpu:0" is "gpu:0" to those who have one machine. */
static struct str short_device(struct str name)
{
	static const char *const before[] = { "/job:localhost/replica:0/task:0", "/device:", "/" };

	for (size_t i = 0; i < ARRAY_COUNT(before); i++)
		if (str_starts(name, str_from(before[i])))
			name = str_skip(name, strlen(before[i]));
	return name;
}

/* TensorFlow reports a GPU several times: what its streams did together, each of them, and the executor
 * that feeds them. The first says enough. */
static bool is_part(const ow_result *r, struct str whole)
{
	struct str streams = STR("/stream:all"), name = short_device(whole);

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		struct str given = text_at(r, i, "device"), other = short_device(given);

		if (given.len < whole.len && str_eq(other, name) &&
		    real_at(r, i, "busy_step_ns") > 0)
			return true; /* /gpu:0 ran what /job:localhost/…/gpu:0 scheduled */
		if (!str_ends(other, streams) || str_eq(other, name))
			continue;
		other.len -= streams.len;
		if (str_starts(name, other) &&
		    (name.len == other.len || name.ptr[other.len] == '/'))
			return true;
	}
	return false;
}

/* The row of the busiest device that is less busy than `below`, or UINT32_MAX. */
static uint32_t next_device(const ow_result *r, double below, uint32_t after)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		double busy = real_at(r, i, "busy_step_ns");

		if (busy <= 0 || busy > below || (busy == below && i <= after) ||
		    is_part(r, text_at(r, i, "device")))
			continue;
		if (best == UINT32_MAX || busy > real_at(r, best, "busy_step_ns"))
			best = i;
	}
	return best;
}

/* "busy per step: cpu:0 117ms, gpu:0 16.9ms" */
static void print_devices(const struct overview *o)
{
	ow_result *r = plain_view(o, "devices");
	uint32_t row = r ? next_device(r, 1e300, 0) : UINT32_MAX, shown = 0;

	for (; row != UINT32_MAX; row = next_device(r, real_at(r, row, "busy_step_ns"), row)) {
		struct str name = short_device(text_at(r, row, "device"));
		char time[WORDS_NUMBER];

		if (shown == DEVICES_SHOWN) {
			fputs(", …", o->to);
			break;
		}
		if (str_ends(name, STR("/stream:all")))
			name.len -= strlen("/stream:all");
		fputs(shown++ ? ", " : "busy per step: ", o->to);
		words_name(o->to, name, 50);
		fprintf(o->to, " %s", words_time(time, real_at(r, row, "busy_step_ns") / 1e3));
	}
	if (shown)
		fputc('\n', o->to);
	ow_result_free(r);
}

/* ---- tops ------------------------------------------------------------------------------------- */

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
static bool print_top_types(const struct overview *o)
{
	const ow_result *r = o->work;
	double sum = column_sum(r, "time_ns") / 1e3;
	bool both = column_sum(r, "accelerator_ns") > 0 && column_sum(r, "cpu_ns") > 0;
	char text[WORDS_NUMBER], remark[100];

	if (sum <= 0)
		return false;
	snprintf(remark, sizeof(remark), "of %s%s in %s step", words_time(text, sum),
		 both ? " on host and device" : "",
		 o->args->options.view.step < 0 ? "an average" : "the");
	heading(o, "Operations that take the time", remark);
	for (uint32_t i = 0; i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = real_at(r, i, "time_ns") / 1e3;

		if (value > 0)
			print_row(o, words_time(text, value), real_at(r, i, "percent"),
				  text_at(r, i, "name"), 0, STR(""));
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

static void print_top_scopes(const struct overview *o)
{
	struct ow_view_options options;
	double sum = column_sum(o->work, "time_ns") / 1e3;
	uint32_t shown = 0;
	ow_result *r;

	part_init(o, &options);
	options.order_by = "micros";
	options.max_depth = 3; /* the root, scopes, what is in them */
	options.min_micros = 1;
	r = view(o, "scope", &options);
	if (!r || !has_scopes(r)) {
		ow_result_free(r);
		return;
	}
	for (uint32_t i = 1; i < ow_result_rows(r) && shown < TOP_SCOPES; i++) {
		double value = real_at(r, i, "total_micros");
		char text[WORDS_NUMBER];

		if (ow_result_depth(r, i) != 1 || !children(r, i))
			continue;
		if (!shown++)
			heading(o, "Name scopes they are in", "");
		print_row(o, words_time(text, value), 100 * value / sum, text_at(r, i, "name"), 0,
			  STR(""));
	}
	ow_result_free(r);
}

/* The lines of the user's code that created the costliest ops, and what they mostly create. */
static void print_top_lines(const struct overview *o)
{
	struct ow_view_options options;
	size_t widest = 0;
	ow_result *r;

	if (!ow_profile_has_code(o->profile))
		return;
	part_init(o, &options);
	options.limit = TOP_ROWS;
	r = view(o, "lines", &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		widest = MAX(widest, utf8_width(text_at(r, i, "name")));
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		double time = real_at(r, i, "time_ns") / 1e3;
		char text[WORDS_NUMBER];

		if (time <= 0)
			break;
		if (!i)
			heading(o, "Lines of code that made them", "and mostly what");
		print_row(o, words_time(text, time), real_at(r, i, "percent"),
			  text_at(r, i, "name"), widest, text_at(r, i, "top_type"));
	}
	ow_result_free(r);
}

/* Which of the metrics the views below show: the one that was asked for, else the first default. */
static uint32_t shown_metric(const struct overview *o, const ow_result *metrics)
{
	const char *asked = o->args->options.view.metric;

	for (uint32_t i = 0; i < ow_result_rows(metrics); i++)
		if (asked ? str_eq(text_at(metrics, i, "name"), str_from(asked))
			  : ow_result_int(metrics, i, ow_result_find(metrics, "is_default")) != 0)
			return i;
	return 0;
}

static bool same_metric(const ow_result *metrics, uint32_t a, uint32_t b)
{
	return str_eq(text_at(metrics, a, "name"), text_at(metrics, b, "name")) &&
	       str_eq(text_at(metrics, a, "unit"), text_at(metrics, b, "unit"));
}

/* Of all inputs that measure the same. */
static double metric_sum(const ow_result *metrics, uint32_t shown, const char *column)
{
	double sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(metrics); i++)
		if (same_metric(metrics, i, shown))
			sum += real_at(metrics, i, column);
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
		words_name(o->to, text_at(metrics, i, "name"), 40);
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
	if (!str_eq(text_at(metrics, shown, "name"), STR("samples"))) {
		fputs(" of ", o->to);
		words_name(o->to, text_at(metrics, shown, "name"), 40);
	}
	if (threads > 1)
		fprintf(o->to, " on %s threads", words_count(text, threads));
	if (ow_result_known(metrics, shown, ow_result_find(metrics, "span_ns")))
		fprintf(o->to, " over %s",
			words_time(text, real_at(metrics, shown, "span_ns") / 1e3));
	print_other_metrics(o, metrics, shown);
	fputc('\n', o->to);
}

static void print_weights(const struct overview *o, const char *name, const char *title)
{
	struct ow_view_options options;
	size_t widest = 0;
	ow_result *r;

	part_init(o, &options);
	options.limit = TOP_ROWS;
	options.metric = o->args->options.view.metric;
	r = view(o, name, &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		widest = MAX(widest, utf8_width(text_at(r, i, "name")));
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		char text[WORDS_NUMBER];

		if (real_at(r, i, "self") <= 0)
			break;
		if (!i)
			heading(o, title, "themselves");
		ow_result_show(r, i, ow_result_find(r, "self"), text, sizeof(text));
		print_row(o, text, real_at(r, i, "self_percent"), text_at(r, i, "name"),
			  MIN(widest, 60), text_at(r, i, "module"));
	}
	ow_result_free(r);
}

static bool has_lines(const struct overview *o)
{
	struct ow_view_options options;
	ow_result *r;
	bool found = false;

	part_init(o, &options);
	options.limit = TOP_ROWS;
	options.metric = o->args->options.view.metric;
	r = view(o, "lines", &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r) && !found; i++)
		found = text_at(r, i, "file").len > 0;
	ow_result_free(r);
	return found;
}

/* What a profile of samples has to tell. */
static void print_sampled(const struct overview *o)
{
	ow_result *metrics = view(o, "metrics", NULL);

	if (metrics && ow_result_rows(metrics)) {
		print_samples(o, metrics);
		print_weights(o, "functions", "Functions that take the most");
		if (has_lines(o))
			print_weights(o, "lines", "Lines of code that take the most");
	}
	ow_result_free(metrics);
}

/* A graph without times still tells where the work and the weights are. */
static void print_static_top(const struct overview *o, const char *metric, const char *title)
{
	ow_result *r = types_by(o, metric);
	double sum = column_sum(r, metric);

	for (uint32_t i = 0; sum > 0 && i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = real_at(r, i, metric);
		char text[WORDS_NUMBER];

		if (value <= 0)
			break;
		if (!i)
			heading(o, title, "");
		print_row(o, words_count(text, value), 100 * value / sum, text_at(r, i, "name"), 0,
			  STR(""));
	}
	ow_result_free(r);
}

/* ---- advice and notes ------------------------------------------------------------------------- */

static void print_advice(const struct overview *o)
{
	struct findings_style style = { .to = o->to,
					.width = o->args->terminal.out ? o->width : 80,
					.colour = o->colour,
					.brief = true,
					.title = "Advice",
					.limit = FINDINGS_SHOWN };
	struct ow_error err = { 0 };
	ow_result *r = NULL;

	if (!worked(o, ow_advise(o->profile, NULL, &r, &err), &err))
		return;
	findings_print(r, &style);
	ow_result_free(r);
}

static void print_notes(const struct overview *o)
{
	ow_result *r = view(o, "notes", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0, limit = o->args->verbose ? rows : NOTES_SHOWN;
	uint32_t width = o->args->terminal.out ? o->width : 0;

	if (rows)
		heading(o,
			ow_profile_damaged(o->profile) ? "Damaged, missing or doubtful" : "Notes",
			"");
	for (uint32_t i = 0; i < rows && i < limit; i++) {
		struct str source = text_at(r, i, "source"), text = text_at(r, i, "text");
		int64_t count = ow_result_int(r, i, ow_result_find(r, "count"));
		char line[2048], times[40] = "";

		if (count > 1)
			snprintf(times, sizeof(times), " (%lld times)", (long long)count);
		if (o->source_count == 1)
			source.len = 0;
		snprintf(line, sizeof(line), "%.*s%s%.*s%s", STR_ARG(source),
			 source.len ? ": " : "", STR_ARG(text), times);
		words_wrap(o->to, "- ", line, 2, width);
	}
	if (rows > limit)
		fprintf(o->to, "  … and %u more: opwatch notes\n", rows - limit);
	ow_result_free(r);
}

static void print_verdict(const struct overview *o)
{
	struct ow_error err = { 0 };
	char text[1000];

	if (!worked(o, ow_verdict(o->profile, &o->args->options.view, text, sizeof(text), &err),
		    &err))
		return;
	heading(o, "Verdict", "");
	words_wrap(o->to, "", text, 2, o->args->terminal.out ? o->width : 80);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void print_text(struct overview *o)
{
	print_sources(o);
	o->types = types_by(o, "micros");
	if (o->types && ow_result_find(o->types, "self") != UINT32_MAX) { /* functions, not ops */
		ow_result_free(o->types);
		o->types = NULL;
	}
	o->work = plain_view(o, "work");
	print_counts(o);
	print_steps(o);
	print_devices(o);
	print_sampled(o);
	if (print_top_types(o)) {
		print_top_scopes(o);
		print_top_lines(o);
	} else {
		print_static_top(o, "float_ops", "Float operations");
		print_static_top(o, "params", "Parameters");
	}
	print_advice(o);
	print_notes(o);
	print_verdict(o);
	ow_result_free(o->types);
	ow_result_free(o->work);
}

static ow_status show_text(struct overview *o)
{
	const struct terminal *terminal = &o->args->terminal;
	struct page page;

	o->to = page_open(&page);
	print_text(o);
	if (!page_close(&page, terminal->out && terminal->in && !o->args->no_pager,
			terminal->height)) {
		complain("opwatch: standard output: %s\n", strerror(errno));
		return OW_E_IO;
	}
	if (o->failure->status != OW_OK)
		complain("opwatch: %s\n", o->failure->text);
	return o->failure->status;
}

struct section {
	const char *name, *view, *order_by;
	uint32_t limit;
};

/* The same sections for programs: one object of results, or one table after the other. */
static ow_status print_sections(const struct overview *o)
{
	static const struct section sections[] = {
		{ "sources", "sources", "", 0 }, { "steps", "steps", "", 0 },
		{ "devices", "devices", "", 0 }, { "ops", "op", "micros", 0 },
		{ "work", "work", "", 0 },	 { "scopes", "scope", "micros", 0 },
		{ "metrics", "metrics", "", 0 }, { "notes", "notes", "", 0 },
		{ "verdict", "verdict", "", 0 },
	};
	bool json = strcmp(o->args->sink, "json") == 0;
	static struct output_stream out;
	struct ow_write_options write;
	ow_status status = OW_OK;
	struct ow_error err = { 0 };
	ow_result *r = NULL;

	ow_write_options_init(&write);
	output_start(&out, false, 0);
	for (size_t i = 0; status == OW_OK && i <= ARRAY_COUNT(sections); i++) {
		bool last = i == ARRAY_COUNT(sections);
		const char *name = last ? "advice" : sections[i].name;
		struct ow_view_options options = o->args->options.view;
		char before[64];

		if (last) {
			status = ow_advise(o->profile, NULL, &r, &err);
		} else {
			options.order_by = sections[i].order_by;
			if (!o->args->depth_given)
				options.max_depth =
					strcmp(sections[i].view, "scope") == 0 ? 2 : INT32_MAX;
			status = ow_view(o->profile, sections[i].view, &options, &r, &err);
		}
		if (status != OW_OK)
			break;
		snprintf(before, sizeof(before), json ? "%s\"%s\": " : "%s# %s\n",
			 json ? (i ? ",\n" : "{") : (i ? "\n" : ""), name);
		output_write(&out, before, strlen(before));
		status = ow_result_write(r, o->args->sink, &write, output_write, &out, &err);
		ow_result_free(r);
	}
	if (json && status == OW_OK)
		output_write(&out, "}\n", 2);
	if (!output_end(&out))
		return OW_E_IO;
	if (status != OW_OK && status != OW_E_INTERRUPTED)
		complain("opwatch: %s\n", err.text);
	return status == OW_E_INTERRUPTED ? OW_OK : status;
}

static int run(struct args *args)
{
	struct ow_error failure = { 0 };
	struct overview o = { .args = args,
			      .width = args->terminal.width,
			      .colour = args->terminal.colour,
			      .failure = &failure };
	ow_status status = OW_OK;
	int code = EXIT_FAILED;

	if (!args_redirect(args))
		return EXIT_FAILED;
	o.width = args->terminal.out ? args->terminal.width : 100;
	o.colour = args->terminal.colour;
	o.profile = load_files(args, &code);
	if (!o.profile)
		return code;
	if (strcmp(args->sink, "text") == 0)
		status = show_text(&o);
	else
		status = print_sections(&o);
	code = finish_code(args, o.profile, status);
	ow_profile_free(o.profile);
	return code;
}

const struct command cmd_overview = {
	.name = "overview",
	.usage = "FILE… [--json|--csv]",
	.summary = "what is in here, where the time goes, advice (the default)",
	.run = run,
};
