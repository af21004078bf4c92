/*
 * demangle_type.c: the types in mangled names; see demangle_parse.h. Called by the other parts of the
 * parser.
 */
#include "base/demangle_parse.h"

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

/* Parsed: the ret and params of F … E. */
static uint32_t parse_function_type(struct parser *p)
{
	uint32_t returned, list;

	p->at++; /* F */
	take(p, "Y");
	returned = demangle_type(p);
	if (!returned || !demangle_types(p, &list))
		return 0;
	if (!take(p, "E") && !take(p, "RE") && !take(p, "OE"))
		return 0;
	return demangle_add(p, NODE_FUNCTION, returned, list, STR(""));
}

static uint32_t parse_array_type(struct parser *p)
{
	uint32_t dimension = 0, element;
	struct str digits = STR("");

	p->at++; /* A */
	if (is_digit(peek(p, 0))) {
		digits = str_make(p->at, 0);
		while (is_digit(peek(p, 0))) {
			digits.len++;
			p->at++;
		}
	} else if (peek(p, 0) != '_') {
		dimension = demangle_expression(p);
		if (!dimension)
			return 0;
	}
	element = take(p, "_") ? demangle_type(p) : 0;
	return element ? demangle_add(p, NODE_ARRAY, element, dimension, digits) : 0;
}

static uint32_t wrap_type(struct parser *p, enum node_kind kind, struct str text)
{
	uint32_t inner;

	p->at++;
	inner = demangle_type(p);
	return inner ? demangle_add(p, kind, inner, 0, text) : 0;
}

/* D…: long builtins, pack expansions, vectors. *built_in: S_ never refers to it. */
static uint32_t parse_d_type(struct parser *p, bool *built_in)
{
	size_t size;
	uint32_t inner;

	for (size_t i = 0; i < ARRAY_COUNT(long_builtins); i++)
		if (take(p, long_builtins[i].code)) {
			*built_in = true;
			return demangle_add_text(p, long_builtins[i].text);
		}
	if (take(p, "Dp"))
		return demangle_type(p);
	if (take(p, "Do"))
		return peek(p, 0) == 'F' ? parse_function_type(p) : 0;
	if (take(p, "Dv")) {
		if (!demangle_number(p, &size) || !take(p, "_"))
			return 0;
		inner = demangle_type(p);
		return inner ? demangle_add(p, NODE_SUFFIX, inner, 0, STR(" __vector")) : 0;
	}
	return 0;
}

static uint32_t parse_qualified_type(struct parser *p)
{
	struct str suffix = demangle_cv_suffix(p);
	uint32_t inner = demangle_type(p);

	if (inner && p->nodes[inner].kind == NODE_FUNCTION) /* of a member: void () const */
		return demangle_add(p, NODE_FUNCTION, p->nodes[inner].a, p->nodes[inner].b, suffix);
	return inner ? demangle_add(p, NODE_SUFFIX, inner, 0, suffix) : 0;
}

/* U3AS1i: an address space, or another vendor's qualifier. */
static uint32_t parse_vendor_type(struct parser *p)
{
	uint32_t name, inner;

	p->at++; /* U */
	name = demangle_source_name(p);
	if (name && peek(p, 0) == 'I' && !demangle_template_args(p, false))
		return 0;
	inner = name ? demangle_type(p) : 0;
	return inner ? demangle_add(p, NODE_SUFFIX, inner, 0, STR("")) : 0;
}

static uint32_t parse_member_pointer(struct parser *p)
{
	uint32_t class, member;

	p->at++; /* M */
	class = demangle_type(p);
	member = class ? demangle_type(p) : 0;
	return member ? demangle_add(p, NODE_MEMBER, class, member, STR("")) : 0;
}

static uint32_t parse_param_type(struct parser *p)
{
	uint32_t type = demangle_template_param(p);

	if (type && peek(p, 0) == 'I')
		type = demangle_template(p, demangle_remember(p, type), NULL);
	return type;
}

static uint32_t parse_any_type(struct parser *p, bool *known)
{
	char c = peek(p, 0);
	uint32_t type;

	if (c >= 'a' && c <= 'z' && builtins[c - 'a']) {
		p->at++;
		*known = true;
		return demangle_add_text(p, builtins[c - 'a']);
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
		return demangle_source_name(p);
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
			return demangle_name_part(p, NULL);
		}
		return parse_param_type(p);
	case 'S':
		if (peek(p, 1) == 't')
			return demangle_name_part(p, NULL);
		type = demangle_substitution(p);
		*known = peek(p, 0) != 'I';
		return *known ? type : demangle_template(p, type, NULL);
	default:
		return is_digit(c) || c == 'N' || c == 'Z' ? demangle_name_part(p, NULL) : 0;
	}
}

uint32_t demangle_type(struct parser *p)
{
	bool known = false;
	uint32_t type = enter(p) ? parse_any_type(p, &known) : 0;

	p->depth--;
	return known || !type ? type : demangle_remember(p, type);
}

/* Types until E, as of a lambda or a function; a lone v is no parameter. */
bool demangle_types(struct parser *p, uint32_t *list)
{
	uint32_t last = 0;

	*list = 0;
	if (peek(p, 0) == 'v' && (peek(p, 1) == 'E' || peek(p, 1) == '\0' || peek(p, 1) == '.')) {
		p->at++;
		return true;
	}
	while (peek(p, 0) != 'E' && peek(p, 0) != '\0' && peek(p, 0) != '.')
		if (!demangle_append(p, list, &last, demangle_type(p)))
			return false;
	return true;
}
