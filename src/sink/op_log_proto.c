/*
 * op_log_proto.c: a model as OpLogProto: what is known of ops beside the graph itself. Ops of which
 * nothing is known have no entry. See profile_proto.h.
 */
#include "sink/profile_proto.h"

#include "sink/writer.h"
#include "wire/pb_write.h"

enum { LOG_ENTRIES = 1, LOG_STRINGS = 2 };
enum { ENTRY_NAME = 1, ENTRY_FLOAT_OPS = 2, ENTRY_TYPES = 3, ENTRY_CODE = 4 };

/* All types but the kind of the op and where it was placed. */
static void put_types(const struct model *m, op_id op, struct buf *to)
{
	uint32_t count;
	const str_id *types = model_strset(m, m->op.types[op.v], &count);

	for (uint32_t i = 0; i < count; i++)
		if (types[i].v != m->op.type[op.v].v && types[i].v != m->op.device[op.v].v)
			pb_put_str(to, ENTRY_TYPES, model_str(m, types[i]));
}

static void put_entry(struct code_proto *c, op_id op, struct buf *to)
{
	const struct model *m = c->m;
	size_t entry = pb_begin(to, LOG_ENTRIES), named;

	pb_put_str(to, ENTRY_NAME, model_str(m, m->op.name[op.v]));
	named = to->len;
	if (m->op.float_ops[op.v])
		pb_put_int(to, ENTRY_FLOAT_OPS, m->op.float_ops[op.v]);
	put_types(m, op, to);
	code_proto_put(c, op, ENTRY_CODE, to);
	if (to->len == named)
		buf_clear(to);
	else
		pb_end(to, entry);
}

static void flush(struct writer *w, struct buf *bytes)
{
	if (bytes->failed)
		writer_fail(w, error_no_memory(w->err));
	writer_str(w, buf_str(bytes));
	buf_clear(bytes);
}

ow_status op_log_write(struct model *m, const struct out *out, struct error *err)
{
	struct code_proto code;
	struct buf bytes;
	struct writer w;
	ow_status status = code_proto_init(&code, m, err);

	if (status != OW_OK) {
		code_proto_release(&code);
		return status;
	}
	buf_init(&bytes, m->mem);
	writer_init(&w, m->mem, out, err);
	for (uint32_t op = 1; op < m->op.count && w.status == OW_OK; op++) {
		put_entry(&code, (op_id){ op }, &bytes);
		flush(&w, &bytes);
	}
	for (uint32_t i = 0; i < m->strings.count && w.status == OW_OK; i++)
		if (code_proto_string(&code, i, LOG_STRINGS, &bytes))
			flush(&w, &bytes);
	buf_release(&bytes);
	code_proto_release(&code);
	return writer_finish(&w);
}
