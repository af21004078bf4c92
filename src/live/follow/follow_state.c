/*
 * follow_state.c: keeps what the blocks of a segment say about later ones: processes, texts, threads and queues of
 * rings, dropped records, stacks; and forgets what is too old. Called by follow.c for each new segment;
 * follow.c reads the result. It opens no files.
 */
#include "live/follow/follow_int.h"

#include "base/vec.h"

#define TEXTS_MAX ((size_t)4 << 20) /* largest size of the texts of one process */
#define STACKS_MAX ((size_t)64 << 20)
#define PROCESSES_MAX 65536u
#define RINGS_MAX 65536u
#define SEGMENTS_MAX 65536u

static uint64_t this_segment(const struct follow *f)
{
	return f->first_segment + f->segment_count;
}

struct follow_process *follow_process(const struct follow *f, uint32_t number)
{
	for (size_t i = f->process_count; i-- > 0;)
		if (f->processes[i].row.number == number)
			return &f->processes[i];
	return NULL;
}

static bool take_process(struct follow *f, const struct live_process *row)
{
	struct follow_process *known = follow_process(f, row->number);

	if (known)
		known->ended =
			false; /* the process had lost its connection and has connected again */
	if (!row->number || known || f->process_count >= PROCESSES_MAX)
		return true;
	if (!vec_reserve(f->mem, f->processes, f->process_cap, f->process_count + 1))
		return false;
	f->processes[f->process_count] = (struct follow_process){ .row = *row,
								  .segment = this_segment(f),
								  .last_ns = INT64_MIN };
	map_init(&f->processes[f->process_count].text_map, f->mem);
	buf_init(&f->processes[f->process_count++].texts, f->mem);
	return true;
}

/* Hashes a text: notes by their text, all others by their numbers; the last text of a kind
 * counts. */
static uint64_t text_hash(const struct live_text *head, struct str text)
{
	return map_hash_u64((uint64_t)head->kind << 32 | head->number,
			    head->kind == LIVE_NOTE ? str_hash(text) : 0);
}

static struct str text_at(const struct follow_process *p, uint32_t value, struct live_text *head)
{
	struct str rest = str_skip(buf_str(&p->texts), value - 1 + sizeof(uint64_t)), text;

	return live_text_next(&rest, head, &text) ? text : (struct str){ "", 0 };
}

/* Returns whether the text is already known, because each file of a ring repeats all texts. */
static bool is_known_text(const struct follow_process *p, const struct live_text *head,
			  struct str text)
{
	uint32_t last = 0;
	struct live_text kept;

	for (struct map_iter it = map_find(&p->text_map, text_hash(head, text)); it.value;
	     it = map_next(&p->text_map, it)) {
		struct str other = text_at(p, it.value, &kept);

		if (kept.kind == head->kind && kept.number == head->number &&
		    (head->kind != LIVE_NOTE || str_eq(other, text)))
			last = MAX(last, it.value);
	}
	return last && str_eq(text_at(p, last, &kept), text);
}

static bool take_text(struct follow *f, const struct live_text *head, struct str text)
{
	struct follow_process *p = follow_process(f, head->process);
	size_t size = (size_t)live_text_bytes(head->len);
	uint64_t segment = this_segment(f);
	struct buf *to = p ? &p->texts : NULL;

	if (!p || is_known_text(p, head, text) || to->len + sizeof(segment) + size > TEXTS_MAX)
		return true;
	if (head->kind == LIVE_NAME && str_starts(text, STR("Optimizer.step#")))
		p->has_optimizer = true;
	if (!map_add(&p->text_map, text_hash(head, text), (uint32_t)to->len + 1))
		return false;
	buf_add(to, &segment, sizeof(segment));
	buf_add(to, head, sizeof(*head));
	buf_add(to, text.ptr, size - sizeof(*head));
	return !to->failed;
}

static bool is_source(const struct live_text *head)
{
	return !head->process && head->kind == LIVE_SOURCE;
}

static uint32_t first_number(struct str block)
{
	uint32_t number = 0;

	if (block.len >= sizeof(number))
		memcpy(&number, block.ptr, sizeof(number));
	return number;
}

/* Returns the stacks of the current segment; NULL if memory runs out. */
static struct follow_stacks *stacks_now(struct follow *f, uint32_t file,
					const struct str blocks[LIVE_BLOCKS])
{
	bool anew = first_number(blocks[LIVE_BLOCK_FRAME]) == 1 ||
		    first_number(blocks[LIVE_BLOCK_STACK]) == 1;
	struct follow_stacks *last = f->stacks_count ? &f->stacks[f->stacks_count - 1] : NULL;

	if (last && last->file == file && !(anew && last->stacks.len))
		return last;
	if (!vec_reserve(f->mem, f->stacks, f->stacks_cap, f->stacks_count + 1))
		return NULL;
	last = &f->stacks[f->stacks_count++];
	*last = (struct follow_stacks){ .segment = this_segment(f), .file = file };
	buf_init(&last->texts, f->mem);
	buf_init(&last->frames, f->mem);
	buf_init(&last->stacks, f->mem);
	return last;
}

/* Keeps rows. If there are too many, samples that refer to dropped rows are left out. */
static bool keep_rows(struct follow *f, struct buf *to, const char *bytes, size_t len)
{
	if (f->stacks_bytes + len > STACKS_MAX)
		return true;
	f->stacks_bytes += len;
	buf_add(to, bytes, len);
	return !to->failed;
}

static bool take_stacks(struct follow *f, struct follow_segment *segment,
			const struct str blocks[LIVE_BLOCKS])
{
	struct follow_stacks *to = stacks_now(f, segment->file, blocks);
	struct str rest = blocks[LIVE_BLOCK_TEXT], text;
	struct live_text head;
	bool good = to != NULL;

	if (!good)
		return false;
	segment->texts = (uint32_t)to->texts.len;
	segment->frames = (uint32_t)to->frames.len;
	segment->stacks = (uint32_t)to->stacks.len;
	while (good && live_text_next(&rest, &head, &text))
		if (is_source(&head))
			good = keep_rows(f, &to->texts, text.ptr - sizeof(head),
					 (size_t)live_text_bytes(head.len));
	return good &&
	       keep_rows(f, &to->frames, blocks[LIVE_BLOCK_FRAME].ptr,
			 blocks[LIVE_BLOCK_FRAME].len) &&
	       keep_rows(f, &to->stacks, blocks[LIVE_BLOCK_STACK].ptr,
			 blocks[LIVE_BLOCK_STACK].len);
}

const struct follow_stacks *follow_stacks_of(const struct follow *f, size_t segment)
{
	for (size_t i = f->stacks_count; i-- > 0;)
		if (f->stacks[i].segment <= f->first_segment + segment)
			return f->stacks[i].file == f->segments[segment].file ? &f->stacks[i]
									      : NULL;
	return NULL;
}

static void drop_stacks(struct follow *f, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct follow_stacks *s = &f->stacks[i];

		f->stacks_bytes -= s->texts.len + s->frames.len + s->stacks.len;
		buf_release(&s->texts);
		buf_release(&s->frames);
		buf_release(&s->stacks);
	}
	f->stacks_count -= count;
	if (f->stacks_count)
		memmove(f->stacks, f->stacks + count, f->stacks_count * sizeof(*f->stacks));
}

static void take_sample(struct follow *f, struct follow_segment *s, const struct live_sample *row)
{
	struct follow_process *p = follow_process(f, row->process);

	if (row->ts_ns < 0 || row->ts_ns > INT64_MAX / 2)
		return;
	s->first_sample_ns = MIN(s->first_sample_ns, row->ts_ns);
	s->last_sample_ns = MAX(s->last_sample_ns, row->ts_ns);
	if (p)
		p->last_ns = MAX(p->last_ns, row->ts_ns);
}

static bool take_texts(struct follow *f, struct str block)
{
	struct live_text head;
	struct str text;

	while (live_text_next(&block, &head, &text))
		if (!take_text(f, &head, text))
			return false;
	return true;
}

struct str follow_text(const struct follow_process *p, enum live_text_kind kind)
{
	struct str rest = str_skip(buf_str(&p->texts), sizeof(uint64_t)), found = { NULL, 0 }, text;
	struct live_text head;

	while (live_text_next(&rest, &head, &text)) {
		if (head.kind == (uint32_t)kind)
			found = text;
		rest = str_skip(rest, sizeof(uint64_t));
	}
	return found;
}

/* Finds or adds a ring; NULL if memory runs out. */
static struct follow_ring *ring_of(struct follow *f, uint32_t process, uint32_t ring, bool *good)
{
	for (size_t i = 0; i < f->ring_count; i++)
		if (f->rings[i].process == process && f->rings[i].ring == ring)
			return &f->rings[i];
	if (f->ring_count >= RINGS_MAX)
		return NULL;
	if (!vec_reserve(f->mem, f->rings, f->ring_cap, f->ring_count + 1)) {
		*good = false;
		return NULL;
	}
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

static void take_record(struct follow *f, struct follow_ring *ring, struct follow_process *p,
			struct follow_segment *s, const struct ring_record *r, uint64_t number)
{
	struct follow_mark mark = { *r, number, this_segment(f) };
	int64_t end;

	if (number < ring->next || r->sequence != (uint32_t)number)
		return;
	if (r->kind == RING_THREAD)
		ring->threads[ring->thread_count++ % FOLLOW_THREADS] = mark;
	else if (r->kind == RING_QUEUE)
		take_queue(ring, &mark);
	if (!follow_slice_end(r, &end))
		return;
	if (p)
		p->last_ns = MAX(p->last_ns, end);
	s->first_ns = MIN(s->first_ns, (int64_t)r->start_ns);
	s->last_ns = MAX(s->last_ns, end);
	s->records++;
}

bool follow_slice_end(const struct ring_record *r, int64_t *end_ns)
{
	if (r->kind != RING_SLICE && r->kind != RING_SPAN && r->kind != RING_DEVICE &&
	    r->kind != RING_SLICE_OF)
		return false;
	if (r->start_ns > INT64_MAX / 2 || r->dur_ns > INT64_MAX / 2)
		return false;
	*end_ns = (int64_t)(r->start_ns + r->dur_ns);
	return true;
}

/* Stores the number of dropped records; false if memory runs out. */
static bool take_drops(struct follow *f, struct follow_ring *ring, const struct live_run *run)
{
	size_t count = ring->drop_count;

	if (run->dropped <= (count ? ring->drops[count - 1].dropped : 0))
		return true;
	if (!count || ring->drops[count - 1].segment != this_segment(f)) {
		if (!vec_reserve(f->mem, ring->drops, ring->drop_cap, count + 1))
			return false;
		ring->drop_count = ++count;
	}
	ring->drops[count - 1] =
		(struct follow_drop){ this_segment(f), run->dropped, run->dropped_marks };
	return true;
}

uint64_t follow_dropped(const struct follow *f)
{
	uint64_t dropped = 0;

	for (size_t i = 0; i < f->ring_count; i++)
		if (f->rings[i].drop_count)
			dropped += f->rings[i].drops[f->rings[i].drop_count - 1].dropped;
	return dropped;
}

struct follow_drop follow_dropped_before(const struct follow *f, uint32_t process, uint32_t number,
					 uint64_t segment)
{
	for (size_t i = 0; i < f->ring_count; i++) {
		const struct follow_ring *ring = &f->rings[i];

		if (ring->process != process || ring->ring != number)
			continue;
		for (size_t k = ring->drop_count; k-- > 0;)
			if (ring->drops[k].segment < segment)
				return ring->drops[k];
	}
	return (struct follow_drop){ 0 };
}

static bool take_runs(struct follow *f, struct follow_segment *s, struct str runs,
		      struct str records)
{
	bool good = true;

	for (; runs.len >= sizeof(struct live_run);
	     runs = str_skip(runs, sizeof(struct live_run))) {
		struct follow_process *process;
		struct follow_ring *ring;
		struct live_run run;

		memcpy(&run, runs.ptr, sizeof(run));
		if (run.count > records.len / sizeof(struct ring_record))
			return true;
		ring = ring_of(f, run.process, run.ring, &good);
		if (!good)
			return false;
		process = follow_process(f, run.process);
		for (uint32_t i = 0; ring && i < run.count; i++) {
			struct ring_record r;

			memcpy(&r, records.ptr + i * sizeof(r), sizeof(r));
			take_record(f, ring, process, s, &r, run.first + i);
		}
		if (ring) {
			ring->next = MAX(ring->next, run.first + run.count);
			good = take_drops(f, ring, &run);
		}
		if (!good)
			return false;
		records = str_skip(records, (size_t)run.count * sizeof(struct ring_record));
	}
	return true;
}

/* Takes the state of rings and queues at the start of a file, as records with the lowest number. */
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
		p = follow_process(f, end.process);
		if (!p)
			continue;
		p->ended = true;
		p->ended_segment = this_segment(f);
	}
}

/* A segment without slices gets the time of the segment before it. */
static void set_times(struct follow *f, struct follow_segment *segment)
{
	f->newest_ns = MAX(f->newest_ns, segment->last_ns);
	f->newest_sample_ns = MAX(f->newest_sample_ns, segment->last_sample_ns);
	if (segment->first_ns > segment->last_ns)
		segment->first_ns = segment->last_ns =
			f->segment_count ? f->segments[f->segment_count - 1].last_ns : f->newest_ns;
}

bool follow_take(struct follow *f, struct follow_segment *segment,
		 const struct str blocks[LIVE_BLOCKS])
{
	struct str session = blocks[LIVE_BLOCK_SESSION];

	segment->first_ns = segment->first_sample_ns = INT64_MAX;
	segment->last_ns = segment->last_sample_ns = INT64_MIN;
	if (!vec_reserve(f->mem, f->segments, f->segment_cap, f->segment_count + 1))
		return false;
	if (session.len >= sizeof(f->session) && !f->has_session) {
		memcpy(&f->session, session.ptr, sizeof(f->session));
		f->session.host[sizeof(f->session.host) - 1] = '\0';
		f->has_session = true;
	}
	LIVE_EACH_ROW(blocks[LIVE_BLOCK_PROCESS], struct live_process, row, {
		if (!take_process(f, &row))
			return false;
	});
	LIVE_EACH_ROW(blocks[LIVE_BLOCK_PLACE], struct live_place, row, {
		if (!take_place(f, &row))
			return false;
	});
	if (!take_texts(f, blocks[LIVE_BLOCK_TEXT]) || !take_stacks(f, segment, blocks) ||
	    !take_runs(f, segment, blocks[LIVE_BLOCK_RUN], blocks[LIVE_BLOCK_RECORD]))
		return false;
	LIVE_EACH_ROW(blocks[LIVE_BLOCK_SAMPLE], struct live_sample, row,
		      take_sample(f, segment, &row));
	take_ends(f, blocks[LIVE_BLOCK_END]);
	set_times(f, segment);
	f->records += segment->records;
	f->segments[f->segment_count++] = *segment;
	return true;
}

static void release_process(struct follow_process *p)
{
	buf_release(&p->texts);
	map_release(&p->text_map);
}

static void release_ring(const struct follow *f, struct follow_ring *ring)
{
	mem_free(f->mem, ring->drops, ring->drop_cap * sizeof(*ring->drops));
}

static void drop_process(struct follow *f, size_t at)
{
	uint32_t number = f->processes[at].row.number;
	size_t kept = 0;

	release_process(&f->processes[at]);
	memmove(&f->processes[at], &f->processes[at + 1],
		(f->process_count - at - 1) * sizeof(*f->processes));
	f->process_count--;
	for (size_t i = 0; i < f->ring_count; i++) {
		if (f->rings[i].process != number)
			f->rings[kept++] = f->rings[i];
		else
			release_ring(f, &f->rings[i]);
	}
	f->ring_count = kept;
}

static void trim_drops(const struct follow *f, struct follow_ring *ring)
{
	size_t drop = 0;

	while (drop + 1 < ring->drop_count && ring->drops[drop + 1].segment < f->first_segment)
		drop++;
	ring->drop_count -= drop;
	if (drop)
		memmove(ring->drops, ring->drops + drop, ring->drop_count * sizeof(*ring->drops));
}

/* Frees data that the remaining segments do not need. */
static void trim_rest(struct follow *f)
{
	size_t drop;

	for (size_t i = f->process_count; i-- > 0;)
		if (f->processes[i].ended && f->processes[i].ended_segment < f->first_segment)
			drop_process(f, i);
	for (size_t i = 0; i < f->ring_count; i++)
		trim_drops(f, &f->rings[i]);
	for (drop = 0; drop + 1 < f->stacks_count; drop++)
		if (f->stacks[drop + 1].segment > f->first_segment)
			break;
	drop_stacks(f, drop);
	for (drop = 0; drop + 1 < f->file_count; drop++)
		if (f->segment_count && f->segments[0].file == f->files[drop].number)
			break;
	follow_close_files(f, drop);
}

static bool is_long_ago(const struct follow *f, const struct follow_segment *s)
{
	int64_t newest = MAX(f->newest_ns, f->newest_sample_ns);

	return newest > INT64_MIN + f->keep_ns &&
	       MAX(s->last_ns, s->last_sample_ns) < newest - f->keep_ns;
}

void follow_trim(struct follow *f)
{
	size_t drop = 0;

	while (drop < f->segment_count &&
	       (f->segment_count - drop > SEGMENTS_MAX || is_long_ago(f, &f->segments[drop])))
		drop++;
	if (!drop)
		return;
	for (size_t i = 0; i < drop; i++)
		f->forgotten_ns = MAX(f->forgotten_ns, f->segments[i].last_ns);
	f->segment_count -= drop;
	f->first_segment += drop;
	memmove(f->segments, f->segments + drop, f->segment_count * sizeof(*f->segments));
	trim_rest(f);
}

void follow_forget(struct follow *f)
{
	for (size_t i = 0; i < f->process_count; i++)
		release_process(&f->processes[i]);
	for (size_t i = 0; i < f->ring_count; i++)
		release_ring(f, &f->rings[i]);
	drop_stacks(f, f->stacks_count);
	f->process_count = f->ring_count = f->segment_count = 0;
	f->first_segment = f->records = 0;
	f->newest_ns = f->newest_sample_ns = f->forgotten_ns = INT64_MIN;
}
