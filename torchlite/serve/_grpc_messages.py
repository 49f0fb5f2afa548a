"""Messages of the protocol's gRPC service, from the table of their fields.

The classes are made when this module is loaded, in a pool of their own: no generated code ties them to a version of
protobuf, and a client library in the same process may have messages of the same names.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE, SERVICE = "inference", "inference.GRPCInferenceService"

# A message a paragraph: its name, then its fields as `type name number`. `*` is a list, `<>` a map from texts, and `|`
# a field of which a message has one. A dot stands before the names of messages within another.
_TABLE = """
ServerLiveRequest
ServerLiveResponse: bool live 1
ServerReadyRequest
ServerReadyResponse: bool ready 1
ModelReadyRequest: string name 1, string version 2
ModelReadyResponse: bool ready 1
ServerMetadataRequest
ServerMetadataResponse: string name 1, string version 2, *string extensions 3
ModelMetadataRequest: string name 1, string version 2
ModelMetadataResponse: string name 1, *string versions 2, string platform 3, *.TensorMetadata inputs 4,
    *.TensorMetadata outputs 5
ModelMetadataResponse.TensorMetadata: string name 1, string datatype 2, *int64 shape 3
InferParameter: |bool bool_param 1, |int64 int64_param 2, |string string_param 3, |double double_param 4,
    |uint64 uint64_param 5
InferTensorContents: *bool bool_contents 1, *int32 int_contents 2, *int64 int64_contents 3, *uint32 uint_contents 4,
    *uint64 uint64_contents 5, *float fp32_contents 6, *double fp64_contents 7, *bytes bytes_contents 8
ModelInferRequest: string model_name 1, string model_version 2, string id 3, <>InferParameter parameters 4,
    *.InferInputTensor inputs 5, *.InferRequestedOutputTensor outputs 6, *bytes raw_input_contents 7
ModelInferRequest.InferInputTensor: string name 1, string datatype 2, *int64 shape 3, <>InferParameter parameters 4,
    InferTensorContents contents 5
ModelInferRequest.InferRequestedOutputTensor: string name 1, <>InferParameter parameters 2
ModelInferResponse: string model_name 1, string model_version 2, string id 3, <>InferParameter parameters 4,
    *.InferOutputTensor outputs 5, *bytes raw_output_contents 6
ModelInferResponse.InferOutputTensor: string name 1, string datatype 2, *int64 shape 3,
    <>InferParameter parameters 4, InferTensorContents contents 5
ModelStreamInferResponse: string error_message 1, ModelInferResponse infer_response 2
ModelStatisticsRequest: string name 1, string version 2
StatisticDuration: uint64 count 1, uint64 ns 2
InferStatistics: StatisticDuration success 1, StatisticDuration fail 2, StatisticDuration queue 3,
    StatisticDuration compute_input 4, StatisticDuration compute_infer 5, StatisticDuration compute_output 6,
    StatisticDuration cache_hit 7, StatisticDuration cache_miss 8
InferBatchStatistics: uint64 batch_size 1, StatisticDuration compute_input 2, StatisticDuration compute_infer 3,
    StatisticDuration compute_output 4
ModelStatistics: string name 1, string version 2, uint64 last_inference 3, uint64 inference_count 4,
    uint64 execution_count 5, InferStatistics inference_stats 6, *InferBatchStatistics batch_stats 7
ModelStatisticsResponse: *ModelStatistics model_stats 1
ModelRepositoryParameter: |bool bool_param 1, |int64 int64_param 2, |string string_param 3, |bytes bytes_param 4
RepositoryIndexRequest: string repository_name 1, bool ready 2
RepositoryIndexResponse: *.ModelIndex models 1
RepositoryIndexResponse.ModelIndex: string name 1, string version 2, string state 3, string reason 4
RepositoryModelLoadRequest: string repository_name 1, string model_name 2, <>ModelRepositoryParameter parameters 3
RepositoryModelLoadResponse
RepositoryModelUnloadRequest: string repository_name 1, string model_name 2, <>ModelRepositoryParameter parameters 3
RepositoryModelUnloadResponse
"""
# Calls that are no stream: their messages are named NAMERequest and NAMEResponse.
UNARY_CALLS = (
    "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer", "ModelStatistics",
    "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload",
)  # fmt: skip
_Field = descriptor_pb2.FieldDescriptorProto


def _lines() -> list[str]:
    return _TABLE.strip().replace("\n    ", " ").split("\n")


def make_file() -> descriptor_pb2.FileDescriptorProto:
    """Return the description of all messages and of the service."""
    made = descriptor_pb2.FileDescriptorProto(name="open_inference.proto", package=PACKAGE, syntax="proto3")
    messages: dict[str, Any] = {}
    for line in _lines():
        name, _, fields = line.partition(":")
        outer, dot, inner = name.partition(".")
        message = messages[outer].nested_type.add(name=inner) if dot else made.message_type.add(name=name)
        messages[name] = message
        for text in filter(None, map(str.strip, fields.split(","))):
            _add_field(message, f".{PACKAGE}.{name}", *text.split())
    service = made.service.add(name=SERVICE.rpartition(".")[2])
    for call in UNARY_CALLS:
        service.method.add(name=call, input_type=f"{call}Request", output_type=f"{call}Response")
    service.method.add(
        name="ModelStreamInfer", input_type="ModelInferRequest", output_type="ModelStreamInferResponse",
        client_streaming=True, server_streaming=True,
    )  # fmt: skip
    return made


def _add_field(message: Any, own: str, kind: str, name: str, number: str) -> None:
    field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
    word = kind.lstrip("*<>|")
    if kind.startswith("<>"):
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
        value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_MESSAGE)
        value.type_name = f".{PACKAGE}.{word}"
        field.label, field.type, field.type_name = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE, f"{own}.{entry.name}"
        return
    if kind.startswith("*"):
        field.label = _Field.LABEL_REPEATED
    if kind.startswith("|"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="parameter_choice")
        field.oneof_index = 0
    if word.startswith("."):
        field.type, field.type_name = _Field.TYPE_MESSAGE, own + word
    elif word[0].isupper():
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{word}"
    else:
        field.type = getattr(_Field, f"TYPE_{word.upper()}")


def _make_classes() -> SimpleNamespace:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(make_file().SerializeToString())
    names = [line.partition(":")[0] for line in _lines()]
    found = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in names
        if "." not in name
    }
    return SimpleNamespace(**found)


messages: Any = _make_classes()  # the class of each message that is not within another, by its name
