/*
 * profile.c: the bodies of the ow_profile functions: opening, freezing, saving, and estimates of what opening takes. Also the
 * frame around every call that reads rows of a profile (api_read_begin, api_read_end). Importers are in src/import, the
 * own file format in sink/own and import/own.
 */
#include "api/api_int.h"

#include "base/atomic_file.h"
#include "import/own/record.h"
#include "import/unrecognised.h"
#include "model/redact.h"
#include "ranks/ranks.h"
#include "sink/own/opw_save.h"
#include "wire/own/opw.h"

#include "opwatch_config.h"

/* For most profiles little happens: rows that an importer put off are made. Rows in a file of our own are verified first and
 * read under a guard; what was read is void if the file changed meanwhile. */

ow_status api_check_frozen(const ow_profile *p, struct ow_error *err)
{
	if (p->frozen)
		return OW_OK;
	return error_set(err, OW_E_USAGE, "the profile is still being loaded: freeze it first");
}

static ow_status check_file(const struct model *m, struct ow_error *err)
{
	if (mapping_lost(&m->backing->map))
		return model_lost(m, err);
	return input_check_unchanged(&m->backing->file, err);
}

ow_status api_read_begin(ow_profile *p, uint64_t tables, struct reading *reading,
			 struct ow_error *err)
{
	ow_status status;

	reading->guarded = p && p->m->backing != NULL; /* the answer of a server has no profile */
	if (!reading->guarded)
		return p ? model_require_rows(p->m, tables, err) : OW_OK;
	OW_TRY(check_file(p->m, err));
	guard_enter(&reading->guard);
	status = model_require_rows(p->m, tables, err);
	if (status != OW_OK)
		guard_leave(&reading->guard);
	return status;
}

ow_status api_read_end(ow_profile *p, struct reading *reading, ow_status status,
		       struct ow_error *err)
{
	if (!reading->guarded)
		return status;
	guard_leave(&reading->guard);
	return check_file(p->m, err) == OW_OK ? status : OW_E_IO;
}

void ow_open_options_init(struct ow_open_options *options)
{
	*options = (struct ow_open_options){ .size = sizeof(*options), .infer = true };
}

static ow_status copy_texts(ow_profile *p, struct ow_error *err)
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
			 struct ow_error *err)
{
	ow_profile *p = calloc(1, sizeof(*p));
	ow_status status;

	*profile = NULL;
	if (!p)
		return error_no_memory(err);
	ow_open_options_init(&p->options);
	SIZED_IN(&p->options, options);
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
	api_forget_headline(p);
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
	struct ow_file_info all = { .size = sizeof(all),
				    /* the sources of an opwatch file are those of its origin */
				    .format = import_opw.name,
				    .coverage = ctx->coverage,
				    .missing_step_stats = ctx->missing_step_stats };

	if (p->b.source.v)
		all.format = model_str(p->m, p->m->source.format[p->b.source.v]).ptr;
	SIZED_OUT(info, &all);
}

/* Loads an input. Failures of the builder (memory) are kept apart from failures of the importer,
 * because they end the profile. */
static ow_status load(ow_profile *p, struct prepared *prepared,
		      const struct ow_file_options *options, struct ow_file_info *info,
		      struct ow_error *err)
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

/* Adds a note that belongs to no source. */
static void note_skipped(ow_profile *p, uint64_t count, const struct ow_error *why)
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
			   struct ow_file_info *info, struct ow_error *err)
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

/* Opens an input. A stream that no importer would accept is rejected early, unless the caller
 * names its format. */
static ow_status open_input(ow_profile *p, const char *path, bool format_known, struct input *in,
			    struct ow_error *err)
{
	struct progress_arg arg = { p, path };
	struct progress progress = { report_progress, &arg };
	struct input_options options = { .judge = format_known ? NULL : import_judge,
					 .progress = &progress };
	ow_status status = input_open_with(in, &p->mem, path, &options, err);

	if (status == OW_E_NOT_FOUND)
		unrecognised_missing(path, err);
	return status;
}

static ow_status check_open(const ow_profile *p, struct ow_error *err)
{
	if (p->frozen)
		return error_set(err, OW_E_USAGE, "the profile is frozen: nothing can be added");
	if (p->b.status != OW_OK)
		return error_set(
			err, p->b.status,
			"nothing can be added to the profile, because an earlier call failed: %s",
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
	SIZED_IN(&full, options);
	return full;
}

ow_status ow_profile_add_file(ow_profile *p, const char *path,
			      const struct ow_file_options *options, struct ow_file_info *info,
			      struct ow_error *err)
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
				struct ow_error *err)
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
	/* the copy stays, because records are read from it later */
	copy = mem_alloc(&p->mem, len + 1);
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

/* Renames a source. If a recording has several ranks, the name is put in front of each. */
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

/* Redacts the profile. The checkpoint is dropped, because its names and values would reveal what
 * the model no longer has. */
static ow_status redact_profile(ow_profile *p, struct ow_error *err)
{
	if (p->has_checkpoint)
		checkpoint_close(&p->checkpoint);
	p->has_checkpoint = false;
	return model_redact(p->m, p->options.redact_alike, err);
}

ow_status ow_profile_freeze(ow_profile *p, struct ow_error *err)
{
	struct reading reading;
	ow_status status;
	bool whole;

	error_clear(err);
	OW_TRY(check_open(p, err));
	whole = p->options.redact || p->options.align_clocks;
	OW_TRY(api_read_begin(p, whole ? TABLES_ALL : 0, &reading, err));
	status = import_finish(&p->b, &p->import, err);
	if (status == OW_OK)
		rename_sources(p);
	if (status == OW_OK)
		status = model_freeze(&p->b);
	if (status == OW_OK && p->options.align_clocks)
		status = ranks_align(&p->b, err);
	if (status == OW_OK && p->options.redact)
		status = redact_profile(p, err);
	status = api_read_end(p, &reading, status, err);
	if (status == OW_OK)
		p->frozen = true;
	else if (err && err->status == OW_OK)
		*err = p->build_error;
	return status;
}

ow_status ow_profile_thaw(ow_profile *p, struct ow_error *err)
{
	error_clear(err);
	if (!p->frozen)
		return OW_OK;
	if (p->options.redact)
		return error_set(err, OW_E_USAGE,
				 "nothing can be added after names were replaced by hashes");
	if (atomic_load(&p->results))
		return error_set(err, OW_E_USAGE,
				 "%u results of this profile are in use: free them before you add "
				 "more",
				 atomic_load(&p->results));
	OW_TRY(model_require_rows(p->m, TABLES_ALL, err));
	OW_TRY(model_thaw(p->m, err));
	model_unfreeze(p->m);
	p->frozen = false;
	api_forget_headline(p);
	return OW_OK;
}

ow_status ow_profile_set_checkpoint(ow_profile *p, const char *prefix, struct ow_error *err)
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

ow_status ow_profile_steps(ow_profile *p, int64_t *numbers, size_t cap, size_t *out,
			   struct ow_error *err)
{
	const struct model *m = p->m;
	size_t count = m->step.count - 1;
	struct reading reading;
	ow_status status;
	int64_t *all;

	error_clear(err);
	*out = count;
	if (!cap || !count)
		return OW_OK;
	OW_TRY(api_read_begin(p, TABLE_BIT(step), &reading, err));
	all = malloc(count * sizeof(*all));
	if (all)
		memcpy(all, m->step.number + 1, count * sizeof(*all));
	status = api_read_end(p, &reading, all ? OW_OK : error_no_memory(err), err);
	if (status == OW_OK) {
		qsort(all, count, sizeof(*all), by_number);
		memcpy(numbers, all, MIN(count, cap) * sizeof(*all));
	}
	free(all);
	return status;
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
	struct mem *mem = (struct mem *)(uintptr_t)&p->mem;
	const struct ow_memory_use all = { .size = sizeof(all),
					   .used = atomic_load(&mem->used),
					   .peak = atomic_load(&mem->peak),
					   .limit = mem->limit };

	SIZED_OUT(use, &all);
}

/* Orders inputs: graphs first, then files that annotate them; otherwise in the given order. */
static int by_role(const void *a, const void *b)
{
	const struct prepared *const *x = a, *const *y = b;

	if ((*x)->importer->role != (*y)->importer->role)
		return (int)(*x)->importer->role - (int)(*y)->importer->role;
	return (*x > *y) - (*x < *y);
}

/* Returns whether a failure ends the call; any other failure only loses the file. */
static bool fatal(ow_status status)
{
	return status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || status == OW_E_INTERNAL ||
	       status == OW_E_USAGE;
}

/* Opens one file and detects its format. */
static ow_status prepare_path(ow_profile *p, const struct path *path, struct prepared_list *list,
			      struct ow_error *err)
{
	size_t before = list->count;
	struct input in;

	OW_TRY(open_input(p, path->name, false, &in, err));
	OW_TRY(import_prepare_all(&in, NULL, list, err));
	for (size_t i = before; i < list->count; i++)
		list->items[i].found = path->found || list->count - before > 1;
	return OW_OK;
}

/* Opens all files and detects their formats. */
static ow_status prepare_all(ow_profile *p, const struct path_list *paths,
			     struct prepared_list *list, struct ow_error *first)
{
	const char *other = NULL;
	uint64_t others = 0;

	for (size_t i = 0; i < paths->count; i++) {
		const struct path *path = &paths->items[i];
		struct ow_error why = { 0 };
		ow_status status = prepare_path(p, path, list, &why);

		if (status == OW_OK)
			continue;
		if (first->status == OW_OK)
			*first = why;
		if (fatal(status))
			return status;
		if (path->found && unrecognised_is_part(path->name))
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
	return import_drop_redundant(&p->b, list, first);
}

static ow_status load_all(ow_profile *p, struct prepared **items, size_t count,
			  struct ow_error *first)
{
	const struct ow_file_options plain = full_options(NULL);
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct ow_error why = { 0 };
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

static ow_status load_in_order(ow_profile *p, struct prepared_list *list, struct ow_error *first)
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

static ow_status open_paths(ow_profile *p, const struct path_list *paths, struct ow_error *err)
{
	struct prepared_list list;
	struct ow_error first = { 0 };
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
			  struct ow_error *err)
{
	struct path_list list = { 0 };
	ow_profile *p;
	ow_status status;

	error_clear(err);
	*profile = NULL;
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

void ow_save_options_init(struct ow_save_options *options)
{
	*options = (struct ow_save_options){ .size = sizeof(*options) };
}

struct saving {
	struct atomic_file file;
	struct record_reader records;
	struct ow_save_options options;
	const char *path;
};

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err)
{
	struct saving *s = arg;

	if (atomic_write_at(&s->file, offset, bytes, len))
		return OW_OK;
	return error_errno(err, s->file.failure, "%s", s->path);
}

static ow_status keep_record(void *arg, op_id op, struct str *bytes, struct ow_error *err)
{
	return record_keep(arg, op, bytes, err);
}

static bool report_saving(void *arg, uint64_t done, uint64_t total)
{
	const struct saving *s = arg;

	return !s->options.progress ||
	       s->options.progress(s->options.progress_arg, s->path, done, total);
}

static ow_status save_model(ow_profile *p, struct saving *s, struct ow_error *err)
{
	const struct progress progress = { report_saving, s };
	const struct opw_out out = { write_at, s };
	const struct opw_save_options options = { .writer = "opwatch " OPWATCH_VERSION,
						  .record = keep_record,
						  .record_arg = &s->records,
						  .progress = &progress };
	struct reading reading;
	ow_status status;

	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	record_reader_init(&s->records, p->m);
	status = opw_save(p->m, &options, &out, err);
	record_reader_release(&s->records);
	return api_read_end(p, &reading, status, err);
}

ow_status ow_profile_save(ow_profile *p, const char *path, const struct ow_save_options *options,
			  struct ow_error *err)
{
	struct saving s = { .path = path };
	ow_status status;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	ow_save_options_init(&s.options);
	SIZED_IN(&s.options, options);
	OW_TRY(atomic_open(&s.file, &p->mem, path, err));
	status = s.file.seekable ? save_model(p, &s, err)
				 : error_set(err, OW_E_USAGE,
					     "%s: an opwatch file must be a regular file", path);
	return atomic_finish(&s.file, status, err);
}

/* Checks recordings of running programs. Their blocks were verified when they were loaded. One file with
 * several ranks has several sources. */
static ow_status verify_recordings(const struct model *m, uint64_t *bytes, struct ow_error *err)
{
	*bytes = 0;
	for (uint32_t i = 1; i < m->source.count; i++) {
		if (!str_eq(model_str(m, m->source.format[i]), STR("live"))) {
			*bytes = 0;
			return OW_OK;
		}
		if (i == 1 || m->source.path[i].v != m->source.path[i - 1].v)
			*bytes += m->source.size[i];
	}
	for (uint32_t i = 1; *bytes && i < m->note.count; i++) {
		struct str path = model_str(m, m->source.path[m->note.source[i].v]);
		struct str text = model_str(m, m->note.text[i]);

		if (m->note.kind[i] == NOTE_DAMAGED)
			return error_set(err, OW_E_CORRUPT, "%.*s: %.*s", STR_ARG(path),
					 STR_ARG(text));
	}
	return OW_OK;
}

ow_status ow_profile_verify(ow_profile *p, uint64_t *bytes, struct ow_error *err)
{
	struct reading reading;
	uint64_t size = 0;
	ow_status status;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	if (p->m->backing)
		size = p->m->backing->file.size;
	else
		OW_TRY(verify_recordings(p->m, &size, err));
	if (bytes)
		*bytes = size;
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = model_verify_rest(p->m, err);
	return api_read_end(p, &reading, status, err);
}

/* An estimate loads the first megabytes as a cut file and scales what that took: this works for every format, also inside
 * gzip and zstd, and no importer knows about it. */

#define SAMPLE_BYTES ((size_t)4 << 20)

static uint64_t scaled(uint64_t value, uint64_t whole, uint64_t part)
{
	return part ? (uint64_t)((double)value * ((double)whole / (double)part)) : value;
}

static ow_status load_sample(ow_profile *p, const void *head, size_t len, const char *name,
			     struct ow_estimate *e, struct ow_error *err)
{
	struct prepared prepared;
	struct input in;
	struct import_ctx ctx;
	uint64_t before = atomic_load(&p->mem.used), content;
	ow_status status;

	OW_TRY(input_from_memory(&in, &p->mem, name, head, len, err));
	OW_TRY(import_prepare(&in, NULL, &prepared, err));
	e->format = prepared.importer->name;
	e->container = prepared.unpacked.container ? prepared.unpacked.container : "";
	content = prepared.in->size;
	e->content_bytes = scaled(content, e->file_bytes, len);
	status = import_prepared(&p->b, &prepared, &p->import, &ctx, err);
	/* The first part of a file may be too small to be usable; its sizes are reported anyway. */
	if (status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED)
		return status;
	if (p->b.status == OW_OK)
		OW_TRY(model_require_rows(p->m, TABLES_ALL, err));
	if (p->m->source.count > 1)
		e->rank = p->m->source.rank[1];
	e->events = scaled(p->m->event.count - 1, e->content_bytes, content);
	e->memory_bytes =
		scaled(atomic_load(&p->mem.used) - before, e->content_bytes, content) + before;
	return OW_OK;
}

/* Measures an opwatch file by opening it, which takes little more time than an estimate; a part
 * of it would not be representative. */
static ow_status measure_stored(ow_profile *p, struct input *in, struct ow_estimate *e,
				struct ow_error *err)
{
	struct prepared prepared;
	struct import_ctx ctx;

	OW_TRY(import_prepare(in, &import_opw, &prepared, err));
	OW_TRY(import_prepared(&p->b, &prepared, &p->import, &ctx, err));
	e->format = import_opw.name;
	e->content_bytes = e->file_bytes;
	if (p->m->source.count > 1)
		e->rank = p->m->source.rank[1];
	e->events = p->m->event.count - 1;
	e->memory_bytes = atomic_load(&p->mem.used);
	return OW_OK;
}

static bool is_stored(const struct input *in)
{
	char head[8];

	return input_read_at(in, 0, head, sizeof(head), NULL) == OW_OK &&
	       opw_is(str_make(head, sizeof(head)));
}

ow_status ow_estimate_file(const char *path, struct ow_estimate *estimate, struct ow_error *err)
{
	const struct input_options options = { .judge = import_judge };
	struct ow_estimate e = { .size = sizeof(e), .container = "", .rank = -1 };
	struct input in;
	ow_profile *p;
	unsigned char *head = NULL;
	size_t len = 0;
	ow_status status;

	error_clear(err);
	OW_TRY(ow_profile_new(NULL, &p, err));
	p->import.infer = false;
	p->import.estimate = true;
	status = input_open_with(&in, &p->mem, path, &options, err);
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	e.file_bytes = in.size;
	if (is_stored(&in)) {
		status = measure_stored(p, &in, &e, err);
		goto out;
	}
	len = (size_t)MIN((uint64_t)SAMPLE_BYTES, in.size);
	head = malloc(len + 1);
	status = head ? input_read_at(&in, 0, head, len, err) : error_no_memory(err);
	if (status == OW_OK && !len)
		status = error_set(err, OW_E_EMPTY,
				   "%s: the file is empty; was it written to the end?", path);
	if (status == OW_OK)
		status = load_sample(p, head, len, path, &e, err);
	input_close(&in);
out:
	ow_profile_free(p);
	free(head);
	if (status == OW_OK)
		SIZED_OUT(estimate, &e);
	return status;
}
