/*
 * tf_account.h: what tfprof accounts for an op (time on its device and streams, memory, runs), record by record, into op_step,
 * memory and alloc. Used by tf_run.c, which reads the records.
 */
#ifndef IMPORT_TF_ACCOUNT_H
#define IMPORT_TF_ACCOUNT_H

#include "import/tf_record.h"
#include "import/tf_rows.h"
#include "import/tf_tally.h"

#define TF_INFO_NOTES 1000 /* distinct texts kept of a message that names its record */

/* What is kept per op while a step is read. */
struct tf_run_op {
	uint32_t row;  /* in op_step, 0 = none yet */
	uint32_t next; /* the op whose record came after this one's: a guess for the next time */
	int64_t all_end_us;
};

/* The device whose records are being read. */
struct tf_run_device {
	str_id name, lower, host;
	device_id id;
	bool canonical, all_streams, is_cpu;
	uint8_t kind; /* of the track for what is not counted */
	int64_t records, min_start_us, max_end_us;
};

struct tf_run {
	struct tf_read r;
	int64_t number;
	step_id step;
	struct tf_run_device device;
	struct tf_run_op *ops;
	size_t op_cap;
	uint32_t last; /* op of the last record */
	struct tf_rows *rows;
	const op_id *before, *before_end;   /* what is left of the same list of the run before */
	uint32_t asked_steps, asked_memory; /* see tf_ask_ahead */
	uint32_t step_base, memory_base;    /* rows that were there before */
	uint64_t begin, reserve_at;
	int64_t first_ns, last_ns; /* span of the events */
	struct tf_records read;	   /* of the current record */
	struct buf scratch;
	struct tf_tally strangers; /* time of records that belong to no op */
	bool has_stats, any_field, has_accelerator, has_streams;
	int64_t records;
	uint32_t device_count;
	uint64_t infos;
	fact_id devices;
};

static inline void tf_run_no_memory(struct tf_run *run)
{
	builder_fail(run->r.b, error_no_memory(run->r.b->err));
}

/* Makes room for all ops that are known. False without memory. */
bool tf_run_grow(struct tf_run *run);
/* What the record adds to the device that is being read. */
void tf_account_record(struct tf_run *run, const struct tf_record *rec);

#endif
