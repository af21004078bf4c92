/*
 * import_metagraph.c: reads MetaGraphDef, binary or text, which tf.train.export_meta_graph writes, and the .meta file
 * beside a checkpoint. It also reads those in saved models and event files (tf_graph.h). import_graphdef.c reads the
 * graph. Of the collections only trainable_variables is read; signatures, assets, the saver and the object graph are
 * counted or skipped.
 */
#include "import/importer.h"
#include "import/tensorflow/graph/tf_graph.h"
#include "import/tensorflow/tf_message.h"
#include "import/tensorflow/tf_read.h"

#define LARGEST_VARIABLE ((uint64_t)1 << 20)

struct meta {
	struct tf_read r;
	fact_id facts, tags;
	uint64_t graph_begin, graph_end;
	bool has_graph, any_field, count_only;
	int64_t collections, signatures, trainable;
	uint64_t missing; /* number of trainable variables that are not nodes */
};

/* Reads MetaInfoDef field by field, because its list of ops can be large. */
static void read_info(struct meta *m, const struct pb_stream_field *f)
{
	struct builder *b = m->r.b;
	struct pb_stream_field part;

	if (!pb_stream_enter(&m->r.stream, f))
		return;
	while (tf_next(&m->r, &part)) {
		bool tag = part.tag == PB_TAG(4, PB_BYTES),
		     version = part.tag == PB_TAG(5, PB_BYTES);
		const uint8_t *bytes;
		struct str text;

		if ((!tag && !version) || part.size > LARGEST_VARIABLE)
			continue;
		bytes = pb_stream_bytes(&m->r.stream, &part);
		if (!bytes)
			break;
		text = model_str(b->m, tf_text(&m->r, str_make(bytes, (size_t)part.size)));
		if (tag)
			fact_text(b, m->tags, NULL, text);
		else
			fact_text(b, m->facts, "tf_version", text);
		if (version)
			b->m->source.producer[b->source.v] = builder_str(b, STR("TensorFlow"));
	}
	pb_stream_leave(&m->r.stream);
}

/* Marks the variable whose output is "name:0" as trainable. */
static void mark_trainable(struct meta *m, struct str name)
{
	struct model *model = m->r.b->m;
	size_t colon = str_find_char(name, ':');
	op_id op = model_find_op(model, colon == STR_NONE ? name : str_first(name, colon));

	m->trainable++;
	if (!op.v) {
		m->missing++;
		return;
	}
	model->op.flags[op.v] |= OP_TRAINABLE;
	if (m->r.ctx->options->infer)
		model->op.types[op.v] =
			tf_set_add(&m->r, model->op.types[op.v],
				   builder_str(m->r.b, STR("_trainable_variables")));
}

/* Reads the name of a VariableDef, its first field. */
static void read_variable(struct meta *m, const struct pb_stream_field *f)
{
	struct pb_field field;
	const uint8_t *bytes;
	struct pb r;

	if (f->size > LARGEST_VARIABLE || !pb_stream_record(&m->r.stream, f, &r))
		return;
	bytes = r.at;
	while (pb_next(&r, &field))
		if (field.tag == PB_TAG(1, PB_BYTES)) {
			mark_trainable(m, pb_str(&field));
			return;
		}
	if (r.problem)
		tf_damaged(&m->r, f, &r, bytes);
}

/* Reads a list of variables: NodeList holds names, BytesList serialized VariableDefs; both are lists in field 1. */
static void read_variables(struct meta *m, const struct pb_stream_field *kind)
{
	struct pb_stream_field f;

	if (!pb_stream_enter(&m->r.stream, kind))
		return;
	while (tf_next(&m->r, &f)) {
		const uint8_t *bytes;

		if (f.tag != PB_TAG(1, PB_BYTES))
			continue;
		if (kind->tag == PB_TAG(2, PB_BYTES)) {
			read_variable(m, &f);
			continue;
		}
		bytes = f.size <= LARGEST_VARIABLE ? pb_stream_bytes(&m->r.stream, &f) : NULL;
		if (bytes)
			mark_trainable(m, str_make(bytes, (size_t)f.size));
	}
	pb_stream_leave(&m->r.stream);
}

static void read_collection_def(struct meta *m, const struct pb_stream_field *value)
{
	struct pb_stream_field f;

	if (!pb_stream_enter(&m->r.stream, value))
		return;
	while (tf_next(&m->r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES) || f.tag == PB_TAG(2, PB_BYTES))
			read_variables(m, &f);
	pb_stream_leave(&m->r.stream);
}

/* Whether an entry of collection_def has the key trainable_variables. */
static bool is_trainable(struct meta *m, const struct pb_stream_field *key)
{
	const struct str wanted = STR("trainable_variables");
	const uint8_t *bytes;

	if (key->size != wanted.len)
		return false;
	bytes = pb_stream_bytes(&m->r.stream, key);
	return bytes && memcmp(bytes, wanted.ptr, wanted.len) == 0;
}

static void read_collection(struct meta *m, const struct pb_stream_field *f)
{
	struct pb_stream_field part;
	bool wanted = false;

	if (!pb_stream_enter(&m->r.stream, f))
		return;
	while (tf_next(&m->r, &part))
		if (part.tag == PB_TAG(1, PB_BYTES))
			wanted = is_trainable(m, &part);
		else if (part.tag == PB_TAG(2, PB_BYTES) && wanted)
			read_collection_def(m, &part);
	pb_stream_leave(&m->r.stream);
}

/* First pass: reads everything but the variables, which need the ops of the graph. */
static void read_fields(struct meta *m)
{
	struct pb_stream_field f;

	while (tf_next(&m->r, &f)) {
		m->any_field = true;
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			read_info(m, &f);
			break;
		case PB_TAG(2, PB_BYTES):
			m->has_graph = true;
			m->graph_begin = f.offset;
			m->graph_end = f.offset + f.size;
			break;
		case PB_TAG(4, PB_BYTES):
			m->collections++;
			break;
		case PB_TAG(5, PB_BYTES):
			m->signatures++;
			break;
		default:
			break;
		}
	}
}

static void read_collections(struct meta *m)
{
	struct pb_stream_field f;

	while (tf_next(&m->r, &f))
		if (f.tag == PB_TAG(4, PB_BYTES))
			read_collection(m, &f);
	if (m->missing)
		builder_note_many(m->r.b, NOTE_DROPPED, OW_NO_OFFSET, m->missing,
				  "trainable variables name nodes that are not in the graph");
}

static ow_status read_graph(struct meta *m, uint64_t *unknown)
{
	struct import_ctx *ctx = m->r.ctx;
	uint64_t nodes;
	fact_id about;

	*unknown = 0;
	if (!m->has_graph)
		return OW_OK;
	about = fact_object(ctx->b, m->facts, "graph");
	if (m->count_only)
		return tf_graph_count(ctx, m->graph_begin, m->graph_end, about, unknown);
	return tf_graph_read(ctx, m->graph_begin, m->graph_end, about, &nodes);
}

ow_status tf_meta_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
		       bool count_only, uint64_t *unknown)
{
	struct meta m = { .facts = facts, .count_only = count_only };
	ow_status status;

	tf_read_begin(&m.r, ctx, "MetaGraphDef", begin, end);
	m.tags = fact_list(ctx->b, facts, "tags");
	read_fields(&m);
	fact_int(ctx->b, facts, "collections", m.collections);
	fact_int(ctx->b, facts, "signatures", m.signatures);
	OW_TRY(tf_read_end(&m.r, m.any_field));
	OW_TRY(read_graph(&m, unknown));
	if (count_only || !m.collections)
		return builder_status(ctx->b);
	/* Second pass; the first pass has reported the damage. */
	tf_read_begin(&m.r, ctx, "MetaGraphDef", begin, end);
	read_collections(&m);
	fact_int(ctx->b, facts, "trainable_variables", m.trainable);
	status = m.r.stream.status;
	window_release(&m.r.window);
	if (status != OW_OK && status != OW_E_CORRUPT && ctx->err)
		*ctx->err = m.r.problem;
	if (status == OW_E_CORRUPT)
		status = OW_OK;
	return status == OW_OK ? builder_status(ctx->b) : status;
}

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_META_GRAPH);
}

static ow_status load(struct import_ctx *ctx)
{
	uint64_t unknown;

	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("MetaGraphDef"));
	OW_TRY(tf_text_convert(ctx, TF_META_GRAPH));
	return tf_meta_read(ctx, 0, ctx->in->size, (fact_id){ 0 }, false, &unknown);
}

const struct importer import_metagraph = {
	.name = "metagraph",
	.summary = "TensorFlow MetaGraphDef: a graph with its trainable variables",
	.extensions = "*.meta",
	.role = ROLE_GRAPH,
	.sniff = sniff,
	.load = load,
};
