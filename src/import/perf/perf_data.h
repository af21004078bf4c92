/*
 * perf_data.h: struct perf_file, the state while a perf.data file is read, shared by the files of its importer.
 * import_perf_data.c recognises the file and walks over its sections. perf_records.c decodes records and features,
 * perf_samples.c keeps samples and their call chains. When everything has been read, perf_resolve.c makes rows of the
 * model. Each group of fields of struct perf_file names the file that writes it; the others only read it.
 */
#ifndef IMPORT_PERF_DATA_H
#define IMPORT_PERF_DATA_H

#include "import/importer.h"
#include "import/perf/perf_format.h"
#include "import/perf/perf_names.h"
#include "import/perf/perf_space.h"

struct perf_event {
	struct perf_attr attr;
	str_id name;	  /* name of the event in the file, or nil */
	metric_id metric; /* set by perf_resolve.c for the first sample of the event */
};
#define PERF_EVENTS_MAX UINT16_MAX

/* A change of the address space or the name of a process. */
struct perf_change {
	uint64_t time;
	enum { CHANGE_MAP, CHANGE_COMM, CHANGE_FORK } kind;
	int32_t pid, tid, parent_pid, parent_tid;
	struct perf_map map; /* for a name change: map.name is the new name of a thread */
};

/* A call chain of an event; its words follow. Each chain is kept once. */
struct perf_chain {
	int32_t pid;
	uint16_t shape; /* length << 3 | mode; the length of a chain fits into 13 bits */
	uint16_t event;
	stack_id stack; /* result of the last perf_chain_stack; see `at` */
	/* `stack` is valid if perf_space has `at` - 1 changes; 0 = there is no result */
	uint32_t at;
};
#define PERF_CHAIN_UNIT 8 /* chains begin at multiples of this many bytes */
#define PERF_MODES 7	  /* mask of the processor mode in a record's misc */

/* Consecutive samples in the file that have one thread and one processor, in order of time. */
struct perf_run {
	int64_t from; /* time of the first sample */
	uint32_t first, count;
	uint32_t thread; /* index of the thread; perf_resolve.c replaces it by the track */
	int32_t cpu;	 /* number of the processor + 1; 0 when unknown */
};

struct perf_row {
	uint32_t after; /* ns after the first sample of the run */
	uint32_t chain; /* offset of the chain; perf_resolve.c replaces it by the stack */
};

/* Samples in the order of the file. */
struct perf_rows {
	struct perf_row *items;
	size_t count, cap;
	int64_t *weights; /* NULL: the weight of each sample is the period of its event */
	size_t weight_cap;
	struct perf_run *runs;
	size_t run_count, run_cap;
	bool has_cpu;
	/* The last sample: its time, the ids of its event and thread as in the file, and their indexes. */
	int64_t last;
	uint64_t id, who;
	uint32_t event, thread;
	int32_t pid;
};

/* A thread left its processor, or returned to it. */
struct perf_switch {
	int64_t time;
	uint32_t thread;
	bool out, preempted; /* preempted: the thread was still ready to run */
};

/* The value of a counter when a thread ended. */
struct perf_count {
	int64_t time;
	uint64_t value;
	uint32_t thread, event;
};

struct perf_switches {
	struct perf_switch *items;
	size_t count, cap;
	struct perf_count *counts;
	size_t count_count, count_cap;
	metric_id metric; /* the metric "off-cpu"; nil when there is none */
};

struct perf_file {
	/* Fields that import_perf_data.c sets. */
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	bool swap, pipe;
	uint64_t data_at, data_end; /* offsets at which the records begin and end */
	uint64_t at;		    /* offset of the current record; perf_samples.c advances it */

	/* Fields that perf_records.c writes. */
	struct perf_event *events;
	size_t event_count, event_cap;
	struct map ids; /* id of an event → 1 + index of the event */
	struct perf_change *changes;
	size_t change_count, change_cap;
	struct perf_space space; /* perf_resolve.c applies the changes to it */
	struct perf_names names;
	int64_t clock_offset; /* added to perf's clock to get the wall clock */
	bool has_clock;
	struct buf unpacked; /* bytes of compressed records that have not been parsed yet */
	void *zstd;
	bool zstd_failed;
	/* for each type: number of records in the file itself, outside of compressed records */
	uint64_t records[PERF_TYPES];
	uint64_t lost, bad, bad_offset, unknown;
	uint64_t aux_bytes; /* bytes of traces that the processor's tracing hardware wrote */
	uint32_t aux_type;  /* kind of that hardware, see aux_name */

	/* Fields that perf_samples.c writes. */
	struct perf_rows rows;
	unsigned char *chains;
	size_t chain_len, chain_cap;
	struct map chain_map; /* content → offset of the chain */
	struct perf_recent *recent;
	struct perf_walk *walk;
	struct perf_value *reads; /* counter values in the last sample, for each id */
	size_t read_count, read_cap;
	struct map read_map; /* id → 1 + index in reads */

	/* Fields that perf_resolve.c writes. */
	struct perf_switches switches;
};

void perf_records_init(struct perf_file *f);
void perf_records_release(struct perf_file *f);
/* Reads one record with its header. top: the record is in the file itself, not in a compressed record. */
ow_status perf_record_read(struct perf_file *f, const unsigned char *p, size_t size, bool top);
/* Reads the section of a feature. */
ow_status perf_feature_read(struct perf_file *f, uint64_t feature, const unsigned char *p,
			    size_t size);
ow_status perf_event_add(struct perf_file *f, const unsigned char *attr, size_t len,
			 uint32_t *event);
/* Registers that records with this id belong to an event. */
ow_status perf_event_id(struct perf_file *f, uint32_t event, uint64_t id);
/* The event of an id; `otherwise` if the id is unknown. */
uint32_t perf_event_of(const struct perf_file *f, uint64_t id, uint32_t otherwise);
/* Counts the current record as damaged. */
void perf_note_bad(struct perf_file *f);

/* Records of simpleperf, Android's perf. They may be longer than 64 KB. */
#define PERF_SIMPLE_FIRST 32768
static inline bool perf_is_simple(uint32_t type)
{
	return type >= PERF_SIMPLE_FIRST && type < PERF_SIMPLE_FIRST + 32;
}
/* The size of a record, with its head of 8 bytes. */
static inline uint32_t perf_record_size(const unsigned char *p, uint32_t type, bool swap)
{
	uint32_t size = perf_u16(p + 6, swap);

	return OW_UNLIKELY(perf_is_simple(type)) ? (uint32_t)perf_u16(p + 4, swap) << 16 | size
						 : size;
}

void perf_samples_init(struct perf_file *f);
void perf_samples_release(struct perf_file *f);
/* Reads the sample at p, which must be complete, and the samples that follow it within len bytes, up to the first
 * other record. Adds their bytes to *used and their number to *records. The bytes must stay valid until
 * perf_chains_finish. */
ow_status perf_samples_read(struct perf_file *f, const unsigned char *p, size_t len, size_t *used,
			    uint64_t *records);
/* Finishes the samples that are still pending; false if memory runs out. */
bool perf_chains_finish(struct perf_file *f);

static inline struct perf_chain *perf_chain_at(const struct perf_file *f, uint32_t chain)
{
	return (struct perf_chain *)(void *)(f->chains + (size_t)chain * PERF_CHAIN_UNIT);
}
/* The stack of a chain, resolved with the present mappings in f->space. */
stack_id perf_chain_stack(struct perf_file *f, uint32_t chain);

/* The weight of a sample that has no period of its own. */
static inline int64_t perf_event_weight(const struct perf_attr *attr)
{
	uint64_t period = attr->flags & PERF_FLAG_FREQ ? 1 : MAX(attr->sample_period, 1);

	return (int64_t)MIN(period, (uint64_t)INT64_MAX);
}

/* Stores a switch record, or (below) the counts of a READ record. */
ow_status perf_switch_read(struct perf_file *f, const struct perf_trailer *who, uint16_t misc);
ow_status perf_count_read(struct perf_file *f, struct perf_bytes body,
			  const struct perf_trailer *who);
/* Make rows of the model, after the last record. */
ow_status perf_samples_resolve(struct perf_file *f);
ow_status perf_switches_resolve(struct perf_file *f);
void perf_switches_release(struct perf_file *f);

#endif
