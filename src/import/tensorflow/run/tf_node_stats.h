/*
 * tf_node_stats.h: the decoder of NodeExecStats, the record of one run of an op, and the iteration over the records of
 * a device (DeviceStepStats). Used by the accounting of tfprof (import_runmeta.c), by the rows that are made on first
 * use (tf_rows.c) and by the timeline (traced_steps.c). It returns the content of a record and decides nothing: no row,
 * no text and no shape is added to a model here. Texts are slices of the window and valid until the next record is
 * read.
 */
#ifndef IMPORT_TF_NODE_STATS_H
#define IMPORT_TF_NODE_STATS_H

#include "base/mem.h"
#include "model/model.h"
#include "wire/protobuf/pb_stream.h"

/* NodeOutput: a tensor that the run produced. */
struct tf_output {
	int32_t slot, dtype;
	int64_t requested, allocated; /* bytes */
	uint64_t address;
	struct str allocator;
	struct str shape;	/* a TensorShapeProto; a NULL pointer if there is none */
	struct str description; /* the last TensorDescription, serialized */
};

/* AllocatorMemoryUsed: the memory of one allocator during the run. */
struct tf_allocator {
	struct str name;
	int64_t total, peak, live, in_use; /* bytes */
	size_t alloc_first, alloc_count;   /* range of its AllocationRecords */
};

/* AllocationRecord */
struct tf_alloc {
	int64_t ts_us, size; /* a negative size is a release */
};

struct tf_node_stats {
	struct str name, label;
	int64_t start_us, op_end_us, all_end_us; /* the ends are relative to the start */
	int64_t temp, persistent;		 /* bytes */
	uint64_t offset;			 /* offset of the record in the input */
	uint32_t size;
};

/* A run of more than a century is damage. (The original shows what is written, however long; so this limit is wider
 * than that of traces.) */
#define TF_DURATION_MAX_US (INT64_C(36525) * 24 * 3600 * 1000000)
static inline bool tf_node_stats_absurd(const struct tf_node_stats *rec)
{
	return rec->op_end_us > TF_DURATION_MAX_US || rec->op_end_us < -TF_DURATION_MAX_US;
}

/* The duration of a run: less than a microsecond counts as one, a damaged one as none. */
static inline int64_t tf_node_stats_dur_us(const struct tf_node_stats *rec)
{
	if (OW_UNLIKELY(tf_node_stats_absurd(rec)))
		return 0;
	return rec->op_end_us ? rec->op_end_us : 1;
}

/* Lists of the current record. Initially zero except for mem; released by tf_node_reader_release. */
struct tf_node_reader {
	struct mem *mem;
	struct tf_output *outputs;
	size_t output_count, output_cap;
	struct tf_allocator *allocators;
	size_t allocator_count, allocator_cap;
	struct tf_alloc *allocs;
	size_t alloc_count, alloc_cap;
	uint64_t damaged; /* number of records that were skipped because of damage inside */
	bool no_memory;	  /* a list is incomplete because memory ran out */
	struct pb_stream *stream;
	struct pb_bulk bulk;
};

void tf_node_reader_release(struct tf_node_reader *s);

/* Decodes the record in `bytes`; r->problem reports damage. */
void tf_node_stats_decode(struct tf_node_reader *s, struct str bytes, uint64_t offset,
			  struct tf_node_stats *rec, struct pb *r);

/* Begins the records of the DeviceStepStats that the stream has entered. */
void tf_node_stats_begin(struct tf_node_reader *s, struct pb_stream *stream);
/* Reads the next record; false at the end or after a failure of the stream. Damaged records are skipped: the
 * stream's status and s->damaged report them. */
bool tf_node_stats_next(struct tf_node_reader *s, struct tf_node_stats *rec);

/* The device name of a DeviceStepStats, which the stream has just read as a field; valid until the next read. Empty
 * if there is none. The stream stays after the field. False when the field cannot be entered. */
bool tf_device_stats_name(struct pb_stream *s, const struct pb_stream_field *f, struct str *name);

#endif
