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

/* Functions sorted by address. */
struct perf_listing {
	struct perf_symbol *items;
	size_t count, cap;
	int64_t pid; /* process of a map /tmp/perf-PID.map */
};

/* The base of addresses in a symbol table that the recording contains: 0, the start of the mapping, or the start of
 * the file. */
struct perf_given {
	enum { PERF_GIVEN_ADDRESS, PERF_GIVEN_START, PERF_GIVEN_OFFSET } by;
	uint64_t shift; /* added to addresses */
};

struct perf_module {
	str_id name;
	struct perf_given given; /* base of the symbols in the recording itself */
	struct perf_listing symbols;
	unsigned char id[ELF_ID_MAX];
	size_t id_len; /* 0: the file is identified by device and inode */
	uint64_t device, inode;
	bool tried;
	struct elf_symbols file, debug;
	str_id *names; /* for each symbol: its name, if it was looked up */
	size_t name_count;
};

/* The kernel has some 200,000 symbols, of which few are looked up: as far as their list is sorted, it stays text. */
#define PERF_ORDER_SAMPLES 1024
struct perf_kernel {
	bool tried;
	unsigned char id[ELF_ID_MAX];
	size_t id_len;
	uint64_t text_at; /* address of the kernel's code in the recording; 0 = unknown */
	uint64_t shift;	  /* added to addresses of the list */
	struct buf text;  /* text of the list */
	size_t ordered;	  /* the text is searched directly up to this offset */
	uint64_t samples[PERF_ORDER_SAMPLES]; /* addresses at equal distances in the sorted part */
	/* the lines between these addresses, read when needed */
	struct perf_listing parts[PERF_ORDER_SAMPLES];
	struct trace_ref *items; /* ts: the address; row: the offset of its name in the text */
	size_t count, cap;
};

struct perf_names {
	struct builder *b;
	struct mem *mem;
	struct perf_module *modules;
	size_t module_count, module_cap;
	struct map by_name; /* name → 1 + index of the module */
	struct perf_kernel kernel;
	struct perf_listing *jits;
	size_t jit_count, jit_cap;
	struct buf text, plain;
	struct timespec recorded;     /* time of the recording's last change */
	char release[128], host[128]; /* kernel release and name of the recorded machine */
	/* number of modules with names; number of modules whose file has another build id */
	uint64_t named, other_id;
};

void perf_names_init(struct perf_names *n, struct builder *b);
void perf_names_release(struct perf_names *n);

/* Sets the build id of a module or the kernel; false if memory runs out. */
bool perf_names_id(struct perf_names *n, str_id module, const unsigned char *id, size_t len);
void perf_names_kernel_id(struct perf_names *n, const unsigned char *id, size_t len);

/* For a module without a build id: stores device and inode of its file. */
bool perf_names_place(struct perf_names *n, const struct perf_map *map);

/* Adds symbols of a module that the recording contains: first their address base, then each symbol; _done after the
 * last. False if memory runs out. */
bool perf_names_given(struct perf_names *n, str_id module, struct perf_given given);
bool perf_names_given_symbol(struct perf_names *n, str_id module, uint64_t start, uint64_t end,
			     struct str name);
void perf_names_given_done(struct perf_names *n);
/* The function at a mapped address, from the symbols in the recording; nil when it has no name. */
str_id perf_names_in_file(struct perf_names *n, const struct perf_map *map, uint64_t address);

/* The function at a mapped address, from the symbol table of the mapped file. */
str_id perf_names_user(struct perf_names *n, const struct perf_map *map, uint64_t address);
/* The function at an address relative to the first mapped byte of the file. */
str_id perf_names_relative(struct perf_names *n, str_id module, uint64_t address);
str_id perf_names_kernel(struct perf_names *n, uint64_t address);
str_id perf_names_jit(struct perf_names *n, int64_t pid, uint64_t address);

/* Read a list from text; public for unit tests. The kernel's list is n->kernel.text. */
ow_status perf_listing_read_kernel(struct perf_names *n);
ow_status perf_listing_read_jit(struct perf_names *n, struct perf_listing *l, struct str text);

#endif
