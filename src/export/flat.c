/* flat.c: see flat.h. Numbers are little-endian, as FlatBuffers and the machines that opwatch runs on. */
#include "export/flat.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

void flat_init(struct flat *f, struct mem *mem)
{
	*f = (struct flat){ .mem = mem };
}

void flat_release(struct flat *f)
{
	mem_free(f->mem, f->ptr, f->cap);
	*f = (struct flat){ .mem = f->mem };
}

void flat_clear(struct flat *f)
{
	f->len = 0;
}

/* Room for `size` bytes before what is there; NULL when there is none. */
static unsigned char *grow(struct flat *f, size_t size)
{
	size_t cap = f->cap;
	unsigned char *ptr;

	if (f->failed)
		return NULL;
	if (f->len + size > cap) {
		cap = MAX(cap * 2, f->len + size + 1024);
		ptr = mem_alloc(f->mem, cap);
		if (!ptr) {
			f->failed = true;
			return NULL;
		}
		if (f->len)
			memcpy(ptr + cap - f->len, f->ptr + f->cap - f->len, f->len);
		mem_free(f->mem, f->ptr, f->cap);
		f->ptr = ptr;
		f->cap = cap;
	}
	f->len += size;
	return f->ptr + f->cap - f->len;
}

static void put(struct flat *f, const void *bytes, size_t size)
{
	unsigned char *to = grow(f, size);

	if (to && size)
		memcpy(to, bytes, size);
}

/* Zeros, so that after `size` more bytes the length is a multiple of `align`. */
static void pad(struct flat *f, size_t size, size_t align)
{
	size_t more = (align - (f->len + size) % align) % align;
	unsigned char *to = grow(f, more);

	if (to)
		memset(to, 0, more);
}

static uint32_t here(const struct flat *f)
{
	return (uint32_t)f->len;
}

/* A reference is the distance from itself to what it refers to. */
static void put_ref(struct flat *f, uint32_t place)
{
	uint32_t distance = here(f) + (uint32_t)sizeof(place) - place;

	put(f, &distance, sizeof(distance));
}

static uint32_t put_count(struct flat *f, size_t count)
{
	uint32_t n = (uint32_t)count;

	put(f, &n, sizeof(n));
	return here(f);
}

uint32_t flat_string(struct flat *f, struct str text)
{
	pad(f, text.len + 1, sizeof(uint32_t));
	put(f, "", 1);
	put(f, text.ptr, text.len);
	return put_count(f, text.len);
}

uint32_t flat_refs(struct flat *f, const uint32_t *places, size_t count)
{
	pad(f, 0, sizeof(uint32_t));
	for (size_t i = count; i-- > 0;)
		put_ref(f, places[i]);
	return put_count(f, count);
}

uint32_t flat_structs(struct flat *f, const void *bytes, size_t size, size_t count)
{
	pad(f, size * count, sizeof(uint64_t));
	put(f, bytes, size * count);
	return put_count(f, count);
}

void flat_table_begin(struct flat *f)
{
	memset(f->slots, 0, sizeof(f->slots));
	f->table = f->len;
}

static void field(struct flat *f, unsigned slot, const void *value, size_t size)
{
	OW_ASSERT(slot < FLAT_SLOTS);
	pad(f, size, size);
	put(f, value, size);
	f->slots[slot] = here(f);
}

void flat_u8(struct flat *f, unsigned slot, uint8_t value)
{
	field(f, slot, &value, sizeof(value));
}

void flat_i16(struct flat *f, unsigned slot, int16_t value)
{
	field(f, slot, &value, sizeof(value));
}

void flat_i32(struct flat *f, unsigned slot, int32_t value)
{
	field(f, slot, &value, sizeof(value));
}

void flat_i64(struct flat *f, unsigned slot, int64_t value)
{
	field(f, slot, &value, sizeof(value));
}

void flat_ref(struct flat *f, unsigned slot, uint32_t place)
{
	pad(f, sizeof(place), sizeof(place));
	put_ref(f, place);
	f->slots[slot] = here(f);
}

/* A table begins with the distance to its vtable, which lies before it and says where the fields are. */
uint32_t flat_table_end(struct flat *f)
{
	uint16_t vtable[2 + FLAT_SLOTS], count = FLAT_SLOTS, size;
	uint32_t table;
	int32_t distance;

	pad(f, sizeof(distance), sizeof(distance));
	put(f, "\0\0\0", sizeof(distance));
	table = here(f);
	while (count && !f->slots[count - 1])
		count--;
	size = (uint16_t)((2 + count) * sizeof(vtable[0]));
	vtable[0] = size;
	vtable[1] = (uint16_t)(table - f->table);
	for (unsigned i = 0; i < count; i++)
		vtable[2 + i] = f->slots[i] ? (uint16_t)(table - f->slots[i]) : 0;
	pad(f, size, sizeof(vtable[0]));
	put(f, vtable, size);
	distance = (int32_t)(here(f) - table);
	if (!f->failed)
		memcpy(f->ptr + f->cap - table, &distance, sizeof(distance));
	return table;
}

struct str flat_finish(struct flat *f, uint32_t root)
{
	pad(f, sizeof(root), sizeof(uint64_t));
	put_ref(f, root);
	if (f->failed)
		return (struct str){ 0 };
	return str_make(f->ptr + f->cap - f->len, f->len);
}
