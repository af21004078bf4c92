/*
 * tf_schema.c: the tables of TensorFlow's messages (tf_schema.h): tensors and graphs, saved models, runs and profiles.
 * Only the text format is read and written with them (pbtxt.h); binary files are read by their importers.
 *
 * Names and numbers are as they are on the wire: one entry per field in ascending order, which is the order of text
 * files. Map entries are messages of a key and a value. RECORDS marks the units that are dropped whole when a text is
 * damaged.
 */
#include "wire/tensorflow/tf_schema.h"

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

/* Used before they are defined, by themselves or by one another. */
static const struct pb_message TensorProto, AttrValue, FullTypeDef, StructuredValue, TypeSpecProto,
	TensorInfo, SavedVariable;

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
ENUM(tf_data_type);

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

FIELDS(Dim) = {
	FIELD(1, size, INT64),
	FIELD(2, name, STRING),
};
MESSAGE(Dim);

FIELDS(TensorShapeProto) = {
	REPEATED_MESSAGE(2, dim, Dim),
	FIELD(3, unknown_rank, BOOL),
};
MESSAGE(TensorShapeProto);

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
MESSAGE(TensorProto);

MAP_OF_MESSAGE(StringToAttrValue, STRING, AttrValue);

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
MESSAGE(OpDef);

MAP_OF(StringToString, STRING, STRING);

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
MESSAGE(VersionDef);

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

ENUM_VALUES(checkpoint_version) = {
	{ "LEGACY", 0 }, { "V1", 1 }, { "V2", 2 },
};
ENUM(checkpoint_version);

ENUM_VALUES(type_spec_class) = {
	{ "UNKNOWN", 0 }, { "SPARSE_TENSOR_SPEC", 1 }, { "INDEXED_SLICES_SPEC", 2 },
	{ "RAGGED_TENSOR_SPEC", 3 }, { "TENSOR_ARRAY_SPEC", 4 }, { "DATA_DATASET_SPEC", 5 },
	{ "DATA_ITERATOR_SPEC", 6 }, { "OPTIONAL_SPEC", 7 }, { "PER_REPLICA_SPEC", 8 },
	{ "VARIABLE_SPEC", 9 }, { "ROW_PARTITION_SPEC", 10 }, { "REGISTERED_TYPE_SPEC", 12 },
	{ "EXTENSION_TYPE_SPEC", 13 },
};
ENUM(type_spec_class);

ENUM_VALUES(jit_compile) = {
	{ "DEFAULT", 0 }, { "ON", 1 }, { "OFF", 2 },
};
ENUM(jit_compile);

ENUM_VALUES(synchronization) = {
	{ "VARIABLE_SYNCHRONIZATION_AUTO", 0 }, { "VARIABLE_SYNCHRONIZATION_NONE", 1 },
	{ "VARIABLE_SYNCHRONIZATION_ON_WRITE", 2 }, { "VARIABLE_SYNCHRONIZATION_ON_READ", 3 },
};
ENUM(synchronization);

ENUM_VALUES(aggregation) = {
	{ "VARIABLE_AGGREGATION_NONE", 0 }, { "VARIABLE_AGGREGATION_SUM", 1 },
	{ "VARIABLE_AGGREGATION_MEAN", 2 }, { "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA", 3 },
};
ENUM(aggregation);

FIELDS(OpList) = {
	RECORDS(1, op, OpDef),
};
MESSAGE(OpList);

FIELDS(Any) = {
	FIELD(1, type_url, STRING),
	FIELD(2, value, BYTES),
};
static const struct pb_message Any = { "Any", Any_fields, ARRAY_COUNT(Any_fields), true };

FIELDS(MetaInfoDef) = {
	FIELD(1, meta_graph_version, STRING),
	FIELD_MESSAGE(2, stripped_op_list, OpList),
	FIELD_MESSAGE(3, any_info, Any),
	REPEATED(4, tags, STRING),
	FIELD(5, tensorflow_version, STRING),
	FIELD(6, tensorflow_git_version, STRING),
	FIELD(7, stripped_default_attrs, BOOL),
	REPEATED_MESSAGE(8, function_aliases, StringToString),
};
MESSAGE(MetaInfoDef);

FIELDS(SaverDef) = {
	FIELD(1, filename_tensor_name, STRING),
	FIELD(2, save_tensor_name, STRING),
	FIELD(3, restore_op_name, STRING),
	FIELD(4, max_to_keep, INT32),
	FIELD(5, sharded, BOOL),
	FIELD(6, keep_checkpoint_every_n_hours, FLOAT),
	FIELD_ENUM(7, version, checkpoint_version),
};
MESSAGE(SaverDef);

FIELDS(NodeList) = {
	REPEATED(1, value, STRING),
};
MESSAGE(NodeList);

FIELDS(BytesList) = {
	REPEATED(1, value, BYTES),
};
MESSAGE(BytesList);

FIELDS(Int64List) = {
	REPEATED(1, value, INT64),
};
MESSAGE(Int64List);

FIELDS(FloatList) = {
	REPEATED(1, value, FLOAT),
};
MESSAGE(FloatList);

FIELDS(AnyList) = {
	REPEATED_MESSAGE(1, value, Any),
};
MESSAGE(AnyList);

FIELDS(CollectionDef) = {
	ONEOF_MESSAGE(1, node_list, NodeList),
	ONEOF_MESSAGE(2, bytes_list, BytesList),
	ONEOF_MESSAGE(3, int64_list, Int64List),
	ONEOF_MESSAGE(4, float_list, FloatList),
	ONEOF_MESSAGE(5, any_list, AnyList),
};
MESSAGE(CollectionDef);

MAP_OF_MESSAGE(StringToCollectionDef, STRING, CollectionDef);

FIELDS(CooSparse) = {
	FIELD(1, values_tensor_name, STRING),
	FIELD(2, indices_tensor_name, STRING),
	FIELD(3, dense_shape_tensor_name, STRING),
};
MESSAGE(CooSparse);

NO_FIELDS(NoneValue);

FIELDS(TensorSpecProto) = {
	FIELD(1, name, STRING),
	FIELD_MESSAGE(2, shape, TensorShapeProto),
	FIELD_ENUM(3, dtype, tf_data_type),
};
MESSAGE(TensorSpecProto);

FIELDS(BoundedTensorSpecProto) = {
	FIELD(1, name, STRING),
	FIELD_MESSAGE(2, shape, TensorShapeProto),
	FIELD_ENUM(3, dtype, tf_data_type),
	FIELD_MESSAGE(4, minimum, TensorProto),
	FIELD_MESSAGE(5, maximum, TensorProto),
};
MESSAGE(BoundedTensorSpecProto);

FIELDS(ListValue) = {
	REPEATED_MESSAGE(1, values, StructuredValue),
};
MESSAGE(ListValue);

FIELDS(TupleValue) = {
	REPEATED_MESSAGE(1, values, StructuredValue),
};
MESSAGE(TupleValue);

MAP_OF_MESSAGE(StringToStructuredValue, STRING, StructuredValue);

FIELDS(DictValue) = {
	REPEATED_MESSAGE(1, fields, StringToStructuredValue),
};
MESSAGE(DictValue);

FIELDS(PairValue) = {
	FIELD(1, key, STRING),
	FIELD_MESSAGE(2, value, StructuredValue),
};
MESSAGE(PairValue);

FIELDS(NamedTupleValue) = {
	FIELD(1, name, STRING),
	REPEATED_MESSAGE(2, values, PairValue),
};
MESSAGE(NamedTupleValue);

FIELDS(StructuredValue) = {
	ONEOF_MESSAGE(1, none_value, NoneValue),
	ONEOF(11, float64_value, DOUBLE),
	ONEOF(12, int64_value, SINT64),
	ONEOF(13, string_value, STRING),
	ONEOF(14, bool_value, BOOL),
	ONEOF_MESSAGE(31, tensor_shape_value, TensorShapeProto),
	ONEOF_ENUM(32, tensor_dtype_value, tf_data_type),
	ONEOF_MESSAGE(33, tensor_spec_value, TensorSpecProto),
	ONEOF_MESSAGE(34, type_spec_value, TypeSpecProto),
	ONEOF_MESSAGE(35, bounded_tensor_spec_value, BoundedTensorSpecProto),
	ONEOF_MESSAGE(51, list_value, ListValue),
	ONEOF_MESSAGE(52, tuple_value, TupleValue),
	ONEOF_MESSAGE(53, dict_value, DictValue),
	ONEOF_MESSAGE(54, named_tuple_value, NamedTupleValue),
	ONEOF_MESSAGE(55, tensor_value, TensorProto),
	ONEOF_MESSAGE(56, numpy_value, TensorProto),
};
MESSAGE(StructuredValue);

FIELDS(TypeSpecProto) = {
	FIELD_ENUM(1, type_spec_class, type_spec_class),
	FIELD_MESSAGE(2, type_state, StructuredValue),
	FIELD(3, type_spec_class_name, STRING),
	FIELD(4, num_flat_components, INT32),
};
MESSAGE(TypeSpecProto);

FIELDS(CompositeTensor) = {
	FIELD_MESSAGE(1, type_spec, TypeSpecProto),
	REPEATED_MESSAGE(2, components, TensorInfo),
};
MESSAGE(CompositeTensor);

FIELDS(TensorInfo) = {
	ONEOF(1, name, STRING),
	FIELD_ENUM(2, dtype, tf_data_type),
	FIELD_MESSAGE(3, tensor_shape, TensorShapeProto),
	ONEOF_MESSAGE(4, coo_sparse, CooSparse),
	ONEOF_MESSAGE(5, composite_tensor, CompositeTensor),
};
MESSAGE(TensorInfo);

MAP_OF_MESSAGE(StringToTensorInfo, STRING, TensorInfo);
MAP_OF_MESSAGE(StringToTensorProto, STRING, TensorProto);

FIELDS(SignatureDef) = {
	REPEATED_MESSAGE(1, inputs, StringToTensorInfo),
	REPEATED_MESSAGE(2, outputs, StringToTensorInfo),
	FIELD(3, method_name, STRING),
	REPEATED_MESSAGE(4, defaults, StringToTensorProto),
};
MESSAGE(SignatureDef);

MAP_OF_MESSAGE(StringToSignatureDef, STRING, SignatureDef);

FIELDS(AssetFileDef) = {
	FIELD_MESSAGE(1, tensor_info, TensorInfo),
	FIELD(2, filename, STRING),
};
MESSAGE(AssetFileDef);

FIELDS(ObjectReference) = {
	FIELD(1, node_id, INT32),
	FIELD(2, local_name, STRING),
};
MESSAGE(ObjectReference);

FIELDS(SlotVariableReference) = {
	FIELD(1, original_variable_node_id, INT32),
	FIELD(2, slot_name, STRING),
	FIELD(3, slot_variable_node_id, INT32),
};
MESSAGE(SlotVariableReference);

FIELDS(SavedUserObject) = {
	FIELD(1, identifier, STRING),
	FIELD_MESSAGE(2, version, VersionDef),
	FIELD(3, metadata, STRING),
};
MESSAGE(SavedUserObject);

FIELDS(SavedAsset) = {
	FIELD(1, asset_file_def_index, INT32),
};
MESSAGE(SavedAsset);

FIELDS(FunctionSpec) = {
	FIELD_MESSAGE(1, fullargspec, StructuredValue),
	FIELD(2, is_method, BOOL),
	FIELD_MESSAGE(5, input_signature, StructuredValue),
	FIELD_ENUM(6, jit_compile, jit_compile),
};
MESSAGE(FunctionSpec);

FIELDS(SavedFunction) = {
	REPEATED(1, concrete_functions, STRING),
	FIELD_MESSAGE(2, function_spec, FunctionSpec),
};
MESSAGE(SavedFunction);

FIELDS(SavedVariable) = {
	FIELD_ENUM(1, dtype, tf_data_type),
	FIELD_MESSAGE(2, shape, TensorShapeProto),
	FIELD(3, trainable, BOOL),
	FIELD_ENUM(4, synchronization, synchronization),
	FIELD_ENUM(5, aggregation, aggregation),
	FIELD(6, name, STRING),
	FIELD(7, device, STRING),
	REPEATED_MESSAGE(8, experimental_distributed_variable_components, SavedVariable),
};
MESSAGE(SavedVariable);

FIELDS(SavedBareConcreteFunction) = {
	FIELD(1, concrete_function_name, STRING),
	REPEATED(2, argument_keywords, STRING),
	FIELD(3, allowed_positional_arguments, INT64),
	FIELD_MESSAGE(4, function_spec, FunctionSpec),
};
MESSAGE(SavedBareConcreteFunction);

FIELDS(SavedConstant) = {
	FIELD(1, operation, STRING),
};
MESSAGE(SavedConstant);

FIELDS(SavedResource) = {
	FIELD(1, device, STRING),
};
MESSAGE(SavedResource);

FIELDS(SaveableObject) = {
	FIELD(2, save_function, INT32),
	FIELD(3, restore_function, INT32),
};
MESSAGE(SaveableObject);

MAP_OF_MESSAGE(StringToSaveableObject, STRING, SaveableObject);

FIELDS(CapturedTensor) = {
	FIELD(1, name, STRING),
	FIELD(2, concrete_function, STRING),
};
MESSAGE(CapturedTensor);

FIELDS(SavedObject) = {
	REPEATED_MESSAGE(1, children, ObjectReference),
	REPEATED_MESSAGE(3, slot_variables, SlotVariableReference),
	ONEOF_MESSAGE(4, user_object, SavedUserObject),
	ONEOF_MESSAGE(5, asset, SavedAsset),
	ONEOF_MESSAGE(6, function, SavedFunction),
	ONEOF_MESSAGE(7, variable, SavedVariable),
	ONEOF_MESSAGE(8, bare_concrete_function, SavedBareConcreteFunction),
	ONEOF_MESSAGE(9, constant, SavedConstant),
	ONEOF_MESSAGE(10, resource, SavedResource),
	REPEATED_MESSAGE(11, saveable_objects, StringToSaveableObject),
	ONEOF_MESSAGE(12, captured_tensor, CapturedTensor),
	FIELD(13, registered_name, STRING),
	FIELD_MESSAGE(14, serialized_user_proto, Any),
	REPEATED_MESSAGE(15, dependencies, ObjectReference),
	FIELD(16, registered_saver, STRING),
};
MESSAGE(SavedObject);

FIELDS(SavedConcreteFunction) = {
	REPEATED(2, bound_inputs, INT32),
	FIELD_MESSAGE(3, canonicalized_input_signature, StructuredValue),
	FIELD_MESSAGE(4, output_signature, StructuredValue),
};
MESSAGE(SavedConcreteFunction);

MAP_OF_MESSAGE(StringToSavedConcreteFunction, STRING, SavedConcreteFunction);

FIELDS(SavedObjectGraph) = {
	RECORDS(1, nodes, SavedObject),
	RECORDS(2, concrete_functions, StringToSavedConcreteFunction),
};
MESSAGE(SavedObjectGraph);

FIELDS(MetaGraphDef) = {
	FIELD_MESSAGE(1, meta_info_def, MetaInfoDef),
	FIELD_MESSAGE(2, graph_def, tf_graph_def),
	FIELD_MESSAGE(3, saver_def, SaverDef),
	RECORDS(4, collection_def, StringToCollectionDef),
	RECORDS(5, signature_def, StringToSignatureDef),
	RECORDS(6, asset_file_def, AssetFileDef),
	FIELD_MESSAGE(7, object_graph_def, SavedObjectGraph),
};
PUBLIC_MESSAGE(tf_meta_graph_def, MetaGraphDef);

FIELDS(SavedModel) = {
	FIELD(1, saved_model_schema_version, INT64),
	REPEATED_MESSAGE(2, meta_graphs, tf_meta_graph_def),
};
PUBLIC_MESSAGE(tf_saved_model, SavedModel);

FIELDS(AllocationRecord) = {
	FIELD(1, alloc_micros, INT64),
	FIELD(2, alloc_bytes, INT64),
};
MESSAGE(AllocationRecord);

FIELDS(AllocatorMemoryUsed) = {
	FIELD(1, allocator_name, STRING),
	FIELD(2, total_bytes, INT64),
	FIELD(3, peak_bytes, INT64),
	FIELD(4, live_bytes, INT64),
	FIELD(5, allocator_bytes_in_use, INT64),
	REPEATED_MESSAGE(6, allocation_records, AllocationRecord),
};
MESSAGE(AllocatorMemoryUsed);

FIELDS(AllocationDescription) = {
	FIELD(1, requested_bytes, INT64),
	FIELD(2, allocated_bytes, INT64),
	FIELD(3, allocator_name, STRING),
	FIELD(4, allocation_id, INT64),
	FIELD(5, has_single_reference, BOOL),
	FIELD(6, ptr, UINT64),
};
MESSAGE(AllocationDescription);

FIELDS(TensorDescription) = {
	FIELD_ENUM(1, dtype, tf_data_type),
	FIELD_MESSAGE(2, shape, TensorShapeProto),
	FIELD_MESSAGE(4, allocation_description, AllocationDescription),
};
PUBLIC_MESSAGE(tf_tensor_description, TensorDescription);

FIELDS(NodeOutput) = {
	FIELD(1, slot, INT32),
	FIELD_MESSAGE(3, tensor_description, tf_tensor_description),
};
MESSAGE(NodeOutput);

FIELDS(MemoryStats) = {
	FIELD(1, temp_memory_size, INT64),
	FIELD(2, device_temp_memory_size, INT64),
	FIELD(3, persistent_memory_size, INT64),
	FIELD(4, device_persistent_memory_size, INT64),
	REPEATED(5, persistent_tensor_alloc_ids, INT64),
	REPEATED(6, device_persistent_tensor_alloc_ids, INT64),
};
MESSAGE(MemoryStats);

FIELDS(NodeExecStats) = {
	FIELD(1, node_name, STRING),
	FIELD(2, all_start_micros, INT64),
	FIELD(3, op_start_rel_micros, INT64),
	FIELD(4, op_end_rel_micros, INT64),
	FIELD(5, all_end_rel_micros, INT64),
	REPEATED_MESSAGE(6, memory, AllocatorMemoryUsed),
	REPEATED_MESSAGE(7, output, NodeOutput),
	FIELD(8, timeline_label, STRING),
	FIELD(9, scheduled_micros, INT64),
	FIELD(10, thread_id, UINT32),
	REPEATED_MESSAGE(11, referenced_tensor, AllocationDescription),
	FIELD_MESSAGE(12, memory_stats, MemoryStats),
	FIELD(13, all_start_nanos, INT64),
	FIELD(14, op_start_rel_nanos, INT64),
	FIELD(15, op_end_rel_nanos, INT64),
	FIELD(16, all_end_rel_nanos, INT64),
	FIELD(17, scheduled_nanos, INT64),
};
MESSAGE(NodeExecStats);

MAP_OF(Uint32ToString, UINT32, STRING);

FIELDS(DeviceStepStats) = {
	FIELD(1, device, STRING),
	RECORDS(2, node_stats, NodeExecStats),
	REPEATED_MESSAGE(3, thread_names, Uint32ToString),
};
MESSAGE(DeviceStepStats);

FIELDS(StepStats) = {
	REPEATED_MESSAGE(1, dev_stats, DeviceStepStats),
};
PUBLIC_MESSAGE(tf_step_stats, StepStats);

FIELDS(CostInput) = {
	FIELD(1, preceding_node, INT32),
	FIELD(2, preceding_port, INT32),
};
MESSAGE(CostInput);

FIELDS(CostOutput) = {
	FIELD(1, size, INT64),
	FIELD(2, alias_input_port, INT64),
	FIELD_MESSAGE(3, shape, TensorShapeProto),
	FIELD_ENUM(4, dtype, tf_data_type),
};
MESSAGE(CostOutput);

FIELDS(CostNode) = {
	FIELD(1, name, STRING),
	FIELD(2, device, STRING),
	FIELD(3, id, INT32),
	REPEATED_MESSAGE(4, input_info, CostInput),
	REPEATED_MESSAGE(5, output_info, CostOutput),
	FIELD(6, temporary_memory_size, INT64),
	FIELD(7, is_final, BOOL),
	REPEATED(8, control_input, INT32),
	FIELD(9, compute_cost, INT64),
	FIELD(10, host_temp_memory_size, INT64),
	FIELD(11, device_temp_memory_size, INT64),
	FIELD(12, persistent_memory_size, INT64),
	FIELD(14, compute_time, INT64),
	FIELD(15, memory_time, INT64),
	FIELD(16, device_persistent_memory_size, INT64),
	FIELD(17, inaccurate, BOOL),
};
MESSAGE(CostNode);

FIELDS(AggregatedCost) = {
	FIELD(1, cost, FLOAT),
	FIELD(2, dimension, STRING),
};
MESSAGE(AggregatedCost);

FIELDS(CostGraphDef) = {
	RECORDS(1, node, CostNode),
	REPEATED_MESSAGE(2, cost, AggregatedCost),
};
MESSAGE(CostGraphDef);

FIELDS(FunctionGraphs) = {
	REPEATED_MESSAGE(1, partition_graphs, tf_graph_def),
	FIELD_MESSAGE(2, pre_optimization_graph, tf_graph_def),
	FIELD_MESSAGE(3, post_optimization_graph, tf_graph_def),
};
MESSAGE(FunctionGraphs);

FIELDS(SessionMetadata) = {
	FIELD(1, name, STRING),
	FIELD(2, version, INT64),
};
MESSAGE(SessionMetadata);

FIELDS(RunMetadata) = {
	FIELD_MESSAGE(1, step_stats, tf_step_stats),
	FIELD_MESSAGE(2, cost_graph, CostGraphDef),
	REPEATED_MESSAGE(3, partition_graphs, tf_graph_def),
	REPEATED_MESSAGE(4, function_graphs, FunctionGraphs),
	FIELD_MESSAGE(5, session_metadata, SessionMetadata),
};
PUBLIC_MESSAGE(tf_run_metadata, RunMetadata);

FIELDS(Trace) = {
	FIELD(1, file, STRING), /* the texts themselves are old */
	FIELD(2, lineno, INT32),
	FIELD(3, function, STRING),
	FIELD(4, line, STRING),
	FIELD(5, func_start_line, INT32),
	FIELD(6, file_id, INT64),
	FIELD(7, function_id, INT64),
	FIELD(8, line_id, INT64),
};
MESSAGE(Trace);

FIELDS(CodeDef) = {
	REPEATED_MESSAGE(1, traces, Trace),
};
MESSAGE(CodeDef);

FIELDS(OpLogEntry) = {
	FIELD(1, name, STRING),
	FIELD(2, float_ops, INT64),
	REPEATED(3, types, STRING),
	FIELD_MESSAGE(4, code_def, CodeDef),
};
MESSAGE(OpLogEntry);

MAP_OF(Int64ToString, INT64, STRING);

FIELDS(OpLogProto) = {
	RECORDS(1, log_entries, OpLogEntry),
	RECORDS(2, id_to_string, Int64ToString),
};
PUBLIC_MESSAGE(tf_op_log, OpLogProto);

MAP_OF(Int32ToInt64, INT32, INT64);

FIELDS(Tuple) = {
	REPEATED(1, int64_values, INT64),
};
MESSAGE(Tuple);

FIELDS(ExecTime) = {
	REPEATED_MESSAGE(1, times, Tuple),
};
MESSAGE(ExecTime);

MAP_OF_MESSAGE(StringToExecTime, STRING, ExecTime);

FIELDS(Memory) = {
	FIELD(1, bytes, INT64),
	FIELD(2, ptr, UINT64),
};
MESSAGE(Memory);

MAP_OF_MESSAGE(Int32ToMemory, INT32, Memory);

FIELDS(ExecMemory) = {
	FIELD(1, memory_micros, INT64),
	FIELD(2, host_temp_bytes, INT64),
	FIELD(3, host_persistent_bytes, INT64),
	FIELD(4, accelerator_temp_bytes, INT64),
	FIELD(5, accelerator_persistent_bytes, INT64),
	FIELD(6, requested_bytes, INT64),
	FIELD(7, peak_bytes, INT64),
	FIELD(8, residual_bytes, INT64),
	FIELD(9, output_bytes, INT64),
	FIELD(10, allocator_bytes_in_use, INT64),
	REPEATED_MESSAGE(11, output_memory, Int32ToMemory),
};
MESSAGE(ExecMemory);

FIELDS(ExecProfile) = {
	FIELD(1, run_count, INT64),
	FIELD(2, all_start_micros, INT64),
	FIELD(3, latest_end_micros, INT64),
	REPEATED_MESSAGE(4, accelerator_execs, StringToExecTime),
	REPEATED_MESSAGE(5, cpu_execs, StringToExecTime),
	REPEATED(6, devices, STRING),
	REPEATED_MESSAGE(7, memory_execs, ExecMemory),
	REPEATED_MESSAGE(11, allocations, AllocationRecord),
};
MESSAGE(ExecProfile);

MAP_OF_MESSAGE(Int64ToExecProfile, INT64, ExecProfile);
MAP_OF(Int64ToInt32, INT64, INT32);
MAP_OF_MESSAGE(Int32ToTuple, INT32, Tuple);

FIELDS(ProfileNode) = {
	FIELD(1, name, STRING),
	REPEATED_MESSAGE(2, inputs, Int32ToInt64),
	REPEATED_MESSAGE(3, outputs, Int32ToInt64),
	REPEATED(4, shape, INT64),
	REPEATED(5, op_types, STRING),
	FIELD(6, canonical_device, STRING),
	FIELD(7, host_device, STRING),
	FIELD(8, float_ops, INT64),
	FIELD(9, op, STRING),
	FIELD_MESSAGE(10, trace, CodeDef),
	REPEATED_MESSAGE(11, attrs, StringToAttrValue),
	REPEATED_MESSAGE(12, execs, Int64ToExecProfile),
	FIELD(13, id, INT64),
	REPEATED_MESSAGE(14, src_output_index, Int64ToInt32),
	REPEATED_MESSAGE(15, output_shapes, Int32ToTuple),
	REPEATED_MESSAGE(16, input_shapes, Int32ToTuple),
};
MESSAGE(ProfileNode);

MAP_OF_MESSAGE(Int64ToProfileNode, INT64, ProfileNode);

FIELDS(ProfileProto) = {
	RECORDS(1, nodes, Int64ToProfileNode),
	FIELD(2, has_trace, BOOL),
	REPEATED(3, steps, INT64),
	RECORDS(4, id_to_string, Int64ToString),
	FIELD(5, miss_accelerator_stream, BOOL),
};
PUBLIC_MESSAGE(tf_profile, ProfileProto);
