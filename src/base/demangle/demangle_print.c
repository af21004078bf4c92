/*
 * demangle_print.c: writes the tree of demangle.c. A declaration is written from the inside out: what
 * stands left of a name, the name, what stands right of it. Steps, depth and length are bounded, because a
 * short name may refer to itself often enough to fill any memory.
 */
#include "base/demangle/demangle_int.h"

#define TEXT_MAX 65536
#define STEPS_MAX 200000
#define DEPTH_MAX 300

struct printer {
	const struct demangle_node *nodes;
	struct buf *out;
	size_t limit; /* largest value of out->len */
	uint32_t steps, depth;
	bool failed;
};

static void print(struct printer *p, uint32_t node);

static bool step(struct printer *p)
{
	if (++p->steps > STEPS_MAX || p->depth > DEPTH_MAX || p->out->len > p->limit)
		p->failed = true;
	return !p->failed;
}

static void put(struct printer *p, struct str text)
{
	if (step(p))
		buf_add_str(p->out, text);
}

static char last_char(const struct printer *p)
{
	return p->out->len ? p->out->ptr[p->out->len - 1] : '\0';
}

/* Writes list items. A pack may be empty, so the comma is removed if nothing was written after
 * it. */
static void print_items(struct printer *p, uint32_t list, bool *any)
{
	for (; list && step(p); list = p->nodes[list].b) {
		const struct demangle_node *item = &p->nodes[p->nodes[list].a];
		size_t before = p->out->len, start;

		if (item->kind == NODE_PACK) {
			p->depth++;
			print_items(p, item->b, any);
			p->depth--;
			continue;
		}
		if (*any)
			put(p, STR(", "));
		start = p->out->len;
		print(p, p->nodes[list].a);
		if (p->out->len == start)
			p->out->len = before;
		else
			*any = true;
	}
}

static void print_list(struct printer *p, uint32_t list, struct str open, struct str close)
{
	bool any = false;

	put(p, open);
	print_items(p, list, &any);
	put(p, close);
}

static bool is_declarator(const struct printer *p, uint32_t node)
{
	uint8_t kind = p->nodes[node].kind;

	return kind == NODE_FUNCTION || kind == NODE_ARRAY;
}

/* Writes the part of a type before its name: pointers to functions and arrays surround the name,
 * as in int (*)[3]. */
static void print_left(struct printer *p, uint32_t node);
static void print_right(struct printer *p, uint32_t node);

static void print_function_left(struct printer *p, const struct demangle_node *n)
{
	if (!n->a)
		return;
	print_left(p, n->a);
	put(p, STR(" "));
}

static void print_function_right(struct printer *p, const struct demangle_node *n)
{
	print_list(p, n->b, STR("("), STR(")"));
	put(p, n->text);
	if (n->a)
		print_right(p, n->a);
}

static void print_left(struct printer *p, uint32_t node)
{
	const struct demangle_node *n = &p->nodes[node];

	if (!step(p))
		return;
	p->depth++;
	switch ((enum demangle_kind)n->kind) {
	case NODE_POINTER:
		print_left(p, n->a);
		if (is_declarator(p, n->a))
			put(p, last_char(p) == ' ' ? STR("(") : STR(" ("));
		put(p, n->text);
		break;
	case NODE_MEMBER:
		print_left(p, n->b);
		put(p, is_declarator(p, n->b) ? STR("(") : STR(" "));
		print(p, n->a);
		put(p, STR("::*"));
		break;
	case NODE_SUFFIX:
		print_left(p, n->a);
		put(p, n->text);
		break;
	case NODE_FUNCTION:
		print_function_left(p, n);
		break;
	case NODE_ARRAY:
		print_left(p, n->a);
		break;
	default:
		print(p, node);
	}
	p->depth--;
}

static void print_right(struct printer *p, uint32_t node)
{
	const struct demangle_node *n = &p->nodes[node];

	if (!step(p))
		return;
	p->depth++;
	switch ((enum demangle_kind)n->kind) {
	case NODE_POINTER:
		if (is_declarator(p, n->a))
			put(p, STR(")"));
		print_right(p, n->a);
		break;
	case NODE_MEMBER:
		if (is_declarator(p, n->b))
			put(p, STR(")"));
		print_right(p, n->b);
		break;
	case NODE_SUFFIX:
		print_right(p, n->a);
		break;
	case NODE_FUNCTION:
		print_function_right(p, n);
		break;
	case NODE_ARRAY:
		put(p, STR(" ["));
		put(p, n->text);
		if (n->b)
			print(p, n->b);
		put(p, STR("]"));
		print_right(p, n->a);
		break;
	default:
		break;
	}
	p->depth--;
}

/* Writes a literal: 4, 4u, true, (Kind)3. */
static void print_literal(struct printer *p, const struct demangle_node *n)
{
	static const struct {
		const char *type, *suffix;
	} integers[] = {
		{ "int", "" },	       { "unsigned int", "u" },
		{ "long", "l" },       { "unsigned long", "ul" },
		{ "long long", "ll" }, { "unsigned long long", "ull" },
	};
	const struct demangle_node *type = &p->nodes[n->a];
	struct str name = type->kind == NODE_TEXT ? type->text : STR(""), value = n->text;
	bool negative = value.len && value.ptr[0] == 'n', plain = false;
	struct str suffix = STR("");

	if (negative)
		value = str_skip(value, 1);
	if (str_eq(name, STR("bool")) && value.len == 1) {
		put(p, value.ptr[0] == '0' ? STR("false") : STR("true"));
		return;
	}
	if (str_eq(name, STR("std::nullptr_t"))) {
		put(p, STR("nullptr"));
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(integers); i++)
		if (str_eq(name, str_from(integers[i].type))) {
			suffix = str_from(integers[i].suffix);
			plain = true;
		}
	if (!plain) {
		put(p, STR("("));
		print(p, n->a);
		put(p, STR(")"));
	}
	put(p, negative ? STR("-") : STR(""));
	put(p, value);
	put(p, suffix);
}

/* Writes the number of a lambda or unnamed type: the text "" means 1, "0" means 2. */
static void print_ordinal(struct printer *p, struct str digits)
{
	int64_t number = -1;

	if (digits.len && !str_to_i64(digits, &number))
		p->failed = true;
	if (step(p))
		buf_printf(p->out, "#%" PRId64 "}", number + 2);
}

static void print_plain(struct printer *p, const struct demangle_node *n)
{
	switch ((enum demangle_kind)n->kind) {
	case NODE_TEXT:
		put(p, n->text);
		break;
	case NODE_NESTED:
		print(p, n->a);
		put(p, STR("::"));
		print(p, n->b);
		break;
	case NODE_TEMPLATE:
		print(p, n->a);
		print_list(p, p->nodes[n->b].b, last_char(p) == '<' ? STR(" <") : STR("<"),
			   STR(">"));
		break;
	case NODE_ENCODING:
		print_function_left(p, &p->nodes[n->b]);
		print(p, n->a);
		print_function_right(p, &p->nodes[n->b]);
		break;
	case NODE_LITERAL:
		print_literal(p, n);
		break;
	case NODE_PACK:
	case NODE_LIST:
		print_list(p, n->b, STR(""), STR(""));
		break;
	case NODE_LAMBDA:
		print_list(p, n->b, STR("{lambda("), STR(")"));
		print_ordinal(p, n->text);
		break;
	case NODE_UNNAMED:
		put(p, STR("{unnamed type"));
		print_ordinal(p, n->text);
		break;
	case NODE_PREFIX:
		put(p, n->text);
		print(p, n->a);
		break;
	case NODE_BINARY:
		put(p, STR("("));
		print(p, n->a);
		put(p, STR(")"));
		put(p, n->text);
		put(p, STR("("));
		print(p, n->b);
		put(p, STR(")"));
		break;
	case NODE_CONVERSION:
		put(p, STR("operator "));
		print(p, n->a);
		break;
	case NODE_SUFFIX:
	case NODE_POINTER:
	case NODE_MEMBER:
	case NODE_FUNCTION:
	case NODE_ARRAY:
		break;
	}
}

static void print(struct printer *p, uint32_t node)
{
	const struct demangle_node *n = &p->nodes[node];

	if (!step(p))
		return;
	p->depth++;
	switch ((enum demangle_kind)n->kind) {
	case NODE_SUFFIX:
	case NODE_POINTER:
	case NODE_MEMBER:
	case NODE_FUNCTION:
	case NODE_ARRAY:
		print_left(p, node);
		print_right(p, node);
		break;
	default:
		print_plain(p, n);
	}
	p->depth--;
}

bool demangle_print(const struct demangle_node *nodes, uint32_t root, struct buf *out)
{
	struct printer p = { .nodes = nodes, .out = out, .limit = out->len + TEXT_MAX };

	print(&p, root);
	return !p.failed && !out->failed;
}
