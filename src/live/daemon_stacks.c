/*
 * daemon_stacks.c: Python stacks of the daemon's jobs, sampled between its other work and written to their rings: of all
 * jobs when it was started so, or of one for as long as a client asks for it again and again (JOBS_ASK_STACKS), so that
 * a client that is killed leaves nothing behind.
 */
#include "live/daemon_job.h"

#include "live/stack_feed.h"

void job_want_stacks(struct daemon_job *job, uint32_t hz, int64_t until_ns)
{
	if (!job->stacks)
		job->stacks_hz = hz;
	job->stacks_until_ns = MAX(job->stacks_until_ns, until_ns);
}

void job_close_stacks(struct daemon_job *job)
{
	if (!job->stacks)
		return;
	stack_feed_close(job->stacks);
	mem_free(job->mem, job->stacks, sizeof(*job->stacks));
	job->stacks = NULL;
}

/* Numbers of stacks begin anew: what has others goes to a segment of its own. */
static void open_stacks(struct daemon_job *job)
{
	job_flush(job);
	job->stacks = mem_zalloc(job->mem, sizeof(*job->stacks));
	if (job->stacks)
		stack_feed_open(job->stacks, job->mem, &job->collector, job->stacks_hz);
}

int64_t job_tick_stacks(struct daemon_job *job, int64_t now_ns)
{
	struct collector *c = &job->collector;

	if (!job->open || !job->stacks_hz || now_ns >= job->stacks_until_ns) {
		job_close_stacks(job);
		return INT64_MAX;
	}
	if (!job->stacks)
		open_stacks(job);
	if (!job->stacks)
		return INT64_MAX; /* without memory: later, perhaps */
	if (now_ns >= c->next_beat_ns)
		c->next_beat_ns = c->beat(c->beat_arg, now_ns);
	return c->next_beat_ns;
}
