/*
 * tf_read.h: what all readers of TensorFlow's messages share: walking a message of any size, the one
 * rule for damaged input, and interning of texts with short memories for the few that come again and
 * again (op types, devices, allocators).
 *
 *	tf_read_begin(&r, ctx, "GraphDef", 0, ctx->in->size);
 *	while (pb_stream_next(&r.stream, &f)) …
 *	return tf_read_end(&r, nodes > 0);
 *
 * The rule: with options->strict_proto a message that does not parse to its end is not used and the
 * load fails with OW_E_CORRUPT. Otherwise the readable part is used and a note says where reading
 * stopped; a load fails only when nothing was usable.
 */
#ifndef IMPORT_TF_READ_H
#define IMPORT_TF_READ_H

#include "import/importer.h"
#include "wire/protobuf/pb_stream.h"

#define TF_ATTR_CASES 10 /* the value of an AttrValue is one of its fields 1 to 10 */
#define TF_CACHE 64	 /* a power of two */

/* The last text seen in a slot and its id. The bytes are the model's own copy. */
struct tf_word {
	struct str text;
	str_id id;
};

struct tf_read {
	struct import_ctx *ctx;
	struct builder *b;
	const char *what; /* name of the message, for error texts */
	struct window window;
	struct pb_stream stream;
	struct ow_error problem;  /* error of the window and the stream */
	bool nested;		  /* the message is a part of a file */
	uint64_t damaged;	  /* number of records left out because of damage inside */
	uint64_t bad_text;	  /* number of strings that are not UTF-8 */
	uint64_t bad_text_offset; /* offset near the first of them */
	uint64_t record;	  /* offset of the current record */
	struct tf_word words[TF_CACHE];
	struct {
		strset_id set, with;
		str_id member;
	} sets[TF_CACHE];
};

/* Reads bytes [begin, end) of ctx->in. The caller always calls tf_read_end afterwards. */
void tf_read_begin(struct tf_read *r, struct import_ctx *ctx, const char *what, uint64_t begin,
		   uint64_t end);
/* The status of the load; adds notes. `usable`: something worth keeping was found. */
ow_status tf_read_end(struct tf_read *r, bool usable);

/* Reads the next field at the current depth. False at the end or after a failure, including one of the builder. */
static inline bool tf_next(struct tf_read *r, struct pb_stream_field *f)
{
	if (OW_UNLIKELY(r->b->status != OW_OK) || !pb_stream_next(&r->stream, f))
		return false;
	r->record = f->start;
	return true;
}

/* Counts a damaged record, as reported by its reader. */
void tf_damaged(struct tf_read *r, const struct pb_stream_field *f, const struct pb *record,
		const uint8_t *bytes);
/* Counts a damaged record that begins at `bytes`, `offset` bytes into the input. */
void tf_damaged_at(struct tf_read *r, uint64_t offset, const struct pb *record,
		   const uint8_t *bytes);

/* Equality of short texts without a function call. */
static inline bool tf_same(struct str a, struct str b)
{
	uint64_t x, y, z, w;

	if (a.len != b.len)
		return false;
	if (a.len > 16 || a.len < 8)
		return str_eq(a, b);
	memcpy(&x, a.ptr, 8);
	memcpy(&y, b.ptr, 8);
	memcpy(&z, a.ptr + a.len - 8, 8);
	memcpy(&w, b.ptr + b.len - 8, 8);
	return x == y && z == w;
}

/* Interns a proto `string`. Bytes that are not UTF-8 are replaced, and counted for tf_read_end. */
str_id tf_text(struct tf_read *r, struct str text);
/* hash: str_hash of the text */
str_id tf_text_hashed(struct tf_read *r, struct str text, uint64_t hash);
/* Interns a text that has few distinct values: compares it with recent ones before hashing. */
str_id tf_word(struct tf_read *r, struct str text);
/* Adds a member to a set of strings, with a cache. */
strset_id tf_set_add(struct tf_read *r, strset_id set, str_id member);

/* Whether, after `read` bytes, it is time to reserve room: after the first megabyte, and whenever the reserved room may
 * be used up. Never for more than TF_AHEAD times what was read: the rest may be quite different, such as the data of
 * one constant, and names are spread over all reserved room.
 */
#define TF_SAMPLE_BYTES ((uint64_t)1 << 20)
#define TF_AHEAD 128
static inline bool tf_time_to_reserve(uint64_t *next, uint64_t read)
{
	if (OW_LIKELY(read < MAX(*next, TF_SAMPLE_BYTES)))
		return false;
	*next = read * TF_AHEAD;
	return true;
}
/* Reserves room for further rows of a table, assuming that they are as dense as in the first `read` of `size` bytes,
 * before which the table had `before` rows; for TABLE_op also for names. It only affects speed: with a memory limit,
 * nothing is reserved.
 */
void tf_reserve(struct tf_read *r, enum table_id table, uint32_t before, uint64_t read,
		uint64_t size);

/* Prefaults memory for the next rows of a large table (base/prefault.h), when it has *asked rows; sets *asked to the
 * number at which to prefault again. */
void tf_prefault_rows(const struct model *m, enum table_id table, uint32_t *asked);

/* Lowers the model's time unit to microseconds, the unit of all TensorFlow sources. */
void tf_time_unit(struct builder *b);

/* Prefetches the slot of a hash before it is looked up. */
static inline void tf_prefetch(const struct map *map, uint64_t hash)
{
	if (map->slots)
		__builtin_prefetch(&map->slots[(size_t)(hash >> 32) & map->mask]);
}

/* Value of a proto int32 read as a varint. */
static inline int32_t tf_int32(uint64_t value)
{
	return (int32_t)(uint32_t)value;
}

/* Counts or sums for each text, for the facts about a source: nodes per op type, time per node. */

struct tf_tally_item {
	str_id text;
	int64_t value;
};

struct tf_tally {
	struct builder *b;
	struct map map;
	struct tf_tally_item *items; /* index 0 is unused */
	size_t count, cap;
	size_t last; /* index of the item used last */
};

void tf_tally_init(struct tf_tally *t, struct builder *b);
void tf_tally_release(struct tf_tally *t);

/* If memory runs out, the builder reports it. */
void tf_tally_slow(struct tf_tally *t, str_id text, int64_t value);
static inline void tf_tally_add(struct tf_tally *t, str_id text, int64_t value)
{
	struct tf_tally_item *last = t->last ? &t->items[t->last] : NULL;

	if (last && last->text.v == text.v)
		last->value = wrap_add(last->value, value);
	else
		tf_tally_slow(t, text, value);
}

/* Number of distinct texts. */
static inline size_t tf_tally_count(const struct tf_tally *t)
{
	return t->count ? t->count - 1 : 0;
}

/* Sorts the items: largest values first, equal ones by name. Afterwards no more may be added. */
void tf_tally_sort(struct tf_tally *t);
/* Adds facts: a list of [text, value] pairs of the first `limit` items, or an object of all. Sorts first. */
void tf_tally_list(struct tf_tally *t, fact_id parent, const char *key, size_t limit);
void tf_tally_object(struct tf_tally *t, fact_id parent, const char *key, size_t limit);

/* The `want` largest values of an array, largest first, equal ones by name. */
struct tf_top {
	struct tf_tally_item items[8];
	size_t count, want;
};

void tf_top_add(struct tf_top *top, const struct model *m, str_id text, int64_t value);
void tf_top_list(const struct tf_top *top, struct builder *b, fact_id parent, const char *key);

#endif
