/*
 * cmd_memory.c: `opwatch memory`: how much memory was in use, per device and allocator: over time, at the peak by its users,
 * and from step to step. Runs the four memory views; adds only headings and the small charts of bars.
 */
#include "cli/command.h"
#include "cli/words.h"

#define CHARTS_SHOWN 8
#define CHART_WIDTH 60
#define NAME_WIDTH 12
#define NAMES_SHOWN 5
#define STEPS_SHOWN 20

struct section {
	const char *name, *view, *heading;
	uint32_t limit; /* number of rows for people; 0 = all */
};

static const struct section sections[] = {
	{ "heaps", "heaps", "", 0 },
	{ "peak", "memory_peak", "In use at the peak", NAMES_SHOWN },
	{ "steps", "memory_steps", "From step to step", STEPS_SHOWN },
	{ "time", "memory_time", "Over time", 0 },
};

struct report {
	struct args *args;
	ow_profile *profile;
	struct output_stream *out;
	struct ow_error err;
};

static void put_text(const struct report *r, const char *text)
{
	output_write(r->out, text, strlen(text));
}

static ow_status run_view(struct report *r, const struct section *s, bool people,
			  ow_result **result)
{
	struct ow_view_options options = r->args->options.view;

	if (people && !args_given(r->args, "limit"))
		options.limit = s->limit;
	ow_view_options_drop(r->profile, s->view, &options);
	return ow_view(r->profile, s->view, &options, result, &r->err);
}

static ow_status write_result(struct report *r, ow_result *result, const char *sink)
{
	struct ow_write_options write;

	ow_write_options_init(&write);
	if (strcmp(sink, "text") == 0 && r->args->terminal.out) {
		write.width = r->args->terminal.width;
		write.colour = r->args->terminal.colour;
	}
	return ow_result_write(result, sink, &write, output_write, r->out, &r->err);
}

static struct str text_at(const ow_result *result, uint32_t row, const char *column)
{
	size_t len;
	const char *text = ow_result_text(result, row, ow_result_find(result, column), &len);

	return str_make(text, len);
}

static bool same_heap(const ow_result *result, uint32_t a, uint32_t b)
{
	uint32_t rank = ow_result_find(result, "rank");

	return str_eq(text_at(result, a, "device"), text_at(result, b, "device")) &&
	       str_eq(text_at(result, a, "allocator"), text_at(result, b, "allocator")) &&
	       ow_result_int(result, a, rank) == ow_result_int(result, b, rank);
}

/* Writes a name with its beginning cut off, because its end is more specific: …/device:gpu:0. Only
 * printable bytes are shown. */
static void put_name(const struct report *r, struct str name)
{
	char text[NAME_WIDTH + 2];
	size_t len = MIN(name.len, (size_t)NAME_WIDTH);

	name = str_skip(name, name.len - len);
	memset(text, ' ', sizeof(text));
	for (size_t i = 0; i < len; i++)
		text[i] = name.ptr[i] > 0x20 && name.ptr[i] < 0x7f ? name.ptr[i] : ' ';
	output_write(r->out, text, NAME_WIDTH + 1);
}

/* Draws the rows [first, end) as one line of bars, from zero to the peak. */
static void put_bars(const struct report *r, const ow_result *result, uint32_t first, uint32_t end)
{
	static const char *const bars[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	uint32_t column = ow_result_find(result, "in_use_bytes"), rows = end - first;
	double most = 0;
	char number[WORDS_NUMBER], line[128];
	struct str name = text_at(result, first, "device");

	for (uint32_t i = first; i < end; i++)
		most = MAX(most, ow_result_real(result, i, column));
	put_name(r, name);
	for (uint32_t bar = 0; bar < CHART_WIDTH; bar++) {
		uint32_t from = first + bar * rows / CHART_WIDTH,
			 to = first + (bar + 1) * rows / CHART_WIDTH;
		double value = ow_result_real(result, MIN(from, end - 1), column);

		for (uint32_t i = from; i < to; i++)
			value = MAX(value, ow_result_real(result, i, column));
		put_text(r,
			 bars[most > 0 && value > 0 ? MIN((int)(value / most * 8 + 0.5), 8) : 0]);
	}
	snprintf(line, sizeof(line), " %s\n", words_bytes(number, most));
	put_text(r, line);
}

static void put_charts(const struct report *r, const ow_result *result)
{
	uint32_t rows = ow_result_rows(result), shown = 0;

	for (uint32_t first = 0, end; first < rows && shown < CHARTS_SHOWN; first = end, shown++) {
		for (end = first + 1; end < rows && same_heap(result, first, end); end++)
			;
		put_bars(r, result, first, end);
	}
}

static void put_heading(const struct report *r, const struct section *s)
{
	char text[128];

	if (!*s->heading)
		return;
	snprintf(text, sizeof(text), "\n%s%s%s\n", r->args->terminal.colour ? "\033[1m" : "",
		 s->heading, r->args->terminal.colour ? "\033[0m" : "");
	put_text(r, text);
}

static ow_status show_section(struct report *r, const struct section *s)
{
	ow_result *result = NULL;
	ow_status status = OW_OK;

	OW_TRY(run_view(r, s, true, &result));
	if (ow_result_rows(result)) {
		put_heading(r, s);
		if (strcmp(s->view, "memory_time") == 0)
			put_charts(r, result);
		else
			status = write_result(r, result, "text");
	} else if (s == sections) {
		put_text(r, "no data about memory in these files\n");
	}
	ow_result_free(result);
	return status;
}

static ow_status write_section(struct report *r, const struct section *s)
{
	bool json = strcmp(r->args->output.sink, "json") == 0;
	ow_result *result = NULL;
	ow_status status;
	char before[64];

	OW_TRY(run_view(r, s, false, &result));
	snprintf(before, sizeof(before), json ? "%s\"%s\": " : "%s# %s\n",
		 json ? (s == sections ? "{" : ",\n") : (s == sections ? "" : "\n"), s->name);
	put_text(r, before);
	status = write_result(r, result, r->args->output.sink);
	ow_result_free(result);
	return status;
}

static ow_status write_all(struct report *r)
{
	static struct output_stream out; /* 64 KiB, too large for the stack */
	bool text = output_is_text(r->args);
	ow_status status = OW_OK;

	r->out = &out;
	output_start(&out, text && !r->args->output.no_pager && r->args->terminal.out,
		     r->args->terminal.height);
	for (size_t i = 0; i < ARRAY_COUNT(sections) && status == OW_OK; i++)
		status = text ? show_section(r, &sections[i]) : write_section(r, &sections[i]);
	if (status == OW_OK && strcmp(r->args->output.sink, "json") == 0)
		put_text(r, "}\n");
	if (!output_end(&out))
		return output_complain();
	if (status != OW_OK && status != OW_E_INTERRUPTED)
		complain("opwatch: %s\n", r->err.text);
	return status == OW_E_INTERRUPTED ? OW_OK : status;
}

/* Writes any other output, which takes one view; charts show memory over time. */
static ow_status write_other(struct report *r)
{
	const char *view = strcmp(r->args->output.sink, "svg") == 0 ? "memory_time" : "heaps";
	struct show show;

	show_from_args(r->args, r->profile, &show);
	return show_view(&show, view, &r->args->options);
}

ow_status memory_show(struct args *args, ow_profile *profile)
{
	struct report r = { .args = args, .profile = profile };

	return output_is_table(args) ? write_all(&r) : write_other(&r);
}

static int run_memory(struct args *args)
{
	ow_profile *profile;
	bool table = output_is_table(args);
	int code = EXIT_FAILED;

	if (!table && !output_choose(args))
		return EXIT_USAGE;
	profile = load_files(args, &code);
	if (!profile)
		return code;
	if (table && !output_redirect(args)) {
		ow_profile_free(profile);
		return EXIT_FAILED;
	}
	code = finish_code(args, profile, memory_show(args, profile));
	ow_profile_free(profile);
	return code;
}

const struct command cmd_memory = {
	.name = "memory",
	.usage = "FILE… [--json|--csv|--to svg]",
	.summary = "show memory over time, at its peak, and from step to step",
	.help = "Each part is also a view: heaps, memory_peak, memory_steps, memory_time.\n"
		"The view memory_at shows what was in use at another time, or between two.\n"
		"Use --to svg --out FILE.svg to draw memory over time.\n",
	.columns = "heaps_view",
	.examples = { "opwatch memory run.opw", "opwatch memory run.opw --to svg -o memory.svg" },
	.groups = { &output_options, &part_options, &input_options },
	.run = run_memory,
};
