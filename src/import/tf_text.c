/* tf_text.c: see tf_text.h. */
#include "import/tf_text.h"

#include "wire/pb_stream.h"
#include "wire/pbtxt.h"
#include "wire/tf_schema.h"

#define SNIFF_BYTES ((size_t)64 << 10)

static const struct pb_message *const types[] = {
	[TF_GRAPH] = &tf_graph_def,	    [TF_META_GRAPH] = &tf_meta_graph_def,
	[TF_SAVED_MODEL] = &tf_saved_model, [TF_RUN_METADATA] = &tf_run_metadata,
	[TF_STEP_STATS] = &tf_step_stats,   [TF_OP_LOG] = &tf_op_log,
	[TF_PROFILE] = &tf_profile,
};

int tf_text_sniff(struct str head, enum tf_message message)
{
	return pbtxt_sniff(head, types[message]);
}

int tf_sniff(const struct sniff *sniff, enum tf_message message)
{
	int binary = tf_sniff_binary(sniff->head, message);

	return binary ? binary : tf_text_sniff(sniff->head, message);
}

static ow_status is_text(struct import_ctx *ctx, enum tf_message message, bool *yes)
{
	struct window window;
	struct str head;

	window_init(&window, ctx->in, ctx->err);
	head = str_first(window_peek(&window, 0, SNIFF_BYTES), SNIFF_BYTES);
	*yes = head.ptr && !tf_sniff_binary(head, message) && tf_text_sniff(head, message) > 0;
	window_release(&window);
	return head.ptr ? OW_OK : window.status;
}

static const char *field_name(const struct pb_message *type, uint32_t number)
{
	for (size_t i = 0; i < type->count; i++)
		if (type->fields[i].number == number)
			return type->fields[i].name;
	return NULL;
}

/* How many of each message the text has on its outermost level. */
static void count_messages(struct import_ctx *ctx, const struct pb_message *type)
{
	int64_t counts[32] = { 0 };
	struct pb_stream_field f;
	struct window window;
	struct pb_stream s;
	fact_id object;

	window_init(&window, ctx->in, NULL);
	pb_stream_init(&s, &window, 0, ctx->in->size);
	while (pb_stream_next(&s, &f))
		if ((f.tag & 7) == PB_BYTES && f.tag >> 3 < ARRAY_COUNT(counts))
			counts[f.tag >> 3]++;
	window_release(&window);
	fact_bool(ctx->b, (fact_id){ 0 }, "text_format", true);
	object = fact_object(ctx->b, (fact_id){ 0 }, "toplevel_messages");
	for (uint32_t i = 1; i < ARRAY_COUNT(counts); i++)
		if (counts[i] && field_name(type, i))
			fact_int(ctx->b, object, field_name(type, i), counts[i]);
}

static void note_result(struct import_ctx *ctx, const struct pbtxt_result *result)
{
	if (result->damaged)
		builder_note(ctx->b, NOTE_DAMAGED, result->damage_offset,
			     "the text is damaged: %s; what could be read is used",
			     result->message);
	if (result->skipped)
		builder_note_many(ctx->b, NOTE_DROPPED, OW_NO_OFFSET, result->skipped,
				  "fields of the text that are not known were passed over");
}

ow_status tf_text_convert(struct import_ctx *ctx, enum tf_message message)
{
	bool strict = ctx->options->strict_proto, text = false;
	struct pbtxt_options options = { .allow_unknown = !strict, .salvage = !strict };
	struct pbtxt_result result = { 0 };
	struct input binary;

	if (!ctx->in->size)
		return OW_OK;
	OW_TRY(is_text(ctx, message, &text));
	if (!text) {
		fact_bool(ctx->b, (fact_id){ 0 }, "text_format", false);
		return OW_OK;
	}
	OW_TRY(pbtxt_to_input(ctx->in, types[message], &options, &binary, &result, ctx->err));
	if (input_check_unchanged(ctx->in, ctx->err) != OW_OK) {
		input_close(&binary);
		return OW_E_IO;
	}
	input_close(ctx->in);
	*ctx->in = binary;
	note_result(ctx, &result);
	count_messages(ctx, types[message]);
	return builder_status(ctx->b);
}
