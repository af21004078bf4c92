/* elf_symbol.c: see elf_symbol.h. */
#include "live/elf_symbol.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PROGRAM_HEADERS 256
#define MAX_SECTIONS 4096
#define SYMBOLS_AT_ONCE 256
#define MAX_NAMES ((uint64_t)256 << 20)

struct elf {
	struct mem *mem;
	int fd;
	const char *path;
	uint64_t size;
	Elf64_Ehdr head;
	uint64_t first_page;
	struct error *err;
};

static ow_status read_at(const struct elf *elf, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (offset > elf->size || len > elf->size - offset)
		return error_at(elf->err, OW_E_CORRUPT, offset,
				"%s: a table of the ELF file reaches beyond its end", elf->path);
	while (done < len) {
		ssize_t got = pread(elf->fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_errno(elf->err, got ? errno : EIO, "%s", elf->path);
		done += (size_t)got;
	}
	return OW_OK;
}

static ow_status read_head(struct elf *elf)
{
	struct stat st;

	if (fstat(elf->fd, &st) != 0)
		return error_errno(elf->err, errno, "%s", elf->path);
	elf->size = (uint64_t)st.st_size;
	if (elf->size < sizeof(elf->head))
		return error_set(elf->err, OW_E_FORMAT, "%s: not an ELF file", elf->path);
	OW_TRY(read_at(elf, 0, &elf->head, sizeof(elf->head)));
	if (memcmp(elf->head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf->head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf->head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    elf->head.e_shentsize != sizeof(Elf64_Shdr) ||
	    elf->head.e_phentsize != sizeof(Elf64_Phdr))
		return error_set(elf->err, OW_E_FORMAT, "%s: not a 64-bit little-endian ELF file",
				 elf->path);
	return OW_OK;
}

static ow_status find_first_page(struct elf *elf)
{
	uint64_t lowest = UINT64_MAX;
	Elf64_Phdr ph = { 0 };

	for (uint32_t i = 0; i < MIN(elf->head.e_phnum, MAX_PROGRAM_HEADERS); i++) {
		OW_TRY(read_at(elf, elf->head.e_phoff + i * sizeof(ph), &ph, sizeof(ph)));
		if (ph.p_type == PT_LOAD && ph.p_vaddr < lowest)
			lowest = ph.p_vaddr;
	}
	if (lowest == UINT64_MAX)
		return error_set(elf->err, OW_E_FORMAT, "%s: an ELF file that loads nothing",
				 elf->path);
	elf->first_page = lowest & ~(uint64_t)4095;
	return OW_OK;
}

static void take(const struct elf *elf, const Elf64_Sym *sym, const char *names, size_t size,
		 struct elf_symbol *wanted, size_t count)
{
	if (!sym->st_value || sym->st_shndx == SHN_UNDEF || sym->st_name >= size)
		return;
	for (size_t i = 0; i < count; i++) {
		struct str name = wanted[i].name;

		if (wanted[i].found || name.len >= size - sym->st_name ||
		    memcmp(names + sym->st_name, name.ptr, name.len) != 0 ||
		    names[sym->st_name + name.len])
			continue;
		wanted[i].found = true;
		wanted[i].value = sym->st_value - elf->first_page;
	}
}

static ow_status look_through(const struct elf *elf, const Elf64_Shdr *table, const char *names,
			      size_t size, struct elf_symbol *wanted, size_t count)
{
	Elf64_Sym some[SYMBOLS_AT_ONCE] = { 0 };
	uint64_t left = table->sh_size / sizeof(some[0]), offset = table->sh_offset;

	while (left) {
		size_t now = (size_t)MIN(left, (uint64_t)SYMBOLS_AT_ONCE);

		OW_TRY(read_at(elf, offset, some, now * sizeof(some[0])));
		for (size_t i = 0; i < now; i++)
			take(elf, &some[i], names, size, wanted, count);
		offset += now * sizeof(some[0]);
		left -= now;
	}
	return OW_OK;
}

static ow_status read_section(const struct elf *elf, uint32_t index, Elf64_Shdr *section)
{
	return read_at(elf, elf->head.e_shoff + (uint64_t)index * sizeof(*section), section,
		       sizeof(*section));
}

static ow_status look_in_table(const struct elf *elf, const Elf64_Shdr *table,
			       struct elf_symbol *wanted, size_t count)
{
	Elf64_Shdr strings = { 0 };
	ow_status status;
	size_t size;
	char *names;

	if (table->sh_link >= elf->head.e_shnum)
		return OW_OK;
	OW_TRY(read_section(elf, table->sh_link, &strings));
	if (!strings.sh_size || strings.sh_size > MIN(elf->size, MAX_NAMES))
		return OW_OK;
	size = (size_t)strings.sh_size;
	names = mem_alloc(elf->mem, size);
	if (!names)
		return error_no_memory(elf->err);
	status = read_at(elf, strings.sh_offset, names, size);
	if (status == OW_OK)
		status = look_through(elf, table, names, size, wanted, count);
	mem_free(elf->mem, names, size);
	return status;
}

ow_status elf_find_symbols(struct mem *mem, int fd, const char *path, struct elf_symbol *symbols,
			   size_t count, struct error *err)
{
	static const uint32_t kinds[] = { SHT_DYNSYM, SHT_SYMTAB };
	struct elf elf = { .mem = mem, .fd = fd, .path = path, .err = err };
	Elf64_Shdr section = { 0 };

	OW_TRY(read_head(&elf));
	OW_TRY(find_first_page(&elf));
	for (size_t k = 0; k < ARRAY_COUNT(kinds); k++)
		for (uint32_t i = 0; i < MIN(elf.head.e_shnum, MAX_SECTIONS); i++) {
			OW_TRY(read_section(&elf, i, &section));
			if (section.sh_type == kinds[k])
				OW_TRY(look_in_table(&elf, &section, symbols, count));
		}
	return OW_OK;
}
