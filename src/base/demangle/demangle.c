/*
 * demangle.c: reads names mangled after the Itanium C++ ABI into a tree, which demangle_print.c writes. It understands
 * the parts that kernels use: nested, local and template names, lambdas, packs, literals, the usual expressions. A name
 * with decltype, a requires-clause or the like stays mangled. Rust's names are in demangle_rust.c.
 *
 * Each parse_ function takes its part off the front of the text and returns a node. 0 means that the text is something
 * else, or that memory has run out.
 */
#include "base/demangle/demangle_int.h"
#include "base/vec.h"

#define DEPTH_MAX 160
#define NODES_MAX (2 * MANGLED_MAX)

struct parser {
	const char *at, *end;
	struct mem *mem;
	struct demangle_node *nodes;
	uint32_t count;
	size_t cap;
	uint32_t *subs; /* nodes that the substitutions S_, S0_ … stand for */
	size_t sub_count, sub_cap;
	uint32_t *params; /* nodes that the template parameters T_, T0_ … stand for */
	size_t param_count, param_cap;
	unsigned depth;
	bool no_memory;
};

/* Properties of a name that was just parsed. */
struct name_state {
	/* the name ends with template arguments: a function of that name has a return type */
	bool templated;
	bool plain;	   /* constructor, destructor or conversion: no return type even then */
	struct str suffix; /* qualifiers of a member function, such as " const" */
};

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

static uint32_t parse_name(struct parser *p, struct name_state *state);
static uint32_t parse_encoding(struct parser *p);
static uint32_t parse_type(struct parser *p);
static bool parse_types(struct parser *p, uint32_t *list);
static uint32_t parse_operator_name(struct parser *p, struct name_state *state);
static uint32_t parse_template_args(struct parser *p, bool tag);
static uint32_t parse_expression(struct parser *p);

/* Adds a node. Returns 0 if memory runs out, or if there are more nodes than any real name has. */
static uint32_t add_node(struct parser *p, enum demangle_kind kind, uint32_t a, uint32_t b,
			 struct str text)
{
	if (p->count >= NODES_MAX)
		return 0;
	if (!vec_reserve(p->mem, p->nodes, p->cap, (size_t)p->count + 1)) {
		p->no_memory = true;
		return 0;
	}
	p->nodes[p->count] =
		(struct demangle_node){ .kind = (uint8_t)kind, .a = a, .b = b, .text = text };
	return p->count++;
}

static uint32_t add_text(struct parser *p, const char *text)
{
	return add_node(p, NODE_TEXT, 0, 0, str_from(text));
}

static bool push_node(struct parser *p, uint32_t **list, size_t *count, size_t *cap, uint32_t node)
{
	if (!node)
		return false;
	if (!vec_reserve(p->mem, *list, *cap, *count + 1)) {
		p->no_memory = true;
		return false;
	}
	(*list)[(*count)++] = node;
	return true;
}

/* Makes the node available to later substitutions S<n>_. Returns the node, or 0 on failure. */
static uint32_t remember(struct parser *p, uint32_t node)
{
	return push_node(p, &p->subs, &p->sub_count, &p->sub_cap, node) ? node : 0;
}

/* Appends an item to a list that is built front to back; *last is the item that the next one is
 * linked to. */
static bool append_item(struct parser *p, uint32_t *first, uint32_t *last, uint32_t item)
{
	uint32_t node = item ? add_node(p, NODE_LIST, item, 0, STR("")) : 0;

	if (!node)
		return false;
	if (*last)
		p->nodes[*last].b = node;
	else
		*first = node;
	*last = node;
	return true;
}

/* Parses a decimal number. Returns false without digits, or if the number is larger than any
 * name. */
static bool parse_number(struct parser *p, size_t *value)
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

/* Parses an index in base 10 or, for S, in base 36: "_" is 0, "0_" is 1. */
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

static uint32_t parse_source_name(struct parser *p)
{
	size_t len;
	struct str text;

	if (!parse_number(p, &len) || !len || len > (size_t)(p->end - p->at))
		return 0;
	text = str_make(p->at, len);
	p->at += len;
	if (str_starts(text, STR("_GLOBAL__N")))
		return add_text(p, "(anonymous namespace)");
	return add_node(p, NODE_TEXT, 0, 0, text);
}

/* Returns the digits of an index as text: lambdas and unnamed types are counted from 1. */
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
		return parse_ordinal(p, &number) ? add_node(p, NODE_UNNAMED, 0, 0, number) : 0;
	if (!take(p, "Ul") || !parse_types(p, &list) || !take(p, "E") || !parse_ordinal(p, &number))
		return 0;
	return add_node(p, NODE_LAMBDA, 0, list, number);
}

/* Returns the last part of a name, which constructors repeat. */
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
		name = add_node(p, NODE_TEXT, 0, 0, str_skip(p->nodes[name].text, 5));
	if (!name)
		return 0;
	return destructor ? add_node(p, NODE_PREFIX, name, 0, STR("~")) : name;
}

static uint32_t parse_unqualified(struct parser *p, uint32_t scope, struct name_state *state)
{
	char c = peek(p, 0);
	uint32_t name;

	if (c == 'L') { /* the name has internal linkage */
		p->at++;
		c = peek(p, 0);
	}
	if (is_digit(c))
		name = parse_source_name(p);
	else if (c == 'U')
		name = parse_unnamed(p);
	else if (c == 'C' || c == 'D')
		name = parse_constructor(p, scope, state);
	else
		name = parse_operator_name(p, state);
	while (name && take(p, "B")) { /* ABI tags are parsed but not shown */
		if (!parse_source_name(p))
			return 0;
	}
	return name;
}

/* Parses template arguments. With `tag`, T_ refers to these arguments from now on. */
static uint32_t parse_template(struct parser *p, uint32_t name, struct name_state *state)
{
	uint32_t args = parse_template_args(p, state != NULL);

	if (!args || !name)
		return 0;
	if (state)
		state->templated = true;
	return add_node(p, NODE_TEMPLATE, name, args, STR(""));
}

static uint32_t parse_substitution(struct parser *p)
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
			return add_text(p, known[i].text);
		}
	if (!parse_index(p, 36, &index) || index >= p->sub_count)
		return 0;
	return p->subs[index];
}

/* Parses a template parameter. A parameter without a known argument belongs to a generic lambda. */
static uint32_t parse_template_param(struct parser *p)
{
	size_t index;

	if (!take(p, "T") || !parse_index(p, 10, &index))
		return 0;
	return index < p->param_count ? p->params[index] : add_text(p, "auto");
}

static struct str parse_cv_suffix(struct parser *p)
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

/* Parses one part of a nested name and puts it behind `scope`. */
static uint32_t parse_prefix(struct parser *p, uint32_t scope, struct name_state *state)
{
	uint32_t part;

	if (peek(p, 0) == 'T')
		return scope ? 0 : remember(p, parse_template_param(p));
	if (peek(p, 0) == 'I')
		return scope ? remember(p, parse_template(p, scope, state)) : 0;
	if (peek(p, 0) == 'S' && peek(p, 1) == 't') {
		p->at += 2;
		return scope ? 0 : add_text(p, "std");
	}
	if (peek(p, 0) == 'S')
		return scope ? 0 : parse_substitution(p);
	part = parse_unqualified(p, scope, state);
	if (part && scope)
		part = add_node(p, NODE_NESTED, scope, part, STR(""));
	return remember(p, part);
}

static uint32_t parse_nested(struct parser *p, struct name_state *state)
{
	struct str suffix;
	uint32_t name = 0;

	p->at++; /* skips the letter N */
	suffix = parse_cv_suffix(p);
	if (peek(p, 0) == 'R' || peek(p, 0) == 'O')
		p->at++;
	if (state)
		state->suffix = suffix;
	while (peek(p, 0) != 'E') {
		if (peek(p, 0) == 'M') { /* a lambda in the initialiser of a member */
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
	/* A substitution refers to the whole name only as a type. */
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

	p->at++; /* skips the letter Z */
	function = parse_encoding(p);
	if (!function || !take(p, "E"))
		return 0;
	if (p->nodes[function].kind ==
	    NODE_ENCODING) /* as a scope, a function is printed without its return type */
		p->nodes[p->nodes[function].b].a = 0;
	if (take(p, "s")) {
		skip_discriminator(p);
		name = add_text(p, "string literal");
		return name ? add_node(p, NODE_NESTED, function, name, STR("")) : 0;
	}
	if (take(p, "d")) { /* a local name within a default argument */
		if (peek(p, 0) != '_' && !parse_number(p, &number))
			return 0;
		if (!take(p, "_"))
			return 0;
	}
	name = parse_name(p, state);
	skip_discriminator(p);
	return name ? add_node(p, NODE_NESTED, function, name, STR("")) : 0;
}

static uint32_t parse_unscoped(struct parser *p, struct name_state *state)
{
	bool in_std = take(p, "St");
	uint32_t scope = in_std ? add_text(p, "std") : 0;
	uint32_t name = parse_unqualified(p, 0, state);

	if (!name || (in_std && !scope))
		return 0;
	return in_std ? add_node(p, NODE_NESTED, scope, name, STR("")) : name;
}

static uint32_t parse_plain_name(struct parser *p, struct name_state *state)
{
	uint32_t name;

	if (peek(p, 0) == 'N')
		return parse_nested(p, state);
	if (peek(p, 0) == 'Z')
		return parse_local(p, state);
	if (peek(p, 0) == 'S' && peek(p, 1) != 't') {
		name = parse_substitution(p);
		return peek(p, 0) == 'I' ? parse_template(p, name, state) : 0;
	}
	name = parse_unscoped(p, state);
	if (!name || peek(p, 0) != 'I')
		return name;
	return parse_template(p, remember(p, name), state);
}

static uint32_t parse_name(struct parser *p, struct name_state *state)
{
	uint32_t name = enter(p) ? parse_plain_name(p, state) : 0;

	p->depth--;
	return name;
}

static const char *const builtins[26] = {
	['a' - 'a'] = "signed char", ['b' - 'a'] = "bool",
	['c' - 'a'] = "char",	     ['d' - 'a'] = "double",
	['e' - 'a'] = "long double", ['f' - 'a'] = "float",
	['g' - 'a'] = "__float128",  ['h' - 'a'] = "unsigned char",
	['i' - 'a'] = "int",	     ['j' - 'a'] = "unsigned int",
	['l' - 'a'] = "long",	     ['m' - 'a'] = "unsigned long",
	['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
	['s' - 'a'] = "short",	     ['t' - 'a'] = "unsigned short",
	['v' - 'a'] = "void",	     ['w' - 'a'] = "wchar_t",
	['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
	['z' - 'a'] = "...",
};

static const struct {
	const char *code, *text;
} long_builtins[] = {
	{ "Dd", "decimal64" }, { "De", "decimal128" },	   { "Df", "decimal32" },
	{ "Dh", "half" },      { "Di", "char32_t" },	   { "Ds", "char16_t" },
	{ "Du", "char8_t" },   { "Da", "auto" },	   { "DF16_", "_Float16" },
	{ "DF16b", "__bf16" }, { "Dn", "std::nullptr_t" }, { "Dc", "decltype(auto)" },
};

/* Parses a function type (F … E): its return type and parameters. */
static uint32_t parse_function_type(struct parser *p)
{
	uint32_t returned, list;

	p->at++; /* skips the letter F */
	take(p, "Y");
	returned = parse_type(p);
	if (!returned || !parse_types(p, &list))
		return 0;
	if (!take(p, "E") && !take(p, "RE") && !take(p, "OE"))
		return 0;
	return add_node(p, NODE_FUNCTION, returned, list, STR(""));
}

static uint32_t parse_array_type(struct parser *p)
{
	uint32_t dimension = 0, element;
	struct str digits = STR("");

	p->at++; /* skips the letter A */
	if (is_digit(peek(p, 0))) {
		digits = str_make(p->at, 0);
		while (is_digit(peek(p, 0))) {
			digits.len++;
			p->at++;
		}
	} else if (peek(p, 0) != '_') {
		dimension = parse_expression(p);
		if (!dimension)
			return 0;
	}
	element = take(p, "_") ? parse_type(p) : 0;
	return element ? add_node(p, NODE_ARRAY, element, dimension, digits) : 0;
}

/* Wraps a type, for example as a pointer or reference. A wrapped pack becomes a pack of as many wrapped
 * types. */
static uint32_t wrap_node(struct parser *p, enum demangle_kind kind, uint32_t inner,
			  struct str text)
{
	uint32_t first = 0, last = 0;

	if (!inner)
		return 0;
	if (p->nodes[inner].kind == NODE_PACK) {
		for (uint32_t at = p->nodes[inner].b; at; at = p->nodes[at].b) {
			uint32_t item = p->nodes[at].a;

			if (p->nodes[item].kind == NODE_PACK ||
			    !append_item(p, &first, &last, wrap_node(p, kind, item, text)))
				return 0;
		}
		return add_node(p, NODE_PACK, 0, first, STR(""));
	}
	/* A reference to a reference (from a template argument) collapses to the shorter of
	 * both. */
	if (text.ptr[0] == '&' && p->nodes[inner].kind == NODE_POINTER &&
	    p->nodes[inner].text.ptr[0] == '&') {
		if (p->nodes[inner].text.len < text.len)
			text = p->nodes[inner].text;
		inner = p->nodes[inner].a;
	}
	return add_node(p, kind, inner, 0, text);
}

static uint32_t wrap_type(struct parser *p, enum demangle_kind kind, struct str text)
{
	p->at++;
	return wrap_node(p, kind, parse_type(p), text);
}

/* Parses types that begin with D: long builtin types, pack expansions, vectors. *built_in:
 * substitutions never refer to the type. */
static uint32_t parse_d_type(struct parser *p, bool *built_in)
{
	size_t size;
	uint32_t inner;

	for (size_t i = 0; i < ARRAY_COUNT(long_builtins); i++)
		if (take(p, long_builtins[i].code)) {
			*built_in = true;
			return add_text(p, long_builtins[i].text);
		}
	if (take(p, "Dp"))
		return parse_type(p);
	if (take(p, "Do"))
		return peek(p, 0) == 'F' ? parse_function_type(p) : 0;
	if (take(p, "Dv")) {
		if (!parse_number(p, &size) || !take(p, "_"))
			return 0;
		inner = parse_type(p);
		return inner ? add_node(p, NODE_SUFFIX, inner, 0, STR(" __vector")) : 0;
	}
	return 0;
}

static uint32_t parse_qualified_type(struct parser *p)
{
	struct str suffix = parse_cv_suffix(p);
	uint32_t inner = parse_type(p);

	/* the function is a member: void () const */
	if (inner && p->nodes[inner].kind == NODE_FUNCTION)
		return add_node(p, NODE_FUNCTION, p->nodes[inner].a, p->nodes[inner].b, suffix);
	return inner ? add_node(p, NODE_SUFFIX, inner, 0, suffix) : 0;
}

/* Parses a vendor qualifier such as the address space in U3AS1i. */
static uint32_t parse_vendor_type(struct parser *p)
{
	uint32_t name, inner;

	p->at++; /* skips the letter U */
	name = parse_source_name(p);
	if (name && peek(p, 0) == 'I' && !parse_template_args(p, false))
		return 0;
	inner = name ? parse_type(p) : 0;
	return inner ? add_node(p, NODE_SUFFIX, inner, 0, STR("")) : 0;
}

static uint32_t parse_member_pointer(struct parser *p)
{
	uint32_t class, member;

	p->at++; /* skips the letter M */
	class = parse_type(p);
	member = class ? parse_type(p) : 0;
	return member ? add_node(p, NODE_MEMBER, class, member, STR("")) : 0;
}

static uint32_t parse_param_type(struct parser *p)
{
	uint32_t type = parse_template_param(p);

	if (type && peek(p, 0) == 'I')
		type = parse_template(p, remember(p, type), NULL);
	return type;
}

static uint32_t parse_any_type(struct parser *p, bool *known)
{
	char c = peek(p, 0);
	uint32_t type;

	if (c >= 'a' && c <= 'z' && builtins[c - 'a']) {
		p->at++;
		*known = true;
		return add_text(p, builtins[c - 'a']);
	}
	switch (c) {
	case 'r':
	case 'V':
	case 'K':
		return parse_qualified_type(p);
	case 'P':
		return wrap_type(p, NODE_POINTER, STR("*"));
	case 'R':
		return wrap_type(p, NODE_POINTER, STR("&"));
	case 'O':
		return wrap_type(p, NODE_POINTER, STR("&&"));
	case 'C':
		return wrap_type(p, NODE_SUFFIX, STR(" _Complex"));
	case 'u':
		p->at++;
		return parse_source_name(p);
	case 'D':
		return parse_d_type(p, known);
	case 'F':
		return parse_function_type(p);
	case 'A':
		return parse_array_type(p);
	case 'M':
		return parse_member_pointer(p);
	case 'U':
		return parse_vendor_type(p);
	case 'T':
		if (peek(p, 1) == 's' || peek(p, 1) == 'u' || peek(p, 1) == 'e') {
			p->at += 2;
			return parse_name(p, NULL);
		}
		return parse_param_type(p);
	case 'S':
		if (peek(p, 1) == 't')
			return parse_name(p, NULL);
		type = parse_substitution(p);
		*known = peek(p, 0) != 'I';
		return *known ? type : parse_template(p, type, NULL);
	default:
		return is_digit(c) || c == 'N' || c == 'Z' ? parse_name(p, NULL) : 0;
	}
}

static uint32_t parse_type(struct parser *p)
{
	bool known = false;
	uint32_t type = enter(p) ? parse_any_type(p, &known) : 0;

	p->depth--;
	return known || !type ? type : remember(p, type);
}

/* Parses types up to E, as in a lambda or a function; a single v means no parameters. */
static bool parse_types(struct parser *p, uint32_t *list)
{
	uint32_t last = 0;

	*list = 0;
	if (peek(p, 0) == 'v' && (peek(p, 1) == 'E' || peek(p, 1) == '\0' || peek(p, 1) == '.')) {
		p->at++;
		return true;
	}
	while (peek(p, 0) != 'E' && peek(p, 0) != '\0' && peek(p, 0) != '.')
		if (!append_item(p, list, &last, parse_type(p)))
			return false;
	return true;
}

static const struct {
	char code[3];
	uint8_t operands; /* number of operands in expressions; 0 = not supported */
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

static uint32_t parse_operator_name(struct parser *p, struct name_state *state)
{
	size_t found = find_operator(p);
	const char *text;
	bool word;
	uint32_t name;

	if (take(p, "cv")) {
		uint32_t type = parse_type(p);

		if (state)
			state->plain = true;
		return type ? add_node(p, NODE_CONVERSION, type, 0, STR("")) : 0;
	}
	if (take(p, "li")) {
		name = parse_source_name(p);
		return name ? add_node(p, NODE_PREFIX, name, 0, STR("operator\"\" ")) : 0;
	}
	if (found == ARRAY_COUNT(operators))
		return 0;
	p->at += 2;
	text = operators[found].text;
	/* a blank follows in "operator new", but not in "operator+" */
	word = text[0] >= 'a' && text[0] <= 'z';
	name = add_text(p, text);
	return name ? add_node(p, NODE_PREFIX, name, 0, word ? STR("operator ") : STR("operator"))
		    : 0;
}

static uint32_t parse_literal(struct parser *p)
{
	const char *from;
	uint32_t type, inner;
	size_t len = 0;

	p->at++; /* skips the letter L */
	if (take(p, "_Z") || take(p, "Z")) {
		inner = parse_encoding(p);
		return inner && take(p, "E") ? inner : 0;
	}
	type = parse_type(p);
	from = p->at;
	while (peek(p, len) != 'E' && peek(p, len) != '\0')
		len++;
	if (!type || peek(p, len) != 'E')
		return 0;
	p->at += len + 1;
	return add_node(p, NODE_LITERAL, type, 0, str_make(from, len));
}

static uint32_t parse_template_arg(struct parser *p)
{
	uint32_t node, list = 0, last = 0;

	switch (peek(p, 0)) {
	case 'J':
		p->at++;
		while (!take(p, "E"))
			if (!append_item(p, &list, &last, parse_template_arg(p)))
				return 0;
		return add_node(p, NODE_PACK, 0, list, STR(""));
	case 'L':
		return parse_literal(p);
	case 'X':
		p->at++;
		node = parse_expression(p);
		return node && take(p, "E") ? node : 0;
	default:
		return parse_type(p);
	}
}

static uint32_t parse_template_args(struct parser *p, bool tag)
{
	uint32_t list = 0, last = 0;

	if (!take(p, "I") || !enter(p))
		return 0;
	if (tag)
		p->param_count = 0;
	while (!take(p, "E")) {
		uint32_t arg = peek(p, 0) ? parse_template_arg(p) : 0;

		if (!append_item(p, &list, &last, arg) ||
		    (tag && !push_node(p, &p->params, &p->param_count, &p->param_cap, arg)))
			return 0;
	}
	p->depth--;
	return add_node(p, NODE_PACK, 0, list, STR(""));
}

static uint32_t parse_operation(struct parser *p)
{
	size_t found = find_operator(p);
	uint32_t left, right;

	if (found == ARRAY_COUNT(operators) || !operators[found].operands)
		return 0;
	p->at += 2;
	left = parse_expression(p);
	if (!left)
		return 0;
	if (operators[found].operands == 1)
		return add_node(p, NODE_PREFIX, left, 0, str_from(operators[found].text));
	right = parse_expression(p);
	return right ? add_node(p, NODE_BINARY, left, right, str_from(operators[found].text)) : 0;
}

/* Parses a name that the compiler resolves later: a::b<c>, up to E. */
static uint32_t parse_unresolved(struct parser *p)
{
	uint32_t scope = 0;

	while (!take(p, "E")) {
		uint32_t name = parse_source_name(p);

		if (name && scope)
			name = add_node(p, NODE_NESTED, scope, name, STR(""));
		scope = name && peek(p, 0) == 'I' ? parse_template(p, name, NULL) : name;
		if (!scope)
			return 0;
	}
	return scope;
}

/* Parses TYPE::name. */
static uint32_t parse_scoped_name(struct parser *p)
{
	uint32_t type = is_digit(peek(p, 0)) ? parse_unresolved(p) : parse_type(p);
	uint32_t name = type ? parse_unqualified(p, type, NULL) : 0;

	if (!name)
		return 0;
	name = add_node(p, NODE_NESTED, type, name, STR(""));
	return peek(p, 0) == 'I' ? parse_template(p, name, NULL) : name;
}

static uint32_t parse_any_expression(struct parser *p)
{
	uint32_t a, b;

	switch (peek(p, 0)) {
	case 'L':
		return parse_literal(p);
	case 'T':
		return parse_template_param(p);
	default:
		break;
	}
	if (take(p, "sr"))
		return parse_scoped_name(p);
	if (take(p, "sZ") || take(p, "st")) {
		a = peek(p, 0) == 'T' ? parse_template_param(p) : parse_type(p);
		return a ? add_node(p, NODE_PREFIX, a, 0, STR("sizeof ")) : 0;
	}
	if (take(p, "cv")) {
		a = parse_type(p);
		b = a ? parse_expression(p) : 0;
		return b ? add_node(p, NODE_BINARY, a, b, STR("")) : 0;
	}
	return parse_operation(p);
}

static uint32_t parse_expression(struct parser *p)
{
	uint32_t node = enter(p) ? parse_any_expression(p) : 0;

	p->depth--;
	return node;
}

/* Skips an offset such as "n24_", which a thunk adds to a pointer. */
static bool skip_offset(struct parser *p)
{
	size_t number;

	(void)take(p, "n");
	return parse_number(p, &number) && take(p, "_");
}

/* Parses a thunk: a small function of the compiler that calls another one. */
static uint32_t parse_thunk(struct parser *p)
{
	bool is_virtual = peek(p, 1) == 'v';
	uint32_t of;

	p->at += 2;
	if (!skip_offset(p) || (is_virtual && !skip_offset(p)))
		return 0;
	of = parse_encoding(p);
	return of ? add_node(p, NODE_PREFIX, of, 0,
			     is_virtual ? STR("virtual thunk to ") : STR("non-virtual thunk to "))
		  : 0;
}

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

	if (peek(p, 0) == 'T' && (peek(p, 1) == 'h' || peek(p, 1) == 'v'))
		return parse_thunk(p);
	if (take(p, "GTt")) {
		of = parse_encoding(p);
		return of ? add_node(p, NODE_PREFIX, of, 0, STR("transaction clone for ")) : 0;
	}
	for (size_t i = 0; i < ARRAY_COUNT(specials); i++) {
		if (!take(p, specials[i].code))
			continue;
		of = specials[i].type ? parse_type(p) : parse_name(p, NULL);
		return of ? add_node(p, NODE_PREFIX, of, 0, str_from(specials[i].text)) : 0;
	}
	return 0;
}

static uint32_t parse_function(struct parser *p)
{
	struct name_state state = { .suffix = STR("") };
	uint32_t name, returned = 0, list, function;

	if (peek(p, 0) == 'T' || peek(p, 0) == 'G')
		return parse_special(p);
	name = parse_name(p, &state);
	if (!name || peek(p, 0) == '\0' || peek(p, 0) == 'E' || peek(p, 0) == '.')
		return name;
	if (state.templated && !state.plain) {
		returned = parse_type(p);
		if (!returned)
			return 0;
	}
	if (!parse_types(p, &list))
		return 0;
	function = add_node(p, NODE_FUNCTION, returned, list, state.suffix);
	return function ? add_node(p, NODE_ENCODING, name, function, STR("")) : 0;
}

/* Parses an encoding. A function inside a local name has its own template arguments. */
static uint32_t parse_encoding(struct parser *p)
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
	if (str_starts(mangled, STR("_R")))
		return demangle_rust_v0(str_skip(mangled, 2), out);
	if (!take(&p, "_Z") && !take(&p, "__Z"))
		return false;
	if (demangle_rust_legacy(str_make(p.at, (size_t)(p.end - p.at)), out))
		return true;
	p.count = 1; /* node 0 means "none" */
	root = parse_encoding(&p);
	/* text after a dot was added by the compiler: .isra.0, .kd */
	ok = root && (p.at == p.end || *p.at == '.') && demangle_print(p.nodes, root, out);
	if (!ok)
		out->len = before;
	if (p.no_memory)
		out->failed = true;
	mem_free(out->mem, p.nodes, p.cap * sizeof(*p.nodes));
	mem_free(out->mem, p.subs, p.sub_cap * sizeof(*p.subs));
	return ok && !out->failed;
}
