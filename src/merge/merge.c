/* merge.c: see merge.h. The order of the passes; everything else is in the other files. */
#include "merge/merge_int.h"

#include <stdarg.h>

#define ID_BITS_MAX 48 /* addresses fit */
#define NUMBER_BITS 53 /* what viewers keep exactly */

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

/* While inputs are read only the question whether to go on matters. */
static bool poll_input(void *arg, uint64_t done, uint64_t total)
{
	(void)done, (void)total;
	return merge_poll(arg);
}

/* ---- before writing ---- */

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

/* ---- writing ---- */

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

/* What stands behind the events may tell that they had to be written otherwise: then all is done again. */
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
	OW_TRY(tail_write(m));
	return merged_finish(m, m->err);
}

/* ---- telling ---- */

static void tell_file(struct merge *m, const struct merge_file *file)
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
			   "); what is before is merged",
			   file->path, f->truncated_at);
	if (f->others)
		merge_note(m, "%s: %" PRIu64 " elements of the list are no events and left out",
			   file->path, f->others);
	if (f->lost_members)
		merge_note(m, "%s: %" PRIu64 " members beside the events are left out", file->path,
			   f->lost_members);
	if (file->untimed)
		merge_note(m, "%s: %" PRIu64 " times are no numbers and were left as they are",
			   file->path, file->untimed);
}

static ow_status run(struct merge *m, const struct merge_path *paths, size_t count)
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
		tell_file(m, m->files[i]);
	return OW_OK;
}

ow_status merge_files(struct mem *mem, const struct merge_path *paths, size_t count,
		      const struct merge_options *options, const struct merge_out *out,
		      struct merge_counts *counts, struct error *err)
{
	struct error own = { 0 };
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
	status = run(&m, paths, count);
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
