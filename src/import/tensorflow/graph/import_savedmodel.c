/*
 * import_savedmodel.c: reads SavedModel, binary or text: saved_model.pb. The graph of the first meta graph is used; the
 * others are counted, and a note says when they have nodes that the first has not.
 */
#include "import/importer.h"
#include "import/tensorflow/graph/tf_graph.h"
#include "import/tensorflow/tf_read.h"
#include "import/tensorflow/tf_message.h"

struct saved {
	struct tf_read r;
	fact_id list;
	uint64_t graphs, unknown;
};

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_SAVED_MODEL);
}

static ow_status read_meta(struct saved *s, const struct pb_stream_field *f)
{
	fact_id about = fact_object(s->r.b, s->list, NULL);
	uint64_t unknown = 0;

	OW_TRY(tf_meta_read(s->r.ctx, f->offset, f->offset + f->size, about, s->graphs > 0,
			    &unknown));
	s->graphs++;
	s->unknown += unknown;
	return OW_OK;
}

static ow_status read_fields(struct saved *s)
{
	struct pb_stream_field f;

	while (tf_next(&s->r, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			fact_int(s->r.b, (fact_id){ 0 }, "schema_version", (int64_t)f.value);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			OW_TRY(read_meta(s, &f));
	return OW_OK;
}

static ow_status load(struct import_ctx *ctx)
{
	struct saved s = { 0 };
	ow_status status;

	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("SavedModel"));
	OW_TRY(tf_text_convert(ctx, TF_SAVED_MODEL));
	tf_read_begin(&s.r, ctx, "SavedModel", 0, ctx->in->size);
	s.list = fact_list(ctx->b, (fact_id){ 0 }, "meta_graphs");
	status = read_fields(&s);
	if (s.unknown)
		builder_note_many(
			ctx->b, NOTE_DROPPED, OW_NO_OFFSET, s.unknown,
			"nodes are only in later meta graphs, which are not read: only the first "
			"meta graph is used");
	if (status != OW_OK) {
		window_release(&s.r.window);
		return status;
	}
	return tf_read_end(&s.r, s.graphs > 0);
}

const struct importer import_savedmodel = {
	.name = "savedmodel",
	.summary = "TensorFlow SavedModel: the graph of its first meta graph",
	.extensions = "saved_model.pb, saved_model.pbtxt",
	.role = ROLE_GRAPH,
	.sniff = sniff,
	.load = load,
};
