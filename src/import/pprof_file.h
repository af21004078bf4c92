/*
 * pprof_file.h: a profile.proto while it is read: import_pprof.c recognises it and makes rows of its samples, pprof_tables.c reads
 * what the samples refer to, pprof_frames.c makes frames of it. Nobody else includes it.
 */
#ifndef IMPORT_PPROF_FILE_H
#define IMPORT_PPROF_FILE_H

#include "import/importer.h"
#include "import/pprof_prune.h"
#include "wire/pb.h"

#define PPROF_FRAMES_MAX 8192
#define PPROF_TYPES_MAX 64

struct pprof_function {
	uint64_t id;
	uint64_t name, file;
	int64_t line;
	enum { UNASKED, KEPT, DROPPED } fate;
};

struct pprof_mapping {
	uint64_t id, file;
};

struct pprof_location {
	uint64_t id, mapping, address;
	const uint8_t *lines; /* the whole message, for its lines */
	size_t size;
};

struct pprof_list {
	void *items;
	size_t count, cap;
	struct map by_id; /* → item + 1 */
};

struct pprof_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	const uint8_t *bytes;
	size_t size;
	struct str *strings;
	size_t string_count, string_cap;
	struct pprof_list functions, mappings, locations;
	struct {
		uint64_t type, unit;
	} types[PPROF_TYPES_MAX];
	size_t type_count;
	metric_id metrics[PPROF_TYPES_MAX];
	int64_t scale[PPROF_TYPES_MAX], sums[PPROF_TYPES_MAX];
	uint64_t default_type, drop_frames, keep_frames;
	struct pprof_prune prune;
	struct {
		uint32_t first; /* frame */
		bool drops, beneath;
	} parts[PPROF_FRAMES_MAX]; /* of the sample at hand: its locations */
	uint32_t part_count;
	uint64_t pruned;
	int64_t time, duration, period;
	uint64_t samples, bad, cut;
	frame_id frames[PPROF_FRAMES_MAX];
	track_id track;
	struct buf label;
};

static inline struct str pprof_text(const struct pprof_file *p, uint64_t index)
{
	return index < p->string_count ? p->strings[index] : STR("");
}

void pprof_tables_init(struct pprof_file *p);
void pprof_tables_release(struct pprof_file *p);
/* All but the samples, which are counted. */
ow_status pprof_tables_read(struct pprof_file *p);
/* The item with an id, of `size` bytes; NULL when there is none. */
void *pprof_find(const struct pprof_list *list, uint64_t id, size_t size);
/* The varint fields 1…7 of a message. */
void pprof_numbers(const struct pb_field *f, uint64_t numbers[8]);

/* Puts the frames of a location, the innermost first, behind the `count` that p->frames has; how many there are then. */
uint32_t pprof_add_location(struct pprof_file *p, uint64_t id, uint32_t count);
/* The first of them that stays. From the root on, the first location that matches goes, with all that it calls; but
 * not before one that does not match, so that something is left. */
uint32_t pprof_first_kept(struct pprof_file *p, uint32_t frames);

#endif
