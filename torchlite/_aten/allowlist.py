"""Allowlist of ops that a program loaded from a file may call, for all file formats.

Names are looked up among op records, never among attributes. Allowed are overloads declared by PyTorch's library,
torchlite's own records, and ops that the user registered.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from .._dispatch.call import Tensor
from .._library.library_op import DEFINED
from .._library.op_overload import OpOverload, OpOverloadPacket
from .._types.checked_callable import CheckedCallable
from . import QUANTIZED_LAYERS, TORCHLITE_NAMESPACE, ops
from .overload_packet import AtenOverload
from .recorded_schemas import schema_entries

# Ops that affect more than their arguments: they open files or seed the host's generators. Drawing random numbers is
# allowed.
REFUSED_OPS = frozenset(("from_file", "manual_seed", "seed", "initial_seed"))


def allowed_packet(space: str, name: str) -> OpOverloadPacket | None:
    """Return the packet of an op name, None for an unknown or refused op."""
    if space == "profiler":
        space = ops.profiler.name  # registers its ops
    if space == "aten" and name in REFUSED_OPS or not name.isidentifier():
        return None
    if space == "quantized" or space == "aten" and name in QUANTIZED_LAYERS:
        ops.quantized  # noqa: B018  declares its ops
    found = DEFINED.get((space, name))
    if found is None and (space == TORCHLITE_NAMESPACE or space == "aten" and schema_entries(name)):
        found = getattr(getattr(ops, space), name, None)
    return found if isinstance(found, OpOverloadPacket) and found._namespace == space else None


def allowed_overload(space: str, name: str, overload: str) -> OpOverload | None:
    """Return an overload of an allowed op, None if there is none."""
    packet = allowed_packet(space, name)
    if packet is None or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    return found if isinstance(found, OpOverload) else None


# -- bounds on repeat counts --------------------------------------------------------------------

# Maximum of each integer argument that multiplies an op's work or output independently of input sizes.
_COUNTS: dict[str, tuple[str, int]] = {
    **{
        f"special_{name}": ("n", 1 << 12)
        for name in (
            "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
            "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
            "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
            "legendre_polynomial_p"
        ).split()
    },
    "mvlgamma": ("p", 1 << 12), "special_multigammaln": ("p", 1 << 12),
    **dict.fromkeys(("tensor_split", "hsplit", "vsplit", "dsplit"), ("sections", 1 << 20)),
}  # fmt: skip
COUNT_ARGUMENTS = frozenset(name for name, (number, _) in _COUNTS.items() if number != "sections")
_COMBINATORIAL_OPS = 1 << 22  # maximum number of elements that `combinations` may return
# Maximum length of tensor lists for ops with cubic work in that length.
_CHAINS = {"chain_matmul": ("matrices", 200), "linalg_multi_dot": ("tensors", 200)}
_SPLIT_OPS = ("unbind", "split", "unsafe_split", "chunk", "unsafe_chunk", "split_copy", "unbind_copy")


def check_split_count(tensor: Any, count: int) -> None:
    """Raise RuntimeError if a tensor is split into more pieces than its bytes, and more than a million."""
    if count > 1 << 20 and count > tensor.untyped_storage().nbytes():
        raise RuntimeError(f"a tensor of {tensor.untyped_storage().nbytes()} bytes cannot become {count} pieces")


def _largest_count(value: Any) -> Any:
    """Return a number, or the maximum of a tensor."""
    if isinstance(value, Tensor) and value.numel() and value.device.type != "meta" and not value.is_complex():
        return value.detach().max().item()
    return value


def _check_combinations(self: Any, r: int = 2, with_replacement: bool = False, **_: Any) -> None:
    count = self.numel() + (r - 1 if with_replacement else 0)
    if r > 1 << 10 or 0 < r <= count and math.comb(count, r) * r > _COMBINATORIAL_OPS:
        raise RuntimeError(
            f"aten::combinations: a program may ask for {_COMBINATORIAL_OPS} elements at most, and not for r={r}"
        )


def _make_count_check(overload: OpOverload) -> Any:
    """Return a function of (args, kwargs) that checks the repeat counts of an overload, None if it has none."""
    name = overload._opname
    if overload.namespace != "aten" or name not in (*_COUNTS, *_CHAINS, *_SPLIT_OPS, "combinations"):
        return None
    places = [argument.name for argument in overload._schema.positional]
    if name == "combinations":
        return lambda args, kwargs: _check_combinations(**dict(zip(places, args, strict=False)) | kwargs)
    if name in _CHAINS:
        listed, longest = _CHAINS[name]

        def check_length(args: tuple, kwargs: dict[str, Any]) -> None:
            count = len((dict(zip(places, args, strict=False)) | kwargs).get(listed, ()))
            if count > longest:
                raise RuntimeError(f"{overload.name()}: a program may give {longest} {listed} at most, but got {count}")

        return check_length
    if name in _SPLIT_OPS:

        def check_counts(args: tuple, kwargs: dict[str, Any]) -> None:
            given = dict(zip(places, args, strict=False)) | kwargs
            tensor, dim, step = given.get("self"), given.get("dim", 0), given.get("split_size", 1)
            shape = getattr(tensor, "shape", ())
            if isinstance(dim, int) and -len(shape) <= dim < len(shape) and isinstance(step, int) and step > 0:
                chunks = given.get("chunks", shape[dim])
                check_split_count(tensor, min(shape[dim], chunks) // step if shape[dim] else chunks)

        return check_counts
    counted, most = _COUNTS[name]

    def check_count(args: tuple, kwargs: dict[str, Any]) -> None:
        given = dict(zip(places, args, strict=False)) | kwargs
        number = given.get(counted)
        if counted == "sections" and number is None:  # split positions, if the tensor has a dimension
            sections = given.get("tensor_indices_or_sections")
            number = sections if getattr(sections, "ndim", 1) == 0 else None
        number = _largest_count(number)
        if isinstance(number, (int, float)) and not number <= most:  # NaN hides a tensor's other elements
            raise RuntimeError(f"{overload.name()}: a program may ask for {counted}={most} at most, but got {number}")

    return check_count


def limit_repeat_counts(overload: OpOverload, run: Any) -> Any:
    """Return an overload's implementation with bounded repeat counts."""
    check = _make_count_check(overload)
    if check is None:
        return run

    def run_checked(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return run(*args, **kwargs)

    return run_checked


class BoundedOverload(CheckedCallable, AtenOverload):
    """Overload in a graph loaded from a file, with bounded repeat counts."""

    def __init__(self, plain: AtenOverload) -> None:
        super().__init__(plain.overloadpacket, plain._overloadname, plain.entry)  # type: ignore[arg-type]
        self.plain, self.check = plain, _make_count_check(plain)  # type: ignore[method-assign]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        self.check(args, kwargs)
        return super().__call__(*args, **kwargs)

    def __reduce__(self) -> Any:
        return bounded_overload, (self.plain,)


@functools.cache
def bounded_overload(overload: OpOverload) -> OpOverload:
    """Return the bounded form of an overload."""
    if isinstance(overload, AtenOverload) and _make_count_check(overload) is not None:
        return BoundedOverload(overload)
    return overload
