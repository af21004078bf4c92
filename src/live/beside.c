/* beside.c: see beside.h. */
#include "live/beside.h"

#include "live/processes.h"

static bool find_home(struct beside *b)
{
	if (!b->knows_home)
		b->knows_home = sched_getaffinity(0, sizeof(b->home), &b->home) == 0;
	return b->knows_home;
}

static bool is_usual(uint32_t policy)
{
	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

bool beside_go(struct beside *b, pid_t pid, pid_t tid)
{
	struct proc_stat stat;
	cpu_set_t there;

	if (b->away || !find_home(b) || !proc_stat_read(pid, tid, &stat) || stat.state != 'R' ||
	    !is_usual(stat.policy) || stat.processor >= CPU_SETSIZE ||
	    !CPU_ISSET(stat.processor, &b->home)) /* where we are to stay away from */
		return false;
	CPU_ZERO(&there);
	CPU_SET(stat.processor, &there);
	b->away = sched_setaffinity(0, sizeof(there), &there) == 0;
	return b->away;
}

void beside_leave(struct beside *b)
{
	if (b->away && sched_setaffinity(0, sizeof(b->home), &b->home) != 0)
		return; /* it is tried again */
	b->away = false;
}
