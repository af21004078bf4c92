/*
 * xspace_hlo.c: the programs that XLA compiled, from the plane /host:metadata: one HloProto per module. For each instruction it
 * keeps name, category, place in the scopes of the framework and in the source, and what a run costs, so that kernels, which
 * only name an instruction, get an op, a type and costs.
 *
 * Costs follow XLA's own analysis where shapes suffice: a dot takes two operations per element of the result and contracted
 * index, a convolution two per element of the result and tap of the kernel (padding included), elementwise operations one
 * per element, moving data none. Bytes are those of operands and results. Computations come before their callers in the file,
 * so one pass is enough.
 */
#include "import/xspace/xspace_int.h"
#include "base/map.h"
#include "base/vec.h"
#include "wire/protobuf/pb.h"

#define DIMS_MAX 16

struct shape {
	int32_t type;
	uint32_t rank;
	int64_t dims[DIMS_MAX];
	/* for a tuple: elements of its first part, and bytes of all parts */
	int64_t elements, bytes;
};

struct instruction {
	struct hlo_instruction out;
	struct str opcode, fusion_kind, target, config;
	struct shape shape;
	uint64_t id;
	struct pb operands, called, contracting; /* packed numbers, as in the message */
	struct str dot, convolution;
	uint32_t computation;
	bool has_operands, has_called;
};

struct computation {
	uint64_t id;
	int64_t flops;
	bool matrix; /* the computation contains a dot or a convolution */
};

struct reading {
	struct arena *scratch;
	struct instruction *instructions;
	size_t count;
	struct computation *computations;
	size_t computation_count;
	struct map by_id;      /* id of an instruction → 1 + its index */
	struct map by_program; /* id of a computation → its entry */
	bool damaged;
};

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	if (a < 0 || b < 0)
		return 0;
	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Bytes of an element of XLA's primitive types. */
static int64_t element_size(int32_t type)
{
	switch (type) {
	case 3: /* S16 U16 F16 BF16 */
	case 7:
	case 10:
	case 16:
		return 2;
	case 4: /* S32 U32 F32 */
	case 8:
	case 11:
		return 4;
	case 5: /* S64 U64 F64 C64 */
	case 9:
	case 12:
	case 15:
		return 8;
	case 18: /* C128 */
		return 16;
	case 0:
	case 13:
	case 14:
	case 17: /* tuples, opaque values, tokens */
		return 0;
	default: /* PRED, S8, U8, the small floats; those of four bits are rounded up */
		return 1;
	}
}

/* Reads one array; the caller adds the parts of a tuple. */
static struct shape read_array(struct pb r, struct pb *parts, size_t *part_count)
{
	struct shape shape = { .elements = 1 };
	struct pb_values values;
	struct pb_field f;
	uint64_t value;

	*part_count = 0;
	while (pb_next(&r, &f)) {
		switch (f.tag) {
		case PB_TAG(2, PB_VARINT):
			shape.type = (int32_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
		case PB_TAG(3, PB_VARINT):
			for (values = pb_values(&f, PB_VARINT); pb_value(&values, &value);) {
				if (shape.rank < DIMS_MAX)
					shape.dims[shape.rank++] = (int64_t)value;
				shape.elements = times(shape.elements, (int64_t)value);
			}
			break;
		case PB_TAG(4, PB_BYTES):
			if (*part_count < DIMS_MAX)
				parts[(*part_count)++] = pb_message(&f);
			break;
		default:
			break;
		}
	}
	shape.bytes = times(shape.elements, element_size(shape.type));
	return shape;
}

/* Reads a shape; for tuples of tuples only the first level counts. */
static struct shape read_shape(struct pb r)
{
	struct pb parts[DIMS_MAX], deeper[DIMS_MAX];
	size_t count, ignored;
	struct shape shape = read_array(r, parts, &count), first = shape;

	if (shape.type != 13)
		return shape;
	first.bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct shape part = read_array(parts[i], deeper, &ignored);
		int64_t bytes = plus(first.bytes, part.bytes);

		if (!i)
			first = part;
		first.bytes = bytes;
	}
	return first;
}

static void read_metadata(struct pb r, struct hlo_instruction *out)
{
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES))
			out->scope = pb_str(&f);
		else if (f.tag == PB_TAG(3, PB_BYTES))
			out->file = pb_str(&f);
		else if (f.tag == PB_TAG(4, PB_VARINT) && f.value <= INT32_MAX)
			out->line = (int32_t)f.value;
	}
}

static void read_instruction(struct reading *r, struct pb message, struct instruction *i)
{
	struct pb_field f;

	i->dot = i->convolution = STR("");
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			i->out.name = pb_str(&f);
			break;
		case PB_TAG(2, PB_BYTES):
			i->opcode = pb_str(&f);
			break;
		case PB_TAG(3, PB_BYTES):
			i->shape = read_shape(pb_message(&f));
			break;
		case PB_TAG(7, PB_BYTES):
			read_metadata(pb_message(&f), &i->out);
			break;
		case PB_TAG(11, PB_BYTES):
			i->fusion_kind = pb_str(&f);
			break;
		case PB_TAG(16, PB_BYTES):
			i->convolution = pb_str(&f);
			break;
		case PB_TAG(28, PB_BYTES):
			i->target = pb_str(&f);
			break;
		case PB_TAG(30, PB_BYTES):
			i->dot = pb_str(&f);
			break;
		case PB_TAG(35, PB_VARINT):
			i->id = f.value;
			break;
		case PB_TAG(36, PB_BYTES):
			i->operands = pb_message(&f);
			i->has_operands = true;
			break;
		case PB_TAG(38, PB_BYTES):
			i->called = pb_message(&f);
			i->has_called = true;
			break;
		case PB_TAG(43, PB_BYTES):
			i->config = pb_str(&f);
			break;
		default:
			break;
		}
	}
	r->damaged |= message.problem != PB_OK;
}

static size_t count_fields(struct pb r, uint32_t tag)
{
	struct pb_field f;
	size_t count = 0;

	while (pb_next(&r, &f))
		count += f.tag == tag;
	return count;
}

static ow_status read_computation(struct reading *r, struct pb message, size_t number)
{
	struct computation *c = &r->computations[number];
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(5, PB_VARINT)) {
			c->id = f.value;
		} else if (f.tag == PB_TAG(2, PB_BYTES)) {
			struct instruction *i = &r->instructions[r->count++];

			i->computation = (uint32_t)number;
			read_instruction(r, pb_message(&f), i);
			if (r->count < UINT32_MAX &&
			    !map_add(&r->by_id, map_hash_u64(i->id, 1), (uint32_t)r->count))
				return OW_E_NO_MEMORY;
		}
	}
	r->damaged |= message.problem != PB_OK;
	return map_add(&r->by_program, map_hash_u64(c->id, 2), (uint32_t)number + 1)
		       ? OW_OK
		       : OW_E_NO_MEMORY;
}

static const struct instruction *find_instruction(const struct reading *r, uint64_t id)
{
	for (struct map_iter it = map_find(&r->by_id, map_hash_u64(id, 1)); it.value;
	     it = map_next(&r->by_id, it))
		if (r->instructions[it.value - 1].id == id)
			return &r->instructions[it.value - 1];
	return NULL;
}

static struct computation *find_computation(const struct reading *r, uint64_t id)
{
	for (struct map_iter it = map_find(&r->by_program, map_hash_u64(id, 2)); it.value;
	     it = map_next(&r->by_program, it))
		if (r->computations[it.value - 1].id == id)
			return &r->computations[it.value - 1];
	return NULL;
}

/* The n-th of the packed numbers. */
static bool number_at(struct pb packed, size_t n, uint64_t *value)
{
	while (packed.at < packed.end) {
		struct pb_varint v = pb_varint_at(packed.at, packed.end);

		if (!v.next)
			return false;
		packed.at = v.next;
		*value = v.value;
		if (!n--)
			return true;
	}
	return false;
}

static const struct instruction *operand(const struct reading *r, const struct instruction *i,
					 size_t n)
{
	uint64_t id;

	return i->has_operands && number_at(i->operands, n, &id) ? find_instruction(r, id) : NULL;
}

static bool is_one_of(struct str text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(text, str_from(words[i])))
			return true;
	return false;
}

/* Whether an instruction needs no kernel of its own. */
static bool is_free(struct str opcode)
{
	static const char *const words[] = { "parameter",	  "constant",  "tuple",
					     "get-tuple-element", "bitcast",   "after-all",
					     "partition-id",	  "replica-id" };

	return is_one_of(opcode, words, ARRAY_COUNT(words));
}

/* Whether an instruction only moves data or encloses the instructions that compute. */
static bool is_moving(struct str opcode)
{
	static const char *const words[] = { "copy",
					     "copy-start",
					     "copy-done",
					     "transpose",
					     "reshape",
					     "broadcast",
					     "slice",
					     "dynamic-slice",
					     "gather",
					     "scatter",
					     "concatenate",
					     "pad",
					     "reverse",
					     "iota",
					     "dynamic-update-slice",
					     "bitcast-convert",
					     "call",
					     "while",
					     "conditional",
					     "custom-call",
					     "fusion",
					     "infeed",
					     "outfeed",
					     "send",
					     "recv",
					     "send-done",
					     "recv-done",
					     "all-gather",
					     "all-to-all",
					     "collective-permute",
					     "async-start",
					     "async-update",
					     "async-done",
					     "domain",
					     "opt-barrier",
					     "rng-bit-generator",
					     "collective-permute-start",
					     "collective-permute-done",
					     "all-gather-start",
					     "all-gather-done",
					     "all-reduce-done",
					     "sort" };

	return is_free(opcode) || is_one_of(opcode, words, ARRAY_COUNT(words));
}

/* The product of the first operand's dimensions whose numbers a list gives. */
static int64_t contracted(const struct shape *left, struct pb packed)
{
	int64_t size = 1;

	while (packed.at < packed.end) {
		struct pb_varint v = pb_varint_at(packed.at, packed.end);

		if (!v.next)
			break;
		packed.at = v.next;
		if (v.value < left->rank)
			size = times(size, left->dims[v.value]);
	}
	return size;
}

static int64_t dot_flops(const struct reading *r, const struct instruction *i)
{
	const struct instruction *left = operand(r, i, 0);
	struct pb dims = pb_over(i->dot.ptr, i->dot.len);
	int64_t size = 1;
	struct pb_field f;

	if (!left)
		return 0;
	while (pb_next(&dims, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			size = contracted(&left->shape, pb_message(&f));
		else if (f.tag == PB_TAG(1, PB_VARINT) && f.value < left->shape.rank)
			size = times(size, left->shape.dims[f.value]);
	}
	return times(2, times(i->shape.elements, size));
}

/* Float operations of a library call, from "lhs_contracting_dimensions":["1","2"]. */
static int64_t gemm_flops(const struct reading *r, const struct instruction *i)
{
	const struct instruction *left = operand(r, i, 0);
	size_t at = str_find(i->config, STR("\"lhs_contracting_dimensions\":["));
	struct str list = at == STR_NONE ? STR("") : str_skip(i->config, at + 30);
	int64_t size = 1;

	if (!left || !list.len)
		return 0;
	for (size_t k = 0; k < list.len && list.ptr[k] != ']'; k++) {
		uint32_t dim = (uint32_t)(list.ptr[k] - '0');

		if (list.ptr[k] >= '0' && list.ptr[k] <= '9' && dim < left->shape.rank)
			size = times(size, left->shape.dims[dim]);
	}
	return times(2, times(i->shape.elements, size));
}

/* Kernel taps per element of the result: all elements of the kernel, without the dimension of output features. */
static int64_t kernel_taps(const struct shape *kernel, struct str numbers)
{
	struct pb r = pb_over(numbers.ptr, numbers.len);
	uint64_t feature = 0;
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(4, PB_VARINT))
			feature = f.value;
	if (feature >= kernel->rank || kernel->dims[feature] <= 0)
		return 0;
	return kernel->elements / kernel->dims[feature];
}

static int64_t convolution_flops(const struct reading *r, const struct instruction *i)
{
	const struct instruction *a = operand(r, i, 0), *b = operand(r, i, 1);
	const struct shape *result = &i->shape, *kernel;

	if (!a || !b)
		return 0;
	kernel = &b->shape;
	if (str_has(i->target, STR("convBackwardInput"))) {
		result = &a->shape;
	} else if (str_has(i->target, STR("convBackwardFilter"))) {
		kernel = &i->shape;
		result = &b->shape;
	}
	return times(2, times(result->elements, kernel_taps(kernel, i->convolution)));
}

static bool is_gemm(const struct instruction *i)
{
	return str_has(i->target, STR("gemm")) || str_has(i->target, STR("cublas")) ||
	       str_has(i->target, STR("matmul"));
}

static int64_t called_flops(const struct reading *r, const struct instruction *i, bool *matrix)
{
	struct pb packed = i->called;
	int64_t sum = 0;

	while (i->has_called && packed.at < packed.end) {
		struct pb_varint v = pb_varint_at(packed.at, packed.end);
		const struct computation *c = v.next ? find_computation(r, v.value) : NULL;

		if (!v.next)
			break;
		packed.at = v.next;
		if (c) {
			sum = plus(sum, c->flops);
			*matrix |= c->matrix;
		}
	}
	return sum;
}

static int64_t flops_of(const struct reading *r, const struct instruction *i, bool *matrix)
{
	const struct instruction *first;

	if (str_eq(i->opcode, STR("dot"))) {
		*matrix = true;
		return dot_flops(r, i);
	}
	if (str_eq(i->opcode, STR("convolution")) || i->convolution.len) {
		*matrix = true;
		return convolution_flops(r, i);
	}
	if (str_eq(i->opcode, STR("custom-call")) && is_gemm(i)) {
		*matrix = true;
		return gemm_flops(r, i);
	}
	if (str_eq(i->opcode, STR("fusion")) || str_eq(i->opcode, STR("call")))
		return called_flops(r, i, matrix);
	if (is_moving(i->opcode))
		return 0;
	if (str_starts(i->opcode, STR("reduce"))) {
		first = operand(r, i, 0);
		return first ? first->shape.elements : 0;
	}
	return i->shape.elements;
}

static int64_t bytes_of(const struct reading *r, const struct instruction *i)
{
	int64_t bytes = i->shape.bytes;
	struct pb packed = i->operands;

	while (i->has_operands && packed.at < packed.end) {
		struct pb_varint v = pb_varint_at(packed.at, packed.end);
		const struct instruction *from = v.next ? find_instruction(r, v.value) : NULL;

		if (!v.next)
			break;
		packed.at = v.next;
		if (from)
			bytes = plus(bytes, from->shape.bytes);
	}
	return bytes;
}

/* The category of an instruction, with XProf's names. */
static struct str category_of(const struct instruction *i, bool matrix)
{
	static const struct {
		const char *kind, *category;
	} kinds[] = { { "kLoop", "loop fusion" },
		      { "kInput", "input fusion" },
		      { "kOutput", "output fusion" },
		      { "kCustom", "custom fusion" } };

	if (!str_eq(i->opcode, STR("fusion")))
		return i->opcode;
	if (matrix)
		return STR("convolution fusion");
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
		if (str_eq(i->fusion_kind, str_from(kinds[k].kind)))
			return str_from(kinds[k].category);
	return STR("fusion");
}

/* Reports instructions that can become kernels. Computations inside a fusion or a reduction make no kernels; those
 * of loops and calls do. Names are unique within a program, so that reporting too many does no harm. */
static ow_status report_instructions(struct reading *r, hlo_fn take, void *arg)
{
	for (size_t n = 0; n < r->count; n++) {
		struct instruction *i = &r->instructions[n];
		struct computation *c = &r->computations[i->computation];
		bool matrix = false;

		i->out.flops = flops_of(r, i, &matrix);
		c->flops = plus(c->flops, i->out.flops);
		c->matrix |= matrix;
		if (is_free(i->opcode))
			continue;
		i->out.accessed = bytes_of(r, i);
		i->out.category = category_of(i, matrix);
		OW_TRY(take(arg, &i->out));
	}
	return OW_OK;
}

static ow_status read_module(struct reading *r, struct pb module)
{
	struct pb scan = module;
	size_t instructions = 0;
	struct pb_field f;

	while (pb_next(&scan, &f))
		if (f.tag == PB_TAG(3, PB_BYTES)) {
			r->computation_count++;
			instructions += count_fields(pb_message(&f), PB_TAG(2, PB_BYTES));
		}
	r->damaged |= scan.problem != PB_OK;
	r->instructions = ARENA_ARRAY(r->scratch, struct instruction, instructions + 1);
	r->computations = ARENA_ARRAY(r->scratch, struct computation, r->computation_count + 1);
	if (!r->instructions || !r->computations)
		return OW_E_NO_MEMORY;
	r->computation_count = 0;
	while (pb_next(&module, &f))
		if (f.tag == PB_TAG(3, PB_BYTES))
			OW_TRY(read_computation(r, pb_message(&f), r->computation_count++));
	return OW_OK;
}

ow_status hlo_read(struct str proto, struct arena *scratch, hlo_fn take, void *arg, bool *damaged)
{
	struct reading r = { .scratch = scratch };
	struct pb file = pb_over(proto.ptr, proto.len), module = pb_over("", 0);
	ow_status status;
	struct pb_field f;

	while (pb_next(&file, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			module = pb_message(&f);
	r.damaged = file.problem != PB_OK;
	map_init(&r.by_id, scratch->mem);
	map_init(&r.by_program, scratch->mem);
	status = read_module(&r, module);
	if (status == OW_OK)
		status = report_instructions(&r, take, arg);
	map_release(&r.by_id);
	map_release(&r.by_program);
	*damaged = r.damaged;
	return status;
}

#define PROTO_MAX ((uint64_t)1 << 30)

static uint64_t hash_of(uint64_t program, struct str name)
{
	return map_hash_u64(program, str_hash(name));
}

/* The last part of a name: "a::b" is b inside of a. */
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

/* The name of an op: its scope, then the instruction. A name may have only one cost, so another program's
 * instruction of the same name gets the number of its program. */
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

static bool copy_text(struct xspace *x, struct str *text)
{
	*text = text->len ? arena_str(&x->arena, *text) : STR("");
	return text->ptr != NULL;
}

ow_status xspace_hlo_add(struct xspace *x, const struct hlo_op *op, uint32_t *row)
{
	struct hlo *h = &x->hlo;
	struct hlo_op kept = *op;

	if (!copy_text(x, &kept.name) || !copy_text(x, &kept.scope) ||
	    !copy_text(x, &kept.category) || !copy_text(x, &kept.file) ||
	    !vec_reserve(x->mem, h->ops, h->cap, (size_t)h->count + 2))
		return xspace_no_memory(x);
	if (!h->count)
		h->ops[h->count++] = (struct hlo_op){ 0 };
	h->ops[h->count] = kept;
	if (!map_add(&h->map, hash_of(kept.program, kept.name), h->count))
		return xspace_no_memory(x);
	*row = h->count++;
	return OW_OK;
}

/* Splits the name and the program's id: "jit_f(12190760917235803885)". */
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

	if (!vec_push(x->mem, h->modules, h->module_count, h->module_cap,
		      (struct hlo_module){ program, xspace_text(x, name) }))
		return xspace_no_memory(x);
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

/* Reads an entry of the dictionary: its name, and the program among its stats. */
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
