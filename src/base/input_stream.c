/*
 * input_stream.c: reads what is no regular file (a pipe, standard input, a terminal) to its end, into
 * memory while it is short, else into a temporary file. Called by input.c only. Streams may have no
 * end: before the first byte goes to disk the caller's judge sees the beginning.
 */
#include "base/input_int.h"

#include "base/temp_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_MEMORY ((size_t)64 << 20) /* kept in memory up to this, then in a file */
#define READ_CHUNK ((size_t)1 << 20)

struct stream {
	struct input *in;
	const struct input_options *options;
	int fd, temp;
	void *data; /* what is not in the file yet */
	size_t len, cap;
	size_t memory; /* how much of it may be kept in memory */
};

/* A limit leaves the most of what there is to those who will read it. */
static size_t memory_for(const struct mem *mem)
{
	size_t used = atomic_load(&mem->used);

	if (!mem->limit)
		return STREAM_MEMORY;
	return MIN(STREAM_MEMORY, mem->limit > used ? (mem->limit - used) / 4 : READ_CHUNK);
}

/* Devices of which nobody knows an end; standard input and what the shell passes on are the user's
 * business. */
static bool is_descriptor(const char *path)
{
	return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0 ||
	       strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

ow_status input_stream_check(const char *path, int fd, unsigned mode, struct error *err)
{
	if (S_ISBLK(mode) || (S_ISCHR(mode) && !is_descriptor(path) && !isatty(fd)))
		return error_set(err, OW_E_FORMAT,
				 "%s: is a device, not a profile; give a file, a directory or - "
				 "for standard input",
				 path);
	return OW_OK;
}

static ow_status report(const struct stream *s, struct error *err)
{
	const struct progress *progress = s->options->progress;
	uint64_t done = s->in->size + s->len;

	if (progress && progress->report && !progress->report(progress->arg, done, done))
		return error_set(err, OW_E_INTERRUPTED, "interrupted");
	return OW_OK;
}

/* Some bytes more, none at the end. */
static ow_status read_some(struct stream *s, size_t *got, struct error *err)
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

static ow_status move_to_file(struct stream *s, struct error *err)
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

static ow_status read_all(struct stream *s, struct error *err)
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

ow_status input_stream_read(struct input *in, int fd, const struct input_options *options,
			    struct error *err)
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
