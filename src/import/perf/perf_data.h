/*
 * perf_data.h: what the parts of the perf.data importer share: import_perf_data.c recognises and reads the
 * file, perf_records.c takes its records apart, perf_samples.c its samples, perf_chains.c keeps call chains and makes stacks of
 * them, perf_resolve.c makes rows when all is read, perf_simple.c knows what is simpleperf's own.
 */
#ifndef IMPORT_PERF_DATA_H
#define IMPORT_PERF_DATA_H

#include "import/importer.h"
#include "import/perf_names.h"
#include "import/perf_record.h"
#include "import/perf_space.h"

struct perf_event {
	struct perf_attr attr;
	str_id name; /* as the file calls it, or nil */
	metric_id metric;
};

enum change_kind { CHANGE_MAP, CHANGE_COMM, CHANGE_FORK };

/* What happened to a process. */
struct change {
	uint64_t time;
	enum change_kind kind;
	int32_t pid, tid, parent_pid, parent_tid;
	struct perf_map map; /* name also: the new name of a thread */
};

/* A thread that was taken from its processor, or came back. */
struct perf_switch {
	int64_t time;
	uint32_t thread;
	bool out, preempted; /* preempted: it wanted to run on */
};

/* What a counter stood at. */
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
	metric_id metric; /* time off the processors; nil when there is none */
};

/* A call chain of an event; its words follow. */
struct perf_chain {
	int32_t pid;
	uint16_t shape; /* its length << 3 | its mode: a record has no room for more than 13 bits */
	uint16_t event;
	stack_id stack; /* what it was when it was looked up last … */
	uint32_t at;	/* … and when that was, in changes of the address space + 1; 0 = never */
};
#define PERF_CHAIN_UNIT 8 /* they begin at multiples of it */
#define PERF_CHAIN_MAX (1 << 13)
#define PERF_MODES 7 /* in a record's misc */
static inline uint32_t perf_shape_count(uint16_t shape)
{
	return shape >> 3;
}
#define PERF_EVENTS_MAX UINT16_MAX

/* A chain of one address, at a place that follows from it. */
struct perf_alone {
	uint64_t address;
	int32_t pid;
	uint16_t event, shape;
	uint32_t chain; /* 0: none is there */
};
#define PERF_ALONE 8192

/* A call chain that is going to be looked up. */
struct perf_later {
	const unsigned char *words;
	uint64_t hash; /* perf_chain_later's */
	int32_t pid;
	uint32_t row;	       /* of the sample */
	uint16_t shape, event; /* as in a chain */
};
#define PERF_LATER 16

/* Samples that follow each other in the file: of one thread, on one processor, in order of time. */
struct perf_run {
	int64_t from; /* time of the first */
	uint32_t first, count;
	uint32_t thread; /* at last its track */
	int32_t cpu;	 /* + 1; 0 when unknown */
};

/* A sample. */
struct perf_row {
	uint32_t after; /* ns after the first of its run */
	uint32_t chain; /* at last its stack */
};

/* Samples in the order of the file. */
struct perf_rows {
	struct perf_row *items;
	size_t count, cap;
	int64_t *weights; /* NULL: each is the period of its event */
	size_t weight_cap;
	struct perf_run *runs;
	size_t run_count, run_cap;
	int64_t last; /* time */
	/* the last sample: its event, and whose it was, as these lie there, and what they are */
	uint64_t id, who;
	uint32_t event, thread;
	int32_t pid;
	bool has_cpu;
};

struct perf_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	bool swap, pipe;
	struct perf_event *events;
	size_t event_count, event_cap;
	struct map ids; /* of events → event + 1 */
	struct perf_rows rows;
	unsigned char *chains; /* see perf_chains.c */
	size_t chain_len, chain_cap;
	struct map chain_map; /* → chain */
	struct perf_alone *alone;
	struct perf_walk *walk;
	struct perf_later later[PERF_LATER];
	uint32_t later_count;
	struct change *changes;
	size_t change_count, change_cap;
	struct perf_switches switches;
	struct perf_value *reads; /* what counters stood at in the last sample, by id */
	size_t read_count, read_cap;
	struct map read_map; /* → read + 1 */
	struct perf_space space;
	struct perf_names names;
	int64_t clock_offset; /* from perf's clock to the wall's */
	bool has_clock;
	struct buf unpacked; /* of compressed records: what is not read yet */
	void *zstd;
	bool zstd_failed;
	uint64_t records[PERF_TYPES];
	uint64_t lost, bad, bad_offset, unknown;
	uint64_t at;		    /* of the record at hand */
	uint64_t data_at, data_end; /* of the records */
};

/* One record with its head; top: it lies in the file itself. */
ow_status perf_record_read(struct perf_file *f, const unsigned char *p, size_t size, bool top);
/* The section of a feature. */
ow_status perf_feature_read(struct perf_file *f, uint64_t feature, const unsigned char *p,
			    size_t size);
ow_status perf_event_add(struct perf_file *f, const unsigned char *attr, size_t len,
			 uint32_t *event);
ow_status perf_event_id(struct perf_file *f, uint32_t event, uint64_t id);
uint32_t perf_event_of(const struct perf_file *f, uint64_t id, uint32_t otherwise);
/* Counts the record at hand as one that cannot be read. */
void perf_note_bad(struct perf_file *f);
void perf_zstd_release(struct perf_file *f);

/* Switches and counts; when all is read, rows of them. */
ow_status perf_switch_read(struct perf_file *f, const struct perf_trailer *who, uint16_t misc);
ow_status perf_count_read(struct perf_file *f, struct perf_bytes body,
			  const struct perf_trailer *who);
ow_status perf_switches_resolve(struct perf_file *f);
void perf_switches_release(struct perf_file *f);

/* Records of simpleperf itself. They may be longer than others. */
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
ow_status perf_simple_record(struct perf_file *f, uint32_t type, struct perf_bytes body);
ow_status perf_simple_feature(struct perf_file *f, uint64_t feature, struct perf_bytes body);

/* Puts the call chain that f->later[f->later_count] describes into the row of its sample: not at once, but before perf_chains_finish
 * returns, and its words must stay until then. False without memory. */
bool perf_chain_later(struct perf_file *f);
bool perf_chains_finish(struct perf_file *f);
void perf_chains_init(struct perf_file *f);
void perf_chains_release(struct perf_file *f);
static inline struct perf_chain *perf_chain_at(const struct perf_file *f, uint32_t chain)
{
	return (struct perf_chain *)(void *)(f->chains + (size_t)chain * PERF_CHAIN_UNIT);
}
static inline struct perf_alone *perf_alone_of(const struct perf_file *f, uint64_t address,
					       int32_t pid, uint32_t event, uint32_t shape)
{
	uint64_t hash = address ^ (uint64_t)(uint32_t)pid << 40 ^ event << 4 ^ shape;

	return &f->alone[(hash * 0x9e3779b97f4a7c15ull >> 32) % PERF_ALONE];
}
/* What it means now. */
stack_id perf_chain_stack(struct perf_file *f, uint32_t chain);

/* The record at p, a sample which is there as a whole, and those that follow it up to len, as long as they are samples, too.
 * *used is increased by their bytes, *records by their number. */
ow_status perf_samples_read(struct perf_file *f, const unsigned char *p, size_t len, size_t *used,
			    uint64_t *records);
void perf_rows_release(struct perf_file *f);
/* How much a sample stands for that does not say. */
static inline int64_t perf_event_weight(const struct perf_attr *attr)
{
	uint64_t period = attr->flags & PERF_FLAG_FREQ ? 1 : MAX(attr->sample_period, 1);

	return (int64_t)MIN(period, (uint64_t)INT64_MAX);
}
/* Rows of the model, after the last record. */
ow_status perf_samples_resolve(struct perf_file *f);
/* What an event measures; where a thread is shown. */
metric_id perf_event_metric(struct perf_file *f, uint32_t event);
track_id perf_thread_track(struct perf_file *f, uint32_t thread);

#endif
