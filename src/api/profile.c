/*
 * profile.c: opening and freezing profiles; the bodies of the ow_profile functions.
 */
#include "api/api_int.h"

#include "import/stranger.h"

void ow_open_options_init(struct ow_open_options *options)
{
	*options = (struct ow_open_options){ .size = sizeof(*options), .infer = true };
}

/* A caller built against an older header passes a smaller struct. */
static void copy_options(struct ow_open_options *to, const struct ow_open_options *from)
{
	ow_open_options_init(to);
	if (from)
		memcpy(to, from, MIN(from->size, sizeof(*to)));
	to->size = sizeof(*to);
}

static ow_status copy_texts(ow_profile *p, struct error *err)
{
	size_t count = p->options.input_shapes.count;

	if (p->options.step_marker) {
		p->import.step_marker = arena_cstr(&p->m->arena, str_from(p->options.step_marker));
		if (!p->import.step_marker)
			return error_no_memory(err);
	}
	if (!count)
		return OW_OK;
	p->input_shapes = ARENA_ARRAY(&p->m->arena, char *, count);
	for (size_t i = 0; p->input_shapes && i < count; i++) {
		p->input_shapes[i] =
			arena_cstr(&p->m->arena, str_from(p->options.input_shapes.items[i]));
		if (!p->input_shapes[i])
			return error_no_memory(err);
	}
	if (!p->input_shapes)
		return error_no_memory(err);
	p->import.input_shapes = (const char *const *)p->input_shapes;
	p->import.input_shape_count = count;
	return OW_OK;
}

ow_status ow_profile_new(const struct ow_open_options *options, ow_profile **profile,
			 struct error *err)
{
	ow_profile *p = calloc(1, sizeof(*p));
	ow_status status;

	*profile = NULL;
	if (!p)
		return error_no_memory(err);
	copy_options(&p->options, options);
	mem_init(&p->mem, (size_t)p->options.memory_limit);
	p->m = model_new(&p->mem, err);
	if (!p->m) {
		free(p);
		return OW_E_NO_MEMORY;
	}
	builder_init(&p->b, p->m, &p->build_error);
	p->import = (struct import_options){ .infer = p->options.infer,
					     .strict_proto = p->options.strict_proto,
					     .step = INT64_MIN };
	status = p->b.status != OW_OK ? error_no_memory(err) : copy_texts(p, err);
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	*profile = p;
	return OW_OK;
}

void ow_profile_free(ow_profile *p)
{
	if (!p)
		return;
	if (p->has_checkpoint)
		checkpoint_close(&p->checkpoint);
	model_free(p->m);
	free(p);
}

struct progress_arg {
	ow_profile *p;
	const char *name;
};

static bool report_progress(void *arg, uint64_t done, uint64_t total)
{
	struct progress_arg *progress = arg;
	const struct ow_open_options *options = &progress->p->options;

	return !options->progress ||
	       options->progress(options->progress_arg, progress->name, done, total);
}

static void fill_info(ow_profile *p, struct ow_file_info *info, const struct import_ctx *ctx)
{
	if (!info)
		return;
	info->format = p->b.source.v ? model_str(p->m, p->m->source.format[p->b.source.v]).ptr
				     : import_opw.name; /* its sources are those of its origin */
	info->coverage = ctx->coverage;
	info->missing_step_stats = ctx->missing_step_stats;
}

/* Failures of the builder (memory) are kept apart from the importer's: they end the profile. */
static ow_status load(ow_profile *p, struct prepared *prepared,
		      const struct ow_file_options *options, struct ow_file_info *info,
		      struct error *err)
{
	struct progress_arg arg = { p, prepared->in->name };
	struct progress progress = { report_progress, &arg };
	struct import_options import = p->import;
	struct import_ctx ctx = { 0 };
	struct reading reading;
	ow_status status;

	import.step = options->step;
	import.forget = options->forget;
	prepared->in->progress = &progress;
	status = api_read_begin(p, 0, &reading, err);
	if (status != OW_OK) {
		import_discard(prepared);
		return status;
	}
	status = import_prepared(&p->b, prepared, &import, &ctx, err);
	status = api_read_end(p, &reading, status, err);
	if (options->forget)
		import_forget(&p->b);
	if (status == OW_OK)
		fill_info(p, info, &ctx);
	else if (err && err->status == OW_OK && p->build_error.status != OW_OK)
		*err = p->build_error;
	return status;
}

/* A note about no source in particular. */
static void note_skipped(ow_profile *p, uint64_t count, const struct error *why)
{
	source_id source = p->b.source;

	p->b.source = (source_id){ 0 };
	builder_note_many(&p->b, NOTE_DROPPED, OW_NO_OFFSET, count, "not used: %s", why->text);
	p->b.source = source;
}

static void note_members(ow_profile *p, const struct prepared_list *list)
{
	if (list->skipped)
		note_skipped(p, list->skipped, &list->why);
}

static ow_status add_input(ow_profile *p, struct input *in, const struct ow_file_options *options,
			   struct ow_file_info *info, struct error *err)
{
	const struct importer *importer = NULL;
	struct prepared_list list;
	ow_status status;

	if (options->format) {
		importer = importer_find(str_from(options->format));
		if (!importer) {
			input_close(in);
			return error_set(err, OW_E_USAGE,
					 "no importer is called '%s'; 'opwatch formats' lists them",
					 options->format);
		}
	}
	prepared_list_init(&list, &p->mem);
	list.others = p->b.m->source.count;
	status = import_prepare_all(in, importer, &list, err);
	for (size_t i = 0; i < list.count && status == OW_OK; i++)
		status = load(p, &list.items[i], options, info, err);
	if (status == OW_OK)
		note_members(p, &list);
	prepared_list_release(&list);
	return status;
}

/* Streams are given up early when no importer would take them, unless the caller says what they are. */
static ow_status open_input(ow_profile *p, const char *path, bool format_known, struct input *in,
			    struct error *err)
{
	struct progress_arg arg = { p, path };
	struct progress progress = { report_progress, &arg };
	struct input_options options = { .judge = format_known ? NULL : import_judge,
					 .progress = &progress };
	ow_status status = input_open_with(in, &p->mem, path, &options, err);

	if (status == OW_E_NOT_FOUND)
		stranger_missing(path, err);
	return status;
}

static ow_status check_open(const ow_profile *p, struct error *err)
{
	if (p->frozen)
		return error_set(err, OW_E_USAGE, "the profile is frozen: nothing can be added");
	if (p->b.status != OW_OK)
		return error_set(err, p->b.status, "the profile ended with an error: %s",
				 p->build_error.text);
	return OW_OK;
}

void ow_file_options_init(struct ow_file_options *options)
{
	*options = (struct ow_file_options){ .size = sizeof(*options), .step = INT64_MIN };
}

static struct ow_file_options full_options(const struct ow_file_options *options)
{
	struct ow_file_options full;

	ow_file_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	return full;
}

ow_status ow_profile_add_file(ow_profile *p, const char *path,
			      const struct ow_file_options *options, struct ow_file_info *info,
			      struct error *err)
{
	struct ow_file_options full = full_options(options);
	struct input in;

	error_clear(err);
	OW_TRY(check_open(p, err));
	OW_TRY(open_input(p, path, full.format, &in, err));
	return add_input(p, &in, &full, info, err);
}

ow_status ow_profile_add_memory(ow_profile *p, const char *name, const void *data, size_t len,
				const struct ow_file_options *options, struct ow_file_info *info,
				struct error *err)
{
	struct ow_file_options full = full_options(options);
	unsigned char *copy;
	struct input in;
	ow_status status;

	error_clear(err);
	OW_TRY(check_open(p, err));
	if (full.forget) {
		OW_TRY(input_from_memory(&in, &p->mem, name, data, len, err));
		return add_input(p, &in, &full, info, err);
	}
	copy = mem_alloc(&p->mem, len + 1); /* records are read from it later */
	if (!copy)
		return error_no_memory(err);
	if (len)
		memcpy(copy, data, len);
	status = input_adopt_memory(&in, &p->mem, name, copy, len, len + 1, err);
	if (status != OW_OK) {
		mem_free(&p->mem, copy, len + 1);
		return status;
	}
	return add_input(p, &in, &full, info, err);
}

/* A recording of several ranks has its name in front of each. */
static void rename_source(ow_profile *p, uint32_t source, const char *path, const char *name)
{
	struct str is = model_str(p->m, p->m->source.path[source]);
	struct buf to;

	if (!str_starts(is, str_from(path)))
		return;
	buf_init(&to, &p->mem);
	buf_puts(&to, name);
	buf_add_str(&to, str_skip(is, strlen(path)));
	p->m->source.path[source] = builder_str(&p->b, buf_str(&to));
	buf_release(&to);
}

static void rename_sources(ow_profile *p)
{
	const struct ow_list *list = &p->options.renamed;

	for (uint32_t i = 1; i < p->m->source.count; i++)
		for (size_t k = 0; k + 1 < list->count; k += 2)
			rename_source(p, i, list->items[k], list->items[k + 1]);
}

ow_status ow_profile_freeze(ow_profile *p, struct error *err)
{
	struct reading reading;
	ow_status status;

	error_clear(err);
	OW_TRY(check_open(p, err));
	OW_TRY(api_read_begin(p, p->options.redact ? TABLES_ALL : 0, &reading, err));
	status = import_finish(&p->b, &p->import, err);
	if (status == OW_OK)
		rename_sources(p);
	if (status == OW_OK)
		status = model_freeze(&p->b);
	if (status == OW_OK && p->options.redact)
		status = api_redact(p, err);
	status = api_read_end(p, &reading, status, err);
	if (status == OW_OK)
		p->frozen = true;
	else if (err && err->status == OW_OK)
		*err = p->build_error;
	return status;
}

ow_status ow_profile_thaw(ow_profile *p, struct error *err)
{
	error_clear(err);
	if (!p->frozen)
		return OW_OK;
	if (p->options.redact)
		return error_set(err, OW_E_USAGE,
				 "nothing can be added once names were replaced by hashes");
	if (atomic_load(&p->results))
		return error_set(err, OW_E_USAGE,
				 "%u results of this profile are in use: free them before more is "
				 "added",
				 atomic_load(&p->results));
	OW_TRY(model_require_rows(p->m, TABLES_ALL, err));
	OW_TRY(model_thaw(p->m, err));
	model_unfreeze(p->m);
	p->frozen = false;
	return OW_OK;
}

ow_status ow_profile_set_checkpoint(ow_profile *p, const char *prefix, struct error *err)
{
	struct builder *b = &p->b;
	struct reading reading;

	error_clear(err);
	if (p->has_checkpoint)
		checkpoint_close(&p->checkpoint);
	p->has_checkpoint = false;
	OW_TRY(checkpoint_open(&p->checkpoint, &p->mem, prefix, err));
	p->has_checkpoint = true;
	if (p->frozen)
		return OW_OK;
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	for (size_t i = 0; i < p->checkpoint.var_count; i++) {
		op_id op = model_find_op(p->m, p->checkpoint.vars[i].name);

		if (op.v)
			p->m->op.types[op.v] = builder_strset_add(
				b, p->m->op.types[op.v], builder_cstr(b, "_checkpoint_variables"));
	}
	return api_read_end(p, &reading, builder_status(b), err);
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

size_t ow_profile_steps(const ow_profile *p, int64_t *numbers, size_t cap)
{
	const struct model *m = p->m;
	size_t count = m->step.count - 1;
	struct reading reading;
	int64_t *all;

	if (!numbers || !cap || !count)
		return count;
	if (api_read_begin((ow_profile *)(uintptr_t)p, TABLE_BIT(step), &reading, NULL) != OW_OK)
		return 0;
	all = malloc(count * sizeof(*all));
	if (all)
		memcpy(all, m->step.number + 1, count * sizeof(*all));
	if (api_read_end((ow_profile *)(uintptr_t)p, &reading, OW_OK, NULL) != OW_OK || !all) {
		free(all);
		return 0;
	}
	qsort(all, count, sizeof(*all), by_number);
	memcpy(numbers, all, MIN(count, cap) * sizeof(*all));
	free(all);
	return count;
}

bool ow_profile_has_code(const ow_profile *p)
{
	return p->m->has_code;
}

bool ow_profile_damaged(const ow_profile *p)
{
	return p->m->damaged;
}

void ow_profile_memory(const ow_profile *p, struct ow_memory_use *use)
{
	use->used = atomic_load(&((ow_profile *)(uintptr_t)p)->mem.used);
	use->peak = atomic_load(&((ow_profile *)(uintptr_t)p)->mem.peak);
	use->limit = p->mem.limit;
}

/* Graphs before what annotates them; otherwise as given. */
static int by_role(const void *a, const void *b)
{
	const struct prepared *const *x = a, *const *y = b;

	if ((*x)->importer->role != (*y)->importer->role)
		return (int)(*x)->importer->role - (int)(*y)->importer->role;
	return (*x > *y) - (*x < *y);
}

/* These end everything; any other failure only loses the file. */
static bool fatal(ow_status status)
{
	return status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || status == OW_E_INTERNAL ||
	       status == OW_E_USAGE;
}

/* Opens and recognises one. */
static ow_status prepare_path(ow_profile *p, const struct path *path, struct prepared_list *list,
			      struct error *err)
{
	size_t before = list->count;
	struct input in;

	OW_TRY(open_input(p, path->name, false, &in, err));
	OW_TRY(import_prepare_all(&in, NULL, list, err));
	for (size_t i = before; i < list->count; i++)
		list->items[i].found = path->found || list->count - before > 1;
	return OW_OK;
}

/* Opens and recognises all. */
static ow_status prepare_all(ow_profile *p, const struct path_list *paths,
			     struct prepared_list *list, struct error *first)
{
	const char *other = NULL;
	uint64_t others = 0;

	for (size_t i = 0; i < paths->count; i++) {
		const struct path *path = &paths->items[i];
		struct error why = { 0 };
		ow_status status = prepare_path(p, path, list, &why);

		if (status == OW_OK)
			continue;
		if (first->status == OW_OK)
			*first = why;
		if (fatal(status))
			return status;
		if (path->found && stranger_is_part(path->name))
			continue;
		if (path->found && (status == OW_E_FORMAT || status == OW_E_EMPTY)) {
			other = path->name;
			others++;
			continue;
		}
		note_skipped(p, 1, &why);
	}
	if (others && list->count)
		builder_note_many(&p->b, NOTE_INFO, OW_NO_OFFSET, others,
				  "not used: %s: not a profile", other);
	if (paths->unreadable)
		note_skipped(p, paths->unreadable, &paths->why);
	note_members(p, list);
	if (!list->count)
		return first->status;
	return api_set_parts_aside(p, list, first);
}

static ow_status load_all(ow_profile *p, struct prepared **items, size_t count, struct error *first)
{
	const struct ow_file_options plain = full_options(NULL);
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct error why = { 0 };
		ow_status status = load(p, items[i], &plain, NULL, &why);

		if (status == OW_OK) {
			used++;
			continue;
		}
		if (first->status == OW_OK)
			*first = why;
		if (fatal(status) || p->b.status != OW_OK) {
			*first = why;
			return status;
		}
		note_skipped(p, 1, &why);
	}
	return used ? OW_OK : first->status;
}

static ow_status load_in_order(ow_profile *p, struct prepared_list *list, struct error *first)
{
	struct prepared **items = mem_alloc(&p->mem, list->count * sizeof(*items));
	ow_status status;

	if (!items)
		return error_no_memory(first);
	for (size_t i = 0; i < list->count; i++)
		items[i] = &list->items[i];
	qsort(items, list->count, sizeof(*items), by_role);
	status = load_all(p, items, list->count, first);
	mem_free(&p->mem, items, list->count * sizeof(*items));
	return status;
}

static ow_status open_paths(ow_profile *p, const struct path_list *paths, struct error *err)
{
	struct prepared_list list;
	struct error first = { 0 };
	ow_status status;

	prepared_list_init(&list, &p->mem);
	status = prepare_all(p, paths, &list, &first);
	if (status == OW_OK)
		status = load_in_order(p, &list, &first);
	prepared_list_release(&list);
	if (status != OW_OK && err)
		*err = first;
	return status;
}

ow_status ow_profile_open(const char *const *paths, size_t count,
			  const struct ow_open_options *options, ow_profile **profile,
			  struct error *err)
{
	struct path_list list = { 0 };
	ow_profile *p;
	ow_status status;

	error_clear(err);
	OW_TRY(ow_profile_new(options, &p, err));
	status = paths_expand(&list, &p->mem, paths, count, err);
	if (status == OW_OK)
		status = open_paths(p, &list, err);
	arena_release(&list.arena);
	if (status == OW_OK)
		status = ow_profile_freeze(p, err);
	if (status != OW_OK) {
		ow_profile_free(p);
		p = NULL;
	}
	*profile = p;
	return status;
}
