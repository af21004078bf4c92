/*
 * perf_writer.h: writes recordings of perf by hand, in either byte order. For unit tests of the importer of perf.data.
 */
#ifndef SUPPORT_PERF_WRITER_H
#define SUPPORT_PERF_WRITER_H

#include "import/perf/perf_format.h"

#define PERF_TEST_SAMPLE (1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8)
#define PERF_TEST_ATTR 64

struct perf_recording {
	unsigned char bytes[81920];
	size_t len, record;
	bool swap;
	uint64_t sample_type, read_format; /* 0: PERF_TEST_SAMPLE, and no read format */
};

static inline void perf_put(struct perf_recording *r, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		r->bytes[r->len + (r->swap ? size - 1 - i : i)] = (unsigned char)(value >> 8 * i);
	r->len += size;
}

static inline void perf_put_text(struct perf_recording *r, const char *text)
{
	size_t len = (strlen(text) + 8) & ~(size_t)7;

	memset(r->bytes + r->len, 0, len);
	memcpy(r->bytes + r->len, text, strlen(text));
	r->len += len;
}

static inline void perf_begin(struct perf_recording *r, uint32_t type, uint16_t misc)
{
	r->record = r->len;
	perf_put(r, type, 4);
	perf_put(r, misc, 2);
	perf_put(r, 0, 2);
}

static inline void perf_end(struct perf_recording *r)
{
	size_t len = r->len;

	r->len = r->record + 6;
	perf_put(r, len - r->record, 2);
	r->len = len;
}

/* Writes attributes with frequency and ids at the end of records, as bit fields of that byte order. */
static inline void perf_put_attr(struct perf_recording *r, uint32_t type, uint64_t config)
{
	size_t start = r->len;

	perf_put(r, type, 4);
	perf_put(r, PERF_TEST_ATTR, 4);
	perf_put(r, config, 8);
	perf_put(r, 1000, 8);
	perf_put(r, r->sample_type ? r->sample_type : PERF_TEST_SAMPLE, 8);
	perf_put(r, r->read_format, 8);
	memset(r->bytes + r->len, 0, PERF_TEST_ATTR - 40);
	r->bytes[r->len + 2] = r->swap ? 0x20 : 0x04; /* bit 18 */
	r->len = start + PERF_TEST_ATTR;
}

static inline void perf_put_id(struct perf_recording *r, uint64_t time)
{
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put(r, time, 8);
	perf_put(r, 100, 8); /* id */
	perf_put(r, 0, 8);   /* cpu */
}

/* Writes the header of a file that comes from a pipe. */
static inline void perf_put_pipe(struct perf_recording *r, bool swap)
{
	memset(r, 0, sizeof(*r));
	r->swap = swap;
	memcpy(r->bytes, swap ? "2ELIFREP" : "PERFILE2", 8);
	r->len = 8;
	perf_put(r, 16, 8);
}

/* Writes two events as records, as in pipes: a hardware and a software event with the ids 100 and 101. */
static inline void perf_put_two_events(struct perf_recording *r)
{
	for (uint64_t i = 0; i < 2; i++) {
		perf_begin(r, PERF_HEADER_ATTR, 0);
		perf_put_attr(r, (uint32_t)i, i);
		perf_put(r, 100 + i, 8);
		perf_end(r);
	}
}

#endif
