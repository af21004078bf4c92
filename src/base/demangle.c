/*
 * demangle.c: reads names mangled after the Itanium C++ ABI into a tree; demangle_print.c writes it. What
 * kernels use is understood: nested, local and template names, lambdas, packs, literals, the usual
 * expressions. decltype, requires-clauses and the like are not: such a name stays mangled.
 * Names and functions are here, the rest of the grammar is in demangle_type.c and demangle_expr.c.
 */
#include "base/demangle_parse.h"

/* ---- small parts ---- */

/* 0 = no memory, or more than any real name has. */
uint32_t demangle_add(struct parser *p, enum node_kind kind, uint32_t a, uint32_t b,
		      struct str text)
{
	void *nodes = p->nodes;

	if (p->count >= NODES_MAX)
		return 0;
	if (!mem_grow(p->mem, &nodes, &p->cap, (size_t)p->count + 1, sizeof(*p->nodes))) {
		p->no_memory = true;
		return 0;
	}
	p->nodes = nodes;
	p->nodes[p->count] =
		(struct demangle_node){ .kind = (uint8_t)kind, .a = a, .b = b, .text = text };
	return p->count++;
}

uint32_t demangle_add_text(struct parser *p, const char *text)
{
	return demangle_add(p, NODE_TEXT, 0, 0, str_from(text));
}

bool demangle_push(struct parser *p, uint32_t **list, size_t *count, size_t *cap, uint32_t node)
{
	void *grown = *list;

	if (!node)
		return false;
	if (!mem_grow(p->mem, &grown, cap, *count + 1, sizeof(**list))) {
		p->no_memory = true;
		return false;
	}
	*list = grown;
	(*list)[(*count)++] = node;
	return true;
}

/* Makes the node available to S<n>_; passes it on, or 0. */
uint32_t demangle_remember(struct parser *p, uint32_t node)
{
	return demangle_push(p, &p->subs, &p->sub_count, &p->sub_cap, node) ? node : 0;
}

/* Lists are built front to back: *last is the item to hang the next on. */
bool demangle_append(struct parser *p, uint32_t *first, uint32_t *last, uint32_t item)
{
	uint32_t node = item ? demangle_add(p, NODE_LIST, item, 0, STR("")) : 0;

	if (!node)
		return false;
	if (*last)
		p->nodes[*last].b = node;
	else
		*first = node;
	*last = node;
	return true;
}

/* Decimal number; false when there is none or it is larger than any name. */
bool demangle_number(struct parser *p, size_t *value)
{
	*value = 0;
	if (!is_digit(peek(p, 0)))
		return false;
	while (is_digit(peek(p, 0))) {
		*value = *value * 10 + (size_t)(*p->at++ - '0');
		if (*value > MANGLED_MAX)
			return false;
	}
	return true;
}

/* "_" is 0, "0_" is 1: base 10 or 36 (S). */
static bool parse_index(struct parser *p, size_t base, size_t *index)
{
	size_t value = 0;
	bool any = false;

	for (;;) {
		char c = peek(p, 0);
		size_t digit;

		if (c == '_')
			break;
		if (is_digit(c))
			digit = (size_t)(c - '0');
		else if (base == 36 && c >= 'A' && c <= 'Z')
			digit = (size_t)(c - 'A') + 10;
		else
			return false;
		value = value * base + digit;
		any = true;
		p->at++;
		if (value > MANGLED_MAX)
			return false;
	}
	p->at++;
	*index = any ? value + 1 : 0;
	return true;
}

uint32_t demangle_source_name(struct parser *p)
{
	size_t len;
	struct str text;

	if (!demangle_number(p, &len) || !len || len > (size_t)(p->end - p->at))
		return 0;
	text = str_make(p->at, len);
	p->at += len;
	if (str_starts(text, STR("_GLOBAL__N")))
		return demangle_add_text(p, "(anonymous namespace)");
	return demangle_add(p, NODE_TEXT, 0, 0, text);
}

/* ---- names ---- */

/* The digits of an index as text: lambdas and unnamed types are counted from 1. */
static bool parse_ordinal(struct parser *p, struct str *text)
{
	size_t len = 0;

	while (is_digit(peek(p, len)))
		len++;
	*text = str_make(p->at, len);
	if (len > 9 || peek(p, len) != '_')
		return false;
	p->at += len + 1;
	return true;
}

static uint32_t parse_unnamed(struct parser *p)
{
	uint32_t list = 0;
	struct str number;

	if (take(p, "Ut"))
		return parse_ordinal(p, &number) ? demangle_add(p, NODE_UNNAMED, 0, 0, number) : 0;
	if (!take(p, "Ul") || !demangle_types(p, &list) || !take(p, "E") ||
	    !parse_ordinal(p, &number))
		return 0;
	return demangle_add(p, NODE_LAMBDA, 0, list, number);
}

/* The last part of a name, which constructors repeat. */
static uint32_t last_part(const struct parser *p, uint32_t node)
{
	for (;;) {
		const struct demangle_node *n = &p->nodes[node];

		if (n->kind == NODE_NESTED)
			node = n->b;
		else if (n->kind == NODE_TEMPLATE || n->kind == NODE_SUFFIX)
			node = n->a;
		else
			return node;
	}
}

static uint32_t parse_constructor(struct parser *p, uint32_t scope, struct name_state *state)
{
	bool destructor = peek(p, 0) == 'D';
	uint32_t name;

	if (!scope || !is_digit(peek(p, 1)))
		return 0;
	p->at += 2;
	if (state)
		state->plain = true;
	name = last_part(p, scope);
	if (p->nodes[name].kind == NODE_TEXT && str_starts(p->nodes[name].text, STR("std::")))
		name = demangle_add(p, NODE_TEXT, 0, 0, str_skip(p->nodes[name].text, 5));
	if (!name)
		return 0;
	return destructor ? demangle_add(p, NODE_PREFIX, name, 0, STR("~")) : name;
}

uint32_t demangle_unqualified(struct parser *p, uint32_t scope, struct name_state *state)
{
	char c = peek(p, 0);
	uint32_t name;

	if (c == 'L') { /* of internal linkage */
		p->at++;
		c = peek(p, 0);
	}
	if (is_digit(c))
		name = demangle_source_name(p);
	else if (c == 'U')
		name = parse_unnamed(p);
	else if (c == 'C' || c == 'D')
		name = parse_constructor(p, scope, state);
	else
		name = demangle_operator_name(p, state);
	while (name && take(p, "B")) { /* ABI tags: told apart, not shown */
		if (!demangle_source_name(p))
			return 0;
	}
	return name;
}

/* With `tag` these are the arguments that T_ refers to from now on. */
uint32_t demangle_template(struct parser *p, uint32_t name, struct name_state *state)
{
	uint32_t args = demangle_template_args(p, state != NULL);

	if (!args || !name)
		return 0;
	if (state)
		state->templated = true;
	return demangle_add(p, NODE_TEMPLATE, name, args, STR(""));
}

uint32_t demangle_substitution(struct parser *p)
{
	static const struct {
		char code;
		const char *text;
	} known[] = {
		{ 'a', "std::allocator" }, { 'b', "std::basic_string" }, { 's', "std::string" },
		{ 'i', "std::istream" },   { 'o', "std::ostream" },	 { 'd', "std::iostream" },
	};
	size_t index;

	if (!take(p, "S"))
		return 0;
	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		if (peek(p, 0) == known[i].code) {
			p->at++;
			return demangle_add_text(p, known[i].text);
		}
	if (!parse_index(p, 36, &index) || index >= p->sub_count)
		return 0;
	return p->subs[index];
}

/* One that no argument is known for belongs to a generic lambda. */
uint32_t demangle_template_param(struct parser *p)
{
	size_t index;

	if (!take(p, "T") || !parse_index(p, 10, &index))
		return 0;
	return index < p->param_count ? p->params[index] : demangle_add_text(p, "auto");
}

struct str demangle_cv_suffix(struct parser *p)
{
	const char *from = p->at;

	while (peek(p, 0) == 'r' || peek(p, 0) == 'V' || peek(p, 0) == 'K')
		p->at++;
	switch (p->at - from) {
	case 0:
		return STR("");
	case 1:
		return *from == 'K'   ? STR(" const")
		       : *from == 'V' ? STR(" volatile")
				      : STR(" restrict");
	default:
		return memchr(from, 'K', (size_t)(p->at - from)) ? STR(" const volatile")
								 : STR(" volatile restrict");
	}
}

/* One part of a nested name, put behind `scope`. */
static uint32_t parse_prefix(struct parser *p, uint32_t scope, struct name_state *state)
{
	uint32_t part;

	if (peek(p, 0) == 'T')
		return scope ? 0 : demangle_remember(p, demangle_template_param(p));
	if (peek(p, 0) == 'I')
		return scope ? demangle_remember(p, demangle_template(p, scope, state)) : 0;
	if (peek(p, 0) == 'S' && peek(p, 1) == 't') {
		p->at += 2;
		return scope ? 0 : demangle_add_text(p, "std");
	}
	if (peek(p, 0) == 'S')
		return scope ? 0 : demangle_substitution(p);
	part = demangle_unqualified(p, scope, state);
	if (part && scope)
		part = demangle_add(p, NODE_NESTED, scope, part, STR(""));
	return demangle_remember(p, part);
}

static uint32_t parse_nested(struct parser *p, struct name_state *state)
{
	struct str suffix;
	uint32_t name = 0;

	p->at++; /* N */
	suffix = demangle_cv_suffix(p);
	if (peek(p, 0) == 'R' || peek(p, 0) == 'O')
		p->at++;
	if (state)
		state->suffix = suffix;
	while (peek(p, 0) != 'E') {
		if (peek(p, 0) == 'M') { /* a lambda in a member's initialiser */
			p->at++;
			continue;
		}
		if (state && peek(p, 0) != 'I')
			state->templated = state->plain = false;
		name = parse_prefix(p, name, state);
		if (!name)
			return 0;
	}
	p->at++;
	/* The whole name is not referred back to as a name, but as a type. */
	if (name && p->sub_count && p->subs[p->sub_count - 1] == name)
		p->sub_count--;
	return name;
}

static void skip_discriminator(struct parser *p)
{
	size_t len = 1;

	if (peek(p, 0) != '_')
		return;
	if (is_digit(peek(p, 1))) {
		p->at += 2;
		return;
	}
	if (peek(p, 1) != '_')
		return;
	for (len = 2; is_digit(peek(p, len)); len++)
		;
	if (peek(p, len) == '_')
		p->at += len + 1;
}

static uint32_t parse_local(struct parser *p, struct name_state *state)
{
	uint32_t function, name;
	size_t number;

	p->at++; /* Z */
	function = demangle_encoding(p);
	if (!function || !take(p, "E"))
		return 0;
	if (take(p, "s")) {
		skip_discriminator(p);
		name = demangle_add_text(p, "string literal");
		return name ? demangle_add(p, NODE_NESTED, function, name, STR("")) : 0;
	}
	if (take(p, "d")) { /* in a default argument */
		if (peek(p, 0) != '_' && !demangle_number(p, &number))
			return 0;
		if (!take(p, "_"))
			return 0;
	}
	name = demangle_name_part(p, state);
	skip_discriminator(p);
	return name ? demangle_add(p, NODE_NESTED, function, name, STR("")) : 0;
}

static uint32_t parse_unscoped(struct parser *p, struct name_state *state)
{
	bool in_std = take(p, "St");
	uint32_t scope = in_std ? demangle_add_text(p, "std") : 0;
	uint32_t name = demangle_unqualified(p, 0, state);

	if (!name || (in_std && !scope))
		return 0;
	return in_std ? demangle_add(p, NODE_NESTED, scope, name, STR("")) : name;
}

static uint32_t parse_plain_name(struct parser *p, struct name_state *state)
{
	uint32_t name;

	if (peek(p, 0) == 'N')
		return parse_nested(p, state);
	if (peek(p, 0) == 'Z')
		return parse_local(p, state);
	if (peek(p, 0) == 'S' && peek(p, 1) != 't') {
		name = demangle_substitution(p);
		return peek(p, 0) == 'I' ? demangle_template(p, name, state) : 0;
	}
	name = parse_unscoped(p, state);
	if (!name || peek(p, 0) != 'I')
		return name;
	return demangle_template(p, demangle_remember(p, name), state);
}

uint32_t demangle_name_part(struct parser *p, struct name_state *state)
{
	uint32_t name = enter(p) ? parse_plain_name(p, state) : 0;

	p->depth--;
	return name;
}

/* ---- functions and variables ---- */

static uint32_t parse_special(struct parser *p)
{
	static const struct {
		const char *code, *text;
		bool type;
	} specials[] = {
		{ "TV", "vtable for ", true },		{ "TT", "VTT for ", true },
		{ "TI", "typeinfo for ", true },	{ "TS", "typeinfo name for ", true },
		{ "GV", "guard variable for ", false },
	};
	uint32_t of;

	for (size_t i = 0; i < ARRAY_COUNT(specials); i++) {
		if (!take(p, specials[i].code))
			continue;
		of = specials[i].type ? demangle_type(p) : demangle_name_part(p, NULL);
		return of ? demangle_add(p, NODE_PREFIX, of, 0, str_from(specials[i].text)) : 0;
	}
	return 0;
}

static uint32_t parse_function(struct parser *p)
{
	struct name_state state = { .suffix = STR("") };
	uint32_t name, returned = 0, list, function;

	if (peek(p, 0) == 'T' || peek(p, 0) == 'G')
		return parse_special(p);
	name = demangle_name_part(p, &state);
	if (!name || peek(p, 0) == '\0' || peek(p, 0) == 'E' || peek(p, 0) == '.')
		return name;
	if (state.templated && !state.plain) {
		returned = demangle_type(p);
		if (!returned)
			return 0;
	}
	if (!demangle_types(p, &list))
		return 0;
	function = demangle_add(p, NODE_FUNCTION, returned, list, state.suffix);
	return function ? demangle_add(p, NODE_ENCODING, name, function, STR("")) : 0;
}

/* A function inside a local name has template arguments of its own. */
uint32_t demangle_encoding(struct parser *p)
{
	uint32_t *outer = p->params, encoding;
	size_t outer_count = p->param_count, outer_cap = p->param_cap;

	p->params = NULL;
	p->param_count = p->param_cap = 0;
	encoding = enter(p) ? parse_function(p) : 0;
	p->depth--;
	mem_free(p->mem, p->params, p->param_cap * sizeof(*p->params));
	p->params = outer;
	p->param_count = outer_count;
	p->param_cap = outer_cap;
	return encoding;
}

bool demangle_name(struct str mangled, struct buf *out)
{
	struct parser p = { .at = mangled.ptr, .end = mangled.ptr + mangled.len, .mem = out->mem };
	size_t before = out->len;
	uint32_t root;
	bool ok;

	if (mangled.len > MANGLED_MAX || mangled.len < 4)
		return false;
	if (!take(&p, "_Z") && !take(&p, "__Z"))
		return false;
	p.count = 1; /* node 0 is "none" */
	root = demangle_encoding(&p);
	/* What follows a dot is the compiler's: .isra.0, .kd */
	ok = root && (p.at == p.end || *p.at == '.') && demangle_print(p.nodes, root, out);
	if (!ok)
		out->len = before;
	if (p.no_memory)
		out->failed = true;
	mem_free(out->mem, p.nodes, p.cap * sizeof(*p.nodes));
	mem_free(out->mem, p.subs, p.sub_cap * sizeof(*p.subs));
	return ok && !out->failed;
}
