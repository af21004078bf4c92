/*
 * perf_chains.c: the call chains of perf.data, see perf_data.h. They come again and again, and where they differ it
 * is mostly near the leaf. So a chain is looked for as a whole first; if it is new, its addresses are
 * put into a tree, from the root on.
 */
#include "import/perf_data.h"

#define CONTEXT_MARKS ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)

#define MODE_KERNEL 1

enum { NODE_PROCESS = 1, NODE_KERNEL = 2, NODE_CALLER = 4 };

void perf_chains_init(struct perf_file *f)
{
	map_init(&f->node_map, f->mem);
	map_init(&f->chain_map, f->mem);
}

void perf_chains_release(struct perf_file *f)
{
	mem_free(f->mem, f->nodes, f->node_cap * sizeof(*f->nodes));
	map_release(&f->node_map);
	map_release(&f->chain_map);
}

/* ---- whole chains ---- */

static uint64_t hash_words(const unsigned char *words, size_t count, bool swap, uint64_t seed)
{
	size_t i = 0;

	for (; i + 2 <= count; i += 2) {
		uint64_t a = perf_u64(words + 8 * i, swap), b = perf_u64(words + 8 * i + 8, swap);
		__uint128_t product = (__uint128_t)(a ^ seed) * (b ^ 0xd6e8feb86659fd93ull);

		seed = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return map_hash_u64(seed, i < count ? perf_u64(words + 8 * i, swap) : count);
}

/* Whether a node is the leaf of this chain: its addresses are those of the node and its parents. */
static bool is_chain(const struct perf_file *f, uint32_t node, const unsigned char *words,
		     size_t count, int32_t pid, uint8_t mode)
{
	uint32_t kernel = mode == MODE_KERNEL ? NODE_KERNEL : 0, caller = 0;
	const struct perf_node *n = &f->nodes[node];

	for (size_t i = 0; i < count; i++) {
		uint64_t word = perf_u64(words + 8 * i, f->swap);

		if (word >= CONTEXT_MARKS) {
			kernel = word == CONTEXT_KERNEL ? NODE_KERNEL : 0;
			caller = 0;
			continue;
		}
		if (n->address != word || n->flags != (kernel | caller))
			return false;
		n = &f->nodes[n->parent];
		caller = NODE_CALLER;
	}
	return n->flags == NODE_PROCESS && n->address == (uint32_t)pid;
}

/* ---- the tree ---- */

static bool child_of(struct perf_file *f, uint32_t parent, uint64_t address, uint32_t flags,
		     uint32_t *node)
{
	uint64_t hash = map_hash_u64(address, (uint64_t)parent << 8 | flags);
	void *nodes = f->nodes;

	for (struct map_iter it = map_find(&f->node_map, hash); it.value;
	     it = map_next(&f->node_map, it)) {
		const struct perf_node *n = &f->nodes[it.value];

		if (n->address == address && n->parent == parent && n->flags == flags) {
			*node = it.value;
			return true;
		}
	}
	if (f->node_count >= UINT32_MAX - 1 ||
	    !mem_grow(f->mem, &nodes, &f->node_cap, f->node_count + 2, sizeof(*f->nodes)))
		return false;
	f->nodes = nodes;
	if (!f->node_count)
		f->nodes[f->node_count++] = (struct perf_node){ 0 };
	*node = (uint32_t)f->node_count++;
	f->nodes[*node] =
		(struct perf_node){ .address = address, .parent = parent, .flags = flags };
	return map_add(&f->node_map, hash, *node);
}

/* Whether the addresses before a word belong to the kernel: the nearest mark in front of it says so. */
static uint32_t mode_before(const struct perf_file *f, const unsigned char *words, size_t at,
			    uint8_t mode)
{
	while (at--) {
		uint64_t word = perf_u64(words + 8 * at, f->swap);

		if (word >= CONTEXT_MARKS)
			return word == CONTEXT_KERNEL ? NODE_KERNEL : 0;
	}
	return mode == MODE_KERNEL ? NODE_KERNEL : 0;
}

/* Whether a word is the first of its kind: where something was interrupted, not where a call returns to. */
static bool is_interrupted(const struct perf_file *f, const unsigned char *words, size_t at)
{
	return !at || perf_u64(words + 8 * (at - 1), f->swap) >= CONTEXT_MARKS;
}

/* A chain that was not there yet, from its root on. */
static bool add_chain(struct perf_file *f, const unsigned char *words, size_t count, int32_t pid,
		      uint8_t mode, uint32_t *node)
{
	uint32_t kernel = mode_before(f, words, count, mode);

	if (!child_of(f, 0, (uint32_t)pid, NODE_PROCESS, node))
		return false;
	for (size_t i = count; i--;) {
		uint64_t word = perf_u64(words + 8 * i, f->swap);
		uint32_t caller = is_interrupted(f, words, i) ? 0 : NODE_CALLER;

		if (word >= CONTEXT_MARKS)
			kernel = mode_before(f, words, i, mode);
		else if (!child_of(f, *node, word, kernel | caller, node))
			return false;
	}
	return true;
}

bool perf_chain_find(struct perf_file *f, const unsigned char *words, size_t count, int32_t pid,
		     uint8_t mode, uint32_t *node)
{
	uint64_t hash = hash_words(words, count, f->swap, (uint64_t)(uint32_t)pid << 8 | mode);

	for (struct map_iter it = map_find(&f->chain_map, hash); it.value;
	     it = map_next(&f->chain_map, it))
		if (is_chain(f, it.value, words, count, pid, mode)) {
			*node = it.value;
			return true;
		}
	if (!add_chain(f, words, count, pid, mode, node))
		return false;
	return map_add(&f->chain_map, hash, *node);
}

/* ---- what they mean ---- */

static frame_id frame_at(struct perf_file *f, int64_t pid, const struct perf_node *n)
{
	uint64_t look = n->flags & NODE_CALLER && n->address ? n->address - 1 : n->address;
	bool kernel = n->flags & NODE_KERNEL;
	const struct perf_map *map =
		perf_space_find(&f->space, kernel ? PERF_KERNEL_PID : pid, look);
	struct frame_row row = { .flags = kernel ? FRAME_KERNEL : 0 };

	row.function = perf_space_function(&f->space, look); /* where the call is */
	if (map)
		row.module = map->name;
	if (!row.function.v && map)
		row.function = perf_names_in_file(&f->names, map, look);
	if (!row.function.v && kernel)
		row.function = perf_names_kernel(&f->names, look);
	else if (!row.function.v && map && map->jit)
		row.function = perf_names_jit(&f->names, pid, look);
	else if (!row.function.v && map)
		row.function = perf_names_user(&f->names, map, look);
	/* Frames of one function are one. So are those of addresses where nothing is: they are no addresses, but
	 * what lay where a frame pointer should be. */
	if (!row.function.v && (map || kernel))
		row.address = n->address;
	return builder_frame(f->b, &row);
}

stack_id perf_chain_stack(struct perf_file *f, uint32_t leaf)
{
	uint32_t count = 0, at = leaf, changed;
	stack_id stack = { 0 };
	int64_t pid;

	while (!(f->nodes[at].flags & NODE_PROCESS)) {
		f->path[count++] = at;
		at = f->nodes[at].parent;
	}
	pid = (int32_t)f->nodes[at].address;
	changed = perf_space_changed(&f->space, pid);
	for (; count; count--) {
		struct perf_node *n = &f->nodes[f->path[count - 1]];

		if (n->at <= changed)
			n->stack = builder_stack(f->b, stack, frame_at(f, pid, n));
		n->at = f->space.changes + 1;
		stack = n->stack;
	}
	return stack;
}
