/*
 * elf_symbols.c: reads the symbol tables, the PLT and the build id of an ELF file. The perf.data importer calls it
 * for names; attach, launch and the Python sampler look up single symbols. Files come from disk and may hold
 * anything: every offset and size is checked against the file before use. Code and debugging information are not
 * read, and names are not demangled.
 */
#include "wire/elf/elf_symbols.h"

#include "base/radix.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define TABLE_MAX ((uint64_t)1 << 30)
#define NOTES_MAX ((uint64_t)1 << 16)
#define NAME_MAX_BYTES 4096
#define STRINGS_MAX ((uint64_t)256 << 20)

/* rank of the best symbol among those that start at the same address */
#define RANK_BEST 128
/* number of bytes per read: a multiple of the size of a symbol, in both widths */
#define CHUNK ((size_t)48 << 10)

enum { SHT_PROGBITS = 1, SHT_SYMTAB = 2, SHT_RELA = 4, SHT_NOTE = 7, SHT_REL = 9, SHT_DYNSYM = 11 };
enum { EM_ARM = 40, EM_AARCH64 = 183 };
enum { STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 10 };
enum { GLOBAL = 1, WEAK = 2 };
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00 };
#define SHF_EXECINSTR 4

struct section {
	uint32_t name, type, link;
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

static struct section section_at(const struct elf_symbols *e, const unsigned char *p)
{
	return (struct section){ .name = (uint32_t)number(p, 4, e->big),
				 .type = (uint32_t)number(p + 4, 4, e->big),
				 .flags = word(e, p, 8, 8),
				 .address = word(e, p, 12, 16),
				 .offset = word(e, p, 16, 24),
				 .size = word(e, p, 20, 32),
				 .link = (uint32_t)number(p + (e->wide ? 40 : 24), 4, e->big),
				 .entry = word(e, p, 36, 56) };
}

static ow_status read_sections(struct elf_symbols *e, struct section **list, size_t *count,
			       size_t *names, struct ow_error *err)
{
	unsigned char head[64], *bytes;
	uint64_t offset;
	size_t each, size;
	ow_status status;

	*list = NULL;
	*count = *names = 0;
	if (e->in.size < sizeof(head))
		return OW_OK;
	OW_TRY(input_read_at(&e->in, 0, head, sizeof(head), err));
	offset = word(e, head, 32, 40);
	each = (size_t)number(head + (e->wide ? 58 : 46), 2, e->big);
	*count = (size_t)number(head + (e->wide ? 60 : 48), 2, e->big);
	*names = (size_t)number(head + (e->wide ? 62 : 50), 2, e->big);
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

/* Reads the mapped parts of the file (PT_LOAD). */
static ow_status read_parts(struct elf_symbols *e, const unsigned char *head, struct ow_error *err)
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

static ow_status read_notes(struct elf_symbols *e, const struct section *s, struct ow_error *err)
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

/* Returns whether a symbol is wanted: functions, objects, and labels of assembler code. */
static bool is_wanted(unsigned type, unsigned other, const struct section *in)
{
	if (type == STT_FUNC || type == STT_OBJECT || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && in->flags & SHF_EXECINSTR && (other & 3) != 1 &&
	       (other & 3) != 2;
}

static ow_status add_symbol(struct elf_symbols *e, const unsigned char *p,
			    const struct section *sections, size_t count, struct ow_error *err)
{
	uint64_t value = word(e, p, 4, 8), size = word(e, p, 8, 16);
	unsigned info = p[e->wide ? 4 : 12], other = p[e->wide ? 5 : 13];
	size_t index = (size_t)number(p + (e->wide ? 6 : 14), 2, e->big);
	uint32_t name = (uint32_t)number(p, 4, e->big);
	bool typed;

	if (!name || index == SHN_UNDEF || index >= SHN_LORESERVE || index >= count ||
	    !is_wanted(info & 15, other, &sections[index]))
		return OW_OK;
	if (!vec_reserve(e->mem, e->items, e->cap, e->count + 1))
		return error_no_memory(err);
	size = MIN(size, UINT64_MAX - value);
	typed = (info & 15) != STT_NOTYPE;
	/* ranks symbols with a size first, then with a type, then strong ones, then global ones */
	e->items[e->count++] =
		(struct elf_symbol){ .start = value,
				     .end = value + size,
				     .name = name,
				     .section = (uint16_t)index,
				     .rank = (uint8_t)((size ? 8 : 0) + (typed ? 4 : 0) +
						       (info >> 4 == WEAK ? 0 : 2) +
						       (info >> 4 == GLOBAL ? 1 : 0)) };
	return OW_OK;
}

/* Sorts symbols by start; equal starts keep their order. */
static ow_status sort(struct elf_symbols *e, struct ow_error *err)
{
	size_t size = e->count * sizeof(*e->items);
	struct elf_symbol *spare = mem_alloc(e->mem, size);

	if (!spare)
		return error_no_memory(err);
	radix_sort_in_place(e->items, spare, e->count, start, 11);
	mem_free(e->mem, spare, size);
	return OW_OK;
}

static ow_status read_table(struct elf_symbols *e, const struct section *sections, size_t count,
			    const struct section *table, struct ow_error *err)
{
	size_t each = e->wide ? 24 : 16;
	unsigned char *bytes;
	ow_status status = OW_OK;

	if (table->link >= count || table->size > TABLE_MAX || table->entry != each ||
	    !inside(e, table->offset, table->size) ||
	    !inside(e, sections[table->link].offset, sections[table->link].size))
		return OW_OK;
	e->strings = sections[table->link].offset;
	e->strings_size = sections[table->link].size;
	bytes = mem_alloc(e->mem, CHUNK);
	if (!bytes)
		return error_no_memory(err);
	for (uint64_t at = 0; status == OW_OK && at + each <= table->size; at += CHUNK) {
		size_t some = (size_t)MIN(table->size - at, (uint64_t)CHUNK);

		status = input_read_at(&e->in, table->offset + at, bytes, some, err);
		for (size_t i = 0; status == OW_OK && i + each <= some; i += each)
			status = add_symbol(e, bytes + i, sections, count, err);
	}
	mem_free(e->mem, bytes, CHUNK);
	return status == OW_OK && e->count ? sort(e, err) : status;
}

static size_t leading(const char *name, char c)
{
	size_t len = 0;

	while (name[len] == c)
		len++;
	return len;
}

/* Returns whether, of two names with equal rank, one is better: fewer leading underscores, then
 * longer. */
static bool has_better_name(const struct elf_symbols *e, const struct elf_symbol *a,
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

/* Returns the end of a symbol; without a size it extends to the next symbol or to the end of its
 * section. */
static uint64_t end_of(const struct elf_symbols *e, const struct elf_symbol *s, size_t next)
{
	uint64_t limit = s->section < e->limit_count ? e->limits[s->section] : 0;

	if (s->end != s->start)
		return s->end;
	limit = MAX(limit, s->start);
	return next < e->count ? MIN(e->items[next].start, limit) : limit;
}

/* Finds the best of the symbols items[first, end), which start at one address. Names are in the file, so
 * the result is stored. */
static size_t find_best(const struct elf_symbols *e, size_t first, size_t end)
{
	size_t best = first;

	for (size_t i = first; i < end; i++)
		if (e->items[i].rank & RANK_BEST)
			return i;
	for (size_t i = first + 1; i < end; i++) {
		const struct elf_symbol *old = &e->items[best], *new = &e->items[i];

		if (new->rank > old->rank ||
		    (new->rank == old->rank &&has_better_name(e, new, old)))
			best = i;
	}
	e->items[best].rank |= RANK_BEST;
	return best;
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *e, uint64_t address)
{
	size_t low = 0, high = e->count, first, best;

	while (low < high) { /* finds the last symbol that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (e->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	for (first = low - 1; first && e->items[first - 1].start == e->items[low - 1].start;)
		first--;
	best = first + 1 < low ? find_best(e, first, low) : first;
	return address < end_of(e, &e->items[best], low) ? &e->items[best] : NULL;
}

static bool is_named(const struct elf_symbols *e, const struct section *names,
		     const struct section *s, const char *want)
{
	char text[16] = "";
	size_t len = strlen(want) + 1;

	return s->name <= names->size && len <= names->size - s->name &&
	       inside(e, names->offset, names->size) &&
	       input_read_at(&e->in, names->offset + s->name, text, len, NULL) == OW_OK &&
	       memcmp(text, want, len) == 0;
}

static void add_plt(struct elf_symbols *e, const struct section *s, bool head)
{
	struct elf_plt *plt = &e->plts[head ? 0 : 1];
	uint64_t skip = head ? s->entry : 0;

	plt->entry = (uint32_t)MIN(s->entry, (uint64_t)UINT32_MAX);
	if (e->machine == EM_AARCH64) {
		plt->entry = 16;
		skip = 32;
	} else if (e->machine == EM_ARM) {
		plt->entry = 12;
		skip = 20;
	}
	if (!plt->entry || skip > s->size || s->size > UINT64_MAX - s->address)
		return;
	plt->start = s->address + skip;
	plt->end = s->address + s->size;
}

/* Finds the procedure linkage tables. .plt begins with a special entry; .plt.sec, if it exists,
 * does not. */
static void find_plts(struct elf_symbols *e, const struct section *sections, size_t count,
		      size_t names)
{
	for (size_t i = 0; i < count && names < count; i++) {
		const struct section *s = &sections[i], *linked;

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR) {
			if (is_named(e, &sections[names], s, ".plt"))
				add_plt(e, s, true);
			else if (is_named(e, &sections[names], s, ".plt.sec"))
				add_plt(e, s, false);
		}
		if ((s->type != SHT_RELA && s->type != SHT_REL) || s->link >= count ||
		    !is_named(e, &sections[names], s,
			      s->type == SHT_RELA ? ".rela.plt" : ".rel.plt"))
			continue;
		linked = &sections[s->link];
		if (linked->link >= count || !inside(e, s->offset, s->size) ||
		    !inside(e, linked->offset, linked->size))
			continue;
		e->relocations =
			(struct elf_table){ s->offset, s->size,
					    (e->wide ? 16u : 8u) + (s->type != SHT_RELA ? 0u
								    : e->wide		? 8u
											: 4u) };
		e->linked = (struct elf_table){ linked->offset, linked->size, e->wide ? 24 : 16 };
		linked = &sections[linked->link];
		e->linked_names = (struct elf_table){ linked->offset, linked->size, 1 };
	}
}

static bool read_item(const struct elf_symbols *e, const struct elf_table *t, uint64_t index,
		      unsigned char *to)
{
	return index < t->size / t->each &&
	       input_read_at(&e->in, t->offset + index * t->each, to, t->each, NULL) == OW_OK;
}

/* Adds a text of a string table; at most 4 KiB of it. */
static bool add_text(const struct elf_symbols *e, uint64_t strings, uint64_t size, uint64_t at,
		     struct buf *to)
{
	uint64_t left = at < size ? size - at : 0;
	char text[NAME_MAX_BYTES];
	size_t len = (size_t)MIN(left, (uint64_t)sizeof(text));

	if (!len || input_read_at(&e->in, strings + at, text, len, NULL) != OW_OK)
		return false;
	buf_add(to, text, strnlen(text, len));
	return !to->failed;
}

/* Adds the name of the function that an entry calls. An indirect function (chosen at run time) has no name
 * there, but an address in this file. */
static bool add_target(const struct elf_symbols *e, uint64_t index, struct buf *to)
{
	unsigned char relocation[24] = { 0 }, symbol[24];
	const struct elf_symbol *own;
	uint64_t info, number_of;

	if (!e->relocations.each || !read_item(e, &e->relocations, index, relocation))
		return false;
	info = word(e, relocation, 4, 8);
	number_of = e->wide ? info >> 32 : info >> 8;
	if (number_of)
		return read_item(e, &e->linked, number_of, symbol) &&
		       add_text(e, e->linked_names.offset, e->linked_names.size,
				number(symbol, 4, e->big), to);
	own = elf_symbols_find(e, word(e, relocation, 8, 16));
	return own && elf_symbols_name(e, own, to);
}

bool elf_symbols_plt(const struct elf_symbols *e, uint64_t address, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_COUNT(e->plts); i++) {
		const struct elf_plt *p = &e->plts[i];

		if (address >= p->start && address < p->end)
			return add_target(e, (address - p->start) / p->entry, to);
	}
	return false;
}

/* Opens the file. input_open is not used, because it reads small files as a whole and little of
 * them is needed. */
static ow_status adopt_file(struct elf_symbols *e, const char *path, int fd, struct ow_error *err)
{
	ow_status status;

	if (fd < 0)
		return error_errno(err, errno, "%s", path);
	status = input_adopt_fd(&e->in, e->mem, path, fd, err);
	e->open = status == OW_OK;
	if (status != OW_OK)
		close(fd);
	return status;
}

/* Reads the head of the open file. */
static ow_status read_head(struct elf_symbols *e, const char *path, struct ow_error *err)
{
	struct section *sections = NULL;
	unsigned char head[64];
	size_t count = 0, names;
	ow_status status;

	if (e->in.size < 64)
		return error_set(err, OW_E_FORMAT, "%s: not an ELF file", path);
	OW_TRY(input_read_at(&e->in, 0, head, sizeof(head), err));
	if (memcmp(head, "\177ELF", 4) != 0 || (head[4] != 1 && head[4] != 2) ||
	    (head[5] != 1 && head[5] != 2))
		return error_set(err, OW_E_FORMAT, "%s: not an ELF file", path);
	e->wide = head[4] == 2;
	e->big = head[5] == 2;
	e->machine = (uint16_t)number(head + 18, 2, e->big);
	OW_TRY(read_parts(e, head, err));
	status = read_sections(e, &sections, &count, &names, err);
	for (size_t i = 0; status == OW_OK && i < count; i++)
		status = read_notes(e, &sections[i], err);
	mem_free(e->mem, sections, sections ? count * sizeof(*sections) : 0);
	return status;
}

ow_status elf_symbols_open(struct elf_symbols *e, struct mem *mem, const char *path,
			   struct ow_error *err)
{
	*e = (struct elf_symbols){ .mem = mem };
	OW_TRY(adopt_file(e, path, open_regular_file(path), err));
	return read_head(e, path, err);
}

ow_status elf_symbols_adopt(struct elf_symbols *e, struct mem *mem, const char *name, void *data,
			    size_t size, size_t cap, struct ow_error *err)
{
	ow_status status;

	*e = (struct elf_symbols){ .mem = mem };
	status = input_adopt_memory(&e->in, mem, name, data, size, cap, err);
	if (status != OW_OK) {
		mem_free(mem, data, cap);
		return status;
	}
	e->open = true;
	return read_head(e, name, err);
}

static ow_status keep_limits(struct elf_symbols *e, const struct section *sections, size_t count,
			     struct ow_error *err)
{
	e->limits = mem_alloc(e->mem, count * sizeof(*e->limits));
	if (!e->limits)
		return error_no_memory(err);
	e->limit_count = count;
	for (size_t i = 0; i < count; i++)
		e->limits[i] = sections[i].address +
			       MIN(sections[i].size, UINT64_MAX - sections[i].address);
	return OW_OK;
}

ow_status elf_symbols_load(struct elf_symbols *e, struct ow_error *err)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct section *sections = NULL;
	size_t count = 0, names;
	ow_status status = read_sections(e, &sections, &count, &names, err);

	if (status == OW_OK && count)
		status = keep_limits(e, sections, count, err);
	for (size_t k = 0; k < ARRAY_COUNT(tables); k++)
		for (size_t i = 0; status == OW_OK && !e->count && i < count; i++)
			if (sections[i].type == tables[k]) {
				status = read_table(e, sections, count, &sections[i], err);
				e->full = tables[k] == SHT_SYMTAB && e->count;
			}
	if (status == OW_OK)
		find_plts(e, sections, count, names);
	mem_free(e->mem, sections, sections ? count * sizeof(*sections) : 0);
	return status;
}

void elf_symbols_release(struct elf_symbols *e)
{
	if (e->open)
		input_close(&e->in);
	mem_free(e->mem, e->items, e->cap * sizeof(*e->items));
	mem_free(e->mem, e->limits, e->limit_count * sizeof(*e->limits));
	*e = (struct elf_symbols){ .mem = e->mem };
}

bool elf_symbols_name(const struct elf_symbols *e, const struct elf_symbol *symbol, struct buf *to)
{
	return add_text(e, e->strings, e->strings_size, symbol->name, to);
}

static void match_symbol(const struct elf_symbols *e, const unsigned char *symbol,
			 const char *names, size_t size, struct elf_wanted *wanted, size_t count)
{
	uint64_t value = word(e, symbol, 4, 8), first_page = UINT64_MAX;
	uint32_t at = (uint32_t)number(symbol, 4, e->big);

	if (!value || number(symbol + (e->wide ? 6 : 14), 2, e->big) == SHN_UNDEF || at >= size)
		return;
	for (size_t i = 0; i < count; i++) {
		struct str name = wanted[i].name;

		if (wanted[i].found || name.len >= size - at ||
		    memcmp(names + at, name.ptr, name.len) != 0 || names[at + name.len])
			continue;
		for (size_t k = 0; k < e->part_count; k++)
			first_page = MIN(first_page, e->parts[k].address & ~(uint64_t)4095);
		wanted[i].found = true;
		wanted[i].value = value - first_page;
	}
}

static ow_status look_in_table(struct elf_symbols *e, const struct section *table,
			       const struct section *strings, struct elf_wanted *wanted,
			       size_t count, struct ow_error *err)
{
	size_t each = e->wide ? 24 : 16, size = (size_t)strings->size;
	ow_status status;
	unsigned char *bytes;
	char *names;

	if (!size || strings->size > STRINGS_MAX || !inside(e, strings->offset, strings->size) ||
	    !inside(e, table->offset, table->size))
		return OW_OK;
	names = mem_alloc(e->mem, size);
	bytes = names ? mem_alloc(e->mem, CHUNK) : NULL;
	status = bytes ? input_read_at(&e->in, strings->offset, names, size, err)
		       : error_no_memory(err);
	for (uint64_t at = 0; status == OW_OK && at + each <= table->size; at += CHUNK) {
		size_t some = (size_t)MIN(table->size - at, (uint64_t)CHUNK);

		status = input_read_at(&e->in, table->offset + at, bytes, some, err);
		for (size_t i = 0; status == OW_OK && i + each <= some; i += each)
			match_symbol(e, bytes + i, names, size, wanted, count);
	}
	mem_free(e->mem, bytes, bytes ? CHUNK : 0);
	mem_free(e->mem, names, names ? size : 0);
	return status;
}

static ow_status look_in_file(struct elf_symbols *e, const char *path, bool exported_only,
			      struct elf_wanted *wanted, size_t count, struct ow_error *err)
{
	static const uint32_t tables[] = { SHT_DYNSYM, SHT_SYMTAB };
	struct section *sections = NULL;
	size_t section_count = 0, names;
	ow_status status;

	OW_TRY(read_head(e, path, err));
	if (!e->wide || e->big || !e->part_count)
		return error_set(err, OW_E_FORMAT, "%s: not a 64-bit little-endian ELF program",
				 path);
	status = read_sections(e, &sections, &section_count, &names, err);
	for (size_t k = 0; k < (exported_only ? 1 : ARRAY_COUNT(tables)); k++)
		for (size_t i = 0; status == OW_OK && i < section_count; i++)
			if (sections[i].type == tables[k] && sections[i].link < section_count)
				status = look_in_table(e, &sections[i], &sections[sections[i].link],
						       wanted, count, err);
	mem_free(e->mem, sections, sections ? section_count * sizeof(*sections) : 0);
	return status;
}

ow_status elf_symbols_lookup(struct mem *mem, int fd, const char *path, bool exported_only,
			     struct elf_wanted *wanted, size_t count, struct ow_error *err)
{
	struct elf_symbols e = { .mem = mem };
	ow_status status = adopt_file(&e, path, fd, err);

	if (status == OW_OK)
		status = look_in_file(&e, path, exported_only, wanted, count, err);
	elf_symbols_release(&e);
	return status;
}

bool elf_symbols_export(struct mem *mem, const char *path, const char *name, uint64_t *value)
{
	struct elf_wanted wanted = { .name = str_from(name) };
	int fd = open_regular_file(path);

	if (elf_symbols_lookup(mem, fd, path, true, &wanted, 1, NULL) != OW_OK || !wanted.found)
		return false;
	*value = wanted.value;
	return true;
}
