/*
 * sink.h: what an output is. One file sink_<name>.c exports `const struct sink sink_<name>`; one line SINK(<name>) in sinks.def registers it.
 * A sink writes a table, its tree or a model to a stream. It does not analyse anything and does not open files.
 */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include "base/human.h"
#include "base/buf.h"
#include "base/writer.h"
#include "sink/sink.h"
#include "table/table.h"
#include "table/tree/tree.h"

enum sink_accepts {
	SINK_RESULT = 1 << 0,	  /* any table */
	SINK_TREE_SCOPE = 1 << 1, /* the tree of this view */
	SINK_TREE_GRAPH = 1 << 2,
	SINK_TREE_OP = 1 << 3,
	SINK_TREE_CODE = 1 << 4,
	SINK_TREES = 15 << 1,
	SINK_DIFF = 1 << 5 /* the table of a comparison, with its frames */
};

struct sink_options {
	uint32_t width; /* of the terminal; 0 = do not fit */
	bool colour;
	bool full_numbers;  /* no k, ms, MB */
	const char *metric; /* folded, flamegraph, pprof: which value */
	const char *title;
	const char *style; /* flamegraph: words of flame_style_parse */
	/* A table that comes in pieces (csv, json): the first piece also writes what comes before the rows, the last what
	 * comes after them. */
	bool continued, continues;
	uint64_t rows_before;
	bool all_columns; /* text: also those without a value */
	bool short_names; /* text: long names of kernels in their short form */
	/* parquet: writes a table; NULL = cannot be done here. */
	ow_status (*parquet)(struct table *table, const struct out *out, struct ow_error *err);
	/* tensor values of a checkpoint, for tfprof's text; NULL when there is none. Appends the text of
	 * the tensor to *text, or a line for stderr to *message. */
	void (*tensor)(void *arg, struct str name, struct buf *text, struct buf *message);
	void *tensor_arg;
	/* lines that tfprof prints on stderr while writing */
	void (*message)(void *arg, struct str line);
	void *message_arg;
	/* lines that it prints on stdout meanwhile ("generating trace file."); no line feed in them */
	void (*stdout_line)(void *arg, struct str line);
	void *stdout_arg;
};

struct sink {
	const char *name, *summary, *extension;
	unsigned accepts;
	bool binary; /* not for a terminal */
	bool folded; /* knows chains of folded trees; see tree_unfold */
	bool events; /* reads the events behind a tree, too */
	/* Whether it writes this table from the tree alone, although it accepts SINK_RESULT: then no columns need to be
	 * made. NULL = no. */
	bool (*direct)(const struct table *result, const struct sink_options *options);
	/* A table that cannot be written (the wrong view or metric) is an OW_E_USAGE before the first byte, so a caller
	 * opens its file on the first write. */
	ow_status (*write)(struct table *result, const struct sink_options *options,
			   const struct out *out, struct ow_error *err);
};

#define SINK(name) extern const struct sink sink_##name;
#include "sink/sinks.def"
#undef SINK

extern const struct sink *const sinks[];
extern const size_t sink_count;
const struct sink *sink_find(const char *name);

/* Numbers of a column as human_int and human_real print them. */
static inline enum human_unit human_unit_of(enum column_unit unit)
{
	static_assert((int)UNIT_PERCENT == (int)HUMAN_UNIT_PERCENT,
		      "the same units in the same order");
	return (enum human_unit)unit;
}

#endif
