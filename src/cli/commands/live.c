/*
 * live.c: what the commands on running programs share: the options of recordings, process ids, the name of a recording, and
 * the lines that are printed at its end. The recording itself is the library's work.
 */
#include "cli/commands/live.h"

#include <time.h>

#define STACKS_HZ 100
#define STACKS_HZ_UNASKED 50

uint32_t live_stacks_hz(const struct live_args *live)
{
	return live->stacks ? live->stacks_hz : STACKS_HZ_UNASKED;
}

void live_args_init(void *own)
{
	struct live_args *live = own;

	ow_record_options_init(&live->record);
	live->record.message = live_message;
	live->stacks_hz = STACKS_HZ;
}

/* Parses --stacks or --stacks=HZ; 0 means none. */
static bool parse_stacks(struct args *args, const struct option *option, const char *value)
{
	struct live_args *live = args->own;
	int64_t hz;

	live->stacks = true;
	if (!value || !*value)
		return true;
	if (!str_to_i64(str_from(value), &hz) || hz < 0 || hz > 10000)
		return usage_error("--%s takes a number from 0 to 10000, not '%s'", option->name,
				   value);
	live->stacks_hz = (uint32_t)hz;
	return true;
}

static const struct option recording[] = {
	{ "stacks", STORE_PARSED(parse_stacks), .argument = "[=HZ]",
	  .help = "sample Python stacks HZ times a second (default 50); 0 switches sampling off",
	  .usual = "100" },
	{ "max-size", STORE_SIZE(struct live_args, record.file_limit, 1), .argument = "SIZE",
	  .help = "limit the size of the recording, or of a job's ring: 500M, 8G" },
	{ "on-slowdown", STORE_RATIO(struct live_args, record.on_slowdown), .argument = "PERCENT",
	  .help = "when steps become this much slower, report why and save the records: 20%" },
	{ "on-stall", STORE_TIME(struct live_args, record.on_stall_ns), .argument = "TIME",
	  .help = "when no step ends for this long, report why and save the records: 30s" },
	OPTION_MEMORY_LIMIT,
};
const struct option_group recording_options = OPTIONS(recording);

bool live_pids(const struct args *args, int64_t *pids)
{
	for (size_t i = 0; i < args->file_count; i++)
		if (!str_to_i64(str_from(args->files[i]), &pids[i]) || pids[i] < 1 ||
		    pids[i] > INT32_MAX)
			return usage_error("'%s' is not a process id", args->files[i]);
	return true;
}

void live_message(void *arg, const char *text, size_t len)
{
	(void)arg;
	complain("opwatch: %.*s\n", (int)MIN(len, (size_t)INT32_MAX), text);
}

bool live_keep_going(void *arg)
{
	(void)arg;
	return !signals_caught();
}

const char *recording_name(struct arena *arena)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	if (!localtime_r(&now, &tm) || !strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm))
		return "opwatch-recording.opw";
	return arena_printf(arena, "opwatch-%s.opw", text);
}

static const char *processes(uint32_t count)
{
	return count == 1 ? "process" : "processes";
}

void print_recording(const char *path, const struct ow_record_summary *s)
{
	complain("opwatch: %s: %" PRIu64 " records of %u %s", path, s->records, s->processes,
		 processes(s->processes));
	if (s->dropped)
		complain("; %" PRIu64 " more were dropped: the disk was full, or they came faster "
			 "than they could be written (then use a larger --ring)",
			 s->dropped);
	if (s->unnamed)
		complain("; %" PRIu64 " names or threads were lost because a table was full",
			 s->unnamed);
	if (s->refused_processes)
		complain("; %u %s refused", s->refused_processes, processes(s->refused_processes));
	complain("\n");
	if (s->left_processes)
		complain("opwatch: %u %s not recorded to the end; use --wait-children to record "
			 "processes that outlive the program\n",
			 s->left_processes,
			 s->left_processes == 1 ? "process was" : "processes were");
	if (!s->processes && !s->refused_processes)
		complain("opwatch: no process reported: the program is linked statically, cleared "
			 "its environment, is set-user-ID, or cannot create memory files of 1 MB "
			 "(ulimit -f, a sandbox)\n");
}

void print_cut(const char *path, const char *what, const char *job, const struct ow_cut_summary *s)
{
	complain("opwatch: %s: %s%.1f s of job %s, %" PRIu64 " records", path, what,
		 (double)s->covers_ns / 1e9, job, s->records);
	if (s->samples)
		complain(" and %" PRIu64 " stacks", s->samples);
	complain(" of %u %s\n", s->processes, processes(s->processes));
}
