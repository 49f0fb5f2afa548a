"""Messages between GPUs over NCCL, through CuPy's wrapper of it, as `torchlite.distributed` asks for them.

The protocol is in docs/backend.md, "An engine of messages". Nothing here knows PyTorch's API, and CuPy is imported when
a group is asked for. No GPU has run this: its calls are tested on a library in its place, its numbers against NVIDIA's
header.
"""

from .transport import NCCLTransport

engine = NCCLTransport()
"""The engine of this process."""
