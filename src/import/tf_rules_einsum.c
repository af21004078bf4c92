/*
 * tf_rules_einsum.c: see tf_einsum.h; and the shape rule of Einsum. Letters are dimensions, "..." stands for any number of them that
 * are broadcast. An equation without "->" is one that TensorFlow's Python side never writes: it is not read.
 */
#include "import/tf_einsum.h"

#define LETTERS 256

struct letters {
	bool seen[LETTERS];
	int64_t size[LETTERS];
	struct tf_shape rest; /* under "..." */
};

static size_t dots_at(struct str term)
{
	for (size_t i = 0; i + 3 <= term.len; i++)
		if (memcmp(term.ptr + i, "...", 3) == 0)
			return i;
	return STR_NONE;
}

static bool set_letter(struct letters *l, char letter, int64_t size)
{
	unsigned char at = (unsigned char)letter;

	if (!l->seen[at])
		l->size[at] = TF_UNKNOWN;
	l->seen[at] = true;
	if (size < 0)
		return true;
	if (l->size[at] >= 0 && l->size[at] != size && l->size[at] != 1 && size != 1)
		return false;
	l->size[at] = MAX(l->size[at], size);
	return true;
}

/* The dimensions of one input. */
static bool read_term(struct letters *l, struct str term, const struct tf_shape *in)
{
	size_t dots = dots_at(term), named = dots == STR_NONE ? term.len : term.len - 3;
	size_t before = dots == STR_NONE ? term.len : dots;
	struct tf_shape rest = tf_shape_scalar();
	int32_t under;

	if (in->rank == TF_UNKNOWN) {
		for (size_t i = 0; i < term.len; i++)
			if (term.ptr[i] != '.')
				(void)set_letter(l, term.ptr[i], TF_UNKNOWN);
		if (dots != STR_NONE)
			l->rest = tf_shape_unknown();
		return true;
	}
	if (named > (size_t)in->rank || (dots == STR_NONE && named != (size_t)in->rank))
		return false;
	under = in->rank - (int32_t)named;
	for (size_t i = 0; i < before; i++)
		if (!set_letter(l, term.ptr[i], in->dim[i]))
			return false;
	for (int32_t i = 0; i < under; i++)
		tf_shape_push(&rest, in->dim[before + (size_t)i]);
	for (size_t i = before; i < named; i++)
		if (!set_letter(l, term.ptr[i + 3], in->dim[i + (size_t)under]))
			return false;
	if (dots != STR_NONE)
		l->rest = tf_shape_broadcast(&l->rest, &rest);
	return true;
}

static void push_all(struct tf_shape *to, const struct tf_shape *from)
{
	if (from->rank == TF_UNKNOWN)
		*to = tf_shape_unknown();
	for (int32_t i = 0; i < from->rank && to->rank != TF_UNKNOWN; i++)
		tf_shape_push(to, from->dim[i]);
}

static bool read_result(const struct letters *l, struct str term, struct tf_shape *out)
{
	*out = tf_shape_scalar();
	for (size_t i = 0; i < term.len && out->rank != TF_UNKNOWN; i++) {
		unsigned char letter = (unsigned char)term.ptr[i];

		if (letter == '.') {
			if (dots_at(str_skip(term, i)) != 0)
				return false;
			push_all(out, &l->rest);
			i += 2;
		} else if (l->seen[letter]) {
			tf_shape_push(out, l->size[letter]);
		} else {
			return false;
		}
	}
	return true;
}

bool tf_einsum(struct tf_infer *c, struct tf_einsum *e)
{
	struct str equation = tf_attr_str(tf_attrs(c), "equation"), inputs, term;
	struct letters l = { .rest = tf_shape_scalar() };
	size_t arrow = STR_NONE;

	for (size_t i = 0; i + 2 <= equation.len && arrow == STR_NONE; i++)
		if (memcmp(equation.ptr + i, "->", 2) == 0)
			arrow = i;
	if (arrow == STR_NONE)
		return false;
	inputs = str_first(equation, arrow);
	for (e->terms = 0; str_split(&inputs, ',', &term); e->terms++) {
		struct tf_shape in = tf_in(c, e->terms);

		if (e->terms >= c->inputs || !read_term(&l, term, &in))
			return false;
	}
	e->all = tf_shape_scalar();
	for (int i = 0; i < LETTERS && e->all.rank != TF_UNKNOWN; i++)
		if (l.seen[i])
			tf_shape_push(&e->all, l.size[i]);
	push_all(&e->all, &l.rest);
	return read_result(&l, str_skip(equation, arrow + 2), &e->out);
}

void tf_rule_einsum(struct tf_infer *c)
{
	struct tf_einsum e;

	if (tf_einsum(c, &e))
		tf_out(c, 0, &e.out);
}
