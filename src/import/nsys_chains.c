/*
 * nsys_chains.c: call chains of an export, as stacks of the model. A chain is several rows with one number, of which
 * depth 0 is the innermost; chains of samples, of CUDA calls and of calls of the operating system are numbered apart.
 */
#include "import/nsys_int.h"

static const char *const tables[CHAINS_KINDS] = {
	[CHAINS_CUDA] = "CUDA_CALLCHAINS",
	[CHAINS_OSRT] = "OSRT_CALLCHAINS",
	[CHAINS_SAMPLES] = "SAMPLING_CALLCHAINS",
};

/* ---- reading ---- */

static ow_status add_row(struct nsys *n, struct nsys_chains *c, const struct sqlite_rows *rows)
{
	int64_t id = sqlite_int(rows, 0), depth = sqlite_int(rows, 3);
	void *list = c->rows;

	if (id <= 0 || id > UINT32_MAX || depth < 0 || depth > UINT16_MAX) {
		n->counts.chains_broken++;
		return OW_OK;
	}
	if (!mem_grow(n->mem, &list, &c->row_cap, c->row_count + 1, sizeof(*c->rows)))
		return nsys_no_memory(n);
	c->rows = list;
	c->rows[c->row_count++] = (struct nsys_chain_row){
		.id = id,
		.depth = (uint16_t)depth,
		.symbol = nsys_name(n, sqlite_int(rows, 1)),
		.module = sqlite_is_null(rows, 2) ? 0 : nsys_name(n, sqlite_int(rows, 2)),
		.kernel = sqlite_int(rows, 4) != 0,
	};
	return builder_status(n->b);
}

static ow_status read_table(struct nsys *n, int kind)
{
	static const char *const columns[] = { "id", "symbol", "module", "stackDepth",
					       "kernelMode" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, tables[kind], columns, 5);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_row(n, &n->chains[kind], &rows);
	sqlite_rows_close(&rows);
	return status;
}

ow_status nsys_read_chains(struct nsys *n)
{
	for (int kind = 0; kind < CHAINS_KINDS; kind++)
		OW_TRY(read_table(n, kind));
	return OW_OK;
}

/* ---- stacks ---- */

/* The innermost first. */
static int by_chain(const void *a, const void *b)
{
	const struct nsys_chain_row *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

static void sort_rows(struct nsys_chains *c)
{
	for (size_t i = 1; i < c->row_count; i++)
		if (by_chain(&c->rows[i - 1], &c->rows[i]) > 0) {
			qsort(c->rows, c->row_count, sizeof(*c->rows), by_chain);
			return;
		}
}

static stack_id make_stack(struct nsys *n, const struct nsys_chain_row *rows, size_t count)
{
	stack_id stack = { 0 };

	while (count--) {
		struct frame_row frame = { .module = nsys_string(n, rows[count].module),
					   .function = nsys_string(n, rows[count].symbol),
					   .flags = rows[count].kernel ? FRAME_KERNEL : 0 };

		stack = builder_stack(n->b, stack, builder_frame(n->b, &frame));
	}
	return stack;
}

static ow_status make_stacks(struct nsys *n, struct nsys_chains *c)
{
	size_t chains = 0;

	sort_rows(c);
	for (size_t i = 0; i < c->row_count; i++)
		chains += !i || c->rows[i].id != c->rows[i - 1].id;
	if (!chains)
		return OW_OK;
	c->ids = mem_alloc(n->mem, chains * sizeof(*c->ids));
	c->stacks = mem_alloc(n->mem, chains * sizeof(*c->stacks));
	c->count = chains;
	if (!c->ids || !c->stacks)
		return nsys_no_memory(n);
	chains = 0;
	for (size_t i = 0, end; i < c->row_count && builder_status(n->b) == OW_OK; i = end) {
		for (end = i + 1; end < c->row_count && c->rows[end].id == c->rows[i].id; end++)
			;
		c->ids[chains] = (uint32_t)c->rows[i].id;
		c->stacks[chains++] = make_stack(n, c->rows + i, end - i);
	}
	return builder_status(n->b);
}

ow_status nsys_make_stacks(struct nsys *n)
{
	for (int kind = 0; kind < CHAINS_KINDS; kind++)
		OW_TRY(make_stacks(n, &n->chains[kind]));
	return OW_OK;
}

stack_id nsys_stack(const struct nsys *n, int kind, uint32_t chain)
{
	const struct nsys_chains *c = &n->chains[kind];
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->ids[middle] < chain)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->count && c->ids[low] == chain ? c->stacks[low] : (stack_id){ 0 };
}

void nsys_free_chains(struct nsys *n)
{
	for (int kind = 0; kind < CHAINS_KINDS; kind++) {
		struct nsys_chains *c = &n->chains[kind];

		mem_free(n->mem, c->rows, c->row_cap * sizeof(*c->rows));
		mem_free(n->mem, c->ids, c->ids ? c->count * sizeof(*c->ids) : 0);
		mem_free(n->mem, c->stacks, c->stacks ? c->count * sizeof(*c->stacks) : 0);
	}
}
