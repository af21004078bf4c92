/*
 * anomaly_stack.c: reads the stack of a stalled process's main thread from outside, for anomaly_why.c and
 * anomaly_hang.c. A job can make reading its files and memory slow or endless (leases, FUSE, userfaultfd), so a side
 * thread reads, with memory of its own, and the caller waits for a limited time. It changes nothing in the job.
 */
#include "watch/anomaly.h"

#include "base/clock.h"
#include "live/proc/side_thread.h"
#include "live/pystack/py_process.h"

/* One read of a stack. It is allocated in side_mem and stays there until the side thread returns. */
struct stack_read {
	pid_t pid;
	size_t frames_max;
	bool has_main, failed;
	struct buf text;
};

/* Keeps the stack of the main thread, whose id equals the process id; without one, of the first thread. */
static void take_stack(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct stack_read *to = arg;

	if (!thread->frame_count || to->has_main || (to->text.len && thread->tid != p->pid))
		return;
	to->has_main = thread->tid == p->pid;
	buf_clear(&to->text);
	for (size_t i = 0; i < MIN(thread->frame_count, to->frames_max); i++) {
		const struct py_code *code = thread->frames[i].code;

		buf_printf(&to->text, "%s%.*s (%.*s:%d)", i ? "\n" : "",
			   (int)MIN(code->name.len, (size_t)200), code->name.ptr,
			   (int)MIN(code->file.len, (size_t)300), code->file.ptr,
			   (int)thread->frames[i].line);
	}
}

/* Runs on the side thread. */
static void read_stack(void *arg)
{
	struct stack_read *to = arg;
	struct py_process python;

	to->failed = true;
	if (py_process_open(&python, side_mem(), to->pid, NULL) != OW_OK)
		return;
	to->failed = py_process_sample(&python, clock_ns(CLOCK_MONOTONIC), take_stack, to, NULL) !=
		     OW_OK;
	py_process_close(&python);
}

static void free_read(void *arg)
{
	struct stack_read *r = arg;

	buf_release(&r->text);
	mem_free(side_mem(), r, sizeof(*r));
}

bool anomaly_stack(pid_t pid, size_t frames_max, int64_t *left_ns, struct buf *to)
{
	struct stack_read *r = *left_ns > 0 ? mem_zalloc(side_mem(), sizeof(*r)) : NULL;
	struct side_thread *thread = r ? side_thread_start() : NULL;
	int64_t begin = steady_ns();
	bool found = false;

	if (!thread) {
		mem_free(side_mem(), r, sizeof(*r));
		return false;
	}
	r->pid = pid;
	r->frames_max = frames_max;
	buf_init(&r->text, side_mem());
	if (side_thread_run(thread, read_stack, r, *left_ns)) {
		found = !r->failed && r->text.len && !r->text.failed;
		if (found)
			buf_add_str(to, buf_str(&r->text));
	}
	*left_ns -= steady_ns() - begin;
	side_thread_close_and(thread, free_read, r);
	return found;
}
