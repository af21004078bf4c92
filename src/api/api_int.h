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
	struct ow_error build_error; /* error of the builder; copied to the caller's error */
	struct ow_open_options options;
	struct import_options import;
	char **input_shapes; /* copies that the profile owns */
	struct checkpoint checkpoint;
	bool has_checkpoint;
	bool frozen;
	atomic_uint results; /* number of results that are not freed yet */
	/* advise.c: headline of the verdict, made on first use */
	_Atomic(struct headline *) headline;
	struct advice_settings advice;
};

/* The sentence about the first finding in the verdict; empty if there is none. */
struct headline {
	char text[900];
	bool covers_little; /* most of the time is not recorded: the verdict says that first */
	bool saves_little;  /* the finding is small: the verdict names the largest share first */
	struct verdict_subject subject;
};

/* advise.c: puts the first finding of the advice at the beginning of the verdict on the whole recording.
 * It is made again when files are added. */
ow_status api_add_headline(ow_profile *p, struct table *verdict, struct ow_error *err);
/* Compares the findings of two groups of runs (the base's runs come first): adds gone, remaining and new
 * findings to the extra values of a comparison. */
ow_status api_diff_findings(ow_profile *const *all, size_t base, size_t count, bool large,
			    struct table *out, struct ow_error *err);
void api_forget_headline(ow_profile *p);

struct ow_result {
	struct table *r;
	/* profile of the result; NULL: the answer of a server, which has its own memory */
	ow_profile *profile;
	struct mem own;
	struct str *messages; /* messages of advice; views keep theirs in the tree */
	size_t message_count;
	bool flat; /* the columns of a tree were made */
};

/* Makes a public handle of a table; on failure frees the table. */
ow_status api_wrap_result(ow_profile *p, struct table *r, ow_result **out, struct ow_error *err);

/* sql.c: reads all rows of the statement that was run into a result without columns. */
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

/* write.c: adapts a caller's function to a `struct out` ({ api_write_bytes, &writer }), and a struct
 * atomic_file to a caller's function. */
struct api_writer {
	ow_write_fn write;
	void *arg;
};
ow_status api_write_bytes(void *writer, const void *bytes, size_t len, struct ow_error *err);
bool api_write_to_file(void *atomic_file, const void *bytes, size_t len);

/* write.c: saves a table as a JSON file that only its owner can read; uses the memory of the
 * table. */
ow_status api_save_table(struct table *table, const char *path, struct ow_error *err);

/* build_info.c: fills *info up to the caller's size; returns true. */
bool api_part_info(struct ow_part_info *info, const char *name, const char *summary,
		   const char *detail);

#endif
