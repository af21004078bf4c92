/* dictionary.c: see dictionary.h. */
#include "export/dictionary.h"

void dictionary_init(struct dictionary *d, struct mem *mem)
{
	*d = (struct dictionary){ .mem = mem };
	map_init(&d->map, mem);
}

static size_t numbers_size(const struct relation_table *t, uint32_t part, uint32_t column)
{
	return relation_dict(t, part, column)->count * sizeof(uint32_t);
}

void dictionary_release(struct dictionary *d, const struct relation_table *t, uint32_t column)
{
	for (uint32_t p = 0; d->numbers && p < t->part_count; p++)
		if (d->numbers[p])
			mem_free(d->mem, d->numbers[p], numbers_size(t, p, column));
	mem_free(d->mem, d->numbers, (t->part_count + 1) * sizeof(*d->numbers));
	mem_free(d->mem, d->texts, d->cap * sizeof(*d->texts));
	map_release(&d->map);
}

static ow_status make_numbers(struct dictionary *d, const struct rows *rows, uint32_t part,
			      uint32_t column, struct error *err)
{
	if (!d->numbers) {
		d->numbers = mem_zalloc(d->mem, (rows->t->part_count + 1) * sizeof(*d->numbers));
		if (!d->numbers)
			return error_no_memory(err);
	}
	if (d->numbers[part])
		return OW_OK;
	d->numbers[part] = mem_zalloc(d->mem, numbers_size(rows->t, part, column));
	return d->numbers[part] ? OW_OK : error_no_memory(err);
}

/* The number + 1 of a text, which may be one of another run. */
static ow_status number_text(struct dictionary *d, struct str text, uint32_t *number,
			     struct error *err)
{
	uint64_t hash = str_hash(text);
	struct map_iter it;

	for (it = map_find(&d->map, hash); it.value; it = map_next(&d->map, it))
		if (str_eq(d->texts[it.value - 1], text)) {
			*number = it.value;
			return OW_OK;
		}
	if (d->count >= INT32_MAX - 1)
		return error_set(err, OW_E_LIMIT, "more than 2^31 texts in a column");
	if (!mem_grow(d->mem, (void **)&d->texts, &d->cap, d->count + 1, sizeof(*d->texts)) ||
	    !map_add(&d->map, hash, (uint32_t)d->count + 1))
		return error_no_memory(err);
	d->texts[d->count++] = text;
	*number = (uint32_t)d->count;
	return OW_OK;
}

ow_status dictionary_add(struct dictionary *d, const struct rows *rows,
			 const struct rows_column *column, struct error *err)
{
	const uint32_t *codes = column->values;
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < rows->n; i++) {
		uint32_t part = rows_part(rows, i), *number;

		if (part != last)
			OW_TRY(make_numbers(d, rows, part, column->index, err));
		last = part;
		number = &d->numbers[part][codes[i]];
		if (codes[i] && !*number)
			OW_TRY(number_text(d, rows_text(rows, column, i), number, err));
	}
	return OW_OK;
}
