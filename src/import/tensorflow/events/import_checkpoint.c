/*
 * import_checkpoint.c: reads a checkpoint's index (V2) or table (V1) as tensors: name, type, shape and bytes of every
 * variable. Ops of those names get the type _checkpoint_variables, as in tfprof; when the checkpoint is the only input,
 * the variables themselves become ops, so that the views have something to show. The values stay in the file; the
 * public interface reads them on demand.
 */
#include "import/importer.h"
#include "import/common/model_text.h"
#include "wire/tensorflow/checkpoint.h"

#define VARIABLE_TYPE "_checkpoint_variables"
#define LISTED 10 /* limit of variables listed as facts */

/* Recognises a table by its last 8 bytes. */
static int sniff(const struct sniff *s)
{
	static const char magic[8] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

	if (s->size < 48 || s->tail.len < 8)
		return 0;
	return memcmp(s->tail.ptr + s->tail.len - 8, magic, 8) == 0 ? 95 : 0;
}

/* Whether all inputs are checkpoints. */
static bool is_alone(const struct builder *b)
{
	const struct model *m = b->m;

	for (uint32_t i = 1; i < m->source.count; i++)
		if (m->source.format[i].v != m->source.format[b->source.v].v)
			return false;
	return true;
}

/* The name of a variable; bytes that are not UTF-8 are replaced. */
static str_id name_of(struct builder *b, struct str name, bool *repaired)
{
	if (OW_LIKELY(utf8_valid(name)))
		return builder_str(b, name);
	*repaired = true;
	return utf8_repair(b, name);
}

/* Marks the op of a variable with its type; nil when the graph has no such op. */
static op_id mark_op(struct builder *b, str_id name, shape_id shape, str_id type, bool alone)
{
	op_id op = builder_find_op(b, name);

	if (op.v)
		b->m->op.types[op.v] = builder_strset_add(b, b->m->op.types[op.v], type);
	else if (alone)
		op = builder_new_op(b, &(struct op_row){ .name = name,
							 .type = type,
							 .shape = shape,
							 .source = b->source });
	return op;
}

static void list_variable(struct builder *b, fact_id list, const struct checkpoint_var *var,
			  str_id name)
{
	fact_id item = fact_list(b, list, NULL), dims;

	fact_text(b, item, NULL, model_str(b->m, name));
	fact_int(b, item, NULL, var->dtype);
	dims = fact_list(b, item, NULL);
	for (int32_t i = 0; i < var->rank; i++)
		fact_int(b, dims, NULL, var->dims[i]);
	fact_int(b, item, NULL, (int64_t)MIN(var->bytes, (uint64_t)INT64_MAX));
}

/* The shape for the op: tfprof treats the static shape of a scalar as [1]. */
static shape_id op_shape(struct builder *b, const struct checkpoint_var *var, shape_id shape)
{
	return var->rank == 0 ? builder_shape(b, &(int64_t){ 1 }, 1) : shape;
}

static uint64_t add_variables(struct builder *b, const struct checkpoint *c)
{
	str_id type = builder_cstr(b, VARIABLE_TYPE);
	fact_id list = fact_list(b, (fact_id){ 0 }, "first10");
	bool alone = is_alone(b);
	uint64_t bytes = 0, repaired_names = 0, bad_shapes = 0;

	for (size_t i = 0; i < c->var_count && b->status == OW_OK; i++) {
		const struct checkpoint_var *var = &c->vars[i];
		int64_t stored = (int64_t)MIN(var->bytes, (uint64_t)INT64_MAX);
		shape_id shape = builder_shape(b, var->dims, var->rank);
		bool repaired = false;
		str_id name = name_of(b, var->name, &repaired);
		op_id op = mark_op(b, name, op_shape(b, var, shape), type, alone);

		builder_add_tensor(b, &(struct tensor_row){ .op = op,
							    .dtype = var->dtype,
							    .shape = shape,
							    .requested = stored,
							    .allocated = stored,
							    .name = name });
		if (i < LISTED)
			list_variable(b, list, var, name);
		bytes += var->bytes;
		repaired_names += repaired;
		bad_shapes += var->rank < 0;
	}
	if (repaired_names)
		builder_note_many(b, NOTE_REPAIRED, OW_NO_OFFSET, repaired_names,
				  "names of variables that are not UTF-8 were repaired");
	if (bad_shapes)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, bad_shapes,
				  "variables of the checkpoint have an invalid shape; their values "
				  "cannot be read");
	return bytes;
}

/* Reports damage with TensorFlow's own words, the position, and what the user can do. */
static ow_status note_damage(struct import_ctx *ctx, ow_status status)
{
	const struct ow_error why = ctx->err ? *ctx->err : (struct ow_error){ 0 };

	if (status != OW_E_CORRUPT)
		return error_wrap(ctx->err, status, "%s", ctx->in->name);
	return error_at(ctx->err, status, why.offset,
			"%s: %s; the checkpoint is damaged: copy it again, as binary",
			ctx->in->name, why.text);
}

static ow_status load(struct import_ctx *ctx)
{
	struct builder *b = ctx->b;
	struct checkpoint c;
	ow_status status;
	uint64_t bytes;

	status = checkpoint_open_input(&c, b->m->mem, ctx->in, ctx->err);
	if (status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED)
		return builder_fail(b, status);
	if (status != OW_OK)
		return note_damage(ctx, status);
	fact_text(b, (fact_id){ 0 }, "kind", c.version == 2 ? STR("V2") : STR("V1"));
	fact_int(b, (fact_id){ 0 }, "tensors", (int64_t)c.var_count);
	bytes = add_variables(b, &c);
	fact_int(b, (fact_id){ 0 }, "tensor_bytes", (int64_t)MIN(bytes, (uint64_t)INT64_MAX));
	if (c.version == 2)
		fact_int(b, (fact_id){ 0 }, "shards", c.shard_count);
	if (c.damaged)
		builder_note_many(
			b, NOTE_DAMAGED, c.damaged_offset, c.damaged,
			"entries or blocks of the checkpoint's index cannot be read; their "
			"variables are missing");
	checkpoint_close(&c);
	return builder_status(b);
}

const struct importer import_checkpoint = {
	.name = "checkpoint",
	.summary = "TensorFlow checkpoint: a V2 bundle's index, or a V1 table",
	.extensions = ".index .ckpt",
	.role = ROLE_CHECKPOINT,
	.sniff = sniff,
	.load = load,
};
