/*
 * importer.h: what an importer is. One file import_<name>.c per foreign format exports
 * `const struct importer import_<name>`; one line IMPORTER(<name>) in importers.def makes it known to
 * the loader, `opwatch formats`, the fuzz targets and the docs index.
 *
 * An importer reads bytes (struct input, unpacked already) and fills the builder. It uses what is
 * readable: damage becomes a note (builder_note) and the load goes on; it fails only when nothing
 * usable was found, or memory or the disk gave out.
 */
#ifndef IMPORT_IMPORTER_H
#define IMPORT_IMPORTER_H

#include "base/input.h"
#include "model/builder.h"
#include "wire/container/unpack.h"

/* Data that a sniffer may examine. */
struct sniff {
	const char *path;
	struct str head; /* first bytes of the input: 64 KiB, or all */
	struct str tail; /* last bytes of the input: 64, or all */
	uint64_t size;	 /* size of the whole input */
};

/* Options for reading an input. */
struct import_options {
	bool infer;	   /* compute float operations and shapes that no input has */
	bool strict_proto; /* as in tfprof: do not use a message that does not parse to its end */
	int64_t step;	   /* number for a source that is one step; INT64_MIN = next free */
	const char *const *input_shapes; /* shapes of placeholders: NAME=100x784 */
	size_t input_shape_count;
	/* regular expression: slices of a trace with such a name are steps; or NULL */
	const char *step_marker;
	bool estimate; /* only size and counts are wanted: `info --estimate` */
	bool forget;   /* import_forget follows, so nothing may refer to the input */
};

struct import_ctx {
	struct builder *b;
	struct input *in;
	const struct import_options *options;
	struct ow_error *err;
	/* Result: tfprof's "run graph coverage" after a RunMetadata. */
	double coverage;
	bool missing_step_stats; /* result: a RunMetadata without step_stats */
};

/* Sets the error of the builder and of the caller: memory ran out. */
static inline ow_status import_no_memory(const struct import_ctx *ctx)
{
	return builder_fail(ctx->b, error_no_memory(ctx->err));
}

/* Order in which several inputs are applied: a graph before inputs that annotate it. */
enum import_role { ROLE_GRAPH, ROLE_PROFILE, ROLE_RUN, ROLE_LOG, ROLE_CHECKPOINT, ROLE_TRACE };

/* Begin of heap snapshots of V8, which no importer accepts although they are JSON. */
#define V8_SNAPSHOT "{\"snapshot\":{"

struct importer {
	const char *name;	/* name in importers.def */
	const char *summary;	/* one line for `opwatch formats` */
	const char *extensions; /* usual file names, for the docs only: never used to decide */
	enum import_role role;
	/* adds no rows to tables to which a later run may add some (tf_rows.h), or defers them,
	 * too */
	bool defers;
	int (*sniff)(const struct sniff *sniff); /* returns 0 = no, 100 = certain */
	ow_status (*load)(struct import_ctx *ctx);
};

#define IMPORTER(name) extern const struct importer import_##name;
#include "import/importers.def"
#undef IMPORTER

extern const struct importer *const importers[];
extern const size_t importer_count;

const struct importer *importer_find(struct str name);
/* Returns whether content with this beginning may have a known format; for struct input_options. */
ow_status import_judge(const char *name, struct str head, struct ow_error *err);
/* Returns the importer that is most certain about the bytes; NULL, with an error that describes
 * them, if there is none. */
const struct importer *importer_recognise(const struct input *in, struct ow_error *err);

/* An input that was unpacked and recognised, ready to be loaded. */
struct prepared {
	struct input *in;
	const struct importer *importer;
	struct unpack_result unpacked;
	bool found; /* found in a directory or an archive, not named; set by the caller */
	bool part;  /* a part of a run that is also present as a whole; set by the caller */
};

/* Unpacks and recognises (importer NULL) one input, which it takes over, also on failure. */
ow_status import_prepare(struct input *in, const struct importer *importer,
			 struct prepared *prepared, struct ow_error *err);
void import_discard(struct prepared *prepared);

/* The inputs that a file becomes: itself, or the members of an archive. */
struct prepared_list {
	struct mem *mem;
	struct prepared *items;
	size_t count, cap;
	size_t skipped;	     /* number of members that no importer accepts */
	struct ow_error why; /* error of the first of these */
	size_t others;	     /* number of inputs that the model has besides */
	struct input_pool *pool;
};
/* Prepares an input that may be an archive; appends to the list. Fails if nothing in it is
 * usable. */
ow_status import_prepare_all(struct input *in, const struct importer *importer,
			     struct prepared_list *list, struct ow_error *err);
void prepared_list_init(struct prepared_list *list, struct mem *mem);
/* Discards inputs that have not been loaded. */
void prepared_list_release(struct prepared_list *list);

/* redundant_inputs.c: discards inputs of the list that are parts of a whole profile in the same folder, with a note. Only
 * inputs that were found in a directory, not named, are discarded. */
ow_status import_drop_redundant(struct builder *b, struct prepared_list *list,
				struct ow_error *err);

/* Loads it: adds the source row, runs the importer, checks that the file did not change meanwhile. The
 * input stays open in the model, also on failure. */
ow_status import_prepared(struct builder *b, struct prepared *prepared,
			  const struct import_options *options, struct import_ctx *out,
			  struct ow_error *err);
/* Releases the last loaded input: data in it can no longer be read. */
void import_forget(struct builder *b);

/* Prepares and loads one input. */
ow_status import_input(struct builder *b, struct input *in, const struct importer *importer,
		       const struct import_options *options, struct import_ctx *out,
		       struct ow_error *err);

/* Computes data that needs all inputs (float operations from shapes). Call it after the last input and
 * before the freeze. */
ow_status import_finish(struct builder *b, const struct import_options *options,
			struct ow_error *err);

/* Runs one importer on a buffer, to a frozen model, and frees it; for fuzzing. */
ow_status import_memory(const char *importer_name, const void *data, size_t len,
			size_t memory_limit);

#endif
