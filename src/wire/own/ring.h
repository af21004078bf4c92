/*
 * ring.h: the memory that a recorded process shares with the collector: one region per process (who it is,
 * texts, the state of the hooks) and one ring of records per thread. The recorder (recorder/) writes them, the
 * collector (live/) reads them; both are built with this header, and RING_VERSION shows when they were not built
 * with the same one. It needs libc only, since the recorder is a guest in other people's programs.
 *
 * A ring has one writer, the thread, and one reader. The writer fills a record and then moves `head`; the reader
 * copies records and then moves `tail`. A full ring drops the new record and counts it; it is full earlier for most
 * records than for those that mark steps (ring_room). Neither side waits for the other: the
 * reader comes by now and then, the sooner the fuller the ring was the last time.
 *
 * The memory is sealed against shrinking, but the process may scribble over it: readers check what they read.
 */
#ifndef WIRE_RING_H
#define WIRE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RING_VERSION 6u
#define RING_MAGIC "OPW-RING"
#define RING_PROCESS_MAGIC "OPW-PROC"
#define RING_HELLO_MAGIC "OPW-HELO"

/* How a job learns where to report, and what the other side speaks: a number, RING_VERSION. */
#define RING_ENV_SOCKET "OPWATCH_RECORDER_SOCKET"
#define RING_ENV_VERSION "OPWATCH_RECORDER_VERSION"
#define RING_ENV_RECORDS "OPWATCH_RECORDER_RING" /* records of a ring, a power of two */
/* "1": the collector ends with the job, so that there is no reason to connect to another one. */
#define RING_ENV_ONCE "OPWATCH_RECORDER_ONCE"
/* The result of ring_filters for the process that starts the job. */
#define RING_ENV_FILTERS "OPWATCH_RECORDER_FILTERS"

/* The function whose calls begin steps; or NULL. */
#define RING_ENV_MARKER "OPWATCH_STEP_MARKER"
#define RING_MARKER_MAX 128u /* bytes, with the end */
/* Added to the version with which `opwatch attach` starts the recorder: the marker follows the path of the socket, after a new line. */
#define RING_WITH_MARKER (1u << 16)

#define RING_RECORDS 16384u
#define RING_RECORDS_MIN 64u
#define RING_RECORDS_MAX (1u << 24)

enum ring_kind {
	RING_NONE,
	RING_THREAD, /* all that follows is of thread `id`, called `name`; `bytes` 1: it is the first of its process */
	RING_SLICE, /* what the thread did */
	RING_SPAN,  /* began on one thread and ended on another: not part of what this thread did */
	RING_DEVICE,  /* what a device did on queue `stream` */
	RING_QUEUE,   /* queue `stream` is called `name`; `id`: of which device, a text */
	RING_SLICE_OF /* what thread `stream` did, recorded by another one */
};

enum ring_category {
	RING_OTHER,
	RING_OPERATOR,	 /* an operator of a framework */
	RING_BACKWARD,	 /* the same, of the backward pass */
	RING_RANGE,	 /* what people and frameworks put around operators */
	RING_FILE_READ,	 /* bytes, stream: the descriptor */
	RING_FILE_WRITE, /* likewise, and flushes */
	RING_FILE_OPEN,
	RING_OPENCL_CALL,
	RING_OPENCL_WAIT,
	RING_OPENCL_BUILD,
	RING_CUDA_CALL,
	RING_CUDA_WAIT,
	RING_KERNEL,
	RING_COPY_TO_DEVICE,
	RING_COPY_TO_HOST,
	RING_COPY_DEVICE, /* from device memory to device memory, and fills */
	RING_COLLECTIVE,
	RING_STEP, /* a step begins: a call of the function that --step-marker names */
	RING_CATEGORIES
};

struct ring_record {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t dur_ns;
	uint64_t bytes;
	uint64_t id;   /* joins a call and the work it started; 0 = none */
	uint32_t name; /* a text of the process, see ring_text; 0 = none */
	uint32_t stream;
	uint32_t sequence; /* low half of the record's number in the ring */
	uint16_t kind, category;
	uint32_t stack, step; /* 0: not known */
	/* 0, or where calls come too fast to record each: calls that this one stands for, itself included. `bytes` is of all of
	 * them, `dur_ns` of this one. */
	uint32_t calls;
	uint32_t zero;
};
_Static_assert(sizeof(struct ring_record) == 64, "layout");

/* Calls that are counted instead of recorded one by one. */
enum ring_counter {
	RING_SEND,
	RING_RECEIVE,
	RING_POLL,
	RING_PIPE_READ, /* reads of what is not a file: pipes, terminals, local sockets */
	RING_PIPE_WRITE,
	RING_READS, /* all calls that read, of files, pipes and sockets: what the system counts, too */
	RING_FILE_READS, /* those of files */
	RING_MAPPED,	 /* files that were mapped: bytes of the mappings */
	RING_COUNTERS
};

struct ring_count {
	_Atomic uint64_t calls, ns, bytes;
};

/* Calls that come too fast are counted here, and recorded now and then with the number of those since. */
#define RING_SAMPLED 32u /* kinds of calls of the C library, each on some descriptors */
#define RING_OPS 96u	 /* places from which operators are called */
struct ring_sampled {
	_Atomic uint64_t calls, bytes; /* since the last record */
	_Atomic uint32_t name;	       /* of the record; a text */
	/* While a record is written that takes these calls: the head behind it. A process that is killed then has them either in the
	 * record, which is complete when the head is there, or here. */
	_Atomic uint32_t taken;
};

struct ring {
	char magic[8];
	uint32_t version;
	uint32_t records; /* a power of two */
	uint32_t number;  /* of the process, from 1 */
	uint32_t pid;
	/* Of the writer. */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t dropped;
	_Atomic uint32_t idle;	 /* 1: its thread has ended */
	_Atomic uint32_t thread; /* whose it is, for a collector that comes later; 0: unknown */
	struct ring_count counts[RING_COUNTERS];
	/* Of the reader. */
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic uint64_t counted; /* of those dropped, in sums that outlive the reader */
	/* Of the writer, and rarely touched. */
	_Atomic uint64_t dropped_marks; /* of those dropped, records that may mark ends of steps */
	struct ring_sampled sampled[RING_SAMPLED + RING_OPS];
};
#define RING_HEAD_BYTES 4096u
_Static_assert(sizeof(struct ring) <= RING_HEAD_BYTES, "layout");

#define RING_NO_MEMORY_TEXT "its limits (ulimit -v, -d) do not leave room for the recorder's memory"

static inline uint64_t ring_bytes(uint32_t records)
{
	return RING_HEAD_BYTES + (uint64_t)records * sizeof(struct ring_record);
}

/* From here on the reader finds that a ring is worth writing. */
static inline uint32_t ring_plenty(uint32_t records)
{
	return records / 4;
}

/* The last part of a ring is for records that say where steps end (ranges) and whose others are: without them what was
 * recorded cannot be distinguished, and they are few. */
#define RING_RESERVE 16u

static inline bool ring_is_mark(const struct ring_record *r)
{
	return r->category == RING_RANGE || r->category == RING_STEP;
}

static inline bool ring_is_precious(const struct ring_record *r)
{
	return ring_is_mark(r) || r->kind == RING_THREAD || r->kind == RING_QUEUE;
}

/* How many records of any kind a ring with this many in it has room for, or 1 for a precious one alone; 0: it is
 * dropped. */
static inline uint64_t ring_room(uint64_t records, uint64_t used, bool precious)
{
	uint64_t open = records - records / RING_RESERVE;

	if (used < open)
		return open - used;
	return precious && used < records;
}

static inline struct ring_record *ring_records(struct ring *ring)
{
	return (struct ring_record *)(void *)((char *)ring + RING_HEAD_BYTES);
}

/* ---- the process ---- */

/* Who moves it: the collector to RING_STOP and RING_REFUSED, the recorder to RING_STOPPED. */
enum ring_state {
	RING_RUN,
	RING_STOP,    /* take the hooks out */
	RING_STOPPED, /* they are out */
	RING_REFUSED  /* the collector cannot read this */
};

enum ring_hook {
	RING_HOOK_FILES, /* and sockets */
	RING_HOOK_TORCH,
	RING_HOOK_OPENCL,
	RING_HOOK_CUDA,
	RING_HOOK_NCCL,
	RING_HOOKS
};

enum ring_hook_state { RING_HOOK_ABSENT, RING_HOOK_ARMED, RING_HOOK_UNKNOWN, RING_HOOK_REMOVED };

struct ring_hook_info {
	_Atomic uint32_t state; /* enum ring_hook_state */
	_Atomic uint32_t text;	/* version, or why it was refused; 0 = none */
};

struct ring_process {
	char magic[8];
	uint32_t version;
	_Atomic uint32_t state; /* up to here the layout is the same in all versions */
	uint32_t pid, parent;
	uint32_t forked;     /* 1: by a recorded process, and nothing was executed since */
	uint32_t text_bytes; /* of the texts, which end the region */
	uint64_t clock_monotonic_ns, clock_wall_ns; /* read together */
	uint32_t command; /* text: the command line, words separated by NUL */
	uint32_t
		identity; /* text: the variables that say which job and rank it is, NAME=VALUE and NUL each */
	_Atomic uint32_t text_used;  /* in units of 8 bytes */
	_Atomic uint32_t text_lost;  /* texts that had no room */
	_Atomic uint32_t rings;	     /* made so far */
	_Atomic uint32_t rings_lost; /* threads that have none: no memory, no descriptor */
	struct ring_hook_info hooks[RING_HOOKS];
	_Atomic uint32_t patched; /* calls that go through the recorder at present */
};

#define RING_TEXT_BYTES (1u << 20)
#define RING_TEXT_OFFSET 4096u
#define RING_TEXT_MAX 2048u /* bytes of one text; longer ones are cut */
_Static_assert(sizeof(struct ring_process) <= RING_TEXT_OFFSET, "layout");

/* A text: its length, then its bytes. Its number is its place in units of 8 bytes, so that 0 is none: the first
 * unit is not used. */
struct ring_text {
	uint32_t len;
	char bytes[];
};

/* ---- sandboxes ---- */

/* Filters of system calls (seccomp) that a process has, from its /proc/PID/status. With more filters than the
 * collector has, the process may be killed for a recorder's calls. Old systems only say whether there are any. */
static inline unsigned long ring_filters(const char *status)
{
	const char *mode = strstr(status, "\nSeccomp:"), *count;

	if (!mode || strtoul(mode + 9, NULL, 10) == 0)
		return 0;
	if (strtoul(mode + 9, NULL, 10) == 1)
		return 1000; /* the strict kind, in which next to nothing may be called */
	count = strstr(status, "\nSeccomp_filters:");
	return count ? strtoul(count + 17, NULL, 10) : 1;
}

/* ---- messages, on a UNIX socket of sequenced packets; the first two kinds carry a descriptor ---- */

enum ring_message_kind {
	RING_HELLO = 1, /* the process's region; first of all */
	RING_NEW,	/* a ring */
	RING_REFUSAL	/* the library records nothing; `number`: enum ring_refusal */
};

enum ring_refusal {
	RING_OTHER_VERSION, /* it does not speak the collector's version */
	RING_NO_MEMORY	    /* RING_NO_MEMORY_TEXT */
};

struct ring_message {
	char magic[8];
	uint32_t version;
	uint32_t kind;
	uint32_t pid;
	uint32_t number; /* of the ring */
};

#endif
