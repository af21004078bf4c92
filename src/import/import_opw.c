/*
 * import_opw.c: our own file format (docs/file-format.md, docs/formats/opw.md). Opened alone, its columns
 * become the model as they are, and the sources it was made from are its sources. Opened beside other
 * inputs, its rows are added to theirs.
 */
#include "import/importer.h"
#include "import/journal_rows.h"
#include "import/opw_open.h"
#include "model/append.h"

static int sniff(const struct sniff *s)
{
	return opw_is(s->head) && !opw_starts_with(s->head, OPW_LIVE) ? 100 : 0;
}

/* Only what import_prepared made is there. */
static bool is_empty(const struct model *m)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		uint32_t rows =
			*(const uint32_t *)(const void *)((const char *)m + model_tables[t].offset);

		if (rows > (t == TABLE_source ? 2 : 1) && t != TABLE_note)
			return false;
	}
	return true;
}

static ow_status borrow(struct model *m, struct input **to, const struct input *file,
			struct error *err)
{
	*to = mem_zalloc(m->mem, sizeof(**to));
	if (!*to)
		return error_no_memory(err);
	**to = (struct input){ .mem = m->mem, .fd = -1 };
	return input_borrow(*to, file, err);
}

/* Every source reads its arguments and records from the file. inputs[1] is taken in any case. */
static ow_status make_inputs(struct model *m, struct input *first, const struct input *file,
			     struct error *err)
{
	size_t cap = MAX(m->source.count, 2);

	m->inputs = mem_zalloc(m->mem, cap * sizeof(*m->inputs));
	if (!m->inputs)
		return error_no_memory(err);
	m->input_cap = cap;
	for (size_t i = 2; i < cap; i++)
		OW_TRY(borrow(m, &m->inputs[i], file, err));
	m->inputs[1] = first;
	return OW_OK;
}

/* Notes that were made before the file was read: a damaged container, files that were passed over. */
static void copy_notes(struct builder *b, const struct model *from)
{
	for (uint32_t i = 1; i < from->note.count; i++)
		builder_note_many(b, (enum note_kind)from->note.kind[i], from->note.offset[i],
				  from->note.times[i], "%s",
				  model_str(from, from->note.text[i]).ptr);
}

/* The opened model and the one being built change places. */
static ow_status adopt(struct import_ctx *ctx, struct model *opened)
{
	struct model *m = ctx->b->m;
	ow_status status = model_require_rows(opened, TABLE_BIT(source), ctx->err);

	if (status == OW_OK)
		status = make_inputs(opened, ctx->in, &opened->backing->file, ctx->err);
	if (status != OW_OK)
		return status;
	model_swap(m, opened);
	for (size_t i = 0; i < opened->input_cap; i++)
		if (opened->inputs[i] == ctx->in)
			opened->inputs[i] = NULL;
	ctx->b->source = (source_id){ 0 };
	copy_notes(ctx->b, opened);
	return OW_OK;
}

static void add_remarks(struct builder *b, const struct opw_remarks *r, const char *name)
{
	if (!r->complete)
		builder_note(
			b, NOTE_TRUNCATED, r->end,
			"%s: the opwatch file has no usable footer: %s; what comes before is used",
			name, r->problem);
	if (r->repaired)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, r->repaired,
				  "%s: rows name others that are lost", name);
	if (r->lost)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, r->lost,
				  "%s: arguments of events or definitions of ops are lost", name);
	if (r->unknown)
		builder_note_many(
			b, NOTE_INFO, OW_NO_OFFSET, r->unknown,
			"%s: written by another version: %s is not known here and was passed "
			"over",
			name, r->first_unknown);
}

/* The input is the model's that is being built, and stays there when `opened` goes. */
static void take_back(struct import_ctx *ctx, struct model *opened)
{
	input_close(ctx->in);
	*ctx->in = opened->backing->file;
	opened->backing->file = (struct input){ .mem = opened->mem, .fd = -1 };
}

/* The sources that were added read from the file as well. */
static ow_status give_inputs(struct import_ctx *ctx, source_id first)
{
	struct model *m = ctx->b->m;
	size_t old = m->input_cap;
	void *inputs = m->inputs;

	if (!mem_grow(m->mem, &inputs, &m->input_cap, m->source.count, sizeof(*m->inputs)))
		return import_no_memory(ctx);
	m->inputs = inputs;
	memset(m->inputs + old, 0, (m->input_cap - old) * sizeof(*m->inputs));
	for (uint32_t i = first.v; i < m->source.count; i++)
		OW_TRY(borrow(m, &m->inputs[i], ctx->in, ctx->err));
	return OW_OK;
}

/* Written by a running program, record by record. */
static bool is_journal(const struct input *in)
{
	struct opw_head head;

	return in->size >= sizeof(struct opw_header) + sizeof(head) &&
	       input_read_at(in, sizeof(struct opw_header), &head, sizeof(head), NULL) == OW_OK &&
	       memcmp(head.magic, OPW_SEGMENT_MAGIC, sizeof(head.magic)) == 0 &&
	       head.kind == OPW_JOURNAL;
}

static ow_status load_saved(struct import_ctx *ctx)
{
	struct opw_remarks remarks;
	struct model *opened;
	source_id first = { 0 };
	ow_status status;
	bool alone = is_empty(ctx->b->m);

	OW_TRY(opw_open(ctx->in, &opened, &remarks, ctx->err));
	status = alone ? adopt(ctx, opened) : model_append(ctx->b, opened, &first, ctx->err);
	if (!alone || status != OW_OK)
		take_back(ctx, opened);
	model_free(opened);
	if (!alone && status == OW_OK)
		status = give_inputs(ctx, first);
	if (status == OW_OK)
		add_remarks(ctx->b, &remarks, ctx->in->name);
	return status == OW_OK ? builder_status(ctx->b) : status;
}

static ow_status load(struct import_ctx *ctx)
{
	return is_journal(ctx->in) ? journal_load(ctx) : load_saved(ctx);
}

const struct importer import_opw = {
	.name = "opw",
	.summary = "opwatch's own file: a saved profile, opened in place, or a recording",
	.extensions = "*.opw",
	.role = ROLE_GRAPH,
	.sniff = sniff,
	.load = load,
};
