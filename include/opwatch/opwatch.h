/*
 * opwatch.h: the public interface of libopwatch: open profiles, run views, write the results.
 *
 * A profile (struct ow_profile) is opened from one or more files of any known format and then frozen. A
 * frozen profile is read-only. Views, advice and queries return results (struct ow_result): tables with
 * typed columns. A program reads the cells of a result or writes the result through a sink (text, json,
 * csv, ...). docs/c.md has a complete program.
 *
 * Six more headers cover the rest: opwatch/sql.h (SQL, named queries, export, Arrow), opwatch/ranks.h (the ranks
 * of a job compared), opwatch/record.h (record programs, sample stacks, capture traces), opwatch/live.h (watch
 * running jobs, the daemon), opwatch/push.h (ClickHouse servers) and opwatch/ui.h (the web page). Only these
 * seven headers are public.
 *
 * Rules for all of them:
 *
 * Errors. A function that can fail returns ow_status and fills the caller's `struct ow_error`, which may be
 * NULL. On failure the function sets its result pointer to NULL.
 *
 * Ownership. The caller frees each handle with its matching ow_..._free or ow_..._close, which accepts NULL.
 * Strings passed in are copied unless the comment says otherwise. Returned strings are UTF-8, end with NUL and
 * live as long as the handle they come from.
 *
 * Structs. A struct that may grow in later versions begins with its own size, and the library reads or writes no
 * more than that. For options call the matching ow_..._init, then change fields; NULL means the defaults. Before
 * a call fills a struct, set its size: `struct ow_column column = { .size = sizeof(column) };`. Structs without a
 * size do not change.
 *
 * Callbacks. A callback that returns bool returns true to continue and false to stop. Callbacks may be NULL.
 *
 * Threads. Any number of threads may call functions on one frozen profile at the same time. All other handles
 * are for one thread at a time unless the comment says otherwise.
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
/* The compiler warns when a caller ignores the status. */
#define OW_MUST_CHECK __attribute__((warn_unused_result))

/* ---- status and errors ---------------------------------------------------------------------- */

typedef enum ow_status {
	OW_OK = 0,
	OW_E_USAGE,	  /* the caller's arguments are wrong or contradict each other */
	OW_E_NOT_FOUND,	  /* the file, step, column, ... does not exist */
	OW_E_PERMISSION,  /* the system denied access */
	OW_E_IO,	  /* reading or writing failed, or the file changed while it was read */
	OW_E_FORMAT,	  /* the format is unknown, or the file holds nothing usable */
	OW_E_CORRUPT,	  /* the format is known, but the damage cannot be skipped */
	OW_E_EMPTY,	  /* the file has no bytes */
	OW_E_NO_MEMORY,	  /* an allocation failed, or the memory limit was reached */
	OW_E_LIMIT,	  /* another limit (regex steps, nesting, table size) was reached */
	OW_E_UNSUPPORTED, /* this build or this input does not support the request */
	OW_E_INTERRUPTED, /* the caller cancelled the call */
	OW_E_INTERNAL	  /* a bug in opwatch */
} ow_status;

#define OW_ERROR_TEXT 1024

/* Details of a failure. The struct has a fixed size, because reporting an error must not need memory. */
struct ow_error {
	ow_status status;
	uint64_t offset; /* byte offset in the input, or OW_NO_OFFSET */
	char text[OW_ERROR_TEXT];
};
#define OW_NO_OFFSET UINT64_MAX

/* Returns a short English name of a status: "not found". The string is static. */
OW_API const char *ow_status_name(ow_status status);

/* ---- types that several functions share ------------------------------------------------------- */

/* A list of strings. The caller keeps it alive during the call. */
struct ow_list {
	const char *const *items;
	size_t count;
};

/* Receives output bytes. Returns false to stop the output (for example, on a closed pipe). */
typedef bool (*ow_write_fn)(void *arg, const void *bytes, size_t len);
/* Receives one line of text for people, without its newline. */
typedef void (*ow_line_fn)(void *arg, const char *line, size_t len);

/* ---- opening ---------------------------------------------------------------------------------- */

typedef struct ow_profile ow_profile;

struct ow_open_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	/* Reports progress while files load, from any thread. Returns false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	bool infer;  /* compute the shapes and float operations that the files do not contain */
	bool redact; /* replace names and paths by hashes */
	bool strict_proto; /* ignore a message completely unless all of it parses (tfprof does so) */
	struct ow_list input_shapes; /* "NAME=100x784": shapes of placeholders, for infer */
	/* regular expression: slices whose whole name matches are steps; NULL = none */
	const char *step_marker;
	/* pairs of path and name: show the input with this path as `name` */
	struct ow_list renamed;
	/* with redact: use the same hashes for all profiles of this process that set this
	 * option, so that they can be compared */
	bool redact_alike;
	bool align_clocks; /* the files are ranks of a job: move all times to the fitted clock of the lowest rank */
};
OW_API void ow_open_options_init(struct ow_open_options *options);

/* Opens files, directories and glob patterns, and freezes the profile. The library detects each format and
 * loads the files in the right order. If some files are unusable but at least one loads, the call succeeds and the
 * view "notes" lists the skipped files. The caller frees *profile. */
OW_API OW_MUST_CHECK ow_status ow_profile_open(const char *const *paths, size_t count,
					       const struct ow_open_options *options,
					       ow_profile **profile, struct ow_error *err);

/* Creates an empty profile, to be filled step by step: add inputs, then freeze. The caller frees *profile. */
OW_API OW_MUST_CHECK ow_status ow_profile_new(const struct ow_open_options *options,
					      ow_profile **profile, struct ow_error *err);
/* Frees a profile. Free its results and its SQL sessions first. */
OW_API void ow_profile_free(ow_profile *profile);

struct ow_file_options {
	size_t size;
	const char *format; /* name of an importer; NULL = detect the format from the content */
	int64_t step; /* step number for a file that holds one step; INT64_MIN = the next free number */
	/* Do not keep the bytes of the input. Views then cannot show arguments and definitions from it. For
	 * programs that add one step after another. */
	bool forget;
};
OW_API void ow_file_options_init(struct ow_file_options *options);

struct ow_file_info {
	size_t size;
	const char *format; /* name of the detected format */
	double coverage;    /* after a RunMetadata: part of the ops of the graph that ran, 0 to 1 */
	bool missing_step_stats; /* the file is a RunMetadata without statistics */
};

/* Adds one file ("-" = standard input) to a profile that is not frozen. options and info may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_profile_add_file(ow_profile *profile, const char *path,
						   const struct ow_file_options *options,
						   struct ow_file_info *info, struct ow_error *err);
/* Adds bytes in memory, which the library copies, as ow_profile_add_file adds a file. `name` appears in
 * messages in place of a path. */
OW_API OW_MUST_CHECK ow_status ow_profile_add_memory(ow_profile *profile, const char *name,
						     const void *data, size_t len,
						     const struct ow_file_options *options,
						     struct ow_file_info *info,
						     struct ow_error *err);

/* Ends loading. From then on the profile is read-only, and several threads may use it. */
OW_API OW_MUST_CHECK ow_status ow_profile_freeze(ow_profile *profile, struct ow_error *err);

/* Makes a frozen profile writable again, to add more inputs; freeze it afterwards. First free all of its
 * results. No other thread may use the profile during the call. */
OW_API OW_MUST_CHECK ow_status ow_profile_thaw(ow_profile *profile, struct ow_error *err);

/* Loads a checkpoint: views can then show the values of its variables (tfprof's tensor_value). Before the
 * freeze, this also marks its variables among the ops. */
OW_API OW_MUST_CHECK ow_status ow_profile_set_checkpoint(ow_profile *profile, const char *prefix,
							 struct ow_error *err);

/* Writes at most `cap` step numbers, in ascending order. *count becomes the number of steps. numbers may be NULL if cap
 * is 0. */
OW_API OW_MUST_CHECK ow_status ow_profile_steps(ow_profile *profile, int64_t *numbers, size_t cap,
						size_t *count, struct ow_error *err);
/* Returns whether the profile has Python source lines of ops, for the view "code". */
OW_API bool ow_profile_has_code(const ow_profile *profile);
/* Returns whether parts of the inputs were lost, repaired or missing. The view "notes" lists them. */
OW_API bool ow_profile_damaged(const ow_profile *profile);

struct ow_memory_use {
	size_t size;
	uint64_t used, peak; /* number of bytes that are held now, and the largest number so far */
	uint64_t limit;	     /* limit from ow_open_options; 0 = no limit */
};
/* Fills *use with the memory that the profile and its results hold. */
OW_API void ow_profile_memory(const ow_profile *profile, struct ow_memory_use *use);

/* An estimate of the size and the memory of a file, made without loading it. */
struct ow_estimate {
	size_t size;
	const char *format;    /* name of the detected format; NULL = unknown */
	const char *container; /* compression of the file: "gzip", "zstd", ... or "" */
	uint64_t file_bytes, content_bytes, events, memory_bytes;
	int32_t rank; /* rank of the file in its job, -1 = unknown */
};
/* Estimates from the size and the first bytes of the file only. The caller sets estimate->size. */
OW_API OW_MUST_CHECK ow_status ow_estimate_file(const char *path, struct ow_estimate *estimate,
						struct ow_error *err);

/* ---- saving ------------------------------------------------------------------------------------ */

struct ow_save_options {
	size_t size;
	/* Reports progress. Returns false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
};
OW_API void ow_save_options_init(struct ow_save_options *options);

/* Writes a frozen profile as an opwatch file (.opw). The file holds the whole profile, with the arguments of
 * events and the definitions of ops, and opens in milliseconds. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_profile_save(ow_profile *profile, const char *path,
					       const struct ow_save_options *options,
					       struct ow_error *err);

/*
 * Checks all checksums of the opwatch file that the profile was opened from. Without this call, the library
 * checks each table on first use. Recordings of running programs are checked when they are opened; for them
 * this call returns the result of that check. *bytes (may be NULL) becomes the size of the files, or 0 if the
 * profile was opened from other formats.
 */
OW_API OW_MUST_CHECK ow_status ow_profile_verify(ow_profile *profile, uint64_t *bytes,
						 struct ow_error *err);

/* ---- results ---------------------------------------------------------------------------------- */

/* A table with typed columns. Rows of a tree come in depth-first order, and ow_result_depth returns their level. Any
 * number of threads may read the cells of one result at the same time. */
typedef struct ow_result ow_result;

typedef enum ow_type {
	OW_TYPE_INT,
	OW_TYPE_REAL,
	OW_TYPE_TEXT,
	OW_TYPE_BOOL,
	OW_TYPE_NUMBER /* number as exact decimal digits; ow_result_text returns them, too */
} ow_type;
typedef enum ow_unit {
	OW_UNIT_PLAIN,
	OW_UNIT_NS,
	OW_UNIT_MICROS, /* microseconds, with fractions if the column has the type real */
	OW_UNIT_BYTES,
	OW_UNIT_COUNT,
	OW_UNIT_PERCENT
} ow_unit;

struct ow_column {
	size_t size;
	const char *name;  /* name of the column for programs */
	const char *title; /* title of the column for people */
	ow_type type;
	ow_unit unit;
	/* Type of the values that the texts of an SQL column hold, or "": "timestamp" (2024-05-01
	 * 10:00:00.5), "timestamptz" (with +00), "date", "time", "interval", "list" and "object" (JSON). */
	const char *logical;
};

OW_API void ow_result_free(ow_result *result);
OW_API uint32_t ow_result_rows(const ow_result *result);
OW_API uint32_t ow_result_columns(const ow_result *result);
/* Describes a column. Returns false if there is no column of that number. */
OW_API bool ow_result_column(const ow_result *result, uint32_t column, struct ow_column *info);
/* Returns the number of the column with that name, or UINT32_MAX. */
OW_API uint32_t ow_result_find(const ow_result *result, const char *name);
/* Returns the level of a row in a tree; 0 in a flat table. */
OW_API uint32_t ow_result_depth(const ow_result *result, uint32_t row);

/* The functions below read one cell. They convert numbers; a text read as a number is 0, a number read as
 * a text is "". A cell without a value is not known, and neither is a row or column out of range: it reads
 * as 0 and "". */
OW_API bool ow_result_known(const ow_result *result, uint32_t row, uint32_t column);
OW_API int64_t ow_result_int(const ow_result *result, uint32_t row, uint32_t column);
OW_API double ow_result_real(const ow_result *result, uint32_t row, uint32_t column);
/* Returns the text of a cell, which may contain NUL bytes. *len (may be NULL) becomes its
 * length. */
OW_API const char *ow_result_text(const ow_result *result, uint32_t row, uint32_t column,
				  size_t *len);
/* Writes a cell as people read it: 1.23ms, 45.6MB, "-" if it is not known. Writes at most `size` bytes with the
 * NUL. Returns the full length. */
OW_API size_t ow_result_show(const ow_result *result, uint32_t row, uint32_t column, char *text,
			     size_t size);

/* The functions below return one whole column without a copy: an array with one value per row, or NULL if
 * the column has another type. */
struct ow_text {
	const char *ptr; /* may be NULL if len is 0 */
	size_t len;
};
/* values of a column of type int or bool */
OW_API const int64_t *ow_result_ints(const ow_result *result, uint32_t column);
OW_API const double *ow_result_reals(const ow_result *result, uint32_t column);
OW_API const struct ow_text *ow_result_texts(const ow_result *result, uint32_t column);
/* Returns one byte per row: 0 = the cell is not known. Returns NULL if all cells are known. */
OW_API const uint8_t *ow_result_marks(const ow_result *result, uint32_t column);
/* Makes the rows of a result if its view was run with defer_rows. Does nothing if the rows
 * exist. */
OW_API OW_MUST_CHECK ow_status ow_result_fill(ow_result *result, struct ow_error *err);
/* Returns remark number `index` (0, 1, ...) on the result, one line each, or NULL after the
 * last. */
OW_API const char *ow_result_message(const ow_result *result, uint32_t index);
/* Returns the text below the rows, for example the reason why there are none, or NULL. The text lives as
 * long as the result. */
OW_API const char *ow_result_footer(const ow_result *result);

/* ---- views ------------------------------------------------------------------------------------ */

#define OW_DEFAULT_DEPTH INT32_MIN

/* The options of all views. A view ignores the options that do not apply to it; docs/views/ lists them. */
struct ow_view_options {
	size_t size;
	/* Number of levels of a tree; in the view "op", number of rows. OW_DEFAULT_DEPTH = the default of
	 * the view. */
	int32_t max_depth;
	/* Hide rows below these values. */
	int64_t min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes;
	int64_t min_micros, min_accelerator_micros, min_cpu_micros;
	int64_t min_params, min_float_ops, min_occurrence;
	int64_t step; /* number of the step to show; negative = the average over all steps */
	/* Name of the metric to sort by, or "name"; "" = do not sort; NULL = the first selected metric
	 * that is a cost, or micros. */
	const char *order_by;
	/* Regular expressions that choose nodes, as in tfprof. */
	struct ow_list account_type_regexes, start_name_regexes, trim_name_regexes;
	struct ow_list show_name_regexes, hide_name_regexes;
	bool account_displayed_op_only;
	struct ow_list select; /* names of the columns to show */
	uint32_t limit;	       /* number of rows to show; 0 = all */
	/* Range of time to show, counted from the first event. INT64_MIN and INT64_MAX = the
	 * whole time. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;	  /* show only the inputs of this rank; -1 = all */
	bool full_names;  /* full kernel names, with template arguments and parameters */
	bool all_metrics; /* compute all metrics, not only the selected ones; for the sink "proto" */
	/* Options for sampled profiles. metric: a name from the view "metrics"; NULL = the default of the
	 * file. style: words separated by commas: pid, tid, kernel, jit, all, addrs, lines; see
	 * docs/views/code.md. */
	const char *metric, *style;
	/* For the view "roofline": peak rates of the device, "A100" or "312T:2.04T"; NULL = from
	 * the file. */
	const char *peak;
	/* Do not make the rows of a tree yet: a program that only writes the result saves time and memory.
	 * ow_result_write makes the rows if its sink needs them, ow_result_fill makes them on request. Until then the
	 * result has no rows and no columns. */
	bool defer_rows;
	/* For the view "code" of inputs without source lines: return an empty table whose footer gives the
	 * reason, not OW_E_NOT_FOUND. */
	bool explain_empty;
};
/* Sets the defaults of the command line: sort by cost, show the 30 costliest ops, 100 levels of code and 10 levels
 * of other trees, select micros, use all events of all steps and ranks. */
OW_API void ow_view_options_init(struct ow_view_options *options);

/* Name and description of a view, format, sink or rule. The strings are static. */
struct ow_part_info {
	size_t size;
	const char *name, *summary;
	/* for an importer: usual file names; for a sink: file extension; for a rule: name of
	 * tfprof's checker */
	const char *detail;
};
/* List the parts of this build: index 0, 1, ... Each function returns false after the last. */
OW_API bool ow_view_info(size_t index, struct ow_part_info *info);
OW_API bool ow_importer_info(size_t index, struct ow_part_info *info);
OW_API bool ow_sink_info(size_t index, struct ow_part_info *info);
OW_API bool ow_rule_info(size_t index, struct ow_part_info *info);

/* Checks whether the view uses all options that differ from their defaults, for these files. Returns
 * OW_OK, or OW_E_USAGE with the name of an option that the view would ignore. ow_view makes the same
 * check. */
OW_API OW_MUST_CHECK ow_status ow_view_options_check(ow_profile *profile, const char *view,
						     const struct ow_view_options *options,
						     struct ow_error *err);
/* Sets the options that the view would ignore to their defaults, for callers that run several
 * views with the same options. */
OW_API void ow_view_options_drop(const ow_profile *profile, const char *view,
				 struct ow_view_options *options);
/* Runs a view on a frozen profile. Options that the view does not use are refused (OW_E_USAGE). The caller frees *result before the
 * profile. */
OW_API OW_MUST_CHECK ow_status ow_view(ow_profile *profile, const char *view,
				       const struct ow_view_options *options, ow_result **result,
				       struct ow_error *err);

/* Writes one sentence for people on where the time goes: "82 % of a step waits for input; the slowest stage
 * is ...". Writes at most `size` bytes with the NUL; 500 are enough. The options choose a step, a rank or a
 * part of the time. */
OW_API OW_MUST_CHECK ow_status ow_verdict(ow_profile *profile,
					  const struct ow_view_options *options, char *text,
					  size_t size, struct ow_error *err);

/* Lists the reports of ow_nsys_stats. detail is the older name of the report. Returns false after the last. */
OW_API bool ow_nsys_report_info(size_t index, struct ow_part_info *info);
/* Makes a report as `nsys stats` of Nsight Systems prints it ("cuda_gpu_kern_sum", or its older name). Works on
 * every profile with kernels, calls or ranges. Columns and rounding follow the report, so numbers have the type
 * OW_TYPE_NUMBER. Uses step, rank, time and limit of the options. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_nsys_stats(ow_profile *profile, const char *report,
					     const struct ow_view_options *options,
					     ow_result **result, struct ow_error *err);

/* Settings for the advice on a profile; see docs/advise.md. */
struct ow_advice_options {
	size_t size;
	const char *file;    /* path of a settings file, such as opwatch.toml; NULL = none */
	struct ow_list mute; /* names of rules that do not run unless a call names them */
	/* smallest saving that is a finding, as a part of a step; 0 = as in the file, or 0.03 */
	double medium;
};
OW_API void ow_advice_options_init(struct ow_advice_options *options);
/* Replaces the settings that advice, verdicts and SQL of this profile use. Do not call this function while
 * other threads use the profile. */
OW_API OW_MUST_CHECK ow_status ow_profile_set_advice(ow_profile *profile,
						     const struct ow_advice_options *options,
						     struct ow_error *err);

/* Runs the advice rules, or only the named ones. The result has one row per finding. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_advise(ow_profile *profile, const struct ow_list *rules,
					 ow_result **result, struct ow_error *err);

/*
 * Returns the critical path of a step (options->step, or the steady step nearest the median) as rows that sum
 * to the step. `by` adds the rows up by "op", "line", "kind" or "rank"; NULL = every piece is a row. A
 * recording that cannot be replayed has no rows; the extra value "refused" gives the reason. The caller frees
 * *result.
 */
OW_API OW_MUST_CHECK ow_status ow_path(ow_profile *profile, const struct ow_view_options *options,
				       const char *by, ow_result **result, struct ow_error *err);

/* Predicts how long a step takes after changes such as "input=0" or "op:REGEX*0.5" ('opwatch what-if
 * --help' lists them). The prediction is in the extra values of the result (new_step_ns, new_low_ns,
 * new_high_ns, refused, ...); the rows are the new critical path. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_what_if(ow_profile *profile, const struct ow_list *changes,
					  const struct ow_view_options *options, ow_result **result,
					  struct ow_error *err);

struct ow_diff_options {
	size_t size;
	/* limits such as "step_time > 3%"; the extra value "gate" says which of them hold */
	struct ow_list fail_if;
	/* for profiles of samples: metric to compare; NULL = the default of the first profile */
	const char *metric;
	/* make the rows a tree of frames, for a differential flame graph (the output flamegraph) */
	bool frames;
	double frames_least; /* leave out frames that are shorter than this part of a step */
	bool findings; /* also compare the advice of recordings with more than a million events, which takes longer than the rest */
};
OW_API void ow_diff_options_init(struct ow_diff_options *options);

/* Compares the steady steps of two groups of runs, one profile each. The rows are cells (phase, op, line, rank) whose differences, with the
 * value unexplained_ns, sum to the value delta_ns. All profiles must outlive *result, which the caller frees. */
OW_API OW_MUST_CHECK ow_status ow_diff(ow_profile *const *base, size_t base_count,
				       ow_profile *const *other, size_t other_count,
				       const struct ow_diff_options *options, ow_result **result,
				       struct ow_error *err);

/* Returns the configuration of a run as its files describe it (devices, versions, world size, batch size):
 * one row each, with `what` and `value`. The profile must outlive *result, which the caller frees. */
OW_API OW_MUST_CHECK ow_status ow_configuration(ow_profile *profile, ow_result **result,
						struct ow_error *err);

struct ow_hang_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	bool redact; /* replace the names of files, functions and groups of the user by hashes */
};
OW_API void ow_hang_options_init(struct ow_hang_options *options);

/*
 * Finds out why a job of many processes hangs, from files and directories: dumps of PyTorch's flight recorder
 * (JSON or pickle), logs of PyTorch's watchdog, torchrun and NCCL, `py-spy dump`, recordings. The extra
 * values of the result are the answer (conclusion, certain, ranks, collective, group, sequence, why); the
 * rows are the ranks. The extra value notes counts and names files that cannot be used. The caller frees
 * *result.
 */
OW_API OW_MUST_CHECK ow_status ow_hang(const char *const *paths, size_t count,
				       const struct ow_hang_options *options, ow_result **result,
				       struct ow_error *err);

/* Returns an extra value of the result (a value beside its rows) as JSON text; NULL if there is none of
 * that name. Valid until the result is freed. */
OW_API const char *ow_result_extra(const ow_result *result, const char *name);
/* Returns the name of extra value number `index` (0, 1, ...); NULL after the last. */
OW_API const char *ow_result_extra_name(const ow_result *result, size_t index);

/* ---- writing ---------------------------------------------------------------------------------- */

struct ow_write_options {
	size_t size;
	uint32_t width; /* fit text to this many columns; 0 = no limit */
	bool colour;
	const char *metric; /* for folded and flamegraph: name of the value to show */
	const char *title;
	ow_line_fn message;  /* receives the lines that tfprof prints on stderr */
	ow_line_fn progress; /* receives the lines that tfprof prints on stdout */
	void *line_arg;
	/* For flamegraph: words separated by commas: icicle (the default), flame, inverted,
	 * left-heavy. */
	const char *style;
	/* number of rows per table; 0 = all. For trees use the limit in ow_view_options. */
	uint32_t limit;
	/* for text: show kernels without return type, parameters and most template arguments */
	bool short_names;
};
OW_API void ow_write_options_init(struct ow_write_options *options);

/* Writes a result through a sink: "text", "json", "csv", "tfprof", "timeline", "pprof", "folded", ... */
OW_API OW_MUST_CHECK ow_status ow_result_write(ow_result *result, const char *sink,
					       const struct ow_write_options *options,
					       ow_write_fn write, void *arg, struct ow_error *err);
/* Writes a result to a file. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_result_write_file(ow_result *result, const char *sink,
						    const struct ow_write_options *options,
						    const char *path, struct ow_error *err);

/* One change of memory: an allocator starts to hold a tensor (bytes > 0) or releases it (bytes <
 * 0). */
struct ow_timeline_memory {
	size_t size;
	const char *allocator, *tensor; /* names, not terminated by NUL */
	size_t allocator_len, tensor_len;
	int64_t ts_us, bytes;
};

struct ow_timeline_options {
	size_t size;
	bool show_dataflow; /* draw arrows from producers to consumers; on by default */
	bool show_memory; /* draw tensors and the memory of each allocator (steps of TensorFlow only) */
	int64_t step;	  /* number of the step to draw; negative = all steps */
	bool gzip;
	/* Range of time to draw, as in ow_view_options. An event that overlaps the range is drawn as a
	 * whole. A part of a TensorFlow step is drawn from its events. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;
	/* With show_memory: this function receives all changes, sorted by allocator and then by time. The
	 * struct is valid during the call. */
	void (*memory)(void *arg, const struct ow_timeline_memory *change);
	void *memory_arg;
	const char *metric; /* for sampled profiles: the metric, as in ow_view_options */
	/* add a track with the critical path (ow_path) of the step, or of the steady step
	 * nearest the median */
	bool show_path;
};
OW_API void ow_timeline_options_init(struct ow_timeline_options *options);

/* Writes the events of a frozen profile as a Chrome trace. Traced steps of TensorFlow (RunMetadata) look as in
 * TensorFlow's class timeline.Timeline, several steps in one trace. */
OW_API OW_MUST_CHECK ow_status ow_timeline_write(ow_profile *profile,
						 const struct ow_timeline_options *options,
						 ow_write_fn write, void *arg,
						 struct ow_error *err);
/* Writes the trace of ow_timeline_write to a file. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_timeline_write_file(ow_profile *profile,
						      const struct ow_timeline_options *options,
						      const char *path, struct ow_error *err);

/* Writes a frozen profile as TensorFlow's ProfileProto, the file profile_N of its ProfileContext. A reader of
 * that file sees the same views. */
OW_API OW_MUST_CHECK ow_status ow_tf_profile_write(ow_profile *profile, ow_write_fn write,
						   void *arg, struct ow_error *err);
/* Writes the properties of ops that are not in the graph (float operations, types from users, source
 * lines) as TensorFlow's OpLogProto. */
OW_API OW_MUST_CHECK ow_status ow_tf_op_log_write(ow_profile *profile, ow_write_fn write, void *arg,
						  struct ow_error *err);
/* Write these messages to files. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_tf_profile_write_file(ow_profile *profile, const char *path,
							struct ow_error *err);
OW_API OW_MUST_CHECK ow_status ow_tf_op_log_write_file(ow_profile *profile, const char *path,
						       struct ow_error *err);

/* Writes properties and losses of the inputs of a frozen profile as JSON; see docs/info-json.md. */
OW_API OW_MUST_CHECK ow_status ow_info_json(ow_profile *profile, ow_write_fn write, void *arg,
					    struct ow_error *err);

/* ---- merging ---------------------------------------------------------------------------------- */

typedef enum ow_align {
	OW_ALIGN_KEEP,	   /* keep all times; only convert them to a common zero */
	OW_ALIGN_START,	   /* shift each file so that it starts at zero */
	OW_ALIGN_SEQUENCE, /* put one file after the other */
	/* move ranks of one job to the clock of the lowest rank, fitted to the collectives that they share
	 * (docs/ranks.md); fails where that is impossible */
	OW_ALIGN_CLOCKS
} ow_align;

struct ow_merge_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	/* Reports progress. Any thread may call it, but only one at a time. Returns false to
	 * cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	ow_line_fn message; /* receives one line per problem with a file; may be NULL */
	void *message_arg;
	ow_write_fn write; /* receives the output if out_path is NULL */
	void *write_arg;
	ow_align align;
	bool no_labels; /* do not add or change names of processes */
	/* Filters: keep only matching events. A regular expression must match the whole text;
	 * one match in a list is enough. */
	struct ow_list keep_names, keep_categories, keep_pids;
	/* Range of time to keep, counted from the first event of the merged trace. INT64_MIN and
	 * INT64_MAX = all. */
	int64_t keep_from_ns, keep_to_ns;
	int64_t keep_first_step, keep_last_step;
	bool redact; /* replace private names by pseudonyms, see docs/redaction.md */
};
OW_API void ow_merge_options_init(struct ow_merge_options *options);

struct ow_merge_summary {
	size_t size;
	/* number of merged files, and of files that are unreadable or not a trace */
	uint64_t files, skipped_files;
	/* number of events read and written; events_out = events_in - filtered */
	uint64_t events_in, events_out;
	uint64_t filtered;
	uint64_t added;	   /* number of process names that opwatch added; not part of events_out */
	uint64_t repaired; /* number of events that were not strict JSON */
	uint64_t others;   /* number of list elements that are not events; they are left out */
	uint64_t damaged, damaged_bytes, truncated_files;
	uint64_t untimed; /* number of times that are not numbers; they stay unchanged */
	/* number of values that look like environment variables; they are left out */
	uint64_t hidden;
	uint64_t bytes_in, bytes_out;
	bool unrelated_clocks; /* the files are years apart: choose another alignment */
};

/* Merges Chrome traces (files, directories, patterns, archives) into one. Events stay as they are, except
 * for conflicting pids and ids, shifted times, and process names, which get the rank, step or name of their file as
 * a prefix. If out_path ends in .gz or .zst, the output is compressed. On failure an existing file stays as it was.
 * Files that cannot be used are reported to `message` and skipped, as long as one file remains. The caller sets
 * summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_merge(const char *const *paths, size_t count,
					const struct ow_merge_options *options,
					const char *out_path, struct ow_merge_summary *summary,
					struct ow_error *err);

/* ---- this build ------------------------------------------------------------------------------- */

/* Returns the version of the library: "0.1.0". */
OW_API const char *ow_version(void);
/* Lists the optional parts of this build: index 0, 1, ... summary says whether the part is present. Returns false
 * after the last. */
OW_API bool ow_build_part(size_t index, struct ow_part_info *info);

#ifdef __cplusplus
}
#endif
#endif
