/*
 * option.h: what an option of the command line is: its name, its argument, a sentence for --help, its default, and the
 * field that it sets. Each command lists its options in its cmd_*.c; options that several commands share are the groups at
 * the end. option.c parses a command line with these tables. tfprof's 21 options, which the shell and the name tfprof
 * parse by the original's rules, are in tfprof_options.c.
 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct args;
struct command;

enum option_kind {
	OPTION_FLAG,	 /* bool that becomes true */
	OPTION_FLAG_OFF, /* bool that becomes false */
	OPTION_BOOL,	 /* bool: --x, --x=false, --x false */
	OPTION_WORD,	 /* const char * that becomes the option's own name */
	OPTION_TEXT,	 /* const char * of at least `least` bytes */
	OPTION_REPEAT,	 /* struct ow_list: each use of the option adds one text */
	OPTION_LIST,	 /* struct ow_list: texts separated by commas */
	OPTION_UINT32,	 /* uint32_t from `least` to `most` */
	OPTION_INT32,	 /* int32_t from `least` to `most` */
	OPTION_SIZE,	 /* uint64_t, a size of at least `least` bytes: 500, 500M, 8GB */
	OPTION_TIME,	 /* int64_t, nanoseconds: 10s, 500ms, 2m */
	OPTION_RATIO,	 /* double: 20%, 0.2 */
	OPTION_PARSED,	 /* the function `parse` stores the value and reports errors */
	/* Kinds of tfprof's options, whose values are in args->options. */
	OPTION_TFPROF_INT32,
	OPTION_TFPROF_INT64,
	OPTION_TFPROF_ORDER,
	OPTION_TFPROF_REGEXES,
	OPTION_TFPROF_SELECT,
	OPTION_TFPROF_BOOL,
	OPTION_TFPROF_OUTPUT
};

struct option {
	const char *name; /* name without dashes; '-' and '_' are equal in it */
	char letter;	  /* letter of the short form: 'o' for -o, or 0 */
	bool in_args;	  /* the field is in struct args; otherwise in args->own */
	enum option_kind kind;
	/* offset of the field; for tfprof's options in struct ow_view_options */
	size_t offset;
	/* placeholder of the argument: "FILE"; "[=HZ]": only behind '='; NULL: no argument */
	const char *argument;
	const char *help;  /* one sentence without a full stop */
	const char *usual; /* text of the default for --help, or NULL */
	uint64_t least, most;
	bool (*parse)(struct args *args, const struct option *option, const char *value);
};

/* The offset of a field, checked to have the type that the kind stores. */
#define OPTION_OFFSET(type, field, want)                                                           \
	(offsetof(type, field) +                                                                   \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((type *)0)->field), want)        \
				 ? 1                                                               \
				 : -1]))
#define OPTION_STORE(option_kind, type, field, want)                                               \
	.kind = (option_kind), .in_args = __builtin_types_compatible_p(type, struct args),         \
	.offset = OPTION_OFFSET(type, field, want)

#define STORE_FLAG(type, field) OPTION_STORE(OPTION_FLAG, type, field, bool)
#define STORE_FLAG_OFF(type, field) OPTION_STORE(OPTION_FLAG_OFF, type, field, bool)
#define STORE_BOOL(type, field)                                                                    \
	OPTION_STORE(OPTION_BOOL, type, field, bool), .argument = "[=true|false]"
#define STORE_WORD(type, field) OPTION_STORE(OPTION_WORD, type, field, const char *)
#define STORE_TEXT(type, field) OPTION_STORE(OPTION_TEXT, type, field, const char *)
#define STORE_NAME(type, field) STORE_TEXT(type, field), .least = 1 /* the text must not be empty */
#define STORE_REPEAT(type, field) OPTION_STORE(OPTION_REPEAT, type, field, struct ow_list)
#define STORE_LIST(type, field) OPTION_STORE(OPTION_LIST, type, field, struct ow_list)
#define STORE_UINT32(type, field, from, to)                                                        \
	OPTION_STORE(OPTION_UINT32, type, field, uint32_t), .least = (from), .most = (to)
#define STORE_INT32(type, field, from, to)                                                         \
	OPTION_STORE(OPTION_INT32, type, field, int32_t), .least = (from), .most = (to)
#define STORE_SIZE(type, field, from)                                                              \
	OPTION_STORE(OPTION_SIZE, type, field, uint64_t), .least = (from)
#define STORE_TIME(type, field) OPTION_STORE(OPTION_TIME, type, field, int64_t)
#define STORE_RATIO(type, field) OPTION_STORE(OPTION_RATIO, type, field, double)
#define STORE_PARSED(function) .kind = OPTION_PARSED, .parse = (function)

struct option_group {
	const struct option *options;
	size_t count;
};
#define OPTIONS(table)                                                                             \
	{                                                                                          \
		(table), ARRAY_COUNT(table)                                                        \
	}

/* option.c: the command line. */

/* Parses the command line: finds the command, fills its fields and args->files. Reports an error and
 * returns false. */
bool args_parse(struct args *args, int argc, char **argv);
/* Returns whether an option was on the command line. */
bool args_given(const struct args *args, const char *name);

/* The options of a command, each name once: its own, its groups', --verbose and the like. `word` is what chose the
 * command: for views, the view. Fills at most OPTIONS_MOST and returns how many. */
#define OPTIONS_MOST 96
size_t command_options(const struct command *command, const char *word,
		       const struct option *list[OPTIONS_MOST]);

/* Writes an option as opwatch spells it: --max-depth. */
void option_spell(char *to, size_t size, const char *name);
/* Reports wrong usage. Always returns false, for parsers to return. */
bool usage_error(const char *format, ...) OW_PRINTF(1, 2);

/* Parsers of values, which depend only on the text. They return false if it is wrong. */

/* Parses "500", "500M" or "8GB" with powers of 1024. */
bool value_size(struct str text, uint64_t *size);
/* Parses "100:250" or "1.5s:2s": a begin, an end or both; without a unit in milliseconds. A missing side
 * stays unchanged. */
bool value_time_range(struct str text, int64_t *from_ns, int64_t *to_ns);
/* Parses "10s", "500ms" or "2m", above 0; without a unit in seconds. */
bool value_duration(struct str text, int64_t *ns);
/* Parses "20%" or "0.2", above 0 and at most 100. */
bool value_ratio(struct str text, double *ratio);
/* Add one text to a list, or the texts between commas. False if memory runs out. */
bool value_word(struct arena *arena, struct ow_list *list, const char *word);
bool value_words(struct arena *arena, struct ow_list *list, const char *words);

/* tfprof_options.c: tfprof's options. */

#define OPTION_COUNT 21
/* the options in the order of tfprof's listing */
extern const struct option option_table[OPTION_COUNT];

/* The destination of a view's output. */
struct output {
	const char *type;    /* stdout, file, timeline, pprof or none; extended: any sink */
	const char *outfile; /* stays from one -output to the next, as in tfprof */
};

struct options {
	struct ow_view_options view;
	struct output output;
	bool extended;	/* opwatch's own outputs and column names are allowed */
	uint32_t given; /* bits of the options in option_table that the user gave */
	/* the user gave order_by; without it, opwatch's shell orders by the selected column */
	bool ordered;
};

void options_init(struct options *options, bool extended);
/* Makes an independent copy. */
bool options_copy(struct options *to, const struct options *from, struct arena *arena);

/* Fills the view options with the values that the user gave, and defaults for the others. */
void options_asked(const struct options *options, struct ow_view_options *asked);
void option_mark_given(struct options *options, const struct option *option);

const struct option *option_find(struct str name);

/* Sets one option from the shell's words: `word` is "-max_depth", `next` the word after it (ptr NULL when there is none).
 * *used says whether next was consumed. On failure returns false and puts tfprof's text into err. */
bool option_parse_word(struct options *options, struct arena *arena, struct str word,
		       struct str next, bool *used, struct ow_error *err);
/* Sets one option from a flag (--max_depth=3), less strictly, as tfprof does. Returns false for a value
 * that cannot be interpreted. */
bool option_parse_flag(struct options *options, struct arena *arena, const struct option *option,
		       struct str value);
/* Parses type[:outfile=…]; fills err with tfprof's text. */
bool output_parse(struct output *output, bool extended, struct arena *arena, struct str text,
		  struct ow_error *err);

/* Writes the 21 lines that the shell shows for an empty line. */
void options_list(const struct options *options, struct buf *to);
/* Returns the values that an option can take, for completion; NULL after the last. */
const char *option_value(const struct option *option, bool extended, size_t index);
/* Reports invalid regular expressions, for opwatch; under the name tfprof the view reports them. */
bool option_check_regexes(const struct options *options, const struct option *option);
/* Reports that `word` (the option as typed) does not accept the value, and which values it
 * accepts. */
void option_explain(const struct option *option, const char *word, struct str value);
/* Returns the most important selected column, as tables show it; NULL if none is a number. */
const char *main_metric(const struct ow_list *select);
/* Parses "a,b" into a list; empty pieces are dropped. */
bool list_parse(struct ow_list *list, struct arena *arena, struct str text);

#endif
