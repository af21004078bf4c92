/* push.c: measures the cost of one record: the recorder's own code, filling a ring that is emptied on the way,
 * without and with the two clock readings that a slice needs. Built and run by bench/live/run; prints nanoseconds. */
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>

#define RECORDS 16384u
#define ROUNDS 2000u

__thread struct thread *recorder_thread;
__thread uint32_t recorder_busy;
static uint32_t generation = 1;
volatile uint32_t *recorder_generation = &generation;

struct thread *thread_prepare(void)
{
	return NULL;
}

/* Always succeeds: the ring is emptied before it is full. */
bool ring_make_room(struct thread *t, const struct ring_record *record)
{
	(void)record;
	t->look = t->head + RECORDS / 8;
	return true;
}

/* Processor time of this process, because others may be busy, too. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double measure(struct thread *t, int clocks)
{
	uint64_t begin = cpu_ns();

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < RECORDS; i++) {
			uint64_t start = clocks ? now_ns() : i;

			push(thread_current(),
			     &(struct ring_record){ .start_ns = start,
						    .dur_ns = clocks ? now_ns() - start : 1,
						    .kind = RING_SLICE,
						    .name = i });
		}
		atomic_store(&t->ring->tail, t->head);
	}
	return (double)(cpu_ns() - begin) / ((double)ROUNDS * RECORDS);
}

/* With any argument it measures the case in which the processor's counter cannot be used. */
int main(int argc, char **argv)
{
	static struct thread t = { .mask = RECORDS - 1, .generation = 1 };

	(void)argv;
	t.ring = aligned_alloc(4096, ring_bytes(RECORDS));
	if (!t.ring)
		return 1;
	*t.ring = (struct ring){ .records = RECORDS };
	t.records = ring_records(t.ring);
	recorder_thread = &t;
	clock_begin();
	measure(&t, 0);
	if (argc == 1)
		clock_adjust();
	printf("%.1f %.1f\n", measure(&t, 0), measure(&t, 1));
	return 0;
}
