"""The ops that a program out of a file may name, whatever the file's format: the one list for all of them.

A name is looked up among records, never among attributes: an op is an overload that PyTorch's library declares, one of
torchlite's own records, or an op that the user registered. Whatever else `torch.ops` has is no op.
"""

from __future__ import annotations

from .._library.operators import DEFINED
from .._library.overloads import OpOverload, OpOverloadPacket
from . import OWN, ops
from .table import entries

# Ops of the library that read or change more than their arguments: they open files, or set the random numbers that
# the host draws. A program may draw such numbers.
REFUSED = frozenset(("from_file", "manual_seed", "seed", "initial_seed"))


def packet_of(space: str, name: str) -> OpOverloadPacket | None:
    """The op of a library's name; None for what is no op, or none that a file's program may call."""
    if space == "profiler":
        space = ops.profiler.name  # which declares its ops
    if space == "aten" and name in REFUSED or not name.isidentifier():
        return None
    found = DEFINED.get((space, name))
    if found is None and (space == OWN or space == "aten" and entries(name)):
        found = getattr(getattr(ops, space), name, None)
    return found if isinstance(found, OpOverloadPacket) and found._namespace == space else None


def overload_of(space: str, name: str, overload: str) -> OpOverload | None:
    """An overload of such an op; None where it has none of this name."""
    packet = packet_of(space, name)
    if packet is None or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    return found if isinstance(found, OpOverload) else None
