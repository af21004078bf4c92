/*
 * trace_read.c: reads the file. One thread walks the documents; the first long list of events is cut
 * into parts that all threads read at the same time, each starting at a guessed event. A guess counts
 * only if the part before, read from a place known to be right, ends exactly there; what does not hold
 * is read again. So text that looks like an event cannot mislead, it can only cost time.
 */
#include "import/trace_int.h"

static void note_fault(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if (!(*count)++)
		*first = offset;
}

/* Reads the events of [start, stop) into rows of the worker. */
static void read_part(struct trace *t, struct trace_worker *w, uint64_t start, uint64_t stop,
		      struct trace_part *part)
{
	struct json_event ev;

	part->start = start;
	part->first = trace_worker_counts(w);
	w->faults = (struct trace_faults){ 0 };
	json_scan_seek(&w->scan, start);
	while (w->status == OW_OK) {
		switch (json_scan_event(&w->scan, stop, &ev)) {
		case SCAN_EVENT:
			trace_take_event(w, &ev);
			continue;
		case SCAN_OTHER:
			note_fault(&w->faults.others, &w->faults.first_other, ev.offset);
			continue;
		case SCAN_DAMAGE:
			note_fault(&w->faults.damaged, &w->faults.first_damage, ev.offset);
			w->faults.damaged_bytes += w->scan.offset - ev.offset;
			continue;
		case SCAN_STOP:
			break;
		case SCAN_END:
			part->list_ended = true;
			break;
		case SCAN_TRUNCATED:
			part->truncated = true;
			part->truncated_at = ev.offset;
			break;
		case SCAN_FAILED:
			w->status = w->scan.status;
			break;
		}
		break;
	}
	if (w->status != OW_OK) {
		atomic_store(&t->stop, true);
		return;
	}
	part->end = w->scan.offset;
	part->last = trace_worker_counts(w);
	part->faults = w->faults;
	part->read = true;
}

/* ---- on a guess ---- */

/* With the first part read it is known how many rows there will be: saves moving them as they grow. */
static void reserve_rows(struct trace *t, struct trace_worker *w, const struct trace_part *part)
{
	size_t rows = part->last.slices - part->first.slices;
	size_t parts = t->part_count / t->options.threads + 1;

	if (w->slices.count != rows || parts < 4)
		return;
	if (!trace_reserve_slices(w, (rows + rows / 64) * parts))
		error_clear(&w->err); /* growing step by step may still do */
}

static void guess_parts(void *arg, unsigned thread)
{
	struct trace *t = arg;
	struct trace_worker *w = &t->workers[thread];

	while (!atomic_load(&t->stop)) {
		size_t k = atomic_fetch_add(&t->next_part, 1);
		uint64_t from = t->parts_from + k * t->options.part_bytes, start = from;
		struct trace_part *part;

		if (k >= t->part_count)
			break;
		part = &t->parts[k];
		part->worker = thread;
		if (k && !json_scan_guess(&w->scan, from, from + t->options.part_bytes, &start)) {
			w->status = w->scan.status;
			if (w->status != OW_OK)
				atomic_store(&t->stop, true);
			continue;
		}
		read_part(t, w, start, from + t->options.part_bytes, part);
		if (part->read)
			reserve_rows(t, w, part);
	}
	trace_worker_trim(w);
}

static ow_status guess(struct trace *t, uint64_t from)
{
	uint64_t size = t->ctx->in->size;

	if (t->parts || t->options.threads < 2 || size - from < 2 * (uint64_t)t->options.part_bytes)
		return OW_OK;
	t->parts_from = from;
	t->part_count = (size_t)((size - from) / t->options.part_bytes) + 1;
	t->parts = mem_zalloc(t->mem, t->part_count * sizeof(*t->parts));
	if (!t->parts)
		return error_no_memory(t->ctx->err);
	parallel_run(t->options.threads, guess_parts, t);
	for (unsigned i = 0; i < t->options.threads; i++)
		if (t->workers[i].status != OW_OK) {
			if (t->ctx->err)
				*t->ctx->err = t->workers[i].err;
			return t->workers[i].status;
		}
	return OW_OK;
}

/* ---- in order ---- */

static ow_status accept(struct trace *t, const struct trace_part *part)
{
	void *accepted = t->accepted;

	if (!mem_grow(t->mem, &accepted, &t->accepted_cap, t->accepted_count + 1,
		      sizeof(*t->accepted)))
		return error_no_memory(t->ctx->err);
	t->accepted = accepted;
	t->accepted[t->accepted_count++] = *part;
	return OW_OK;
}

static struct trace_part *find_guess(struct trace *t, uint64_t offset, uint64_t *stop)
{
	size_t k;

	*stop = UINT64_MAX;
	if (!t->parts || offset < t->parts_from)
		return NULL;
	k = (size_t)((offset - t->parts_from) / t->options.part_bytes);
	if (k >= t->part_count)
		return NULL;
	*stop = t->parts_from + (k + 1) * (uint64_t)t->options.part_bytes;
	if (!t->parts[k].read || t->parts[k].start != offset)
		return NULL;
	return &t->parts[k];
}

static void note_end_of_list(struct trace *t, const struct trace_part *last, bool bare)
{
	uint64_t size = t->ctx->in->size;

	t->list_truncated = last->truncated;
	if (!last->truncated)
		return;
	if (last->truncated_at < size || t->object_form) {
		t->truncated = true;
		t->truncated_at = last->truncated_at;
	}
	if (last->truncated_at < size)
		builder_note(t->b, NOTE_TRUNCATED, last->truncated_at,
			     "the file ends inside an event, which is left out");
	else if (t->object_form)
		builder_note(t->b, NOTE_TRUNCATED, size,
			     "the file ends before its list of events does");
	else if (!bare)
		builder_note(t->b, NOTE_INFO, size,
			     "the list of events has no closing bracket, as the format allows");
}

/* One list of events, from the offset after its bracket. */
static ow_status read_list(struct trace *t, uint64_t offset, bool bare)
{
	struct trace_worker *driver = &t->workers[t->options.threads];

	OW_TRY(guess(t, offset));
	for (;;) {
		struct trace_part again = { .worker = t->options.threads }, *part;
		uint64_t stop;

		part = find_guess(t, offset, &stop);
		if (!part) {
			part = &again;
			read_part(t, driver, offset, stop, part);
			if (driver->status != OW_OK)
				return driver->status;
		}
		OW_TRY(accept(t, part));
		offset = part->end;
		if (!part->list_ended && !part->truncated)
			continue;
		note_end_of_list(t, part, bare);
		json_scan_seek(&driver->scan, offset);
		return OW_OK;
	}
}

static ow_status read_samples(struct trace *t, const struct json_item *item)
{
	struct trace_worker *driver = &t->workers[t->options.threads];
	struct trace_part part = { .worker = t->options.threads, .read = true, .samples = true };

	part.first = trace_worker_counts(driver);
	trace_read_samples(t, driver, item);
	part.last = trace_worker_counts(driver);
	return driver->status == OW_OK ? accept(t, &part) : driver->status;
}

static bool is_samples(const struct json_item *item)
{
	return item->value == JSON_ARRAY && json_key_is(json_text(item->key), "samples");
}

ow_status trace_read(struct trace *t)
{
	struct trace_worker *driver = &t->workers[t->options.threads];
	struct json_doc doc = { 0 };
	struct json_item item;
	ow_status status = OW_OK;

	while (status == OW_OK) {
		switch (json_scan_document(&driver->scan, &doc, &item)) {
		case ITEM_EVENTS:
			t->object_form |= doc.in_object;
			status = read_list(t, item.offset, item.bare);
			doc.in_object &= !t->list_truncated;
			break;
		case ITEM_MEMBER:
			status =
				is_samples(&item) ? read_samples(t, &item) : trace_member(t, &item);
			break;
		case ITEM_DOCUMENT:
			break;
		case ITEM_DAMAGE:
			builder_note_many(t->b, NOTE_DAMAGED, item.offset, item.size,
					  "bytes that are no JSON, passed over");
			break;
		case ITEM_TRUNCATED:
			builder_note(t->b, NOTE_TRUNCATED, item.offset,
				     "the file ends before its top-level object does");
			break;
		case ITEM_EOF:
			t->documents = doc.documents;
			return OW_OK;
		case ITEM_FAILED:
			status = driver->scan.status;
			break;
		}
	}
	if (driver->err.status != OW_OK && t->ctx->err && t->ctx->err->status == OW_OK)
		*t->ctx->err = driver->err;
	return status;
}
