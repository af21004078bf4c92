/*
 * elf_symbols.h: the functions of a program or library: where they begin and end, and where the file is mapped. Only
 * the symbol tables are read, never code or debugging information. Names are read one by one on demand, because they
 * can take hundreds of megabytes. For the importer of perf.data, attach, launch and the Python sampler.
 */
#ifndef WIRE_ELF_SYMBOLS_H
#define WIRE_ELF_SYMBOLS_H

#include "base/buf.h"
#include "base/input.h"

#define ELF_ID_MAX 32

struct elf_symbol {
	/* address range as the file counts it; equal: the symbol has no size */
	uint64_t start, end;
	uint32_t name; /* offset of the name in the string table */
	uint16_t section;
	/* the symbol with the highest rank at an address is used; the result is stored here */
	uint8_t rank;
};

struct elf_part {
	uint64_t offset, address, size; /* mapping of a part of the file */
};

/* A procedure linkage table, through which calls to other files go: entries of one size, in the order of
 * their relocations. */
struct elf_plt {
	uint64_t start, end;
	uint32_t entry;
};

struct elf_table {
	uint64_t offset, size;
	uint32_t each;
};

struct elf_symbols {
	struct mem *mem;
	struct input in;
	bool open, big, wide; /* file is open; big-endian; 64 bits */
	bool full;	      /* the file has more than dynamic symbols */
	uint16_t machine;
	struct elf_part parts[16];
	size_t part_count;
	uint64_t strings, strings_size;
	struct elf_symbol *items; /* symbols, sorted by start */
	size_t count, cap;
	uint64_t *limits; /* addresses at which sections end */
	size_t limit_count;
	struct elf_plt plts[2];
	struct elf_table relocations, linked,
		linked_names;	      /* relocations of the table, and the symbols that they name */
	unsigned char id[ELF_ID_MAX]; /* build id of the file */
	size_t id_len;
};

/* Reads its head and the build id. Fails when it is not an ELF file, or cannot be read. The caller releases it in
 * any case. */
ow_status elf_symbols_open(struct elf_symbols *e, struct mem *mem, const char *path,
			   struct ow_error *err);
/* Opens bytes in memory: `size` of the `cap` bytes that were allocated from mem. They are taken over, also
 * on failure. */
ow_status elf_symbols_adopt(struct elf_symbols *e, struct mem *mem, const char *name, void *data,
			    size_t size, size_t cap, struct ow_error *err);
/* Reads the symbols in .symtab, or else .dynsym; a file with neither is not a failure. */
ow_status elf_symbols_load(struct elf_symbols *e, struct ow_error *err);
void elf_symbols_release(struct elf_symbols *e);

/* Returns the address of a file offset; false if it is not mapped. */
bool elf_symbols_address(const struct elf_symbols *e, uint64_t offset, uint64_t *address);
/* Returns the symbol at an address; NULL if there is none. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *e, uint64_t address);
/* Appends the name of the function that the linkage table entry at an address calls; false without one. */
bool elf_symbols_plt(const struct elf_symbols *e, uint64_t address, struct buf *to);
/* Appends the name of a symbol; at most 4 KiB of it. */
bool elf_symbols_name(const struct elf_symbols *e, const struct elf_symbol *symbol, struct buf *to);

/* A symbol to be found by its name. */
struct elf_wanted {
	struct str name;
	bool found;
	uint64_t value; /* value relative to the first mapped page of the file */
};
/* Fills in the `wanted` symbols that a 64-bit little-endian file has: all of its symbols, or only those that other
 * files can link to. Closes fd. Fails when the file is of another kind or cannot be read; a missing symbol is not a
 * failure. */
ow_status elf_symbols_lookup(struct mem *mem, int fd, const char *path, bool exported_only,
			     struct elf_wanted *wanted, size_t count, struct ow_error *err);
/* Finds one exported symbol of the file at `path` and its value. */
bool elf_symbols_export(struct mem *mem, const char *path, const char *name, uint64_t *value);

/* Finds the GNU build id in a section of notes; returns its length, 0 if there is none. */
size_t elf_build_id(const unsigned char *notes, size_t size, bool big,
		    unsigned char id[ELF_ID_MAX]);

#endif
