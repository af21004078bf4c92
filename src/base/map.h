/*
 * map.h: open-addressing hash index from a 64-bit hash to a 32-bit value, where the caller owns the
 * keys. Used by the interner and wherever rows are looked up by content: the map stores only
 * (hash bits, value), and the caller compares the real key.
 *
 *	for (it = map_find(&map, hash); it.value; it = map_next(&map, it))
 *		if (key_of(it.value) equals mine) …found…
 *	map_add(&map, hash, value);
 *
 * Value 0 is the nil row and may not be stored.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/mem.h"

struct map_slot {
	uint32_t tag; /* upper bits of the hash, which also choose the slot */
	uint32_t value;
};

struct map {
	struct mem *mem;
	struct map_slot *slots;
	size_t mask; /* number of slots - 1, or 0 when the map is empty */
	size_t count;
};

struct map_iter {
	size_t index;
	uint32_t tag;
	uint32_t value; /* value of the key; 0 = not found */
};

void map_init(struct map *map, struct mem *mem);
void map_release(struct map *map);
/* Makes room for `count` values in all. */
bool map_reserve(struct map *map, size_t count) OW_MUST_CHECK;
bool map_add(struct map *map, uint64_t hash, uint32_t value) OW_MUST_CHECK;

static inline struct map_iter map_probe(const struct map *map, size_t index, uint32_t tag)
{
	for (;; index = (index + 1) & map->mask) {
		struct map_slot slot = map->slots[index];

		if (slot.value == 0)
			return (struct map_iter){ 0 };
		if (slot.tag == tag)
			return (struct map_iter){ index, tag, slot.value };
	}
}

static inline struct map_iter map_find(const struct map *map, uint64_t hash)
{
	if (!map->count)
		return (struct map_iter){ 0 };
	return map_probe(map, (size_t)(hash >> 32) & map->mask, (uint32_t)(hash >> 32));
}

static inline struct map_iter map_next(const struct map *map, struct map_iter it)
{
	return map_probe(map, (it.index + 1) & map->mask, it.tag);
}

/* Mixes integers into a hash for the functions above. */
static inline uint64_t map_hash_u64(uint64_t a, uint64_t b)
{
	__uint128_t product =
		(__uint128_t)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xd6e8feb86659fd93ull);

	a = (uint64_t)product ^ (uint64_t)(product >> 64);
	product = (__uint128_t)(a ^ 0xa0761d6478bd642full) * 0xe7037ed1a0b428dbull;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#endif
