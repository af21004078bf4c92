/*
 * collector_ring_test.c: memory of recorders is read with care: what is not sealed, too small, of another version or claims
 * impossible things is refused or gives nothing; records come out as they went in.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/record/collector.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int memory_file(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct ring *map_ring(int fd, uint32_t records)
{
	struct ring *ring =
		mmap(NULL, (size_t)ring_bytes(records), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(ring != MAP_FAILED);
	memcpy(ring->magic, RING_MAGIC, sizeof(ring->magic));
	ring->version = RING_VERSION;
	ring->records = records;
	ring->number = 1;
	return ring;
}

static void write_record(struct ring *ring, uint64_t number)
{
	ring_records(ring)[number % ring->records] =
		(struct ring_record){ .start_ns = number, .sequence = (uint32_t)number };
	atomic_store(&ring->head, number + 1);
}

static void refuses_what_could_shrink(void **state)
{
	int fd = memory_file((size_t)ring_bytes(64), 0);
	struct ring *ring = map_ring(fd, 64);
	struct ring_view v;
	struct ow_error err = { 0 };

	(void)state;
	assert_int_equal(ring_view_open(&v, fd, &err), OW_E_CORRUPT);
	assert_non_null(strstr(err.text, "not sealed"));
	munmap(ring, (size_t)ring_bytes(64));
	close(fd);
}

static void refuses_another_version(void **state)
{
	int fd = memory_file((size_t)ring_bytes(64), SEALS);
	struct ring *ring = map_ring(fd, 64);
	struct ring_view v;

	(void)state;
	ring->version = RING_VERSION + 1;
	assert_int_equal(ring_view_open(&v, fd, NULL), OW_E_CORRUPT);
	ring->version = RING_VERSION;
	ring->records = 128; /* more than there is room for */
	assert_int_equal(ring_view_open(&v, fd, NULL), OW_E_CORRUPT);
	munmap(ring, (size_t)ring_bytes(64));
	close(fd);
}

static void gives_records_around_the_end(void **state)
{
	int fd = memory_file((size_t)ring_bytes(64), SEALS);
	struct ring *ring = map_ring(fd, 64);
	struct ring_record copy[64];
	struct ring_view v;
	uint64_t next = 0;

	(void)state;
	assert_int_equal(ring_view_open(&v, fd, NULL), OW_OK);
	assert_int_equal(ring_view_pending(&v), 0);
	for (uint64_t number = 0; number < 1000; number++) {
		write_record(ring, number);
		if (number % 41 != 40)
			continue;
		assert_int_equal(ring_view_pending(&v), 41);
		ring_view_copy(&v, copy, 41);
		for (uint32_t i = 0; i < 41; i++)
			assert_int_equal(copy[i].start_ns, next++);
		ring_view_commit(&v, 41);
		assert_int_equal(atomic_load(&ring->tail), next);
	}
	ring_view_close(&v);
	munmap(ring, (size_t)ring_bytes(64));
	close(fd);
}

/* A ring that was emptied behind our back, or written over. */
static void impossible_heads_give_nothing(void **state)
{
	int fd = memory_file((size_t)ring_bytes(64), SEALS);
	struct ring *ring = map_ring(fd, 64);
	struct ring_view v;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		write_record(ring, i);
	assert_int_equal(ring_view_open(&v, fd, NULL), OW_OK);
	ring_view_commit(&v, 10);
	atomic_store(&ring->head, 0);
	assert_int_equal(ring_view_pending(&v), 0);
	atomic_store(&ring->head, 10 + 65);
	assert_int_equal(ring_view_pending(&v), 0);
	atomic_store(&ring->head, 10 + 64);
	assert_int_equal(ring_view_pending(&v), 64);
	ring_view_close(&v);
	munmap(ring, (size_t)ring_bytes(64));
	close(fd);
}

static void texts_stay_inside(void **state)
{
	size_t size = RING_TEXT_OFFSET + RING_TEXT_BYTES;
	int fd = memory_file(size, SEALS);
	struct ring_process *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ring_text *text = (struct ring_text *)(void *)((char *)p + RING_TEXT_OFFSET + 8);
	char copy[RING_TEXT_MAX];
	struct process_view v;

	(void)state;
	assert_true(p != MAP_FAILED);
	memcpy(p->magic, RING_PROCESS_MAGIC, sizeof(p->magic));
	p->version = RING_VERSION;
	text->len = 5;
	memcpy(text->bytes, "hello", 5);
	assert_int_equal(process_view_open(&v, fd, NULL), OW_OK);
	assert_true(str_eq(process_view_text(&v, 1, copy), STR("hello")));
	assert_int_equal(process_view_text(&v, 0, copy).len, 0);
	assert_int_equal(process_view_text(&v, RING_TEXT_BYTES / 8, copy).len, 0);
	assert_int_equal(process_view_text(&v, UINT32_MAX, copy).len, 0);
	text->len = RING_TEXT_MAX + 1;
	assert_int_equal(process_view_text(&v, 1, copy).len, 0);
	process_view_close(&v);
	p->version = RING_VERSION + 1;
	assert_int_equal(process_view_open(&v, fd, NULL), OW_E_UNSUPPORTED);
	process_view_close(&v);
	munmap(p, size);
	close(fd);
}

static void test_wrong_sizes_are_refused(void **state)
{
	const size_t sizes[] = { ring_bytes(64) + 1, ring_bytes(128) - 1, ring_bytes(64) + 4096,
				 (size_t)1 << 46 };

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		int fd = memory_file(sizes[i], SEALS);
		struct ring *ring = map_ring(fd, 64);
		struct process_view process;
		struct ring_view v;

		assert_int_equal(ring_view_open(&v, fd, NULL), OW_E_CORRUPT);
		memcpy(ring->magic, RING_PROCESS_MAGIC, sizeof(ring->magic));
		assert_int_equal(process_view_open(&process, fd, NULL), OW_E_CORRUPT);
		munmap(ring, (size_t)ring_bytes(64));
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_sizes_are_refused),
		cmocka_unit_test(refuses_what_could_shrink),
		cmocka_unit_test(refuses_another_version),
		cmocka_unit_test(gives_records_around_the_end),
		cmocka_unit_test(impossible_heads_give_nothing),
		cmocka_unit_test(texts_stay_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
