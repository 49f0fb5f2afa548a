"""Collectives as ops: `torch.ops._c10d_functional`, its older form `torch.ops.c10d_functional`, and `torch.ops.c10d`.

Those of `c10d` are names without a kernel: programs use them as keys.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._library.library_op import define_op

_GROUP = "Any group_name"
_SCHEMAS = {
    "_c10d_functional": (
        f"broadcast(Tensor input, int src, {_GROUP}) -> Tensor",
        f"broadcast_(Tensor(a!) input, int src, {_GROUP}) -> Tensor(a!)",
        f"all_reduce(Tensor input, str reduce_op, {_GROUP}) -> Tensor",
        f"all_reduce_(Tensor(a!) input, str reduce_op, {_GROUP}) -> Tensor(a!)",
        f"all_reduce_coalesced(Tensor[] inputs, str reduce_op, {_GROUP}) -> Tensor[]",
        f"all_gather_into_tensor(Tensor input, int group_size, {_GROUP}) -> Tensor",
        f"all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, {_GROUP}) -> Tensor[]",
        f"reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, {_GROUP}) -> Tensor",
        f"reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, {_GROUP}) -> Tensor[]",
        f"all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, {_GROUP}) -> Tensor",
        "wait_tensor(Tensor tensor) -> Tensor",
        "_wrap_tensor_autograd(Tensor input) -> Tensor",
    ),
    "c10d_functional": (
        "broadcast(Tensor self, int src, str tag, int[] ranks, int group_size) -> Tensor",
        "all_reduce(Tensor self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor",
        "all_reduce_coalesced(Tensor[] self, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor[]",
        "all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) -> Tensor",
        "all_gather_into_tensor_coalesced(Tensor[] input, str tag, int[] ranks, int group_size) -> Tensor[]",
        "reduce_scatter_tensor(Tensor input, str reduceOp, str tag, int[] ranks, int group_size) -> Tensor",
        "reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduceOp, str tag, int[] ranks, int group_size) "
        "-> Tensor[]",
        "all_to_all_single(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, str tag, "
        "int[] ranks, int group_size) -> Tensor",
        "wait_tensor(Tensor self) -> Tensor",
    ),
}
_KEYS = (
    "broadcast_(Tensor[] tensors, Any process_group, int root_rank, int root_tensor, bool async_op=True, "
    "int timeout=-1) -> (Tensor[], Any)",
    "scatter_(Tensor[] output_tensors, Any input_tensors, Any process_group, int root_rank, bool async_op=True, "
    "int timeout=-1) -> (Tensor[], Any)",
)


def _collective(name: str, *args: Any) -> Any:
    """The result of a collective; the last argument is the group."""
    from . import _functional_collectives as functional

    match name:
        case "broadcast_" | "all_reduce_":
            return args[0].copy_(_collective(name[:-1], *args))
        case "all_gather_into_tensor":
            return functional.all_gather_tensor(args[0], 0, args[-1])
        case "all_gather_into_tensor_coalesced":
            return functional.all_gather_into_tensor_coalesced(args[0], args[-1])
        case "reduce_scatter_tensor":
            return functional.reduce_scatter_tensor(args[0], args[1], 0, args[-1])
        case "reduce_scatter_tensor_coalesced":
            return functional.reduce_scatter_tensor_coalesced(args[0], args[1], [0] * len(args[0]), args[-1])
    return getattr(functional, name)(*args)


def _by_group(name: str) -> Any:
    return lambda *args: _collective(name, *args)


def _by_ranks(name: str) -> Any:
    """The older form: the group is that of a list of ranks."""
    return lambda *args: _collective(name, *args[:-3], list(args[-2]))


def declare_collectives() -> None:
    """Define the ops, at the first use of one of the three names in `torch.ops`."""
    for schema in _KEYS:
        define_op("c10d", schema)
    for space, schemas in _SCHEMAS.items():
        for schema in schemas:
            name = schema.partition("(")[0]
            if name in ("wait_tensor", "_wrap_tensor_autograd"):
                kernel: Any = _same
            else:
                kernel = _by_group(name) if space.startswith("_") else _by_ranks(name)
            define_op(space, schema).kernels["CompositeExplicitAutograd"] = kernel


def _same(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself: results of collectives are complete."""
    return tensor
