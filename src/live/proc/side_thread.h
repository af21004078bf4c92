/*
 * side_thread.h: a thread that runs one function at a time for a caller that must not hang: the daemon's main loop
 * reads memory and opens files of jobs here, which a job can make slow or endless (leases, FUSE, network file systems).
 * The caller waits for a moment; what takes longer goes on alone, and its results are not used.
 *
 * A function that never returns keeps its thread and its memory: what it works on must come from side_mem and must
 * not be freed while side_thread_is_busy.
 */
#ifndef LIVE_SIDE_THREAD_H
#define LIVE_SIDE_THREAD_H

#include "base/mem.h"

struct side_thread;

/* Returns memory that lives as long as the program. */
struct mem *side_mem(void);

/* Starts a thread; NULL if memory runs out or threads, and while 64 others do not return. */
struct side_thread *side_thread_start(void);
/* Runs `work` and waits for it. Returns false if it has not returned by then; it still runs. Must not be
 * called while the thread is busy. */
bool side_thread_run(struct side_thread *t, void (*work)(void *), void *arg, int64_t patience_ns);
bool side_thread_is_busy(struct side_thread *t);
/*
 * For `work` that touches what belongs to the caller: true while the caller waits. Until side_thread_end_use the caller
 * does not go on, so that the use must be short.
 */
bool side_thread_begin_use(struct side_thread *t);
void side_thread_end_use(struct side_thread *t);
/* Waits for the thread unless it is busy. False when it is: then it ends by itself, should `work` ever return, and
 * what that works on stays allocated. */
bool side_thread_close(struct side_thread *t);
/* Closes the thread and releases the last argument of `work`: now, or when it returns. */
void side_thread_close_and(struct side_thread *t, void (*release)(void *), void *arg);

#endif
