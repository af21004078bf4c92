/*
 * demangle_expr.c: operators, template arguments, literals and expressions in mangled names; see
 * demangle_parse.h. Called by the other parts of the parser.
 */
#include "base/demangle_parse.h"

static const struct {
	char code[3];
	uint8_t operands; /* in expressions; 0 = none of ours */
	const char *text;
} operators[] = {
	{ "aN", 0, "&=" },    { "aS", 0, "=" },	       { "aa", 2, "&&" },  { "ad", 1, "&" },
	{ "an", 2, "&" },     { "cl", 0, "()" },       { "cm", 2, "," },   { "co", 1, "~" },
	{ "dV", 0, "/=" },    { "da", 0, "delete[]" }, { "de", 1, "*" },   { "dl", 0, "delete" },
	{ "dv", 2, "/" },     { "eO", 0, "^=" },       { "eo", 2, "^" },   { "eq", 2, "==" },
	{ "ge", 2, ">=" },    { "gt", 2, ">" },	       { "ix", 0, "[]" },  { "lS", 0, "<<=" },
	{ "le", 2, "<=" },    { "ls", 2, "<<" },       { "lt", 2, "<" },   { "mI", 0, "-=" },
	{ "mL", 0, "*=" },    { "mi", 2, "-" },	       { "ml", 2, "*" },   { "mm", 0, "--" },
	{ "na", 0, "new[]" }, { "ne", 2, "!=" },       { "ng", 1, "-" },   { "nt", 1, "!" },
	{ "nw", 0, "new" },   { "oR", 0, "|=" },       { "oo", 2, "||" },  { "or", 2, "|" },
	{ "pL", 0, "+=" },    { "pl", 2, "+" },	       { "pm", 0, "->*" }, { "pp", 0, "++" },
	{ "ps", 1, "+" },     { "pt", 0, "->" },       { "rM", 0, "%=" },  { "rS", 0, ">>=" },
	{ "rm", 2, "%" },     { "rs", 2, ">>" },       { "ss", 2, "<=>" },
};

static size_t find_operator(const struct parser *p)
{
	size_t i = 0;

	while (i < ARRAY_COUNT(operators) &&
	       (peek(p, 0) != operators[i].code[0] || peek(p, 1) != operators[i].code[1]))
		i++;
	return i;
}

uint32_t demangle_operator_name(struct parser *p, struct name_state *state)
{
	size_t found = find_operator(p);
	const char *text;
	bool word;
	uint32_t name;

	if (take(p, "cv")) {
		uint32_t type = demangle_type(p);

		if (state)
			state->plain = true;
		return type ? demangle_add(p, NODE_CONVERSION, type, 0, STR("")) : 0;
	}
	if (take(p, "li")) {
		name = demangle_source_name(p);
		return name ? demangle_add(p, NODE_PREFIX, name, 0, STR("operator\"\" ")) : 0;
	}
	if (found == ARRAY_COUNT(operators))
		return 0;
	p->at += 2;
	text = operators[found].text;
	word = text[0] >= 'a' && text[0] <= 'z'; /* operator new, but operator+ */
	name = demangle_add_text(p, text);
	return name ? demangle_add(p, NODE_PREFIX, name, 0,
				   word ? STR("operator ") : STR("operator"))
		    : 0;
}

/* ---- template arguments, literals, expressions ---- */

static uint32_t parse_literal(struct parser *p)
{
	const char *from;
	uint32_t type, inner;
	size_t len = 0;

	p->at++; /* L */
	if (take(p, "_Z") || take(p, "Z")) {
		inner = demangle_encoding(p);
		return inner && take(p, "E") ? inner : 0;
	}
	type = demangle_type(p);
	from = p->at;
	while (peek(p, len) != 'E' && peek(p, len) != '\0')
		len++;
	if (!type || peek(p, len) != 'E')
		return 0;
	p->at += len + 1;
	return demangle_add(p, NODE_LITERAL, type, 0, str_make(from, len));
}

static uint32_t parse_template_arg(struct parser *p)
{
	uint32_t node, list = 0, last = 0;

	switch (peek(p, 0)) {
	case 'J':
		p->at++;
		while (!take(p, "E"))
			if (!demangle_append(p, &list, &last, parse_template_arg(p)))
				return 0;
		return demangle_add(p, NODE_PACK, 0, list, STR(""));
	case 'L':
		return parse_literal(p);
	case 'X':
		p->at++;
		node = demangle_expression(p);
		return node && take(p, "E") ? node : 0;
	default:
		return demangle_type(p);
	}
}

uint32_t demangle_template_args(struct parser *p, bool tag)
{
	uint32_t list = 0, last = 0;

	if (!take(p, "I") || !enter(p))
		return 0;
	if (tag)
		p->param_count = 0;
	while (!take(p, "E")) {
		uint32_t arg = peek(p, 0) ? parse_template_arg(p) : 0;

		if (!demangle_append(p, &list, &last, arg) ||
		    (tag && !demangle_push(p, &p->params, &p->param_count, &p->param_cap, arg)))
			return 0;
	}
	p->depth--;
	return demangle_add(p, NODE_PACK, 0, list, STR(""));
}

static uint32_t parse_operation(struct parser *p)
{
	size_t found = find_operator(p);
	uint32_t left, right;

	if (found == ARRAY_COUNT(operators) || !operators[found].operands)
		return 0;
	p->at += 2;
	left = demangle_expression(p);
	if (!left)
		return 0;
	if (operators[found].operands == 1)
		return demangle_add(p, NODE_PREFIX, left, 0, str_from(operators[found].text));
	right = demangle_expression(p);
	return right ? demangle_add(p, NODE_BINARY, left, right, str_from(operators[found].text))
		     : 0;
}

/* Names that are looked up later: a::b<c>, up to E. */
static uint32_t parse_unresolved(struct parser *p)
{
	uint32_t scope = 0;

	while (!take(p, "E")) {
		uint32_t name = demangle_source_name(p);

		if (name && scope)
			name = demangle_add(p, NODE_NESTED, scope, name, STR(""));
		scope = name && peek(p, 0) == 'I' ? demangle_template(p, name, NULL) : name;
		if (!scope)
			return 0;
	}
	return scope;
}

/* Something::name, where the something is a type. */
static uint32_t parse_scoped_name(struct parser *p)
{
	uint32_t type = is_digit(peek(p, 0)) ? parse_unresolved(p) : demangle_type(p);
	uint32_t name = type ? demangle_unqualified(p, type, NULL) : 0;

	if (!name)
		return 0;
	name = demangle_add(p, NODE_NESTED, type, name, STR(""));
	return peek(p, 0) == 'I' ? demangle_template(p, name, NULL) : name;
}

static uint32_t parse_any_expression(struct parser *p)
{
	uint32_t a, b;

	switch (peek(p, 0)) {
	case 'L':
		return parse_literal(p);
	case 'T':
		return demangle_template_param(p);
	default:
		break;
	}
	if (take(p, "sr"))
		return parse_scoped_name(p);
	if (take(p, "sZ") || take(p, "st")) {
		a = peek(p, 0) == 'T' ? demangle_template_param(p) : demangle_type(p);
		return a ? demangle_add(p, NODE_PREFIX, a, 0, STR("sizeof ")) : 0;
	}
	if (take(p, "cv")) {
		a = demangle_type(p);
		b = a ? demangle_expression(p) : 0;
		return b ? demangle_add(p, NODE_BINARY, a, b, STR("")) : 0;
	}
	return parse_operation(p);
}

uint32_t demangle_expression(struct parser *p)
{
	uint32_t node = enter(p) ? parse_any_expression(p) : 0;

	p->depth--;
	return node;
}
