/*
 * cmd_capture.c: `opwatch capture`: asks the profilers inside running jobs for a trace: the profiler service of TensorFlow 2
 * and JAX, or Kineto of PyTorch. What they send is kept as it is.
 */
#include "cli/commands/live.h"

struct capture_args {
	struct live_args live;
	struct ow_capture_options capture;
	bool kineto;
};

static bool on_wait(void *arg)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (progress_due(line))
		progress_show(line, "waiting for the trace, %.0f s", progress_seconds(line));
	return true;
}

static bool check_args(const struct args *args)
{
	const struct capture_args *own = args->own;

	if (!own->capture.address == !own->kineto)
		complain("opwatch capture: give --tf HOST:PORT or --kineto\n");
	else if (!own->live.out || is_standard_output(own->live.out))
		complain("opwatch capture: give a folder for the traces: -o DIR\n");
	else if (args->file_count && !own->kineto)
		complain("opwatch capture: unexpected argument '%s'\n", args->files[0]);
	else
		return true;
	return false;
}

static void on_file(void *arg, const char *text, size_t len)
{
	progress_clear(arg);
	printf("%.*s\n", (int)len, text);
	fflush(stdout);
}

static ow_status capture_tf(const struct capture_args *own, struct ow_error *err)
{
	struct ow_capture_summary summary = { .size = sizeof(summary) };
	ow_status status = ow_capture_tf(&own->capture, &summary, err);

	progress_clear(own->capture.keep_going_arg);
	if (status == OW_OK)
		printf("%s: %" PRIu64 " bytes\n", summary.path, summary.bytes);
	return status;
}

static int run_capture(struct args *args)
{
	struct capture_args *own = args->own;
	int64_t *pids = ARENA_ARRAY(args->arena, int64_t, args->file_count + 1);
	struct progress_line line;
	struct ow_error err = { 0 };
	ow_status status;

	if (!pids)
		return EXIT_FAILED;
	if (!check_args(args) || !live_pids(args, pids))
		return EXIT_USAGE;
	progress_begin(&line, args->terminal.err);
	own->capture.dir = own->live.out;
	own->capture.memory_limit = args->input.open.memory_limit;
	own->capture.keep_going = on_wait;
	own->capture.keep_going_arg = &line;
	if (own->live.for_ns)
		own->capture.for_ns = own->live.for_ns;
	signals_catch();
	if (own->kineto)
		status = ow_capture_kineto(&own->capture, pids, args->file_count, on_file, &line,
					   &err);
	else
		status = capture_tf(own, &err);
	progress_clear(&line);
	signals_pass_on();
	return status == OW_OK ? EXIT_GOOD : report_error(&err, status);
}

static void init_capture(void *own)
{
	ow_capture_options_init(&((struct capture_args *)own)->capture);
}

static const struct option options[] = {
	{ "tf", STORE_TEXT(struct capture_args, capture.address), .argument = "HOST:PORT",
	  .help = "ask the profiler service of this TensorFlow or JAX job" },
	{ "kineto", STORE_FLAG(struct capture_args, kineto),
	  .help = "ask PyTorch jobs that were started with KINETO_USE_DAEMON=1" },
	LIVE_FOR("trace for this long: 2s, 500ms", "2s"),
	LIVE_OUT("DIR", "write the traces to this folder"),
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_capture = {
	.name = "capture",
	.usage = "--tf HOST:PORT|--kineto [PID…] [--for 2s] -o DIR",
	.summary = "get traces from the profilers inside running jobs",
	.help = "A TensorFlow or JAX job has a profiler service when it calls\n"
		"tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009).\n"
		"What it sends is kept as it is: DIR/HOST_PORT.TIME.xplane.pb\n"
		"\n"
		"With --kineto all PyTorch jobs of this host that were started with\n"
		"KINETO_USE_DAEMON=1 (or the given PIDs) write their traces to DIR. They ask for\n"
		"work every few seconds; opwatch waits for them for up to a minute.\n",
	.examples = { "opwatch capture --tf localhost:6009 --for 2s -o traces",
		      "opwatch capture --kineto --for 500ms -o traces" },
	.own = OPTIONS(options),
	.own_size = sizeof(struct capture_args),
	.init = init_capture,
	.run = run_capture,
};
