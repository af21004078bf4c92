/*
 * cmd_capture.c: asks the profiler service of a running TensorFlow 2 or JAX job for a trace, and keeps what it sends.
 */
#include "cli/command.h"
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
	if (!args->capture.address)
		complain("opwatch capture: of which job? Give --tf HOST:PORT\n");
	else if (!args->out_file)
		complain("opwatch capture: into which folder? Give -o DIR\n");
	else if (args->file_count)
		complain("opwatch capture: '%s' is too much\n", args->files[0]);
	else
		return true;
	return false;
}

static int run(struct args *args)
{
	struct ow_capture_summary summary = { .size = sizeof(summary) };
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
	status = ow_capture_tf(&args->capture, &summary, &err);
	progress_clear(&line);
	signals_pass_on();
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	printf("%s: %" PRIu64 " bytes\n", summary.path, summary.bytes);
	return EXIT_GOOD;
}

const struct command cmd_capture = {
	.name = "capture",
	.usage = "--tf HOST:PORT [--for 2s] -o DIR",
	.summary = "a trace of a running TensorFlow 2 or JAX job, from its profiler",
	.help = "The job has its profiler service at a port when it calls\n"
		"tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009).\n"
		"What it sends is kept as it is: DIR/HOST_PORT.TIME.xplane.pb\n",
	.run = run,
};
