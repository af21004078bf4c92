/*
 * import.c: the table of importers, recognition by content, and the loading of one input. Knows no
 * format itself.
 */
#include "import/jobs.h"
#include "import/importer.h"

#include "base/vec.h"

#include "import/unrecognised.h"
#include "import/tensorflow/tf_finish.h"
#include "model/backing.h"
#include "wire/container/archive.h"

#define IMPORTER(name) &import_##name,
const struct importer *const importers[] = {
#include "import/importers.def"
};
#undef IMPORTER
const size_t importer_count = ARRAY_COUNT(importers);

#define CERTAIN 90 /* with this score no other format is considered */
#define SNIFF_BYTES ((size_t)64 << 10)
#define TAIL_BYTES ((size_t)64)
#define OPEN_INPUTS 64 /* number of inputs that keep a descriptor; later ones do without */

const struct importer *importer_find(struct str name)
{
	for (size_t i = 0; i < importer_count; i++)
		if (str_eq(str_from(importers[i]->name), name))
			return importers[i];
	return NULL;
}

static const struct importer *best_match(const struct sniff *sniff)
{
	const struct importer *best = NULL;
	int best_score = 0;

	for (size_t i = 0; i < importer_count; i++) {
		int score = importers[i]->sniff(sniff);

		if (score > best_score) {
			best_score = score;
			best = importers[i];
		}
	}
	if (best_score && best_score < CERTAIN && unreadable_content(sniff->head))
		return NULL; /* text of other programs may look like folded stacks, for example */
	return best;
}

/* Judges the head of a stream. Formats that are recognised by their last bytes (checkpoints) are
 * not seen here: from a pipe, they must fit in memory. */
ow_status import_judge(const char *name, struct str head, struct ow_error *err)
{
	struct sniff sniff = { .path = name,
			       .head = str_first(head, SNIFF_BYTES),
			       .size = UINT64_MAX };

	if (unpack_container(head) || archive_starts(head) || best_match(&sniff))
		return OW_OK;
	unrecognised_explain(name, head, err);
	return OW_E_FORMAT;
}

const struct importer *importer_recognise(const struct input *in, struct ow_error *err)
{
	const struct importer *best = NULL;
	struct window window;
	struct sniff sniff = { .path = in->name, .size = in->size };
	char tail[TAIL_BYTES] = "";

	if (!in->size) {
		error_set(err, OW_E_EMPTY, "%s: the file is empty; was it written to the end?",
			  in->name);
		return NULL;
	}
	sniff.tail = str_make(tail, (size_t)MIN(in->size, (uint64_t)TAIL_BYTES));
	if (input_read_at(in, in->size - sniff.tail.len, tail, sniff.tail.len, err) != OW_OK)
		return NULL;
	window_init(&window, in, err);
	sniff.head = str_first(window_peek(&window, 0, SNIFF_BYTES), SNIFF_BYTES);
	if (sniff.head.ptr) {
		best = best_match(&sniff);
		if (!best)
			unrecognised_explain(in->name, sniff.head, err);
	}
	window_release(&window);
	return best;
}

/* Keeps the input open in the model, because arguments and definitions are read on demand. */
static ow_status keep_input(struct builder *b, source_id source, struct input *in,
			    struct ow_error *err)
{
	struct model *m = b->m;

	if (!vec_reserve_zero(m->mem, m->inputs, m->input_cap, (size_t)source.v + 1))
		return builder_fail(b, error_no_memory(err));
	m->inputs[source.v] = in;
	return OW_OK;
}

void import_discard(struct prepared *prepared)
{
	struct input *in = prepared->in;

	if (in) {
		struct mem *mem = in->mem;

		input_close(in);
		mem_free(mem, in, sizeof(*in));
	}
	prepared->in = NULL;
}

/* Unpacks an input. Files that no importer would accept are not unpacked to disk, unless the
 * caller names the format. */
static ow_status unpack(struct input *in, const struct importer *importer,
			struct unpack_result *unpacked, struct ow_error *err)
{
	const struct unpack_options options = { .judge = importer ? NULL : import_judge };

	return unpack_input_with(in, &options, unpacked, err);
}

/* Recognises an unpacked input and takes it over. */
static ow_status prepare_unpacked(struct input *in, const struct importer *importer,
				  const struct unpack_result *unpacked, struct prepared *prepared,
				  struct ow_error *err)
{
	struct ow_error local = { 0 };

	*prepared =
		(struct prepared){ .in = mem_alloc(in->mem, sizeof(*in)), .unpacked = *unpacked };
	if (!prepared->in) {
		input_close(in);
		return error_no_memory(err);
	}
	*prepared->in = *in;
	prepared->importer = importer ? importer : importer_recognise(prepared->in, &local);
	if (prepared->importer)
		return OW_OK;
	if (err)
		*err = local;
	import_discard(prepared);
	OW_ASSERT(local.status != OW_OK);
	return local.status == OW_OK ? OW_E_FORMAT : local.status;
}

ow_status import_prepare(struct input *in, const struct importer *importer,
			 struct prepared *prepared, struct ow_error *err)
{
	struct unpack_result unpacked;
	ow_status status = unpack(in, importer, &unpacked, err);

	*prepared = (struct prepared){ 0 };
	if (status != OW_OK) {
		input_close(in);
		return status;
	}
	return prepare_unpacked(in, importer, &unpacked, prepared, err);
}

void prepared_list_init(struct prepared_list *list, struct mem *mem)
{
	*list = (struct prepared_list){ .mem = mem };
}

void prepared_list_release(struct prepared_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		import_discard(&list->items[i]);
	mem_free(list->mem, list->items, list->cap * sizeof(*list->items));
	input_pool_release(list->pool);
	*list = (struct prepared_list){ .mem = list->mem };
}

static bool list_room(struct prepared_list *list)
{
	return vec_reserve(list->mem, list->items, list->cap, list->count + 1);
}

/* Adds the last item, which has been made. Its descriptor may be closed, because thousands of files cannot
 * be open at once. */
static ow_status add_prepared(struct prepared_list *list, struct ow_error *err)
{
	struct prepared *prepared = &list->items[list->count];
	ow_status status = OW_OK;

	if (list->others + list->count >= OPEN_INPUTS)
		status = input_share_fd(prepared->in, &list->pool, err);
	if (status == OW_OK)
		list->count++;
	else
		import_discard(prepared);
	return status;
}

/* Prepares a member, which may itself be compressed, but not an archive. */
static ow_status prepare_member(const struct archive *a, const struct input *in, size_t index,
				const struct importer *importer, struct prepared_list *list,
				struct ow_error *err)
{
	struct unpack_result taken, unpacked;
	struct prepared *prepared;
	struct input member;
	ow_status status;

	if (!list_room(list))
		return error_no_memory(err);
	OW_TRY(archive_take(a, in, index, &taken, &member, err));
	status = unpack(&member, importer, &unpacked, err);
	if (status != OW_OK) {
		input_close(&member);
		return status;
	}
	if (unpacked.truncated) { /* the inner damage is more specific */
		unpacked.container = taken.container;
		taken = unpacked;
	}
	prepared = &list->items[list->count];
	OW_TRY(prepare_unpacked(&member, importer, &taken, prepared, err));
	prepared->in->progress = in->progress;
	return add_prepared(list, err);
}

/* Returns what an archive without readable members is, such as a model; NULL if unknown. */
static const char *what_archive_is(const struct archive *a, const char *name)
{
	const char *what = NULL;

	for (size_t i = 0; i < a->count && !what; i++)
		what = unreadable_member(a->members[i].name);
	return what ? what : unreadable_name(name);
}

/* Explains a file that cannot be unpacked by the format that its name suggests. */
static ow_status unpacking_failed(const struct input *in, ow_status status, struct ow_error *err)
{
	const char *what =
		status == OW_E_CORRUPT || status == OW_E_FORMAT ? unreadable_name(in->name) : NULL;

	return what ? error_set(err, OW_E_FORMAT, "%s: this is %s", in->name, what) : status;
}

static ow_status prepare_archive(const struct input *in, const struct importer *importer,
				 const struct unpack_result *outer, struct prepared_list *list,
				 struct ow_error *err)
{
	size_t before = list->count;
	const char *what;
	struct archive a;

	OW_TRY(archive_open(&a, in, err));
	for (size_t i = 0; i < a.count; i++) {
		struct ow_error why = { 0 };
		ow_status status = prepare_member(&a, in, i, importer, list, &why);

		if (status == OW_OK)
			continue;
		if (status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || status == OW_E_IO) {
			if (err)
				*err = why;
			archive_close(&a);
			return status;
		}
		if (!list->skipped++)
			list->why = why;
	}
	if (list->count > before && (a.damaged || outer->truncated)) {
		struct unpack_result *last = &list->items[list->count - 1].unpacked;

		if (!last->truncated) {
			last->truncated = true;
			last->damage_offset = a.damaged ? a.damage_offset : outer->damage_offset;
			snprintf(last->message, sizeof(last->message), "%s",
				 a.damaged ? a.message : outer->message);
		}
	}
	what = list->count > before ? NULL : what_archive_is(&a, in->name);
	archive_close(&a);
	if (list->count > before)
		return OW_OK;
	if (what)
		return error_set(err, OW_E_FORMAT, "%s: this is %s", in->name, what);
	return error_set(
		err, OW_E_FORMAT,
		"%s: no file in this archive has a format that opwatch reads; the first file: %s",
		in->name, list->why.text);
}

ow_status import_prepare_all(struct input *in, const struct importer *importer,
			     struct prepared_list *list, struct ow_error *err)
{
	struct unpack_result unpacked;
	ow_status status = unpack(in, importer, &unpacked, err);

	if (status == OW_OK && archive_kind(in)) {
		status = prepare_archive(in, importer, &unpacked, list, err);
		if (status != OW_OK)
			status = unpacking_failed(in, status, err);
		input_close(in);
		return status;
	}
	if (status != OW_OK) {
		status = unpacking_failed(in, status, err);
		input_close(in);
		return status;
	}
	if (!list_room(list)) {
		input_close(in);
		return error_no_memory(err);
	}
	OW_TRY(prepare_unpacked(in, importer, &unpacked, &list->items[list->count], err));
	return add_prepared(list, err);
}

static source_id add_source(struct builder *b, const struct prepared *prepared)
{
	const struct unpack_result *unpacked = &prepared->unpacked;
	const char *container = unpacked->container ? unpacked->container : "";
	uint64_t packed_size = unpacked->container ? unpacked->compressed_size : prepared->in->size;

	return builder_new_source(
		b, &(struct source_row){ .path = builder_cstr(b, prepared->in->name),
					 .format = builder_cstr(b, prepared->importer->name),
					 .container = builder_cstr(b, container),
					 .size = prepared->in->size,
					 .packed_size = packed_size,
					 .rank = -1,
					 .run = 1 });
}

static void note_container(struct builder *b, const struct unpack_result *unpacked)
{
	if (unpacked->truncated)
		builder_note(b, NOTE_TRUNCATED, unpacked->damage_offset,
			     "the %s data is truncated or damaged: %s; the part before it is used",
			     unpacked->container, unpacked->message);
}

ow_status import_prepared(struct builder *b, struct prepared *prepared,
			  const struct import_options *options, struct import_ctx *out,
			  struct ow_error *err)
{
	struct import_ctx ctx = { .b = b, .in = prepared->in, .options = options, .err = err };
	ow_status status = model_thaw(b->m, err);
	source_id source = { 0 };

	if (status == OW_OK &&
	    !prepared->importer->defers) /* rows are in the order of the inputs */
		status = model_require_rows(b->m, TABLES_ALL, err);
	if (status == OW_OK) {
		source = add_source(b, prepared);
		status = source.v ? keep_input(b, source, prepared->in, err) : b->status;
	}
	if (status != OW_OK) {
		import_discard(prepared);
		return status;
	}
	note_container(b, &prepared->unpacked);
	status = prepared->importer->load(&ctx);
	if (status == OW_OK)
		status = builder_status(b);
	if (status == OW_OK)
		status = input_check_unchanged(prepared->in, err);
	prepared->in->progress = NULL; /* belongs to the caller of this load */
	prepared->in = NULL;	       /* now owned by the model */
	if (out)
		*out = ctx;
	return status;
}

void import_forget(struct builder *b)
{
	struct model *m = b->m;
	uint32_t source = b->source.v;
	struct input *in = source && source < m->input_cap ? m->inputs[source] : NULL;

	if (!in)
		return;
	m->inputs[source] = NULL;
	input_close(in);
	mem_free(m->mem, in, sizeof(*in));
}

ow_status import_input(struct builder *b, struct input *in, const struct importer *importer,
		       const struct import_options *options, struct import_ctx *out,
		       struct ow_error *err)
{
	struct prepared prepared;

	OW_TRY(import_prepare(in, importer, &prepared, err));
	return import_prepared(b, &prepared, options, out, err);
}

ow_status import_finish(struct builder *b, const struct import_options *options,
			struct ow_error *err)
{
	if (b->m->backing && b->m->backing->frozen) { /* the order as it was saved */
		if (!options->input_shape_count)
			return OW_OK;
		OW_TRY(model_thaw(b->m, err));
	}
	OW_TRY(tf_finish(b, options, err));
	return import_find_jobs(b, err);
}

#define ARGS_AT_ONCE 256

/* Reads arguments of all events that an importer reads on demand. */
static ow_status read_args(const struct model *m, struct ow_error *err)
{
	const struct args_reader *reader = model_args_reader(m, 1);
	ow_status status = OW_OK;
	struct arena arena;

	arena_init(&arena, m->mem);
	for (uint32_t first = 1, n; reader && first < m->event.count && status == OW_OK;
	     first += n) {
		struct str texts[ARGS_AT_ONCE] = { 0 };
		uint32_t rows[ARGS_AT_ONCE];

		n = MIN(m->event.count - first, (uint32_t)ARGS_AT_ONCE);
		for (uint32_t i = 0; i < n; i++)
			rows[i] = first + i;
		status = reader->read(reader->state, m, rows, n, texts, NULL, &arena, err);
		arena_clear(&arena);
	}
	arena_release(&arena);
	return status;
}

ow_status import_memory(const char *importer_name, const void *data, size_t len,
			size_t memory_limit)
{
	struct import_options options = { .infer = true, .step = INT64_MIN };
	struct ow_error err = { 0 };
	struct model *m;
	struct builder b;
	struct input in;
	struct mem mem;
	ow_status status;

	mem_init(&mem, memory_limit);
	m = model_new(&mem, &err);
	if (!m)
		return err.status;
	builder_init(&b, m, &err);
	status = input_from_memory(&in, &mem, "memory", data, len, &err);
	if (status == OW_OK)
		status = import_input(&b, &in, importer_find(str_from(importer_name)), &options,
				      NULL, &err);
	if (status == OW_OK)
		status = import_finish(&b, &options, &err);
	if (status == OW_OK)
		status = model_freeze(&b);
	if (status == OW_OK)
		status = model_require_rows(m, UINT64_MAX, &err);
	if (status == OW_OK)
		status = model_require_stacks(m, &err);
	if (status == OW_OK)
		status = model_require_nesting(m, &err);
	if (status == OW_OK)
		status = read_args(m, &err);
	model_free(m);
	OW_ASSERT(atomic_load(&mem.used) == 0);
	return status;
}
