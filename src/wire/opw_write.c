/* opw_write.c: writing the frames of our own file; see opw.h. */
#include "wire/opw.h"

#include "wire/crc32c.h"

#define CHUNK ((size_t)256 << 10)
#define BYTES_TARGET ((uint64_t)16 << 20) /* a segment of bytes ends after this many */

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
			  size_t len, struct error *err)
{
	return len ? w->out->write_at(w->out->arg, offset, bytes, len, err) : OW_OK;
}

/* Zeros up to the next aligned place. */
static ow_status pad(const struct opw_writer *w, uint64_t offset, struct error *err)
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

ow_status opw_put_header(struct opw_writer *w, const char *writer, struct error *err)
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

/* Completes a head, writes it with its blocks' descriptions, and keeps a copy for the footer. */
static ow_status put_heads(struct opw_writer *w, uint64_t offset, struct opw_head *head,
			   const struct opw_block *blocks, struct error *err)
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

/* The bytes of one block, and their checksum. */
static ow_status put_part(struct opw_writer *w, uint64_t offset, const struct opw_part *part,
			  uint32_t *crc, struct error *err)
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
			  uint32_t count, struct error *err)
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

ow_status opw_end_bytes(struct opw_writer *w, struct error *err)
{
	struct opw_block block = { .name = "bytes",
				   .type = "bytes",
				   .offset = heads_size(1),
				   .size = w->bytes_len,
				   .value_size = 1,
				   .crc = w->bytes_crc };
	struct opw_head head = { .kind = OPW_BYTES,
				 .block_count = 1,
				 .row_count = w->bytes_len,
				 .size = heads_size(1) + opw_round(w->bytes_len) };

	if (!w->in_bytes)
		return OW_OK;
	w->in_bytes = false;
	OW_TRY(pad(w, w->bytes_start + block.offset + w->bytes_len, err));
	w->at = w->bytes_start + head.size;
	return put_heads(w, w->bytes_start, &head, &block, err);
}

ow_status opw_begin_item(struct opw_writer *w, uint64_t *offset, struct error *err)
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

ow_status opw_put_bytes(struct opw_writer *w, const void *bytes, size_t len, struct error *err)
{
	OW_ASSERT(w->in_bytes);
	OW_TRY(write_at(w, w->bytes_start + heads_size(1) + w->bytes_len, bytes, len, err));
	w->bytes_crc = crc32c_extend(w->bytes_crc, bytes, len);
	w->bytes_len += len;
	return OW_OK;
}

ow_status opw_put_footer(struct opw_writer *w, uint64_t *size, struct error *err)
{
	struct opw_trailer trailer = { .footer_offset = w->at, .segment_count = w->segment_count };
	struct opw_part part = { .name = "heads",
				 .type = "bytes",
				 .value_size = 1,
				 .size = w->heads.len,
				 .bytes = w->heads.ptr };

	OW_TRY(opw_put_segment(w, OPW_FOOTER, "", 0, w->segment_count, &part, 1, err));
	trailer.footer_size = w->at - trailer.footer_offset;
	trailer.file_size = w->at + sizeof(trailer);
	memcpy(trailer.magic, OPW_END_MAGIC, sizeof(trailer.magic));
	trailer.crc = crc32c(&trailer, offsetof(struct opw_trailer, crc));
	*size = trailer.file_size;
	return write_at(w, w->at, &trailer, sizeof(trailer), err);
}
