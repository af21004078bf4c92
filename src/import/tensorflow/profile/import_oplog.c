/*
 * import_oplog.c: reads OpLogProto, which holds what Python knows about a graph: types, float operations and the code
 * that made each op. It annotates existing ops; entries for unknown names are counted.
 */
#include "import/importer.h"
#include "import/tensorflow/code/tf_code.h"
#include "import/tensorflow/tf_read.h"
#include "import/tensorflow/tf_message.h"

#define LISTED_ENTRIES 100 /* limit of entries listed as facts */

struct entry {
	struct str name, code;
	uint64_t code_offset;
	int64_t float_ops;
	bool has_code;
	op_id op;
};

struct log {
	struct tf_read r;
	struct tf_code *code;
	uint32_t last; /* op of the last entry */
	uint64_t entries, unknown, unknown_offset;
	uint64_t with_code, with_float_ops;
	fact_id listed;
};

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_OP_LOG);
}

/* Finds the op of an entry; logs are mostly written in the order of the graph, so the next op is tried first. */
static op_id find_op(struct log *log, struct str name)
{
	const struct model *m = log->r.b->m;
	uint32_t next = log->last + 1;
	op_id op;

	if (next < m->op.count && str_eq(model_str(m, m->op.name[next]), name))
		op = (op_id){ next };
	else
		op = model_find_op(m, name);
	if (op.v)
		log->last = op.v;
	return op;
}

static void add_types(struct log *log, op_id op, struct pb r)
{
	struct model *m = log->r.b->m;
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(3, PB_BYTES))
			m->op.types[op.v] = tf_set_add(&log->r, m->op.types[op.v],
						       tf_word(&log->r, pb_str(&f)));
}

/* Adds the code of an op; if several logs have code for it the first one counts. */
static void add_code(struct log *log, op_id op, const struct entry *e)
{
	struct builder *b = log->r.b;
	uint64_t place;

	b->m->has_code = true;
	if (b->m->op.flags[op.v] & OP_HAS_CODE)
		return;
	place = tf_code_add(log->code, e->code, e->code_offset);
	if (b->status != OW_OK)
		return;
	b->m->op.flags[op.v] |= OP_HAS_CODE;
	BUILDER_SET(b, op, code_offset, op, place);
	BUILDER_SET(b, op, code_size, op, (uint32_t)e->code.len);
}

static void list_entry(struct log *log, const struct entry *e, struct pb r)
{
	struct builder *b = log->r.b;
	fact_id about, types;
	struct pb_field f;

	if (log->entries > LISTED_ENTRIES)
		return;
	about = fact_object(b, log->listed, NULL);
	fact_text(b, about, "name", model_str(b->m, tf_text(&log->r, e->name)));
	if (e->float_ops)
		fact_int(b, about, "float_ops", e->float_ops);
	types = fact_list(b, about, "types");
	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(3, PB_BYTES))
			fact_text(b, types, NULL, model_str(b->m, tf_word(&log->r, pb_str(&f))));
}

static void annotate_op(struct log *log, const struct entry *e, struct pb r)
{
	struct model *m = log->r.b->m;
	op_id op = find_op(log, e->name);

	log->entries++;
	log->with_code += e->has_code;
	log->with_float_ops += e->float_ops != 0;
	list_entry(log, e, r);
	if (!op.v) {
		if (!log->unknown++)
			log->unknown_offset = log->r.record;
		return;
	}
	add_types(log, op, r);
	if (e->float_ops)
		m->op.float_ops[op.v] = e->float_ops;
	if (e->has_code)
		add_code(log, op, e);
}

static void read_entry(struct log *log, const struct pb_stream_field *f)
{
	struct entry e = { 0 };
	struct pb_field field;
	struct pb r, whole;

	if (!pb_stream_record(&log->r.stream, f, &r))
		return;
	whole = r;
	while (pb_next(&r, &field))
		switch (field.tag) {
		case PB_TAG(1, PB_BYTES):
			e.name = pb_str(&field);
			break;
		case PB_TAG(2, PB_VARINT):
			e.float_ops = (int64_t)field.value;
			break;
		case PB_TAG(4, PB_BYTES):
			e.code = pb_str(&field);
			e.code_offset = f->offset + (uint64_t)(field.ptr - whole.at);
			e.has_code = true;
			break;
		default:
			break;
		}
	if (r.problem)
		tf_damaged(&log->r, f, &r, whole.at);
	else
		annotate_op(log, &e, whole);
}

static void add_facts(struct log *log)
{
	struct builder *b = log->r.b;
	fact_id top = { 0 };

	fact_int(b, top, "log_entry_count", (int64_t)log->entries);
	fact_int(b, top, "entries_with_code", (int64_t)log->with_code);
	fact_int(b, top, "entries_with_float_ops", (int64_t)log->with_float_ops);
	fact_int(b, top, "id_to_string", (int64_t)tf_code_strings(log->code));
	if (log->unknown)
		builder_note_many(b, NOTE_DROPPED, log->unknown_offset, log->unknown,
				  "entries of the op log name ops that are not in the graph");
}

static ow_status load(struct import_ctx *ctx)
{
	struct log log = { 0 };
	struct pb_stream_field f;
	ow_status status;

	if (!ctx->options->strict_proto) /* tfprof accepts the binary form only */
		OW_TRY(tf_text_convert(ctx, TF_OP_LOG));
	log.code = tf_code_new(ctx->b);
	if (!log.code)
		return builder_status(ctx->b);
	if (!ctx->options->forget)
		tf_code_stays(log.code, ctx->in);
	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("OpLogProto"));
	log.listed = fact_list(ctx->b, (fact_id){ 0 }, "log_entries");
	tf_read_begin(&log.r, ctx, "OpLogProto", 0, ctx->in->size);
	while (tf_next(&log.r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			read_entry(&log, &f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			tf_code_read_string(log.code, &log.r, &f);
	add_facts(&log);
	status = tf_read_end(&log.r, log.entries || tf_code_strings(log.code));
	if (status != OW_OK) {
		tf_code_free(log.code);
		return status;
	}
	return tf_code_defer(log.code);
}

const struct importer import_oplog = {
	.name = "oplog",
	.summary = "TensorFlow OpLogProto: op types, float operations, code traces",
	.extensions = "tfprof_log, op_log",
	.role = ROLE_LOG,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
