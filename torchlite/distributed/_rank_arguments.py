"""Rank, size and address of the store, parsed from URLs and environment variables."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs

from ._transports import find_transport

# {URL scheme: handler}
handlers: dict[str, Any] = {}


def check_rank(rank: int, size: int) -> None:
    """Raise ValueError for a rank beyond the world's size; negative numbers are unset."""
    if size == 0:
        raise ValueError("TCPStore world size cannot be 0")
    if 0 < size <= rank:
        raise ValueError(f"rank {rank} is not in a world of {size} {'process' if size == 1 else 'processes'}")


def parse_number(name: str, text: str) -> int:
    """Return a non-negative integer from a variable or URL parameter."""
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} must be an integer: invalid literal for int() with base 10: {text!r}") from None
    if value < 0:
        raise ValueError(f"{name} must not be negative, but it is {text}")
    return value


def missing_variable(name: str) -> ValueError:
    """Return PyTorch's error for an environment variable that is not set."""
    return ValueError(
        "Error initializing torch.distributed using env:// rendezvous: environment variable "
        f"{name} expected, but not set"
    )


def rank_from_environment(rank: int, size: int, needed: bool) -> tuple[int, int]:
    found = []
    for value, name in ((rank, "RANK"), (size, "WORLD_SIZE")):
        if value < 0 and name in os.environ:
            value = parse_number(name, os.environ[name])
        if value < 0 and needed:
            raise missing_variable(name)
        found.append(value)
    if not needed and max(found) < 0 and not find_transport("mpi").started():
        return 0, 1
    return found[0], found[1]


def rank_from_url(url: Any, text: str, rank: int, size: int) -> tuple[int, int]:
    if url.scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")
    query = parse_qs(url.query)
    rank = parse_number("rank", query["rank"][0]) if "rank" in query else rank
    size = parse_number("world_size", query["world_size"][0]) if "world_size" in query else size
    if url.scheme == "tcp" and url.port is None:
        raise ValueError(f"Error initializing torch.distributed using tcp:// rendezvous: port number missing in {text}")
    if not find_transport("mpi").started():
        for value, name in ((rank, "rank"), (size, "world size")):
            if value < 0:
                raise ValueError(
                    f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {name} parameter missing"
                )
    return rank, size


def master_from_environment() -> tuple[str, int]:
    """Return host and port of rank 0's store."""
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise missing_variable(name)
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        raise RuntimeError(
            "The launcher's store at MASTER_ADDR and MASTER_PORT is PyTorch's, which torchlite does not speak with: "
            "set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun, so that rank 0 has a store of its own"
        )
    return os.environ["MASTER_ADDR"], parse_number("MASTER_PORT", os.environ["MASTER_PORT"])
