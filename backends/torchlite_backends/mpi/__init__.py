"""Messages between processes over MPI, as `torchlite.distributed` asks for them: NumPy arrays in host memory.

The protocol is in docs/backend.md, "An engine of messages". Nothing here knows PyTorch's API, and mpi4py is imported
when a world is asked for.
"""

from .transport import MPITransport

engine = MPITransport()
