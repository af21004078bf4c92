/*
 * elf_symbols.c: see elf_symbols.h. Files come from disk and may be anything: every offset and size is checked against the
 * file before it is used.
 */
#include "wire/elf_symbols.h"

#define TABLE_MAX ((uint64_t)1 << 30)
#define NOTES_MAX ((uint64_t)1 << 16)
#define NAME_MAX_BYTES 4096

enum { SHT_SYMTAB = 2, SHT_NOTE = 7, SHT_DYNSYM = 11 };
enum { STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 10 };
enum { GLOBAL = 1, WEAK = 2 };
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00 };
#define SHF_EXECINSTR 4

struct section {
	uint32_t type, link;
	uint64_t flags, address, offset, size, entry;
};

static uint64_t number(const unsigned char *p, size_t size, bool big)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)p[big ? size - 1 - i : i] << 8 * i;
	return value;
}

static uint64_t word(const struct elf_symbols *e, const unsigned char *p, size_t narrow,
		     size_t wide)
{
	return e->wide ? number(p + wide, 8, e->big) : number(p + narrow, 4, e->big);
}

static bool inside(const struct elf_symbols *e, uint64_t offset, uint64_t size)
{
	return offset <= e->in.size && size <= e->in.size - offset;
}

/* ---- sections ---- */

static struct section section_at(const struct elf_symbols *e, const unsigned char *p)
{
	return (struct section){ .type = (uint32_t)number(p + 4, 4, e->big),
				 .flags = word(e, p, 8, 8),
				 .address = word(e, p, 12, 16),
				 .offset = word(e, p, 16, 24),
				 .size = word(e, p, 20, 32),
				 .link = (uint32_t)number(p + (e->wide ? 40 : 24), 4, e->big),
				 .entry = word(e, p, 36, 56) };
}

static ow_status read_sections(struct elf_symbols *e, struct section **list, size_t *count,
			       struct error *err)
{
	unsigned char head[64], *bytes;
	uint64_t offset;
	size_t each, size;
	ow_status status;

	*list = NULL;
	*count = 0;
	if (e->in.size < sizeof(head))
		return OW_OK;
	OW_TRY(input_read_at(&e->in, 0, head, sizeof(head), err));
	offset = word(e, head, 32, 40);
	each = (size_t)number(head + (e->wide ? 58 : 46), 2, e->big);
	*count = (size_t)number(head + (e->wide ? 60 : 48), 2, e->big);
	size = each * *count;
	if (each < (e->wide ? 64u : 40u) || !size || !inside(e, offset, size)) {
		*count = 0;
		return OW_OK;
	}
	bytes = mem_alloc(e->mem, size);
	*list = bytes ? mem_alloc(e->mem, *count * sizeof(**list)) : NULL;
	if (*list)
		status = input_read_at(&e->in, offset, bytes, size, err);
	else
		status = error_no_memory(err);
	for (size_t i = 0; status == OW_OK && i < *count; i++)
		(*list)[i] = section_at(e, bytes + i * each);
	mem_free(e->mem, bytes, bytes ? size : 0);
	return status;
}

/* PT_LOAD: what is mapped. */
static ow_status read_parts(struct elf_symbols *e, const unsigned char *head, struct error *err)
{
	uint64_t offset = word(e, head, 28, 32);
	size_t each = (size_t)number(head + (e->wide ? 54 : 42), 2, e->big);
	size_t count = (size_t)number(head + (e->wide ? 56 : 44), 2, e->big);
	unsigned char p[56];

	if (each < (e->wide ? 56u : 32u) || !inside(e, offset, each * count))
		return OW_OK;
	for (size_t i = 0; i < count && e->part_count < ARRAY_COUNT(e->parts); i++) {
		OW_TRY(input_read_at(&e->in, offset + i * each, p, e->wide ? 56 : 32, err));
		if (number(p, 4, e->big) == 1)
			e->parts[e->part_count++] = (struct elf_part){
				.offset = word(e, p, 4, 8),
				.address = word(e, p, 8, 16),
				.size = word(e, p, 16, 32),
			};
	}
	return OW_OK;
}

bool elf_symbols_address(const struct elf_symbols *e, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < e->part_count; i++)
		if (offset >= e->parts[i].offset &&
		    offset - e->parts[i].offset < e->parts[i].size) {
			*address = offset - e->parts[i].offset + e->parts[i].address;
			return true;
		}
	return false;
}

size_t elf_build_id(const unsigned char *notes, size_t size, bool big, unsigned char id[ELF_ID_MAX])
{
	size_t at = 0;

	while (size - at >= 12) {
		uint64_t name = number(notes + at, 4, big), len = number(notes + at + 4, 4, big);
		uint64_t type = number(notes + at + 8, 4, big);
		uint64_t name_room = (name + 3) & ~(uint64_t)3, room = (len + 3) & ~(uint64_t)3;

		at += 12;
		if (name_room > size - at || room > size - at - name_room)
			break;
		if (type == 3 && name == 4 && memcmp(notes + at, "GNU", 4) == 0 && len &&
		    len <= ELF_ID_MAX) {
			memcpy(id, notes + at + name_room, (size_t)len);
			return (size_t)len;
		}
		at += (size_t)(name_room + room);
	}
	return 0;
}

static ow_status read_notes(struct elf_symbols *e, const struct section *s, struct error *err)
{
	unsigned char *bytes;
	ow_status status;

	if (e->id_len || s->type != SHT_NOTE || s->size > NOTES_MAX || !s->size ||
	    !inside(e, s->offset, s->size))
		return OW_OK;
	bytes = mem_alloc(e->mem, (size_t)s->size);
	if (!bytes)
		return error_no_memory(err);
	status = input_read_at(&e->in, s->offset, bytes, (size_t)s->size, err);
	if (status == OW_OK)
		e->id_len = elf_build_id(bytes, (size_t)s->size, e->big, e->id);
	mem_free(e->mem, bytes, (size_t)s->size);
	return status;
}

/* ---- symbols ---- */

/* Functions and objects, and labels of code that somebody wrote in assembler. */
static bool is_wanted(unsigned type, unsigned other, const struct section *in)
{
	if (type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && in->flags & SHF_EXECINSTR && (other & 3) != 1 &&
	       (other & 3) != 2;
}

static ow_status add_symbol(struct elf_symbols *e, const unsigned char *p,
			    const struct section *sections, size_t count, struct error *err)
{
	uint64_t value = word(e, p, 4, 8), size = word(e, p, 8, 16);
	unsigned info = p[e->wide ? 4 : 12], other = p[e->wide ? 5 : 13];
	size_t index = (size_t)number(p + (e->wide ? 6 : 14), 2, e->big);
	uint64_t name = number(p, 4, e->big);
	const struct section *in;
	void *items = e->items;

	if (!name || index == SHN_UNDEF || index >= SHN_LORESERVE || index >= count)
		return OW_OK;
	in = &sections[index];
	if (!is_wanted(info & 15, other, in))
		return OW_OK;
	if (!mem_grow(e->mem, &items, &e->cap, e->count + 1, sizeof(*e->items)))
		return error_no_memory(err);
	e->items = items;
	size = MIN(size, UINT64_MAX - value);
	/* what has a size, what cannot be replaced, what others see */
	e->items[e->count++] =
		(struct elf_symbol){ .start = value,
				     .end = value + size,
				     .limit = in->address + MIN(in->size, UINT64_MAX - in->address),
				     .name = name,
				     .rank = (uint8_t)((size ? 4 : 0) +
						       (info >> 4 == WEAK ? 0 : 2) +
						       (info >> 4 == GLOBAL ? 1 : 0)) };
	return OW_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static size_t leading(const char *name, char c)
{
	size_t len = 0;

	while (name[len] == c)
		len++;
	return len;
}

/* Of two names of one rank: the one with fewer underscores in front, then the longer. */
static bool is_better(const struct elf_symbols *e, const struct elf_symbol *a,
		      const struct elf_symbol *b)
{
	struct buf x, y;
	bool better = false;
	size_t m, n;

	buf_init(&x, e->mem);
	buf_init(&y, e->mem);
	if (elf_symbols_name(e, a, &x) && elf_symbols_name(e, b, &y) && buf_cstr(&x) &&
	    buf_cstr(&y)) {
		m = leading(x.ptr, '_');
		n = leading(y.ptr, '_');
		better = m != n ? m < n : x.len > y.len;
	}
	buf_release(&x);
	buf_release(&y);
	return better;
}

/* One per place; those without a size reach to the next. */
static void tidy(struct elf_symbols *e)
{
	struct elf_symbol *items = e->items, *last = items;
	size_t count = e->count;

	if (!count || !items)
		return;
	qsort(items, count, sizeof(*items), by_start);
	for (size_t i = 1; i < count; i++) {
		if (last->start == items[i].start) {
			if (last->rank == items[i].rank && is_better(e, &items[i], last))
				*last = items[i];
			continue;
		}
		if (last->end == last->start)
			last->end = MIN(items[i].start, MAX(last->limit, last->start));
		*++last = items[i];
	}
	if (last->end == last->start)
		last->end = MAX(last->limit, last->start);
	e->count = (size_t)(last - items) + 1;
}

static ow_status read_table(struct elf_symbols *e, const struct section *sections, size_t count,
			    const struct section *table, struct error *err)
{
	size_t each = e->wide ? 24 : 16;
	struct window w;
	ow_status status = OW_OK;

	if (table->link >= count || table->size > TABLE_MAX || table->entry != each ||
	    !inside(e, table->offset, table->size) ||
	    !inside(e, sections[table->link].offset, sections[table->link].size))
		return OW_OK;
	e->strings = sections[table->link].offset;
	e->strings_size = sections[table->link].size;
	window_init(&w, &e->in, err);
	for (uint64_t at = 0; status == OW_OK && at + each <= table->size; at += each) {
		const unsigned char *p = window_at(&w, table->offset + at, each);

		status = p ? add_symbol(e, p, sections, count, err) : w.status;
	}
	window_release(&w);
	if (status == OW_OK)
		tidy(e);
	return status;
}

/* ---- the file ---- */

ow_status elf_symbols_open(struct elf_symbols *e, struct mem *mem, const char *path,
			   struct error *err)
{
	struct section *sections = NULL;
	unsigned char head[64];
	size_t count = 0;
	ow_status status;

	*e = (struct elf_symbols){ .mem = mem };
	OW_TRY(input_open(&e->in, mem, path, err));
	e->open = true;
	if (e->in.size < 64)
		return error_set(err, OW_E_FORMAT, "%s: not an ELF file", path);
	OW_TRY(input_read_at(&e->in, 0, head, sizeof(head), err));
	if (memcmp(head, "\177ELF", 4) != 0 || (head[4] != 1 && head[4] != 2) ||
	    (head[5] != 1 && head[5] != 2))
		return error_set(err, OW_E_FORMAT, "%s: not an ELF file", path);
	e->wide = head[4] == 2;
	e->big = head[5] == 2;
	OW_TRY(read_parts(e, head, err));
	status = read_sections(e, &sections, &count, err);
	for (size_t i = 0; status == OW_OK && i < count; i++)
		status = read_notes(e, &sections[i], err);
	mem_free(mem, sections, sections ? count * sizeof(*sections) : 0);
	return status;
}

ow_status elf_symbols_load(struct elf_symbols *e, struct error *err)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct section *sections = NULL;
	size_t count = 0;
	ow_status status = read_sections(e, &sections, &count, err);

	for (size_t k = 0; k < ARRAY_COUNT(tables); k++)
		for (size_t i = 0; status == OW_OK && !e->count && i < count; i++)
			if (sections[i].type == tables[k]) {
				status = read_table(e, sections, count, &sections[i], err);
				e->full = tables[k] == SHT_SYMTAB && e->count;
			}
	mem_free(e->mem, sections, sections ? count * sizeof(*sections) : 0);
	return status;
}

void elf_symbols_release(struct elf_symbols *e)
{
	if (e->open)
		input_close(&e->in);
	mem_free(e->mem, e->items, e->cap * sizeof(*e->items));
	*e = (struct elf_symbols){ .mem = e->mem };
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *e, uint64_t address)
{
	size_t low = 0, high = e->count;

	while (low < high) { /* the last that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (e->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < e->items[low - 1].end ? &e->items[low - 1] : NULL;
}

bool elf_symbols_name(const struct elf_symbols *e, const struct elf_symbol *symbol, struct buf *to)
{
	uint64_t left = symbol->name < e->strings_size ? e->strings_size - symbol->name : 0;
	char text[NAME_MAX_BYTES];
	size_t len = (size_t)MIN(left, (uint64_t)sizeof(text));

	if (!len || input_read_at(&e->in, e->strings + symbol->name, text, len, NULL) != OW_OK)
		return false;
	buf_add(to, text, strnlen(text, len));
	return !to->failed;
}
