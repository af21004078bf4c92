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

/* Large tables are not part of the library's data: a program with a small limit on its memory would not start. Makes the
 * table that `at` points to, unless it is there. False: no memory. Not in hooks. */
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

/* ---- threads (thread.c) ---- */

/* Marks when something began; given by a start callback and taken back by the end, maybe of another thread. */
struct open_slice {
	void *const *vtable; /* first: a C++ object of the framework, see hook_torch.c */
	uint64_t start_ns;
	struct thread *thread;
	_Atomic uint32_t taken;
	uint16_t part; /* of operators, see torch_rate.c */
	uint16_t site;
};

#define OPEN_SLICES 256u

/* Of the table of all texts (text_table.c) what the thread used last: close together, so that they stay in the caches. */
struct known_text {
	uint64_t hash;
	uint32_t number, len;
};

#define KNOWN_TEXTS 256u

/* How often a call is recorded that comes fast (hook_file.c). */
struct call_rate {
	_Atomic uint32_t key; /* of the descriptor whose calls are only counted; 0: none is */
	uint32_t left;	      /* calls that are */
	struct ring_sampled *counts;
	uint32_t every; /* one in this many is recorded, on average; 0 and 1: all */
	/* Records since the rate was found out, those that came fast, and how far these were apart. */
	uint32_t seen, fast, fast_ns;
	uint64_t last_ns;
};

/* How often operators are recorded that come fast (torch_rate.c). */
struct op_site {
	uintptr_t address; /* that the call returns to */
	uint16_t
		misses; /* calls in a row that should have been timed and were not: it is not observed */
	bool known; /* its name */
};

struct op_rate {
	uint32_t every; /* one in this many is recorded, on average; 0 and 1: all */
	uint32_t left, drawn;
	uint32_t depth;	    /* of operators in the one that is timed, itself included; 0: none is */
	uint32_t announced; /* the site of the operator that begins next, + 1 */
	uint32_t seen, fast;
	uint64_t fast_ns, last_ns;
	uint64_t children_ns; /* of the operator that is timed */
	struct op_site sites[RING_OPS];
};

#define THREAD_PAGE 4096u

struct thread {
	/* The kernel clears this page in children, whatever way they were forked. */
	union {
		struct call_rate rates[RING_SAMPLED];
		char page[THREAD_PAGE];
	};
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
	struct op_rate ops;
	uint32_t dice;
	uint32_t open_at;
	struct open_slice open[OPEN_SLICES];
	struct known_text known[KNOWN_TEXTS];
};

extern __thread struct thread *recorder_thread __attribute__((tls_model("initial-exec")));
/* Where on the stack the thread entered the recorder, or one of BUSY_*; 0: it is not inside. */
extern __thread uintptr_t recorder_busy __attribute__((tls_model("initial-exec")));
#define BUSY_OURS 1u /* the recorder's own thread, or a thread that ends */
#define BUSY_CHILD                                                                                 \
	2u /* a child of vfork, which has its parent's memory and another descriptor table */
/* 0 in a child process that has not been prepared, and while nothing is to be recorded. */
extern volatile uint32_t *recorder_generation;

struct thread *thread_prepare(void);
void threads_begin(void); /* once, before the first hook */
/* Makes rings until this many are free for threads that will record; takes back those of ended threads. Not in hooks. */
void threads_provide(uint32_t wanted);
uint32_t threads_free(void);
/* What pthread_setname_np or prctl has called the calling thread. */
void thread_set_name(const char *name);
void threads_forget(void);     /* in a child */
void threads_send(void);       /* those that the collector has not got */
void threads_send_again(void); /* to a new collector */
/* They are not read any more; when the recording goes on, unread records count as dropped. */
void threads_give_up(bool goes_on);
/* No call is only counted before it has been recorded again: the process is another one, or the descriptor. */
void threads_count_none(void);
void threads_count_none_of(uint32_t descriptor);
void thread_counts_none(struct thread *t);

/* The thread's state; NULL when it is not to record. Asked with recorder_busy set (see enter). */
static inline struct thread *thread_current(void)
{
	struct thread *t = recorder_thread;

	if (LIKELY(t && t->generation == *recorder_generation))
		return t;
	return thread_prepare();
}

/* Whether a thread may enter although it seems to be inside: a signal handler left a hook by siglongjmp. */
bool enter_again(uintptr_t here);

/* False when the thread is in the recorder already: a signal's handler, or what the recorder itself calls. */
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

/* A processor whose counter is slightly behind that of the line's gets the time of the line's begin. */
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

/* Whether the ring has room for a record; counts it as dropped when it has not. */
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
			       uint64_t ns, uint64_t bytes)
{
	struct ring_count *c = &t->ring->counts[which];

	atomic_store_explicit(&c->calls,
			      atomic_load_explicit(&c->calls, memory_order_relaxed) + calls,
			      memory_order_relaxed);
	atomic_store_explicit(&c->ns, atomic_load_explicit(&c->ns, memory_order_relaxed) + ns,
			      memory_order_relaxed);
	atomic_store_explicit(&c->bytes,
			      atomic_load_explicit(&c->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

static inline void count_call(struct thread *t, enum ring_counter which, uint64_t ns,
			      uint64_t bytes)
{
	count_calls(t, which, 1, ns, bytes);
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

/* ---- texts (text_table.c) ---- */

bool texts_begin(void); /* once, before the first of them; false: no memory */
uint32_t text_number(const char *text, size_t len);
uint32_t text_of(const char *text);
uint32_t text_number_cached(struct thread *t, const char *text); /* of records */
void texts_forget(void);

/* ---- the process and its collector (process.c) ---- */

extern struct ring_process *recorder_process;

bool process_prepare(void); /* makes the region and says hello; once per process */
bool process_is_wanted(void);
/* Makes a sealed memory file of that size and maps it, over the mapping at `at` if that is not NULL. Its descriptor gets a
 * high number. */
void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode);
/* Gives a descriptor a high number, because programs expect low numbers to be free. */
int descriptor_move_high(int fd);
/* Whether the descriptor still refers to the same file. Programs close descriptors that they did not open. */
bool descriptor_is(int fd, uint64_t inode);
uint64_t descriptor_inode(int fd); /* the inode, to recognise the file later; 0: none */
bool process_send(enum ring_message_kind kind, uint32_t number, int fd); /* keeps errno */
bool process_reconnect(void);
bool process_is_connected(void);
/* Whether the program has closed the recorder's descriptors, as programs do that close all descriptors. */
bool process_is_cut_off(void);
bool process_renew(void); /* others in their place */
void process_hang_up(void);
void process_stop(void);   /* nothing is recorded from here on */
void process_retire(void); /* the same, without a message to the collector */
void process_refuse(const char *socket_path, enum ring_refusal why);
/* Whether filters of system calls (seccomp) were added since the recorder looked first, as far as a single read() from a
 * file that was opened before can say; true when it cannot. */
bool process_is_filtered(void);
void hook_report(enum ring_hook hook, enum ring_hook_state state, const char *text);
/* Gives 0 when it records. */
int recorder_start(const char *socket_path, uint32_t version);

/* ---- the watcher (watcher.c) ---- */

/* Before a fork: children must not inherit locks of the loader that the watcher holds. */
void watcher_pause(void);
void watcher_start(void);
void watcher_forget(void); /* in a child: what its parent's had open */
/* Starts it unless it is there, or must not be: the program is about to start a thread, or to load a library. */
void watcher_ensure(void);
/* The program is about to start one: rings are made for more. */
void watcher_expect_threads(void);
bool watcher_is_wanted(void);
/* Where the calls are seen that give a reason (hook_start.c). */
#if defined(__x86_64__)
#define WATCHER_ON_DEMAND 1
#else
#define WATCHER_ON_DEMAND 0
#endif
/* It is not started any more. */
void watcher_ban(void);
/* Until the watcher is gone, or for a while. Whether there was one. */
bool watcher_stop(void);
bool watcher_is_there(void);
/* It looks up at once instead of at the end of its interval. */
void watcher_wake(void);

/* ---- hooks ---- */

/* The recorder's own descriptors: programs that close all numbers do not close these (hook_file.c). */
void descriptor_is_ours(int fd, bool ours);
/* As far as calls were seen; also in a child. */
bool descriptor_is_known_as_ours(int fd);
bool descriptors_begin(void); /* once, before the first of them; false: no memory */
/* Finds out what the program's descriptors are: at the start, and later (by the watcher) those that were opened in ways that hooks
 * do not see. */
void descriptors_look(bool all);

struct patch {
	const char *name;
	void *wrapper;
	void *real; /* found when hooks are armed */
};
extern struct patch file_patches[];   /* hook_file.c; ends with a NULL name */
extern struct patch rights_patches[]; /* hook_rights.c; likewise */
extern struct patch start_patches[];  /* hook_start.c; likewise */
extern struct patch marker_patches[]; /* hook_marker.c; likewise */
/* The wrapper of a function that changes privileges, for one that the program looked up by name; else the same. */
void *rights_wrapper(void *real);
/* Whether the process was shut into a sandbox since its recording was wished for. */
bool sandbox_is_new(void);
/* What the program itself calls by raw instructions, as far as that can be foreseen (raw_calls.c). */
#define RAW_STRICT 1u /* the strict mode of seccomp */
#define RAW_NO_THREAD                                                                              \
	2u /* what needs a program of one thread, or leaves others outside: unshare, setns, landlock */
#define RAW_FILTER 4u /* a filter of seccomp */
uint32_t raw_calls(void);
bool patches_begin(void); /* once, before the others; false: no memory */
bool patches_find_real(void);
/* Notes which libraries are loaded now. Called before waiting for the loader. */
void patches_notice(void);
/* Patches the libraries that were loaded since the last call; returns how many calls lead to the recorder. */
uint32_t patches_apply(void);
void patches_undo(void);
/* Makes the next patches_apply visit all libraries again. */
void patches_visit_again(void);

/* Points the calls of these functions in all objects to the wrappers, or back; also calls within the object that has them. */
void patches_redirect(struct patch *table, bool undo);

/* Operators of PyTorch that come too fast to record each (torch_rate.c). */
void op_rate_arm(void *library); /* before the callbacks are registered */
void op_rate_remove(void);
void op_begins(struct thread *t, struct open_slice *slice);
/* Whether the operator is done with; otherwise it is to be recorded by itself. `t` NULL: nothing is recorded. */
bool op_ends(struct thread *t, const struct open_slice *slice, uint64_t now, const char *name);

/* Each looks whether its library is there by now. */
void torch_arm(void);
void torch_remove(void);
void cuda_remove(void); /* where it is built in */

/* ---- steps (hook_marker.c, hook_python.c) ---- */

/* The function whose calls begin steps; "" without. */
const char *marker_name(void);
/* Sets the name of the step marker, NULL or "" for none. Call it before the recorder starts. */
void marker_set(const char *name);
/* Before the program begins, when it has one thread: calls inside of the program are seen, too. */
void marker_patch_program(void);
/* Looks for the function in the libraries that are loaded now. */
void marker_find(void);
/* Records the begin of a step. */
void marker_called(void);
/* Asks the interpreter, once there is one, to let the recorder see what it needs. By the watcher. */
void python_arm(void);
bool python_is_needed(void);
void python_forget_marker(void); /* it has changed */
/* PyTorch's operators are not recorded: its optimizers are asked instead. */
void python_want_optimizers(void);

#endif
