/*
 * merge.c: merges traces (merge.h): runs the passes in order. It also contains the pass that only measures first and
 * last times and steps, which runs when the alignment or a filter needs them or the output cannot be started again; and
 * the output, compressed as the file's name asks for. All other passes are in the other files (merge_int.h).
 */
#include "merge/merge_int.h"

#include "base/vec.h"

#include <stdarg.h>

static ow_status put(struct merge *m, struct str bytes, struct ow_error *err)
{
	m->counts->bytes_out += bytes.len;
	return bytes.len ? m->out->write(m->out->arg, bytes.ptr, bytes.len, err) : OW_OK;
}

static ow_status put_packed(struct merge *m, struct ow_error *err)
{
	if (m->packed.failed)
		return error_no_memory(err);
	return put(m, buf_str(&m->packed), err);
}

static ow_status merged_start(struct merge *m, struct ow_error *err)
{
	m->any_event = false;
	m->crc = 0;
	m->unpacked_out = 0;
	m->counts->bytes_out = 0;
	zstd_packer_release(&m->zstd);
	if (m->out->pack != PACK_GZIP)
		return OW_OK;
	buf_clear(&m->packed);
	gzip_head(&m->packed);
	return put_packed(m, err);
}

ow_status merged_write(struct merge *m, struct str bytes, struct ow_error *err)
{
	buf_clear(&m->packed);
	switch (m->out->pack) {
	case PACK_NONE:
		return put(m, bytes, err);
	case PACK_ZSTD:
		OW_TRY(zstd_pack(&m->zstd, bytes, false, &m->packed, err));
		break;
	case PACK_GZIP:
		m->crc = gzip_crc(m->crc, bytes);
		m->unpacked_out += bytes.len;
		OW_TRY(gzip_pack(&m->gzip, bytes, &m->packed, err));
		break;
	}
	return put_packed(m, err);
}

ow_status merged_piece(struct merge *m, size_t len, uint32_t crc, struct str packed,
		       struct ow_error *err)
{
	m->crc = gzip_crc_join(m->crc, crc, len);
	m->unpacked_out += len;
	return put(m, packed, err);
}

static ow_status merged_finish(struct merge *m, struct ow_error *err)
{
	buf_clear(&m->packed);
	if (m->out->pack == PACK_GZIP)
		gzip_tail(&m->packed, m->crc, m->unpacked_out);
	else if (m->out->pack == PACK_ZSTD)
		OW_TRY(zstd_pack(&m->zstd, (struct str){ "", 0 }, true, &m->packed, err));
	return put_packed(m, err);
}

static void begin(struct merge_worker *w)
{
	w->min_ns = w->min_positive_ns = w->max_ns = NO_TIME;
	w->has_pairs = false;
	w->step_count = 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a == NO_TIME || (b != NO_TIME && b < a) ? b : a;
}

/* Reads the number of a step marker, ProfilerStep#12, on a host thread; the device's markers repeat the same steps. */
static bool step_number(const struct json_event *ev, int64_t *number)
{
	static const struct str prefix = STR("ProfilerStep#");
	struct str name = json_text(ev->value[FIELD_NAME]);

	if (!json_event_has(ev, FIELD_NAME) || !str_starts(name, prefix))
		return false;
	if (json_event_has(ev, FIELD_CAT) &&
	    str_starts(json_text(ev->value[FIELD_CAT]), STR("gpu_")))
		return false;
	return str_to_i64(str_skip(name, prefix.len), number);
}

static void add_step(struct merge_worker *w, int64_t number, int64_t from, int64_t to)
{
	if (!vec_reserve(w->m->mem, w->steps, w->step_cap, w->step_count + 1)) {
		worker_fail(w, error_no_memory(&w->err));
		return;
	}
	w->steps[w->step_count++] = (struct merge_step){ number, { from, to } };
}

static bool read_time(const struct json_event *ev, enum json_field field, int64_t *ns)
{
	const struct json_value *value = &ev->value[field];
	enum json_exactness exact;

	if (!json_event_has(ev, field) ||
	    (value->kind != JSON_NUMBER && value->kind != JSON_STRING))
		return false;
	exact = json_decimal_padded(json_text(*value), 3, ns);
	return exact == JSON_EXACT || exact == JSON_ROUNDED;
}

bool event_span(const struct json_event *ev, struct time_range *span)
{
	int64_t dur;

	if (!read_time(ev, FIELD_TS, &span->from))
		return false;
	span->to = span->from;
	if (event_ph(ev) == 'X' && read_time(ev, FIELD_DUR, &dur) && dur > 0 &&
	    __builtin_add_overflow(span->from, dur, &span->to))
		span->to = INT64_MAX;
	return true;
}

static void event(struct merge_worker *w, const struct json_event *ev)
{
	char ph = event_ph(ev);
	struct time_range span;
	int64_t number;

	if (!ph || ph == 'M' || !event_span(ev, &span))
		return;
	w->has_pairs |= ph == 'B' || ph == 'b' || ph == 'S';
	w->min_ns = earlier(w->min_ns, span.from);
	if (span.from)
		w->min_positive_ns = earlier(w->min_positive_ns, span.from);
	w->max_ns = MAX(w->max_ns, span.to);
	if (ph == 'X' && w->m->options->first_step != INT64_MIN && step_number(ev, &number))
		add_step(w, number, span.from, span.to);
}

static ow_status commit(struct merge_worker *w)
{
	struct merge_file *file = w->file;

	file->min_ns = earlier(file->min_ns, w->min_ns);
	file->min_positive_ns = earlier(file->min_positive_ns, w->min_positive_ns);
	file->max_ns = MAX(file->max_ns, w->max_ns);
	file->has_pairs |= w->has_pairs;
	if (!w->step_count)
		return OW_OK;
	if (!vec_reserve(w->m->mem, file->steps, file->step_cap, file->step_count + w->step_count))
		return error_no_memory(&w->err);
	memcpy(file->steps + file->step_count, w->steps, w->step_count * sizeof(*w->steps));
	file->step_count += w->step_count;
	return OW_OK;
}

static void measure_pass(struct pass *pass)
{
	*pass = (struct pass){ .m = pass->m,
			       .event = event,
			       .begin = begin,
			       .commit = commit,
			       .threads = pass->m->threads };
}

static bool wanted(const struct merge *m, int64_t step)
{
	return step >= m->options->first_step && step <= m->options->last_step;
}

static int by_start(const void *a, const void *b)
{
	const struct time_range *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Sorts the spans of wanted steps and joins those that overlap. */
static void join_spans(struct merge_file *file)
{
	size_t kept = 0;

	qsort(file->spans, file->span_count, sizeof(*file->spans), by_start);
	for (size_t i = 0; i < file->span_count; i++) {
		struct time_range span = file->spans[i];

		if (kept && span.from <= file->spans[kept - 1].to)
			file->spans[kept - 1].to = MAX(file->spans[kept - 1].to, span.to);
		else
			file->spans[kept++] = span;
	}
	file->span_count = kept;
}

/* Finds the wanted steps by their markers; without markers the file is one step, whose number is in the file's name. */
static ow_status choose_steps(struct merge_file *file)
{
	struct merge *m = file->m;

	file->spans = NULL;
	file->span_count = 0;
	if (!file->step_count) {
		file->dropped = file->step == NO_NUMBER || !wanted(m, file->step);
		if (file->step == NO_NUMBER)
			merge_note(
				m,
				"%s: no steps are marked in it, and its name has no number; only "
				"its metadata is merged",
				file->path);
		return OW_OK;
	}
	file->spans = ARENA_ARRAY(&m->arena, struct time_range, file->step_count);
	if (!file->spans)
		return error_no_memory(m->err);
	for (size_t i = 0; i < file->step_count; i++)
		if (wanted(m, file->steps[i].number))
			file->spans[file->span_count++] = file->steps[i].span;
	file->dropped = !file->span_count;
	join_spans(file);
	return OW_OK;
}

/* Converts a wanted time to the file's own clock. */
static int64_t own_time(const struct merge *m, const struct merge_file *file, int64_t ns)
{
	__int128 own = (__int128)ns + m->zero_ns - file->shift_ns;

	return own > INT64_MAX ? INT64_MAX : own < INT64_MIN ? INT64_MIN : (int64_t)own;
}

static ow_status spans_choose(struct merge *m)
{
	const struct merge_options *o = m->options;

	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];

		file->range = (struct time_range){ INT64_MIN, INT64_MAX };
		if (o->from_ns != INT64_MIN)
			file->range.from = own_time(m, file, o->from_ns);
		if (o->to_ns != INT64_MAX)
			file->range.to = own_time(m, file, o->to_ns);
		if (o->first_step != INT64_MIN || o->last_step != INT64_MAX)
			OW_TRY(choose_steps(file));
	}
	return OW_OK;
}

/* ids up to this size (addresses, for example) can be moved by file number */
#define ID_BITS_MAX 48
#define NUMBER_BITS 53 /* integers that viewers can represent exactly */

void merge_options_init(struct merge_options *options)
{
	*options = (struct merge_options){ .labels = true,
					   .from_ns = INT64_MIN,
					   .to_ns = INT64_MAX,
					   .first_step = INT64_MIN,
					   .last_step = INT64_MAX,
					   .writer = "opwatch" };
}

void merge_note(struct merge *m, const char *format, ...)
{
	char text[OW_ERROR_TEXT + 64];
	va_list args;

	if (!m->options->note)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	m->options->note(m->options->note_arg, text);
}

bool merge_poll(struct merge *m)
{
	const struct merge_options *o = m->options;

	if (atomic_load(&m->cancelled))
		return false;
	if (!o->progress || pthread_mutex_trylock(&m->progress_lock) != 0)
		return true;
	if (!o->progress(o->progress_arg, MIN(atomic_load(&m->done), m->total), m->total))
		atomic_store(&m->cancelled, true);
	pthread_mutex_unlock(&m->progress_lock);
	return !atomic_load(&m->cancelled);
}

/* Called while inputs are read, only to ask whether to continue; progress is reported elsewhere. */
static bool poll_input(void *arg, uint64_t done, uint64_t total)
{
	(void)done, (void)total;
	return merge_poll(arg);
}

static void choose_id_bits(struct merge *m)
{
	unsigned bits = 0;

	while ((size_t)1 << bits < m->file_count)
		bits++;
	m->id_bits = MIN(ID_BITS_MAX, NUMBER_BITS - bits);
}

static bool must_measure(const struct merge *m)
{
	return m->options->align != ALIGN_KEEP || m->filter.times ||
	       (m->several && !m->out->restart);
}

static bool any_pairs(const struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++)
		if (m->files[i]->has_pairs)
			return true;
	return false;
}

static ow_status run_pass(struct merge *m, void (*make)(struct pass *))
{
	struct pass pass = { .m = m };

	make(&pass);
	return pass_run(&pass);
}

static void plan_progress(struct merge *m)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->file_count; i++)
		bytes += m->files[i]->size;
	m->counts->bytes_in = bytes;
	m->total = bytes * (1u + must_measure(m) + (m->filter.times && m->filter.active));
}

static ow_status look_first(struct merge *m)
{
	plan_progress(m);
	if (!must_measure(m))
		return OW_OK;
	OW_TRY(run_pass(m, measure_pass));
	m->facts_final = m->measured = true;
	return OW_OK;
}

static ow_status decide(struct merge *m)
{
	processes_release(&m->processes);
	processes_init(&m->processes, m->mem);
	for (size_t i = 0; i < m->file_count; i++)
		m->files[i]->assumed = m->files[i]->facts;
	OW_TRY(labels_choose(m));
	OW_TRY(clocks_choose(m));
	OW_TRY(spans_choose(m));
	if (!m->several)
		return OW_OK;
	OW_TRY(outline_sample(m));
	return processes_number(m);
}

static bool facts_held(const struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++) {
		const struct facts *a = &m->files[i]->facts, *b = &m->files[i]->assumed;

		if (a->rank != b->rank || a->has_base != b->has_base || a->base_ns != b->base_ns)
			return false;
	}
	return true;
}

static ow_status write_events(struct merge *m)
{
	OW_TRY(merged_start(m, m->err));
	OW_TRY(merged_write(m, STR("{\"traceEvents\":["), m->err));
	filter_begin_file(m);
	return run_pass(m, write_pass);
}

/* Writes the trace. A top-level member after the events may require other text in the events; then everything is
 * written again. */
static ow_status write_trace(struct merge *m)
{
	OW_TRY(write_events(m));
	if (m->several && !m->facts_final && !facts_held(m)) {
		m->facts_final = true;
		atomic_store(&m->done, 0);
		for (size_t i = 0; i < m->file_count; i++)
			m->files[i]->min_ns = m->files[i]->max_ns = NO_TIME;
		OW_TRY(m->out->restart(m->out->arg, m->err));
		OW_TRY(decide(m));
		OW_TRY(write_events(m));
	}
	if (m->options->align == ALIGN_KEEP)
		clocks_compare(m);
	OW_TRY(top_level_write(m));
	return merged_finish(m, m->err);
}

static void report_file(struct merge *m, const struct merge_file *file)
{
	const struct faults *f = &file->faults;
	struct merge_counts *c = m->counts;

	c->events_in += file->events_in;
	c->events_out += file->events_out;
	c->filtered += file->filtered;
	c->repaired += file->repaired;
	c->untimed += file->untimed;
	c->others += f->others;
	c->damaged += f->damaged;
	c->damaged_bytes += f->damaged_bytes;
	c->truncated_files += f->truncated;
	if (f->damaged)
		merge_note(m,
			   "%s: %" PRIu64 " bytes in %" PRIu64
			   " place%s could not be read (from byte "
			   "%" PRIu64 " on); the rest is merged",
			   file->path, f->damaged_bytes, f->damaged, f->damaged == 1 ? "" : "s",
			   f->first_damage);
	if (f->truncated)
		merge_note(m,
			   "%s: the file is cut off (at byte %" PRIu64
			   "); everything before it is merged",
			   file->path, f->truncated_at);
	if (f->others)
		merge_note(m, "%s: %" PRIu64 " elements of the list are not events: left out",
			   file->path, f->others);
	if (f->lost_members)
		merge_note(m, "%s: %" PRIu64 " members beside the events were left out", file->path,
			   f->lost_members);
	if (file->untimed)
		merge_note(m, "%s: %" PRIu64 " times are not numbers: left as they are", file->path,
			   file->untimed);
}

static ow_status merge_paths(struct merge *m, const struct merge_path *paths, size_t count)
{
	OW_TRY(filter_init(m));
	OW_TRY(sources_open(m, paths, count));
	m->several = m->file_count > 1;
	m->counts->files = m->file_count;
	choose_id_bits(m);
	OW_TRY(look_first(m));
	OW_TRY(decide(m));
	if (m->filter.times && any_pairs(m))
		OW_TRY(run_pass(m, pair_pass));
	OW_TRY(write_trace(m));
	for (size_t i = 0; i < m->file_count; i++)
		report_file(m, m->files[i]);
	return OW_OK;
}

ow_status merge_files(struct mem *mem, const struct merge_path *paths, size_t count,
		      const struct merge_options *options, const struct merge_out *out,
		      struct merge_counts *counts, struct ow_error *err)
{
	struct ow_error own = { 0 };
	struct merge_counts none = { 0 };
	struct merge m = { .mem = mem,
			   .options = options,
			   .out = out,
			   .counts = counts ? counts : &none,
			   .err = err ? err : &own,
			   .threads = options->threads ? options->threads : parallel_threads() };
	ow_status status;

	error_clear(m.err);
	*m.counts = (struct merge_counts){ 0 };
	m.poll = (struct progress){ poll_input, &m };
	arena_init(&m.arena, mem);
	pthread_mutex_init(&m.files_lock, NULL);
	pthread_mutex_init(&m.progress_lock, NULL);
	processes_init(&m.processes, mem);
	gzip_packer_init(&m.gzip, mem);
	buf_init(&m.packed, mem);
	status = merge_paths(&m, paths, count);
	buf_release(&m.packed);
	gzip_packer_release(&m.gzip);
	zstd_packer_release(&m.zstd);
	filter_release(&m.filter);
	processes_release(&m.processes);
	sources_release(&m);
	arena_release(&m.arena);
	pthread_mutex_destroy(&m.progress_lock);
	pthread_mutex_destroy(&m.files_lock);
	return status;
}
