/*
 * opw.h: the frames of our own file format: a header, segments of named blocks, a footer with a copy of
 * all segment heads, and a trailer that says where the footer is. Names of blocks are in opw_blocks.def; only
 * import_opw.c and opw_save.c know what tables and strings mean. At the end: what a recording of running programs is made of. docs/file-format.md describes the layout.
 *
 * Numbers are little-endian, as on every machine this runs on, so structs are the layout.
 */
#ifndef WIRE_OPW_H
#define WIRE_OPW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/input.h"
#include "wire/own/ring.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layout is little-endian");

#define OPW_MAGIC "\x89OPW\r\n\x1a\n"
#define OPW_SEGMENT_MAGIC "OPW-SEG\n"
#define OPW_END_MAGIC "OPW-END\n"
#define OPW_MAJOR 1 /* major version: older programs must not read the file */
#define OPW_MINOR 2 /* minor version: older programs may read the file */
#define OPW_ALIGN 64
#define OPW_BLOCKS_MAX 4096

struct opw_header {
	char magic[8];
	uint32_t major, minor;
	char writer[40]; /* text for people: "opwatch 0.1.0" */
	uint32_t zero;
	uint32_t crc; /* checksum of the bytes before */
};

enum opw_kind {
	OPW_META = 1,	 /* values about the whole file, one block each */
	OPW_STRINGS = 2, /* blocks "length" and "text" */
	OPW_ROWS = 3,	 /* rows of a table, one block per column */
	OPW_BYTES = 4,	 /* bytes that args_offset and record_offset refer to */
	OPW_FOOTER = 5,	 /* block "heads" */
	OPW_JOURNAL = 6, /* block "records", each with its own checksum; see wire/own/journal.h */
	OPW_LIVE = 7,	 /* records of running programs, described at the end of this header */
};

struct opw_head {
	char magic[8];
	uint32_t kind;
	uint32_t block_count;
	uint64_t size; /* size of the whole segment, a multiple of OPW_ALIGN */
	uint64_t first_row, row_count;
	char table[32];
	uint32_t zero[5];
	/* checksum of this struct with crc = 0, then of the descriptions of the blocks */
	uint32_t crc;
};

/* Description of one column or value, right after the head. */
struct opw_block {
	char name[32];
	char type[16];
	uint64_t offset; /* offset from the start of the segment, a multiple of OPW_ALIGN */
	uint64_t size;	 /* size in bytes */
	uint32_t value_size;
	uint32_t crc;
};

struct opw_trailer {
	char magic[8];
	uint64_t footer_offset, footer_size, segment_count, file_size;
	uint32_t zero[5];
	uint32_t crc;
};

_Static_assert(sizeof(struct opw_header) == 64, "layout");
_Static_assert(sizeof(struct opw_head) == 96, "layout");
_Static_assert(sizeof(struct opw_block) == 72, "layout");
_Static_assert(sizeof(struct opw_trailer) == 64, "layout");

static inline uint64_t opw_round(uint64_t size)
{
	return (size + OPW_ALIGN - 1) & ~(uint64_t)(OPW_ALIGN - 1);
}

/* Compares checksums. In fuzzer builds all are equal, because fuzzers cannot guess checksums. */
static inline bool opw_same_crc(uint32_t computed, uint32_t stored)
{
#ifdef OPWATCH_FUZZ
	(void)computed;
	(void)stored;
	return true;
#else
	return computed == stored;
#endif
}

/* Numbers of blocks with a fixed name; those of OPW_LIVE follow with the recordings below. */
enum opw_block_id {
#define OPW_BLOCK(kind, id, name, type, value_size) OPW_BLOCK_##id,
#include "wire/own/opw_blocks.def"
	OPW_BLOCK_COUNT
};

struct opw_block_info {
	const char *name, *type;
	uint32_t value_size;
};
extern const struct opw_block_info opw_block_info[OPW_BLOCK_COUNT];

/* Reading: */

struct opw_segment {
	uint64_t offset;
	struct opw_head head;
	const struct opw_block *blocks;
};

struct opw_file {
	const struct input *in;
	struct opw_header header;
	struct opw_segment *segments; /* segments in file order, without footers */
	size_t count, cap;
	bool complete;	   /* the footer exists, so nothing is missing */
	uint64_t end;	   /* otherwise: offset of the first unused byte */
	char problem[160]; /* otherwise: the reason */
};

/* Reads and checks the header and all heads; of a file without footer also every block, up to the first
 * segment that is not whole. Memory comes from the arena. */
ow_status opw_read(struct opw_file *file, const struct input *in, struct arena *arena,
		   struct ow_error *err);

/* Returns the block of that name; NULL if the segment has none. */
const struct opw_block *opw_find_block(const struct opw_segment *segment, const char *name);

/* Checks that the bytes of a block are those that were written; err names the place. */
ow_status opw_check_block(const struct opw_file *file, const struct opw_segment *segment,
			  const struct opw_block *block, struct ow_error *err);
/* Sets the error of a damaged block. */
ow_status opw_damaged(const struct opw_file *file, const struct opw_segment *segment,
		      const struct opw_block *block, struct ow_error *err);

static inline bool opw_is(struct str head)
{
	return head.len >= 8 && memcmp(head.ptr, OPW_MAGIC, 8) == 0;
}

/* Returns whether `head` begins a file whose first segment has that kind. */
static inline bool opw_starts_with(struct str head, enum opw_kind kind)
{
	struct opw_head first;

	if (!opw_is(head) || head.len < sizeof(struct opw_header) + sizeof(first))
		return false;
	memcpy(&first, head.ptr + sizeof(struct opw_header), sizeof(first));
	return memcmp(first.magic, OPW_SEGMENT_MAGIC, sizeof(first.magic)) == 0 &&
	       first.kind == kind;
}

/* Writing: */

/* An output that accepts bytes at any offset. */
struct opw_out {
	ow_status (*write_at)(void *arg, uint64_t offset, const void *bytes, size_t len,
			      struct ow_error *err);
	void *arg;
};

/* One block to be written: bytes, or a function that writes the next `len` bytes. */
struct opw_part {
	const char *name, *type;
	uint32_t value_size;
	uint64_t size;
	const void *bytes;
	void (*read)(void *arg, void *to, size_t len);
	void *arg;
};

/* Sets name, type and size of a block. */
void opw_name_block(struct opw_block *block, enum opw_block_id id);
/* Makes a block with a fixed name from `size` bytes. */
struct opw_part opw_part_of(enum opw_block_id id, const void *bytes, uint64_t size);

struct opw_writer {
	const struct opw_out *out;
	struct buf heads; /* copies of the heads, for the footer */
	uint64_t segment_count;
	uint64_t at; /* offset of the next segment */
	/* The segment of bytes that is being written: */
	uint64_t bytes_start, bytes_len;
	uint32_t bytes_crc;
	bool in_bytes;
};

void opw_writer_init(struct opw_writer *w, struct mem *mem, const struct opw_out *out);
void opw_writer_release(struct opw_writer *w);

/* Writes the header at the start. */
ow_status opw_put_header(struct opw_writer *w, const char *writer, struct ow_error *err);
/* Write a whole segment, and compute its length. */
ow_status opw_put_segment(struct opw_writer *w, enum opw_kind kind, const char *table,
			  uint64_t first_row, uint64_t row_count, const struct opw_part *parts,
			  uint32_t count, struct ow_error *err);
uint64_t opw_segment_size(const struct opw_part *parts, uint32_t count);
/* Bytes that need an address: *offset is where they are in the file. Segments of them are begun and
 * ended on the way; opw_end_bytes ends the last one. One call's bytes stay together. */
ow_status opw_begin_item(struct opw_writer *w, uint64_t *offset, struct ow_error *err);
ow_status opw_put_bytes(struct opw_writer *w, const void *bytes, size_t len, struct ow_error *err);
ow_status opw_end_bytes(struct opw_writer *w, struct ow_error *err);
/* Writes footer and trailer; *size becomes the size of the file. */
ow_status opw_put_footer(struct opw_writer *w, uint64_t *size, struct ow_error *err);

/* Recordings of running programs.
 *
 * A recording is made of segments of the kind OPW_LIVE, each with those of the blocks below that have rows.
 * live/record/recording.c writes them, import/own/live_read.c and live/follow read them. Readers skip blocks that they do
 * not know.
 *
 * Every segment carries checksums and is complete in itself: it stays readable, whatever happens to the writer. A
 * collector that is killed after writing and before it confirms to the job writes the same records again when it is
 * restarted: a run says which numbers its records have in their ring, and readers leave out records that they have. */

#define LIVE_VERSION 1u

/* Block "session", once, first: place and time of the recording. */
struct live_session {
	uint32_t version, zero;
	int64_t monotonic_ns,
		wall_ns; /* clock of all records, and the time of day, read together */
	char host[64];
};

/* Block "process": a process of a job. */
struct live_process {
	uint32_t number; /* number in the recording, from 1 */
	uint32_t pid, parent;
	uint32_t flags; /* flags of enum live_process_flags */
	int64_t monotonic_ns,
		/* clocks as the process sees them; another time namespace has another clock */
		wall_ns;
};
enum live_process_flags {
	LIVE_FORKED = 1 << 0,	/* the process was forked and has executed no program since */
	LIVE_REFUSED = 1 << 1,	/* its recorder has another version, so nothing is known about it */
	LIVE_ATTACHED = 1 << 2, /* the process ran before it was recorded */
};

/* "place": in a file that begins in the middle of a recording: the process and thread of a ring, from the next run
 * on, or, with ring 0, the name of a device's queue. */
struct live_place {
	uint32_t process, ring;
	uint32_t id;	       /* id of the thread or queue */
	uint32_t first;	       /* 1: the first thread of its process */
	uint32_t name, device; /* for a queue: names of the queue and its device */
	uint64_t zero;
};

/* Block "run": a run of consecutive records in the block "record". */
struct live_run {
	uint32_t process, ring;
	uint64_t first; /* number of the first record in its ring */
	uint32_t count;
	uint32_t dropped_marks; /* number of dropped records that may mark ends of steps */
	uint64_t dropped;	/* number of records that the ring dropped so far */
};

/* Block "text": this struct, the bytes, and zeros up to a multiple of 8. */
struct live_text {
	uint32_t process;
	uint32_t kind;	 /* enum live_text_kind */
	uint32_t number; /* for a name: its number in records; for a hook: enum ring_hook */
	uint32_t len;
};
enum live_text_kind {
	LIVE_NAME = 1,
	LIVE_COMMAND,  /* command line: words that end with NUL */
	LIVE_IDENTITY, /* variables NAME=VALUE, each with a NUL */
	LIVE_ARMED,    /* a hook is installed */
	LIVE_UNKNOWN,  /* a hook was refused, with the reason */
	LIVE_THREAD,   /* number: thread id; text: its current name */
	LIVE_NOTE,     /* note for people; process 0: about all */
	/* process 0; number: as used in "frame"; text: a function, or a source file */
	LIVE_SOURCE
};

/* Block "count": calls of a process so far. */
struct live_count {
	uint32_t process;
	uint32_t counter; /* enum ring_counter, or LIVE_IO_READ and up */
	int64_t ts_ns;	  /* monotonic time */
	uint64_t calls, ns, bytes;
};
/* Counters from /proc/PID/io and /proc/PID/fd, in addition to those of the recorder. */
#define LIVE_IO_READ 64u    /* bytes that read calls of any thread transferred */
#define LIVE_IO_STORAGE 65u /* bytes that came from a disk for the process */
#define LIVE_IO_URING 66u   /* calls: number of its io_uring instances */
/* Of /proc/PID/task/TID/schedstat, of threads that record and of the first one: calls is the thread, ns its time on a
 * processor so far, bytes the nanoseconds that it was ready and waited for one. */
#define LIVE_SCHEDULED 67u
/* At the end of a process: calls of a name that were counted after its last record and not recorded. ns is
 * the name. */
#define LIVE_UNRECORDED 68u

/* "frame", "stack", "sample": stacks of Python code, read from outside. Each frame and stack is written once; those
 * that a stack or a sample is made of come in the same segment, or in one before. */
struct live_frame {
	uint32_t number;	 /* number of the frame, from 1 */
	uint32_t function, file; /* numbers of LIVE_SOURCE texts */
	int32_t line, function_line;
	uint32_t zero;
};
struct live_stack {
	uint32_t number;	/* number of the stack, from 1 */
	uint32_t parent, frame; /* numbers of the caller's stack (0: outermost) and of the frame */
	uint32_t zero;
};
struct live_sample {
	uint32_t process, tid, stack, zero;
	int64_t ts_ns;	 /* monotonic time */
	int64_t wall_ns; /* time since the previous sample, running or not */
	int64_t cpu_ns;	 /* part of it on a processor */
};

/* Block "end": the process has ended, or is no longer recorded. */
struct live_end {
	uint32_t process;
	uint32_t texts_lost, rings_lost, zero;
	int64_t ts_ns;
};

/* Blocks in the order of writing. */
enum live_block {
#define LIVE_BLOCK(id, name, value_size) LIVE_BLOCK_##id,
#include "wire/own/opw_blocks.def"
	LIVE_BLOCKS
};
static const struct {
	const char *name;
	uint32_t value_size;
} live_block_info[LIVE_BLOCKS] = {
#define LIVE_BLOCK(id, name, value_size) [LIVE_BLOCK_##id] = { name, value_size },
#include "wire/own/opw_blocks.def"
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

/* The blocks of one segment. */
struct live_blocks {
	struct buf bytes;
	struct str all[LIVE_BLOCKS]; /* content of each block; empty if it is missing or damaged */
};

void live_blocks_init(struct live_blocks *b, struct mem *mem);
void live_blocks_release(struct live_blocks *b);
/* Reads the blocks in `wanted` (one bit each). Fails if the file cannot be read, or if memory runs out. */
ow_status live_blocks_read(struct live_blocks *b, const struct input *in,
			   const struct opw_segment *segment, unsigned wanted,
			   struct ow_error *err);

/* Finds the blocks of a segment in memory; the result points into it. False if something is damaged. */
bool live_blocks_find(struct str segment, unsigned wanted, struct str all[LIVE_BLOCKS]);

/* Iterates over the rows of a block, which need not be aligned. */
#define LIVE_EACH_ROW(block, type, row, body)                                                      \
	do {                                                                                       \
		struct str left_ = (block);                                                        \
		for (; left_.len >= sizeof(type); left_ = str_skip(left_, sizeof(type))) {         \
			type row;                                                                  \
			memcpy(&row, left_.ptr, sizeof(row));                                      \
			body;                                                                      \
		}                                                                                  \
	} while (0)

/* Takes the first text off a block of texts; false if there is none or it is cut short. */
bool live_text_next(struct str *block, struct live_text *head, struct str *text);

#endif
