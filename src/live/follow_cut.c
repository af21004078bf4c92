/*
 * follow_cut.c: a part of a followed recording as a recording of its own; see follow.h. Its first segment says again
 * what was said before that part began; then come the segments as they are.
 */
#include "live/follow.h"

#include "base/error.h"
#include "wire/crc32c.h"

#include <errno.h>
#include <unistd.h>

#define BLOCKS_MAX 16u
#define WRITER "opwatch"

struct cut {
	struct follow *f;
	struct opw_writer writer;
	size_t first, last; /* segments: [first, last) */
	bool samples;
	struct buf process, text, run, record;
	struct buf bytes; /* a segment */
};

/* ---- what was said before ---- */

static bool is_before(const struct cut *c, uint64_t segment)
{
	return segment < c->f->first_segment + c->first;
}

static void restate_texts(struct cut *c, const struct buf *texts)
{
	struct str rest = buf_str(texts);

	while (rest.len >= sizeof(uint64_t) + sizeof(struct live_text)) {
		struct live_text head;
		uint64_t segment;
		size_t size;

		memcpy(&segment, rest.ptr, sizeof(segment));
		memcpy(&head, rest.ptr + sizeof(segment), sizeof(head));
		size = (size_t)live_text_bytes(head.len);
		if (is_before(c, segment))
			buf_add(&c->text, rest.ptr + sizeof(segment), size);
		rest = str_skip(rest, sizeof(segment) + size);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct follow_mark *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void restate_ring(struct cut *c, const struct follow_ring *ring)
{
	struct follow_mark marks[FOLLOW_QUEUES + 1];
	const struct follow_mark *thread = NULL;
	size_t count = 0;

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
		return;
	qsort(marks, count, sizeof(*marks), by_number);
	for (size_t i = 0; i < count; i++) {
		struct live_run run = { .process = ring->process,
					.ring = ring->ring,
					.first = marks[i].number,
					.count = 1 };

		buf_add(&c->run, &run, sizeof(run));
		buf_add(&c->record, &marks[i].record, sizeof(marks[i].record));
	}
}

static void add_part(struct opw_part *parts, uint32_t *count, const char *name,
		     const struct buf *from, size_t value_size)
{
	if (from->len)
		parts[(*count)++] = (struct opw_part){ .name = name,
						       .type = "live",
						       .value_size = (uint32_t)value_size,
						       .size = from->len,
						       .bytes = from->ptr };
}

static ow_status put_restated(struct cut *c, struct error *err)
{
	const struct follow *f = c->f;
	const struct follow_segment *first = c->first < c->last ? &f->segments[c->first] : NULL;
	struct opw_part parts[7];
	uint32_t count = 0;

	if (c->samples)
		restate_texts(c, &f->sources);
	for (size_t i = 0; i < f->process_count; i++) {
		if (!is_before(c, f->processes[i].segment))
			continue;
		buf_add(&c->process, &f->processes[i].row, sizeof(f->processes[i].row));
		restate_texts(c, &f->processes[i].texts);
	}
	for (size_t i = 0; i < f->ring_count; i++)
		restate_ring(c, &f->rings[i]);
	if (c->process.failed || c->text.failed || c->run.failed || c->record.failed)
		return error_no_memory(err);
	if (f->has_session)
		parts[count++] = (struct opw_part){ .name = "session",
						    .type = "live",
						    .value_size = sizeof(f->session),
						    .size = sizeof(f->session),
						    .bytes = &f->session };
	add_part(parts, &count, "process", &c->process, sizeof(struct live_process));
	add_part(parts, &count, "text", &c->text, 1);
	add_part(parts, &count, "run", &c->run, sizeof(struct live_run));
	add_part(parts, &count, "record", &c->record, sizeof(struct ring_record));
	if (c->samples && first) {
		const struct buf frames = { .ptr = f->frames.ptr, .len = first->frames };
		const struct buf stacks = { .ptr = f->stacks.ptr, .len = first->stacks };

		add_part(parts, &count, "frame", &frames, sizeof(struct live_frame));
		add_part(parts, &count, "stack", &stacks, sizeof(struct live_stack));
	}
	return opw_put_segment(&c->writer, OPW_LIVE, "", 0,
			       c->record.len / sizeof(struct ring_record), parts, count, err);
}

/* ---- the segments ---- */

static bool read_all(const struct follow *f, uint32_t file, uint64_t offset, char *to, size_t len)
{
	int fd = follow_fd(f, file);

	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool is_of_samples(const char *block)
{
	return strcmp(block, "frame") == 0 || strcmp(block, "stack") == 0 ||
	       strcmp(block, "sample") == 0;
}

/* Its parts, as far as they are what was written; none when the file is not what it was. */
static uint32_t parts_of(const struct cut *c, struct opw_part *parts, struct opw_block *blocks)
{
	struct str bytes = buf_str(&c->bytes);
	struct opw_head head;
	uint32_t count = 0;

	memcpy(&head, bytes.ptr, sizeof(head));
	if (memcmp(head.magic, OPW_SEGMENT_MAGIC, sizeof(head.magic)) != 0 ||
	    head.size != bytes.len || head.kind != OPW_LIVE || head.block_count > BLOCKS_MAX ||
	    sizeof(head) + head.block_count * sizeof(*blocks) > bytes.len)
		return 0;
	memcpy(blocks, bytes.ptr + sizeof(head), head.block_count * sizeof(*blocks));
	for (uint32_t i = 0; i < head.block_count; i++) {
		struct opw_block *b = &blocks[i];

		b->name[sizeof(b->name) - 1] = b->type[sizeof(b->type) - 1] = '\0';
		if (b->offset > bytes.len || b->size > bytes.len - b->offset ||
		    !opw_same_crc(crc32c(bytes.ptr + b->offset, (size_t)b->size), b->crc) ||
		    strcmp(b->name, "session") == 0 || (!c->samples && is_of_samples(b->name)))
			continue;
		parts[count++] = (struct opw_part){ .name = b->name,
						    .type = b->type,
						    .value_size = b->value_size,
						    .size = b->size,
						    .bytes = bytes.ptr + b->offset };
	}
	return count;
}

static ow_status put_segment(struct cut *c, const struct follow_segment *s, struct error *err)
{
	struct opw_part parts[BLOCKS_MAX];
	struct opw_block blocks[BLOCKS_MAX];
	uint32_t count;

	buf_clear(&c->bytes);
	if (s->size < sizeof(struct opw_head) || s->size > SIZE_MAX)
		return OW_OK;
	if (!buf_reserve(&c->bytes, (size_t)s->size))
		return error_no_memory(err);
	if (!read_all(c->f, s->file, s->offset, c->bytes.ptr, (size_t)s->size))
		return OW_OK;
	c->bytes.len = (size_t)s->size;
	count = parts_of(c, parts, blocks);
	return count ? opw_put_segment(&c->writer, OPW_LIVE, "", 0, s->records, parts, count, err)
		     : OW_OK;
}

/* ---- all ---- */

/* From the last segment that has something before `to` back to the first that is wanted, or fits. */
static void choose(struct cut *c, struct follow_range *range)
{
	const struct follow *f = c->f;
	uint64_t bytes = 0;

	c->last = f->segment_count;
	while (c->last && f->segments[c->last - 1].first_ns > range->to_ns)
		c->last--;
	c->first = c->last;
	range->begin_ns = INT64_MAX;
	range->records = 0;
	while (c->first && f->segments[c->first - 1].last_ns >= range->from_ns) {
		const struct follow_segment *s = &f->segments[c->first - 1];

		bytes += s->size;
		if (range->bytes_max && bytes > range->bytes_max && c->first < c->last)
			break;
		range->records += s->records;
		c->first--;
	}
	/* Slices are written when they end: what ended before the first segment is not there. */
	if (c->first < c->last)
		range->begin_ns = c->first ? f->segments[c->first - 1].last_ns : f->forgotten_ns;
}

ow_status follow_cut(struct follow *f, struct follow_range *range, const struct opw_out *out,
		     const char *writer_name, struct error *err)
{
	struct cut c = { .f = f, .samples = !range->no_samples && !f->stacks_lost };
	struct buf *all[] = { &c.process, &c.text, &c.run, &c.record, &c.bytes };
	ow_status status;
	uint64_t size;

	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_init(all[i], f->mem);
	opw_writer_init(&c.writer, f->mem, out);
	choose(&c, range);
	status = opw_put_header(&c.writer, writer_name, err);
	if (status == OW_OK)
		status = put_restated(&c, err);
	for (size_t i = c.first; i < c.last && status == OW_OK; i++)
		status = put_segment(&c, &f->segments[i], err);
	if (status == OW_OK)
		status = opw_put_footer(&c.writer, &size, err);
	opw_writer_release(&c.writer);
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_release(all[i]);
	return status;
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
