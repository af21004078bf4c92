/*
 * perf_names.h: names of functions for the addresses of a recording, from the places where perf finds them: symbol tables of the
 * programs and libraries on this machine and of their debug files below /usr/lib/debug and ~/.debug, the kernel's list of symbols,
 * and /tmp/perf-PID.map of programs that compile at run time. A file is used only if it has the build id in the recording. If the
 * recording has none (perf omits them with -z), it must be the same file or kernel, unchanged since. Maps must belong to this user or
 * root. Used by perf_samples.c and firefox_stacks.c.
 */
#ifndef IMPORT_PERF_NAMES_H
#define IMPORT_PERF_NAMES_H

#include "import/perf/perf_space.h"
#include "import/chrome/trace_sort.h"
#include "wire/elf/elf_symbols.h"

/* Functions by address. */
struct perf_listing {
	struct perf_symbol *items;
	size_t count, cap;
	int64_t pid; /* of a map of a process */
};

/* What addresses of a symbol table in the recording count from: 0, the start of the mapping, or the start of the file. */
struct perf_given {
	enum { PERF_GIVEN_ADDRESS, PERF_GIVEN_START, PERF_GIVEN_OFFSET } by;
	uint64_t shift; /* to add */
};

struct perf_module {
	str_id name;
	struct perf_given given; /* for the symbols in the recording itself */
	struct perf_listing symbols;
	unsigned char id[ELF_ID_MAX];
	size_t id_len; /* 0: the file is known by device and inode */
	uint64_t device, inode;
	bool tried;
	struct elf_symbols file, debug;
	str_id *names; /* of symbols that have been looked up */
	size_t name_count;
};

/* The kernel has some 200,000 symbols, of which few are looked up: as far as their list is in order, it stays text. */
#define PERF_ORDER_SAMPLES 1024
struct perf_kernel {
	bool tried;
	unsigned char id[ELF_ID_MAX];
	size_t id_len;
	uint64_t text_at; /* address of its code in the recording; 0 = unknown */
	uint64_t shift;	  /* to add to addresses of the list */
	struct buf text;  /* the list */
	size_t ordered;	  /* up to here the text is searched directly */
	uint64_t samples[PERF_ORDER_SAMPLES]; /* addresses at equal distances in that part */
	struct perf_listing parts[PERF_ORDER_SAMPLES]; /* lines between them, read when needed */
	struct trace_ref *items; /* ts: the address; row: its name in the text */
	size_t count, cap;
};

struct perf_names {
	struct builder *b;
	struct mem *mem;
	struct perf_module *modules;
	size_t module_count, module_cap;
	struct map by_name; /* → module + 1 */
	struct perf_kernel kernel;
	struct perf_listing *jits;
	size_t jit_count, jit_cap;
	struct buf text, plain;
	struct timespec recorded;     /* time of the recording's last change */
	char release[128], host[128]; /* of the recorded machine */
	uint64_t named, other_id; /* modules with names; modules whose file has another build id */
};

void perf_names_init(struct perf_names *n, struct builder *b);
void perf_names_release(struct perf_names *n);

/* Sets the build id of a module or the kernel. False without memory. */
bool perf_names_id(struct perf_names *n, str_id module, const unsigned char *id, size_t len);
void perf_names_kernel_id(struct perf_names *n, const unsigned char *id, size_t len);

/* For a module without a build id: remembers device and inode of its file. */
bool perf_names_place(struct perf_names *n, const struct perf_map *map);

/* Adds symbols that the recording has of a module: first how they count, then each symbol; _done after the last. False without
 * memory. */
bool perf_names_given(struct perf_names *n, str_id module, struct perf_given given);
bool perf_names_given_symbol(struct perf_names *n, str_id module, uint64_t start, uint64_t end,
			     struct str name);
void perf_names_given_done(struct perf_names *n);
/* The function at a mapped address, by these symbols; nil when it has no name. */
str_id perf_names_in_file(struct perf_names *n, const struct perf_map *map, uint64_t address);

/* The same by the symbol table of the mapped file. */
str_id perf_names_user(struct perf_names *n, const struct perf_map *map, uint64_t address);
/* The same for an address relative to the first mapped byte of the file. */
str_id perf_names_relative(struct perf_names *n, str_id module, uint64_t address);
str_id perf_names_kernel(struct perf_names *n, uint64_t address);
str_id perf_names_jit(struct perf_names *n, int64_t pid, uint64_t address);

/* Read a list from text; public for unit tests. The kernel's list is n->kernel.text. */
ow_status perf_listing_read_kernel(struct perf_names *n);
ow_status perf_listing_read_jit(struct perf_names *n, struct perf_listing *l, struct str text);

#endif
