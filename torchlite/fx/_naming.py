"""Names in generated code: qualified names of functions, type names, and Namespace for unique value names."""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import keyword
import re
import types
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._types.package_name import is_torchlite_object, package_name
from .._types.python_source import attribute

# Namespaces searched, in this order, for torchlite functions whose own module is private.
_PUBLIC_NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.nn.init")


def torchlite_package() -> Any:
    """Return the torchlite package."""
    return importlib.import_module(package_name())


def resolve_public_name(name: str) -> Any:
    """Return the object of a dotted name under `torch`, for example `torch.nn.functional.relu`. Raise AttributeError if
    there is none.

    >>> from torchlite.fx._naming import resolve_public_name
    >>> resolve_public_name("torch.ops.aten.add.Tensor")
    <OpOverload(op='aten.add', overload='Tensor')>
    """
    found = torchlite_package()
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def _is_named(name: str, thing: Any) -> bool:
    """True if a dotted name under `torch` is this object."""
    try:
        found = resolve_public_name(name)
        return found is thing or getattr(found, "__wrapped__", None) is thing  # patched while a tracer runs
    except (AttributeError, ImportError, RuntimeError):
        return False


# Functions in `torch` and in `torch.nn.functional`, where PyTorch has two: use the latter.
_FUNCTIONAL_NAMES = frozenset(
    (
        "adaptive_max_pool1d alpha_dropout batch_norm binary_cross_entropy_with_logits celu cosine_embedding_loss "
        "ctc_loss dropout embedding embedding_bag feature_alpha_dropout group_norm hinge_embedding_loss instance_norm "
        "kl_div layer_norm log_softmax margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool3d "
        "poisson_nll_loss rms_norm rrelu selu softmax threshold triplet_margin_loss"
    ).split()
)
# Functions of `torch.nn.functional` implemented in C++ in PyTorch; they record arguments as passed.
BUILTIN_FUNCTIONAL_NAMES = frozenset(
    (
        "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d "
        "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ "
        "leaky_relu_ linear logsigmoid native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle "
        "pixel_unshuffle prelu relu_ rrelu_ scaled_dot_product_attention selu_ softplus softshrink threshold_"
    ).split()
)


def _find_public_name(func: Any) -> str | None:
    """Return the public dotted name of a torchlite function or class, None if it has none."""
    name = getattr(func, "__name__", None)
    if not isinstance(name, str):
        return None
    module = getattr(func, "__module__", None) or ""
    if module.startswith("torch.ops"):  # an op overload
        return f"{module}.{name}"
    qualified = getattr(func, "__qualname__", None) or name
    if getattr(Tensor, name, None) is func and qualified == f"Tensor.{name}":
        return f"torch.Tensor.{name}"
    spaces = [*_PUBLIC_NAMESPACES]
    if name in _FUNCTIONAL_NAMES:
        spaces[:2] = reversed(spaces[:2])
    if is_torchlite_object(module):
        theirs = "torch" + module.removeprefix(module.partition(".")[0])
        if theirs not in spaces:
            spaces.append(theirs)
        elif theirs == "torch.nn.functional":
            spaces[:2] = ["torch.nn.functional", "torch"]
    for space in spaces:
        if _is_named(f"{space}.{name}", func):
            return f"{space}.{name}"
    if getattr(Tensor, name, None) is func:
        return f"torch.Tensor.{name}"
    return None


@functools.lru_cache(maxsize=4096)
def _find_public_name_cached(func: Any) -> str | None:
    return _find_public_name(func)


def public_name(thing: Any) -> str | None:
    """Return the dotted name under `torch` of a torchlite object, None for others.

    >>> import torchlite as torch
    >>> from torchlite.fx._naming import public_name
    >>> public_name(torch.nn.functional.relu), public_name(torch.relu), public_name(torch.ops.aten.add.Tensor)
    ('torch.nn.functional.relu', 'torch.relu', 'torch.ops.aten.add.Tensor')
    >>> public_name(len)
    """
    module = getattr(thing, "__module__", None)
    if not isinstance(module, str) or not (is_torchlite_object(module) or module.partition(".")[0] == "torch"):
        return None
    try:
        return _find_public_name_cached(thing)
    except TypeError:  # unhashable
        return _find_public_name(thing)


def qualified_name(func: Callable[..., Any]) -> str:
    """Return a function's name in generated code: `len`, `torch.relu`, `package.module.function`.

    Raise RuntimeError for a lambda without source.
    """
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    found = public_name(func)
    if found is not None:
        return found
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except (OSError, TypeError, SyntaxError, IndexError) as error:
            raise RuntimeError("Unable to represent lambda") from error
    if getattr(func, "__module__", None) is None:
        raise RuntimeError(f"cannot find module for {func}")
    module = func.__module__
    if is_torchlite_object(module):
        module = "torch" + module.removeprefix(module.partition(".")[0])
    return f"{module}.{name}"


def type_repr(thing: Any) -> str:
    """Return a type as an annotation: `int`, `torch.Tensor`, `typing.List[int]`.

    >>> from torchlite.fx._naming import type_repr
    >>> type_repr(int), type_repr(...), type_repr(list[int])
    ('int', '...', 'list[int]')
    """
    if isinstance(thing, type) and not isinstance(thing, types.GenericAlias):
        if thing.__module__ == "builtins":
            return thing.__qualname__
        found = public_name(thing)
        return found or f"{_public_module_name(thing.__module__)}.{thing.__qualname__}"
    if thing is ...:
        return "..."
    return thing.__name__ if isinstance(thing, types.FunctionType) else repr(thing)


def _public_module_name(module: str) -> str:
    return "torch" + module.removeprefix(module.partition(".")[0]) if is_torchlite_object(module) else module


def is_magic(name: str) -> bool:
    """True for a double-underscore name such as `__add__`."""
    return name.startswith("__") and name.endswith("__")


_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """Return a name in snake case.

    >>> from torchlite.fx._naming import snake_case
    >>> snake_case("BatchNorm2d")
    'batch_norm2d'
    """
    return _CAPITAL.sub(r"_\1", name).lower()


def format_target(base: str, target: str) -> str:
    """Return the expression of a dotted attribute; parts that are no identifier use `getattr`.

    >>> from torchlite.fx._naming import format_target
    >>> format_target("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    for part in target.split("."):
        base = attribute(base, part)
    return base


_INVALID_CHARACTERS = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED_NAME = re.compile(r"(.*?)_(\d+)$")
# Reserved names, with the object they denote.
_TAKEN: dict[str, Any] = {**dict.fromkeys(keyword.kwlist), **vars(builtins)}


def reserve_name(name: str, thing: Any) -> None:
    """Reserve a name in all generated code for an object."""
    _TAKEN[name] = thing


class Namespace:
    """Names of a graph, unique and without shadowing builtins."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return an unused name similar to the candidate; the same object gets the same name.

        >>> from torchlite.fx._naming import Namespace
        >>> names = Namespace()
        >>> [names.create_name(name, None) for name in ("add", "add", "layers.0", "max")]
        ['add', 'add_1', 'layers_0', 'max_1']
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _INVALID_CHARACTERS.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED_NAME.match(candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered and numbered[1] else (candidate, None)
        if number is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if candidate in _TAKEN and (obj is None or _TAKEN[candidate] is not obj):
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Assign a name to an object without one."""
        if self._obj_to_name.setdefault(obj, name) != name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
