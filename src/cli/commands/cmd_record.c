/*
 * cmd_record.c: `opwatch record`: starts a program under the recorder. The program has the terminal; messages go to stderr
 * when it has ended, and its exit status becomes ours. With --job the daemon records; with --last it cuts what a job did
 * last out of the daemon's ring. Processes that run already are recorded by cmd_attach.c.
 */
#include "cli/commands/live.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

struct record_args {
	struct live_args live;
	int64_t last_ns;
	bool system, no_waits;
	uint32_t hz;
};

static void print_system(const char *path, const struct ow_system_summary *s)
{
	complain("opwatch: %s: %.1f s of %u processor%s: %" PRIu64 " samples of running threads, "
		 "%" PRIu64 " waits, %u processes; sampling used %.2f %% of one CPU",
		 path, (double)s->elapsed_ns / 1e9, s->cpus, s->cpus == 1 ? "" : "s", s->samples,
		 s->waits, s->processes,
		 s->elapsed_ns ? 100.0 * (double)s->cpu_ns / (double)s->elapsed_ns : 0.0);
	if (s->lost)
		complain("; %" PRIu64 " records lost", s->lost);
	complain("\n");
}

static int save_system(const struct record_args *own, uint64_t memory_limit, const char *path,
		       const char *name)
{
	struct ow_system_summary summary = { .size = sizeof(summary) };
	struct ow_system_options options;
	struct ow_error err = { 0 };
	ow_profile *profile;
	ow_status status;

	ow_system_options_init(&options);
	options.hz = own->hz ? own->hz : options.hz;
	options.for_ns = own->live.for_ns;
	options.no_waits = own->no_waits;
	options.memory_limit = memory_limit;
	options.keep_going = live_keep_going;
	signals_catch();
	status = ow_record_system(&options, &profile, &summary, &err);
	if (status == OW_OK) {
		status = ow_profile_save(profile, path, NULL, &err);
		ow_profile_free(profile);
	}
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	print_system(name, &summary);
	return EXIT_GOOD;
}

/* Samples all processes through the kernel; nothing is loaded into them. */
static int record_system(const struct args *args, const char *path)
{
	const struct record_args *own = args->own;
	struct piped piped;
	int code;

	if (own->live.job || own->last_ns || args->file_count) {
		complain("opwatch record: --system records all processes: no program, --job or "
			 "--last\n");
		return EXIT_USAGE;
	}
	if (!path)
		return EXIT_FAILED;
	code = piped_begin(&piped, args, &path);
	if (code != EXIT_GOOD)
		return code;
	code = save_system(own, args->input.open.memory_limit, path, piped_name(&piped, path));
	return piped_end(&piped, code);
}

static int cut_to(const struct record_args *own, const char *path, const char *name)
{
	struct ow_cut_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { 0 };
	ow_status status =
		ow_job_cut(own->live.socket, own->live.job, own->last_ns, path, &summary, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	print_cut(name, "the last ", own->live.job, &summary);
	return EXIT_GOOD;
}

/* Saves the end of the ring that the daemon keeps for a job. */
static int cut(const struct args *args, const char *path)
{
	const struct record_args *own = args->own;
	struct piped piped;
	int code;

	if (!own->live.job || args->file_count) {
		complain("opwatch record: --last needs --job, and no program: opwatch record "
			 "--last 60s --job NAME -o x.opw\n");
		return EXIT_USAGE;
	}
	if (!path)
		return EXIT_FAILED;
	code = piped_begin(&piped, args, &path);
	if (code != EXIT_GOOD)
		return code;
	if (!piped.file.path)
		signals_guard_cut(path, NULL);
	code = cut_to(own, path, piped_name(&piped, path));
	if (!piped.file.path)
		signals_guard_end();
	return piped_end(&piped, code);
}

/* Replaces this process by the program, which reports to the daemon. */
static int run_under_daemon(struct args *args)
{
	const struct live_args *live = args->own;
	struct ow_error err = { 0 };
	ow_status status;

	if (live->record.on_slowdown > 0 || live->record.on_stall_ns || live->stacks ||
	    live->record.wait_children) {
		complain("opwatch record: with --job and without -o the daemon records. Give "
			 "--on-slowdown,\n--on-stall and --stacks to 'opwatch daemon'; leave out "
			 "--wait-children: the daemon\nalways records processes that outlive the "
			 "program\n");
		return EXIT_USAGE;
	}
	status = ow_record_job(args->files, live->socket, live->job, &live->record, &err);
	complain("opwatch: %s\n", err.text);
	if (strncmp(err.text, args->files[0], strlen(args->files[0])) == 0)
		return status == OW_E_NOT_FOUND ? 127 : 126; /* exit codes as in shells */
	return EXIT_FAILED;
}

/* Runs the program in place of this process if opwatch cannot record it. */
static int run_unrecorded(const struct args *args, const struct ow_error *why)
{
	const char *program = args->files[0];

	complain("opwatch: %s; the program runs unrecorded (--must-record makes this an error)\n",
		 why->text);
	signal(SIGPIPE, SIG_DFL); /* opwatch ignores this signal, but the program must not */
	signal(SIGXFSZ, SIG_DFL);
	execvp(program, (char *const *)args->files);
	complain("opwatch: %s: %s\n", program, strerror(errno));
	return errno == ENOENT ? 127 : 126; /* exit codes as in shells */
}

static int run_record(struct args *args)
{
	struct record_args *own = args->own;
	struct live_args *live = &own->live;
	struct ow_record_summary summary = { .size = sizeof(summary) };
	const char *path = live->out ? live->out : recording_name(args->arena);
	struct ow_error err = { 0 };
	ow_status status;

	if (own->system)
		return record_system(args, path);
	if (own->hz || own->no_waits || live->for_ns) {
		complain("opwatch record: --for, --hz and --no-waits are for --system\n");
		return EXIT_USAGE;
	}
	if (own->last_ns)
		return cut(args, path);
	if (!args->file_count) {
		complain("opwatch record: no program given: opwatch record -o x.opw -- python3 "
			 "train.py\n");
		return EXIT_USAGE;
	}
	if ((live->job || live->socket) && !live->out)
		return run_under_daemon(args);
	if (is_standard_output(path)) {
		complain("opwatch record: the program uses standard output; give the recording a "
			 "name: -o x.opw\n");
		return EXIT_USAGE;
	}
	if (!path || (live->job && setenv("OPWATCH_JOB", live->job, 1) != 0))
		return EXIT_FAILED;
	live->record.memory_limit = args->input.open.memory_limit;
	live->record.stacks_hz = live_stacks_hz(live);
	status = ow_record(args->files, path, &live->record, &summary, &err);
	if (status != OW_OK && status != OW_E_USAGE && !live->record.must_record &&
	    !summary.started && summary.exit_code < 0)
		return run_unrecorded(args, &err);
	if (status != OW_OK)
		complain("opwatch: %s\n", err.text);
	if (summary.exit_code < 0 && !summary.exit_signal)
		return status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	if (!summary.started)
		return summary.exit_code;
	print_recording(path, &summary);
	return summary.exit_signal ? 128 + summary.exit_signal : summary.exit_code;
}

static const struct option options[] = {
	LIVE_OUT("FILE", "write the recording to FILE (default: opwatch-DATE-TIME.opw)"),
	LIVE_JOB("report to the daemon as this job; with -o, the name of the job"),
	{ "last", STORE_TIME(struct record_args, last_ns), .argument = "TIME",
	  .help = "with --job: save what the job did in the last seconds, such as 60s" },
	{ "system", STORE_FLAG(struct record_args, system),
	  .help = "sample all processes of this host through the kernel; no program is started" },
	LIVE_FOR("with --system: record for this time, such as 30s", "until Ctrl-C"),
	{ "hz", STORE_UINT32(struct record_args, hz, 1, 10000), .argument = "N",
	  .help = "with --system: samples per second and processor", .usual = "99" },
	{ "no-waits", STORE_FLAG(struct record_args, no_waits),
	  .help = "with --system: do not sample where threads wait" },
	{ "ring", STORE_UINT32(struct live_args, record.ring_records, 1, 1u << 24), .argument = "N",
	  .help = "keep room for N records of each thread", .usual = "16384" },
	{ "wait-children", STORE_FLAG(struct live_args, record.wait_children),
	  .help = "record processes that outlive the program until they end, or Ctrl-C" },
	{ "must-record", STORE_FLAG(struct live_args, record.must_record),
	  .help = "fail when the program cannot be recorded, instead of running it unrecorded" },
	LIVE_STEP_MARKER,
	LIVE_SOCKET,
};

const struct command cmd_record = {
	.name = "record",
	.usage = "[-o x.opw|--job NAME] [options] -- PROGRAM … | --system",
	.summary = "run a program and record what it does",
	.help = "The program needs no change. Its PyTorch operators, data loader and optimizer,\n"
		"files, OpenCL, CUDA, NCCL and socket traffic are recorded, also in processes\n"
		"that it starts. Python stacks, read from outside, are on the same timeline;\n"
		"they take at most 1 % of a processor (--stacks=0: none). Every command opens\n"
		"the file, also while the program runs. The exit status is the program's, or\n"
		"128 + the signal that ended it.\n"
		"\n"
		"With --job and without -o the program reports to the daemon, which keeps a ring\n"
		"on disk of what it did last; --last --job NAME saves the end of that ring.\n"
		"\n"
		"With --system nothing is started and nothing is loaded: the kernel samples which\n"
		"code all processes run and where their threads wait, Go, Java, Node and static\n"
		"programs too (root, CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less).\n"
		"\n"
		"A program that cannot be recorded (the daemon does not answer within a second,\n"
		"the file cannot be written) runs unrecorded; --must-record makes that an error.\n",
	.examples = { "opwatch record -o x.opw -- python3 train.py",
		      "opwatch record --last 60s --job train -o slow.opw" },
	.own = OPTIONS(options),
	.groups = { &recording_options },
	.own_size = sizeof(struct record_args),
	.init = live_args_init,
	.run = run_record,
};
