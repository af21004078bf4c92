/*
 * id_map.h: an array from one id to another. Ids count from 0, so as keys they need half the memory of a map and no
 * search. The first value stored for a key stays. Value 0 is the nil row and may not be stored.
 */
#ifndef BASE_ID_MAP_H
#define BASE_ID_MAP_H

#include "base/mem.h"

struct id_map {
	struct mem *mem;
	uint32_t *values; /* value of each key; 0: none */
	size_t cap;
};

void id_map_init(struct id_map *map, struct mem *mem);
/* Frees the memory of the map; the map can be used again. */
void id_map_release(struct id_map *map);
/* Makes room for keys below `count`. */
bool id_map_reserve(struct id_map *map, size_t count) OW_MUST_CHECK;

static inline uint32_t id_map_find(const struct id_map *map, uint32_t key)
{
	return key < map->cap ? map->values[key] : 0;
}

static inline bool id_map_add(struct id_map *map, uint32_t key, uint32_t value)
{
	if (OW_UNLIKELY(key >= map->cap) && !id_map_reserve(map, (size_t)key + 1))
		return false;
	if (!map->values[key])
		map->values[key] = value;
	return true;
}

#endif
