/*
 * xspace_names.c: what the events of an entry are: their op and its type, their own name, whether they are
 * frames of Python or memory. Decided once per entry of a plane's dictionary.
 */
#include "import/xspace_int.h"

/* What the runtime tells only itself. */
static const char *const internal_names[] = {
	"ThreadpoolListener::StartRegion",
	"ThreadpoolListener::StopRegion",
	"ThreadpoolListener::Record",
	"PrefetchProduce",
	"PrefetchConsume",
	"ParallelInterleaveProduce",
	"ParallelInterleaveConsume",
	"ParallelInterleaveInitializedInput",
	"ParallelMapProduce",
	"ParallelMapConsume",
	"MapAndBatchProduce",
	"MapAndBatchConsume",
	"ParseExampleProduce",
	"ParseExampleConsume",
};

struct xop *xspace_op(struct xspace *x, str_id name)
{
	size_t old = x->op_cap;
	void *ops = x->ops;

	if (OW_UNLIKELY(name.v >= x->op_cap)) {
		if (!mem_grow(x->mem, &ops, &x->op_cap,
			      MAX((size_t)name.v + 1, (size_t)x->b->m->strings.count),
			      sizeof(*x->ops))) {
			xspace_no_memory(x);
			return NULL;
		}
		x->ops = ops;
		memset(x->ops + old, 0, (x->op_cap - old) * sizeof(*x->ops));
	}
	return &x->ops[name.v];
}

/* Roots, what tells of iterations, and ops of runtimes that tell of none. */
static const char *const root_names[] = { "TraceContext",	"ProcessBatch",
					  "BatchingSessionRun", "ExecutorState::Process",
					  "WhileOp-EvalCond",	"ForOp",
					  "WhileOp-StartBody",	"ParallelForOp",
					  "ForeverOp" };

bool xspace_is_captured(struct str name)
{
	return str_starts(name, STR("InstantiatedCapturedFunction::Run"));
}

uint8_t xspace_kind_of(struct str text, bool *release)
{
	struct str name = tf_op_name_strip(text);

	*release = false;
	if (name.len > 1 && name.ptr[0] == '$')
		return XEVENT_FRAME;
	*release = str_eq(name, STR("MemoryDeallocation"));
	if (*release || str_eq(name, STR("MemoryAllocation")))
		return XEVENT_MEMORY;
	for (size_t i = 0; i < ARRAY_COUNT(internal_names); i++)
		if (str_eq(name, str_from(internal_names[i])))
			return XEVENT_INTERNAL;
	for (size_t i = 0; i < ARRAY_COUNT(root_names); i++)
		if (str_eq(name, str_from(root_names[i])))
			return XEVENT_ROOT;
	return xspace_is_captured(name) ? XEVENT_ROOT : XEVENT_PLAIN;
}

/* The op of a text "scope/node:Type"; what it is becomes known under its name. */
static str_id op_of(struct xspace *x, const struct tf_op_name *op, bool framework)
{
	str_id name, type;
	struct xop *known;

	if (op->kind == TF_OP_DATA) {
		name = iterator_path(x->b, op->name);
		type = iterator_stage(x->b, op->name);
	} else {
		name = xspace_text(x, op->name);
		type = xspace_text(x, op->type);
	}
	known = xspace_op(x, name);
	if (!known || !name.v)
		return (str_id){ 0 };
	if (!known->type)
		known->type = type.v;
	if (framework)
		known->flags |= OP_FRAMEWORK;
	return name;
}

str_id xspace_op_of_text(struct xspace *x, struct str text)
{
	struct tf_op_name op;
	size_t nested;

	/* annotations inside each other: the innermost counts */
	while ((nested = str_find(text, STR("::"))) != STR_NONE &&
	       !str_starts(text, STR("Iterator::")))
		text = str_skip(text, nested + 2);
	text = tf_op_name_strip(text);
	if (str_starts(text, STR("XlaModule:")) || str_eq(text, STR("(null)")))
		return (str_id){ 0 };
	op = tf_op_name_parse(text, true);
	if (op.kind == TF_OP_NONE)
		return (str_id){ 0 };
	return op_of(x, &op, true);
}

/* ---- TPUs: everything is told with the entry ---- */

struct told {
	uint64_t program;
	bool has_program;
	struct str category, source, tf_op;
	int64_t flops, accessed;
};

static void read_told(const struct xplane *plane, struct str stats, struct told *told)
{
	struct pb r = pb_over(stats.ptr, stats.len);
	struct xvalue value;
	int64_t model_flops = 0;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (!xvalue_read(pb_message(&f), &value))
			continue;
		switch (xvalue_stat(plane, &value)) {
		case XSTAT_PROGRAM_ID:
			told->program = (uint64_t)xvalue_int(&value);
			told->has_program = true;
			break;
		case XSTAT_HLO_CATEGORY:
			told->category = xvalue_text(plane, &value);
			break;
		case XSTAT_SOURCE:
			told->source = xvalue_text(plane, &value);
			break;
		case XSTAT_TF_OP:
			told->tf_op = xvalue_text(plane, &value);
			break;
		case XSTAT_FLOPS:
			told->flops = xvalue_int(&value);
			break;
		case XSTAT_MODEL_FLOPS:
			model_flops = xvalue_int(&value);
			break;
		case XSTAT_BYTES_ACCESSED:
			told->accessed = xvalue_int(&value);
			break;
		default:
			break;
		}
	}
	if (model_flops > 0)
		told->flops = model_flops;
}

/* "path/file.py:38". */
static void split_source(struct str source, struct hlo_op *op)
{
	size_t colon = str_rfind_char(source, ':');
	int64_t line;

	if (colon == STR_NONE || !str_to_i64(str_skip(source, colon + 1), &line) || line < 0 ||
	    line > INT32_MAX)
		return;
	op->file = str_first(source, colon);
	op->line = (int32_t)line;
}

static ow_status resolve_hlo(struct xspace *x, const struct told *told,
			     const struct xevent_text *text, struct xevent_entry *entry)
{
	struct str label = text->display.len ? text->display : text->name;
	struct hlo_op op = { .program = told->program,
			     .name = label,
			     .scope = tf_op_name_strip(told->tf_op),
			     .category = told->category,
			     .flops = MAX(told->flops, 0),
			     .accessed = MAX(told->accessed, 0) };
	uint32_t row = xspace_hlo_find(x, told->program, label);

	if (!row) {
		if (op.scope.len && op.scope.ptr[op.scope.len - 1] == ':')
			op.scope.len--;
		split_source(told->source, &op);
		OW_TRY(xspace_hlo_add(x, &op, &row));
	}
	entry->op = xspace_hlo_op(x, row);
	entry->label = xspace_text(x, label);
	if (entry->op.v == entry->label.v)
		entry->label.v = 0;
	return builder_status(x->b);
}

/* ---- all ---- */

ow_status xspace_resolve(struct xspace *x, struct xplane *plane, uint32_t row)
{
	struct xevent_entry *entry = &plane->events[row];
	const struct xevent_text *text = &plane->texts[row];
	struct str name = tf_op_name_strip(text->name);
	struct str label = text->display.len ? text->display : name;
	struct told told = { 0 };
	struct tf_op_name op;

	entry->resolved = true;
	entry->kind = xspace_kind_of(text->name, &entry->release);
	if (plane->kind == XPLANE_TPU || plane->kind == XPLANE_DEVICE) {
		read_told(plane, text->stats, &told);
		if (told.has_program && told.category.len)
			return resolve_hlo(x, &told, text, entry);
	}
	op = tf_op_name_parse(name, true);
	if (plane->kind == XPLANE_HOST &&
	    (entry->kind == XEVENT_PLAIN || entry->kind == XEVENT_ROOT) && op.kind != TF_OP_NONE)
		entry->op = op_of(x, &op, x->hyphen || tf_op_name_parse(name, false).kind);
	if (!entry->op.v) {
		entry->op = xspace_text(x, label.len ? label : STR("[no name]"));
		return builder_status(x->b);
	}
	entry->label = xspace_text(x, label);
	if (entry->label.v == entry->op.v)
		entry->label.v = 0;
	return builder_status(x->b);
}
