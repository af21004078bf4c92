/* relation_step.c: the relation `step`: one training or inference step. */
#include "relation/columns.h"

static ow_status fill_dur(const struct relation_part *p, const struct relation_column *c,
			  uint64_t first, uint32_t n, struct relation_vec *out, struct error *err)
{
	const struct step_table *step = &p->m->step;
	int64_t *to = out->values;

	(void)c;
	(void)err;
	for (uint32_t i = 0; i < n; i++) {
		int64_t start = step->start_ns[first + 1 + i], end = step->end_ns[first + 1 + i];

		if (start == TIME_UNKNOWN || end == TIME_UNKNOWN ||
		    __builtin_sub_overflow(end, start, &to[i])) {
			to[i] = 0;
			vec_null(out, n, i);
		}
	}
	return OW_OK;
}

static ow_status describe(struct relation_table *t, struct error *err)
{
	OW_TRY(columns_add(
		t,
		&(struct relation_column){ .name = "dur",
					   .doc = "from its first event to the end of its last",
					   .type = RELATION_INT64,
					   .unit = UNIT_NS,
					   .fill = fill_dur },
		err));
	return OW_OK;
}

const struct relation relation_step = {
	.name = "step",
	.doc = "one training or inference step",
	.is_table = true,
	.table = TABLE_step,
	.describe = describe,
};
