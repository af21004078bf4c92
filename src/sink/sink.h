/*
 * sink.h: what an output is. One file sink_<name>.c exports `const struct sink sink_<name>`; one line
 * SINK(<name>) in sinks.def registers it. A sink writes a result (or its tree, or a model) into a
 * stream; it never analyses anything and never opens files by itself.
 */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include "base/buf.h"
#include "model/result.h"
#include "model/tree.h"

/* Where bytes go. write returns OW_E_IO and fills err on failure; a closed pipe is OW_E_INTERRUPTED. */
struct out {
	ow_status (*write)(void *arg, const void *bytes, size_t len, struct error *err);
	void *arg;
};

enum sink_accepts {
	SINK_RESULT = 1 << 0,	  /* any table */
	SINK_TREE_SCOPE = 1 << 1, /* the tree of this view */
	SINK_TREE_GRAPH = 1 << 2,
	SINK_TREE_OP = 1 << 3,
	SINK_TREE_CODE = 1 << 4,
	SINK_TREES = 15 << 1
};

struct sink_options {
	uint32_t width; /* of the terminal; 0 = do not fit */
	bool colour;
	bool full_numbers;  /* no k, ms, MB */
	const char *metric; /* folded, flamegraph, pprof: which value */
	const char *title;
	const char *style; /* flamegraph: words, see flame_cells.h */
	/* A result that comes in pieces (csv, json): what stands before the rows is written with the first, what
	 * stands after them with the last. */
	bool continued, continues;
	uint64_t rows_before;
	bool all_columns; /* text: also those without a value */
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
	/* Whether it writes this result from the tree alone, although it accepts SINK_RESULT: then nobody
	 * needs to make columns first. NULL = no. */
	bool (*direct)(const struct result *result, const struct sink_options *options);
	/* What cannot be written at all (the wrong view or metric) is refused with OW_E_USAGE and a
	 * message before the first byte, so a caller opens its file on the first write. */
	ow_status (*write)(struct result *result, const struct sink_options *options,
			   const struct out *out, struct error *err);
};

#define SINK(name) extern const struct sink sink_##name;
#include "sink/sinks.def"
#undef SINK

extern const struct sink *const sinks[];
extern const size_t sink_count;
const struct sink *sink_find(const char *name);

#endif
