/*
 * tf_sniff.c: see tf_sniff.h. Each message is a small table of fields; a file fits when every field in
 * its head is in the table, has the right wire type and, for texts and sub-messages, the right kind
 * of content. Field numbers are those of TensorFlow 1.15 and what 2.x added.
 */
#include "import/tf_sniff.h"

#include "wire/pb.h"

enum kind {
	NUMBER,	 /* a varint */
	NUMBERS, /* repeated scalars, packed or not */
	TEXT,	 /* UTF-8 that does not begin with a control character, as a sub-message would */
	WORD,	 /* letters, digits and a few signs: an op type */
	BYTES,	 /* anything with a length */
};

struct field {
	uint8_t number;
	uint8_t kind;
	bool must;		 /* the message is nothing without it */
	const struct shape *sub; /* for BYTES */
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
/* A graph of nothing but functions is a graph here. */
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

/* What was found in a message: how much of it fits, and whether it goes on behind the head. */
struct fit {
	unsigned points;  /* whole texts that must be there, and are */
	unsigned misfits; /* fields that do not belong there, and breaks */
	bool cut;
};

/* A field that goes on behind the end of the head, as far as it is there. */
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
	struct fit inner = { .cut = cut }; /* a cut field is a message that is cut itself */

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

/* Recursion goes as deep as the tables above, not as the input. */
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

/* Whether the first field belongs there: damage is rarely that early, and other messages differ
 * there. */
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

/* Damage in the head must not make a file unknown: where most of what is there fits, what is left
 * can be read. Less sure than any message that is whole. */
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
