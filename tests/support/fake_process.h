/*
 * fake_process.h: plays a recorded process for unit tests of the collector: its region, one ring, and a connection.
 * Include cmocka.h before it.
 */
#ifndef SUPPORT_FAKE_PROCESS_H
#define SUPPORT_FAKE_PROCESS_H

#include "wire/own/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKE_RECORDS 1024u

/* A process as the recorder would set it up. */
struct fake {
	int region_fd, ring_fd, sockets[2];
	struct ring_process *region;
	struct ring *ring;
};

static inline void *fake_memory(size_t size, int *fd)
{
	void *at;

	*fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(*fd >= 0);
	assert_int_equal(ftruncate(*fd, (off_t)size), 0);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return at;
}

static inline void fake_open(struct fake *f)
{
	f->region = fake_memory(RING_TEXT_OFFSET + RING_TEXT_BYTES, &f->region_fd);
	memcpy(f->region->magic, RING_PROCESS_MAGIC, sizeof(f->region->magic));
	f->region->version = RING_VERSION;
	f->region->pid = (uint32_t)getpid();
	f->region->clock_monotonic_ns = 1000;
	f->ring = fake_memory((size_t)ring_bytes(FAKE_RECORDS), &f->ring_fd);
	memcpy(f->ring->magic, RING_MAGIC, sizeof(f->ring->magic));
	f->ring->version = RING_VERSION;
	f->ring->records = FAKE_RECORDS;
	f->ring->number = 1;
	atomic_store(&f->ring->thread, (uint32_t)getpid());
}

static inline void fake_close(struct fake *f)
{
	munmap(f->region, RING_TEXT_OFFSET + RING_TEXT_BYTES);
	munmap(f->ring, (size_t)ring_bytes(FAKE_RECORDS));
	close(f->region_fd);
	close(f->ring_fd);
}

static inline void fake_connect(struct fake *f)
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, f->sockets),
		0);
}

/* Sends the ring, after the hello. */
static inline void fake_send_ring(const struct fake *f)
{
	struct ring_message message = { .version = RING_VERSION, .kind = RING_NEW, .number = 1 };
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };

	memcpy(message.magic, RING_HELLO_MAGIC, sizeof(message.magic));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &f->ring_fd, sizeof(int));
	assert_int_equal(sendmsg(f->sockets[1], &packet, 0), (ssize_t)sizeof(message));
}

/* Pushes as many records as there is room for, at most `count`; returns the number. */
static inline uint32_t fake_push(const struct fake *f, uint32_t count)
{
	uint64_t head = atomic_load(&f->ring->head);
	uint32_t pushed = 0;

	for (; pushed < count && head - atomic_load(&f->ring->tail) < FAKE_RECORDS;
	     pushed++, head++)
		ring_records(f->ring)[head % FAKE_RECORDS] = (struct ring_record){
			.start_ns = 1000000 + head * 1000,
			.dur_ns = 10,
			.kind = RING_SLICE,
			.sequence = (uint32_t)head,
		};
	atomic_store(&f->ring->head, head);
	return pushed;
}

#endif
