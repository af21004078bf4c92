/*
 * args.c: the flags of opwatch's command line and what each of them sets. The words of the command line are taken apart
 * in args_parse.c; options of the views are in options.c; where the output goes is found out in args_output.c.
 */
#include "cli/args.h"
#include "cli/values.h"

#include <stdarg.h>
#include <strings.h>

enum flag_id {
	FLAG_JSON,
	FLAG_CSV,
	FLAG_TO,
	FLAG_OUT,
	FLAG_LIMIT,
	FLAG_TIME_RANGE,
	FLAG_RANK,
	FLAG_STEP_MARKER,
	FLAG_FULL_NAMES,
	FLAG_METRIC,
	FLAG_STYLE,
	FLAG_STRICT,
	FLAG_REDACT,
	FLAG_NO_PAGER,
	FLAG_ESTIMATE,
	FLAG_VERIFY,
	FLAG_SHOW_DATAFLOW,
	FLAG_SHOW_MEMORY,
	FLAG_ALIGN,
	FLAG_KEEP_NAME,
	FLAG_KEEP_CATEGORY,
	FLAG_KEEP_PID,
	FLAG_KEEP_STEP,
	FLAG_NO_LABELS,
	FLAG_NAME,
	FLAG_PARAM,
	FLAG_QUERIES,
	FLAG_SHOW,
	FLAG_TABLE,
	FLAG_PARTITION,
	FLAG_SORT,
	FLAG_COMPRESS,
	FLAG_SPLIT,
	FLAG_BIGQUERY,
	FLAG_OVERWRITE,
	FLAG_CLUSTER,
	FLAG_NODES,
	FLAG_REPLACE,
	FLAG_CONNECTIONS,
	FLAG_BATCH_ROWS,
	FLAG_RETRY_FOR,
	FLAG_PASSWORD_FILE,
	FLAG_RING,
	FLAG_WAIT_CHILDREN,
	FLAG_MAX_SIZE,
	FLAG_ON,
	FLAG_MEMORY_LIMIT,
	FLAG_INPUT_SHAPE,
	FLAG_CHECKPOINT,
	FLAG_FORMAT,
	FLAG_NO_INFER,
	FLAG_RUN,
	FLAG_ONE_RUN,
	FLAG_FILE,
	FLAG_PARQUET,
	FLAG_ALLOW_IO,
	FLAG_TEMP_DIR,
	FLAG_THREADS,
	FLAG_HZ,
	FLAG_STACKS,
	FLAG_NATIVE,
	FLAG_FOR,
	FLAG_NO_CHILDREN,
	FLAG_TF,
	FLAG_KINETO,
	FLAG_PEAK,
	FLAG_JOB,
	FLAG_LAST,
	FLAG_SOCKET,
	FLAG_DIR,
	FLAG_TOTAL_SIZE,
	FLAG_METRICS,
	FLAG_ALL_USERS,
	FLAG_NO_KINETO,
	FLAG_ENV,
	FLAG_DETACH,
	FLAG_ONCE,
	FLAG_ON_SLOWDOWN,
	FLAG_ON_STALL,
	FLAG_VERBOSE,
	FLAG_VERSION,
	FLAG_HELP
};

#define BOOLEAN FLAG_BOOLEAN

const struct flag flag_table[] = {
	{ "json", 0, FLAG_JSON, NULL, "print JSON" },
	{ "csv", 0, FLAG_CSV, NULL, "print comma-separated values" },
	{ "to", 't', FLAG_TO, "OUTPUT", "another output: see 'opwatch formats'" },
	{ "out", 'o', FLAG_OUT, "FILE", "write there instead of to standard output" },
	{ "limit", 'n', FLAG_LIMIT, "N", "at most N rows; 0 = all" },
	{ "time-range", 0, FLAG_TIME_RANGE, "A:B", "only this part: 100:250 (ms), 1.5s:2s" },
	{ "rank", 0, FLAG_RANK, "N", "only what this rank recorded" },
	{ "step-marker", 0, FLAG_STEP_MARKER, "REGEX",
	  "traces: slices with such a name are the steps" },
	{ "full-names", 0, FLAG_FULL_NAMES, NULL, "kernels by their whole name" },
	{ "metric", 0, FLAG_METRIC, "NAME", "samples: what to show; see 'opwatch metrics'" },
	{ "style", 0, FLAG_STYLE, "WORDS", "samples: inverted, left-heavy, kernel, ..." },
	{ "peak", 0, FLAG_PEAK, "PEAK", "roofline: of the device: A100, or 312T:2.04T" },
	{ "checkpoint", 0, FLAG_CHECKPOINT, "PREFIX", "a checkpoint, for --select tensor_value" },
	{ "input-shape", 0, FLAG_INPUT_SHAPE, "NAME=100x784",
	  "shape of a placeholder (repeatable)" },
	{ "no-infer", 0, FLAG_NO_INFER, NULL, "do not compute shapes and float operations" },
	{ "format", 0, FLAG_FORMAT, "NAME", "read all files as this format" },
	{ "redact", 0, FLAG_REDACT, NULL, "replace names and paths by hashes" },
	{ "memory-limit", 0, FLAG_MEMORY_LIMIT, "SIZE", "refuse to use more: 500M, 8G" },
	{ "estimate", 0, FLAG_ESTIMATE, NULL, "size, events and memory, without loading" },
	{ "verify", 0, FLAG_VERIFY, NULL, "info: check the checksums of an opwatch file" },
	{ "show-dataflow", 0, FLAG_SHOW_DATAFLOW, BOOLEAN,
	  "timelines: arrows to consumers (default: true)" },
	{ "show-memory", 0, FLAG_SHOW_MEMORY, BOOLEAN,
	  "timelines: tensors and memory (default: false)" },
	{ "align", 0, FLAG_ALIGN, "HOW", "merge: keep clocks, start at zero, in sequence" },
	{ "keep-name", 0, FLAG_KEEP_NAME, "REGEX",
	  "merge: only events of such names (repeatable)" },
	{ "keep-category", 0, FLAG_KEEP_CATEGORY, "REGEX", "merge: ... of such categories" },
	{ "keep-pid", 0, FLAG_KEEP_PID, "LIST", "merge: ... of these pids: 3,7 or a regex" },
	{ "keep-time", 0, FLAG_TIME_RANGE, "A:B", "merge: the same as --time-range" },
	{ "keep-step", 0, FLAG_KEEP_STEP, "N[-M]", "merge: only these steps" },
	{ "no-labels", 0, FLAG_NO_LABELS, NULL, "merge: leave the names of processes alone" },
	{ "name", 0, FLAG_NAME, "NAME", "one run of all files; or repeated, of each run" },
	{ "table", 0, FLAG_TABLE, "LIST", "export and push only these: event,op" },
	{ "partition", 0, FLAG_PARTITION, "BY", "export: folders by run, or by run and step" },
	{ "sort", 0, FLAG_SORT, "COLUMN", "export: rows by this column: ts" },
	{ "compress", 0, FLAG_COMPRESS, "HOW", "export: gzip, zstd or none" },
	{ "split", 0, FLAG_SPLIT, "SIZE", "export: another file after about so many bytes" },
	{ "bigquery", 0, FLAG_BIGQUERY, NULL, "export: for BigQuery, with schemas and load.sh" },
	{ "overwrite", 0, FLAG_OVERWRITE, NULL, "export: replace what is there" },
	{ "run", 0, FLAG_RUN, "NAME=PATH,…", "these files are a run (repeatable)" },
	{ "one-run", 0, FLAG_ONE_RUN, NULL, "all files are one run" },
	{ "file", 'f', FLAG_FILE, "FILE", "sql: the query is in there; - is stdin" },
	{ "parquet", 0, FLAG_PARQUET, NULL, "sql: write Parquet, with -o FILE" },
	{ "allow-io", 0, FLAG_ALLOW_IO, NULL, "sql: queries may read and write files" },
	{ "temp-dir", 0, FLAG_TEMP_DIR, "DIR", "sql: for what does not fit in memory" },
	{ "threads", 0, FLAG_THREADS, "N", "sql: threads of a query (default: all)" },
	{ "param", 0, FLAG_PARAM, "NAME=VALUE", "ask: a parameter of the query (repeatable)" },
	{ "queries", 0, FLAG_QUERIES, "DIR", "ask: more queries, a file NAME.sql each" },
	{ "show", 0, FLAG_SHOW, NULL, "ask: print the query instead of running it" },
	{ "cluster", 0, FLAG_CLUSTER, "NAME", "push: to all shards of this cluster" },
	{ "nodes", 0, FLAG_NODES, "LIST", "push: the cluster's nodes: HOST[:PORT], ..." },
	{ "replace", 0, FLAG_REPLACE, NULL, "push: a run of that name and other content" },
	{ "connections", 0, FLAG_CONNECTIONS, "N", "push: at once (default: 4)" },
	{ "batch-rows", 0, FLAG_BATCH_ROWS, "N", "push: rows of a batch (default: 1000000)" },
	{ "retry-for", 0, FLAG_RETRY_FOR, "N", "push: seconds a node may be away (120)" },
	{ "ring", 0, FLAG_RING, "N", "record: room for N records per thread (16384)" },
	{ "wait-children", 0, FLAG_WAIT_CHILDREN, NULL, "record: until what it started ends, too" },
	{ "max-size", 0, FLAG_MAX_SIZE, "SIZE", "recordings: of the file, or a job's ring" },
	{ "job", 0, FLAG_JOB, "NAME", "running jobs: this one of the daemon's" },
	{ "last", 0, FLAG_LAST, "TIME", "running jobs: only what they did last: 60s" },
	{ "socket", 0, FLAG_SOCKET, "PATH", "running jobs: of the daemon" },
	{ "dir", 0, FLAG_DIR, "DIR", "daemon: rings of the jobs go there" },
	{ "total-size", 0, FLAG_TOTAL_SIZE, "SIZE", "daemon: all rings grow no larger (4G)" },
	{ "metrics", 0, FLAG_METRICS, "PORT", "daemon: http://127.0.0.1:PORT/metrics" },
	{ "all-users", 0, FLAG_ALL_USERS, NULL, "daemon: of root: users see their own jobs" },
	{ "no-kineto", 0, FLAG_NO_KINETO, NULL, "daemon: leave dynolog's socket alone" },
	{ "env", 0, FLAG_ENV, NULL, "jobs: what a job needs in its environment" },
	{ "detach", 0, FLAG_DETACH, NULL, "attach: take the hooks out of --job NAME" },
	{ "on-slowdown", 0, FLAG_ON_SLOWDOWN, "PART",
	  "recordings: say and save why steps grow: 20%" },
	{ "on-stall", 0, FLAG_ON_STALL, "TIME", "recordings: ... why no step comes for: 30s" },
	{ "once", 0, FLAG_ONCE, NULL, "top: print it once, as text" },
	{ "on", 0, FLAG_ON, "ADDRESS", "runs on this ClickHouse server (sql, ask)" },
	{ "password-file", 0, FLAG_PASSWORD_FILE, "FILE", "the server's password, in a file" },
	{ "hz", 0, FLAG_HZ, "N", "stacks: samples per second (default: 100)" },
	{ "stacks", 0, FLAG_STACKS, "[=HZ]", "recordings: Python stacks, too (100 Hz)" },
	{ "for", 0, FLAG_FOR, "TIME", "running jobs: how long: 10s, 500ms, 2m" },
	{ "tf", 0, FLAG_TF, "HOST:PORT", "capture: the profiler of this job" },
	{ "kineto", 0, FLAG_KINETO, NULL, "capture: PyTorch jobs with KINETO_USE_DAEMON=1" },
	{ "native", 0, FLAG_NATIVE, NULL, "stacks: native ones, too, of any program" },
	{ "no-children", 0, FLAG_NO_CHILDREN, NULL, "stacks: not what the processes start" },
	{ "strict", 0, FLAG_STRICT, NULL, "exit with 3 when something was damaged" },
	{ "no-pager", 0, FLAG_NO_PAGER, NULL, "never start a pager" },
	{ "verbose", 'v', FLAG_VERBOSE, NULL, "show every note" },
	{ "version", 'V', FLAG_VERSION, NULL, "version, and which optional parts were found" },
	{ "help", 'h', FLAG_HELP, NULL, "help on the command" },
};

const size_t flag_count = ARRAY_COUNT(flag_table);

bool usage_error(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("opwatch: %s\n", text);
	return false;
}

static bool parse_align(const char *word, ow_align *align)
{
	static const char *const names[] = { [OW_ALIGN_KEEP] = "keep",
					     [OW_ALIGN_START] = "start",
					     [OW_ALIGN_SEQUENCE] = "sequence" };

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strcmp(word, names[i]) == 0) {
			*align = (ow_align)i;
			return true;
		}
	return usage_error("--align takes keep, start or sequence, not '%s'", word);
}

/* 5 or 5-7. */
static bool parse_steps(const char *word, struct ow_merge_options *merge)
{
	struct str text = str_from(word);
	size_t dash = str_find_char(str_skip(text, 1), '-');
	struct str last = dash == STR_NONE ? text : str_skip(text, dash + 2);

	text = dash == STR_NONE ? text : str_first(text, dash + 1);
	if (str_to_i64(text, &merge->keep_first_step) && str_to_i64(last, &merge->keep_last_step) &&
	    merge->keep_first_step <= merge->keep_last_step)
		return true;
	return usage_error("--keep-step takes a step or a range such as 5-7, not '%s'", word);
}

static bool set_export_flag(struct args *args, const struct flag *flag, const char *value)
{
	struct ow_export_options *o = &args->export;

	switch ((enum flag_id)flag->id) {
	case FLAG_TABLE:
		return value_words(args->arena, &o->tables, value);
	case FLAG_PARTITION:
		o->partition = value;
		return true;
	case FLAG_SORT:
		o->sort = value;
		return true;
	case FLAG_COMPRESS:
		o->compress = value;
		return true;
	case FLAG_SPLIT:
		if (!value_size(str_from(value), &o->file_bytes) || !o->file_bytes)
			return usage_error("--split takes a size such as 256M, not '%s'", value);
		return true;
	case FLAG_BIGQUERY:
		return o->bigquery = true;
	default:
		return o->overwrite = true;
	}
}

/* A number of at least 1. */
static bool parse_count(const struct flag *flag, const char *value, uint32_t most, uint32_t *to)
{
	int64_t number;

	if (!str_to_i64(str_from(value), &number) || number < 1 || number > most)
		return usage_error("--%s takes a number from 1 to %u, not '%s'", flag->name, most,
				   value);
	*to = (uint32_t)number;
	return true;
}

static bool set_push_flag(struct args *args, const struct flag *flag, const char *value)
{
	struct ow_push_options *push = &args->push;
	uint32_t seconds = 0;

	switch ((enum flag_id)flag->id) {
	case FLAG_CLUSTER:
		push->cluster = value;
		return true;
	case FLAG_NODES:
		return value_words(args->arena, &push->nodes, value);
	case FLAG_REPLACE:
		push->replace = true;
		return true;
	case FLAG_CONNECTIONS:
		return parse_count(flag, value, 32, &push->connections);
	case FLAG_BATCH_ROWS:
		return parse_count(flag, value, 100000000, &push->batch_rows);
	case FLAG_RETRY_FOR:
		if (!parse_count(flag, value, 1000000, &seconds))
			return false;
		push->retry_ms = seconds * 1000;
		return true;
	default:
		return false;
	}
}

static bool set_record_flag(struct args *args, const struct flag *flag, const char *value)
{
	struct ow_record_options *record = &args->record;

	if (flag->id == FLAG_RING)
		return parse_count(flag, value, 1u << 24, &record->ring_records);
	if (flag->id == FLAG_WAIT_CHILDREN)
		return record->wait_children = true;
	if (!value_size(str_from(value), &record->file_limit) || !record->file_limit)
		return usage_error("--max-size takes a size such as 500M, not '%s'", value);
	return true;
}

static bool set_attention_flag(struct args *args, const struct flag *flag, const char *value)
{
	if (flag->id == FLAG_ON_SLOWDOWN)
		return value_part(str_from(value), &args->record.on_slowdown) ||
		       usage_error("--on-slowdown takes a part such as 20%% or 0.2, not '%s'",
				   value);
	return (value_duration(str_from(value), &args->record.on_stall_ns) &&
		args->record.on_stall_ns > 0) ||
	       usage_error("--on-stall takes a time such as 30s or 2m, not '%s'", value);
}

static bool set_daemon_flag(struct args *args, const struct flag *flag, const char *value)
{
	struct ow_daemon_options *o = &args->daemon;
	int64_t number;

	switch ((enum flag_id)flag->id) {
	case FLAG_JOB:
		if (!*value)
			return usage_error("--job takes the name of a job; see 'opwatch jobs'");
		args->job = value;
		return true;
	case FLAG_LAST:
		if (!value_duration(str_from(value), &args->last_ns) || !args->last_ns)
			return usage_error("--last takes a time such as 60s or 5m, not '%s'",
					   value);
		return true;
	case FLAG_SOCKET:
		o->socket = args->socket = value;
		return true;
	case FLAG_DIR:
		o->dir = value;
		return true;
	case FLAG_TOTAL_SIZE:
		if (!value_size(str_from(value), &o->total_limit) || !o->total_limit)
			return usage_error("--total-size takes a size such as 4G, not '%s'", value);
		return true;
	case FLAG_METRICS:
		if (!str_to_i64(str_from(value), &number) || number < 0 || number > 65535)
			return usage_error("--metrics takes the number of a port, not '%s'", value);
		o->metrics_port = (int32_t)number;
		return true;
	case FLAG_ALL_USERS:
		return o->all_users = true;
	case FLAG_NO_KINETO:
		return o->no_kineto = true;
	case FLAG_ENV:
		return args->env = true;
	default:
		return args->detach = true;
	}
}

static bool set_live_flag(struct args *args, const struct flag *flag, const char *value)
{
	switch ((enum flag_id)flag->id) {
	case FLAG_HZ:
		return parse_count(flag, value, 10000, &args->stacks.hz);
	case FLAG_NATIVE:
		return args->stacks.native = true;
	case FLAG_STACKS:
		args->record_stacks = true;
		return !*value || parse_count(flag, value, 10000, &args->stacks.hz);
	case FLAG_FOR:
		if (!value_duration(str_from(value), &args->stacks.for_ns))
			return usage_error("--for takes a time such as 10s, 500ms or 2m, not '%s'",
					   value);
		return true;
	case FLAG_TF:
		args->capture.address = value;
		return true;
	case FLAG_KINETO:
		return args->kineto = true;
	default:
		return args->stacks.no_children = true;
	}
}

/* --to names an output, or a server. */
static bool set_to(struct args *args, const char *value)
{
	if (strstr(value, "://"))
		args->push_to = value;
	else
		args->sink = args->export.format = value;
	return true;
}

/* Words of the views and of the sinks: each takes those that it knows. */
static bool set_style(struct args *args, const char *value)
{
	static const char *const words[] = { "pid",	     "tid",   "kernel",	  "jit",
					     "all",	     "addrs", "lines",	  "total",
					     "icicle",	     "flame", "inverted", "left-heavy",
					     "stackcollapse" };
	struct str rest = str_from(value), word;

	while (str_split(&rest, ',', &word)) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_COUNT(words); i++)
			known = known || str_eq(word, str_from(words[i]));
		if (!known)
			return usage_error(
				"--style takes pid, tid, kernel, jit, all, addrs, lines, "
				"total, stackcollapse, icicle, flame, inverted and "
				"left-heavy, not '%.*s'",
				STR_ARG(word));
	}
	args->options.view.style = value;
	return true;
}

bool flag_set(struct args *args, const struct flag *flag, const char *value)
{
	int64_t number;

	switch ((enum flag_id)flag->id) {
	case FLAG_JSON:
		args->sink = "json";
		return true;
	case FLAG_CSV:
		args->sink = "csv";
		return true;
	case FLAG_TO:
		return set_to(args, value);
	case FLAG_OUT:
		args->out_file = value;
		return *value || usage_error("--out needs a file");
	case FLAG_LIMIT:
		if (!str_to_i64(str_from(value), &number) || number < 0 || number > UINT32_MAX)
			return usage_error("--limit takes a number of rows, not '%s'", value);
		args->options.view.limit = (uint32_t)number;
		args->limit_given = true;
		return true;
	case FLAG_TIME_RANGE:
		if (!value_time_range(str_from(value), &args->options.view.time_from_ns,
				      &args->options.view.time_to_ns))
			return usage_error(
				"--time-range takes a begin and an end such as 100:250 (ms), "
				"1.5s:2s or 300us:, not '%s'",
				value);
		return true;
	case FLAG_RANK:
		if (!str_to_i64(str_from(value), &number) || number < 0 || number > INT32_MAX)
			return usage_error("--rank takes a number, not '%s'", value);
		args->options.view.rank = (int32_t)number;
		return true;
	case FLAG_STEP_MARKER:
		args->open.step_marker = value;
		return true;
	case FLAG_FULL_NAMES:
		args->options.view.full_names = true;
		return true;
	case FLAG_METRIC:
		args->options.view.metric = value;
		return true;
	case FLAG_STYLE:
		return set_style(args, value);
	case FLAG_PEAK:
		args->options.view.peak = value;
		return true;
	case FLAG_STRICT:
		args->strict = true;
		return true;
	case FLAG_REDACT:
		args->open.redact = true;
		return true;
	case FLAG_NO_PAGER:
		args->no_pager = true;
		return true;
	case FLAG_ESTIMATE:
		args->estimate = true;
		return true;
	case FLAG_VERIFY:
		args->verify = true;
		return true;
	case FLAG_SHOW_DATAFLOW:
		args->hide_dataflow = strcasecmp(value, "false") == 0;
		return true;
	case FLAG_SHOW_MEMORY:
		args->show_memory = strcasecmp(value, "false") != 0;
		return true;
	case FLAG_ALIGN:
		return parse_align(value, &args->merge.align);
	case FLAG_KEEP_NAME:
		return value_word(args->arena, &args->merge.keep_names, value);
	case FLAG_KEEP_CATEGORY:
		return value_word(args->arena, &args->merge.keep_categories, value);
	case FLAG_KEEP_PID:
		return value_words(args->arena, &args->merge.keep_pids, value);
	case FLAG_KEEP_STEP:
		return parse_steps(value, &args->merge);
	case FLAG_NO_LABELS:
		args->merge.no_labels = true;
		return true;
	case FLAG_NAME:
		return value_word(args->arena, &args->names, value);
	case FLAG_PARAM:
		return value_word(args->arena, &args->params, value);
	case FLAG_QUERIES:
		return value_word(args->arena, &args->query_dirs, value);
	case FLAG_SHOW:
		return args->show = true;
	case FLAG_TABLE:
	case FLAG_PARTITION:
	case FLAG_SORT:
	case FLAG_COMPRESS:
	case FLAG_SPLIT:
	case FLAG_BIGQUERY:
	case FLAG_OVERWRITE:
		return set_export_flag(args, flag, value);
	case FLAG_CLUSTER:
	case FLAG_NODES:
	case FLAG_REPLACE:
	case FLAG_CONNECTIONS:
	case FLAG_BATCH_ROWS:
	case FLAG_RETRY_FOR:
		return set_push_flag(args, flag, value);
	case FLAG_RING:
	case FLAG_WAIT_CHILDREN:
	case FLAG_MAX_SIZE:
		return set_record_flag(args, flag, value);
	case FLAG_HZ:
	case FLAG_STACKS:
	case FLAG_NATIVE:
	case FLAG_FOR:
	case FLAG_NO_CHILDREN:
	case FLAG_TF:
	case FLAG_KINETO:
		return set_live_flag(args, flag, value);
	case FLAG_JOB:
	case FLAG_LAST:
	case FLAG_SOCKET:
	case FLAG_DIR:
	case FLAG_TOTAL_SIZE:
	case FLAG_METRICS:
	case FLAG_ALL_USERS:
	case FLAG_NO_KINETO:
	case FLAG_ENV:
	case FLAG_DETACH:
		return set_daemon_flag(args, flag, value);
	case FLAG_ONCE:
		return args->once = true;
	case FLAG_ON_SLOWDOWN:
	case FLAG_ON_STALL:
		return set_attention_flag(args, flag, value);
	case FLAG_ON:
		args->on = value;
		return true;
	case FLAG_PASSWORD_FILE:
		args->password_file = value;
		return true;
	case FLAG_MEMORY_LIMIT:
		if (!value_size(str_from(value), &args->open.memory_limit))
			return usage_error(
				"--memory-limit takes a size such as 500M or 8G, not '%s'", value);
		return true;
	case FLAG_RUN:
		return value_word(args->arena, &args->given_runs, value);
	case FLAG_ONE_RUN:
		args->one_run = true;
		return true;
	case FLAG_FILE:
		args->query_file = value;
		return true;
	case FLAG_PARQUET:
		args->parquet = true;
		return true;
	case FLAG_ALLOW_IO:
		args->allow_io = true;
		return true;
	case FLAG_TEMP_DIR:
		args->temp_dir = value;
		return true;
	case FLAG_THREADS:
		if (!str_to_i64(str_from(value), &number) || number < 1 || number > 1024)
			return usage_error("--threads takes a number from 1 on, not '%s'", value);
		args->threads = (uint32_t)number;
		return true;
	case FLAG_INPUT_SHAPE:
		return value_word(args->arena, &args->open.input_shapes, value);
	case FLAG_CHECKPOINT:
		args->checkpoint = value;
		return true;
	case FLAG_FORMAT:
		args->format = value;
		return true;
	case FLAG_NO_INFER:
		args->open.infer = false;
		return true;
	case FLAG_VERBOSE:
		args->verbose = true;
		return true;
	case FLAG_VERSION:
		args->version = true;
		return true;
	case FLAG_HELP:
		args->help = true;
		return true;
	}
	return false;
}

bool flag_of_ask(const struct flag *flag)
{
	static const enum flag_id own[] = { FLAG_JSON,	  FLAG_CSV,	      FLAG_TO,
					    FLAG_OUT,	  FLAG_LIMIT,	      FLAG_STRICT,
					    FLAG_REDACT,  FLAG_NO_PAGER,      FLAG_NAME,
					    FLAG_PARAM,	  FLAG_QUERIES,	      FLAG_SHOW,
					    FLAG_FORMAT,  FLAG_HELP,	      FLAG_STEP_MARKER,
					    FLAG_VERBOSE, FLAG_VERSION,	      FLAG_MEMORY_LIMIT,
					    FLAG_RUN,	  FLAG_ONE_RUN,	      FLAG_TEMP_DIR,
					    FLAG_ON,	  FLAG_PASSWORD_FILE, FLAG_JOB,
					    FLAG_LAST,	  FLAG_SOCKET };

	for (size_t i = 0; i < ARRAY_COUNT(own); i++)
		if (flag->id == own[i])
			return true;
	return false;
}
