"""Messages of TorchServe's gRPC services."""

from __future__ import annotations

from typing import Any

from ._message_table import MessageTable

INFERENCE = "org.pytorch.serve.grpc.inference"
MANAGEMENT = "org.pytorch.serve.grpc.management"

# `Empty` and `Status` are messages of other packages there: on the wire a message has no name.
_INFERENCE_TABLE = """
Empty
PredictionsRequest: string model_name 1, string model_version 2, <>bytes input 3, ?string sequenceId 4
PredictionResponse: bytes prediction 1, ?string sequenceId 2, ?Status status 3
Status: int32 code 1, string message 2
TorchServeHealthResponse: string health 1
"""
_MANAGEMENT_TABLE = """
ManagementResponse: string msg 1
DescribeModelRequest: string model_name 1, string model_version 2, bool customized 3
ListModelsRequest: int32 limit 1, int32 next_page_token 2
RegisterModelRequest: int32 batch_size 1, string handler 2, int32 initial_workers 3, int32 max_batch_delay 4,
    string model_name 5, int32 response_timeout 6, string runtime 7, bool synchronous 8, string url 9,
    bool s3_sse_kms 10, int32 queue_timeout 11
ScaleWorkerRequest: string model_name 1, string model_version 2, int32 max_worker 3, int32 min_worker 4,
    int32 number_gpu 5, bool synchronous 6, int32 timeout 7
SetDefaultRequest: string model_name 1, string model_version 2
UnregisterModelRequest: string model_name 1, string model_version 2
"""
MANAGEMENT_CALLS = (
    "DescribeModel", "ListModels", "RegisterModel", "ScaleWorker", "SetDefault", "UnregisterModel",
)  # fmt: skip

inference: Any = MessageTable("torchserve_inference.proto", INFERENCE, _INFERENCE_TABLE).classes()
management: Any = MessageTable("torchserve_management.proto", MANAGEMENT, _MANAGEMENT_TABLE).classes()
