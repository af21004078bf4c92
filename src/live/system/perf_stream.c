/*
 * perf_stream.c: writes a recording of perf in its form for pipes. Called by system_record.c. Texts and layouts are those
 * of linux/perf_event.h and of perf's own header records; nothing else is written.
 */
#include "live/system/perf_stream.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_BYTES ((size_t)1 << 20)
#define HEADER_ATTR 64
#define EVENT_UPDATE 78
#define HEADER_FEATURE 80
#define UPDATE_NAME 2
#define FEATURE_HOST 3
#define FEATURE_RELEASE 4
#define FEATURE_CLOCK_DATA 29

static void put(struct perf_stream *s, const void *bytes, size_t len)
{
	buf_add(&s->bytes, bytes, len);
}

static void put_u32(struct perf_stream *s, uint32_t value)
{
	put(s, &value, sizeof(value));
}

static void put_u64(struct perf_stream *s, uint64_t value)
{
	put(s, &value, sizeof(value));
}

/* Writes a text with its NUL, padded to eight bytes. */
static void put_text(struct perf_stream *s, const char *text)
{
	size_t len = strlen(text);

	put(s, text, len);
	buf_add_repeat(&s->bytes, '\0', 8 - len % 8);
}

static void flush(struct perf_stream *s)
{
	size_t at = 0;

	while (at < s->bytes.len && !s->failure) {
		ssize_t n = write(s->fd, s->bytes.ptr + at, s->bytes.len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			s->failure = errno ? errno : EIO;
		at += n > 0 ? (size_t)n : 0;
	}
	s->written += at;
	buf_clear(&s->bytes);
	if (s->limit && s->written >= s->limit && !s->failure)
		s->failure = EFBIG;
}

static size_t begin(struct perf_stream *s, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };
	size_t at = s->bytes.len;

	put(s, &header, sizeof(header));
	return at;
}

static void end(struct perf_stream *s, size_t at)
{
	uint16_t size = (uint16_t)(s->bytes.len - at);

	if (s->bytes.failed) {
		s->failure = ENOMEM;
		return;
	}
	memcpy(s->bytes.ptr + at + offsetof(struct perf_event_header, size), &size, sizeof(size));
	if (s->bytes.len >= FLUSH_BYTES)
		flush(s);
}

/* Records other than samples end with these fields, because the events were opened with sample_id_all. */
static void put_trailer(struct perf_stream *s, pid_t pid, pid_t tid, uint64_t ts)
{
	put_u32(s, (uint32_t)pid);
	put_u32(s, (uint32_t)tid);
	put_u64(s, ts);
	put_u64(s, STREAM_CPU);
}

static void put_event(struct perf_stream *s, enum perf_stream_event id, uint64_t config,
		      uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_PERIOD,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	size_t at = begin(s, HEADER_ATTR, 0);

	put(s, &attr, sizeof(attr));
	put_u64(s, id);
	end(s, at);
}

static void put_event_name(struct perf_stream *s, enum perf_stream_event id, const char *name)
{
	size_t at = begin(s, EVENT_UPDATE, 0);

	put_u64(s, UPDATE_NAME);
	put_u64(s, id);
	put_text(s, name);
	end(s, at);
}

static void put_text_feature(struct perf_stream *s, uint64_t feature, const char *text)
{
	size_t at = begin(s, HEADER_FEATURE, 0);

	put_u64(s, feature);
	put_u32(s, (uint32_t)strlen(text) + 1);
	put_text(s, text);
	buf_add_repeat(&s->bytes, '\0', 4);
	end(s, at);
}

static void put_clock(struct perf_stream *s, int64_t wall_ns, int64_t clock_ns)
{
	size_t at = begin(s, HEADER_FEATURE, 0);

	put_u64(s, FEATURE_CLOCK_DATA);
	put_u32(s, 1); /* version */
	put_u32(s, CLOCK_MONOTONIC);
	put_u64(s, (uint64_t)wall_ns);
	put_u64(s, (uint64_t)clock_ns);
	end(s, at);
}

void perf_stream_begin(struct perf_stream *s, struct mem *mem, int fd, uint64_t limit,
		       uint64_t period_ns, int64_t wall_ns, int64_t clock_ns)
{
	struct utsname u;

	*s = (struct perf_stream){ .fd = fd, .limit = limit };
	buf_init(&s->bytes, mem);
	put(s, "PERFILE2", 8);
	put_u64(s, 16);
	put_event(s, STREAM_CPU, PERF_COUNT_SW_CPU_CLOCK, period_ns);
	put_event(s, STREAM_WAIT, PERF_COUNT_SW_BPF_OUTPUT, 1);
	put_event_name(s, STREAM_WAIT, "offcpu-time");
	put_event(s, STREAM_READY, PERF_COUNT_SW_TASK_CLOCK, 1);
	put_event_name(s, STREAM_READY, "run-queue");
	if (uname(&u) == 0) {
		put_text_feature(s, FEATURE_HOST, u.nodename);
		put_text_feature(s, FEATURE_RELEASE, u.release);
	}
	put_clock(s, wall_ns, clock_ns);
}

bool perf_stream_end(struct perf_stream *s)
{
	if (s->bytes.failed && !s->failure)
		s->failure = ENOMEM;
	flush(s);
	buf_release(&s->bytes);
	return !s->failure;
}

void perf_stream_sample(struct perf_stream *s, const struct stream_sample *sample)
{
	size_t at = begin(s, PERF_RECORD_SAMPLE,
			  sample->in_kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	uint64_t count = sample->kernel_count + sample->user_count + (sample->kernel_count > 0) +
			 (sample->user_count > 0);

	put_u64(s, sample->kernel_count ? sample->kernel[0]
		   : sample->user_count ? sample->user[0]
					: 0);
	put_u32(s, (uint32_t)sample->pid);
	put_u32(s, (uint32_t)sample->tid);
	put_u64(s, (uint64_t)sample->ts_ns);
	put_u64(s, sample->event);
	put_u64(s, sample->period_ns);
	put_u64(s, count);
	if (sample->kernel_count) {
		put_u64(s, (uint64_t)PERF_CONTEXT_KERNEL);
		put(s, sample->kernel, sample->kernel_count * sizeof(uint64_t));
	}
	if (sample->user_count) {
		put_u64(s, (uint64_t)PERF_CONTEXT_USER);
		put(s, sample->user, sample->user_count * sizeof(uint64_t));
	}
	end(s, at);
}

void perf_stream_record(struct perf_stream *s, const void *record, size_t size)
{
	size_t at = s->bytes.len;

	if (size + 8 > UINT16_MAX)
		return;
	put(s, record, size);
	put_u64(s, STREAM_CPU);
	end(s, at);
}

void perf_stream_name(struct perf_stream *s, pid_t pid, pid_t tid, const char *name)
{
	size_t at = begin(s, PERF_RECORD_COMM, 0);

	put_u32(s, (uint32_t)pid);
	put_u32(s, (uint32_t)tid);
	put_text(s, name);
	put_trailer(s, pid, tid, 0);
	end(s, at);
}

void perf_stream_map(struct perf_stream *s, const struct stream_map *map)
{
	bool kernel = map->pid < 0;
	size_t at = begin(s, kernel ? PERF_RECORD_MMAP : PERF_RECORD_MMAP2,
			  kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);

	put_u32(s, (uint32_t)map->pid);
	put_u32(s, kernel ? 0 : (uint32_t)map->pid);
	put_u64(s, map->start);
	put_u64(s, map->len);
	put_u64(s, map->offset);
	if (!kernel) {
		put_u32(s, map->major);
		put_u32(s, map->minor);
		put_u64(s, map->inode);
		put_u64(s, 0); /* generation of the inode */
		put_u32(s, 5); /* readable, executable */
		put_u32(s, 2); /* private */
	}
	put_text(s, map->name);
	put_trailer(s, map->pid, map->pid, 0);
	end(s, at);
}
