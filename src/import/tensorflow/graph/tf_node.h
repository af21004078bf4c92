/*
 * tf_node.h: the attributes of one graph node, read from its definition in the source. The importers keep only the
 * offset and size of each definition (op.record_offset, record_size); shape rules and flop formulas read the few
 * attributes they need. A struct tf_node points into the reader's memory and is valid until the next node is read.
 */
#ifndef IMPORT_TF_NODE_H
#define IMPORT_TF_NODE_H

#include "import/tensorflow/shapes/tf_shape.h"
#include "wire/protobuf/pb.h"

#define TF_ATTRS_MAX 48 /* more attributes than any op has; further ones are ignored */

struct tf_attr {
	struct str key, value; /* value: a serialized AttrValue */
};

struct tf_node {
	bool found; /* the op has a definition */
	uint32_t count;
	struct tf_attr attrs[TF_ATTRS_MAX];
};

struct tf_reader {
	struct model *m;
	struct ow_error *err;
	ow_status status; /* status of the first failure; later reads do nothing */
	str_id profile_format;
	uint32_t source; /* source and range of the bytes in buf */
	uint64_t base;
	size_t len;
	unsigned char *buf;
	struct buf large; /* a node without its large tensors */
};

void tf_reader_init(struct tf_reader *r, struct model *m, struct ow_error *err);
void tf_reader_release(struct tf_reader *r);

/* Whether the op has a definition that can be read. */
bool tf_reader_has(const struct tf_reader *r, uint32_t op);
/* Reads the attributes of an op; node->found is false if the op has no definition. */
void tf_reader_node(struct tf_reader *r, uint32_t op, struct tf_node *node);

/* The bytes of any node definition, without large tensors; empty when they cannot be read. */
struct str tf_reader_bytes(struct tf_reader *r, uint32_t source, uint64_t offset, size_t size);

/* The value of an attribute by name; the default when it is missing or has another kind. */
int64_t tf_attr_int(const struct tf_node *node, const char *name, int64_t none);
bool tf_attr_bool(const struct tf_node *node, const char *name);
struct str tf_attr_str(const struct tf_node *node, const char *name);
struct tf_shape tf_attr_shape(const struct tf_node *node, const char *name);
/* The bytes of a TensorProto; a NULL ptr when there is none. */
struct str tf_attr_tensor(const struct tf_node *node, const char *name);
/* The name of a function, or of one in a list of functions; a NULL ptr when there is none. */
struct str tf_attr_function(const struct tf_node *node, const char *name, uint32_t number);
/* The number of integers in a list; at most `cap` are stored. */
size_t tf_attr_ints(const struct tf_node *node, const char *name, int64_t *values, size_t cap);
int64_t tf_attr_type(const struct tf_node *node, const char *name); /* a DataType; 0 = none */

/* A list of shapes, read forward only: numbers must ascend. */
struct tf_shape_list {
	struct pb message;
	int64_t next;
};
struct tf_shape_list tf_attr_shapes(const struct tf_node *node, const char *name);
struct tf_shape tf_shape_list_at(struct tf_shape_list *list, int64_t number);

#endif
