/* merge.c: ow_merge: many traces into one file, which appears whole or not at all. */
#include "api/api_int.h"

#include "api/atomic_file.h"
#include "merge/merge.h"

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
	const char *path; /* NULL: options.write */
	struct atomic_file file;
	uint64_t offset;
	bool restarted;
};

static bool report(void *arg, uint64_t done, uint64_t total)
{
	const struct merging *g = arg;

	return !g->options.progress ||
	       g->options.progress(g->options.progress_arg, g->path ? g->path : "output", done,
				   total);
}

static void tell(void *arg, const char *text)
{
	const struct merging *g = arg;

	if (g->options.message)
		g->options.message(g->options.message_arg, text, strlen(text));
}

/* ---- where the bytes go ---- */

static ow_status write_file(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct merging *g = arg;
	bool good = g->file.seekable ? atomic_write_at(&g->file, g->offset, bytes, len)
				     : atomic_write(&g->file, bytes, len);

	g->offset += len;
	if (good)
		return OW_OK;
	return error_errno(err, g->file.failure, "%s", g->path);
}

static ow_status restart_file(void *arg, struct error *err)
{
	struct merging *g = arg;

	(void)err;
	g->offset = 0;
	g->restarted = true;
	return OW_OK;
}

static ow_status write_stream(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct merging *g = arg;

	if (g->options.write(g->options.write_arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the reader of the output is gone");
}

/* What the first attempt wrote may have been longer. */
static ow_status cut_file(struct merging *g, struct error *err)
{
	if (!g->restarted || ftruncate(g->file.fd, (off_t)g->offset) == 0)
		return OW_OK;
	return error_errno(err, errno, "%s", g->path);
}

/* ---- options and sums ---- */

static void take_options(const struct merging *g, struct merge_options *to)
{
	static const enum merge_align aligns[] = { ALIGN_KEEP, ALIGN_START, ALIGN_SEQUENCE };
	const struct ow_merge_options *o = &g->options;

	merge_options_init(to);
	to->align = aligns[o->align];
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
	to->note = tell;
	to->note_arg = (void *)(uintptr_t)g;
}

static void give_summary(const struct merge_counts *c, struct ow_merge_summary *to)
{
	struct ow_merge_summary all = { .size = to->size,
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

	memcpy(to, &all, MIN(to->size, sizeof(all)));
}

/* ---- the call ---- */

static ow_status merge_paths(struct merging *g, struct mem *mem, const struct merge_path *paths,
			     size_t count, struct merge_counts *counts, struct error *err)
{
	struct merge_out out = { .write = write_stream, .arg = g };
	struct merge_options options;
	ow_status status;

	take_options(g, &options);
	if (!g->path)
		return merge_files(mem, paths, count, &options, &out, counts, err);
	OW_TRY(pack_kind_of(g->path, &out.pack, err));
	OW_TRY(atomic_open(&g->file, mem, g->path, err));
	out.write = write_file;
	out.restart = g->file.seekable ? restart_file : NULL;
	status = merge_files(mem, paths, count, &options, &out, counts, err);
	if (status == OW_OK)
		status = cut_file(g, err);
	return atomic_finish(&g->file, status, err);
}

/* The same with what the paths stand for. */
static ow_status merge_list(struct merging *g, struct path_list *list, struct merge_counts *counts,
			    struct error *err)
{
	struct merge_path *paths = ARENA_ARRAY(&list->arena, struct merge_path, list->count);

	if (!paths)
		return error_no_memory(err);
	for (size_t i = 0; i < list->count; i++)
		paths[i] = (struct merge_path){ list->items[i].name, list->items[i].found };
	if (list->unreadable)
		tell(g, list->why.text);
	if (list->repeated) {
		char *text = arena_printf(&list->arena, "%s: given more than once, merged once",
					  list->repeated);

		tell(g, text ? text : list->repeated);
	}
	return merge_paths(g, list->arena.mem, paths, list->count, counts, err);
}

ow_status ow_merge(const char *const *paths, size_t count, const struct ow_merge_options *options,
		   const char *out_path, struct ow_merge_summary *summary, struct error *err)
{
	struct merging g = { .path = out_path };
	struct merge_counts counts = { 0 };
	struct path_list list;
	ow_status status;
	struct mem mem;

	error_clear(err);
	ow_merge_options_init(&g.options);
	if (options)
		memcpy(&g.options, options, MIN(options->size, sizeof(g.options)));
	if ((unsigned)g.options.align > OW_ALIGN_SEQUENCE || (!out_path && !g.options.write) ||
	    g.options.keep_from_ns > g.options.keep_to_ns ||
	    g.options.keep_first_step > g.options.keep_last_step)
		return error_set(err, OW_E_USAGE, "the options make no sense together");
	mem_init(&mem, g.options.memory_limit);
	status = paths_expand(&list, &mem, paths, count, err);
	if (status == OW_OK)
		status = merge_list(&g, &list, &counts, err);
	arena_release(&list.arena);
	if (summary)
		give_summary(&counts, summary);
	return status;
}
