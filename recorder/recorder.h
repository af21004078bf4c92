/*
 * recorder.h: shared by the files of the recorder, the library that is loaded into other people's programs by LD_PRELOAD or
 * by `opwatch attach`. No other code includes it. Rules inside a foreign program: only the names that loaders ask for are
 * exported; a hook does not allocate, lock, print or make a system call of its own (rings are made ahead by the watcher; a
 * forked child's first record is the exception, see process.c); a thread inside the recorder does not enter it again;
 * nothing is done when the program ends; and any failure means missing records, which are counted, never harm to the
 * program. docs/decisions/recorder.md gives the reasons.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include "wire/own/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT __attribute__((visibility("default")))

static inline void *table_new(size_t bytes)
{
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return table == MAP_FAILED ? NULL : table;
}

/* Makes the table that `at` points to, unless it exists. Large tables are not part of the library's data, because a
 * program with a small memory limit would not start. False if memory runs out. Must not be called in hooks. */
static inline bool table_ensure(void *at, size_t bytes)
{
	void **table = at, *none = NULL, *made;

	if (__atomic_load_n(table, __ATOMIC_ACQUIRE))
		return true;
	made = table_new(bytes);
	if (made && !__atomic_compare_exchange_n(table, &none, made, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
		munmap(made, bytes); /* another thread was faster */
	return __atomic_load_n(table, __ATOMIC_ACQUIRE);
}

/* thread.c: threads. */

/* The begin of an operation; made by a start callback and released by its end, maybe on another thread. */
struct open_slice {
	void *const *vtable; /* must be first: C++ object of the framework, see hook_torch.c */
	uint64_t start_ns;
	struct thread *thread;
	_Atomic uint32_t taken;
	uint16_t part; /* part of an operator's name, see torch_rate.c */
	uint16_t site;
};

#define OPEN_SLICES 256u

/* Texts of the table of all texts (text_table.c) that the thread used last, close together to stay in the
 * caches. */
struct known_text {
	uint64_t hash;
	uint32_t number, len;
};

#define KNOWN_TEXTS 256u

/* How often a frequent call is recorded (hook_file.c). */
struct call_rate {
	_Atomic uint32_t counting; /* calls are only counted; any thread may set it to 0 */
	uint32_t left;		   /* number of calls that are still only counted */
	struct ring_count *counts;
	uint32_t every; /* one call in this many is recorded, on average; 0 and 1: all */
	/* Number of records since the rate was determined, number of frequent ones, and the time
	 * between them. */
	uint32_t seen, fast, fast_ns;
	uint64_t last_ns;
};

/* How often frequent operators are recorded (torch_rate.c). */
struct op_site {
	uintptr_t address; /* return address of the call */
	/* number of consecutive calls that should have been timed and were not, because they are
	 * not observed */
	uint16_t misses;
	bool known; /* the name is known */
};

struct op_rate {
	uint32_t every; /* one operator in this many is recorded, on average; 0 and 1: all */
	uint32_t left, drawn;
	/* nesting depth within the timed operator, itself included; 0: none is timed */
	uint32_t depth;
	uint32_t announced; /* site of the operator that begins next, + 1 */
	uint32_t seen, fast;
	uint64_t fast_ns, last_ns;
	uint64_t children_ns; /* time of operators inside the timed operator */
	struct op_site sites[RING_OPS];
};

#define THREAD_PAGE 4096u

struct thread {
	/* The kernel clears this page in children, however they were forked. */
	union {
		struct call_rate rates[RING_SAMPLED];
		char page[THREAD_PAGE];
	};
	struct ring *ring;
	struct ring_record *records;
	uint64_t head, mask;
	uint64_t look;	     /* position of head at which the fill level is checked */
	uint32_t generation; /* generation of the process in which it was made */
	uint32_t tid;
	int fd;
	uint64_t inode;
	_Atomic uint32_t in_use, sent;
	/* list of all threads of the process, also of rings without a thread */
	struct thread *next;
	struct op_rate ops;
	uint32_t dice;
	uint32_t open_at;
	struct open_slice open[OPEN_SLICES];
	struct known_text known[KNOWN_TEXTS];
};

extern __thread struct thread *recorder_thread __attribute__((tls_model("initial-exec")));
/* Stack position at which the thread entered the recorder, or one of BUSY_*; 0: it is not
 * inside. */
extern __thread uintptr_t recorder_busy __attribute__((tls_model("initial-exec")));
#define BUSY_OURS 1u /* the recorder's own thread, or a thread that is ending */
/* a child of vfork, which has its parent's memory and another descriptor table */
#define BUSY_CHILD 2u
/* 0 in a child process that has not been prepared, and while nothing is recorded. */
extern volatile uint32_t *recorder_generation;

struct thread *thread_prepare(void);
void threads_begin(void); /* called once, before the first hook */
/* Makes rings until this many are free for new threads; takes back those of ended threads. Not called in
 * hooks. */
void threads_provide(uint32_t wanted);
uint32_t threads_free(void);
/* Stores the name that pthread_setname_np or prctl gave the calling thread. */
void thread_set_name(const char *name);
void threads_forget(void);     /* called in a child */
void threads_send(void);       /* sends rings that the collector does not have yet */
void threads_send_again(void); /* sends all rings to a new collector */
/* Gives up the rings, which are no longer read; if the recording continues, unread records count
 * as dropped. */
void threads_give_up(bool goes_on);
/* Makes every thread record its next call before it only counts calls again. */
void threads_count_none(void);
void thread_counts_none(struct thread *t);

/* Returns the thread's state; NULL if it must not record. Called with recorder_busy set (see
 * enter). */
static inline struct thread *thread_current(void)
{
	struct thread *t = recorder_thread;

	if (LIKELY(t && t->generation == *recorder_generation))
		return t;
	return thread_prepare();
}

/* Returns whether a thread may enter although it seems to be inside, because a signal handler left a hook
 * by siglongjmp. */
bool enter_again(uintptr_t here);

/* Enters the recorder. Returns false if the thread is already inside: in a signal handler, or in a call of
 * the recorder itself. */
static inline bool enter(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (UNLIKELY(recorder_busy) && !enter_again(here))
		return false;
	recorder_busy = here;
	return true;
}

static inline void leave(void)
{
	recorder_busy = 0;
}

/* clock.c: the clock. */

/* Conversion from the processor's counter to CLOCK_MONOTONIC. Not changed after it is published. */
struct clock_line {
	uint64_t counter, ns; /* one moment in both clocks */
	uint64_t rate;	      /* nanoseconds per count, with 32 fractional bits */
};
/* current line; NULL: the system clock is read */
extern _Atomic(const struct clock_line *) recorder_clock;

void clock_begin(void);
void clock_adjust(void); /* called now and then */

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

/* Converts a counter. A processor whose counter is slightly behind the line's start gets the
 * time of that start. */
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

/* Returns the time since `start`; when the line changes, it may be slightly off. */
static inline uint64_t ns_since(uint64_t start, uint64_t now)
{
	return now > start ? now - start : 0;
}

/* Returns whether the ring has room for a record; counts it as dropped if not. */
bool ring_make_room(struct thread *t, const struct ring_record *record);

static inline void push(struct thread *t, const struct ring_record *record)
{
	struct ring_record *to;

	if (UNLIKELY(t->head >= t->look) && !ring_make_room(t, record))
		return;
	to = &t->records[t->head & t->mask];
	*to = *record;
	to->sequence = (uint32_t)t->head;
	t->head++;
	atomic_store_explicit(&t->ring->head, t->head, memory_order_release);
}

/* Adds to a counter of the thread. */
static inline void count_calls(struct thread *t, enum ring_counter which, uint64_t calls,
			       uint64_t bytes)
{
	struct ring_count *c = &t->ring->counts[which];

	atomic_store_explicit(&c->calls,
			      atomic_load_explicit(&c->calls, memory_order_relaxed) + calls,
			      memory_order_relaxed);
	atomic_store_explicit(&c->bytes,
			      atomic_load_explicit(&c->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

static inline void count_call(struct thread *t, enum ring_counter which, uint64_t bytes)
{
	count_calls(t, which, 1, bytes);
}

static inline uint32_t roll_dice(struct thread *t)
{
	uint32_t x = t->dice ? t->dice : 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return t->dice = x;
}

struct open_slice *slice_open(struct thread *t);
void slice_close(struct open_slice *s);

/* text_table.c: texts. */

bool texts_begin(void); /* called once, before the others; false: no memory */
uint32_t text_number(const char *text, size_t len);
uint32_t text_of(const char *text);
uint32_t text_number_cached(struct thread *t, const char *text); /* number for records */
void texts_forget(void);

/* process.c: the process and its collector. */

extern struct ring_process *recorder_process;

bool process_prepare(void); /* makes the shared memory and connects; once per process */
bool process_is_wanted(void);
/* Makes a sealed memory file of that size and maps it, over the mapping at `at` if that is not NULL. Its descriptor gets a
 * high number. */
void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode);
/* Gives a descriptor a high number, because programs expect low numbers to be free. */
int descriptor_move_high(int fd);
/* Returns whether the descriptor still refers to the same file. Programs close descriptors that they did
 * not open. */
bool descriptor_is(int fd, uint64_t inode);
uint64_t descriptor_inode(int fd); /* inode, to recognise the file later; 0: none */
bool process_send(enum ring_message_kind kind, uint32_t number, int fd); /* keeps errno */
bool process_reconnect(void);
bool process_is_connected(void);
/* Returns whether the program has closed the recorder's descriptors, as programs do that close all
 * descriptors. */
bool process_is_cut_off(void);
bool process_renew(void); /* opens others in their place */
void process_hang_up(void);
void process_stop(void);   /* nothing is recorded from here on */
void process_retire(void); /* stops without a message to the collector */
void process_refuse(const char *socket_path, enum ring_refusal why);
/* Whether filters of system calls (seccomp) were added since the recorder looked first, as far as a single read() from a
 * file that was opened before can say; true when it cannot. */
bool process_is_filtered(void);
void hook_report(enum ring_hook hook, enum ring_hook_state state, const char *text);
/* Starts recording; returns 0 on success. */
int recorder_start(const char *socket_path, uint32_t version);

/* watcher.c: the watcher thread. */

/* Pauses the watcher before a fork, because children must not inherit locks of the loader that
 * it holds. */
void watcher_pause(void);
void watcher_start(void);
void watcher_forget(void); /* in a child: closes files that the parent's watcher had open */
/* Starts the watcher unless it runs or must not run; called when the program is about to start a thread or
 * load a library. */
void watcher_ensure(void);
/* Makes more rings, because the program is about to start threads. */
void watcher_expect_threads(void);
bool watcher_is_wanted(void);
/* The watcher starts on demand where the calls that need it are seen (hook_start.c). */
#if defined(__x86_64__)
#define WATCHER_ON_DEMAND 1
#else
#define WATCHER_ON_DEMAND 0
#endif
/* Prevents the watcher from being started again. */
void watcher_ban(void);
/* Waits until the watcher has ended, but not for long. Returns whether there was one. */
bool watcher_stop(void);
bool watcher_is_there(void);
/* Makes the watcher check at once instead of at the end of its interval. */
void watcher_wake(void);

/* Hooks. */

/* Marks the recorder's own descriptors: programs that close all descriptors do not close these
 * (hook_file.c). */
void descriptor_is_ours(int fd, bool ours);
/* Returns whether a descriptor is known to be the recorder's; also in a child. */
bool descriptor_is_known_as_ours(int fd);
bool descriptors_begin(void); /* called once, before the others; false: no memory */
/* Finds the kinds of the program's descriptors: at the start all, later (by the watcher) those that were opened in
 * ways that hooks do not see. */
void descriptors_look(bool all);

/* Called after the real functions of file_patches were found. */
void file_calls_found(void);

struct patch {
	const char *name;
	void *wrapper;
	void *real; /* the real function, found when hooks are armed */
};
extern struct patch file_patches[];   /* patches of hook_file.c; the list ends with a NULL name */
extern struct patch rights_patches[]; /* patches of hook_rights.c; the list ends with a NULL name */
extern struct patch start_patches[];  /* patches of hook_start.c; the list ends with a NULL name */
extern struct patch marker_patches[]; /* patches of hook_marker.c; the list ends with a NULL name */
/* Returns the wrapper of a function that changes privileges, if the program looked one up by name;
 * otherwise the same function. */
void *rights_wrapper(void *real);
/* Returns whether the process entered a sandbox after its recording was requested. */
bool sandbox_is_new(void);
/* Kinds of raw system calls that the program itself makes, as far as that can be foreseen
 * (raw_calls.c). */
#define RAW_STRICT 1u /* the strict mode of seccomp */
/* calls that need a single thread or leave others outside: unshare, setns, landlock */
#define RAW_NO_THREAD 2u
#define RAW_FILTER 4u /* a filter of seccomp */
uint32_t raw_calls(void);
bool patches_begin(void); /* called once, before the others; false: no memory */
bool patches_find_real(void);
/* Notes which libraries are loaded now. Called before waiting for the loader. */
void patches_notice(void);
/* Patches the libraries that were loaded since the last call; returns the number of calls that lead to the
 * recorder. */
uint32_t patches_apply(void);
void patches_undo(void);
/* Makes the next patches_apply visit all libraries again. */
void patches_visit_again(void);

/* Redirects the calls of these functions in all objects to the wrappers, or back; also calls within the
 * defining object. */
void patches_redirect(struct patch *table, bool undo);

/* torch_rate.c: operators of PyTorch that are too frequent to record each. */
void op_rate_arm(void *library); /* called before the callbacks are registered */
void op_rate_remove(void);
void op_begins(struct thread *t, struct open_slice *slice);
/* Returns whether the operator is completely handled; otherwise the caller records it. `t` NULL: nothing
 * is recorded. */
bool op_ends(struct thread *t, const struct open_slice *slice, uint64_t now, const char *name);

/* Each function checks whether its library is loaded by now. */
void torch_arm(void);
void torch_remove(void);
void cuda_remove(void); /* if it is built in */

/* hook_marker.c and hook_python.c: steps. */

/* Returns the function whose calls begin steps; "" if there is none. */
const char *marker_name(void);
/* Sets the name of the step marker, NULL or "" for none. Call it before the recorder starts. */
void marker_set(const char *name);
/* Patches the program itself before it begins, while it has one thread, so that calls inside of
 * the program are seen, too. */
void marker_patch_program(void);
/* Searches the loaded libraries for the function. */
void marker_find(void);
/* Records the begin of a step. */
void marker_called(void);
/* Installs the Python hooks once there is an interpreter. Called by the watcher. */
void python_arm(void);
bool python_is_needed(void);
void python_forget_marker(void); /* the marker has changed */
/* Uses hooks of PyTorch's optimizers, because its operators are not recorded. */
void python_want_optimizers(void);

#endif
