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
	SINK_RESULT = 1 << 0,	  /* the sink writes any table */
	SINK_TREE_SCOPE = 1 << 1, /* the sink writes the tree of this view */
	SINK_TREE_GRAPH = 1 << 2,
	SINK_TREE_OP = 1 << 3,
	SINK_TREE_CODE = 1 << 4,
	SINK_TREES = 15 << 1,
	SINK_DIFF = 1 << 5 /* the sink writes the table of a comparison, with its frames */
};

struct sink_options {
	/* width of the terminal in characters; 0 = output is not fitted to a width */
	uint32_t width;
	bool colour;
	bool full_numbers;  /* exact numbers, without k, ms, MB */
	const char *metric; /* for folded, flamegraph and pprof: name of the value to draw */
	const char *title;
	const char *style; /* for flamegraph: words that flame_style_parse reads */
	/* For a table that is written in pieces (csv, json): the header is written unless `continued`, the end is
	 * written unless `continues`. */
	bool continued, continues;
	uint64_t rows_before;
	bool all_columns; /* for text: show also columns without a value */
	bool short_names; /* for text: shorten long names of kernels */
	/* for parquet: writes a table; NULL = this build cannot write Parquet. */
	ow_status (*parquet)(struct table *table, const struct out *out, struct ow_error *err);
	/* Tensor values of a checkpoint, for tfprof's text; NULL when there is no checkpoint. Appends the text of
	 * the tensor to *text, or a line for stderr to *message. */
	void (*tensor)(void *arg, struct str name, struct buf *text, struct buf *message);
	void *tensor_arg;
	/* receives lines that tfprof prints on stderr while it writes */
	void (*message)(void *arg, struct str line);
	void *message_arg;
	/* receives lines that tfprof prints on stdout while it writes ("generating trace file."), without a line
	 * feed */
	void (*stdout_line)(void *arg, struct str line);
	void *stdout_arg;
};

struct sink {
	const char *name, *summary, *extension;
	unsigned accepts;
	bool binary; /* the output is binary and must not go to a terminal */
	bool folded; /* the sink can write chains of folded trees; see tree_unfold */
	bool events; /* the sink reads the events of a tree's nodes, too */
	/* Whether the sink writes this table from the tree alone, although it accepts SINK_RESULT: then no columns
	 * need to be made. NULL = never. */
	bool (*direct)(const struct table *result, const struct sink_options *options);
	/* Writes a table. If the table cannot be written (wrong view or metric) the result is OW_E_USAGE before the
	 * first byte, so that a caller can create its file on the first write. */
	ow_status (*write)(struct table *result, const struct sink_options *options,
			   const struct out *out, struct ow_error *err);
};

#define SINK(name) extern const struct sink sink_##name;
#include "sink/sinks.def"
#undef SINK

extern const struct sink *const sinks[];
extern const size_t sink_count;
const struct sink *sink_find(const char *name);

/* The unit with which human_int and human_real print the numbers of a column. */
static inline enum human_unit human_unit_of(enum column_unit unit)
{
	static_assert((int)UNIT_PERCENT == (int)HUMAN_UNIT_PERCENT,
		      "the same units in the same order");
	return (enum human_unit)unit;
}

#endif
