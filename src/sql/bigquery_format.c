/*
 * bigquery_format.c: BigQuery's function FORMAT, see bigquery_format.h. Values are passed as texts, in the form of
 * DuckDB's casts, so that integers of any size keep all their digits.
 */
#include "sql/bigquery_format.h"

#include <math.h>
#include <stdlib.h>

#define WIDTH_MAX 10000

/* The parts of a specifier such as %-'8.2f. */
struct specifier {
	bool left, plus, space, alternate, zero, group;
	size_t width, precision;
	bool has_precision;
	char letter;
};

/* The rest of the format and of the values. */
struct state {
	struct str format;
	const struct str *values;
	size_t count, used;
	bool is_null;
	struct ow_error *err;
};

static ow_status next_value(struct state *s, char letter, struct str *value)
{
	if (s->used == s->count)
		return error_set(s->err, OW_E_USAGE, "FORMAT has too few arguments for %%%c",
				 letter);
	*value = s->values[s->used++];
	s->is_null |= !value->ptr && letter != 't';
	return OW_OK;
}

static char next_char(struct state *s)
{
	char c = s->format.len ? s->format.ptr[0] : 0;

	if (s->format.len)
		s->format = str_skip(s->format, 1);
	return c;
}

/* Reads an integer as digits and a sign; false when the text is something else. A real number without a fraction is
 * accepted, because times of traces are real numbers here and often integers in BigQuery. */
static bool read_integer(struct str text, bool *negative, struct str *digits)
{
	*negative = text.len && text.ptr[0] == '-';
	*digits = str_skip(text, *negative);
	if (str_ends(*digits, STR(".0")))
		digits->len -= 2;
	for (size_t i = 0; i < digits->len; i++)
		if (digits->ptr[i] < '0' || digits->ptr[i] > '9')
			return false;
	return digits->len > 0;
}

/* Reads a width or precision: digits, or * for the next value. */
static ow_status read_size(struct state *s, size_t *size, bool *negative)
{
	struct str value = { 0 };

	*size = 0;
	*negative = false;
	if (s->format.len && s->format.ptr[0] == '*') {
		(void)next_char(s);
		OW_TRY(next_value(s, '*', &value));
		if (value.ptr && !read_integer(value, negative, &value))
			return error_set(s->err, OW_E_USAGE, "FORMAT needs an integer for *");
		for (size_t i = 0; i < value.len && *size <= WIDTH_MAX; i++)
			*size = *size * 10 + (size_t)(value.ptr[i] - '0');
	} else {
		while (s->format.len && s->format.ptr[0] >= '0' && s->format.ptr[0] <= '9' &&
		       *size <= WIDTH_MAX)
			*size = *size * 10 + (size_t)(next_char(s) - '0');
	}
	return *size <= WIDTH_MAX
		       ? OW_OK
		       : error_set(s->err, OW_E_USAGE, "FORMAT takes widths up to %d", WIDTH_MAX);
}

/* Sets the flag that a character stands for; false when it is not a flag. */
static bool read_flag(struct specifier *spec, char c)
{
	bool *flag = c == '-'	 ? &spec->left
		     : c == '+'	 ? &spec->plus
		     : c == ' '	 ? &spec->space
		     : c == '#'	 ? &spec->alternate
		     : c == '0'	 ? &spec->zero
		     : c == '\'' ? &spec->group
				 : NULL;

	if (flag)
		*flag = true;
	return flag != NULL;
}

static ow_status read_specifier(struct state *s, struct specifier *spec)
{
	bool negative;

	*spec = (struct specifier){ 0 };
	while (s->format.len && read_flag(spec, s->format.ptr[0]))
		(void)next_char(s);
	OW_TRY(read_size(s, &spec->width, &negative));
	spec->left |= negative;
	if (s->format.len && s->format.ptr[0] == '.') {
		(void)next_char(s);
		OW_TRY(read_size(s, &spec->precision, &negative));
		spec->has_precision = !negative;
	}
	spec->letter = next_char(s);
	return OW_OK;
}

/* Appends text with its prefix (a sign, 0x), padded to the width: blanks before or after it, or zeros between prefix
 * and text. */
static void put_filled(struct buf *to, const struct specifier *spec, struct str prefix,
		       struct str text, bool zeros)
{
	size_t width = utf8_width(prefix) + utf8_width(text);
	size_t missing = spec->width > width ? spec->width - width : 0;

	for (size_t i = 0; !spec->left && !zeros && i < missing; i++)
		buf_add_char(to, ' ');
	buf_add_str(to, prefix);
	for (size_t i = 0; !spec->left && zeros && i < missing; i++)
		buf_add_char(to, '0');
	buf_add_str(to, text);
	for (size_t i = 0; spec->left && i < missing; i++)
		buf_add_char(to, ' ');
}

static struct str sign_of(const struct specifier *spec, bool negative)
{
	return negative ? STR("-") : spec->plus ? STR("+") : spec->space ? STR(" ") : STR("");
}

/* Appends digits in groups of `size`: 1,234,567; the first group may be shorter. */
static void put_groups(struct buf *to, struct str digits, size_t size, char between)
{
	for (size_t i = 0; i < digits.len; i++) {
		if (i && (digits.len - i) % size == 0)
			buf_add_char(to, between);
		buf_add_char(to, digits.ptr[i]);
	}
}

/* Appends digits with as many zeros before them as the precision asks for, in groups if the specifier asks for it. */
static void put_digits(struct buf *to, const struct specifier *spec, struct str digits,
		       size_t group, char between)
{
	struct buf all;

	buf_init(&all, to->mem);
	for (size_t i = digits.len; spec->has_precision && i < spec->precision; i++)
		buf_add_char(&all, '0');
	buf_add_str(&all, digits);
	put_groups(to, buf_str(&all), spec->group ? group : SIZE_MAX, between);
	to->failed |= all.failed;
	buf_release(&all);
}

static ow_status not_integer(const struct state *s, char letter, struct str value)
{
	return error_set(s->err, OW_E_USAGE, "FORMAT's %%%c takes an integer, not '%.*s'", letter,
			 STR_ARG(str_first(value, MIN(value.len, 40))));
}

static ow_status put_decimal(struct state *s, struct buf *to, const struct specifier *spec,
			     struct str value)
{
	struct str digits;
	struct buf text;
	bool negative;

	if (!read_integer(value, &negative, &digits))
		return not_integer(s, spec->letter, value);
	buf_init(&text, to->mem);
	put_digits(&text, spec, digits, 3, ',');
	put_filled(to, spec, sign_of(spec, negative), buf_str(&text),
		   spec->zero && !spec->has_precision);
	to->failed |= text.failed;
	buf_release(&text);
	return OW_OK;
}

/* Formats octal and hexadecimal numbers: BigQuery shows the magnitude of a negative number, with its sign. */
static ow_status put_other_base(struct state *s, struct buf *to, const struct specifier *spec,
				struct str value)
{
	bool octal = spec->letter == 'o', negative;
	char number[32], text[32], prefix[4];
	struct str digits, sign;
	struct buf all;
	uint64_t n;

	if (!read_integer(value, &negative, &digits) || digits.len > 19)
		return not_integer(s, spec->letter, value);
	snprintf(number, sizeof(number), "%.*s", STR_ARG(digits));
	n = strtoull(number, NULL, 10);
	snprintf(text, sizeof(text),
		 octal		       ? "%lo"
		 : spec->letter == 'X' ? "%lX"
				       : "%lx",
		 (unsigned long)n);
	sign = sign_of(spec, negative);
	snprintf(prefix, sizeof(prefix), "%.*s%s", STR_ARG(sign),
		 !spec->alternate || !n ? ""
		 : octal		? "0"
		 : spec->letter == 'X'	? "0X"
					: "0x");
	buf_init(&all, to->mem);
	put_digits(&all, spec, str_from(text), octal ? 3 : 4, octal ? ',' : ':');
	put_filled(to, spec, str_from(prefix), buf_str(&all), spec->zero && !spec->has_precision);
	to->failed |= all.failed;
	buf_release(&all);
	return OW_OK;
}

/* Appends a real number with the digits before the point in groups. */
static void put_real_digits(struct buf *to, const struct specifier *spec, struct str text)
{
	size_t whole = 0;

	while (whole < text.len && text.ptr[whole] >= '0' && text.ptr[whole] <= '9')
		whole++;
	put_groups(to, str_first(text, whole), spec->group ? 3 : SIZE_MAX, ',');
	buf_add_str(to, str_skip(text, whole));
}

static void put_magnitude(struct buf *to, const struct specifier *spec, double x)
{
	int digits = spec->has_precision ? (int)spec->precision : 6;

	switch (spec->letter) {
	case 'f':
		buf_printf(to, "%.*f", digits, x);
		break;
	case 'F':
		buf_printf(to, "%.*F", digits, x);
		break;
	case 'e':
		buf_printf(to, "%.*e", digits, x);
		break;
	case 'E':
		buf_printf(to, "%.*E", digits, x);
		break;
	case 'g':
		buf_printf(to, "%.*g", digits, x);
		break;
	default:
		buf_printf(to, "%.*G", digits, x);
	}
}

static ow_status put_real(struct state *s, struct buf *to, const struct specifier *spec,
			  struct str value)
{
	char number[64];
	struct buf text, all;
	char *end;
	double x;

	snprintf(number, sizeof(number), "%.*s", STR_ARG(str_first(value, MIN(value.len, 60))));
	x = strtod(number, &end);
	if (end == number || *end || value.len > 60)
		return error_set(s->err, OW_E_USAGE, "FORMAT's %%%c takes a number, not '%s'",
				 spec->letter, number);
	buf_init(&text, to->mem);
	buf_init(&all, to->mem);
	put_magnitude(&text, spec, fabs(x));
	put_real_digits(&all, spec, buf_str(&text));
	put_filled(to, spec, sign_of(spec, signbit(x) && !isnan(x)), buf_str(&all),
		   spec->zero && isfinite(x));
	to->failed |= text.failed || all.failed;
	buf_release(&text);
	buf_release(&all);
	return OW_OK;
}

/* Appends a text, cut to as many characters as the precision says. */
static void put_text(struct buf *to, const struct specifier *spec, struct str value)
{
	size_t end = 0;

	for (size_t i = 0; spec->has_precision && i < spec->precision && end < value.len; i++) {
		uint32_t c;
		size_t len = utf8_decode(str_skip(value, end), &c);

		end += MAX(len, 1);
	}
	put_filled(to, spec, STR(""),
		   spec->has_precision ? str_first(value, MIN(end, value.len)) : value, false);
}

static ow_status put_value(struct state *s, struct buf *to, const struct specifier *spec)
{
	struct str value = { 0 };

	if (!spec->letter)
		return error_set(s->err, OW_E_USAGE, "FORMAT's text ends inside of a %% specifier");
	if (spec->letter == 'T' || spec->letter == 'p' || spec->letter == 'P')
		return error_set(s->err, OW_E_USAGE,
				 "FORMAT has no %%%c here: it depends on the type of the value in "
				 "BigQuery; use %%t, or TO_JSON_STRING(X) with %%s",
				 spec->letter);
	if (!strchr("dioxXfFeEgGst", spec->letter))
		return error_set(s->err, OW_E_USAGE,
				 "FORMAT of BigQuery has no %%%c; it has d, i, o, x, X, f, F, e, "
				 "E, g, G, s, t, and %%%%",
				 spec->letter);
	OW_TRY(next_value(s, spec->letter, &value));
	if (!value.ptr)
		value = STR("NULL");
	if (s->is_null)
		return OW_OK;
	if (strchr("di", spec->letter))
		return put_decimal(s, to, spec, value);
	if (strchr("oxX", spec->letter))
		return put_other_base(s, to, spec, value);
	if (strchr("st", spec->letter))
		put_text(to, spec, value);
	else
		return put_real(s, to, spec, value);
	return OW_OK;
}

ow_status bigquery_format(struct buf *to, struct str format, const struct str *values, size_t count,
			  bool *is_null, struct ow_error *err)
{
	struct state s = { .format = format, .values = values, .count = count, .err = err };
	struct specifier spec;

	*is_null = false;
	while (s.format.len) {
		char c = next_char(&s);

		if (c != '%') {
			buf_add_char(to, c);
		} else if (s.format.len && s.format.ptr[0] == '%') {
			buf_add_char(to, next_char(&s));
		} else {
			OW_TRY(read_specifier(&s, &spec));
			OW_TRY(put_value(&s, to, &spec));
		}
	}
	if (s.used < count)
		return error_set(err, OW_E_USAGE, "FORMAT has %zu arguments and uses %zu", count,
				 s.used);
	*is_null = s.is_null;
	return to->failed ? error_no_memory(err) : OW_OK;
}
