/*
 * perf_stream.h: writes what the kernel sampled as a recording of perf, in the form that `perf record -o -` has: events
 * first, then records. The importer of perf.data (and perf itself) reads it. Chains are whole: unwinding happened
 * before.
 */
#ifndef LIVE_PERF_STREAM_H
#define LIVE_PERF_STREAM_H

#include "base/buf.h"

#include <sys/types.h>

enum perf_stream_event {
	STREAM_CPU = 1,	 /* cpu-clock: the thread was on a processor */
	STREAM_WAIT = 2, /* offcpu-time: the thread was waiting */
	STREAM_READY = 3 /* run-queue: the thread was ready to run, without a processor */
};

struct perf_stream {
	struct buf bytes; /* buffer that is written to fd when it is large enough */
	int fd;
	uint64_t written, limit; /* number of bytes written, and their limit; 0: no limit */
	int failure;		 /* errno of a failed write; EFBIG at the limit */
};

void perf_stream_begin(struct perf_stream *s, struct mem *mem, int fd, uint64_t limit,
		       uint64_t period_ns, int64_t wall_ns, int64_t clock_ns);
/* Writes the rest of the buffer. False if a write failed. */
bool perf_stream_end(struct perf_stream *s);

struct stream_sample {
	enum perf_stream_event event;
	pid_t pid, tid;
	int64_t ts_ns;
	uint64_t period_ns;
	bool in_kernel;
	const uint64_t *kernel, *user; /* addresses, innermost first */
	size_t kernel_count, user_count;
};
void perf_stream_sample(struct perf_stream *s, const struct stream_sample *sample);
/* Writes a record of the kernel that is not a sample; its end has thread and time. */
void perf_stream_record(struct perf_stream *s, const void *record, size_t size);
/* Writes the name of a process that ran before the recording; stream_map is one of its mappings. */
void perf_stream_name(struct perf_stream *s, pid_t pid, pid_t tid, const char *name);
struct stream_map {
	pid_t pid; /* process; -1: the kernel */
	uint64_t start, len, offset, inode;
	uint32_t major, minor;
	const char *name;
};
void perf_stream_map(struct perf_stream *s, const struct stream_map *map);

#endif
