/* live_blocks.c: see live_blocks.h. */
#include "live/live_blocks.h"

#include "wire/crc32c.h"

#define BLOCK_MAX ((uint64_t)1 << 30)

static const char *const names[LIVE_BLOCKS] = {
	[LIVE_BLOCK_SESSION] = "session", [LIVE_BLOCK_PROCESS] = "process",
	[LIVE_BLOCK_TEXT] = "text",	  [LIVE_BLOCK_PLACE] = "place",
	[LIVE_BLOCK_RUN] = "run",	  [LIVE_BLOCK_RECORD] = "record",
	[LIVE_BLOCK_COUNT] = "count",	  [LIVE_BLOCK_END] = "end",
	[LIVE_BLOCK_FRAME] = "frame",	  [LIVE_BLOCK_STACK] = "stack",
	[LIVE_BLOCK_SAMPLE] = "sample",
};

void live_blocks_init(struct live_blocks *b, struct mem *mem)
{
	*b = (struct live_blocks){ 0 };
	buf_init(&b->bytes, mem);
}

void live_blocks_release(struct live_blocks *b)
{
	buf_release(&b->bytes);
}

static const struct opw_block *find(const struct opw_segment *s, const char *name)
{
	for (uint32_t i = 0; i < s->head.block_count; i++)
		if (strcmp(s->blocks[i].name, name) == 0 && s->blocks[i].size <= BLOCK_MAX)
			return &s->blocks[i];
	return NULL;
}

ow_status live_blocks_read(struct live_blocks *b, const struct input *in,
			   const struct opw_segment *segment, unsigned wanted, struct error *err)
{
	const struct opw_block *found[LIVE_BLOCKS] = { 0 };
	size_t total = 0, at = 0;

	buf_clear(&b->bytes);
	for (size_t i = 0; i < LIVE_BLOCKS; i++) {
		b->all[i] = (struct str){ "", 0 };
		found[i] = wanted & 1u << i ? find(segment, names[i]) : NULL;
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
		if (!(wanted & 1u << i) || strncmp(block->name, names[i], sizeof(block->name)) != 0)
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
