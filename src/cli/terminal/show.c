/*
 * show.c: runs one view, or the advice, and sends its table where the options say: the terminal, a file, a timeline, pprof.
 * The one-shot commands and the shell call it, under both names of the program; as tfprof it prints the original's texts.
 * The library writes the formats.
 */
#include "cli/terminal/show.h"

#include "cli/text/findings.h"
#include "cli/command.h"

#include <sys/stat.h>

#define BIG_TRACE (200 * 1024 * 1024)

/* Prints the messages that tfprof prints on stderr. Under the name opwatch, notes report incomplete shapes
 * and the advice reports skipped checks. */
static void print_messages(const struct show *show, const ow_result *result)
{
	const char *line;

	for (uint32_t i = 0; (line = ow_result_message(result, i)); i++)
		if (show->tfprof || strcmp(line, "Incomplete shape.") != 0)
			complain("%s\n", line);
}

static void print_error(const struct show *show, const struct ow_error *err)
{
	complain("%s%s\n", show->tfprof ? "" : "opwatch: ", err->text);
}

static void on_message(void *arg, const char *line, size_t len)
{
	(void)arg;
	complain("%.*s\n", (int)len, line);
}

static void on_stdout_line(void *arg, const char *line, size_t len)
{
	(void)arg;
	printf("%.*s\n", (int)len, line);
}

/* Returns the value that flame graphs and folded stacks show. */
static const char *chosen_metric(const struct options *options)
{
	const char *metric = main_metric(&options->view.select);

	return metric && strcmp(metric, "occurrence") != 0 ? metric : NULL;
}

static void write_options(const struct show *show, const struct options *options,
			  struct ow_write_options *write)
{
	ow_write_options_init(write);
	write->message = on_message;
	if (show->tfprof) {
		write->progress = on_stdout_line;
		return;
	}
	write->width = show->terminal.out ? show->terminal.width : 0;
	write->colour = show->terminal.colour;
	write->metric = chosen_metric(options);
	write->style = options->view.style;
}

static ow_status write_stdout(const struct show *show, ow_result *result, const char *sink,
			      const struct ow_write_options *write)
{
	static struct output_stream out; /* 64 KiB, too large for the stack */
	struct ow_error err;
	ow_status status;

	output_start(&out, show->pager && show->terminal.out, show->terminal.height);
	status = ow_result_write(result, sink, write, output_write, &out, &err);
	if (!output_end(&out))
		return output_complain();
	if (status == OW_E_INTERRUPTED)
		return OW_OK;
	if (status != OW_OK)
		print_error(show, &err);
	return status;
}

/* The original adds the step to the name. Under our own name trace.json becomes trace_2.json for step 2 and
 * stays itself for the average, so that browsers know what it is. */
static bool timeline_name(const struct show *show, char *to, size_t size, const char *outfile,
			  int64_t step)
{
	struct str name = str_from(outfile), json = STR(".json");
	int len;

	if (show->tfprof || !str_ends(name, json))
		len = snprintf(to, size, "%s_%lld", outfile, (long long)step);
	else if (step < 0)
		len = snprintf(to, size, "%s", outfile);
	else
		len = snprintf(to, size, "%.*s_%lld.json", (int)(name.len - json.len), outfile,
			       (long long)step);
	return len >= 0 && (size_t)len < size;
}

static void print_timeline_hint(const struct show *show, const char *name)
{
	struct stat st;

	if (show->tfprof)
		printf("\n******************************************************\n"
		       "Timeline file is written to %s.\n"
		       "Open a Chrome browser, enter URL chrome://tracing and load the timeline "
		       "file.\n"
		       "******************************************************\n",
		       name);
	else
		printf("%s: open it in chrome://tracing or Perfetto\n", name);
	if (stat(name, &st) == 0 && st.st_size > BIG_TRACE)
		complain("Trace file is over 200MB. Chrome might not be able to display it. "
			 "Consider to "
			 "use filters (e.g. -min_micros > 1000 or -op_type .*gpu:0.* to reduce the "
			 "size.\n");
}

static ow_status write_timeline(const struct show *show, ow_result *result,
				const struct ow_write_options *write, const char *outfile,
				int64_t step)
{
	struct ow_error err;
	char name[4096];

	if (!timeline_name(show, name, sizeof(name), outfile, step)) {
		complain("Failed to write timeline file: %s\nError: the name is too long\n",
			 outfile);
		return OW_E_USAGE;
	}
	if (ow_result_write_file(result, "timeline", write, name, &err) != OW_OK) {
		complain("Failed to write timeline file: %s\nError: %s\n", name, err.text);
		return err.status;
	}
	print_timeline_hint(show, name);
	return OW_OK;
}

static ow_status run_view(const struct show *show, const char *view,
			  const struct ow_view_options *options, ow_result **result)
{
	struct ow_error err;
	ow_status status = ow_view(show->profile, view, options, result, &err);

	if (status != OW_OK) {
		print_error(show, &err);
		return status;
	}
	print_messages(show, *result);
	return status;
}

/* Writes one timeline file per loaded step. */
static ow_status graph_timelines(const struct show *show, const struct options *options,
				 const struct ow_write_options *write)
{
	struct ow_error err = { 0 };
	int64_t *steps = NULL;
	size_t count;
	ow_status status = ow_profile_steps(show->profile, NULL, 0, &count, &err);

	if (status == OW_OK) {
		steps = calloc(count + 1, sizeof(*steps));
		status = steps ? ow_profile_steps(show->profile, steps, count, &count, &err)
			       : OW_E_NO_MEMORY;
	}
	if (status != OW_OK && err.status != OW_OK)
		print_error(show, &err);
	for (size_t i = 0; status == OW_OK && i < count && !interrupted; i++) {
		struct ow_view_options view = options->view;
		ow_result *result;

		view.step = steps[i];
		status = run_view(show, "graph", &view, &result);
		if (status != OW_OK)
			break;
		status = write_timeline(show, result, write, options->output.outfile, steps[i]);
		ow_result_free(result);
	}
	free(steps);
	return status;
}

static bool pprof_possible(const char *view, const struct options *options)
{
	static const char *const supported[] = {
		"bytes",      "micros",	    "params",	      "float_ops",   "accelerator_micros",
		"cpu_micros", "peak_bytes", "residual_bytes", "output_bytes"
	};

	if (strcmp(view, "code") != 0) {
		complain("Only 'code' view supports pprof output now.\n");
		return false;
	}
	if (options->view.select.count != 1) {
		complain("Can only select 1 attribute for pprof output.\n");
		return false;
	}
	for (size_t i = 0; i < ARRAY_COUNT(supported); i++)
		if (strcmp(options->view.select.items[0], supported[i]) == 0)
			return true;
	complain("pprof doesn't support -select=%s\n", options->view.select.items[0]);
	return false;
}

static ow_status write_pprof(const struct show *show, ow_result *result,
			     const struct options *options, struct ow_write_options *write)
{
	struct ow_error err;

	write->metric = options->view.select.items[0];
	if (ow_result_write_file(result, "pprof", write, options->output.outfile, &err) != OW_OK) {
		print_error(show, &err);
		return err.status;
	}
	if (show->tfprof)
		printf("\nRun pprof -png --nodecount=100 --sample_index=1 <%s>\n",
		       options->output.outfile);
	else
		printf("%s: open it with go tool pprof\n", options->output.outfile);
	return OW_OK;
}

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Returns whether the output can show the view; reports why not. */
static bool output_possible(const struct show *show, const char *view,
			    const struct options *options)
{
	if (show->args && !is(options->output.type, "stdout") &&
	    overwrites_input(show->args, options->output.outfile))
		return false;
	if (is(options->output.type, "timeline") && is(view, "op")) {
		complain("op view doesn't support timeline yet. Consider graph/scope/code view.\n");
		return false;
	}
	return !is(options->output.type, "pprof") || pprof_possible(view, options);
}

static ow_status send_table(const struct show *show, ow_result *result, const char *view,
			    const struct options *options, struct ow_write_options *write)
{
	const char *type = options->output.type, *file = options->output.outfile;
	const char *text = show->tfprof ? "tfprof" : "text";
	struct ow_error err;
	ow_status status;

	if (is(type, "none"))
		return OW_OK;
	if (is(type, "stdout"))
		return write_stdout(show, result, text, write);
	if (!output_possible(show, view, options))
		return OW_E_USAGE;
	if (is(type, "timeline"))
		return write_timeline(show, result, write, file, options->view.step);
	if (is(type, "pprof"))
		return write_pprof(show, result, options, write);
	if (!is(type, "file"))
		text = type; /* the output is one of opwatch's own sinks */
	else
		write->width = 0;
	if (!file)
		return write_stdout(show, result, text, write);
	write->colour = false;
	status = ow_result_write_file(result, text, write, file, &err);
	if (status != OW_OK)
		print_error(show, &err);
	return status;
}

/* Returns whether a word of --style is for flame graphs. */
static bool is_flame_word(struct str word)
{
	static const char *const words[] = { "icicle", "flame", "inverted", "left-heavy" };

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_eq(word, str_from(words[i])))
			return true;
	return false;
}

/* Copies the style words for the view; false if there are words for flame graphs but no flame
 * graph is written. */
static bool split_style(const char *style, bool flames, char *to, size_t size)
{
	struct str rest = str_from(style), word;
	size_t len = 0;

	*to = 0;
	while (str_split(&rest, ',', &word)) {
		if (!is_flame_word(word))
			len += (size_t)snprintf(to + len, size - len, "%s%.*s", len ? "," : "",
						STR_ARG(word));
		else if (!flames) {
			complain("opwatch: --style %.*s is for flame graphs: add --to flamegraph\n",
				 STR_ARG(word));
			return false;
		}
		if (len >= size) {
			complain("opwatch: --style is too long\n");
			return false;
		}
	}
	return true;
}

/* Refuses options that the user gave and the view would ignore. `style` receives the words for the view. */
static bool options_used(const struct show *show, const char *view, const struct options *options,
			 char *style, size_t size)
{
	struct ow_view_options asked;
	struct ow_error err;

	options_asked(options, &asked);
	if (asked.style) {
		if (!split_style(asked.style, is(options->output.type, "flamegraph"), style, size))
			return false;
		asked.style = *style ? style : NULL;
	}
	if (ow_view_options_check(show->profile, view, &asked, &err) == OW_OK)
		return true;
	print_error(show, &err);
	return false;
}

ow_status show_view(const struct show *show, const char *view, const struct options *options)
{
	struct ow_view_options what = options->view;
	struct ow_write_options write;
	char style[256] = "";
	ow_result *result;
	ow_status status;

	write_options(show, options, &write);
	/* tfprof reports a missing step or view before a wrong output */
	if (!show->tfprof && !output_possible(show, view, options))
		return OW_E_USAGE;
	if (is(options->output.type, "timeline") && is(view, "graph") && options->view.step < 0)
		return graph_timelines(show, options, &write);
	if (!show->tfprof && !options_used(show, view, options, style, sizeof(style)))
		return OW_E_USAGE;
	what.style = what.style && *style ? style : NULL;
	ow_view_options_drop(show->profile, view, &what);
	/* a protobuf message contains all metrics */
	what.all_metrics = is(options->output.type, "proto");
	what.explain_empty = !show->tfprof;
	status = run_view(show, view, &what, &result);
	if (status != OW_OK)
		return status;
	status = send_table(show, result, view, options, &write);
	ow_result_free(result);
	return status;
}

ow_status show_result(const struct show *show, ow_result *result, const char *name,
		      const struct options *options)
{
	struct ow_write_options write;

	if (is(options->output.type, "timeline") || is(options->output.type, "pprof")) {
		complain("opwatch: %s is a table and cannot be written as %s\n", name,
			 options->output.type);
		return OW_E_USAGE;
	}
	write_options(show, options, &write);
	write.limit = options->view.limit;
	return send_table(show, result, name, options, &write);
}

/* Prints tfprof's report: a heading per checker, then its reports unchanged. */
static void print_checkers(const ow_result *result)
{
	uint32_t rule_column = ow_result_find(result, "rule"),
		 what = ow_result_find(result, "what");
	uint32_t checked = ow_result_find(result, "checked"), rows = ow_result_rows(result);
	struct ow_part_info rule = { .size = sizeof(rule) };

	for (size_t i = 0; ow_rule_info(i, &rule); i++) {
		if (!*rule.detail)
			continue;
		printf("\n%s:\n", rule.detail);
		for (uint32_t row = 0; row < rows; row++)
			if (ow_result_int(result, row, checked) &&
			    is(ow_result_text(result, row, rule_column, NULL), rule.name))
				printf("%s\n", ow_result_text(result, row, what, NULL));
	}
}

static ow_status print_findings(const struct show *show, const ow_result *result, uint32_t limit)
{
	struct findings_style style = { .limit = limit,
					.width = show->terminal.out ? show->terminal.width : 80,
					.colour = show->terminal.colour };
	struct page page;

	style.to = page_open(&page);
	findings_print(result, &style);
	if (page_close(&page, show->pager && show->terminal.out, show->terminal.height))
		return OW_OK;
	return output_complain();
}

/* Writes the advice to the outputs that views support, except text. */
static ow_status send_advice(const struct show *show, ow_result *result,
			     const struct options *options)
{
	const char *type = options->output.type;
	struct ow_write_options write;
	struct options table = *options;

	if (is(type, "stdout") || (is(type, "text") && !options->output.outfile))
		return print_findings(show, result, options->view.limit);
	if (is(type, "file"))
		table.output.type = "text";
	write_options(show, &table, &write);
	write.limit = options->view.limit;
	return send_table(show, result, "advise", &table, &write);
}

ow_status show_advice(const struct show *show, const struct options *options)
{
	static const char *const checkers[] = { "AcceleratorUtilizationChecker", "OperationChecker",
						"ExpensiveOperationChecker" };
	const struct ow_list tfprof = { checkers, ARRAY_COUNT(checkers) };
	struct ow_error err;
	ow_result *result;
	ow_status status = ow_advise(show->profile, show->tfprof ? &tfprof : NULL, &result, &err);

	if (status != OW_OK) {
		print_error(show, &err);
		return status;
	}
	if (show->tfprof) {
		print_messages(show, result);
		print_checkers(result);
		fflush(stdout);
	} else {
		status = send_advice(show, result, options);
	}
	ow_result_free(result);
	return status;
}
