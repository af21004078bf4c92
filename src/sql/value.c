/*
 * value.c: converts values of parameters to DuckDB values, for query.c, which binds them. Items of a list get one type:
 * whole numbers together with fractions become DOUBLE, dates together with timestamps TIMESTAMP; other mixtures are
 * rejected.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/sql_int.h"

#define DIGITS_MAX 38 /* limit of digits of a DECIMAL */
#define DEPTH_MAX 8   /* limit of nested lists */

/* The common type of all items of a list, as far as it is known. */
struct value_type {
	duckdb_type id; /* DUCKDB_TYPE_SQLNULL: unknown yet */
	uint8_t scale;	/* scale of a DECIMAL */
	unsigned depth; /* number of lists around the value */
};

struct digits {
	__int128 value;
	unsigned count, scale;
	bool has_point;
};

/* Reads decimal digits such as "-12.50". False for other texts, and for more than 38 digits with a point or 128 bits
 * without. */
static bool read_digits(struct str text, struct digits *out)
{
	bool minus = text.len && text.ptr[0] == '-';

	*out = (struct digits){ 0 };
	for (size_t i = minus; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '.' && !out->has_point) {
			out->has_point = true;
			continue;
		}
		if (c < '0' || c > '9' || __builtin_mul_overflow(out->value, 10, &out->value) ||
		    __builtin_sub_overflow(out->value, c - '0', &out->value))
			return false;
		out->count++;
		out->scale += out->has_point;
	}
	if (!out->count || (out->has_point && out->count > DIGITS_MAX))
		return false;
	return minus || !__builtin_sub_overflow(0, out->value, &out->value);
}

static struct value_type type_of_one(const struct sql_param *param)
{
	static const duckdb_type kinds[SQL_KINDS] = {
		[SQL_BYTES] = DUCKDB_TYPE_BLOB,
		[SQL_DATE] = DUCKDB_TYPE_DATE,
		[SQL_TIME] = DUCKDB_TYPE_TIME,
		[SQL_TIMESTAMP] = DUCKDB_TYPE_TIMESTAMP,
		[SQL_TIMESTAMPTZ] = DUCKDB_TYPE_TIMESTAMP_TZ,
		[SQL_TIMESTAMP_NS] = DUCKDB_TYPE_TIMESTAMP_NS,
		[SQL_INTERVAL] = DUCKDB_TYPE_INTERVAL,
	};
	struct digits digits;

	if (param->is_null)
		return (struct value_type){ .id = DUCKDB_TYPE_SQLNULL };
	if (param->kind == SQL_NUMBER) {
		if (!read_digits(param->text, &digits) || !digits.has_point)
			return (struct value_type){ .id = DUCKDB_TYPE_HUGEINT };
		return (struct value_type){ .id = DUCKDB_TYPE_DECIMAL,
					    .scale = (uint8_t)digits.scale };
	}
	if (param->kind != SQL_PLAIN)
		return (struct value_type){ .id = kinds[param->kind] };
	switch (param->type) {
	case TYPE_BOOL:
		return (struct value_type){ .id = DUCKDB_TYPE_BOOLEAN };
	case TYPE_INT:
		return (struct value_type){ .id = DUCKDB_TYPE_BIGINT };
	case TYPE_REAL:
		return (struct value_type){ .id = DUCKDB_TYPE_DOUBLE };
	default:
		return (struct value_type){ .id = DUCKDB_TYPE_VARCHAR };
	}
}

/* The rank of number types, from the narrowest to the widest. */
static int number_rank(duckdb_type id)
{
	static const duckdb_type order[] = { DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_HUGEINT,
					     DUCKDB_TYPE_DECIMAL, DUCKDB_TYPE_DOUBLE };

	for (size_t i = 0; i < ARRAY_COUNT(order); i++)
		if (order[i] == id)
			return (int)i + 1;
	return 0;
}

static bool unify(struct value_type *to, struct value_type with)
{
	bool dates = (to->id == DUCKDB_TYPE_DATE && with.id == DUCKDB_TYPE_TIMESTAMP) ||
		     (to->id == DUCKDB_TYPE_TIMESTAMP && with.id == DUCKDB_TYPE_DATE);

	if (with.id == DUCKDB_TYPE_SQLNULL && with.depth <= to->depth)
		return true;
	if (to->id == DUCKDB_TYPE_SQLNULL && to->depth <= with.depth) {
		*to = with;
		return true;
	}
	if (to->depth != with.depth)
		return false;
	if (dates) {
		to->id = DUCKDB_TYPE_TIMESTAMP;
		return true;
	}
	if (number_rank(to->id) && number_rank(with.id)) {
		to->scale = MAX(to->scale, with.scale);
		to->id = number_rank(with.id) > number_rank(to->id) ? with.id : to->id;
		return true;
	}
	return to->id == with.id;
}

/* Finds the type of a value; for a list, the one that all its items can have. */
static bool type_of(const struct sql_param *param, unsigned depth, struct value_type *type)
{
	*type = (struct value_type){ .id = DUCKDB_TYPE_SQLNULL };
	if (param->is_null || param->kind != SQL_LIST) {
		*type = type_of_one(param);
		return true;
	}
	for (size_t i = 0; i < param->item_count; i++) {
		struct value_type item;

		if (depth == DEPTH_MAX || !type_of(&param->items[i], depth + 1, &item) ||
		    !unify(type, item))
			return false;
	}
	type->depth++;
	return true;
}

static duckdb_hugeint hugeint_of(__int128 value)
{
	return (duckdb_hugeint){ .lower = (uint64_t)value, .upper = (int64_t)(value >> 64) };
}

/* Converts a whole number or a DECIMAL to a number of the type. */
static duckdb_value number_of(const struct duckdb_lib *lib, const struct sql_param *param,
			      struct value_type type)
{
	struct digits digits = { .value = param->number };
	double real;
	bool good = true;

	if (param->kind == SQL_NUMBER)
		good = read_digits(param->text, &digits);
	if (type.id == DUCKDB_TYPE_DOUBLE) {
		real = (double)digits.value;
		for (unsigned i = 0; i < digits.scale; i++)
			real /= 10;
		return good ? lib->create_double(real) : NULL;
	}
	if (type.id == DUCKDB_TYPE_BIGINT)
		return lib->create_int64(param->number);
	if (type.id == DUCKDB_TYPE_HUGEINT)
		return good ? lib->create_hugeint(hugeint_of(digits.value)) : NULL;
	for (unsigned i = digits.scale; good && i < type.scale; i++)
		good = !__builtin_mul_overflow(digits.value, 10, &digits.value);
	return good ? lib->create_decimal((duckdb_decimal){ .width = DIGITS_MAX,
							    .scale = type.scale,
							    .value = hugeint_of(digits.value) })
		    : NULL;
}

static duckdb_value plain_of(const struct duckdb_lib *lib, const struct sql_param *param,
			     struct value_type type)
{
	const char *text = param->text.ptr ? param->text.ptr : "";
	int64_t micros = param->number;

	switch (type.id) {
	case DUCKDB_TYPE_BOOLEAN:
		return lib->create_bool(param->number != 0);
	case DUCKDB_TYPE_BLOB:
		return lib->create_blob((const uint8_t *)text, param->text.len);
	case DUCKDB_TYPE_DATE:
		return lib->create_date((duckdb_date){ .days = (int32_t)param->number });
	case DUCKDB_TYPE_TIME:
		return lib->create_time((duckdb_time){ .micros = param->number });
	case DUCKDB_TYPE_TIMESTAMP:
		if (param->kind == SQL_DATE &&
		    __builtin_mul_overflow(param->number, INT64_C(86400000000), &micros))
			return NULL;
		return lib->create_timestamp((duckdb_timestamp){ .micros = micros });
	case DUCKDB_TYPE_TIMESTAMP_TZ:
		return lib->create_timestamp_tz((duckdb_timestamp){ .micros = micros });
	case DUCKDB_TYPE_TIMESTAMP_NS:
		return lib->create_timestamp_ns((duckdb_timestamp_ns){ .nanos = param->number });
	case DUCKDB_TYPE_INTERVAL:
		return lib->create_interval((duckdb_interval){ .micros = param->number });
	default:
		return lib->create_varchar_length(text, param->text.len);
	}
}

static duckdb_logical_type logical_type(const struct duckdb_lib *lib, struct value_type type)
{
	duckdb_logical_type made = type.id == DUCKDB_TYPE_DECIMAL
					   ? lib->create_decimal_type(DIGITS_MAX, type.scale)
					   : lib->create_logical_type(type.id);

	for (; type.depth; type.depth--) {
		duckdb_logical_type list = lib->create_list_type(made);

		lib->destroy_logical_type(&made);
		made = list;
	}
	return made;
}

static duckdb_value make(const struct duckdb_lib *lib, const struct sql_param *param,
			 struct value_type type);

static duckdb_value list_of(const struct duckdb_lib *lib, const struct sql_param *param,
			    struct value_type type)
{
	duckdb_value *items = calloc(param->item_count + 1, sizeof(*items)), list = NULL;
	duckdb_logical_type inner;
	bool good = items != NULL;

	type.depth--;
	for (size_t i = 0; good && i < param->item_count; i++) {
		items[i] = make(lib, &param->items[i], type);
		good = items[i] != NULL;
	}
	if (good) {
		inner = logical_type(lib, type);
		list = lib->create_list_value(inner, items, param->item_count);
		lib->destroy_logical_type(&inner);
	}
	for (size_t i = 0; items && i < param->item_count; i++)
		if (items[i])
			lib->destroy_value(&items[i]);
	free(items);
	return list;
}

static duckdb_value make(const struct duckdb_lib *lib, const struct sql_param *param,
			 struct value_type type)
{
	if (param->is_null)
		return lib->create_null_value();
	if (type.depth)
		return list_of(lib, param, type);
	if (param->kind == SQL_PLAIN && param->type == TYPE_REAL)
		return lib->create_double(param->real);
	return number_rank(type.id) ? number_of(lib, param, type) : plain_of(lib, param, type);
}

ow_status sql_value_of(const struct duckdb_lib *lib, const struct sql_param *param,
		       duckdb_value *value, struct ow_error *err)
{
	struct value_type type;

	*value = NULL;
	if (!type_of(param, 0, &type))
		return error_set(err, OW_E_USAGE,
				 "the items of parameter $%s have different types; a list of SQL "
				 "has one type",
				 param->name);
	*value = make(lib, param, type);
	if (*value)
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "parameter $%s has a number that SQL cannot hold: 38 digits are the limit",
			 param->name);
}

#endif
