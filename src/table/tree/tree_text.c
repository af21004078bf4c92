/*
 * tree_text.c: shapes, devices and types of a tree's node as text, for tree_flatten and the sinks that print trees.
 */
#include "table/tree/tree_text.h"

#include "base/vec.h"

#include "model/metrics.h"

void tree_text_init(struct tree_text *t, const struct tree *tree, struct mem *mem)
{
	*t = (struct tree_text){ .tree = tree, .mem = mem };
}

void tree_text_release(struct tree_text *t)
{
	mem_free(t->mem, t->ids, t->cap * sizeof(*t->ids));
	t->ids = NULL;
	t->cap = 0;
}

static bool ids_room(struct tree_text *t, size_t need)
{
	if (!vec_reserve(t->mem, t->ids, t->cap, need))
		return false;
	return true;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static size_t unique_ids(uint32_t *ids, size_t count)
{
	size_t kept = 0;

	if (count > 1)
		qsort(ids, count, sizeof(*ids), by_id);
	for (size_t i = 0; i < count; i++)
		if (!kept || ids[kept - 1] != ids[i])
			ids[kept++] = ids[i];
	return kept;
}

static int by_text(const void *a, const void *b, void *model)
{
	const struct model *m = model;

	return str_cmp(model_str(m, (str_id){ *(const uint32_t *)a }),
		       model_str(m, (str_id){ *(const uint32_t *)b }));
}

/* Joins strings by their ids, in byte order. */
static void join(struct tree_text *t, size_t count, struct buf *to)
{
	struct model *m = t->tree->model;

	if (count > 1)
		qsort_r(t->ids, count, sizeof(*t->ids), by_text, m);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_add_char(to, '|');
		buf_add_str(to, model_str(m, (str_id){ t->ids[i] }));
	}
}

static bool is_multi(const struct tree *tree)
{
	return tree->kind == TREE_OP || tree->kind == TREE_CODE;
}

bool tree_text_devices(struct tree_text *t, const struct tree_node *node, struct buf *to)
{
	const struct model *m = t->tree->model;
	const op_id *ops;
	uint32_t op_count;
	size_t count = 0;

	if (!is_multi(t->tree)) {
		buf_add_str(to, model_str(m, m->op.device[node->op.v]));
		return m->op.device[node->op.v].v != 0;
	}
	ops = tree_ops(t->tree, node, &op_count);
	for (uint32_t i = 0; i < op_count; i++) {
		uint32_t id = m->op.device[ops[i].v].v;

		if (count && t->ids[count - 1] == id)
			continue;
		if (!ids_room(t, count + 1)) {
			to->failed = true;
			return true;
		}
		t->ids[count++] = id;
	}
	join(t, unique_ids(t->ids, count), to);
	return op_count || t->tree->kind == TREE_OP;
}

/* Replaces the ids of sets by those of their members; returns the number of members. */
static size_t members(struct tree_text *t, size_t sets)
{
	const struct model *m = t->tree->model;
	size_t count = sets;

	for (size_t i = 0; i < sets; i++) {
		uint32_t size;
		const str_id *items = model_strset(m, (strset_id){ t->ids[i] }, &size);

		if (!ids_room(t, count + size))
			return SIZE_MAX;
		for (uint32_t k = 0; k < size; k++)
			t->ids[count++] = items[k].v;
	}
	memmove(t->ids, t->ids + sets, (count - sets) * sizeof(*t->ids));
	return count - sets;
}

void tree_text_types(struct tree_text *t, const struct tree_node *node, struct buf *to)
{
	const struct model *m = t->tree->model;
	const op_id *ops = &node->op;
	uint32_t op_count = 1;
	size_t count = 0;

	if (!is_multi(t->tree) && !node->op.v) {
		buf_puts(to, t->tree->kind == TREE_SCOPE ? "_kTFScopeParent" : "_TFGraphParent");
		return;
	}
	if (is_multi(t->tree))
		ops = tree_ops(t->tree, node, &op_count);
	for (uint32_t i = 0; i < op_count; i++) {
		uint32_t set = m->op.types[ops[i].v].v;

		if (count && t->ids[count - 1] == set)
			continue;
		if (!ids_room(t, count + 1)) {
			to->failed = true;
			return;
		}
		t->ids[count++] = set;
	}
	if (!count)
		return;
	count = members(t, unique_ids(t->ids, count));
	if (count == SIZE_MAX) {
		to->failed = true;
		return;
	}
	join(t, unique_ids(t->ids, count), to);
}

static void add_int(struct buf *to, int64_t value)
{
	char digits[24];
	char *end = digits + sizeof(digits), *p = end;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do
		*--p = (char)('0' + rest % 10);
	while (rest /= 10);
	if (value < 0)
		*--p = '-';
	buf_add(to, p, (size_t)(end - p));
}

void tree_text_shape(const struct model *m, shape_id shape, struct buf *to)
{
	uint32_t count;
	const int64_t *dims = metric_dims(m, shape, &count);

	for (uint32_t i = 0; i < count; i++) {
		if (i)
			buf_add_char(to, 'x');
		add_int(to, dims[i]);
	}
}

/* The static shape of one output of an op; nil when unknown. */
static shape_id output_shape(const struct model *m, op_id op, int32_t port)
{
	uint32_t first = m->op.output_first[op.v], count = m->op.output_count[op.v];

	if (port >= 0 && (uint32_t)port < count &&
	    m->op_output.index[first + (uint32_t)port] == port)
		return m->op_output.shape[first + (uint32_t)port];
	for (uint32_t i = first; i < first + count; i++)
		if (m->op_output.index[i] == port)
			return m->op_output.shape[i];
	return (shape_id){ 0 };
}

shape_id tree_input_shape(const struct model *m, uint32_t row)
{
	op_id src = m->op_input.src[row];

	return src.v ? output_shape(m, src, m->op_input.shown_port[row]) : (shape_id){ 0 };
}

static int by_row(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

bool tree_input_order(const struct model *m, op_id op, struct input_order *order, bool *sorted)
{
	uint32_t first = m->op.input_first[op.v], count = m->op.input_count[op.v];

	*sorted = true;
	for (uint32_t i = 1; i < count; i++)
		*sorted &= m->op_input.index[first + i - 1] <= m->op_input.index[first + i];
	if (*sorted)
		return true;
	if (!vec_reserve(order->mem, order->rows, order->cap, count))
		return false;
	/* flips the sign bit, so that unsigned order equals signed order */
	for (uint32_t i = 0; i < count; i++)
		order->rows[i] = (uint64_t)((uint32_t)m->op_input.index[first + i] ^ 0x80000000u)
					 << 32 |
				 (first + i);
	qsort(order->rows, count, sizeof(*order->rows), by_row);
	return true;
}

void tree_text_inputs(const struct model *m, op_id op, const char *separator, struct buf *to)
{
	struct input_order order = { .mem = m->mem };
	uint32_t first = m->op.input_first[op.v], count = m->op.input_count[op.v];
	bool sorted;

	if (!tree_input_order(m, op, &order, &sorted)) {
		to->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = sorted ? first + i : (uint32_t)order.rows[i];
		size_t begin;

		if (i)
			buf_puts(to, separator);
		add_int(to, m->op_input.index[row]);
		buf_add_char(to, ':');
		begin = to->len;
		tree_text_shape(m, tree_input_shape(m, row), to);
		if (to->len == begin)
			buf_puts(to, "unknown");
	}
	mem_free(order.mem, order.rows, order.cap * sizeof(*order.rows));
}
