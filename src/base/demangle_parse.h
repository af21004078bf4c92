/*
 * demangle_parse.h: the parser of mangled names, between demangle.c (names, functions), demangle_type.c and
 * demangle_expr.c (operators, template arguments, expressions); nobody else includes it. Each function takes
 * its part off the front of the text and gives a node; 0 means that it is none, or that memory is short.
 */
#ifndef BASE_DEMANGLE_PARSE_H
#define BASE_DEMANGLE_PARSE_H

#include "base/demangle_int.h"

#define MANGLED_MAX 16384
#define DEPTH_MAX 160
#define NODES_MAX (2 * MANGLED_MAX)

struct parser {
	const char *at, *end;
	struct mem *mem;
	struct demangle_node *nodes;
	uint32_t count;
	size_t cap;
	uint32_t *subs; /* what S_, S0_ … stand for */
	size_t sub_count, sub_cap;
	uint32_t *params; /* what T_, T0_ … stand for */
	size_t param_count, param_cap;
	unsigned depth;
	bool no_memory;
};

/* What is known about a name when it has been read. */
struct name_state {
	bool templated;	   /* ends with template arguments: a function of it says what it returns */
	bool plain;	   /* constructor, destructor, conversion: returns nothing all the same */
	struct str suffix; /* " const" and the like of a member function */
};

/* ---- small parts ---- */

static inline char peek(const struct parser *p, size_t ahead)
{
	return (size_t)(p->end - p->at) > ahead ? p->at[ahead] : '\0';
}

static inline bool take(struct parser *p, const char *text)
{
	size_t len = strlen(text);

	if ((size_t)(p->end - p->at) < len || memcmp(p->at, text, len) != 0)
		return false;
	p->at += len;
	return true;
}

static inline bool enter(struct parser *p)
{
	return ++p->depth <= DEPTH_MAX;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 0 = no memory, or more than any real name has. */
uint32_t demangle_add(struct parser *p, enum node_kind kind, uint32_t a, uint32_t b,
		      struct str text);
uint32_t demangle_add_text(struct parser *p, const char *text);
/* Adds a node to the parser's substitutions or parameters. */
bool demangle_push(struct parser *p, uint32_t **list, size_t *count, size_t *cap, uint32_t node);
/* Makes the node available to S<n>_; passes it on, or 0. */
uint32_t demangle_remember(struct parser *p, uint32_t node);
/* Lists are built front to back: *last is the item to hang the next on. */
bool demangle_append(struct parser *p, uint32_t *first, uint32_t *last, uint32_t item);
/* Decimal number; false when there is none or it is larger than any name. */
bool demangle_number(struct parser *p, size_t *value);

/* ---- names ---- */

uint32_t demangle_source_name(struct parser *p);
uint32_t demangle_unqualified(struct parser *p, uint32_t scope, struct name_state *state);
uint32_t demangle_name_part(struct parser *p, struct name_state *state);
/* A name with the arguments that follow it. */
uint32_t demangle_template(struct parser *p, uint32_t name, struct name_state *state);
uint32_t demangle_substitution(struct parser *p);
uint32_t demangle_template_param(struct parser *p);
struct str demangle_cv_suffix(struct parser *p);
/* A function or variable with its type. */
uint32_t demangle_encoding(struct parser *p);

/* ---- types ---- */

uint32_t demangle_type(struct parser *p);
/* Types until E, as of a lambda or a function; a lone v is no parameter. */
bool demangle_types(struct parser *p, uint32_t *list);

/* ---- operators, template arguments, expressions ---- */

uint32_t demangle_operator_name(struct parser *p, struct name_state *state);
/* I … E; with `tag`, they become what T_, T0_ … stand for. */
uint32_t demangle_template_args(struct parser *p, bool tag);
uint32_t demangle_expression(struct parser *p);

#endif
