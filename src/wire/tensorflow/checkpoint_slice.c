/*
 * checkpoint_slice.c: versions, shapes and slices in the messages of checkpoints, and the keys of slices
 * (checkpoint_slice.h). Messages are those of TensorFlow.
 */
#include "wire/tensorflow/checkpoint_slice.h"

#define READER_VERSION 1
#define TENSORFLOW_VERSION "1.15.0"

size_t tf_dtype_size(int32_t dtype)
{
	/* by DataType: float, double, int32, uint8, int16, int8, string, complex64, int64, bool,
	 * qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, resource,
	 * variant, uint32, uint64, float8_e5m2, float8_e4m3fn */
	static const uint8_t sizes[] = { 0, 4, 8, 4, 1, 2,  1, 0, 8, 8, 1, 1, 1,
					 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8, 1, 1 };

	if (dtype < 0 || (size_t)dtype >= ARRAY_COUNT(sizes))
		return 0;
	return sizes[dtype];
}

/* VersionDef { producer #1, min_consumer #2, bad_consumers #3 rep } */
bool versions_parse(struct pb message, struct versions *versions)
{
	struct pb_field f;

	while (pb_next(&message, &f)) {
		struct pb_values values;
		uint64_t value;

		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			versions->producer = (int32_t)f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			versions->min_consumer = (int32_t)f.value;
			break;
		case PB_TAG(3, PB_VARINT):
		case PB_TAG(3, PB_BYTES):
			for (values = pb_values(&f, PB_VARINT); pb_value(&values, &value);)
				versions->bad_consumer |= (int32_t)value == READER_VERSION;
			if (values.problem)
				return false;
			break;
		}
	}
	return !message.problem;
}

ow_status versions_check(const struct versions *versions, const char **code, struct ow_error *err)
{
	static const char name[] = "Invalid argument";

	if (versions->producer < 0)
		return checkpoint_fail(
			code, name, err, OW_E_UNSUPPORTED,
			"Checkpoint producer version %d below min producer 0 supported by "
			"TensorFlow " TENSORFLOW_VERSION ".  Please regenerate your checkpoint.",
			versions->producer);
	if (versions->min_consumer > READER_VERSION)
		return checkpoint_fail(
			code, name, err, OW_E_UNSUPPORTED,
			"Checkpoint min consumer version %d above current version %d for "
			"TensorFlow " TENSORFLOW_VERSION ".  Please upgrade TensorFlow.",
			versions->min_consumer, READER_VERSION);
	if (versions->bad_consumer)
		return checkpoint_fail(code, name, err, OW_E_UNSUPPORTED,
				       "Checkpoint disallows consumer version %d.  Please upgrade "
				       "TensorFlow: this version is likely buggy.",
				       READER_VERSION);
	return OW_OK;
}

/* Dim { size #1, name #2 } */
static bool dim_parse(struct pb message, int64_t *size)
{
	struct pb_field f;

	*size = 0;
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			*size = (int64_t)f.value;
	return !message.problem;
}

static void count_elements(struct checkpoint_var *var)
{
	bool zero = false, overflow = false;

	var->elements = 1;
	for (int32_t i = 0; i < var->rank; i++) {
		if (var->dims[i] < 0) {
			var->rank = -1;
			return;
		}
		zero |= var->dims[i] == 0;
		overflow |= __builtin_mul_overflow(var->elements, var->dims[i], &var->elements);
	}
	if (zero)
		var->elements = 0;
	else if (overflow)
		var->rank = -1;
}

/* TensorShapeProto { dim #2 rep, unknown_rank #3 } */
bool shape_parse(struct arena *arena, struct pb message, struct checkpoint_var *var,
		 bool *no_memory)
{
	int64_t dims[CHECKPOINT_RANK_MAX], *copy;
	bool unknown = false;
	struct pb_field f;
	size_t rank = 0;

	while (pb_next(&message, &f)) {
		int64_t size;

		if (f.tag == PB_TAG(3, PB_VARINT))
			unknown = f.value != 0;
		if (f.tag != PB_TAG(2, PB_BYTES))
			continue;
		if (!dim_parse(pb_message(&f), &size))
			return false;
		if (rank < CHECKPOINT_RANK_MAX)
			dims[rank] = size;
		rank++;
	}
	if (message.problem)
		return false;
	var->elements = 0;
	var->rank = -1;
	if (unknown || rank > CHECKPOINT_RANK_MAX)
		return true;
	copy = ARENA_ARRAY(arena, int64_t, rank + 1);
	if (!copy) {
		*no_memory = true;
		return false;
	}
	memcpy(copy, dims, rank * sizeof(*dims));
	var->dims = copy;
	var->rank = (int32_t)rank;
	count_elements(var);
	return true;
}

void shape_text(struct buf *out, struct pb message)
{
	const char *space = "";
	struct pb_field f;
	int64_t size;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(3, PB_VARINT) && f.value) {
			buf_printf(out, "%sunknown_rank: true", space);
		} else if (f.tag == PB_TAG(2, PB_BYTES) && dim_parse(pb_message(&f), &size)) {
			if (size)
				buf_printf(out, "%sdim { size: %" PRId64 " }", space, size);
			else
				buf_printf(out, "%sdim { }", space);
		} else {
			continue;
		}
		space = " ";
	}
}

/* Extent { start #1, oneof { length #2 } } */
static bool extent_parse(struct pb message, int64_t *start, int64_t *length)
{
	struct pb_field f;

	*start = 0;
	*length = -1;
	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_VARINT))
			*start = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_VARINT))
			*length = (int64_t)f.value;
	}
	return !message.problem;
}

/* TensorSliceProto { extent #1 rep } */
bool slice_parse(struct pb message, struct slice *slice)
{
	struct pb_field f;

	slice->rank = 0;
	while (pb_next(&message, &f)) {
		if (f.tag != PB_TAG(1, PB_BYTES))
			continue;
		if (slice->rank == CHECKPOINT_RANK_MAX ||
		    !extent_parse(pb_message(&f), &slice->start[slice->rank],
				  &slice->length[slice->rank]))
			return false;
		slice->rank++;
	}
	return !message.problem;
}

static bool whole_at(const struct slice *slice, int32_t i)
{
	return slice->start[i] == 0 && slice->length[i] == -1;
}

bool slice_is_whole(const struct slice *slice)
{
	for (int32_t i = 0; i < slice->rank; i++)
		if (!whole_at(slice, i))
			return false;
	return true;
}

bool slice_fits(const struct slice *slice, const struct checkpoint_var *var, int64_t *elements)
{
	*elements = 1;
	if (slice->rank != var->rank)
		return false;
	for (int32_t i = 0; i < slice->rank; i++) {
		int64_t start = slice->start[i], length = slice->length[i];

		if (whole_at(slice, i))
			length = var->dims[i];
		else if (start < 0 || length <= 0 || length > var->dims[i] ||
			 start > var->dims[i] - length)
			return false;
		/* no larger than the variable, whose product fits unless it is empty */
		if (__builtin_mul_overflow(*elements, length, elements))
			return false;
	}
	return true;
}

/* Whether two slices overlap; both must fit the same variable. */
bool slice_overlaps(const struct slice *a, const struct slice *b)
{
	for (int32_t i = 0; i < a->rank; i++) {
		if (whole_at(a, i) || whole_at(b, i))
			continue;
		if (a->start[i] >= b->start[i] + b->length[i] ||
		    b->start[i] >= a->start[i] + a->length[i])
			return false;
	}
	return true;
}

void slice_text(struct buf *out, const struct slice *slice)
{
	for (int32_t i = 0; i < slice->rank; i++) {
		if (i)
			buf_add_char(out, ':');
		if (whole_at(slice, i))
			buf_add_char(out, '-');
		else
			buf_printf(out, "%" PRId64 ",%" PRId64, slice->start[i], slice->length[i]);
	}
}

void slice_key(struct buf *out, struct str name, const struct slice *slice)
{
	ordered_code_number(out, 0);
	ordered_code_string(out, name);
	ordered_code_number(out, (uint64_t)slice->rank);
	for (int32_t i = 0; i < slice->rank; i++) {
		ordered_code_signed(out, slice->start[i]);
		ordered_code_signed(out, slice->length[i]);
	}
}

/* Copies row by row; a row is contiguous in both tensors: the last dimension that is cut, and all after it. */
void slice_copy(const struct checkpoint_var *var, const struct slice *slice, const void *from,
		void *to, size_t size)
{
	int64_t at[CHECKPOINT_RANK_MAX] = { 0 }, stride[CHECKPOINT_RANK_MAX + 1];
	const unsigned char *source = from;
	int32_t rank = slice->rank, last = rank - 1;
	size_t row;

	if (!var->elements)
		return;
	stride[rank] = 1;
	for (int32_t i = rank - 1; i >= 0; i--)
		stride[i] = stride[i + 1] * var->dims[i];
	while (last >= 0 && whole_at(slice, last))
		last--;
	if (last < 0) {
		memcpy(to, from, (size_t)var->elements * size);
		return;
	}
	row = (size_t)(slice->length[last] * stride[last + 1]) * size;
	for (;;) {
		int64_t offset = slice->start[last] * stride[last + 1];
		int32_t i;

		for (i = 0; i < last; i++)
			offset += (at[i] + (whole_at(slice, i) ? 0 : slice->start[i])) *
				  stride[i + 1];
		memcpy((unsigned char *)to + (size_t)offset * size, source, row);
		source += row;
		for (i = last - 1; i >= 0; i--) {
			if (++at[i] < (whole_at(slice, i) ? var->dims[i] : slice->length[i]))
				break;
			at[i] = 0;
		}
		if (i < 0)
			return;
	}
}

/* A count of bytes, then the number in as many, big-endian. */
void ordered_code_number(struct buf *out, uint64_t value)
{
	unsigned bytes = value ? (unsigned)(71 - __builtin_clzll(value)) / 8 : 0;

	buf_add_char(out, (char)bytes);
	while (bytes--)
		buf_add_char(out, (char)(value >> (8 * bytes) & 0xff));
}

/* 00 and FF are escaped, so that the end mark sorts before every continuation. */
void ordered_code_string(struct buf *out, struct str value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		buf_add_char(out, c);
		if (c == '\0')
			buf_add_char(out, '\xff');
		else if (c == '\xff')
			buf_add_char(out, '\0');
	}
	buf_add(out, "\0\1", 2);
}

/* Leading one bits give the length (zero bits of a negative number), mixed into the first two
 * bytes of the number itself. */
void ordered_code_signed(struct buf *out, int64_t value)
{
	static const unsigned char headers[11][2] = {
		{ 0, 0 },    { 0x80, 0 }, { 0xc0, 0 }, { 0xe0, 0 },    { 0xf0, 0 },    { 0xf8, 0 },
		{ 0xfc, 0 }, { 0xfe, 0 }, { 0xff, 0 }, { 0xff, 0x80 }, { 0xff, 0xc0 },
	};
	uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
	unsigned char bytes[10];
	unsigned len = 1;

	while (len < 10 && magnitude >> (7 * len - 1))
		len++;
	for (unsigned i = 0; i < len; i++) {
		unsigned shift = 8 * (len - 1 - i);

		bytes[i] = (unsigned char)(shift < 64  ? (uint64_t)value >> shift
					   : value < 0 ? 0xff
						       : 0);
	}
	bytes[0] ^= headers[len][0];
	if (len > 1)
		bytes[1] ^= headers[len][1];
	buf_add(out, bytes, len);
}
