/* follow_take.c: what the blocks of a segment tell, kept for later ones; see follow.h. The file is follow.c's. */
#include "live/follow_int.h"

#define TEXTS_MAX ((size_t)4 << 20) /* of one process */
#define STACKS_MAX ((size_t)64 << 20)
#define PROCESSES_MAX 65536u
#define RINGS_MAX 65536u
#define SEGMENTS_MAX 65536u

/* ---- what segments say ---- */

static uint64_t this_segment(const struct follow *f)
{
	return f->first_segment + f->segment_count;
}

static struct follow_process *process_find(const struct follow *f, uint32_t number)
{
	for (size_t i = f->process_count; i-- > 0;)
		if (f->processes[i].row.number == number)
			return &f->processes[i];
	return NULL;
}

static bool take_process(struct follow *f, const struct live_process *row)
{
	void *list = f->processes;

	if (!row->number || process_find(f, row->number) || f->process_count >= PROCESSES_MAX)
		return true;
	if (!mem_grow(f->mem, &list, &f->process_cap, f->process_count + 1, sizeof(*f->processes)))
		return false;
	f->processes = list;
	f->processes[f->process_count] =
		(struct follow_process){ .row = *row, .segment = this_segment(f) };
	buf_init(&f->processes[f->process_count++].texts, f->mem);
	return true;
}

/* Texts of process 0 are of all. */
static bool take_text(struct follow *f, const struct live_text *head, const char *bytes)
{
	struct follow_process *p = process_find(f, head->process);
	struct buf *to = p ? &p->texts : !head->process ? &f->sources : NULL;
	size_t size = (size_t)live_text_bytes(head->len);
	uint64_t segment = this_segment(f);

	if (!to)
		return true;
	if (to->len + size > TEXTS_MAX) {
		f->stacks_lost |= !head->process;
		return true;
	}
	if (p && head->kind == LIVE_NAME &&
	    str_starts(str_make(bytes, head->len), STR("Optimizer.step#")))
		p->has_optimizer = true;
	buf_add(to, &segment, sizeof(segment));
	buf_add(to, head, sizeof(*head));
	buf_add(to, bytes, size - sizeof(*head));
	return !to->failed;
}

/* Rows that are numbered one after the other, from 1. */
static bool take_numbered(struct follow *f, struct buf *to, struct str block, size_t size)
{
	uint32_t number;

	if (block.len < size || f->stacks_lost)
		return true;
	memcpy(&number, block.ptr, sizeof(number));
	if (number != to->len / size + 1 || block.len % size || to->len + block.len > STACKS_MAX) {
		f->stacks_lost = true;
		return true;
	}
	buf_add_str(to, block);
	return !to->failed;
}

static bool take_texts(struct follow *f, struct str block)
{
	while (block.len >= sizeof(struct live_text)) {
		struct live_text head;

		memcpy(&head, block.ptr, sizeof(head));
		if (live_text_bytes(head.len) > block.len)
			return true;
		if (!take_text(f, &head, block.ptr + sizeof(head)))
			return false;
		block = str_skip(block, (size_t)live_text_bytes(head.len));
	}
	return true;
}

struct str follow_text(const struct follow_process *p, enum live_text_kind kind)
{
	struct str rest = buf_str(&p->texts), found = { NULL, 0 };

	while (rest.len >= sizeof(uint64_t) + sizeof(struct live_text)) {
		struct live_text head;

		rest = str_skip(rest, sizeof(uint64_t));
		memcpy(&head, rest.ptr, sizeof(head));
		if (head.kind == (uint32_t)kind)
			found = str_make(rest.ptr + sizeof(head), head.len);
		rest = str_skip(rest, (size_t)live_text_bytes(head.len));
	}
	return found;
}

/* Made when it is not there; NULL without memory. */
static struct follow_ring *ring_of(struct follow *f, uint32_t process, uint32_t ring, bool *good)
{
	void *list = f->rings;

	for (size_t i = 0; i < f->ring_count; i++)
		if (f->rings[i].process == process && f->rings[i].ring == ring)
			return &f->rings[i];
	if (f->ring_count >= RINGS_MAX)
		return NULL;
	if (!mem_grow(f->mem, &list, &f->ring_cap, f->ring_count + 1, sizeof(*f->rings))) {
		*good = false;
		return NULL;
	}
	f->rings = list;
	f->rings[f->ring_count] = (struct follow_ring){ .process = process, .ring = ring };
	return &f->rings[f->ring_count++];
}

static void take_queue(struct follow_ring *ring, const struct follow_mark *mark)
{
	for (uint32_t i = 0; i < MIN(ring->queue_count, (uint32_t)FOLLOW_QUEUES); i++)
		if (ring->queues[i].record.stream == mark->record.stream) {
			ring->queues[i] = *mark;
			return;
		}
	ring->queues[ring->queue_count++ % FOLLOW_QUEUES] = *mark;
}

static void take_record(struct follow *f, struct follow_ring *ring, struct follow_segment *s,
			const struct ring_record *r, uint64_t number)
{
	struct follow_mark mark = { *r, number, this_segment(f) };
	int64_t end;

	if (number < ring->next || r->sequence != (uint32_t)number)
		return;
	if (r->kind == RING_THREAD)
		ring->threads[ring->thread_count++ % FOLLOW_THREADS] = mark;
	else if (r->kind == RING_QUEUE)
		take_queue(ring, &mark);
	if (r->kind != RING_SLICE && r->kind != RING_SPAN && r->kind != RING_DEVICE)
		return;
	if (r->start_ns > INT64_MAX / 2 || r->dur_ns > INT64_MAX / 2)
		return;
	end = (int64_t)(r->start_ns + r->dur_ns);
	s->first_ns = MIN(s->first_ns, (int64_t)r->start_ns);
	s->last_ns = MAX(s->last_ns, end);
	s->records++;
}

static bool take_runs(struct follow *f, struct follow_segment *s, struct str runs,
		      struct str records)
{
	bool good = true;

	for (; runs.len >= sizeof(struct live_run);
	     runs = str_skip(runs, sizeof(struct live_run))) {
		struct follow_ring *ring;
		struct live_run run;

		memcpy(&run, runs.ptr, sizeof(run));
		if (run.count > records.len / sizeof(struct ring_record))
			return true;
		ring = ring_of(f, run.process, run.ring, &good);
		if (!good)
			return false;
		for (uint32_t i = 0; ring && i < run.count; i++) {
			struct ring_record r;

			memcpy(&r, records.ptr + i * sizeof(r), sizeof(r));
			take_record(f, ring, s, &r, run.first + i);
		}
		if (ring) {
			ring->next = MAX(ring->next, run.first + run.count);
			ring->dropped = MAX(ring->dropped, run.dropped);
		}
		records = str_skip(records, (size_t)run.count * sizeof(struct ring_record));
	}
	return true;
}

/* What a file that begins in the middle says of rings and queues: as records with the lowest number. */
static bool take_place(struct follow *f, const struct live_place *place)
{
	struct follow_mark mark = { .segment = this_segment(f) };
	bool good = true;
	struct follow_ring *ring = ring_of(f, place->process, place->ring, &good);

	if (!ring)
		return good;
	if (place->ring) {
		mark.record = (struct ring_record){ .kind = RING_THREAD,
						    .id = place->id,
						    .bytes = place->first };
		if (!ring->thread_count)
			ring->threads[ring->thread_count++] = mark;
		return true;
	}
	mark.number = ring->queue_count;
	mark.record = (struct ring_record){ .kind = RING_QUEUE,
					    .stream = place->id,
					    .name = place->name,
					    .id = place->device,
					    .sequence = ring->queue_count };
	for (uint32_t i = 0; i < MIN(ring->queue_count, (uint32_t)FOLLOW_QUEUES); i++)
		if (ring->queues[i].record.stream == place->id)
			return true;
	if (ring->queue_count < FOLLOW_QUEUES)
		ring->queues[ring->queue_count++] = mark;
	return true;
}

static void take_ends(struct follow *f, struct str block)
{
	for (; block.len >= sizeof(struct live_end);
	     block = str_skip(block, sizeof(struct live_end))) {
		struct follow_process *p;
		struct live_end end;

		memcpy(&end, block.ptr, sizeof(end));
		p = process_find(f, end.process);
		if (!p)
			continue;
		p->ended = true;
		p->ended_segment = this_segment(f);
	}
}

bool follow_take(struct follow *f, struct follow_segment *segment,
		 const struct follow_blocks *blocks)
{
	struct follow_blocks b = *blocks;
	void *list = f->segments;

	segment->first_ns = INT64_MAX;
	segment->last_ns = INT64_MIN;
	if (!mem_grow(f->mem, &list, &f->segment_cap, f->segment_count + 1, sizeof(*f->segments)))
		return false;
	f->segments = list;
	if (b.session.len >= sizeof(f->session) && !f->has_session) {
		memcpy(&f->session, b.session.ptr, sizeof(f->session));
		f->session.host[sizeof(f->session.host) - 1] = '\0';
		f->has_session = true;
	}
	for (; b.process.len >= sizeof(struct live_process);
	     b.process = str_skip(b.process, sizeof(struct live_process))) {
		struct live_process row;

		memcpy(&row, b.process.ptr, sizeof(row));
		if (!take_process(f, &row))
			return false;
	}
	for (; b.place.len >= sizeof(struct live_place);
	     b.place = str_skip(b.place, sizeof(struct live_place))) {
		struct live_place place;

		memcpy(&place, b.place.ptr, sizeof(place));
		if (!take_place(f, &place))
			return false;
	}
	segment->frames = (uint32_t)f->frames.len;
	segment->stacks = (uint32_t)f->stacks.len;
	if (!take_numbered(f, &f->frames, b.frame, sizeof(struct live_frame)) ||
	    !take_numbered(f, &f->stacks, b.stack, sizeof(struct live_stack)))
		return false;
	if (!take_texts(f, b.text) || !take_runs(f, segment, b.run, b.record))
		return false;
	take_ends(f, b.end);
	f->newest_ns = MAX(f->newest_ns, segment->last_ns);
	/* What has no slices is of the time of what was before it. */
	if (segment->first_ns > segment->last_ns)
		segment->first_ns = segment->last_ns =
			f->segment_count ? f->segments[f->segment_count - 1].last_ns : f->newest_ns;
	f->records += segment->records;
	f->segments[f->segment_count++] = *segment;
	return true;
}

/* ---- forgetting ---- */

static void drop_process(struct follow *f, size_t at)
{
	uint32_t number = f->processes[at].row.number;
	size_t kept = 0;

	buf_release(&f->processes[at].texts);
	memmove(&f->processes[at], &f->processes[at + 1],
		(f->process_count - at - 1) * sizeof(*f->processes));
	f->process_count--;
	for (size_t i = 0; i < f->ring_count; i++)
		if (f->rings[i].process != number)
			f->rings[kept++] = f->rings[i];
	f->ring_count = kept;
}

void follow_trim(struct follow *f)
{
	size_t drop = 0;

	while (drop < f->segment_count && (f->segment_count - drop > SEGMENTS_MAX ||
					   (f->newest_ns > INT64_MIN + f->keep_ns &&
					    f->segments[drop].last_ns < f->newest_ns - f->keep_ns)))
		drop++;
	if (!drop)
		return;
	for (size_t i = 0; i < drop; i++)
		f->forgotten_ns = MAX(f->forgotten_ns, f->segments[i].last_ns);
	f->segment_count -= drop;
	f->first_segment += drop;
	memmove(f->segments, f->segments + drop, f->segment_count * sizeof(*f->segments));
	for (size_t i = f->process_count; i-- > 0;)
		if (f->processes[i].ended && f->processes[i].ended_segment < f->first_segment)
			drop_process(f, i);
	for (drop = 0; drop + 1 < f->file_count; drop++)
		if (f->segment_count && f->segments[0].file == f->files[drop].number)
			break;
	follow_close_files(f, drop);
}
