"""Maps an op record's call to the matching ATen overload and its arguments.

Values bind to schema arguments by name (`input` is `self`), then by order; values without argument must be defaults.
The first matching overload wins, as in PyTorch's parser. For a `whole` call this is the composite overload, otherwise
preferably a non-composite one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch import call
from .._dispatch.op_record import Op
from .._library.function_schema import Argument, FunctionSchema
from .._types.dtypes import bool_, complex64, float64, int64
from .recorded_schemas import schema_entries

# Records with another name than the ATen op.
_RECORDS = {
    "_where": "where", "where_method": "where", "_var_correction": "var", "_std_correction": "std", "_max_dim": "max",
    "_min_dim": "min", "_copy": "copy", "_fill": "fill",
    "_masked_fill_tensor": "masked_fill", "_masked_fill": "masked_fill",
    "_clamp_tensors": "clamp", "_clamp_scalars": "clamp", "_lerp_tensor": "lerp", "_lerp_scalar": "lerp",
    "_median_dim": "median", "_median_all": "median", "_nanmedian_dim": "nanmedian", "_nanmedian_all": "nanmedian",
    "_var_mean": "var_mean", "_std_mean": "std_mean", "_vector_norm_core": "linalg_vector_norm",
    "_nonzero_indices": "nonzero", "_im2col": "im2col", "_col2im": "col2im", "_slice": "slice",
    "_as_strided": "as_strided",
    "_zeros_like": "zeros_like", "_ones_like": "ones_like", "_full_like": "full_like", "_new_zeros": "new_zeros",
    "_new_full": "new_full", "_select_backward": "select_backward", "_diagonal_backward": "diagonal_backward",
    "_unfold_backward": "unfold_backward",
    "torch_dropout": "dropout", "torch_alpha_dropout": "alpha_dropout", "logsigmoid": "log_sigmoid",
    "torch_feature_dropout": "feature_dropout", "torch_feature_alpha_dropout": "feature_alpha_dropout",
    "_gelu_backward": "gelu_backward", "_silu_backward": "silu_backward", "_mish_backward": "mish_backward",
    "_hardswish_backward": "hardswish_backward", "_hardtanh_backward": "hardtanh_backward",
    "_hardsigmoid_backward": "hardsigmoid_backward", "_threshold_backward": "threshold_backward",
    "_softplus_backward": "softplus_backward", "_view_dtype": "view", "_floor_divide": "div", "_trunc_divide": "div",
    "_view": "view", "div_rounded": "div", "_prelu": "_prelu_kernel", "matrix_exp": "linalg_matrix_exp",
    "_fft_r2c_core": "_fft_r2c", "_fft_c2c_core": "_fft_c2c", "_fft_c2r_core": "_fft_c2r",
    "_unique_and_all": "_unique2",
    **{f"_fake_quantize_per_{kind}_affine_{ending}": f"fake_quantize_per_{kind}_affine_{ending}"
       for kind in ("tensor", "channel") for ending in ("cachemask", "cachemask_backward")},
    "to": "_to_copy", "_elu": "elu", "_slice_backward": "slice_backward", "_conj": "_conj", "conj": "_conj",
}  # fmt: skip
# Values of arguments that the record lacks, by op.
_FIXED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "_softmax": {"half_to_float": False}, "_log_softmax": {"half_to_float": False},
    "_floor_divide": {"rounding_mode": "floor"}, "_trunc_divide": {"rounding_mode": "trunc"},
}  # fmt: skip
_ADAPT_VALUES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}
_PYTHON_TYPES = {float: float64, int: int64, bool: bool_, complex: complex64}
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_NO_VALUE: Any = object()


@functools.cache
def library_names(op: Op, whole: bool = False) -> tuple[str, ...]:
    """Return the ATen names of a record's op, most likely first."""
    public = [
        _ADAPT_VALUES.get(space, "") + name for space, _, name in (alias.rpartition(".") for alias in op.alias.split())
    ]
    inner = _RECORDS.get(op.name, op.name)
    names = [op.name, *public, inner, op.name.removeprefix("_")] if whole else [inner, *public]
    return tuple(dict.fromkeys(name for name in names if schema_entries(name)))


@functools.cache
def _candidate_overloads(
    op: Op, name: str, whole: bool
) -> list[tuple[Any, list[tuple[Argument, int | None]], list[int]]]:
    """Yield the overloads of a name, each with the record parameter's position for every argument, and the unused
    positions.
    """
    from . import ops

    packet = getattr(ops.aten, name)
    found = []
    for which in packet.overloads():
        overload = getattr(packet, which)
        schema = overload._schema
        if overload.entry.is_script or any(a.is_write and a.kwarg_only for a in schema.arguments):
            continue
        found.append((overload, *_parameter_positions(op, schema)))
    return sorted(found, key=lambda entry: (entry[0].is_implicit and not whole, len(entry[1])))


def _parameter_positions(op: Op, schema: FunctionSchema) -> tuple[list[tuple[Argument, int | None]], list[int]]:
    by_name = {p.name.rstrip("_"): place for place, p in enumerate(op.params)}
    if schema.arguments and schema.arguments[0].name == "input" and "data" in by_name:  # a form of its own
        positions = range(len(op.params))
        return list(zip(schema.arguments, positions, strict=False)), [*positions[len(schema.arguments) :]]
    taken: dict[int, int] = {}
    for position, argument in enumerate(schema.arguments):
        place = by_name.get(argument.name)
        if place is None and argument.name == "self":
            place = by_name.get("input")
        if place is not None:
            taken[position] = place
    left = [place for place, p in enumerate(op.params) if place not in taken.values() and not p.kwonly]
    for position, argument in enumerate(schema.arguments):
        if position in taken or argument.kwarg_only or not left:
            continue
        if not argument.has_default:
            taken[position] = left.pop(0)
        elif position in left:  # different names, for example `end` and `stop`
            left.remove(position)
            taken[position] = position
    rest = [place for place in range(len(op.params)) if place not in taken.values()]
    return [(argument, taken.get(position)) for position, argument in enumerate(schema.arguments)], rest


def to_library_argument(value: Any, argument: Argument, reads: bool = True) -> Any:
    """Return a value as the schema's argument type; a one-element tensor becomes a number if `reads`."""
    kind = argument.type
    base, several = kind.base, any(s.startswith("[") for s in kind.suffixes)
    if several and base != "Tensor":
        if value is None:
            return [] if argument.has_default and "?" not in kind.suffixes else None
        if isinstance(value, (tuple, list)):
            value = list(value)
            return [float(v) for v in value] if base == "float" else value
        return [value] * argument.N if argument.N else value
    if several and isinstance(value, (tuple, list)):
        return list(value)
    if base == "float" and type(value) is int:
        return float(value)
    if base == "int" and isinstance(value, str) and argument.name == "reduction":
        return REDUCTIONS.get(value, value)
    if reads and base in ("int", "SymInt", "bool") and isinstance(value, call.Tensor) and not value.ndim:
        return value.item()
    if base == "bool" and isinstance(value, int):
        return bool(value)
    if base == "ScalarType" and isinstance(value, type):
        return _PYTHON_TYPES.get(value, value)
    return value


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, (int, float, str, bool, tuple, list)) and type(value) is type(default) and value == default
    )


def _is_same_default(value: Any, own: Any, argument: Argument) -> bool:
    """True if a value equals the record's default and the schema's up to type: `1.0` and `1`, `()` and None."""
    if not argument.has_default or not _is_default(value, own):
        return False
    if argument.type.base == "Scalar" and isinstance(value, (int, float)):
        return bool(value == argument.default_value)
    return value == () and argument.default_value is None


def _adapt_scatter(input: Any, dim: Any, index: Any, src: Any, value: Any, reduce: Any) -> list:
    """Pass a number as value, a tensor as source."""
    number = value is None and isinstance(src, (int, float, complex))
    return [input, dim, index, None, src, reduce] if number else [input, dim, index, src, value, reduce]


def _adapt_random(input: Any, start: Any, end: Any, generator: Any) -> list:
    """Pass a single bound as the upper bound."""
    upper = end is ... and start is not None
    return [input, None, start, generator] if upper else [input, start, end, generator]


def _adapt_extreme(input: Any, dim: Any, keepdim: Any, other: Any) -> list:
    """Pass a tensor as the other operand, a number as dimension."""
    return [input, None, keepdim, dim] if isinstance(dim, call.Tensor) else [input, dim, keepdim, other]


def _adapt_tensor_split(input: Any, places: Any, dim: Any, indices: Any, sections: Any, tensor: Any) -> list:
    """Select sections, split positions or a tensor of either."""
    given = [indices, sections, tensor]
    if places is not None:
        given[2 if isinstance(places, call.Tensor) else 1 if isinstance(places, int) else 0] = places
    return [input, None, dim, *given]


def _adapt_variance(input: Any, dim: Any, unbiased: Any, *rest: Any) -> list:
    """Read a bool in the place of `dim` as `unbiased`."""
    return [input, None, dim, *rest] if isinstance(dim, bool) else [input, dim, unbiased, *rest]


# Adapters of record values to parameters before matching.
_ARRANGED: dict[str, Callable[..., list]] = {
    "scatter": _adapt_scatter, "random_": _adapt_random, "max": _adapt_extreme, "min": _adapt_extreme,
    "tensor_split": _adapt_tensor_split,
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), _adapt_variance),
}  # fmt: skip

MatchedOverload = tuple[Any, tuple, dict]
# Ops with a number before a tensor: the overload, and its arguments as positions of record values.
_SCALAR_FIRST_OPS = {
    "mul": ("mul.Tensor", 1, 0), "add": ("add.Tensor", 1, 0), "add_alpha": ("add.Tensor", 1, 0),
    "sub": ("rsub.Scalar", 1, 0), "sub_alpha": ("rsub.Scalar", 1, 0),
}  # fmt: skip


def _find_aten_overload(name: str) -> Any:
    from . import ops

    packet, _, overload = name.partition(".")
    return getattr(getattr(ops.aten, packet), overload)


def match_overload(op: Op, values: list, writes: bool = False, whole: bool = False) -> MatchedOverload | None:
    """Return the ATen overload for a record's call on bound values, with its arguments, or None."""
    other = _SCALAR_FIRST_OPS.get(op.name)
    if other and not writes and not isinstance(values[0], call.Tensor):
        target, first, second = other
        if all(_is_default(value, p.default) for value, p in zip(values[2:], op.params[2:], strict=True)):
            return _find_aten_overload(target), (values[first], values[second]), {}
    arranged = _ARRANGED.get(op.name)
    values = values if arranged is None else arranged(*values)
    for name in library_names(op, whole):
        if writes and not (name.endswith("_") and not name.endswith("__")):
            name += "_"
        if not schema_entries(name):
            continue
        given = {} if whole else _FIXED_ARGUMENTS.get(op.name, {})
        for reads in (False, True):
            for overload, places, rest in _candidate_overloads(op, name, whole):
                bound = _bind_overload(op, overload, places, rest, values, given, reads)
                if bound is not None:
                    return overload, *overload._schema.call_form(bound)
            if whole or not any(isinstance(value, call.Tensor) and not value.ndim for value in values):
                break
    return None


def _bind_overload(
    op: Op, overload: Any, places: list, rest: list[int], values: list, given: dict[str, Any], reads: bool
) -> list | None:
    """Return an overload's arguments, None if the values do not match. One-element tensors become numbers if
    `reads`.
    """
    if any(not _is_default(values[place], op.params[place].default) for place in rest):
        return None
    if given and not given.keys() <= {argument.name for argument, _ in places}:  # an overload that cannot say it
        return None
    bound = []
    for argument, place in places:
        if place is None:
            value = given.get(argument.name, argument.default_value if argument.has_default else _NO_VALUE)
        else:
            value = values[place]
            unset = value is None and argument.has_default and "?" not in argument.type.suffixes[:1]
            if unset or _is_same_default(value, op.params[place].default, argument):
                value = argument.default_value
            value = to_library_argument(value, argument, reads)
        if value is _NO_VALUE or not _has_argument_type(value, argument, overload.accepts_scalars):
            if place is None or not argument.has_default or not _is_default(values[place], op.params[place].default):
                return None
            value = argument.default_value
        bound.append(value)
    return bound


def _has_argument_type(value: Any, argument: Argument, numbers: bool) -> bool:
    if argument.type.base in ("Layout", "MemoryFormat", "ScalarType") and value == argument.default_value:
        return True
    if numbers and argument.type.text == "Tensor" and isinstance(value, (int, float, complex)):
        return True
    if isinstance(value, call.Tensor) and argument.type.base != "Tensor":
        return False
    return argument.type.holds(value)
