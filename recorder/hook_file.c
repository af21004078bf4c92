/*
 * hook_file.c: wrappers of the C library's file functions: one record per read and write of a file; calls on sockets and
 * pipes are only counted. patch.c puts them in place. I/O that does not use these functions (mapped files, io_uring, direct
 * system calls) is not seen here; the collector compares with /proc/PID/io.
 */
#include "recorder.h"
#include "plain_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * The kind of each descriptor, known without asking the system in a hook: from the call that returned it, and for those
 * that were open before from a look at the start. The watcher looks up descriptors that came in other ways (passed over
 * a socket, opened by libraries within the C library); until then calls on them count as those on pipes.
 */
#define DESCRIPTORS 65536
#define DEVICES "/dev/"
#define SHARED_MEMORY "/dev/shm/"

/* The last two bits are the class by which frequent calls are sampled; 0: none. */
enum descriptor_kind {
	DESCRIPTOR_UNKNOWN = 0,
	DESCRIPTOR_FILE = 1,
	DESCRIPTOR_SOCKET = 2,
	DESCRIPTOR_OTHER = 3,
	DESCRIPTOR_ASKED = 4, /* a call used the descriptor before its kind was known */
	DESCRIPTOR_OPENED =
		5, /* the descriptor was opened by a path, so it is most likely a file */
	DESCRIPTOR_OURS = 8
};

/* The kind, and above it a count of changes, by which the watcher sees that the number was given out again meanwhile. */
#define CLASSES 4u
#define KIND_BITS 4
static _Atomic uint16_t *kinds;
static _Atomic uint32_t kinds_asked;
static _Atomic int highest;

bool descriptors_begin(void)
{
	return table_ensure(&kinds, DESCRIPTORS * sizeof(*kinds));
}

static enum descriptor_kind kind_in(uint16_t entry)
{
	return (enum descriptor_kind)(entry & ((1u << KIND_BITS) - 1));
}

/* Sets the kind of a descriptor. A child of vfork has its own descriptor table but its parent's
 * memory, so it changes nothing. The watcher changes an entry only if it is still the one it read,
 * so a plain store is enough here. */
static void set_kind(int fd, enum descriptor_kind kind)
{
	uint16_t entry;

	if (fd < 0 || fd >= DESCRIPTORS || recorder_busy == BUSY_CHILD)
		return;
	entry = atomic_load_explicit(&kinds[fd], memory_order_relaxed);
	atomic_store_explicit(&kinds[fd],
			      (uint16_t)(((entry >> KIND_BITS) + 1u) << KIND_BITS | kind),
			      memory_order_release);
	if (UNLIKELY(fd > atomic_load_explicit(&highest, memory_order_relaxed)))
		atomic_store_explicit(&highest, fd, memory_order_relaxed);
}

static void forget_descriptor(int fd)
{
	set_kind(fd, DESCRIPTOR_UNKNOWN);
}

void descriptor_is_ours(int fd, bool ours)
{
	set_kind(fd, ours ? DESCRIPTOR_OURS : DESCRIPTOR_UNKNOWN);
}

bool descriptor_is_known_as_ours(int fd)
{
	return fd >= 0 && fd < DESCRIPTORS && kind_in(atomic_load(&kinds[fd])) == DESCRIPTOR_OURS;
}

/* Returns whether a descriptor belongs to the recorder: a program that closes all descriptors does not
 * mean those that it did not open. A child may close them. */
static bool is_ours(int fd)
{
	return *recorder_generation && recorder_busy != BUSY_CHILD &&
	       descriptor_is_known_as_ours(fd);
}

static void set_kind_of_path(int fd, const char *path)
{
	set_kind(fd, strncmp(path, DEVICES, sizeof(DEVICES) - 1) != 0 ||
				     strncmp(path, SHARED_MEMORY, sizeof(SHARED_MEMORY) - 1) == 0
			     ? DESCRIPTOR_OPENED
			     : DESCRIPTOR_ASKED);
	if (fd >= 0)
		atomic_store_explicit(&kinds_asked, 1, memory_order_relaxed);
}

static void copy_kind(int from, int to)
{
	enum descriptor_kind kind =
		from >= 0 && from < DESCRIPTORS ? kind_in(atomic_load(&kinds[from])) : 0;

	set_kind(to, kind == DESCRIPTOR_OURS ? DESCRIPTOR_UNKNOWN : kind);
}

static enum descriptor_kind look_up_descriptor(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	struct stat st;

	if (fstat(fd, &st) != 0)
		return DESCRIPTOR_UNKNOWN;
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		return DESCRIPTOR_FILE;
	if (S_ISSOCK(st.st_mode) && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	    address.ss_family != AF_UNIX)
		return DESCRIPTOR_SOCKET;
	return DESCRIPTOR_OTHER;
}

static void look_at_descriptor(int fd, bool all)
{
	uint16_t entry = atomic_load(&kinds[fd]);
	enum descriptor_kind kind = kind_in(entry);

	if (kind == DESCRIPTOR_ASKED || kind == DESCRIPTOR_OPENED ||
	    (all && kind == DESCRIPTOR_UNKNOWN))
		atomic_compare_exchange_strong(
			&kinds[fd], &entry,
			(uint16_t)((entry >> KIND_BITS) << KIND_BITS | look_up_descriptor(fd)));
}

/* Examines descriptors: at the start all of them, later those that hooks asked for. */
void descriptors_look(bool all)
{
	DIR *folder = all ? opendir("/proc/self/fd") : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && fd < DESCRIPTORS && fd != dirfd(folder))
			look_at_descriptor(fd, true);
	}
	if (folder)
		closedir(folder);
	if (all || !atomic_exchange(&kinds_asked, 0))
		return;
	for (int fd = 0; fd <= atomic_load(&highest); fd++)
		look_at_descriptor(fd, false);
}

static enum descriptor_kind kind_of(int fd)
{
	uint16_t entry;

	if (fd < 0 || fd >= DESCRIPTORS)
		return DESCRIPTOR_OTHER;
	entry = atomic_load_explicit(&kinds[fd], memory_order_relaxed);
	switch (kind_in(entry)) {
	case DESCRIPTOR_UNKNOWN:
		atomic_compare_exchange_strong(&kinds[fd], &entry,
					       (uint16_t)(entry | DESCRIPTOR_ASKED));
		if (fd > atomic_load_explicit(&highest, memory_order_relaxed))
			atomic_store_explicit(&highest, fd, memory_order_relaxed);
		atomic_store_explicit(&kinds_asked, 1, memory_order_relaxed);
		return DESCRIPTOR_OTHER;
	case DESCRIPTOR_OPENED:
		return DESCRIPTOR_FILE;
	default:
		return kind_in(entry);
	}
}

static void push_file_record(struct thread *t, const char *name, enum ring_category category,
			     uint64_t start, uint64_t end, int fd, uint64_t bytes)
{
	push(t, &(struct ring_record){ .start_ns = start,
				       .dur_ns = ns_since(start, end),
				       .bytes = bytes,
				       .kind = RING_SLICE,
				       .category = (uint16_t)category,
				       .stream = (uint32_t)fd,
				       .name = text_number_cached(t, name) });
}

/*
 * A record costs some 100 ns, as much as half a small read. Calls that come faster than one in RATE_NS are therefore counted,
 * and one in some is recorded, such that records are about RATE_RECORD_NS apart. Which one is random, so that calls which
 * alternate are not mistaken. A record says how many calls it stands for; counts and bytes stay exact. Calls on sockets and
 * pipes are always only counted.
 */
#define RATE_NS 20000u
#define RATE_RECORD_NS 300000u
#define RATE_WINDOW 256u /* number of records from which the rate is determined */
/* number of records from which the rate is determined while calls are sampled */
#define RATE_RECORDS 32u
#define RATE_MOST 1024u

/* Calls that are sampled when they are frequent, with and without buffer checks or 64-bit positions: first those that
 * are sampled per class of descriptor. */
enum sampled_call { S_read, S_pread, S_readv, S_preadv, S_write, S_pwrite, S_writev, S_BY_CLASS };

/* Places of the rates: of the calls above one per class, of the others one each. */
enum sampled_place {
	AT_SEND = S_BY_CLASS * CLASSES,
	AT_RECEIVE,
	AT_POLL,
	AT_OPEN,
	AT_FOPEN,
	AT_FREAD,
	AT_FGETS,
	AT_GETLINE,
	AT_FWRITE,
	AT_END,
	AT_NONE = AT_END /* each call is recorded */
};
_Static_assert(AT_END <= RING_SAMPLED, "layout");

static inline unsigned place_of(enum sampled_call call, uint16_t entry)
{
	return (unsigned)call * CLASSES + (entry & (CLASSES - 1));
}

/* Adjusts the sampling rate after a record that stands for this many calls. Single long gaps, in which other programs
 * had the processor, do not count. Returns how many calls are only counted now. */
static uint32_t adjust_rate(struct thread *t, struct call_rate *r, uint64_t start, uint32_t calls)
{
	uint64_t gap = ns_since(r->last_ns, start) / calls;

	r->last_ns = start;
	r->seen++;
	if (gap < RATE_NS) {
		r->fast++;
		r->fast_ns += (uint32_t)gap;
	}
	if (r->seen >= (r->every > 1 ? RATE_RECORDS : RATE_WINDOW)) {
		uint32_t mean = r->fast ? r->fast_ns / r->fast : RATE_NS;

		r->every = r->fast * 4 >= r->seen * 3 ? RATE_RECORD_NS / (mean ? mean : 1) : 1;
		r->every = r->every < RATE_MOST ? r->every : RATE_MOST;
		r->seen = r->fast = r->fast_ns = 0;
	}
	return r->every > 1 ? roll_dice(t) % (2 * r->every - 1) : 0;
}

static void count_next_calls(struct call_rate *r, struct ring_count *counts, uint32_t calls)
{
	r->counts = counts;
	r->left = calls;
	if (calls)
		atomic_store(&r->counting, 1);
}

/* The rate, when this call is only counted. That nothing else needs to be checked is ensured by all who clear `counting`: after
 * a fork, before a child of vfork, while a call is recorded, at the end. */
static inline struct call_rate *rate_if_counting(struct thread *t, unsigned place)
{
	struct call_rate *r = &t->rates[place];

	return LIKELY(atomic_load_explicit(&r->counting, memory_order_relaxed)) ? r : NULL;
}

static inline struct call_rate *only_counted_at(enum sampled_place place)
{
	struct thread *t = recorder_thread;

	return LIKELY(t) ? rate_if_counting(t, place) : NULL;
}

static inline struct call_rate *only_counted(enum sampled_call call, int fd)
{
	struct thread *t = recorder_thread;

	if (UNLIKELY(!t || (unsigned)fd >= DESCRIPTORS))
		return NULL;
	return rate_if_counting(
		t, place_of(call, atomic_load_explicit(&kinds[fd], memory_order_relaxed)));
}

/* Adds in one instruction if possible, so that a signal handler may do the same. */
static inline void add_to(_Atomic uint64_t *at, uint64_t more)
{
#if defined(__x86_64__)
	__asm__("addq %1, %0" : "+m"(*at) : "er"(more) : "cc");
#else
	atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + more,
			      memory_order_relaxed);
#endif
}

static inline void count_sampled(struct call_rate *r, ssize_t bytes)
{
	/* a signal handler may have ended the recording or forked in the meantime */
	if (UNLIKELY(!atomic_load_explicit(&r->counting, memory_order_relaxed)))
		return;
	add_to(&r->counts->calls, 1);
	if (LIKELY(bytes > 0))
		add_to(&r->counts->bytes, (uint64_t)bytes);
	if (UNLIKELY(--r->left == 0))
		atomic_store_explicit(&r->counting, 0, memory_order_relaxed);
}

/* Records a sampled call of a file, with the calls that were counted since the last record. */
static void push_sampled(struct thread *t, unsigned place, const char *name,
			 enum ring_category category, uint64_t start, uint64_t end, int fd,
			 uint64_t bytes)
{
	struct ring_sampled *s = &t->ring->sampled[place];
	struct call_rate *rate = &t->rates[place];
	uint32_t text = text_number_cached(t, name), calls;
	uint64_t head = t->head;

	/* calls in signal handlers are not sampled until this is done */
	atomic_store(&rate->counting, 0);
	calls = (uint32_t)atomic_load_explicit(&s->count.calls, memory_order_relaxed) + 1;
	bytes += atomic_load_explicit(&s->count.bytes, memory_order_relaxed);
	atomic_store_explicit(&s->name, text, memory_order_relaxed);
	atomic_store_explicit(&s->taken, (uint32_t)t->head + 1, memory_order_relaxed);
	if (category == RING_FILE_READ)
		count_calls(t, RING_FILE_READS, calls, bytes);
	push(t, &(struct ring_record){ .start_ns = start,
				       .dur_ns = ns_since(start, end),
				       .bytes = bytes,
				       .kind = RING_SLICE,
				       .category = (uint16_t)category,
				       .stream = (uint32_t)fd,
				       .name = text,
				       .calls = calls > 1 ? calls : 0 });
	if (t->head !=
	    head) { /* otherwise the record was dropped, and the next one includes its calls */
		/* after the record is written */
		atomic_store_explicit(&s->count.calls, 0, memory_order_release);
		atomic_store_explicit(&s->count.bytes, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&s->taken, 0, memory_order_release);
	count_next_calls(rate, &s->count, adjust_rate(t, rate, start, calls));
}

/* Counts a call that is never recorded; the next ones at `place` are counted without a check of anything else. */
static void count_all(struct thread *t, unsigned place, enum ring_counter counter, uint64_t bytes)
{
	count_call(t, counter, bytes);
	if (place < AT_END)
		count_next_calls(&t->rates[place], &t->ring->counts[counter], UINT32_MAX);
}

static enum ring_counter counter_of(enum descriptor_kind kind, bool reads)
{
	if (kind == DESCRIPTOR_SOCKET)
		return reads ? RING_SOCKET_READ : RING_SEND;
	return reads ? RING_PIPE_READ : RING_PIPE_WRITE;
}

/* Returns the place of calls on sockets or pipes, from the place of calls on files. */
static unsigned place_beside(unsigned place, int fd, enum descriptor_kind kind)
{
	bool known = (unsigned)fd < DESCRIPTORS &&
		     kind_in(atomic_load_explicit(&kinds[fd], memory_order_relaxed)) == kind &&
		     kind < CLASSES;

	return known && place < AT_SEND ? place / CLASSES * CLASSES + kind : AT_NONE;
}

/* Records a call that moved bytes; keeps the caller's errno. `place`: where calls on files are
 * sampled. */
static void record_transfer(const char *name, unsigned place, bool reads, int fd, uint64_t start,
			    ssize_t bytes)
{
	uint64_t end = now_ns(), len = bytes > 0 ? (uint64_t)bytes : 0;
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t) {
		enum descriptor_kind kind = kind_of(fd);

		if (kind != DESCRIPTOR_FILE)
			count_all(t, place_beside(place, fd, kind), counter_of(kind, reads), len);
		else if (place < AT_END)
			push_sampled(t, place, name, reads ? RING_FILE_READ : RING_FILE_WRITE,
				     start, end, fd, len);
		else
			push_file_record(t, name, RING_FILE_WRITE, start, end, fd, len);
	}
	leave();
	errno = error;
}

static __attribute__((noinline)) void count_first(enum sampled_place place,
						  enum ring_counter counter, ssize_t bytes)
{
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t)
		count_all(t, place, counter, bytes > 0 ? (uint64_t)bytes : 0);
	leave();
	errno = error;
}

static __attribute__((noinline)) void record_open(const char *name, enum sampled_place place,
						  int fd, uint64_t start)
{
	uint64_t end = now_ns();
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t)
		push_sampled(t, place, name, RING_FILE_OPEN, start, end, fd, 0);
	leave();
	errno = error;
}

static void count_mapping(int fd, size_t len)
{
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t && kind_of(fd) == DESCRIPTOR_FILE)
		count_call(t, RING_MAPPED, len);
	leave();
	errno = error;
}

/*
 * Most calls of stdio are served from its buffer, and a wrapper that returns to the caller would cost as much as they do: those
 * go straight on. The others are recorded with the bytes that the C library read or wrote for them.
 */

static size_t unread_in(const FILE *file)
{
	return (size_t)(file->_IO_read_end - file->_IO_read_ptr);
}

static bool has_unread(const FILE *file, size_t bytes)
{
	return LIKELY(unread_in(file) >= bytes);
}

static bool has_unread_end(const FILE *file, int end)
{
	size_t unread = unread_in(file);

	return LIKELY(unread && memchr(file->_IO_read_ptr, end, unread));
}

static bool has_room(const FILE *file, size_t bytes)
{
	return LIKELY(file->_IO_write_end > file->_IO_write_ptr &&
		      (size_t)(file->_IO_write_end - file->_IO_write_ptr) > bytes);
}

static size_t unwritten_in(const FILE *file)
{
	return (size_t)(file->_IO_write_ptr - file->_IO_write_base);
}

struct stdio_call {
	struct call_rate *counted;
	uint64_t start;
	size_t unread, unwritten;
};

static struct stdio_call stdio_begins(enum sampled_place place, const FILE *file)
{
	struct stdio_call c = { .counted = only_counted_at(place),
				.unread = unread_in(file),
				.unwritten = unwritten_in(file) };

	if (!c.counted)
		c.start = now_ns();
	return c;
}

static size_t less(size_t bytes, size_t part)
{
	return bytes > part ? bytes - part : 0;
}

/* `bytes`: how many the program took or gave. */
static void stdio_ends(const struct stdio_call *c, const char *name, enum sampled_place place,
		       FILE *file, size_t bytes)
{
	bool reads = place != AT_FWRITE;
	int error = errno;

	bytes = reads ? less(bytes + unread_in(file), c->unread)
		      : less(bytes + c->unwritten, unwritten_in(file));
	if (c->counted && bytes)
		count_sampled(c->counted, (ssize_t)bytes);
	else if (!c->counted && (bytes || reads))
		record_transfer(name, place, reads, fileno_unlocked(file), c->start,
				(ssize_t)bytes);
	errno = error;
}

enum patch_index {
#define WRAP(name) P_##name,
#include "file_calls.def"
#undef WRAP
	PATCHES
};

#define REAL(name) ((__typeof__(&my_##name))file_patches[P_##name].real)

/* Functions of the C library that are nothing but a system call, see plain_calls.h. */
#define PLAIN_CALLS(X)                                                                             \
	X(read, read)                                                                              \
	X(pread, pread64)                                                                          \
	X(pread64, pread64)                                                                        \
	X(write, write)                                                                            \
	X(pwrite, pwrite64)                                                                        \
	X(pwrite64, pwrite64)                                                                      \
	X(send, sendto)                                                                            \
	X(recv, recvfrom)                                                                          \
	X(poll, poll)                                                                              \
	X(epoll_wait, epoll_wait)

#define PLAIN_INDEX(name, number) PLAIN_##name,
enum plain_index { PLAIN_CALLS(PLAIN_INDEX) PLAIN_COUNT };
static struct plain_call plain_calls[PLAIN_COUNT];

void file_calls_found(void)
{
#if defined(__x86_64__)
#define PLAIN_FIND(name, number)                                                                   \
	plain_call_find(&plain_calls[PLAIN_##name], file_patches[P_##name].real, SYS_##number);
	PLAIN_CALLS(PLAIN_FIND)
#endif
}

/* What a return costs does not matter for longer ones, which leave little of the caches: what is compared would come from memory. */
#define IS_SMALL(bytes) ((bytes) <= 4096)

/* A part of a wrapper: makes the call itself and counts it, if that may be done. No other function is called here, so that
 * the wrapper needs no stack. */
#if defined(__x86_64__)
#define PLAIN(name, number, worth, bytes, ...)                                                     \
	if (LIKELY(worth) && LIKELY(is_plain_call(&plain_calls[PLAIN_##name]))) {                  \
		long n = plain_call_make(SYS_##number, __VA_ARGS__);                               \
                                                                                                   \
		count_sampled(counted, bytes);                                                     \
		return LIKELY(n >= 0) ? n : plain_call_failed(n);                                  \
	}
#else
#define PLAIN(name, number, worth, bytes, ...)
#endif
#define NOT_PLAIN

/* Wraps a call that moves bytes; `call` is an enum sampled_call. Counting and recording are functions of their own, so that
 * the wrapper needs few registers. */
#define MOVE(result, name, call, reads, fd, params, args, plain)                                   \
	static __attribute__((noinline)) result recorded_##name params;                            \
	static __attribute__((noinline)) result counted_##name params;                             \
                                                                                                   \
	static result my_##name params                                                             \
	{                                                                                          \
		struct call_rate *counted = only_counted(S_##call, fd);                            \
                                                                                                   \
		if (UNLIKELY(!counted))                                                            \
			return recorded_##name args;                                               \
		plain return counted_##name args;                                                  \
	}                                                                                          \
                                                                                                   \
	static result counted_##name params                                                        \
	{                                                                                          \
		struct call_rate *counted = only_counted(S_##call, fd);                            \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		if (LIKELY(counted))                                                               \
			count_sampled(counted, (ssize_t)n);                                        \
		return n;                                                                          \
	}                                                                                          \
                                                                                                   \
	static result recorded_##name params                                                       \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		record_transfer(#name, S_##call *CLASSES + DESCRIPTOR_FILE, reads, fd, start,      \
				(ssize_t)n);                                                       \
		return n;                                                                          \
	}

/* Wraps a call that is only counted. */
#define COUNT(result, name, place, counter, bytes, params, args, plain)                            \
	static __attribute__((noinline)) result counted_##name params;                             \
                                                                                                   \
	static result my_##name params                                                             \
	{                                                                                          \
		struct call_rate *counted = only_counted_at(place);                                \
                                                                                                   \
		if (UNLIKELY(!counted))                                                            \
			return counted_##name args;                                                \
		plain return counted_##name args;                                                  \
	}                                                                                          \
                                                                                                   \
	static result counted_##name params                                                        \
	{                                                                                          \
		struct call_rate *counted = only_counted_at(place);                                \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		if (LIKELY(counted))                                                               \
			count_sampled(counted, bytes);                                             \
		else                                                                               \
			count_first(place, counter, bytes);                                        \
		return n;                                                                          \
	}

MOVE(ssize_t, read, read, true, fd, (int fd, void *to, size_t len), (fd, to, len),
     PLAIN(read, read, IS_SMALL(len), n, fd, (long)to, (long)len, 0, 0, 0))
MOVE(ssize_t, __read_chk, read, true, fd, (int fd, void *to, size_t len, size_t size),
     (fd, to, len, size), NOT_PLAIN)
MOVE(ssize_t, pread, pread, true, fd, (int fd, void *to, size_t len, off_t at), (fd, to, len, at),
     PLAIN(pread, pread64, IS_SMALL(len), n, fd, (long)to, (long)len, at, 0, 0))
MOVE(ssize_t, pread64, pread, true, fd, (int fd, void *to, size_t len, off64_t at),
     (fd, to, len, at),
     PLAIN(pread64, pread64, IS_SMALL(len), n, fd, (long)to, (long)len, at, 0, 0))
MOVE(ssize_t, __pread_chk, pread, true, fd, (int fd, void *to, size_t len, off_t at, size_t size),
     (fd, to, len, at, size), NOT_PLAIN)
MOVE(ssize_t, __pread64_chk, pread, true, fd,
     (int fd, void *to, size_t len, off64_t at, size_t size), (fd, to, len, at, size), NOT_PLAIN)
MOVE(ssize_t, readv, readv, true, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v),
     NOT_PLAIN)
MOVE(ssize_t, preadv, preadv, true, fd, (int fd, const struct iovec *v, int n_v, off_t at),
     (fd, v, n_v, at), NOT_PLAIN)
MOVE(ssize_t, preadv64, preadv, true, fd, (int fd, const struct iovec *v, int n_v, off64_t at),
     (fd, v, n_v, at), NOT_PLAIN)
MOVE(ssize_t, write, write, false, fd, (int fd, const void *from, size_t len), (fd, from, len),
     PLAIN(write, write, IS_SMALL(len), n, fd, (long)from, (long)len, 0, 0, 0))
MOVE(ssize_t, pwrite, pwrite, false, fd, (int fd, const void *from, size_t len, off_t at),
     (fd, from, len, at),
     PLAIN(pwrite, pwrite64, IS_SMALL(len), n, fd, (long)from, (long)len, at, 0, 0))
MOVE(ssize_t, pwrite64, pwrite, false, fd, (int fd, const void *from, size_t len, off64_t at),
     (fd, from, len, at),
     PLAIN(pwrite64, pwrite64, IS_SMALL(len), n, fd, (long)from, (long)len, at, 0, 0))
MOVE(ssize_t, writev, writev, false, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v),
     NOT_PLAIN)

/* Wraps a flush, which is never frequent. */
#define FLUSH(name)                                                                                \
	static int my_##name(int fd)                                                               \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		int status = REAL(name)(fd);                                                       \
                                                                                                   \
		record_transfer(#name, AT_NONE, false, fd, start, status);                         \
		return status;                                                                     \
	}
FLUSH(fsync)
FLUSH(fdatasync)

COUNT(ssize_t, send, AT_SEND, RING_SEND, n, (int fd, const void *from, size_t len, int flags),
      (fd, from, len, flags),
      PLAIN(send, sendto, IS_SMALL(len), n, fd, (long)from, (long)len, flags, 0, 0))
COUNT(ssize_t, sendto, AT_SEND, RING_SEND, n,
      (int fd, const void *from, size_t len, int flags, const struct sockaddr *to,
       socklen_t to_len),
      (fd, from, len, flags, to, to_len), NOT_PLAIN)
COUNT(ssize_t, sendmsg, AT_SEND, RING_SEND, n, (int fd, const struct msghdr *m, int flags),
      (fd, m, flags), NOT_PLAIN)
COUNT(ssize_t, recv, AT_RECEIVE, RING_RECEIVE, n, (int fd, void *to, size_t len, int flags),
      (fd, to, len, flags),
      PLAIN(recv, recvfrom, IS_SMALL(len), n, fd, (long)to, (long)len, flags, 0, 0))
COUNT(ssize_t, recvfrom, AT_RECEIVE, RING_RECEIVE, n,
      (int fd, void *to, size_t len, int flags, struct sockaddr *from, socklen_t *from_len),
      (fd, to, len, flags, from, from_len), NOT_PLAIN)
COUNT(ssize_t, recvmsg, AT_RECEIVE, RING_RECEIVE, n, (int fd, struct msghdr *m, int flags),
      (fd, m, flags), NOT_PLAIN)
COUNT(ssize_t, __recv_chk, AT_RECEIVE, RING_RECEIVE, n,
      (int fd, void *to, size_t len, size_t size, int flags), (fd, to, len, size, flags), NOT_PLAIN)
COUNT(int, poll, AT_POLL, RING_POLL, 0, (struct pollfd * fds, nfds_t count, int ms),
      (fds, count, ms), PLAIN(poll, poll, true, 0, (long)fds, (long)count, ms, 0, 0, 0))
COUNT(int, __poll_chk, AT_POLL, RING_POLL, 0,
      (struct pollfd * fds, nfds_t count, int ms, size_t size), (fds, count, ms, size), NOT_PLAIN)
COUNT(int, ppoll, AT_POLL, RING_POLL, 0,
      (struct pollfd * fds, nfds_t count, const struct timespec *t, const sigset_t *mask),
      (fds, count, t, mask), NOT_PLAIN)
COUNT(int, select, AT_POLL, RING_POLL, 0,
      (int count, fd_set *r, fd_set *w, fd_set *x, struct timeval *t), (count, r, w, x, t),
      NOT_PLAIN)
COUNT(int, epoll_wait, AT_POLL, RING_POLL, 0,
      (int fd, struct epoll_event *events, int most, int ms), (fd, events, most, ms),
      PLAIN(epoll_wait, epoll_wait, true, 0, fd, (long)events, most, ms, 0, 0))
COUNT(int, epoll_pwait, AT_POLL, RING_POLL, 0,
      (int fd, struct epoll_event *events, int most, int ms, const sigset_t *mask),
      (fd, events, most, ms, mask), NOT_PLAIN)

/* Wraps mmap: reads from a mapping cannot be seen, so the mapping is counted. */
#define MAP(name, offset)                                                                          \
	static void *my_##name(void *at, size_t len, int protection, int flags, int fd, offset o)  \
	{                                                                                          \
		void *map;                                                                         \
                                                                                                   \
		if (fd < 0 || !(protection & PROT_READ) || protection & PROT_EXEC)                 \
			return REAL(name)(at, len, protection, flags, fd, o);                      \
		map = REAL(name)(at, len, protection, flags, fd, o);                               \
		if (map != MAP_FAILED)                                                             \
			count_mapping(fd, len);                                                    \
		return map;                                                                        \
	}
MAP(mmap, off_t)
MAP(mmap64, off64_t)

#define TAKE_MODE(mode, flags)                                                                     \
	mode_t mode = 0;                                                                           \
	if ((flags) & (O_CREAT | O_TMPFILE)) {                                                     \
		va_list list;                                                                      \
		va_start(list, flags);                                                             \
		mode = (mode_t)va_arg(list, unsigned);                                             \
		va_end(list);                                                                      \
	}

/* Wraps a call that opens a file; `fd_of` is its descriptor. */
#define OPENS(result, name, title, place, path, fd_of, made)                                       \
	struct call_rate *counted = only_counted_at(place);                                        \
	uint64_t start = counted ? 0 : now_ns();                                                   \
	result opened = made;                                                                      \
                                                                                                   \
	set_kind_of_path(fd_of, path);                                                             \
	if (counted)                                                                               \
		count_sampled(counted, 0);                                                         \
	else                                                                                       \
		record_open(title, place, fd_of, start);                                           \
	return opened;

#define OPEN(name)                                                                                 \
	static int my_##name(const char *path, int flags, ...)                                     \
	{                                                                                          \
		TAKE_MODE(mode, flags)                                                             \
		OPENS(int, name, "open", AT_OPEN, path, opened, REAL(name)(path, flags, mode))     \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
	static int my_##name(int folder, const char *path, int flags, ...)                         \
	{                                                                                          \
		TAKE_MODE(mode, flags)                                                             \
		OPENS(int, name, "open", AT_OPEN, path, opened,                                    \
		      REAL(name)(folder, path, flags, mode))                                       \
	}
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                                                \
	static FILE *my_##name(const char *path, const char *mode)                                 \
	{                                                                                          \
		OPENS(FILE *, name, "fopen", AT_FOPEN, path,                                       \
		      opened ? fileno_unlocked(opened) : -1, REAL(name)(path, mode))               \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* Wraps a call of stdio. `buffered`: the buffer is enough for it; `bytes`: how many it took or gave. */
#define STDIO(result, name, title, place, buffered, bytes, params, args)                           \
	static __attribute__((noinline)) result recorded_##name params;                            \
                                                                                                   \
	static result my_##name params                                                             \
	{                                                                                          \
		return buffered ? REAL(name) args : recorded_##name args;                          \
	}                                                                                          \
                                                                                                   \
	static result recorded_##name params                                                       \
	{                                                                                          \
		struct stdio_call call = stdio_begins(place, file);                                \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		stdio_ends(&call, title, place, file, bytes);                                      \
		return n;                                                                          \
	}

STDIO(size_t, fread, "fread", AT_FREAD, has_unread(file, size *count), n *size,
      (void *to, size_t size, size_t count, FILE *file), (to, size, count, file))
STDIO(size_t, fread_unlocked, "fread", AT_FREAD, has_unread(file, size *count), n *size,
      (void *to, size_t size, size_t count, FILE *file), (to, size, count, file))
STDIO(size_t, __fread_chk, "fread", AT_FREAD, has_unread(file, size *count), n *size,
      (void *to, size_t room, size_t size, size_t count, FILE *file), (to, room, size, count, file))
STDIO(size_t, fwrite, "fwrite", AT_FWRITE, has_room(file, size *count), n *size,
      (const void *from, size_t size, size_t count, FILE *file), (from, size, count, file))
STDIO(char *, fgets, "fgets", AT_FGETS,
      size <= 1 || has_unread(file, (size_t)size - 1) || has_unread_end(file, '\n'),
      n ? strlen(n) : 0, (char *to, int size, FILE *file), (to, size, file))
STDIO(ssize_t, getline, "getline", AT_GETLINE, has_unread_end(file, '\n'), n > 0 ? (size_t)n : 0,
      (char **line, size_t *size, FILE *file), (line, size, file))
STDIO(ssize_t, getdelim, "getdelim", AT_GETLINE, has_unread_end(file, end), n > 0 ? (size_t)n : 0,
      (char **line, size_t *size, int end, FILE *file), (line, size, end, file))
STDIO(ssize_t, __getdelim, "getdelim", AT_GETLINE, has_unread_end(file, end), n > 0 ? (size_t)n : 0,
      (char **line, size_t *size, int end, FILE *file), (line, size, end, file))

/* Handles a descriptor that becomes invalid. */

static int my_close(int fd)
{
	if (UNLIKELY(is_ours(fd))) {
		errno = EBADF; /* same result as without the recorder */
		return -1;
	}
	forget_descriptor(fd);
	return REAL(close)(fd);
}

static int my_fclose(FILE *file)
{
	forget_descriptor(fileno_unlocked(file));
	return REAL(fclose)(file);
}

/* Closes all descriptors of the range except the recorder's. */
static int my_close_range(unsigned first, unsigned last, int flags)
{
	unsigned end = (unsigned)atomic_load(&highest), from = first;
	int status = 0;

	for (unsigned fd = first; fd <= end && fd <= last; fd++) {
		if (!is_ours((int)fd)) {
			if (!(flags & CLOSE_RANGE_CLOEXEC))
				forget_descriptor((int)fd);
			continue;
		}
		if (from < fd)
			status |= REAL(close_range)(from, fd - 1, flags);
		from = fd + 1;
	}
	return from <= last && from >= first ? status | REAL(close_range)(from, last, flags)
					     : status;
}

static void my_closefrom(int first)
{
	int end = atomic_load(&highest);
	bool some = false;

	for (int fd = first < 0 ? 0 : first; fd <= end && !some; fd++)
		some = is_ours(fd);
	if (!some)
		REAL(closefrom)(first);
	else
		my_close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0);
}

/* Handles descriptors that refer to another file from now on. */

static int my_dup(int from)
{
	int fd = REAL(dup)(from);

	copy_kind(from, fd);
	return fd;
}

static int my_dup2(int from, int to)
{
	int fd = REAL(dup2)(from, to);

	if (fd >= 0 && from != to)
		copy_kind(from, fd);
	return fd;
}

static int my_dup3(int from, int to, int flags)
{
	int fd = REAL(dup3)(from, to, flags);

	copy_kind(from, fd);
	return fd;
}

#define FCNTL(name)                                                                                \
	static int my_##name(int fd, int command, long arg)                                        \
	{                                                                                          \
		int result;                                                                        \
                                                                                                   \
		if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)                              \
			return REAL(name)(fd, command, arg);                                       \
		result = REAL(name)(fd, command, arg);                                             \
		copy_kind(fd, result);                                                             \
		return result;                                                                     \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

static int my_socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);

	set_kind(fd, domain == AF_UNIX ? DESCRIPTOR_OTHER : DESCRIPTOR_SOCKET);
	return fd;
}

static int my_socketpair(int domain, int type, int protocol, int fds[2])
{
	int status = REAL(socketpair)(domain, type, protocol, fds);

	if (status == 0) {
		set_kind(fds[0], DESCRIPTOR_OTHER);
		set_kind(fds[1], DESCRIPTOR_OTHER);
	}
	return status;
}

static int my_accept(int fd, struct sockaddr *from, socklen_t *len)
{
	int got = REAL(accept)(fd, from, len);

	copy_kind(fd, got);
	return got;
}

static int my_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	int got = REAL(accept4)(fd, from, len, flags);

	copy_kind(fd, got);
	return got;
}

static int my_pipe(int fds[2])
{
	int status = REAL(pipe)(fds);

	if (status == 0) {
		set_kind(fds[0], DESCRIPTOR_OTHER);
		set_kind(fds[1], DESCRIPTOR_OTHER);
	}
	return status;
}

static int my_pipe2(int fds[2], int flags)
{
	int status = REAL(pipe2)(fds, flags);

	if (status == 0) {
		set_kind(fds[0], DESCRIPTOR_OTHER);
		set_kind(fds[1], DESCRIPTOR_OTHER);
	}
	return status;
}

static int my_eventfd(unsigned value, int flags)
{
	int fd = REAL(eventfd)(value, flags);

	set_kind(fd, DESCRIPTOR_OTHER);
	return fd;
}

#define MKSTEMP(name)                                                                              \
	static int my_##name(char *path)                                                           \
	{                                                                                          \
		int fd = REAL(name)(path);                                                         \
                                                                                                   \
		set_kind(fd, DESCRIPTOR_FILE);                                                     \
		return fd;                                                                         \
	}
MKSTEMP(mkstemp)
MKSTEMP(mkstemp64)

static int my_memfd_create(const char *name, unsigned flags)
{
	int fd = REAL(memfd_create)(name, flags);

	set_kind(fd, DESCRIPTOR_FILE);
	return fd;
}

struct patch file_patches[] = {
#define WRAP(name) [P_##name] = { #name, (void *)my_##name, NULL },
#include "file_calls.def"
#undef WRAP
	[PATCHES] = { NULL, NULL, NULL },
};
