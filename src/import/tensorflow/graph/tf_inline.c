/*
 * tf_inline.c: copies the bodies of called functions into the graph (tf_inline.h), for tf_finish.c. Calls are inlined
 * in the order they are found; those inside a body come after all earlier ones. A function may be called any number of
 * times, so a small file can stand for endlessly many ops: inlining stops at OPS_MAX, and a function is not inlined
 * inside itself.
 */
#include "import/tensorflow/graph/tf_inline.h"

#include "base/vec.h"

#include "import/tensorflow/graph/tf_library.h"

#define OPS_MAX 250000 /* limit of ops in inlined bodies, in addition to OPS_PER_OP */
#define OPS_PER_OP 4   /* further limit: this many times the ops of the graph */
#define DEPTH_MAX 64
#define BRANCHES_MAX 64
#define NAME_STEP 256 /* this many bytes of a name count as much as an op */

static const struct kind {
	const char *type;
	enum tf_call_kind kind;
	uint32_t skip; /* number of inputs before those of the function */
	const char *attrs[2];
} KINDS[] = {
	{ "PartitionedCall", TF_CALL_PLAIN, 0, { "f" } },
	{ "StatefulPartitionedCall", TF_CALL_PLAIN, 0, { "f" } },
	{ "TPUPartitionedCall", TF_CALL_PLAIN, 0, { "f" } },
	{ "BatchFunction", TF_CALL_PLAIN, 0, { "f" } },
	{ "If", TF_CALL_BRANCHES, 1, { "then_branch", "else_branch" } },
	{ "StatelessIf", TF_CALL_BRANCHES, 1, { "then_branch", "else_branch" } },
	{ "Case", TF_CALL_BRANCHES, 1, { "branches" } },
	{ "StatelessCase", TF_CALL_BRANCHES, 1, { "branches" } },
	{ "While", TF_CALL_LOOP, 0, { "body", "cond" } },
	{ "StatelessWhile", TF_CALL_LOOP, 0, { "body", "cond" } },
};

enum why { WHY_OPENED, WHY_MISSING, WHY_UNUSABLE, WHY_RECURSION, WHY_TOO_MANY, WHY_COUNT };

/* A call that is to be inlined. */
struct pending {
	uint32_t op;
	uint32_t parent;   /* the pending call whose body contains it; 0 for the graph */
	uint32_t function; /* function of that body */
	uint32_t depth;
};

/* A function that a call runs, and where its ops are placed. */
struct branch {
	uint32_t function;
	const struct tf_body *body;
	/* text between the names of the call and of the node; empty for a plain call */
	char label[32];
};

struct inliner {
	struct builder *b;
	struct model *m;
	struct tf_reader *reader;
	struct tf_calls *calls;
	struct tf_library library;
	struct arena scratch; /* memory for one call */
	struct buf name;
	struct pending *pending; /* index 0 is unused */
	size_t pending_count, pending_cap, next;
	str_id kinds[ARRAY_COUNT(KINDS)];
	str_id arg_type;
	uint64_t room; /* number of ops that may still be added */
	uint64_t added, opened, loops, closed[WHY_COUNT];
};

static ow_status no_memory(struct inliner *in)
{
	return builder_fail(in->b, error_no_memory(in->b->err));
}

static const struct kind *kind_of(const struct inliner *in, str_id type)
{
	for (size_t i = 0; i < ARRAY_COUNT(KINDS); i++)
		if (in->kinds[i].v && in->kinds[i].v == type.v)
			return &KINDS[i];
	return NULL;
}

static ow_status add_pending(struct inliner *in, uint32_t op, uint32_t parent, uint32_t function)
{
	str_id type = in->m->op.type[op];

	if (!kind_of(in, type) && !tf_library_find(&in->library, type))
		return OW_OK;
	if (!vec_reserve(in->m->mem, in->pending, in->pending_cap, in->pending_count + 1))
		return no_memory(in);
	in->pending[in->pending_count++] =
		(struct pending){ op, parent, function,
				  parent ? in->pending[parent].depth + 1 : 0 };
	return OW_OK;
}

static bool is_open(const struct inliner *in, const struct pending *p, uint32_t function)
{
	for (; p->function; p = &in->pending[p->parent])
		if (p->function == function)
			return true;
	return false;
}

/* A name that no op has; if a run recorded an op with this name, that op is used. */
static str_id free_name(struct inliner *in, const char *label, struct str call, struct str node,
			uint32_t *known)
{
	op_id found;
	str_id id;

	*known = 0;
	buf_clear(&in->name);
	buf_add_str(&in->name, call);
	if (label[0]) {
		buf_add_char(&in->name, '/');
		buf_puts(&in->name, label);
	}
	buf_add_char(&in->name, '/');
	buf_add_str(&in->name, node);
	if (in->name.failed) {
		no_memory(in);
		return (str_id){ 0 };
	}
	id = builder_str(in->b, buf_str(&in->name));
	found = builder_find_op(in->b, id);
	if (!found.v)
		return id;
	if (!COLUMN_GET(in->m->op.record_size, found.v)) {
		*known = found.v;
		return id;
	}
	buf_printf(&in->name, "_%" PRIu32, in->m->op.count);
	if (in->name.failed) {
		no_memory(in);
		return (str_id){ 0 };
	}
	id = builder_str(in->b, buf_str(&in->name));
	found = builder_find_op(in->b, id);
	if (found.v)
		id.v = 0;
	return id;
}

static uint32_t define_op(struct inliner *in, uint32_t op, const struct op_row *row)
{
	struct model *m = in->m;

	m->op.type[op] = row->type;
	m->op.types[op] = builder_strset_add(in->b, m->op.types[op], row->type);
	m->op.output_first[op] = row->output_first;
	m->op.output_count[op] = row->output_count;
	BUILDER_SET(in->b, op, source, (op_id){ op }, row->source);
	BUILDER_SET(in->b, op, record_offset, (op_id){ op }, row->record_offset);
	BUILDER_SET(in->b, op, record_size, (op_id){ op }, row->record_size);
	return op;
}

/* Adds an op; 0 when it cannot be added. */
static uint32_t add_op(struct inliner *in, const char *label, struct str call, struct str node,
		       struct op_row *row)
{
	uint32_t known;

	row->name = free_name(in, label, call, node, &known);
	if (!row->name.v)
		return 0;
	in->added++;
	in->room -= MIN(in->room, 1 + in->name.len / NAME_STEP);
	return known ? define_op(in, known, row) : builder_new_op(in->b, row).v;
}

static uint32_t add_node(struct inliner *in, const struct branch *branch, struct str call,
			 const struct tf_body_node *node)
{
	struct op_row row = { .type = node->type,
			      .source = in->library.functions[branch->function].source,
			      .record_offset = node->offset,
			      .record_size = node->size,
			      .output_first = in->m->op_output.count };

	for (uint32_t i = 0; i < node->output_count; i++)
		builder_add_op_output(in->b, &(struct op_output_row){ .index = (int32_t)i,
								      .shape = node->outputs[i] });
	row.output_count = in->m->op_output.count - row.output_first;
	return add_op(in, branch->label, call, node->name, &row);
}

static void add_edge(struct inliner *in, uint32_t first, struct tf_return from)
{
	struct model *m = in->m;

	builder_add_op_input(in->b,
			     &(struct op_input_row){ .src = { from.op },
						     .name = m->op.name[from.op],
						     .index = (int32_t)(m->op_input.count - first),
						     .port = from.port,
						     .shown_port = MAX(from.port, 0) });
}

static struct tf_return follow(struct tf_wire wire, const struct tf_return *args,
			       uint32_t arg_count, const uint32_t *ops)
{
	if (wire.from == TF_FROM_ARG && wire.at < arg_count)
		return args[wire.at];
	if (wire.from == TF_FROM_NODE)
		return (struct tf_return){ ops[wire.at], wire.port };
	return (struct tf_return){ 0 };
}

static void add_edges(struct inliner *in, const struct tf_body_node *node, uint32_t op,
		      const struct tf_return *args, uint32_t arg_count, const uint32_t *ops)
{
	struct model *m = in->m;
	uint32_t first = m->op_input.count;

	for (uint32_t i = 0; i < node->wire_count; i++)
		add_edge(in, first, follow(node->wires[i], args, arg_count, ops));
	m->op.input_first[op] = m->op_input.count > first ? first : 0;
	m->op.input_count[op] = m->op_input.count - first;
}

/* Copies the body of one branch; its return values go to `returns`, which has room for `outputs`. */
static ow_status copy_body(struct inliner *in, uint32_t at, const struct branch *branch,
			   const struct tf_return *args, struct tf_return *returns,
			   uint32_t outputs)
{
	const struct tf_function *function = &in->library.functions[branch->function];
	const struct tf_body *body = branch->body;
	struct str call = model_str(in->m, in->m->op.name[in->pending[at].op]);
	uint32_t *ops = ARENA_ARRAY(&in->scratch, uint32_t, body->node_count);

	if (body->node_count && !ops)
		return no_memory(in);
	for (uint32_t i = 0; i < body->node_count; i++) {
		ops[i] = add_node(in, branch, call, &body->nodes[i]);
		OW_TRY(builder_status(in->b));
	}
	for (uint32_t i = 0; i < body->node_count; i++)
		if (ops[i])
			add_edges(in, &body->nodes[i], ops[i], args, function->arg_count, ops);
	for (uint32_t i = 0; i < MIN(outputs, function->return_count); i++)
		returns[i] = follow(body->returns[i], args, function->arg_count, ops);
	for (uint32_t i = 0; i < body->node_count; i++)
		if (ops[i])
			OW_TRY(add_pending(in, ops[i], (uint32_t)at, branch->function));
	return builder_status(in->b);
}

/* The values that a call passes to its functions. */
static struct tf_return *call_args(struct inliner *in, uint32_t op, uint32_t skip, uint32_t *count)
{
	struct model *m = in->m;
	uint32_t first = m->op.input_first[op], rows = m->op.input_count[op];
	struct tf_return *args = ARENA_ARRAY(&in->scratch, struct tf_return, rows + 1);

	*count = 0;
	if (!args) {
		no_memory(in);
		return NULL;
	}
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t row = first + i;

		if (m->op_input.port[row] < 0)
			continue;
		if (skip) {
			skip--;
			continue;
		}
		if (!m->op_input.src[row].v)
			m->op_input.src[row] = builder_find_op(in->b, m->op_input.name[row]);
		args[(*count)++] =
			(struct tf_return){ m->op_input.src[row].v, m->op_input.port[row] };
	}
	return args;
}

/* The arguments of one function: as many as it takes. */
static struct tf_return *fit_args(struct inliner *in, const struct tf_return *given, uint32_t count,
				  uint32_t want)
{
	struct tf_return *args = ARENA_ARRAY(&in->scratch, struct tf_return, (size_t)want + 1);

	if (!args) {
		no_memory(in);
		return NULL;
	}
	for (uint32_t i = 0; i < want; i++)
		args[i] = i < count ? given[i] : (struct tf_return){ 0 };
	return args;
}

/* The arguments of a loop's functions in later iterations: they have the shape of the initial values but not their
 * values, so a separate op stands for each. Values that the body passes on unchanged need none. */
static ow_status loop_args(struct inliner *in, uint32_t at, const struct branch *branch,
			   const struct tf_body *loop_body, uint32_t loop_returns,
			   struct tf_return *args)
{
	const struct tf_function *function = &in->library.functions[branch->function];
	uint32_t op = in->pending[at].op;
	struct model *m = in->m;

	for (uint32_t i = 0; i < function->arg_count; i++) {
		struct op_row row = { .type = in->arg_type,
				      .source = COLUMN_GET(m->op.source, op),
				      .record_offset = COLUMN_GET(m->op.record_offset, op),
				      .record_size = COLUMN_GET(m->op.record_size, op) };
		uint32_t first = m->op_input.count, arg;

		if (!args[i].op || (i < loop_returns && loop_body->returns[i].from == TF_FROM_ARG &&
				    loop_body->returns[i].at == i))
			continue;
		arg = add_op(in, branch->label, model_str(m, m->op.name[op]), function->args[i],
			     &row);
		if (!arg)
			continue;
		add_edge(in, first, args[i]);
		OW_TRY(builder_status(in->b));
		m->op.input_first[arg] = first;
		m->op.input_count[arg] = 1;
		args[i] = (struct tf_return){ arg, 0 };
	}
	return builder_status(in->b);
}

/* Adds the last ops of the bodies as control inputs of the call, because the call waits for them. */
static void add_ends(struct inliner *in, const struct tf_call *call)
{
	struct model *m = in->m;
	uint32_t old = m->op.input_first[call->op], count = m->op.input_count[call->op], last = 0;
	uint32_t first = m->op_input.count;

	for (uint32_t i = 0; i < count; i++) {
		struct op_input_row row = { .src = m->op_input.src[old + i],
					    .name = m->op_input.name[old + i],
					    .index = m->op_input.index[old + i],
					    .port = m->op_input.port[old + i],
					    .shown_port = m->op_input.shown_port[old + i] };

		builder_add_op_input(in->b, &row);
	}
	for (uint32_t i = 0; i < call->branches * call->outputs; i++) {
		uint32_t end = in->calls->returns[call->first + i].op;

		if (end && end != last)
			add_edge(in, first, (struct tf_return){ end, -1 });
		last = end;
	}
	m->op.input_first[call->op] = m->op_input.count > first ? first : 0;
	m->op.input_count[call->op] = m->op_input.count - first;
}

static ow_status add_call(struct inliner *in, const struct tf_call *call, size_t returns)
{
	struct tf_calls *c = in->calls;
	void *grown = c->calls;

	if (!mem_grow(c->mem, &grown, &c->cap, c->count + 1, sizeof(*c->calls)))
		return no_memory(in);
	c->calls = grown;
	grown = c->returns;
	if (!mem_grow(c->mem, &grown, &c->return_cap, c->return_count + returns,
		      sizeof(*c->returns)))
		return no_memory(in);
	c->returns = grown;
	for (size_t i = 0; i < returns; i++)
		c->returns[c->return_count++] = (struct tf_return){ 0 };
	c->calls[c->count++] = *call;
	return OW_OK;
}

static ow_status open_call(struct inliner *in, uint32_t at, const struct kind *kind,
			   const struct branch *branches, uint32_t branch_count)
{
	uint32_t op = in->pending[at].op, given_count, outputs = 0;
	enum tf_call_kind how = kind ? kind->kind : TF_CALL_PLAIN;
	struct tf_return *given = call_args(in, op, kind ? kind->skip : 0, &given_count);
	uint32_t kept = how == TF_CALL_LOOP ? 1 : branch_count; /* a condition returns nothing */
	struct tf_call call = { .op = op, .kind = how, .first = (uint32_t)in->calls->return_count };
	uint32_t loop_returns = in->library.functions[branches[0].function].return_count;

	if (!given)
		return builder_status(in->b);
	for (uint32_t i = 0; i < kept; i++)
		outputs = MAX(outputs, in->library.functions[branches[i].function].return_count);
	call.branches = kept;
	call.outputs = outputs;
	OW_TRY(add_call(in, &call, (size_t)kept * outputs));
	for (uint32_t i = 0; i < branch_count; i++) {
		struct tf_return *args =
			fit_args(in, given, given_count,
				 in->library.functions[branches[i].function].arg_count);

		if (!args)
			return builder_status(in->b);
		if (how == TF_CALL_LOOP)
			OW_TRY(loop_args(in, at, &branches[i], branches[0].body, loop_returns,
					 args));
		OW_TRY(copy_body(in, at, &branches[i], args,
				 i < kept ? in->calls->returns + call.first + (size_t)i * outputs
					  : NULL,
				 i < kept ? outputs : 0));
	}
	add_ends(in, &call);
	in->opened++;
	in->loops += how == TF_CALL_LOOP;
	return builder_status(in->b);
}

static enum why find_branch(struct inliner *in, uint32_t at, str_id name, struct branch *branch,
			    uint64_t *nodes)
{
	const struct pending *p = &in->pending[at];
	size_t name_len = model_str(in->m, in->m->op.name[p->op]).len;

	branch->function = name.v ? tf_library_find(&in->library, name) : 0;
	if (!branch->function)
		return WHY_MISSING;
	in->library.functions[branch->function].called = true;
	if (p->depth >= DEPTH_MAX || is_open(in, p, branch->function))
		return WHY_RECURSION;
	branch->body = tf_library_body(&in->library, branch->function);
	if (!branch->body || !branch->body->usable)
		return WHY_UNUSABLE;
	*nodes += ((uint64_t)branch->body->node_count +
		   in->library.functions[branch->function].arg_count) *
		  (1 + name_len / NAME_STEP);
	return *nodes > in->room ? WHY_TOO_MANY : WHY_OPENED;
}

static void set_label(struct branch *branch, const char *attr, uint32_t number)
{
	if (number)
		snprintf(branch->label, sizeof(branch->label), "%s_%" PRIu32, attr, number);
	else
		snprintf(branch->label, sizeof(branch->label), "%s", attr);
}

static enum why find_branches(struct inliner *in, uint32_t at, const struct kind *kind,
			      struct branch *branches, uint32_t *count)
{
	uint32_t op = in->pending[at].op;
	uint64_t nodes = 0;
	struct tf_node node;
	enum why why;

	*count = 0;
	branches[0].label[0] = '\0';
	if (!kind) {
		*count = 1;
		return find_branch(in, at, in->m->op.type[op], &branches[0], &nodes);
	}
	for (size_t attr = 0; attr < ARRAY_COUNT(kind->attrs) && kind->attrs[attr]; attr++)
		for (uint32_t i = 0; *count < BRANCHES_MAX; i++) {
			struct str name;

			/* Read again, because reading a body overwrites the attributes. */
			tf_reader_node(in->reader, op, &node);
			name = tf_attr_function(&node, kind->attrs[attr], i);
			if (!name.ptr)
				break;
			branches[*count].label[0] = '\0';
			if (kind->kind != TF_CALL_PLAIN)
				set_label(&branches[*count], kind->attrs[attr], i);
			why = find_branch(in, at, model_find_str(in->m, name), &branches[*count],
					  &nodes);
			if (why != WHY_OPENED)
				return why;
			++*count;
		}
	if (kind->kind == TF_CALL_LOOP && *count != 2)
		return WHY_MISSING;
	return *count ? WHY_OPENED : WHY_MISSING;
}

static ow_status open_pending(struct inliner *in, uint32_t at)
{
	const struct kind *kind = kind_of(in, in->m->op.type[in->pending[at].op]);
	struct branch branches[BRANCHES_MAX];
	uint32_t count;
	enum why why = find_branches(in, at, kind, branches, &count);

	if (in->reader->status != OW_OK)
		return in->reader->status;
	OW_TRY(builder_status(in->b));
	if (why != WHY_OPENED) {
		in->closed[why]++;
		return OW_OK;
	}
	arena_clear(&in->scratch);
	return open_call(in, at, kind, branches, count);
}

static uint64_t count_uncalled(const struct tf_library *library)
{
	uint64_t count = 0;

	for (size_t i = 1; i < library->function_count; i++)
		count += !library->functions[i].called;
	return count;
}

static void note_calls(struct inliner *in)
{
	static const char *const WHY[WHY_COUNT] = {
		[WHY_MISSING] = "the graph does not have the function",
		[WHY_UNUSABLE] = "the function is damaged or takes lists of tensors",
		[WHY_RECURSION] = "the function calls itself, or calls are nested too deeply",
		[WHY_TOO_MANY] = "the graph has too many calls",
	};
	uint64_t uncalled = count_uncalled(&in->library);

	if (in->opened)
		builder_note(in->b, NOTE_INFO, OW_NO_OFFSET,
			     "%" PRIu64 " function %s expanded into %" PRIu64 " ops%s", in->opened,
			     in->opened == 1 ? "call was" : "calls were", in->added,
			     in->loops ? "; the body of a loop counts once, however often it runs"
				       : "");
	for (int why = WHY_MISSING; why < WHY_COUNT; why++)
		if (in->closed[why])
			builder_note(in->b, NOTE_INFO, OW_NO_OFFSET,
				     "%" PRIu64 " function %s not counted: %s", in->closed[why],
				     in->closed[why] == 1 ? "call is" : "calls are", WHY[why]);
	if (uncalled)
		builder_note(in->b, NOTE_INFO, OW_NO_OFFSET,
			     "%" PRIu64 " %s not counted: no call in the graph reaches %s",
			     uncalled, uncalled == 1 ? "function is" : "functions are",
			     uncalled == 1 ? "it" : "them");
}

static ow_status index_calls(struct tf_calls *c, struct inliner *in)
{
	if (c->count <= 1)
		return OW_OK;
	c->op_count = in->m->op.count;
	c->of_op = mem_zalloc(c->mem, c->op_count * sizeof(*c->of_op));
	if (!c->of_op)
		return no_memory(in);
	for (size_t i = 1; i < c->count; i++)
		c->of_op[c->calls[i].op] = (uint32_t)i;
	return OW_OK;
}

static ow_status expand_all_calls(struct inliner *in)
{
	uint32_t ops = in->m->op.count;
	source_id before = in->b->source;

	for (size_t i = 0; i < ARRAY_COUNT(KINDS); i++)
		in->kinds[i] = builder_str(in->b, str_from(KINDS[i].type));
	in->arg_type = builder_str(in->b, STR("_Arg"));
	in->room = OPS_MAX + (uint64_t)ops * OPS_PER_OP;
	for (uint32_t op = 1; op < ops; op++)
		if (tf_reader_has(in->reader, op))
			OW_TRY(add_pending(in, op, 0, 0));
	while (in->next < in->pending_count)
		OW_TRY(open_pending(in, (uint32_t)in->next++));
	in->b->source = in->m->libraries[0].source;
	note_calls(in);
	in->b->source = before;
	OW_TRY(index_calls(in->calls, in));
	return builder_status(in->b);
}

ow_status tf_inline(struct tf_calls *calls, struct builder *b, struct tf_reader *reader)
{
	struct inliner in = {
		.b = b, .m = b->m, .reader = reader, .calls = calls, .pending_count = 1, .next = 1
	};
	ow_status status;

	*calls = (struct tf_calls){ .mem = b->m->mem, .count = 1 };
	if (!b->m->library_count)
		return OW_OK;
	arena_init(&in.scratch, b->m->mem);
	buf_init(&in.name, b->m->mem);
	status = tf_library_init(&in.library, b, reader);
	if (status == OW_OK)
		status = expand_all_calls(&in);
	tf_library_release(&in.library);
	buf_release(&in.name);
	arena_release(&in.scratch);
	mem_free(b->m->mem, in.pending, in.pending_cap * sizeof(*in.pending));
	return status;
}

void tf_calls_release(struct tf_calls *c)
{
	mem_free(c->mem, c->calls, c->cap * sizeof(*c->calls));
	mem_free(c->mem, c->returns, c->return_cap * sizeof(*c->returns));
	mem_free(c->mem, c->of_op, c->op_count * sizeof(*c->of_op));
}
