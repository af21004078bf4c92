/*
 * perf_data.h: what the parts of the perf.data importer share: import_perf_data.c recognises and reads the
 * file, perf_records.c takes its records apart, perf_samples.c makes rows of them in order of time.
 */
#ifndef IMPORT_PERF_DATA_H
#define IMPORT_PERF_DATA_H

#include "import/importer.h"
#include "import/perf_record.h"
#include "import/perf_space.h"

struct perf_event {
	struct perf_attr attr;
	str_id name; /* as the file calls it, or nil */
	metric_id metric;
};

/* A sample until all records are read: they lie by processor, not by time. */
struct raw_sample {
	uint64_t time, period, chain; /* chain: first word in the pool */
	uint32_t chain_count, event;
	int32_t pid, tid, cpu;
	uint8_t mode; /* of the processor: kernel, user, … */
	bool has_time;
	stack_id stack; /* once it is known, of the first with such a chain */
};

enum change_kind { CHANGE_MAP, CHANGE_COMM, CHANGE_EXEC, CHANGE_FORK };

/* What happened to a process. */
struct change {
	uint64_t time;
	enum change_kind kind;
	int32_t pid, tid, parent_pid, parent_tid;
	struct perf_map map; /* name also: the new name of a thread */
};

struct perf_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	bool swap, pipe;
	struct perf_event *events;
	size_t event_count, event_cap;
	struct map ids;	  /* of events → event + 1 */
	struct map known; /* chains → sample + 1 */
	struct raw_sample *samples;
	size_t sample_count, sample_cap;
	uint64_t *chains;
	size_t chain_count, chain_cap;
	struct change *changes;
	size_t change_count, change_cap;
	struct perf_space space;
	int64_t clock_offset; /* from perf's clock to the wall's */
	bool has_clock;
	struct buf unpacked; /* of compressed records: what is not read yet */
	void *zstd;
	bool zstd_failed;
	uint64_t records[PERF_TYPES];
	uint64_t lost, bad, bad_offset, unknown;
	uint64_t at; /* of the record at hand */
};

/* One record with its head; top: it lies in the file itself. */
ow_status perf_record_read(struct perf_file *f, const unsigned char *p, size_t size, bool top);
/* The section of a feature. */
ow_status perf_feature_read(struct perf_file *f, uint64_t feature, const unsigned char *p,
			    size_t size);
ow_status perf_event_add(struct perf_file *f, const unsigned char *attr, size_t len,
			 uint32_t *event);
ow_status perf_event_id(struct perf_file *f, uint32_t event, uint64_t id);
void perf_zstd_release(struct perf_file *f);

/* All rows, after the last record. */
ow_status perf_samples_add(struct perf_file *f);

#endif
