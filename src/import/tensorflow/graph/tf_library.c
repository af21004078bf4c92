/*
 * tf_library.c: finds functions in the libraries of graphs and reads their bodies (tf_library.h). A FunctionDef is read
 * twice: once for the names of its nodes, once for their edges, because nodes come in any order. Damage inside a
 * function makes only this function unusable.
 */
#include "import/tensorflow/graph/tf_library.h"

#include "base/vec.h"

#include "import/tensorflow/shapes/tf_rule.h"
#include "import/tensorflow/shapes/tf_shape.h"
#include "wire/protobuf/pb_stream.h"

#define SIGNATURE_MAX ((uint64_t)16 << 20)
#define RESULTS_MAX 1024 /* limit of results of a direct call that are searched by name */

static const struct {
	const char *type, *names;
} OUTPUT_NAMES[] = {
#define OUTPUTS(type, names) { #type, names },
#include "import/tensorflow/shapes/tf_outputs.def"
#undef OUTPUTS
};

/* State while the body of a function is read. */
struct reading {
	struct tf_library *l;
	const struct tf_function *function;
	struct tf_body *body;
	struct window window;
	struct pb_stream stream;
	struct ow_error problem;
	struct tf_body_node *nodes;
	struct tf_wire *returns;
	bool broken;
};

static bool no_memory(struct tf_library *l)
{
	builder_fail(l->b, error_no_memory(l->b->err));
	return false;
}

uint32_t tf_library_find(const struct tf_library *l, str_id name)
{
	struct map_iter it = map_find(&l->map, map_hash_u64(name.v, 13));

	for (; it.value; it = map_next(&l->map, it))
		if (l->functions[it.value].name.v == name.v)
			return it.value;
	return 0;
}

static bool add_function(struct tf_library *l, const struct tf_function *f)
{
	if (!vec_reserve(l->b->m->mem, l->functions, l->function_cap, l->function_count + 1))
		return no_memory(l);
	if (!map_add(&l->map, map_hash_u64(f->name.v, 13), (uint32_t)l->function_count))
		return no_memory(l);
	l->functions[l->function_count++] = *f;
	return true;
}

/* Reads the name of an argument or result; sets function->lists if it stands for several tensors. */
static struct str read_arg(struct tf_function *function, const struct pb_field *field)
{
	struct pb message = pb_message(field);
	struct str name = STR("");
	struct pb_field f;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			name = pb_str(&f);
		else if ((f.tag == PB_TAG(5, PB_BYTES) || f.tag == PB_TAG(6, PB_BYTES)) && f.value)
			function->lists = true;
	}
	return name;
}

static bool read_args(struct tf_library *l, struct tf_function *function, struct pb signature,
		      uint32_t tag, const struct str **names, uint32_t *count)
{
	struct pb again = signature;
	struct str *list;
	uint32_t room = 0;
	struct pb_field f;

	while (pb_next(&signature, &f))
		room += f.tag == tag;
	list = ARENA_ARRAY(&l->arena, struct str, room);
	if (room && !list)
		return no_memory(l);
	while (*count < room && pb_next(&again, &f)) {
		if (f.tag != tag)
			continue;
		list[*count] = arena_str(&l->arena, read_arg(function, &f));
		if (!list[(*count)++].ptr)
			return no_memory(l);
	}
	*names = list;
	return true;
}

/* Reads an OpDef, which is completely in memory. */
static void read_signature(struct tf_library *l, struct tf_function *function, struct str bytes)
{
	struct pb whole = pb_over(bytes.ptr, bytes.len), r = whole;
	struct pb_field f;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			function->name = builder_str(l->b, pb_str(&f));
	if (!function->name.v || r.problem || tf_library_find(l, function->name))
		return;
	if (read_args(l, function, whole, PB_TAG(2, PB_BYTES), &function->args,
		      &function->arg_count) &&
	    read_args(l, function, whole, PB_TAG(3, PB_BYTES), &function->returns,
		      &function->return_count))
		add_function(l, function);
}

static void find_function(struct tf_library *l, source_id source, struct pb_stream *s,
			  const struct pb_stream_field *at)
{
	struct tf_function function = { .source = source, .offset = at->offset, .size = at->size };
	struct pb_stream_field f;

	if (at->cut || !pb_stream_enter(s, at))
		return;
	while (pb_stream_next(s, &f)) {
		const uint8_t *bytes;

		if (f.tag != PB_TAG(1, PB_BYTES) || f.size > SIGNATURE_MAX)
			continue;
		bytes = pb_stream_bytes(s, &f);
		if (bytes)
			read_signature(l, &function, str_make(bytes, (size_t)f.size));
		break;
	}
	pb_stream_leave(s);
}

static ow_status find_functions(struct tf_library *l, const struct function_library *library)
{
	struct model *m = l->b->m;
	struct ow_error problem = { 0 };
	struct pb_stream_field f;
	struct pb_stream stream;
	struct window window;

	if (library->source.v >= m->input_cap || !m->inputs[library->source.v])
		return OW_OK;
	window_init(&window, m->inputs[library->source.v], &problem);
	pb_stream_init(&stream, &window, library->offset, library->offset + library->size);
	while (l->b->status == OW_OK && pb_stream_next(&stream, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			find_function(l, library->source, &stream, &f);
	window_release(&window);
	if (stream.status != OW_OK && stream.status != OW_E_CORRUPT) {
		if (l->b->err)
			*l->b->err = problem;
		return builder_fail(l->b, stream.status);
	}
	return l->b->status;
}

ow_status tf_library_init(struct tf_library *l, struct builder *b, struct tf_reader *reader)
{
	*l = (struct tf_library){ .b = b, .reader = reader, .function_count = 1 };
	arena_init(&l->arena, b->m->mem);
	map_init(&l->map, b->m->mem);
	map_init(&l->local, b->m->mem);
	map_init(&l->results, b->m->mem);
	for (size_t i = 0; i < b->m->library_count; i++)
		OW_TRY(find_functions(l, &b->m->libraries[i]));
	return OW_OK;
}

void tf_library_release(struct tf_library *l)
{
	mem_free(l->b->m->mem, l->functions, l->function_cap * sizeof(*l->functions));
	map_release(&l->map);
	map_release(&l->local);
	map_release(&l->results);
	arena_release(&l->arena);
}

/* The number of a name: 1 .. arg_count for arguments, then nodes. 0 when it is unknown. */
static uint32_t find_local(const struct reading *r, struct str name)
{
	struct map_iter it = map_find(&r->l->local, str_hash(name));

	for (; it.value; it = map_next(&r->l->local, it)) {
		uint32_t at = it.value - 1;
		struct str known = at < r->function->arg_count
					   ? r->function->args[at]
					   : r->nodes[at - r->function->arg_count].name;

		if (str_eq(known, name))
			return it.value;
	}
	return 0;
}

static struct str node_bytes(struct reading *r, const struct tf_body_node *node)
{
	return tf_reader_bytes(r->l->reader, r->function->source.v, node->offset, node->size);
}

static bool read_node_name(struct reading *r, struct tf_body_node *node)
{
	struct str bytes = node_bytes(r, node);
	struct pb message = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	node->name = STR("");
	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			node->name = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			node->type = builder_str(r->l->b, pb_str(&f));
	}
	r->broken |= message.problem != PB_OK;
	node->name = arena_str(&r->l->arena, node->name);
	if (!node->name.ptr)
		return no_memory(r->l);
	return true;
}

/* The index of a name in a list of words; -1 when it is not there. */
static int32_t place_of(struct str names, struct str name)
{
	struct str piece;

	for (int32_t at = 0; str_split(&names, ' ', &piece); at++)
		if (str_eq(piece, name))
			return at;
	return -1;
}

/* The index of a result: a direct call names the results of the function that it calls. */
static int32_t result_of(const struct tf_function *function, struct str name)
{
	for (uint32_t i = 0; i < MIN(function->return_count, (uint32_t)RESULTS_MAX); i++)
		if (str_eq(function->returns[i], name))
			return (int32_t)i;
	return -1;
}

/* The number of the first output with that name; negative when it is unknown. */
static int32_t output_base(const struct tf_library *l, const struct tf_body_node *node,
			   struct str name)
{
	struct str type = model_str(l->b->m, node->type);
	uint32_t function = tf_library_find(l, node->type);

	if (!name.len)
		return 0;
	if (function)
		return result_of(&l->functions[function], name);
	for (size_t i = 0; i < ARRAY_COUNT(OUTPUT_NAMES); i++)
		if (str_eq(type, str_from(OUTPUT_NAMES[i].type)))
			return place_of(str_from(OUTPUT_NAMES[i].names), name);
	/* Op types that have a rule and several named outputs are all in the table above. */
	return node->output_count > 1 && !tf_rule_find(type) ? -1 : 0;
}

static int32_t port_of(const struct tf_library *l, const struct tf_body_node *node, struct str name,
		       int64_t number)
{
	int32_t base = output_base(l, node, name);

	return base < 0 || number < 0 || number > INT32_MAX - base ? -1 : base + (int32_t)number;
}

/* Reads an input: "arg", "arg:0", "node:output:0", "node:output" or "^node". */
static struct tf_wire read_wire(const struct reading *r, struct str text)
{
	const struct tf_wire nowhere = { .from = TF_FROM_NOWHERE };
	bool control = text.len && text.ptr[0] == '^';
	struct str rest = control ? str_skip(text, 1) : text, name = STR(""), output = STR("");
	uint32_t local, args = r->function->arg_count;
	int64_t number = 0;
	int32_t port;

	(void)str_split(&rest, ':', &name);
	local = find_local(r, name);
	if (!local || (control && local <= args))
		return nowhere;
	if (local <= args)
		return (struct tf_wire){ .from = TF_FROM_ARG, .at = local - 1 };
	(void)str_split(&rest, ':', &output);
	if (rest.len && !str_to_i64(rest, &number))
		return nowhere;
	port = port_of(r->l, &r->nodes[local - 1 - args], output, number);
	if (!control && port < 0)
		return nowhere;
	return (struct tf_wire){ TF_FROM_NODE, local - 1 - args, control ? -1 : port };
}

static bool read_output_shapes(struct reading *r, struct tf_body_node *node, struct str entry)
{
	struct pb list, message = pb_over(entry.ptr, entry.len);
	struct str key = STR(""), value = STR("");
	shape_id *shapes;
	struct pb_field f;
	uint32_t count = 0;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			key = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			value = pb_str(&f);
	}
	if (!str_eq(key, STR("_output_shapes")))
		return true;
	message = pb_over(value.ptr, value.len);
	value = STR("");
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			value = pb_str(&f);
	for (list = pb_over(value.ptr, value.len); pb_next(&list, &f);)
		count += f.tag == PB_TAG(7, PB_BYTES);
	shapes = ARENA_ARRAY(&r->l->arena, shape_id, count);
	if (count && !shapes)
		return no_memory(r->l);
	node->output_count = 0;
	for (list = pb_over(value.ptr, value.len); pb_next(&list, &f);)
		if (f.tag == PB_TAG(7, PB_BYTES))
			shapes[node->output_count++] = tf_shape_static(r->l->b, pb_str(&f));
	node->outputs = shapes;
	return true;
}

static bool read_node_shapes(struct reading *r, struct tf_body_node *node)
{
	struct str bytes = node_bytes(r, node);
	struct pb message = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	while (pb_next(&message, &f)) {
		node->wire_count += f.tag == PB_TAG(3, PB_BYTES);
		if (f.tag == PB_TAG(5, PB_BYTES) && !read_output_shapes(r, node, pb_str(&f)))
			return false;
	}
	return true;
}

static bool read_node_wires(struct reading *r, struct tf_body_node *node)
{
	struct str bytes = node_bytes(r, node);
	struct pb message = pb_over(bytes.ptr, bytes.len);
	struct tf_wire *wires = ARENA_ARRAY(&r->l->arena, struct tf_wire, node->wire_count);
	struct pb_field f;
	uint32_t at = 0;

	if (node->wire_count && !wires)
		return no_memory(r->l);
	while (at < node->wire_count && pb_next(&message, &f))
		if (f.tag == PB_TAG(3, PB_BYTES))
			wires[at++] = read_wire(r, pb_str(&f));
	node->wire_count = at;
	node->wires = wires;
	return true;
}

static bool add_local(struct reading *r, struct str name, uint32_t number)
{
	return map_add(&r->l->local, str_hash(name), number) || no_memory(r->l);
}

static void start_function(struct reading *r)
{
	pb_stream_init(&r->stream, &r->window, r->function->offset,
		       r->function->offset + r->function->size);
}

static bool read_names(struct reading *r)
{
	uint32_t args = r->function->arg_count, room = 0;
	struct pb_stream_field f;

	for (uint32_t i = 0; i < args; i++)
		if (!add_local(r, r->function->args[i], i + 1))
			return false;
	for (start_function(r); pb_stream_next(&r->stream, &f);)
		room += f.tag == PB_TAG(3, PB_BYTES);
	r->nodes = ARENA_ARRAY(&r->l->arena, struct tf_body_node, room);
	if (room && !r->nodes)
		return no_memory(r->l);
	for (start_function(r); r->body->node_count < room && pb_stream_next(&r->stream, &f);) {
		struct tf_body_node *node = &r->nodes[r->body->node_count];

		if (f.tag != PB_TAG(3, PB_BYTES) || f.cut || f.size > UINT32_MAX)
			continue;
		*node = (struct tf_body_node){ .offset = f.offset, .size = (uint32_t)f.size };
		if (!read_node_name(r, node) || !read_node_shapes(r, node) ||
		    !add_local(r, node->name, args + ++r->body->node_count))
			return false;
	}
	return true;
}

static bool read_wires(struct reading *r)
{
	for (uint32_t i = 0; i < r->body->node_count; i++)
		if (!read_node_wires(r, &r->nodes[i]))
			return false;
	return true;
}

/* Reads an entry of the map from results to the tensors that they return. */
static void read_return(struct reading *r, struct str entry)
{
	struct pb message = pb_over(entry.ptr, entry.len);
	struct str name = STR(""), from = STR("");
	struct pb_field f;
	struct map_iter it;

	while (pb_next(&message, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			name = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			from = pb_str(&f);
	}
	for (it = map_find(&r->l->results, str_hash(name)); it.value;
	     it = map_next(&r->l->results, it))
		if (str_eq(r->function->returns[it.value - 1], name))
			r->returns[it.value - 1] = read_wire(r, from);
}

static bool begin_returns(struct reading *r)
{
	uint32_t count = r->function->return_count;

	r->returns = ARENA_ARRAY(&r->l->arena, struct tf_wire, count);
	if (count && !r->returns)
		return no_memory(r->l);
	for (uint32_t i = 0; i < count; i++) {
		r->returns[i] = (struct tf_wire){ .from = TF_FROM_NOWHERE };
		if (!map_add(&r->l->results, str_hash(r->function->returns[i]), i + 1))
			return no_memory(r->l);
	}
	return true;
}

static bool read_returns(struct reading *r)
{
	struct pb_stream_field f;

	if (!begin_returns(r))
		return false;
	for (start_function(r); pb_stream_next(&r->stream, &f);) {
		const uint8_t *bytes;

		if (f.tag != PB_TAG(4, PB_BYTES) || f.size > SIGNATURE_MAX)
			continue;
		bytes = pb_stream_bytes(&r->stream, &f);
		if (bytes)
			read_return(r, str_make(bytes, (size_t)f.size));
	}
	return true;
}

static void read_body(struct reading *r)
{
	if (r->function->lists || !read_names(r) || !read_wires(r) || !read_returns(r))
		return;
	r->body->nodes = r->nodes;
	r->body->returns = r->returns;
	r->body->usable = !r->broken && r->stream.status == OW_OK;
}

const struct tf_body *tf_library_body(struct tf_library *l, uint32_t function)
{
	struct tf_function *f = &l->functions[function];
	struct reading r = { .l = l, .function = f };

	if (f->body)
		return f->body;
	r.body = ARENA_NEW(&l->arena, struct tf_body);
	if (!r.body) {
		no_memory(l);
		return NULL;
	}
	*r.body = (struct tf_body){ .usable = false };
	map_release(&l->local);
	map_release(&l->results);
	map_init(&l->local, l->b->m->mem);
	map_init(&l->results, l->b->m->mem);
	window_init(&r.window, l->b->m->inputs[f->source.v], &r.problem);
	read_body(&r);
	window_release(&r.window);
	if (r.stream.status != OW_OK && r.stream.status != OW_E_CORRUPT) {
		if (l->b->err)
			*l->b->err = r.problem;
		builder_fail(l->b, r.stream.status);
	}
	if (l->b->status != OW_OK || l->reader->status != OW_OK)
		return NULL;
	f->body = r.body;
	return f->body;
}
