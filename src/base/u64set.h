/*
 * u64set.h: a set of 64-bit numbers other than 0 that only grows: addresses that were seen, for instance.
 */
#ifndef BASE_U64SET_H
#define BASE_U64SET_H

#include "base/mem.h"

struct u64set {
	struct mem *mem;
	uint64_t *slots;
	size_t mask; /* number of slots - 1, or 0 when there are none */
	size_t count;
};

enum u64set_added { U64SET_OLD, U64SET_NEW, U64SET_NO_MEMORY };

void u64set_init(struct u64set *set, struct mem *mem);
void u64set_release(struct u64set *set);
enum u64set_added u64set_add(struct u64set *set, uint64_t value) OW_MUST_CHECK;

#endif
