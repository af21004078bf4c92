/* tf_schema_saved.c: see tf_schema.h. Meta graphs and saved models. */
#include "wire/tf_schema_int.h"

/* Used before they are defined, by themselves or by one another. */
static const struct pb_message StructuredValue, TypeSpecProto, TensorInfo, SavedVariable;

/* clang-format off */

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
