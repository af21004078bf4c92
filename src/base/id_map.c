/*
 * id_map.c: the allocating part of an array indexed by id; lookups and stores are inline in id_map.h. The model
 * finds ops by the id of their name with it. Memory grows to the largest key, so it does not suit sparse keys: those
 * need map.c.
 */
#include "base/id_map.h"
#include "base/vec.h"

void id_map_init(struct id_map *map, struct mem *mem)
{
	*map = (struct id_map){ .mem = mem };
}

void id_map_release(struct id_map *map)
{
	mem_free(map->mem, map->values, map->cap * sizeof(*map->values));
	id_map_init(map, map->mem);
}

bool id_map_reserve(struct id_map *map, size_t count)
{
	if (!vec_reserve_zero(map->mem, map->values, map->cap, count))
		return false;
	return true;
}
