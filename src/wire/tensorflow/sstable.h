/*
 * sstable.h: reads LevelDB-style sorted tables, the container of TensorFlow checkpoints: sorted
 * (key, value) pairs in blocks with a CRC each, found through an index block. Blocks may be raw or
 * snappy-packed. Knows nothing of what the values mean, and does not write.
 *
 *	sstable_open(&table, mem, &input, err);
 *	sstable_iter_init(&it, &table);
 *	for (status = sstable_first(&it, err); it.valid; status = sstable_next(&it, err))
 *		use it.key, it.value
 *
 * Damage is OW_E_CORRUPT with exactly TensorFlow's text ("block checksum mismatch", …); err->offset
 * is the place. An open table is read-only: several iterators may use it from several threads.
 */
#ifndef WIRE_SSTABLE_H
#define WIRE_SSTABLE_H

#include "base/error.h"
#include "base/input.h"

/* One block, unpacked. */
struct sstable_block {
	unsigned char *bytes;
	size_t cap;
	uint64_t offset; /* of the block in the file, for messages */
	size_t end;	 /* end of the entries; the restart offsets follow */
	uint32_t restarts;
};

struct sstable {
	struct mem *mem;
	const struct input *in;
	struct sstable_block index;
};

/* A place in a block. */
struct sstable_cursor {
	const struct sstable_block *block;
	size_t next; /* offset of the entry after the current one */
	char *key;
	size_t key_len, key_cap;
	struct str value;
	bool valid;
};

struct sstable_iter {
	const struct sstable *table;
	struct sstable_cursor at_index, at_data;
	struct sstable_block data;
	uint64_t data_end; /* where the last data block that was tried ends in the file */
	bool valid;
	struct str key, value; /* of the current pair, until the iterator moves */
};

/* The input must outlive the table. */
ow_status sstable_open(struct sstable *table, struct mem *mem, const struct input *in,
		       struct ow_error *err);
void sstable_close(struct sstable *table);

void sstable_iter_init(struct sstable_iter *it, const struct sstable *table);
void sstable_iter_release(struct sstable_iter *it);

/* Each leaves the iterator on a pair, or with !valid at the end or on a failure. After a failure
 * that is OW_E_CORRUPT, sstable_next goes on with the next block, so that a reader may count the
 * damage and take the rest; the end is then reported as OW_OK with !valid. */
ow_status sstable_first(struct sstable_iter *it, struct ow_error *err);
ow_status sstable_next(struct sstable_iter *it, struct ow_error *err);
/* To the first key that is not less than `key`. */
ow_status sstable_seek(struct sstable_iter *it, struct str key, struct ow_error *err);
/* Moves to exactly `key`: !valid with OW_OK when the table does not have the key. */
ow_status sstable_find(struct sstable_iter *it, struct str key, struct ow_error *err);

/* Snappy's block format, in which blocks may be packed. The unpacked size that the block states; false when it states
 * none, or one that no block of this length can have. It is then safe to allocate. */
bool snappy_block_length(struct str packed, size_t *len) OW_MUST_CHECK;
/* Unpacks into exactly `len` bytes; false when the block is damaged or has another size. */
bool snappy_block_unpack(struct str packed, void *to, size_t len) OW_MUST_CHECK;

#endif
