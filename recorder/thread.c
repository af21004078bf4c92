/*
 * thread.c: one ring per thread, within a memory budget. Called by the hooks through thread_current() and push(). A thread
 * that records for the first time takes a ring that the watcher has made ahead, or that of an ended thread: the record
 * RING_THREAD says whose records follow. No system call is made for that. Where no ring is free, the call counts as
 * dropped. A forked child gives up its parent's rings before it records anything. A full ring drops the record and
 * counts it; the program never waits.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the rings of a process take at most one part in this many of its memory limit */
#define BUDGET_SHARE 64u
#define RECORDS_LEAST 256u

/* stack frames of hooks differ by less than this, and a signal handler is further below */
#define JUMP_SLACK 512u

__thread struct thread *recorder_thread;
__thread uintptr_t recorder_busy;
static __thread char thread_name[16] __attribute__((tls_model("initial-exec")));
/* the thread has no ring, and was counted as such */
static __thread bool is_without __attribute__((tls_model("initial-exec")));

static _Atomic(struct thread *) threads;
static pthread_key_t key;
static bool has_key, tid_is_in_clock;
static _Atomic uint32_t memory_failed;
static _Atomic uint64_t budget_bytes,
	used_bytes;	      /* largest size of all rings (0: not known yet), and current size */
static _Atomic uint64_t lost; /* number of records of abandoned rings; the next ring reports them */

/*
 * Rings count towards the memory limit of the job's control group, and the kernel kills a job that reaches its limit.
 * In a small group the rings are therefore small. Groups above the process's own are not read.
 */

static bool read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* Reads the memory limit of a group. In a container only the group's own folder exists. "max" is
 * not a number. */
static uint64_t limit_in(const char *base, const char *group, const char *file)
{
	static char path[512]; /* static, because a child's first record may be on a small stack */
	char text[64];
	uint64_t limit;

	if (snprintf(path, sizeof(path), "%s%s/%s", base, group, file) >= (int)sizeof(path) ||
	    !read_file(path, text, sizeof(text))) {
		snprintf(path, sizeof(path), "%s/%s", base, file);
		if (!read_file(path, text, sizeof(text)))
			return UINT64_MAX;
	}
	limit = strtoull(text, NULL, 10);
	return limit ? limit : UINT64_MAX;
}

/* Returns the path behind "0::" or "7:memory:", NUL-terminated; NULL without that line. */
static char *group_of(char *text, const char *kind)
{
	char *at = strstr(text, kind), *end;

	if (!at)
		return NULL;
	at += strlen(kind);
	end = strchr(at, '\n');
	if (end)
		*end = '\0';
	return at;
}

static uint64_t ring_budget_bytes(void)
{
	static char text[2048], copy[2048]; /* only one thread at a time runs this */
	char *group;
	uint64_t limit = UINT64_MAX, other;

	if (!read_file("/proc/self/cgroup", text, sizeof(text)))
		return UINT64_MAX;
	memcpy(copy, text, sizeof(copy));
	group = group_of(text, ":memory:");
	if (group)
		limit = limit_in("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
	group = group_of(copy, "0::");
	if (group) {
		other = limit_in("/sys/fs/cgroup", group, "memory.max");
		limit = other < limit ? other : limit;
	}
	return limit / BUDGET_SHARE;
}

static uint32_t ring_budget_records(uint64_t room, uint64_t used, uint32_t wanted)
{
	uint64_t left = room > used ? room - used : 0;

	while (wanted > RECORDS_LEAST && ring_bytes(wanted) > left / 4)
		wanted /= 2;
	return wanted;
}

/* Handles the end of a thread: its ring is free for another once the collector has read it. */
static void thread_end(void *arg)
{
	struct thread *t = arg;

	recorder_thread = NULL;
	recorder_busy = BUSY_OURS; /* destructors that run later record nothing */
	thread_counts_none(t);
	if (t->generation == *recorder_generation)
		atomic_store(&t->ring->idle, 1);
	atomic_store(&t->in_use, 0);
}

/* Returns the thread id from the number of the thread's clock, which needs no system call. */
static uint32_t tid_from_clock(void)
{
	clockid_t clock;

	return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? (uint32_t) ~(clock >> 3) : 0;
}

static uint32_t own_tid(void)
{
	return tid_is_in_clock ? tid_from_clock() : (uint32_t)syscall(SYS_gettid);
}

/* Values of high keys are in memory that the C library allocates with the first of them, which a hook must not do: the
 * watcher finds the ended threads then. */
#define KEYS_WITHOUT_MEMORY 32u

void threads_begin(void)
{
	if (!has_key && pthread_key_create(&key, thread_end) == 0)
		has_key = true;
	tid_is_in_clock = tid_from_clock() == (uint32_t)syscall(SYS_gettid);
}

void thread_set_name(const char *name)
{
	if (recorder_busy != BUSY_CHILD)
		snprintf(thread_name, sizeof(thread_name), "%s", name);
}

bool enter_again(uintptr_t here)
{
	struct thread *t = recorder_thread;

	if (recorder_busy <= BUSY_CHILD)
		return false;
	/* either this call is not recorded, or the interrupted one */
	if (t && t->generation == *recorder_generation)
		atomic_fetch_add(&t->ring->dropped, 1);
	return here + JUMP_SLACK >= recorder_busy;
}

static uint32_t ring_size(void)
{
	const char *text = getenv(RING_ENV_RECORDS);
	unsigned long wanted = text ? strtoul(text, NULL, 10) : 0;

	if (wanted < RING_RECORDS_MIN || wanted > RING_RECORDS_MAX || (wanted & (wanted - 1)))
		return RING_RECORDS;
	return (uint32_t)wanted;
}

/* Makes the thread's first ring, or replaces one of another generation. */
static bool make_ring(struct thread *t, uint32_t records)
{
	struct ring *ring =
		memory_new("opwatch-ring", ring_bytes(records), t->ring, &t->fd, &t->inode);

	if (!ring)
		return false;
	descriptor_is_ours(t->fd, true);
	t->ring = ring;
	t->records = ring_records(ring);
	t->mask = records - 1;
	t->head = t->look = 0;
	memset(t->known, 0, sizeof(t->known));
	memset(t->rates, 0, sizeof(t->rates));
	memset(&t->ops, 0, sizeof(t->ops));
	memcpy(ring->magic, RING_MAGIC, sizeof(ring->magic));
	ring->version = RING_VERSION;
	ring->records = records;
	ring->number = atomic_fetch_add(&recorder_process->rings, 1) + 1;
	ring->pid = recorder_process->pid;
	atomic_store(&ring->dropped, atomic_exchange(&lost, 0));
	atomic_store(&t->in_use, 1);
	atomic_store(&t->sent, 0);
	__atomic_store_n(&t->generation, *recorder_generation, __ATOMIC_RELEASE);
	return true;
}

/* Returns the size of the next ring; the memory limit of the group is read with the first ring. */
static uint32_t next_size(void)
{
	uint64_t known = atomic_load(&budget_bytes);
	uint32_t records;

	if (!known) {
		known = ring_budget_bytes();
		atomic_store(&budget_bytes, known ? known : 1);
	}
	records = ring_budget_records(known, atomic_load(&used_bytes), ring_size());
	atomic_fetch_add(&used_bytes, ring_bytes(records));
	return records;
}

static struct thread *thread_new(void)
{
	struct thread *t = table_new(sizeof(*t));

	if (!t)
		return NULL;
	if (madvise(t, THREAD_PAGE, MADV_WIPEONFORK) != 0 || !make_ring(t, next_size())) {
		munmap(t, sizeof(*t));
		return NULL;
	}
	t->next = atomic_load(&threads);
	while (!atomic_compare_exchange_weak(&threads, &t->next, t))
		;
	return t;
}

static bool is_current(const struct thread *t)
{
	return __atomic_load_n(&t->generation, __ATOMIC_ACQUIRE) == *recorder_generation;
}

static void set_free(struct thread *t)
{
	atomic_store(&t->ring->idle, 1);
	atomic_store(&t->in_use, 0);
}

/* Returns whether a thread ended without the destructor: by a direct system call, or because
 * there is no key. */
static bool has_ended(const struct thread *t)
{
	uint32_t tid = atomic_load(&t->in_use) && is_current(t) ? t->tid : 0;

	return tid && tid != recorder_process->pid &&
	       syscall(SYS_tgkill, recorder_process->pid, tid, 0) != 0 && errno == ESRCH;
}

/* Makes a ring of an earlier generation, which no thread has, again in its place. */
static bool make_again(struct thread *t)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&t->in_use, &none, 1))
		return false;
	if (make_ring(t, (uint32_t)t->mask + 1)) {
		set_free(t);
		return true;
	}
	atomic_store(&t->in_use, 0);
	return false;
}

uint32_t threads_free(void)
{
	uint32_t count = 0;

	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		count += is_current(t) && !atomic_load(&t->in_use);
	return count;
}

void threads_provide(uint32_t wanted)
{
	uint32_t count = 0;

	for (struct thread *t = atomic_load(&threads); t; t = t->next) {
		if (has_ended(t))
			set_free(t);
		if (!atomic_load(&t->in_use))
			count += is_current(t) || (count < wanted && make_again(t));
	}
	for (; count < wanted; count++) {
		struct thread *t = thread_new();

		atomic_store(&memory_failed, !t);
		if (!t)
			break;
		set_free(t);
	}
	threads_send();
}

/* Takes over a ring that no thread has. An unread ring still holds records of another thread before the
 * new ones. */
static bool take_over(struct thread *t, bool must_be_read)
{
	uint64_t unread = atomic_load(&t->ring->head) - atomic_load(&t->ring->tail);
	uint32_t none = 0;

	if (!is_current(t) || unread > (must_be_read ? 0 : t->mask / 2) ||
	    !atomic_compare_exchange_strong(&t->in_use, &none, 1))
		return false;
	atomic_store(&t->ring->idle, 0);
	return true;
}

/* Finds a ring for the thread; a ring of an earlier generation is left to the watcher. */
static struct thread *thread_take(void)
{
	struct thread *own = recorder_thread;

	if (own) {
		recorder_thread = NULL;
		atomic_store(&own->in_use, 0);
	}
	for (int unread = 0; unread < 2; unread++)
		for (struct thread *t = atomic_load(&threads); t; t = t->next)
			if (take_over(t, !unread))
				return t;
	return NULL;
}

/* Counts a call of a thread that has no ring, in any of the process's rings. */
static void count_without_ring(void)
{
	if (!is_without && (!watcher_is_there() || atomic_load(&memory_failed))) {
		is_without = true;
		atomic_fetch_add(&recorder_process->rings_lost, 1);
	}
	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		if (is_current(t)) {
			atomic_fetch_add(&t->ring->dropped, 1);
			return;
		}
	atomic_fetch_add(&lost, 1);
}

/* Checks the room; called when another eighth of the ring is full. A fast reader empties the ring before
 * that. */
bool ring_make_room(struct thread *t, const struct ring_record *record)
{
	uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
	uint64_t records = t->mask + 1, used = t->head - tail;
	uint64_t room = ring_room(records, used, ring_is_precious(record));

	if (!room) {
		atomic_fetch_add(&t->ring->dropped, 1);
		if (ring_is_mark(record))
			atomic_fetch_add(&t->ring->dropped_marks, 1);
		if (!process_is_wanted() && !watcher_is_there())
			process_retire(); /* the collector has left */
		return false;
	}
	t->look = t->head + (room < records / 8 ? room : records / 8);
	return true;
}

/* Records the thread's known name; the collector reads others. */
static void push_thread_record(struct thread *t)
{
	bool unread = atomic_load(&t->ring->head) != atomic_load(&t->ring->tail);

	t->tid = own_tid();
	/* a later collector would attribute unread records to this thread */
	atomic_store(&t->ring->thread, unread ? 0 : t->tid);
	push(t,
	     &(struct ring_record){
		     .start_ns = now_ns(),
		     .kind = RING_THREAD,
		     .id = t->tid,
		     .bytes = t->tid == recorder_process->pid,
		     .name = thread_name[0] ? text_number(thread_name, strlen(thread_name)) : 0 });
}

struct thread *thread_prepare(void)
{
	struct thread *t;

	if (!process_is_wanted() || !process_prepare())
		return NULL;
	t = thread_take();
	if (!t) {
		count_without_ring();
		return NULL;
	}
	push_thread_record(t);
	recorder_thread = t;
	is_without = false;
	if (has_key && key < KEYS_WITHOUT_MEMORY)
		pthread_setspecific(key, t);
	return t;
}

void threads_send(void)
{
	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		if (is_current(t) && !atomic_load(&t->sent) && descriptor_is(t->fd, t->inode) &&
		    process_send(RING_NEW, t->ring->number, t->fd))
			atomic_store(&t->sent, 1);
}

void threads_send_again(void)
{
	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		atomic_store(&t->sent, 0);
	threads_send();
}

void thread_counts_none(struct thread *t)
{
	for (size_t i = 0; i < RING_SAMPLED; i++)
		atomic_store_explicit(&t->rates[i].counting, 0, memory_order_relaxed);
}

void threads_count_none(void)
{
	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		thread_counts_none(t);
}

/* The mappings stay, since a thread may be writing at this moment, and are where its next ring will be; the collector
 * frees their memory. */
void threads_give_up(bool goes_on)
{
	uint64_t unread = 0;

	threads_count_none();
	for (struct thread *t = atomic_load(&threads); t; t = t->next) {
		if (t->fd < 0)
			continue;
		if (!atomic_load(&t->sent)) /* the collector reads the others to their end */
			unread += atomic_load(&t->ring->head) - atomic_load(&t->ring->tail);
		if (descriptor_is(t->fd, t->inode))
			close(t->fd);
		descriptor_is_ours(t->fd, false);
		t->fd = -1;
	}
	atomic_store(&lost, goes_on ? unread : 0);
}

/* Forgets all threads in a child, which has a single thread; the rings belong to the parent. */
void threads_forget(void)
{
	struct thread *t = atomic_load(&threads), *next;

	for (; t; t = next) {
		next = t->next;
		if (descriptor_is(t->fd, t->inode))
			close(t->fd);
		descriptor_is_ours(t->fd, false);
		munmap(t->ring, ring_bytes((uint32_t)t->mask + 1));
		t->ring = NULL; /* t itself stays, because open slices may still be closed */
	}
	atomic_store(&threads, NULL);
	atomic_store(&used_bytes, 0);
	recorder_thread = NULL;
}

struct open_slice *slice_open(struct thread *t)
{
	for (uint32_t i = 0; i < OPEN_SLICES; i++) {
		struct open_slice *s = &t->open[t->open_at++ % OPEN_SLICES];

		if (atomic_load_explicit(&s->taken, memory_order_acquire))
			continue;
		atomic_store_explicit(&s->taken, 1, memory_order_relaxed);
		s->thread = t;
		return s;
	}
	return NULL;
}

/* Closes a slice. The thread's own slice is reused next, because it is in the cache. */
void slice_close(struct open_slice *s)
{
	if (LIKELY(s->thread == recorder_thread))
		s->thread->open_at = (uint32_t)(s - s->thread->open);
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}
