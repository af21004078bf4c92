/* recording.c: see recording.h. */
#include "cli/recording.h"

#include "cli/output.h"

#include <time.h>

void recording_message(void *arg, const char *text, size_t len)
{
	(void)arg;
	complain("opwatch: %.*s\n", (int)MIN(len, (size_t)INT32_MAX), text);
}

/* opwatch-20261116-030405.opw, here. */
const char *recording_name(struct arena *arena)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	if (!localtime_r(&now, &tm) || !strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm))
		return "opwatch-recording.opw";
	return arena_printf(arena, "opwatch-%s.opw", text);
}

void recording_tell(const char *path, const struct ow_record_summary *s)
{
	complain("opwatch: %s: %" PRIu64 " records of %u process%s", path, s->records, s->processes,
		 s->processes == 1 ? "" : "es");
	if (s->dropped)
		complain("; %" PRIu64
			 " more were dropped: there was no room to write them, or they came "
			 "faster than they could be written (then a larger --ring helps)",
			 s->dropped);
	if (s->unnamed)
		complain("; %" PRIu64 " names or threads had no room", s->unnamed);
	if (s->refused_processes)
		complain("; %u process%s refused", s->refused_processes,
			 s->refused_processes == 1 ? "" : "es");
	complain("\n");
	if (s->left_processes)
		complain("opwatch: %u process%s not recorded to the end; --wait-children records "
			 "what a program leaves running until it ends\n",
			 s->left_processes, s->left_processes == 1 ? " was" : "es were");
	if (!s->processes && !s->refused_processes)
		complain("opwatch: nothing reported: the program is linked statically, dropped its "
			 "environment, is set-user-ID, or may not make memory files of a megabyte "
			 "(ulimit -f, a sandbox)\n");
}

void recording_tell_cut(const char *path, const char *what, const char *job,
			const struct ow_cut_summary *s)
{
	complain("opwatch: %s: %s%.1f s of job %s, %" PRIu64 " records", path, what,
		 (double)s->covers_ns / 1e9, job, s->records);
	if (s->samples)
		complain(" and %" PRIu64 " stacks", s->samples);
	complain(" of %u process%s\n", s->processes, s->processes == 1 ? "" : "es");
}
