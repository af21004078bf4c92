/*
 * checkpoint_bundle.c: the second kind of checkpoints, tensor bundles. The index is a table: key ""
 * holds the header, the others name a variable, or a slice of a partitioned one by an encoded key.
 * The values lie in data files as plain bytes; checkpoint_values.c reads them.
 */
#include "wire/checkpoint_int.h"

#define NAME_MAX_BYTES ((size_t)16 << 10)

/* ---- the index ------------------------------------------------------------------------------ */

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
static ow_status add_entry(struct checkpoint *c, const struct sstable_iter *it, struct error *err)
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
			     struct error *err)
{
	static const char text[] =
		"Unable to read file (%s). Perhaps the file is corrupt or was produced "
		"by a newer version of TensorFlow with format changes (%s)%s%s";
	struct versions versions = { 0 };
	struct error inner = { 0 };
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

bool next_slice(struct slices *slices, struct slice *slice, bool *good)
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

struct slices slices_of(const struct checkpoint_var *var)
{
	return (struct slices){ pb_over(var->record.ptr, var->record.len) };
}

/* Marks the entries that are slices of others, and adds their bytes to these. */
static ow_status mark_parts(struct checkpoint *c, struct checkpoint_var *var, struct buf *key,
			    struct error *err)
{
	struct slices slices = slices_of(var);
	struct slice slice;
	bool good;

	while (next_slice(&slices, &slice, &good)) {
		struct checkpoint_var *part;

		if (!good || slice.rank != var->rank)
			continue; /* told when the value is read */
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
		      struct error *err)
{
	uint64_t spelled = 0, allowed = ((uint64_t)1 << 20) + 64 * table->in->size;
	struct sstable_iter it;
	struct error inner = { 0 };
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
