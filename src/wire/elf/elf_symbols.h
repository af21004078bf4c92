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
	uint64_t start, end; /* addresses, as the file counts them; equal: it has no size */
	uint32_t name;	     /* in the table of strings */
	uint16_t section;
	uint8_t rank; /* of several at one place the highest is used, and stored here */
};

struct elf_part {
	uint64_t offset, address, size; /* of the mapped parts of the file */
};

/* The table that calls to other files go through: entries of one size, in the order of their relocations. */
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
	bool open, big, wide; /* byte order; 64 bits */
	bool full;	      /* it has more than the symbols that others link to */
	uint16_t machine;
	struct elf_part parts[16];
	size_t part_count;
	uint64_t strings, strings_size;
	struct elf_symbol *items; /* by start */
	size_t count, cap;
	uint64_t *limits; /* where sections end */
	size_t limit_count;
	struct elf_plt plts[2];
	struct elf_table relocations, linked,
		linked_names;	      /* for them; the symbols that they name */
	unsigned char id[ELF_ID_MAX]; /* build id */
	size_t id_len;
};

/* Reads its head and the build id. Fails when it is not an ELF file, or cannot be read. The caller releases it in
 * any case. */
ow_status elf_symbols_open(struct elf_symbols *e, struct mem *mem, const char *path,
			   struct ow_error *err);
/* The same for bytes in memory, `size` of the `cap` that were allocated from mem; they are taken over, also on
 * failure. */
ow_status elf_symbols_adopt(struct elf_symbols *e, struct mem *mem, const char *name, void *data,
			    size_t size, size_t cap, struct ow_error *err);
/* Reads .symtab, else .dynsym; a file without either is not a failure. */
ow_status elf_symbols_load(struct elf_symbols *e, struct ow_error *err);
void elf_symbols_release(struct elf_symbols *e);

/* The address of an offset in the file; false when it is not mapped. */
bool elf_symbols_address(const struct elf_symbols *e, uint64_t offset, uint64_t *address);
/* The symbol at an address; NULL when there is none. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *e, uint64_t address);
/* Appends the name of the function that the entry of a procedure linkage table at an address leads to; false without
 * one. */
bool elf_symbols_plt(const struct elf_symbols *e, uint64_t address, struct buf *to);
/* Appends its name; at most 4 KiB of it. */
bool elf_symbols_name(const struct elf_symbols *e, const struct elf_symbol *symbol, struct buf *to);

/* A symbol that is looked up by its name. */
struct elf_wanted {
	struct str name;
	bool found;
	uint64_t value; /* relative to the first page that is mapped from the file */
};
/* Fills in the `wanted` symbols that a 64-bit little-endian file has: all of its symbols, or only those that other
 * files can link to. Closes fd. Fails when the file is of another kind or cannot be read; a missing symbol is not a
 * failure. */
ow_status elf_symbols_lookup(struct mem *mem, int fd, const char *path, bool exported_only,
			     struct elf_wanted *wanted, size_t count, struct ow_error *err);
/* The same for one exported symbol of the file at `path`: whether it exists, and its value. */
bool elf_symbols_export(struct mem *mem, const char *path, const char *name, uint64_t *value);

/* The GNU build id in a section of notes; returns its length, 0 without one. */
size_t elf_build_id(const unsigned char *notes, size_t size, bool big,
		    unsigned char id[ELF_ID_MAX]);

#endif
