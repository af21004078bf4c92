/*
 * thread.c: a ring for each thread, made when it records for the first time. Rings of threads that have ended are
 * used again by later ones: the record RING_THREAD says whose records follow. What forked children find of their
 * parent is given up before they record anything.
 */
#include "recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct thread *recorder_thread;
__thread uint32_t recorder_busy;

static _Atomic(struct thread *) threads;
static pthread_key_t key;
static _Atomic uint32_t key_made;
static _Atomic uint64_t room_bytes,
	used_bytes;	      /* bytes of rings: at most (0: not known yet), and so far */
static _Atomic uint64_t lost; /* records of rings that were given up, to be told by the next one */

/* A thread ends: its ring is free for another once the collector has read it. */
static void thread_end(void *arg)
{
	struct thread *t = arg;

	recorder_thread = NULL;
	recorder_busy = 1; /* destructors that run later record nothing */
	if (t->generation == *recorder_generation)
		atomic_store(&t->ring->idle, 1);
	atomic_store(&t->in_use, 0);
}

static void key_make(void)
{
	uint32_t none = 0;

	if (atomic_compare_exchange_strong(&key_made, &none, 1) &&
	    pthread_key_create(&key, thread_end) == 0)
		atomic_store(&key_made, 2);
}

static uint32_t ring_size(void)
{
	const char *text = getenv(RING_ENV_RECORDS);
	unsigned long wanted = text ? strtoul(text, NULL, 10) : 0;

	if (wanted < RING_RECORDS_MIN || wanted > RING_RECORDS_MAX || (wanted & (wanted - 1)))
		return RING_RECORDS;
	return (uint32_t)wanted;
}

/* Its first ring, or one in the place of that of another generation. */
static bool make_ring(struct thread *t, uint32_t records)
{
	struct ring *ring =
		memory_new("opwatch-ring", ring_bytes(records), t->ring, &t->fd, &t->inode);

	if (!ring)
		return false;
	t->ring = ring;
	t->records = ring_records(ring);
	t->mask = records - 1;
	t->head = t->look = 0;
	memset(t->known, 0, sizeof(t->known));
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

/* What the process's group has room for is looked up with the first ring. */
static uint32_t next_size(void)
{
	uint64_t known = atomic_load(&room_bytes);
	uint32_t records;

	if (!known) {
		known = room_for_rings();
		atomic_store(&room_bytes, known ? known : 1);
	}
	records = room_records(known, atomic_load(&used_bytes), ring_size());
	atomic_fetch_add(&used_bytes, ring_bytes(records));
	return records;
}

static struct thread *thread_new(void)
{
	struct thread *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	if (!make_ring(t, next_size())) {
		munmap(t, sizeof(*t));
		return NULL;
	}
	t->next = atomic_load(&threads);
	while (!atomic_compare_exchange_weak(&threads, &t->next, t))
		;
	return t;
}

/* A ring that no thread has and that has been read, or is of another generation and nobody reads. */
static bool take_over(struct thread *t)
{
	bool current = t->generation == *recorder_generation;
	uint32_t none = 0;

	if ((current && atomic_load(&t->ring->tail) != atomic_load(&t->ring->head)) ||
	    !atomic_compare_exchange_strong(&t->in_use, &none, 1))
		return false;
	if (current) {
		atomic_store(&t->ring->idle, 0);
		return true;
	}
	if (make_ring(t, (uint32_t)t->mask + 1))
		return true;
	atomic_store(&t->in_use, 0);
	return false;
}

/* The thread's own of another generation comes first: no other thread may take it. */
static struct thread *thread_reuse(void)
{
	struct thread *own = recorder_thread;

	if (own)
		return make_ring(own, (uint32_t)own->mask + 1) ? own : NULL;
	for (struct thread *t = atomic_load(&threads); t; t = t->next)
		if (take_over(t))
			return t;
	return NULL;
}

static void add_one(_Atomic uint64_t *count)
{
	uint64_t value = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, value + 1, memory_order_relaxed);
}

/* At every eighth of the ring. What is recorded between two looks of a calm reader does not come that far. */
bool ring_look(struct thread *t, const struct ring_record *record)
{
	uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
	uint64_t records = t->mask + 1, used = t->head - tail;
	uint64_t room = ring_room(records, used, ring_is_precious(record));

	if (!room) {
		add_one(&t->ring->dropped);
		if (ring_is_mark(record))
			add_one(&t->ring->dropped_marks);
		return false;
	}
	t->look = t->head + (room < records / 8 ? room : records / 8);
	if (used >= ring_plenty((uint32_t)records))
		process_send(RING_FILLING, t->ring->number, -1);
	return true;
}

static void tell_thread(struct thread *t)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	t->tid = (uint32_t)syscall(SYS_gettid);
	atomic_store(&t->ring->thread, t->tid);
	push(t, &(struct ring_record){ .start_ns = now_ns(),
				       .kind = RING_THREAD,
				       .id = t->tid,
				       .bytes = t->tid == recorder_process->pid,
				       .name = text_number(name, strnlen(name, sizeof(name))) });
}

struct thread *thread_prepare(void)
{
	struct thread *t;

	if (!process_is_wanted())
		return NULL;
	t = process_prepare() ? thread_reuse() : NULL;
	if (!t && recorder_process && !recorder_thread)
		t = thread_new();
	if (t) {
		key_make();
		tell_thread(t);
		recorder_thread = t;
		if (atomic_load(&key_made) == 2)
			pthread_setspecific(key, t);
		if (!atomic_load(&t->sent) && process_send(RING_NEW, t->ring->number, t->fd))
			atomic_store(&t->sent, 1);
	} else if (recorder_process) {
		atomic_fetch_add(&recorder_process->rings_lost, 1);
	}
	return t;
}

static bool is_current(const struct thread *t)
{
	return __atomic_load_n(&t->generation, __ATOMIC_ACQUIRE) == *recorder_generation;
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

/* The mappings stay, since a thread may be writing at this moment, and are where its next ring will be; the collector
 * frees their memory. */
void threads_give_up(bool goes_on)
{
	uint64_t unread = 0;

	for (struct thread *t = atomic_load(&threads); t; t = t->next) {
		if (t->fd < 0)
			continue;
		unread += atomic_load(&t->ring->head) - atomic_load(&t->ring->tail);
		if (descriptor_is(t->fd, t->inode))
			close(t->fd);
		t->fd = -1;
	}
	atomic_store(&lost, goes_on ? unread : 0);
}

/* The only thread of a child; the parent's rings are the parent's. */
void threads_forget(void)
{
	struct thread *t = atomic_load(&threads), *next;

	for (; t; t = next) {
		next = t->next;
		if (descriptor_is(t->fd, t->inode))
			close(t->fd);
		munmap(t->ring, ring_bytes((uint32_t)t->mask + 1));
		t->ring = NULL; /* t itself stays: slices that were open may still be closed */
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

/* The thread's own is the next one to be opened: it is in the cache. */
void slice_close(struct open_slice *s)
{
	if (LIKELY(s->thread == recorder_thread))
		s->thread->open_at = (uint32_t)(s - s->thread->open);
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}
