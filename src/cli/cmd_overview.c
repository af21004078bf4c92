/*
 * cmd_overview.c: `opwatch FILE…`: about one screen that says what is in the files, where the time goes,
 * what to do about it, and what could not be read. Made of ordinary views; draws nothing itself but
 * headings and the short tables.
 */
#include "cli/findings.h"
#include "cli/overview.h"

#define NOTES_SHOWN 5
#define FINDINGS_SHOWN 3

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

	if (!overview_worked(o, ow_advise(o->profile, NULL, &r, &err), &err))
		return;
	findings_print(r, &style);
	ow_result_free(r);
}

static void print_notes(const struct overview *o)
{
	ow_result *r = overview_view(o, "notes", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0, limit = o->args->verbose ? rows : NOTES_SHOWN;
	uint32_t width = o->args->terminal.out ? o->width : 0;

	if (rows)
		overview_heading(o,
				 ow_profile_damaged(o->profile) ? "Damaged, missing or doubtful"
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
	struct ow_error err = { 0 };
	char text[1000];

	if (!overview_worked(
		    o, ow_verdict(o->profile, &o->args->options.view, text, sizeof(text), &err),
		    &err))
		return;
	overview_heading(o, "Verdict", "");
	words_wrap(o->to, "", text, 2, o->args->terminal.out ? o->width : 80);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void print_text(struct overview *o)
{
	overview_print_sources(o);
	o->types = overview_types(o, "micros");
	if (o->types && ow_result_find(o->types, "self") != UINT32_MAX) { /* functions, not ops */
		ow_result_free(o->types);
		o->types = NULL;
	}
	o->work = overview_plain(o, "work");
	overview_print_counts(o);
	overview_print_steps(o);
	overview_print_devices(o);
	overview_print_sampled(o);
	if (overview_print_top_types(o)) {
		overview_print_top_scopes(o);
		overview_print_top_lines(o);
	} else {
		overview_print_static_top(o, "float_ops", "Float operations");
		overview_print_static_top(o, "params", "Parameters");
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
		return output_complain();
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

	o.profile = load_files(args, &code);
	if (!o.profile)
		return code;
	if (!args_redirect(args)) {
		ow_profile_free(o.profile);
		return EXIT_FAILED;
	}
	o.width = args->terminal.out ? args->terminal.width : 100;
	o.colour = args->terminal.colour;
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
