/*
 * import_live.c: recordings of running programs, as `opwatch record` makes them (docs/formats/live.md). They are files
 * of our own (wire/opw.h) whose first segment is of the kind OPW_LIVE; other files of that form are import_opw.c's.
 */
#include "import/importer.h"
#include "import/live_read.h"

static int sniff(const struct sniff *s)
{
	return opw_starts_with(s->head, OPW_LIVE) ? 100 : 0;
}

static ow_status load(struct import_ctx *ctx)
{
	struct live_data d;
	ow_status status = live_read(&d, ctx);

	if (status == OW_OK)
		status = live_rows(&d);
	if (!d.complete)
		ctx->in->regular = false; /* it may still be written to, and that is fine */
	live_release(&d);
	return status;
}

const struct importer import_live = {
	.name = "live",
	.summary = "recording of running programs, made by opwatch record",
	.extensions = "*.opw",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
