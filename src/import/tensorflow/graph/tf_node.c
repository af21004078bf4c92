/*
 * tf_node.c: reads the attributes of graph nodes from the source, on demand (tf_node.h). Nodes are read in the order of
 * the graph, which is nearly that of the file, so a buffer slides forward; a jump reads just the one definition. A
 * definition above LARGE bytes contains a tensor of weights: it is read field by field and its large fields are never
 * read.
 */
#include "import/tensorflow/graph/tf_node.h"

#include "wire/protobuf/pb_stream.h"

#define BUFFER ((size_t)256 << 10)
#define LARGE ((size_t)64 << 10)
#define FIELD_MAX ((uint64_t)4 << 10) /* in a large node, larger fields are left out */
/* limit of the bytes kept of a large node: a call may have thousands of inputs */
#define NODE_MAX ((size_t)16 << 20)
#define AHEAD ((uint64_t)1 << 20) /* a jump forward up to this distance counts as sequential */

void tf_reader_init(struct tf_reader *r, struct model *m, struct ow_error *err)
{
	*r = (struct tf_reader){ .m = m, .err = err };
	r->profile_format = model_find_str(m, STR("profile"));
	buf_init(&r->large, m->mem);
}

void tf_reader_release(struct tf_reader *r)
{
	mem_free(r->m->mem, r->buf, BUFFER);
	buf_release(&r->large);
}

bool tf_reader_has(const struct tf_reader *r, uint32_t op)
{
	struct model *m = r->m;
	source_id source = COLUMN_GET(m->op.source, op);

	return source.v && source.v < m->input_cap && m->inputs[source.v] &&
	       COLUMN_GET(m->op.record_size, op);
}

/* The field number of the attributes, which differs between NodeDef and ProfileNode. */
static uint32_t attr_field(const struct tf_reader *r, uint32_t source)
{
	return r->profile_format.v && r->m->source.format[source].v == r->profile_format.v ? 11 : 5;
}

static const unsigned char *read_small(struct tf_reader *r, uint32_t source, uint64_t offset,
				       size_t size)
{
	const struct input *in = r->m->inputs[source];
	bool forward =
		r->source == source && offset >= r->base && offset - r->base <= r->len + AHEAD;
	size_t want = size;

	if (r->source == source && offset >= r->base && offset - r->base <= r->len &&
	    size <= r->len - (size_t)(offset - r->base))
		return r->buf + (size_t)(offset - r->base);
	if (!r->buf)
		r->buf = mem_alloc(r->m->mem, BUFFER);
	if (!r->buf) {
		r->status = error_no_memory(r->err);
		return NULL;
	}
	if (offset > in->size || size > in->size - offset)
		return NULL;
	if (forward || r->source != source)
		want = (size_t)MIN(in->size - offset, (uint64_t)BUFFER);
	r->source = 0;
	r->status = input_read_at(in, offset, r->buf, want, r->err);
	if (r->status != OW_OK)
		return NULL;
	r->source = source;
	r->base = offset;
	r->len = want;
	return r->buf;
}

static struct str read_large(struct tf_reader *r, uint32_t source, uint64_t offset, size_t size)
{
	/* field numbers: attributes, a value, a tensor */
	const uint32_t path[] = { attr_field(r, source), 2, 8 };
	const struct pb_copy small = {
		.field_max = FIELD_MAX,
		.max = NODE_MAX,
		.path = path,
		.path_len = ARRAY_COUNT(path),
	};
	struct ow_error problem = { 0 };
	struct window window;
	struct pb_stream stream;

	buf_clear(&r->large);
	window_init(&window, r->m->inputs[source], &problem);
	pb_stream_init(&stream, &window, offset, offset + size);
	pb_copy_small(&stream, &small, &r->large);
	window_release(&window);
	if (r->large.failed) {
		r->status = error_no_memory(r->err);
	} else if (stream.status != OW_OK && stream.status != OW_E_CORRUPT) {
		if (r->err)
			*r->err = problem;
		r->status = stream.status;
	}
	return r->status == OW_OK ? buf_str(&r->large) : STR("");
}

struct str tf_reader_bytes(struct tf_reader *r, uint32_t source, uint64_t offset, size_t size)
{
	const struct input *in = r->m->inputs[source];
	const unsigned char *bytes;

	if (r->status != OW_OK || offset > in->size || size > in->size - offset)
		return STR("");
	if (in->data)
		return str_make(in->data + offset, size);
	if (size > LARGE)
		return read_large(r, source, offset, size);
	bytes = read_small(r, source, offset, size);
	return bytes ? str_make(bytes, size) : STR("");
}

static void add_attr(struct tf_node *node, struct str entry)
{
	struct pb r = pb_over(entry.ptr, entry.len);
	struct tf_attr attr = { STR(""), STR("") };
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			attr.key = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			attr.value = pb_str(&f);
	}
	if (node->count < TF_ATTRS_MAX)
		node->attrs[node->count++] = attr;
}

void tf_reader_node(struct tf_reader *r, uint32_t op, struct tf_node *node)
{
	struct pb_field f;
	struct str record;
	uint32_t tag;
	struct pb pb;

	node->found = false;
	node->count = 0;
	if (r->status != OW_OK || !tf_reader_has(r, op))
		return;
	record = tf_reader_bytes(r, r->m->op.source[op].v, COLUMN_GET(r->m->op.record_offset, op),
				 r->m->op.record_size[op]);
	tag = PB_TAG(attr_field(r, r->m->op.source[op].v), PB_BYTES);
	pb = pb_over(record.ptr, record.len);
	while (pb_next(&pb, &f))
		if (f.tag == tag)
			add_attr(node, pb_str(&f));
	node->found = r->status == OW_OK;
}

/* The value of an attribute as the single field it consists of; if there are several the last one counts. Tag 0 when
 * there is none. */
static struct pb_field attr_value(const struct tf_node *node, const char *name)
{
	struct pb_field last = { 0 }, f;
	struct str key = str_from(name);

	for (uint32_t i = node->count; i-- > 0;) {
		struct pb r = pb_over(node->attrs[i].value.ptr, node->attrs[i].value.len);

		if (!str_eq(node->attrs[i].key, key))
			continue;
		while (pb_next(&r, &f))
			if (pb_number(&f) <= 10)
				last = f;
		break;
	}
	return last;
}

int64_t tf_attr_int(const struct tf_node *node, const char *name, int64_t none)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(3, PB_VARINT) ? (int64_t)f.value : none;
}

bool tf_attr_bool(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(5, PB_VARINT) && f.value != 0;
}

struct str tf_attr_str(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(2, PB_BYTES) ? pb_str(&f) : STR("");
}

struct tf_shape tf_attr_shape(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(7, PB_BYTES) ? tf_shape_from_proto(pb_str(&f)) : tf_shape_unknown();
}

struct str tf_attr_tensor(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(8, PB_BYTES) ? pb_str(&f) : (struct str){ NULL, 0 };
}

struct str tf_attr_function(const struct tf_node *node, const char *name, uint32_t number)
{
	struct pb_field f = attr_value(node, name);
	struct str function = { NULL, 0 };
	struct pb message;

	if (f.tag == PB_TAG(1, PB_BYTES)) { /* a list of functions */
		message = pb_message(&f);
		while (pb_next(&message, &f))
			if (f.tag == PB_TAG(9, PB_BYTES) && number-- == 0)
				function = pb_str(&f);
	} else if (f.tag == PB_TAG(10, PB_BYTES) && number == 0) {
		function = pb_str(&f);
	}
	if (!function.ptr)
		return function;
	message = pb_over(function.ptr, function.len);
	function = STR("");
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			function = pb_str(&f);
	return function;
}

size_t tf_attr_ints(const struct tf_node *node, const char *name, int64_t *values, size_t cap)
{
	struct pb_field f = attr_value(node, name);
	struct pb_values list;
	struct pb message;
	size_t count = 0;
	uint64_t value;

	if (f.tag != PB_TAG(1, PB_BYTES))
		return 0;
	message = pb_message(&f);
	while (pb_next(&message, &f)) {
		if (pb_number(&f) != 3)
			continue;
		for (list = pb_values(&f, PB_VARINT); pb_value(&list, &value); count++)
			if (count < cap)
				values[count] = (int64_t)value;
	}
	return count;
}

int64_t tf_attr_type(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return f.tag == PB_TAG(6, PB_VARINT) ? (int64_t)f.value : 0;
}

struct tf_shape_list tf_attr_shapes(const struct tf_node *node, const char *name)
{
	struct pb_field f = attr_value(node, name);

	return (struct tf_shape_list){
		.message = f.tag == PB_TAG(1, PB_BYTES) ? pb_message(&f) : pb_over("", 0),
	};
}

struct tf_shape tf_shape_list_at(struct tf_shape_list *list, int64_t number)
{
	struct pb_field f;

	while (list->next <= number && pb_next(&list->message, &f))
		if (f.tag == PB_TAG(7, PB_BYTES) && list->next++ == number)
			return tf_shape_from_proto(pb_str(&f));
	return tf_shape_unknown();
}
