/*
 * hook_file.c: reads and writes of files, one record each, and calls on sockets and pipes, which are counted. The
 * wrappers here are what patch.c puts in the place of the C library's functions. What goes around these functions
 * (mapped files, io_uring, system calls made by hand) is not seen; the collector compares with /proc/PID/io.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- what a descriptor is ---- */

#define DESCRIPTORS 65536

enum descriptor_kind { DESCRIPTOR_NEW, DESCRIPTOR_FILE, DESCRIPTOR_SOCKET, DESCRIPTOR_OTHER };

static uint8_t
	kinds[DESCRIPTORS]; /* looked up once; forgotten when the number is given out again */

static void forget(int fd)
{
	if (fd >= 0 && fd < DESCRIPTORS)
		kinds[fd] = DESCRIPTOR_NEW;
}

static enum descriptor_kind look_up(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	struct stat st;

	if (fstat(fd, &st) != 0)
		return DESCRIPTOR_OTHER;
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		return DESCRIPTOR_FILE;
	if (S_ISSOCK(st.st_mode) && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	    address.ss_family != AF_UNIX)
		return DESCRIPTOR_SOCKET;
	return DESCRIPTOR_OTHER;
}

static enum descriptor_kind kind_of(int fd)
{
	if (fd < 0 || fd >= DESCRIPTORS)
		return DESCRIPTOR_OTHER;
	if (!kinds[fd])
		kinds[fd] = (uint8_t)look_up(fd);
	return (enum descriptor_kind)kinds[fd];
}

/* ---- what is recorded ---- */

static void record(struct thread *t, const char *name, enum ring_category category, uint64_t start,
		   uint64_t end, int fd, uint64_t bytes)
{
	push(t, &(struct ring_record){ .start_ns = start,
				       .dur_ns = ns_since(start, end),
				       .bytes = bytes,
				       .kind = RING_SLICE,
				       .category = (uint16_t)category,
				       .stream = (uint32_t)fd,
				       .name = text_again(t, name) });
}

/* After a call that moved bytes; errno is the caller's. */
static void moved(const char *name, bool reads, int fd, uint64_t start, ssize_t bytes)
{
	uint64_t end = now_ns(), len = bytes > 0 ? (uint64_t)bytes : 0;
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_self();
	if (t) {
		if (reads)
			count_call(t, RING_READS, ns_since(start, end), len);
		switch (kind_of(fd)) {
		case DESCRIPTOR_FILE:
			if (reads)
				count_call(t, RING_FILE_READS, ns_since(start, end), len);
			record(t, name, reads ? RING_FILE_READ : RING_FILE_WRITE, start, end, fd,
			       len);
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

static void counted(enum ring_counter counter, uint64_t start, ssize_t bytes)
{
	uint64_t end = now_ns();
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_self();
	if (t)
		count_call(t, counter, ns_since(start, end), bytes > 0 ? (uint64_t)bytes : 0);
	leave();
	errno = error;
}

static void opened(const char *name, int fd, uint64_t start)
{
	uint64_t end = now_ns();
	int error = errno;
	struct thread *t;

	forget(fd);
	if (!enter())
		return;
	t = thread_self();
	if (t)
		record(t, name, RING_FILE_OPEN, start, end, fd, 0);
	leave();
	errno = error;
}

static void mapped(int fd, size_t len)
{
	int error = errno;
	struct thread *t;

	if (!enter())
		return;
	t = thread_self();
	if (t && kind_of(fd) == DESCRIPTOR_FILE)
		count_call(t, RING_MAPPED, 0, len);
	leave();
	errno = error;
}

/* Most calls of stdio are served from its buffer: only those that took as long as a system call are recorded, with
 * the bytes of those before. */
#define STDIO_NS 1500u

static __thread uint64_t stdio_bytes __attribute__((tls_model("initial-exec")));

static void buffered(const char *name, bool reads, FILE *file, uint64_t start, size_t bytes)
{
	uint64_t end = now_ns();
	int error = errno;

	stdio_bytes += bytes;
	if (ns_since(start, end) >= STDIO_NS) {
		moved(name, reads, fileno_unlocked(file), start, (ssize_t)stdio_bytes);
		stdio_bytes = 0;
	}
	errno = error;
}

/* ---- the wrappers ---- */

enum patch_index {
#define WRAP(name) P_##name,
#include "file_calls.def"
#undef WRAP
	PATCHES
};

#define REAL(name) ((__typeof__(&my_##name))file_patches[P_##name].real)

#define MOVE(result, name, reads, fd, params, args)                                                \
	static result my_##name params                                                             \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		moved(#name, reads, fd, start, (ssize_t)n);                                        \
		return n;                                                                          \
	}

#define COUNT(result, name, counter, bytes, params, args)                                          \
	static result my_##name params                                                             \
	{                                                                                          \
		uint64_t start = now_ns();                                                         \
		result n = REAL(name) args;                                                        \
                                                                                                   \
		counted(counter, start, bytes);                                                    \
		return n;                                                                          \
	}

MOVE(ssize_t, read, true, fd, (int fd, void *to, size_t len), (fd, to, len))
MOVE(ssize_t, __read_chk, true, fd, (int fd, void *to, size_t len, size_t size),
     (fd, to, len, size))
MOVE(ssize_t, pread, true, fd, (int fd, void *to, size_t len, off_t at), (fd, to, len, at))
MOVE(ssize_t, pread64, true, fd, (int fd, void *to, size_t len, off64_t at), (fd, to, len, at))
MOVE(ssize_t, __pread_chk, true, fd, (int fd, void *to, size_t len, off_t at, size_t size),
     (fd, to, len, at, size))
MOVE(ssize_t, __pread64_chk, true, fd, (int fd, void *to, size_t len, off64_t at, size_t size),
     (fd, to, len, at, size))
MOVE(ssize_t, readv, true, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v))
MOVE(ssize_t, preadv, true, fd, (int fd, const struct iovec *v, int n_v, off_t at),
     (fd, v, n_v, at))
MOVE(ssize_t, preadv64, true, fd, (int fd, const struct iovec *v, int n_v, off64_t at),
     (fd, v, n_v, at))
MOVE(ssize_t, write, false, fd, (int fd, const void *from, size_t len), (fd, from, len))
MOVE(ssize_t, pwrite, false, fd, (int fd, const void *from, size_t len, off_t at),
     (fd, from, len, at))
MOVE(ssize_t, pwrite64, false, fd, (int fd, const void *from, size_t len, off64_t at),
     (fd, from, len, at))
MOVE(ssize_t, writev, false, fd, (int fd, const struct iovec *v, int n_v), (fd, v, n_v))
MOVE(int, fsync, false, fd, (int fd), (fd))
MOVE(int, fdatasync, false, fd, (int fd), (fd))

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

/* What is read from a mapping is seen by nobody: that there is one is counted. */
#define MAP(name, offset)                                                                          \
	static void *my_##name(void *at, size_t len, int protection, int flags, int fd, offset o)  \
	{                                                                                          \
		void *map = REAL(name)(at, len, protection, flags, fd, o);                         \
                                                                                                   \
		if (fd >= 0 && map != MAP_FAILED && (protection & PROT_READ) &&                    \
		    !(protection & PROT_EXEC))                                                     \
			mapped(fd, len);                                                           \
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
		opened("open", fd, start);                                                         \
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
		opened("open", fd, start);                                                         \
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
		opened("fopen", file ? fileno_unlocked(file) : -1, start);                         \
		return file;                                                                       \
	}
FOPEN(fopen)
FOPEN(fopen64)

static size_t my_fread(void *to, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fread)(to, size, count, file);

	buffered("fread", true, file, start, n * size);
	return n;
}

static size_t my_fread_unlocked(void *to, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fread_unlocked)(to, size, count, file);

	buffered("fread", true, file, start, n * size);
	return n;
}

static size_t my___fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(__fread_chk)(to, room, size, count, file);

	buffered("fread", true, file, start, n * size);
	return n;
}

static size_t my_fwrite(const void *from, size_t size, size_t count, FILE *file)
{
	uint64_t start = now_ns();
	size_t n = REAL(fwrite)(from, size, count, file);

	buffered("fwrite", false, file, start, n * size);
	return n;
}

static char *my_fgets(char *to, int size, FILE *file)
{
	uint64_t start = now_ns();
	char *line = REAL(fgets)(to, size, file);

	buffered("fgets", true, file, start, line ? strlen(line) : 0);
	return line;
}

static ssize_t my_getline(char **line, size_t *size, FILE *file)
{
	uint64_t start = now_ns();
	ssize_t n = REAL(getline)(line, size, file);

	buffered("getline", true, file, start, n > 0 ? (size_t)n : 0);
	return n;
}

static ssize_t my_getdelim(char **line, size_t *size, int end, FILE *file)
{
	uint64_t start = now_ns();
	ssize_t n = REAL(getdelim)(line, size, end, file);

	buffered("getdelim", true, file, start, n > 0 ? (size_t)n : 0);
	return n;
}

/* Numbers that may mean something else from here on. */

static int my_close(int fd)
{
	forget(fd);
	return REAL(close)(fd);
}

static int my_fclose(FILE *file)
{
	forget(fileno_unlocked(file));
	return REAL(fclose)(file);
}

static int my_dup2(int from, int to)
{
	forget(to);
	return REAL(dup2)(from, to);
}

static int my_dup3(int from, int to, int flags)
{
	forget(to);
	return REAL(dup3)(from, to, flags);
}

static int my_socket(int domain, int type, int protocol)
{
	int fd = REAL(socket)(domain, type, protocol);

	forget(fd);
	return fd;
}

static int my_accept(int fd, struct sockaddr *from, socklen_t *len)
{
	int got = REAL(accept)(fd, from, len);

	forget(got);
	return got;
}

static int my_accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	int got = REAL(accept4)(fd, from, len, flags);

	forget(got);
	return got;
}

static int my_pipe(int fds[2])
{
	int status = REAL(pipe)(fds);

	forget(fds[0]);
	forget(fds[1]);
	return status;
}

static int my_pipe2(int fds[2], int flags)
{
	int status = REAL(pipe2)(fds, flags);

	forget(fds[0]);
	forget(fds[1]);
	return status;
}

struct patch file_patches[] = {
#define WRAP(name) [P_##name] = { #name, (void *)my_##name, NULL },
#include "file_calls.def"
#undef WRAP
	[PATCHES] = { NULL, NULL, NULL },
};
