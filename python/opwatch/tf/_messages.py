"""The messages of TensorFlow that profiling needs.

TensorFlow's own classes are used when it is loaded; otherwise they are made in a private pool, so that a
TensorFlow that is loaded later finds its names free. Nothing here imports TensorFlow.
"""
import importlib
import sys

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError
except ImportError as problem:  # pragma: no cover - depends on the installation
    raise ImportError("opwatch.tf needs protobuf: install python3-protobuf, or protobuf with pip") from problem

# file: syntax, package, module of TensorFlow, messages. A field is "name number type", with a star for repeated;
# map<k,v> is a map; a type in capitals is a message or enum of the same package or of tensorflow.
_FILES = {
    "tensor_shape": ("proto3", "tensorflow", "tensorflow.core.framework.tensor_shape_pb2", """
        TensorShapeProto.Dim: size 1 int64, name 2 string
        TensorShapeProto: dim 2 *TensorShapeProto.Dim, unknown_rank 3 bool
    """),
    "step_stats": ("proto3", "tensorflow", "tensorflow.core.framework.step_stats_pb2", """
        AllocationDescription: requested_bytes 1 int64, allocated_bytes 2 int64, allocator_name 3 string,
            allocation_id 4 int64, has_single_reference 5 bool, ptr 6 uint64
        TensorDescription: dtype 1 int32, shape 2 TensorShapeProto, allocation_description 4 AllocationDescription
        AllocationRecord: alloc_micros 1 int64, alloc_bytes 2 int64
        AllocatorMemoryUsed: allocator_name 1 string, total_bytes 2 int64, peak_bytes 3 int64, live_bytes 4 int64,
            allocator_bytes_in_use 5 int64, allocation_records 6 *AllocationRecord
        NodeOutput: slot 1 int32, tensor_description 3 TensorDescription
        MemoryStats: temp_memory_size 1 int64, device_temp_memory_size 2 int64, persistent_memory_size 3 int64,
            device_persistent_memory_size 4 int64, persistent_tensor_alloc_ids 5 *int64,
            device_persistent_tensor_alloc_ids 6 *int64
        NodeExecStats: node_name 1 string, all_start_micros 2 int64, op_start_rel_micros 3 int64,
            op_end_rel_micros 4 int64, all_end_rel_micros 5 int64, memory 6 *AllocatorMemoryUsed,
            output 7 *NodeOutput, timeline_label 8 string, scheduled_micros 9 int64, thread_id 10 uint32,
            referenced_tensor 11 *AllocationDescription, memory_stats 12 MemoryStats, all_start_nanos 13 int64,
            op_start_rel_nanos 14 int64, op_end_rel_nanos 15 int64, all_end_rel_nanos 16 int64,
            scheduled_nanos 17 int64
        DeviceStepStats: device 1 string, node_stats 2 *NodeExecStats, thread_names 3 map<uint32,string>
        StepStats: dev_stats 1 *DeviceStepStats
    """),
    "config": ("proto3", "tensorflow", "tensorflow.core.protobuf.config_pb2", """
        RunOptions: trace_level 1 RunOptions.TraceLevel, timeout_in_ms 2 int64, inter_op_thread_pool 3 int32,
            output_partition_graphs 5 bool
        RunMetadata: step_stats 1 StepStats, partition_graphs 3 *GraphDef
    """),
    "graph": ("proto3", "tensorflow", "tensorflow.core.framework.graph_pb2", """
        AttrValue.ListValue: s 2 *bytes, i 3 *int64, f 4 *float, b 5 *bool, type 6 *int32, shape 7 *TensorShapeProto
        AttrValue: list 1 AttrValue.ListValue, s 2 bytes, i 3 int64, f 4 float, b 5 bool, type 6 int32,
            shape 7 TensorShapeProto
        NodeDef: name 1 string, op 2 string, input 3 *string, device 4 string, attr 5 map<string,AttrValue>
        VersionDef: producer 1 int32, min_consumer 2 int32, bad_consumers 3 *int32
        GraphDef: node 1 *NodeDef, version 3 int32, versions 4 VersionDef
    """),
    "tfprof_output": ("proto2", "tensorflow.tfprof", "tensorflow.core.profiler.tfprof_output_pb2", """
        TFProfTensorProto: dtype 1 int32, value_double 2 *double, value_int64 3 *int64, value_str 4 *string
        GraphNodeProto: name 1 string, tensor_value 15 TFProfTensorProto, run_count 21 int64, exec_micros 2 int64,
            accelerator_exec_micros 17 int64, cpu_exec_micros 18 int64, requested_bytes 3 int64,
            peak_bytes 24 int64, residual_bytes 25 int64, output_bytes 26 int64, parameters 4 int64,
            float_ops 13 int64, devices 10 *string, total_definition_count 23 int64, total_run_count 22 int64,
            total_exec_micros 6 int64, total_accelerator_exec_micros 19 int64, total_cpu_exec_micros 20 int64,
            total_requested_bytes 7 int64, total_peak_bytes 27 int64, total_residual_bytes 28 int64,
            total_output_bytes 29 int64, total_parameters 8 int64, total_float_ops 14 int64,
            shapes 11 *TensorShapeProto, input_shapes 16 map<int32,TensorShapeProto>, children 12 *GraphNodeProto
        MultiGraphNodeProto: name 1 string, exec_micros 2 int64, accelerator_exec_micros 12 int64,
            cpu_exec_micros 13 int64, requested_bytes 3 int64, peak_bytes 16 int64, residual_bytes 17 int64,
            output_bytes 18 int64, parameters 4 int64, float_ops 5 int64, total_exec_micros 6 int64,
            total_accelerator_exec_micros 14 int64, total_cpu_exec_micros 15 int64, total_requested_bytes 7 int64,
            total_peak_bytes 19 int64, total_residual_bytes 20 int64, total_output_bytes 21 int64,
            total_parameters 8 int64, total_float_ops 9 int64, graph_nodes 10 *GraphNodeProto,
            children 11 *MultiGraphNodeProto
        AdviceProto.Checker: reports 2 *string
        AdviceProto: checkers 1 map<string,AdviceProto.Checker>
    """),
    "tfprof_log": ("proto3", "tensorflow.tfprof", "tensorflow.core.profiler.tfprof_log_pb2", """
        CodeDef.Trace: file 1 string, lineno 2 int32, function 3 string, line 4 string, func_start_line 5 int32,
            file_id 6 int64, function_id 7 int64, line_id 8 int64
        CodeDef: traces 1 *CodeDef.Trace
        OpLogEntry: name 1 string, float_ops 2 int64, types 3 *string, code_def 4 CodeDef
        OpLogProto: log_entries 1 *OpLogEntry, id_to_string 2 map<int64,string>
    """),
    "profile": ("proto3", "tensorflow.tfprof.pprof", "tensorflow.core.profiler.profile_pb2", """
        ValueType: type 1 int64, unit 2 int64
        Label: key 1 int64, str 2 int64, num 3 int64
        Sample: location_id 1 *uint64, value 2 *int64, label 3 *Label
        Mapping: id 1 uint64, memory_start 2 uint64, memory_limit 3 uint64, file_offset 4 uint64, filename 5 int64,
            build_id 6 int64, has_functions 7 bool, has_filenames 8 bool, has_line_numbers 9 bool,
            has_inline_frames 10 bool
        Line: function_id 1 uint64, line 2 int64
        Location: id 1 uint64, mapping_id 2 uint64, address 3 uint64, line 4 *Line
        Function: id 1 uint64, name 2 int64, system_name 3 int64, filename 4 int64, start_line 5 int64
        Profile: sample_type 1 *ValueType, sample 2 *Sample, mapping 3 *Mapping, location 4 *Location,
            function 5 *Function, string_table 6 *string, drop_frames 7 int64, keep_frames 8 int64,
            time_nanos 9 int64, duration_nanos 10 int64, period_type 11 ValueType, period 12 int64,
            comment 13 *int64, default_sample_type 14 int64
    """),
}
_ENUMS = {"RunOptions.TraceLevel": ("NO_TRACE", "SOFTWARE_TRACE", "HARDWARE_TRACE", "FULL_TRACE")}

_SCALARS = {name: getattr(descriptor_pb2.FieldDescriptorProto, "TYPE_" + name.upper())
            for name in ("int32", "int64", "uint32", "uint64", "bool", "string", "bytes", "float", "double")}

_pool = None
_classes = {}


def _definitions(text):
    """(message, [(field, number, type, repeated)]) for each message of a table."""
    entries = []
    for line in text.strip().splitlines():
        head, colon, rest = line.partition(": ")
        if colon and " " not in head.strip():
            entries.append([head.strip(), rest])
        else:
            entries[-1][1] += " " + line.strip()
    for name, fields in entries:
        parsed = []
        for field in fields.split(", "):
            word, number, kind = field.strip().rstrip(",").split(" ")
            parsed.append((word, int(number), kind.lstrip("*"), kind.startswith("*")))
        yield name, parsed


def _full_name(kind):
    if kind in _ENUMS:
        return ".tensorflow." + kind
    for _, package, _, text in _FILES.values():
        if any(name == kind for name, _ in _definitions(text)):
            return ".%s.%s" % (package, kind)
    raise KeyError(kind)


def _set_type(field, kind):
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = field.TYPE_ENUM if kind in _ENUMS else field.TYPE_MESSAGE
    field.type_name = _full_name(kind)


def _add_field(message, path, field, number, kind, repeated):
    made = message.field.add(name=field, number=number)
    made.label = made.LABEL_REPEATED if repeated or kind.startswith("map<") else made.LABEL_OPTIONAL
    if not kind.startswith("map<"):
        _set_type(made, kind)
        return
    key, value = kind[4:-1].split(",")
    entry = message.nested_type.add(name="".join(part.capitalize() for part in field.split("_")) + "Entry")
    entry.options.map_entry = True
    for name, place, kind in (("key", 1, key), ("value", 2, value)):
        part = entry.field.add(name=name, number=place, label=made.LABEL_OPTIONAL)
        _set_type(part, kind)
    made.type = made.TYPE_MESSAGE
    made.type_name = path + "." + entry.name


def _private_pool():
    global _pool
    if _pool is not None:
        return _pool
    file = {}
    for key, (syntax, package, _, text) in _FILES.items():
        made = file[key] = descriptor_pb2.FileDescriptorProto(
            name="opwatch/%s.proto" % key, package=package, syntax=syntax)
        parts = {}
        for name, _ in sorted(_definitions(text), key=lambda item: item[0].count(".")):
            outer, _, inner = name.rpartition(".")
            parts[name] = parts[outer].nested_type.add(name=inner) if outer else made.message_type.add(name=inner)
        for name, fields in _definitions(text):
            for field, number, kind, repeated in fields:
                _add_field(parts[name], ".%s.%s" % (package, name), field, number, kind, repeated)
        for enum, words in _ENUMS.items():
            outer, _, inner = enum.rpartition(".")
            if outer in parts:
                kinds = parts[outer].enum_type.add(name=inner)
                for number, word in enumerate(words):
                    kinds.value.add(name=word, number=number)
    order = ("tensor_shape", "step_stats", "graph", "config", "tfprof_output", "tfprof_log", "profile")
    pool = descriptor_pool.DescriptorPool()
    for at, key in enumerate(order):
        file[key].dependency.extend("opwatch/%s.proto" % before for before in order[:at])
        pool.AddSerializedFile(file[key].SerializeToString())
    _pool = pool
    return pool


def _class_of(descriptor, pool):
    get = getattr(message_factory, "GetMessageClass", None)
    if get:
        return get(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


def _of_tensorflow(name):
    """TensorFlow's class, when TensorFlow is loaded."""
    if "tensorflow" not in sys.modules:
        return None
    for _, package, module, text in _FILES.values():
        if any(name == message for message, _ in _definitions(text)):
            try:
                found = importlib.import_module(module)
            except ImportError:
                return None
            for part in name.split("."):
                found = getattr(found, part, None)
            return found
    return None


def message(name):
    """The class of a message, such as "GraphNodeProto"."""
    found = _of_tensorflow(name)
    if found is not None:
        return found
    if name not in _classes:
        pool = _private_pool()
        _classes[name] = _class_of(pool.FindMessageTypeByName(_full_name(name)[1:]), pool)
    return _classes[name]


# ---- bytes ----

def serialized(value, what):
    """The bytes of a message or of bytes; a TypeError that says what was expected otherwise."""
    if value is None:
        return b""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    serialize = getattr(value, "SerializeToString", None)
    if serialize is None:
        raise TypeError("%s: a message or its bytes are needed, not %s" % (what, type(value).__name__))
    return serialize()


def varint(value):
    """A number as it stands before a field of known length."""
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, data):
    """A field of bytes in a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _split(data, number):
    """(what a message says itself, its sub-messages of that number)."""
    own, below, at = [], [], 0
    while at < len(data):
        start = at
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == 2:
            size, at = _read_varint(data, at)
            if tag >> 3 == number:
                below.append(data[at:at + size])
                at += size
                continue
            at += size
        elif kind == 0:
            _, at = _read_varint(data, at)
        else:
            at += 8 if kind == 1 else 4
        own.append(data[start:at])
    return b"".join(own), below


def parse(name, data):
    """A message from bytes that the library wrote. Parsers refuse what is nested deeper than 100 levels, which
    the op view with its chain of types often is; such a message is put together level by level."""
    made = message(name)()
    try:
        made.ParseFromString(data)
        return made
    except DecodeError:
        made.Clear()
    number = made.DESCRIPTOR.fields_by_name["children"].number
    waiting = [(made, memoryview(data))]
    while waiting:
        node, bytes_of = waiting.pop()
        own, below = _split(bytes_of, number)
        node.MergeFromString(own)
        waiting.extend((node.children.add(), part) for part in below)
    return made
