/*
 * thread_test.c: unit test of thread.c: what is pushed is in the ring in order or counted as dropped, exactly; rings of
 * ended threads are used again; the memory budget halves rings. The process around it is played by the functions below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "thread.c" /* NOLINT(bugprone-suspicious-include) */

#define RECORDS "128"

static struct ring_process process;
struct ring_process *recorder_process = &process;
static volatile uint32_t generation = 1;
volatile uint32_t *recorder_generation = &generation;
_Atomic(const struct clock_line *) recorder_clock;
static unsigned rings_sent;
static bool no_memory;

bool process_is_wanted(void)
{
	return true;
}

bool process_prepare(void)
{
	return true;
}

void process_retire(void)
{
}

bool watcher_is_there(void)
{
	return true;
}

void descriptor_is_ours(int fd, bool ours)
{
	(void)fd;
	(void)ours;
}

void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode)
{
	void *memory = no_memory ? NULL
				 : mmap(at, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	(void)name;
	*fd = -1;
	*inode = 0;
	return memory == MAP_FAILED ? NULL : memory;
}

bool descriptor_is(int fd, uint64_t inode)
{
	(void)fd;
	(void)inode;
	return true;
}

bool process_send(enum ring_message_kind kind, uint32_t number, int fd)
{
	(void)number;
	(void)fd;
	rings_sent += kind == RING_NEW;
	return true;
}

uint32_t text_number(const char *text, size_t len)
{
	(void)text;
	return (uint32_t)len + 1;
}

static int begin_anew(void **state)
{
	(void)state;
	setenv(RING_ENV_RECORDS, RECORDS, 1);
	threads_forget();
	no_memory = false;
	process = (struct ring_process){ .pid = (uint32_t)getpid() };
	rings_sent = 0;
	threads_begin();
	threads_provide(2);
	return 0;
}

static void records_are_in_order(void **state)
{
	struct thread *t = thread_current();

	(void)state;
	assert_non_null(t);
	assert_ptr_equal(thread_current(), t);
	assert_int_equal(rings_sent, 2);
	assert_int_equal(t->records[0].kind, RING_THREAD);
	assert_int_equal(t->records[0].id, t->tid);
	for (uint64_t i = 1; i < 50; i++)
		push(t, &(struct ring_record){ .kind = RING_SLICE, .start_ns = i });
	assert_int_equal(atomic_load(&t->ring->head), 50);
	for (uint64_t i = 1; i < 50; i++) {
		assert_int_equal(t->records[i].start_ns, i);
		assert_int_equal(t->records[i].sequence, i);
	}
	assert_int_equal(atomic_load(&t->ring->dropped), 0);
}

/* Whenever the reader comes, and however much it takes. */
static void kept_and_dropped_are_all(void **state)
{
	struct thread *t = thread_current();
	uint64_t pushed = 1, taken = 0;

	(void)state;
	assert_non_null(t);
	for (uint64_t round = 0; round < 100; round++) {
		uint64_t head;

		for (uint64_t i = 0; i < round * 7 % 300; i++, pushed++)
			push(t, &(struct ring_record){ .kind = RING_SLICE, .start_ns = pushed });
		head = atomic_load(&t->ring->head);
		assert_in_range(head - taken, 0, t->mask + 1);
		taken += (head - taken) * (round % 3) / 2;
		atomic_store(&t->ring->tail, taken);
	}
	assert_int_equal(atomic_load(&t->ring->head) + atomic_load(&t->ring->dropped), pushed);
	assert_true(atomic_load(&t->ring->dropped) > 0);
	assert_int_equal(atomic_load(&t->ring->dropped_marks), 0);
}

static void *record_once(void *arg)
{
	struct thread **t = arg;

	*t = thread_current();
	return NULL;
}

static void rings_are_used_again(void **state)
{
	struct thread *first, *second, *third;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, record_once, &first), 0);
	pthread_join(thread, NULL);
	assert_non_null(first);
	assert_true(atomic_load(&first->ring->idle));
	assert_int_equal(pthread_create(&thread, NULL, record_once, &second), 0);
	pthread_join(thread, NULL);
	assert_ptr_not_equal(second, first); /* it has not been read */
	atomic_store(&first->ring->tail, atomic_load(&first->ring->head));
	assert_int_equal(pthread_create(&thread, NULL, record_once, &third), 0);
	pthread_join(thread, NULL);
	assert_ptr_equal(third, first);
	assert_int_equal(atomic_load(&process.rings), 2);
	/* With none that has been read, one of an ended thread that has room. */
	assert_int_equal(pthread_create(&thread, NULL, record_once, &third), 0);
	pthread_join(thread, NULL);
	assert_non_null(third);
	assert_int_equal(third->records[atomic_load(&third->ring->head) - 1].kind, RING_THREAD);
	assert_int_equal(atomic_load(&third->ring->thread), 0); /* two threads' */
	assert_int_equal(atomic_load(&process.rings), 2);
}

static void take_all(struct thread **taken)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, record_once, &taken[i]), 0);
		pthread_join(thread, NULL);
		taken[i]->tid = process.pid; /* it has not ended */
		atomic_store(&taken[i]->in_use, 1);
	}
}

/* No ring is free: each call is counted as dropped, the thread once, and the watcher's next ring is taken. */
static void calls_without_ring_are_counted(void **state)
{
	struct thread *taken[2];
	uint64_t dropped;

	(void)state;
	take_all(taken);
	no_memory = true;
	threads_provide(1);
	assert_null(thread_current());
	assert_null(thread_current());
	assert_int_equal(atomic_load(&process.rings_lost), 1);
	dropped = atomic_load(&taken[0]->ring->dropped) + atomic_load(&taken[1]->ring->dropped);
	assert_int_equal(dropped, 2);
	no_memory = false;
	threads_provide(1);
	assert_non_null(thread_current());
}

/* A handler that left a hook by siglongjmp: the next call is recorded, and the one that was left is counted. */
static void a_hook_may_be_left_by_a_jump(void **state)
{
	struct thread *t = thread_current();
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)state;
	recorder_busy = here - 2000; /* deeper: that frame is gone */
	assert_true(enter());
	assert_int_equal(atomic_load(&t->ring->dropped), 1);
	leave();
	recorder_busy = here + 2000; /* further up: this is its handler */
	assert_false(enter());
	assert_int_equal(atomic_load(&t->ring->dropped), 2);
	recorder_busy = BUSY_CHILD;
	assert_false(enter());
	assert_int_equal(atomic_load(&t->ring->dropped), 2);
	leave();
}

static void the_budget_halves_rings(void **state)
{
	(void)state;
	assert_int_equal(ring_budget_records(UINT64_MAX, 0, 16384), 16384);
	assert_int_equal(ring_budget_records(ring_bytes(16384) * 4, 0, 16384), 16384);
	assert_int_equal(ring_budget_records(ring_bytes(16384) * 4 - 4, 0, 16384), 8192);
	assert_int_equal(ring_budget_records(1000, 5000, 16384), RECORDS_LEAST);
	assert_true(ring_budget_bytes() > 0);
}

static void slices_are_open_and_closed(void **state)
{
	struct thread *t = thread_current();
	struct open_slice *open[OPEN_SLICES];

	(void)state;
	for (unsigned i = 0; i < OPEN_SLICES; i++)
		assert_non_null(open[i] = slice_open(t));
	assert_null(slice_open(t));
	slice_close(open[7]);
	assert_ptr_equal(slice_open(t), open[7]);
}

#define TEST(name) cmocka_unit_test_setup(name, begin_anew)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_are_in_order),	    TEST(kept_and_dropped_are_all),
		TEST(rings_are_used_again),	    TEST(calls_without_ring_are_counted),
		TEST(the_budget_halves_rings),	    TEST(slices_are_open_and_closed),
		TEST(a_hook_may_be_left_by_a_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
