/*
 * pbtxt_scalar.c: numbers, booleans and enums of the text format, with the ranges of their types. See
 * pbtxt_int.h; strings are in pbtxt.c, because they may be too long for memory.
 */
#include "wire/pbtxt_int.h"

static bool minus(struct text *t, bool *negative)
{
	*negative = text_peek(t) == '-';
	if (!*negative)
		return true;
	t->at++;
	return text_blanks(t);
}

/* A whole number in [-below, max]. */
static bool read_integer(struct text *t, uint64_t max, uint64_t below, uint64_t *bits)
{
	bool negative = false;
	struct number number;
	uint64_t start;

	if (below && !minus(t, &negative))
		return false;
	if (!text_is_digit(text_peek(t)))
		return text_expected(t, below ? "an integer" : "an integer that is not negative");
	start = text_offset(t);
	if (!text_number(t, &number))
		return false;
	if (number.kind == NUMBER_FLOAT)
		return text_fail_at(t, start, "an integer expected, but found '%.*s'",
				    STR_ARG(str_first(number.digits, 40)));
	if (!number_to_u64(&number, negative ? below : max, bits))
		return text_fail_at(t, start, "the number %s%.*s is out of range",
				    negative ? "-" : "", STR_ARG(str_first(number.digits, 40)));
	if (negative)
		*bits = (uint64_t)0 - *bits;
	return true;
}

static bool same_word(struct str name, const char *word)
{
	if (name.len != strlen(word))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((name.ptr[i] | 0x20) != word[i])
			return false;
	return true;
}

static bool read_double(struct text *t, double *value)
{
	struct number number;
	struct str name;
	uint64_t start;
	bool negative;

	if (!minus(t, &negative))
		return false;
	start = text_offset(t);
	if (text_is_digit(text_peek(t)) || text_peek(t) == '.') {
		if (!text_number(t, &number))
			return false;
		if (number.kind == NUMBER_HEX || number.kind == NUMBER_OCTAL)
			return text_fail_at(t, start, "a decimal number expected, but found '%.*s'",
					    STR_ARG(str_first(number.digits, 40)));
		*value = number_to_double(&number);
	} else if (text_is_name(text_peek(t))) {
		if (!text_name(t, &name))
			return false;
		if (same_word(name, "inf") || same_word(name, "infinity"))
			*value = __builtin_inf();
		else if (same_word(name, "nan"))
			*value = __builtin_nan("");
		else
			return text_fail_at(t, start, "a number expected, but found '%.*s'",
					    STR_ARG(str_first(name, 40)));
	} else {
		return text_expected(t, "a number");
	}
	*value = negative ? -*value : *value;
	return true;
}

static bool read_bool(struct text *t, uint64_t *bits)
{
	uint64_t start = text_offset(t);
	struct str name;

	if (text_is_digit(text_peek(t)))
		return read_integer(t, 1, 0, bits);
	if (!text_is_name(text_peek(t)))
		return text_expected(t, "true or false");
	if (!text_name(t, &name))
		return false;
	*bits = str_eq(name, STR("true")) || str_eq(name, STR("True")) || str_eq(name, STR("t"));
	if (*bits || str_eq(name, STR("false")) || str_eq(name, STR("False")) ||
	    str_eq(name, STR("f")))
		return true;
	return text_fail_at(t, start, "true or false expected, but found '%.*s'",
			    STR_ARG(str_first(name, 40)));
}

static bool read_enum(struct text *t, const struct pb_field_desc *field, bool allow_unknown,
		      uint64_t *unknown, uint64_t *bits)
{
	const struct pb_enum *values = field->values;
	uint64_t start = text_offset(t);
	struct str name;

	if (text_is_digit(text_peek(t)) || text_peek(t) == '-')
		return read_integer(t, INT32_MAX, (uint64_t)INT32_MAX + 1, bits);
	if (!text_is_name(text_peek(t)))
		return text_expected(t, "a name or number");
	if (!text_name(t, &name))
		return false;
	for (size_t i = 0; i < values->count; i++)
		if (str_eq(name, str_from(values->values[i].name))) {
			*bits = (uint64_t)(int64_t)values->values[i].number;
			return true;
		}
	if (!allow_unknown)
		return text_fail_at(t, start, "'%.*s' is not a value of %s",
				    STR_ARG(str_first(name, 60)), field->name);
	(*unknown)++;
	*bits = 0;
	return true;
}

bool text_bits(struct text *t, const struct pb_field_desc *field, bool allow_unknown,
	       uint64_t *unknown, uint64_t *bits)
{
	uint32_t half;
	double value = 0;
	float narrow;

	switch ((enum pb_type)field->type) {
	case PBT_INT32:
		return read_integer(t, INT32_MAX, (uint64_t)INT32_MAX + 1, bits);
	case PBT_INT64:
	case PBT_SINT64:
		return read_integer(t, INT64_MAX, (uint64_t)INT64_MAX + 1, bits);
	case PBT_UINT32:
	case PBT_FIXED32:
		return read_integer(t, UINT32_MAX, 0, bits);
	case PBT_UINT64:
	case PBT_FIXED64:
		return read_integer(t, UINT64_MAX, 0, bits);
	case PBT_BOOL:
		return read_bool(t, bits);
	case PBT_ENUM:
		return read_enum(t, field, allow_unknown, unknown, bits);
	case PBT_FLOAT:
		if (!read_double(t, &value))
			return false;
		narrow = (float)value;
		memcpy(&half, &narrow, sizeof(half));
		*bits = half;
		return true;
	case PBT_DOUBLE:
		if (!read_double(t, &value))
			return false;
		memcpy(bits, &value, sizeof(value));
		return true;
	default:
		return text_fail(t, "the table of %s is wrong", field->name);
	}
}
