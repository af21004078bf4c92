/*
 * api_int.h: the structs behind the public handles, and helpers of the bodies. Included by the files of src/api and src/page only.
 */
#ifndef API_API_INT_H
#define API_API_INT_H

#include "advise/rule.h"
#include "advise/settings.h"
#include "analyze/view.h"
#include "analyze/verdict/verdict.h"
#include "api/sized.h"
#include "base/guard.h"
#include "base/paths.h"
#include "import/importer.h"
#include "model/backing.h"
#include "sink/sink.h"
#include "wire/tensorflow/checkpoint.h"

#include <sys/types.h>

struct ow_profile {
	struct mem mem;
	struct model *m;
	struct builder b;
	struct ow_error build_error; /* the builder's own; copied to the caller's */
	struct ow_open_options options;
	struct import_options import;
	char **input_shapes; /* our copies */
	struct checkpoint checkpoint;
	bool has_checkpoint;
	bool frozen;
	atomic_uint results;		     /* that live */
	_Atomic(struct headline *) headline; /* advise.c: made on first use */
	struct advice_settings advice;
};

/* What the verdict says of the first finding; the text is empty when there is nothing to say. */
struct headline {
	char text[900];
	bool covers_little; /* most of the time is not recorded: the verdict says that first */
	bool saves_little;  /* the finding is small: the verdict names the largest share first */
	struct verdict_subject subject;
};

/* advise.c: the verdict of the whole recording begins with the first finding of the advice. Forgotten when files are added. */
ow_status api_add_headline(ow_profile *p, struct table *verdict, struct ow_error *err);
/* Of two groups of runs, the base's first: which findings are gone, still there or new, beside the rows of a comparison. */
ow_status api_diff_findings(ow_profile *const *all, size_t base, size_t count, bool large,
			    struct table *out, struct ow_error *err);
void api_forget_headline(ow_profile *p);

struct ow_result {
	struct table *r;
	ow_profile *profile; /* NULL: the answer of a server, in memory of its own */
	struct mem own;
	struct str *messages; /* advice only; views keep theirs in the tree */
	size_t message_count;
	bool flat; /* a tree's columns were made */
};

/* Makes a handle of a result, or frees it. */
ow_status api_wrap_result(ow_profile *p, struct table *r, ow_result **out, struct ow_error *err);

/* sql.c: all rows of the statement that was run, in a result without columns. */
struct sql_script;
ow_status api_hold_rows(struct sql_script *script, struct table *from, struct table *r,
			struct ow_error *err);

/* profile.c: fails if the profile is not frozen. */
ow_status api_check_frozen(const ow_profile *p, struct ow_error *err);

/* profile.c: around everything that reads rows (a bit per table). After a failed begin, do not call end. If end fails,
 * what was read is void. */
struct reading {
	struct guard guard;
	bool guarded;
};
ow_status api_read_begin(ow_profile *p, uint64_t tables, struct reading *reading,
			 struct ow_error *err);
ow_status api_read_end(ow_profile *p, struct reading *reading, ow_status status,
		       struct ow_error *err);

/* write.c: a caller's function as a `struct out` ({ api_write_bytes, &writer }), and a struct atomic_file as a caller's
 * function. */
struct api_writer {
	ow_write_fn write;
	void *arg;
};
ow_status api_write_bytes(void *writer, const void *bytes, size_t len, struct ow_error *err);
bool api_write_to_file(void *atomic_file, const void *bytes, size_t len);

/* write.c: a table as a JSON file that only its owner can read, with memory of the table's. */
ow_status api_save_table(struct table *table, const char *path, struct ow_error *err);

/* build_info.c: fills *info up to the caller's size; returns true. */
bool api_part_info(struct ow_part_info *info, const char *name, const char *summary,
		   const char *detail);

#endif
