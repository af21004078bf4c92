/*
 * tf_library.h: the functions in the libraries of graphs, by name, and their bodies, each read once when it is first
 * needed. Used by tf_inline.c. Only what is needed to copy a body into the graph is kept: types, edges, static shapes
 * and the offset of each node's definition. Functions whose arguments are lists of tensors cannot be used.
 */
#ifndef IMPORT_TF_LIBRARY_H
#define IMPORT_TF_LIBRARY_H

#include "base/arena.h"
#include "import/tensorflow/graph/tf_node.h"

/* The source of a tensor inside a body. */
enum tf_from { TF_FROM_NOWHERE, TF_FROM_ARG, TF_FROM_NODE };

struct tf_wire {
	enum tf_from from;
	uint32_t at;  /* index of the argument or node */
	int32_t port; /* output of a node; -1: a control edge */
};

struct tf_body_node {
	struct str name;
	str_id type;
	uint64_t offset; /* offset of the node's definition in the source */
	uint32_t size;
	uint32_t wire_count, output_count;
	const struct tf_wire *wires; /* inputs of the node */
	const shape_id *outputs;     /* static shapes of the outputs; nil where unknown */
};

struct tf_body {
	bool usable;
	uint32_t node_count;
	const struct tf_body_node *nodes;
	const struct tf_wire *returns; /* one for each return value of the function */
};

struct tf_function {
	str_id name;
	source_id source;
	uint64_t offset, size;
	uint32_t arg_count, return_count;
	const struct str *args, *returns; /* names of arguments and return values */
	bool lists;			  /* an argument or return value is a list */
	/* an op of the graph calls the function; the library does not use this field */
	bool called;
	struct tf_body *body; /* NULL until the body is read */
};

struct tf_library {
	struct builder *b;
	struct tf_reader *reader;
	struct arena arena;
	struct tf_function *functions; /* index 0 is unused */
	size_t function_count, function_cap;
	struct map map;		   /* name → number of the function */
	struct map local, results; /* names in the body being read */
};

/* Finds the functions of all libraries of the model. The caller releases `l` in any case. */
ow_status tf_library_init(struct tf_library *l, struct builder *b, struct tf_reader *reader);
void tf_library_release(struct tf_library *l);

/* The number of the function with that name; 0 when there is none. */
uint32_t tf_library_find(const struct tf_library *l, str_id name);
/* The body of a function; NULL if memory runs out, or when the source cannot be read: the builder or the reader has
 * the status. */
const struct tf_body *tf_library_body(struct tf_library *l, uint32_t function);

#endif
