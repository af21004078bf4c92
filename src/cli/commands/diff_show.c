/*
 * diff_show.c: prints a comparison as text (diff_show.h): the sentence, the phases, the operations and lines that changed, the findings. The
 * library compares (ow_diff). Called by cmd_diff.c and cmd_baseline.c.
 */
#include "cli/commands/diff_show.h"

#include "base/human.h"
#include "cli/text/replay_text.h"

#define DIFF_ROWS 15
#define FRAME_LEAST 0.01 /* smallest part of a step that a frame must have to be printed */
#define SETTINGS_SHOWN 8u

/* Returns an extra value of type text without its quotes; escapes stay, which names rarely have. Empty if
 * it is null. */
static struct str extra_text(const ow_result *r, const char *name)
{
	const char *json = ow_result_extra(r, name);
	size_t len = json ? strlen(json) : 0;

	return len >= 2 && json[0] == '"' ? str_make(json + 1, len - 2) : STR("");
}

/* Prints a number in the unit of the table: a time, or a count of samples. */
static void print_value(const ow_result *r, const char *before, double value, const char *after)
{
	struct str unit = extra_text(r, "metric_unit");
	char text[HUMAN_SIZE];

	human_int(text, llround(value),
		  !unit.len || str_eq(unit, STR("ns")) ? HUMAN_UNIT_NS
		  : str_eq(unit, STR("bytes"))	       ? HUMAN_UNIT_BYTES
						       : HUMAN_UNIT_COUNT,
		  false);
	printf("%s%s%s", before, text, after);
}

/* Prints "Mean steady step: 77.1ms → 118ms (ratio 1.53)". */
static void print_ratio(const ow_result *r, const char *what, const char *base, const char *new)
{
	double a = extra_number(r, base), b = extra_number(r, new);

	print_value(r, what, a, "");
	print_value(r, " → ", b, "");
	if (a > 0 && b > 0)
		printf(" (ratio %.*f)", b / a < 100 ? 2 : 0, b / a);
}

/* Prints "Launches per step: 22 → 24." if both sides have the value and it differs by more than
 * rounding. */
static void print_pair(const ow_result *r, const char *what, const char *base, const char *new,
		       enum human_unit unit)
{
	double a = extra_number(r, base), b = extra_number(r, new);
	char text[2][HUMAN_SIZE];

	if (isnan(a) || isnan(b) || fabs(b - a) <= 0.001 * fabs(a))
		return;
	human_int(text[0], llround(a), unit, false);
	human_int(text[1], llround(b), unit, false);
	printf("%s: %s → %s.\n", what, text[0], text[1]);
}

/* Prints differences of the configuration from JSON: [{"what": "device", "base": "A100", "new":
 * "V100"}, …]. */
static void print_configuration(const ow_result *r)
{
	const char *json = ow_result_extra(r, "configuration"), *at = json;
	unsigned count = 0;

	while (at && (at = strstr(at, "{\"what\": ")) && count < SETTINGS_SHOWN) {
		const char *base = strstr(at, ", \"base\": "), *new = strstr(at, ", \"new\": "),
			   *end = new ? strchr(new, '}') : NULL;

		if (!base || !new || !end || base > new)
			break;
		at += strlen("{\"what\": ");
		printf("%s%.*s %.*s → %.*s", count++ ? ", " : "Made with: ", (int)(base - at - 2),
		       at + 1, (int)(new - base - 10), base + 10, (int)(end - new - 9), new + 9);
		at = end;
	}
	printf("%s", count ? ".\n" : "");
}

static void print_conclusion(const ow_result *r)
{
	struct str why = extra_text(r, "comparable_why"), conclusion = extra_text(r, "conclusion");
	double runs = fmin(extra_number(r, "runs_base"), extra_number(r, "runs_new"));
	double detectable = extra_number(r, "detectable_ns"),
	       needed = extra_number(r, "runs_needed_for_3_percent");

	if (why.len) {
		printf("Not comparable: %.*s.\n", STR_ARG(why));
	} else if (runs < 4) {
		printf("These recordings differ%s. Only 4 or more runs a side can show whether the "
		       "code is the cause.\n",
		       str_eq(conclusion, STR("differs")) ? "" : " by less than 1 %");
	} else {
		printf("Conclusion: %.*s.", STR_ARG(conclusion));
		if (!isnan(detectable))
			print_value(r, " The smallest change that would be seen is ", detectable,
				    ".");
		if (needed > runs)
			printf(" A change of 3 %% needs about %.0f runs on each side to be seen.",
			       needed);
		printf("\n");
	}
}

static void print_summary(const ow_result *r)
{
	double low = extra_number(r, "delta_low_ns");
	const char *known = ow_result_extra(r, "steps_known"),
		   *findings = ow_result_extra(r, "findings");
	bool steps = known && strcmp(known, "true") == 0;

	printf("%.*s.\n", STR_ARG(extra_text(r, "sentence")));
	if (!str_eq(extra_text(r, "metric_unit"), STR("mixed")))
		print_ratio(r, steps ? "Mean steady step: " : "In all: ", "base_step_ns",
			    "new_step_ns");
	if (!isnan(low)) {
		print_value(r, ", difference ", extra_number(r, "delta_ns"), "");
		print_value(r, " (95 %: ", low, "");
		print_value(r, " to ", extra_number(r, "delta_high_ns"), ")");
	}
	printf(".\n");
	if (steps &&
	    fabs(extra_number(r, "new_all_steps_ns") / extra_number(r, "base_all_steps_ns") -
		 extra_number(r, "new_step_ns") / extra_number(r, "base_step_ns")) > 0.01) {
		print_ratio(r, "Mean of all steps, with the warm-up and the last one: ",
			    "base_all_steps_ns", "new_all_steps_ns");
		printf(".\n");
	}
	print_conclusion(r);
	if (extra_text(r, "compared_without").len)
		printf("Compared without %.*s, since the sides do not record the same ones.\n",
		       STR_ARG(extra_text(r, "compared_without")));
	print_configuration(r);
	print_pair(r, steps ? "Launches per step" : "Launches", "base_launches", "new_launches",
		   HUMAN_UNIT_COUNT);
	print_pair(r,
		   steps ? "Float operations per step, of recorded shapes"
			 : "Float operations, of recorded shapes",
		   "base_float_ops", "new_float_ops", HUMAN_UNIT_COUNT);
	print_pair(r, "Peak memory", "base_peak_memory_bytes", "new_peak_memory_bytes",
		   HUMAN_UNIT_BYTES);
	if (extra_text(r, "findings_text").len)
		printf("Findings: %.*s.\n", STR_ARG(extra_text(r, "findings_text")));
	else if (findings && strcmp(findings, "null") == 0)
		printf("Findings: not compared, since the recordings are large; --findings does "
		       "it.\n");
	print_value(r, "Unexplained (nothing was recorded): ", extra_number(r, "unexplained_ns"),
		    ".\n\n");
}

static int exit_code(const ow_result *r)
{
	const char *gate = ow_result_extra(r, "gate");

	if (!gate || strcmp(gate, "null") == 0 || strcmp(gate, "\"within\"") == 0)
		return EXIT_GOOD;
	if (strcmp(gate, "\"beyond\"") == 0)
		return EXIT_BEYOND;
	return strcmp(gate, "\"not_comparable\"") == 0 ? EXIT_NOT_COMPARABLE : EXIT_INCONCLUSIVE;
}

ow_profile *diff_load(struct args *args, const char *file, int *code)
{
	const char **files = args->files;
	size_t count = args->file_count;
	ow_profile *profile;

	args->files = &file;
	args->file_count = 1;
	profile = load_files(args, code);
	args->files = files;
	args->file_count = count;
	if (!profile && *code == EXIT_GOOD)
		*code = EXIT_FAILED;
	return profile;
}

int diff_show(struct args *args, ow_profile *const *base, size_t base_count,
	      ow_profile *const *other, size_t other_count, const struct ow_diff_options *wanted)
{
	struct ow_diff_options options = *wanted;
	bool frames = wanted->frames;
	struct ow_error err = { 0 };
	struct show show;
	ow_result *r;
	ow_status status;
	int code;

	options.metric = args->options.view.metric;
	options.frames = frames || strcmp(args->output.sink, "flamegraph") == 0;
	options.frames_least = output_is_text(args) ? FRAME_LEAST : 0;
	status = ow_diff(base, base_count, other, other_count, &options, &r, &err);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	show_from_args(args, base[0], &show);
	if (output_is_text(args) && !args->output.file)
		print_summary(r);
	if ((output_is_text(args) || strcmp(args->output.sink, "markdown") == 0) &&
	    !args_given(args, "limit") && !frames)
		args->options.view.limit = DIFF_ROWS;
	code = show_result(&show, r, "diff", &args->options) == OW_OK ? exit_code(r) : EXIT_FAILED;
	if (frames && output_is_text(args) && !args->output.file &&
	    extra_number(r, "frames_left_out") > 0)
		printf("Frames below 1 %% of a step are not shown: %.0f, and what is in them.\n",
		       extra_number(r, "frames_left_out"));
	ow_result_free(r);
	return code;
}

bool diff_is_comparable(ow_profile *base, ow_profile *other)
{
	struct ow_diff_options options;
	struct ow_error err = { 0 };
	const char *value;
	ow_result *r;
	bool comparable;

	ow_diff_options_init(&options);
	options.frames = true; /* without findings, which the user did not request */
	options.frames_least = 1;
	if (ow_diff(&base, 1, &other, 1, &options, &r, &err) != OW_OK)
		return false;
	value = ow_result_extra(r, "comparable");
	comparable = value && strcmp(value, "true") == 0;
	ow_result_free(r);
	return comparable;
}
