/*
 * checkpoint_bundle.c: the second kind of checkpoints (V2), tensor bundles, for checkpoint.c. The index is a table: key ""
 * holds the header, the others name a variable, or a slice of a partitioned one by an encoded key.
 * The values lie in data files as plain bytes.
 */
#include "wire/tensorflow/checkpoint_kinds.h"
#include "wire/container/crc32c.h"

#include <byteswap.h>

#define NAME_MAX_BYTES ((size_t)16 << 10)

/* BundleHeaderProto { num_shards #1, endianness #2, version #3 } */
static bool header_parse(struct checkpoint *c, struct str value, struct versions *versions)
{
	struct pb message = pb_over(value.ptr, value.len);
	struct pb_field f;

	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			c->shard_count = (int32_t)f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			c->big_endian = f.value == 1;
			break;
		case PB_TAG(3, PB_BYTES):
			if (!versions_parse(pb_message(&f), versions))
				return false;
			break;
		}
	}
	return !message.problem;
}

/* BundleEntryProto { dtype #1, shape #2, shard_id #3, offset #4, size #5, crc32c #6, slices #7 } */
static bool entry_parse(struct checkpoint *c, struct checkpoint_var *var, struct str value,
			bool *no_memory)
{
	struct pb message = pb_over(value.ptr, value.len);
	struct pb_field f;

	var->elements = 1; /* an absent shape is a scalar's */
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			var->dtype = (int32_t)f.value;
			break;
		case PB_TAG(2, PB_BYTES):
			if (!shape_parse(&c->arena, pb_message(&f), var, no_memory))
				return false;
			break;
		case PB_TAG(3, PB_VARINT):
			var->shard = (int32_t)f.value;
			break;
		case PB_TAG(4, PB_VARINT):
			var->offset = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			var->size = (int64_t)f.value;
			break;
		case PB_TAG(6, PB_FIXED32):
			var->crc = (uint32_t)f.value;
			break;
		case PB_TAG(7, PB_BYTES):
			var->slice_count++;
			break;
		}
	}
	return !message.problem;
}

/* Adds the variable of one pair. A name may share bytes with the one before, so a small table can
 * spell out long names many times over: hence the limit. */
static ow_status add_entry(struct checkpoint *c, const struct sstable_iter *it,
			   struct ow_error *err)
{
	struct checkpoint_var *var, parsed = { 0 };
	bool no_memory = false;
	struct str record = { 0 };

	if (it->key.len > NAME_MAX_BYTES || !entry_parse(c, &parsed, it->value, &no_memory)) {
		if (no_memory)
			return error_no_memory(err);
		checkpoint_count_damage(c, it->data.offset);
		return OW_OK;
	}
	var = checkpoint_add(c, it->key);
	if (var && (parsed.slice_count || parsed.rank < 0)) {
		record = arena_str(&c->arena, it->value);
		if (!record.ptr)
			return error_no_memory(err);
	}
	if (!var)
		return error_no_memory(err);
	parsed.name = var->name;
	parsed.record = record;
	parsed.bytes = parsed.slice_count || parsed.size < 0 ? 0 : (uint64_t)parsed.size;
	*var = parsed;
	return OW_OK;
}

static ow_status read_header(struct checkpoint *c, struct sstable_iter *it, const char *filename,
			     struct ow_error *err)
{
	static const char text[] =
		"Unable to read file (%s). Perhaps the file is corrupt or was produced "
		"by a newer version of TensorFlow with format changes (%s)%s%s";
	struct versions versions = { 0 };
	struct ow_error inner = { 0 };
	ow_status status = sstable_first(it, &inner);

	if (status == OW_E_CORRUPT) {
		checkpoint_fail(&c->code, "Data loss", err, status, text, filename,
				"failed to seek to header entry", ": ", inner.text);
		if (err)
			err->offset = inner.offset;
		return status;
	}
	if (status != OW_OK)
		return error_set(err, status, "%s", inner.text);
	if (!it->valid || it->key.len)
		return checkpoint_fail(&c->code, "Internal", err, OW_E_FORMAT, text, filename,
				       "failed to seek to header entry", "", "");
	if (!header_parse(c, it->value, &versions))
		return checkpoint_fail(&c->code, "Data loss", err, OW_E_CORRUPT, text, filename,
				       "unable to parse header", ": ",
				       "Entry for key  not parseable.");
	return versions_check(&versions, &c->code, err);
}

/* Walks through the slices that a bundle's entry of a partitioned variable lists. */
struct slices {
	struct pb message;
};

static bool next_slice(struct slices *slices, struct slice *slice, bool *good)
{
	struct pb_field f;

	while (pb_next(&slices->message, &f)) {
		if (f.tag != PB_TAG(7, PB_BYTES))
			continue;
		*good = slice_parse(pb_message(&f), slice);
		return true;
	}
	return false;
}

static struct slices slices_of(const struct checkpoint_var *var)
{
	return (struct slices){ pb_over(var->record.ptr, var->record.len) };
}

/* Marks entries that are slices of other entries, and adds their bytes to those. */
static ow_status mark_parts(struct checkpoint *c, struct checkpoint_var *var, struct buf *key,
			    struct ow_error *err)
{
	struct slices slices = slices_of(var);
	struct slice slice;
	bool good;

	while (next_slice(&slices, &slice, &good)) {
		struct checkpoint_var *part;

		if (!good || slice.rank != var->rank)
			continue; /* reported when the value is read */
		buf_clear(key);
		slice_key(key, var->name, &slice);
		if (key->failed)
			return error_no_memory(err);
		part = slice_is_whole(&slice) ? var : checkpoint_lookup(c, buf_str(key));
		if (!part)
			continue;
		part->part |= part != var;
		if (part->size > 0)
			var->bytes += (uint64_t)part->size;
	}
	return OW_OK;
}

ow_status bundle_load(struct checkpoint *c, const struct sstable *table, const char *filename,
		      struct ow_error *err)
{
	uint64_t spelled = 0, allowed = ((uint64_t)1 << 20) + 64 * table->in->size;
	struct sstable_iter it;
	struct ow_error inner = { 0 };
	ow_status status;
	struct buf key;

	c->version = 2;
	sstable_iter_init(&it, table);
	status = read_header(c, &it, filename, err);
	while (status == OW_OK) {
		status = sstable_next(&it, &inner);
		if (status == OW_E_CORRUPT) {
			checkpoint_count_damage(c, inner.offset);
			status = OW_OK;
			continue;
		}
		if (status != OW_OK) {
			status = error_set(err, status, "%s", inner.text);
			break;
		}
		spelled += it.key.len;
		if (!it.valid)
			break;
		if (spelled > allowed)
			status = error_set(err, OW_E_LIMIT,
					   "%s: the names take more than 64 times "
					   "the file",
					   filename);
		else
			status = add_entry(c, &it, err);
	}
	sstable_iter_release(&it);
	buf_init(&key, c->mem);
	for (size_t i = 0; i < c->entry_count && status == OW_OK; i++)
		if (c->vars[i].slice_count)
			status = mark_parts(c, &c->vars[i], &key, err);
	buf_release(&key);
	return status;
}

/* The value of a variable.
 * The bytes of an entry from its data file, checked by their CRC and turned into this machine's byte order; strings; and
 * partitioned variables, put together from their slices.
 */

struct reader {
	const struct checkpoint *c;
	struct checkpoint_tensor *t;
	struct ow_error *err;
};

/* TensorFlow says "Key  not found" with an encoded key for a lost slice; we name it. */
static ow_status not_found(struct reader *r, struct str name, const char *slice)
{
	return checkpoint_fail(&r->t->code, "Not found", r->err, OW_E_NOT_FOUND,
			       "Key %.*s%s not found in checkpoint", STR_ARG(name), slice);
}

static ow_status bad_shape(struct reader *r, const struct checkpoint_var *var)
{
	struct pb message = pb_over(var->record.ptr, var->record.len);
	struct pb_field f;
	struct buf text;
	ow_status status;

	buf_init(&text, r->c->mem);
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			shape_text(&text, pb_message(&f));
	status = text.failed ? error_no_memory(r->err)
			     : checkpoint_fail(&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
					       "Invalid tensor shape: %.*s %.*s",
					       STR_ARG(var->name), STR_ARG(buf_str(&text)));
	buf_release(&text);
	return status;
}

static ow_status bad_size(struct reader *r, const struct checkpoint_var *var, const char *least,
			  int64_t expected)
{
	return checkpoint_fail(&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
			       "Invalid size in bundle entry: key %.*s; stored size %" PRId64
			       "; expected size %s%" PRId64,
			       STR_ARG(var->name), var->size, least, expected);
}

static ow_status check_size(struct reader *r, const struct checkpoint_var *var)
{
	int64_t size = (int64_t)tf_dtype_size(var->dtype), expected;

	if (var->dtype == TF_STRING)
		return var->size < var->elements ? bad_size(r, var, "is at least ", var->elements)
						 : OW_OK;
	if (__builtin_mul_overflow(var->elements, size, &expected))
		expected = INT64_MAX;
	return var->size != expected ? bad_size(r, var, "", expected) : OW_OK;
}

static ow_status check_crc(struct reader *r, const struct checkpoint_var *var, uint32_t crc)
{
	if (crc32c_unmask(var->crc) == crc)
		return OW_OK;
	return checkpoint_fail(
		&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
		"Checksum does not match: stored %08u vs. calculated on the restored "
		"bytes %u",
		crc32c_unmask(var->crc), crc);
}

/* All bytes of the entry from its data file, into memory of mem: *cap bytes at *bytes. */
static ow_status read_bytes(struct reader *r, const struct checkpoint_var *var,
			    unsigned char **bytes, size_t *cap)
{
	const struct checkpoint *c = r->c;
	struct input in = { .fd = -1 };
	struct arena arena;
	ow_status status;
	char *path;

	arena_init(&arena, c->mem);
	path = arena_printf(&arena, "%s.data-%05d-of-%05d", c->prefix, var->shard, c->shard_count);
	status = path ? checkpoint_open_file(&in, c->mem, path, &r->t->code, r->err)
		      : error_no_memory(r->err);
	arena_release(&arena);
	if (status != OW_OK)
		return status;
	if (var->offset < 0 || var->size < 0 || (uint64_t)var->offset > in.size ||
	    (uint64_t)var->size > in.size - (uint64_t)var->offset) {
		status = checkpoint_fail(&r->t->code, "Out of range", r->err, OW_E_CORRUPT,
					 "Read less bytes than requested");
	} else {
		*cap = (size_t)var->size + 1;
		*bytes = mem_zalloc(c->mem, *cap);
		status = *bytes ? input_read_at(&in, (uint64_t)var->offset, *bytes,
						(size_t)var->size, r->err)
				: error_no_memory(r->err);
		if (status != OW_OK)
			mem_free(c->mem, *bytes, *cap);
	}
	input_close(&in);
	return status;
}

static void swap_bytes(unsigned char *at, size_t bytes, size_t unit)
{
	for (; bytes >= unit; bytes -= unit, at += unit)
		for (size_t i = 0; i < unit / 2; i++) {
			unsigned char byte = at[i];

			at[i] = at[unit - 1 - i];
			at[unit - 1 - i] = byte;
		}
}

/* A complex number is two numbers. */
static size_t swap_unit(int32_t dtype)
{
	size_t size = tf_dtype_size(dtype);

	return dtype == TF_COMPLEX64 || dtype == TF_COMPLEX128 ? size / 2 : size;
}

static ow_status read_numbers(struct reader *r, const struct checkpoint_var *var,
			      struct checkpoint_tensor *to)
{
	ow_status status;

	OW_TRY(check_size(r, var));
	OW_TRY(read_bytes(r, var, &to->data, &to->data_cap));
	to->data_size = (size_t)var->size;
	status = check_crc(r, var, crc32c(to->data, to->data_size));
	if (status == OW_OK && r->c->big_endian)
		swap_bytes(to->data, to->data_size, swap_unit(var->dtype));
	return status;
}

/* The lengths take part in the CRC as fixed numbers, in the byte order of the writer. */
static uint32_t crc_of_length(uint32_t crc, uint64_t length, bool big_endian)
{
	uint64_t wide = big_endian ? bswap_64(length) : length;
	uint32_t narrow = big_endian ? bswap_32((uint32_t)length) : (uint32_t)length;

	return length <= UINT32_MAX ? crc32c_extend(crc, &narrow, 4) : crc32c_extend(crc, &wide, 8);
}

static ow_status lengths_too_long(struct reader *r, const struct checkpoint_var *var)
{
	return checkpoint_fail(&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
			       "String lengths longer than expected offset %" PRId64,
			       var->offset + var->size);
}

/* Finds the strings in the entry's bytes: all lengths as varints, a CRC of them, all contents. */
static ow_status split_strings(struct reader *r, const struct checkpoint_var *var,
			       struct checkpoint_tensor *to)
{
	const unsigned char *at = to->data, *end = to->data + to->data_size, *content;
	uint32_t crc = 0, stored;

	if (!to->data_size)
		return check_crc(r, var, 0);
	for (int64_t i = 0; i < var->elements; i++) {
		struct pb_varint length =
			at < end ? pb_varint_at(at, end) : (struct pb_varint){ 0 };

		if (!length.next)
			return lengths_too_long(r, var);
		at = length.next;
		to->strings[i].len = (size_t)length.value;
		crc = crc_of_length(crc, length.value, r->c->big_endian);
	}
	if (end - at < 4)
		return lengths_too_long(r, var);
	stored = crc32c_unmask(r->c->big_endian ? bswap_32(pb_load32(at)) : pb_load32(at));
	if (stored != crc)
		return checkpoint_fail(
			&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
			"The length checksum does not match: expected %08u but actual "
			"is %08u",
			stored, crc);
	crc = crc32c_extend(crc, at, 4);
	at += 4;
	content = at;
	for (int64_t i = 0; i < var->elements; i++) {
		if (to->strings[i].len > (size_t)(end - at))
			return lengths_too_long(r, var);
		to->strings[i].ptr = (const char *)at;
		at += to->strings[i].len;
	}
	return check_crc(r, var, crc32c_extend(crc, content, (size_t)(at - content)));
}

static ow_status read_strings(struct reader *r, const struct checkpoint_var *var,
			      struct checkpoint_tensor *to)
{
	OW_TRY(check_size(r, var)); /* an element takes a byte or more, so the count is sane */
	OW_TRY(read_bytes(r, var, &to->data, &to->data_cap));
	to->data_size = (size_t)var->size;
	to->string_cap = ((size_t)var->elements + 1) * sizeof(*to->strings);
	to->strings = mem_zalloc(r->c->mem, to->string_cap);
	if (!to->strings)
		return error_no_memory(r->err);
	return split_strings(r, var, to);
}

/* Reads one entry as it is stored; the caller frees memory in `to`, also after a failure. */
static ow_status read_entry(struct reader *r, const struct checkpoint_var *var,
			    struct checkpoint_tensor *to)
{
	if (var->dtype == TF_STRING)
		return read_strings(r, var, to);
	if (tf_dtype_size(var->dtype))
		return read_numbers(r, var, to);
	return OW_OK;
}

/* Overlaps are looked for pair by pair, so only up to this many slices; the sum of sizes is always checked. */
#define OVERLAP_CHECK_MAX 2048

static ow_status fail_slice(struct reader *r, const struct checkpoint_var *var,
			    const struct slice *slice, const char *what)
{
	ow_status status;
	struct buf text;

	buf_init(&text, r->c->mem);
	slice_text(&text, slice);
	status = text.failed ? error_no_memory(r->err)
			     : checkpoint_fail(&r->t->code, "Internal", r->err, OW_E_CORRUPT,
					       "%s: tensor = %.*s, slice = %.*s", what,
					       STR_ARG(var->name), STR_ARG(buf_str(&text)));
	buf_release(&text);
	return status;
}

static ow_status fail_cover(struct reader *r, const struct checkpoint_var *var)
{
	char spec[2 * CHECKPOINT_RANK_MAX + 1];
	int32_t len = 0;

	for (int32_t i = 0; i < var->rank; i++) {
		if (i)
			spec[len++] = ':';
		spec[len++] = '-';
	}
	return checkpoint_fail(
		&r->t->code, "Invalid argument", r->err, OW_E_CORRUPT,
		"Does not have sufficient slices for partitioned tensor %.*s to restore "
		"in slice_spec: %.*s",
		STR_ARG(var->name), len, spec);
}

static ow_status check_overlap(struct reader *r, const struct checkpoint_var *var,
			       const struct slice *slice, uint32_t index)
{
	struct slices others = slices_of(var);
	struct slice other;
	bool good;

	if (var->slice_count > OVERLAP_CHECK_MAX)
		return OW_OK;
	for (uint32_t i = 0; i < index && next_slice(&others, &other, &good); i++)
		if (slice_overlaps(slice, &other))
			return fail_slice(r, var, slice, "Overlapping slices");
	return OW_OK;
}

/* Checks that the slices are within the variable, do not overlap, and cover all of it. */
static ow_status check_slices(struct reader *r, const struct checkpoint_var *var)
{
	struct slices slices = slices_of(var);
	int64_t covered = 0, elements;
	struct slice slice;
	uint32_t index = 0;
	bool good;

	while (next_slice(&slices, &slice, &good)) {
		if (!good || slice.rank != var->rank)
			return fail_slice(r, var, &slice, "Mismatching ranks");
		if (!slice_fits(&slice, var, &elements))
			return fail_slice(r, var, &slice, "Extent out of bounds");
		OW_TRY(check_overlap(r, var, &slice, index++));
		if (__builtin_add_overflow(covered, elements, &covered))
			covered = INT64_MAX;
	}
	return covered == var->elements ? OW_OK : fail_cover(r, var);
}

/* The entry of a slice; fails unless its type and size are those that the whole variable requires. */
static ow_status find_part(struct reader *r, const struct checkpoint_var *var,
			   const struct slice *slice, const struct checkpoint_var **part)
{
	const struct checkpoint_var *found;
	int64_t elements;
	struct buf key;

	*part = var;
	if (slice_is_whole(slice))
		return OW_OK;
	buf_init(&key, r->c->mem);
	slice_key(&key, var->name, slice);
	found = key.failed ? NULL : checkpoint_lookup(r->c, buf_str(&key));
	buf_release(&key);
	if (key.failed)
		return error_no_memory(r->err);
	if (!found)
		return not_found(r, var->name, " (one of its slices)");
	*part = found;
	if (!slice_fits(slice, var, &elements) || found->dtype != var->dtype || found->rank < 0 ||
	    found->elements != elements)
		return fail_slice(r, var, slice, "Slice of another type or shape");
	return check_size(r, found);
}

static ow_status copy_part(struct reader *r, const struct checkpoint_var *var,
			   const struct slice *slice, const struct checkpoint_var *part)
{
	struct checkpoint_tensor stored = { .mem = r->c->mem };
	ow_status status = read_entry(r, part, &stored);

	if (status == OW_OK)
		slice_copy(var, slice, stored.data, r->t->data, tf_dtype_size(var->dtype));
	checkpoint_tensor_release(&stored);
	return status;
}

static ow_status read_slices(struct reader *r, const struct checkpoint_var *var)
{
	struct slices slices = slices_of(var);
	const struct checkpoint_var *part;
	struct slice slice;
	int64_t bytes;
	bool good;

	OW_TRY(check_slices(r, var));
	if (next_slice(&slices, &slice, &good) && var->slice_count == 1) {
		OW_TRY(find_part(r, var, &slice, &part)); /* a single slice that is the whole */
		return read_entry(r, part, r->t);
	}
	if (!tf_dtype_size(var->dtype))
		return checkpoint_fail(&r->t->code, "Invalid argument", r->err, OW_E_UNSUPPORTED,
				       "Dtype %s not supported.",
				       var->dtype == TF_STRING ? "string" : "of slices");
	if (__builtin_mul_overflow(var->elements, (int64_t)tf_dtype_size(var->dtype), &bytes))
		return error_no_memory(r->err);
	for (slices = slices_of(var); next_slice(&slices, &slice, &good);)
		OW_TRY(find_part(r, var, &slice, &part)); /* before the memory is taken */
	OW_TRY(tensor_reserve(r->t, (size_t)bytes, r->err));
	for (slices = slices_of(var); next_slice(&slices, &slice, &good);) {
		OW_TRY(find_part(r, var, &slice, &part));
		OW_TRY(copy_part(r, var, &slice, part));
	}
	return OW_OK;
}

ow_status bundle_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		      struct ow_error *err)
{
	const struct checkpoint_var *var = checkpoint_lookup(c, name);
	struct reader r = { c, t, err };

	if (!var)
		return not_found(&r, name, "");
	if (var->rank < 0)
		return bad_shape(&r, var);
	t->dtype = var->dtype;
	t->rank = var->rank;
	t->dims = var->dims;
	t->elements = var->elements;
	return var->slice_count ? read_slices(&r, var) : read_entry(&r, var, t);
}
