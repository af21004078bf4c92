/*
 * perf_samples.c: the samples of perf.data, see perf_data.h. There are millions, so little is done for each: what follows
 * from its thread and processor is kept once per run of samples, and what its addresses mean is found when all is read
 * (perf_resolve.c).
 */
#include "import/perf_data.h"

#define SAMPLE_MIN 24 /* bytes of a short one */
#define GROUP_MAX 256 /* counters that are read together */

/* What a sample says. */
struct sample {
	int64_t ts, weight;
	uint32_t thread, event;
	int32_t pid, cpu; /* cpu: + 1 */
	uint16_t shape;
	bool weighs; /* it says how much */
	const unsigned char *words;
};

static ow_status no_memory(struct perf_file *f)
{
	return builder_fail(f->b, error_no_memory(f->ctx->err));
}

/* ---- rows ---- */

/* How many more samples there will be, if the rest of the file is like what was read of it: rows that do not move are cheaper. */
static size_t expected(const struct perf_file *f)
{
	uint64_t done = f->at > f->data_at ? f->at - f->data_at : 0;
	uint64_t left = f->data_end > f->at ? f->data_end - f->at : 0;
	double more = done ? (double)f->rows.count / (double)done * (double)left : 0;

	if (f->mem->limit) /* then only what is needed for sure */
		return 1;
	return (size_t)MAX(MIN(more * 1.02, (double)left / SAMPLE_MIN), 1);
}

static bool grow(struct perf_file *f, void **items, size_t *cap, size_t size)
{
	size_t want = f->rows.count + expected(f);
	void *moved;

	if (want > *cap + *cap / 2) { /* mem_grow takes more than it is asked for */
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
	bool ok = r->count < UINT32_MAX - 1 && grow(f, &items, &r->cap, sizeof(*r->items));

	r->items = items;
	return ok;
}

static bool grow_weights(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;
	void *weights = r->weights;
	bool ok = grow(f, &weights, &r->weight_cap, sizeof(*r->weights));

	r->weights = weights;
	return ok;
}

/* The first that says how much: now all of them do. */
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
	void *runs = r->runs;

	if (!mem_grow(f->mem, &runs, &r->run_cap, r->run_count + 1, sizeof(*r->runs)))
		return false;
	r->runs = runs;
	r->has_cpu |= s->cpu != 0;
	r->runs[r->run_count++] = (struct perf_run){
		.from = s->ts, .first = (uint32_t)r->count, .thread = s->thread, .cpu = s->cpu
	};
	return true;
}

/* Whether a sample goes on with the last run. Samples without a time have runs of their own. */
static inline bool in_run(const struct perf_rows *r, const struct sample *s)
{
	const struct perf_run *run = &r->runs[r->run_count - 1];

	return r->run_count && s->ts >= r->last && run->thread == s->thread && run->cpu == s->cpu &&
	       (uint64_t)s->ts - (uint64_t)run->from <= UINT32_MAX;
}

OW_ALWAYS_INLINE bool add_row(struct perf_file *f, const struct sample *s)
{
	struct perf_rows *r = &f->rows;
	const struct perf_alone *alone;
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
	if (s->words && perf_shape_count(s->shape) == 1) {
		uint64_t address = perf_u64(s->words, false);

		alone = perf_alone_of(f, address, s->pid, s->event, s->shape);
		row->chain = alone->chain;
		if (OW_LIKELY(alone->chain && alone->address == address && alone->pid == s->pid &&
			      alone->event == s->event && alone->shape == s->shape))
			return true;
	}
	f->later[f->later_count] = (struct perf_later){ .words = s->words,
							.pid = s->pid,
							.row = (uint32_t)(r->count - 1),
							.shape = s->shape,
							.event = (uint16_t)s->event };
	return perf_chain_later(f);
}

void perf_rows_release(struct perf_file *f)
{
	struct perf_rows *r = &f->rows;

	mem_free(f->mem, r->items, r->cap * sizeof(*r->items));
	mem_free(f->mem, r->weights, r->weight_cap * sizeof(*r->weights));
	mem_free(f->mem, r->runs, r->run_cap * sizeof(*r->runs));
	*r = (struct perf_rows){ 0 };
}

/* ---- what a record says ---- */

/* Who wrote it, and so what is where in it. */
OW_ALWAYS_INLINE const struct perf_attr *attr_of(const struct perf_file *f,
						 const unsigned char *body, size_t size, bool swap,
						 uint32_t *event)
{
	const struct perf_attr *attr;

	*event = 0;
	if (!f->event_count)
		return NULL;
	attr = &f->events[0].attr;
	if (attr->layout.size > size)
		return NULL;
	if (f->event_count == 1 || attr->layout.id == PERF_ABSENT)
		return attr;
	*event = perf_event_of(f, perf_u64(body + attr->layout.id, swap), 0);
	attr = &f->events[*event].attr;
	return attr->layout.size > size ? NULL : attr;
}

/* The thread of a sample, when it is not that of the one before. */
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

/* What a counter stood at in the sample before; 0 at first. */
static uint64_t *last_read(struct perf_file *f, uint64_t id)
{
	uint64_t hash = map_hash_u64(id, 37);
	void *reads = f->reads;

	for (struct map_iter it = map_find(&f->read_map, hash); it.value;
	     it = map_next(&f->read_map, it))
		if (f->reads[it.value - 1].id == id)
			return &f->reads[it.value - 1].value;
	if (f->read_count >= UINT32_MAX - 1 ||
	    !mem_grow(f->mem, &reads, &f->read_cap, f->read_count + 1, sizeof(*f->reads)))
		return NULL;
	f->reads = reads;
	f->reads[f->read_count++] = (struct perf_value){ .id = id };
	if (!map_add(&f->read_map, hash, (uint32_t)f->read_count))
		return NULL;
	return &f->reads[f->read_count - 1].value;
}

/* `perf record -e '{a,b}:S'`: a sample of one event tells what each of its group counted since the one before. */
static ow_status add_group(struct perf_file *f, const struct perf_attr *attr,
			   struct perf_bytes rest, struct sample *s)
{
	struct perf_value values[GROUP_MAX];
	size_t count = perf_take_values(attr, &rest, values, GROUP_MAX);

	if (!count)
		perf_note_bad(f);
	for (size_t i = 0; i < count; i++) {
		uint64_t *last = last_read(f, values[i].id), more;

		if (!last)
			return no_memory(f);
		more = values[i].value - *last;
		*last = values[i].value;
		s->event = perf_event_of(f, values[i].id, UINT32_MAX);
		s->weight = (int64_t)MIN(more, (uint64_t)INT64_MAX);
		s->weighs = true;
		if (more && s->event != UINT32_MAX && !add_row(f, s))
			return no_memory(f);
	}
	return OW_OK;
}

OW_ALWAYS_INLINE ow_status read_sample(struct perf_file *f, const unsigned char *record,
				       size_t size, bool swap)
{
	const unsigned char *p = record + 8;
	struct sample s = { .ts = TIME_UNKNOWN };
	const struct perf_attr *attr = attr_of(f, p, size - 8, swap, &s.event);
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
		return no_memory(f);
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
		s.weight = (int64_t)MIN(perf_u64(p + l->period, swap), (uint64_t)INT64_MAX);
	else if (f->rows.weights)
		s.weight = perf_event_weight(attr);
	if (OW_UNLIKELY(perf_attr_reads(attr)))
		return add_group(f, attr, rest, &s);
	return OW_LIKELY(add_row(f, &s)) ? OW_OK : no_memory(f);
bad:
	perf_note_bad(f);
	return OW_OK;
}

OW_ALWAYS_INLINE ow_status read_samples(struct perf_file *f, const unsigned char *p, size_t len,
					bool swap, size_t *used, uint64_t *records)
{
	uint64_t start = f->at;
	size_t at = 0, size = perf_u16(p + 6, swap);
	ow_status status;

	do {
		f->at = start + at;
		status = read_sample(f, p + at, size, swap);
		at += size;
		++*records;
		if (status != OW_OK || len - at < 8 || perf_u32(p + at, swap) != PERF_SAMPLE)
			break;
		size = perf_u16(p + at + 6, swap);
	} while (size >= 8 && size <= len - at);
	*used += at;
	return status;
}

ow_status perf_samples_read(struct perf_file *f, const unsigned char *p, size_t len, size_t *used,
			    uint64_t *records)
{
	if (OW_UNLIKELY(!f->alone))
		f->alone = mem_zalloc(f->mem, PERF_ALONE * sizeof(*f->alone));
	if (!f->alone)
		return no_memory(f);
	return f->swap ? read_samples(f, p, len, true, used, records)
		       : read_samples(f, p, len, false, used, records);
}
