/*
 * option.c: the parser of command lines: files and options in any order, in both spellings (--max-depth=3, --max-depth 3,
 * -max_depth 3). It works on the tables that the commands list, and stores each value in the field that the table names.
 * What the values mean is up to the commands. tfprof's own syntax is in shell/tfprof.c.
 */
#include "cli/option.h"

#include "base/nearest.h"
#include "cli/command.h"

#include <stdarg.h>
#include <strings.h>
#include <unistd.h>

bool usage_error(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("opwatch: %s\n", text);
	return false;
}

bool value_size(struct str text, uint64_t *size)
{
	static const char units[] = "KMGT";
	uint64_t factor = 1;
	int64_t number;

	if (text.len && (text.ptr[text.len - 1] | 32) == 'b')
		text.len--;
	if (text.len) {
		char last = text.ptr[text.len - 1] & (char)~32;
		const char *unit = last ? strchr(units, last) : NULL;

		if (unit) {
			factor = 1ull << (10 * (unit - units + 1));
			text.len--;
		}
	}
	if (!str_to_i64(text, &number) || number < 0 || (uint64_t)number > INT64_MAX / factor)
		return false;
	*size = (uint64_t)number * factor;
	return true;
}

/* Parses a decimal number with the unit ns, us, ms, s, m or h; `unit` is the default. */
static bool value_time(struct str text, int64_t unit, int64_t *ns)
{
	static const struct {
		struct str name;
		int64_t ns;
	} units[] = { { STR("ns"), 1 },		 { STR("us"), 1000 },
		      { STR("ms"), 1000000 },	 { STR("s"), 1000000000 },
		      { STR("m"), 60000000000 }, { STR("h"), 3600000000000 } };
	int64_t whole = 0, part = 0;
	size_t point;

	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_ends(text, units[i].name)) {
			unit = units[i].ns;
			text = str_first(text, text.len - units[i].name.len);
			break;
		}
	point = str_find_char(text, '.');
	if (point != STR_NONE) {
		for (size_t i = point + 1, place = (size_t)unit; i < text.len; i++) {
			if (text.ptr[i] < '0' || text.ptr[i] > '9')
				return false;
			place /= 10;
			part += (text.ptr[i] - '0') * (int64_t)place;
		}
		text = str_first(text, point);
	}
	if (!str_to_i64(text, &whole) || whole < 0 || whole >= INT64_MAX / unit)
		return false;
	*ns = whole * unit + part;
	return true;
}

bool value_time_range(struct str text, int64_t *from_ns, int64_t *to_ns)
{
	size_t colon = str_find_char(text, ':');
	struct str from, to;

	if (colon == STR_NONE || text.len < 2)
		return false;
	from = str_first(text, colon);
	to = str_skip(text, colon + 1);
	return (!from.len || value_time(from, 1000000, from_ns)) &&
	       (!to.len || value_time(to, 1000000, to_ns)) && *from_ns < *to_ns;
}

bool value_duration(struct str text, int64_t *ns)
{
	return value_time(text, 1000000000, ns) && *ns > 0;
}

bool value_word(struct arena *arena, struct ow_list *list, const char *word)
{
	const char **items = ARENA_ARRAY(arena, const char *, list->count + 1);

	if (!items)
		return false;
	if (list->count)
		memcpy(items, list->items, list->count * sizeof(*items));
	items[list->count++] = word;
	list->items = items;
	return true;
}

bool value_words(struct arena *arena, struct ow_list *list, const char *words)
{
	struct str rest = str_from(words), word;

	while (str_split(&rest, ',', &word)) {
		const char *copy = arena_cstr(arena, str_trim(word));

		if (!copy || !value_word(arena, list, copy))
			return false;
	}
	return true;
}

bool value_ratio(struct str text, double *ratio)
{
	bool percent = text.len && text.ptr[text.len - 1] == '%';
	struct str number = percent ? str_first(text, text.len - 1) : text;
	char copy[32], *end;

	if (!number.len || number.len >= sizeof(copy))
		return false;
	memcpy(copy, number.ptr, number.len);
	copy[number.len] = '\0';
	*ratio = strtod(copy, &end) / (percent ? 100 : 1);
	return !*end && *ratio > 0 && *ratio <= 100;
}

#define COMMAND(name) &cmd_##name,
const struct command *const command_table[] = {
#include "cli/commands.def"
};
#undef COMMAND
const size_t command_count = ARRAY_COUNT(command_table);

const struct command *command_find(const char *name)
{
	struct ow_part_info view = { .size = sizeof(view) };

	for (size_t i = 0; i < command_count; i++)
		if (strcmp(command_table[i]->name, name) == 0)
			return command_table[i];
	for (size_t i = 0; ow_view_info(i, &view); i++)
		if (strcmp(view.name, name) == 0)
			return &cmd_view;
	return NULL;
}

/* Compares names; '-' and '_' count as equal. */
static bool is_name(struct str word, const char *name)
{
	if (word.len != strlen(name))
		return false;
	for (size_t i = 0; i < word.len; i++) {
		char a = word.ptr[i] == '_' ? '-' : word.ptr[i];
		char b = name[i] == '_' ? '-' : name[i];

		if (a != b)
			return false;
	}
	return true;
}

static size_t add_group(const struct command *command, const char *word,
			const struct option_group *group, const struct option **list, size_t count)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct option *option = &group->options[i];
		bool known = command->takes && !command->takes(word, option);

		for (size_t k = 0; k < count && !known; k++)
			known = is_name(str_from(option->name), list[k]->name);
		if (known)
			continue;
		OW_ASSERT(count < OPTIONS_MOST);
		list[count++] = option;
	}
	return count;
}

size_t command_options(const struct command *command, const char *word,
		       const struct option *list[OPTIONS_MOST])
{
	size_t count = add_group(command, word, &command->own, list, 0);

	for (size_t i = 0; i < ARRAY_COUNT(command->groups) && command->groups[i]; i++)
		count = add_group(command, word, command->groups[i], list, count);
	return add_group(command, word, &general_options, list, count);
}

static const struct option *find_option(const struct command *command, const char *word,
					struct str name)
{
	const struct option *list[OPTIONS_MOST];
	size_t count = command_options(command, word, list);

	for (size_t i = 0; i < count; i++)
		if (is_name(name, list[i]->name) ||
		    (name.len == 1 && name.ptr[0] == list[i]->letter))
			return list[i];
	return NULL;
}

/* Finds an option of any command: whether a name takes a value is the same in all commands. */
static const struct option *find_anywhere(struct str name)
{
	for (size_t i = 0; i < command_count; i++) {
		const struct option *option = find_option(command_table[i], "view", name);

		if (option)
			return option;
	}
	return NULL;
}

bool args_given(const struct args *args, const char *name)
{
	for (size_t i = 0; i < args->given_count; i++)
		if (is_name(str_from(name), args->given[i]->name))
			return true;
	return false;
}

void option_spell(char *to, size_t size, const char *name)
{
	snprintf(to, size, "--%s", name);
	for (; *to; to++)
		if (*to == '_')
			*to = '-';
}

static bool is_tfprof(const struct option *option)
{
	return option->kind >= OPTION_TFPROF_INT32;
}

static bool is_boolean(const struct option *option)
{
	return option->kind == OPTION_BOOL || option->kind == OPTION_TFPROF_BOOL;
}

/* Reports which values an option takes: "--x takes …, not 'y'". */
static bool wrong_value(const struct option *option, const char *value)
{
	char takes[96];

	switch (option->kind) {
	case OPTION_BOOL:
		snprintf(takes, sizeof(takes), "true or false");
		break;
	case OPTION_SIZE:
		snprintf(takes, sizeof(takes), "a size such as 500M or 8G");
		break;
	case OPTION_TIME:
		snprintf(takes, sizeof(takes), "a time such as 10s, 500ms or 2m");
		break;
	case OPTION_RATIO:
		snprintf(takes, sizeof(takes), "a percentage such as 20%% or 0.2");
		break;
	default:
		snprintf(takes, sizeof(takes), "a number from %" PRIu64 " to %" PRIu64,
			 option->least, option->most);
	}
	return usage_error("--%s takes %s, not '%s'", option->name, takes, value);
}

static bool store_number(const struct option *option, void *field, const char *value)
{
	int64_t number;

	if (!str_to_i64(str_from(value), &number) || number < (int64_t)option->least ||
	    number > (int64_t)option->most)
		return wrong_value(option, value);
	if (option->kind == OPTION_UINT32)
		*(uint32_t *)field = (uint32_t)number;
	else
		*(int32_t *)field = (int32_t)number;
	return true;
}

/* Stores a tfprof option, checked as in tfprof's shell. */
static bool store_tfprof(struct args *args, const struct option *option, const char *word,
			 const char *value)
{
	struct str text = value ? str_from(value) : (struct str){ 0 };
	struct ow_error err = { 0 };
	char name[64];
	bool used;

	snprintf(name, sizeof(name), "-%s", option->name);
	if (!option_parse_word(&args->options, args->arena, str_from(name), text, &used, &err)) {
		option_explain(option, word, text);
		return false;
	}
	return option_check_regexes(&args->options, option);
}

/* Stores a value; `value` is NULL if there is none. */
static bool store_value(struct args *args, const struct option *option, const char *word,
			const char *value)
{
	char *base = option->in_args ? (char *)args : args->own;
	void *field = base + option->offset;

	if (is_tfprof(option))
		return store_tfprof(args, option, word, value);
	switch (option->kind) {
	case OPTION_FLAG:
	case OPTION_FLAG_OFF:
		*(bool *)field = option->kind == OPTION_FLAG;
		return true;
	case OPTION_BOOL:
		*(bool *)field = !value || strcasecmp(value, "true") == 0;
		return !value || *(bool *)field || strcasecmp(value, "false") == 0 ||
		       wrong_value(option, value);
	case OPTION_WORD:
		*(const char **)field = option->name;
		return true;
	case OPTION_TEXT:
		*(const char **)field = value;
		return (value && strlen(value) >= option->least) ||
		       usage_error("--%s needs a value: %s", option->name, option->argument);
	case OPTION_REPEAT:
		return value_word(args->arena, field, value);
	case OPTION_LIST:
		return value_words(args->arena, field, value);
	case OPTION_UINT32:
	case OPTION_INT32:
		return store_number(option, field, value);
	case OPTION_SIZE:
		return (value_size(str_from(value), field) &&
			*(uint64_t *)field >= option->least) ||
		       wrong_value(option, value);
	case OPTION_TIME:
		return value_duration(str_from(value), field) || wrong_value(option, value);
	case OPTION_RATIO:
		return value_ratio(str_from(value), field) || wrong_value(option, value);
	default:
		return option->parse(args, option, value);
	}
}

/* One option as the user typed it. */
struct typed {
	size_t words;	  /* number of words before it that are not options */
	const char *word; /* the word as typed: --max-depth=3 */
	struct str name;
	const char *value; /* value of the option, or NULL */
};

static bool is_true_or_false(const char *word)
{
	return word && (strcasecmp(word, "true") == 0 || strcasecmp(word, "false") == 0);
}

/* Splits one word that begins with '-'. *next is its value if the option takes one and none follows '='. */
static bool split_option(const struct args *args, const char *word, const char *next,
			 struct typed *typed, bool *used)
{
	struct str name = str_skip(str_from(word), word[1] == '-' ? 2 : 1);
	size_t equals = str_find_char(name, '=');
	const struct command *command = args->file_count ? command_find(args->files[0]) : NULL;
	const struct option *option;
	bool other;

	*typed = (struct typed){ .word = word,
				 .name = str_first(name, MIN(equals, name.len)),
				 .words = args->file_count };
	if (equals != STR_NONE)
		typed->value = name.ptr + equals + 1;
	other = command && command->take_other && !find_option(command, command->name, typed->name);
	option = other ? NULL : find_anywhere(typed->name);
	*used = false;
	if (typed->value) {
		if (option && !option->argument && !is_boolean(option))
			return usage_error("option '%s' takes no value", word);
		return true;
	}
	if (option && is_boolean(option))
		*used = is_true_or_false(next);
	else if (other || (option && option->argument && option->argument[0] != '['))
		*used = true;
	if (*used && !next)
		return usage_error("option '%s' needs a value", word);
	typed->value = *used ? next : NULL;
	return true;
}

/* Returns whether a word is an option. A query may begin with a comment ("-- slow ops\nSELECT
 * …"), but the name of an option has no blanks. */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && !strchr(" \t\r\n", word[1 + (word[1] == '-')]) &&
	       strcspn(word, " \t\r\n") >= strcspn(word, "=");
}

static bool split_words(struct args *args, int argc, char **argv, struct typed *typed,
			size_t *count)
{
	bool ended = false, used = false;

	for (int i = 0; i < argc; i += 1 + used) {
		used = false;
		if (!ended && strcmp(argv[i], "--") == 0) {
			ended = true;
		} else if (ended || !is_option(argv[i])) {
			args->files[args->file_count++] = argv[i];
		} else if (!split_option(args, argv[i], i + 1 < argc ? argv[i + 1] : NULL,
					 &typed[(*count)++], &used)) {
			return false;
		}
	}
	return true;
}

#define OWNERS_NAMED 5

/* Writes the commands that take an option: "sql, ask, push". */
static void name_owners(struct str name, char *text, size_t size)
{
	size_t len = 0, owners = 0;

	text[0] = '\0';
	for (size_t i = 0; i < command_count; i++) {
		if (!find_option(command_table[i], "view", name) || owners++ >= OWNERS_NAMED)
			continue;
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
					command_table[i] == &cmd_view ? "views"
								      : command_table[i]->name);
	}
	if (owners > OWNERS_NAMED)
		snprintf(text + len, size - len, ", …");
}

static bool refuse_option(const struct args *args, const struct typed *typed)
{
	const struct option *list[OPTIONS_MOST];
	const struct option *elsewhere = find_anywhere(typed->name);
	size_t least = nearest_limit(typed->name), count;
	const char *best = NULL;
	char owners[256], shown[64];

	if (elsewhere) {
		name_owners(typed->name, owners, sizeof(owners));
		option_spell(shown, sizeof(shown), elsewhere->name);
		complain("opwatch: 'opwatch %s' does not take %s; it is an option of: %s\n",
			 args->command, shown, owners);
	} else {
		count = command_options(args->chosen, args->command, list);
		for (size_t i = 0; i < count; i++)
			nearest_try(typed->name, list[i]->name, &best, &least);
		complain("opwatch: unknown option '%s'", typed->word);
		option_spell(shown, sizeof(shown), best ? best : "");
		if (best)
			complain("; did you mean %s?", shown);
		complain("\n");
	}
	complain("Try 'opwatch %s --help'.\n", args->command);
	return false;
}

static bool store_option(struct args *args, const struct typed *typed)
{
	const struct option *option = find_option(args->chosen, args->command, typed->name);

	if (option) {
		args->given[args->given_count++] = option;
		args->files_before = typed->words - args->named;
		return store_value(args, option, typed->word, typed->value);
	}
	if (args->chosen->take_other && typed->value)
		return args->chosen->take_other(args, typed->name, typed->value);
	return refuse_option(args, typed);
}

/* Chooses the command by the first word; ./word means a file of that name. */
static bool choose_command(struct args *args)
{
	args->chosen = &cmd_overview;
	args->command = cmd_overview.name;
	if (args->file_count && command_find(args->files[0])) {
		args->command = args->files[0];
		args->chosen = command_find(args->command);
		args->named = true;
		args->files++;
		args->file_count--;
	}
	if (!args->chosen->own_size)
		return true;
	args->own = arena_push(args->arena, args->chosen->own_size);
	if (args->own && args->chosen->init)
		args->chosen->init(args->own);
	return args->own != NULL;
}

static bool wants_help(const struct typed *typed, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_name(typed[i].name, "help") || is_name(typed[i].name, "version") ||
		    is_name(typed[i].name, "h") || is_name(typed[i].name, "V"))
			return true;
	return false;
}

/* Reports a word that is neither a file nor a command as a mistyped command. */
static bool mistyped_command(const struct args *args)
{
	const char *word = args->files[0], *best = NULL;
	size_t least = nearest_limit(str_from(word));
	struct ow_part_info view = { .size = sizeof(view) };

	if (strpbrk(word, "/.*?[") || access(word, F_OK) == 0 || strcmp(word, "-") == 0)
		return false;
	for (size_t i = 0; i < command_count; i++)
		nearest_try(str_from(word), command_table[i]->name, &best, &least);
	for (size_t i = 0; ow_view_info(i, &view); i++)
		nearest_try(str_from(word), view.name, &best, &least);
	/* a single word is more likely the name of a file */
	if (args->file_count < 2 && !best)
		return false;
	complain("opwatch: '%s' is neither a command nor a file", word);
	if (best)
		complain("; did you mean '%s'?", best);
	complain("\nTry 'opwatch --help'.\n");
	return true;
}

bool args_parse(struct args *args, int argc, char **argv)
{
	struct typed *typed = ARENA_ARRAY(args->arena, struct typed, (size_t)argc + 1);
	size_t count = 0;

	args->files = ARENA_ARRAY(args->arena, const char *, (size_t)argc + 1);
	args->given = ARENA_ARRAY(args->arena, const struct option *, (size_t)argc + 1);
	if (!typed || !args->files || !args->given ||
	    !split_words(args, argc, argv, typed, &count) || !choose_command(args))
		return false;
	if (args->chosen == &cmd_overview && args->file_count && !wants_help(typed, count) &&
	    mistyped_command(args))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!store_option(args, &typed[i]))
			return false;
	return true;
}
