/*
 * options.h: tfprof's 21 options as a table: parsing of the shell's words and of command-line flags,
 * the listing that an empty line shows, and completion. Used under both names of the program; what
 * differs (more outputs, friendlier spellings) is said by `struct options.extended`.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum option_kind {
	OPTION_INT32,
	OPTION_INT64,
	OPTION_ORDER,
	OPTION_LIST,
	OPTION_SELECT,
	OPTION_BOOL,
	OPTION_OUTPUT
};

struct option {
	const char *name; /* without dashes: max_depth */
	enum option_kind kind;
	size_t offset; /* in struct ow_view_options; unused for output */
	const char *help;
};

#define OPTION_COUNT 21
extern const struct option option_table[OPTION_COUNT]; /* in the order of the listing */

/* Where a view goes. */
struct output {
	const char *type;    /* stdout, file, timeline, pprof, none; extended: any sink */
	const char *outfile; /* sticks from one -output to the next, as in the original */
};

struct options {
	struct ow_view_options view;
	struct output output;
	bool extended; /* opwatch's own outputs and column names are allowed */
	bool ordered;  /* order_by was asked for; opwatch's shell orders by what is selected else */
};

void options_init(struct options *options, bool extended);
/* A copy that shares nothing with `from`. */
bool options_copy(struct options *to, const struct options *from, struct arena *arena);

const struct option *option_find(struct str name);

/* Sets one option from the shell's words: `word` is "-max_depth", `next` the word after it (ptr NULL
 * when there is none). *used says whether next was consumed. On failure returns false and puts tfprof's
 * text into err. */
bool option_parse_word(struct options *options, struct arena *arena, struct str word,
		       struct str next, bool *used, struct ow_error *err);

/* Sets one option from a flag's value (--max_depth=3): less strict, as in the original. Returns false
 * for a value that cannot be interpreted. */
bool option_parse_flag(struct options *options, struct arena *arena, const struct option *option,
		       struct str value);

/* type[:outfile=…]; fills err with tfprof's text. */
bool output_parse(struct output *output, bool extended, struct arena *arena, struct str text,
		  struct ow_error *err);

/* The 21 lines. */
void options_list(const struct options *options, struct buf *to);

/* Values that an option can take, for completion; NULL after the last. */
const char *option_value(const struct option *option, bool extended, size_t index);

/* Complains about regular expressions that are none; for opwatch: tfprof looks at them in the view. */
bool option_check_regexes(const struct options *options, const struct option *option);

/* Says on stderr that `word` (the option as typed) cannot take the value, and what it can. */
void option_explain(const struct option *option, const char *word, struct str value);

/* Of the selected columns the one that matters most, as tables show them; NULL when none is a number. */
const char *main_metric(const struct ow_list *select);

/* "a,b" into a list; empty pieces are dropped. */
bool list_parse(struct ow_list *list, struct arena *arena, struct str text);

#endif
