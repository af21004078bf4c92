/*
 * record.c: reads the definition of an op from its input: name, kind and attributes, without weights. The API calls it
 * when it saves a profile or writes it in another format. It writes no file and no row.
 */
#include "import/own/record.h"

#include "wire/protobuf/pb_stream.h"
#include "wire/protobuf/pb_write.h"

#define WHOLE_MAX ((uint64_t)4 << 10) /* a NodeDef up to this size is kept unchanged */
#define FIELD_MAX ((uint64_t)4 << 10) /* in a larger one, larger fields are left out */
#define KEPT_MAX ((size_t)256 << 10)  /* limit of bytes that are kept of one definition */

/* Fields of a ProfileNode that are kept. */
enum { NODE_NAME = 1, NODE_OP = 9, NODE_ATTRS = 11 };
enum { NODE_DEF_ATTR = 5 };

struct record_place {
	const struct input *in;
	uint64_t offset, size;
	bool profile; /* the record is a ProfileNode; false: a NodeDef */
};

void record_reader_init(struct record_reader *r, struct model *m)
{
	*r = (struct record_reader){ .m = m };
	r->profile_format = model_find_str(m, STR("profile"));
	buf_init(&r->kept, m->mem);
}

void record_reader_release(struct record_reader *r)
{
	if (r->in)
		window_release(&r->window);
	buf_release(&r->kept);
}

static void use_input(struct record_reader *r, const struct input *in)
{
	if (r->in == in)
		return;
	if (r->in)
		window_release(&r->window);
	window_init(&r->window, in, &r->problem);
	r->in = in;
}

static ow_status read_failed(const struct record_reader *r, ow_status status, struct ow_error *err)
{
	if (err)
		*err = r->problem;
	return status;
}

/* Finds the input and offset of the op's definition; false when there is none. */
static bool find_record(const struct record_reader *r, op_id op, struct record_place *place)
{
	const struct model *m = r->m;
	uint32_t source = COLUMN_GET(m->op.source, op.v).v;

	*place = (struct record_place){ .offset = COLUMN_GET(m->op.record_offset, op.v),
					.size = COLUMN_GET(m->op.record_size, op.v) };
	if (!place->size || !source || source >= m->input_cap || !m->inputs[source])
		return false;
	place->in = m->inputs[source];
	place->profile = r->profile_format.v && m->source.format[source].v == r->profile_format.v;
	return true;
}

static void keep_small(struct pb_stream *s, bool profile, struct buf *to)
{
	/* field numbers: the attributes, a value, a tensor */
	const uint32_t path[] = { profile ? NODE_ATTRS : NODE_DEF_ATTR, 2, 8 };
	const struct pb_copy what = {
		.field_max = FIELD_MAX,
		.max = KEPT_MAX,
		.only = profile ? 1u << NODE_NAME | 1u << NODE_OP | 1u << NODE_ATTRS : 0,
		.path = path,
		.path_len = ARRAY_COUNT(path),
	};

	pb_copy_small(s, &what, to);
}

ow_status record_keep(struct record_reader *r, op_id op, struct str *bytes, struct ow_error *err)
{
	struct record_place place;
	const unsigned char *at;
	struct pb_stream stream;

	*bytes = STR("");
	if (!find_record(r, op, &place))
		return OW_OK;
	use_input(r, place.in);
	if (!place.profile && place.size <= WHOLE_MAX) {
		at = window_at(&r->window, place.offset, (size_t)place.size);
		if (!at)
			return read_failed(r, r->window.status, err);
		*bytes = str_make(at, (size_t)place.size);
		return OW_OK;
	}
	buf_clear(&r->kept);
	pb_stream_init(&stream, &r->window, place.offset, place.offset + place.size);
	keep_small(&stream, place.profile, &r->kept);
	if (r->kept.failed)
		return error_no_memory(err);
	if (stream.status != OW_OK && stream.status != OW_E_CORRUPT)
		return read_failed(r, stream.status, err);
	*bytes = buf_str(&r->kept);
	return OW_OK;
}

ow_status record_attrs(struct record_reader *r, op_id op, struct buf *to, struct ow_error *err)
{
	struct pb_stream_field f;
	struct record_place place;
	struct pb_stream stream;

	if (!find_record(r, op, &place))
		return OW_OK;
	use_input(r, place.in);
	pb_stream_init(&stream, &r->window, place.offset, place.offset + place.size);
	while (pb_stream_next(&stream, &f)) {
		const uint8_t *bytes;

		if (f.cut || f.tag != PB_TAG(place.profile ? NODE_ATTRS : NODE_DEF_ATTR, PB_BYTES))
			continue;
		bytes = pb_stream_bytes(&stream, &f);
		if (bytes)
			pb_put_bytes(to, NODE_ATTRS, bytes, (size_t)f.size);
	}
	if (stream.status != OW_OK && stream.status != OW_E_CORRUPT)
		return read_failed(r, stream.status, err);
	return OW_OK;
}
