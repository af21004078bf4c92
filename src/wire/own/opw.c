/*
 * opw.c: reads and writes the frames of our own files: header, segments of blocks, footer, trailer (opw.h). Reading
 * checks every size against what is left of the file, and every checksum. Called by the importers and writers of .opw
 * files and of recordings; it does not know what a block means.
 */
#include "wire/own/opw.h"
#include "wire/container/crc32c.h"

#include <stdarg.h>

const struct opw_block_info opw_block_info[OPW_BLOCK_COUNT] = {
#define OPW_BLOCK(kind, id, name, type, value_size) [OPW_BLOCK_##id] = { name, type, value_size },
#include "wire/own/opw_blocks.def"
};

const struct opw_block *opw_find_block(const struct opw_segment *segment, const char *name)
{
	for (uint32_t i = 0; i < segment->head.block_count; i++)
		if (strcmp(segment->blocks[i].name, name) == 0)
			return &segment->blocks[i];
	return NULL;
}

void opw_name_block(struct opw_block *block, enum opw_block_id id)
{
	snprintf(block->name, sizeof(block->name), "%s", opw_block_info[id].name);
	snprintf(block->type, sizeof(block->type), "%s", opw_block_info[id].type);
	block->value_size = opw_block_info[id].value_size;
}

struct opw_part opw_part_of(enum opw_block_id id, const void *bytes, uint64_t size)
{
	const struct opw_block_info *info = &opw_block_info[id];

	return (struct opw_part){ .name = info->name,
				  .type = info->type,
				  .value_size = info->value_size,
				  .size = size,
				  .bytes = bytes };
}

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

static ow_status read_header(struct opw_file *file, struct ow_error *err)
{
	const struct input *in = file->in;
	struct opw_header *h = &file->header;

	if (in->size < sizeof(*h))
		return error_at(err, OW_E_CORRUPT, in->size,
				"%s: the opwatch file ends inside its header", in->name);
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

/* Returns why a head cannot be used, or NULL. `left`: number of bytes from its start to the end
 * of the file. */
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
			     const struct opw_segment *segment, struct ow_error *err)
{
	struct opw_segment *grown =
		arena_grow(arena, file->segments, file->count, &file->cap, sizeof(*grown));

	if (!grown)
		return error_no_memory(err);
	file->segments = grown;
	file->segments[file->count++] = *segment;
	return OW_OK;
}

/* Parses the heads that a footer lists; false if they are implausible. */
static bool parse_footer(struct opw_file *file, struct arena *arena, struct str text,
			 uint64_t segments, ow_status *status, struct ow_error *err)
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

/* Reads the footer's heads as one text, from the arena; false without a usable footer. */
static bool read_footer(const struct opw_file *file, struct arena *arena, struct opw_trailer *t,
			struct str *text, ow_status *status, struct ow_error *err)
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

static ow_status read_by_footer(struct opw_file *file, struct arena *arena, struct ow_error *err)
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

/* Returns whether a trailer is at this place: a file that was extended has an old trailer among
 * its segments. */
static bool is_trailer(const struct opw_file *file, uint64_t offset)
{
	char magic[8];

	return file->in->size - offset >= sizeof(struct opw_trailer) &&
	       input_read_at(file->in, offset, magic, sizeof(magic), NULL) == OW_OK &&
	       memcmp(magic, OPW_END_MAGIC, sizeof(magic)) == 0;
}

/* Reads one segment at `offset`; returns NULL, or the reason why not. *size becomes the distance
 * to the next one. */
static const char *walk_segment(struct opw_file *file, struct arena *arena, uint64_t offset,
				uint64_t *size, ow_status *status, struct ow_error *err)
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
	/* the reader of a journal checks its records one by one */
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

static ow_status read_by_walking(struct opw_file *file, struct arena *arena, struct ow_error *err)
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
		   struct ow_error *err)
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

ow_status opw_damaged(const struct opw_file *file, const struct opw_segment *segment,
		      const struct opw_block *block, struct ow_error *err)
{
	const char *table = segment->head.table;

	return error_at(
		err, OW_E_CORRUPT, segment->offset + block->offset,
		"%s: the opwatch file is damaged: the checksum of %s%s%s is wrong; convert the "
		"original again",
		file->in->name, table, *table ? "." : "", block->name);
}

ow_status opw_check_block(const struct opw_file *file, const struct opw_segment *segment,
			  const struct opw_block *block, struct ow_error *err)
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

#define CHUNK ((size_t)256 << 10)
#define BYTES_TARGET ((uint64_t)16 << 20) /* a segment of bytes ends after this many bytes */

void opw_writer_init(struct opw_writer *w, struct mem *mem, const struct opw_out *out)
{
	*w = (struct opw_writer){ .out = out, .at = sizeof(struct opw_header) };
	buf_init(&w->heads, mem);
}

void opw_writer_release(struct opw_writer *w)
{
	buf_release(&w->heads);
}

static ow_status write_at(const struct opw_writer *w, uint64_t offset, const void *bytes,
			  size_t len, struct ow_error *err)
{
	return len ? w->out->write_at(w->out->arg, offset, bytes, len, err) : OW_OK;
}

/* Writes zeros up to the next aligned place. */
static ow_status pad(const struct opw_writer *w, uint64_t offset, struct ow_error *err)
{
	static const char zeros[OPW_ALIGN];

	return write_at(w, offset, zeros, (size_t)(opw_round(offset) - offset), err);
}

static void set_name(char *to, size_t size, const char *name)
{
	size_t len = strlen(name);

	OW_ASSERT(len < size);
	memset(to, 0, size);
	memcpy(to, name, MIN(len, size - 1));
}

ow_status opw_put_header(struct opw_writer *w, const char *writer, struct ow_error *err)
{
	struct opw_header header = { .major = OPW_MAJOR, .minor = OPW_MINOR };

	memcpy(header.magic, OPW_MAGIC, sizeof(header.magic));
	snprintf(header.writer, sizeof(header.writer), "%s", writer);
	header.crc = crc32c(&header, offsetof(struct opw_header, crc));
	return write_at(w, 0, &header, sizeof(header), err);
}

static uint64_t heads_size(uint32_t count)
{
	return opw_round(sizeof(struct opw_head) + (uint64_t)count * sizeof(struct opw_block));
}

uint64_t opw_segment_size(const struct opw_part *parts, uint32_t count)
{
	uint64_t size = heads_size(count);

	for (uint32_t i = 0; i < count; i++)
		size += opw_round(parts[i].size);
	return size;
}

/* Completes a head, writes it with the descriptions of its blocks, and keeps a copy for the
 * footer. */
static ow_status put_heads(struct opw_writer *w, uint64_t offset, struct opw_head *head,
			   const struct opw_block *blocks, struct ow_error *err)
{
	uint64_t end = offset + sizeof(*head) + head->block_count * sizeof(*blocks);
	size_t len = head->block_count * sizeof(*blocks);

	memcpy(head->magic, OPW_SEGMENT_MAGIC, sizeof(head->magic));
	head->crc = 0;
	head->crc = crc32c_extend(crc32c(head, sizeof(*head)), blocks, len);
	OW_TRY(write_at(w, offset, head, sizeof(*head), err));
	OW_TRY(write_at(w, offset + sizeof(*head), blocks, len, err));
	OW_TRY(pad(w, end, err));
	if (head->kind == OPW_FOOTER)
		return OW_OK;
	buf_add(&w->heads, &offset, sizeof(offset));
	buf_add(&w->heads, head, sizeof(*head));
	buf_add(&w->heads, blocks, len);
	w->segment_count++;
	return w->heads.failed ? error_no_memory(err) : OW_OK;
}

/* Writes the bytes of one block and computes their checksum. */
static ow_status put_part(struct opw_writer *w, uint64_t offset, const struct opw_part *part,
			  uint32_t *crc, struct ow_error *err)
{
	char *chunk = part->read ? mem_alloc(w->heads.mem, CHUNK) : NULL;
	ow_status status = OW_OK;

	*crc = 0;
	if (part->read && !chunk)
		return error_no_memory(err);
	for (uint64_t at = 0, len; at < part->size && status == OW_OK; at += len) {
		const char *from = chunk ? chunk : (const char *)part->bytes + at;

		len = MIN(part->size - at, (uint64_t)CHUNK);
		if (chunk)
			part->read(part->arg, chunk, (size_t)len);
		*crc = crc32c_extend(*crc, from, (size_t)len);
		status = write_at(w, offset + at, from, (size_t)len, err);
	}
	if (chunk)
		mem_free(w->heads.mem, chunk, CHUNK);
	return status == OW_OK ? pad(w, offset + part->size, err) : status;
}

ow_status opw_put_segment(struct opw_writer *w, enum opw_kind kind, const char *table,
			  uint64_t first_row, uint64_t row_count, const struct opw_part *parts,
			  uint32_t count, struct ow_error *err)
{
	struct opw_head head = { .kind = kind,
				 .block_count = count,
				 .size = opw_segment_size(parts, count),
				 .first_row = first_row,
				 .row_count = row_count };
	struct mem *mem = w->heads.mem;
	struct opw_block *blocks = mem_zalloc(mem, (size_t)count * sizeof(*blocks) + 1);
	uint64_t at = heads_size(count);
	ow_status status = OW_OK;

	OW_ASSERT(!w->in_bytes && count <= OPW_BLOCKS_MAX);
	if (!blocks)
		return error_no_memory(err);
	set_name(head.table, sizeof(head.table), table);
	for (uint32_t i = 0; i < count && status == OW_OK; i++) {
		set_name(blocks[i].name, sizeof(blocks[i].name), parts[i].name);
		set_name(blocks[i].type, sizeof(blocks[i].type), parts[i].type);
		blocks[i].offset = at;
		blocks[i].size = parts[i].size;
		blocks[i].value_size = parts[i].value_size;
		status = put_part(w, w->at + at, &parts[i], &blocks[i].crc, err);
		at += opw_round(parts[i].size);
	}
	if (status == OW_OK)
		status = put_heads(w, w->at, &head, blocks, err);
	mem_free(mem, blocks, (size_t)count * sizeof(*blocks) + 1);
	w->at += head.size;
	return status;
}

ow_status opw_end_bytes(struct opw_writer *w, struct ow_error *err)
{
	struct opw_block block = { .offset = heads_size(1),
				   .size = w->bytes_len,
				   .crc = w->bytes_crc };
	struct opw_head head = { .kind = OPW_BYTES,
				 .block_count = 1,
				 .row_count = w->bytes_len,
				 .size = heads_size(1) + opw_round(w->bytes_len) };

	if (!w->in_bytes)
		return OW_OK;
	opw_name_block(&block, OPW_BLOCK_BYTES);
	w->in_bytes = false;
	OW_TRY(pad(w, w->bytes_start + block.offset + w->bytes_len, err));
	w->at = w->bytes_start + head.size;
	return put_heads(w, w->bytes_start, &head, &block, err);
}

ow_status opw_begin_item(struct opw_writer *w, uint64_t *offset, struct ow_error *err)
{
	if (w->in_bytes && w->bytes_len >= BYTES_TARGET)
		OW_TRY(opw_end_bytes(w, err));
	if (!w->in_bytes) {
		w->in_bytes = true;
		w->bytes_start = w->at;
		w->bytes_len = 0;
		w->bytes_crc = 0;
	}
	*offset = w->bytes_start + heads_size(1) + w->bytes_len;
	return OW_OK;
}

ow_status opw_put_bytes(struct opw_writer *w, const void *bytes, size_t len, struct ow_error *err)
{
	OW_ASSERT(w->in_bytes);
	OW_TRY(write_at(w, w->bytes_start + heads_size(1) + w->bytes_len, bytes, len, err));
	w->bytes_crc = crc32c_extend(w->bytes_crc, bytes, len);
	w->bytes_len += len;
	return OW_OK;
}

ow_status opw_put_footer(struct opw_writer *w, uint64_t *size, struct ow_error *err)
{
	struct opw_trailer trailer = { .footer_offset = w->at, .segment_count = w->segment_count };
	struct opw_part part = opw_part_of(OPW_BLOCK_HEADS, w->heads.ptr, w->heads.len);

	OW_TRY(opw_put_segment(w, OPW_FOOTER, "", 0, w->segment_count, &part, 1, err));
	trailer.footer_size = w->at - trailer.footer_offset;
	trailer.file_size = w->at + sizeof(trailer);
	memcpy(trailer.magic, OPW_END_MAGIC, sizeof(trailer.magic));
	trailer.crc = crc32c(&trailer, offsetof(struct opw_trailer, crc));
	*size = trailer.file_size;
	return write_at(w, w->at, &trailer, sizeof(trailer), err);
}

#define LIVE_BLOCK_MAX ((uint64_t)1 << 30)

void live_blocks_init(struct live_blocks *b, struct mem *mem)
{
	*b = (struct live_blocks){ 0 };
	buf_init(&b->bytes, mem);
}

void live_blocks_release(struct live_blocks *b)
{
	buf_release(&b->bytes);
}

ow_status live_blocks_read(struct live_blocks *b, const struct input *in,
			   const struct opw_segment *segment, unsigned wanted, struct ow_error *err)
{
	const struct opw_block *found[LIVE_BLOCKS] = { 0 };
	size_t total = 0, at = 0;

	buf_clear(&b->bytes);
	for (size_t i = 0; i < LIVE_BLOCKS; i++) {
		b->all[i] = (struct str){ "", 0 };
		found[i] =
			wanted & 1u << i ? opw_find_block(segment, live_block_info[i].name) : NULL;
		if (found[i] && found[i]->size > LIVE_BLOCK_MAX)
			found[i] = NULL;
		total += found[i] ? (size_t)opw_round(found[i]->size) : 0;
	}
	if (!buf_reserve(&b->bytes, total + OPW_ALIGN))
		return error_no_memory(err);
	for (size_t i = 0; i < LIVE_BLOCKS; i++) {
		size_t size = found[i] ? (size_t)found[i]->size : 0;

		if (!size)
			continue;
		OW_TRY(input_read_at(in, segment->offset + found[i]->offset, b->bytes.ptr + at,
				     size, err));
		if (opw_same_crc(crc32c(b->bytes.ptr + at, size), found[i]->crc))
			b->all[i] = str_make(b->bytes.ptr + at, size);
		at += (size_t)opw_round(size);
	}
	return OW_OK;
}

static void find_block(struct str segment, const struct opw_block *block, unsigned wanted,
		       struct str all[LIVE_BLOCKS], bool *whole)
{
	for (size_t i = 0; i < LIVE_BLOCKS; i++) {
		if (!(wanted & 1u << i) ||
		    strncmp(block->name, live_block_info[i].name, sizeof(block->name)) != 0)
			continue;
		if (block->offset <= segment.len && block->size <= segment.len - block->offset &&
		    opw_same_crc(crc32c(segment.ptr + block->offset, (size_t)block->size),
				 block->crc))
			all[i] = str_make(segment.ptr + block->offset, (size_t)block->size);
		else
			*whole = false;
		return;
	}
}

bool live_blocks_find(struct str segment, unsigned wanted, struct str all[LIVE_BLOCKS])
{
	struct opw_head head;
	bool whole = true;

	for (size_t i = 0; i < LIVE_BLOCKS; i++)
		all[i] = (struct str){ "", 0 };
	if (segment.len < sizeof(head))
		return false;
	memcpy(&head, segment.ptr, sizeof(head));
	if (memcmp(head.magic, OPW_SEGMENT_MAGIC, sizeof(head.magic)) != 0 ||
	    head.kind != OPW_LIVE || head.size != segment.len ||
	    head.block_count > (segment.len - sizeof(head)) / sizeof(struct opw_block))
		return false;
	for (uint32_t i = 0; i < head.block_count; i++) {
		struct opw_block block;

		memcpy(&block, segment.ptr + sizeof(head) + i * sizeof(block), sizeof(block));
		find_block(segment, &block, wanted, all, &whole);
	}
	return whole;
}

bool live_text_next(struct str *block, struct live_text *head, struct str *text)
{
	if (block->len < sizeof(*head))
		return false;
	memcpy(head, block->ptr, sizeof(*head));
	if (live_text_bytes(head->len) > block->len)
		return false;
	*text = str_make(block->ptr + sizeof(*head), head->len);
	*block = str_skip(*block, (size_t)live_text_bytes(head->len));
	return true;
}
