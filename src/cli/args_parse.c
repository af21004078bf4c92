/*
 * args_parse.c: the command line of opwatch: files and options in any order, in both spellings
 * (--max-depth=3, --max-depth 3, -max_depth 3). What a flag does is in args.c.
 */
#include "base/nearest.h"
#include "cli/args.h"
#include "cli/values.h"

#include <strings.h>

/* '-' and '_' are the same in long options. */
static bool same_option(struct str word, const char *name)
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

static const struct flag *find_flag(struct str word)
{
	for (size_t i = 0; i < flag_count; i++)
		if (same_option(word, flag_table[i].name) ||
		    (word.len == 1 && word.ptr[0] == flag_table[i].letter))
			return &flag_table[i];
	return NULL;
}

static const struct option *find_option(struct str word)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (same_option(word, option_table[i].name))
			return &option_table[i];
	return NULL;
}

void option_spell(char *to, size_t size, const char *name)
{
	snprintf(to, size, "--%s", name);
	for (; *to; to++)
		if (*to == '_')
			*to = '-';
}

static void unknown_option(const char *word, struct str name)
{
	size_t least = nearest_limit(name);
	const char *best = NULL;
	char shown[64];

	for (size_t i = 0; i < flag_count; i++)
		nearest_try(name, flag_table[i].name, &best, &least);
	for (size_t i = 0; i < OPTION_COUNT; i++)
		nearest_try(name, option_table[i].name, &best, &least);
	complain("opwatch: unknown option '%s'", word);
	if (best) {
		option_spell(shown, sizeof(shown), best);
		complain("; did you mean %s?", shown);
	}
	complain("\nTry 'opwatch --help'.\n");
}

/* tfprof's options are checked as in its shell. */
static bool set_option(struct args *args, const struct option *option, const char *word,
		       struct str value, bool *used)
{
	struct ow_error err = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "-%s", option->name);
	if (!option_parse_word(&args->options, args->arena, str_from(name), value, used, &err)) {
		option_explain(option, word, value);
		return false;
	}
	if (!option_check_regexes(&args->options, option))
		return false;
	args->select_given |= option->kind == OPTION_SELECT;
	args->order_given |= option->kind == OPTION_ORDER;
	args->depth_given |= strcmp(option->name, "max_depth") == 0;
	return true;
}

/* --flag, --flag=false, --flag false. */
static bool set_boolean(struct args *args, const struct flag *flag, const char *word,
			const char *value, const char *next, bool *used)
{
	if (!value && next && (strcasecmp(next, "true") == 0 || strcasecmp(next, "false") == 0)) {
		*used = true;
		value = next;
	}
	if (value && strcasecmp(value, "true") != 0 && strcasecmp(value, "false") != 0)
		return usage_error("option '%s' takes true or false", word);
	return flag_set(args, flag, value ? value : "true");
}

/* What `opwatch ask` does not know is a parameter of the query. */
static bool is_param(const struct args *args, const struct flag *flag)
{
	if (!args->file_count || strcmp(args->files[0], "ask") != 0)
		return false;
	return !flag || !flag_of_ask(flag);
}

static bool add_param(struct args *args, const char *word, struct str name, struct str value,
		      const char *next, bool *used)
{
	const char *text = value.ptr ? value.ptr : next;

	if (!text)
		return usage_error("option '%s' needs a value", word);
	*used = !value.ptr;
	text = arena_printf(args->arena, "%.*s=%s", STR_ARG(name), text);
	return text && value_word(args->arena, &args->params, text);
}

/* One word that starts with '-'; *next is consumed when it is the value. */
static bool parse_option(struct args *args, const char *word, const char *next, bool *used)
{
	struct str name = str_skip(str_from(word), word[1] == '-' ? 2 : 1), value = { 0 };
	size_t equals = str_find_char(name, '=');
	const struct option *option;
	const struct flag *flag;
	bool consumed = false;

	*used = false;
	if (equals != STR_NONE) {
		value = str_skip(name, equals + 1);
		name = str_first(name, equals);
	}
	flag = find_flag(name);
	if (is_param(args, flag))
		return add_param(args, word, name, value, next, used);
	if (flag)
		args->given[args->given_count++] = flag;
	if (flag && flag->value && strcmp(flag->value, FLAG_BOOLEAN) == 0)
		return set_boolean(args, flag, word, value.ptr, next, used);
	if (flag && flag->value && flag->value[0] == '[') /* a value only behind '=' */
		return flag_set(args, flag, value.ptr ? value.ptr : "");
	if (flag && flag->value) {
		if (!value.ptr && !next)
			return usage_error("option '%s' needs a value", word);
		*used = !value.ptr;
		return flag_set(args, flag, value.ptr ? value.ptr : next);
	}
	if (flag) {
		if (value.ptr)
			return usage_error("option '%s' takes no value", word);
		return flag_set(args, flag, "");
	}
	option = find_option(name);
	if (!option) {
		unknown_option(word, name);
		return false;
	}
	if (value.ptr)
		return set_option(args, option, word, value, &consumed);
	/* A boolean takes the next word only when that is one, not a file. */
	if (option->kind == OPTION_BOOL && next && strcasecmp(next, "true") != 0 &&
	    strcasecmp(next, "false") != 0)
		next = NULL;
	if (option->kind != OPTION_BOOL && !next)
		return usage_error("option '%s' needs a value", word);
	return set_option(args, option, word, next ? str_from(next) : (struct str){ 0 }, used);
}

bool args_parse(struct args *args, int argc, char **argv)
{
	bool ended = false;

	args->files = ARENA_ARRAY(args->arena, const char *, (size_t)argc + 1);
	args->given = ARENA_ARRAY(args->arena, const struct flag *, (size_t)argc + 1);
	if (!args->files || !args->given)
		return false;
	for (int i = 0; i < argc; i++) {
		bool used = false;

		if (!ended && strcmp(argv[i], "--") == 0) {
			ended = true;
			continue;
		}
		if (ended || argv[i][0] != '-' || !argv[i][1]) {
			args->files[args->file_count++] = argv[i];
			continue;
		}
		if (!parse_option(args, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used))
			return false;
		i += used;
	}
	return true;
}
