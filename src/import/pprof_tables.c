/* pprof_tables.c: see pprof_file.h. Ids are any numbers; strings are numbered as they come. */
#include "import/pprof_file.h"

static void *add_item(struct pprof_file *p, struct pprof_list *list, uint64_t id, size_t size)
{
	if (list->count >= UINT32_MAX - 1 ||
	    !mem_grow(p->mem, &list->items, &list->cap, list->count + 1, size) ||
	    !map_add(&list->by_id, map_hash_u64(id, 41), (uint32_t)list->count + 1))
		return NULL;
	return (char *)list->items + list->count++ * size;
}

/* Ids come first in each struct. */
void *pprof_find(const struct pprof_list *list, uint64_t id, size_t size)
{
	for (struct map_iter it = map_find(&list->by_id, map_hash_u64(id, 41)); it.value;
	     it = map_next(&list->by_id, it)) {
		char *item = (char *)list->items + (it.value - 1) * size;

		if (*(const uint64_t *)(const void *)item == id)
			return item;
	}
	return NULL;
}

static ow_status read_string(struct pprof_file *p, struct str text)
{
	void *strings = p->strings;

	if (!mem_grow(p->mem, &strings, &p->string_cap, p->string_count + 1, sizeof(*p->strings)))
		return import_no_memory(p->ctx);
	p->strings = strings;
	p->strings[p->string_count++] = text;
	return OW_OK;
}

static void read_type(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	if (p->type_count == PPROF_TYPES_MAX)
		return;
	while (pb_next(&r, &sub)) {
		if (sub.tag == PB_TAG(1, PB_VARINT))
			p->types[p->type_count].type = sub.value;
		else if (sub.tag == PB_TAG(2, PB_VARINT))
			p->types[p->type_count].unit = sub.value;
	}
	p->type_count++;
}

void pprof_numbers(const struct pb_field *f, uint64_t numbers[8])
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	memset(numbers, 0, 8 * sizeof(*numbers));
	while (pb_next(&r, &sub))
		if ((sub.tag & 7) == PB_VARINT && sub.tag >> 3 < 8)
			numbers[sub.tag >> 3] = sub.value;
}

static ow_status read_table(struct pprof_file *p, const struct pb_field *f)
{
	uint64_t n[8];

	pprof_numbers(f, n);
	if (f->tag == PB_TAG(3, PB_BYTES)) {
		struct pprof_mapping *m = add_item(p, &p->mappings, n[1], sizeof(*m));

		if (!m)
			return import_no_memory(p->ctx);
		*m = (struct pprof_mapping){ n[1], n[5] };
	} else if (f->tag == PB_TAG(4, PB_BYTES)) {
		struct pprof_location *l = add_item(p, &p->locations, n[1], sizeof(*l));

		if (!l)
			return import_no_memory(p->ctx);
		*l = (struct pprof_location){ n[1], n[2], n[3], f->ptr, (size_t)f->value };
	} else {
		struct pprof_function *fn = add_item(p, &p->functions, n[1], sizeof(*fn));

		if (!fn)
			return import_no_memory(p->ctx);
		*fn = (struct pprof_function){
			.id = n[1], .name = n[2] ? n[2] : n[3], .file = n[4], .line = (int64_t)n[5]
		};
	}
	return OW_OK;
}

ow_status pprof_tables_read(struct pprof_file *p)
{
	struct pb r = pb_over(p->bytes, p->size);
	struct pb_field f;

	while (pb_next(&r, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			read_type(p, &f);
			break;
		case PB_TAG(2, PB_BYTES):
			p->samples++;
			break;
		case PB_TAG(3, PB_BYTES):
		case PB_TAG(4, PB_BYTES):
		case PB_TAG(5, PB_BYTES):
			OW_TRY(read_table(p, &f));
			break;
		case PB_TAG(6, PB_BYTES):
			OW_TRY(read_string(p, pb_str(&f)));
			break;
		case PB_TAG(7, PB_VARINT):
			p->drop_frames = f.value;
			break;
		case PB_TAG(8, PB_VARINT):
			p->keep_frames = f.value;
			break;
		case PB_TAG(9, PB_VARINT):
			p->time = (int64_t)f.value;
			break;
		case PB_TAG(10, PB_VARINT):
			p->duration = (int64_t)f.value;
			break;
		case PB_TAG(12, PB_VARINT):
			p->period = (int64_t)f.value;
			break;
		case PB_TAG(14, PB_VARINT):
			p->default_type = f.value;
			break;
		default:
			break;
		}
	}
	if (r.problem)
		builder_note(p->b, NOTE_TRUNCATED, (uint64_t)(r.at - p->bytes),
			     "the profile is cut or damaged here: what comes before is used");
	return OW_OK;
}

void pprof_tables_init(struct pprof_file *p)
{
	map_init(&p->functions.by_id, p->mem);
	map_init(&p->mappings.by_id, p->mem);
	map_init(&p->locations.by_id, p->mem);
}

void pprof_tables_release(struct pprof_file *p)
{
	mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	mem_free(p->mem, p->functions.items, p->functions.cap * sizeof(struct pprof_function));
	mem_free(p->mem, p->mappings.items, p->mappings.cap * sizeof(struct pprof_mapping));
	mem_free(p->mem, p->locations.items, p->locations.cap * sizeof(struct pprof_location));
	map_release(&p->functions.by_id);
	map_release(&p->mappings.by_id);
	map_release(&p->locations.by_id);
}
