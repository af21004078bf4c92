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
	const char *
		step_marker; /* regular expression: slices with this whole name are steps; or NULL */
	struct ow_list
		renamed; /* path, name, path, name, ...: show the input as `name`, not by its path */
	bool redact_alike; /* redact: all profiles of this process that have it get the same hashes, to compare them */
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
	const char *format; /* the detected format */
	double coverage;    /* after a RunMetadata: part of the ops of the graph that ran, 0 to 1 */
	bool missing_step_stats; /* the file is a RunMetadata without statistics */
};

/* Adds one file ("-" = standard input) to a profile that is not frozen. options and info may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_profile_add_file(ow_profile *profile, const char *path,
						   const struct ow_file_options *options,
						   struct ow_file_info *info, struct ow_error *err);
/* The same for bytes in memory, which the library copies. `name` appears in messages in place of a path. */
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
	uint64_t used, peak; /* bytes now, and the most so far */
	uint64_t limit;	     /* from ow_open_options; 0 = no limit */
};
/* Fills *use with the memory that the profile and its results hold. */
OW_API void ow_profile_memory(const ow_profile *profile, struct ow_memory_use *use);

/* An estimate of what opening a file takes. */
struct ow_estimate {
	size_t size;
	const char *format;    /* NULL = unknown */
	const char *container; /* "gzip", "zstd", ... or "" */
	uint64_t file_bytes, content_bytes, events, memory_bytes;
	int32_t rank; /* of the job that wrote it, -1 = unknown */
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

/* Checks all checksums of the opwatch file that the profile was opened from. Without this call, the library
 * checks each table on first use. Recordings of running programs are checked when they are opened; here the result is
 * returned. *bytes (may be NULL) becomes the size of the files, or 0 if the profile was opened from other formats. */
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
	OW_TYPE_NUMBER /* exact decimal digits; ow_result_text returns them, too */
} ow_type;
typedef enum ow_unit {
	OW_UNIT_PLAIN,
	OW_UNIT_NS,
	OW_UNIT_MICROS, /* in columns of type real: with fractions */
	OW_UNIT_BYTES,
	OW_UNIT_COUNT,
	OW_UNIT_PERCENT
} ow_unit;

struct ow_column {
	size_t size;
	const char *name;  /* for programs */
	const char *title; /* for people */
	ow_type type;
	ow_unit unit;
	/* What the texts of a column of SQL stand for, or "": "timestamp" (2024-05-01 10:00:00.5), "timestamptz" (with
	 * +00), "date", "time", "interval", "list" and "object" (JSON). */
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

/* One cell. A cell without a value is not known. The functions convert numbers; a text read as a number is 0, a
 * number read as a text is "". Rows and columns out of range are not known, 0 and "". */
OW_API bool ow_result_known(const ow_result *result, uint32_t row, uint32_t column);
OW_API int64_t ow_result_int(const ow_result *result, uint32_t row, uint32_t column);
OW_API double ow_result_real(const ow_result *result, uint32_t row, uint32_t column);
/* *len (may be NULL) becomes the length. The text may contain NUL bytes. */
OW_API const char *ow_result_text(const ow_result *result, uint32_t row, uint32_t column,
				  size_t *len);
/* Writes a cell as people read it: 1.23ms, 45.6MB, "-" if it is not known. Writes at most `size` bytes with the
 * NUL. Returns the full length. */
OW_API size_t ow_result_show(const ow_result *result, uint32_t row, uint32_t column, char *text,
			     size_t size);

/* One whole column without a copy: an array with one value per row, or NULL if the column has another type. */
struct ow_text {
	const char *ptr; /* may be NULL if len is 0 */
	size_t len;
};
OW_API const int64_t *ow_result_ints(const ow_result *result, uint32_t column); /* int and bool */
OW_API const double *ow_result_reals(const ow_result *result, uint32_t column);
OW_API const struct ow_text *ow_result_texts(const ow_result *result, uint32_t column);
/* One byte per row: 0 = the cell is not known. NULL: all cells are known. */
OW_API const uint8_t *ow_result_marks(const ow_result *result, uint32_t column);
/* Makes the rows of a result of a view with defer_rows. Does nothing if the rows exist. */
OW_API OW_MUST_CHECK ow_status ow_result_fill(ow_result *result, struct ow_error *err);
/* Returns a remark on the result (one line; index 0, 1, ...), or NULL after the last. */
OW_API const char *ow_result_message(const ow_result *result, uint32_t index);
/* Returns the text below the rows, such as why there are none, or NULL. It lives as long as the result. */
OW_API const char *ow_result_footer(const ow_result *result);

/* ---- views ------------------------------------------------------------------------------------ */

#define OW_DEFAULT_DEPTH INT32_MIN

/* The options of all views. A view ignores the options that do not apply to it; docs/views/ lists them. */
struct ow_view_options {
	size_t size;
	/* Levels of a tree; in the view "op" the rows after the first. OW_DEFAULT_DEPTH = the default of the view. */
	int32_t max_depth;
	/* Hide rows below these values. */
	int64_t min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes;
	int64_t min_micros, min_accelerator_micros, min_cpu_micros;
	int64_t min_params, min_float_ops, min_occurrence;
	int64_t step; /* negative = the average over all steps */
	/* A metric or "name"; "" = do not sort; NULL = the first of the selected metrics that is a cost, or micros. */
	const char *order_by;
	/* Regular expressions as in tfprof. */
	struct ow_list account_type_regexes, start_name_regexes, trim_name_regexes;
	struct ow_list show_name_regexes, hide_name_regexes;
	bool account_displayed_op_only;
	struct ow_list select; /* columns */
	uint32_t limit;	       /* rows; 0 = all */
	/* A part of the time, counted from the first event. INT64_MIN and INT64_MAX = all of it. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;	  /* only the inputs of this rank; -1 = all */
	bool full_names;  /* full kernel names, with template arguments and parameters */
	bool all_metrics; /* compute all metrics, not only the selected ones; for the sink "proto" */
	/* Sampled profiles. metric: a name from the view "metrics"; NULL = the default of the file. style: words
	 * separated by commas: pid, tid, kernel, jit, all, addrs, lines; see docs/views/code.md. */
	const char *metric, *style;
	/* roofline: peak of the device, "A100" or "312T:2.04T"; NULL = from the file */
	const char *peak;
	/* Do not make the rows of a tree yet: a program that only writes the result saves time and memory.
	 * ow_result_write makes the rows if its sink needs them, ow_result_fill makes them on request. Until then the
	 * result has no rows and no columns. */
	bool defer_rows;
	/* The view "code" of inputs without source lines: an empty table whose footer says why, not OW_E_NOT_FOUND. */
	bool explain_empty;
};
/* Sets the defaults of the command line: sort by cost, show the 30 costliest ops, 100 levels of code and 10 levels
 * of other trees, select micros, use all events of all steps and ranks. */
OW_API void ow_view_options_init(struct ow_view_options *options);

/* Name and description of a view, format, sink or rule. The strings are static. */
struct ow_part_info {
	size_t size;
	const char *name, *summary;
	const char *
		detail; /* importer: usual file names; sink: file extension; rule: checker of tfprof */
};
/* List the parts of this build: index 0, 1, ... Each function returns false after the last. */
OW_API bool ow_view_info(size_t index, struct ow_part_info *info);
OW_API bool ow_importer_info(size_t index, struct ow_part_info *info);
OW_API bool ow_sink_info(size_t index, struct ow_part_info *info);
OW_API bool ow_rule_info(size_t index, struct ow_part_info *info);

/* Whether the view uses all options that differ from those of ow_view_options_init, for these files: OW_OK, or OW_E_USAGE with the
 * option that it would ignore. ow_view checks the same. */
OW_API OW_MUST_CHECK ow_status ow_view_options_check(ow_profile *profile, const char *view,
						     const struct ow_view_options *options,
						     struct ow_error *err);
/* Sets such options to their usual values: for callers that run several views with the same options. */
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

/* What to change about the advice of a profile; see docs/advise.md. */
struct ow_advice_options {
	size_t size;
	const char *file;    /* settings, such as opwatch.toml; NULL = none */
	struct ow_list mute; /* names of rules that are not run, unless they are named */
	double medium; /* part of a step from which on a saving is a finding; 0 = as in the file, or 0.03 */
};
OW_API void ow_advice_options_init(struct ow_advice_options *options);
/* Replaces the settings; advice, verdicts and SQL of this profile use them. Do not call it while other threads use the profile. */
OW_API OW_MUST_CHECK ow_status ow_profile_set_advice(ow_profile *profile,
						     const struct ow_advice_options *options,
						     struct ow_error *err);

/* Runs the advice rules, or only the named ones. The result has one row per finding. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_advise(ow_profile *profile, const struct ow_list *rules,
					 ow_result **result, struct ow_error *err);

/* The critical path of a step: rows that sum to the step (options->step, or the steady step nearest the median). `by` adds the
 * rows up by "op", "line", "kind" or "rank"; NULL gives every piece. A recording that cannot be replayed has no rows; the value
 * "refused" beside them says why. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_path(ow_profile *profile, const struct ow_view_options *options,
				       const char *by, ow_result **result, struct ow_error *err);

/* Predicts the step with changes such as "input=0" or "op:REGEX*0.5" ('opwatch what-if --help' lists them). The numbers are values beside
 * the rows (new_step_ns, new_low_ns, new_high_ns, refused, ...), the rows are the new critical path. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_what_if(ow_profile *profile, const struct ow_list *changes,
					  const struct ow_view_options *options, ow_result **result,
					  struct ow_error *err);

struct ow_diff_options {
	size_t size;
	struct ow_list
		fail_if; /* limits such as "step_time > 3%"; the value "gate" beside the rows says how they did */
	const char *
		metric; /* of profiles of samples: what is compared; NULL = the default of the first one */
	bool frames; /* the rows are a tree of frames, for a differential flame graph (the output flamegraph) */
	double frames_least; /* leaves out frames that are less than this part of a step */
	bool findings; /* also compare the advice of recordings with more than a million events, which takes longer than the rest */
};
OW_API void ow_diff_options_init(struct ow_diff_options *options);

/* Compares the steady steps of two groups of runs, one profile each. The rows are cells (phase, op, line, rank) whose differences, with the
 * value unexplained_ns, sum to the value delta_ns. All profiles must outlive *result, which the caller frees. */
OW_API OW_MUST_CHECK ow_status ow_diff(ow_profile *const *base, size_t base_count,
				       ow_profile *const *other, size_t other_count,
				       const struct ow_diff_options *options, ow_result **result,
				       struct ow_error *err);

/* What a run was made with, as its files say: devices, versions, world size, batch size: a row for each, with `what` and `value`. The profile must
 * outlive *result, which the caller frees. */
OW_API OW_MUST_CHECK ow_status ow_configuration(ow_profile *profile, ow_result **result,
						struct ow_error *err);

struct ow_hang_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	bool redact; /* replace the names of files, functions and groups of the user by hashes */
};
OW_API void ow_hang_options_init(struct ow_hang_options *options);

/* Why a job of many processes hangs, from files and directories: dumps of PyTorch's flight recorder (JSON or pickle), logs of
 * PyTorch's watchdog, torchrun and NCCL, `py-spy dump`, recordings. The values beside the rows are the answer (conclusion, certain, ranks,
 * collective, group, sequence, why), the rows are the ranks. Files that cannot be used are counted and named in the value notes. The
 * caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_hang(const char *const *paths, size_t count,
				       const struct ow_hang_options *options, ow_result **result,
				       struct ow_error *err);

/* A value that a result has beside its rows, as JSON text; NULL when it has none of that name. Valid until the result is freed. */
OW_API const char *ow_result_extra(const ow_result *result, const char *name);
/* The names of these values: index 0, 1, ...; NULL after the last. */
OW_API const char *ow_result_extra_name(const ow_result *result, size_t index);

/* ---- writing ---------------------------------------------------------------------------------- */

struct ow_write_options {
	size_t size;
	uint32_t width; /* fit text to this many columns; 0 = no limit */
	bool colour;
	const char *metric; /* folded, flamegraph: the value to show */
	const char *title;
	ow_line_fn message;  /* receives the lines that tfprof prints on stderr */
	ow_line_fn progress; /* receives the lines that tfprof prints on stdout */
	void *line_arg;
	/* flamegraph: words separated by commas: icicle (the default), flame, inverted, left-heavy */
	const char *style;
	uint32_t limit; /* rows per table; 0 = all. For trees use the limit in ow_view_options. */
	bool short_names; /* text: kernels without return type, parameters and most template arguments */
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

/* A tensor that an allocator starts to hold (bytes > 0) or releases (bytes < 0). */
struct ow_timeline_memory {
	size_t size;
	const char *allocator, *tensor; /* without NUL at the end */
	size_t allocator_len, tensor_len;
	int64_t ts_us, bytes;
};

struct ow_timeline_options {
	size_t size;
	bool show_dataflow; /* draw arrows from producers to consumers; on by default */
	bool show_memory; /* draw tensors and the memory of each allocator (steps of TensorFlow only) */
	int64_t step;	  /* only this step; negative = all */
	bool gzip;
	/* As in ow_view_options. An event that overlaps the time range is drawn as a whole. A part of a TensorFlow
	 * step is drawn from its events. */
	int64_t time_from_ns, time_to_ns;
	int32_t rank;
	/* With show_memory: receives all changes, sorted by allocator and then by time. The struct is valid during
	 * the call. */
	void (*memory)(void *arg, const struct ow_timeline_memory *change);
	void *memory_arg;
	const char *metric; /* sampled profiles: as in ow_view_options */
	bool show_path; /* add a track with the critical path of the step, or of the one nearest the median (ow_path) */
};
OW_API void ow_timeline_options_init(struct ow_timeline_options *options);

/* Writes the events of a frozen profile as a Chrome trace. Traced steps of TensorFlow (RunMetadata) look as in
 * TensorFlow's class timeline.Timeline, several steps in one trace. */
OW_API OW_MUST_CHECK ow_status ow_timeline_write(ow_profile *profile,
						 const struct ow_timeline_options *options,
						 ow_write_fn write, void *arg,
						 struct ow_error *err);
/* The same to a file. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_timeline_write_file(ow_profile *profile,
						      const struct ow_timeline_options *options,
						      const char *path, struct ow_error *err);

/* Writes a frozen profile as TensorFlow's ProfileProto, the file profile_N of its ProfileContext. A reader of
 * that file sees the same views. */
OW_API OW_MUST_CHECK ow_status ow_tf_profile_write(ow_profile *profile, ow_write_fn write,
						   void *arg, struct ow_error *err);
/* Writes the facts about ops that are not in the graph, as TensorFlow's OpLogProto: float operations, types
 * from users, source lines. */
OW_API OW_MUST_CHECK ow_status ow_tf_op_log_write(ow_profile *profile, ow_write_fn write, void *arg,
						  struct ow_error *err);
/* The same to files. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_tf_profile_write_file(ow_profile *profile, const char *path,
							struct ow_error *err);
OW_API OW_MUST_CHECK ow_status ow_tf_op_log_write_file(ow_profile *profile, const char *path,
						       struct ow_error *err);

/* Writes facts about the inputs of a frozen profile, and what was lost, as JSON; see docs/info-json.md. */
OW_API OW_MUST_CHECK ow_status ow_info_json(ow_profile *profile, ow_write_fn write, void *arg,
					    struct ow_error *err);

/* ---- merging ---------------------------------------------------------------------------------- */

typedef enum ow_align {
	OW_ALIGN_KEEP,	   /* keep the clocks; only convert them to a common zero */
	OW_ALIGN_START,	   /* each file starts at zero */
	OW_ALIGN_SEQUENCE, /* one file after the other */
	/* ranks of one job on the clock of the lowest rank, fitted to the collectives that they share; see docs/ranks.md. Fails where that is
	 * impossible. */
	OW_ALIGN_CLOCKS
} ow_align;

struct ow_merge_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	/* Reports progress, from any thread, but one at a time. Returns false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	ow_line_fn message; /* receives one line per problem with a file; may be NULL */
	void *message_arg;
	ow_write_fn write; /* receives the output if out_path is NULL */
	void *write_arg;
	ow_align align;
	bool no_labels; /* do not add or change names of processes */
	/* Keep only some events. A regular expression must match the whole text; one of a list is enough. */
	struct ow_list keep_names, keep_categories, keep_pids;
	/* Counted from the first event of the merged trace. INT64_MIN and INT64_MAX = all. */
	int64_t keep_from_ns, keep_to_ns;
	int64_t keep_first_step, keep_last_step;
	bool redact; /* replace private names by pseudonyms, see docs/redaction.md */
};
OW_API void ow_merge_options_init(struct ow_merge_options *options);

struct ow_merge_summary {
	size_t size;
	uint64_t files, skipped_files;	/* merged files; files that are unreadable or not a trace */
	uint64_t events_in, events_out; /* events_out = events_in - filtered */
	uint64_t filtered;
	uint64_t added;	   /* process names that opwatch added; not part of events_out */
	uint64_t repaired; /* events that were not strict JSON */
	uint64_t others;   /* list elements that are not events; left out */
	uint64_t damaged, damaged_bytes, truncated_files;
	uint64_t untimed; /* times that are not numbers; left unchanged */
	uint64_t hidden;  /* values that look like environment variables; left out */
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
