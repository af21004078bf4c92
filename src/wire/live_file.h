/*
 * live_file.h: what a recording of running programs is made of: segments of the kind OPW_LIVE in our own file
 * (wire/opw.h), each with the blocks below, as far as there is something to say. live/recording.c writes them,
 * import/live_read.c reads them; docs/file-format.md tells the layout. Blocks that a reader does not know are passed over.
 *
 * Every segment carries checksums and is complete in itself: what was written is readable, whatever happened next.
 * A collector that was killed between writing and telling the job writes the same records again after its restart:
 * a run says which numbers its records have in their ring, and readers leave out what they have.
 */
#ifndef WIRE_LIVE_FILE_H
#define WIRE_LIVE_FILE_H

#include "wire/ring.h"

#define LIVE_VERSION 1u

/* "session", once, first: where and when. */
struct live_session {
	uint32_t version, zero;
	int64_t monotonic_ns,
		wall_ns; /* the clock of all records, and the time of day, read together */
	char host[64];
};

/* "process": of a job. */
struct live_process {
	uint32_t number; /* in the recording, from 1 */
	uint32_t pid, parent;
	uint32_t flags; /* enum live_process_flags */
	int64_t monotonic_ns,
		wall_ns; /* as the process sees them: another clock in another time namespace */
};
enum live_process_flags {
	LIVE_FORKED = 1 << 0,	/* and nothing was executed since */
	LIVE_REFUSED = 1 << 1,	/* its recorder is of another version: nothing is known of it */
	LIVE_ATTACHED = 1 << 2, /* it ran before it was recorded */
};

/* "place": of a file that begins in the middle: whose the records of a ring are, from the next run on, or with ring 0
 * what a queue of a device is called. */
struct live_place {
	uint32_t process, ring;
	uint32_t id;	       /* thread, or queue */
	uint32_t first;	       /* 1: the first thread of its process */
	uint32_t name, device; /* of a queue: names */
	uint64_t zero;
};

/* "run": which records follow in "record", one run after the other. */
struct live_run {
	uint32_t process, ring;
	uint64_t first; /* number of the first record in its ring */
	uint32_t count;
	uint32_t dropped_marks; /* of those dropped: ranges, which may be ends of steps */
	uint64_t dropped;	/* of the ring, so far */
};

/* "text": this, the bytes, and zeros up to a multiple of 8. */
struct live_text {
	uint32_t process;
	uint32_t kind;	 /* enum live_text_kind */
	uint32_t number; /* of a name: in records; of a hook: enum ring_hook */
	uint32_t len;
};
enum live_text_kind {
	LIVE_NAME = 1,
	LIVE_COMMAND,  /* words that end with NUL */
	LIVE_IDENTITY, /* NAME=VALUE, ends with NUL each */
	LIVE_ARMED,    /* a hook is in place */
	LIVE_UNKNOWN,  /* a hook was refused, and why */
	LIVE_THREAD,   /* number: thread id; what it is called by now */
	LIVE_NOTE,     /* for people; process 0: of all */
	LIVE_SOURCE    /* process 0; number: in "frame"; a function, or a file of sources */
};

/* "count": what a process called so far. */
struct live_count {
	uint32_t process;
	uint32_t counter; /* enum ring_counter, or LIVE_IO_READ and on */
	int64_t ts_ns;	  /* monotonic */
	uint64_t calls, ns, bytes;
};
/* Of /proc/PID/io and /proc/PID/fd, beside the counters of the recorder: what the system knows. */
#define LIVE_IO_READ 64u    /* bytes that went through read calls, whoever made them */
#define LIVE_IO_STORAGE 65u /* bytes that came from a disk for the process, by whatever means */
#define LIVE_IO_URING 66u   /* calls: instances of io_uring that it has */

/* "frame", "stack", "sample": stacks of Python code, read from outside. Each frame and stack is written once; those
 * that a stack or a sample is made of come in the same segment, or in one before. */
struct live_frame {
	uint32_t number;	 /* from 1, one after the other */
	uint32_t function, file; /* texts: LIVE_SOURCE */
	int32_t line, function_line;
	uint32_t zero;
};
struct live_stack {
	uint32_t number;	/* from 1, one after the other */
	uint32_t parent, frame; /* parent 0: the outermost */
	uint32_t zero;
};
struct live_sample {
	uint32_t process, tid, stack, zero;
	int64_t ts_ns;	 /* monotonic */
	int64_t wall_ns; /* since the sample before, running or not */
	int64_t cpu_ns;	 /* of these, on a processor */
};

/* "end": the process is gone, or is not recorded any more. */
struct live_end {
	uint32_t process;
	uint32_t texts_lost, rings_lost, zero;
	int64_t ts_ns;
};

_Static_assert(sizeof(struct live_session) == 88, "layout");
_Static_assert(sizeof(struct live_process) == 32, "layout");
_Static_assert(sizeof(struct live_place) == 32, "layout");
_Static_assert(sizeof(struct live_run) == 32, "layout");
_Static_assert(sizeof(struct live_text) == 16, "layout");
_Static_assert(sizeof(struct live_count) == 40, "layout");
_Static_assert(sizeof(struct live_end) == 24, "layout");
_Static_assert(sizeof(struct live_frame) == 24, "layout");
_Static_assert(sizeof(struct live_stack) == 16, "layout");
_Static_assert(sizeof(struct live_sample) == 40, "layout");

static inline uint64_t live_text_bytes(uint64_t len)
{
	return sizeof(struct live_text) + ((len + 7) & ~(uint64_t)7);
}

#endif
