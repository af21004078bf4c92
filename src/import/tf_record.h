/*
 * tf_record.h: reads one NodeExecStats, the record of one run of an op. What it says is added up or kept
 * for a moment; tf_account.c decides what becomes of it.
 */
#ifndef IMPORT_TF_RECORD_H
#define IMPORT_TF_RECORD_H

#include "import/tf_read.h"
#include "import/tf_shape_proto.h"

/* One NodeExecStats. */
struct tf_record {
	struct str name;
	int64_t start_us, op_end_us, all_end_us;
	int64_t total, peak, live, in_use; /* bytes, sums over the allocators; in_use: largest */
	int64_t temp, persistent, output;
	int64_t gpu_allocators;
	uint64_t offset;
	uint32_t size;
};

/* A quick run is rounded up, so that it is not lost. */
static inline int64_t tf_record_dur_us(const struct tf_record *rec)
{
	return rec->op_end_us ? rec->op_end_us : 1;
}

/* What outlives a record: memory for the rows of the current one, and what comes again and again. */
struct tf_records {
	struct tf_read *r;
	bool count_tensors;	    /* and do not keep them */
	struct tensor_row *tensors; /* one per output; op and step are not set */
	size_t tensor_count, tensor_cap;
	struct alloc_row *allocs; /* of the GPU's allocators; op_step is not set */
	size_t alloc_count, alloc_cap;
	struct tf_shape_memory shapes;
	struct str allocator; /* the last seen, and whether it is a GPU's */
	bool allocator_is_gpu;
};

void tf_records_release(struct tf_records *s);

/* Reads a record; r->problem tells of damage. Its tensors and allocations replace those of the record
 * before. */
void tf_record_read(struct tf_records *s, struct tf_record *rec, struct pb *r);

#endif
