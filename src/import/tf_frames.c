/* tf_frames.c: see tf_frames.h. */
#include "import/tf_frames.h"

#include "wire/pb.h"

#define SLOTS_MIN 256

static bool is_short(struct str bytes)
{
	return bytes.len <= TF_SHORT_BYTES;
}

static bool same_key(const struct tf_short_frame *a, const struct tf_short_frame *b)
{
	return a->bytes[0] == b->bytes[0] && a->bytes[1] == b->bytes[1] && a->rest == b->rest;
}

static uint64_t hash_key(const struct tf_short_frame *key)
{
	return map_hash_u64(key->bytes[0] ^ (uint64_t)key->rest << 32, key->bytes[1]);
}

/* Its bytes, zeros behind them, and the size. */
static struct tf_short_frame key_of(struct str bytes, const char *end)
{
	const uint8_t *at = (const uint8_t *)bytes.ptr;
	uint8_t copy[24] = { 0 };
	uint64_t words[3];

	if (OW_UNLIKELY((size_t)(end - bytes.ptr) < sizeof(copy)))
		at = memcpy(copy, bytes.ptr, bytes.len);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		size_t left = bytes.len - MIN(bytes.len, i * 8);

		words[i] = pb_load64(at + i * 8);
		if (left < 8)
			words[i] &= (UINT64_C(1) << left * 8) - 1;
	}
	return (struct tf_short_frame){ .bytes = { words[0], words[1] },
					.rest = (uint32_t)words[2] | (uint32_t)bytes.len << 24 };
}

/* Its slot, or a free one. */
static struct tf_short_frame *slot_of(const struct tf_frames *t, const struct tf_short_frame *key,
				      uint64_t hash)
{
	size_t at = (size_t)hash & t->mask;

	while (t->slots[at].frame.v && !same_key(&t->slots[at], key))
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

static bool resize(struct tf_frames *t, size_t slots)
{
	struct tf_frames old = *t;
	struct tf_short_frame *fresh = mem_zalloc(t->mem, slots * sizeof(*fresh));

	if (!fresh)
		return false;
	t->slots = fresh;
	t->mask = slots - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].frame.v)
			*slot_of(t, &old.slots[i], hash_key(&old.slots[i])) = old.slots[i];
	if (old.slots)
		mem_free(t->mem, old.slots, (old.mask + 1) * sizeof(*old.slots));
	return true;
}

bool tf_frames_init(struct tf_frames *t, struct mem *mem)
{
	*t = (struct tf_frames){ .mem = mem, .long_count = 1 };
	map_init(&t->by_bytes, mem);
	buf_init(&t->long_bytes, mem);
	return resize(t, SLOTS_MIN);
}

void tf_frames_release(struct tf_frames *t)
{
	if (t->slots)
		mem_free(t->mem, t->slots, (t->mask + 1) * sizeof(*t->slots));
	map_release(&t->by_bytes);
	buf_release(&t->long_bytes);
	mem_free(t->mem, t->longs, t->long_cap * sizeof(*t->longs));
}

void tf_frames_prepare(const struct tf_frames *t, struct tf_raw_frame *raw, struct str bytes,
		       const char *end)
{
	raw->bytes = bytes;
	if (!is_short(bytes)) {
		raw->hash = str_hash(bytes);
		return;
	}
	raw->key = key_of(bytes, end);
	raw->hash = hash_key(&raw->key);
	__builtin_prefetch(&t->slots[(size_t)raw->hash & t->mask]);
}

static struct str long_bytes(const struct tf_frames *t, const struct tf_long_frame *frame)
{
	return str_make(t->long_bytes.ptr + frame->offset, frame->size);
}

frame_id tf_frames_find(const struct tf_frames *t, const struct tf_raw_frame *raw)
{
	if (OW_LIKELY(is_short(raw->bytes)))
		return slot_of(t, &raw->key, raw->hash)->frame;
	for (struct map_iter it = map_find(&t->by_bytes, raw->hash); it.value;
	     it = map_next(&t->by_bytes, it))
		if (str_eq(long_bytes(t, &t->longs[it.value]), raw->bytes))
			return t->longs[it.value].frame;
	return (frame_id){ 0 };
}

static bool add_long(struct tf_frames *t, const struct tf_raw_frame *raw, frame_id frame)
{
	struct tf_long_frame fresh = { t->long_bytes.len, raw->bytes.len, frame };
	void *longs = t->longs;

	buf_add_str(&t->long_bytes, raw->bytes);
	if (t->long_bytes.failed || t->long_count > UINT32_MAX ||
	    !mem_grow(t->mem, &longs, &t->long_cap, t->long_count + 1, sizeof(fresh)))
		return false;
	t->longs = longs;
	t->longs[t->long_count] = fresh;
	return map_add(&t->by_bytes, raw->hash, (uint32_t)t->long_count++);
}

bool tf_frames_add(struct tf_frames *t, const struct tf_raw_frame *raw, frame_id frame)
{
	struct tf_short_frame *slot;

	if (!is_short(raw->bytes))
		return add_long(t, raw, frame);
	slot = slot_of(t, &raw->key, raw->hash);
	*slot = raw->key;
	slot->frame = frame;
	t->count++;
	return t->count * 2 <= t->mask || resize(t, 2 * (t->mask + 1));
}
