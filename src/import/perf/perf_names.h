/*
 * perf_names.h: names for the addresses of a perf.data file, from where perf finds them: the tables of symbols of programs and
 * libraries on this machine (and of their debugging files below /usr/lib/debug and ~/.debug), the list of the kernel, and
 * /tmp/perf-PID.map of programs that compile while they run. Only what has the build id that the recording says is believed;
 * where it says none (perf leaves them out with -z), the very file and kernel that were recorded, if they did not change since. Maps
 * must belong to this user or root. perf_chains.c asks, and firefox_stacks.c.
 */
#ifndef IMPORT_PERF_NAMES_H
#define IMPORT_PERF_NAMES_H

#include "import/perf_space.h"
#include "import/trace_sort.h"
#include "wire/elf_symbols.h"

/* Functions by address. */
struct perf_listing {
	struct perf_symbol *items;
	size_t count, cap;
	int64_t pid; /* of a map of a process */
};

/* How the addresses of a table in the recording follow from those of the process: they are the same, or count from where the
 * file is mapped, or as the file does. */
struct perf_given {
	enum { PERF_GIVEN_ADDRESS, PERF_GIVEN_START, PERF_GIVEN_OFFSET } by;
	uint64_t shift; /* to add */
};

struct perf_module {
	str_id name;
	struct perf_given given; /* symbols that the recording itself has … */
	struct perf_listing symbols;
	unsigned char id[ELF_ID_MAX];
	size_t id_len;		/* 0: by the file's place */
	uint64_t device, inode; /* of it */
	bool tried;
	struct elf_symbols file, debug;
	str_id *names; /* of symbols that were asked for */
	size_t name_count;
};

/* The kernel's: some 200,000, of which few are asked for, so that they stay text as far as that is in order. */
#define PERF_ORDER_SAMPLES 1024
struct perf_kernel {
	bool tried;
	unsigned char id[ELF_ID_MAX];
	size_t id_len;
	uint64_t text_at;		      /* where its code was in the recording; 0 = unknown */
	uint64_t shift;			      /* to add to addresses of the list */
	struct buf text;		      /* the list … */
	size_t ordered;			      /* … which is searched as it is up to there … */
	uint64_t samples[PERF_ORDER_SAMPLES]; /* … by addresses at equal distances in it … */
	struct perf_listing parts[PERF_ORDER_SAMPLES]; /* … and what is between, where asked for */
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
	struct timespec recorded;     /* when the recording was written */
	char release[128], host[128]; /* of the machine, as it says */
	uint64_t named, other_id;     /* modules: with names; whose file has another build id */
};

void perf_names_init(struct perf_names *n, struct builder *b);
void perf_names_release(struct perf_names *n);

/* What the recording says of a module. False without memory. */
bool perf_names_id(struct perf_names *n, str_id module, const unsigned char *id, size_t len);
void perf_names_kernel_id(struct perf_names *n, const unsigned char *id, size_t len);

/* The same for a module whose id it does not say, by the place of the file. */
bool perf_names_place(struct perf_names *n, const struct perf_map *map);

/* Symbols that the recording has of a module: how they count, each of them, and that these were all. False without memory. */
bool perf_names_given(struct perf_names *n, str_id module, struct perf_given given);
bool perf_names_given_symbol(struct perf_names *n, str_id module, uint64_t start, uint64_t end,
			     struct str name);
void perf_names_given_done(struct perf_names *n);
str_id perf_names_in_file(struct perf_names *n, const struct perf_map *map, uint64_t address);

/* The function at an address that is mapped so; nil when it has no name. */
str_id perf_names_user(struct perf_names *n, const struct perf_map *map, uint64_t address);
/* The same by the distance from the first byte of the file that is mapped. */
str_id perf_names_relative(struct perf_names *n, str_id module, uint64_t address);
str_id perf_names_kernel(struct perf_names *n, uint64_t address);
str_id perf_names_jit(struct perf_names *n, int64_t pid, uint64_t address);

#endif
