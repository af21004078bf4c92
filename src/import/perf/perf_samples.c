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

static int64_t weight_of(uint64_t period)
{
	return (int64_t)MIN(period, (uint64_t)INT64_MAX);
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
static bool in_run(const struct perf_rows *r, const struct sample *s)
{
	const struct perf_run *run;

	if (!r->run_count)
		return false;
	run = &r->runs[r->run_count - 1];
	return s->ts >= r->last && run->thread == s->thread && run->cpu == s->cpu &&
	       (uint64_t)s->ts - (uint64_t)run->from <= UINT32_MAX;
}

/* Whether it is known which chain an address alone is. */
static inline bool is_alone(const struct perf_file *f, const unsigned char *words, int32_t pid,
			    uint32_t event, uint32_t shape, uint32_t *chain)
{
	uint64_t address = perf_u64(words, false);
	const struct perf_alone *alone = perf_alone_of(f, address, pid, event, shape);

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
	if (s->words && perf_shape_count(s->shape) == 1 &&
	    is_alone(f, s->words, s->pid, s->event, s->shape, &row->chain))
		return true;
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

/* ---- many of them ---- */

#define HAS(bit) ((uint64_t)1 << SAMPLE_##bit)
#define USUAL (HAS(IP) | HAS(TID) | HAS(TIME))

/* Whether samples like the last are of the usual kind, in the order of bytes of this machine. */
static bool is_usual(const struct perf_file *f)
{
	const struct perf_rows *r = &f->rows;
	uint64_t type = r->run_count ? f->events[r->event].attr.sample_type : 0;

	return !f->swap && (type & USUAL) == USUAL && !(type & HAS(READ)) && r->last >= 0 &&
	       !r->weights == !(type & HAS(PERIOD));
}

/* Reads samples for which nothing but a row is to be made: of the usual kind, of the same event, and in the last run. Returns how
 * many bytes; *status changes when there is no memory. */
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
		if (count == 1 && is_alone(f, words, pid, event, shape, &rows[row].chain))
			continue;
		f->later[f->later_count] = (struct perf_later){ .words = words,
								.pid = pid,
								.row = (uint32_t)row,
								.shape = shape,
								.event = event };
		if (!perf_chain_later(f)) {
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

	if (OW_UNLIKELY(!f->alone))
		f->alone = mem_zalloc(f->mem, PERF_ALONE * sizeof(*f->alone));
	if (!f->alone)
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
