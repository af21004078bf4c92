/*
 * opw.h: the frames of our own file format: a header, segments of named blocks, a footer with a copy of
 * all segment heads, and a trailer that says where the footer is. What the blocks mean (tables, strings)
 * is known to import_opw.c and opw_save.c only. The layout is told in docs/file-format.md.
 *
 * Numbers are little-endian, as on every machine this runs on, so structs are the layout.
 */
#ifndef WIRE_OPW_H
#define WIRE_OPW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/input.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layout is little-endian");

#define OPW_MAGIC "\x89OPW\r\n\x1a\n"
#define OPW_SEGMENT_MAGIC "OPW-SEG\n"
#define OPW_END_MAGIC "OPW-END\n"
#define OPW_MAJOR 1 /* an older program must not read it */
#define OPW_MINOR 2 /* an older program may read it */
#define OPW_ALIGN 64
#define OPW_BLOCKS_MAX 4096

struct opw_header {
	char magic[8];
	uint32_t major, minor;
	char writer[40]; /* "opwatch 0.1.0", for people */
	uint32_t zero;
	uint32_t crc; /* of what is before */
};

enum opw_kind {
	OPW_META = 1,	 /* values of the whole: each a block */
	OPW_STRINGS = 2, /* blocks "length" and "text" */
	OPW_ROWS = 3,	 /* rows of a table: each column a block */
	OPW_BYTES = 4,	 /* what args_offset and record_offset point to */
	OPW_FOOTER = 5,	 /* block "heads" */
	OPW_JOURNAL = 6, /* block "records", each with a checksum of its own; wire/journal.h */
	OPW_LIVE = 7,	 /* records of running programs; wire/live_file.h */
};

struct opw_head {
	char magic[8];
	uint32_t kind;
	uint32_t block_count;
	uint64_t size; /* of the whole segment, a multiple of OPW_ALIGN */
	uint64_t first_row, row_count;
	char table[32];
	uint32_t zero[5];
	uint32_t crc; /* of this struct with crc = 0, then of the blocks' descriptions */
};

/* One column, or one value: its description, right after the head. */
struct opw_block {
	char name[32];
	char type[16];
	uint64_t offset; /* from the start of the segment, a multiple of OPW_ALIGN */
	uint64_t size;	 /* bytes */
	uint32_t value_size;
	uint32_t crc;
};

struct opw_trailer {
	char magic[8];
	uint64_t footer_offset, footer_size, segment_count, file_size;
	uint32_t zero[5];
	uint32_t crc;
};

_Static_assert(sizeof(struct opw_header) == 64, "layout");
_Static_assert(sizeof(struct opw_head) == 96, "layout");
_Static_assert(sizeof(struct opw_block) == 72, "layout");
_Static_assert(sizeof(struct opw_trailer) == 64, "layout");

static inline uint64_t opw_round(uint64_t size)
{
	return (size + OPW_ALIGN - 1) & ~(uint64_t)(OPW_ALIGN - 1);
}

/* Fuzzers cannot guess checksums: in their build every one is right, so that they get to what is behind. */
static inline bool opw_same_crc(uint32_t computed, uint32_t stored)
{
#ifdef OPWATCH_FUZZ
	(void)computed;
	(void)stored;
	return true;
#else
	return computed == stored;
#endif
}

/* ---- reading (opw_read.c) ---- */

struct opw_segment {
	uint64_t offset;
	struct opw_head head;
	const struct opw_block *blocks;
};

struct opw_file {
	const struct input *in;
	struct opw_header header;
	struct opw_segment *segments; /* in file order; footers are left out */
	size_t count, cap;
	bool complete;	   /* the footer was there: nothing is missing */
	uint64_t end;	   /* when not: the first byte that is not used */
	char problem[160]; /* and why */
};

/* Reads and checks the header and all heads; of a file without footer also every block, up to the first
 * segment that is not whole. Memory comes from the arena. */
ow_status opw_read(struct opw_file *file, const struct input *in, struct arena *arena,
		   struct error *err);

/* Whether a block's bytes are those that were written; err names the place. */
ow_status opw_check_block(const struct opw_file *file, const struct opw_segment *segment,
			  const struct opw_block *block, struct error *err);
/* The error of a block that is not. */
ow_status opw_damaged(const struct opw_file *file, const struct opw_segment *segment,
		      const struct opw_block *block, struct error *err);

static inline bool opw_is(struct str head)
{
	return head.len >= 8 && memcmp(head.ptr, OPW_MAGIC, 8) == 0;
}

/* Whether a file that begins so has a first segment of that kind. */
static inline bool opw_starts_with(struct str head, enum opw_kind kind)
{
	struct opw_head first;

	if (!opw_is(head) || head.len < sizeof(struct opw_header) + sizeof(first))
		return false;
	memcpy(&first, head.ptr + sizeof(struct opw_header), sizeof(first));
	return memcmp(first.magic, OPW_SEGMENT_MAGIC, sizeof(first.magic)) == 0 &&
	       first.kind == kind;
}

/* ---- writing (opw_write.c) ---- */

/* Where bytes go, at any place. */
struct opw_out {
	ow_status (*write_at)(void *arg, uint64_t offset, const void *bytes, size_t len,
			      struct error *err);
	void *arg;
};

/* One block to be written: bytes, or a function that gives the next `len` of them. */
struct opw_part {
	const char *name, *type;
	uint32_t value_size;
	uint64_t size;
	const void *bytes;
	void (*read)(void *arg, void *to, size_t len);
	void *arg;
};

struct opw_writer {
	const struct opw_out *out;
	struct buf heads; /* for the footer */
	uint64_t segment_count;
	uint64_t at; /* where the next segment goes */
	/* a segment of bytes being written */
	uint64_t bytes_start, bytes_len;
	uint32_t bytes_crc;
	bool in_bytes;
};

void opw_writer_init(struct opw_writer *w, struct mem *mem, const struct opw_out *out);
void opw_writer_release(struct opw_writer *w);

/* The header, at the start. */
ow_status opw_put_header(struct opw_writer *w, const char *writer, struct error *err);
/* A whole segment, and how long it will be. */
ow_status opw_put_segment(struct opw_writer *w, enum opw_kind kind, const char *table,
			  uint64_t first_row, uint64_t row_count, const struct opw_part *parts,
			  uint32_t count, struct error *err);
uint64_t opw_segment_size(const struct opw_part *parts, uint32_t count);
/* Bytes that need an address: *offset is where they are in the file. Segments of them are begun and
 * ended on the way; opw_end_bytes ends the last one. One call's bytes stay together. */
ow_status opw_begin_item(struct opw_writer *w, uint64_t *offset, struct error *err);
ow_status opw_put_bytes(struct opw_writer *w, const void *bytes, size_t len, struct error *err);
ow_status opw_end_bytes(struct opw_writer *w, struct error *err);
/* Footer and trailer; *size becomes the size of the file. */
ow_status opw_put_footer(struct opw_writer *w, uint64_t *size, struct error *err);

#endif
