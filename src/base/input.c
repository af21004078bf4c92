/* input.c: see input.h. */
#include "base/input_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_FILE ((uint64_t)1 << 20)	 /* read whole when opened */
#define WINDOW_BYTES ((size_t)256 << 10) /* a read's size; stays in the second-level cache */

static ow_status init_input(struct input *in, struct mem *mem, const char *name, struct error *err)
{
	size_t len = strlen(name);

	*in = (struct input){ .mem = mem, .fd = -1 };
	in->name = mem_alloc(mem, len + 1);
	if (!in->name)
		return error_no_memory(err);
	memcpy(in->name, name, len + 1);
	return OW_OK;
}

static ow_status became_shorter(const struct input *in, uint64_t at, struct error *err)
{
	return error_at(err, OW_E_IO, at,
			"%s: the file became shorter while it was read; open it again when its "
			"writer is done",
			in->name);
}

static ow_status read_small(struct input *in, struct error *err)
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

/* Takes fd over, except when it fails. */
static ow_status open_fd(struct input *in, const char *path, int fd,
			 const struct input_options *options, struct error *err)
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

ow_status input_open(struct input *in, struct mem *mem, const char *path, struct error *err)
{
	static const struct input_options defaults;

	return input_open_with(in, mem, path, &defaults, err);
}

ow_status input_open_with(struct input *in, struct mem *mem, const char *path,
			  const struct input_options *options, struct error *err)
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
			    size_t size, struct error *err)
{
	OW_TRY(init_input(in, mem, name, err));
	in->data = (unsigned char *)(size ? data : "");
	in->size = size;
	in->borrowed = true;
	return OW_OK;
}

ow_status input_adopt_memory(struct input *in, struct mem *mem, const char *name, void *data,
			     size_t size, size_t cap, struct error *err)
{
	OW_TRY(init_input(in, mem, name, err));
	in->data = data;
	in->data_cap = cap;
	in->size = size;
	return OW_OK;
}

ow_status input_adopt_fd(struct input *in, struct mem *mem, const char *name, int fd,
			 struct error *err)
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

ow_status input_borrow(struct input *in, const struct input *of, struct error *err)
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
			 struct error *err)
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
			struct error *err)
{
	ow_status status;
	int fd;

	if (offset > in->size || len > in->size - offset)
		return error_at(err, OW_E_CORRUPT, in->size,
				"%s: truncated: %zu bytes wanted at byte %" PRIu64, in->name, len,
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

ow_status input_check_unchanged(const struct input *in, struct error *err)
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

void window_init(struct window *w, const struct input *in, struct error *err)
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

/* Grows the window for a record larger than it. */
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
	/* What the old window still has of the wanted bytes is moved, the rest is read. */
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
