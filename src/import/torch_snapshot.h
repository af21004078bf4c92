/*
 * torch_snapshot.h: what the files of the importer of torch's memory snapshots share: the words of the
 * format, and a row of a trace or a block as it was read. import_torch_memory.c is the entry.
 */
#ifndef IMPORT_TORCH_SNAPSHOT_H
#define IMPORT_TORCH_SNAPSHOT_H

#include "base/u64set.h"
#include "import/importer.h"
#include "wire/pickle.h"

/* Keys and values that mean something to us; texts of the pickle remember theirs in their tag. */
enum snapshot_word {
	WORD_UNKNOWN, /* not looked up yet */
	WORD_OTHER,
	WORD_ACTION,
	WORD_ADDR,
	WORD_ADDRESS,
	WORD_SIZE,
	WORD_REQUESTED_SIZE,
	WORD_STREAM,
	WORD_TIME_US,
	WORD_FRAMES,
	WORD_DEVICE,
	WORD_STATE,
	WORD_BLOCKS,
	WORD_TOTAL_SIZE,
	WORD_FILENAME,
	WORD_LINE,
	WORD_NAME,
	WORD_STAGE,
	WORD_HISTORY,
	WORD_REAL_SIZE,
	WORD_ALLOC, /* actions, in the order of the table in torch_snapshot.c */
	WORD_FREE,
	WORD_FREE_COMPLETED,
	WORD_FREE_REQUESTED,
	WORD_SEGMENT_ALLOC,
	WORD_SEGMENT_FREE,
	WORD_SEGMENT_MAP,
	WORD_SEGMENT_UNMAP,
	WORD_OOM,
	WORD_SNAPSHOT,
	WORD_ACTIVE_ALLOCATED, /* states of a block */
	WORD_ACTIVE_PENDING,
	WORD_ACTIVE_AWAITING,
	WORD_INACTIVE,
	WORD_START,
	WORD_END,
	WORD_COUNT
};

/* One dictionary: an entry of a trace, a segment, a block, a frame or an annotation. */
struct snapshot_record {
	struct pickle_value fields[WORD_COUNT]; /* by key */
	uint64_t present;			/* bits */
};

/* Rows that came from the items of one list. */
struct snapshot_span {
	uint32_t list;
	uint32_t first, count;
};

struct snapshot {
	struct builder *b;
	struct pickle p;
	struct error *err;
	struct snapshot_span *spans;
	size_t span_count, span_cap;
	uint64_t actions[WORD_COUNT];
	uint64_t odd;	     /* entries that are not understood */
	uint64_t rows, most; /* rows made, and how many the file can hold */
	bool without_times;  /* of some entries */
	int64_t last_ns;
	bool repaired;
};

/* torch_snapshot.c */
enum snapshot_word snapshot_word(struct snapshot *s, struct pickle_value text);
/* False when the value is no dictionary. */
bool snapshot_read(struct snapshot *s, struct pickle_value dict, struct snapshot_record *r);
static inline bool snapshot_has(const struct snapshot_record *r, enum snapshot_word word)
{
	return r->present >> word & 1;
}
/* A number of the record, 0 when it has none. */
int64_t snapshot_number(const struct snapshot_record *r, enum snapshot_word word);
/* The stack of a list of frames, innermost first; nil when it is none. */
stack_id snapshot_stack(struct snapshot *s, struct pickle_value frames);
str_id snapshot_string(struct snapshot *s, struct pickle_value text);
/* The hook: entries of traces become rows while they are read. */
bool snapshot_take(void *arg, struct pickle *p, uint32_t list, struct pickle_value item);

/* torch_heap.c: devices of the rows, what was there before, segments and blocks at the end. */
ow_status snapshot_finish(struct snapshot *s);

#endif
