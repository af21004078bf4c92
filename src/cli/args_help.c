/* args_help.c: the options in the help on a command. */
#include "cli/args.h"

static void print_option(FILE *to, const char *left, const char *help)
{
	if (strlen(left) > 31)
		fprintf(to, "  %s\n  %-31s %s\n", left, "", help);
	else
		fprintf(to, "  %-31s %s\n", left, help);
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
		/* The ellipsis has three bytes and takes one column. */
		if (strstr(left, "…") && strlen(left) <= 31)
			fprintf(to, "  %-33s %s\n", left, option_table[i].help);
		else
			print_option(to, left, option_table[i].help);
	}
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
	if (!command || !len || len >= sizeof(word))
		return flag->help;
	snprintf(word, sizeof(word), "%.*s", (int)len, flag->help);
	if (strcmp(word, command) == 0)
		return colon + 2;
	return command_find(word) ? NULL : flag->help;
}

static bool is_among(const struct flag *flag, const char *names)
{
	struct str rest = str_from(names), word;

	while (str_split(&rest, ' ', &word))
		if (str_eq(word, str_from(flag->name)))
			return true;
	return false;
}

bool flag_is_general(const struct flag *flag)
{
	return is_among(flag, "verbose version help");
}

/* Of a command of few flags: whether this is one of them. */
static bool is_listed(const struct flag *flag, const char *help, const char *flags)
{
	if (help != flag->help && strchr(flag->help, ':')) /* its own */
		return true;
	return flag_is_general(flag) || is_among(flag, flags);
}

bool flag_is_taken(const struct flag *flag, const char *command)
{
	const struct command *known = command_find(command);
	const char *help = help_for(flag, command);

	return !known || !known->flags || (help && is_listed(flag, help, known->flags));
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
