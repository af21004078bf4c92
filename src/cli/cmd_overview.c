/*
 * cmd_overview.c: `opwatch FILE…`: one screen that says what is in the files, where the time goes,
 * what to do about it, and what could not be read. Made of ordinary views; draws nothing itself but
 * headings and the short tables.
 */
#include "cli/command.h"

#include <errno.h>

#define TOP_ROWS 5

struct overview {
	struct args *args;
	ow_profile *profile;
	uint32_t width;
	bool colour;
};

static void heading(const struct overview *o, const char *text)
{
	printf("\n%s%s%s\n", o->colour ? "\033[1m" : "", text, o->colour ? "\033[0m" : "");
}

static ow_result *view(const struct overview *o, const char *name, const struct ow_view_options *options)
{
	struct ow_error err;
	ow_result *result = NULL;

	if (ow_view(o->profile, name, options, &result, &err) != OW_OK)
		return NULL;
	return result;
}

static void format_time(char *to, size_t size, double us)
{
	if (us < 1000)
		snprintf(to, size, "%.4g us", us);
	else if (us < 1e6)
		snprintf(to, size, "%.4g ms", us / 1e3);
	else
		snprintf(to, size, "%.4g s", us / 1e6);
}

static void format_bytes(char *to, size_t size, double bytes)
{
	if (bytes < 1e3)
		snprintf(to, size, "%.0f B", bytes);
	else if (bytes < 1e6)
		snprintf(to, size, "%.1f KB", bytes / 1e3);
	else if (bytes < 1e9)
		snprintf(to, size, "%.1f MB", bytes / 1e6);
	else
		snprintf(to, size, "%.2f GB", bytes / 1e9);
}

static void format_count(char *to, size_t size, double count)
{
	static const char *const units[] = { "", " k", " M", " G", " T", " P", " E" };
	size_t unit = 0;

	for (; count >= 1000 && unit + 1 < ARRAY_COUNT(units); unit++)
		count /= 1000;
	snprintf(to, size, "%.4g%s", count, units[unit]);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* ---- what was found --------------------------------------------------------------------------- */

static void print_sources(const struct overview *o)
{
	ow_result *r = view(o, "sources", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0;

	for (uint32_t i = 0; i < rows && i < 12; i++) {
		char size[32];

		format_bytes(size, sizeof(size), ow_result_real(r, i, ow_result_find(r, "bytes")));
		printf("%s: %s, %s\n", ow_result_text(r, i, ow_result_find(r, "path"), NULL),
		       ow_result_text(r, i, ow_result_find(r, "format"), NULL), size);
	}
	if (rows > 12)
		printf("… and %u more\n", rows - 12);
	ow_result_free(r);
}

static void print_counts(const struct overview *o)
{
	struct ow_view_options options;
	size_t steps = ow_profile_steps(o->profile, NULL, 0);
	ow_result *devices = view(o, "devices", NULL), *ops;
	uint32_t device_rows = devices ? ow_result_rows(devices) : 0;
	int64_t defined = 0;

	ow_view_options_init(&options);
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ (const char *const[]){ "occurrence" }, 1 };
	ops = view(o, "op", &options);
	for (uint32_t i = 0; ops && i < ow_result_rows(ops); i++)
		defined += ow_result_int(ops, i, ow_result_find(ops, "definition_count"));
	printf("%lld op%s of %u type%s, %zu step%s, %u device%s%s\n", (long long)defined,
	       plural((uint64_t)defined), ops ? ow_result_rows(ops) : 0,
	       plural(ops ? ow_result_rows(ops) : 0), steps, plural(steps), device_rows,
	       plural(device_rows), ow_profile_has_code(o->profile) ? ", with source lines" : "");
	ow_result_free(ops);
	ow_result_free(devices);
}

/* ---- tops ------------------------------------------------------------------------------------- */

static double column_sum(const ow_result *r, uint32_t column)
{
	double sum = 0;

	for (uint32_t i = 0; i < ow_result_rows(r); i++)
		sum += MAX(ow_result_real(r, i, column), 0);
	return sum;
}

static void print_row(const struct overview *o, const ow_result *r, uint32_t row, double value,
		      double share, bool is_time)
{
	size_t len, room = o->width > 40 ? o->width - 34 : 20;
	const char *name = ow_result_text(r, row, ow_result_find(r, "name"), &len);
	struct str shown = utf8_fit(str_make(name, len), room);
	char text[32];

	if (is_time)
		format_time(text, sizeof(text), value);
	else
		format_bytes(text, sizeof(text), value);
	printf("  %10s %5.1f %%  %.*s%s\n", text, share, STR_ARG(shown), shown.len < len ? "…" : "");
}

/* The costliest operation types; false when nothing was timed. */
static bool print_top_ops(const struct overview *o)
{
	struct ow_view_options options;
	uint32_t column;
	ow_result *r;
	double sum;

	ow_view_options_init(&options);
	options.order_by = "micros";
	options.max_depth = INT32_MAX;
	r = view(o, "op", &options);
	if (!r)
		return false;
	column = ow_result_find(r, "micros");
	sum = column_sum(r, column);
	if (sum > 0) {
		char total[32];

		format_time(total, sizeof(total), sum);
		heading(o, "Operations that take the time");
		printf("  %s of op time in an average step\n", total);
		for (uint32_t i = 0; i < ow_result_rows(r) && i < TOP_ROWS; i++) {
			double value = ow_result_real(r, i, column);

			print_row(o, r, i, value, 100 * value / sum, true);
		}
	}
	ow_result_free(r);
	return sum > 0;
}

static void print_top_tree(const struct overview *o, const char *name, const char *title,
			   int32_t depth)
{
	struct ow_view_options options;
	uint32_t column, shown = 0;
	ow_result *r;
	double root;

	ow_view_options_init(&options);
	options.order_by = "micros";
	options.max_depth = depth;
	options.min_micros = 1;
	r = view(o, name, &options);
	if (!r)
		return;
	column = ow_result_find(r, "total_micros");
	root = ow_result_rows(r) ? ow_result_real(r, 0, column) : 0;
	for (uint32_t i = 1; root > 0 && i < ow_result_rows(r) && shown < TOP_ROWS; i++) {
		double value = ow_result_real(r, i, column);

		if (ow_result_depth(r, i) != 1)
			continue;
		if (!shown++)
			heading(o, title);
		print_row(o, r, i, value, 100 * value / root, true);
	}
	ow_result_free(r);
}

/* The lines of the user's code that created the costliest ops. */
static void print_top_lines(const struct overview *o)
{
	struct ow_view_options options;
	ow_result *r;

	if (!ow_profile_has_code(o->profile))
		return;
	ow_view_options_init(&options);
	options.limit = TOP_ROWS;
	r = view(o, "lines", &options);
	for (uint32_t i = 0; r && i < ow_result_rows(r); i++) {
		double time = ow_result_real(r, i, ow_result_find(r, "time_ns")) / 1e3;

		if (time <= 0)
			break;
		if (!i)
			heading(o, "Lines that make them");
		print_row(o, r, i, time, ow_result_real(r, i, ow_result_find(r, "percent")), true);
	}
	ow_result_free(r);
}

/* ---- a graph without times -------------------------------------------------------------------- */

static void print_static_top(const struct overview *o, const char *metric, const char *title)
{
	struct ow_view_options options;
	uint32_t column, shown = 0;
	ow_result *r;
	double sum;

	ow_view_options_init(&options);
	options.order_by = metric;
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ &metric, 1 };
	r = view(o, "op", &options);
	if (!r)
		return;
	column = ow_result_find(r, metric);
	sum = column_sum(r, column);
	for (uint32_t i = 0; sum > 0 && i < ow_result_rows(r) && shown < TOP_ROWS; i++) {
		double value = ow_result_real(r, i, column);
		char text[32];
		size_t len;
		const char *name = ow_result_text(r, i, ow_result_find(r, "name"), &len);

		if (value <= 0)
			continue;
		if (!shown++) {
			heading(o, title);
			format_count(text, sizeof(text), sum);
			printf("  %s in all\n", text);
		}
		format_count(text, sizeof(text), value);
		printf("  %10s %5.1f %%  %.*s\n", text, 100 * value / sum, (int)len, name);
	}
	ow_result_free(r);
}

/* ---- advice and notes ------------------------------------------------------------------------- */

/* Several lines, each after `indent` blanks. */
static void print_indented(const char *text, int indent)
{
	struct str rest = str_from(text), line;

	while (str_split(&rest, '\n', &line))
		printf("%*s%.*s\n", indent, "", STR_ARG(line));
}

static void print_advice(const struct overview *o)
{
	struct ow_error err;
	ow_result *r;
	uint32_t shown = 0;

	if (ow_advise(o->profile, NULL, &r, &err) != OW_OK)
		return;
	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		const char *what = ow_result_text(r, i, ow_result_find(r, "what"), NULL);
		const char *advice = ow_result_text(r, i, ow_result_find(r, "advice"), NULL);
		const char *rule = ow_result_text(r, i, ow_result_find(r, "rule"), NULL);

		/* The tops above say the same as this one. */
		if (!*what || strcmp(rule, "expensive_operation") == 0 ||
		    !ow_result_int(r, i, ow_result_find(r, "checked")))
			continue;
		if (!shown++)
			heading(o, "Advice");
		print_indented(what, 2);
		if (*advice)
			print_indented(advice, 4);
	}
	ow_result_free(r);
}

static void print_notes(const struct overview *o)
{
	ow_result *r = view(o, "notes", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0, limit = o->args->verbose ? rows : 8;

	if (rows)
		heading(o, ow_profile_damaged(o->profile) ? "Damaged, missing or doubtful" : "Notes");
	for (uint32_t i = 0; i < rows && i < limit; i++) {
		const char *source = ow_result_text(r, i, ow_result_find(r, "source"), NULL);
		int64_t count = ow_result_int(r, i, ow_result_find(r, "count"));

		printf("  ");
		if (*source && o->args->file_count > 1)
			printf("%s: ", source);
		printf("%s", ow_result_text(r, i, ow_result_find(r, "text"), NULL));
		if (count > 1)
			printf(" (%lld times)", (long long)count);
		putchar('\n');
	}
	if (rows > limit)
		printf("  … and %u more: opwatch notes\n", rows - limit);
	ow_result_free(r);
}

static void print_verdict(const struct overview *o)
{
	struct ow_error err;
	char text[1000];

	if (ow_verdict(o->profile, &o->args->options.view, text, sizeof(text), &err) != OW_OK)
		return;
	heading(o, "Verdict");
	printf("  %s\n", text);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void print_text(const struct overview *o)
{
	print_sources(o);
	print_counts(o);
	if (print_top_ops(o)) {
		print_top_tree(o, "scope", "Scopes that take the time", 2);
		print_top_lines(o);
	}
	print_static_top(o, "float_ops", "Float operations");
	print_static_top(o, "params", "Parameters");
	print_advice(o);
	print_notes(o);
	print_verdict(o);
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
		{ "scopes", "scope", "micros", 0 }, { "notes", "notes", "", 0 },
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
				options.max_depth = strcmp(sections[i].view, "scope") == 0 ? 2 : INT32_MAX;
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
	struct overview o = { .args = args, .width = args->terminal.width, .colour = args->terminal.colour };
	ow_status status = OW_OK;
	int code = EXIT_FAILED;

	if (!args->terminal.out)
		o.width = 100;
	o.profile = load_files(args, &code);
	if (!o.profile)
		return code;
	if (strcmp(args->sink, "text") == 0)
		print_text(&o);
	else
		status = print_sections(&o);
	code = finish_code(args, o.profile, status);
	ow_profile_free(o.profile);
	return code;
}

const struct command cmd_overview = {
	.name = "overview",
	.usage = "FILE… [--json|--csv]",
	.summary = "what is in here, where the time goes, advice (the default command)",
	.run = run,
};
