/*
 * perf_samples.c: stores samples of perf.data and their call chains. There are millions of samples, so little is done
 * for each: values that depend on thread and processor are stored once per run of samples. Call chains repeat, so each
 * is stored once, as in the file. The stack of a chain is made only when perf_resolve.c asks for it, and again only
 * after a change of its process. Called by import_perf_data.c and perf_records.c; it makes no rows of the model.
 */
#include "import/perf/perf_data.h"

#include "base/vec.h"

#define CONTEXT_MARKS ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define MODE_KERNEL 1

#define CHAIN_MAX (1 << 13) /* limit of a chain in words: see struct perf_chain */
#define SAMPLE_MIN 24	    /* bytes of a short sample */
#define GROUP_MAX 256	    /* limit of counters that are read together */

/* A call chain that will be looked up later. */
struct pending_chain {
	const unsigned char *words;
	uint64_t hash;
	int32_t pid;
	uint32_t row;	       /* row of the sample */
	uint16_t shape, event; /* as in struct perf_chain */
};
#define PENDING 16

/* A chain that consists of a single address. */
struct single_chain {
	uint64_t address;
	int32_t pid;
	uint16_t event, shape;
	uint32_t chain; /* 0 = this entry is empty */
};
#define SINGLES 8192

/* Caches; allocated with the first sample. */
struct perf_recent {
	struct pending_chain pending[PENDING];
	uint32_t pending_count;
	struct single_chain singles[SINGLES]; /* hash table */
};

#define KNOWN 16384 /* entries of the cache of addresses */
#define CALLED 8192 /* entries of the cache of stacks */

enum { STEP_KERNEL = 1, STEP_CALLER = 2 };

/* The frame of an address when it was last looked up. */
struct known {
	uint64_t address;
	int64_t pid;
	uint32_t flags, at; /* at: as in struct perf_chain */
	frame_id frame;
};

/* An address of the previous chain, from the root on, with its frame and stack. */
struct step {
	uint64_t address;
	uint32_t flags;
	frame_id frame;
	stack_id stack;
};

/* A stack, with the parent and frame that it was made from. */
struct called {
	stack_id parent;
	frame_id frame;
	stack_id stack;
};

/* Caches for making stacks; allocated for the first stack. */
struct perf_walk {
	struct called called[CALLED]; /* hash table, by parent and frame */
	struct known known[KNOWN];    /* hash table, by address */
	struct step steps[CHAIN_MAX];
	uint32_t count;
	int64_t pid;
	uint32_t changes; /* f->space.changes when the steps were made */
	frame_id nowhere; /* frame for addresses where nothing is mapped */
};

void perf_samples_init(struct perf_file *f)
{
	map_init(&f->chain_map, f->mem);
	map_init(&f->read_map, f->mem);
}

void perf_samples_release(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;

	mem_free(f->mem, r->items, r->cap * sizeof(*r->items));
	mem_free(f->mem, r->weights, r->weight_cap * sizeof(*r->weights));
	mem_free(f->mem, r->runs, r->run_cap * sizeof(*r->runs));
	mem_free(f->mem, f->reads, f->read_cap * sizeof(*f->reads));
	mem_free(f->mem, f->chains, f->chain_cap);
	mem_free(f->mem, f->walk, f->walk ? sizeof(*f->walk) : 0);
	mem_free(f->mem, f->recent, f->recent ? sizeof(*f->recent) : 0);
	map_release(&f->chain_map);
	map_release(&f->read_map);
}

static inline uint32_t chain_length(uint16_t shape)
{
	return shape >> 3;
}

static inline struct single_chain *single_of(const struct perf_file *f, uint64_t address,
					     int32_t pid, uint32_t event, uint32_t shape)
{
	uint64_t hash = address ^ (uint64_t)(uint32_t)pid << 40 ^ event << 4 ^ shape;

	return &f->recent->singles[(hash * 0x9e3779b97f4a7c15ull >> 32) % SINGLES];
}

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

static bool add_chain(struct perf_file *f, const struct pending_chain *l, uint32_t *chain)
{
	/* offset 0 means none, so the first chain begins later */
	size_t at = f->chain_len ? f->chain_len : PERF_CHAIN_UNIT;
	size_t size = sizeof(struct perf_chain) + 8 * (size_t)chain_length(l->shape);

	if ((at + size) / PERF_CHAIN_UNIT > UINT32_MAX ||
	    !vec_reserve(f->mem, f->chains, f->chain_cap, at + size))
		return false;
	f->chain_len = at + size;
	*chain = (uint32_t)(at / PERF_CHAIN_UNIT);
	*perf_chain_at(f, *chain) =
		(struct perf_chain){ .pid = l->pid, .shape = l->shape, .event = l->event };
	if (size > sizeof(struct perf_chain))
		memcpy(perf_chain_at(f, *chain) + 1, l->words, size - sizeof(struct perf_chain));
	return true;
}

static inline bool is_chain(const struct perf_file *f, uint32_t chain,
			    const struct pending_chain *l)
{
	const struct perf_chain *c = perf_chain_at(f, chain);
	size_t size = 8 * (size_t)chain_length(l->shape);

	return c->pid == l->pid && c->shape == l->shape && c->event == l->event &&
	       (!size || memcmp(words_of(c), l->words, size) == 0);
}

static bool find_chain(struct perf_file *f, const struct pending_chain *l, uint32_t *chain)
{
	for (struct map_iter it = map_find(&f->chain_map, l->hash); it.value;
	     it = map_next(&f->chain_map, it))
		if (is_chain(f, it.value, l)) {
			*chain = it.value;
			return true;
		}
	return add_chain(f, l, chain) && map_add(&f->chain_map, l->hash, *chain);
}

/* Caches a chain of a single address: such addresses mostly repeat soon. */
static void remember_single(struct perf_file *f, const struct pending_chain *l, uint32_t chain)
{
	uint64_t address;

	if (chain_length(l->shape) != 1)
		return;
	address = perf_u64(l->words, false);
	*single_of(f, address, l->pid, l->event, l->shape) =
		(struct single_chain){ .address = address,
				       .pid = l->pid,
				       .event = l->event,
				       .shape = l->shape,
				       .chain = chain };
}

bool perf_chains_finish(struct perf_file *f)
{
	struct perf_row *rows = f->rows.items;
	uint32_t count = f->recent ? f->recent->pending_count : 0, found[PENDING];

	if (!count)
		return true;

	for (uint32_t i = 0; i < count; i++) {
		found[i] = map_find(&f->chain_map, f->recent->pending[i].hash).value;
		if (found[i])
			__builtin_prefetch(perf_chain_at(f, found[i]));
	}
	f->recent->pending_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct pending_chain *l = &f->recent->pending[i];

		if (OW_LIKELY(found[i] && is_chain(f, found[i], l)))
			rows[l->row].chain = found[i];
		else if (!find_chain(f, l, &rows[l->row].chain))
			return false;
		remember_single(f, l, rows[l->row].chain);
	}
	return true;
}

/* Looks up the oldest pending chain and stores the result in the row of its sample; perf_chains_finish does the rest.
 * The lookup is delayed because the map is large: other samples are read until the prefetched part of it has arrived.
 * False if memory runs out.
 */
static bool look_up_later(struct perf_file *f)
{
	struct pending_chain *l = &f->recent->pending[f->recent->pending_count++];
	const struct map *map = &f->chain_map;

	l->hash =
		hash_words(l->words, chain_length(l->shape),
			   (uint64_t)(uint32_t)l->pid << 32 | (uint32_t)l->event << 16 | l->shape);
	if (map->count)
		__builtin_prefetch(&map->slots[l->hash >> 32 & map->mask]);
	return f->recent->pending_count < PENDING || perf_chains_finish(f);
}

static frame_id make_frame(struct perf_file *f, int64_t pid, uint64_t address, uint32_t flags)
{
	uint64_t look = flags & STEP_CALLER && address ? address - 1 : address;
	bool kernel = flags & STEP_KERNEL;
	const struct perf_map *map =
		perf_space_find(&f->space, kernel ? PERF_KERNEL_PID : pid, look);
	struct frame_row row = { .flags = kernel ? FRAME_KERNEL : 0 };

	row.function = perf_space_function(&f->space, look); /* the address of the call itself */
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
	/* All addresses of a function share a frame. So do addresses where nothing is mapped: they are not code, but
	 * arbitrary values where a frame pointer was expected. */
	if (!row.function.v && !map && !kernel) {
		if (!f->walk->nowhere.v)
			f->walk->nowhere = builder_frame(f->b, &row);
		return f->walk->nowhere;
	}
	if (!row.function.v)
		row.address = address;
	return builder_frame(f->b, &row);
}

/* The frame of an address, with a cache, because the same address occurs in many chains. changed: the number of the
 * last change of its process. */
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

/* The mode (kernel or user) of the address at `at`: the nearest mark before it decides. */
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

/* Whether an address is where code was interrupted, not a return address: the first one after a mark. */
static bool is_interrupted(const struct perf_file *f, const unsigned char *words, size_t at)
{
	return !at || perf_u64(words + 8 * (at - 1), f->swap) >= CONTEXT_MARKS;
}

/* Makes the stack of a chain, from the root on. Consecutive chains mostly share their outer calls: as far as
 * addresses or frames equal those of the previous chain, its stacks are reused. */
static stack_id walk_chain(struct perf_file *f, const struct perf_chain *c, uint32_t changed)
{
	struct perf_walk *w = f->walk;
	const unsigned char *words = words_of(c);
	uint32_t count = chain_length(c->shape), depth = 0;
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
		c->stack = walk_chain(f, c, changed);
	c->at = f->space.changes + 1;
	return c->stack;
}

/* A decoded sample. */
struct sample {
	int64_t ts, weight;
	uint32_t thread, event;
	int32_t pid, cpu; /* cpu: number + 1 */
	uint16_t shape;
	bool weighs; /* the sample has a period of its own */
	const unsigned char *words;
};

static int64_t weight_of(uint64_t period)
{
	return (int64_t)MIN(period, (uint64_t)INT64_MAX);
}

/* Estimates how many more samples follow, if the rest of the file is like its beginning, because growing an array
 * moves its rows. */
static size_t expected(const struct perf_file *f)
{
	uint64_t done = f->at > f->data_at ? f->at - f->data_at : 0;
	uint64_t left = f->data_end > f->at ? f->data_end - f->at : 0;
	double more = done ? (double)f->rows.count / (double)done * (double)left : 0;

	if (f->mem->limit) /* with a memory limit, take no more than necessary */
		return 1;
	return (size_t)MAX(MIN(more * 1.02, (double)left / SAMPLE_MIN), 1);
}

static bool grow_list(struct perf_file *f, void **items, size_t *cap, size_t size)
{
	size_t want = f->rows.count + expected(f);
	void *moved;

	if (want > *cap + *cap / 2) { /* mem_grow reserves more than it is asked for */
		moved = mem_realloc(f->mem, *items, *cap * size, want * size);
		if (moved) {
			*items = moved;
			*cap = want;
			return true;
		}
	}
	return mem_grow(f->mem, items, cap, f->rows.count + 1, size);
}

static bool grow_rows(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;
	void *items = r->items;
	bool ok = r->count < UINT32_MAX - 1 && grow_list(f, &items, &r->cap, sizeof(*r->items));

	r->items = items;
	return ok;
}

static bool grow_weights(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;
	void *weights = r->weights;
	bool ok = grow_list(f, &weights, &r->weight_cap, sizeof(*r->weights));

	r->weights = weights;
	return ok;
}

/* Allocates weights for all rows; called for the first sample with a period of its own. */
static bool need_weights(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;

	if (!perf_chains_finish(f) || !grow_weights(f))
		return false;
	for (size_t i = 0; i < r->count; i++) {
		const struct perf_chain *c = perf_chain_at(f, r->items[i].chain);

		r->weights[i] = perf_event_weight(&f->events[c->event].attr);
	}
	return true;
}

static bool start_run(struct perf_file *f, const struct sample *s)
{
	struct perf_rows *r = &f->rows;

	if (!vec_reserve(f->mem, r->runs, r->run_cap, r->run_count + 1))
		return false;
	r->has_cpu |= s->cpu != 0;
	r->runs[r->run_count++] = (struct perf_run){
		.from = s->ts, .first = (uint32_t)r->count, .thread = s->thread, .cpu = s->cpu
	};
	return true;
}

/* Whether a sample continues the last run. A sample without a time is always a run of its own. */
static bool in_run(const struct perf_rows *r, const struct sample *s)
{
	const struct perf_run *run;

	if (!r->run_count)
		return false;
	run = &r->runs[r->run_count - 1];
	return s->ts >= r->last && run->thread == s->thread && run->cpu == s->cpu &&
	       (uint64_t)s->ts - (uint64_t)run->from <= UINT32_MAX;
}

/* Looks up a chain that consists of a single address; false when it is new. */
static inline bool find_single(const struct perf_file *f, const unsigned char *words, int32_t pid,
			       uint32_t event, uint32_t shape, uint32_t *chain)
{
	uint64_t address = perf_u64(words, false);
	const struct single_chain *alone = single_of(f, address, pid, event, shape);

	*chain = alone->chain;
	return alone->chain && alone->address == address && alone->pid == pid &&
	       alone->event == event && alone->shape == shape;
}

static bool add_row(struct perf_file *f, const struct sample *s)
{
	struct perf_rows *r = &f->rows;
	struct perf_row *row;

	if (OW_UNLIKELY(r->count == r->cap) && !grow_rows(f))
		return false;
	if (OW_UNLIKELY(!in_run(r, s)) && !start_run(f, s))
		return false;
	if (OW_UNLIKELY(s->weighs && !r->weights) && !need_weights(f))
		return false;
	if (OW_UNLIKELY(r->weights)) {
		if (r->count == r->weight_cap && !grow_weights(f))
			return false;
		r->weights[r->count] = s->weight;
	}
	row = &r->items[r->count];
	row->after = (uint32_t)((uint64_t)s->ts - (uint64_t)r->runs[r->run_count - 1].from);
	r->last = s->ts;
	r->count++;
	if (s->words && chain_length(s->shape) == 1 &&
	    find_single(f, s->words, s->pid, s->event, s->shape, &row->chain))
		return true;
	f->recent->pending[f->recent->pending_count] =
		(struct pending_chain){ .words = s->words,
					.pid = s->pid,
					.row = (uint32_t)(r->count - 1),
					.shape = s->shape,
					.event = (uint16_t)s->event };
	return look_up_later(f);
}

/* The attributes of a sample's event, which give the positions of its values. */
static const struct perf_attr *attr_of(struct perf_file *f, const unsigned char *body, size_t size)
{
	struct perf_rows *r = &f->rows;
	const struct perf_attr *attr;

	r->event = 0;
	if (!f->event_count)
		return NULL;
	attr = &f->events[0].attr;
	if (attr->layout.size > size)
		return NULL;
	if (f->event_count == 1 || attr->layout.id == PERF_ABSENT)
		return attr;
	r->id = perf_u64(body + attr->layout.id, f->swap);
	r->event = perf_event_of(f, r->id, 0);
	attr = &f->events[r->event].attr;
	return attr->layout.size > size ? NULL : attr;
}

/* Finds the thread of a sample, if it differs from that of the previous sample. */
static bool find_thread(struct perf_file *f, uint64_t who, bool known)
{
	const unsigned char *p = (const unsigned char *)&who;
	struct perf_rows *r = &f->rows;
	const struct perf_thread *t;

	r->pid = known ? (int32_t)perf_u32(p, f->swap) : -1;
	t = perf_space_thread(&f->space, r->pid, known ? (int32_t)perf_u32(p + 4, f->swap) : -1);
	r->thread = t ? (uint32_t)(t - f->space.threads) : 0;
	r->who = who;
	return t;
}

/* The value of a counter in the previous sample; 0 at first. */
static uint64_t *last_read(struct perf_file *f, uint64_t id)
{
	uint64_t hash = map_hash_u64(id, 37);

	for (struct map_iter it = map_find(&f->read_map, hash); it.value;
	     it = map_next(&f->read_map, it))
		if (f->reads[it.value - 1].id == id)
			return &f->reads[it.value - 1].value;
	if (f->read_count >= UINT32_MAX - 1 ||
	    !vec_push(f->mem, f->reads, f->read_count, f->read_cap,
		      (struct perf_value){ .id = id }))
		return NULL;
	if (!map_add(&f->read_map, hash, (uint32_t)f->read_count))
		return NULL;
	return &f->reads[f->read_count - 1].value;
}

/* Adds a sample for each event of a group (`perf record -e '{a,b}:S'`): a sample of one event has the counts of its
 * whole group since the previous sample. */
static ow_status add_group(struct perf_file *f, const struct perf_attr *attr,
			   struct perf_bytes rest, struct sample s)
{
	struct perf_value values[GROUP_MAX];
	size_t count = perf_take_values(attr, &rest, values, GROUP_MAX);

	if (!count)
		perf_note_bad(f);
	for (size_t i = 0; i < count; i++) {
		uint64_t *last = last_read(f, values[i].id), more;

		if (!last)
			return import_no_memory(f->ctx);
		more = values[i].value - *last;
		*last = values[i].value;
		s.event = perf_event_of(f, values[i].id, UINT32_MAX);
		s.weight = weight_of(more);
		s.weighs = true;
		if (more && s.event != UINT32_MAX && !add_row(f, &s))
			return import_no_memory(f->ctx);
	}
	return OW_OK;
}

static ow_status read_sample(struct perf_file *f, const unsigned char *record, size_t size)
{
	bool swap = f->swap;
	const unsigned char *p = record + 8;
	struct sample s = { .ts = TIME_UNKNOWN };
	const struct perf_attr *attr = attr_of(f, p, size - 8);
	const struct perf_layout *l = attr ? &attr->layout : NULL;
	struct perf_bytes rest = { .end = record + size, .swap = swap };
	uint64_t who = UINT64_MAX, count = 0;

	if (OW_UNLIKELY(!attr))
		goto bad;
	rest.at = p + l->size;
	if (attr->sample_type & PERF_SAMPLE_REST && !perf_sample_rest(attr, rest, &s.words, &count))
		goto bad;
	if (!count && l->ip != PERF_ABSENT) {
		s.words = p + l->ip;
		count = 1;
	}
	s.shape = (uint16_t)(count << 3 | (perf_u16(record + 4, swap) & PERF_MODES));
	if (l->tid != PERF_ABSENT)
		memcpy(&who, p + l->tid, sizeof(who));
	if (OW_UNLIKELY(who != f->rows.who || !f->rows.count) &&
	    !find_thread(f, who, l->tid != PERF_ABSENT))
		return import_no_memory(f->ctx);
	s.event = f->rows.event;
	s.thread = f->rows.thread;
	s.pid = f->rows.pid;
	if (l->time != PERF_ABSENT) {
		uint64_t time = perf_u64(p + l->time, swap);

		s.ts = time <= INT64_MAX ? (int64_t)time : TIME_UNKNOWN;
	}
	if (l->cpu != PERF_ABSENT) {
		uint32_t cpu = perf_u32(p + l->cpu, swap);

		s.cpu = cpu < INT32_MAX ? (int32_t)cpu + 1 : 0;
	}
	s.weighs = l->period != PERF_ABSENT;
	if (s.weighs)
		s.weight = weight_of(perf_u64(p + l->period, swap));
	else if (f->rows.weights)
		s.weight = perf_event_weight(attr);
	if (OW_UNLIKELY(perf_attr_reads(attr)))
		return add_group(f, attr, rest, s);
	return OW_LIKELY(add_row(f, &s)) ? OW_OK : import_no_memory(f->ctx);
bad:
	perf_note_bad(f);
	return OW_OK;
}

#define HAS(bit) ((uint64_t)1 << SAMPLE_##bit)
#define USUAL (HAS(IP) | HAS(TID) | HAS(TIME))

/* Whether the last sample has the usual layout, in the byte order of this machine. */
static bool is_usual(const struct perf_file *f)
{
	const struct perf_rows *r = &f->rows;
	uint64_t type = r->run_count ? f->events[r->event].attr.sample_type : 0;

	return !f->swap && (type & USUAL) == USUAL && !(type & HAS(READ)) && r->last >= 0 &&
	       !r->weights == !(type & HAS(PERIOD));
}

/* The fast path: reads samples that only need a row, because they have the usual layout and belong to the same event
 * and run. Returns the number of bytes read; sets *status if memory runs out. */
static size_t read_usual(struct perf_file *f, const unsigned char *p, size_t len, uint64_t *records,
			 ow_status *status)
{
	struct perf_rows *r = &f->rows;
	const struct perf_attr *attr = &f->events[r->event].attr;
	const struct perf_layout l = attr->layout;
	bool chains = attr->sample_type & HAS(CALLCHAIN), has_cpu = l.cpu != PERF_ABSENT;
	size_t min = 8 + l.size + (chains ? 8u : 0u), at = 0;
	uint8_t id_at = f->event_count > 1 ? f->events[0].attr.layout.id : PERF_ABSENT;
	const struct perf_run run = r->runs[r->run_count - 1];
	uint64_t limit = MIN((uint64_t)run.from + UINT32_MAX, (uint64_t)INT64_MAX);
	uint64_t id = r->id, who = r->who, last = (uint64_t)r->last;
	size_t row = r->count, end = r->weights ? MIN(r->cap, r->weight_cap) : r->cap;
	uint16_t event = (uint16_t)r->event;
	struct perf_row *rows = r->items;
	int64_t *weights = r->weights;
	int32_t pid = r->pid;
	struct perf_recent *recent = f->recent;

	for (; row < end && len - at >= min; row++) {
		const unsigned char *record = p + at, *body = record + 8, *words = body + l.ip;
		uint64_t head = perf_u64(record, false), time = perf_u64(body + l.time, false);
		size_t size = head >> 48, count = 1;
		uint16_t shape;

		if ((uint32_t)head != PERF_SAMPLE || size < min || size > len - at ||
		    perf_u64(body + l.tid, false) != who || time < last || time > limit)
			break;
		if (has_cpu && (int32_t)perf_u32(body + l.cpu, false) != run.cpu - 1)
			break;
		if (id_at != PERF_ABSENT && perf_u64(body + id_at, false) != id)
			break;
		if (chains) {
			words = record + min;
			count = (size_t)perf_u64(words - 8, false);
			if (!count || count > (size - min) / 8)
				break;
		}
		if (weights)
			weights[row] = weight_of(perf_u64(body + l.period, false));
		shape = (uint16_t)(count << 3 | (head >> 32 & PERF_MODES));
		rows[row].after = (uint32_t)(time - (uint64_t)run.from);
		last = time;
		at += size;
		if (count == 1 && find_single(f, words, pid, event, shape, &rows[row].chain))
			continue;
		recent->pending[recent->pending_count] =
			(struct pending_chain){ .words = words,
						.pid = pid,
						.row = (uint32_t)row,
						.shape = shape,
						.event = event };
		if (!look_up_later(f)) {
			*status = import_no_memory(f->ctx);
			break;
		}
	}
	*records += row - r->count;
	r->count = row;
	r->last = (int64_t)last;
	return at;
}

ow_status perf_samples_read(struct perf_file *f, const unsigned char *p, size_t len, size_t *used,
			    uint64_t *records)
{
	uint64_t start = f->at;
	size_t at = 0, size = perf_u16(p + 6, f->swap);
	ow_status status = OW_OK;

	if (OW_UNLIKELY(!f->recent))
		f->recent = mem_zalloc(f->mem, sizeof(*f->recent));
	if (!f->recent)
		return import_no_memory(f->ctx);
	do {
		f->at = start + at;
		status = read_sample(f, p + at, size);
		at += size;
		++*records;
		if (status == OW_OK && is_usual(f))
			at += read_usual(f, p + at, len - at, records, &status);
		if (status != OW_OK || len - at < 8 || perf_u32(p + at, f->swap) != PERF_SAMPLE)
			break;
		size = perf_u16(p + at + 6, f->swap);
	} while (size >= 8 && size <= len - at);
	*used += at;
	return status;
}
