/*
 * opw_read.c: reading the frames of our own file; see opw.h. Every size is checked against what is left
 * before it is used. A file whose footer is missing or damaged is walked from segment to segment, and
 * then every block is checked: what a crash left behind is used up to the last whole segment.
 */
#include "wire/opw.h"

#include "wire/crc32c.h"

#include <stdarg.h>

#define READ_BYTES ((size_t)256 << 10)

static void set_problem(struct opw_file *file, uint64_t offset, const char *format, ...)
	OW_PRINTF(3, 4);

static void set_problem(struct opw_file *file, uint64_t offset, const char *format, ...)
{
	va_list args;

	file->end = offset;
	va_start(args, format);
	vsnprintf(file->problem, sizeof(file->problem), format, args);
	va_end(args);
}

/* ---- header ---- */

static ow_status read_header(struct opw_file *file, struct error *err)
{
	const struct input *in = file->in;
	struct opw_header *h = &file->header;

	if (in->size < sizeof(*h))
		return error_at(err, OW_E_CORRUPT, in->size,
				"%s: an opwatch file that ends within its header", in->name);
	OW_TRY(input_read_at(in, 0, h, sizeof(*h), err));
	if (memcmp(h->magic, OPW_MAGIC, sizeof(h->magic)) != 0)
		return error_at(err, OW_E_FORMAT, 0, "%s: not an opwatch file", in->name);
	if (!opw_same_crc(crc32c(h, offsetof(struct opw_header, crc)), h->crc))
		return error_at(err, OW_E_CORRUPT, 0,
				"%s: the header of the opwatch file is damaged", in->name);
	h->writer[sizeof(h->writer) - 1] = '\0';
	if (h->major > OPW_MAJOR)
		return error_set(
			err, OW_E_UNSUPPORTED,
			"%s: written by a newer opwatch (%s, format %u; this one reads up to "
			"%u): use that version, or convert the original again",
			in->name, h->writer, h->major, OPW_MAJOR);
	return OW_OK;
}

/* ---- heads ---- */

static bool is_text(const char *name, size_t size)
{
	return memchr(name, '\0', size) != NULL;
}

static bool block_fits(const struct opw_head *head, const struct opw_block *block)
{
	uint64_t heads = sizeof(*head) + (uint64_t)head->block_count * sizeof(*block);

	return is_text(block->name, sizeof(block->name)) &&
	       is_text(block->type, sizeof(block->type)) && block->offset % OPW_ALIGN == 0 &&
	       block->offset >= heads && block->offset <= head->size &&
	       block->size <= head->size - block->offset;
}

/* Why a head cannot be used, or NULL. `left`: bytes of the file from its start on. */
static const char *head_fault(const struct opw_head *head, uint64_t left)
{
	if (memcmp(head->magic, OPW_SEGMENT_MAGIC, sizeof(head->magic)) != 0)
		return "no segment begins here";
	if (head->block_count > OPW_BLOCKS_MAX ||
	    head->size < sizeof(*head) + head->block_count * sizeof(struct opw_block) ||
	    head->size % OPW_ALIGN || !is_text(head->table, sizeof(head->table)))
		return "a segment's head is damaged";
	return head->size > left ? "the last segment is cut short" : NULL;
}

static const char *blocks_fault(const struct opw_head *head, const struct opw_block *blocks)
{
	struct opw_head plain = *head;
	uint32_t crc;

	plain.crc = 0;
	crc = crc32c_extend(crc32c(&plain, sizeof(plain)), blocks,
			    head->block_count * sizeof(*blocks));
	if (!opw_same_crc(crc, head->crc))
		return "a segment's head is damaged";
	for (uint32_t i = 0; i < head->block_count; i++)
		if (!block_fits(head, &blocks[i]))
			return "a segment's head is damaged";
	return NULL;
}

static ow_status add_segment(struct opw_file *file, struct arena *arena,
			     const struct opw_segment *segment, struct error *err)
{
	if (file->count == file->cap) {
		size_t cap = file->cap ? file->cap * 2 : 64;
		struct opw_segment *grown = ARENA_ARRAY(arena, struct opw_segment, cap);

		if (!grown)
			return error_no_memory(err);
		if (file->count)
			memcpy(grown, file->segments, file->count * sizeof(*grown));
		file->segments = grown;
		file->cap = cap;
	}
	file->segments[file->count++] = *segment;
	return OW_OK;
}

/* ---- with a footer ---- */

/* The heads that a footer lists; false when they make no sense. */
static bool parse_footer(struct opw_file *file, struct arena *arena, struct str text,
			 uint64_t segments, ow_status *status, struct error *err)
{
	while (text.len) {
		struct opw_segment segment = { 0 };
		struct opw_block *blocks;
		size_t len;

		if (text.len < sizeof(segment.offset) + sizeof(segment.head))
			return false;
		memcpy(&segment.offset, text.ptr, sizeof(segment.offset));
		memcpy(&segment.head, text.ptr + sizeof(segment.offset), sizeof(segment.head));
		text = str_skip(text, sizeof(segment.offset) + sizeof(segment.head));
		if (segment.offset % OPW_ALIGN || segment.offset > file->in->size ||
		    head_fault(&segment.head, file->in->size - segment.offset))
			return false;
		len = segment.head.block_count * sizeof(*blocks);
		if (text.len < len)
			return false;
		blocks = arena_push_aligned(arena, len, 16);
		if (!blocks) {
			*status = error_no_memory(err);
			return true;
		}
		memcpy(blocks, text.ptr, len);
		text = str_skip(text, len);
		if (blocks_fault(&segment.head, blocks))
			return false;
		segment.blocks = blocks;
		*status = add_segment(file, arena, &segment, err);
		if (*status != OW_OK)
			return true;
	}
	return file->count == segments;
}

static bool read_trailer(const struct opw_file *file, struct opw_trailer *t)
{
	uint64_t size = file->in->size;

	if (size < sizeof(struct opw_header) + sizeof(*t) ||
	    input_read_at(file->in, size - sizeof(*t), t, sizeof(*t), NULL) != OW_OK)
		return false;
	return memcmp(t->magic, OPW_END_MAGIC, sizeof(t->magic)) == 0 &&
	       opw_same_crc(crc32c(t, offsetof(struct opw_trailer, crc)), t->crc) &&
	       t->file_size == size && t->footer_offset <= size - sizeof(*t) &&
	       t->footer_size == size - sizeof(*t) - t->footer_offset;
}

/* The footer's heads as one text, from the arena; false when there is no usable footer. */
static bool read_footer(const struct opw_file *file, struct arena *arena, struct opw_trailer *t,
			struct str *text, ow_status *status, struct error *err)
{
	struct opw_head head;
	struct opw_block block;
	char *bytes;

	if (!read_trailer(file, t) || t->footer_size < sizeof(head) + sizeof(block) ||
	    input_read_at(file->in, t->footer_offset, &head, sizeof(head), NULL) != OW_OK ||
	    head_fault(&head, t->footer_size) || head.kind != OPW_FOOTER || head.block_count != 1 ||
	    input_read_at(file->in, t->footer_offset + sizeof(head), &block, sizeof(block), NULL) !=
		    OW_OK ||
	    blocks_fault(&head, &block) || block.size > SIZE_MAX / 2)
		return false;
	bytes = arena_push_aligned(arena, (size_t)block.size, 16);
	if (!bytes) {
		*status = error_no_memory(err);
		return false;
	}
	if (input_read_at(file->in, t->footer_offset + block.offset, bytes, (size_t)block.size,
			  NULL) != OW_OK ||
	    !opw_same_crc(crc32c(bytes, (size_t)block.size), block.crc))
		return false;
	*text = str_make(bytes, (size_t)block.size);
	return true;
}

static ow_status read_by_footer(struct opw_file *file, struct arena *arena, struct error *err)
{
	struct opw_trailer trailer;
	ow_status status = OW_OK;
	struct str text;

	if (!read_footer(file, arena, &trailer, &text, &status, err))
		return status;
	file->complete = parse_footer(file, arena, text, trailer.segment_count, &status, err);
	if (!file->complete)
		file->count = 0;
	return status;
}

/* ---- without ---- */

/* A file that was added to has an old trailer among its segments. */
static bool is_trailer(const struct opw_file *file, uint64_t offset)
{
	char magic[8];

	return file->in->size - offset >= sizeof(struct opw_trailer) &&
	       input_read_at(file->in, offset, magic, sizeof(magic), NULL) == OW_OK &&
	       memcmp(magic, OPW_END_MAGIC, sizeof(magic)) == 0;
}

/* One segment at `offset`; NULL or why not. *size is how far the next one is. */
static const char *walk_segment(struct opw_file *file, struct arena *arena, uint64_t offset,
				uint64_t *size, ow_status *status, struct error *err)
{
	struct opw_segment segment = { .offset = offset };
	uint64_t left = file->in->size - offset;
	struct opw_block *blocks;
	const char *fault;
	size_t len;

	if (is_trailer(file, offset)) {
		*size = sizeof(struct opw_trailer);
		return NULL;
	}
	if (left < sizeof(segment.head))
		return "the last segment is cut short";
	*status = input_read_at(file->in, offset, &segment.head, sizeof(segment.head), err);
	fault = *status == OW_OK ? head_fault(&segment.head, left) : NULL;
	if (*status != OW_OK || fault)
		return fault;
	len = segment.head.block_count * sizeof(*blocks);
	blocks = arena_push_aligned(arena, len, 16);
	if (!blocks) {
		*status = error_no_memory(err);
		return NULL;
	}
	*status = input_read_at(file->in, offset + sizeof(segment.head), blocks, len, err);
	fault = *status == OW_OK ? blocks_fault(&segment.head, blocks) : NULL;
	if (*status != OW_OK || fault)
		return fault;
	segment.blocks = blocks;
	*size = segment.head.size;
	/* Records of a journal are checked one by one, by whoever reads them. */
	for (uint32_t i = 0; i < segment.head.block_count && segment.head.kind != OPW_JOURNAL;
	     i++) {
		*status = opw_check_block(file, &segment, &blocks[i], err);
		if (*status == OW_E_CORRUPT) {
			*status = OW_OK;
			error_clear(err);
			return "a segment's content is damaged";
		}
		if (*status != OW_OK)
			return NULL;
	}
	if (segment.head.kind != OPW_FOOTER)
		*status = add_segment(file, arena, &segment, err);
	return NULL;
}

static ow_status read_by_walking(struct opw_file *file, struct arena *arena, struct error *err)
{
	uint64_t offset = sizeof(struct opw_header);
	ow_status status = OW_OK;

	file->end = offset;
	snprintf(file->problem, sizeof(file->problem), "there is no footer");
	while (status == OW_OK && offset < file->in->size) {
		uint64_t size = 0;
		const char *fault = walk_segment(file, arena, offset, &size, &status, err);

		if (fault) {
			set_problem(file, offset, "%s", fault);
			break;
		}
		offset += size;
		file->end = offset;
	}
	return status;
}

static int by_offset(const void *a, const void *b)
{
	const struct opw_segment *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

ow_status opw_read(struct opw_file *file, const struct input *in, struct arena *arena,
		   struct error *err)
{
	*file = (struct opw_file){ .in = in };
	OW_TRY(read_header(file, err));
	OW_TRY(read_by_footer(file, arena, err));
	if (!file->complete)
		return read_by_walking(file, arena, err);
	if (file->count)
		qsort(file->segments, file->count, sizeof(*file->segments), by_offset);
	return OW_OK;
}

/* ---- blocks ---- */

ow_status opw_damaged(const struct opw_file *file, const struct opw_segment *segment,
		      const struct opw_block *block, struct error *err)
{
	const char *table = segment->head.table;

	return error_at(
		err, OW_E_CORRUPT, segment->offset + block->offset,
		"%s: the opwatch file is damaged: the checksum of %s%s%s is wrong; convert the "
		"original again",
		file->in->name, table, *table ? "." : "", block->name);
}

ow_status opw_check_block(const struct opw_file *file, const struct opw_segment *segment,
			  const struct opw_block *block, struct error *err)
{
	uint64_t at = segment->offset + block->offset, left = block->size;
	struct mem *mem = file->in->mem;
	ow_status status = OW_OK;
	uint32_t crc = 0;
	char *bytes;

	if (file->in->data) {
		crc = crc32c(file->in->data + at, (size_t)left);
		return opw_same_crc(crc, block->crc) ? OW_OK
						     : opw_damaged(file, segment, block, err);
	}
	bytes = mem_alloc(mem, READ_BYTES);
	if (!bytes)
		return error_no_memory(err);
	while (left && status == OW_OK) {
		size_t part = (size_t)MIN(left, (uint64_t)READ_BYTES);

		status = input_read_at(file->in, at, bytes, part, err);
		if (status == OW_OK)
			crc = crc32c_extend(crc, bytes, part);
		at += part;
		left -= part;
	}
	mem_free(mem, bytes, READ_BYTES);
	if (status == OW_OK && !opw_same_crc(crc, block->crc))
		status = opw_damaged(file, segment, block, err);
	return status;
}
