/*
 * demangle_int.h: the tree between demangle.c, which reads a mangled name, and demangle_print.c, which
 * writes the declaration. Nodes are shared wherever the name refers back, so the tree is a graph without
 * cycles that may be exponentially larger when written out: the printer counts what it does.
 */
#ifndef BASE_DEMANGLE_INT_H
#define BASE_DEMANGLE_INT_H

#include "base/demangle/demangle.h"

enum node_kind {
	NODE_TEXT,	 /* text */
	NODE_NESTED,	 /* a::b */
	NODE_TEMPLATE,	 /* a<b…>, b a list */
	NODE_LIST,	 /* a, then the list b */
	NODE_SUFFIX,	 /* a followed by text: cv-qualifiers, ABI tags */
	NODE_POINTER,	 /* a followed by text: *, &, && */
	NODE_MEMBER,	 /* pointer to member b of class a */
	NODE_FUNCTION,	 /* returns a (may be nil), takes the list b, then text */
	NODE_ARRAY,	 /* of a, dimension text or b */
	NODE_ENCODING,	 /* name a, function b: only the part of b around the name is written */
	NODE_LITERAL,	 /* value text of type a */
	NODE_PACK,	 /* the list b, without brackets */
	NODE_LAMBDA,	 /* takes the list b; text is its number */
	NODE_UNNAMED,	 /* text is its number */
	NODE_PREFIX,	 /* text before a: special names, ~ of destructors, unary operators */
	NODE_BINARY,	 /* (a)text(b) */
	NODE_CONVERSION, /* operator a */
};

struct demangle_node {
	uint8_t kind;
	uint32_t a, b; /* other nodes; 0 = none */
	struct str text;
};

#define MANGLED_MAX 16384 /* bytes of a name */

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* demangle_print.c: writes node `root`; false when it exceeds the limits. */
bool demangle_print(const struct demangle_node *nodes, uint32_t root, struct buf *out);

/* demangle_rust.c: the name after "_R", and after "_Z". False, with `out` unchanged, when the text is something
 * else. */
bool demangle_rust_v0(struct str name, struct buf *out);
bool demangle_rust_legacy(struct str name, struct buf *out);

#endif
