/*
 * elf_symbol.h: where a program or library (64-bit ELF, a file) keeps a few variables of known names. Both symbol
 * tables are looked at: that of the dynamic linker, which is always there, and the one that strip removes.
 * Nothing in the file is trusted.
 */
#ifndef LIVE_ELF_SYMBOL_H
#define LIVE_ELF_SYMBOL_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

struct elf_symbol {
	struct str name;
	bool found;
	uint64_t value; /* less the address of the first page that is loaded */
};

/* Fills in those that are found. OW_E_FORMAT when the file is no such ELF file. */
ow_status elf_find_symbols(struct mem *mem, int fd, const char *path, struct elf_symbol *symbols,
			   size_t count, struct error *err);

#endif
