/*
 * input.h: the bytes of one input, readable at any offset.
 *
 * Inputs are read with pread, never mapped. A file that shrinks or is replaced while we read causes an error instead of
 * SIGBUS, no signal handler is needed, and we choose how much stays resident. Small inputs (and standard input, and
 * unpacked containers) are held whole in memory; the unpacked form of a large container lives in an unlinked temporary
 * file.
 *
 * A window offers contiguous bytes of an input to one reader, sliding forward; several windows on one input may be used
 * by several threads.
 */
#ifndef BASE_INPUT_H
#define BASE_INPUT_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <time.h>

/* A callback that any thread calls now and then with the amount that was read; it returns false
 * to cancel. */
struct progress {
	bool (*report)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

struct input {
	struct mem *mem;
	char *name;	     /* path as given, for messages */
	int fd;		     /* descriptor of the file; -1 when the content is in memory */
	unsigned char *data; /* the whole content, or NULL when it is read from fd */
	size_t data_cap;
	bool borrowed; /* data and fd belong to another input or to the caller */
	uint64_t size;
	/* time of the last change when the file was opened; another time means that the file was
	 * written to */
	struct timespec mtime;
	bool regular; /* the input is a file on disk, so mtime and size can be compared */
	bool parked;  /* the regular file is closed and is opened again for every read */
	uint64_t inode;
	uint64_t base;		 /* offset in fd at which the content begins */
	struct input_pool *pool; /* pool that owns fd, or NULL */
	const struct progress *progress;
};

struct input_options {
	/* Called with the first bytes of a stream (64 MiB, or less when memory is short) before more of it is copied
	 * to disk: OW_OK to go on, or a status with err set. NULL: always go on. */
	ow_status (*judge)(const char *name, struct str head, struct ow_error *err);
	const struct progress *progress; /* called while a stream is read; may cancel */
};

/* Opens a file, or standard input for "-". Pipes and the like are read to their end, into memory or a
 * temporary file; devices are refused. */
ow_status input_open(struct input *in, struct mem *mem, const char *path, struct ow_error *err);
ow_status input_open_with(struct input *in, struct mem *mem, const char *path,
			  const struct input_options *options, struct ow_error *err);
/* Makes an input of bytes that belong to the caller and outlive the input. */
ow_status input_from_memory(struct input *in, struct mem *mem, const char *name, const void *data,
			    size_t size, struct ow_error *err);
/* Makes an input that owns bytes allocated from mem (cap bytes), or a file descriptor. */
ow_status input_adopt_memory(struct input *in, struct mem *mem, const char *name, void *data,
			     size_t size, size_t cap, struct ow_error *err);
ow_status input_adopt_fd(struct input *in, struct mem *mem, const char *name, int fd,
			 struct ow_error *err);
/* Makes another input of the same bytes; `from` must outlive it. */
ow_status input_borrow(struct input *in, const struct input *of, struct ow_error *err);
void input_close(struct input *in);

/* Releases the descriptor of an input. A file on disk is closed, and opened again for every read; content of a
 * temporary file moves to one that all inputs of *pool share (made when it is NULL). On failure the input is
 * unchanged. */
ow_status input_share_fd(struct input *in, struct input_pool **pool, struct ow_error *err);
/* Releases the caller's reference to the pool after input_share_fd; inputs keep the pool as long as they
 * need it. Accepts NULL. */
void input_pool_release(struct input_pool *pool);
/* Opens the file of an input whose descriptor was released. The caller closes the descriptor; -1
 * with err set on failure. */
int input_reopen(const struct input *in, struct ow_error *err);

/* Reads exactly `len` bytes at `offset`, or fails (also if the file became shorter). */
ow_status input_read_at(const struct input *in, uint64_t offset, void *to, size_t len,
			struct ow_error *err);

/* Returns OW_E_IO if the file was written to, cut or extended since it was opened. */
ow_status input_check_unchanged(const struct input *in, struct ow_error *err);

struct window {
	const struct input *in;
	unsigned char *buf; /* buffer of the window; NULL when the input is in memory */
	size_t cap, len;
	uint64_t base;	  /* offset of buf[0] in the input */
	ow_status status; /* status of the last failure */
	struct ow_error *err;
};

void window_init(struct window *w, const struct input *in, struct ow_error *err);
void window_release(struct window *w);

/* Loads bytes for window_at; called when they are not in the buffer. */
const unsigned char *window_fill(struct window *w, uint64_t offset, size_t len);

/* `len` contiguous bytes at `offset`, valid until the next call; NULL on failure, with w->status and
 * the error set. Asking beyond the end of the input is OW_E_CORRUPT "truncated". */
static inline const unsigned char *window_at(struct window *w, uint64_t offset, size_t len)
{
	if (OW_LIKELY(offset >= w->base && offset - w->base <= w->len &&
		      len <= w->len - (size_t)(offset - w->base)))
		return w->buf + (size_t)(offset - w->base);
	return window_fill(w, offset, len);
}

/* Returns all contiguous loaded bytes from `offset` on: at least min(want, rest of the input). */
struct str window_peek(struct window *w, uint64_t offset, size_t want);

/* Opens a file that another user may have chosen: never waits (a pipe, a lease), and opens nothing but regular files,
 * since opening a device can have effects. Returns a descriptor to read from, or -1 with errno set. */
int open_regular_file(const char *path);

#endif
