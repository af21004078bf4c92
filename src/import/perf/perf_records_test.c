/*
 * perf_records_test.c: recordings of simpleperf, made by hand: its tables of symbols in both forms, for programs, the kernel and its
 * modules; names of events; records of its own, also long ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/perf_writer.h"
#include "support/stack_model.h"

#define SIMPLE 32768

static void begin_feature(struct perf_recording *r, uint64_t feature)
{
	perf_begin(r, PERF_HEADER_FEATURE, 0);
	perf_put(r, feature, 8);
}

static void put_bytes(struct perf_recording *r, const void *bytes, size_t len)
{
	memcpy(r->bytes + r->len, bytes, len);
	r->len += len;
}

/* Texts, each with its NUL. */
static void put_texts(struct perf_recording *r, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_bytes(r, texts[i], strlen(texts[i]) + 1);
}

static void put_meta(struct perf_recording *r)
{
	static const char *const pairs[] = { "android_version",	   "13",
					     "event_type_info",	   "raw-thing,4,7\ncpu-cycles,0,0",
					     "simpleperf_version", "1.build.1" };

	begin_feature(r, 129);
	put_texts(r, pairs, ARRAY_COUNT(pairs));
	perf_end(r);
}

/* A file of the older form: a table of one symbol. */
static void put_old(struct perf_recording *r, const char *path, uint32_t kind, uint64_t min,
		    uint64_t symbol, const char *name, uint64_t offset)
{
	size_t start = r->len, end;

	perf_put(r, 0, 4);
	put_texts(r, &path, 1);
	perf_put(r, kind, 4);
	perf_put(r, min, 8);
	perf_put(r, 1, 4);
	perf_put(r, symbol, 8);
	perf_put(r, 0x10, 4);
	put_texts(r, &name, 1);
	if (offset)
		perf_put(r, offset, 8);
	end = r->len;
	r->len = start;
	perf_put(r, end - start - 4, 4);
	r->len = end;
}

static void put_new(struct perf_recording *r)
{
	static const unsigned char file[] = {
		0x0a, 6,    '/',  'b',	'.',  's',  'o',  '1', /* path */
		0x10, 2,				       /* an ELF file */
		0x18, 0x80, 0x40,			       /* its lowest address: 0x2000 */
		0x22, 12,   0x08, 0x90, 0x41, 0x10, 0x20, 0x1a, 5,   '_',
		'Z',  '1',  'f',  'v',	0x32, 3,    0x08, 0x80, 0x20 /* which is at 0x1000 in the file */
	};

	begin_feature(r, 132);
	perf_put(r, sizeof(file), 4);
	put_bytes(r, file, sizeof(file));
	perf_end(r);
}

static void put_map(struct perf_recording *r, uint64_t start, uint64_t offset, const char *name,
		    uint16_t misc)
{
	perf_begin(r, PERF_MMAP, misc);
	perf_put(r, 7, 4);
	perf_put(r, 7, 4);
	perf_put(r, start, 8);
	perf_put(r, 0x1000, 8);
	perf_put(r, offset, 8);
	perf_put_text(r, name);
	perf_put_id(r, 1);
	perf_end(r);
}

static void put_sample(struct perf_recording *r)
{
	static const uint64_t chain[] = { (uint64_t)-128, 0xffff0008, 0xffff8119, (uint64_t)-512,
					  0x70095,	  0x60109,    0x80019 };

	perf_begin(r, PERF_SAMPLE, 1);
	perf_put(r, chain[1], 8);
	perf_put(r, 7, 4);
	perf_put(r, 8, 4);
	perf_put(r, 50, 8);
	perf_put(r, 200, 8); /* id, which only EVENT_ID knows */
	perf_put(r, 0, 8);
	perf_put(r, 5, 8);
	perf_put(r, ARRAY_COUNT(chain), 8);
	for (size_t i = 0; i < ARRAY_COUNT(chain); i++)
		perf_put(r, chain[i], 8);
	perf_end(r);
}

static void make(struct perf_recording *r, bool swap)
{
	perf_put_pipe(r, swap);
	for (uint64_t i = 0; i < 2; i++) {
		perf_begin(r, PERF_HEADER_ATTR, 0);
		perf_put_attr(r, i ? 4 : 0, i ? 7 : 0);
		perf_put(r, 100 + i, 8);
		perf_end(r);
	}
	put_meta(r);
	begin_feature(r, 128);
	put_old(r, "/a.so", 2, 0x500, 0x600, "in_a", 0x400);
	put_old(r, "/older.so", 2, 0x1000, 0x1010, "in_older", 0);
	put_old(r, "[kernel.kallsyms]", 0, 0, 0xffff0000, "do_it", 0);
	put_old(r, "[mod]", 1, 0x100, 0x110, "in_module", 0x100);
	perf_end(r);
	put_new(r);
	perf_begin(r, SIMPLE + 5, 0);
	perf_put(r, 1, 8);
	perf_put(r, 1, 8); /* the second event … */
	perf_put(r, 200, 8);
	perf_end(r);
	perf_begin(r, SIMPLE + 8, 1); /* 64 KiB and 16 bytes: the upper half stands first */
	r->len += 65536 + 8;
	r->bytes[r->record + (swap ? 7 : 6)] = 16;
	put_map(r, 0x60000, 0x400, "/a.so", 2);
	put_map(r, 0x70000, 0x1000, "/b.so1", 2);
	put_map(r, 0x80000, 0, "/older.so", 2);
	put_map(r, 0xffff0000, 0, "[kernel.kallsyms]", 1);
	put_map(r, 0xffff8000, 0, "[mod]", 1);
	put_sample(r);
}

static void symbols(void **state)
{
	struct perf_recording r;
	struct small_model s;

	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		make(&r, swap);
		stack_open(&s, "perf_data", r.bytes, r.len);
		stack_expect(&s,
			     ":unknown|7|8|50|raw-thing 5|in_older@/older.so;in_a@/a.so;f@/b.so1;"
			     "in_module@[mod];do_it@[kernel.kallsyms]\n");
		assert_string_equal(model_str(s.m, s.m->source.producer[1]).ptr, "simpleperf");
		small_close(&s);
	}
}

static void survives(void **state)
{
	struct perf_recording r;

	(void)state;
	make(&r, false);
	stack_survives("perf_data", r.bytes, r.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols),
		cmocka_unit_test(survives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
