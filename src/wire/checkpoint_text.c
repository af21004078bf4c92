/*
 * checkpoint_text.c: the text that tfprof shows for the value of a variable; see
 * checkpoint_tensor_text in checkpoint.h. Brackets per dimension, elements followed by a blank.
 */
#include "wire/checkpoint.h"

#define TEXT_MAX 10000	     /* what goes beyond is cut off */
#define HUGE_ELEMENTS 100000 /* tfprof warns from here on */

static double element_double(const struct checkpoint_tensor *t, int64_t i)
{
	float narrow;
	double wide;

	if (t->dtype == TF_FLOAT) {
		memcpy(&narrow, t->data + (size_t)i * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, t->data + (size_t)i * sizeof(wide), sizeof(wide));
	return wide;
}

static int64_t element_int(const struct checkpoint_tensor *t, int64_t i)
{
	int32_t narrow;
	int64_t wide;

	if (t->dtype == TF_INT32) {
		memcpy(&narrow, t->data + (size_t)i * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, t->data + (size_t)i * sizeof(wide), sizeof(wide));
	return wide;
}

/* The original prints a number with six digits, reads that, and prints it again with two decimals. */
static void add_double(struct buf *out, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%g", value);
	buf_printf(out, "%.2f ", strtod(text, NULL));
}

static void add_element(struct buf *out, const struct checkpoint_tensor *t, int64_t i)
{
	if (t->dtype == TF_FLOAT || t->dtype == TF_DOUBLE) {
		add_double(out, element_double(t, i));
	} else if (t->dtype == TF_STRING) {
		buf_add_char(out, '\'');
		buf_add_str(out, str_first(t->strings[i], TEXT_MAX + 1));
		buf_puts(out, "' ");
	} else {
		buf_printf(out, "%" PRId64 " ", element_int(t, i));
	}
}

static bool is_full(const struct buf *out, size_t start)
{
	return out->len - start > TEXT_MAX || out->failed;
}

/* The elements in brackets, without the last closing one; stops once nothing more can be shown. */
static void add_brackets(struct buf *out, size_t start, const struct checkpoint_tensor *t)
{
	int64_t at[256] = { 0 };
	int64_t next = 0;
	int32_t depth = 0;

	buf_add_char(out, '[');
	if (t->rank == 0) {
		add_element(out, t, 0);
		return;
	}
	while (!is_full(out, start)) {
		if (at[depth] == t->dims[depth]) {
			if (depth == 0)
				return;
			buf_puts(out, "],\n");
			at[depth--] = 0;
		} else if (depth == t->rank - 1) {
			at[depth]++;
			add_element(out, t, next++);
		} else {
			at[depth++]++;
			buf_add_char(out, '[');
		}
	}
}

/* The original cuts before each closing bracket and goes on, so the first 10,000 bytes stay, and the
 * last bracket follows them. */
enum tensor_text checkpoint_tensor_text(const struct checkpoint_tensor *t, struct buf *out)
{
	size_t start = out->len;

	switch (t->dtype) {
	case TF_FLOAT:
	case TF_DOUBLE:
	case TF_INT32:
	case TF_INT64:
	case TF_STRING:
		break;
	default:
		return TENSOR_TEXT_UNSUPPORTED;
	}
	add_brackets(out, start, t);
	if (out->len - start > TEXT_MAX)
		out->len = start + TEXT_MAX;
	buf_puts(out, "],\n");
	if (out->len - start >= TEXT_MAX)
		buf_puts(out, "...omitted from display\n\n");
	return t->elements > HUGE_ELEMENTS ? TENSOR_TEXT_HUGE : TENSOR_TEXT_OK;
}
