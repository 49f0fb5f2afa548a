"""Messages of the Open Inference Protocol's gRPC service."""

from __future__ import annotations

from typing import Any

from ._message_table import MessageTable

PACKAGE, SERVICE = "inference", "inference.GRPCInferenceService"

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
_TABLE_OF_MESSAGES = MessageTable("open_inference.proto", PACKAGE, _TABLE)
messages: Any = _TABLE_OF_MESSAGES.classes()  # the class of each message that is not within another, by its name


def make_file() -> Any:
    """Return the description of all messages and of the service."""
    made = _TABLE_OF_MESSAGES.make_file()
    service = made.service.add(name=SERVICE.rpartition(".")[2])
    for call in UNARY_CALLS:
        service.method.add(name=call, input_type=f"{call}Request", output_type=f"{call}Response")
    service.method.add(
        name="ModelStreamInfer", input_type="ModelInferRequest", output_type="ModelStreamInferResponse",
        client_streaming=True, server_streaming=True,
    )  # fmt: skip
    return made
