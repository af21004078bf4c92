/*
 * cmd_capture.c: asks the profiler service of a running TensorFlow 2 or JAX job for a trace, and keeps what it sends.
 */
#include "cli/command.h"
#include "cli/piped.h"
#include "cli/progress.h"
#include "cli/signals.h"

static bool on_wait(void *arg)
{
	struct progress_line *line = arg;

	if (interrupted)
		return false;
	if (progress_due(line))
		progress_show(line, "waiting for the trace, %.0f s", progress_seconds(line));
	return true;
}

static bool check(const struct args *args)
{
	if (!args->capture.address == !args->kineto)
		complain("opwatch capture: of which job? Give --tf HOST:PORT, or --kineto\n");
	else if (!args->out_file || is_standard_output(args->out_file))
		complain("opwatch capture: into which folder? Give -o DIR\n");
	else if (args->file_count && !args->kineto)
		complain("opwatch capture: '%s' is too much\n", args->files[0]);
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

static ow_status capture_tf(const struct args *args, struct ow_error *err)
{
	struct ow_capture_summary summary = { .size = sizeof(summary) };
	ow_status status = ow_capture_tf(&args->capture, &summary, err);

	progress_clear(args->capture.progress_arg);
	if (status == OW_OK)
		printf("%s: %" PRIu64 " bytes\n", summary.path, summary.bytes);
	return status;
}

static ow_status capture_kineto(const struct args *args, struct ow_error *err)
{
	int64_t *pids = ARENA_ARRAY(args->arena, int64_t, args->file_count + 1);

	for (size_t i = 0; pids && i < args->file_count; i++)
		if (!str_to_i64(str_from(args->files[i]), &pids[i]) || pids[i] <= 0) {
			snprintf(err->text, sizeof(err->text), "'%s' is no process id",
				 args->files[i]);
			return OW_E_USAGE;
		}
	if (!pids)
		return OW_E_NO_MEMORY;
	return ow_capture_kineto(&args->capture, pids, args->file_count, on_file,
				 args->capture.progress_arg, err);
}

static int run(struct args *args)
{
	struct progress_line line;
	struct ow_error err = { 0 };
	ow_status status;

	if (!check(args))
		return EXIT_USAGE;
	progress_begin(&line, args->terminal.err);
	args->capture.dir = args->out_file;
	args->capture.memory_limit = args->open.memory_limit;
	args->capture.progress = on_wait;
	args->capture.progress_arg = &line;
	if (args->stacks.for_ns)
		args->capture.for_ns = args->stacks.for_ns;
	signals_catch();
	status = args->kineto ? capture_kineto(args, &err) : capture_tf(args, &err);
	progress_clear(&line);
	signals_pass_on();
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	return EXIT_GOOD;
}

const struct command cmd_capture = {
	.name = "capture",
	.usage = "--tf HOST:PORT|--kineto [PID…] [--for 2s] -o DIR",
	.summary = "traces from the profilers in running jobs",
	.help = "The job has its profiler service at a port when it calls\n"
		"tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009).\n"
		"What it sends is kept as it is: DIR/HOST_PORT.TIME.xplane.pb\n\n"
		"With --kineto all PyTorch jobs of this host that were started with\n"
		"KINETO_USE_DAEMON=1 (or those named) write their traces into DIR. They ask every\n"
		"few seconds what to do: this waits for them, a minute at most.\n",
	.flags = "out for memory-limit",
	.out = "a folder: the traces go there",
	.run = run,
	.takes_job = true,
};
