"""Checkpoints of several processes as safetensors: not yet."""

from .._absent import kind

_HERE = "torch.distributed.checkpoint.hf_storage"

HuggingFaceStorageReader = kind("HuggingFaceStorageReader", _HERE)
HuggingFaceStorageWriter = kind("HuggingFaceStorageWriter", _HERE)
