/* id_map.c: see id_map.h. */
#include "base/id_map.h"

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
	size_t old = map->cap;
	void *values = map->values;

	if (!mem_grow(map->mem, &values, &map->cap, count, sizeof(*map->values)))
		return false;
	map->values = values;
	memset(map->values + old, 0, (map->cap - old) * sizeof(*map->values));
	return true;
}
