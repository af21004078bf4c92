/*
 * input.c: bytes to be read: a file, standard input or another stream, a part of a temporary file, or memory. Importers
 * read through a window of it. A stream is copied to a temporary file as it arrives, so it can be read twice; thousands
 * of members of an archive share one descriptor. Nothing is mapped: docs/decisions/inputs.md says why.
 */
#include "base/input.h"

#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

struct input_pool {
	struct mem *mem;
	int fd;
	uint64_t end;
	pthread_mutex_t lock; /* guards `end` */
	atomic_uint users;    /* number of inputs that use the pool, plus one for its creator */
};

static struct input_pool *pool_new(struct mem *mem, struct ow_error *err)
{
	struct input_pool *pool = mem_zalloc(mem, sizeof(*pool));

	if (!pool) {
		error_no_memory(err);
		return NULL;
	}
	pool->fd = temp_file_open(err);
	if (pool->fd < 0) {
		mem_free(mem, pool, sizeof(*pool));
		return NULL;
	}
	pool->mem = mem;
	pthread_mutex_init(&pool->lock, NULL);
	atomic_init(&pool->users, 1);
	return pool;
}

void input_pool_release(struct input_pool *pool)
{
	if (!pool || atomic_fetch_sub(&pool->users, 1) != 1)
		return;
	close(pool->fd);
	pthread_mutex_destroy(&pool->lock);
	mem_free(pool->mem, pool, sizeof(*pool));
}

static ow_status copy(const struct input *in, int fd, uint64_t to, void *piece,
		      struct ow_error *err)
{
	for (uint64_t at = 0; at < in->size;) {
		size_t len = (size_t)MIN((uint64_t)PIECE, in->size - at);

		OW_TRY(input_read_at(in, at, piece, len, err));
		OW_TRY(temp_file_write(fd, to + at, piece, len, err));
		at += len;
	}
	return OW_OK;
}

static ow_status move_to(struct input *in, struct input_pool *pool, struct ow_error *err)
{
	void *piece = mem_alloc(in->mem, PIECE);
	ow_status status;

	if (!piece)
		return error_no_memory(err);
	pthread_mutex_lock(&pool->lock);
	status = copy(in, pool->fd, pool->end, piece, err);
	if (status == OW_OK) {
		close(in->fd);
		in->fd = pool->fd;
		in->base = pool->end;
		in->pool = pool;
		pool->end += in->size;
		atomic_fetch_add(&pool->users, 1);
	}
	pthread_mutex_unlock(&pool->lock);
	mem_free(in->mem, piece, PIECE);
	return status;
}

ow_status input_share_fd(struct input *in, struct input_pool **pool, struct ow_error *err)
{
	if (in->fd < 0 || in->borrowed || in->pool)
		return OW_OK;
	if (in->regular) {
		close(in->fd);
		in->fd = -1;
		in->parked = true;
		return OW_OK;
	}
	if (!*pool)
		*pool = pool_new(in->mem, err);
	return *pool ? move_to(in, *pool, err) : err ? err->status : OW_E_IO;
}

int input_reopen(const struct input *in, struct ow_error *err)
{
	int fd = open(in->name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		error_errno(err, errno, "%s: cannot be read a second time", in->name);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (st.st_ino == in->inode && (uint64_t)st.st_size == in->size &&
	    st.st_mtim.tv_sec == in->mtime.tv_sec && st.st_mtim.tv_nsec == in->mtime.tv_nsec)
		return fd;
	close(fd);
	error_set(err, OW_E_IO,
		  "%s: the file was changed while it was in use; open it again when its writer is "
		  "done",
		  in->name);
	return -1;
}

/* a stream up to this size is kept in memory, a longer one in a file */
#define STREAM_MEMORY ((size_t)64 << 20)
#define READ_CHUNK ((size_t)1 << 20)

struct stream {
	struct input *in;
	const struct input_options *options;
	int fd, temp;
	void *data; /* bytes that are not yet written to the file */
	size_t len, cap;
	size_t memory; /* largest number of bytes that may be kept in memory */
};

/* Returns how much memory a stream may use: under a limit, most of the remaining memory is left
 * to its readers. */
static size_t memory_for(const struct mem *mem)
{
	size_t used = atomic_load(&mem->used);

	if (!mem->limit)
		return STREAM_MEMORY;
	return MIN(STREAM_MEMORY, mem->limit > used ? (mem->limit - used) / 4 : READ_CHUNK);
}

/* Descriptors that the user passed: standard input, or one from the shell. A character device must come in this way
 * or be a terminal, because others may have no end. */
static bool is_descriptor(const char *path)
{
	return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0 ||
	       strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

static ow_status input_stream_check(const char *path, int fd, unsigned mode, struct ow_error *err)
{
	if (S_ISBLK(mode) || (S_ISCHR(mode) && !is_descriptor(path) && !isatty(fd)))
		return error_set(err, OW_E_FORMAT,
				 "%s is a device, not a profile; give a file, a directory or - "
				 "for standard input",
				 path);
	return OW_OK;
}

static ow_status report(const struct stream *s, struct ow_error *err)
{
	const struct progress *progress = s->options->progress;
	uint64_t done = s->in->size + s->len;

	if (progress && progress->report && !progress->report(progress->arg, done, done))
		return error_set(err, OW_E_INTERRUPTED, "interrupted");
	return OW_OK;
}

/* Reads some more bytes; *got is 0 at the end. */
static ow_status read_some(struct stream *s, size_t *got, struct ow_error *err)
{
	for (;;) {
		ssize_t n = read(s->fd, (char *)s->data + s->len, s->cap - s->len);

		OW_TRY(report(s, err));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "%s", s->in->name);
		*got = (size_t)n;
		return OW_OK;
	}
}

static ow_status move_to_file(struct stream *s, struct ow_error *err)
{
	const struct input_options *options = s->options;

	if (s->temp < 0) {
		if (options->judge)
			OW_TRY(options->judge(s->in->name, str_make(s->data, s->len), err));
		s->temp = temp_file_open(err);
		if (s->temp < 0)
			return OW_E_IO;
	}
	OW_TRY(error_wrap(err, temp_file_write(s->temp, s->in->size, s->data, s->len, err), "%s",
			  s->in->name));
	s->in->size += s->len;
	s->len = 0;
	return OW_OK;
}

static ow_status read_all(struct stream *s, struct ow_error *err)
{
	for (;;) {
		size_t got = 0;

		if (!mem_grow(s->in->mem, &s->data, &s->cap, s->len + READ_CHUNK, 1))
			return error_no_memory(err);
		OW_TRY(read_some(s, &got, err));
		if (!got)
			return s->temp < 0 ? OW_OK : move_to_file(s, err);
		s->len += got;
		if (s->len >= (s->temp < 0 ? s->memory : READ_CHUNK))
			OW_TRY(move_to_file(s, err));
	}
}

static ow_status input_stream_read(struct input *in, int fd, const struct input_options *options,
				   struct ow_error *err)
{
	struct stream s = {
		.in = in, .options = options, .fd = fd, .temp = -1, .memory = memory_for(in->mem)
	};
	ow_status status = read_all(&s, err);

	if (status == OW_OK && s.temp < 0) {
		in->data = s.data;
		in->data_cap = s.cap;
		in->size = s.len;
		return OW_OK;
	}
	mem_free(in->mem, s.data, s.cap);
	if (status != OW_OK && s.temp >= 0)
		close(s.temp);
	in->fd = status == OW_OK ? s.temp : -1;
	return status;
}

/* files up to this size are read as a whole when they are opened */
#define SMALL_FILE ((uint64_t)1 << 20)
/* number of bytes per read; fits into the second-level cache */
#define WINDOW_BYTES ((size_t)256 << 10)

static ow_status init_input(struct input *in, struct mem *mem, const char *name,
			    struct ow_error *err)
{
	size_t len = strlen(name);

	*in = (struct input){ .mem = mem, .fd = -1 };
	in->name = mem_alloc(mem, len + 1);
	if (!in->name)
		return error_no_memory(err);
	memcpy(in->name, name, len + 1);
	return OW_OK;
}

static ow_status became_shorter(const struct input *in, uint64_t at, struct ow_error *err)
{
	return error_at(err, OW_E_IO, at,
			"%s: the file became shorter while it was read; open it again when its "
			"writer is done",
			in->name);
}

static ow_status read_small(struct input *in, struct ow_error *err)
{
	in->data_cap = (size_t)in->size + 1;
	in->data = mem_alloc(in->mem, in->data_cap);
	if (!in->data)
		return error_no_memory(err);
	for (size_t got = 0; got < in->size;) {
		ssize_t n = pread(in->fd, in->data + got, (size_t)in->size - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "%s", in->name);
		if (n == 0)
			return became_shorter(in, got, err);
		got += (size_t)n;
	}
	close(in->fd);
	in->fd = -1;
	in->regular = false;
	return OW_OK;
}

/* Opens an input from a descriptor. On success the input owns fd. */
static ow_status open_fd(struct input *in, const char *path, int fd,
			 const struct input_options *options, struct ow_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_errno(err, errno, "%s", in->name);
	if (S_ISDIR(st.st_mode))
		return error_set(err, OW_E_USAGE, "%s: is a directory", in->name);
	if (!S_ISREG(st.st_mode)) {
		OW_TRY(input_stream_check(path, fd, st.st_mode, err));
		OW_TRY(input_stream_read(in, fd, options, err));
		close(fd);
		return OW_OK;
	}
	in->fd = fd;
	in->size = (uint64_t)st.st_size;
	in->mtime = st.st_mtim;
	in->inode = st.st_ino;
	in->regular = true;
	if (in->size <= SMALL_FILE)
		return read_small(in, err);
	return OW_OK;
}

ow_status input_open(struct input *in, struct mem *mem, const char *path, struct ow_error *err)
{
	static const struct input_options defaults;

	return input_open_with(in, mem, path, &defaults, err);
}

ow_status input_open_with(struct input *in, struct mem *mem, const char *path,
			  const struct input_options *options, struct ow_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	ow_status status;
	int fd;

	OW_TRY(init_input(in, mem, standard ? "standard input" : path, err));
	fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		status = error_errno(err, errno, "%s", in->name);
		input_close(in);
		return status;
	}
	status = open_fd(in, path, fd, options, err);
	if (status != OW_OK) {
		if (in->fd != fd)
			close(fd);
		input_close(in);
	}
	return status;
}

ow_status input_from_memory(struct input *in, struct mem *mem, const char *name, const void *data,
			    size_t size, struct ow_error *err)
{
	OW_TRY(init_input(in, mem, name, err));
	in->data = (unsigned char *)(size ? data : "");
	in->size = size;
	in->borrowed = true;
	return OW_OK;
}

ow_status input_adopt_memory(struct input *in, struct mem *mem, const char *name, void *data,
			     size_t size, size_t cap, struct ow_error *err)
{
	OW_TRY(init_input(in, mem, name, err));
	in->data = data;
	in->data_cap = cap;
	in->size = size;
	return OW_OK;
}

ow_status input_adopt_fd(struct input *in, struct mem *mem, const char *name, int fd,
			 struct ow_error *err)
{
	struct stat st;

	OW_TRY(init_input(in, mem, name, err));
	if (fstat(fd, &st) < 0) {
		ow_status status = error_errno(err, errno, "%s", name);

		input_close(in);
		return status;
	}
	in->fd = fd;
	in->size = (uint64_t)st.st_size;
	return OW_OK;
}

ow_status input_borrow(struct input *in, const struct input *of, struct ow_error *err)
{
	struct input copy = *of;

	OW_TRY(init_input(in, of->mem, of->name, err));
	copy.name = in->name;
	copy.borrowed = true;
	copy.progress = NULL;
	*in = copy;
	return OW_OK;
}

void input_close(struct input *in)
{
	if (in->pool && !in->borrowed)
		input_pool_release(in->pool);
	else if (in->fd >= 0 && !in->borrowed)
		close(in->fd);
	if (in->data && !in->borrowed)
		mem_free(in->mem, in->data, in->data_cap);
	if (in->name)
		mem_free(in->mem, in->name, strlen(in->name) + 1);
	*in = (struct input){ .mem = in->mem, .fd = -1 };
}

static ow_status read_fd(const struct input *in, int fd, uint64_t offset, void *to, size_t len,
			 struct ow_error *err)
{
	while (len) {
		ssize_t n = pread(fd, to, len, (off_t)(in->base + offset));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "%s", in->name);
		if (n == 0)
			return became_shorter(in, offset, err);
		to = (char *)to + n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return OW_OK;
}

ow_status input_read_at(const struct input *in, uint64_t offset, void *to, size_t len,
			struct ow_error *err)
{
	ow_status status;
	int fd;

	if (offset > in->size || len > in->size - offset)
		return error_at(err, OW_E_CORRUPT, in->size,
				"%s: truncated: %zu bytes expected at byte %" PRIu64, in->name, len,
				offset);
	if (in->data) {
		memcpy(to, in->data + offset, len);
		return OW_OK;
	}
	if (!in->parked)
		return read_fd(in, in->fd, offset, to, len, err);
	fd = input_reopen(in, err);
	if (fd < 0)
		return OW_E_IO;
	status = read_fd(in, fd, offset, to, len, err);
	close(fd);
	return status;
}

ow_status input_check_unchanged(const struct input *in, struct ow_error *err)
{
	struct stat st;
	int fd;

	if (in->parked) {
		fd = input_reopen(in, err);
		if (fd >= 0)
			close(fd);
		return fd >= 0 ? OW_OK : OW_E_IO;
	}
	if (!in->regular || in->fd < 0)
		return OW_OK;
	if (fstat(in->fd, &st) < 0)
		return error_errno(err, errno, "%s", in->name);
	if ((uint64_t)st.st_size == in->size && st.st_mtim.tv_sec == in->mtime.tv_sec &&
	    st.st_mtim.tv_nsec == in->mtime.tv_nsec)
		return OW_OK;
	return error_set(
		err, OW_E_IO,
		"%s: the file was changed while it was open; open it again when its writer is done",
		in->name);
}

void window_init(struct window *w, const struct input *in, struct ow_error *err)
{
	*w = (struct window){ .in = in, .err = err };
	if (in->data) {
		w->buf = in->data;
		w->len = (size_t)in->size;
	}
}

void window_release(struct window *w)
{
	if (!w->in->data)
		mem_free(w->in->mem, w->buf, w->cap);
	w->buf = NULL;
	w->cap = w->len = 0;
}

static const unsigned char *fail(struct window *w, ow_status status)
{
	w->status = status;
	return NULL;
}

/* Makes the window large enough for a record that exceeds it. */
static bool make_room(struct window *w, size_t need)
{
	unsigned char *moved;
	size_t cap = MAX(need, WINDOW_BYTES);

	if (cap <= w->cap)
		return true;
	moved = mem_realloc(w->in->mem, w->buf, w->cap, cap);
	if (!moved)
		return false;
	w->buf = moved;
	w->cap = cap;
	return true;
}

const unsigned char *window_fill(struct window *w, uint64_t offset, size_t len)
{
	const struct progress *progress = w->in->progress;
	uint64_t rest = offset <= w->in->size ? w->in->size - offset : 0;
	size_t keep = 0, want;

	if (len > rest)
		return fail(w, error_at(w->err, OW_E_CORRUPT, w->in->size,
					"%s: truncated: the file ends inside a record that starts "
					"at byte %" PRIu64,
					w->in->name, offset));
	if (w->in->data)
		return w->buf + offset;
	if (progress && progress->report && !progress->report(progress->arg, offset, w->in->size))
		return fail(w, error_set(w->err, OW_E_INTERRUPTED, "interrupted"));
	if (!make_room(w, len))
		return fail(w, error_no_memory(w->err));
	/* Moves the wanted bytes that the old window still holds, and reads the rest. */
	if (offset >= w->base && offset - w->base < w->len) {
		keep = w->len - (size_t)(offset - w->base);
		memmove(w->buf, w->buf + (offset - w->base), keep);
	}
	want = (size_t)MIN((uint64_t)w->cap, rest);
	w->status = input_read_at(w->in, offset + keep, w->buf + keep, want - keep, w->err);
	if (w->status != OW_OK) {
		w->len = 0;
		return NULL;
	}
	w->base = offset;
	w->len = want;
	return w->buf;
}

struct str window_peek(struct window *w, uint64_t offset, size_t want)
{
	uint64_t rest = offset <= w->in->size ? w->in->size - offset : 0;
	const unsigned char *at = window_at(w, offset, (size_t)MIN((uint64_t)want, rest));

	if (!at)
		return (struct str){ 0 };
	return str_make(at, w->len - (size_t)(offset - w->base));
}

int open_regular_file(const char *path)
{
	int seen = open(path, O_PATH | O_CLOEXEC), fd = -1, problem;
	char again[32];
	struct stat st;

	if (seen < 0)
		return -1;
	if (fstat(seen, &st) == 0 && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
	} else {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", seen);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT) /* /proc is not mounted */
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	problem = errno;
	close(seen);
	errno = problem;
	return fd;
}
