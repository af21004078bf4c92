/*
 * follow_cut.c: a part of a followed recording as a recording of its own; see follow.h. Its first segment says again
 * what was said before that part began; then come the segments, with other numbers for stacks: a part may be of several
 * files, of which each has its own.
 */
#include "live/follow_int.h"

#include "base/error.h"
#include "live/recording.h"
#include "live/stack_copy.h"

#define WRITER "opwatch"
#define COUNTS_BEFORE_NS ((int64_t)2000000000) /* rates need the value before */

struct cutting {
	struct follow *f;
	struct follow_range *range;
	size_t first, last; /* segments: [first, last) */
	struct recording out;
	struct stack_copy stacks;
	const struct follow_stacks *numbers; /* whose numbers it knows */
	struct buf bytes;		     /* a segment */
	struct str blocks[LIVE_BLOCKS];	     /* its blocks */
};

/* ---- who is in it ---- */

/* Of an exact part only processes that did something. */
static bool is_wanted(const struct cutting *c, uint32_t number)
{
	const struct follow_process *p;

	if (!c->range->exact)
		return true;
	p = follow_process(c->f, number);
	return p && p->last_ns >= c->range->from_ns;
}

/* ---- what was said before ---- */

static bool is_before(const struct cutting *c, uint64_t segment)
{
	return segment < c->f->first_segment + c->first;
}

static void restate_process(struct cutting *c, const struct follow_process *p)
{
	struct str rest = buf_str(&p->texts), text;
	struct live_text head;
	uint64_t segment;

	if (!is_before(c, p->segment) || !is_wanted(c, p->row.number))
		return;
	recording_add_process(&c->out, &p->row);
	while (rest.len >= sizeof(segment)) {
		memcpy(&segment, rest.ptr, sizeof(segment));
		rest = str_skip(rest, sizeof(segment));
		if (!live_text_next(&rest, &head, &text))
			return;
		if (is_before(c, segment))
			recording_add_text(&c->out, head.process, (enum live_text_kind)head.kind,
					   head.number, text);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct follow_mark *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool restate_ring(struct cutting *c, const struct follow_ring *ring)
{
	struct follow_mark marks[FOLLOW_QUEUES + 1];
	const struct follow_mark *thread = NULL;
	size_t count = 0;

	if (!is_wanted(c, ring->process))
		return true;
	for (uint32_t i = 0; i < MIN(ring->thread_count, (uint32_t)FOLLOW_THREADS); i++)
		if (is_before(c, ring->threads[i].segment) &&
		    (!thread || thread->number < ring->threads[i].number))
			thread = &ring->threads[i];
	if (thread)
		marks[count++] = *thread;
	for (uint32_t i = 0; i < MIN(ring->queue_count, (uint32_t)FOLLOW_QUEUES); i++)
		if (is_before(c, ring->queues[i].segment))
			marks[count++] = ring->queues[i];
	if (!count)
		return true;
	qsort(marks, count, sizeof(*marks), by_number);
	for (size_t i = 0; i < count; i++) {
		struct live_run run = { .process = ring->process,
					.ring = ring->ring,
					.first = marks[i].number,
					.count = 1 };
		struct ring_record *to = recording_add_run(&c->out, &run);

		if (!to)
			return false;
		*to = marks[i].record;
	}
	return true;
}

/* ---- stacks ---- */

static bool take_sources(struct cutting *c, struct str block)
{
	struct live_text head;
	struct str text;

	while (live_text_next(&block, &head, &text))
		if (!head.process && head.kind == LIVE_SOURCE &&
		    !stack_copy_text(&c->stacks, head.number, text))
			return false;
	return true;
}

static bool take_stacks(struct cutting *c, struct str frames, struct str stacks)
{
	bool good = true;

	LIVE_EACH_ROW(frames, struct live_frame, row, good &= stack_copy_frame(&c->stacks, &row));
	LIVE_EACH_ROW(stacks, struct live_stack, row, good &= stack_copy_stack(&c->stacks, &row));
	return good;
}

/* The numbers of the segment's samples; what was told before the part begins is not in its blocks. */
static bool begin_numbers(struct cutting *c, size_t segment)
{
	const struct follow_segment *s = &c->f->segments[segment];
	const struct follow_stacks *numbers = follow_stacks_of(c->f, segment);

	if (numbers == c->numbers)
		return true;
	stack_copy_begin_file(&c->stacks);
	c->numbers = numbers;
	if (!numbers)
		return true;
	return take_sources(c, str_first(buf_str(&numbers->texts), s->texts)) &&
	       take_stacks(c, str_first(buf_str(&numbers->frames), s->frames),
			   str_first(buf_str(&numbers->stacks), s->stacks));
}

static bool put_samples(struct cutting *c)
{
	if (!take_sources(c, c->blocks[LIVE_BLOCK_TEXT]) ||
	    !take_stacks(c, c->blocks[LIVE_BLOCK_FRAME], c->blocks[LIVE_BLOCK_STACK]))
		return false;
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_SAMPLE], struct live_sample, row, {
		row.stack = stack_copy_number(&c->stacks, row.stack);
		if (!row.stack || !is_wanted(c, row.process) ||
		    (c->range->exact && row.ts_ns < c->range->from_ns))
			continue;
		recording_add_sample(&c->out, &row);
		c->range->samples++;
		c->range->first_ns = MIN(c->range->first_ns, row.ts_ns);
	});
	return true;
}

/* ---- records ---- */

static bool add_run(struct cutting *c, const struct live_run *run, uint32_t first, uint32_t end,
		    const char *records)
{
	struct live_run piece = *run;
	struct ring_record *to;

	piece.first += first;
	piece.count = end - first;
	to = recording_add_run(&c->out, &piece);
	if (to)
		memcpy(to, records + (size_t)first * sizeof(*to), piece.count * sizeof(*to));
	return to != NULL;
}

/* What ended before goes; what says whose the records are stays. */
static bool is_old(struct cutting *c, const char *record)
{
	struct ring_record r;
	int64_t end;

	memcpy(&r, record, sizeof(r));
	if (!follow_slice_end(&r, &end))
		return false;
	if (end < c->range->from_ns)
		return true;
	c->range->first_ns = MIN(c->range->first_ns, (int64_t)r.start_ns);
	return false;
}

/* Each piece of the run that is wanted becomes a run, and what is left keeps its numbers. */
static bool put_pieces(struct cutting *c, const struct live_run *run, const char *records)
{
	for (uint32_t i = 0, end; i < run->count; i = end + 1) {
		for (end = i; end < run->count; end++)
			if (is_old(c, records + (size_t)end * sizeof(struct ring_record)))
				break;
		if (end > i && !add_run(c, run, i, end, records))
			return false;
		c->range->records += end - i;
	}
	return true;
}

static bool put_runs(struct cutting *c)
{
	struct str records = c->blocks[LIVE_BLOCK_RECORD];
	uint64_t first = c->f->first_segment + c->first;

	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_RUN], struct live_run, run, {
		struct follow_drop before =
			follow_dropped_before(c->f, run.process, run.ring, first);

		if (run.count > records.len / sizeof(struct ring_record))
			return true; /* damaged */
		run.dropped -= MIN(run.dropped, before.dropped);
		run.dropped_marks -= MIN(run.dropped_marks, before.marks);
		if (is_wanted(c, run.process) &&
		    !(c->range->exact ? put_pieces(c, &run, records.ptr)
				      : add_run(c, &run, 0, run.count, records.ptr)))
			return false;
		records = str_skip(records, run.count * sizeof(struct ring_record));
	});
	return true;
}

/* ---- the segments ---- */

static void put_texts(struct cutting *c)
{
	struct str rest = c->blocks[LIVE_BLOCK_TEXT], text;
	struct live_text head;

	while (live_text_next(&rest, &head, &text))
		if (head.process ? is_wanted(c, head.process) : head.kind != LIVE_SOURCE)
			recording_add_text(&c->out, head.process, (enum live_text_kind)head.kind,
					   head.number, text);
}

static void put_rest(struct cutting *c)
{
	int64_t from = c->range->exact ? c->range->from_ns : INT64_MIN;

	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_PROCESS], struct live_process, row, {
		if (is_wanted(c, row.number))
			recording_add_process(&c->out, &row);
	});
	put_texts(c);
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_PLACE], struct live_place, row, {
		if (is_wanted(c, row.process))
			recording_add_place(&c->out, &row);
	});
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_COUNT], struct live_count, row, {
		if (is_wanted(c, row.process) &&
		    (from == INT64_MIN || row.ts_ns >= from - COUNTS_BEFORE_NS))
			recording_add_count(&c->out, &row);
	});
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_END], struct live_end, row, {
		if (is_wanted(c, row.process))
			recording_add_end(&c->out, &row);
	});
}

static ow_status put_restated(struct cutting *c, struct error *err)
{
	for (size_t i = 0; i < c->f->process_count; i++)
		restate_process(c, &c->f->processes[i]);
	for (size_t i = 0; i < c->f->ring_count; i++)
		if (!restate_ring(c, &c->f->rings[i]))
			return error_no_memory(err);
	return recording_flush(&c->out, err);
}

static ow_status put_segment(struct cutting *c, size_t segment, struct error *err)
{
	bool samples = !c->range->no_samples;
	unsigned wanted = (1u << LIVE_BLOCKS) - 1;

	if (!samples)
		wanted &= ~(1u << LIVE_BLOCK_FRAME | 1u << LIVE_BLOCK_STACK |
			    1u << LIVE_BLOCK_SAMPLE);
	if (!follow_read(c->f, &c->f->segments[segment], &c->bytes))
		return error_no_memory(err);
	(void)live_blocks_find(buf_str(&c->bytes), wanted, c->blocks); /* what is left of it */
	put_rest(c);
	if (!put_runs(c) || (samples && (!begin_numbers(c, segment) || !put_samples(c))))
		return error_no_memory(err);
	return recording_flush(&c->out, err);
}

/* ---- all ---- */

static bool has_since(const struct follow_segment *s, const struct follow_range *range, int64_t ns)
{
	return s->last_ns >= ns || (!range->no_samples && s->last_sample_ns >= ns);
}

/* From the last segment that has something before `to` back to the first that is wanted, or fits. */
static void choose(struct cutting *c)
{
	const struct follow *f = c->f;
	struct follow_range *range = c->range;
	int64_t from = range->from_ns;
	uint64_t bytes = 0;

	if (range->exact && from > INT64_MIN + COUNTS_BEFORE_NS)
		from -= COUNTS_BEFORE_NS;
	c->last = f->segment_count;
	while (c->last && f->segments[c->last - 1].first_ns > range->to_ns)
		c->last--;
	/* What several threads did is not written in the order in which it happened. */
	while (c->first < c->last && !has_since(&f->segments[c->first], range, from))
		c->first++;
	for (size_t i = c->last; range->bytes_max && i-- > c->first;) {
		bytes += f->segments[i].size;
		if (bytes > range->bytes_max && i + 1 < c->last)
			c->first = i + 1;
	}
}

static void count_chosen(struct cutting *c)
{
	const struct follow *f = c->f;
	struct follow_range *range = c->range;

	range->begin_ns = range->first_ns = INT64_MAX;
	range->records = range->samples = 0;
	for (size_t i = c->first; i < c->last && !range->exact; i++)
		range->records += f->segments[i].records;
	/* Slices are written when they end: what ended before the first segment is not there. */
	if (c->first < c->last)
		range->begin_ns = c->first ? f->segments[c->first - 1].last_ns : f->forgotten_ns;
}

ow_status follow_cut(struct follow *f, struct follow_range *range, const struct opw_out *out,
		     const char *writer_name, struct error *err)
{
	struct cutting c = { .f = f, .range = range };
	ow_status status, closed;

	choose(&c);
	count_chosen(&c);
	OW_TRY(recording_open_out(&c.out, f->mem, out, writer_name,
				  f->has_session ? &f->session : NULL, err));
	buf_init(&c.bytes, f->mem);
	stack_copy_init(&c.stacks, f->mem, &c.out);
	status = put_restated(&c, err);
	for (size_t i = c.first; i < c.last && status == OW_OK; i++)
		status = put_segment(&c, i, err);
	stack_copy_release(&c.stacks);
	buf_release(&c.bytes);
	closed = recording_close(&c.out, status == OW_OK ? err : NULL);
	return status != OW_OK ? status : closed;
}

static ow_status write_buf(void *arg, uint64_t offset, const void *bytes, size_t len,
			   struct error *err)
{
	struct buf *to = arg;

	if (offset + len > to->len) {
		if (!buf_reserve(to, (size_t)(offset + len) - to->len))
			return error_no_memory(err);
		memset(to->ptr + to->len, 0, (size_t)(offset + len) - to->len);
		to->len = (size_t)(offset + len);
	}
	memcpy(to->ptr + offset, bytes, len);
	return OW_OK;
}

ow_status follow_cut_buf(struct follow *f, struct follow_range *range, struct buf *to,
			 struct error *err)
{
	struct opw_out out = { write_buf, to };

	buf_clear(to);
	return follow_cut(f, range, &out, WRITER, err);
}
