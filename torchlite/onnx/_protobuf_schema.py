"""Schema of ONNX's protobuf messages: number, name and type of each field.

A type is a scalar or a message; `*` marks a repeated field, `**` a packed one.
"""

from __future__ import annotations

from typing import NamedTuple

_TEXT = """
Attribute: 1 name string, 21 ref_attr_name string, 13 doc_string string, 20 type int32, 2 f float, 3 i int64, 4 s bytes,
  5 t Tensor, 6 g Graph, 22 sparse_tensor SparseTensor, 14 tp Type, 7 floats float*, 8 ints int64*, 9 strings bytes*,
  10 tensors Tensor*, 11 graphs Graph*, 23 sparse_tensors SparseTensor*, 15 type_protos Type*
ValueInfo: 1 name string, 2 type Type, 3 doc_string string, 4 metadata_props StringString*
Node: 1 input string*, 2 output string*, 3 name string, 4 op_type string, 7 domain string, 8 overload string,
  5 attribute Attribute*, 6 doc_string string, 9 metadata_props StringString*,
  10 device_configurations NodeDeviceConfiguration*
IntIntList: 1 key int64, 2 value int64*
NodeDeviceConfiguration: 1 configuration_id string, 2 sharding_spec ShardingSpec*, 3 pipeline_stage int32
ShardingSpec: 1 tensor_name string, 2 device int64*, 3 index_to_device_group_map IntIntList*, 4 sharded_dim ShardedDim*
ShardedDim: 1 axis int64, 2 simple_sharding SimpleShardedDim*
SimpleShardedDim: 1 dim_value int64, 2 dim_param string, 3 num_shards int64
TrainingInfo: 1 initialization Graph, 2 algorithm Graph, 3 initialization_binding StringString*,
  4 update_binding StringString*
Model: 1 ir_version int64, 8 opset_import OperatorSetId*, 2 producer_name string, 3 producer_version string,
  4 domain string, 5 model_version int64, 6 doc_string string, 7 graph Graph, 14 metadata_props StringString*,
  20 training_info TrainingInfo*, 25 functions Function*, 26 configuration DeviceConfiguration*
DeviceConfiguration: 1 name string, 2 num_devices int32, 3 device string*
StringString: 1 key string, 2 value string
TensorAnnotation: 1 tensor_name string, 2 quant_parameter_tensor_names StringString*
Graph: 1 node Node*, 2 name string, 5 initializer Tensor*, 15 sparse_initializer SparseTensor*, 10 doc_string string,
  11 input ValueInfo*, 12 output ValueInfo*, 13 value_info ValueInfo*, 14 quantization_annotation TensorAnnotation*,
  16 metadata_props StringString*
Tensor: 1 dims int64*, 2 data_type int32, 3 segment Segment, 4 float_data float**, 5 int32_data int32**,
  6 string_data bytes*, 7 int64_data int64**, 8 name string, 12 doc_string string, 9 raw_data bytes,
  13 external_data StringString*, 14 data_location int32, 10 double_data double**, 11 uint64_data uint64**,
  16 metadata_props StringString*
Segment: 1 begin int64, 2 end int64
SparseTensor: 1 values Tensor, 2 indices Tensor, 3 dims int64*
TensorShape: 1 dim Dimension*
Dimension: 1 dim_value int64, 2 dim_param string, 3 denotation string
Type: 1 tensor_type TypeOfTensor, 4 sequence_type TypeOfSequence, 5 map_type TypeOfMap, 9 optional_type TypeOfOptional,
  8 sparse_tensor_type TypeOfTensor, 7 opaque_type TypeOfOpaque, 6 denotation string
TypeOfTensor: 1 elem_type int32, 2 shape TensorShape
TypeOfSequence: 1 elem_type Type
TypeOfMap: 1 key_type int32, 2 value_type Type
TypeOfOptional: 1 elem_type Type
TypeOfOpaque: 1 domain string, 2 name string
OperatorSetId: 1 domain string, 2 version int64
Function: 1 name string, 4 input string*, 5 output string*, 6 attribute string*, 11 attribute_proto Attribute*,
  7 node Node*, 8 doc_string string, 9 opset_import OperatorSetId*, 10 domain string, 13 overload string,
  12 value_info ValueInfo*, 14 metadata_props StringString*
"""
SCALARS = {"int32", "int64", "uint64", "float", "double", "string", "bytes"}
# Fields of which a message has at most one: the last one read.
ONE_OF = {
    "Type": ("tensor_type", "sequence_type", "map_type", "optional_type", "sparse_tensor_type", "opaque_type"),
    "Dimension": ("dim_value", "dim_param"),
    "SimpleShardedDim": ("dim_value", "dim_param"),
}


class Field(NamedTuple):
    number: int
    name: str
    type: str
    repeats: bool
    packed: bool


def _parse_schema() -> dict[str, tuple[Field, ...]]:
    found = {}
    for line in _TEXT.strip().replace("\n  ", " ").splitlines():
        kind, _, fields = line.partition(": ")
        parts = [field.split() for field in fields.split(",")]
        found[kind] = tuple(
            Field(int(number), name, type.rstrip("*"), "*" in type, "**" in type) for number, name, type in parts
        )
    return found


MESSAGES = _parse_schema()
BY_NUMBER = {kind: {field.number: field for field in fields} for kind, fields in MESSAGES.items()}
BY_NAME = {kind: {field.name: field for field in fields} for kind, fields in MESSAGES.items()}
