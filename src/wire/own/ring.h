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

#define RING_VERSION 7u
#define RING_MAGIC "OPW-RING"
#define RING_PROCESS_MAGIC "OPW-PROC"
#define RING_HELLO_MAGIC "OPW-HELO"

/* Environment variables through which a job learns where to report and the collector's
 * RING_VERSION. */
#define RING_ENV_SOCKET "OPWATCH_RECORDER_SOCKET"
#define RING_ENV_VERSION "OPWATCH_RECORDER_VERSION"
#define RING_ENV_RECORDS "OPWATCH_RECORDER_RING" /* number of records of a ring, a power of two */
/* "1": the collector ends with the job, so the job does not connect to another one. */
#define RING_ENV_ONCE "OPWATCH_RECORDER_ONCE"
/* Result of ring_filters in the process that starts the job. */
#define RING_ENV_FILTERS "OPWATCH_RECORDER_FILTERS"

/* Name of the function whose calls begin steps; or unset. */
#define RING_ENV_MARKER "OPWATCH_STEP_MARKER"
#define RING_MARKER_MAX 128u /* largest size in bytes, including the NUL */
/* Flag in the version with which `opwatch attach` starts the recorder: the marker follows the path of the
 * socket, after a newline. */
#define RING_WITH_MARKER (1u << 16)

#define RING_RECORDS 16384u
#define RING_RECORDS_MIN 64u
#define RING_RECORDS_MAX (1u << 24)

enum ring_kind {
	RING_NONE,
	/* the following records belong to thread `id`, called `name`; `bytes` 1: it is the first
	 * of its process */
	RING_THREAD,
	RING_SLICE,   /* activity of the thread */
	RING_SPAN,    /* activity that began on one thread and ended on another */
	RING_DEVICE,  /* activity of a device on queue `stream` */
	RING_QUEUE,   /* queue `stream` is called `name`; `id`: text with the name of its device */
	RING_SLICE_OF /* activity of thread `stream`, recorded by another thread */
};

enum ring_category {
	RING_OTHER,
	RING_OPERATOR,	 /* operator of a framework */
	RING_BACKWARD,	 /* operator of the backward pass */
	RING_RANGE,	 /* range that a program or framework marks around operators */
	RING_FILE_READ,	 /* read of a file; `stream` is the descriptor */
	RING_FILE_WRITE, /* write or flush of a file; `stream` is the descriptor */
	RING_FILE_OPEN,
	RING_OPENCL_CALL,
	RING_OPENCL_WAIT,
	RING_OPENCL_BUILD,
	RING_CUDA_CALL,
	RING_CUDA_WAIT,
	RING_KERNEL,
	RING_COPY_TO_DEVICE,
	RING_COPY_TO_HOST,
	RING_COPY_DEVICE, /* copy within device memory, or a fill */
	RING_COLLECTIVE,
	RING_STEP, /* begin of a step: a call of the function that --step-marker names */
	RING_CATEGORIES
};

struct ring_record {
	uint64_t start_ns; /* start in CLOCK_MONOTONIC */
	uint64_t dur_ns;
	uint64_t bytes;
	uint64_t id;   /* id that joins a call and the work it started; 0 = none */
	uint32_t name; /* number of a text of the process, see ring_text; 0 = none */
	uint32_t stream;
	uint32_t sequence; /* low half of the record's number in the ring */
	uint16_t kind, category;
	uint32_t stack, step; /* numbers of stack and step; 0: unknown */
	/* 0, or where calls come too fast to record each: calls that this one stands for, itself included. `bytes` is of all of
	 * them, `dur_ns` of this one. */
	uint32_t calls;
	uint32_t zero;
};
_Static_assert(sizeof(struct ring_record) == 64, "layout");

/* Counters of calls that are not recorded one by one. */
enum ring_counter {
	RING_SEND,
	RING_RECEIVE,
	RING_POLL,
	RING_PIPE_READ, /* reads from pipes, terminals and local sockets */
	RING_PIPE_WRITE,
	/* All reads of files, pipes and sockets, as the kernel counts them. The collector computes them. */
	RING_READS,
	RING_FILE_READS, /* reads of files */
	RING_MAPPED,	 /* mapped files: bytes of the mappings */
	RING_COUNTERS,
	/* Reads from sockets by read() and its kin, which the collector adds to RING_RECEIVE. */
	RING_SOCKET_READ = RING_COUNTERS,
	RING_COUNTED
};

struct ring_count {
	_Atomic uint64_t calls, bytes;
};

/* Counters of calls that are too frequent: they are recorded now and then with the number of calls since. */
#define RING_SAMPLED 40u /* number of kinds of C library calls */
#define RING_OPS 96u	 /* number of places from which operators are called */
struct ring_sampled {
	struct ring_count count; /* calls and bytes since the last record */
	_Atomic uint32_t name;	 /* text number of the record's name */
	/* Set while a record is written that includes these calls: the head after the record. If the process is
	 * killed then, the calls are counted either in the record, which is complete when the head has this value,
	 * or here. */
	_Atomic uint32_t taken;
};

struct ring {
	char magic[8];
	uint32_t version;
	uint32_t records; /* number of records, a power of two */
	uint32_t number;  /* number of the ring in its process, from 1 */
	uint32_t pid;
	/* Members that the writer changes: */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t dropped;
	_Atomic uint32_t idle; /* 1: the thread of the ring has ended */
	/* thread of the ring, for a collector that connects later; 0: unknown */
	_Atomic uint32_t thread;
	struct ring_count counts[RING_COUNTED];
	/* Members that the reader changes: */
	_Alignas(64) _Atomic uint64_t tail;
	/* number of dropped records that are already in sums that outlive the reader */
	_Atomic uint64_t counted;
	/* Members that the writer rarely changes: */
	_Atomic uint64_t dropped_marks; /* number of dropped records that may mark ends of steps */
	struct ring_sampled sampled[RING_SAMPLED + RING_OPS];
};
#define RING_HEAD_BYTES 4096u
_Static_assert(sizeof(struct ring) <= RING_HEAD_BYTES, "layout");

#define RING_NO_MEMORY_TEXT "its limits (ulimit -v, -d) do not leave room for the recorder's memory"

static inline uint64_t ring_bytes(uint32_t records)
{
	return RING_HEAD_BYTES + (uint64_t)records * sizeof(struct ring_record);
}

/* Returns the number of unread records from which on the reader writes a ring. */
static inline uint32_t ring_plenty(uint32_t records)
{
	return records / 4;
}

/* The last part of a ring is reserved for records that say where steps end (ranges) and which thread owns records:
 * without these few records the others cannot be interpreted. */
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

/* The process: */

/* States of a process. The collector sets RING_STOP and RING_REFUSED, the recorder sets
 * RING_STOPPED. */
enum ring_state {
	RING_RUN,
	RING_STOP,    /* the recorder should remove its hooks */
	RING_STOPPED, /* the hooks are removed */
	RING_REFUSED  /* the collector cannot read this version */
};

enum ring_hook {
	RING_HOOK_FILES, /* files and sockets */
	RING_HOOK_TORCH,
	RING_HOOK_OPENCL,
	RING_HOOK_CUDA,
	RING_HOOK_NCCL,
	RING_HOOKS
};

enum ring_hook_state { RING_HOOK_ABSENT, RING_HOOK_ARMED, RING_HOOK_UNKNOWN, RING_HOOK_REMOVED };

struct ring_hook_info {
	_Atomic uint32_t state; /* enum ring_hook_state */
	/* text number of the version or of the refusal's reason; 0 = none */
	_Atomic uint32_t text;
};

struct ring_process {
	char magic[8];
	uint32_t version;
	_Atomic uint32_t state; /* up to this member the layout is the same in all versions */
	uint32_t pid, parent;
	/* 1: a recorded process forked this one, and it has executed no program since */
	uint32_t forked;
	uint32_t text_bytes;			    /* size of the texts at the end of the region */
	uint64_t clock_monotonic_ns, clock_wall_ns; /* both clocks, read together */
	uint32_t command; /* text number of the command line, words separated by NUL */
	/* text number of the variables that identify job and rank, NAME=VALUE with a NUL each */
	uint32_t identity;
	_Atomic uint32_t text_used; /* used part of the texts, in units of 8 bytes */
	_Atomic uint32_t text_lost; /* number of texts that had no room */
	_Atomic uint32_t rings;	    /* number of rings made so far */
	/* number of threads without a ring because memory or descriptors ran out */
	_Atomic uint32_t rings_lost;
	struct ring_hook_info hooks[RING_HOOKS];
	_Atomic uint32_t patched; /* number of call sites that go through the recorder now */
};

#define RING_TEXT_BYTES (1u << 20)
#define RING_TEXT_OFFSET 4096u
#define RING_TEXT_MAX 2048u /* longest text in bytes; longer ones are cut */
_Static_assert(sizeof(struct ring_process) <= RING_TEXT_OFFSET, "layout");

/* A text: its length, then its bytes. Its number is its place in units of 8 bytes, so that 0 is none: the first
 * unit is not used. */
struct ring_text {
	uint32_t len;
	char bytes[];
};

/* Sandboxes: */

/* Filters of system calls (seccomp) that a process has, from its /proc/PID/status. With more filters than the
 * collector has, the process may be killed for a recorder's calls. Old systems only say whether there are any. */
static inline unsigned long ring_filters(const char *status)
{
	const char *mode = strstr(status, "\nSeccomp:"), *count;

	if (!mode || strtoul(mode + 9, NULL, 10) == 0)
		return 0;
	if (strtoul(mode + 9, NULL, 10) == 1)
		return 1000; /* the strict mode, in which almost no system call is allowed */
	count = strstr(status, "\nSeccomp_filters:");
	return count ? strtoul(count + 17, NULL, 10) : 1;
}

/* Messages on a UNIX socket of sequenced packets; the first two kinds carry a descriptor. */

enum ring_message_kind {
	RING_HELLO = 1, /* first message: the shared memory of the process */
	RING_NEW,	/* a new ring */
	RING_REFUSAL	/* the library records nothing; `number`: enum ring_refusal */
};

enum ring_refusal {
	RING_OTHER_VERSION, /* the recorder does not support the collector's version */
	RING_NO_MEMORY	    /* memory is missing; see RING_NO_MEMORY_TEXT */
};

struct ring_message {
	char magic[8];
	uint32_t version;
	uint32_t kind;
	uint32_t pid;
	uint32_t number; /* number of the ring */
};

#endif
