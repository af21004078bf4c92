/* relation_op_step.c: the relation `op_step`: the measurements of one op in one step. */
#include "relation/columns.h"

#include "model/backing.h"

static const struct path_column derived[] = {
	{ "op", "op.name", "name of the op" },
	{ "op_type", "op.type", NULL },
	{ "device", "op.device", NULL },
	{ "step", "step.number", "number of the step" },
	{ NULL, NULL, NULL },
};

static ow_status fill_exec(const struct table_part *p, const struct table_column *c, uint64_t first,
			   uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct op_step_table *s = &p->m->op_step;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = sum_add(s->accelerator_ns[first + 1 + i], s->cpu_ns[first + 1 + i]);
	return OW_OK;
}

static ow_status fill_memory_count(const struct table_part *p, const struct table_column *c,
				   uint64_t first, uint32_t n, struct table_vec *out,
				   struct ow_error *err)
{
	int64_t *to = out->values;
	uint32_t from;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		to[i] = model_memory_of(p->m, (uint32_t)first + 1 + i, &from);
	return OW_OK;
}

/* Fills sums over the runs of the op in the step, as in the views; NULL where nothing is known. */
static ow_status fill_memory(const struct table_part *p, const struct table_column *c,
			     uint64_t first, uint32_t n, struct table_vec *out,
			     struct ow_error *err)
{
	const struct model *m = p->m;
	const int64_t *const columns[] = { m->memory.requested, m->memory.peak, m->memory.residual,
					   m->memory.output };
	const int64_t *values = columns[c->number];
	int64_t *to = out->values;

	(void)err;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from, count = model_memory_of(m, (uint32_t)first + 1 + i, &from);

		to[i] = 0;
		if (!count)
			vec_null(out, n, i);
		for (uint32_t k = 0; k < count; k++)
			to[i] = sum_add(to[i], values[from + k]);
	}
	return OW_OK;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	static const struct {
		const char *name, *doc;
	} memory[] = {
		{ "requested_bytes", "bytes that the runs of the op requested, added up" },
		{ "peak_bytes", "largest amount of memory held at one time, added up over runs" },
		{ "residual_bytes", "bytes that were not released when the op ended" },
		{ "output_bytes", "output tensors" },
	};

	OW_TRY(columns_paths(t, TABLE_op_step, derived, err));
	OW_TRY(columns_add(
		t,
		&(struct table_column){ .name = "exec_ns",
					.doc = "time of the op on the accelerator and the host",
					.type = TYPE_INT,
					.unit = UNIT_NS,
					.fill = fill_exec },
		err));
	columns_need(t, TABLE_BIT(memory));
	OW_TRY(columns_add(t,
			   &(struct table_column){ .name = "memory_count",
						   .doc = "number of rows in the table memory",
						   .type = TYPE_INT,
						   .unit = UNIT_COUNT,
						   .fill = fill_memory_count },
			   err));
	for (uint32_t i = 0; i < ARRAY_COUNT(memory); i++)
		OW_TRY(columns_add(t,
				   &(struct table_column){ .name = memory[i].name,
							   .doc = memory[i].doc,
							   .type = TYPE_INT,
							   .unit = UNIT_BYTES,
							   .fill = fill_memory,
							   .number = i },
				   err));
	return OW_OK;
}

const struct table_source relation_op_step = {
	.name = "op_step",
	.doc = "measurements of one op in one step",
	.is_table = true,
	.table = TABLE_op_step,
	.describe = describe,
};
