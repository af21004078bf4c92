/*
 * import_graphdef.c: GraphDef, binary or text: the nodes of a TensorFlow graph. The work is in
 * tf_graph.c.
 */
#include "import/importer.h"
#include "import/tf_graph.h"
#include "import/tf_text.h"

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_GRAPH);
}

static ow_status load(struct import_ctx *ctx)
{
	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("GraphDef"));
	OW_TRY(tf_text_convert(ctx, TF_GRAPH));
	return tf_graph_read(ctx, 0, ctx->in->size, (fact_id){ 0 }, NULL);
}

const struct importer import_graphdef = {
	.name = "graphdef",
	.summary = "TensorFlow GraphDef: ops, edges, static shapes",
	.extensions = "*.pb, *.pbtxt, graph.pbtxt",
	.role = ROLE_GRAPH,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
