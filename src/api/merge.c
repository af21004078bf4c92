/* merge.c: ow_merge: many traces into one file, which appears whole or not at all. */
#include "api/api_int.h"

#include "api/ranks.h"
#include "base/atomic_file.h"
#include "merge/merge.h"
#include "merge/redact_text.h"
#include "wire/container/pack.h"

#include "opwatch_config.h"

#include <errno.h>
#include <unistd.h>

void ow_merge_options_init(struct ow_merge_options *options)
{
	*options = (struct ow_merge_options){ .size = sizeof(*options),
					      .keep_from_ns = INT64_MIN,
					      .keep_to_ns = INT64_MAX,
					      .keep_first_step = INT64_MIN,
					      .keep_last_step = INT64_MAX };
}

struct merging {
	struct ow_merge_options options;
	const char *path; /* path of the output; NULL: options.write receives it */
	struct merge_clock *clocks;
	size_t clock_count;
	struct atomic_file file;
	uint64_t offset;
	bool restarted;
};

/* Filters the merged text before it is written: names are replaced, then the text is packed. */
struct redacting {
	struct merge_out to;
	struct redact_text text;
	struct gzip_packer gzip;
	struct zstd_packer zstd;
	struct buf packed;
	uint32_t crc;
	uint64_t size;
	bool begun;
};

static bool report(void *arg, uint64_t done, uint64_t total)
{
	const struct merging *g = arg;

	return !g->options.progress ||
	       g->options.progress(g->options.progress_arg, g->path ? g->path : "output", done,
				   total);
}

static void report_line(void *arg, const char *text)
{
	const struct merging *g = arg;

	if (g->options.message)
		g->options.message(g->options.message_arg, text, strlen(text));
}

static ow_status write_file(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct merging *g = arg;
	bool good = g->file.seekable ? atomic_write_at(&g->file, g->offset, bytes, len)
				     : atomic_write(&g->file, bytes, len);

	g->offset += len;
	if (good)
		return OW_OK;
	return error_errno(err, g->file.failure, "%s", g->path);
}

static ow_status restart_file(void *arg, struct ow_error *err)
{
	struct merging *g = arg;

	(void)err;
	g->offset = 0;
	g->restarted = true;
	return OW_OK;
}

static ow_status write_stream(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct merging *g = arg;

	if (g->options.write(g->options.write_arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the reader of the output has closed it");
}

static ow_status put_packed(struct redacting *d, bool last, struct ow_error *err)
{
	struct str plain = buf_str(&d->text.out);

	buf_clear(&d->packed);
	if (d->to.pack == PACK_GZIP && !d->begun)
		gzip_head(&d->packed);
	d->begun = true;
	if (d->to.pack == PACK_GZIP && plain.len) {
		OW_TRY(gzip_pack(&d->gzip, plain, &d->packed, err));
		d->crc = gzip_crc(d->crc, plain);
		d->size += plain.len;
	}
	if (d->to.pack == PACK_GZIP && last)
		gzip_tail(&d->packed, d->crc, d->size);
	if (d->to.pack == PACK_ZSTD && (plain.len || last))
		OW_TRY(zstd_pack(&d->zstd, plain.len ? plain : STR(""), last, &d->packed, err));
	if (d->to.pack == PACK_NONE)
		buf_add_str(&d->packed, plain);
	buf_clear(&d->text.out);
	if (d->packed.failed)
		return error_no_memory(err);
	return d->packed.len ? d->to.write(d->to.arg, d->packed.ptr, d->packed.len, err) : OW_OK;
}

static ow_status write_redacted(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct redacting *d = arg;

	OW_TRY(redact_text_add(&d->text, str_make(bytes, len), err));
	return put_packed(d, false, err);
}

/* Merges with names replaced. The output cannot be restarted, because pseudonyms are assigned in
 * order. */
static ow_status merge_redacted(struct mem *mem, const struct merge_path *paths, size_t count,
				const struct merge_options *options, const struct merge_out *to,
				struct merge_counts *counts, struct ow_error *err)
{
	struct redacting *d = mem_zalloc(mem, sizeof(*d));
	struct merge_out out = { .write = write_redacted, .arg = d };
	ow_status status;

	if (!d)
		return error_no_memory(err);
	d->to = *to;
	buf_init(&d->packed, mem);
	gzip_packer_init(&d->gzip, mem);
	status = redact_text_init(&d->text, mem, err);
	if (status == OW_OK)
		status = merge_files(mem, paths, count, options, &out, counts, err);
	if (status == OW_OK)
		status = put_packed(d, true, err);
	redact_text_release(&d->text);
	gzip_packer_release(&d->gzip);
	zstd_packer_release(&d->zstd);
	buf_release(&d->packed);
	mem_free(mem, d, sizeof(*d));
	return status;
}

/* Shortens the file, because the first attempt may have written more. */
static ow_status cut_file(struct merging *g, struct ow_error *err)
{
	if (!g->restarted || ftruncate(g->file.fd, (off_t)g->offset) == 0)
		return OW_OK;
	return error_errno(err, errno, "%s", g->path);
}

static void take_options(const struct merging *g, struct merge_options *to)
{
	static const enum merge_align aligns[] = { ALIGN_KEEP, ALIGN_START, ALIGN_SEQUENCE,
						   ALIGN_CLOCKS };
	const struct ow_merge_options *o = &g->options;

	merge_options_init(to);
	to->align = aligns[o->align];
	to->clocks = g->clocks;
	to->clock_count = g->clock_count;
	to->labels = !o->no_labels;
	to->names = o->keep_names;
	to->categories = o->keep_categories;
	to->pids = o->keep_pids;
	to->from_ns = o->keep_from_ns;
	to->to_ns = o->keep_to_ns;
	to->first_step = o->keep_first_step;
	to->last_step = o->keep_last_step;
	to->writer = "opwatch " OPWATCH_VERSION;
	to->progress = report;
	to->progress_arg = (void *)(uintptr_t)g;
	to->note = report_line;
	to->note_arg = (void *)(uintptr_t)g;
}

static void fill_summary(const struct merge_counts *c, struct ow_merge_summary *to)
{
	struct ow_merge_summary all = { .size = sizeof(all),
					.files = c->files,
					.skipped_files = c->skipped_files,
					.events_in = c->events_in,
					.events_out = c->events_out,
					.filtered = c->filtered,
					.added = c->added,
					.repaired = c->repaired,
					.others = c->others,
					.damaged = c->damaged,
					.damaged_bytes = c->damaged_bytes,
					.truncated_files = c->truncated_files,
					.untimed = c->untimed,
					.hidden = c->hidden,
					.bytes_in = c->bytes_in,
					.bytes_out = c->bytes_out,
					.unrelated_clocks = c->unrelated_clocks };

	SIZED_OUT(to, &all);
}

static ow_status merge_paths(struct merging *g, struct mem *mem, const struct merge_path *paths,
			     size_t count, struct merge_counts *counts, struct ow_error *err)
{
	ow_status (*run)(struct mem *, const struct merge_path *, size_t,
			 const struct merge_options *, const struct merge_out *,
			 struct merge_counts *, struct ow_error *) =
		g->options.redact ? merge_redacted : merge_files;
	struct merge_out out = { .write = write_stream, .arg = g };
	struct merge_options options;
	ow_status status;

	take_options(g, &options);
	if (!g->path)
		return run(mem, paths, count, &options, &out, counts, err);
	OW_TRY(pack_kind_of(g->path, &out.pack, err));
	OW_TRY(atomic_open(&g->file, mem, g->path, err));
	out.write = write_file;
	out.restart = g->file.seekable ? restart_file : NULL;
	status = run(mem, paths, count, &options, &out, counts, err);
	if (status == OW_OK)
		status = cut_file(g, err);
	return atomic_finish(&g->file, status, err);
}

static ow_status copy_clock(struct merging *g, struct arena *arena, const struct worker *w,
			    struct ow_error *err)
{
	struct merge_clock_piece *pieces =
		ARENA_ARRAY(arena, struct merge_clock_piece, w->piece_count + 1);
	struct merge_clock clock = { arena_cstr(arena, w->path), pieces, w->piece_count };

	if (!pieces || !clock.path)
		return error_no_memory(err);
	for (size_t i = 0; i < w->piece_count; i++)
		pieces[i] = (struct merge_clock_piece){ .from_ns = w->pieces[i].from_ns,
							.origin_ns = w->pieces[i].origin_ns,
							.offset_ns = w->pieces[i].offset_ns,
							.drift = w->pieces[i].drift };
	g->clocks[g->clock_count++] = clock;
	return OW_OK;
}

/* Takes the fitted clocks. All files must belong to one job, with known clocks. */
static ow_status take_clocks(struct merging *g, struct arena *arena, const struct ranks_job *job,
			     struct ow_error *err)
{
	if (job->clock == CLOCK_IMPOSSIBLE)
		return error_set(err, OW_E_UNSUPPORTED,
				 "the clocks of these files cannot be fitted: %s; use --align "
				 "keep, start or sequence",
				 *job->clock_why ? job->clock_why : "no shared collective");
	g->clocks = ARENA_ARRAY(arena, struct merge_clock, job->worker_count + 1);
	if (!g->clocks)
		return error_no_memory(err);
	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		if (w->left_out || !w->has_clock)
			return error_set(err, OW_E_UNSUPPORTED,
					 "%.*s: its clock cannot be fitted to those of the other "
					 "files: %s",
					 STR_ARG(w->path),
					 !w->left_out	   ? job->clock_why
					 : job->mixed_jobs ? job->mixed_why
							   : "it is a copy of another file");
		if (w->task.len)
			return error_set(
				err, OW_E_UNSUPPORTED,
				"these files hold tasks of several hosts, each with its own "
				"clock, and merge moves whole files: use `opwatch convert "
				"FILES --to timeline --align clocks`");
		OW_TRY(copy_clock(g, arena, w, err));
	}
	if (job->clock == CLOCK_SHARED)
		report_line(g, "all files use one clock: their times stay unchanged");
	return OW_OK;
}

/* Reads the files once before they are merged, to fit their clocks. */
static ow_status fit_clocks(struct merging *g, struct path_list *list, struct ow_error *err)
{
	struct ow_ranks_options options;
	struct ranks_job job;
	ow_status status;

	ow_ranks_options_init(&options);
	options.memory_limit = g->options.memory_limit;
	options.progress = g->options.progress;
	options.progress_arg = g->options.progress_arg;
	ranks_init(&job, list->arena.mem);
	status = api_ranks_read(&job, list, &options, NULL, err);
	if (status == OW_OK)
		status = ranks_finish(&job, err);
	if (status == OW_OK)
		status = take_clocks(g, &list->arena, &job, err);
	ranks_release(&job);
	return status;
}

/* Merges the files that the paths expand to. */
static ow_status merge_list(struct merging *g, struct path_list *list, struct merge_counts *counts,
			    struct ow_error *err)
{
	struct merge_path *paths = ARENA_ARRAY(&list->arena, struct merge_path, list->count);

	if (!paths)
		return error_no_memory(err);
	for (size_t i = 0; i < list->count; i++)
		paths[i] = (struct merge_path){ list->items[i].name, list->items[i].found };
	if (list->unreadable)
		report_line(g, list->why.text);
	if (list->repeated) {
		char *text = arena_printf(&list->arena, "%s: given more than once, merged once",
					  list->repeated);

		report_line(g, text ? text : list->repeated);
	}
	if (g->options.align == OW_ALIGN_CLOCKS)
		OW_TRY(fit_clocks(g, list, err));
	return merge_paths(g, list->arena.mem, paths, list->count, counts, err);
}

ow_status ow_merge(const char *const *paths, size_t count, const struct ow_merge_options *options,
		   const char *out_path, struct ow_merge_summary *summary, struct ow_error *err)
{
	struct merging g = { .path = out_path };
	struct merge_counts counts = { 0 };
	struct path_list list;
	ow_status status;
	struct mem mem;

	error_clear(err);
	ow_merge_options_init(&g.options);
	SIZED_IN(&g.options, options);
	if ((unsigned)g.options.align > OW_ALIGN_CLOCKS || (!out_path && !g.options.write) ||
	    g.options.keep_from_ns > g.options.keep_to_ns ||
	    g.options.keep_first_step > g.options.keep_last_step)
		return error_set(err, OW_E_USAGE, "these options contradict each other");
	mem_init(&mem, g.options.memory_limit);
	status = paths_expand(&list, &mem, paths, count, err);
	if (status == OW_OK)
		status = merge_list(&g, &list, &counts, err);
	arena_release(&list.arena);
	fill_summary(&counts, summary);
	return status;
}
