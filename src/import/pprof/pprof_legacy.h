/*
 * pprof_legacy.h: what the parts of the importer of pprof's older forms share: import_pprof_legacy.c recognises
 * them and makes rows, pprof_words.c reads the binary CPU profiles, pprof_text.c and pprof_heap.c the texts, pprof_places.c
 * what their ends say about addresses: mappings and names.
 */
#ifndef IMPORT_PPROF_LEGACY_H
#define IMPORT_PPROF_LEGACY_H

#include "import/importer.h"
#include "import/text_lines.h"

#define LEGACY_TYPES 4
#define LEGACY_FRAMES_MAX 8192

/* What is known of an address; it is the caller's, so one before the return address. */
struct legacy_place {
	uint64_t address;
	str_id function, file, module;
	int32_t line;
	bool placed; /* its frame was made */
	frame_id frame;
};

struct legacy_map {
	uint64_t start, end, offset;
	str_id file;
};

struct legacy_sample {
	uint64_t first; /* in addresses, the leaf first */
	uint32_t count;
	int64_t value[LEGACY_TYPES];
	int64_t block; /* mean size of what was allocated; 0 = not said */
	track_id track;
};

struct legacy {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct legacy_sample *samples;
	size_t sample_count, sample_cap;
	uint64_t *addresses;
	size_t address_count, address_cap;
	struct legacy_place *places;
	size_t place_count, place_cap;
	struct map by_address; /* → place + 1 */
	struct legacy_map *maps;
	size_t map_count, map_cap;
	const char *kind;
	struct {
		str_id name, unit;
	} types[LEGACY_TYPES];
	size_t type_count;
	int64_t period, duration;
	bool words;	    /* the binary form */
	bool named;	    /* addresses are numbers of Java's methods, not of code */
	bool leaf_is_exact; /* the first address is not one that a call returns to */
	track_id track;
	uint64_t bad, bad_offset, cut;
};

ow_status legacy_no_memory(struct legacy *l);
void legacy_note_bad(struct legacy *l, uint64_t offset);
void legacy_type(struct legacy *l, const char *name, struct str unit);

/* A new sample without addresses; then its addresses, as they are in the file. */
ow_status legacy_sample_begin(struct legacy *l, const int64_t *values);
ow_status legacy_sample_address(struct legacy *l, uint64_t address);
/* The leaf may be there twice: as the signal says it, and as the stack does. */
void legacy_drop_double(struct legacy *l, struct legacy_sample *s);

/* The four ways in which a word may be written, and whether the head of a profile fits. */
struct legacy_words {
	size_t size;
	bool big;
};
bool legacy_words_fit(struct str head, struct legacy_words *how);
/* Up to the text behind the samples; *end is where that begins. */
ow_status legacy_words_read(struct legacy *l, struct window *w, uint64_t *end);

bool legacy_text_fits(struct str head);
ow_status legacy_text_read(struct legacy *l, struct text_lines *t);

/* A text while it is read. */
struct legacy_text {
	struct legacy *l;
	struct text_lines *lines;
	struct str line;
	bool again; /* the line is to be read once more */
};
bool legacy_next_line(struct legacy_text *t);
bool legacy_is_map(struct str line);
/* The addresses of a line, for the sample at hand. */
ow_status legacy_take_addresses(struct legacy_text *t, struct str line);
/* All of a heap profile up to its map, if the first line begins one. */
bool legacy_heap_fits(struct str line);
ow_status legacy_heap_read(struct legacy_text *t);
/* What was allocated in all, of what was sampled at a rate. */
void legacy_heap_scale(int64_t rate, int64_t *count, int64_t *size);

/* ---- places ---- */
/* NULL without memory. */
struct legacy_place *legacy_place(struct legacy *l, uint64_t address);
/* A line of the map of a process, or of the list of Java's methods; others are passed over. */
ow_status legacy_map_line(struct legacy *l, struct str line);
ow_status legacy_method_line(struct legacy *l, struct str line);
/* "#	0x1234	function+0x12	file:12", as Go explains its addresses. */
ow_status legacy_comment_line(struct legacy *l, struct str line);
/* "0x1234: function", or just a name, for an address that a sample has. */
ow_status legacy_name(struct legacy *l, uint64_t address, struct str name);
frame_id legacy_frame(struct legacy *l, uint64_t address);

/* ---- numbers in texts: each takes what it finds from the front, after blanks ---- */
bool legacy_take_number(struct str *from, int64_t *value);
bool legacy_take_hex(struct str *from, uint64_t *value); /* 0x is needed */
bool legacy_take_bare_hex(struct str *from, uint64_t *value);
bool legacy_take(struct str *from, const char *word);

#endif
