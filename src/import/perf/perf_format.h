/*
 * perf_format.h: the binary layout of perf.data: attributes of events and the body of a sample, in either byte order. It does not
 * know the model; the other perf_*.c files use it, and so does tests/support/perf_writer.h.
 */
#ifndef IMPORT_PERF_FORMAT_H
#define IMPORT_PERF_FORMAT_H

#include "base/str.h"

enum perf_type {
	PERF_MMAP = 1,
	PERF_LOST = 2,
	PERF_COMM = 3,
	PERF_EXIT = 4,
	PERF_FORK = 7,
	PERF_READ = 8,
	PERF_SAMPLE = 9,
	PERF_MMAP2 = 10,
	PERF_LOST_SAMPLES = 13,
	PERF_SWITCH = 14,
	PERF_SWITCH_CPU_WIDE = 15,
	PERF_KSYMBOL = 17,
	PERF_HEADER_ATTR = 64,
	PERF_TRACING_DATA = 66,
	PERF_HEADER_BUILD_ID = 67,
	PERF_AUXTRACE_INFO = 70,
	PERF_AUXTRACE = 71,
	PERF_EVENT_UPDATE = 78,
	PERF_HEADER_FEATURE = 80,
	PERF_COMPRESSED = 81,
	PERF_COMPRESSED2 = 83,
	PERF_TYPES = 96
};

/* The name of a record's type, or NULL. */
const char *perf_type_name(uint32_t type);

enum perf_sample_bit {
	SAMPLE_IP = 0,
	SAMPLE_TID = 1,
	SAMPLE_TIME = 2,
	SAMPLE_ADDR = 3,
	SAMPLE_READ = 4,
	SAMPLE_CALLCHAIN = 5,
	SAMPLE_ID = 6,
	SAMPLE_CPU = 7,
	SAMPLE_PERIOD = 8,
	SAMPLE_STREAM_ID = 9,
	SAMPLE_STACK_USER = 13,
	SAMPLE_IDENTIFIER = 16
};

/* Bytes that are read in order. `bad` is set when too few were left. */
struct perf_bytes {
	const unsigned char *at, *end;
	bool swap, bad;
};

static inline uint16_t perf_u16(const unsigned char *p, bool swap)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t perf_u32(const unsigned char *p, bool swap)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t perf_u64(const unsigned char *p, bool swap)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

uint32_t perf_take_u32(struct perf_bytes *b);
uint64_t perf_take_u64(struct perf_bytes *b);
/* A text up to its NUL, or to the end. */
struct str perf_take_text(struct perf_bytes *b);

/* Offsets of the parts of a sample that are at the same place in all samples of an event; 0xff: absent. */
struct perf_layout {
	uint8_t id, ip, tid, time, addr, cpu, period;
	uint8_t size; /* size of all these parts */
};

struct perf_attr {
	uint32_t type;
	uint64_t config, sample_period, sample_type, read_format, flags;
	uint64_t branch_sample_type, regs_user, regs_intr;
	struct perf_layout layout;
};
#define PERF_FLAG_FREQ ((uint64_t)1 << 10)
#define PERF_FLAG_SAMPLE_ID_ALL ((uint64_t)1 << 18)

/* Reads attributes from `len` bytes; values beyond the end are 0. */
void perf_attr_parse(const unsigned char *p, size_t len, bool swap, struct perf_attr *attr);
/* Computes the layout from sample_type. */
void perf_attr_lay_out(struct perf_attr *attr);
/* The name of an event by its type and config: "cycles", "cpu-clock", …. */
void perf_attr_name(const struct perf_attr *attr, char name[40]);

#define PERF_ABSENT 0xff
/* Parts that may lie between the fixed part of a sample and the end of its call chain. */
#define PERF_SAMPLE_REST ((uint64_t)1 << SAMPLE_READ | (uint64_t)1 << SAMPLE_CALLCHAIN)

/* Finds the call chain after the fixed part of a sample; false when it does not fit. */
bool perf_sample_rest(const struct perf_attr *attr, struct perf_bytes rest,
		      const unsigned char **chain, uint64_t *count);
/* The value of a counter. */
struct perf_value {
	uint64_t id, value; /* id 0: unknown */
};
/* Bits of read_format: values have ids; there is a value for each event of the group. */
#define PERF_READ_ID 4
#define PERF_READ_GROUP 8
/* Whether samples have values with ids. */
static inline bool perf_attr_reads(const struct perf_attr *attr)
{
	return attr->sample_type >> SAMPLE_READ & 1 && attr->read_format & PERF_READ_ID;
}
/* Reads counter values. Returns their number; 0 when there are more than `max`. */
size_t perf_take_values(const struct perf_attr *attr, struct perf_bytes *b,
			struct perf_value *values, size_t max);

/* The last part of records that are not samples: thread and time; -1 and 0 when they are missing. */
struct perf_trailer {
	int32_t pid, tid;
	uint64_t time, id;
};
struct perf_trailer perf_trailer_of(const struct perf_attr *attr, const unsigned char *body,
				    size_t len, bool swap);

#endif
