/*
 * pair.c: beginnings and ends that stand apart in a file: B and E of a thread, b and e, S and F of an id.
 * Tracks and names are known by their hashes only.
 */
#include "merge/merge_int.h"

void pairs_init(struct pairs *p, struct mem *mem)
{
	*p = (struct pairs){ .mem = mem };
	map_init(&p->map, mem);
}

void pairs_release(struct pairs *p)
{
	if (!p->mem)
		return;
	map_release(&p->map);
	mem_free(p->mem, p->tracks, p->track_cap * sizeof(*p->tracks));
	mem_free(p->mem, p->slices, p->slice_cap * sizeof(*p->slices));
}

void pairs_clear(struct pairs *p)
{
	map_release(&p->map);
	map_init(&p->map, p->mem);
	p->track_count = p->slice_count = 0;
	p->free = 0;
}

/* Index of the track in p->tracks; SIZE_MAX when it is not there. */
static size_t find_track(const struct pairs *p, uint64_t key)
{
	for (struct map_iter it = map_find(&p->map, key); it.value; it = map_next(&p->map, it))
		if (p->tracks[it.value - 1].key == key)
			return it.value - 1;
	return SIZE_MAX;
}

static size_t add_track(struct pairs *p, uint64_t key)
{
	void *tracks = p->tracks;

	if (!mem_grow(p->mem, &tracks, &p->track_cap, p->track_count + 1, sizeof(*p->tracks)))
		return SIZE_MAX;
	p->tracks = tracks;
	p->tracks[p->track_count].key = key;
	p->tracks[p->track_count].top = 0;
	if (!map_add(&p->map, key, (uint32_t)p->track_count + 1))
		return SIZE_MAX;
	return p->track_count++;
}

static uint32_t new_slice(struct pairs *p)
{
	uint32_t slice = p->free;
	void *slices = p->slices;

	if (slice) {
		p->free = p->slices[slice].below;
		return slice;
	}
	if (!p->slice_count)
		p->slice_count = 1;
	if (!mem_grow(p->mem, &slices, &p->slice_cap, p->slice_count + 1, sizeof(*p->slices)))
		return 0;
	p->slices = slices;
	return (uint32_t)p->slice_count++;
}

void pairs_open(struct pairs *p, uint64_t key, uint64_t name, struct open_slice opened)
{
	size_t track = find_track(p, key);
	uint32_t slice;

	if (track == SIZE_MAX)
		track = add_track(p, key);
	slice = track == SIZE_MAX ? 0 : new_slice(p);
	if (!slice) {
		p->failed = true;
		return;
	}
	opened.name = name;
	opened.below = p->tracks[track].top;
	p->slices[slice] = opened;
	p->tracks[track].top = slice;
}

bool pairs_close(struct pairs *p, uint64_t key, uint64_t name, struct open_slice *closed)
{
	size_t track = find_track(p, key);
	uint32_t *link, slice;

	if (track == SIZE_MAX)
		return false;
	link = &p->tracks[track].top;
	while (*link && name && p->slices[*link].name != name)
		link = &p->slices[*link].below;
	slice = *link;
	if (!slice)
		return false;
	*closed = p->slices[slice];
	*link = closed->below;
	p->slices[slice].below = p->free;
	p->free = slice;
	return true;
}

bool pairs_top(const struct pairs *p, uint64_t key, struct open_slice *open)
{
	size_t track = find_track(p, key);

	if (track == SIZE_MAX || !p->tracks[track].top)
		return false;
	*open = p->slices[p->tracks[track].top];
	return true;
}

void pairs_each(struct pairs *p, void (*visit)(void *arg, const struct open_slice *slice),
		void *arg)
{
	for (size_t i = 0; i < p->track_count; i++)
		for (uint32_t s = p->tracks[i].top; s; s = p->slices[s].below)
			visit(arg, &p->slices[s]);
}
