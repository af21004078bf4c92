/*
 * tf_schema_int.h: the words that tables of messages are written in, and the tables that several of
 * tf_schema.c, tf_schema_saved.c and tf_schema_run.c refer to. Only these include it.
 *
 * Names and numbers are as they are on the wire: one entry per field in ascending order, which is the
 * order of text files. Map entries are messages of a key and a value. RECORDS marks the units that are
 * dropped whole when a text is damaged.
 */
#ifndef WIRE_TF_SCHEMA_INT_H
#define WIRE_TF_SCHEMA_INT_H

#include "wire/tf_schema.h"

#define FIELD(number, name, kind) PB_FIELD(number, name, kind, 0, 0)
#define REPEATED(number, name, kind) PB_FIELD(number, name, kind, PBF_REPEATED, 0)
#define ONEOF(number, name, kind) PB_FIELD(number, name, kind, 0, 1)
#define FIELD_ENUM(number, name, type) PB_FIELD_ENUM(number, name, type, 0, 0)
#define REPEATED_ENUM(number, name, type) PB_FIELD_ENUM(number, name, type, PBF_REPEATED, 0)
#define ONEOF_ENUM(number, name, type) PB_FIELD_ENUM(number, name, type, 0, 1)
#define FIELD_MESSAGE(number, name, type) PB_FIELD_MESSAGE(number, name, type, 0, 0)
#define REPEATED_MESSAGE(number, name, type) PB_FIELD_MESSAGE(number, name, type, PBF_REPEATED, 0)
#define ONEOF_MESSAGE(number, name, type) PB_FIELD_MESSAGE(number, name, type, 0, 1)
#define RECORDS(number, name, type)                                                                \
	PB_FIELD_MESSAGE(number, name, type, PBF_REPEATED | PBF_RECORD, 0)

#define FIELDS(type) static const struct pb_field_desc type##_fields[]
#define INIT_MESSAGE(type)                                                                         \
	{                                                                                          \
		.name = #type, .fields = type##_fields, .count = ARRAY_COUNT(type##_fields)        \
	}
#define MESSAGE(type) static const struct pb_message type = INIT_MESSAGE(type)
#define PUBLIC_MESSAGE(variable, type) const struct pb_message variable = INIT_MESSAGE(type)
#define NO_FIELDS(type) static const struct pb_message type = { .name = #type }
#define MAP_OF(type, key_kind, value_kind)                                                         \
	FIELDS(type) = { FIELD(1, key, key_kind), FIELD(2, value, value_kind) };                   \
	MESSAGE(type)
#define MAP_OF_MESSAGE(type, key_kind, value_type)                                                 \
	FIELDS(type) = { FIELD(1, key, key_kind), FIELD_MESSAGE(2, value, value_type) };           \
	MESSAGE(type)
#define ENUM_VALUES(type) static const struct pb_enum_value type##_values[]
#define ENUM(type) static const struct pb_enum type = { type##_values, ARRAY_COUNT(type##_values) }
/* For the other files. */
#define SHARED_MESSAGE(type) const struct pb_message type = INIT_MESSAGE(type)
#define SHARED_ENUM(type) const struct pb_enum type = { type##_values, ARRAY_COUNT(type##_values) }
#define SHARED_MAP_OF(type, key_kind, value_kind)                                                  \
	FIELDS(type) = { FIELD(1, key, key_kind), FIELD(2, value, value_kind) };                   \
	SHARED_MESSAGE(type)
#define SHARED_MAP_OF_MESSAGE(type, key_kind, value_type)                                          \
	FIELDS(type) = { FIELD(1, key, key_kind), FIELD_MESSAGE(2, value, value_type) };           \
	SHARED_MESSAGE(type)

extern const struct pb_enum tf_data_type;
extern const struct pb_message TensorShapeProto, TensorProto, StringToAttrValue, StringToString,
	VersionDef, OpDef;

#endif
