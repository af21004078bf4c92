/*
 * cmd_overview.c: `opwatch FILE…`: about one screen that says what is in the files, where the time goes, what to do
 * about it, and what could not be read. It runs ordinary views and prints headings and short tables of their rows; with
 * --json or --csv it writes the same views as they are. It computes nothing itself.
 */
#include "cli/command.h"
#include "cli/text/findings.h"
#include "cli/text/overview.h"

#include <math.h>

#define SOURCES_SHOWN 6
#define DEVICES_SHOWN 4
#define TOP_SCOPES 3
#define NOTES_SHOWN 5
#define FINDINGS_SHOWN 3

struct overview_args {
	bool estimate;
};

static bool check_status(const struct overview *o, ow_status status, const struct ow_error *err)
{
	bool failed = status == OW_E_CORRUPT || status == OW_E_IO || status == OW_E_NO_MEMORY ||
		      status == OW_E_LIMIT || status == OW_E_INTERNAL;

	if (failed && o->failure->status == OW_OK)
		*o->failure = *err;
	return status == OW_OK;
}

void overview_heading(const struct overview *o, const char *text, const char *remark)
{
	fprintf(o->to, "\n%s%s%s%s%s\n", o->colour ? "\033[1m" : "", text,
		o->colour ? "\033[0m" : "", *remark ? ", " : "", remark);
}

ow_result *overview_view(const struct overview *o, const char *name,
			 const struct ow_view_options *options)
{
	struct ow_view_options used; /* options that apply to all parts of the screen */
	struct ow_error err = { 0 };
	ow_result *result = NULL;

	ow_view_options_init(&used);
	if (options)
		used = *options;
	ow_view_options_drop(o->profile, name, &used);
	if (!check_status(o, ow_view(o->profile, name, &used, &result, &err), &err))
		return NULL;
	return result;
}

double overview_real(const ow_result *r, uint32_t row, const char *column)
{
	return ow_result_real(r, row, ow_result_find(r, column));
}

struct str overview_text(const ow_result *r, uint32_t row, const char *column)
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

void overview_part(const struct overview *o, struct ow_view_options *options)
{
	const struct ow_view_options *given = &o->args->options.view;

	ow_view_options_init(options);
	options->step = given->step;
	options->rank = given->rank;
	options->time_from_ns = given->time_from_ns;
	options->time_to_ns = given->time_to_ns;
	options->full_names = given->full_names;
}

static ow_result *run_plain_view(const struct overview *o, const char *name)
{
	struct ow_view_options options;

	overview_part(o, &options);
	return overview_view(o, name, &options);
}

static ow_result *run_op_view(const struct overview *o, const char *metric)
{
	static const char *const metrics[] = { "micros", "occurrence", "float_ops", "params" };
	struct ow_view_options options;

	overview_part(o, &options);
	options.order_by = metric;
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ metrics, ARRAY_COUNT(metrics) };
	return overview_view(o, "op", &options);
}

/* Counts the different values of a column before `rows`. */
static uint32_t distinct(const ow_result *r, const char *name)
{
	uint32_t column = ow_result_find(r, name), rows = ow_result_rows(r), count = 0;

	for (uint32_t i = 0; i < rows; i++) {
		bool seen = !ow_result_known(r, i, column);

		for (uint32_t k = 0; k < i && !seen; k++)
			seen = ow_result_known(r, k, column) &&
			       ow_result_int(r, k, column) == ow_result_int(r, i, column);
		count += !seen;
	}
	return count;
}

/* Prints "2 of 128 ranks are here", or that the files do not belong to one job. */
static void print_jobs(struct overview *o, const ow_result *r)
{
	uint32_t rows = r ? ow_result_rows(r) : 0, ranks;
	double world = 0;

	o->jobs = rows ? distinct(r, "job") : 0;
	ranks = rows ? distinct(r, "rank") : 0;
	o->ranks = o->jobs <= 1 ? ranks : 0;
	for (uint32_t i = 0; i < rows; i++)
		world = MAX(world, overview_real(r, i, "world_size"));
	if (o->jobs > 1)
		fprintf(o->to, "%u different jobs: their times are not added up\n", o->jobs);
	else if (ranks && world > ranks)
		fprintf(o->to, "%u of %.0f ranks %s here\n", ranks, world,
			ranks == 1 ? "is" : "are");
}

static void print_sources(struct overview *o)
{
	ow_result *r = overview_view(o, "sources", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0;

	o->source_count = rows;
	o->is_live = rows && str_eq(overview_text(r, 0, "format"), STR("live"));
	for (uint32_t i = 0; i < rows && i < SOURCES_SHOWN; i++) {
		struct str format = overview_text(r, i, "format"),
			   path = overview_text(r, i, "path");
		char size[WORDS_NUMBER];

		words_name(o->to, path, SIZE_MAX);
		fprintf(o->to, ": %.*s, %s\n", STR_ARG(format),
			words_bytes(size, overview_real(r, i, "bytes")));
	}
	if (rows > SOURCES_SHOWN)
		fprintf(o->to, "… and %u more: opwatch sources\n", rows - SOURCES_SHOWN);
	print_jobs(o, r);
	ow_result_free(r);
}

static void print_sum(const struct overview *o, const char *metric, const char *what)
{
	double sum = column_sum(o->types, metric);
	char text[WORDS_NUMBER];

	if (sum > 0)
		fprintf(o->to, ", %s %s", words_count(text, sum), what);
}

/* Prints the number of parameters. If trainable variables are known, only those count, because
 * an optimizer has its own variables. */
static void print_parameters(const struct overview *o)
{
	static const char *const trainable = "_trainable_variables", *const metric = "params";
	struct ow_view_options options;
	char text[WORDS_NUMBER];
	ow_result *r;
	double sum;

	overview_part(o, &options);
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ &metric, 1 };
	options.account_type_regexes = (struct ow_list){ &trainable, 1 };
	r = overview_view(o, "op", &options);
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

/* Returns whether a step is steady; a step without phases counts as steady. */
static bool is_steady(const ow_result *r, uint32_t row)
{
	uint32_t column = ow_result_find(r, "in_means");

	return !ow_result_known(r, row, column) || ow_result_int(r, row, column);
}

/* Returns the median time of a steady step, or of all steps if none is steady. */
static double median_step(const ow_result *r, double *times, uint32_t rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rows; i++)
		if (is_steady(r, i))
			times[count++] = overview_real(r, i, "duration_ns") / 1e3;
	for (uint32_t i = 0; !count && i < rows; i++)
		times[i] = overview_real(r, i, "duration_ns") / 1e3;
	count = count ? count : rows;
	qsort(times, count, sizeof(*times), by_value);
	return times[(count - 1) / 2] / 2 + times[count / 2] / 2;
}

/* Finds, among several steps, the steady step whose time is nearest to the median. */
static int64_t find_typical(const ow_result *r, double median, uint32_t rows)
{
	double nearest = 1e300;
	int64_t step = -1;

	for (uint32_t i = 0; i < rows && rows > 1; i++) {
		double far = fabs(overview_real(r, i, "duration_ns") / 1e3 - median);

		if (!is_steady(r, i) || far >= nearest)
			continue;
		nearest = far;
		step = ow_result_int(r, i, ow_result_find(r, "step"));
	}
	return step;
}

/* Whether the recording begins or ends within a step: its time is not that of a step. */
static bool is_incomplete(const ow_result *r, uint32_t row)
{
	return str_starts(overview_text(r, row, "left_out"), STR("incomplete"));
}

#define SLOW_SHOWN 3u

/* Prints ", slow: step 2, 7". A step that is slow on several ranks is one step: ", slow: step 2 (4 ranks), 7". */
static void print_slow_steps(const struct overview *o, const ow_result *r)
{
	uint32_t outlier = ow_result_find(r, "outlier"), step = ow_result_find(r, "step");
	uint32_t rows = ow_result_rows(r), found = 0, ranks[SLOW_SHOWN] = { 0 };
	int64_t steps[SLOW_SHOWN] = { 0 };
	bool more = false;

	for (uint32_t i = 0; i < rows; i++) {
		uint32_t at = 0;

		if (!ow_result_int(r, i, outlier))
			continue;
		while (at < found && (o->ranks <= 1 || steps[at] != ow_result_int(r, i, step)))
			at++;
		if (at == SLOW_SHOWN) {
			more = true;
			continue;
		}
		if (at == found)
			steps[found++] = ow_result_int(r, i, step);
		ranks[at]++;
	}
	for (uint32_t i = 0; i < found; i++) {
		fprintf(o->to, "%s%lld", i ? ", " : ", slow: step ", (long long)steps[i]);
		if (ranks[i] > 1)
			fprintf(o->to, " (%u ranks)", ranks[i]);
	}
	fprintf(o->to, "%s\n", more ? ", …" : "");
}

/* "3 steps of 103ms (102ms to 199ms), 1 incomplete, slow: step 2" */
static void print_steps(struct overview *o)
{
	ow_result *r = run_plain_view(o, "steps");
	uint32_t rows = r ? ow_result_rows(r) : 0, whole = 0;
	double *times = rows ? calloc(rows, sizeof(*times)) : NULL;
	char middle[WORDS_NUMBER], low[WORDS_NUMBER], high[WORDS_NUMBER];

	o->steps_known = rows > 0;
	if (times && o->jobs > 1) {
		fprintf(o->to, "%u step%s of all jobs: opwatch steps\n", rows, words_plural(rows));
	} else if (times) {
		uint32_t steps = o->ranks > 1 ? distinct(r, "step") : rows;
		double median = median_step(r, times, rows);

		o->typical_step = find_typical(r, median, rows);
		fprintf(o->to, "%u step%s of %s", steps, words_plural(steps),
			words_time(middle, median));
		if (o->ranks > 1)
			fprintf(o->to, " on %u ranks", o->ranks);
		for (uint32_t i = 0; i < rows; i++)
			if (!is_incomplete(r, i))
				times[whole++] = overview_real(r, i, "duration_ns") / 1e3;
		qsort(times, whole, sizeof(*times), by_value);
		if (whole > 1)
			fprintf(o->to, " (%s to %s)", words_time(low, times[0]),
				words_time(high, times[whole - 1]));
		if (whole && whole < rows)
			fprintf(o->to, ", %u incomplete", rows - whole);
		print_slow_steps(o, r);
	} else if (o->is_live) {
		fputs("no steps: nothing that repeats was found; record with --step-marker "
		      "FUNCTION to "
		      "name the function that begins a step\n",
		      o->to);
	}
	free(times);
	ow_result_free(r);
}

/* Shortens "/job:localhost/replica:0/task:0/device:gpu:0" to "gpu:0". */
static struct str short_device(struct str name)
{
	static const char *const before[] = { "/job:localhost/replica:0/task:0", "/device:", "/" };

	for (size_t i = 0; i < ARRAY_COUNT(before); i++)
		if (str_starts(name, str_from(before[i])))
			name = str_skip(name, strlen(before[i]));
	return name;
}

/* Returns whether a device is part of another one. TensorFlow reports a GPU several times: all
 * streams together, each stream, and the executor; the first is enough. */
static bool is_part(const ow_result *r, struct str whole)
{
	struct str streams = STR("/stream:all"), name = short_device(whole);

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		struct str given = overview_text(r, i, "device"), other = short_device(given);

		if (given.len < whole.len && str_eq(other, name) &&
		    overview_real(r, i, "busy_step_ns") > 0)
			return true; /* /gpu:0 ran the work that /job:localhost/…/gpu:0 scheduled */
		if (!str_ends(other, streams) || str_eq(other, name))
			continue;
		other.len -= streams.len;
		if (str_starts(name, other) &&
		    (name.len == other.len || name.ptr[other.len] == '/'))
			return true;
	}
	return false;
}

/* Returns the row of the busiest device that is less busy than `below`, or UINT32_MAX. */
static uint32_t next_device(const ow_result *r, double below, uint32_t after)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		double busy = overview_real(r, i, "busy_step_ns");

		if (busy <= 0 || busy > below || (busy == below && i <= after) ||
		    is_part(r, overview_text(r, i, "device")))
			continue;
		if (best == UINT32_MAX || busy > overview_real(r, best, "busy_step_ns"))
			best = i;
	}
	return best;
}

/* Prints "busy per step: cpu:0 117ms, gpu:0 16.9ms". */
static void print_devices(const struct overview *o)
{
	ow_result *r = run_plain_view(o, "devices");
	uint32_t row = r ? next_device(r, 1e300, 0) : UINT32_MAX, shown = 0;

	for (; row != UINT32_MAX;
	     row = next_device(r, overview_real(r, row, "busy_step_ns"), row)) {
		struct str name = short_device(overview_text(r, row, "device"));
		char time[WORDS_NUMBER];

		if (shown == DEVICES_SHOWN) {
			fputs(", …", o->to);
			break;
		}
		if (str_ends(name, STR("/stream:all")))
			name.len -= strlen("/stream:all");
		fputs(shown++ ? ", " : o->steps_known ? "busy per step: " : "busy: ", o->to);
		words_name(o->to, name, 50);
		fprintf(o->to, " %s",
			words_time(time, overview_real(r, row, "busy_step_ns") / 1e3));
	}
	if (shown)
		fputc('\n', o->to);
	ow_result_free(r);
}

/* Prints one row of a short table; `mostly` is a second name or empty. */
void overview_row(const struct overview *o, const char *value, double share, struct str name,
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

#define RARE_PART 0.05 /* smallest part of the time at which outliers get a line */

/* Prints the time of one-off runs and of steps far from the median, and the operation with the
 * largest part. */
static void print_outliers(const struct overview *o, double sum)
{
	const ow_result *r = o->work;
	uint32_t most = 0;
	char text[WORDS_NUMBER];

	for (uint32_t i = 1; i < ow_result_rows(r); i++)
		if (overview_real(r, i, "outlier_ns") > overview_real(r, most, "outlier_ns"))
			most = i;
	fprintf(o->to, "  %9s  outliers and one-off runs, above all ", words_time(text, sum));
	words_name(o->to, overview_text(r, most, "name"), o->width > 80 ? o->width - 52 : 28);
	fprintf(o->to, " (%.0f %%)\n", 100 * overview_real(r, most, "outlier_ns") / 1e3 / sum);
}

/* Prints the costliest operation types; false if nothing was timed. */
static bool print_top_types(struct overview *o)
{
	const ow_result *r = o->work;
	double rare = column_sum(r, "outlier_ns") / 1e3;
	double all = column_sum(r, "time_ns") / 1e3;
	bool apart = rare >= RARE_PART * all;
	double sum = apart ? all - rare : all;
	bool both = column_sum(r, "accelerator_ns") > 0 && column_sum(r, "cpu_ns") > 0;
	char text[WORDS_NUMBER], remark[100];

	if (all <= 0)
		return false;
	o->apart = apart;
	snprintf(remark, sizeof(remark), "of %s%s%s", words_time(text, sum),
		 both ? " on host and device" : "",
		 !o->steps_known		  ? ""
		 : o->args->options.view.step < 0 ? " in an average step"
						  : " in the step");
	if (apart)
		snprintf(remark + strlen(remark), sizeof(remark) - strlen(remark),
			 ", outliers apart");
	overview_heading(o, "Operations by time", remark);
	for (uint32_t i = 0; i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = (overview_real(r, i, "time_ns") -
				(apart ? overview_real(r, i, "outlier_ns") : 0)) /
			       1e3;

		if (value > 0)
			overview_row(o, words_time(text, value), 100 * value / sum,
				     overview_text(r, i, "name"), 0, STR(""));
	}
	if (apart)
		print_outliers(o, rare);
	return true;
}

/* Prints a heading that names the whole of which the shares below are parts. */
static void print_base(const struct overview *o, const char *heading, double sum, const char *what)
{
	char text[WORDS_NUMBER], remark[200];

	snprintf(remark, sizeof(remark), "of %s: %s", words_time(text, sum), what);
	overview_heading(o, heading, remark);
}

/* Where outliers are set apart, the lists of scopes and lines show a typical step, too, so that outliers do not lead them. Appends
 * that to `what`. */
static void choose_typical(const struct overview *o, struct ow_view_options *options,
			   const char *what, char *remark, size_t size)
{
	bool step = o->apart && o->typical_step >= 0 && options->step < 0;

	if (step)
		options->step = o->typical_step;
	if (step)
		snprintf(remark, size, "%s in step %lld, a typical one", what,
			 (long long)options->step);
	else
		snprintf(remark, size, "%s%s", what, o->apart ? ", one-off runs included" : "");
}

/* Counts the direct children of a row. */
static uint32_t children(const ow_result *r, uint32_t row)
{
	uint32_t depth = ow_result_depth(r, row), count = 0;

	for (uint32_t i = row + 1; i < ow_result_rows(r) && ow_result_depth(r, i) > depth; i++)
		count += ow_result_depth(r, i) == depth + 1;
	return count;
}

#define WORTH_PART 0.01 /* smallest part of the time of all operations that is shown */

/* Returns whether names have scopes; in a trace of plain names the scopes would repeat the
 * operations. */
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
	ow_result *r, *work = NULL;
	uint32_t shown = 0;
	char remark[100];
	double sum;

	overview_part(o, &options);
	choose_typical(o, &options, "all operations", remark, sizeof(remark));
	if (options.step >= 0 && o->apart)
		work = overview_view(o, "work", &options);
	sum = column_sum(work ? work : o->work, "time_ns") / 1e3;
	ow_result_free(work);
	options.order_by = "micros";
	options.max_depth = 3; /* the root, the scopes and their contents */
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
		if (value < WORTH_PART * sum) /* all further scopes take less */
			break;
		if (!shown++)
			print_base(o, "Name scopes by time", sum, remark);
		overview_row(o, words_time(text, value), 100 * value / sum,
			     overview_text(r, i, "name"), 0, STR(""));
	}
	ow_result_free(r);
}

/* Counts the rows of the view `lines` that are lines: without symbols or sources, stacks have only
 * functions or addresses. */
static uint32_t count_lines(const ow_result *r)
{
	uint32_t rows = r ? ow_result_rows(r) : 0, count = 0;

	while (count < rows && overview_real(r, count, "time_ns") > 0 &&
	       overview_text(r, count, "file").len)
		count++;
	return count;
}

/* Prints the lines of the user's code that created the costliest ops, and the main op of each. */
static void print_top_lines(const struct overview *o)
{
	double all = column_sum(o->work, "time_ns") / 1e3, known = 0;
	struct ow_view_options options;
	size_t widest = 0;
	char remark[100];
	uint32_t rows;
	ow_result *r;

	if (!ow_profile_has_code(o->profile))
		return;
	overview_part(o, &options);
	choose_typical(o, &options, "ops with a known line", remark, sizeof(remark));
	snprintf(remark + strlen(remark), sizeof(remark) - strlen(remark), "; main type");
	options.limit = TOP_ROWS;
	r = overview_view(o, "lines", &options);
	rows = count_lines(r);
	for (uint32_t i = 0; i < rows; i++)
		widest = MAX(widest, utf8_width(overview_text(r, i, "name")));
	if (rows)
		known = overview_real(r, 0, "time_ns") / 10 / overview_real(r, 0, "percent");
	for (uint32_t i = 0; i < rows && known >= WORTH_PART * all; i++) {
		char text[WORDS_NUMBER];

		if (!i)
			print_base(o, "Lines of code that created them", known, remark);
		overview_row(o, words_time(text, overview_real(r, i, "time_ns") / 1e3),
			     overview_real(r, i, "percent"), overview_text(r, i, "name"), widest,
			     overview_text(r, i, "top_type"));
	}
	ow_result_free(r);
}

/* Returns the most informative grouping of the memory at the peak. */
static const char *peak_grouping(const ow_result *r)
{
	static const char *const order[] = { "purpose", "line", "op" };

	for (size_t k = 0; k < ARRAY_COUNT(order); k++)
		for (uint32_t i = 0; i < ow_result_rows(r); i++)
			if (str_eq(overview_text(r, i, "grouped_by"), str_from(order[k])) &&
			    !str_starts(overview_text(r, i, "name"), STR("(")))
				return order[k];
	return NULL;
}

/* The row for memory without a known group, which comes after the groups; UINT32_MAX: there is none. */
static uint32_t unknown_row(const ow_result *r, const char *by, struct str device)
{
	for (uint32_t i = 0; i < ow_result_rows(r); i++)
		if (str_eq(overview_text(r, i, "name"), STR("(unknown)")) &&
		    str_eq(overview_text(r, i, "grouped_by"), str_from(by)) &&
		    str_eq(overview_text(r, i, "device"), device))
			return i;
	return UINT32_MAX;
}

/* Prints the memory in use at the peak of a device by group, the largest group first. */
static void print_peak(const struct overview *o, const ow_result *peak, const char *by,
		       struct str device)
{
	uint32_t unknown = unknown_row(peak, by, device), shown = 0;
	bool unknown_shown = false;
	char text[WORDS_NUMBER], remark[200];

	snprintf(remark, sizeof(remark), "by %s: 'opwatch memory' shows more", by);
	for (uint32_t i = 0; i < ow_result_rows(peak) && shown < TOP_ROWS; i++) {
		if (!str_eq(overview_text(peak, i, "grouped_by"), str_from(by)) ||
		    !str_eq(overview_text(peak, i, "device"), device) || i == unknown)
			continue;
		if (!shown)
			overview_heading(o, "Memory in use at the peak", remark);
		if (unknown != UINT32_MAX && !unknown_shown &&
		    overview_real(peak, unknown, "bytes") > overview_real(peak, i, "bytes")) {
			overview_row(o, words_bytes(text, overview_real(peak, unknown, "bytes")),
				     overview_real(peak, unknown, "percent"),
				     STR("(from before the recording, or without a stack)"), 0,
				     STR(""));
			unknown_shown = true;
			shown++;
		}
		if (shown++ < TOP_ROWS)
			overview_row(o, words_bytes(text, overview_real(peak, i, "bytes")),
				     overview_real(peak, i, "percent"),
				     overview_text(peak, i, "name"), 0, STR(""));
	}
}

/* Prints memory over time: the peak of each device, and the memory in use at the first peak. */
static void print_memory(const struct overview *o)
{
	ow_result *heaps = run_plain_view(o, "heaps"), *peak = run_plain_view(o, "memory_peak");
	uint32_t rows = heaps ? ow_result_rows(heaps) : 0;
	const char *by = peak ? peak_grouping(peak) : NULL;
	char text[WORDS_NUMBER];

	for (uint32_t i = 0; i < rows && i < DEVICES_SHOWN; i++) {
		fputs(i ? ", " : "peak memory: ", o->to);
		words_name(o->to, overview_text(heaps, i, "device"), 40);
		fprintf(o->to, " %s", words_bytes(text, overview_real(heaps, i, "peak_bytes")));
	}
	fputs(rows > DEVICES_SHOWN ? ", …\n" : rows ? "\n" : "", o->to);
	if (by && rows)
		print_peak(o, peak, by, overview_text(heaps, 0, "device"));
	ow_result_free(heaps);
	ow_result_free(peak);
}

/* Prints where the float operations and parameters of a graph without times are. */
static void print_static_top(const struct overview *o, const char *metric, const char *title)
{
	ow_result *r = run_op_view(o, metric);
	double sum = column_sum(r, metric);

	for (uint32_t i = 0; sum > 0 && i < ow_result_rows(r) && i < TOP_ROWS; i++) {
		double value = overview_real(r, i, metric);
		char text[WORDS_NUMBER];

		if (value <= 0)
			break;
		if (!i)
			overview_heading(o, title, "");
		overview_row(o, words_count(text, value), 100 * value / sum,
			     overview_text(r, i, "name"), 0, STR(""));
	}
	ow_result_free(r);
}

static ow_result *run_advice(const struct overview *o)
{
	struct ow_error err = { 0 };
	ow_result *r = NULL;

	return check_status(o, ow_advise(o->profile, NULL, &r, &err), &err) ? r : NULL;
}

static void print_advice(const struct overview *o, const ow_result *r)
{
	struct findings_style style = { .to = o->to,
					.width = o->args->terminal.out ? o->width : 80,
					.colour = o->colour,
					.brief = true,
					.title = "Advice",
					.limit = FINDINGS_SHOWN };

	if (r)
		findings_print(r, &style);
}

static void print_notes(const struct overview *o)
{
	ow_result *r = overview_view(o, "notes", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0, limit = o->args->verbose ? rows : NOTES_SHOWN;
	uint32_t width = o->args->terminal.out ? o->width : 0;

	if (rows)
		overview_heading(o,
				 ow_profile_damaged(o->profile)
					 ? "Damaged, missing or uncertain data"
					 : "Notes",
				 "");
	for (uint32_t i = 0; i < rows && i < limit; i++) {
		struct str source = overview_text(r, i, "source"),
			   text = overview_text(r, i, "text");
		char line[2048], place[NOTE_PLACE];

		note_place(r, i, place, sizeof(place));
		if (o->source_count == 1)
			source.len = 0;
		snprintf(line, sizeof(line), "%.*s%s%.*s%s", STR_ARG(source),
			 source.len ? ": " : "", STR_ARG(text), place);
		words_wrap(o->to, "- ", line, 2, width);
	}
	if (rows > limit)
		fprintf(o->to, "  … and %u more: opwatch notes\n", rows - limit);
	ow_result_free(r);
}

static void print_verdict(const struct overview *o)
{
	struct ow_view_options options;
	struct ow_error err = { 0 };
	char text[1000];

	overview_part(o, &options);
	options.metric = o->args->options.view.metric;
	ow_view_options_drop(o->profile, "verdict", &options);
	if (!check_status(o, ow_verdict(o->profile, &options, text, sizeof(text), &err), &err))
		return;
	overview_heading(o, "Verdict", "");
	words_wrap(o->to, "", text, 2, o->args->terminal.out ? o->width : 80);
}

static void print_text(struct overview *o)
{
	ow_result *advice;

	print_sources(o);
	o->types = run_op_view(o, "micros");
	/* the rows are functions, not ops */
	if (o->types && ow_result_find(o->types, "self") != UINT32_MAX) {
		ow_result_free(o->types);
		o->types = NULL;
	}
	o->work = run_plain_view(o, "work");
	print_counts(o);
	print_steps(o);
	if (o->jobs <= 1)
		print_devices(o);
	overview_print_samples(o);
	if (o->jobs > 1) {
		fputs("\nOpen the files one by one, or compare them: opwatch ask compare_steps\n",
		      o->to);
	} else if (print_top_types(o)) {
		print_top_scopes(o);
		print_top_lines(o);
	} else {
		print_memory(o);
		print_static_top(o, "float_ops", "Float operations");
		print_static_top(o, "params", "Parameters");
	}
	advice = run_advice(o); /* the verdict begins with the first finding of the advice */
	print_notes(o);
	print_verdict(o);
	if (o->jobs <= 1)
		print_advice(o, advice);
	ow_result_free(advice);
	ow_result_free(o->types);
	ow_result_free(o->work);
}

static ow_status show_text(struct overview *o)
{
	const struct terminal *terminal = &o->args->terminal;
	struct page page;

	o->to = page_open(&page);
	print_text(o);
	if (!page_close(&page, terminal->out && terminal->in && !o->args->output.no_pager,
			terminal->height))
		return output_complain();
	if (o->failure->status != OW_OK)
		complain("opwatch: %s\n", o->failure->text);
	return o->failure->status;
}

struct section {
	const char *name, *view, *order_by;
	uint32_t limit;
};

static const struct section sections[] = {
	{ "sources", "sources", "", 0 }, { "steps", "steps", "", 0 },
	{ "devices", "devices", "", 0 }, { "ops", "op", "micros", 0 },
	{ "work", "work", "", 0 },	 { "scopes", "scope", "micros", 0 },
	{ "metrics", "metrics", "", 0 }, { "notes", "notes", "", 0 },
	{ "verdict", "verdict", "", 0 },
};

/* Prints the sections for programs: one object of results, or one table after the other. */
static ow_status print_sections(const struct overview *o)
{
	bool json = strcmp(o->args->output.sink, "json") == 0;
	static struct output_stream out;
	struct ow_write_options write;
	ow_status status = OW_OK;
	struct ow_error err = { 0 };
	ow_result *r = NULL, *advice = NULL;

	ow_write_options_init(&write);
	output_start(&out, false, 0);
	/* the verdict begins with the first finding of the advice */
	status = ow_advise(o->profile, NULL, &advice, &err);
	for (size_t i = 0; status == OW_OK && i <= ARRAY_COUNT(sections); i++) {
		bool last = i == ARRAY_COUNT(sections);
		const char *name = last ? "advice" : sections[i].name;
		struct ow_view_options options = o->args->options.view;
		char before[64];

		if (last) {
			r = advice;
			advice = NULL;
		} else {
			options.order_by = sections[i].order_by;
			if (!args_given(o->args, "max-depth"))
				options.max_depth =
					strcmp(sections[i].view, "scope") == 0 ? 2 : INT32_MAX;
			ow_view_options_drop(o->profile, sections[i].view, &options);
			status = ow_view(o->profile, sections[i].view, &options, &r, &err);
		}
		if (status != OW_OK)
			break;
		snprintf(before, sizeof(before), json ? "%s\"%s\": " : "%s# %s\n",
			 json ? (i ? ",\n" : "{") : (i ? "\n" : ""), name);
		output_write(&out, before, strlen(before));
		status = ow_result_write(r, o->args->output.sink, &write, output_write, &out, &err);
		ow_result_free(r);
	}
	ow_result_free(advice);
	if (json && status == OW_OK)
		output_write(&out, "}\n", 2);
	if (!output_end(&out))
		return output_complain();
	if (status != OW_OK && status != OW_E_INTERRUPTED)
		complain("opwatch: %s\n", err.text);
	return status == OW_E_INTERRUPTED ? OW_OK : status;
}

ow_status overview_show(struct args *args, ow_profile *profile)
{
	struct ow_error failure = { 0 };
	struct overview o = { .args = args,
			      .profile = profile,
			      .width = args->terminal.out ? args->terminal.width : 100,
			      .colour = args->terminal.colour,
			      .typical_step = -1,
			      .failure = &failure };

	return output_is_text(args) ? show_text(&o) : print_sections(&o);
}

/* False after a message: --metric, --style or --full-names was given, and none of the views uses it for this profile. */
static bool check_views_use(const struct args *args, ow_profile *profile, const char *const *views,
			    size_t count)
{
	const struct ow_view_options *given = &args->options.view;
	struct ow_view_options unused;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	bool good;

	ow_view_options_init(&unused);
	unused.metric = given->metric;
	unused.style = given->style;
	unused.full_names = given->full_names;
	if (!unused.metric && !unused.style && !unused.full_names)
		return true;
	for (size_t i = 0; i < count; i++) {
		struct ow_view_options used = unused;

		ow_view_options_drop(profile, views[i], &used);
		unused.metric = used.metric ? NULL : unused.metric;
		unused.style = used.style ? NULL : unused.style;
		unused.full_names = unused.full_names && !used.full_names;
	}
	if (given->metric && !unused.metric) { /* the screen would leave out its functions */
		unused.metric = given->metric;
		unused.limit = 1;
		good = ow_view(profile, "functions", &unused, &result, &err) == OW_OK;
	} else {
		good = (!unused.metric && !unused.style && !unused.full_names) ||
		       ow_view(profile, views[0], &unused, &result, &err) == OW_OK;
	}
	ow_result_free(result);
	return good || usage_error("%s", err.text);
}

/* Refuses options that the screen or its sections would ignore. */
static bool check_use(const struct args *args, ow_profile *profile)
{
	static const char *const shown[] = { "verdict", "work" };
	const char *views[ARRAY_COUNT(sections)];

	if (output_is_text(args)) {
		if (args_given(args, "max-depth"))
			return usage_error("--max-depth is for --json and --csv here; 'opwatch "
					   "scope' shows the levels of scopes");
		return check_views_use(args, profile, shown, ARRAY_COUNT(shown));
	}
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++)
		views[i] = sections[ARRAY_COUNT(sections) - 1 - i].view; /* the verdict first */
	return check_views_use(args, profile, views, ARRAY_COUNT(views));
}

static int run_overview(struct args *args)
{
	const struct overview_args *own = args->own;
	ow_profile *profile;
	int code = EXIT_FAILED;

	if (own->estimate)
		return print_estimates(args);
	profile = load_advised(args, &code);
	if (!profile)
		return code;
	if (!check_use(args, profile)) {
		ow_profile_free(profile);
		return EXIT_USAGE;
	}
	if (!output_redirect(args)) {
		ow_profile_free(profile);
		return EXIT_FAILED;
	}
	code = finish_code(args, profile, overview_show(args, profile));
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	{ "estimate", STORE_FLAG(struct overview_args, estimate),
	  .help = "print size, events and memory without loading the files" },
	{ "max_depth", .kind = OPTION_TFPROF_INT32,
	  .offset = offsetof(struct ow_view_options, max_depth), .argument = "N",
	  .help = "with --json and --csv: write N levels of scopes" },
};

const struct command cmd_overview = {
	.name = "overview",
	.usage = "FILE… [--json|--csv]",
	.summary = "show contents, where the time goes and advice (the default)",
	.help = "The word 'overview' may be left out. FILE is a profile in any known format, a\n"
		"directory, a pattern or - (standard input).\n",
	.examples = { "opwatch run.opw", "opwatch overview run.opw --json" },
	.own = OPTIONS(options),
	.groups = { &output_options, &part_options, &shown_options, &input_options },
	.own_size = sizeof(struct overview_args),
	.run = run_overview,
};
