/*
 * content.c: the hash by which a server recognises that a run was pushed before. It covers the bytes of the files, not
 * their paths. Servers store the hash, so it must never change.
 */
#include "push/push.h"

#include "base/input.h"

#define BLOCK_BYTES (1u << 20)

struct content {
	uint64_t a, b;
};

static uint64_t fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void add_words(struct content *c, uint64_t x, uint64_t y)
{
	c->a = fold(x ^ 0xa0761d6478bd642full, y ^ c->a);
	c->b = fold(y ^ 0xe7037ed1a0b428dbull, x ^ c->b) + c->a;
}

/* Adds a block to the hash; the last 16 bytes of a block whose length is not a multiple of 16 are padded with zeros. */
static void add_bytes(struct content *c, const unsigned char *bytes, size_t len)
{
	uint64_t words[2];

	for (; len >= sizeof(words); bytes += sizeof(words), len -= sizeof(words)) {
		memcpy(words, bytes, sizeof(words));
		add_words(c, words[0], words[1]);
	}
	if (!len)
		return;
	memset(words, 0, sizeof(words));
	memcpy(words, bytes, len);
	add_words(c, words[0], words[1]);
}

static ow_status add_file(struct content *c, struct mem *mem, const char *path,
			  unsigned char *block, struct ow_error *err)
{
	struct input in;
	ow_status status = OW_OK;

	OW_TRY(input_open(&in, mem, path, err));
	for (uint64_t at = 0; at < in.size && status == OW_OK; at += BLOCK_BYTES) {
		size_t len = (size_t)MIN(in.size - at, BLOCK_BYTES);

		status = input_read_at(&in, at, block, len, err);
		if (status == OW_OK)
			add_bytes(c, block, len);
	}
	if (status == OW_OK)
		status = input_check_unchanged(&in, err);
	add_words(c, in.size, 1);
	input_close(&in);
	return status;
}

static ow_status add_files(struct content *c, struct mem *mem, const struct path_list *list,
			   struct ow_error *err)
{
	unsigned char *block = mem_alloc(mem, BLOCK_BYTES);
	ow_status status = block ? OW_OK : error_no_memory(err);

	for (size_t i = 0; i < list->count && status == OW_OK; i++) {
		status = add_file(c, mem, list->items[i].name, block, err);
		/* Files that were found in a directory need not be readable. */
		if (list->items[i].found && (status == OW_E_PERMISSION || status == OW_E_EMPTY)) {
			error_clear(err);
			status = OW_OK;
		}
	}
	mem_free(mem, block, BLOCK_BYTES);
	return status;
}

ow_status content_hash(const struct path_list *list, struct mem *mem, char hex[CONTENT_HEX + 1],
		       struct ow_error *err)
{
	struct content c = { 0x2d358dccaa6c78a5ull, 0x8bb84b93962eacc9ull };
	ow_status status = add_files(&c, mem, list, err);

	snprintf(hex, CONTENT_HEX + 1, "%016" PRIx64 "%016" PRIx64,
		 fold(c.a ^ c.b, 0x9e3779b97f4a7c15ull), fold(c.b, c.a ^ 0xd6e8feb86659fd93ull));
	return status;
}
