/*
 * hook_file.c: wrappers of the C library's file functions: one record per read and write of a file; calls on sockets and
 * pipes are only counted. patch.c puts them in place. I/O that does not use these functions (mapped files, io_uring, direct
 * system calls) is not seen here; the collector compares with /proc/PID/io.
 */
#include "recorder.h"

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

enum descriptor_kind {
	DESCRIPTOR_UNKNOWN,
	DESCRIPTOR_ASKED,  /* a call used the descriptor before its kind was known */
	DESCRIPTOR_OPENED, /* the descriptor was opened by a path, so it is most likely a file */
	DESCRIPTOR_FILE,
	DESCRIPTOR_SOCKET,
	DESCRIPTOR_OTHER,
	DESCRIPTOR_OURS
};

/* The kind, above it whether threads only count calls on it, and a count of changes, by which the watcher sees that the
 * number was given out again meanwhile. */
#define KIND_BITS 3
#define COUNTED_BIT 3
#define CHANGES_AT 4
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

/* Returns the key of the descriptor whose calls a thread only counts; never 0 for existing descriptors. */
static inline uint32_t key_of(int fd)
{
	return (uint32_t)fd ^ 0x80000000u;
}

/* Sets the kind of a descriptor. A child of vfork has its own descriptor table but its parent's
 * memory, so it changes nothing. */
static void set_kind(int fd, enum descriptor_kind kind)
{
	uint16_t entry;

	if (fd < 0 || fd >= DESCRIPTORS || recorder_busy == BUSY_CHILD)
		return;
	entry = atomic_load_explicit(&kinds[fd], memory_order_relaxed);
	atomic_store(&kinds[fd], (uint16_t)(((entry >> CHANGES_AT) + 1u) << CHANGES_AT | kind));
	if (UNLIKELY(entry >> COUNTED_BIT & 1))
		threads_count_none_of(key_of(fd));
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
 * alternate are not mistaken. The record says how many calls it stands for; counts and bytes stay exact. Only calls on
 * the same open file as the last record are left out.
 */
#define RATE_NS 5000u
#define RATE_RECORD_NS 100000u
#define RATE_WINDOW 256u /* number of records from which the rate is determined */
/* number of records from which the rate is determined while calls are sampled */
#define RATE_RECORDS 32u
#define RATE_MOST 1024u

/* Calls that are sampled when they are frequent, with and without buffer checks or 64-bit positions. */
enum sampled_call { S_read, S_pread, S_readv, S_preadv, S_write, S_pwrite, S_writev, S_SAMPLED };

/* Each kind of call is sampled on this many descriptors at a time, chosen by their last bits, because
 * programs read two files in turns. */
#define SAMPLED_WAYS 4u
_Static_assert(S_SAMPLED *SAMPLED_WAYS <= RING_SAMPLED, "layout");

static inline unsigned sampled_index(unsigned which, int fd)
{
	return which * SAMPLED_WAYS + ((unsigned)fd & (SAMPLED_WAYS - 1));
}

/* Adjusts the sampling rate after a record that stands for this many calls. Single long gaps, in which other programs had the
 * processor, do not count. Returns how many calls are only counted now. */
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

/* The next calls on the descriptor are only counted, unless it has become another one since `entry` was read: who changes
 * an entry looks for threads that count afterwards. */
static void count_next_calls(struct call_rate *r, uint32_t calls, int fd, uint16_t entry)
{
	uint16_t counted = entry | 1u << COUNTED_BIT;

	r->left = calls;
	if (!calls ||
	    (entry != counted && !atomic_compare_exchange_strong(&kinds[fd], &entry, counted)))
		return;
	atomic_store(&r->key, key_of(fd));
	if (atomic_load(&kinds[fd]) != counted)
		atomic_store(&r->key, 0);
}

/* The rate, when this call is only counted. That nothing else needs to be looked at is the work of all who clear keys: after
 * a fork, when the descriptor becomes another one, before a child of vfork, while a record is made, at the end. */
static inline struct call_rate *only_counted(unsigned which, int fd)
{
	struct thread *t = recorder_thread;
	struct call_rate *r;

	if (UNLIKELY(!t))
		return NULL;
	r = &t->rates[sampled_index(which, fd)];
	return LIKELY(atomic_load_explicit(&r->key, memory_order_relaxed) == key_of(fd)) ? r : NULL;
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

static inline void count_sampled(struct call_rate *r, int fd, ssize_t bytes)
{
	/* a signal handler may have ended the recording or forked in the meantime */
	if (UNLIKELY(atomic_load_explicit(&r->key, memory_order_relaxed) != key_of(fd)))
		return;
	add_to(&r->counts->calls, 1);
	if (LIKELY(bytes > 0))
		add_to(&r->counts->bytes, (uint64_t)bytes);
	if (UNLIKELY(--r->left == 0))
		atomic_store_explicit(&r->key, 0, memory_order_relaxed);
}

/* Records a sampled call of a file, with the calls that were counted since the last record. */
static void push_sampled(struct thread *t, unsigned which, const char *name, bool reads,
			 uint64_t start, uint64_t end, int fd, uint64_t bytes)
{
	unsigned index = sampled_index(which, fd);
	struct ring_sampled *s = &t->ring->sampled[index];
	struct call_rate *rate = &t->rates[index];
	uint16_t entry = atomic_load(&kinds[fd]);
	uint32_t text = text_number_cached(t, name), calls;
	uint64_t head = t->head;

	/* calls in signal handlers are not sampled until this is done */
	atomic_store(&rate->key, 0);
	calls = (uint32_t)atomic_load_explicit(&s->calls, memory_order_relaxed) + 1;
	bytes += atomic_load_explicit(&s->bytes, memory_order_relaxed);
	atomic_store_explicit(&s->name, text, memory_order_relaxed);
	atomic_store_explicit(&s->taken, (uint32_t)t->head + 1, memory_order_relaxed);
	if (reads) {
		count_calls(t, RING_READS, calls, calls * ns_since(start, end), bytes);
		count_calls(t, RING_FILE_READS, calls, calls * ns_since(start, end), bytes);
	}
	push(t, &(struct ring_record){ .start_ns = start,
				       .dur_ns = ns_since(start, end),
				       .bytes = bytes,
				       .kind = RING_SLICE,
				       .category = reads ? RING_FILE_READ : RING_FILE_WRITE,
				       .stream = (uint32_t)fd,
				       .name = text,
				       .calls = calls > 1 ? calls : 0 });
	if (t->head !=
	    head) { /* otherwise the record was dropped, and the next one includes its calls */
		/* after the record is written */
		atomic_store_explicit(&s->calls, 0, memory_order_release);
		atomic_store_explicit(&s->bytes, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&s->taken, 0, memory_order_release);
	rate->counts = s;
	count_next_calls(rate, adjust_rate(t, rate, start, calls), fd, entry);
}

/* Records a call that moved bytes; keeps the caller's errno. `which`: kind of sampled call, or
 * RING_SAMPLED. */
static void record_transfer(const char *name, unsigned which, bool reads, int fd, uint64_t start,
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
		bool sampled = which < RING_SAMPLED && kind == DESCRIPTOR_FILE;

		if (reads && !sampled)
			count_call(t, RING_READS, ns_since(start, end), len);
		switch (kind) {
		case DESCRIPTOR_FILE:
			if (sampled) {
				push_sampled(t, which, name, reads, start, end, fd, len);
				break;
			}
			if (reads)
				count_call(t, RING_FILE_READS, ns_since(start, end), len);
			push_file_record(t, name, reads ? RING_FILE_READ : RING_FILE_WRITE, start,
					 end, fd, len);
			break;
		case DESCRIPTOR_SOCKET:
			count_call(t, reads ? RING_RECEIVE : RING_SEND, ns_since(start, end), len);
			break;
		default:
			count_call(t, reads ? RING_PIPE_READ : RING_PIPE_WRITE,
				   ns_since(start, end), len);
		}
	}
	leave();
	errno = error;
}

static void count_socket_call(enum ring_counter counter, uint64_t start, ssize_t bytes)
{
	uint64_t end = now_ns();
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t)
		count_call(t, counter, ns_since(start, end), bytes > 0 ? (uint64_t)bytes : 0);
	leave();
	errno = error;
}

static void record_open(const char *name, const char *path, int fd, uint64_t start)
{
	uint64_t end = now_ns();
	int error = errno;
	struct thread *t;

	if (fd >= 0)
		set_kind_of_path(fd, path);
	if (!enter())
		return;
	t = thread_current();
	if (t)
		push_file_record(t, name, RING_FILE_OPEN, start, end, fd, 0);
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
		count_call(t, RING_MAPPED, 0, len);
	leave();
	errno = error;
}

/* Most calls of stdio are served from its buffer: only those that took as long as a system call are recorded, with
 * the bytes of those before. */
#define STDIO_NS 1500u

static __thread uint64_t stdio_bytes __attribute__((tls_model("initial-exec")));

static void record_stdio(const char *name, bool reads, FILE *file, uint64_t start, size_t bytes)
{
	uint64_t end = now_ns();
	int error = errno;

	stdio_bytes += bytes;
	if (ns_since(start, end) >= STDIO_NS) {
		record_transfer(name, RING_SAMPLED, reads, fileno_unlocked(file), start,
				(ssize_t)stdio_bytes);
		stdio_bytes = 0;
	}
	errno = error;
}

enum patch_index {
#define WRAP(name) P_##name,
#include "file_calls.def"
#undef WRAP
	PATCHES
};

#define REAL(name) ((__typeof__(&my_##name))file_patches[P_##name].real)

/* Wraps a call that moves bytes; `call` is an enum sampled_call. Recording is a separate function, so that
 * counting needs few registers. */
#define MOVE(result, name, call, reads, fd, params, args)                                          \
	static __attribute__((noinline)) result recorded_##name params;                            \
                                                                                                   \
	static result my_##name params                                                             \
	{                                                                                          \
		struct call_rate *counted = only_counted(S_##call, fd);                            \
		result n;                                                                          \
                                                                                                   \
		if (UNLIKELY(!counted))                                                            \
			return recorded_##name args;                                               \
		n = REAL(name) args;                                                               \
		count_sampled(counted, fd, (ssize_t)n);                                            \
		return n;                                                                          \
	}                                                                                          \
                                                                                                   \
	static result recorded_##name params                                                       \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		record_transfer(#name, S_##call, reads, fd, start, (ssize_t)n);                    \
		return n;                                                                          \
	}

#define COUNT(result, name, counter, bytes, params, args)                                          \
	static result my_##name params                                                             \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		count_socket_call(counter, start, bytes);                                          \
		return n;                                                                          \
	}

MOVE(ssize_t, read, read, true, fd, (int fd, void *to, size_t len), (fd, to, len))
MOVE(ssize_t, __read_chk, read, true, fd, (int fd, void *to, size_t len, size_t size),
     (fd, to, len, size))
MOVE(ssize_t, pread, pread, true, fd, (int fd, void *to, size_t len, off_t at), (fd, to, len, at))
MOVE(ssize_t, pread64, pread, true, fd, (int fd, void *to, size_t len, off64_t at),
     (fd, to, len, at))
MOVE(ssize_t, __pread_chk, pread, true, fd, (int fd, void *to, size_t len, off_t at, size_t size),
     (fd, to, len, at, size))
MOVE(ssize_t, __pread64_chk, pread, true, fd,
     (int fd, void *to, size_t len, off64_t at, size_t size), (fd, to, len, at, size))
MOVE(ssize_t, readv, readv, true, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v))
MOVE(ssize_t, preadv, preadv, true, fd, (int fd, const struct iovec *v, int n_v, off_t at),
     (fd, v, n_v, at))
MOVE(ssize_t, preadv64, preadv, true, fd, (int fd, const struct iovec *v, int n_v, off64_t at),
     (fd, v, n_v, at))
MOVE(ssize_t, write, write, false, fd, (int fd, const void *from, size_t len), (fd, from, len))
MOVE(ssize_t, pwrite, pwrite, false, fd, (int fd, const void *from, size_t len, off_t at),
     (fd, from, len, at))
MOVE(ssize_t, pwrite64, pwrite, false, fd, (int fd, const void *from, size_t len, off64_t at),
     (fd, from, len, at))
MOVE(ssize_t, writev, writev, false, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v))

/* Wraps a flush, which is never frequent. */
#define FLUSH(name)                                                                                \
	static int my_##name(int fd)                                                               \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		int status = REAL(name)(fd);                                                       \
                                                                                                   \
		record_transfer(#name, RING_SAMPLED, false, fd, start, status);                    \
		return status;                                                                     \
	}
FLUSH(fsync)
FLUSH(fdatasync)

COUNT(ssize_t, send, RING_SEND, n, (int fd, const void *from, size_t len, int flags),
      (fd, from, len, flags))
COUNT(ssize_t, sendto, RING_SEND, n,
      (int fd, const void *from, size_t len, int flags, const struct sockaddr *to,
       socklen_t to_len),
      (fd, from, len, flags, to, to_len))
COUNT(ssize_t, sendmsg, RING_SEND, n, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
COUNT(ssize_t, recv, RING_RECEIVE, n, (int fd, void *to, size_t len, int flags),
      (fd, to, len, flags))
COUNT(ssize_t, recvfrom, RING_RECEIVE, n,
      (int fd, void *to, size_t len, int flags, struct sockaddr *from, socklen_t *from_len),
      (fd, to, len, flags, from, from_len))
COUNT(ssize_t, recvmsg, RING_RECEIVE, n, (int fd, struct msghdr *m, int flags), (fd, m, flags))
COUNT(ssize_t, __recv_chk, RING_RECEIVE, n, (int fd, void *to, size_t len, size_t size, int flags),
      (fd, to, len, size, flags))
COUNT(int, poll, RING_POLL, 0, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms))
COUNT(int, __poll_chk, RING_POLL, 0, (struct pollfd * fds, nfds_t count, int ms, size_t size),
      (fds, count, ms, size))
COUNT(int, ppoll, RING_POLL, 0,
      (struct pollfd * fds, nfds_t count, const struct timespec *t, const sigset_t *mask),
      (fds, count, t, mask))
COUNT(int, select, RING_POLL, 0, (int count, fd_set *r, fd_set *w, fd_set *x, struct timeval *t),
      (count, r, w, x, t))
COUNT(int, epoll_wait, RING_POLL, 0, (int fd, struct epoll_event *events, int most, int ms),
      (fd, events, most, ms))
COUNT(int, epoll_pwait, RING_POLL, 0,
      (int fd, struct epoll_event *events, int most, int ms, const sigset_t *mask),
      (fd, events, most, ms, mask))

/* Wraps mmap: reads from a mapping cannot be seen, so the mapping is counted. */
#define MAP(name, offset)                                                                          \
	static void *my_##name(void *at, size_t len, int protection, int flags, int fd, offset o)  \
	{                                                                                          \
		void *map = REAL(name)(at, len, protection, flags, fd, o);                         \
                                                                                                   \
		if (fd >= 0 && map != MAP_FAILED && (protection & PROT_READ) &&                    \
		    !(protection & PROT_EXEC))                                                     \
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

#define OPEN(name)                                                                                 \
	static int my_##name(const char *path, int flags, ...)                                     \
	{                                                                                          \
		TAKE_MODE(mode, flags)                                                             \
		uint64_t start = now_ns();                                                         \
		int fd = REAL(name)(path, flags, mode);                                            \
                                                                                                   \
		record_open("open", path, fd, start);                                              \
		return fd;                                                                         \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
	static int my_##name(int folder, const char *path, int flags, ...)                         \
	{                                                                                          \
		TAKE_MODE(mode, flags)                                                             \
		uint64_t start = now_ns();                                                         \
		int fd = REAL(name)(folder, path, flags, mode);                                    \
                                                                                                   \
		record_open("open", path, fd, start);                                              \
		return fd;                                                                         \
	}
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                                                \
	static FILE *my_##name(const char *path, const char *mode)                                 \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		FILE *file = REAL(name)(path, mode);                                               \
                                                                                                   \
		record_open("fopen", path, file ? fileno_unlocked(file) : -1, start);              \
		return file;                                                                       \
	}
FOPEN(fopen)
FOPEN(fopen64)

static size_t my_fread(void *to, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fread)(to, size, count, file);

	record_stdio("fread", true, file, start, n * size);
	return n;
}

static size_t my_fread_unlocked(void *to, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fread_unlocked)(to, size, count, file);

	record_stdio("fread", true, file, start, n * size);
	return n;
}

static size_t my___fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(__fread_chk)(to, room, size, count, file);

	record_stdio("fread", true, file, start, n * size);
	return n;
}

static size_t my_fwrite(const void *from, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fwrite)(from, size, count, file);

	record_stdio("fwrite", false, file, start, n * size);
	return n;
}

static char *my_fgets(char *to, int size, FILE *file)
{
	uint64_t start = now_ns();
	char *line = REAL(fgets)(to, size, file);

	record_stdio("fgets", true, file, start, line ? strlen(line) : 0);
	return line;
}

static ssize_t my_getline(char **line, size_t *size, FILE *file)
{
	uint64_t start = now_ns();
	ssize_t n = REAL(getline)(line, size, file);

	record_stdio("getline", true, file, start, n > 0 ? (size_t)n : 0);
	return n;
}

static ssize_t my_getdelim(char **line, size_t *size, int end, FILE *file)
{
	uint64_t start = now_ns();
	ssize_t n = REAL(getdelim)(line, size, end, file);

	record_stdio("getdelim", true, file, start, n > 0 ? (size_t)n : 0);
	return n;
}

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
		int result = REAL(name)(fd, command, arg);                                         \
                                                                                                   \
		if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)                              \
			copy_kind(fd, result);                                                     \
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
