/*
 * pprof_legacy.h: a profile in one of pprof's older formats while it is read. import_pprof_legacy.c recognises it,
 * reads the binary CPU profiles, keeps samples and places and makes rows of them. pprof_text.c reads the text formats
 * and adds its results here.
 */
#ifndef IMPORT_PPROF_LEGACY_H
#define IMPORT_PPROF_LEGACY_H

#include "import/importer.h"
#include "import/common/stack_cache.h"
#include "import/common/text_lines.h"

#define LEGACY_TYPES 4
#define LEGACY_FRAMES_MAX 8192

/* A place in the code. Its address is one less than the return address, so it lies inside the call. */
struct legacy_place {
	uint64_t address;
	str_id function, file, module;
	int32_t line;
	bool placed; /* the place has a frame */
	frame_id frame;
};

struct legacy_map {
	uint64_t start, end, offset;
	str_id file;
};

struct legacy_sample {
	uint64_t first; /* range in `addresses`, the leaf first */
	uint32_t count;
	int64_t value[LEGACY_TYPES];
	int64_t block; /* mean size of an allocation; 0 = unknown */
	track_id track;
};

#define LEGACY_RECENT 16384u

struct legacy_recent {
	uint64_t address;
	frame_id frame; /* 0 = the entry is empty */
};

struct legacy {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	/* Fields that import_pprof_legacy.c writes. */
	struct legacy_sample *samples;
	size_t sample_count, sample_cap;
	uint64_t *addresses;
	size_t address_count, address_cap;
	struct legacy_place *places;
	size_t place_count, place_cap;
	struct map by_address; /* address → 1 + index of the place */
	struct {
		struct legacy_recent frames[LEGACY_RECENT];
		struct stack_cache stacks;
	} * recent;
	struct legacy_map *maps;
	size_t map_count, map_cap;
	struct {
		str_id name, unit;
	} types[LEGACY_TYPES];
	size_t type_count;
	bool words; /* the file begins with a binary CPU profile */
	track_id track;
	uint64_t bad, bad_offset, cut;
	/* Fields that the reader of the format sets: read_words or pprof_text.c. */
	const char *kind;
	int64_t period, duration;
	bool named;	    /* addresses are numbers of Java methods, not addresses of code */
	bool leaf_is_exact; /* the first address is not a return address */
};

/* Counts a line that cannot be parsed. */
void legacy_note_bad(struct legacy *l, uint64_t offset);
/* Adds a type of values. */
void legacy_type(struct legacy *l, const char *name, struct str unit);

/* Adds a sample without addresses, then (below) each of its addresses. */
ow_status legacy_sample_begin(struct legacy *l, const int64_t *values);
ow_status legacy_sample_address(struct legacy *l, uint64_t address);
/* Drops the second address if it repeats the leaf: some writers get it both from the signal and from the stack. */
void legacy_drop_double(struct legacy *l, struct legacy_sample *s);

/* Whether a file begins with one of the text formats. */
bool legacy_text_fits(struct str head);
/* Reads a text format, or the text after a binary CPU profile. */
ow_status legacy_text_read(struct legacy *l, struct text_lines *t);

/* Reads a line of the memory map of a process, or of the list of Java's methods; skips others. */
ow_status legacy_map_line(struct legacy *l, struct str line);
ow_status legacy_method_line(struct legacy *l, struct str line);
/* Reads a comment of Go: "#	0x1234	function+0x12	file:12". */
ow_status legacy_comment_line(struct legacy *l, struct str line);
/* Sets the name of an address. */
ow_status legacy_name(struct legacy *l, uint64_t address, struct str name);

/* Each function skips blanks, and removes what it reads from the front of *from. */
bool legacy_take_number(struct str *from, int64_t *value);
bool legacy_take_hex(struct str *from, uint64_t *value); /* a number with 0x */
bool legacy_take_word(struct str *from, const char *word);

#endif
