"""MPI transport of `torchlite.distributed`: messages of NumPy arrays in host memory.

The protocol is in docs/backend.md, "An engine of messages". This package does not know PyTorch's API; mpi4py is
imported when a world is requested.
"""

from .transport import MPITransport

engine = MPITransport()
