/*
 * kernel_name.c: kernel_short_name of demangle.h. Works on the text of a declaration, which most traces
 * carry demangled already. A text that does not look like one is kept as it is, so nothing can go wrong
 * but the shortening.
 *
 *	void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, …>(int, …)
 *	     at::native::vectorized_elementwise_kernel<4, FillFunctor, …>
 */
#include "base/demangle/demangle.h"

#define ARGS_SHOWN 40 /* number of columns that template arguments may take */
#define WRAPPERS_MAX 4

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool ends_with_word(struct str s, struct str word)
{
	return str_ends(s, word) && (s.len == word.len || !is_word(s.ptr[s.len - word.len - 1]));
}

/* Detects "->", and < > << >> after "operator", which are not brackets. Returns how many bytes
 * to skip. */
static size_t no_bracket(struct str s, size_t at)
{
	struct str before = str_first(s, at);
	size_t len = 1;

	if (s.ptr[at] == '-' && at + 1 < s.len && s.ptr[at + 1] == '>')
		return 2;
	if ((s.ptr[at] != '<' && s.ptr[at] != '>') || !ends_with_word(before, STR("operator")))
		return 0;
	while (at + len < s.len && (s.ptr[at + len] == s.ptr[at] || s.ptr[at + len] == '='))
		len++;
	return len;
}

/* Returns the position after the bracket that closes the one at `at`; s.len if none does. */
static size_t skip_brackets(struct str s, size_t at)
{
	size_t depth = 0, passed;

	for (; at < s.len; at++) {
		passed = no_bracket(s, at);
		if (passed) {
			at += passed - 1;
			continue;
		}
		switch (s.ptr[at]) {
		case '<':
		case '(':
		case '{':
		case '[':
			depth++;
			break;
		case '>':
		case ')':
		case '}':
		case ']':
			if (depth <= 1)
				return at + 1;
			depth--;
			break;
		default:
			break;
		}
	}
	return s.len;
}

/* Returns whether the name is a C++ declaration; "Memcpy HtoD (Pageable -> Device)" is a text
 * for people. */
static bool is_declaration(struct str s)
{
	for (size_t i = 1; i < s.len; i++)
		if ((s.ptr[i] == '<' || s.ptr[i] == '(') &&
		    (is_word(s.ptr[i - 1]) || s.ptr[i - 1] == ')'))
			return true;
	return str_has(s, STR("::"));
}

/* The part of a declaration up to its parameters. A list that is followed by :: belongs to a scope, and
 * operator() has one in its name. */
static struct str without_parameters(struct str s)
{
	for (size_t at = 0, end; at < s.len; at = end) {
		end = at + MAX(no_bracket(s, at), (size_t)1);
		if (end > at + 1 || !strchr("<({[", s.ptr[at]))
			continue;
		end = skip_brackets(s, at);
		if (s.ptr[at] != '(' || str_starts(str_skip(s, end), STR("::")) ||
		    ends_with_word(str_first(s, at), STR("operator")) ||
		    str_starts(str_skip(s, at), STR("(anonymous namespace)")))
			continue;
		return at ? str_first(s, at) : s;
	}
	return s;
}

/* Returns the last word outside of brackets; a return type and "static" stand before it. */
static struct str without_return_type(struct str s)
{
	size_t start = 0;

	for (size_t at = 0, end; at < s.len; at = end) {
		end = at + MAX(no_bracket(s, at), (size_t)1);
		if (end == at + 1 && strchr("<({[", s.ptr[at]))
			end = skip_brackets(s, at);
		else if (s.ptr[at] == ' ' && !ends_with_word(str_first(s, at), STR("operator")) &&
			 at + 1 < s.len && (is_word(s.ptr[at + 1]) || s.ptr[at + 1] == '('))
			start = at + 1;
	}
	return str_skip(s, start);
}

/* Cuts off the next argument of a list between < and >. */
static bool next_argument(struct str *rest, struct str *argument)
{
	size_t at = 0;

	*rest = str_trim(*rest);
	if (!rest->len)
		return false;
	while (at < rest->len && rest->ptr[at] != ',') {
		size_t passed = no_bracket(*rest, at);

		if (!passed && strchr("<({[", rest->ptr[at]))
			at = skip_brackets(*rest, at);
		else
			at += passed ? passed : 1;
	}
	*argument = str_trim(str_first(*rest, at));
	*rest = str_skip(*rest, at + 1);
	return true;
}

/* Returns the arguments of the first template in a name, without the brackets. */
static struct str first_arguments(struct str s)
{
	for (size_t at = 0, end; at < s.len; at = end) {
		end = at + MAX(no_bracket(s, at), (size_t)1);
		if (end > at + 1 || s.ptr[at] != '<')
			continue;
		end = skip_brackets(s, at);
		return end > at + 1 ? str_make(s.ptr + at + 1, end - at - 2) : STR("");
	}
	return STR("");
}

/* Returns the function or class that a type is named after; for a lambda, the function around
 * it. */
static struct str base_name(struct str type)
{
	size_t start = 0, stop = type.len;

	for (size_t at = 0, end; at < type.len; at = end) {
		end = at + MAX(no_bracket(type, at), (size_t)1);
		if (type.ptr[at] == ':') {
			start = at + 1;
		} else if (end == at + 1 && strchr("<({[", type.ptr[at])) {
			if (str_starts(str_skip(type, at), STR("(anonymous namespace)"))) {
				end = skip_brackets(type, at);
				continue;
			}
			stop = at;
			break;
		}
	}
	return str_trim(str_make(type.ptr + start, stop - start));
}

/* Names of wrapper classes and functions that only run one of their template arguments; PyTorch
 * has many. */
static const struct {
	const char *name;
	bool whole;	   /* the whole name must match, not only its beginning */
	unsigned argument; /* number of the argument that is run, from 1 */
} wrappers[] = {
	{ "gpu_kernel", false, 1 },    { "gpu_index_kernel", false, 1 },
	{ "BinaryFunctor", true, 4 },  { "BUnaryFunctor", true, 4 },
	{ "AUnaryFunctor", true, 4 },  { "ReduceOp", true, 2 },
	{ "func_wrapper_t", true, 2 },
};

static unsigned wrapped_argument(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(wrappers); i++) {
		struct str known = str_from(wrappers[i].name);

		if (wrappers[i].whole ? str_eq(name, known) : str_starts(name, known))
			return wrappers[i].argument;
	}
	return 0;
}

static struct str argument_name(struct str argument)
{
	struct str name = base_name(argument), inner, next = STR("");
	unsigned wanted;

	for (int i = 0; i < WRAPPERS_MAX && (wanted = wrapped_argument(name)); i++) {
		inner = first_arguments(argument);
		for (unsigned k = 0; k < wanted; k++)
			if (!next_argument(&inner, &next))
				return name;
		if (!base_name(next).len)
			return name;
		argument = next;
		name = base_name(argument);
	}
	return name;
}

static bool is_simple(struct str argument)
{
	for (size_t i = 0; i < argument.len; i++)
		if (!is_word(argument.ptr[i]) && argument.ptr[i] != ' ' && argument.ptr[i] != '*' &&
		    argument.ptr[i] != '-')
			return false;
	return true;
}

/* Writes numbers and plain types up to the first argument that has a name of its own. */
static void put_arguments(struct str list, struct buf *out)
{
	size_t shown = 0, count = 0;
	bool named = false;
	struct str argument;

	buf_add_char(out, '<');
	while (next_argument(&list, &argument)) {
		bool simple = is_simple(argument);
		struct str text = simple ? argument : argument_name(argument);

		if (named || !text.len || (count && shown + text.len > ARGS_SHOWN)) {
			buf_puts(out, count ? ", …" : "…");
			break;
		}
		if (count++)
			buf_puts(out, ", ");
		buf_add_str(out, text);
		shown += text.len + 2;
		named = !simple;
	}
	buf_add_char(out, '>');
}

/* Writes a name without parameters: template arguments of scopes become <…>, those of the last part are
 * shortened. */
static void put_name(struct str s, struct buf *out)
{
	for (size_t at = 0, end; at < s.len; at = end) {
		struct str rest = str_skip(s, at);

		end = at + MAX(no_bracket(s, at), (size_t)1);
		if (str_starts(rest, STR("(anonymous namespace)::"))) {
			end = at + strlen("(anonymous namespace)::");
			continue;
		}
		if (end > at + 1 || s.ptr[at] != '<') {
			buf_add(out, s.ptr + at, end - at);
			continue;
		}
		end = skip_brackets(s, at);
		if (end < s.len)
			buf_puts(out, "<…>");
		else
			put_arguments(str_make(s.ptr + at + 1, end - at - 1 - (end > at + 1)), out);
	}
}

/* Removes the suffix that ROCm's loader adds. */
static struct str without_suffix(struct str name)
{
	return str_ends(name, STR(".kd")) ? str_first(name, name.len - 3) : name;
}

void kernel_short_name(struct str name, struct buf *out)
{
	struct str text = without_suffix(str_trim(name)), declaration = text;
	struct buf demangled;

	buf_init(&demangled, out->mem);
	if (demangle_name(text, &demangled))
		declaration = buf_str(&demangled);
	out->failed |= demangled.failed;
	text = is_declaration(declaration) ? without_return_type(without_parameters(declaration))
					   : STR("");
	if (text.len)
		put_name(text, out);
	else
		buf_add_str(out, declaration);
	buf_release(&demangled);
}
