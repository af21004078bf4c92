/* nest_sums.c: see nest_sums.h. */
#include "model/nest_sums.h"

#define EVENTS_PER_SLOT 8 /* at least so many, for slots that are told by numbers */
#define SLOTS_FREE 65536  /* so many slots are never too many */
#define SLOTS_MANY ((uint64_t)1 << 18)

static uint64_t slots_of(const struct model *m)
{
	return (uint64_t)m->op.count * m->step.count;
}

static bool told_by_numbers(const struct model *m)
{
	return slots_of(m) <= MAX((uint64_t)m->event.count / EVENTS_PER_SLOT, (uint64_t)SLOTS_FREE);
}

unsigned sums_threads(const struct model *m, unsigned threads)
{
	return told_by_numbers(m) && slots_of(m) > SLOTS_MANY ? 1 : threads;
}

void sums_init(struct sums *s, const struct model *m)
{
	*s = (struct sums){ .mem = m->mem };
	if (!told_by_numbers(m))
		return;
	s->ops = m->op.count;
	s->steps = m->step.count;
}

void sums_release(struct sums *s)
{
	mem_free(s->mem, s->slots, s->slot_count * sizeof(*s->slots));
	s->slots = NULL;
	s->slot_count = s->used = 0;
}

/* ---- slots ---- */

static size_t hashed_slot(const struct sums *s, uint32_t op, uint32_t step)
{
	uint64_t hash = ((uint64_t)step << 32 | op) * 0x9e3779b97f4a7c15ull;
	size_t mask = s->slot_count - 1, at = (size_t)(hash >> 32) & mask;

	while (s->slots[at].op && (s->slots[at].op != op || s->slots[at].step != step))
		at = (at + 1) & mask;
	return at;
}

static size_t slot_of(const struct sums *s, uint32_t op, uint32_t step)
{
	if (!s->ops)
		return hashed_slot(s, op, step);
	OW_ASSERT(op < s->ops && step < s->steps);
	return (size_t)step * s->ops + op;
}

/* The first slots, or twice as many; NULL without memory. */
static struct sum *grow(struct sums *s)
{
	struct sums grown = { .mem = s->mem, .ops = s->ops, .steps = s->steps, .used = s->used };

	grown.slot_count =
		s->ops ? (size_t)s->ops * s->steps : MAX(s->slot_count * 2, (size_t)1024);
	grown.slots = mem_zalloc(s->mem, grown.slot_count * sizeof(*grown.slots));
	if (!grown.slots)
		return NULL;
	for (size_t i = 0; s->slots && i < s->slot_count; i++)
		if (s->slots[i].op)
			grown.slots[slot_of(&grown, s->slots[i].op, s->slots[i].step)] =
				s->slots[i];
	mem_free(s->mem, s->slots, s->slot_count * sizeof(*s->slots));
	*s = grown;
	return grown.slots;
}

struct sum *sums_find_slot(struct sums *s, uint32_t op, uint32_t step)
{
	struct sum *slots = s->slots, *sum;

	if (!slots || (!s->ops && s->used * 2 >= s->slot_count))
		slots = grow(s);
	if (!slots)
		return NULL;
	sum = &slots[slot_of(s, op, step)];
	if (!sum->op) {
		*sum = (struct sum){
			.op = op, .step = step, .first = INT64_MAX, .last = INT64_MIN
		};
		s->used++;
	}
	return sum;
}

bool sums_add_all(struct sums *to, const struct sums *from)
{
	for (size_t i = 0; i < from->slot_count; i++) {
		const struct sum *s = &from->slots[i];
		struct sum *all;

		if (!s->op)
			continue;
		all = sums_find(to, s->op, s->step);
		if (!all)
			return false;
		all->runs += s->runs;
		all->cpu = sums_add_times(all->cpu, s->cpu);
		all->accelerator = sums_add_times(all->accelerator, s->accelerator);
		all->first = MIN(all->first, s->first);
		all->last = MAX(all->last, s->last);
	}
	return true;
}

/* ---- rows ---- */

static void add_to_rows(struct sums *sums, struct builder *b)
{
	struct op_step_table *t = &b->m->op_step;

	for (uint32_t i = 1; sums->slots && i < t->count; i++) {
		struct sum *s = &sums->slots[slot_of(sums, t->op[i].v, t->step[i].v)];

		if (!s->op || !s->runs)
			continue;
		t->run_count[i] = sums_add_times(t->run_count[i], s->runs);
		t->cpu_ns[i] = sums_add_times(t->cpu_ns[i], s->cpu);
		t->accelerator_ns[i] = sums_add_times(t->accelerator_ns[i], s->accelerator);
		t->first_start_ns[i] =
			t->first_start_ns[i] ? MIN(t->first_start_ns[i], s->first) : s->first;
		t->latest_end_ns[i] = MAX(t->latest_end_ns[i], s->last);
		s->runs = 0; /* stored */
	}
}

static void add_row(const struct sum *s, struct builder *b)
{
	builder_add_op_step(b, &(struct op_step_row){ .op = { s->op },
						      .step = { s->step },
						      .run_count = s->runs,
						      .accelerator_ns = s->accelerator,
						      .cpu_ns = s->cpu,
						      .first_start_ns = s->first,
						      .latest_end_ns = s->last });
}

static int by_op_and_step(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static void store_hashed(struct sums *sums, struct builder *b)
{
	size_t count = 0;

	for (size_t i = 0; i < sums->slot_count; i++)
		if (sums->slots[i].op && sums->slots[i].runs)
			sums->slots[count++] = sums->slots[i];
	if (count)
		qsort(sums->slots, count, sizeof(*sums->slots), by_op_and_step);
	for (size_t i = 0; i < count; i++)
		add_row(&sums->slots[i], b);
}

void sums_store(struct sums *sums, struct builder *b)
{
	add_to_rows(sums, b);
	if (!sums->ops) {
		store_hashed(sums, b);
		return;
	}
	if (sums->used && !builder_grow(b, TABLE_op_step, (uint32_t)sums->used))
		return;
	for (uint32_t op = 0; sums->slots && op < sums->ops; op++)
		for (uint32_t step = 0; step < sums->steps; step++) {
			const struct sum *s = &sums->slots[(size_t)step * sums->ops + op];

			if (s->op && s->runs)
				add_row(s, b);
		}
}
