/*
 * map.c: the growing part of the hash index; lookups are inline in map.h. The interner of the model and other
 * lookups by content use it. Linear probing, at most 5/8 full. The map does not hold or compare keys (the caller
 * does), and it cannot remove single entries.
 */
#include "base/map.h"

void map_init(struct map *map, struct mem *mem)
{
	*map = (struct map){ .mem = mem };
}

void map_release(struct map *map)
{
	if (map->slots)
		mem_free(map->mem, map->slots, (map->mask + 1) * sizeof(*map->slots));
	map->slots = NULL;
	map->mask = map->count = 0;
}

static void place(struct map *map, uint32_t tag, uint32_t value)
{
	size_t index = tag & map->mask;

	while (map->slots[index].value)
		index = (index + 1) & map->mask;
	map->slots[index] = (struct map_slot){ tag, value };
}

static bool resize(struct map *map, size_t slots)
{
	struct map old = *map;
	struct map_slot *fresh = mem_zalloc(map->mem, slots * sizeof(*fresh));

	if (!fresh)
		return false;
	map->slots = fresh;
	map->mask = slots - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].value)
			place(map, old.slots[i].tag, old.slots[i].value);
	if (old.slots)
		mem_free(map->mem, old.slots, (old.mask + 1) * sizeof(*old.slots));
	return true;
}

bool map_reserve(struct map *map, size_t count)
{
	size_t slots = map->slots ? map->mask + 1 : 16;

	if (map->slots && count * 8 <= slots * 5)
		return true;
	while (count * 8 > slots * 5)
		slots *= 2;
	return resize(map, slots);
}

bool map_add(struct map *map, uint64_t hash, uint32_t value)
{
	OW_ASSERT(value != 0);
	if (!map_reserve(map, map->count + 1))
		return false;
	place(map, (uint32_t)(hash >> 32), value);
	map->count++;
	return true;
}
