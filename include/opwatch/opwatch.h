/*
 * opwatch.h: the public interface of libopwatch, and the only header others may rely on.
 *
 * A profile (struct ow_profile) is opened from one or more files of any recognised format, then
 * frozen; after that it is read-only and may be used from any number of threads. Views, advice and
 * information come back as results (struct ow_result): a table of rows, possibly a tree, which can
 * be read cell by cell or written through a sink (text, json, csv, …).
 *
 * Every function that can fail returns an ow_status and fills the caller's `struct ow_error`
 * (nullable). Every handle has a paired free that accepts NULL. Strings returned are UTF-8,
 * NUL-terminated, and live as long as the handle they came from.
 */
#ifndef OPWATCH_OPWATCH_H
#define OPWATCH_OPWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OW_API __attribute__((visibility("default")))

/* ---- status and errors ---------------------------------------------------------------------- */

typedef enum ow_status {
	OW_OK = 0,
	OW_E_USAGE,	  /* the caller asked for something that makes no sense */
	OW_E_NOT_FOUND,	  /* no such file, step, column, … */
	OW_E_PERMISSION,  /* the system said no */
	OW_E_IO,	  /* reading or writing failed, or a file changed under us */
	OW_E_FORMAT,	  /* no importer recognises the bytes, or nothing usable in them */
	OW_E_CORRUPT,	  /* recognised, but damaged where damage cannot be skipped */
	OW_E_EMPTY,	  /* the file has no bytes */
	OW_E_NO_MEMORY,	  /* allocation failed, or the memory limit was reached */
	OW_E_LIMIT,	  /* another limit (regex steps, nesting, table size) was reached */
	OW_E_UNSUPPORTED, /* this build, or this source, cannot do it */
	OW_E_INTERRUPTED, /* cancelled by the caller */
	OW_E_INTERNAL	  /* a bug in opwatch */
} ow_status;

#define OW_ERROR_TEXT 1024

/* The caller's own; fixed size so that reporting an error never needs memory. */
struct ow_error {
	ow_status status;
	uint64_t offset; /* byte offset in the input, or OW_NO_OFFSET */
	char text[OW_ERROR_TEXT];
};
#define OW_NO_OFFSET UINT64_MAX

/* A short English name of a status: "not found". */
OW_API const char *ow_status_name(ow_status status);

/* ---- small shared types ----------------------------------------------------------------------- */

struct ow_list {
	const char *const *items;
	size_t count;
};

/* Options structs start with their own size, so that they can grow; fill them with the matching
 * ow_…_init and change what you need. */

/* ---- opening ---------------------------------------------------------------------------------- */

typedef struct ow_profile ow_profile;

struct ow_open_options {
	size_t size;
	uint64_t memory_limit; /* bytes the library may hold; 0 = no limit */
	/* Called now and then while loading, from any thread; return false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	bool infer;	   /* compute shapes and float operations that no source gives */
	bool redact;	   /* replace names and paths by hashes */
	bool strict_proto; /* use nothing of a message that does not parse to its end (tfprof) */
	struct ow_list input_shapes; /* "NAME=100x784": shapes of placeholders, for infer */
	const char *
		step_marker; /* slices of a trace are steps if all of their name matches; or NULL */
	struct ow_list
		renamed; /* path, name, path, name …: what inputs are called instead of their paths */
};
OW_API void ow_open_options_init(struct ow_open_options *options);

/* An empty profile; add inputs, then freeze. NULL options mean the defaults. */
OW_API ow_status ow_profile_new(const struct ow_open_options *options, ow_profile **profile,
				struct ow_error *err);
OW_API void ow_profile_free(ow_profile *profile);

struct ow_file_options {
	size_t size;
	const char *format; /* an importer's name, or NULL: recognise by content */
	int64_t step;	    /* number for a file that is one step; INT64_MIN = the next free one */
	/* Keep nothing of the input's bytes: arguments and definitions in it cannot be shown later. For
	 * programs that add step after step. */
	bool forget;
};
OW_API void ow_file_options_init(struct ow_file_options *options);

struct ow_file_info {
	const char *format;	 /* what it was recognised as */
	double coverage;	 /* part of the graph's ops that ran, after a RunMetadata */
	bool missing_step_stats; /* a RunMetadata without any statistics */
};

/* Adds a file ("-" = standard input). Both structs may be NULL. */
OW_API ow_status ow_profile_add_file(ow_profile *profile, const char *path,
				     const struct ow_file_options *options,
				     struct ow_file_info *info, struct ow_error *err);
OW_API ow_status ow_profile_add_memory(ow_profile *profile, const char *name, const void *data,
				       size_t len, const struct ow_file_options *options,
				       struct ow_file_info *info, struct ow_error *err);

/* Ends loading: from here on the profile is read-only and may be shared between threads. */
OW_API ow_status ow_profile_freeze(ow_profile *profile, struct ow_error *err);

/* Ends the reading of a frozen profile, so that more can be added to it; then it is frozen again. All
 * results of it must have been freed, and no other thread may use it meanwhile. */
OW_API ow_status ow_profile_thaw(ow_profile *profile, struct ow_error *err);

/* All of the above in one call, for files, directories and glob patterns: inputs are recognised,
 * applied in the right order, and frozen. Files that cannot be used are skipped with a note as long as
 * another one can. */
OW_API ow_status ow_profile_open(const char *const *paths, size_t count,
				 const struct ow_open_options *options, ow_profile **profile,
				 struct ow_error *err);

/* Values of a checkpoint's variables become visible (tfprof's tensor_value); before the freeze its
 * variables are also marked among the ops. */
OW_API ow_status ow_profile_set_checkpoint(ow_profile *profile, const char *prefix,
					   struct ow_error *err);

/* Step numbers, ascending. Returns how many there are; fills at most `cap`. */
OW_API size_t ow_profile_steps(const ow_profile *profile, int64_t *numbers, size_t cap);
OW_API bool ow_profile_has_code(const ow_profile *profile);
/* Something of the input was lost, repaired or missing: see the view "notes". */
OW_API bool ow_profile_damaged(const ow_profile *profile);

/* ---- saving ------------------------------------------------------------------------------------ */

struct ow_save_options {
	size_t size;
	/* Called now and then; return false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
};
OW_API void ow_save_options_init(struct ow_save_options *options);

/* Writes a frozen profile as an opwatch file (.opw), which holds all of it, arguments of events and
 * definitions of ops included, and opens in milliseconds. The file appears whole or not at all. */
OW_API ow_status ow_profile_save(ow_profile *profile, const char *path,
				 const struct ow_save_options *options, struct ow_error *err);

/* Checks all checksums of the opwatch file that the profile was opened from; they are checked table by
 * table otherwise, when a table is used for the first time. *bytes (may be NULL) becomes the size of that
 * file, 0 when there is none. */
OW_API ow_status ow_profile_verify(ow_profile *profile, uint64_t *bytes, struct ow_error *err);

struct ow_memory_use {
	uint64_t used, peak, limit;
};
OW_API void ow_profile_memory(const ow_profile *profile, struct ow_memory_use *use);

/* ---- results ---------------------------------------------------------------------------------- */

typedef struct ow_result ow_result;

typedef enum ow_type {
	OW_TYPE_INT,
	OW_TYPE_REAL,
	OW_TYPE_TEXT,
	OW_TYPE_BOOL,
	OW_TYPE_NUMBER /* of queries: exact digits, which ow_result_text gives as well */
} ow_type;
typedef enum ow_unit {
	OW_UNIT_PLAIN,
	OW_UNIT_NS,
	OW_UNIT_MICROS, /* may be fractions of them: columns of the type real */
	OW_UNIT_BYTES,
	OW_UNIT_COUNT,
	OW_UNIT_PERCENT
} ow_unit;

struct ow_column {
	const char *name;  /* for programs */
	const char *title; /* for people */
	ow_type type;
	ow_unit unit;
};

OW_API void ow_result_free(ow_result *result);
OW_API uint32_t ow_result_rows(const ow_result *result);
OW_API uint32_t ow_result_columns(const ow_result *result);
OW_API bool ow_result_column(const ow_result *result, uint32_t column, struct ow_column *info);
/* The column of that name, or UINT32_MAX. */
OW_API uint32_t ow_result_find(const ow_result *result, const char *name);
/* Depth of a row in a tree, 0 in a flat result. */
OW_API uint32_t ow_result_depth(const ow_result *result, uint32_t row);
OW_API bool ow_result_known(const ow_result *result, uint32_t row, uint32_t column);
OW_API int64_t ow_result_int(const ow_result *result, uint32_t row, uint32_t column);
OW_API double ow_result_real(const ow_result *result, uint32_t row, uint32_t column);
OW_API const char *ow_result_text(const ow_result *result, uint32_t row, uint32_t column,
				  size_t *len);
/* A cell as people want to read it: 1.23ms, 45.6MB, "-" when unknown. Cut to `size` bytes with the NUL;
 * returns how long it would be. */
OW_API size_t ow_result_show(const ow_result *result, uint32_t row, uint32_t column, char *text,
			     size_t size);
/* Whole columns, where they are: a value per row, or NULL when the column is of another type. */
struct ow_text {
	const char *ptr; /* NULL when empty, perhaps */
	size_t len;
};
OW_API const int64_t *ow_result_ints(const ow_result *result, uint32_t column); /* and of bools */
OW_API const double *ow_result_reals(const ow_result *result, uint32_t column);
OW_API const struct ow_text *ow_result_texts(const ow_result *result, uint32_t column);
/* 0 marks an unknown value. NULL: all are known. */
OW_API const uint8_t *ow_result_marks(const ow_result *result, uint32_t column);
/* Makes the rows of a tree, which else happens when the first cell is read: from then on any number of
 * threads may read the result. */
OW_API ow_status ow_result_fill(ow_result *result, struct ow_error *err);
/* Remarks on how the result came about, one line each; NULL after the last. */
OW_API const char *ow_result_message(const ow_result *result, uint32_t index);

/* ---- Arrow ------------------------------------------------------------------------------------ */

/* The structs of the Arrow C data and C stream interfaces, as their specification gives them; other
 * headers that have them are welcome. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *schema);
	void *private_data;
};
struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *array);
	void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *stream);
	void (*release)(struct ArrowArrayStream *stream);
	void *private_data;
};
#endif

struct ow_arrow_options {
	size_t size;
	/* Called once, from whatever thread, when nothing of what was handed out is in use any more: the
	 * result, and its profile, must live until then. Not called after a failure. */
	void (*release)(void *owner);
	void *owner;
};
OW_API void ow_arrow_options_init(struct ow_arrow_options *options);

/* A result as a struct array with a child per column: int64, float64 (numbers beyond int64, too), bool, and utf8
 * (large_utf8 beyond 2 GB). Numbers are not copied. A column's metadata has its title and unit ("opwatch.title",
 * "opwatch.unit"). Either struct may be NULL when it is not wanted; the caller releases both. */
OW_API ow_status ow_result_arrow(ow_result *result, const struct ow_arrow_options *options,
				 struct ArrowSchema *schema, struct ArrowArray *array,
				 struct ow_error *err);
/* The same as a stream of one batch, whose texts are copied when it is asked for. */
OW_API ow_status ow_result_arrow_stream(ow_result *result, const struct ow_arrow_options *options,
					struct ArrowArrayStream *stream, struct ow_error *err);

/* ---- views ------------------------------------------------------------------------------------ */

/* tfprof's options; views use those that make sense for them. */
struct ow_view_options {
	size_t size;
	int32_t max_depth;
	int64_t min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes;
	int64_t min_micros, min_accelerator_micros, min_cpu_micros;
	int64_t min_params, min_float_ops, min_occurrence;
	int64_t step;	      /* negative = average over all */
	const char *order_by; /* "" = do not sort */
	struct ow_list account_type_regexes, start_name_regexes, trim_name_regexes;
	struct ow_list show_name_regexes, hide_name_regexes;
	bool account_displayed_op_only;
	struct ow_list select;
	uint32_t limit; /* rows; 0 = all */
	/* A part of the time, counted from the first event; INT64_MIN and INT64_MAX = all of it. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;	 /* only inputs of that rank; -1 = all */
	bool full_names; /* kernels by all of their name; else without parameters and the like */
	bool all_metrics; /* compute all of them, not only those selected; the sink "proto" has them */
	/* Sampled profiles. What was measured: a name of the view "metrics"; NULL = the source's default. And
	 * words, separated by commas: pid, tid, kernel, jit, all, addrs, lines; see docs/views/code.md. */
	const char *metric, *style;
	const char *
		peak; /* roofline: what the device could do, "A100" or "312T:2.04T"; NULL = as the source tells */
};
OW_API void ow_view_options_init(struct ow_view_options *options);

struct ow_part_info {
	const char *name, *summary;
	const char
		*detail; /* importer: usual file names; sink: extension; rule: tfprof's checker */
};
/* What this build can do. Each returns false beyond the last. */
OW_API bool ow_view_info(size_t index, struct ow_part_info *info);
OW_API bool ow_importer_info(size_t index, struct ow_part_info *info);
OW_API bool ow_sink_info(size_t index, struct ow_part_info *info);
OW_API bool ow_rule_info(size_t index, struct ow_part_info *info);

OW_API ow_status ow_view(ow_profile *profile, const char *view,
			 const struct ow_view_options *options, ow_result **result,
			 struct ow_error *err);

/* One sentence on what the time goes to, for people: "82 % of a step waits for input; the slowest stage
 * is …". Cut to `size` bytes with the NUL; 500 are enough. The options (NULL = everything) choose a step,
 * a rank or a part of the time. */
OW_API ow_status ow_verdict(ow_profile *profile, const struct ow_view_options *options, char *text,
			    size_t size, struct ow_error *err);

/* A report as `nsys stats` of Nsight Systems prints it ("cuda_gpu_kern_sum", or its older name), from whatever has
 * kernels, calls or ranges. Columns and rounding are those of the report: numbers are of OW_TYPE_NUMBER. Of the options
 * step, rank, time and limit count. The first says which reports there are (detail: the older name). */
OW_API bool ow_nsys_report_info(size_t index, struct ow_part_info *info);
OW_API ow_status ow_nsys_stats(ow_profile *profile, const char *report,
			       const struct ow_view_options *options, ow_result **result,
			       struct ow_error *err);

/* Runs the advice rules (or those named): one row per finding. */
OW_API ow_status ow_advise(ow_profile *profile, const struct ow_list *rules, ow_result **result,
			   struct ow_error *err);

/* ---- writing ---------------------------------------------------------------------------------- */

/* Takes bytes; returns false when it cannot take more (a closed pipe ends quietly). */
typedef bool (*ow_write_fn)(void *arg, const void *bytes, size_t len);
typedef void (*ow_line_fn)(void *arg, const char *line, size_t len);

struct ow_write_options {
	size_t size;
	uint32_t width; /* fit text to this many columns; 0 = do not fit */
	bool colour;
	const char *metric; /* folded, flamegraph: which value */
	const char *title;
	ow_line_fn message;  /* what tfprof prints on stderr while writing */
	ow_line_fn progress; /* what tfprof prints on stdout while writing */
	void *line_arg;
	/* flamegraph: words, separated by commas: icicle (the default), flame, inverted, left-heavy */
	const char *style;
	/* Rows of each table, also of SQL; 0 = all. Trees have that of their view: ow_view_options. */
	uint32_t limit;
};
OW_API void ow_write_options_init(struct ow_write_options *options);

/* Writes through a sink: "text", "json", "csv", "tfprof", "timeline", "pprof", "folded", … */
OW_API ow_status ow_result_write(ow_result *result, const char *sink,
				 const struct ow_write_options *options, ow_write_fn write,
				 void *arg, struct ow_error *err);
/* The same into a file, which appears whole or not at all. */
OW_API ow_status ow_result_write_file(ow_result *result, const char *sink,
				      const struct ow_write_options *options, const char *path,
				      struct ow_error *err);

/* A tensor that an allocator holds from then on, or no longer (bytes below zero). */
struct ow_timeline_memory {
	const char *allocator, *tensor; /* not terminated */
	size_t allocator_len, tensor_len;
	int64_t ts_us, bytes;
};

struct ow_timeline_options {
	size_t size;
	bool show_dataflow; /* arrows from producers to consumers; on by default */
	bool show_memory; /* tensors, and how much each allocator holds (TensorFlow's steps only) */
	int64_t step;	  /* only that one; negative = all */
	bool gzip;
	/* As in ow_view_options. Events that reach into the time are drawn whole. Steps of TensorFlow of which
	 * a part is asked for are drawn from their events. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;
	/* With show_memory: told of all changes, by allocator and then by time. */
	void (*memory)(void *arg, const struct ow_timeline_memory *change);
	void *memory_arg;
	const char *metric; /* sampled profiles, as in ow_view_options */
};
OW_API void ow_timeline_options_init(struct ow_timeline_options *options);

/* The runs of a profile as a Chrome trace. Traced steps of TensorFlow (RunMetadata) give what its class
 * timeline.Timeline gives, several steps in one; anything else gives its events. */
OW_API ow_status ow_timeline_write(ow_profile *profile, const struct ow_timeline_options *options,
				   ow_write_fn write, void *arg, struct ow_error *err);
OW_API ow_status ow_timeline_write_file(ow_profile *profile,
					const struct ow_timeline_options *options, const char *path,
					struct ow_error *err);

/* A profile as TensorFlow's ProfileProto, the file profile_N of its ProfileContext: whoever reads it gets
 * the same views. And what is known of ops beside the graph, as its OpLogProto: float operations, types
 * that users gave, source lines. */
OW_API ow_status ow_tf_profile_write(ow_profile *profile, ow_write_fn write, void *arg,
				     struct ow_error *err);
OW_API ow_status ow_tf_op_log_write(ow_profile *profile, ow_write_fn write, void *arg,
				    struct ow_error *err);
/* The same into a file, which appears whole or not at all. */
OW_API ow_status ow_tf_profile_write_file(ow_profile *profile, const char *path,
					  struct ow_error *err);
OW_API ow_status ow_tf_op_log_write_file(ow_profile *profile, const char *path,
					 struct ow_error *err);

/* Facts about the inputs ("what is in here") as JSON, and what was lost. */
OW_API ow_status ow_info_json(ow_profile *profile, ow_write_fn write, void *arg,
			      struct ow_error *err);

/* What opening a file would take, from its size and first bytes only. */
struct ow_estimate {
	size_t size;
	const char *format;    /* NULL when unknown */
	const char *container; /* "gzip", … or "" */
	uint64_t file_bytes, content_bytes, events, memory_bytes;
};
OW_API ow_status ow_estimate_file(const char *path, struct ow_estimate *estimate,
				  struct ow_error *err);

/* ---- several runs ----------------------------------------------------------------------------- */

/* A frozen profile and what it is called in the column `run` of the tables. Names differ. */
struct ow_run {
	ow_profile *profile;
	const char *name;
};

/* ---- tables as files --------------------------------------------------------------------------- */

struct ow_export_options {
	size_t size;
	const char *format;    /* "parquet", "ndjson", "csv", "arrow" */
	struct ow_list tables; /* none: all but the views */
	const char *partition; /* folders: "run", or "step" for both; NULL: one file per table */
	const char *sort;      /* by this column, where a table has it; NULL: as they are */
	const char *compress;  /* "gzip", "zstd", "none"; NULL: as is usual for the format */
	uint64_t file_bytes;   /* begin another file after about so many bytes; 0 = never */
	bool bigquery;	       /* for its loader: names, types, schemas and load.sh */
	bool overwrite;	       /* replace what is there */
	/* Called now and then; return false to cancel. */
	bool (*progress)(void *arg, const char *table, uint64_t rows_done, uint64_t rows_total);
	void *progress_arg;
};
OW_API void ow_export_options_init(struct ow_export_options *options);

struct ow_export_summary {
	size_t size;
	uint64_t tables, files, rows, bytes;
};

/* Writes the tables of all runs into a folder, which is made when it is not there. Each table appears whole or
 * not at all. summary may be NULL. */
OW_API ow_status ow_export(const struct ow_run *runs, size_t count,
			   const struct ow_export_options *options, const char *dir,
			   struct ow_export_summary *summary, struct ow_error *err);
/* ---- SQL --------------------------------------------------------------------------------------- */

/* Questions in SQL over one or more frozen profiles, answered by DuckDB inside this process (loaded with the first
 * session; OW_E_UNSUPPORTED with what to do when it is not there). The tables are the relations of docs/sql.md,
 * each with a column `run`; profiles must outlive the session and its results. A session is used by one thread at
 * a time. Queries only read: no files, no network, no settings, unless allow_io says so. */
typedef struct ow_sql ow_sql;

struct ow_sql_options {
	size_t size;
	uint64_t memory_limit; /* bytes that DuckDB may use beside the profiles; 0 = its default */
	const char *temp_dir;  /* where it may put what does not fit; NULL = nowhere */
	uint32_t threads;      /* 0 = all processors */
	bool allow_io;	       /* queries may read and write files */
	/* Called now and then while a query runs, from any thread; return false to cancel. */
	bool (*progress)(void *arg);
	void *progress_arg;
};
OW_API void ow_sql_options_init(struct ow_sql_options *options);

OW_API ow_status ow_sql_open(const struct ow_run *runs, size_t count,
			     const struct ow_sql_options *options, ow_sql **sql,
			     struct ow_error *err);
OW_API void ow_sql_close(ow_sql *sql);

/* Runs the statements of a text (separated by semicolons) and gives the result of the last that has one; without
 * rows and columns when none has. All rows are held in memory. */
OW_API ow_status ow_sql_query(ow_sql *sql, const char *text, ow_result **result,
			      struct ow_error *err);
/* Writes every result through a sink ("text", "json", "csv"); rows are not held, so there may be any number. */
OW_API ow_status ow_sql_write(ow_sql *sql, const char *text, const char *sink,
			      const struct ow_write_options *options, ow_write_fn write, void *arg,
			      struct ow_error *err);
/* The result of one query as a Parquet file, which appears whole or not at all. */
OW_API ow_status ow_sql_write_parquet(ow_sql *sql, const char *text, const char *path,
				      struct ow_error *err);
/* Ends the running query with OW_E_INTERRUPTED; from any thread, or a signal handler. */
OW_API void ow_sql_cancel(ow_sql *sql);

/* The tables, for help and completion: name and one sentence; detail is "options" for those that take some, as
 * op_view(order_by := 'micros'). False beyond the last. */
OW_API bool ow_relation_info(size_t index, struct ow_part_info *info);
/* Columns of a table: title is a sentence on what it means. False beyond the last. */
struct ow_relation_column {
	const char *name, *type; /* as SQL calls it: BIGINT, VARCHAR, … */
	const char *unit;	 /* "ns", "bytes", "count" or "" */
	const char *doc;
};
OW_API ow_status ow_relation_columns(const char *relation,
				     void (*take)(void *arg,
						  const struct ow_relation_column *column),
				     void *arg, struct ow_error *err);
/* Options of a table, in the same form; unit is "". */
OW_API ow_status ow_relation_options(const char *relation,
				     void (*take)(void *arg,
						  const struct ow_relation_column *option),
				     void *arg, struct ow_error *err);

/* ---- named queries ----------------------------------------------------------------------------- */

/* Questions that need no SQL: queries with a name, a title and parameters. Some are built in; folders may hold
 * more, a file NAME.sql each (docs/ask.md). */
typedef struct ow_queries ow_queries;

struct ow_query_info {
	const char *name, *title, *doc;
	const char *path;	/* of its file; NULL when it is built in */
	const char *sql;	/* for the embedded engine */
	const char *clickhouse; /* its form for a ClickHouse server, or NULL */
	size_t param_count;
};
struct ow_query_param {
	const char *name;
	const char *type;  /* "int", "real", "text" */
	const char *usual; /* the default */
	const char *doc;
};

/* Those that are built in and those of the folders (may be NULL), of which a later one takes the place of an
 * earlier one of the same name. Folders that do not exist have none. */
OW_API ow_status ow_queries_open(const struct ow_list *dirs, ow_queries **queries,
				 struct ow_error *err);
OW_API void ow_queries_free(ow_queries *queries);
/* By name; false beyond the last. */
OW_API bool ow_queries_at(const ow_queries *queries, size_t index, struct ow_query_info *info);
OW_API bool ow_queries_find(const ow_queries *queries, const char *name,
			    struct ow_query_info *info);
OW_API bool ow_queries_param(const ow_queries *queries, const char *name, size_t index,
			     struct ow_query_param *param);

struct ow_ask_options {
	size_t size;
	struct ow_list params; /* "name=value"; the others have their defaults */
	uint64_t memory_limit; /* bytes that the query may use beside the profiles; 0 = no limit */
	const char *temp_dir;  /* where it may put what does not fit; NULL = nowhere */
	/* Called now and then; return false to cancel. */
	bool (*progress)(void *arg);
	void *progress_arg;
};
OW_API void ow_ask_options_init(struct ow_ask_options *options);

/* Runs one of them on frozen profiles, by the embedded engine. Parameters are bound as values. */
OW_API ow_status ow_ask(const ow_queries *queries, const char *name, const struct ow_run *runs,
			size_t count, const struct ow_ask_options *options, ow_result **result,
			struct ow_error *err);
/* Its text for a ClickHouse server, parameters as literals; OW_E_UNSUPPORTED when there is none. */
OW_API ow_status ow_ask_text(const ow_queries *queries, const char *name,
			     const struct ow_list *params, ow_write_fn write, void *arg,
			     struct ow_error *err);

/* ---- merging ---------------------------------------------------------------------------------- */

typedef enum ow_align {
	OW_ALIGN_KEEP,	  /* the clocks stay; only what they count from is made the same */
	OW_ALIGN_START,	  /* every file starts at zero */
	OW_ALIGN_SEQUENCE /* one file after the other */
} ow_align;

struct ow_merge_options {
	size_t size;
	uint64_t memory_limit; /* bytes the library may hold; 0 = no limit */
	/* Called now and then, from any thread but one at a time; return false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	ow_line_fn message; /* what is wrong with a file, a line each */
	void *message_arg;
	ow_write_fn write; /* gets the output when no path is given */
	void *write_arg;
	ow_align align;
	bool no_labels; /* leave the names of processes alone, and add none */
	/* Which events are kept. Regular expressions match all of a text; one of a list must. */
	struct ow_list keep_names, keep_categories, keep_pids;
	/* From the first event of the merged trace; INT64_MIN and INT64_MAX = all. */
	int64_t keep_from_ns, keep_to_ns;
	int64_t keep_first_step, keep_last_step;
};
OW_API void ow_merge_options_init(struct ow_merge_options *options);

struct ow_merge_summary {
	size_t size;
	uint64_t files, skipped_files;	/* merged; not merged: unreadable, or no trace */
	uint64_t events_in, events_out; /* out = in - filtered */
	uint64_t filtered;
	uint64_t added;	   /* names of processes that had none, beside events_out */
	uint64_t repaired; /* events that were no strict JSON */
	uint64_t others;   /* elements of the lists that are no events, left out */
	uint64_t damaged, damaged_bytes, truncated_files;
	uint64_t untimed; /* times that are no numbers and were not moved */
	uint64_t hidden;  /* values of what looks like environment variables, left out */
	uint64_t bytes_in, bytes_out;
	bool unrelated_clocks; /* the files are years apart: ask for another alignment */
};

/* Puts Chrome-trace files (directories, patterns, archives) together in one: every event as it is written,
 * but for pids and ids that clash, times that are moved, and names of processes, which get the file's
 * rank, step or name in front. Packed when the path ends in .gz or .zst. The file appears whole or not at
 * all. Files that cannot be used are told and passed over as long as another one can. */
OW_API ow_status ow_merge(const char *const *paths, size_t count,
			  const struct ow_merge_options *options, const char *out_path,
			  struct ow_merge_summary *summary, struct ow_error *err);

/* ---- recording -------------------------------------------------------------------------------- */

/* A program writes its own steps, slices of time and values into an opwatch file while it runs; the file
 * opens as any profile does, also while it is written. What was written when a call returns is not lost when
 * the process is killed (it may be when the machine fails: only closing flushes). Any thread may call these; a
 * call takes well below a microsecond. After a fork the child's calls do nothing, and closing only frees.
 *
 * A failure (the disk is full) never disturbs the program: from then on nothing is written, and closing tells. */
typedef struct ow_recorder ow_recorder;

struct ow_recorder_options {
	size_t size;
	uint64_t memory_limit; /* bytes the library may hold; 0 = no limit */
	int64_t first_step;    /* number of the first step that is given none */
};
OW_API void ow_recorder_options_init(struct ow_recorder_options *options);

/* Replaces a regular file of that name; who has that open keeps it. */
OW_API ow_status ow_recorder_open(const char *path, const struct ow_recorder_options *options,
				  ow_recorder **recorder, struct ow_error *err);
/* Ends the file and frees the recorder, whatever it returns. Nobody may be using it. */
OW_API ow_status ow_recorder_close(ow_recorder *recorder, struct ow_error *err);
/* False in a child process: it writes nothing. */
OW_API bool ow_recorder_is_ours(const ow_recorder *recorder);

/* The time that the functions below take: nanoseconds since 1970, of a clock that does not jump. */
OW_API int64_t ow_recorder_now(const ow_recorder *recorder);
/* The number of a text (UTF-8, 4096 bytes at most), the same for the same text; 0 without memory. */
OW_API uint32_t ow_recorder_name(ow_recorder *recorder, const char *text, size_t len);
/* What the thread that calls is named. */
OW_API void ow_recorder_name_thread(ow_recorder *recorder, uint32_t name);
/* A step begins, and the one before ends. number and start_ns INT64_MIN: the next one, now. Returns its number. */
OW_API int64_t ow_recorder_step(ow_recorder *recorder, int64_t number, int64_t start_ns);
/* The step ends now; drop: it was none. */
OW_API void ow_recorder_end_step(ow_recorder *recorder, bool drop);
/* What this thread did since its last mark or slice, or since it began the step, is called so. */
OW_API void ow_recorder_mark(ow_recorder *recorder, uint32_t name);
OW_API void ow_recorder_slice(ow_recorder *recorder, uint32_t name, int64_t start_ns,
			      int64_t end_ns);
/* A number that changes with time, such as a loss or a learning rate. */
OW_API void ow_recorder_value(ow_recorder *recorder, uint32_t name, double value);

/* ---- recording other programs ----------------------------------------------------------------- */

/* A program is started with a recorder in it, without any change to it: operators of PyTorch, file reads and writes,
 * OpenCL commands and calls on sockets go to a file that opens as any profile does, also while it is written.
 * What is in the file stays, whoever is killed; what could not be kept is counted. */
struct ow_record_options {
	size_t size;
	uint64_t memory_limit; /* bytes the library may hold; 0 = no limit */
	const char *recorder;  /* path of libopwatch-recorder.so; NULL: of this installation */
	uint32_t ring_records; /* room per thread, a power of two; 0 = the usual */
	uint64_t file_limit;   /* bytes of the file; 0 = no limit */
	uint32_t stacks_hz;    /* Python stacks, so often a second, read from outside; 0 = none */
	ow_line_fn message;    /* what people should know, a line each; may be NULL */
	void *message_arg;
	/* ow_attach: how long; 0 = until the processes end or it is cancelled. Asked many times a second: true
	 * ends it. May be NULL. */
	int64_t duration_ns;
	bool (*cancelled)(void *arg);
	void *cancel_arg;
	/* Attention: steps that take so much longer than those before (0.2: a fifth), or no step for so long while
	 * processes live. What was recorded in the minute around that is written to a file beside the recording, and
	 * message is told why, from another thread. 0 = not looked at. */
	double on_slowdown;
	int64_t on_stall_ns;
	/* ow_record: when the program has ended, goes on until the processes that it left running have, or SIGINT,
	 * SIGTERM, SIGHUP or SIGQUIT comes, which ends the recording only. */
	bool wait_children;
};
OW_API void ow_record_options_init(struct ow_record_options *options);

struct ow_record_summary {
	size_t size;
	bool started;
	int exit_code; /* of the program; -1 when a signal ended it; 127 or 126 when it could not be started */
	int exit_signal; /* 0 when none */
	uint32_t processes, refused_processes;
	uint64_t records;
	uint64_t dropped;   /* because rings were full */
	uint64_t unnamed;   /* texts and threads for which there was no room */
	int64_t stopped_ns; /* ow_attach: the longest that a thread was stopped */
	bool hooks_left;    /* ow_attach: a process did not take its hooks out in time */
	int64_t waited_ns; /* ow_attach: meanwhile it could have run, but others had the processors; not part of the above */
	/* ow_record: that the program started, and that ran on when the recording ended. */
	uint32_t left_processes;
};

/* Runs a program (argv ends with NULL) to its end. Meanwhile SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and
 * SIGCHLD of the calling thread are blocked; those that others send are passed on to the program. OW_OK also when
 * the program fails; not when it cannot be started, or when nothing could be written. */
OW_API ow_status ow_record(const char *const *argv, const char *out_path,
			   const struct ow_record_options *options,
			   struct ow_record_summary *summary, struct ow_error *err);
/* ---- running jobs ----------------------------------------------------------------------------- */

/* Python stacks of running processes (CPython 3.8 to 3.13), read from outside: nothing is stopped, loaded or
 * written there. Only where the kernel allows it: own processes (unless its Yama says otherwise), or as root. */
struct ow_stacks_summary {
	size_t size;
	uint64_t ticks, late_ticks; /* late: the machine was too busy to look in time */
	uint64_t samples;	    /* stacks of threads */
	uint64_t torn;		    /* dropped: changed while being read */
	int64_t cpu_ns; /* what the sampling itself took of a processor; known at the end */
	int64_t elapsed_ns;
	uint32_t processes, alive;
	/* Ticks that were left out: looking takes no more than a hundredth of a processor (at more than 100 Hz, in
	 * proportion). */
	uint64_t left_out;
};

struct ow_stacks_options {
	size_t size;
	uint32_t hz;	  /* samples per second */
	int64_t for_ns;	  /* how long; 0 = until all processes have ended */
	bool no_children; /* leave out the processes that they start */
	bool native;	  /* native stacks, too, of the named processes, which need not be Python */
	uint64_t memory_limit; /* of the profile, in bytes; 0 = no limit */
	/* Asked before every sample; false ends it, and what was sampled is kept. */
	bool (*progress)(void *arg, const struct ow_stacks_summary *so_far);
	void *progress_arg;
};
OW_API void ow_stacks_options_init(struct ow_stacks_options *options);

/* Samples the stacks of processes, and gives them as a frozen profile: samples of the metrics `wall` and `cpu`, a track
 * per thread. A job may end, or be killed, at any time. summary may be NULL. */
OW_API ow_status ow_stacks_record(const int64_t *pids, size_t count,
				  const struct ow_stacks_options *options, ow_profile **profile,
				  struct ow_stacks_summary *summary, struct ow_error *err);
/* The stacks as they are now: one row per frame, the innermost first. */
OW_API ow_status ow_stacks_now(const int64_t *pids, size_t count,
			       const struct ow_stacks_options *options, ow_result **result,
			       struct ow_error *err);

/* A trace of a TensorFlow 2 or JAX job, from the profiler service in it (gRPC, without TLS). Needs libnghttp2 at build
 * time, else OW_E_UNSUPPORTED. */
struct ow_capture_options {
	size_t size;
	const char *address; /* HOST:PORT of the service */
	const char *dir;     /* a folder, made when it is not there */
	int64_t for_ns;	     /* how long the job records */
	int64_t wait_ns;     /* how long its answer may take beyond that */
	uint64_t memory_limit;
	/* Asked about five times a second; false ends it with OW_E_INTERRUPTED. */
	bool (*progress)(void *arg);
	void *progress_arg;
	const char *socket; /* of jobs that ask for it; NULL: that of dynolog */
};
OW_API void ow_capture_options_init(struct ow_capture_options *options);

struct ow_capture_summary {
	size_t size;
	uint64_t bytes;
	char path[4352]; /* of the file with the XSpace, as it was received */
};
/* The file appears whole or not at all. summary may be NULL. */
OW_API ow_status ow_capture_tf(const struct ow_capture_options *options,
			       struct ow_capture_summary *summary, struct ow_error *err);

/* Records processes that run already, and what they fork, then leaves them as they were: hooks are taken out, the
 * library stays in their memory and does nothing. The user must be allowed to trace them. */
OW_API ow_status ow_attach(const int *pids, size_t count, const char *out_path,
			   const struct ow_record_options *options,
			   struct ow_record_summary *summary, struct ow_error *err);

/* ---- watching running jobs -------------------------------------------------------------------- */

/* Recordings that grow (ow_record, ow_attach), read as they are written: what is new is looked at with the analysis that
 * the views use, and what was seen of the last steps is kept. Memory and time are bounded: where records come too fast
 * to look at all, the latest are. A file that is cut short, replaced or removed does no harm. One thread at a time. */
typedef struct ow_watch ow_watch;

struct ow_watch_options {
	size_t size;
	uint64_t memory_limit;	 /* bytes the library may hold; 0 = no limit */
	int64_t span_ns;	 /* what is "recent": 10 s */
	const char *step_marker; /* as in ow_open_options */
};
OW_API void ow_watch_options_init(struct ow_watch_options *options);

/* Parts of a step, as it goes: input, host, launch, … NULL behind the last. */
#define OW_PHASES 9
OW_API const char *ow_phase_name(size_t index);

struct ow_job_rank {
	int32_t rank; /* -1: it has none */
	uint64_t steps;
	int64_t step_ns, last_ns; /* the median of recent steps, and the last one */
	int64_t own_ns; /* of that, without waiting for other ranks: what makes a rank the slowest */
	int64_t phase_ns[OW_PHASES]; /* mean of recent steps */
};

struct ow_job_op {
	const char *name;
	int64_t self_ns; /* per step, or per second when there are no steps */
	double runs;	 /* the same */
	double share;	 /* of the step */
};

typedef enum {
	OW_JOB_RUNS,
	OW_JOB_ENDED, /* the recording was closed, or all processes have ended */
	OW_JOB_LOST   /* the file was removed */
} ow_job_state;

/* Pointers hold until the next ow_watch_turn. What is not known is negative. */
struct ow_job {
	size_t size;
	const char *name; /* what it runs */
	const char *path; /* of its first recording */
	ow_job_state state;
	uint32_t recordings, processes;
	const int64_t *pids; /* of those that run on this host */
	size_t pid_count;
	bool has_steps;
	uint64_t steps;		  /* seen so far */
	int64_t step_ns, last_ns; /* the median of recent steps, and the last one */
	double trend; /* how much longer the last steps took than those before: 0.1 = 10 %, or NAN */
	int64_t since_ns; /* since a step ended, or anything did */
	int64_t phase_ns
		[OW_PHASES]; /* mean of recent steps over all ranks; without steps, of recent time */
	double cpu;	     /* processors that were busy with it */
	double device;	     /* part of the time in which a device worked */
	double gpu;	     /* what NVIDIA's devices of the host say: 0 to 1 */
	const struct ow_job_rank *ranks;
	size_t rank_count;
	const struct ow_job_op *ops; /* those that took longest */
	size_t op_count;
	const int64_t *recent; /* times of the last steps of the first rank, oldest first */
	size_t recent_count;
	int32_t slowest_rank; /* -1: none stands out */
	double slowest_by;    /* how much longer than the middle rank */
	uint64_t records, dropped, damaged;
	double cost; /* of watching it: part of a processor, at present */
};

OW_API ow_status ow_watch_new(const struct ow_watch_options *options, ow_watch **watch,
			      struct ow_error *err);
OW_API void ow_watch_free(ow_watch *watch);
/* A recording; several may be of one job. Nothing is read yet. */
OW_API ow_status ow_watch_add(ow_watch *watch, const char *path, struct ow_error *err);
/* The jobs that run under the daemon of this host (socket NULL: the user's, or root's), or the one of that name or number, that
 * are not watched yet. OW_E_NOT_FOUND when there is no daemon, or no such job. */
OW_API ow_status ow_watch_add_jobs(ow_watch *watch, const char *socket, const char *job,
				   struct ow_error *err);
/* Reads what is new. *more, unless NULL: there was too much for one turn. */
OW_API ow_status ow_watch_turn(ow_watch *watch, bool *more, struct ow_error *err);
OW_API size_t ow_watch_count(const ow_watch *watch);
OW_API bool ow_watch_job(const ow_watch *watch, size_t index, struct ow_job *job);
/* What was recorded in the last so many nanoseconds, two minutes at most: as a file, or as a profile. The file is for its
 * owner only, unless the job has several recordings: then it has the mode that the umask leaves. */
OW_API ow_status ow_watch_save(ow_watch *watch, size_t index, int64_t span_ns, const char *path,
			       struct ow_error *err);
OW_API ow_status ow_watch_profile(ow_watch *watch, size_t index, int64_t span_ns,
				  ow_profile **profile, struct ow_error *err);

/* Traces of PyTorch jobs of this host that were started with KINETO_USE_DAEMON=1: they ask at the UNIX socket of dynolog,
 * which is taken for the time of this call, and write into the folder (options.dir; address is not used). Ends when all that
 * have asked, or those of `pids`, have written, or after wait_ns. message is told a line per file. */
OW_API ow_status ow_capture_kineto(const struct ow_capture_options *options, const int64_t *pids,
				   size_t pid_count, ow_line_fn message, void *message_arg,
				   struct ow_error *err);

/* A daemon that serves all jobs of a host: recorded processes report to its socket, and what they do goes to a ring on
 * disk per job, from which the recent past can be cut out. It may be killed and started anew: jobs go on. */
struct ow_daemon_options {
	size_t size;
	uint64_t memory_limit; /* bytes the library may hold; 0 = no limit */
	const char *
		socket; /* its path; NULL: $XDG_RUNTIME_DIR/opwatch/socket, of root /run/opwatch/socket */
	const char *dir; /* for the rings; NULL: /var/tmp/opwatch-UID, of root /var/lib/opwatch */
	uint64_t job_limit;   /* bytes on disk of one job; 0 = 512 MiB */
	uint64_t total_limit; /* and of all together; 0 = 4 GiB */
	bool all_users;	      /* root only: others may connect, and see their own jobs */
	bool no_kineto;	      /* leave the socket of dynolog alone */
	int32_t metrics_port; /* of 127.0.0.1, for /metrics; 0: any; -1: none */
	ow_line_fn message;   /* what people should know, a line each; may be NULL */
	void *message_arg;
	bool (*cancelled)(void *arg); /* true ends it; asked at least every second */
	void *cancel_arg;
	const char *kineto_socket; /* NULL: that of dynolog */
	double on_slowdown;	   /* attention, as in ow_record_options; files go to dir */
	int64_t on_stall_ns;
	uint32_t stacks_hz; /* Python stacks of all jobs, so often a second; 0: when asked for */
};
OW_API void ow_daemon_options_init(struct ow_daemon_options *options);
/* Serves until it is cancelled. OW_E_LIMIT when another one does already. */
OW_API ow_status ow_daemon(const struct ow_daemon_options *options, struct ow_error *err);

/* The jobs that the daemon knows, of this user or for root all. socket NULL: the user's daemon, or else that of root. */
OW_API ow_status ow_jobs(const char *socket, ow_result **result, struct ow_error *err);
/* What a process needs in its environment to report to the daemon, NAME=VALUE each, to the function. */
OW_API ow_status ow_job_environment(const char *socket, ow_line_fn line, void *arg,
				    struct ow_error *err);

/* Becomes the program (argv ends with NULL), which reports to the daemon as part of that job: returns only when that
 * fails. job NULL: the daemon finds out. Of the options recorder and ring_records count. */
OW_API ow_status ow_record_job(const char *const *argv, const char *socket, const char *job,
			       const struct ow_record_options *options, struct ow_error *err);
/* Processes that run already report to the daemon from now on. */
OW_API ow_status ow_attach_job(const int *pids, size_t count, const char *socket, const char *job,
			       const struct ow_record_options *options,
			       struct ow_record_summary *summary, struct ow_error *err);
/* All processes of a job take the hooks out again, and report no more. */
OW_API ow_status ow_detach_job(const char *socket, const char *job, struct ow_error *err);

/* The processes of a job that report at present, for ow_stacks_record and its kin: fills up to cap pids and gives how many
 * there are. OW_E_NOT_FOUND when there is no such job, OW_E_EMPTY when it has ended. */
OW_API ow_status ow_job_pids(const char *socket, const char *job, int64_t *pids, size_t cap,
			     size_t *count, struct ow_error *err);

struct ow_cut_summary {
	size_t size;
	uint64_t records;
	uint32_t processes;
	int64_t covers_ns; /* from the first record to the last */
	uint64_t samples;  /* stacks */
};
/* The last last_ns (0: all that is there) of a job into a recording. The job may have ended. Written as out_path with
 * ".part-" and the number of this process behind it, and then renamed. */
OW_API ow_status ow_job_cut(const char *socket, const char *job, int64_t last_ns,
			    const char *out_path, struct ow_cut_summary *summary,
			    struct ow_error *err);
/* What a job does from now on, for options.duration_ns, or until it ends or options.cancelled says so; with
 * options.stacks_hz its Python stacks, too, which the daemon samples meanwhile. */
OW_API ow_status ow_job_follow(const char *socket, const char *job, const char *out_path,
			       const struct ow_record_options *options,
			       struct ow_cut_summary *summary, struct ow_error *err);

/* ---- servers ---------------------------------------------------------------------------------- */

/* A ClickHouse server, reached over HTTP. Used by one thread at a time. Needs libcurl, which is loaded with
 * the first call; without it that is OW_E_UNSUPPORTED. */
typedef struct ow_remote ow_remote;

struct ow_remote_options {
	size_t size;
	/* One of them, else the environment variable OPWATCH_CLICKHOUSE_PASSWORD, else none. It is never
	 * shown, logged or put in an error. */
	const char *password, *password_file;
	uint64_t memory_limit; /* of one answer, in bytes; 0 = no limit */
	uint32_t silence_ms;   /* how long a server may say nothing; 0 = for ever */
	/* Asked about once a second while waiting; true ends it with OW_E_INTERRUPTED. May be NULL. */
	bool (*cancelled)(void *arg);
	void *cancel_arg;
};
OW_API void ow_remote_options_init(struct ow_remote_options *options);

/* clickhouse://USER@HOST:8123/DATABASE; clickhouses:// (or https://) with TLS. Nothing is sent yet: a wrong
 * host or password is told by the first query. */
OW_API ow_status ow_remote_open(const char *address, const struct ow_remote_options *options,
				ow_remote **remote, struct ow_error *err);
OW_API void ow_remote_free(ow_remote *remote);

/* Runs one statement in the server's own dialect, as it is and once. Integers, reals and booleans come as
 * such, longer integers and decimals as OW_TYPE_NUMBER, all other types as the server writes them; NULL is
 * unknown. A statement without rows gives a result without columns. The result does not need the server any
 * more. */
OW_API ow_status ow_remote_query(ow_remote *remote, const char *text, ow_result **result,
				 struct ow_error *err);

#define OW_CONTENT_TEXT 33
/* A hash of the bytes of files (directories, patterns), wherever they lie; 32 hexadecimal digits. */
OW_API ow_status ow_content_hash(const char *const *paths, size_t count, char hex[OW_CONTENT_TEXT],
				 struct ow_error *err);

struct ow_push_options {
	size_t size;
	const char *name;    /* of the run, in its column `run`; pushing it again does nothing */
	const char *content; /* what ow_content_hash gave for the inputs */
	const char *cluster; /* one of the server's system.clusters; NULL: this server alone */
	struct ow_list
		nodes; /* HOST[:PORT] for HTTP of every node, in the order of system.clusters; none:
				* the hosts that it has there, with the port of the address */
	struct ow_list tables; /* none: all */
	uint32_t connections, batch_rows;
	uint32_t retry_ms; /* how long a node may be away before the push is given up */
	bool replace;	   /* a run of the same name and other content */
	/* Called now and then, from any thread but one at a time; return false to cancel. */
	bool (*progress)(void *arg, uint64_t rows_done, uint64_t rows_total);
	void *progress_arg;
	ow_line_fn message; /* what had to be sent again, and why */
	void *message_arg;
};
OW_API void ow_push_options_init(struct ow_push_options *options);

struct ow_push_summary {
	size_t size;
	uint64_t rows;			 /* of the run */
	uint64_t sent;			 /* by this call, to all nodes */
	uint32_t batches, batches_found; /* found: an earlier call had sent them */
	uint32_t repeats;
	uint32_t tables, nodes, shards;
	bool published_before, replaced;
};

/* Puts the tables of a frozen profile on a server or cluster: all of its rows become visible at once, at the
 * end, or none do. A push that failed or was killed goes on when it is repeated. */
OW_API ow_status ow_push(ow_profile *profile, ow_remote *remote,
			 const struct ow_push_options *options, struct ow_push_summary *summary,
			 struct ow_error *err);

/* ---- this build ------------------------------------------------------------------------------- */

OW_API const char *ow_version(void);
/* Optional parts: index 0, 1, …; false beyond the last. summary says whether it was found. */
OW_API bool ow_build_part(size_t index, struct ow_part_info *info);

#ifdef __cplusplus
}
#endif
#endif
