/*
 * thread_table.c: the threads of one process, from two readings of /proc/PID/task. Called by src/api/processes.c for the
 * process that is selected in `opwatch top`. Nothing is written.
 */
#include "live/proc/thread_table.h"

#include "base/vec.h"

#define LEAST_NS 20000000	    /* least time between two readings for a rate */
#define KEEP_NS (10 * 1000000000LL) /* how long ended threads are kept */

void thread_table_init(struct thread_table *t, struct mem *mem)
{
	*t = (struct thread_table){ .mem = mem, .tids.mem = mem };
}

void thread_table_release(struct thread_table *t)
{
	vec_free(t->mem, t->rows, t->cap);
	pid_list_release(&t->tids);
	*t = (struct thread_table){ .mem = t->mem, .tids.mem = t->mem };
}

static struct thread_row *find(struct thread_table *t, pid_t tid, uint64_t start_ticks)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].tid == tid && t->rows[i].start_ticks == start_ticks)
			return &t->rows[i];
	return NULL;
}

static void read_use(struct thread_row *row, pid_t pid, int64_t now_ns)
{
	uint64_t running, waiting;
	double ns = (double)(now_ns - row->read_ns);

	if (row->read_ns && now_ns - row->read_ns < LEAST_NS)
		return;
	if (!proc_schedule(pid, row->tid, &running, &waiting))
		return;
	if (row->read_ns && running >= row->running_ns && waiting >= row->waiting_ns) {
		row->cpu = (double)(running - row->running_ns) / ns;
		row->wait = (double)(waiting - row->waiting_ns) / ns;
	}
	row->running_ns = running;
	row->waiting_ns = waiting;
	row->read_ns = now_ns;
}

/* Reads a thread; false if memory runs out. */
static bool read_thread(struct thread_table *t, pid_t tid, int64_t now_ns)
{
	struct proc_stat stat;
	struct thread_row *row;

	if (!proc_stat_read(t->pid, tid, &stat))
		return true; /* the thread has just ended */
	row = find(t, tid, stat.start_ticks);
	if (!row) {
		if (!vec_reserve(t->mem, t->rows, t->cap, t->count + 1))
			return false;
		row = &t->rows[t->count++];
		*row = (struct thread_row){
			.tid = tid, .start_ticks = stat.start_ticks, .cpu = -1, .wait = -1
		};
	}
	memcpy(row->name, stat.name, sizeof(row->name));
	row->state = stat.state;
	row->seen = true;
	read_use(row, t->pid, now_ns);
	return true;
}

/* Marks threads that are no longer listed as ended; after some seconds they are forgotten. */
static void mark_ended(struct thread_table *t, int64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		struct thread_row *row = &t->rows[i];

		if (!row->seen) {
			row->state = 'X';
			row->cpu = row->wait = -1;
			if (now_ns - row->read_ns > KEEP_NS)
				continue;
		}
		t->rows[kept++] = *row;
	}
	t->count = kept;
}

static int by_use(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	if ((x->state == 'X') != (y->state == 'X'))
		return x->state == 'X' ? 1 : -1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? 1 : -1;
	if (x->wait != y->wait)
		return x->wait < y->wait ? 1 : -1;
	return x->state == 'X' ? (x->tid < y->tid) - (x->tid > y->tid)
			       : (x->tid > y->tid) - (x->tid < y->tid);
}

bool thread_table_turn(struct thread_table *t, pid_t pid, int64_t now_ns)
{
	bool good = true;

	if (t->pid != pid)
		t->count = 0;
	t->pid = pid;
	t->tids.count = 0;
	if (!proc_threads(pid, &t->tids))
		return false;
	for (size_t i = 0; i < t->count; i++)
		t->rows[i].seen = false;
	for (size_t i = 0; good && i < MIN(t->tids.count, (size_t)THREAD_ROWS); i++)
		good = read_thread(t, t->tids.items[i], now_ns);
	mark_ended(t, now_ns);
	if (t->count)
		qsort(t->rows, t->count, sizeof(*t->rows), by_use);
	return good;
}
