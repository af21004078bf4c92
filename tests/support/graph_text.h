/*
 * graph_text.h: small TensorFlow graphs for tests, written on one line:
 *
 *	"x Placeholder <?x28>; f Const <28x10>; n Const {2,5}; y MatMul x f:0 ^n transpose_a=true"
 *
 * A node is its name, its type, then inputs and attributes in any order: <2x?> is the attribute "shape"
 * (<> a scalar, <*> of unknown rank), {1,2} a vector of int32 and #5 a scalar as the attribute "value".
 * A Const with <2x3> is a float tensor of that shape. Other attributes are key=5, key=true, key=text,
 * key=[1,2] and key=<2x3>; key=<2>,<3> is a list of shapes. key=@f is a function, key=@f,@g a list of them.
 */
#ifndef SUPPORT_GRAPH_TEXT_H
#define SUPPORT_GRAPH_TEXT_H

#include "wire/protobuf/pb_write.h"

static inline void gt_shape(struct buf *out, uint32_t field, struct str text)
{
	size_t shape = pb_begin(out, field);
	struct str piece;

	if (str_eq(text, STR("*")))
		pb_put_varint(out, 3, 1);
	else if (text.len)
		while (str_split(&text, 'x', &piece)) {
			size_t dim = pb_begin(out, 2);
			int64_t size = -1;

			(void)str_to_i64(piece, &size);
			pb_put_int(out, 1, size);
			pb_end(out, dim);
		}
	pb_end(out, shape);
}

/* Writes a packed list of integers, as field 3 of ListValue or any other field. */
static inline void gt_ints(struct buf *out, uint32_t field, struct str text, size_t *count)
{
	size_t list = pb_begin(out, field);
	struct str piece;

	*count = 0;
	while (text.len && str_split(&text, ',', &piece)) {
		int64_t value = 0;

		(void)str_to_i64(piece, &value);
		pb_add_varint(out, (uint64_t)value);
		++*count;
	}
	pb_end(out, list);
}

static inline void gt_int_tensor(struct buf *out, struct str text, bool scalar)
{
	size_t tensor = pb_begin(out, 8), count = 0, shape;
	char dim[24];

	pb_put_varint(out, 1, 3);
	gt_ints(out, 7, text, &count);
	if (!scalar) {
		snprintf(dim, sizeof(dim), "%zu", count);
		gt_shape(out, 2, str_from(dim));
	} else {
		shape = pb_begin(out, 2);
		pb_end(out, shape);
	}
	pb_end(out, tensor);
}

static inline void gt_float_tensor(struct buf *out, struct str shape)
{
	size_t tensor = pb_begin(out, 8);

	pb_put_varint(out, 1, 1);
	gt_shape(out, 2, shape);
	pb_end(out, tensor);
}

static inline void gt_func(struct buf *out, uint32_t field, struct str name)
{
	size_t func = pb_begin(out, field);

	pb_put_str(out, 1, name);
	pb_end(out, func);
}

static inline void gt_funcs(struct buf *out, struct str text)
{
	size_t list = pb_begin(out, 1);
	struct str piece;

	while (str_split(&text, ',', &piece))
		gt_func(out, 9, str_skip(piece, 1));
	pb_end(out, list);
}

static inline void gt_attr_value(struct buf *out, struct str text)
{
	int64_t number;
	size_t list, count;

	if (text.len && text.ptr[0] == '@') {
		if (str_find_char(text, ',') == STR_NONE)
			gt_func(out, 10, str_skip(text, 1));
		else
			gt_funcs(out, text);
		return;
	}
	if (str_to_i64(text, &number)) {
		pb_put_int(out, 3, number);
	} else if (str_eq(text, STR("true")) || str_eq(text, STR("false"))) {
		pb_put_varint(out, 5, text.len == 4);
	} else if (text.len && text.ptr[0] == '[') {
		list = pb_begin(out, 1);
		gt_ints(out, 3, str_make(text.ptr + 1, text.len - 2), &count);
		pb_end(out, list);
	} else if (text.len && text.ptr[0] == '<' && str_find_char(text, ',') == STR_NONE) {
		gt_shape(out, 7, str_make(text.ptr + 1, text.len - 2));
	} else if (text.len && text.ptr[0] == '<') {
		struct str piece;

		list = pb_begin(out, 1);
		while (str_split(&text, ',', &piece))
			gt_shape(out, 7, str_make(piece.ptr + 1, piece.len - 2));
		pb_end(out, list);
	} else {
		pb_put_str(out, 2, text);
	}
}

enum gt_kind { GT_PLAIN, GT_SHAPE, GT_VECTOR, GT_SCALAR, GT_FLOATS };

static inline void gt_attr(struct buf *out, struct str key, enum gt_kind kind, struct str text)
{
	size_t entry = pb_begin(out, 5), value;

	pb_put_str(out, 1, key);
	value = pb_begin(out, 2);
	if (kind == GT_SHAPE)
		gt_shape(out, 7, text);
	else if (kind == GT_FLOATS)
		gt_float_tensor(out, text);
	else if (kind == GT_PLAIN)
		gt_attr_value(out, text);
	else
		gt_int_tensor(out, text, kind == GT_SCALAR);
	pb_end(out, value);
	pb_end(out, entry);
}

static inline void gt_type(struct buf *out, struct str key, uint64_t type)
{
	size_t entry = pb_begin(out, 5), value;

	pb_put_str(out, 1, key);
	value = pb_begin(out, 2);
	pb_put_varint(out, 6, type);
	pb_end(out, value);
	pb_end(out, entry);
}

static inline void gt_token(struct buf *out, struct str token, bool is_const)
{
	struct str inside = token.len > 2 ? str_make(token.ptr + 1, token.len - 2) : STR("");
	size_t equals = str_find_char(token, '=');

	if (token.ptr[0] == '<' && is_const) {
		gt_type(out, STR("dtype"), 1);
		gt_attr(out, STR("value"), GT_FLOATS, inside);
	} else if (token.ptr[0] == '<') {
		gt_attr(out, STR("shape"), GT_SHAPE, inside);
	} else if (token.ptr[0] == '{') {
		gt_attr(out, STR("value"), GT_VECTOR, inside);
	} else if (token.ptr[0] == '#') {
		gt_attr(out, STR("value"), GT_SCALAR, str_skip(token, 1));
	} else if (equals != STR_NONE) {
		gt_attr(out, str_first(token, equals), GT_PLAIN, str_skip(token, equals + 1));
	} else {
		pb_put_str(out, 3, token);
	}
}

static inline void gt_node_in(struct buf *out, uint32_t field, struct str text)
{
	size_t node = pb_begin(out, field);
	bool is_const = false;
	struct str token;
	int at = 0;

	while (str_split(&text, ' ', &token)) {
		if (!token.len)
			continue;
		if (at < 2)
			pb_put_str(out, at == 0 ? 1 : 2, token);
		else
			gt_token(out, token, is_const);
		if (at++ == 1)
			is_const = str_eq(token, STR("Const"));
	}
	pb_end(out, node);
}

static inline void gt_node(struct buf *out, struct str text)
{
	gt_node_in(out, 1, text);
}

/* Writes the nodes of a graph, or of a function. */
static inline void gt_nodes(struct buf *out, uint32_t field, struct str text)
{
	struct str node;

	while (str_split(&text, ';', &node))
		if (str_trim(node).len)
			gt_node_in(out, field, str_trim(node));
}

static inline void gt_args(struct buf *out, uint32_t field, struct str names)
{
	struct str name;

	while (str_split(&names, ' ', &name)) {
		size_t arg, equals = str_find_char(name, '=');

		if (!name.len)
			continue;
		arg = pb_begin(out, field);
		pb_put_str(out, 1, equals == STR_NONE ? name : str_first(name, equals));
		pb_put_varint(out, 3, 1);
		pb_end(out, arg);
	}
}

/* Writes a library with one function: gt_function(out, "f", "a b", "r=m:product:0", "m MatMul a b"). */
static inline void gt_function(struct buf *out, const char *name, const char *args,
			       const char *returns, const char *body)
{
	size_t library = pb_begin(out, 2), function = pb_begin(out, 1),
	       signature = pb_begin(out, 1);
	struct str rest = str_from(returns), piece;

	pb_put_str(out, 1, str_from(name));
	gt_args(out, 2, str_from(args));
	gt_args(out, 3, rest);
	pb_end(out, signature);
	gt_nodes(out, 3, str_from(body));
	while (str_split(&rest, ' ', &piece)) {
		size_t equals = str_find_char(piece, '='), entry;

		if (equals == STR_NONE)
			continue;
		entry = pb_begin(out, 4);
		pb_put_str(out, 1, str_first(piece, equals));
		pb_put_str(out, 2, str_skip(piece, equals + 1));
		pb_end(out, entry);
	}
	pb_end(out, function);
	pb_end(out, library);
}

/* Writes a whole GraphDef, of a version that knows scalars. */
static inline void gt_graph(struct buf *out, const char *text)
{
	size_t versions;

	gt_nodes(out, 1, str_from(text));
	versions = pb_begin(out, 4);
	pb_put_varint(out, 1, 27);
	pb_end(out, versions);
}

#endif
