/*
 * journal.h: what a running program writes of itself into our own file: steps, slices of time and values, one
 * record of 32 bytes each, in segments of the kind OPW_JOURNAL (docs/file-format.md). The writer is here; what
 * records mean for a model is known to import/own/journal_rows.c. The public functions are in api/recorder.c.
 *
 * A record is in the file as soon as the call returns: the segment that is being filled is mapped and shared, so
 * it outlives the process, however that ends (not the machine: nothing is flushed before the journal is closed).
 * Each record has its own checksum; one that was being written when the process was killed has a wrong one.
 *
 * Any thread may write. A child process writes nothing: it finds that it is one and leaves the file alone.
 */
#ifndef WIRE_JOURNAL_H
#define WIRE_JOURNAL_H

#include "base/map.h"
#include "wire/own/opw.h"

#include <pthread.h>

enum journal_kind {
	JOURNAL_NONE, /* the slot is not written yet */
	/* value: length of the text, which is in the following slots; check: its crc */
	JOURNAL_NAME,
	JOURNAL_THREAD, /* value: thread id of the system; name: name of the thread, or 0 */
	JOURNAL_STEP,	/* a step begins and the previous one ends; value: number of the step */
	JOURNAL_END,	/* the step ends; value 1: it is dropped */
	JOURNAL_SLICE,	/* a slice ends at ts; value: its duration */
	JOURNAL_VALUE	/* value: the bits of a double */
};

struct journal_record {
	int64_t ts_ns; /* nanoseconds since 1970, from a clock that never jumps */
	int64_t value;
	uint32_t name;	 /* number of a JOURNAL_NAME, from 1 */
	uint32_t thread; /* number of a JOURNAL_THREAD, from 1 */
	uint16_t kind;
	uint16_t zero;
	uint32_t check; /* checksum of the bytes before; for a JOURNAL_NAME also of its text */
};
_Static_assert(sizeof(struct journal_record) == 32, "layout");

#define JOURNAL_TEXT_MAX 4096

static inline uint64_t journal_text_slots(uint64_t bytes)
{
	return (bytes + sizeof(struct journal_record) - 1) / sizeof(struct journal_record);
}

struct journal_thread {
	int64_t tid;
	int64_t last_ns; /* end of the thread's last slice, or begin of its step */
};

struct journal {
	struct mem *mem;
	int fd;
	char *path;
	size_t path_size;
	pthread_mutex_t lock; /* guards all members below */
	int64_t wall_ns;      /* nanoseconds to add to the monotonic clock */
	/* The segment that is being filled: */
	uint64_t at, size; /* position and size in the file */
	char *map;
	size_t map_size;
	struct journal_record *slots;
	uint64_t slot_count, used;
	struct opw_writer writer; /* heads of the full segments, for the footer */
	struct opw_out out;
	struct journal_thread *threads;
	size_t thread_count, thread_cap;
	struct map names; /* names by text */
	struct str *texts;
	size_t name_count, name_cap;
	struct arena text_arena;
	uint32_t *alive; /* a page that a child process finds zeroed */
	int64_t pid;	 /* process id, to detect a child process on systems without such pages */
	int64_t next_step;
	bool in_step;
	uint64_t lost;
	struct ow_error failure; /* first failure: from then on records are lost */
};

/* Creates the file; a regular file of that name is replaced, and programs that have it open keep the old
 * one. */
ow_status journal_open(struct journal *j, struct mem *mem, const char *path, const char *writer,
		       struct ow_error *err);
/* Writes the footer, flushes and releases; returns the first failure. In a child process it only releases. */
ow_status journal_close(struct journal *j, struct ow_error *err);

/* Returns false in a child process. */
bool journal_is_ours(const struct journal *j);
int64_t journal_now(const struct journal *j);
/* Returns the number of a text, 0 if there is no room. Texts are cut to JOURNAL_TEXT_MAX. */
uint32_t journal_name(struct journal *j, struct str text);
/* Sets the name of the calling thread. */
void journal_name_thread(struct journal *j, uint32_t name);
/* Names the time since this thread's last slice, or since the begin of the step. */
void journal_mark(struct journal *j, uint32_t name);
void journal_slice(struct journal *j, uint32_t name, int64_t start_ns, int64_t end_ns);
/* Begins a step; INT64_MIN: the next number. Returns the number. */
int64_t journal_step(struct journal *j, int64_t number, int64_t start_ns);
void journal_end_step(struct journal *j, bool drop);
void journal_value(struct journal *j, uint32_t name, double value);

#endif
