"""NCCL transport of `torchlite.distributed`: messages between GPUs through CuPy's wrapper.

The protocol is in docs/backend.md, "An engine of messages". This package does not know PyTorch's API; CuPy is imported
when a group is requested. It has not run on GPUs: its calls are tested with a stand-in library, its constants against
NVIDIA's header.
"""

from .transport import NCCLTransport

engine = NCCLTransport()
"""The engine of this process."""
