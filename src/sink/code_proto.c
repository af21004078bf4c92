/*
 * code_proto.c: call stacks as TensorFlow's CodeDef, outermost frame first, with texts by number. The
 * numbers are those of the model's strings. See profile_proto.h.
 */
#include "sink/profile_proto.h"

#include "wire/pb_write.h"

enum { CODE_TRACES = 1 };
enum { TRACE_LINE = 2, TRACE_FUNCTION_LINE = 5, TRACE_FILE_ID, TRACE_FUNCTION_ID, TRACE_LINE_ID };

ow_status code_proto_init(struct code_proto *c, struct model *m, struct error *err)
{
	*c = (struct code_proto){ .m = m };
	OW_TRY(model_require_stacks(m, err));
	c->words = (size_t)m->strings.count / 64 + 1;
	c->used = mem_zalloc(m->mem, c->words * sizeof(*c->used));
	return c->used ? OW_OK : error_no_memory(err);
}

void code_proto_release(struct code_proto *c)
{
	mem_free(c->m->mem, c->used, c->words * sizeof(*c->used));
	mem_free(c->m->mem, c->path, c->path_cap * sizeof(*c->path));
}

static void put_text(struct code_proto *c, uint32_t field, str_id text, struct buf *to)
{
	c->used[text.v / 64] |= (uint64_t)1 << text.v % 64;
	if (text.v)
		pb_put_varint(to, field, text.v);
}

static void put_frame(struct code_proto *c, frame_id frame, struct buf *to)
{
	const struct frame_table *f = &c->m->frame;
	size_t trace = pb_begin(to, CODE_TRACES);

	pb_put_int(to, TRACE_LINE, f->line[frame.v]);
	pb_put_int(to, TRACE_FUNCTION_LINE, f->function_line[frame.v]);
	put_text(c, TRACE_FILE_ID, f->file[frame.v], to);
	put_text(c, TRACE_FUNCTION_ID, f->function[frame.v], to);
	put_text(c, TRACE_LINE_ID, f->text[frame.v], to);
	pb_end(to, trace);
}

void code_proto_put(struct code_proto *c, op_id op, uint32_t field, struct buf *to)
{
	const struct model *m = c->m;
	stack_id stack = COLUMN_GET(m->op.stack, op.v);
	size_t depth = 0, code;
	void *path = c->path;

	if (!(m->op.flags[op.v] & OP_HAS_CODE) && !stack.v)
		return;
	for (; stack.v; stack = m->stack.parent[stack.v]) {
		if (!mem_grow(m->mem, &path, &c->path_cap, depth + 1, sizeof(*c->path))) {
			to->failed = true;
			return;
		}
		c->path = path;
		c->path[depth++] = stack;
	}
	code = pb_begin(to, field);
	while (depth)
		put_frame(c, m->stack.frame[c->path[--depth].v], to);
	pb_end(to, code);
}

bool code_proto_string(const struct code_proto *c, uint32_t string, uint32_t field, struct buf *to)
{
	size_t entry;

	if (string / 64 >= c->words || !(c->used[string / 64] >> string % 64 & 1))
		return false;
	entry = pb_begin(to, field);
	pb_put_varint(to, 1, string);
	pb_put_str(to, 2, model_str(c->m, (str_id){ string }));
	pb_end(to, entry);
	return true;
}
