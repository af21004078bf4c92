/*
 * parts.c: reads all files once. The bytes of a file are split into parts, which several threads read concurrently,
 * each from a guessed beginning of an event on; parts are committed one after the other, in file order. A part is valid
 * only if the part before, which was read from a valid beginning, ends exactly where this one begins; else it is read
 * again in its turn. So neither the number of threads nor a wrong guess changes the result. A decision that depends on
 * the order (a pid that was not met before) waits for the part's turn in the middle of the part. There is no deadlock,
 * because parts are taken in order and never wait for later ones.
 */
#include "merge/merge_int.h"

static void stop(struct pass *pass)
{
	pthread_mutex_lock(&pass->lock);
	atomic_store(&pass->stop, true);
	pthread_cond_broadcast(&pass->moved);
	pthread_mutex_unlock(&pass->lock);
}

void worker_fail(struct merge_worker *w, ow_status status)
{
	if (w->status != OW_OK)
		return;
	w->status = status;
	w->err.status = status;
	if (w->pass)
		stop(w->pass);
}

static bool wait_for_turn(struct merge_worker *w)
{
	struct pass *pass = w->pass;

	if (w->my_turn)
		return true;
	pthread_mutex_lock(&pass->lock);
	while (pass->turn != w->unit && !atomic_load(&pass->stop))
		pthread_cond_wait(&pass->moved, &pass->lock);
	w->my_turn = !atomic_load(&pass->stop);
	pthread_mutex_unlock(&pass->lock);
	return w->my_turn;
}

static bool is_my_turn(struct merge_worker *w)
{
	bool mine;

	pthread_mutex_lock(&w->pass->lock);
	mine = w->pass->turn == w->unit;
	pthread_mutex_unlock(&w->pass->lock);
	return mine;
}

static void pass_on(struct merge_worker *w)
{
	struct pass *pass = w->pass;

	pthread_mutex_lock(&pass->lock);
	pass->turn++;
	pthread_cond_broadcast(&pass->moved);
	pthread_mutex_unlock(&pass->lock);
	w->my_turn = false;
}

bool worker_take_turn(struct merge_worker *w)
{
	if (!w->my_turn) {
		if (!wait_for_turn(w))
			return false;
		w->wrong_guess = w->file->finished || w->start != w->file->expected;
	}
	return !w->wrong_guess;
}

/* Lets the worker's scanner read another file; the scanner keeps its memory. */
void worker_aim(struct merge_worker *w, struct merge_file *file)
{
	struct json_scan old = w->scan;

	if (w->file == file)
		return;
	json_scan_init(&w->scan, &file->in, &w->err);
	w->scan.buf = old.buf;
	w->scan.blocks = old.blocks;
	w->scan.cap = old.cap;
	w->file = file;
	memset(w->cache, 0, sizeof(w->cache));
}

static void forget_part(struct merge_worker *w)
{
	w->read = w->ended = w->truncated = w->wrong_guess = w->is_packed = false;
	w->n = (struct part_counts){ 0 };
	buf_clear(&w->out);
	for (size_t i = 0; i < w->marked_count; i++)
		w->marks[w->marked[i]] = 0;
	w->marked_count = 0;
	w->pass->begin(w);
}

static void read_part(struct merge_worker *w, uint64_t start, uint64_t to)
{
	struct pass *pass = w->pass;
	struct json_event ev;

	forget_part(w);
	w->start = start;
	json_scan_seek(&w->scan, start);
	while (w->status == OW_OK && !w->wrong_guess) {
		switch (json_scan_event(&w->scan, to, &ev)) {
		case SCAN_EVENT:
			w->n.events++;
			pass->event(w, &ev);
			continue;
		case SCAN_OTHER:
			w->n.faults.others++;
			continue;
		case SCAN_DAMAGE:
			fault_damage(&w->n.faults, ev.offset, w->scan.offset - ev.offset);
			continue;
		case SCAN_STOP:
			break;
		case SCAN_END:
			w->ended = true;
			break;
		case SCAN_TRUNCATED:
			w->truncated = true;
			w->truncated_at = ev.offset;
			break;
		case SCAN_FAILED:
			worker_fail(w, w->scan.status);
			break;
		}
		break;
	}
	w->end = w->scan.offset;
	w->read = w->status == OW_OK && !w->wrong_guess;
}

/* Reports an unexpected end of the file: a list may end without its bracket, an object may not. */
static void note_end(struct merge_worker *w)
{
	struct merge_file *file = w->file;

	if (!w->truncated)
		return;
	if (w->truncated_at < file->in.size || file->doc.in_object) {
		if (!file->faults.truncated)
			file->faults.truncated_at = w->truncated_at;
		file->faults.truncated = true;
	}
	file->doc.in_object = false;
}

/* Commits a part whose guess was right, in the order of the file. */
static void settle_part(struct merge_worker *w)
{
	struct merge_file *file = w->file;
	ow_status status = w->pass->commit(w);

	if (status != OW_OK) {
		worker_fail(w, status);
		return;
	}
	file->events_in += w->n.events;
	file->events_out += w->n.written;
	file->filtered += w->n.filtered;
	file->repaired += w->n.repaired;
	file->untimed += w->n.untimed;
	faults_add(&file->faults, &w->n.faults);
	file->expected = w->end;
	w->read = false;
	if (!w->ended && !w->truncated)
		return;
	note_end(w);
	json_scan_seek(&w->scan, w->end);
	status = outline_walk(file, &w->scan, &w->err);
	if (status == OW_OK && file->finished) {
		status = input_check_unchanged(&file->in, &w->err);
		if (status == OW_OK && w->pass->file_end)
			status = w->pass->file_end(w);
	}
	if (status != OW_OK)
		worker_fail(w, status);
}

/* Commits parts in order, up to `to`: as they were read, or after reading them again. */
static void settle(struct merge_worker *w, uint64_t to)
{
	struct merge_file *file = w->file;

	if (w->read && (file->finished || w->start != file->expected))
		w->read = false;
	while (w->status == OW_OK && !file->finished && file->expected < to) {
		if (!w->read)
			read_part(w, file->expected, to);
		if (w->read)
			settle_part(w);
	}
}

static size_t part_bytes(const struct merge *m)
{
	return m->options->part_bytes ? m->options->part_bytes : PART_BYTES;
}

static size_t units_of(const struct merge *m, const struct merge_file *file)
{
	if (file->events_offset >= file->size)
		return 1;
	return (size_t)((file->size - file->events_offset) / part_bytes(m)) + 1;
}

static struct merge_file *file_of(struct pass *pass, size_t unit)
{
	size_t low = 0, high = pass->m->file_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (pass->first_unit[middle] <= unit)
			low = middle;
		else
			high = middle;
	}
	return pass->m->files[low];
}

/* Reads a part before its turn, if a place to start can be found. */
static void read_ahead(struct merge_worker *w, uint64_t from, uint64_t to, bool first)
{
	uint64_t start = from;

	if (!first && !json_scan_guess(&w->scan, from, to, &start)) {
		if (w->scan.status != OW_OK)
			worker_fail(w, w->scan.status);
		return;
	}
	read_part(w, start, to);
	if (w->read && w->pass->prepare)
		w->pass->prepare(w);
}

static void run_unit(struct merge_worker *w, size_t unit)
{
	struct pass *pass = w->pass;
	struct merge *m = pass->m;
	struct merge_file *file = file_of(pass, unit);
	size_t part = unit - pass->first_unit[file->number];
	bool last = unit + 1 == pass->first_unit[file->number + 1];
	uint64_t from = file->events_offset + part * (uint64_t)part_bytes(m);
	uint64_t to = last ? UINT64_MAX : from + part_bytes(m);
	ow_status status = file_enter(file, &w->err);

	if (status != OW_OK) {
		worker_fail(w, status);
		return;
	}
	w->unit = unit;
	w->read = false;
	w->my_turn = is_my_turn(w);
	worker_aim(w, file);
	if (!w->my_turn)
		read_ahead(w, from, to, part == 0);
	if (w->status == OW_OK && wait_for_turn(w)) {
		settle(w, to);
		atomic_fetch_add(&m->done, last ? file->size - MIN(file->size, part * part_bytes(m))
						: part_bytes(m));
		if (w->status == OW_OK && !merge_poll(m))
			worker_fail(w, error_set(&w->err, OW_E_INTERRUPTED, "interrupted"));
		if (w->status == OW_OK)
			pass_on(w);
	}
	w->file = NULL; /* the input may be closed and opened again meanwhile */
	file_leave(file);
}

static void run_units(void *arg, unsigned thread)
{
	struct pass *pass = arg;
	size_t count = pass->first_unit[pass->m->file_count];
	struct merge_worker *w = &pass->workers[thread];

	for (;;) {
		size_t unit = atomic_fetch_add(&pass->next_unit, 1);

		if (unit >= count || w->status != OW_OK || atomic_load(&pass->stop))
			return;
		run_unit(w, unit);
	}
}

void worker_init(struct merge_worker *w, struct merge *m, struct pass *pass)
{
	*w = (struct merge_worker){ .m = m, .pass = pass };
	buf_init(&w->out, m->mem);
	buf_init(&w->scratch, m->mem);
	buf_init(&w->edited, m->mem);
	buf_init(&w->packed, m->mem);
	gzip_packer_init(&w->gzip, m->mem);
}

void worker_release(struct merge_worker *w)
{
	struct mem *mem = w->m->mem;
	struct input any = { .mem = mem };

	w->scan.in = &any; /* the scanner needs some input to allocate its memory */
	json_scan_release(&w->scan);
	buf_release(&w->out);
	buf_release(&w->scratch);
	buf_release(&w->edited);
	buf_release(&w->packed);
	gzip_packer_release(&w->gzip);
	mem_free(mem, w->edits, w->edit_cap * sizeof(*w->edits));
	mem_free(mem, w->marked, w->marked_cap * sizeof(*w->marked));
	mem_free(mem, w->marks, w->marks_cap);
	mem_free(mem, w->steps, w->step_cap * sizeof(*w->steps));
}

static void start_pass(struct pass *pass)
{
	struct merge *m = pass->m;

	pthread_mutex_init(&pass->lock, NULL);
	pthread_cond_init(&pass->moved, NULL);
	pass->first_unit[0] = 0;
	for (size_t i = 0; i < m->file_count; i++) {
		outline_rewind(m->files[i]);
		pass->first_unit[i + 1] = pass->first_unit[i] + units_of(m, m->files[i]);
	}
	pass->threads = (unsigned)MIN((size_t)pass->threads, pass->first_unit[m->file_count]);
	for (unsigned i = 0; i < pass->threads; i++)
		worker_init(&pass->workers[i], m, pass);
}

static ow_status end_pass(struct pass *pass)
{
	ow_status status = OW_OK;

	for (unsigned i = 0; i < pass->threads; i++) {
		struct merge_worker *w = &pass->workers[i];

		if (w->status != OW_OK && status == OW_OK) {
			status = w->status;
			if (pass->m->err)
				*pass->m->err = w->err;
		}
		worker_release(w);
	}
	pthread_mutex_destroy(&pass->lock);
	pthread_cond_destroy(&pass->moved);
	return status;
}

ow_status pass_run(struct pass *pass)
{
	struct merge *m = pass->m;
	size_t unit_bytes = (m->file_count + 1) * sizeof(*pass->first_unit);
	size_t worker_bytes;
	ow_status status;

	pass->threads = MAX(pass->threads, 1u);
	worker_bytes = pass->threads * sizeof(*pass->workers);
	pass->first_unit = mem_alloc(m->mem, unit_bytes);
	pass->workers = pass->first_unit ? mem_alloc(m->mem, worker_bytes) : NULL;
	if (!pass->workers) {
		mem_free(m->mem, pass->first_unit, unit_bytes);
		return error_no_memory(m->err);
	}
	start_pass(pass);
	parallel_run(pass->threads, run_units, pass);
	status = end_pass(pass);
	mem_free(m->mem, pass->workers, worker_bytes);
	mem_free(m->mem, pass->first_unit, unit_bytes);
	return status;
}
