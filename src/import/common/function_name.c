/*
 * function_name.c: readable names of sampled functions (function_name.h). Only names of C++ and Rust change (base/demangle). Parameters are left out, because perf, which most
 * stacks come from, leaves them out as well, and overloads of a function mostly are one thing to a reader.
 */
#include "import/common/function_name.h"

#include "base/demangle/demangle.h"

static void cut_parameters(struct buf *text, size_t from)
{
	int depth = 0;

	for (size_t i = from; i < text->len; i++) {
		struct str rest = str_skip(buf_str(text), i);

		depth += text->ptr[i] == '<' ? 1 : text->ptr[i] == '>' ? -1 : 0;
		if (text->ptr[i] != '(' || depth > 0 ||
		    str_starts(rest, STR("(anonymous namespace)")))
			continue;
		if (str_starts(rest, STR("()")) &&
		    str_ends(str_first(buf_str(text), i), STR("operator")))
			continue;
		text->len = i;
	}
}

bool function_name_plain(struct str name, struct buf *out)
{
	size_t before = out->len;
	bool cpp = str_starts(name, STR("_Z")) || str_starts(name, STR("__Z"));

	if ((!cpp && !str_starts(name, STR("_R"))) || !demangle_name(name, out))
		return false;
	/* a Rust path may begin with a type: "<Vec as Index>::index", "<(A, B)>::f"; it has no
	 * parameters */
	if (cpp)
		cut_parameters(out, before);
	return true;
}

str_id function_name(struct builder *b, struct str name)
{
	struct buf text;
	str_id id;

	if (name.len < 4 || name.ptr[0] != '_')
		return builder_str(b, name);
	buf_init(&text, b->m->mem);
	id = builder_str(b, function_name_plain(name, &text) ? buf_str(&text) : name);
	if (text.failed)
		builder_no_memory(b);
	buf_release(&text);
	return id;
}
