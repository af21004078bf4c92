/*
 * import_runmeta.c: RunMetadata, and StepStats on its own, binary or text: what one step of a
 * TensorFlow graph did. The work is in tf_account.c.
 */
#include "import/importer.h"
#include "import/tf_run.h"
#include "import/tf_text.h"

static int sniff(const struct sniff *s)
{
	int whole = tf_sniff(s, TF_RUN_METADATA), part = tf_sniff(s, TF_STEP_STATS);

	return MAX(whole, part);
}

/* A file may hold the step_stats of a RunMetadata alone. tfprof does not take those. */
static ow_status is_bare(struct import_ctx *ctx, bool *bare)
{
	struct sniff s = { .path = ctx->in->name, .size = ctx->in->size };
	struct window window;

	*bare = false;
	if (ctx->options->strict_proto)
		return OW_OK;
	window_init(&window, ctx->in, ctx->err);
	s.head = str_first(window_peek(&window, 0, 64 << 10), 64 << 10);
	if (s.head.ptr)
		*bare = tf_sniff(&s, TF_STEP_STATS) > tf_sniff(&s, TF_RUN_METADATA);
	window_release(&window);
	return s.head.ptr ? OW_OK : window.status;
}

static ow_status load(struct import_ctx *ctx)
{
	bool bare;

	OW_TRY(is_bare(ctx, &bare));
	fact_text(ctx->b, (fact_id){ 0 }, "kind", bare ? STR("StepStats") : STR("RunMetadata"));
	OW_TRY(tf_text_convert(ctx, bare ? TF_STEP_STATS : TF_RUN_METADATA));
	return tf_run_read(ctx, 0, ctx->in->size, bare, ctx->options->step, (fact_id){ 0 });
}

const struct importer import_runmeta = {
	.name = "runmeta",
	.summary = "TensorFlow RunMetadata or StepStats: times and memory of one step",
	.extensions = "run_meta*, *.runmeta",
	.role = ROLE_RUN,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
