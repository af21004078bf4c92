/* link_edges.c: makes edges between ops from the links between their events (link_edges.h). There are up to millions of links, but few
 * pairs of ops. */
#include "analyze/views/link_edges.h"

#include "base/vec.h"
#include "base/map.h"
#include "base/vec.h"

struct pair {
	uint32_t src, dst;
};

struct pairs {
	struct mem *mem;
	struct map map; /* maps a pair of ops to its place in items + 1 */
	struct pair *items;
	size_t count, cap;
};

static bool add_pair(struct pairs *p, uint32_t src, uint32_t dst)
{
	uint64_t hash = map_hash_u64((uint64_t)dst << 32 | src, 12);

	for (struct map_iter it = map_find(&p->map, hash); it.value; it = map_next(&p->map, it))
		if (p->items[it.value - 1].src == src && p->items[it.value - 1].dst == dst)
			return true;
	if (!vec_push(p->mem, p->items, p->count, p->cap, (struct pair){ src, dst }))
		return false;
	return map_add(&p->map, hash, (uint32_t)p->count);
}

static bool find_pairs(const struct model *m, struct pairs *p)
{
	struct pair last = { 0 };

	for (uint32_t i = 1; i < m->link.count; i++) {
		uint32_t src = m->event.op[m->link.src[i].v].v,
			 dst = m->event.op[m->link.dst[i].v].v;

		if (m->link.kind[i] == LINK_WAIT) /* a link to a waiting event is not a call */
			continue;
		if (!src || !dst || src == dst || (src == last.src && dst == last.dst))
			continue;
		last = (struct pair){ src, dst };
		if (!add_pair(p, src, dst))
			return false;
	}
	return true;
}

static bool place_pairs(const struct model *m, const struct pairs *p, struct arena *scratch,
			struct op_edges *out)
{
	uint32_t *first = ARENA_ARRAY(scratch, uint32_t, m->op.count);
	uint32_t *count = ARENA_ARRAY(scratch, uint32_t, m->op.count);
	op_id *src = ARENA_ARRAY(scratch, op_id, p->count + 1);
	uint32_t at = 1;

	if (!first || !count || !src)
		return false;
	for (size_t i = 0; i < p->count; i++)
		count[p->items[i].dst]++;
	for (uint32_t op = 1; op < m->op.count; op++) {
		first[op] = at;
		at += count[op];
		count[op] = 0;
	}
	for (size_t i = 0; i < p->count; i++) {
		uint32_t dst = p->items[i].dst;

		src[first[dst] + count[dst]++].v = p->items[i].src;
	}
	*out = (struct op_edges){ first, count, src, at };
	return true;
}

ow_status link_edges_make(const struct model *m, struct arena *scratch, struct op_edges *out,
			  struct ow_error *err)
{
	struct pairs p = { .mem = m->mem };
	bool ok;

	map_init(&p.map, m->mem);
	ok = find_pairs(m, &p) && place_pairs(m, &p, scratch, out);
	map_release(&p.map);
	mem_free(m->mem, p.items, p.cap * sizeof(*p.items));
	return ok ? OW_OK : error_no_memory(err);
}
