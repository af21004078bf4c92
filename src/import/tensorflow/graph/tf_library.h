/*
 * tf_library.h: the functions that graphs carry in their libraries, by name, and their bodies, each read once when it is first
 * asked for. Used by tf_inline.c. Only what is needed to copy a body into the graph is kept: types, edges, static shapes and
 * where each node is defined. Functions whose arguments are lists of tensors are not usable.
 */
#ifndef IMPORT_TF_LIBRARY_H
#define IMPORT_TF_LIBRARY_H

#include "base/arena.h"
#include "import/tensorflow/graph/tf_node.h"

/* Where a tensor inside a body comes from. */
enum tf_from { TF_FROM_NOWHERE, TF_FROM_ARG, TF_FROM_NODE };

struct tf_wire {
	enum tf_from from;
	uint32_t at;  /* of the arguments, or of the nodes */
	int32_t port; /* of a node; -1: a control edge */
};

struct tf_body_node {
	struct str name;
	str_id type;
	uint64_t offset; /* of its definition in the source */
	uint32_t size;
	uint32_t wire_count, output_count;
	const struct tf_wire *wires; /* its inputs */
	const shape_id *outputs;     /* static shapes; nil where unknown */
};

struct tf_body {
	bool usable;
	uint32_t node_count;
	const struct tf_body_node *nodes;
	const struct tf_wire *returns; /* as many as the function has */
};

struct tf_function {
	str_id name;
	source_id source;
	uint64_t offset, size;
	uint32_t arg_count, return_count;
	const struct str *args, *returns; /* their names */
	bool lists;			  /* an argument or return value is a list */
	bool called;			  /* by an op of the graph; the library does not ask */
	struct tf_body *body;		  /* NULL until asked for */
};

struct tf_library {
	struct builder *b;
	struct tf_reader *reader;
	struct arena arena;
	struct tf_function *functions; /* [0] is unused */
	size_t function_count, function_cap;
	struct map map;		   /* of names */
	struct map local, results; /* names in the body being read */
};

/* Finds the functions of all libraries of the model. Release in any case. */
ow_status tf_library_init(struct tf_library *l, struct builder *b, struct tf_reader *reader);
void tf_library_release(struct tf_library *l);

/* Number of the function of that name; 0 when there is none. */
uint32_t tf_library_find(const struct tf_library *l, str_id name);
/* Its body; NULL without memory, or when the source cannot be read: the builder or the reader has the status. */
const struct tf_body *tf_library_body(struct tf_library *l, uint32_t function);

#endif
