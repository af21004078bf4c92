/*
 * checkpoint_saved.c: the first kind of checkpoints. Each file is a table: key "" lists variables
 * with their shapes, types and slices; the value of a slice is a message under an encoded key. As
 * in the original, only variables stored in one slice can be read.
 */
#include "wire/tensorflow/checkpoint_kinds.h"

#include "base/vec.h"

/* SavedSliceMeta { name #1, shape #2, type #3, slice #4 rep } */
struct saved_meta {
	struct checkpoint_var var;
	struct str slice; /* the first */
};

static bool meta_parse(struct checkpoint *c, struct pb message, struct saved_meta *meta,
		       bool *no_memory)
{
	struct checkpoint_var *var = &meta->var;
	struct pb_field f;

	var->elements = 1;
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			var->name = pb_str(&f);
			break;
		case PB_TAG(2, PB_BYTES):
			if (!shape_parse(&c->arena, pb_message(&f), var, no_memory))
				return false;
			break;
		case PB_TAG(3, PB_VARINT):
			var->dtype = (int32_t)f.value;
			break;
		case PB_TAG(4, PB_BYTES):
			if (!var->slice_count++)
				meta->slice = pb_str(&f);
			break;
		}
	}
	return !message.problem;
}

static bool same_shape(const struct checkpoint_var *a, const struct checkpoint_var *b)
{
	if (a->rank != b->rank)
		return false;
	for (int32_t i = 0; i < a->rank; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}

/* Another file has slices of the same variable. */
static ow_status merge_var(struct checkpoint *c, struct checkpoint_var *known,
			   const struct checkpoint_var *more, struct ow_error *err)
{
	bool shapes = same_shape(known, more);

	if (!shapes || known->dtype != more->dtype)
		return checkpoint_fail(&c->code, "Internal", err, OW_E_FORMAT,
				       "Incompatible tensor %s detected for tensor %.*s",
				       shapes ? "types" : "shapes", STR_ARG(known->name));
	known->slice_count += more->slice_count;
	return OW_OK;
}

static ow_status add_meta(struct checkpoint *c, size_t file, struct pb message,
			  struct ow_error *err)
{
	struct saved_meta meta = { 0 };
	struct checkpoint_var *var;
	bool no_memory = false;
	struct str slice;

	if (!meta_parse(c, message, &meta, &no_memory))
		return no_memory ? error_no_memory(err) : OW_E_CORRUPT;
	if (!meta.var.slice_count)
		return OW_OK; /* a variable without data is none */
	var = checkpoint_lookup(c, meta.var.name);
	if (var)
		return merge_var(c, var, &meta.var, err);
	slice = arena_str(&c->arena, meta.slice);
	var = slice.ptr ? checkpoint_add(c, meta.var.name) : NULL;
	if (!var)
		return error_no_memory(err);
	meta.var.name = var->name;
	meta.var.record = slice;
	meta.var.shard = (int32_t)file;
	if (meta.var.rank < 0 ||
	    __builtin_mul_overflow((uint64_t)meta.var.elements, tf_dtype_size(meta.var.dtype),
				   &meta.var.bytes))
		meta.var.bytes = 0;
	*var = meta.var;
	return OW_OK;
}

/* SavedTensorSliceMeta { tensor #1 rep, versions #2 }. A message that breaks off is OW_E_CORRUPT
 * without text. */
static ow_status list_parse(struct checkpoint *c, size_t file, struct pb message,
			    struct versions *versions, struct ow_error *err)
{
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			OW_TRY(add_meta(c, file, pb_message(&f), err));
		else if (f.tag == PB_TAG(2, PB_BYTES) && !versions_parse(pb_message(&f), versions))
			return OW_E_CORRUPT;
	}
	return message.problem ? OW_E_CORRUPT : OW_OK;
}

/* SavedTensorSlices { meta #1, data #2 } */
static ow_status slices_parse(struct checkpoint *c, size_t file, struct str value,
			      struct versions *versions, struct ow_error *err)
{
	struct pb message = pb_over(value.ptr, value.len);
	struct pb_field f;

	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			OW_TRY(list_parse(c, file, pb_message(&f), versions, err));
	return message.problem ? OW_E_CORRUPT : OW_OK;
}

ow_status saved_load(struct checkpoint *c, size_t file, struct ow_error *err)
{
	struct versions versions = { 0 };
	struct sstable_iter it;
	ow_status status;

	sstable_iter_init(&it, &c->files[file].table);
	status = sstable_find(&it, STR(""), err);
	if (status == OW_OK)
		status = it.valid ? slices_parse(c, file, it.value, &versions, err) : OW_E_CORRUPT;
	sstable_iter_release(&it);
	if (status == OW_E_CORRUPT)
		return checkpoint_fail(
			&c->code, "Internal", err, OW_E_FORMAT,
			"Failed to find the saved tensor slices at the beginning of the "
			"checkpoint file: %s",
			c->files[file].in->name);
	OW_TRY(status);
	return versions_check(&versions, &c->code, err);
}

struct reader {
	const struct checkpoint *c;
	const struct checkpoint_var *var;
	struct checkpoint_tensor *t;
	struct ow_error *err;
	int64_t wanted, count; /* elements of the slice, and how many have been read */
	size_t string_bytes;
};

static ow_status not_found(struct checkpoint_tensor *t, struct str name, struct ow_error *err)
{
	return checkpoint_fail(&t->code, "Not found", err, OW_E_NOT_FOUND,
			       "%.*s not found in checkpoint file", STR_ARG(name));
}

/* The field of TensorProto that holds values of a type; 0 when the type is not supported. */
static uint32_t value_tag(int32_t dtype, enum pb_wire *elem)
{
	*elem = PB_VARINT;
	switch (dtype) {
	case TF_FLOAT:
		*elem = PB_FIXED32;
		return 5;
	case TF_DOUBLE:
		*elem = PB_FIXED64;
		return 6;
	case TF_INT32:
	case TF_UINT8:
	case TF_INT16:
	case TF_INT8:
		return 7;
	case TF_STRING:
		*elem = PB_BYTES;
		return 8;
	case TF_INT64:
		return 10;
	default:
		return 0;
	}
}

/* The low bytes of the value, in this machine's order. */
static void store_value(struct reader *r, uint64_t value)
{
	size_t size = tf_dtype_size(r->t->dtype);
	unsigned char *to = r->t->data + (size_t)r->count * size;
	uint32_t four = (uint32_t)value;
	uint16_t two = (uint16_t)value;

	if (size == 8)
		memcpy(to, &value, 8);
	else if (size == 4)
		memcpy(to, &four, 4);
	else if (size == 2)
		memcpy(to, &two, 2);
	else
		*to = (unsigned char)value;
}

static ow_status add_string(struct reader *r, struct str text)
{
	struct checkpoint_tensor *t = r->t;

	if (!vec_reserve(t->mem, t->data, t->data_cap, r->string_bytes + text.len + 1))
		return error_no_memory(r->err);
	memcpy(t->data + r->string_bytes, text.ptr, text.len);
	t->strings[r->count++].len = text.len;
	r->string_bytes += text.len;
	return OW_OK;
}

static ow_status add_values(struct reader *r, const struct pb_field *f, enum pb_wire elem)
{
	struct pb_values values;
	uint64_t value;

	if (elem == PB_BYTES)
		return r->count < r->wanted ? add_string(r, pb_str(f)) : OW_OK;
	for (values = pb_values(f, elem); r->count < r->wanted && pb_value(&values, &value);
	     r->count++)
		store_value(r, value);
	return values.problem ? OW_E_CORRUPT : OW_OK;
}

/* SavedTensorSlices.data #2 { name #1, slice #2, data #3 TensorProto } */
static ow_status record_parse(struct reader *r, struct pb message, int depth)
{
	enum pb_wire elem;
	uint32_t number = value_tag(r->t->dtype, &elem);
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (depth == 2 && pb_number(&f) == number)
			OW_TRY(add_values(r, &f, elem));
		else if ((depth == 0 && f.tag == PB_TAG(2, PB_BYTES)) ||
			 (depth == 1 && f.tag == PB_TAG(3, PB_BYTES)))
			OW_TRY(record_parse(r, pb_message(&f), depth + 1));
	}
	return message.problem ? OW_E_CORRUPT : OW_OK;
}

/* Whether the record has at least as many bytes as the values of its shape need. */
static bool plausible(const struct reader *r, size_t record)
{
	size_t size = tf_dtype_size(r->t->dtype);
	bool fixed = r->t->dtype == TF_FLOAT || r->t->dtype == TF_DOUBLE;

	return (uint64_t)r->wanted <= record / (fixed ? size : 1);
}

static ow_status damaged(struct reader *r)
{
	return checkpoint_fail(
		&r->t->code, "Data loss", r->err, OW_E_CORRUPT,
		"the record of %.*s in the checkpoint file does not hold the %" PRId64
		" values of its shape",
		STR_ARG(r->var->name), r->wanted);
}

static ow_status read_record(struct reader *r, struct str value)
{
	size_t size = tf_dtype_size(r->t->dtype);
	struct checkpoint_tensor *t = r->t;
	const char *at;
	ow_status status;

	/* A lone slice may be a part of the whole: the rest reads as zero, but within bounds. */
	if (!plausible(r, value.len) || r->var->elements / 1024 > r->wanted)
		return damaged(r);
	if (t->dtype == TF_STRING) {
		t->string_cap = ((size_t)t->elements + 1) * sizeof(*t->strings);
		t->strings = mem_zalloc(t->mem, t->string_cap);
		if (!t->strings)
			return error_no_memory(r->err);
	} else {
		OW_TRY(tensor_reserve(t, (size_t)t->elements * size, r->err));
	}
	status = record_parse(r, pb_over(value.ptr, value.len), 0);
	if (status == OW_E_CORRUPT || (status == OW_OK && r->count != r->wanted))
		return damaged(r);
	OW_TRY(status);
	if (t->dtype != TF_STRING)
		return OW_OK;
	t->data_size = r->string_bytes;
	at = (const char *)t->data; /* the buffer may have moved while it grew */
	for (int64_t i = 0; i < t->elements; i++) {
		t->strings[i].ptr = at ? at : "";
		at = at ? at + t->strings[i].len : NULL;
	}
	return OW_OK;
}

static ow_status find_record(struct reader *r, const struct slice *slice)
{
	struct sstable_iter it;
	ow_status status;
	struct buf key;

	buf_init(&key, r->c->mem);
	slice_key(&key, r->var->name, slice);
	sstable_iter_init(&it, &r->c->files[r->var->shard].table);
	status = key.failed ? error_no_memory(r->err) : sstable_find(&it, buf_str(&key), r->err);
	if (status == OW_OK)
		status =
			it.valid ? read_record(r, it.value) : not_found(r->t, r->var->name, r->err);
	sstable_iter_release(&it);
	buf_release(&key);
	return status;
}

ow_status saved_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
		     struct ow_error *err)
{
	const struct checkpoint_var *var = checkpoint_lookup(c, name);
	struct reader r = { .c = c, .var = var, .t = t, .err = err };
	struct slice slice;
	enum pb_wire elem;

	if (!var)
		return not_found(t, name, err);
	if (var->slice_count > 1)
		return checkpoint_fail(&t->code, "Unimplemented", err, OW_E_UNSUPPORTED,
				       "Sliced checkpoints are not supported");
	if (!value_tag(var->dtype, &elem))
		return checkpoint_fail(&t->code, "Unimplemented", err, OW_E_UNSUPPORTED,
				       "Data type not supported");
	t->dtype = var->dtype;
	t->rank = var->rank;
	t->dims = var->dims;
	t->elements = var->elements;
	if (var->rank < 0 || !slice_parse(pb_over(var->record.ptr, var->record.len), &slice) ||
	    !slice_fits(&slice, var, &r.wanted))
		return damaged(&r);
	return find_record(&r, &slice);
}
