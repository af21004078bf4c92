/*
 * api_int.h: what the handles of opwatch.h are inside; shared by the files of src/api only.
 */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "advise/rule.h"
#include "analyze/view.h"
#include "base/guard.h"
#include "import/importer.h"
#include "model/backing.h"
#include "sink/sink.h"
#include "wire/checkpoint.h"

struct ow_profile {
	struct mem mem;
	struct model *m;
	struct builder b;
	struct error build_error; /* the builder's own; copied to the caller's */
	struct ow_open_options options;
	struct import_options import;
	char **input_shapes; /* our copies */
	struct checkpoint checkpoint;
	bool has_checkpoint;
	bool frozen;
	atomic_uint results; /* that live */
};

struct ow_result {
	struct result *r;
	ow_profile *profile; /* NULL: the answer of a server, in memory of its own */
	struct mem own;
	struct str *messages; /* advice only; views keep theirs in the tree */
	size_t message_count;
	bool flat; /* a tree's columns were made */
};

/* Makes a handle of a result, or frees it. */
ow_status api_wrap_result(ow_profile *p, struct result *r, ow_result **out, struct error *err);

/* sql.c: all rows of the statement that was run, in a result without columns. */
struct sql_script;
struct sql_result;
ow_status api_hold_rows(struct sql_script *script, const struct sql_result *from, struct result *r,
			struct error *err);

/* paths.c: the files that a path, directory or glob pattern means, each once, those in a directory sorted. */
struct path {
	char *name;
	bool found; /* in a directory: it need not be a profile */
};
struct path_list {
	struct arena arena;
	struct path *items;
	size_t count, cap;
	const char *repeated; /* one that was named, and named or found before; or NULL */
	size_t unreadable;    /* directories, below those that were named */
	struct error why;     /* of the first of them */
};
ow_status paths_expand(struct path_list *list, struct mem *mem, const char *const *paths,
		       size_t count, struct error *err);

/* whole.c: drops the files that are only parts of a profile found beside them, with a note. */
ow_status api_set_parts_aside(ow_profile *p, struct prepared_list *list, struct error *err);

/* reading.c: around everything that reads rows (a bit per table). After a failed begin there is no end; a
 * failed end means that what was read is void. */
struct reading {
	struct guard guard;
	bool guarded;
};
ow_status api_read_begin(ow_profile *p, uint64_t tables, struct reading *reading,
			 struct error *err);
ow_status api_read_end(ow_profile *p, struct reading *reading, ow_status status, struct error *err);

/* watch.c: a part of a recording that is followed as a file of its own; for its owner only. */
struct follow;
struct follow_range;
ow_status api_save_cut(struct follow *f, struct follow_range *range, const char *path,
		       struct error *err);

/* redact.c: names and paths become hashes; right after the freeze. */
ow_status api_redact(ow_profile *p, struct error *err);

#endif
