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

/* What a sniffer may look at. */
struct sniff {
	const char *path;
	struct str head; /* the first bytes: 64 KiB, or all there are */
	struct str tail; /* the last bytes: 64, or all there are */
	uint64_t size;	 /* of the whole input */
};

/* How the user wants it read. */
struct import_options {
	bool infer;	   /* compute float operations and shapes when nothing gives them */
	bool strict_proto; /* tfprof: a message that does not parse to its end is not used at all */
	int64_t step;	   /* number for a source that is one step; INT64_MIN = next free */
	const char *const *input_shapes; /* NAME=100x784 */
	size_t input_shape_count;
	const char
		*step_marker; /* slices of a trace with such a name (a regex) are steps; or NULL */
	bool estimate;	      /* only size and counts are wanted: `info --estimate` */
	bool forget;	      /* import_forget follows: nothing may refer to the input */
};

struct import_ctx {
	struct builder *b;
	struct input *in;
	const struct import_options *options;
	struct ow_error *err;
	/* out: tfprof's "run graph coverage" after a RunMetadata */
	double coverage;
	bool missing_step_stats; /* out: a RunMetadata without step_stats */
};

/* Memory ran out: sets the error of the builder and of the caller. */
static inline ow_status import_no_memory(const struct import_ctx *ctx)
{
	return builder_fail(ctx->b, error_no_memory(ctx->err));
}

/* Order in which several inputs are applied: a graph before what annotates it. */
enum import_role { ROLE_GRAPH, ROLE_PROFILE, ROLE_RUN, ROLE_LOG, ROLE_CHECKPOINT, ROLE_TRACE };

/* How heap snapshots of V8 begin, which no importer takes though they are JSON. */
#define V8_SNAPSHOT "{\"snapshot\":{"

struct importer {
	const char *name;	/* as in importers.def */
	const char *summary;	/* one line for `opwatch formats` */
	const char *extensions; /* usual file names, for the docs only: never used to decide */
	enum import_role role;
	bool defers; /* adds no rows to tables to which a run may add some later (tf_rows.h), or puts them off, too */
	int (*sniff)(const struct sniff *sniff); /* 0 = no, 100 = certain */
	ow_status (*load)(struct import_ctx *ctx);
};

#define IMPORTER(name) extern const struct importer import_##name;
#include "import/importers.def"
#undef IMPORTER

extern const struct importer *const importers[];
extern const size_t importer_count;

const struct importer *importer_find(struct str name);
/* For struct input_options: whether content that begins so may be of a known format. */
ow_status import_judge(const char *name, struct str head, struct ow_error *err);
/* The importer that is surest about the bytes; NULL and an error that says what was seen when none. */
const struct importer *importer_recognise(const struct input *in, struct ow_error *err);

/* An input that was unpacked and recognised, ready to be loaded. */
struct prepared {
	struct input *in;
	const struct importer *importer;
	struct unpack_result unpacked;
	bool found; /* in a directory or an archive, not named; set by the caller */
	bool part;  /* of a run that is there as a whole, too; the caller's */
};

/* Unpacks and recognises (importer NULL) one input, which it takes over, also on failure. */
ow_status import_prepare(struct input *in, const struct importer *importer,
			 struct prepared *prepared, struct ow_error *err);
void import_discard(struct prepared *prepared);

/* What an input becomes: itself, or the members of an archive. */
struct prepared_list {
	struct mem *mem;
	struct prepared *items;
	size_t count, cap;
	size_t skipped;	     /* members that no importer takes */
	struct ow_error why; /* of the first of these */
	size_t others;	     /* inputs that the model has besides */
	struct input_pool *pool;
};
/* The same for an input that may be an archive; appends to the list. It fails when nothing usable is
 * in there. */
ow_status import_prepare_all(struct input *in, const struct importer *importer,
			     struct prepared_list *list, struct ow_error *err);
void prepared_list_init(struct prepared_list *list, struct mem *mem);
/* Discards what has not been loaded. */
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
/* Lets go of the input that was loaded last: what lies in it by reference cannot be read later. */
void import_forget(struct builder *b);

/* Both at once. */
ow_status import_input(struct builder *b, struct input *in, const struct importer *importer,
		       const struct import_options *options, struct import_ctx *out,
		       struct ow_error *err);

/* Computes what needs all inputs (float operations from shapes). Call it after the last input and before the freeze. */
ow_status import_finish(struct builder *b, const struct import_options *options,
			struct ow_error *err);

/* For fuzzing: one importer on a buffer, to a frozen model and back to nothing. */
ow_status import_memory(const char *importer_name, const void *data, size_t len,
			size_t memory_limit);

#endif
