/*
 * perf_chains.c: the call chains of perf.data, see perf_data.h. They come again and again, so each is kept once, as it lies in the
 * file, one behind the other in memory; what it means is found when somebody asks, and again only after something happened to its
 * process. Chains that are asked for one after the other mostly have their outer calls in common.
 */
#include "import/perf_data.h"

#define CONTEXT_MARKS ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)

#define MODE_KERNEL 1
#define KNOWN 16384 /* addresses */
#define CALLED 8192 /* stacks */

enum { STEP_KERNEL = 1, STEP_CALLER = 2 };

/* What an address was when it was looked up last. */
struct known {
	uint64_t address;
	int64_t pid;
	uint32_t flags, at; /* at: as in a chain */
	frame_id frame;
};

/* An address of the chain that was looked up last, from the root on. */
struct step {
	uint64_t address;
	uint32_t flags;
	frame_id frame;
	stack_id stack;
};

/* A stack that was made of another one. */
struct called {
	stack_id parent;
	frame_id frame;
	stack_id stack;
};

struct perf_walk {
	struct called called[CALLED]; /* by a hash of what it was made of */
	struct known known[KNOWN];    /* by a hash of the address */
	struct step steps[PERF_CHAIN_MAX];
	uint32_t count;
	int64_t pid;
	uint32_t changes; /* how many there were */
	frame_id nowhere; /* of addresses where nothing is */
};

void perf_chains_init(struct perf_file *f)
{
	map_init(&f->chain_map, f->mem);
}

void perf_chains_release(struct perf_file *f)
{
	mem_free(f->mem, f->chains, f->chain_cap);
	mem_free(f->mem, f->walk, f->walk ? sizeof(*f->walk) : 0);
	mem_free(f->mem, f->alone, f->alone ? PERF_ALONE * sizeof(*f->alone) : 0);
	map_release(&f->chain_map);
}

/* ---- while reading ---- */

static const unsigned char *words_of(const struct perf_chain *c)
{
	return (const unsigned char *)(c + 1);
}

static uint64_t hash_words(const unsigned char *words, size_t count, uint64_t seed)
{
	size_t i = 0;

	for (; i + 2 <= count; i += 2) {
		uint64_t a = perf_u64(words + 8 * i, false), b = perf_u64(words + 8 * i + 8, false);
		__uint128_t product = (__uint128_t)(a ^ seed) * (b ^ 0xd6e8feb86659fd93ull);

		seed = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return map_hash_u64(seed, i < count ? perf_u64(words + 8 * i, false) : count);
}

static bool add_chain(struct perf_file *f, const struct perf_later *l, uint32_t *chain)
{
	size_t at = f->chain_len ? f->chain_len : PERF_CHAIN_UNIT; /* the first is none */
	size_t size = sizeof(struct perf_chain) + 8 * (size_t)perf_shape_count(l->shape);
	void *chains = f->chains;

	if ((at + size) / PERF_CHAIN_UNIT > UINT32_MAX ||
	    !mem_grow(f->mem, &chains, &f->chain_cap, at + size, 1))
		return false;
	f->chains = chains;
	f->chain_len = at + size;
	*chain = (uint32_t)(at / PERF_CHAIN_UNIT);
	*perf_chain_at(f, *chain) =
		(struct perf_chain){ .pid = l->pid, .shape = l->shape, .event = l->event };
	if (size > sizeof(struct perf_chain))
		memcpy(perf_chain_at(f, *chain) + 1, l->words, size - sizeof(struct perf_chain));
	return true;
}

static inline bool is_chain(const struct perf_file *f, uint32_t chain, const struct perf_later *l)
{
	const struct perf_chain *c = perf_chain_at(f, chain);
	size_t size = 8 * (size_t)perf_shape_count(l->shape);

	return c->pid == l->pid && c->shape == l->shape && c->event == l->event &&
	       (!size || memcmp(words_of(c), l->words, size) == 0);
}

static bool find_chain(struct perf_file *f, const struct perf_later *l, uint32_t *chain)
{
	for (struct map_iter it = map_find(&f->chain_map, l->hash); it.value;
	     it = map_next(&f->chain_map, it))
		if (is_chain(f, it.value, l)) {
			*chain = it.value;
			return true;
		}
	return add_chain(f, l, chain) && map_add(&f->chain_map, l->hash, *chain);
}

/* Where it is looked for lies anywhere in memory, and so does what is found there: others are read until it has arrived. */
bool perf_chain_later(struct perf_file *f)
{
	struct perf_later *l = &f->later[f->later_count++];
	const struct map *map = &f->chain_map;

	l->hash =
		hash_words(l->words, perf_shape_count(l->shape),
			   (uint64_t)(uint32_t)l->pid << 32 | (uint32_t)l->event << 16 | l->shape);
	if (map->count)
		__builtin_prefetch(&map->slots[l->hash >> 32 & map->mask]);
	return f->later_count < PERF_LATER || perf_chains_finish(f);
}

/* An address alone that was seen before mostly was a moment ago. */
static void remember(struct perf_file *f, const struct perf_later *l, uint32_t chain)
{
	uint64_t address;

	if (perf_shape_count(l->shape) != 1)
		return;
	address = perf_u64(l->words, false);
	*perf_alone_of(f, address, l->pid, l->event, l->shape) =
		(struct perf_alone){ .address = address,
				     .pid = l->pid,
				     .event = l->event,
				     .shape = l->shape,
				     .chain = chain };
}

bool perf_chains_finish(struct perf_file *f)
{
	struct perf_row *rows = f->rows.items;
	uint32_t count = f->later_count, found[PERF_LATER];

	for (uint32_t i = 0; i < count; i++) {
		found[i] = map_find(&f->chain_map, f->later[i].hash).value;
		if (found[i])
			__builtin_prefetch(perf_chain_at(f, found[i]));
	}
	f->later_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct perf_later *l = &f->later[i];

		if (OW_LIKELY(found[i] && is_chain(f, found[i], l)))
			rows[l->row].chain = found[i];
		else if (!find_chain(f, l, &rows[l->row].chain))
			return false;
		remember(f, l, rows[l->row].chain);
	}
	return true;
}

/* ---- what they mean ---- */

static frame_id make_frame(struct perf_file *f, int64_t pid, uint64_t address, uint32_t flags)
{
	uint64_t look = flags & STEP_CALLER && address ? address - 1 : address;
	bool kernel = flags & STEP_KERNEL;
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
	if (!row.function.v && !map && !kernel) {
		if (!f->walk->nowhere.v)
			f->walk->nowhere = builder_frame(f->b, &row);
		return f->walk->nowhere;
	}
	if (!row.function.v)
		row.address = address;
	return builder_frame(f->b, &row);
}

/* The frame of an address, which mostly comes below many callers. changed: when something happened to its process. */
static frame_id frame_at(struct perf_file *f, int64_t pid, uint64_t address, uint32_t flags,
			 uint32_t changed)
{
	int64_t owner = flags & STEP_KERNEL ? PERF_KERNEL_PID : pid;
	uint64_t hash = (address ^ (uint64_t)owner << 40) * 0x9e3779b97f4a7c15ull;
	struct known *k = &f->walk->known[(hash >> 40 ^ flags) % KNOWN];

	if (k->at <= changed || k->address != address || k->pid != owner || k->flags != flags)
		*k = (struct known){ .address = address,
				     .pid = owner,
				     .flags = flags,
				     .at = f->space.changes + 1,
				     .frame = make_frame(f, pid, address, flags) };
	return k->frame;
}

static inline stack_id stack_of(struct perf_file *f, stack_id parent, frame_id frame)
{
	uint64_t hash = ((uint64_t)parent.v << 32 | frame.v) * 0x9e3779b97f4a7c15ull;
	struct called *c = &f->walk->called[(hash >> 40) % CALLED];

	if (!c->stack.v || c->parent.v != parent.v || c->frame.v != frame.v)
		*c = (struct called){ parent, frame, builder_stack(f->b, parent, frame) };
	return c->stack;
}

/* Whether the addresses before a word belong to the kernel: the nearest mark in front of it says so. */
static uint32_t mode_before(const struct perf_file *f, const unsigned char *words, size_t at,
			    unsigned mode)
{
	while (at--) {
		uint64_t word = perf_u64(words + 8 * at, f->swap);

		if (word >= CONTEXT_MARKS)
			return word == CONTEXT_KERNEL ? STEP_KERNEL : 0;
	}
	return mode == MODE_KERNEL ? STEP_KERNEL : 0;
}

/* Whether a word is the first of its kind: where something was interrupted, not where a call returns to. */
static bool is_interrupted(const struct perf_file *f, const unsigned char *words, size_t at)
{
	return !at || perf_u64(words + 8 * (at - 1), f->swap) >= CONTEXT_MARKS;
}

/* From the root on. As far as it is the chain of the last time, or has its frames, so is its stack. */
static stack_id walk(struct perf_file *f, const struct perf_chain *c, uint32_t changed)
{
	struct perf_walk *w = f->walk;
	const unsigned char *words = words_of(c);
	uint32_t count = perf_shape_count(c->shape), depth = 0;
	uint32_t kernel = mode_before(f, words, count, c->shape & PERF_MODES);
	bool same = w->pid == c->pid && w->changes == f->space.changes, same_stack = true;
	stack_id stack = { 0 };

	for (size_t i = count; i--;) {
		uint64_t address = perf_u64(words + 8 * i, f->swap);
		uint32_t flags = kernel | (is_interrupted(f, words, i) ? 0 : STEP_CALLER);
		struct step *step = &w->steps[depth];
		frame_id frame;

		if (address >= CONTEXT_MARKS) {
			kernel = mode_before(f, words, i, c->shape & PERF_MODES);
			continue;
		}
		same_stack = same_stack && depth < w->count;
		depth++;
		if (same_stack && same && step->address == address && step->flags == flags) {
			stack = step->stack;
			continue;
		}
		same = false;
		frame = frame_at(f, c->pid, address, flags, changed);
		same_stack = same_stack && step->frame.v == frame.v;
		stack = same_stack ? step->stack : stack_of(f, stack, frame);
		*step = (struct step){ address, flags, frame, stack };
	}
	w->pid = c->pid;
	w->changes = f->space.changes;
	w->count = depth;
	return stack;
}

stack_id perf_chain_stack(struct perf_file *f, uint32_t chain)
{
	struct perf_chain *c = perf_chain_at(f, chain);
	uint32_t changed = perf_space_changed(&f->space, c->pid);

	if (!f->walk)
		f->walk = mem_zalloc(f->mem, sizeof(*f->walk));
	if (!f->walk) {
		import_no_memory(f->ctx);
		return (stack_id){ 0 };
	}
	if (c->at <= changed)
		c->stack = walk(f, c, changed);
	c->at = f->space.changes + 1;
	return c->stack;
}
