/*
 * perf_data.h: what the parts of the perf.data importer share: import_perf_data.c recognises and reads the
 * file, perf_records.c takes its records apart, perf_chains.c keeps call chains and makes stacks of them,
 * perf_samples.c makes rows in order of time, perf_simple.c knows what is simpleperf's own.
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

enum change_kind { CHANGE_MAP, CHANGE_COMM, CHANGE_EXEC, CHANGE_FORK };

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

/* A call chain; its words follow. */
struct perf_chain {
	int32_t pid;
	uint16_t count;
	uint8_t mode;
	stack_id stack; /* what it was when it was looked up last … */
	uint32_t at;	/* … and when that was, in changes of the address space + 1; 0 = never */
};
#define PERF_CHAIN_UNIT 8 /* they begin at multiples of it */

/* A call chain that is going to be looked up. */
struct perf_later {
	const unsigned char *words;
	uint64_t hash; /* perf_chain_later's */
	int32_t pid;
	uint32_t row; /* of the sample */
	uint16_t count;
	uint8_t mode;
};
#define PERF_LATER 16

#define PERF_CHAIN_MAX 8192 /* a record has no room for a longer one */

struct perf_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	bool swap, pipe;
	struct perf_event *events;
	size_t event_count, event_cap;
	struct map ids;	       /* of events → event + 1 */
	uint32_t first_sample; /* row */
	unsigned char *chains; /* see perf_chains.c */
	size_t chain_len, chain_cap;
	struct map chain_map; /* → chain */
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
/* What it means now. */
stack_id perf_chain_stack(struct perf_file *f, uint32_t chain);

/* Samples become rows at once, but what they mean depends on records that may come later: until the last one is
 * read, the metric of such a row is an event, its stack a chain, its track a thread. */
ow_status perf_sample_read(struct perf_file *f, const unsigned char *record, size_t size);
/* Puts in what they are, after the last record. */
ow_status perf_samples_resolve(struct perf_file *f);
/* What an event measures; where a thread is shown. */
metric_id perf_event_metric(struct perf_file *f, uint32_t event);
track_id perf_thread_track(struct perf_file *f, uint32_t thread);
static inline uint32_t perf_sample_count(const struct perf_file *f)
{
	return f->b->m->sample.count - f->first_sample;
}

#endif
