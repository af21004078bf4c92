/*
 * flat.h: a small writer of FlatBuffers, enough for Arrow's metadata. A buffer grows from its end to its
 * beginning, so that whatever refers to something is written after it: strings, vectors and tables first,
 * then the tables that hold them. Places are distances from the end. A failed allocation sticks (`failed`).
 *
 *	name = flat_string(&f, STR("ts"));
 *	flat_table_begin(&f);
 *	flat_ref(&f, 0, name);
 *	flat_u8(&f, 1, true);
 *	field = flat_table_end(&f);
 *	bytes = flat_finish(&f, field);
 */
#ifndef EXPORT_FLAT_H
#define EXPORT_FLAT_H

#include "base/mem.h"
#include "base/str.h"

#define FLAT_SLOTS 8

struct flat {
	struct mem *mem;
	unsigned char *ptr;
	size_t cap, len;
	bool failed;
	uint32_t slots[FLAT_SLOTS]; /* places of the fields of the open table; 0 = absent */
	size_t table;		    /* length when it was begun */
};

void flat_init(struct flat *f, struct mem *mem);
void flat_release(struct flat *f);
void flat_clear(struct flat *f);

uint32_t flat_string(struct flat *f, struct str text);
/* A vector of references, of structs that are aligned to 8 bytes. */
uint32_t flat_refs(struct flat *f, const uint32_t *places, size_t count);
uint32_t flat_structs(struct flat *f, const void *bytes, size_t size, size_t count);

/* One table is open at a time. */
void flat_table_begin(struct flat *f);
void flat_u8(struct flat *f, unsigned slot, uint8_t value);
void flat_i16(struct flat *f, unsigned slot, int16_t value);
void flat_i32(struct flat *f, unsigned slot, int32_t value);
void flat_i64(struct flat *f, unsigned slot, int64_t value);
void flat_ref(struct flat *f, unsigned slot, uint32_t place);
uint32_t flat_table_end(struct flat *f);

/* The whole; its length is a multiple of 8. Valid until the next call. */
struct str flat_finish(struct flat *f, uint32_t root);

#endif
