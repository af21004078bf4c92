/*
 * tf_message.c: recognises TensorFlow's messages by their structure, and converts their text form to binary
 * (tf_message.h). It returns how well a file fits; import.c compares.
 */
#include "import/tensorflow/tf_message.h"
#include "wire/protobuf/pb.h"
#include "wire/protobuf/pb_stream.h"
#include "wire/protobuf/pbtxt.h"
#include "wire/tensorflow/tf_schema.h"

enum kind {
	NUMBER,	 /* a varint */
	NUMBERS, /* repeated scalars, packed or not */
	TEXT,	 /* UTF-8 that does not begin with a control character, unlike a sub-message */
	WORD,	 /* letters, digits and a few signs: an op type */
	BYTES,	 /* any content with a length */
};

struct field {
	uint8_t number;
	uint8_t kind;
	bool must;		 /* the field is required */
	const struct shape *sub; /* shape of the sub-message, if the kind is BYTES */
};

struct shape {
	const struct field *fields;
	size_t count;
};

#define SHAPE(name, ...)                                                                           \
	static const struct field name##_fields[] = { __VA_ARGS__ };                               \
	static const struct shape name = { name##_fields, ARRAY_COUNT(name##_fields) }

SHAPE(number_to_number, { 1, NUMBER, 0, 0 }, { 2, NUMBER, 0, 0 });
SHAPE(number_to_text, { 1, NUMBER, 0, 0 }, { 2, TEXT, 0, 0 });
SHAPE(number_to_bytes, { 1, NUMBER, 0, 0 }, { 2, BYTES, 0, 0 });
SHAPE(text_to_bytes, { 1, TEXT, 1, 0 }, { 2, BYTES, 0, 0 });

SHAPE(versions, { 1, NUMBER, 0, 0 }, { 2, NUMBER, 0, 0 }, { 3, NUMBERS, 0, 0 });
SHAPE(node_def, { 1, TEXT, 0, 0 }, { 2, WORD, 1, 0 }, { 3, TEXT, 0, 0 }, { 4, TEXT, 0, 0 },
      { 5, BYTES, 0, &text_to_bytes }, { 6, BYTES, 0, 0 }, { 7, BYTES, 0, 0 });
SHAPE(graph_def, { 1, BYTES, 1, &node_def }, { 2, BYTES, 0, 0 }, { 3, NUMBER, 0, 0 },
      { 4, BYTES, 0, &versions }, { 5, BYTES, 0, 0 });

SHAPE(op_def, { 1, WORD, 1, 0 }, { 2, BYTES, 0, 0 }, { 3, BYTES, 0, 0 }, { 4, BYTES, 0, 0 },
      { 5, BYTES, 0, 0 }, { 6, BYTES, 0, 0 }, { 8, BYTES, 0, 0 }, { 16, NUMBER, 0, 0 },
      { 17, NUMBER, 0, 0 }, { 18, NUMBER, 0, 0 }, { 19, NUMBER, 0, 0 }, { 20, BYTES, 0, 0 },
      { 21, NUMBER, 0, 0 });
SHAPE(op_list, { 1, BYTES, 0, &op_def });
SHAPE(meta_info, { 1, TEXT, 0, 0 }, { 2, BYTES, 0, &op_list }, { 3, BYTES, 0, 0 },
      { 4, TEXT, 0, 0 }, { 5, TEXT, 0, 0 }, { 6, TEXT, 0, 0 }, { 7, NUMBER, 0, 0 },
      { 8, BYTES, 0, 0 });
/* A graph that contains only functions is accepted here. */
SHAPE(any_graph, { 1, BYTES, 0, &node_def }, { 2, BYTES, 0, 0 }, { 3, NUMBER, 0, 0 },
      { 4, BYTES, 0, &versions }, { 5, BYTES, 0, 0 });
SHAPE(meta_graph, { 1, BYTES, 0, &meta_info }, { 2, BYTES, 1, &any_graph }, { 3, BYTES, 0, 0 },
      { 4, BYTES, 0, &text_to_bytes }, { 5, BYTES, 0, &text_to_bytes }, { 6, BYTES, 0, 0 },
      { 7, BYTES, 0, 0 });
SHAPE(saved_model, { 1, NUMBER, 1, 0 }, { 2, BYTES, 1, &meta_graph });

SHAPE(node_stats, { 1, TEXT, 0, 0 }, { 2, NUMBER, 0, 0 }, { 3, NUMBER, 0, 0 }, { 4, NUMBER, 0, 0 },
      { 5, NUMBER, 0, 0 }, { 6, BYTES, 0, 0 }, { 7, BYTES, 0, 0 }, { 8, TEXT, 0, 0 },
      { 9, NUMBER, 0, 0 }, { 10, NUMBER, 0, 0 }, { 11, BYTES, 0, 0 }, { 12, BYTES, 0, 0 },
      { 13, NUMBER, 0, 0 }, { 14, NUMBER, 0, 0 }, { 15, NUMBER, 0, 0 }, { 16, NUMBER, 0, 0 },
      { 17, NUMBER, 0, 0 });
SHAPE(device_stats, { 1, TEXT, 1, 0 }, { 2, BYTES, 0, &node_stats },
      { 3, BYTES, 0, &number_to_text });
SHAPE(step_stats, { 1, BYTES, 1, &device_stats });
SHAPE(run_metadata, { 1, BYTES, 1, &step_stats }, { 2, BYTES, 0, 0 }, { 3, BYTES, 0, 0 },
      { 4, BYTES, 0, 0 }, { 5, BYTES, 0, 0 });

SHAPE(trace, { 1, TEXT, 0, 0 }, { 2, NUMBER, 0, 0 }, { 3, TEXT, 0, 0 }, { 4, BYTES, 0, 0 },
      { 5, NUMBER, 0, 0 }, { 6, NUMBER, 0, 0 }, { 7, NUMBER, 0, 0 }, { 8, NUMBER, 0, 0 });
SHAPE(code_def, { 1, BYTES, 0, &trace });
SHAPE(log_entry, { 1, TEXT, 1, 0 }, { 2, NUMBER, 0, 0 }, { 3, TEXT, 0, 0 },
      { 4, BYTES, 0, &code_def });
SHAPE(op_log, { 1, BYTES, 1, &log_entry }, { 2, BYTES, 0, &number_to_text });

SHAPE(profile_node, { 1, TEXT, 1, 0 }, { 2, BYTES, 0, &number_to_number },
      { 3, BYTES, 0, &number_to_number }, { 4, NUMBERS, 0, 0 }, { 5, TEXT, 0, 0 },
      { 6, TEXT, 0, 0 }, { 7, TEXT, 0, 0 }, { 8, NUMBER, 0, 0 }, { 9, TEXT, 0, 0 },
      { 10, BYTES, 0, &code_def }, { 11, BYTES, 0, &text_to_bytes },
      { 12, BYTES, 0, &number_to_bytes }, { 13, NUMBER, 0, 0 }, { 14, BYTES, 0, &number_to_number },
      { 15, BYTES, 0, &number_to_bytes }, { 16, BYTES, 0, &number_to_bytes });
SHAPE(profile_entry, { 1, NUMBER, 0, 0 }, { 2, BYTES, 1, &profile_node });
SHAPE(profile, { 1, BYTES, 1, &profile_entry }, { 2, NUMBER, 0, 0 }, { 3, NUMBERS, 0, 0 },
      { 4, BYTES, 0, &number_to_text }, { 5, NUMBER, 0, 0 });

static const struct shape *const shapes[] = {
	[TF_GRAPH] = &graph_def,	 [TF_META_GRAPH] = &meta_graph,
	[TF_SAVED_MODEL] = &saved_model, [TF_RUN_METADATA] = &run_metadata,
	[TF_STEP_STATS] = &step_stats,	 [TF_OP_LOG] = &op_log,
	[TF_PROFILE] = &profile,
};

/* How well the head of a file fits a message type, and whether the message continues after the head. */
struct fit {
	unsigned points;  /* number of required complete texts that were found */
	unsigned misfits; /* number of unexpected fields and of parse errors */
	bool cut;
};

/* Reads a field that continues after the end of the head, as far as it is present. */
static bool cut_field(const uint8_t *at, const uint8_t *end, struct pb_field *f)
{
	struct pb_varint tag = pb_varint_at(at, end), len;

	if (!tag.next || tag.next >= end || (tag.value & 7) != PB_BYTES)
		return false;
	len = pb_varint_at(tag.next, end);
	if (!len.next)
		return false;
	*f = (struct pb_field){ .tag = (uint32_t)tag.value,
				.value = (uint64_t)(end - len.next),
				.ptr = len.next };
	return true;
}

static bool is_text(struct str s, bool cut)
{
	if (s.len && ((unsigned char)s.ptr[0] < 0x20 || s.ptr[0] == 0x7f))
		return false;
	return cut || utf8_valid(s);
}

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') &&
		    !strchr("_-.:/>", c))
			return false;
	}
	return s.len > 0;
}

static bool fits_value(const struct field *field, const struct pb_field *f, bool cut)
{
	switch ((enum kind)field->kind) {
	case NUMBER:
		return (f->tag & 7) == PB_VARINT;
	case NUMBERS:
		return (f->tag & 7) == PB_VARINT || (f->tag & 7) == PB_BYTES;
	case TEXT:
		return (f->tag & 7) == PB_BYTES && is_text(pb_str(f), cut);
	case WORD:
		return (f->tag & 7) == PB_BYTES && (is_word(pb_str(f)) || (cut && !f->value));
	case BYTES:
		return (f->tag & 7) == PB_BYTES;
	}
	return false;
}

static const struct field *find_field(const struct shape *shape, uint32_t number)
{
	for (size_t i = 0; i < shape->count; i++)
		if (shape->fields[i].number == number)
			return &shape->fields[i];
	return NULL;
}

static void measure(const struct shape *shape, struct str bytes, struct fit *fit);

static void measure_field(const struct shape *shape, const struct pb_field *f, bool cut,
			  struct fit *fit, uint32_t *seen)
{
	const struct field *field = find_field(shape, pb_number(f));
	struct fit inner = { .cut = cut }; /* a message inside a cut field is cut, too */

	if (!field || !fits_value(field, f, cut)) {
		fit->misfits++;
		return;
	}
	if (field->sub)
		measure(field->sub, pb_str(f), &inner);
	fit->points += inner.points;
	fit->misfits += inner.misfits;
	if (field->must && !cut && (field->kind == TEXT || field->kind == WORD))
		fit->points++;
	*seen |= 1u << (field - shape->fields);
}

/* Measures the fit. The recursion is as deep as the tables above, not as the input. */
static void measure(const struct shape *shape, struct str bytes, struct fit *fit)
{
	const uint8_t *end = (const uint8_t *)bytes.ptr + bytes.len;
	struct pb r = pb_over(bytes.ptr, bytes.len);
	uint32_t seen = 0;
	struct pb_field f;

	while (pb_next(&r, &f))
		measure_field(shape, &f, false, fit, &seen);
	if (r.problem && (!fit->cut || r.problem != PB_TRUNCATED))
		fit->misfits++;
	else if (r.problem && r.at < end && cut_field(r.at, end, &f))
		measure_field(shape, &f, true, fit, &seen);
	for (size_t i = 0; i < shape->count; i++)
		if (shape->fields[i].must && !(seen & 1u << i) && !fit->cut)
			fit->misfits++;
}

/* Whether the first field is expected: damage is rarely that early, and other messages differ there. */
static bool begins_well(const struct shape *shape, struct str head)
{
	struct pb r = pb_over(head.ptr, head.len);
	struct pb_field f = { 0 };
	bool cut = !pb_next(&r, &f);
	const struct field *field;

	if (cut && !cut_field((const uint8_t *)head.ptr, (const uint8_t *)head.ptr + head.len, &f))
		return false;
	field = find_field(shape, pb_number(&f));
	return field && fits_value(field, &f, cut);
}

/* The score of a binary file. Damage in the head must not make a file unknown: if most fields fit, the rest can be
 * read. Such a file scores lower than any complete message. */
int tf_sniff_binary(struct str head, enum tf_message message)
{
	struct fit fit = { .cut = true }; /* the head may end anywhere, and so may a damaged file */

	if (head.len)
		measure(shapes[message], head, &fit);
	if (!fit.points)
		return 0;
	if (!fit.misfits)
		return (int)MIN(60 + fit.points, 95u);
	if (fit.points < 2 || fit.points <= fit.misfits || !begins_well(shapes[message], head))
		return 0;
	return (int)MIN(10 + fit.points - fit.misfits, 29u);
}

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

static ow_status check_for_text(struct import_ctx *ctx, enum tf_message message, bool *yes)
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

/* Counts the messages on the outermost level of the text, by type. */
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
			     "the text is damaged: %s; the part before the damage is used",
			     result->message);
	if (result->skipped)
		builder_note_many(ctx->b, NOTE_DROPPED, OW_NO_OFFSET, result->skipped,
				  "unknown fields of the text were skipped");
}

ow_status tf_text_convert(struct import_ctx *ctx, enum tf_message message)
{
	bool strict = ctx->options->strict_proto, text = false;
	struct pbtxt_options options = { .allow_unknown = !strict, .salvage = !strict };
	struct pbtxt_result result = { 0 };
	struct input binary;

	if (!ctx->in->size)
		return OW_OK;
	OW_TRY(check_for_text(ctx, message, &text));
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
