/*
 * pb_schema.h: what a message type looks like, as constant tables: for reading the text format
 * (pbtxt.h), where names stand for numbers. The binary readers do not need it. The tables of the
 * TensorFlow types are in tf_schema.c.
 */
#ifndef WIRE_PB_SCHEMA_H
#define WIRE_PB_SCHEMA_H

#include "base/base.h"

enum pb_type {
	PBT_INT32,
	PBT_INT64,
	PBT_UINT32,
	PBT_UINT64,
	PBT_SINT64, /* zig-zag encoded */
	PBT_FIXED32,
	PBT_FIXED64,
	PBT_BOOL,
	PBT_FLOAT,
	PBT_DOUBLE,
	PBT_STRING,
	PBT_BYTES,
	PBT_ENUM,
	/* message; also a map: a repeated message of the fields key (1) and value (2) */
	PBT_MESSAGE,
};

#define PBF_REPEATED 1
#define PBF_RECORD 2 /* the field is a unit that is dropped as a whole if its text is damaged */

#define PB_SCHEMA_FIELDS 64 /* largest number of fields of a message */
#define PB_SCHEMA_ONEOFS 4  /* largest number of oneofs of a message */

struct pb_enum_value {
	const char *name;
	int32_t number;
};

struct pb_enum {
	const struct pb_enum_value *values;
	size_t count;
};

struct pb_message;

struct pb_field_desc {
	const char *name;
	uint8_t name_len;
	uint8_t type;  /* enum pb_type */
	uint8_t flags; /* flags PBF_* */
	uint8_t oneof; /* number of the oneof that the field belongs to, from 1; 0: none */
	uint32_t number;
	const struct pb_message *message; /* type of a PBT_MESSAGE field */
	const struct pb_enum *values;	  /* values of a PBT_ENUM field */
};

struct pb_message {
	const char *name;
	const struct pb_field_desc *fields; /* fields in any order; text is written in this order */
	size_t count;
	bool any; /* google.protobuf.Any, which has its own text form */
};

/* Designated initialisers for tables of fields. */
#define PB_FIELD(num, field, kind, flag_bits, group)                                               \
	{                                                                                          \
		.name = #field, .name_len = sizeof(#field) - 1, .type = PBT_##kind,                \
		.flags = flag_bits, .oneof = group, .number = num                                  \
	}
#define PB_FIELD_MESSAGE(num, field, type_name, flag_bits, group)                                  \
	{                                                                                          \
		.name = #field, .name_len = sizeof(#field) - 1, .type = PBT_MESSAGE,               \
		.flags = flag_bits, .oneof = group, .number = num, .message = &type_name           \
	}
#define PB_FIELD_ENUM(num, field, type_name, flag_bits, group)                                     \
	{                                                                                          \
		.name = #field, .name_len = sizeof(#field) - 1, .type = PBT_ENUM,                  \
		.flags = flag_bits, .oneof = group, .number = num, .values = &type_name            \
	}

#endif
