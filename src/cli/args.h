/*
 * args.h: between args.c (the flags), args_parse.c (the words of a command line) and args_help.c. Commands include
 * command.h.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "cli/command.h"

struct flag {
	const char *name;
	char letter;
	unsigned id;	   /* args.c knows what it means */
	const char *value; /* what it takes, or NULL */
	const char *help;
};

#define FLAG_BOOLEAN "[=true|false]" /* the value of flags that are true when nothing follows */

extern const struct flag flag_table[];
extern const size_t flag_count;

/* Does what the flag says; false when the value is none, which was told. */
bool flag_set(struct args *args, const struct flag *flag, const char *value);
/* Whether `opwatch ask` takes it; all others are parameters of the query. */
bool flag_of_ask(const struct flag *flag);
/* Whether every command takes it: --help and its kin. */
bool flag_is_general(const struct flag *flag);
/* Whether a command does something with it; of commands that take most flags, and of files, always. */
bool flag_is_taken(const struct flag *flag, const char *command);

/* Writes an option's name the way of opwatch: --max-depth. */
void option_spell(char *to, size_t size, const char *name);

/* Always false, so that a parser can return it. */
bool usage_error(const char *format, ...) OW_PRINTF(1, 2);

#endif
