/* tf_schema.c: see tf_schema.h. Tensors, attributes and graphs. */
#include "wire/tf_schema_int.h"

/* Used before they are defined, by themselves or by one another. */
static const struct pb_message AttrValue, FullTypeDef;

/* clang-format off */

ENUM_VALUES(tf_data_type) = {
	{ "DT_INVALID", 0 }, { "DT_FLOAT", 1 }, { "DT_DOUBLE", 2 }, { "DT_INT32", 3 },
	{ "DT_UINT8", 4 }, { "DT_INT16", 5 }, { "DT_INT8", 6 }, { "DT_STRING", 7 },
	{ "DT_COMPLEX64", 8 }, { "DT_INT64", 9 }, { "DT_BOOL", 10 }, { "DT_QINT8", 11 },
	{ "DT_QUINT8", 12 }, { "DT_QINT32", 13 }, { "DT_BFLOAT16", 14 }, { "DT_QINT16", 15 },
	{ "DT_QUINT16", 16 }, { "DT_UINT16", 17 }, { "DT_COMPLEX128", 18 }, { "DT_HALF", 19 },
	{ "DT_RESOURCE", 20 }, { "DT_VARIANT", 21 }, { "DT_UINT32", 22 }, { "DT_UINT64", 23 },
	{ "DT_FLOAT8_E5M2", 24 }, { "DT_FLOAT8_E4M3FN", 25 }, { "DT_FLOAT8_E4M3FNUZ", 26 },
	{ "DT_FLOAT8_E4M3B11FNUZ", 27 }, { "DT_FLOAT8_E5M2FNUZ", 28 }, { "DT_INT4", 29 },
	{ "DT_UINT4", 30 }, { "DT_INT2", 31 }, { "DT_UINT2", 32 }, { "DT_FLOAT4_E2M1FN", 33 },
	{ "DT_FLOAT_REF", 101 }, { "DT_DOUBLE_REF", 102 }, { "DT_INT32_REF", 103 },
	{ "DT_UINT8_REF", 104 }, { "DT_INT16_REF", 105 }, { "DT_INT8_REF", 106 },
	{ "DT_STRING_REF", 107 }, { "DT_COMPLEX64_REF", 108 }, { "DT_INT64_REF", 109 },
	{ "DT_BOOL_REF", 110 }, { "DT_QINT8_REF", 111 }, { "DT_QUINT8_REF", 112 },
	{ "DT_QINT32_REF", 113 }, { "DT_BFLOAT16_REF", 114 }, { "DT_QINT16_REF", 115 },
	{ "DT_QUINT16_REF", 116 }, { "DT_UINT16_REF", 117 }, { "DT_COMPLEX128_REF", 118 },
	{ "DT_HALF_REF", 119 }, { "DT_RESOURCE_REF", 120 }, { "DT_VARIANT_REF", 121 },
	{ "DT_UINT32_REF", 122 }, { "DT_UINT64_REF", 123 }, { "DT_FLOAT8_E5M2_REF", 124 },
	{ "DT_FLOAT8_E4M3FN_REF", 125 }, { "DT_FLOAT8_E4M3FNUZ_REF", 126 },
	{ "DT_FLOAT8_E4M3B11FNUZ_REF", 127 }, { "DT_FLOAT8_E5M2FNUZ_REF", 128 },
	{ "DT_INT4_REF", 129 }, { "DT_UINT4_REF", 130 }, { "DT_INT2_REF", 131 },
	{ "DT_UINT2_REF", 132 }, { "DT_FLOAT4_E2M1FN_REF", 133 },
};
SHARED_ENUM(tf_data_type);

ENUM_VALUES(full_type_id) = {
	{ "TFT_UNSET", 0 }, { "TFT_VAR", 1 }, { "TFT_ANY", 2 }, { "TFT_PRODUCT", 3 },
	{ "TFT_NAMED", 4 }, { "TFT_FOR_EACH", 20 }, { "TFT_CALLABLE", 100 },
	{ "TFT_TENSOR", 1000 }, { "TFT_ARRAY", 1001 }, { "TFT_OPTIONAL", 1002 },
	{ "TFT_LITERAL", 1003 }, { "TFT_ENCODED", 1004 }, { "TFT_SHAPE_TENSOR", 1005 },
	{ "TFT_BOOL", 200 }, { "TFT_UINT8", 201 }, { "TFT_UINT16", 202 }, { "TFT_UINT32", 203 },
	{ "TFT_UINT64", 204 }, { "TFT_INT8", 205 }, { "TFT_INT16", 206 }, { "TFT_INT32", 207 },
	{ "TFT_INT64", 208 }, { "TFT_HALF", 209 }, { "TFT_FLOAT", 210 }, { "TFT_DOUBLE", 211 },
	{ "TFT_BFLOAT16", 215 }, { "TFT_COMPLEX64", 212 }, { "TFT_COMPLEX128", 213 },
	{ "TFT_STRING", 214 }, { "TFT_DATASET", 10102 }, { "TFT_RAGGED", 10103 },
	{ "TFT_ITERATOR", 10104 }, { "TFT_MUTEX_LOCK", 10202 }, { "TFT_LEGACY_VARIANT", 10203 },
};
ENUM(full_type_id);

/* ---- shapes, tensors and attributes ---------------------------------------------------------- */

FIELDS(Dim) = {
	FIELD(1, size, INT64),
	FIELD(2, name, STRING),
};
MESSAGE(Dim);

FIELDS(TensorShapeProto) = {
	REPEATED_MESSAGE(2, dim, Dim),
	FIELD(3, unknown_rank, BOOL),
};
SHARED_MESSAGE(TensorShapeProto);

FIELDS(DtypeAndShape) = {
	FIELD_ENUM(1, dtype, tf_data_type),
	FIELD_MESSAGE(2, shape, TensorShapeProto),
};
MESSAGE(DtypeAndShape);

FIELDS(ResourceHandleProto) = {
	FIELD(1, device, STRING),
	FIELD(2, container, STRING),
	FIELD(3, name, STRING),
	FIELD(4, hash_code, UINT64),
	FIELD(5, maybe_type_name, STRING),
	REPEATED_MESSAGE(6, dtypes_and_shapes, DtypeAndShape),
};
MESSAGE(ResourceHandleProto);

FIELDS(VariantTensorDataProto) = {
	FIELD(1, type_name, STRING),
	FIELD(2, metadata, BYTES),
	REPEATED_MESSAGE(3, tensors, TensorProto),
};
MESSAGE(VariantTensorDataProto);

FIELDS(TensorProto) = {
	FIELD_ENUM(1, dtype, tf_data_type),
	FIELD_MESSAGE(2, tensor_shape, TensorShapeProto),
	FIELD(3, version_number, INT32),
	FIELD(4, tensor_content, BYTES),
	REPEATED(5, float_val, FLOAT),
	REPEATED(6, double_val, DOUBLE),
	REPEATED(7, int_val, INT32),
	REPEATED(8, string_val, BYTES),
	REPEATED(9, scomplex_val, FLOAT),
	REPEATED(10, int64_val, INT64),
	REPEATED(11, bool_val, BOOL),
	REPEATED(12, dcomplex_val, DOUBLE),
	REPEATED(13, half_val, INT32),
	REPEATED_MESSAGE(14, resource_handle_val, ResourceHandleProto),
	REPEATED_MESSAGE(15, variant_val, VariantTensorDataProto),
	REPEATED(16, uint32_val, UINT32),
	REPEATED(17, uint64_val, UINT64),
	FIELD(18, float8_val, BYTES),
};
SHARED_MESSAGE(TensorProto);

SHARED_MAP_OF_MESSAGE(StringToAttrValue, STRING, AttrValue);

FIELDS(NameAttrList) = {
	FIELD(1, name, STRING),
	REPEATED_MESSAGE(2, attr, StringToAttrValue),
};
MESSAGE(NameAttrList);

FIELDS(AttrList) = {
	REPEATED(2, s, BYTES),
	REPEATED(3, i, INT64),
	REPEATED(4, f, FLOAT),
	REPEATED(5, b, BOOL),
	REPEATED_ENUM(6, type, tf_data_type),
	REPEATED_MESSAGE(7, shape, TensorShapeProto),
	REPEATED_MESSAGE(8, tensor, TensorProto),
	REPEATED_MESSAGE(9, func, NameAttrList),
};
MESSAGE(AttrList);

FIELDS(AttrValue) = {
	ONEOF_MESSAGE(1, list, AttrList),
	ONEOF(2, s, BYTES),
	ONEOF(3, i, INT64),
	ONEOF(4, f, FLOAT),
	ONEOF(5, b, BOOL),
	ONEOF_ENUM(6, type, tf_data_type),
	ONEOF_MESSAGE(7, shape, TensorShapeProto),
	ONEOF_MESSAGE(8, tensor, TensorProto),
	ONEOF(9, placeholder, STRING),
	ONEOF_MESSAGE(10, func, NameAttrList),
};
MESSAGE(AttrValue);

/* ---- graph ----------------------------------------------------------------------------------- */

FIELDS(NodeDebugInfo) = {
	REPEATED(1, original_node_names, STRING),
	REPEATED(2, original_func_names, STRING),
};
MESSAGE(NodeDebugInfo);

FIELDS(FullTypeDef) = {
	FIELD_ENUM(1, type_id, full_type_id),
	REPEATED_MESSAGE(2, args, FullTypeDef),
	ONEOF(3, s, STRING),
	ONEOF(4, i, INT64),
};
MESSAGE(FullTypeDef);

FIELDS(NodeDef) = {
	FIELD(1, name, STRING),
	FIELD(2, op, STRING),
	REPEATED(3, input, STRING),
	FIELD(4, device, STRING),
	REPEATED_MESSAGE(5, attr, StringToAttrValue),
	FIELD_MESSAGE(6, experimental_debug_info, NodeDebugInfo),
	FIELD_MESSAGE(7, experimental_type, FullTypeDef),
};
MESSAGE(NodeDef);

FIELDS(ArgDef) = {
	FIELD(1, name, STRING),
	FIELD(2, description, STRING),
	FIELD_ENUM(3, type, tf_data_type),
	FIELD(4, type_attr, STRING),
	FIELD(5, number_attr, STRING),
	FIELD(6, type_list_attr, STRING),
	REPEATED_MESSAGE(7, handle_data, DtypeAndShape),
	FIELD(16, is_ref, BOOL),
	FIELD_MESSAGE(17, experimental_full_type, FullTypeDef),
};
MESSAGE(ArgDef);

FIELDS(AttrDef) = {
	FIELD(1, name, STRING),
	FIELD(2, type, STRING),
	FIELD_MESSAGE(3, default_value, AttrValue),
	FIELD(4, description, STRING),
	FIELD(5, has_minimum, BOOL),
	FIELD(6, minimum, INT64),
	FIELD_MESSAGE(7, allowed_values, AttrValue),
};
MESSAGE(AttrDef);

FIELDS(OpDeprecation) = {
	FIELD(1, version, INT32),
	FIELD(2, explanation, STRING),
};
MESSAGE(OpDeprecation);

FIELDS(OpDef) = {
	FIELD(1, name, STRING),
	REPEATED_MESSAGE(2, input_arg, ArgDef),
	REPEATED_MESSAGE(3, output_arg, ArgDef),
	REPEATED_MESSAGE(4, attr, AttrDef),
	FIELD(5, summary, STRING),
	FIELD(6, description, STRING),
	FIELD_MESSAGE(8, deprecation, OpDeprecation),
	FIELD(16, is_aggregate, BOOL),
	FIELD(17, is_stateful, BOOL),
	FIELD(18, is_commutative, BOOL),
	FIELD(19, allows_uninitialized_input, BOOL),
	REPEATED(20, control_output, STRING),
	FIELD(21, is_distributed_communication, BOOL),
};
SHARED_MESSAGE(OpDef);

SHARED_MAP_OF(StringToString, STRING, STRING);

FIELDS(ArgAttrs) = {
	REPEATED_MESSAGE(1, attr, StringToAttrValue),
};
MESSAGE(ArgAttrs);

MAP_OF_MESSAGE(Uint32ToArgAttrs, UINT32, ArgAttrs);
MAP_OF(Uint32ToUint32, UINT32, UINT32);

FIELDS(FunctionDef) = {
	FIELD_MESSAGE(1, signature, OpDef),
	REPEATED_MESSAGE(3, node_def, NodeDef),
	REPEATED_MESSAGE(4, ret, StringToString),
	REPEATED_MESSAGE(5, attr, StringToAttrValue),
	REPEATED_MESSAGE(6, control_ret, StringToString),
	REPEATED_MESSAGE(7, arg_attr, Uint32ToArgAttrs),
	REPEATED_MESSAGE(8, resource_arg_unique_id, Uint32ToUint32),
};
MESSAGE(FunctionDef);

FIELDS(GradientDef) = {
	FIELD(1, function_name, STRING),
	FIELD(2, gradient_func, STRING),
};
MESSAGE(GradientDef);

FIELDS(RegisteredGradient) = {
	FIELD(1, gradient_func, STRING),
	FIELD(2, registered_op_type, STRING),
};
MESSAGE(RegisteredGradient);

FIELDS(FunctionDefLibrary) = {
	RECORDS(1, function, FunctionDef),
	RECORDS(2, gradient, GradientDef),
	REPEATED_MESSAGE(3, registered_gradients, RegisteredGradient),
};
MESSAGE(FunctionDefLibrary);

FIELDS(VersionDef) = {
	FIELD(1, producer, INT32),
	FIELD(2, min_consumer, INT32),
	REPEATED(3, bad_consumers, INT32),
};
SHARED_MESSAGE(VersionDef);

FIELDS(FileLineCol) = {
	FIELD(1, file_index, INT32),
	FIELD(2, line, INT32),
	FIELD(3, col, INT32),
	FIELD(4, func, STRING),
	FIELD(5, code, STRING),
};
MESSAGE(FileLineCol);

FIELDS(StackTrace) = {
	REPEATED_MESSAGE(1, file_line_cols, FileLineCol),
	REPEATED(2, frame_id, FIXED64),
};
MESSAGE(StackTrace);

MAP_OF_MESSAGE(StringToStackTrace, STRING, StackTrace);
MAP_OF_MESSAGE(Fixed64ToFileLineCol, FIXED64, FileLineCol);
MAP_OF(StringToFixed64, STRING, FIXED64);
MAP_OF_MESSAGE(Fixed64ToStackTrace, FIXED64, StackTrace);

FIELDS(GraphDebugInfo) = {
	REPEATED(1, files, STRING),
	REPEATED_MESSAGE(2, traces, StringToStackTrace),
	REPEATED_MESSAGE(4, frames_by_id, Fixed64ToFileLineCol),
	REPEATED_MESSAGE(5, name_to_trace_id, StringToFixed64),
	REPEATED_MESSAGE(6, traces_by_id, Fixed64ToStackTrace),
};
MESSAGE(GraphDebugInfo);

FIELDS(GraphDef) = {
	RECORDS(1, node, NodeDef),
	FIELD_MESSAGE(2, library, FunctionDefLibrary),
	FIELD(3, version, INT32),
	FIELD_MESSAGE(4, versions, VersionDef),
	FIELD_MESSAGE(5, debug_info, GraphDebugInfo),
};
PUBLIC_MESSAGE(tf_graph_def, GraphDef);
