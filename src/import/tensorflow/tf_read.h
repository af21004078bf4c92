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
 * load fails with OW_E_CORRUPT. Otherwise what could be read is used and a note says where reading
 * stopped; a load fails only when nothing was usable.
 */
#ifndef IMPORT_TF_READ_H
#define IMPORT_TF_READ_H

#include "import/importer.h"
#include "wire/pb_stream.h"

#define TF_ATTR_CASES 10 /* the value of an AttrValue is one of its fields 1 to 10 */
#define TF_CACHE 64	 /* a power of two */

/* The last text seen in a place and its id. The bytes are the model's own copy. */
struct tf_word {
	struct str text;
	str_id id;
};

struct tf_read {
	struct import_ctx *ctx;
	struct builder *b;
	const char *what; /* name of the message, for texts */
	struct window window;
	struct pb_stream stream;
	struct error problem;	  /* of the window and the stream */
	bool nested;		  /* a part of a file, not all of it */
	bool cut;		  /* the last field goes beyond the data */
	uint64_t damaged;	  /* records left out because of damage inside */
	uint64_t bad_text;	  /* strings that are not UTF-8 */
	uint64_t bad_text_offset; /* near the first */
	uint64_t record;	  /* offset of the record being read */
	struct tf_word words[TF_CACHE];
	struct {
		strset_id set, with;
		str_id member;
	} sets[TF_CACHE];
};

/* Reads bytes [begin, end) of ctx->in. Always paired with tf_read_end. */
void tf_read_begin(struct tf_read *r, struct import_ctx *ctx, const char *what, uint64_t begin,
		   uint64_t end);
/* The status of the load, with its notes. `usable`: something worth keeping was found. */
ow_status tf_read_end(struct tf_read *r, bool usable);

/* Next field at the current depth; remembers cuts. False at the end or after a failure, that of the
 * builder included. */
static inline bool tf_next(struct tf_read *r, struct pb_stream_field *f)
{
	if (OW_UNLIKELY(r->b->status != OW_OK) || !pb_stream_next(&r->stream, f))
		return false;
	r->record = f->start;
	r->cut |= f->cut;
	return true;
}

/* Counts a record with damage inside, as reported by its reader. */
void tf_damaged(struct tf_read *r, const struct pb_stream_field *f, const struct pb *record,
		const uint8_t *bytes);
/* The same for a record that begins at `bytes`, `offset` bytes into the input. */
void tf_damaged_at(struct tf_read *r, uint64_t offset, const struct pb *record,
		   const uint8_t *bytes);

/*
 * The fields of the current message that are whole in the window, without a call into the stream for
 * each:
 *
 *	do
 *		for (bulk = tf_bulk(&r); tf_bulk_next(&bulk, &f, &offset);)
 *			…
 *	while (tf_bulk_end(&r, &bulk) && tf_next(&r, &field) && …)
 *
 * What is left for tf_next is the field at the edge of the window, and every problem.
 */
struct tf_bulk {
	struct pb pb;
	const uint8_t *start;
	uint64_t base; /* offset of start */
};

struct tf_bulk tf_bulk(const struct tf_read *r);
/* `offset` is that of the field's content. */
static inline bool tf_bulk_next(struct tf_bulk *bulk, struct pb_field *f, uint64_t *offset)
{
	if (!pb_next(&bulk->pb, f))
		return false;
	*offset = bulk->base + (uint64_t)(f->ptr - bulk->start);
	return true;
}
/* Goes on behind what was read. False after a failure of the builder. */
bool tf_bulk_end(struct tf_read *r, const struct tf_bulk *bulk);

/* Equality of short texts without a call. */
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
str_id tf_text_hashed(struct tf_read *r, struct str text, uint64_t hash); /* str_hash of it */
/* The same for texts with few distinct values: compares with recent ones before hashing. */
str_id tf_word(struct tf_read *r, struct str text);
/* The set with one more member, remembered. */
strset_id tf_set_add(struct tf_read *r, strset_id set, str_id member);

/* Whether, with `read` bytes behind us, it is time to ask for room: after the first megabyte, and whenever what was asked
 * for then may be used up. Never for more than TF_AHEAD times of what was read: what comes may be quite different, the
 * data of one constant, and names are spread over all the room they have. */
#define TF_SAMPLE_BYTES ((uint64_t)1 << 20)
#define TF_AHEAD 128
static inline bool tf_time_to_reserve(uint64_t *next, uint64_t read)
{
	if (OW_LIKELY(read < MAX(*next, TF_SAMPLE_BYTES)))
		return false;
	*next = read * TF_AHEAD;
	return true;
}
/* Room for the rows of a table still to come, if they are as dense as in the first `read` of `size`
 * bytes, before which the table had `before` rows; of TABLE_op for their names, too. Only a matter of
 * speed: where memory is limited, nothing is asked for. */
void tf_reserve(struct tf_read *r, enum table_id table, uint32_t before, uint64_t read,
		uint64_t size);

/* Memory for the next rows of a table with many, asked for together (base/populate.h), when *asked rows are there; sets
 * *asked to the number at which to ask again. */
void tf_ask_ahead(const struct model *m, enum table_id table, uint32_t *asked);

/* Lowers the model's time unit to microseconds, the unit of all TensorFlow sources. */
void tf_time_unit(struct builder *b);

/* Brings the place of a hash into the cache before it is looked at. */
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

#endif
