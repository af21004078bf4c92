/*
 * dictionary.h: the texts that a column has in some rows, numbered from 0; codes of all runs' dictionaries
 * become numbers in one. For formats that write a dictionary before the rows.
 */
#ifndef EXPORT_DICTIONARY_H
#define EXPORT_DICTIONARY_H

#include "base/map.h"
#include "export/rows.h"

struct dictionary {
	struct mem *mem;
	uint32_t **numbers; /* per part, by code: the number + 1, 0 = not seen; NULL = none of it */
	struct str *texts;
	size_t count, cap;
	struct map map; /* by text, to the number + 1 */
};

void dictionary_init(struct dictionary *d, struct mem *mem);
void dictionary_release(struct dictionary *d, const struct relation_table *t, uint32_t column);
/* Takes the texts of the block. */
ow_status dictionary_add(struct dictionary *d, const struct rows *rows,
			 const struct rows_column *column, struct error *err);
/* The number of the text in row i of a block that was taken; UINT32_MAX when it is unknown. */
static inline uint32_t dictionary_number(const struct dictionary *d, const struct rows *rows,
					 const struct rows_column *column, uint32_t i)
{
	uint32_t code = ((const uint32_t *)column->values)[i];

	return code ? d->numbers[rows_part(rows, i)][code] - 1 : UINT32_MAX;
}

#endif
