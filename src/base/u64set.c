/* u64set.c: a set of 64-bit numbers with open addressing, at most half full. It grows only; single values are not removed. */
#include "base/u64set.h"

#include "base/map.h"

#define SLOTS_MIN ((size_t)256)

void u64set_init(struct u64set *set, struct mem *mem)
{
	*set = (struct u64set){ .mem = mem };
}

static size_t slot_count(const struct u64set *set)
{
	return set->slots ? set->mask + 1 : 0;
}

void u64set_release(struct u64set *set)
{
	mem_free(set->mem, set->slots, slot_count(set) * sizeof(*set->slots));
	u64set_init(set, set->mem);
}

/* Returns the slot of the value, or the slot where it would be put. */
static size_t find(const uint64_t *slots, size_t mask, uint64_t value)
{
	size_t at = (size_t)map_hash_u64(value, 1) & mask;

	while (slots[at] && slots[at] != value)
		at = (at + 1) & mask;
	return at;
}

static bool grow(struct u64set *set)
{
	size_t count = slot_count(set), more = MAX(count * 2, SLOTS_MIN);
	uint64_t *slots = mem_zalloc(set->mem, more * sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < count; i++)
		if (set->slots[i])
			slots[find(slots, more - 1, set->slots[i])] = set->slots[i];
	mem_free(set->mem, set->slots, count * sizeof(*slots));
	set->slots = slots;
	set->mask = more - 1;
	return true;
}

enum u64set_added u64set_add(struct u64set *set, uint64_t value)
{
	size_t at;

	OW_ASSERT(value);
	if (set->count * 2 >= slot_count(set) && !grow(set))
		return U64SET_NO_MEMORY;
	at = find(set->slots, set->mask, value);
	if (set->slots[at])
		return U64SET_OLD;
	set->slots[at] = value;
	set->count++;
	return U64SET_NEW;
}
