"""Dynamic shapes of exports: Dim, ShapesCollection, AdditionalInputs and their validation."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torchlite._settings.module_dir import make_module_dir
from torchlite._tensor import Tensor
from torchlite._types.python_source import is_identifier
from torchlite.utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Constraint", "Dim", "ShapesCollection", "ValueRanges", "dims"]


class ValueRanges(NamedTuple):
    """Smallest and largest value of a size.

    Args:
        lower: The smallest.
        upper: The largest; ``math.inf`` for no limit.

    Example:
        >>> from torchlite.export.dynamic_shapes import ValueRanges
        >>> ValueRanges(2, float("inf"))
        VR[2, int_oo]
    """

    lower: Any
    upper: Any

    def __repr__(self) -> str:
        upper = "int_oo" if self.upper == math.inf else self.upper
        return f"VR[{'-int_oo' if self.lower == -math.inf else self.lower}, {upper}]"


class _DimHint:
    """Hint for an unnamed dimension: AUTO and DYNAMIC vary, STATIC does not. Call it to add a range."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if self.type == "STATIC" or self.min is not None or self.max is not None:
            raise TypeError(f"'{type(self).__name__}' object is not callable")
        if min is not None and min < 0 or max is not None and max < 0:
            raise AssertionError("min and max must be non-negative")
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        parts = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join([self.type, *parts])})"


class NamedHint(_DimHint):
    """The hint of a dimension that varies and has a name in an ONNX model."""

    def __init__(self, name: str) -> None:
        super().__init__("DYNAMIC")
        self.__name__ = name


def replace_names(shapes: Any) -> Any:
    """Return `dynamic_shapes` with hints for strings."""
    if isinstance(shapes, str):
        return NamedHint(shapes)
    if isinstance(shapes, Mapping):
        return {key: replace_names(value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return type(shapes)(map(replace_names, shapes))
    return shapes


class Dim:
    """A size that varies in an exported program.

    Dimensions with the same `Dim` have equal sizes. `2 * batch` and `batch + 1` are sizes derived from `batch`.
    `Dim.AUTO` and `Dim.DYNAMIC` stand for dimensions without a name that vary, `Dim.STATIC` for one that does not.

    Args:
        name: Name of the size, an identifier.
        min: Smallest size. Default: 0.
        max: Largest size. Default: no limit.

    Raises:
        AssertionError: ``max`` is not above ``min``, or the name is no identifier.

    Example:
        >>> import torchlite as torch
        >>> batch = torch.export.Dim("batch", max=8)
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=({0: batch},))
        >>> program.module()(-torch.ones(5, 3)).shape
        torch.Size([5, 3])
    """

    AUTO, DYNAMIC, STATIC = _DimHint("AUTO"), _DimHint("DYNAMIC"), _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__ = name
        self.min, self.max = 0 if min is None else min, math.inf if max is None else max
        if self.max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not is_identifier(name):
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")

    root: Any = None
    factor, offset = 1, 0

    def _derive(self, factor: int, offset: int, name: str) -> Dim:
        made = object.__new__(Dim)
        made.__name__, made.root = name, self.root or self
        made.factor, made.offset = self.factor * factor, self.offset * factor + offset
        made.min, made.max = self.min * factor + offset, self.max * factor + offset
        return made

    def __add__(self, other: int) -> Dim:
        return self._derive(1, _check_integer(other, "+"), f"{self.__name__} + {other}")

    def __radd__(self, other: int) -> Dim:
        return self + other

    def __sub__(self, other: int) -> Dim:
        return self._derive(1, -_check_integer(other, "-"), f"{self.__name__} - {other}")

    def __mul__(self, other: int) -> Dim:
        if _check_integer(other, "*") <= 0:
            raise NotImplementedError(f"Attempted to multiply {self.__name__} with {other}, which is not positive")
        return self._derive(other, 0, f"{other}*{self.__name__}")

    def __rmul__(self, other: int) -> Dim:
        return self * other

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={'int_oo' if self.max == math.inf else self.max})"


def _check_integer(value: Any, sign: str) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"a Dim {sign} {value}: only integers are accepted")
    return value


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Returns several `Dim`s with one range.

    Args:
        *names: Names of the sizes.
        min: Smallest size of each. Default: 0.
        max: Largest size of each. Default: no limit.

    Returns:
        Tuple of `Dim`s.

    Example:
        >>> torch.export.dims("height", "width", max=8)
        (Dim('height', min=0, max=8), Dim('width', min=0, max=8))
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class Constraint(NamedTuple):
    """A dimension of a tensor with its range.

    Args:
        tensor: A tensor.
        dim: Index of the dimension.
        range: A `ValueRanges` with the smallest and largest size.

    Example:
        >>> from torchlite.export.dynamic_shapes import ValueRanges
        >>> torch.export.Constraint(torch.ones(3), 0, ValueRanges(1, 4)).range
        VR[1, 4]
    """

    tensor: Any
    dim: int
    range: ValueRanges


class ShapesCollection:
    """Dynamic shapes by tensor: `shapes[x] = {0: batch}`.

    It replaces a tree of `dynamic_shapes` where the arguments are a large tree.

    Example:
        >>> x, shapes = torch.ones(2, 3), torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim("batch")}
        >>> program = torch.export.export(torch.nn.ReLU(), (x,), dynamic_shapes=shapes)
        >>> program.module()(torch.ones(5, 3)).shape
        torch.Size([5, 3])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._references: list[Any] = []

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, (Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError(f"Shapes assigned to input is a mismatch: {self._shapes[id(t)]} != {shape}")
        self._references.append(t)
        self._shapes[id(t)] = shape

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.get(id(t))

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """Returns the tree for `dynamic_shapes=`.

        Args:
            m: The module.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments. Default: none.

        Raises:
            ValueError: A tensor of the collection is no argument.
        """
        seen = set()

        def found(leaf: Any) -> Any:
            seen.add(id(leaf))
            return self._shapes.get(id(leaf))

        names = bind_arguments(m, args, kwargs)
        tree = pytree.tree_map(found, names)
        if set(self._shapes) - seen:
            raise ValueError("Some tensors that were assigned shapes were not found in args.")
        return tree


class AdditionalInputs:
    """Additional example inputs: sizes that differ from those of the first example vary.

    Example:
        >>> more = torch.export.AdditionalInputs()
        >>> more.add((torch.ones(5, 3),))
        >>> more.dynamic_shapes(torch.nn.ReLU(), (torch.ones(2, 3),))
        {'input': {0: DimHint(DYNAMIC)}}
    """

    def __init__(self) -> None:
        self._examples: list[tuple[Any, Any]] = []

    def add(self, args: Any, kwargs: Any = None) -> None:
        """Adds an example.

        Args:
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments. Default: none.

        Raises:
            AssertionError: ``args`` is not a tuple.
        """
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: Any, kwargs: Any = None) -> Any:
        """Returns the tree for `dynamic_shapes=`.

        Args:
            m: The module.
            args: Tuple of positional arguments of the first example.
            kwargs: Dict of its keyword arguments. Default: none.
        """
        others = [bind_arguments(m, a, k) for a, k in self._examples]

        def found(first: Any, *rest: Any) -> Any:
            if not isinstance(first, Tensor):
                return None if all(r == first for r in rest) else Dim.DYNAMIC
            varying = [d for d, n in enumerate(first.shape) if any(r.shape[d] != n for r in rest)]
            return dict.fromkeys(varying, Dim.DYNAMIC) or None

        return pytree.tree_map(found, bind_arguments(m, args, kwargs), *others)

    def verify(self, ep: Any) -> None:
        """Runs a program with each of the examples.

        Args:
            ep: An `ExportedProgram`.

        Raises:
            AssertionError: The program does not accept an example.
        """
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def bind_arguments(m: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return arguments by `forward`'s parameter names."""
    signature = inspect.signature(m.forward)
    return dict(signature.bind(*args, **(kwargs or {})).arguments)


def dims_per_leaf(m: Any, args: tuple, kwargs: dict, shapes: Any) -> list[dict[int, Any]]:
    """Return the dimension specs of each leaf of `(args, kwargs)`, in order. Raise UserError with PyTorch's message for
    a mismatched tree.
    """
    leaves = pytree.tree_leaves((args, kwargs))
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        shapes = shapes.dynamic_shapes(m, args, kwargs)
    if not shapes:
        return [{} for _ in leaves]
    found: dict[int, Any] = {}
    for i, (name, value, said) in enumerate(_specs_by_name(bind_arguments(m, args, kwargs), shapes)):
        for leaf, one in _check_structure(value, said, f"[{name!r}]" if isinstance(shapes, Mapping) else f"[{i}]"):
            found[id(leaf)] = name, one
    return [_parse_dims(leaf, *found.get(id(leaf), ("", None))) for leaf in leaves]


def _specs_by_name(given: dict[str, Any], shapes: Any) -> Iterator[tuple[str, Any, Any]]:
    """Return arguments by name with their shape specs."""
    from ._errors import UserError

    if isinstance(shapes, Mapping):
        if set(shapes) != set(given):
            raise UserError(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {list(given)} "
                f"of `inputs`, but here they are {list(shapes)}. Alternatively, you could also ignore arg names "
                "entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
            )
        shapes = [shapes[name] for name in given]
    if len(shapes) != len(given):
        raise UserError(
            "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has "
            f"{len(given)} elements, but `dynamic_shapes` has {len(shapes)} elements"
        )
    for (name, value), shape in zip(given.items(), shapes, strict=True):
        yield name, value, shape


def _is_shape_spec(said: Any) -> bool:
    """True if an object is the shape spec of one tensor."""
    if said is None or isinstance(said, (_DimHint, Dim)):
        return True
    items = said.values() if isinstance(said, Mapping) else said
    return isinstance(said, (Mapping, list, tuple)) and all(
        s is None or isinstance(s, (int, Dim, _DimHint)) for s in items
    )


def _check_structure(value: Any, said: Any, path: str) -> Iterator[tuple[Any, Any]]:
    from ._errors import UserError

    if said is None:
        return
    if isinstance(value, Tensor) or pytree.tree_is_leaf(value):
        if not _is_shape_spec(said):
            _refuse_dimension(said, path)
            raise UserError(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {said!r}")
        yield value, said
        return
    children, spec = pytree.tree_flatten(value, is_leaf=lambda x: x is not value)
    if isinstance(said, Mapping) and spec.type in (dict,) or isinstance(said, Mapping) and isinstance(value, Mapping):
        if set(said) != set(value):
            raise UserError(
                f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has keys "
                f"{list(value)}, but `dynamic_shapes` has keys {list(said)}"
            )
        for key in value:
            yield from _check_structure(value[key], said[key], f"{path}[{key!r}]")
        return
    if isinstance(value, (list, tuple)) and isinstance(said, Mapping):
        raise UserError(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has a {type(value)}, "
            f"but `dynamic_shapes` has a {type(said)} there"
        )
    if type(said) is type(value) and not isinstance(said, (list, tuple)):
        parts = pytree.tree_leaves(said, is_leaf=lambda x: x is not said)
    else:
        parts = list(said.values()) if isinstance(said, Mapping) else list(said)
    if len(parts) != len(children):
        raise UserError(
            "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has "
            f"{len(children)} elements, but `dynamic_shapes` has {len(parts)}"
        )
    for i, (child, one) in enumerate(zip(children, parts, strict=True)):
        yield from _check_structure(child, one, f"{path}[{i}]")


def _refuse_dimension(said: Any, path: str) -> None:
    """Raise UserError with PyTorch's message for a part of a tensor's spec that is no dimension, such as a name."""
    from ._errors import UserError

    if not isinstance(said, (Mapping, list, tuple)):
        return
    for place, one in said.items() if isinstance(said, Mapping) else enumerate(said):
        if one is None or isinstance(one, (int, Dim, _DimHint)):
            continue
        where = f"dimension mapped to index {place}" if isinstance(said, Mapping) else f"dimension #{place}"
        raise UserError(
            f"Unexpected {where} in input tensor shape {said} specified at `dynamic_shapes{path}` (expected None, an "
            f"int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC, but got {one!r} instead)"
        )


def _parse_dims(leaf: Any, name: str, said: Any) -> dict[int, Any]:
    """Return the dynamic dimensions of a leaf."""
    from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

    from ._errors import UserError

    if said is None or not isinstance(leaf, Tensor):
        return {}
    if isinstance(said, (_DimHint, Dim)):
        said = dict.fromkeys(range(leaf.ndim), said)
    if not isinstance(said, Mapping):
        if len(said) != leaf.ndim:
            raise UserError(
                f"Expected dynamic shape spec {said} to have {leaf.ndim} dimensions, but it has {len(said)}"
            )
        said = dict(enumerate(said))
    found = {}
    for dim, one in said.items():
        if not -leaf.ndim <= dim < leaf.ndim:
            continue  # no size is specified
        if isinstance(one, int) and one != leaf.shape[dim]:
            raise ConstraintViolationError(
                f"Static shape constraint of {one} does not match input size of {leaf.shape[dim]}, for "
                f"L[{name!r}].size()[{dim}]"
            )
        if isinstance(one, Dim) or isinstance(one, _DimHint) and one.type != "STATIC":
            found[dim % leaf.ndim] = one
    return found


__dir__ = make_module_dir(globals(), hidden="NamedHint bind_arguments dims_per_leaf replace_names")
