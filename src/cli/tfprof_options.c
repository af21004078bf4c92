/*
 * tfprof_options.c: tfprof's 21 options: the table, parsing of the shell's words and of flags by the original's rules, the
 * listing that an empty line of the shell shows, and the values for completion. Both names of the program use it; what
 * differs (more outputs, friendlier spellings) depends on `struct options.extended`.
 */
#include "cli/option.h"

#include "base/regex/regex.h"
#include "cli/terminal/output.h"

#include <stdarg.h>
#include <strings.h>

#define AT(field) offsetof(struct ow_view_options, field)

const struct option option_table[OPTION_COUNT] = {
	{ "max_depth", .kind = OPTION_TFPROF_INT32, .offset = AT(max_depth), .argument = "N",
	  .help = "show N levels; op: N rows", .usual = "10" },
	{ "min_bytes", .kind = OPTION_TFPROF_INT64, .offset = AT(min_bytes), .argument = "N",
	  .help = "hide rows that request less memory" },
	{ "min_peak_bytes", .kind = OPTION_TFPROF_INT64, .offset = AT(min_peak_bytes),
	  .argument = "N", .help = "hide rows with a lower peak of memory" },
	{ "min_residual_bytes", .kind = OPTION_TFPROF_INT64, .offset = AT(min_residual_bytes),
	  .argument = "N", .help = "hide rows that leave less memory allocated" },
	{ "min_output_bytes", .kind = OPTION_TFPROF_INT64, .offset = AT(min_output_bytes),
	  .argument = "N", .help = "hide rows with smaller outputs" },
	{ "min_micros", .kind = OPTION_TFPROF_INT64, .offset = AT(min_micros), .argument = "N",
	  .help = "hide rows that take fewer microseconds" },
	{ "min_accelerator_micros", .kind = OPTION_TFPROF_INT64,
	  .offset = AT(min_accelerator_micros), .argument = "N",
	  .help = "hide rows that take fewer microseconds on accelerators" },
	{ "min_cpu_micros", .kind = OPTION_TFPROF_INT64, .offset = AT(min_cpu_micros),
	  .argument = "N", .help = "hide rows that take fewer microseconds on CPUs" },
	{ "min_params", .kind = OPTION_TFPROF_INT64, .offset = AT(min_params), .argument = "N",
	  .help = "hide rows with fewer parameters" },
	{ "min_float_ops", .kind = OPTION_TFPROF_INT64, .offset = AT(min_float_ops),
	  .argument = "N", .help = "hide rows with fewer float operations" },
	{ "min_occurrence", .kind = OPTION_TFPROF_INT64, .offset = AT(min_occurrence),
	  .argument = "N", .help = "hide rows that occur less often" },
	{ "step", .kind = OPTION_TFPROF_INT64, .offset = AT(step), .argument = "N",
	  .help = "show this step; -1 shows the average of all", .usual = "-1" },
	{ "order_by", .kind = OPTION_TFPROF_ORDER, .offset = AT(order_by), .argument = "COLUMN",
	  .help = "sort by this column" },
	{ "account_type_regexes", .kind = OPTION_TFPROF_REGEXES, .offset = AT(account_type_regexes),
	  .argument = "RE,…", .help = "count only ops with a matching type" },
	{ "start_name_regexes", .kind = OPTION_TFPROF_REGEXES, .offset = AT(start_name_regexes),
	  .argument = "RE,…", .help = "show matching nodes and what is below them" },
	{ "trim_name_regexes", .kind = OPTION_TFPROF_REGEXES, .offset = AT(trim_name_regexes),
	  .argument = "RE,…", .help = "leave out what is below matching nodes" },
	{ "show_name_regexes", .kind = OPTION_TFPROF_REGEXES, .offset = AT(show_name_regexes),
	  .argument = "RE,…", .help = "show only matching nodes" },
	{ "hide_name_regexes", .kind = OPTION_TFPROF_REGEXES, .offset = AT(hide_name_regexes),
	  .argument = "RE,…", .help = "hide matching nodes" },
	{ "account_displayed_op_only", .kind = OPTION_TFPROF_BOOL,
	  .offset = AT(account_displayed_op_only), .help = "count only what is shown in the totals",
	  .usual = "false" },
	{ "select", .kind = OPTION_TFPROF_SELECT, .offset = AT(select), .argument = "COLUMN,…",
	  .help = "show these columns", .usual = "micros" },
	{ "output", .kind = OPTION_TFPROF_OUTPUT, .argument = "OUTPUT",
	  .help = "write as NAME or NAME:outfile=FILE" },
};

static const char *const order_values[] = {
	"name",		"bytes",     "peak_bytes",	   "residual_bytes",
	"output_bytes", "micros",    "accelerator_micros", "cpu_micros",
	"params",	"float_ops", "occurrence",
};

static const char *const select_values[] = {
	"bytes",      "micros",	    "params",	      "float_ops",    "tensor_value",
	"device",     "op_types",   "occurrence",     "input_shapes", "accelerator_micros",
	"cpu_micros", "peak_bytes", "residual_bytes", "output_bytes",
};

/* Columns by the titles that tables show; blanks, '-' and '_' are equal, and a leading "total" is ignored. */
static const struct {
	const char *title, *name;
} titles[] = {
	{ "time", "micros" },
	{ "share", "micros" },
	{ "accelerator", "accelerator_micros" },
	{ "cpu", "cpu_micros" },
	{ "memory", "bytes" },
	{ "peak_memory", "peak_bytes" },
	{ "not_released", "residual_bytes" },
	{ "output_memory", "output_bytes" },
	{ "parameters", "params" },
	{ "runs", "occurrence" },
	{ "run_count", "occurrence" },
	{ "defined", "occurrence" },
	{ "definition_count", "occurrence" },
};

static bool is_same_title(struct str word, const char *title)
{
	if (word.len != strlen(title))
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char c = word.ptr[i];

		if (c == ' ' || c == '-')
			c = '_';
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c != title[i])
			return false;
	}
	return true;
}

/* Returns the column name for a title; other words are returned unchanged. tfprof accepts only
 * names. */
static struct str column_name(bool extended, struct str word)
{
	struct str bare = word;

	if (!extended)
		return word;
	if (word.len > 6 && is_same_title(str_first(word, 6), "total_"))
		bare = str_skip(word, 6);
	for (size_t i = 0; i < ARRAY_COUNT(titles); i++)
		if (is_same_title(bare, titles[i].title))
			return str_from(titles[i].name);
	for (size_t i = 0; i < ARRAY_COUNT(select_values); i++)
		if (is_same_title(bare, select_values[i]))
			return str_from(select_values[i]);
	return word;
}

/* tfprof's output types, in the order of its list. */
static const char *const output_types[] = { "file", "none", "pprof", "stdout", "timeline" };

static bool is_one_of(struct str word, const char *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(word, str_from(values[i])))
			return true;
	return false;
}

/* Returns the sinks that tfprof does not have. */
static const char *own_output(size_t index)
{
	struct ow_part_info sink = { .size = sizeof(sink) };

	for (size_t i = 0; ow_sink_info(i, &sink); i++)
		if (!is_one_of(str_from(sink.name), output_types, ARRAY_COUNT(output_types)) &&
		    !index--)
			return sink.name;
	return NULL;
}

const char *option_value(const struct option *option, bool extended, size_t index)
{
	switch (option->kind) {
	case OPTION_TFPROF_ORDER:
		return index < ARRAY_COUNT(order_values) ? order_values[index] : NULL;
	case OPTION_TFPROF_SELECT:
		return index < ARRAY_COUNT(select_values) ? select_values[index] : NULL;
	case OPTION_TFPROF_BOOL:
		return index == 0 ? "true" : index == 1 ? "false" : NULL;
	case OPTION_TFPROF_OUTPUT:
		if (index < ARRAY_COUNT(output_types))
			return output_types[index];
		return extended ? own_output(index - ARRAY_COUNT(output_types)) : NULL;
	default:
		return NULL;
	}
}

const char *main_metric(const struct ow_list *select)
{
	static const char *const metrics[] = {
		"micros",	  "accelerator_micros", "cpu_micros", "bytes",	   "peak_bytes",
		"residual_bytes", "output_bytes",	"params",     "float_ops", "occurrence",
	};

	for (size_t i = 0; i < ARRAY_COUNT(metrics); i++)
		for (size_t k = 0; k < select->count; k++)
			if (strcmp(metrics[i], select->items[k]) == 0)
				return metrics[i];
	return NULL;
}

void options_init(struct options *options, bool extended)
{
	*options = (struct options){ .extended = extended, .output = { .type = "stdout" } };
	ow_view_options_init(&options->view);
	options->view.max_depth = 10; /* tfprof's default */
	options->view.order_by = "name";
	options->view.defer_rows = true;
}

static bool copy_list(struct ow_list *list, struct arena *arena)
{
	const char **items = ARENA_ARRAY(arena, const char *, list->count + 1);

	if (!items)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		items[i] = arena_cstr(arena, str_from(list->items[i]));
		if (!items[i])
			return false;
	}
	list->items = items;
	return true;
}

bool options_copy(struct options *to, const struct options *from, struct arena *arena)
{
	*to = *from;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		enum option_kind kind = option_table[i].kind;
		void *field = (char *)&to->view + option_table[i].offset;

		if ((kind == OPTION_TFPROF_REGEXES || kind == OPTION_TFPROF_SELECT) &&
		    !copy_list(field, arena))
			return false;
	}
	to->view.order_by = arena_cstr(arena, str_from(from->view.order_by));
	to->output.type = arena_cstr(arena, str_from(from->output.type));
	if (from->output.outfile)
		to->output.outfile = arena_cstr(arena, str_from(from->output.outfile));
	return to->view.order_by && to->output.type;
}

const struct option *option_find(struct str name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (str_eq(name, str_from(option_table[i].name)))
			return &option_table[i];
	return NULL;
}

bool list_parse(struct ow_list *list, struct arena *arena, struct str text)
{
	const char **items = ARENA_ARRAY(arena, const char *, text.len / 2 + 2);
	struct str piece;

	if (!items)
		return false;
	*list = (struct ow_list){ items, 0 };
	while (str_split(&text, ',', &piece)) {
		if (!piece.len)
			continue;
		items[list->count] = arena_cstr(arena, piece);
		if (!items[list->count])
			return false;
		list->count++;
	}
	return true;
}

/* Sorts a list and removes repetitions. */
static void sort_list(struct ow_list *list)
{
	const char **items = (const char **)(uintptr_t)list->items;
	size_t kept = 0;

	for (size_t i = 1; i < list->count; i++)
		for (size_t k = i; k > 0 && strcmp(items[k - 1], items[k]) > 0; k--) {
			const char *other = items[k];

			items[k] = items[k - 1];
			items[k - 1] = other;
		}
	for (size_t i = 0; i < list->count; i++)
		if (!kept || strcmp(items[kept - 1], items[i]) != 0)
			items[kept++] = items[i];
	list->count = kept;
}

static struct str strip_quotes(struct str s)
{
	while (s.len && (s.ptr[0] == '"' || s.ptr[0] == '\''))
		s = str_skip(s, 1);
	while (s.len && (s.ptr[s.len - 1] == '"' || s.ptr[s.len - 1] == '\''))
		s.len--;
	return s;
}

static bool equal_nocase(struct str s, const char *word)
{
	return strlen(word) == s.len && strncasecmp(s.ptr, word, s.len) == 0;
}

static bool parse_bool(struct str s, bool *value)
{
	static const char *const yes[] = { "true", "t", "yes", "y", "1" };
	static const char *const no[] = { "false", "f", "no", "n", "0" };

	for (size_t i = 0; i < ARRAY_COUNT(yes); i++) {
		if (equal_nocase(s, yes[i]) || equal_nocase(s, no[i])) {
			*value = equal_nocase(s, yes[i]);
			return true;
		}
	}
	return false;
}

static bool set_int(struct options *options, const struct option *option, int64_t value)
{
	char *field = (char *)&options->view + option->offset;

	if (option->kind == OPTION_TFPROF_INT32) {
		if (value != (int32_t)value)
			return false;
		*(int32_t *)(void *)field = (int32_t)value;
	} else {
		*(int64_t *)(void *)field = value;
	}
	return true;
}

static bool parse_select(struct options *options, struct arena *arena, struct str text)
{
	struct ow_list list;

	if (!list_parse(&list, arena, strip_quotes(text)))
		return false;
	for (size_t i = 0; i < list.count; i++) {
		struct str name = column_name(options->extended, str_from(list.items[i]));

		if (!is_one_of(name, select_values, ARRAY_COUNT(select_values)))
			return false;
		((const char **)(uintptr_t)list.items)[i] = arena_cstr(arena, name);
		if (!list.items[i])
			return false;
	}
	sort_list(&list);
	options->view.select = list;
	return true;
}

static bool parse_value(struct options *options, struct arena *arena, const struct option *option,
			struct str value, struct ow_error *err)
{
	void *field = (char *)&options->view + option->offset;
	int64_t number;

	switch (option->kind) {
	case OPTION_TFPROF_INT32:
	case OPTION_TFPROF_INT64:
		/* white space around a number is allowed, because lines of a DOS file end in \r */
		return str_to_i64(str_trim(value), &number) && set_int(options, option, number);
	case OPTION_TFPROF_ORDER:
		value = column_name(options->extended, value);
		if (!is_one_of(value, order_values, ARRAY_COUNT(order_values)))
			return false;
		options->view.order_by = arena_cstr(arena, value);
		return options->view.order_by != NULL;
	case OPTION_TFPROF_REGEXES:
		return list_parse(field, arena, strip_quotes(value));
	case OPTION_TFPROF_SELECT:
		return parse_select(options, arena, value);
	case OPTION_TFPROF_BOOL:
		return parse_bool(value, field);
	case OPTION_TFPROF_OUTPUT:
		return output_parse(&options->output, options->extended, arena, value, err);
	default:
		return false;
	}
}

static bool bad_value(struct str word, struct str next, struct ow_error *err)
{
	if (err->status == OW_OK) {
		err->status = OW_E_USAGE;
		snprintf(err->text, sizeof(err->text), "Invalid option '%.*s' value: '%.*s'",
			 STR_ARG(word), STR_ARG(next));
	}
	return false;
}

void option_mark_given(struct options *options, const struct option *option)
{
	_Static_assert(OPTION_COUNT <= 32, "a bit for each");
	options->given |= 1u << (option - option_table);
}

void options_asked(const struct options *options, struct ow_view_options *asked)
{
	struct ow_view_options usual;

	ow_view_options_init(&usual);
	*asked = options->view;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t offset = option_table[i].offset;

		if (options->given >> i & 1)
			continue;
		switch (option_table[i].kind) {
		case OPTION_TFPROF_INT32:
			memcpy((char *)asked + offset, (char *)&usual + offset, sizeof(int32_t));
			break;
		case OPTION_TFPROF_INT64:
			if (offset != AT(step)) /* the option step has its own spelling, too */
				memcpy((char *)asked + offset, (char *)&usual + offset,
				       sizeof(int64_t));
			break;
		case OPTION_TFPROF_BOOL:
			memcpy((char *)asked + offset, (char *)&usual + offset, sizeof(bool));
			break;
		case OPTION_TFPROF_ORDER:
			asked->order_by = NULL;
			break;
		case OPTION_TFPROF_REGEXES:
		case OPTION_TFPROF_SELECT:
			memcpy((char *)asked + offset, (char *)&usual + offset,
			       sizeof(struct ow_list));
			break;
		default:
			break;
		}
	}
}

bool option_parse_word(struct options *options, struct arena *arena, struct str word,
		       struct str next, bool *used, struct ow_error *err)
{
	const struct option *option = NULL;

	*used = next.ptr != NULL;
	if (word.len && word.ptr[0] == '-')
		option = option_find(str_skip(word, 1));
	if (!option)
		return bad_value(word, next, err);
	option_mark_given(options, option);
	if (option->kind == OPTION_TFPROF_BOOL && (!next.ptr || (next.len && next.ptr[0] == '-'))) {
		options->view.account_displayed_op_only = true;
		*used = false;
		return true;
	}
	if (!next.ptr || !parse_value(options, arena, option, next, err))
		return bad_value(word, next, err);
	return true;
}

/* Parses an integer as sscanf("%lld%c") does: blanks and a sign before the number, nothing after
 * it. */
static bool flag_int(struct str value, int64_t *number)
{
	while (value.len && (value.ptr[0] == ' ' || (value.ptr[0] >= '\t' && value.ptr[0] <= '\r')))
		value = str_skip(value, 1);
	if (value.len > 1 && value.ptr[0] == '+' && value.ptr[1] != '-')
		value = str_skip(value, 1);
	return str_to_i64(value, number);
}

bool option_parse_flag(struct options *options, struct arena *arena, const struct option *option,
		       struct str value)
{
	void *field = (char *)&options->view + option->offset;
	int64_t number;

	switch (option->kind) {
	case OPTION_TFPROF_INT32:
	case OPTION_TFPROF_INT64:
		return flag_int(value, &number) && set_int(options, option, number);
	case OPTION_TFPROF_ORDER:
		options->view.order_by = arena_cstr(arena, value);
		return options->view.order_by != NULL;
	case OPTION_TFPROF_REGEXES:
		return list_parse(field, arena, value);
	case OPTION_TFPROF_SELECT:
		if (!list_parse(&options->view.select, arena, value))
			return false;
		sort_list(&options->view.select);
		return true;
	default:
		return false; /* bool and output have their own syntax; see tfprof.c */
	}
}

/* Sets an error; always returns false, so that a parser can return it. */
static bool output_error(struct ow_error *err, const char *format, ...) OW_PRINTF(2, 3);

static bool output_error(struct ow_error *err, const char *format, ...)
{
	va_list args;

	err->status = OW_E_USAGE;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return false;
}

static bool needs_file(struct str type)
{
	return str_eq(type, STR("file")) || str_eq(type, STR("timeline")) ||
	       str_eq(type, STR("pprof"));
}

static bool is_sink(struct str name)
{
	struct ow_part_info info = { .size = sizeof(info) };

	for (size_t i = 0; ow_sink_info(i, &info); i++)
		if (str_eq(name, str_from(info.name)))
			return true;
	return false;
}

/* Parses key=value: both parts are required; a further = belongs to the value, but empty pieces
 * are dropped. */
static bool parse_pair(struct output *output, bool extended, struct arena *arena, struct str type,
		       struct str pair, struct ow_error *err)
{
	struct str key = { 0 }, piece;
	struct buf value;
	bool has_value = false;
	struct str all = pair;

	buf_init(&value, arena->mem);
	while (str_split(&all, '=', &piece)) {
		if (!piece.len)
			continue;
		if (!key.ptr) {
			key = piece;
			continue;
		}
		if (has_value)
			buf_add_char(&value, '=');
		buf_add_str(&value, piece);
		has_value = true;
	}
	if (!has_value) {
		buf_release(&value);
		return output_error(err,
				    "Visualize format: -output timeline:key=value,key=value,...");
	}
	if (!str_eq(key, STR("outfile")) || (!needs_file(type) && !extended)) {
		buf_release(&value);
		return output_error(err, "Unrecognized options %.*s for output_type: %.*s\n",
				    STR_ARG(key), STR_ARG(type));
	}
	output->outfile = arena_cstr(arena, buf_str(&value));
	buf_release(&value);
	return output->outfile != NULL;
}

bool output_parse(struct output *output, bool extended, struct arena *arena, struct str text,
		  struct ow_error *err)
{
	size_t colon = str_find_char(text, ':');
	struct str type = colon == STR_NONE ? text : str_first(text, colon), pair;
	struct output parsed = *output;
	struct str rest = { 0 };

	if (colon != STR_NONE)
		rest = str_skip(text, colon + 1);
	if (!type.len)
		type = STR("stdout");
	if (!is_one_of(type, output_types, ARRAY_COUNT(output_types)) &&
	    !(extended && is_sink(type)))
		return output_error(err,
				    "E.g. Unknown output type: %.*s, Valid types: "
				    "file,none,pprof,stdout,timeline%s\n",
				    STR_ARG(type), extended ? ",json,csv,folded,flamegraph" : "");
	while (str_split(&rest, ',', &pair))
		if (pair.len && !parse_pair(&parsed, extended, arena, type, pair, err))
			return false;
	if (needs_file(type) && !parsed.outfile)
		return output_error(
			err,
			"Missing required output_options for %.*s\nE.g. -output %.*s:outfile=...\n",
			STR_ARG(type), STR_ARG(type));
	parsed.type = arena_cstr(arena, type);
	*output = parsed;
	return parsed.type != NULL;
}

static void list_line(const struct option *option, const void *field, struct buf *to)
{
	const struct ow_list *list = field;

	buf_printf(to, "-%-27s", option->name);
	for (size_t i = 0; i < list->count; i++)
		buf_printf(to, "%s%s", i ? "," : "", list->items[i]);
	buf_add_char(to, '\n');
}

void options_list(const struct options *options, struct buf *to)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option *option = &option_table[i];
		const void *field = (const char *)&options->view + option->offset;

		switch (option->kind) {
		case OPTION_TFPROF_INT32:
			buf_printf(to, "-%-27s%d\n", option->name, (int)*(const int32_t *)field);
			break;
		case OPTION_TFPROF_INT64:
			buf_printf(to, "-%-27s%lld\n", option->name,
				   (long long)*(const int64_t *)field);
			break;
		case OPTION_TFPROF_ORDER:
			buf_printf(to, "-%-27s%s\n", option->name, options->view.order_by);
			break;
		case OPTION_TFPROF_REGEXES:
		case OPTION_TFPROF_SELECT:
			list_line(option, field, to);
			break;
		case OPTION_TFPROF_BOOL:
			buf_printf(to, "-%-27s%s\n", option->name,
				   options->view.account_displayed_op_only ? "true" : "false");
			break;
		case OPTION_TFPROF_OUTPUT:
			buf_printf(to, "-%-27s%s:", option->name, options->output.type);
			if (options->output.outfile)
				buf_printf(to, "outfile=%s", options->output.outfile);
			buf_add_char(to, '\n');
			break;
		default:
			break;
		}
	}
}

static void report_invalid_regex(void *arg, struct str pattern, const char *why)
{
	bool *good = arg;

	complain("opwatch: '%.*s' is not a valid regular expression: %s\n", STR_ARG(pattern), why);
	*good = false;
}

bool option_check_regexes(const struct options *options, const struct option *option)
{
	const struct ow_list *list = (const void *)((const char *)&options->view + option->offset);
	struct regex_list compiled = { 0 };
	bool good = true;
	struct mem mem;

	if (option->kind != OPTION_TFPROF_REGEXES)
		return true;
	mem_init(&mem, 0);
	/* without memory the view reports the failure */
	if (regex_list_init(&compiled, &mem, list->items, list->count, report_invalid_regex, &good,
			    NULL) == OW_OK)
		regex_list_release(&compiled);
	return good;
}

/* Returns the part of a list that is not a column. */
static struct str wrong_piece(struct str value)
{
	struct str rest = strip_quotes(value), piece;

	while (str_split(&rest, ',', &piece))
		if (piece.len &&
		    !is_one_of(column_name(true, piece), select_values, ARRAY_COUNT(select_values)))
			return piece;
	return value;
}

void option_explain(const struct option *option, const char *word, struct str value)
{
	const char *known;
	size_t column = 0;

	if (option->kind == OPTION_TFPROF_SELECT)
		value = wrong_piece(value);
	complain("opwatch: %s does not take '%.*s'; it takes", word, STR_ARG(value));
	if (option->kind == OPTION_TFPROF_INT32)
		complain(" a number of at most %d", INT32_MAX);
	else if (option->kind == OPTION_TFPROF_INT64)
		complain(" a number");
	else if (option->kind == OPTION_TFPROF_REGEXES)
		complain(" regular expressions, separated by commas");
	for (size_t i = 0; (known = option_value(option, true, i)); i++) {
		bool fresh = !i || column + strlen(known) > 76;

		complain("%s%s", fresh ? i ? ",\n  " : ":\n  " : ", ", known);
		column = (fresh ? 0 : column) + strlen(known) + 2;
	}
	complain("\n");
}
