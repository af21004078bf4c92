/* rows.c: see rows.h. */
#include "relation/rows.h"

#include <math.h>

/* column.number: offset of the member; column.stride: size of a row. part.rows_at: the first row. */
static ow_status fill_member(const struct relation_part *p, const struct relation_column *c,
			     uint64_t first, uint32_t n, struct relation_vec *out,
			     struct error *err)
{
	const char *at = (const char *)p->row_data + first * c->stride + c->number;

	(void)err;
	for (uint32_t i = 0; i < n; i++, at += c->stride) {
		const void *member = at;
		int64_t number;
		double real;

		switch (c->type) {
		case RELATION_TEXT:
			if (c->dict == DICT_WORDS)
				((uint32_t *)out->values)[i] = *(const uint32_t *)member;
			else
				((struct str *)out->values)[i] = *(const struct str *)member;
			break;
		case RELATION_REAL:
			real = *(const double *)member;
			((double *)out->values)[i] = isnan(real) ? 0 : real;
			if (isnan(real))
				vec_null(out, n, i);
			break;
		case RELATION_BOOL:
			((bool *)out->values)[i] = *(const bool *)member;
			break;
		default:
			number = *(const int64_t *)member;
			if (number == ROW_UNKNOWN) {
				vec_null(out, n, i);
				number = 0;
			}
			((int64_t *)out->values)[i] = number;
		}
	}
	return OW_OK;
}

ow_status rows_describe(struct relation_table *t, const struct row_member *members, size_t row_size,
			struct error *err)
{
	for (; members->name; members++)
		OW_TRY(columns_add(
			t,
			&(struct relation_column){ .name = members->name,
						   .doc = members->doc,
						   .type = members->type,
						   .unit = members->unit,
						   .fill = fill_member,
						   .dict = members->words ? DICT_WORDS : DICT_NONE,
						   .words = members->words,
						   .number = members->offset,
						   .stride = (uint32_t)row_size },
			err));
	return OW_OK;
}

void rows_set(struct relation_part *part, const void *rows, uint64_t count)
{
	part->row_data = rows;
	part->rows = count;
}
