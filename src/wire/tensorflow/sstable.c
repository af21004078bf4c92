/*
 * sstable.c: reads the tables of LevelDB's format (sstable.h) in which TensorFlow checkpoints keep their index, and the
 * snappy blocks in them. The file ends in a footer of 48 bytes: the handles (offset, size as varints) of the metaindex
 * and index blocks, padding, and a magic number. A block is followed by its compression type and the masked CRC of both.
 */
#include "wire/tensorflow/sstable.h"
#include "wire/container/crc32c.h"
#include "wire/protobuf/pb.h"
#include "base/str.h"
#include "base/vec.h"

#define FOOTER_BYTES 48
#define HANDLES_BYTES 40
#define TRAILER_BYTES 5
#define BLOCK_RAW 0
#define BLOCK_SNAPPY 1

static const unsigned char magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

struct handle {
	uint64_t offset, size;
};

/* The text is TensorFlow's, so the place goes into the struct only. */
static ow_status damaged(struct ow_error *err, uint64_t offset, const char *text)
{
	error_set(err, OW_E_CORRUPT, "%s", text);
	if (err)
		err->offset = offset;
	return OW_E_CORRUPT;
}

/* The varint at *at; moves *at behind it. */
static bool read_varint(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
	struct pb_varint got;

	if (*at >= end)
		return false;
	got = pb_varint_at(*at, end);
	if (!got.next)
		return false;
	*at = got.next;
	*value = got.value;
	return true;
}

static bool read_handle(const unsigned char **at, const unsigned char *end, struct handle *handle)
{
	return read_varint(at, end, &handle->offset) && read_varint(at, end, &handle->size);
}

static void block_release(struct mem *mem, struct sstable_block *block)
{
	mem_free(mem, block->bytes, block->cap);
	*block = (struct sstable_block){ 0 };
}

/* Replaces the compressed bytes of a block by the uncompressed bytes. */
static ow_status block_unpack(struct mem *mem, struct sstable_block *block, size_t *len,
			      struct ow_error *err)
{
	struct str packed = str_make(block->bytes, *len);
	unsigned char *bytes;
	size_t unpacked;

	if (!snappy_block_length(packed, &unpacked))
		return damaged(err, block->offset, "corrupted compressed block contents");
	bytes = mem_alloc(mem, unpacked + 1);
	if (!bytes)
		return error_no_memory(err);
	if (!snappy_block_unpack(packed, bytes, unpacked)) {
		mem_free(mem, bytes, unpacked + 1);
		return damaged(err, block->offset, "corrupted compressed block contents");
	}
	mem_free(mem, block->bytes, block->cap);
	block->bytes = bytes;
	block->cap = unpacked + 1;
	*len = unpacked;
	return OW_OK;
}

/* Finds the restart offsets at the end of the block. */
static ow_status block_frame(struct sstable_block *block, size_t len, struct ow_error *err)
{
	uint32_t restarts;

	if (len < 4)
		return damaged(err, block->offset, "bad block contents");
	restarts = pb_load32(block->bytes + len - 4);
	if (restarts > (len - 4) / 4)
		return damaged(err, block->offset, "bad block contents");
	block->restarts = restarts;
	block->end = len - 4 - (size_t)restarts * 4;
	if (!restarts) /* an empty block: whatever precedes the count is not entries */
		block->end = 0;
	return OW_OK;
}

static ow_status block_fill(const struct sstable *table, struct handle handle,
			    struct sstable_block *block, struct ow_error *err)
{
	const struct input *in = table->in;
	size_t len;

	if (handle.offset > in->size || handle.size > in->size - handle.offset ||
	    in->size - handle.offset - handle.size < TRAILER_BYTES)
		return damaged(err, handle.offset, "truncated block read");
	len = (size_t)handle.size;
	block->bytes = mem_alloc(table->mem, len + TRAILER_BYTES);
	if (!block->bytes)
		return error_no_memory(err);
	block->cap = len + TRAILER_BYTES;
	block->offset = handle.offset;
	OW_TRY(input_read_at(in, handle.offset, block->bytes, len + TRAILER_BYTES, err));
	if (crc32c_mask(crc32c(block->bytes, len + 1)) != pb_load32(block->bytes + len + 1))
		return damaged(err, handle.offset, "block checksum mismatch");
	if (block->bytes[len] == BLOCK_SNAPPY)
		OW_TRY(block_unpack(table->mem, block, &len, err));
	else if (block->bytes[len] != BLOCK_RAW)
		return damaged(err, handle.offset, "bad block type");
	return block_frame(block, len, err);
}

static ow_status block_read(const struct sstable *table, struct handle handle,
			    struct sstable_block *block, struct ow_error *err)
{
	ow_status status;

	*block = (struct sstable_block){ 0 };
	status = block_fill(table, handle, block, err);
	if (status != OW_OK)
		block_release(table->mem, block);
	return status;
}

struct entry {
	size_t shared, unshared, value_len;
	const unsigned char *key; /* the unshared part; the value follows */
};

/* Decodes the entry at `offset`, which is checked to lie inside the block. */
static bool entry_decode(const struct sstable_block *block, size_t offset, struct entry *entry)
{
	const unsigned char *at = block->bytes + offset, *end = block->bytes + block->end;
	uint64_t shared, unshared, value_len;

	if (offset >= block->end || !read_varint(&at, end, &shared) ||
	    !read_varint(&at, end, &unshared) || !read_varint(&at, end, &value_len))
		return false;
	if (shared > UINT32_MAX || unshared > (size_t)(end - at) ||
	    value_len > (size_t)(end - at) - unshared)
		return false;
	*entry = (struct entry){ (size_t)shared, (size_t)unshared, (size_t)value_len, at };
	return true;
}

static void cursor_start(struct sstable_cursor *cursor, const struct sstable_block *block,
			 size_t offset)
{
	cursor->block = block;
	cursor->next = offset;
	cursor->key_len = 0;
	cursor->valid = false;
}

static ow_status cursor_damaged(struct sstable_cursor *cursor, struct ow_error *err)
{
	cursor->next = cursor->block->end;
	return damaged(err, cursor->block->offset, "bad entry in block");
}

/* To the next entry; !valid at the end of the block. */
static ow_status cursor_next(struct sstable_cursor *cursor, struct mem *mem, struct ow_error *err)
{
	const struct sstable_block *block = cursor->block;
	struct entry entry;

	cursor->valid = false;
	if (cursor->next >= block->end)
		return OW_OK;
	if (!entry_decode(block, cursor->next, &entry) || entry.shared > cursor->key_len)
		return cursor_damaged(cursor, err);
	if (!vec_reserve(mem, cursor->key, cursor->key_cap, entry.shared + entry.unshared + 1))
		return error_no_memory(err);
	memcpy(cursor->key + entry.shared, entry.key, entry.unshared);
	cursor->key_len = entry.shared + entry.unshared;
	cursor->value = str_make(entry.key + entry.unshared, entry.value_len);
	cursor->next = (size_t)(entry.key - block->bytes) + entry.unshared + entry.value_len;
	cursor->valid = true;
	return OW_OK;
}

static size_t restart_offset(const struct sstable_block *block, uint32_t i)
{
	return pb_load32(block->bytes + block->end + (size_t)i * 4);
}

/* To the first entry whose key is not less than `key`: by halves over the restart points, which
 * hold whole keys, then entry by entry. */
static ow_status cursor_seek(struct sstable_cursor *cursor, struct mem *mem, struct str key,
			     struct ow_error *err)
{
	const struct sstable_block *block = cursor->block;
	uint32_t low = 0, high = block->restarts;

	cursor_start(cursor, block, block->end);
	if (!block->restarts)
		return OW_OK;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		struct entry entry;

		if (!entry_decode(block, restart_offset(block, mid), &entry) || entry.shared)
			return cursor_damaged(cursor, err);
		if (str_cmp(str_make(entry.key, entry.unshared), key) < 0)
			low = mid;
		else
			high = mid;
	}
	cursor_start(cursor, block, restart_offset(block, low));
	do {
		OW_TRY(cursor_next(cursor, mem, err));
	} while (cursor->valid && str_cmp(str_make(cursor->key, cursor->key_len), key) < 0);
	return OW_OK;
}

ow_status sstable_open(struct sstable *table, struct mem *mem, const struct input *in,
		       struct ow_error *err)
{
	unsigned char footer[FOOTER_BYTES];
	const unsigned char *at = footer;
	struct handle metaindex, index;

	*table = (struct sstable){ .mem = mem, .in = in };
	if (in->size < FOOTER_BYTES)
		return damaged(err, 0, "file is too short to be an sstable");
	OW_TRY(input_read_at(in, in->size - FOOTER_BYTES, footer, FOOTER_BYTES, err));
	if (memcmp(footer + HANDLES_BYTES, magic, sizeof(magic)) != 0)
		return damaged(err, in->size - sizeof(magic), "not an sstable (bad magic number)");
	if (!read_handle(&at, footer + HANDLES_BYTES, &metaindex) ||
	    !read_handle(&at, footer + HANDLES_BYTES, &index))
		return damaged(err, in->size - FOOTER_BYTES, "bad block handle");
	return block_read(table, index, &table->index, err);
}

void sstable_close(struct sstable *table)
{
	block_release(table->mem, &table->index);
}

void sstable_iter_init(struct sstable_iter *it, const struct sstable *table)
{
	*it = (struct sstable_iter){ .table = table };
	cursor_start(&it->at_index, &table->index, table->index.end);
	cursor_start(&it->at_data, &it->data, 0);
}

void sstable_iter_release(struct sstable_iter *it)
{
	struct mem *mem = it->table->mem;

	mem_free(mem, it->at_index.key, it->at_index.key_cap);
	mem_free(mem, it->at_data.key, it->at_data.key_cap);
	block_release(mem, &it->data);
	sstable_iter_init(it, it->table);
}

/* Loads the block that the index points to. Blocks lie in the order of the index and do not
 * overlap; `behind_last` asks for that, so that a walk never takes longer than the table's size. */
static ow_status load_data(struct sstable_iter *it, bool behind_last, struct ow_error *err)
{
	const unsigned char *at = (const unsigned char *)it->at_index.value.ptr;
	struct mem *mem = it->table->mem;
	struct handle handle;

	if (!read_handle(&at, at + it->at_index.value.len, &handle) ||
	    (behind_last && handle.offset < it->data_end)) {
		block_release(mem, &it->data);
		return damaged(err, it->table->index.offset, "bad block handle");
	}
	if (handle.offset < it->table->in->size && handle.size < it->table->in->size)
		it->data_end = handle.offset + handle.size + TRAILER_BYTES;
	if (it->data.bytes && it->data.offset == handle.offset)
		return OW_OK;
	block_release(mem, &it->data);
	return block_read(it->table, handle, &it->data, err);
}

static void publish(struct sstable_iter *it)
{
	it->valid = it->at_data.valid;
	it->key = str_make(it->at_data.key, it->at_data.key_len);
	it->value = it->at_data.value;
}

ow_status sstable_next(struct sstable_iter *it, struct ow_error *err)
{
	struct mem *mem = it->table->mem;

	it->valid = false;
	OW_TRY(cursor_next(&it->at_data, mem, err));
	while (!it->at_data.valid) {
		/* An empty or finished block: on to the next one that has entries. */
		OW_TRY(cursor_next(&it->at_index, mem, err));
		if (!it->at_index.valid)
			return OW_OK;
		cursor_start(&it->at_data, &it->data, it->data.end);
		OW_TRY(load_data(it, true, err));
		cursor_start(&it->at_data, &it->data, 0);
		OW_TRY(cursor_next(&it->at_data, mem, err));
	}
	publish(it);
	return OW_OK;
}

ow_status sstable_first(struct sstable_iter *it, struct ow_error *err)
{
	cursor_start(&it->at_index, &it->table->index, 0);
	cursor_start(&it->at_data, &it->data, it->data.end);
	it->data_end = 0;
	return sstable_next(it, err);
}

ow_status sstable_seek(struct sstable_iter *it, struct str key, struct ow_error *err)
{
	struct mem *mem = it->table->mem;

	it->valid = false;
	cursor_start(&it->at_data, &it->data, it->data.end);
	OW_TRY(cursor_seek(&it->at_index, mem, key, err));
	if (!it->at_index.valid)
		return OW_OK;
	OW_TRY(load_data(it, false, err));
	cursor_start(&it->at_data, &it->data, it->data.end);
	OW_TRY(cursor_seek(&it->at_data, mem, key, err));
	if (!it->at_data.valid)
		return sstable_next(it, err);
	publish(it);
	return OW_OK;
}

ow_status sstable_find(struct sstable_iter *it, struct str key, struct ow_error *err)
{
	OW_TRY(sstable_seek(it, key, err));
	if (it->valid && !str_eq(it->key, key))
		it->valid = false;
	return OW_OK;
}

/* Snappy blocks: the unpacked length as a varint, then elements. The low two bits of an element's tag byte say
 * literal (0) or copy with an offset of 1, 2 or 4 bytes. */

/* The densest element is a copy: 64 bytes out of 3. */
#define MAX_RATIO 22

struct cursor {
	const unsigned char *at, *end;
};

static bool read_length(struct cursor *in, uint32_t *len)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		if (in->at == in->end)
			return false;
		value |= (uint64_t)(*in->at & 0x7f) << shift;
		if (!(*in->at++ & 0x80)) {
			*len = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

bool snappy_block_length(struct str packed, size_t *len)
{
	struct cursor in = { (const unsigned char *)packed.ptr,
			     (const unsigned char *)packed.ptr + packed.len };
	uint32_t stated;

	if (!read_length(&in, &stated) || stated / MAX_RATIO > packed.len)
		return false;
	*len = stated;
	return true;
}

/* A little-endian number of 1 to 4 bytes. */
static bool read_number(struct cursor *in, unsigned bytes, uint32_t *value)
{
	*value = 0;
	if ((size_t)(in->end - in->at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		*value |= (uint32_t)*in->at++ << (8 * i);
	return true;
}

static bool read_literal(struct cursor *in, unsigned tag, unsigned char *to, size_t room,
			 size_t *len)
{
	uint32_t size = tag >> 2;

	if (size >= 60 && !read_number(in, size - 59, &size))
		return false;
	*len = (size_t)size + 1;
	if (*len > room || *len > (size_t)(in->end - in->at))
		return false;
	memcpy(to, in->at, *len);
	in->at += *len;
	return true;
}

/* Copies bytes; source and destination may overlap: "a" and a copy of length 5 at offset 1 make "aaaaaa". */
static bool read_copy(struct cursor *in, unsigned tag, unsigned char *to, size_t done, size_t room,
		      size_t *len)
{
	unsigned kind = tag & 3;
	uint32_t offset;

	if (!read_number(in, kind == 3 ? 4 : kind, &offset))
		return false;
	*len = kind == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
	if (kind == 1)
		offset |= (tag >> 5) << 8;
	if (offset == 0 || offset > done || *len > room)
		return false;
	if (offset >= *len) {
		memcpy(to, to - offset, *len);
		return true;
	}
	for (size_t i = 0; i < *len; i++)
		to[i] = *(to + i - offset);
	return true;
}

bool snappy_block_unpack(struct str packed, void *to, size_t len)
{
	struct cursor in = { (const unsigned char *)packed.ptr,
			     (const unsigned char *)packed.ptr + packed.len };
	unsigned char *out = to;
	size_t done = 0, step;
	uint32_t stated;

	if (!read_length(&in, &stated) || stated != len)
		return false;
	while (in.at < in.end) {
		unsigned tag = *in.at++;
		bool ok = tag & 3 ? read_copy(&in, tag, out + done, done, len - done, &step)
				  : read_literal(&in, tag, out + done, len - done, &step);

		if (!ok)
			return false;
		done += step;
	}
	return done == len;
}
