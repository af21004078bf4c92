/*
 * freeze.c: turns a builder's rows into a readable model: resolves input edges, sorts and indexes per-op rows, computes
 * the ranges of steps. Each pass is skipped when its rows are sorted already, which is the common case, so freezing
 * costs little.
 */
#include "model/builder.h"

#include "model/backing.h"
#include "model/heap_order.h"
#include "model/nest.h"

static void resolve_inputs(struct builder *b)
{
	struct model *m = b->m;

	for (uint32_t i = 1; i < m->op_input.count; i++)
		if (!m->op_input.src[i].v)
			m->op_input.src[i] = builder_find_op(b, m->op_input.name[i]);
}

/* Makes order[]: rows 1… of a table, stably sorted by key (< keys); the counts are reused as positions. */
static uint32_t *counting_order(struct builder *b, const uint32_t *key, uint32_t count,
				uint32_t keys)
{
	struct mem *mem = b->m->mem;
	uint32_t *start = mem_zalloc(mem, ((size_t)keys + 1) * sizeof(*start));
	uint32_t *order = start ? mem_alloc(mem, (size_t)count * sizeof(*order)) : NULL;

	if (!order) {
		if (start)
			mem_free(mem, start, ((size_t)keys + 1) * sizeof(*start));
		builder_no_memory(b);
		return NULL;
	}
	for (uint32_t i = 1; i < count; i++)
		start[key[i] + 1]++;
	for (uint32_t k = 0; k < keys; k++)
		start[k + 1] += start[k];
	order[0] = 0;
	for (uint32_t i = 1; i < count; i++)
		order[1 + start[key[i]]++] = i;
	mem_free(mem, start, ((size_t)keys + 1) * sizeof(*start));
	return order;
}

/* Memory of columns that were just moved, reused for the next column of the same width: allocating new memory would
 * cost more than the sorting. */
struct spares {
	void *narrow, *wide; /* columns of four bytes, and of eight bytes */
};

static void **spare_of(struct spares *spares, size_t size)
{
	return size == 8 ? &spares->wide : size == 4 ? &spares->narrow : NULL;
}

static void sort_column(void *to, const void *from, size_t size, const uint32_t *order,
			uint32_t count)
{
	switch (size) {
	case 8:
		for (uint32_t i = 0; i < count; i++)
			((uint64_t *)to)[i] = ((const uint64_t *)from)[order[i]];
		break;
	case 4:
		for (uint32_t i = 0; i < count; i++)
			((uint32_t *)to)[i] = ((const uint32_t *)from)[order[i]];
		break;
	default:
		for (uint32_t i = 0; i < count; i++)
			memcpy((char *)to + i * size, (const char *)from + order[i] * size, size);
	}
}

static ow_status permute_column(struct builder *b, const struct column_info *info, void **column,
				const uint32_t *order, uint32_t count, uint32_t cap,
				struct spares *spares)
{
	void **spare = spare_of(spares, info->size), *sorted = spare ? *spare : NULL;

	if (spare)
		*spare = NULL;
	if (!sorted)
		sorted = mem_alloc(b->m->mem, (size_t)cap * info->size);
	if (!sorted)
		return builder_no_memory(b);
	sort_column(sorted, *column, info->size, order, count);
	if (info->need != NEED_ALWAYS) /* unwritten values must read as zero */
		memset((char *)sorted + (size_t)count * info->size, 0,
		       (size_t)(cap - count) * info->size);
	if (spare && !backing_has(b->m, *column))
		*spare = *column;
	else if (!backing_has(b->m, *column))
		mem_free(b->m->mem, *column, (size_t)cap * info->size);
	*column = sorted;
	return OW_OK;
}

/* Moves the rows of a table into this order, one column at a time. */
ow_status builder_permute(struct builder *b, enum table_id table, const uint32_t *order)
{
	const struct table_info *info = &model_tables[table];
	char *head = (char *)b->m + info->offset;
	uint32_t count = ((uint32_t *)(void *)head)[0], cap = ((uint32_t *)(void *)head)[1];
	struct spares spares = { 0 };
	ow_status status = OW_OK;

	for (uint32_t c = 0; c < info->column_count && status == OW_OK; c++) {
		void **column = (void **)(void *)(head + info->columns[c].offset);

		if (*column)
			status = permute_column(b, &info->columns[c], column, order, count, cap,
						&spares);
	}
	mem_free(b->m->mem, spares.narrow, (size_t)cap * 4);
	mem_free(b->m->mem, spares.wide, (size_t)cap * 8);
	return status;
}

static bool is_sorted(const uint32_t *key, uint32_t count)
{
	for (uint32_t i = 2; i < count; i++)
		if (key[i] < key[i - 1])
			return false;
	return true;
}

/* Whether the rows of a table match those of op_step one by one. */
static bool is_one_to_one(const uint32_t *key, uint32_t count, uint32_t rows)
{
	if (count != rows)
		return false;
	for (uint32_t i = 1; i < count; i++)
		if (key[i] != i)
			return false;
	return true;
}

/* Updates references to rows of op_step after these were sorted. */
static ow_status renumber(struct builder *b, uint32_t *ref, uint32_t count, const uint32_t *order,
			  uint32_t rows)
{
	uint32_t *where = mem_alloc(b->m->mem, (size_t)rows * sizeof(*where));

	if (!where)
		return builder_no_memory(b);
	for (uint32_t i = 0; i < rows; i++)
		where[order[i]] = i;
	for (uint32_t i = 1; i < count; i++)
		ref[i] = where[ref[i]];
	mem_free(b->m->mem, where, (size_t)rows * sizeof(*where));
	return OW_OK;
}

struct numbered {
	int64_t number;
	uint32_t row;
};

static int by_number(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* The rank of each step by its number, which is the sort key of op_step. */
static uint32_t *step_ranks(struct builder *b)
{
	struct model *m = b->m;
	uint32_t count = m->step.count;
	uint32_t *rank = mem_zalloc(m->mem, (size_t)count * sizeof(*rank));
	struct numbered *steps = rank ? mem_alloc(m->mem, count * sizeof(*steps)) : NULL;

	if (!steps) {
		if (rank)
			mem_free(m->mem, rank, (size_t)count * sizeof(*rank));
		builder_no_memory(b);
		return NULL;
	}
	for (uint32_t i = 1; i < count; i++)
		steps[i] = (struct numbered){ m->step.number[i], i };
	qsort(steps + 1, count - 1, sizeof(*steps), by_number);
	for (uint32_t i = 1; i < count; i++)
		rank[steps[i].row] = i;
	mem_free(m->mem, steps, count * sizeof(*steps));
	return rank;
}

/* Sorts the memory rows together with op_step, if each row has exactly one: most ops report their memory once in
 * every step they run in. */
static ow_status permute_one_to_one(struct builder *b, const uint32_t *order)
{
	uint32_t *op_step;
	ow_status status = builder_permute(b, TABLE_memory, order);

	op_step = b->m->memory.op_step;
	for (uint32_t i = 0; i < b->m->memory.count && status == OW_OK; i++)
		op_step[i] = i;
	return status;
}

static ow_status order_op_steps(struct builder *b, const uint32_t *key, uint32_t keys)
{
	struct model *m = b->m;
	uint32_t *order;
	ow_status status;

	if (is_sorted(key, m->op_step.count))
		return OW_OK;
	order = counting_order(b, key, m->op_step.count, keys);
	if (!order)
		return b->status;
	status = builder_permute(b, TABLE_op_step, order);
	if (status == OW_OK && is_one_to_one(m->memory.op_step, m->memory.count, m->op_step.count))
		status = permute_one_to_one(b, order);
	else if (status == OW_OK)
		status = renumber(b, m->memory.op_step, m->memory.count, order, m->op_step.count);
	if (status == OW_OK)
		status = renumber(b, m->alloc.op_step, m->alloc.count, order, m->op_step.count);
	mem_free(m->mem, order, (size_t)m->op_step.count * sizeof(*order));
	return status;
}

static int64_t step_number(const struct model *m, uint32_t op_step)
{
	return m->step.number[m->op_step.step[op_step].v];
}

static ow_status sort_by_step(struct builder *b)
{
	struct model *m = b->m;
	uint32_t count = m->op_step.count, i = 2;
	uint32_t *rank, *key;
	ow_status status;

	while (i < count && step_number(m, i - 1) <= step_number(m, i))
		i++;
	if (i >= count)
		return OW_OK;
	rank = step_ranks(b);
	if (!rank)
		return b->status;
	key = mem_alloc(m->mem, (size_t)count * sizeof(*key));
	if (key) {
		for (i = 1; i < count; i++)
			key[i] = rank[m->op_step.step[i].v];
		status = order_op_steps(b, key, m->step.count);
		mem_free(m->mem, key, (size_t)count * sizeof(*key));
	} else {
		status = builder_no_memory(b);
	}
	mem_free(m->mem, rank, (size_t)m->step.count * sizeof(*rank));
	return status;
}

/* Sorts op_step: a stable sort by step number, then by op. */
static ow_status sort_op_steps(struct builder *b)
{
	const struct model *m = b->m;
	uint32_t count = m->op_step.count, i = 2;

	while (i < count && (m->op_step.op[i - 1].v < m->op_step.op[i].v ||
			     (m->op_step.op[i - 1].v == m->op_step.op[i].v &&
			      step_number(m, i - 1) <= step_number(m, i))))
		i++;
	if (i >= count)
		return OW_OK;
	OW_TRY(sort_by_step(b));
	return order_op_steps(b, &m->op_step.op->v, m->op.count);
}

static ow_status sort_by_op_step(struct builder *b, enum table_id table, const uint32_t *key,
				 uint32_t count)
{
	uint32_t *order;
	ow_status status;

	if (is_sorted(key, count))
		return OW_OK;
	order = counting_order(b, key, count, b->m->op_step.count);
	if (!order)
		return b->status;
	status = builder_permute(b, table, order);
	mem_free(b->m->mem, order, (size_t)count * sizeof(*order));
	return status;
}

/* Sets the first memory row of each op_step, unless it is the row of the same number (model_memory_of). A model from
 * an .opw file may be frozen for the second time. */
static ow_status index_memory(struct builder *b)
{
	struct op_step_table *t = &b->m->op_step;
	const struct memory_table *memory = &b->m->memory;

	if (!t->memory_first && !t->memory_count &&
	    (memory->count == 1 || is_one_to_one(memory->op_step, memory->count, t->count)))
		return OW_OK;
	if (!builder_need_column(b, TABLE_op_step, offsetof(struct op_step_table, memory_first)) ||
	    !builder_need_column(b, TABLE_op_step, offsetof(struct op_step_table, memory_count)))
		return b->status;
	OW_ASSERT(t->memory_first && t->memory_count);
	memset(t->memory_first, 0, t->count * sizeof(*t->memory_first));
	memset(t->memory_count, 0, t->count * sizeof(*t->memory_count));
	for (uint32_t i = 1; i < memory->count; i++) {
		uint32_t row = memory->op_step[i];

		if (!t->memory_count[row]++)
			t->memory_first[row] = i;
	}
	return OW_OK;
}

static void index_op_steps(struct model *m)
{
	memset(m->op.step_first, 0, m->op.count * sizeof(*m->op.step_first));
	memset(m->op.step_count, 0, m->op.count * sizeof(*m->op.step_count));
	for (uint32_t i = 1; i < m->op_step.count; i++) {
		uint32_t op = m->op_step.op[i].v;

		if (!m->op.step_count[op]++)
			m->op.step_first[op] = i;
	}
}

void builder_widen_step(struct builder *b, step_id step, int64_t start, int64_t end)
{
	struct model *m = b->m;
	int64_t *first = &m->step.start_ns[step.v], *last = &m->step.end_ns[step.v];

	if (!step.v)
		return;
	if (*first == TIME_UNKNOWN || start < *first)
		*first = start;
	if (*last == TIME_UNKNOWN || end > *last)
		*last = end;
}

/* Computes the ranges of steps without markers. Neighbouring events mostly belong to one step. */
static void find_step_spans(struct builder *b)
{
	const struct event_table *e = &b->m->event;

	for (uint32_t i = 1; i < e->count;) {
		step_id step = e->step[i];
		int64_t first = e->ts_ns[i], last = INT64_MIN;

		for (; i < e->count && e->step[i].v == step.v; i++) {
			int64_t dur = e->dur_ns[i] == TIME_UNKNOWN ? 0 : e->dur_ns[i];

			first = MIN(first, e->ts_ns[i]);
			last = MAX(last, wrap_add(e->ts_ns[i], dur));
		}
		builder_widen_step(b, step, first, last);
	}
}

static bool samples_in_order(const struct sample_table *s)
{
	for (uint32_t i = 2; i < s->count; i++)
		if (s->track[i - 1].v > s->track[i].v ||
		    (s->track[i - 1].v == s->track[i].v && s->ts_ns[i - 1] > s->ts_ns[i]))
			return false;
	return true;
}

/* Merges two sorted runs of rows, order[0, middle) and order[middle, count). */
static void merge_runs(const int64_t *ts, uint32_t *order, uint32_t middle, uint32_t count,
		       uint32_t *scratch)
{
	uint32_t a = 0, b = middle, to;

	while (a < middle && ts[order[a]] <= ts[order[middle]])
		a++;
	to = a;
	memcpy(scratch + a, order + a, (size_t)(middle - a) * sizeof(*order));
	while (a < middle && b < count)
		order[to++] = ts[order[b]] < ts[scratch[a]] ? order[b++] : scratch[a++];
	memcpy(order + to, scratch + a, (size_t)(middle - a) * sizeof(*order));
}

/* Sorts the rows of one track, which consist of a few sorted runs, one for each time on a processor. Runs wait on a
 * stack until those above are not much shorter, which balances the merges. */
static void order_track(const struct sample_table *s, uint32_t *order, uint32_t count,
			uint32_t *scratch)
{
	uint32_t starts[80], depth = 0, at = 0;

	while (at < count) {
		starts[depth++] = at++;
		while (at < count && s->ts_ns[order[at - 1]] <= s->ts_ns[order[at]])
			at++;
		while (depth > 1 &&
		       (at == count || depth == ARRAY_COUNT(starts) ||
			starts[depth - 1] - starts[depth - 2] <= 2 * (at - starts[depth - 1]))) {
			uint32_t first = starts[depth - 2];

			merge_runs(s->ts_ns, order + first, starts[depth - 1] - first, at - first,
				   scratch);
			depth--;
		}
	}
}

/* Whether the weight of a sample may be negative: released memory is. */
static bool may_be_negative(const struct model *m, uint32_t sample)
{
	return str_eq(model_str(m, m->metric.unit[m->sample.metric[sample].v]), STR("bytes"));
}

/* Sets impossible weights to 0. Weights have any unit: where the sum of the others does not fit, views show the
 * limit. */
static void check_weights(struct builder *b)
{
	struct sample_table *s = &b->m->sample;
	uint64_t negative = 0, large = 0;
	double sum = 0;

	for (uint32_t i = 1; i < s->count; i++) {
		if (OW_LIKELY(s->weight[i] >= 0 && s->weight[i] <= WEIGHT_MAX)) {
			sum += (double)s->weight[i];
			continue;
		}
		if (s->weight[i] < 0 && s->weight[i] >= -WEIGHT_MAX && may_be_negative(b->m, i))
			continue;
		negative += s->weight[i] < 0;
		large += s->weight[i] > WEIGHT_MAX;
		s->weight[i] = 0;
	}
	if (large)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, large,
				  "weights of samples above 10^18 are ignored: they count as 0");
	if (negative)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, negative,
				  "negative weights of samples are ignored: they count as 0 (for "
				  "the difference of two profiles use 'opwatch diff')");
	if (sum >= (double)INT64_MAX)
		builder_note(b, NOTE_DAMAGED, OW_NO_OFFSET,
			     "the weights of the samples add up to more than 64 bits: sums stop at "
			     "the limit");
}

/* Sorts samples by track and time; no other rows refer to samples. */
static ow_status sort_samples(struct builder *b)
{
	const struct sample_table *s = &b->m->sample;
	size_t size = (size_t)s->count * sizeof(uint32_t);
	uint32_t *order, *scratch, first = 1;
	ow_status status;

	if (samples_in_order(s))
		return OW_OK;
	order = counting_order(b, &s->track->v, s->count, b->m->track.count);
	scratch = order ? mem_alloc(b->m->mem, size) : NULL;
	if (!scratch) {
		mem_free(b->m->mem, order, order ? size : 0);
		return builder_no_memory(b);
	}
	for (uint32_t i = 1; i <= s->count; i++) {
		if (i < s->count && s->track[order[i]].v == s->track[order[first]].v)
			continue;
		order_track(s, order + first, i - first, scratch);
		first = i;
	}
	mem_free(b->m->mem, scratch, size);
	status = builder_permute(b, TABLE_sample, order);
	mem_free(b->m->mem, order, size);
	return status;
}

ow_status model_freeze(struct builder *b)
{
	struct model *m = b->m;

	if (b->status != OW_OK)
		return b->status;
	if (m->backing && m->backing->frozen) {
		m->frozen = true;
		return OW_OK;
	}
	if (model_thaw(m, b->err) != OW_OK)
		return builder_fail(b, b->err ? b->err->status : OW_E_CORRUPT);
	resolve_inputs(b);
	OW_TRY(nest_events(b));
	OW_TRY(sort_op_steps(b));
	OW_TRY(sort_by_op_step(b, TABLE_memory, m->memory.op_step, m->memory.count));
	OW_TRY(sort_by_op_step(b, TABLE_alloc, m->alloc.op_step, m->alloc.count));
	OW_TRY(order_heap(b));
	OW_TRY(sort_samples(b));
	m->has_code |= m->sample.count > 1;
	OW_TRY(index_memory(b));
	index_op_steps(m);
	find_step_spans(b);
	check_weights(b);
	if (!m->time_unit_ns)
		m->time_unit_ns = 1;
	m->frozen = true;
	return OW_OK;
}

/* Drops the data made for readers of the frozen rows. */
void model_unfreeze(struct model *m)
{
	OW_ASSERT(m->frozen);
	deferred_forget(m, DEFERRED_name_order);
	deferred_forget(m, DEFERRED_nesting);
	deferred_forget(m, DEFERRED_traces);
	deferred_forget(m, DEFERRED_stacks);
	/* the freeze chose this unit, not a source */
	if (m->event.count == 1 && m->op_step.count == 1)
		m->time_unit_ns = 0;
	m->frozen = false;
}
