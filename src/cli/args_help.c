/* args_help.c: the options in the help on a command. */
#include "cli/args.h"

/* Columns, not bytes: some values have an ellipsis. */
static void print_option(FILE *to, const char *left, const char *help)
{
	size_t wide = utf8_width(str_from(left));

	if (wide > 31)
		fprintf(to, "  %s\n  %-31s %s\n", left, "", help);
	else
		fprintf(to, "  %s%*s %s\n", left, (int)(31 - wide), "", help);
}

static void print_view_options(FILE *to)
{
	static const char *const values[] = {
		[OPTION_INT32] = " N",	       [OPTION_INT64] = " N",
		[OPTION_ORDER] = " COLUMN",    [OPTION_LIST] = " RE,…",
		[OPTION_SELECT] = " COLUMN,…", [OPTION_BOOL] = "",
		[OPTION_OUTPUT] = " OUTPUT",
	};
	char name[64], left[128];

	fprintf(to, "Options of the views (tfprof's, also as -max_depth 3):\n");
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		option_spell(name, sizeof(name), option_table[i].name);
		snprintf(left, sizeof(left), "    %s%s", name, values[option_table[i].kind]);
		print_option(to, left, option_table[i].help);
	}
}

static bool has_word(const char *words, const char *word)
{
	struct str rest = str_from(words), one;

	while (str_split(&rest, ' ', &one))
		if (str_eq(one, str_from(word)))
			return true;
	return false;
}

/* The commands that take a flag, when those are few; NULL when they are not, or the text says which. */
static const char *flag_owners(const struct flag *flag)
{
	static const struct {
		const char *flags, *commands;
	} owned[] = {
		{ "name run one-run", "sql ask export push" },
		{ "table", "export push" },
		{ "on", "sql ask" },
		{ "password-file", "sql ask push" },
		{ "temp-dir", "sql ask" },
		{ "peak", "roofline shell" },
		{ "estimate", "info overview" },
		{ "show-dataflow show-memory", "convert" },
		{ "max-size on-slowdown on-stall stacks", "record attach daemon" },
		{ "for", "stacks attach capture" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(owned); i++)
		if (has_word(owned[i].flags, flag->name))
			return owned[i].commands;
	return NULL;
}

/* The text of a flag begins with the command that takes it, when only one does: "merge: …". */
static const char *help_for(const struct flag *flag, const char *command)
{
	const char *colon = strstr(flag->help, ": ");
	size_t len = colon ? (size_t)(colon - flag->help) : 0;
	const struct command *known = command ? command_find(command) : NULL;
	char word[32];

	if (known && known->out && strcmp(flag->name, "out") == 0)
		return known->out;
	if (command && flag_owners(flag))
		return has_word(flag_owners(flag), command) ? flag->help : NULL;
	if (!command || !len || len >= sizeof(word))
		return flag->help;
	snprintf(word, sizeof(word), "%.*s", (int)len, flag->help);
	if (strcmp(word, command) == 0)
		return colon + 2;
	return command_find(word) ? NULL : flag->help;
}

bool flag_is_general(const struct flag *flag)
{
	return has_word("verbose version help", flag->name);
}

/* Of a command of few flags: whether this is one of them. */
static bool is_listed(const struct flag *flag, const char *help, const char *flags)
{
	if (help != flag->help && strchr(flag->help, ':')) /* its own */
		return true;
	return flag_is_general(flag) || has_word(flags, flag->name);
}

bool flag_is_taken(const struct flag *flag, const char *command)
{
	const struct command *known = command_find(command);
	const char *help = help_for(flag, command);

	return !known || (help && (!known->flags || is_listed(flag, help, known->flags)));
}

static bool refuse(const struct flag *flag, const char *command)
{
	const char *owners = flag_owners(flag), *colon = strstr(flag->help, ": ");

	if (!command_find(command)->flags) { /* it takes most of them */
		complain("opwatch: 'opwatch %s' does not take --%s: that is of %.*s\n", command,
			 flag->name, owners ? (int)strlen(owners) : (int)(colon - flag->help),
			 owners ? owners : flag->help);
		return false;
	}
	complain("opwatch: 'opwatch %s' does not take --%s, but", command, flag->name);
	for (size_t k = 0; k < flag_count; k++)
		if (!flag_is_general(&flag_table[k]) && flag_is_taken(&flag_table[k], command))
			complain(" --%s", flag_table[k].name);
	complain("\nTry 'opwatch %s --help'.\n", command);
	return false;
}

bool args_check_given(const struct args *args)
{
	for (size_t i = 0; i < args->given_count; i++)
		if (!flag_is_taken(args->given[i], args->command))
			return refuse(args->given[i], args->command);
	return true;
}

void args_print_options(FILE *to, const char *command, bool views)
{
	char left[128];

	fprintf(to, "Options:\n");
	for (size_t i = 0; i < flag_count; i++) {
		const struct flag *flag = &flag_table[i];
		const char *help = help_for(flag, command);
		char letter[8] = "    ";

		if (!help || (command && !flag_is_taken(flag, command)))
			continue;
		if (flag->letter)
			snprintf(letter, sizeof(letter), "-%c, ", flag->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, flag->name,
			 flag->value && *flag->value != '[' ? " " : "",
			 flag->value ? flag->value : "");
		print_option(to, left, help);
	}
	if (views)
		print_view_options(to);
}
