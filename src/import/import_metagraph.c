/*
 * import_metagraph.c: MetaGraphDef, binary or text: what tf.train.export_meta_graph writes, and the
 * .meta file beside a checkpoint. The work is in tf_meta.c.
 */
#include "import/importer.h"
#include "import/tf_meta.h"
#include "import/tf_text.h"

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
