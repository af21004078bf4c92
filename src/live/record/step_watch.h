/*
 * step_watch.h: steps of Python 3.8 to 3.11, which have no sys.monitoring: each call of the function that --step-marker names, seen from
 * outside. A sampled stack shows where the function's code lies; from then on a hardware watchpoint of the processor (perf_event_open) reports
 * each time that the interpreter reads its first instruction. The program is neither stopped nor changed; a call of the function costs
 * some microseconds, all else nothing. Used by stack_feed.c.
 *
 * What it does not see: calls before the first sampled stack that has the function, and calls of a function that no sample meets because
 * it is short. A function that is called more than STEP_WATCH_RATE times a second is not watched: that would cost more than 2 %.
 */
#ifndef LIVE_STEP_WATCH_H
#define LIVE_STEP_WATCH_H

#include "live/pystack/py_process.h"
#include "live/record/recording.h"
#include "wire/own/ring.h"

#define STEP_WATCHES 32u     /* largest number of threads of all processes */
#define STEP_WATCH_RATE 400u /* largest number of calls per second */

struct step_watch {
	pid_t pid, tid;
	uint32_t process; /* number of the process in the recording */
	uint64_t code;	  /* address of the code object */
	uint32_t number;  /* number of its ring in the recording */
	int fd;		  /* descriptor; -1: no longer watched */
	void *ring;
	uint32_t file;	/* file of the recording in which the thread is described */
	uint64_t calls; /* numbers of calls seen and written */
	uint64_t written;
	int64_t last_ns, since_ns;
	uint64_t since_calls;
	uint64_t lost; /* number of calls that had no room */
};

/* A process whose steps begin with calls of a function. */
struct step_marked {
	pid_t pid;
	char name[RING_MARKER_MAX];
	bool explained; /* the reason why its calls are not seen was reported */
};

struct step_watches {
	struct mem *mem;
	struct step_watch items[STEP_WATCHES];
	size_t count;
	uint32_t opened; /* number of watchpoints that were ever opened */
	struct step_marked *marked;
	size_t marked_count, marked_cap;
};

void step_watches_init(struct step_watches *w, struct mem *mem);
void step_watches_release(struct step_watches *w);
/* Sets the function that begins the steps of a process; may be repeated. False if memory runs out. */
bool step_watch_mark(struct step_watches *w, pid_t pid, const char *name) OW_MUST_CHECK;
/* Watches the function when a stack contains it. */
void step_watch_see(struct step_watches *w, struct py_process *p, const struct py_thread *thread,
		    uint32_t process, struct recording *to);
/* Writes the calls since the last time. `file` is the number of the recording's file. */
void step_watches_write(struct step_watches *w, struct recording *to, uint32_t file,
			int64_t now_ns);

#endif
