/* tf_schema_run.c: see tf_schema.h. What runs tell: RunMetadata, and the messages of the profiler. */
#include "wire/tf_schema_int.h"

/* clang-format off */

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

/* ---- profiler -------------------------------------------------------------------------------- */

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
