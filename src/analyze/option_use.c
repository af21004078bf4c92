/*
 * option_use.c: which options a view uses. An option that a view would not use is refused, with the views that do, so that no filter is
 * accepted and ignored; callers that run several views with one set of options drop what a view does not use. Called by the public
 * functions and by the relations of SQL, before the defaults of the view are chosen.
 */
#include "analyze/samples/samples.h"

enum option_value { VALUE_LEVELS, VALUE_LEAST, VALUE_ANY, VALUE_LIST, VALUE_TEXT };

struct view_option {
	const char *name;
	unsigned use; /* enum view_use flags that a view needs to use the option */
	enum option_value value;
	size_t offset, size;
};

#define NAMED(name, field, use, value)                                                             \
	{                                                                                          \
		name, use, value, offsetof(struct view_options, field),                            \
			sizeof(((struct view_options *)0)->field)                                  \
	}
#define FIELD(field, use, value) NAMED(#field, field, use, value)
#define MINIMUM(field) FIELD(field, VIEW_USES_OPS, VALUE_LEAST)
#define LIST(field) FIELD(field, VIEW_USES_OPS, VALUE_LIST)

/* Options that depend on the view. Limits, and options that only outputs read, apply to all
 * views. */
static const struct view_option all[] = {
	FIELD(max_depth, VIEW_USES_OPS, VALUE_LEVELS),
	FIELD(order_by, VIEW_USES_OPS, VALUE_TEXT),
	LIST(select),
	MINIMUM(min_bytes),
	MINIMUM(min_peak_bytes),
	MINIMUM(min_residual_bytes),
	MINIMUM(min_output_bytes),
	MINIMUM(min_micros),
	MINIMUM(min_accelerator_micros),
	MINIMUM(min_cpu_micros),
	MINIMUM(min_params),
	MINIMUM(min_float_ops),
	FIELD(min_occurrence, VIEW_USES_OCCURRENCE, VALUE_LEAST),
	LIST(account_type_regexes),
	LIST(start_name_regexes),
	LIST(trim_name_regexes),
	LIST(show_name_regexes),
	LIST(hide_name_regexes),
	FIELD(account_displayed_op_only, VIEW_USES_OPS, VALUE_ANY),
	FIELD(step, VIEW_USES_STEP, VALUE_ANY),
	NAMED("time_range", time_from_ns, VIEW_USES_TIME, VALUE_ANY),
	NAMED("time_range", time_to_ns, VIEW_USES_TIME, VALUE_ANY),
	FIELD(rank, VIEW_USES_RANK, VALUE_ANY),
	FIELD(full_names, VIEW_USES_FULL_NAMES, VALUE_ANY),
	FIELD(all_metrics, VIEW_USES_OPS, VALUE_ANY),
	FIELD(metric, VIEW_USES_METRIC, VALUE_TEXT),
	FIELD(style, VIEW_USES_STYLE, VALUE_TEXT),
	FIELD(peak, VIEW_USES_PEAK, VALUE_TEXT),
};

static bool is_same_list(const struct view_list *a, const struct view_list *b)
{
	if (!a->count || (a->count == 1 && !*a->items[0]))
		return true; /* an empty value counts as not given */
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return a->count == b->count;
}

/* Returns whether an option differs from its default, which selects everything. */
static bool is_given(const struct view_option *option, const struct view_options *o,
		     const struct view_options *usual)
{
	const char *at = (const char *)o + option->offset;
	const void *usual_at = (const char *)usual + option->offset;

	switch (option->value) {
	case VALUE_LEVELS: /* "all levels" excludes nothing, so it does not count as given */
		return o->max_depth != OW_DEFAULT_DEPTH && o->max_depth < INT32_MAX / 2;
	case VALUE_LEAST:
		return *(const int64_t *)(const void *)at > 0;
	case VALUE_LIST:
		return !is_same_list((const void *)at, usual_at);
	case VALUE_TEXT:
		return *(const char *const *)(const void *)at &&
		       **(const char *const *)(const void *)at;
	default:
		return memcmp(at, usual_at, option->size) != 0;
	}
}

static bool shows_samples(const struct view *view, const struct model *m,
			  const struct view_options *o)
{
	return (view == &view_op && samples_only(m)) ||
	       (view == &view_code && samples_show_code(m, o));
}

/* Returns a word of the style that the view does not know, or an empty text. */
static struct str unknown_style(const struct view *view, const char *style)
{
	static const struct str_flag words[] = {
		{ "pid", 1 },	{ "tid", 1 },		{ "kernel", 1 },
		{ "jit", 1 },	{ "all", 1 },		{ "addrs", 1 },
		{ "lines", 1 }, { "stackcollapse", 1 }, { "total", 2 },
	};
	unsigned mine = view == &view_code ? 1 : 2;
	struct str rest = str_from(style), word;

	while (str_split(&rest, ',', &word)) {
		bool known = !word.len;

		for (size_t i = 0; i < ARRAY_COUNT(words); i++)
			known |= words[i].flag == mine && str_eq(word, str_from(words[i].word));
		if (!known)
			return word;
	}
	return (struct str){ 0 };
}

/* Returns whether an option selects ops or their columns, so that it cannot apply to sampled functions.
 * The code view selects functions by name. */
static bool is_for_ops(const struct view *view, const struct view_option *option)
{
	static const char *const names[] = { "max_depth", "start_name_regexes", "trim_name_regexes",
					     "show_name_regexes", "hide_name_regexes" };

	if (!(option->use & (VIEW_USES_OPS | VIEW_USES_OCCURRENCE | VIEW_USES_FULL_NAMES)))
		return false;
	for (size_t i = 0; view == &view_code && i < ARRAY_COUNT(names); i++)
		if (strcmp(names[i], option->name) == 0)
			return false;
	return true;
}

static bool needs_samples(const struct view_option *option)
{
	return (option->use & (VIEW_USES_METRIC | VIEW_USES_STYLE)) != 0;
}

static bool is_used(const struct view *view, const struct model *m, const struct view_options *o,
		    const struct view_option *option)
{
	if (!(view->uses & option->use))
		return false;
	if (needs_samples(option) && m->sample.count <= 1)
		return false;
	if (option->use & VIEW_USES_STYLE && unknown_style(view, o->style).len)
		return false;
	return !is_for_ops(view, option) || !shows_samples(view, m, o);
}

static ow_status refuse_everywhere(const struct view *view, const struct view_option *option,
				   struct ow_error *err)
{
	char users[512] = "";
	size_t len = 0;

	for (size_t i = 0; i < view_count; i++)
		if (views[i]->uses & option->use && len < sizeof(users))
			len += (size_t)snprintf(users + len, sizeof(users) - len, "%s%s",
						len ? ", " : "", views[i]->name);
	return error_set(err, OW_E_USAGE, "the view %s does not use %s; it is for %s", view->name,
			 option->name, users);
}

static ow_status refuse(const struct view *view, const struct model *m,
			const struct view_options *o, const struct view_option *option,
			struct ow_error *err)
{
	struct str word = { 0 };

	if (!(view->uses & option->use))
		return refuse_everywhere(view, option, err);
	if (option->use & VIEW_USES_STYLE)
		word = unknown_style(view, o->style);
	if (word.len)
		return error_set(err, OW_E_USAGE, "the view %s has no style '%.*s'; it has %s",
				 view->name, STR_ARG(word),
				 view == &view_code
					 ? "pid, tid, kernel, jit, all, addrs, lines, stackcollapse"
					 : "total");
	if (needs_samples(option) && m->sample.count <= 1)
		return error_set(err, OW_E_USAGE,
				 "%s is for sampled stacks, and these files have none",
				 option->name);
	return error_set(
		err, OW_E_USAGE, "%s is for operations, and this profile has sampled functions; %s",
		option->name,
		view == &view_code ? "choose with --metric, --time-range or names of functions"
				   : "'opwatch code' chooses by the names of functions, --metric "
				     "chooses what is shown, --limit cuts the list");
}

ow_status view_options_check(const struct view *view, const struct model *m,
			     const struct view_options *options, struct ow_error *err)
{
	struct view_options usual;

	view_options_init(&usual);
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		if (is_given(&all[i], options, &usual) && !is_used(view, m, options, &all[i]))
			return refuse(view, m, options, &all[i], err);
	return OW_OK;
}

void view_options_drop(const struct view *view, const struct model *m, struct view_options *options)
{
	struct view_options usual, given = *options;

	view_options_init(&usual);
	usual.order_by = NULL;
	usual.max_depth = OW_DEFAULT_DEPTH;
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		if (is_given(&all[i], &given, &usual) && !is_used(view, m, &given, &all[i]))
			memcpy((char *)options + all[i].offset, (char *)&usual + all[i].offset,
			       all[i].size);
}
