/*
 * demangle_int.h: the tree between demangle.c, which reads a mangled name, and demangle_print.c, which
 * writes the declaration. Nodes are shared wherever the name refers back, so the tree is a graph without
 * cycles that may be exponentially larger when written out: the printer counts what it does.
 */
#ifndef BASE_DEMANGLE_INT_H
#define BASE_DEMANGLE_INT_H

#include "base/demangle/demangle.h"

enum demangle_kind {
	NODE_TEXT,     /* the text itself */
	NODE_NESTED,   /* name in a scope: a::b */
	NODE_TEMPLATE, /* template a<b…>; b is a list */
	NODE_LIST,     /* item a of a list, followed by the list b */
	NODE_SUFFIX,   /* a followed by text: cv-qualifiers, ABI tags */
	NODE_POINTER,  /* pointer or reference to a; text is *, & or && */
	NODE_MEMBER,   /* pointer to a member of type b of class a */
	/* function that returns a (may be nil) and takes the list b; text follows */
	NODE_FUNCTION,
	NODE_ARRAY,	 /* array of a; its dimension is text or b */
	NODE_ENCODING,	 /* name a of a function b: only the part of b around the name is written */
	NODE_LITERAL,	 /* literal: the value `text` of type a */
	NODE_PACK,	 /* argument pack: the list b, without brackets */
	NODE_LAMBDA,	 /* lambda that takes the list b; text is its number */
	NODE_UNNAMED,	 /* unnamed type; text is its number */
	NODE_PREFIX,	 /* text before a: special names, ~ of destructors, unary operators */
	NODE_BINARY,	 /* binary expression: (a)text(b) */
	NODE_CONVERSION, /* conversion operator to type a */
};

struct demangle_node {
	uint8_t kind;
	uint32_t a, b; /* indices of other nodes; 0 = none */
	struct str text;
};

#define MANGLED_MAX 16384 /* longest mangled name in bytes */

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* demangle_print.c: writes node `root`; returns false if the text exceeds the limits. */
bool demangle_print(const struct demangle_node *nodes, uint32_t root, struct buf *out);

/* demangle_rust.c: demangles the name after "_R" (v0) or after "_Z" (legacy). Returns false, with `out`
 * unchanged, if the text is not such a name. */
bool demangle_rust_v0(struct str name, struct buf *out);
bool demangle_rust_legacy(struct str name, struct buf *out);

#endif
