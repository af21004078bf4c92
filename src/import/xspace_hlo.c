/*
 * xspace_hlo.c: the programs that XLA compiled, from the plane /host:metadata: one HloProto per module. Of each
 * instruction the name, category, place in the framework's scopes and in the source, and what a run of it costs
 * (hlo_cost.c) are kept, so that kernels, which only name it, can be told what they are.
 */
#include "import/xspace_int.h"

#include "import/hlo_cost.h"

#define PROTO_MAX ((uint64_t)1 << 30)

/* ---- instructions by name ---- */

static uint64_t hash_of(uint64_t program, struct str name)
{
	return map_hash_u64(program, str_hash(name));
}

/* "a::b" is b inside of a. */
static struct str last_part(struct str name)
{
	size_t at;

	while ((at = str_find(name, STR("::"))) != STR_NONE)
		name = str_skip(name, at + 2);
	return name;
}

uint32_t xspace_hlo_find(const struct xspace *x, uint64_t program, struct str text)
{
	struct str name = last_part(text);
	struct map_iter it;

	for (it = map_find(&x->hlo.map, hash_of(program, name)); it.value;
	     it = map_next(&x->hlo.map, it)) {
		const struct hlo_op *op = &x->hlo.ops[it.value];

		if (op->program == program && str_eq(op->name, name))
			return it.value;
	}
	return 0;
}

static str_id module_of(const struct xspace *x, uint64_t program)
{
	for (size_t i = 0; i < x->hlo.module_count; i++)
		if (x->hlo.modules[i].program == program)
			return x->hlo.modules[i].name;
	return (str_id){ 0 };
}

/* Its scope, then the instruction. One name may stand for one cost only, so another program's instruction of the same
 * name gets the number of its program. */
static str_id name_op(struct xspace *x, const struct hlo_op *op)
{
	struct str scope =
		op->scope.len ? op->scope : model_str(x->b->m, module_of(x, op->program));
	const struct hlo_op *other;
	struct xop *known;
	struct buf text;
	str_id name = { 0 };

	buf_init(&text, x->mem);
	if (scope.len) {
		buf_add_str(&text, scope);
		buf_add_char(&text, '/');
	}
	buf_add_str(&text, op->name);
	if (!text.failed)
		name = xspace_text(x, buf_str(&text));
	known = name.v ? xspace_op(x, name) : NULL;
	other = known && known->hlo ? &x->hlo.ops[known->hlo] : NULL;
	if (other && (other->flops != op->flops || other->accessed != op->accessed)) {
		buf_printf(&text, "@%" PRIu64, op->program);
		if (!text.failed)
			name = xspace_text(x, buf_str(&text));
	}
	if (text.failed)
		xspace_no_memory(x);
	buf_release(&text);
	return name;
}

str_id xspace_hlo_op(struct xspace *x, uint32_t row)
{
	struct hlo_op *op = row ? &x->hlo.ops[row] : NULL;
	struct xop *known;

	if (!op || op->op.v)
		return op ? op->op : (str_id){ 0 };
	op->op = name_op(x, op);
	known = op->op.v ? xspace_op(x, op->op) : NULL;
	if (known && !known->hlo) {
		known->type = xspace_text(x, op->category).v;
		known->hlo = row;
		known->flags |= OP_FRAMEWORK | OP_INSTRUCTION;
	}
	return op->op;
}

static bool keep(struct xspace *x, struct str *text)
{
	*text = text->len ? arena_str(&x->arena, *text) : STR("");
	return text->ptr != NULL;
}

ow_status xspace_hlo_add(struct xspace *x, const struct hlo_op *op, uint32_t *row)
{
	struct hlo *h = &x->hlo;
	struct hlo_op kept = *op;
	void *ops = h->ops;

	if (!keep(x, &kept.name) || !keep(x, &kept.scope) || !keep(x, &kept.category) ||
	    !keep(x, &kept.file) ||
	    !mem_grow(x->mem, &ops, &h->cap, (size_t)h->count + 2, sizeof(*h->ops)))
		return xspace_no_memory(x);
	h->ops = ops;
	if (!h->count)
		h->ops[h->count++] = (struct hlo_op){ 0 };
	h->ops[h->count] = kept;
	if (!map_add(&h->map, hash_of(kept.program, kept.name), h->count))
		return xspace_no_memory(x);
	*row = h->count++;
	return OW_OK;
}

/* ---- modules ---- */

/* "jit_f(12190760917235803885)". */
static bool split_module(struct str text, struct str *name, uint64_t *program)
{
	size_t open = str_rfind_char(text, '(');
	uint64_t number = 0;

	if (open == STR_NONE || text.len < open + 3 || !str_ends(text, STR(")")))
		return false;
	for (size_t i = open + 1; i + 1 < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text.ptr[i] - '0');
	}
	*name = str_first(text, open);
	*program = number;
	return true;
}

static ow_status add_module(struct xspace *x, uint64_t program, struct str name)
{
	struct hlo *h = &x->hlo;
	void *modules = h->modules;

	if (!mem_grow(x->mem, &modules, &h->module_cap, h->module_count + 1, sizeof(*h->modules)))
		return xspace_no_memory(x);
	h->modules = modules;
	h->modules[h->module_count++] = (struct hlo_module){ program, xspace_text(x, name) };
	return builder_status(x->b);
}

struct taking {
	struct xspace *x;
	uint64_t program;
};

static ow_status take_instruction(void *arg, const struct hlo_instruction *i)
{
	struct taking *t = arg;
	struct xspace *x = t->x;
	uint32_t row;
	struct hlo_op op = { .program = t->program,
			     .name = i->name,
			     .scope = i->scope,
			     .category = i->category,
			     .file = i->file,
			     .line = i->line,
			     .flops = i->flops,
			     .accessed = i->accessed };

	return op.name.len ? xspace_hlo_add(x, &op, &row) : OW_OK;
}

static ow_status read_program(struct xspace *x, uint64_t program, struct str proto, uint64_t offset)
{
	struct taking taking = { x, program };
	struct arena scratch;
	ow_status status;
	bool damaged = false;

	arena_init(&scratch, x->mem);
	status = hlo_read(proto, &scratch, take_instruction, &taking, &damaged);
	arena_release(&scratch);
	if (damaged)
		xspace_damage(x, offset);
	return status == OW_E_NO_MEMORY ? xspace_no_memory(x) : status;
}

/* An entry of the dictionary: its name, and the program among its stats. */
static ow_status read_entry(struct xspace *x, struct pb entry, uint64_t offset)
{
	struct str name = STR(""), module, proto = STR("");
	struct pb stat;
	struct pb_field f;
	uint64_t program;

	while (pb_next(&entry, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES)) {
			name = pb_str(&f);
		} else if (f.tag == PB_TAG(5, PB_BYTES)) {
			struct xvalue value;

			stat = pb_message(&f);
			if (xvalue_read(stat, &value) && value.field == 6 &&
			    value.text.len > proto.len)
				proto = value.text;
		}
	}
	if (!split_module(name, &module, &program))
		return OW_OK;
	OW_TRY(add_module(x, program, module));
	return proto.len ? read_program(x, program, proto, offset) : OW_OK;
}

ow_status xspace_read_hlo(struct xspace *x, const struct xplane *plane)
{
	struct pb_stream s;
	struct pb_stream_field f;
	struct pb record, entry;
	struct pb_field pair;

	pb_stream_init(&s, &x->window, plane->offset, plane->offset + plane->size);
	while (pb_stream_next(&s, &f)) {
		if (f.tag != PB_TAG(4, PB_BYTES) || f.size > PROTO_MAX ||
		    !pb_stream_record(&s, &f, &record))
			continue;
		entry = pb_over("", 0);
		while (pb_next(&record, &pair))
			if (pair.tag == PB_TAG(2, PB_BYTES))
				entry = pb_message(&pair);
		OW_TRY(read_entry(x, entry, f.start));
	}
	return s.status == OW_E_CORRUPT ? OW_OK : s.status;
}
