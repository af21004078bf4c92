/*
 * recorder.h: between the files of the recorder, which is loaded into other people's programs, by preloading or by
 * attaching; nobody else includes it. Rules of a guest: no name is exported but those that loaders ask for, nothing
 * is allocated, locked or printed where a hook runs (memory is mapped when a thread records for the first time), a
 * thread that is inside the recorder does not enter it again, nothing is done when the program ends, and whatever
 * goes wrong ends in records that are missing and counted, never in the program.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include "wire/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))

/* ---- threads (thread.c) ---- */

/* Marks when something began; given by a start callback and taken back by the end, maybe of another thread. */
struct open_slice {
	void *const *vtable; /* first: a C++ object of the framework, see hook_torch.c */
	uint64_t start_ns;
	struct thread *thread;
	_Atomic uint32_t taken;
};

#define OPEN_SLICES 256u

/* Of the table of all texts (text.c) what the thread used last: close together, so that they stay in the caches. */
struct known_text {
	uint64_t hash;
	uint32_t number, len;
};

#define KNOWN_TEXTS 256u

struct thread {
	struct ring *ring;
	struct ring_record *records;
	uint64_t head, mask;
	uint64_t look;	     /* when head comes here, see how full it is */
	uint32_t generation; /* of the process it was made in */
	uint32_t tid;
	int fd;
	uint64_t inode;
	_Atomic uint32_t in_use, sent;
	struct thread *next; /* all of the process, also those without thread */
	uint32_t open_at;
	struct open_slice open[OPEN_SLICES];
	struct known_text known[KNOWN_TEXTS];
};

extern __thread struct thread *recorder_thread __attribute__((tls_model("initial-exec")));
extern __thread uint32_t recorder_busy __attribute__((tls_model("initial-exec")));
/* 0 in a child process that has not been prepared, and while nothing is to be recorded. */
extern volatile uint32_t *recorder_generation;

struct thread *thread_prepare(void);
void threads_forget(void);     /* in a child */
void threads_send(void);       /* those that the collector has not got */
void threads_send_again(void); /* to a new collector */
/* Nobody reads them any more; when the recording goes on, what was not read counts as dropped. */
void threads_give_up(bool goes_on);

/* The thread's state; NULL when it is not to record. Asked with recorder_busy set (see enter). */
static inline struct thread *thread_self(void)
{
	struct thread *t = recorder_thread;

	if (LIKELY(t && t->generation == *recorder_generation))
		return t;
	return thread_prepare();
}

/* False when the thread is in the recorder already: a signal's handler, or what the recorder itself calls. */
static inline bool enter(void)
{
	if (UNLIKELY(recorder_busy))
		return false;
	recorder_busy = 1;
	return true;
}

static inline void leave(void)
{
	recorder_busy = 0;
}

/* ---- the clock (clock.c) ---- */

/* From the processor's counter to CLOCK_MONOTONIC. Not changed once it is published. */
struct clock_line {
	uint64_t counter, ns; /* a moment */
	uint64_t rate;	      /* ns per count, 32 bits of them behind the point */
};
extern _Atomic(const struct clock_line *) recorder_clock; /* NULL: the system is asked */

void clock_begin(void);
void clock_adjust(void); /* now and then */

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* A core that is a few counts behind the one that drew the line is at its beginning. */
static inline uint64_t clock_at(const struct clock_line *line, uint64_t counter)
{
	uint64_t counts = (int64_t)(counter - line->counter) > 0 ? counter - line->counter : 0;

	return line->ns + (uint64_t)(((unsigned __int128)counts * line->rate) >> 32);
}

static inline uint64_t now_ns(void)
{
	const struct clock_line *line = atomic_load_explicit(&recorder_clock, memory_order_acquire);

	return LIKELY(line) ? clock_at(line, clock_counter()) : clock_ns();
}

/* How long ago; the moment at which the clock is changed may be a little off. */
static inline uint64_t ns_since(uint64_t start, uint64_t now)
{
	return now > start ? now - start : 0;
}

/* Whether there is room for a record; counts it as dropped when there is none, and calls for the reader in time. */
bool ring_look(struct thread *t, const struct ring_record *record);

static inline void push(struct thread *t, const struct ring_record *record)
{
	struct ring_record *to;

	if (UNLIKELY(t->head >= t->look) && !ring_look(t, record))
		return;
	to = &t->records[t->head & t->mask];
	*to = *record;
	to->sequence = (uint32_t)t->head;
	t->head++;
	atomic_store_explicit(&t->ring->head, t->head, memory_order_release);
}

/* Adds to a counter of the thread. */
static inline void count_call(struct thread *t, enum ring_counter which, uint64_t ns,
			      uint64_t bytes)
{
	struct ring_count *c = &t->ring->counts[which];

	atomic_store_explicit(&c->calls, atomic_load_explicit(&c->calls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_store_explicit(&c->ns, atomic_load_explicit(&c->ns, memory_order_relaxed) + ns,
			      memory_order_relaxed);
	atomic_store_explicit(&c->bytes,
			      atomic_load_explicit(&c->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

struct open_slice *slice_open(struct thread *t);
void slice_close(struct open_slice *s);

/* ---- texts (text.c) ---- */

uint32_t text_number(const char *text, size_t len);
uint32_t text_of(const char *text);
uint32_t text_again(struct thread *t, const char *text); /* of records */
void texts_forget(void);

/* ---- the process and its collector (process.c) ---- */

extern struct ring_process *recorder_process;

bool process_prepare(void); /* makes the region and says hello; once per process */
bool process_is_wanted(void);
/* A memory file of that size, sealed, mapped, in the place of what is at `at` if that is not NULL; the descriptor is
 * moved out of the way. */
void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode);
/* Whether the descriptor is still what it was: programs close what they do not know. */
bool descriptor_is(int fd, uint64_t inode);
bool process_send(enum ring_message_kind kind, uint32_t number, int fd); /* keeps errno */
bool process_reconnect(void);
bool process_is_connected(void);
/* Whether the program has closed what it did not know, the recorder's descriptors among it. */
bool process_is_cut_off(void);
bool process_renew(void); /* others in their place */
void process_hang_up(void);
void process_stop(void);   /* nothing is recorded from here on */
void process_retire(void); /* the same, without a word to anybody */
void process_refuse(const char *socket_path);
void hook_tell(enum ring_hook hook, enum ring_hook_state state, const char *text);
/* Starts all; the socket may be NULL for the environment's. Gives 0 when it records. */
int recorder_start(const char *socket_path, uint32_t version);

/* ---- memory (room.c) ---- */

uint64_t room_for_rings(void); /* bytes, of all rings together */
/* Records of the next ring, a power of two: as many as wanted where there is room. */
uint32_t room_records(uint64_t room, uint64_t used, uint32_t wanted);

/* ---- the watcher (watch.c) ---- */

/* Before a fork: children must not inherit locks of the loader that the watcher holds. */
void watcher_pause(void);
void watcher_start(void);
/* Until the watcher is gone, or for a while. Whether there was one. */
bool watcher_rest(void);
bool watcher_is_there(void);

/* ---- hooks ---- */

struct patch {
	const char *name;
	void *wrapper;
	void *real; /* found when hooks are armed */
};
extern struct patch file_patches[];   /* hook_file.c; ends with a NULL name */
extern struct patch rights_patches[]; /* hook_rights.c; likewise */
/* Whether the process was shut into a sandbox since its recording was wished for. */
bool sandbox_is_new(void);
bool patches_find_real(void);
/* What is loaded now; before the loader is waited for. */
void patches_notice(void);
/* Goes through what is loaded and was not dealt with; returns how many calls lead to the recorder. */
uint32_t patches_apply(void);
void patches_undo(void);

/* Each looks whether its library is there by now. */
void torch_arm(void);
void torch_remove(void);
void cuda_remove(void); /* where it is built in */

#endif
