/* tf_input_shape.c: see tf_input_shape.h. */
#include "import/tf_input_shape.h"

static bool is_placeholder(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	return str_eq(type, STR("Placeholder")) || str_eq(type, STR("PlaceholderV2")) ||
	       str_eq(type, STR("PlaceholderWithDefault"));
}

/* Tensors come into the graph here: what could be given a shape. */
static bool is_entry(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	return is_placeholder(m, op) || str_ends(type, STR("GetNext")) ||
	       str_has(type, STR("Dequeue"));
}

static bool parse_size(struct str text, int64_t *size)
{
	if (str_eq(text, STR("?")) || str_eq(text, STR("-1"))) {
		*size = TF_UNKNOWN;
		return true;
	}
	return str_to_i64(text, size) && *size >= 0;
}

static bool parse_shape(struct str text, struct tf_shape *shape)
{
	struct str piece;
	int64_t size;

	*shape = tf_shape_scalar();
	if (str_eq(text, STR("scalar")))
		return true;
	while (str_split(&text, 'x', &piece)) {
		if (!parse_size(piece, &size) || shape->rank == TF_RANK_MAX)
			return false;
		tf_shape_push(shape, size);
	}
	return true;
}

/* "name" or "name:1". */
static uint32_t find_output(const struct model *m, struct str name, int32_t *port)
{
	size_t colon = str_rfind_char(name, ':');
	op_id op = model_find_op(m, name);
	int64_t number;

	*port = 0;
	if (op.v || colon == STR_NONE)
		return op.v;
	if (!str_to_i64(str_skip(name, colon + 1), &number) || number < 0 || number > INT32_MAX)
		return 0;
	*port = (int32_t)number;
	return model_find_op(m, str_first(name, colon)).v;
}

static void list_placeholders(const struct model *m, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t op = 1; op < m->op.count && len + 1 < size; op++) {
		struct str name = model_str(m, m->op.name[op]);

		if (!is_placeholder(m, op))
			continue;
		if (len + name.len + 8 > size) {
			snprintf(text + len, size - len, ", …");
			return;
		}
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", len ? ", " : "",
					STR_ARG(name));
	}
}

static ow_status no_such_op(const struct model *m, const char *text, struct str name,
			    struct error *err)
{
	char names[512];

	list_placeholders(m, names, sizeof(names));
	return error_set(err, OW_E_USAGE,
			 "--input-shape %s: nothing in the graph is called '%.*s'; %s%s", text,
			 STR_ARG(name),
			 names[0] ? "its placeholders are " : "it has no placeholders", names);
}

/* What the graph itself says of an output: its static shape, or what an attribute declares. */
static struct tf_shape declared_shape(struct tf_flow *flow, struct tf_reader *reader, uint32_t op,
				      const struct tf_slot *slot)
{
	struct tf_shape shape = tf_shape_load(flow->m, slot->shape);
	struct tf_shape_list list;
	struct tf_node node;

	if (shape.rank != TF_UNKNOWN)
		return shape;
	tf_reader_node(reader, op, &node);
	list = tf_attr_shapes(&node, "output_shapes");
	shape = tf_shape_list_at(&list, slot->port);
	return shape.rank == TF_UNKNOWN && !slot->port ? tf_attr_shape(&node, "shape") : shape;
}

static ow_status apply_one(struct tf_flow *flow, struct tf_reader *reader, const char *text,
			   struct error *err)
{
	struct str whole = str_from(text), name;
	size_t equals = str_rfind_char(whole, '=');
	struct tf_shape shape, known;
	struct tf_slot *slot;
	char shown[128];
	int32_t port;
	uint32_t op;

	if (equals == STR_NONE || !equals || !parse_shape(str_skip(whole, equals + 1), &shape))
		return error_set(err, OW_E_USAGE,
				 "--input-shape %s: expected NAME=100x784, with ? for an unknown "
				 "size, or NAME=scalar",
				 text);
	name = str_first(whole, equals);
	op = find_output(flow->m, name, &port);
	slot = op ? tf_flow_output(flow, op, port) : NULL;
	if (!slot)
		return no_such_op(flow->m, text, name, err);
	/* Of an old graph an empty shape may stand for an unknown one, so a scalar gives way. */
	known = declared_shape(flow, reader, op, slot);
	if (known.rank > 0 && !tf_shape_merge(&shape, &known))
		return error_set(err, OW_E_USAGE, "--input-shape %s: the graph says that it is %s",
				 text, tf_shape_text(&known, shown, sizeof(shown)));
	slot->shape = tf_shape_store(flow->b, &shape);
	return reader->status == OW_OK ? builder_status(flow->b) : reader->status;
}

ow_status tf_input_shapes_apply(struct tf_flow *flow, struct tf_reader *reader,
				const struct import_options *options, struct error *err)
{
	for (size_t i = 0; i < options->input_shape_count; i++)
		OW_TRY(apply_one(flow, reader, options->input_shapes[i], err));
	return OW_OK;
}

size_t tf_input_shape_print(const struct tf_flow *flow, uint32_t op, const struct tf_slot *slot,
			    char *text, size_t size)
{
	struct tf_shape shape = tf_shape_load(flow->m, slot->shape);
	char sizes[128] = "…", port[16] = "";

	if (shape.rank != TF_UNKNOWN)
		tf_shape_text(&shape, sizes, sizeof(sizes));
	for (char *at = sizes; *at; at++)
		if (*at == '?')
			*at = 'N';
	if (slot->port)
		snprintf(port, sizeof(port), ":%" PRId32, slot->port);
	return (size_t)snprintf(text, size, "--input-shape %.*s%s=%s",
				STR_ARG(model_str(flow->m, flow->m->op.name[op])), port, sizes);
}

size_t tf_input_shapes_wanted(const struct tf_flow *flow, size_t most, char *text, size_t size)
{
	struct model *m = flow->m;
	size_t len = 0, count = 0;

	text[0] = '\0';
	for (uint32_t op = 1; op < m->op.count; op++) {
		if (!is_entry(m, op))
			continue;
		for (uint32_t i = flow->slot_first[op]; i < flow->slot_first[op + 1]; i++) {
			if (tf_shape_id_full(m, flow->slots[i].shape) || count++ >= most ||
			    len + model_str(m, m->op.name[op]).len + 192 > size)
				continue;
			if (len)
				text[len++] = ' ';
			len += tf_input_shape_print(flow, op, &flow->slots[i], text + len,
						    size - len);
		}
	}
	return count;
}
