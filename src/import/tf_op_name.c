/* tf_op_name.c: see tf_op_name.h. */
#include "import/tf_op_name.h"

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* [A-Za-z0-9.][A-Za-z0-9_./>-]* */
static bool is_node_name(struct str s, bool hyphen)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (is_lower(c) || is_upper(c) || is_digit(c) || c == '.')
			continue;
		if (!i || (c != '_' && c != '/' && c != '>' && !(c == '-' && hyphen)))
			return false;
	}
	return s.len > 0;
}

/* [A-Z_][A-Za-z0-9_]* */
static bool is_node_type(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!is_upper(c) && c != '_' && (!i || (!is_lower(c) && !is_digit(c))))
			return false;
	}
	return s.len > 0;
}

/* [a-z_][a-z0-9_]*(\[.*\])?; returns the part before the bracket, or nothing. */
static struct str jax_type(struct str s)
{
	size_t at = 0;

	while (at < s.len &&
	       (is_lower(s.ptr[at]) || s.ptr[at] == '_' || (at && is_digit(s.ptr[at]))))
		at++;
	if (!at || (at < s.len && (s.ptr[at] != '[' || s.ptr[s.len - 1] != ']')))
		return STR("");
	return str_first(s, at);
}

/* The last component of a name, without a number that makes it unique: a/b/dense_1 is a dense. */
static struct str type_of_name(struct str name)
{
	size_t slash = str_rfind_char(name, '/'), end;
	struct str last = slash == STR_NONE ? name : str_skip(name, slash + 1);

	end = last.len;
	while (end && is_digit(last.ptr[end - 1]))
		end--;
	if (end < last.len && end > 1 && last.ptr[end - 1] == '_')
		return str_first(last, end - 1);
	return last;
}

static bool starts_ignoring_case(struct str s, const char *lower)
{
	size_t len = strlen(lower);

	if (s.len < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((is_upper(s.ptr[i]) ? s.ptr[i] + ('a' - 'A') : s.ptr[i]) != lower[i])
			return false;
	return true;
}

static struct tf_op_name parse_copy(struct str text)
{
	static const struct {
		const char *beginning, *type;
	} copies[] = {
		{ "memcpyhtod", "MemcpyHToD" },
		{ "memcpydtoh", "MemcpyDToH" },
		{ "memcpydtod", "MemcpyDToD" },
		{ "memcpyhtoh", "MemcpyHToH" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(copies); i++)
		if (starts_ignoring_case(text, copies[i].beginning))
			return (struct tf_op_name){ TF_OP_COPY, text, str_from(copies[i].type) };
	return (struct tf_op_name){ 0 };
}

struct tf_op_name tf_op_name_parse(struct str text, bool hyphen)
{
	size_t colon = str_find_char(text, ':');
	struct str left, right, type, jax;

	if (colon == STR_NONE)
		return parse_copy(text);
	left = str_first(text, colon);
	right = str_skip(text, colon + 1);
	if (str_eq(left, STR("Iterator")))
		return (struct tf_op_name){ TF_OP_DATA, text, STR("Dataset") };
	if (is_node_name(left, hyphen) && is_node_type(right))
		return (struct tf_op_name){ TF_OP_TENSORFLOW, left, right };
	type = right.len ? right : type_of_name(left);
	jax = jax_type(type);
	if (jax.len && left.len)
		return (struct tf_op_name){ TF_OP_JAX, left, jax };
	if (!right.len && left.len)
		return (struct tf_op_name){ TF_OP_TENSORFLOW, left, type };
	return (struct tf_op_name){ 0 };
}

struct str tf_op_name_strip(struct str text)
{
	size_t hash;

	if (text.len < 2 || text.ptr[text.len - 1] != '#')
		return text;
	hash = str_find_char(text, '#');
	return hash && hash + 1 < text.len ? str_first(text, hash) : text;
}

int64_t tf_copy_bytes(struct str details)
{
	static const char *const keys[] = { "num_bytes:", "size:" };

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		size_t at = str_find(details, str_from(keys[i])), len = 0;
		struct str digits =
			at == STR_NONE ? STR("") : str_skip(details, at + strlen(keys[i]));
		int64_t bytes;

		while (len < digits.len && digits.ptr[len] >= '0' && digits.ptr[len] <= '9')
			len++;
		if (str_to_i64(str_first(digits, len), &bytes))
			return bytes;
	}
	return 0;
}
