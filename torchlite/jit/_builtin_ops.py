"""TorchScript's builtin operators: lookup by name and overload resolution by argument types.

Lists, strings and numbers go to `_scalar_ops`, tensors to the `torch.ops.aten` overload whose schema matches. The
choice is cached by argument classes.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite.backends import mha

from .._aten import QUANTIZED_LAYERS
from .._aten.allowlist import allowed_packet, check_split_count, limit_repeat_counts
from .._dispatch.call import Tensor
from .._dispatch.dispatch_state import MODE
from .._types import dtypes
from .._types.devices import device as device_type
from ..amp.autocast_mode import is_any_autocast_enabled
from . import _transformer_ops
from ._dtype_codes import code_to_dtype, code_to_layout, code_to_memory_format, to_code
from ._list_ops import safe_hash, to_list
from ._nontensor_ops import NONTENSOR_OPS
from ._runtime import LOOKUP, METHODS, iterate, raise_error
from ._str_ops import format_value
from ._value_limits import count_visited

TENSORS = (Tensor, torch.nn.Parameter)
_CODES: dict[str, Callable] = {
    "ScalarType": code_to_dtype,
    "Layout": code_to_layout,
    "MemoryFormat": code_to_memory_format,
}
_NUMBERS = (int, float, bool, complex)


def _matches_type(kind: Any, value: Any, loose: bool, level: int = 0) -> bool:
    """True if a value matches a schema type; `loose` also accepts numbers for tensors and the reverse."""
    if level == len(kind.suffixes):
        return _matches_base_type(kind.base, value, loose)
    suffix = kind.suffixes[level]
    if suffix == "?":
        return value is None or _matches_type(kind, value, loose, level + 1)
    if isinstance(value, (list, tuple)):
        return all(_matches_type(kind, item, loose, level + 1) for item in value)
    if isinstance(value, Tensor):
        return False
    return suffix != "[]" and _matches_type(kind, value, loose, level + 1)


def _matches_base_type(base: str, value: Any, loose: bool) -> bool:
    tensor = isinstance(value, Tensor)
    if base == "Tensor":
        return tensor or loose and isinstance(value, _NUMBERS)
    if base in ("int", "SymInt"):
        return isinstance(value, int) and (loose or not isinstance(value, bool)) or loose and tensor
    if base == "float":
        return isinstance(value, (float, int)) and not isinstance(value, bool) or loose and tensor
    if base == "bool":
        return isinstance(value, bool) or loose and (isinstance(value, int) or tensor)
    if base in ("Scalar", "complex"):
        return isinstance(value, _NUMBERS) or loose and tensor
    if base in _CODES:
        return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, dtypes.dtype)
    if base == "str":
        return isinstance(value, str)
    if base == "Device":
        return isinstance(value, (device_type, str))
    return value is not None and not tensor


def _conversion_for(kind: Any, value: Any) -> Callable | None:
    """Return the conversion of a value of this class for an overload, None for none."""
    if kind.base in _CODES:
        return _CODES[kind.base]
    if isinstance(value, Tensor) and kind.base != "Tensor":
        return lambda v: v.item() if isinstance(v, Tensor) else v
    if kind.suffixes and isinstance(value, (list, tuple)) and kind.base in ("int", "SymInt", "float"):
        if any(isinstance(item, Tensor) for item in value):
            return _are_numbers
    return None


_PLAIN_TYPES = frozenset((*TENSORS, *_NUMBERS, str, type(None), dtypes.dtype, device_type))


def _is_plain(value: Any, depth: int = 3) -> bool:
    """True if a value has no class that overrides operators."""
    if value.__class__ is list or value.__class__ is tuple:
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    return value.__class__ in _PLAIN_TYPES


def _are_numbers(values: Any) -> Any:
    return [v.item() if isinstance(v, Tensor) else v for v in values]


_CACHE_SIZE = 64  # cached choices per operator; argument classes may come from a file


class BuiltinOperator:
    """An operator name: dispatches on the classes of its arguments."""

    __module__ = "torchlite.jit"

    def __init__(self, name: str, packet: Any, own: Callable | None = None):
        self.name, self._packet, self._scalar, self._own = name, packet, NONTENSOR_OPS.get(name), own
        self._runs: dict[Any, Callable] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: Any = tuple([a.__class__ if a.__class__ is not list else frozenset(map(type, a)) for a in args])
        if kwargs:
            key = key, tuple(kwargs), tuple([a.__class__ for a in kwargs.values()])
        run = self._runs.get(key)
        if run is None:
            run = self.find_cached_implementation(args, kwargs)
            if not any(a.__class__ is list for a in kwargs.values()):
                if len(self._runs) >= _CACHE_SIZE:
                    self._runs.clear()
                self._runs[key] = run
        return run(*args, **kwargs)

    def find_cached_implementation(self, args: tuple, kwargs: dict) -> Callable:
        """Return the cached implementation for these argument classes."""
        found = self.find_implementation(args, kwargs)
        return found.call if isinstance(found, CallPlan) else found

    def find_implementation(self, args: tuple, kwargs: dict) -> Any:
        """Return a call plan or function for these argument classes."""
        first = args[0] if args else None
        if (
            self._scalar is not None
            and not isinstance(first, Tensor)
            and (first.__class__ not in _NUMBERS or not any(isinstance(a, Tensor) for a in args))
        ):
            return self._scalar
        if self._own is not None:
            return self._own
        if self._packet is None:
            raise RuntimeError(f"aten::{self.name} does not take {', '.join(type(a).__name__ for a in args)}")
        try:
            find_implementation = self._choose_overload(args, kwargs)
        except NotImplementedError:
            if "out" not in kwargs:
                raise
            return self._copy_to_out
        if find_implementation is not None:
            return find_implementation
        kinds = ", ".join([type(a).__name__ for a in args] + [f"{n}={type(a).__name__}" for n, a in kwargs.items()])
        raise RuntimeError(f"Arguments for call are not valid: no overload of aten::{self.name} takes ({kinds[:500]})")

    def _copy_to_out(self, *args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        """Write the operator's result to an existing tensor, where no out overload exists."""
        return out.copy_(self(*args, **kwargs))

    def _choose_overload(self, args: tuple, kwargs: dict) -> Any:
        start = len(args)
        kind = int if args and isinstance(args[-1], int) else Tensor
        while start and isinstance(args[start - 1], kind):
            start -= 1
        listed = (*args[:start], list(args[start:])) if start < len(args) else None
        writes = any(name.startswith("out") for name in kwargs)
        for loose in (False, True):
            for name in self._packet.overloads():
                if ("out" in name.split("_")) is not writes or "Dimname" in name:
                    continue
                found = _match_overload(getattr(self._packet, name), args, kwargs, loose)
                if found is not None:
                    return found
                inner = None if listed is None else _match_overload(getattr(self._packet, name), listed, kwargs, loose)
                if inner is not None:  # `x.view(2, 3)`: values instead of a list
                    return VariadicCallPlan(inner, start)
        return None


class VariadicCallPlan:
    """Call plan whose last argument collects all further arguments in a list."""

    def __init__(self, plan: CallPlan, start: int):
        self.plan, self.start = plan, start

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.plan.call(*self.gathered(args), **kwargs)

    def gathered(self, values: Any) -> list:
        """Return the arguments with the trailing ones collected."""
        return [*values[: self.start], list(values[self.start :])]


def _match_overload(overload: Any, args: tuple, kwargs: dict, loose: bool) -> CallPlan | None:
    """Return the call plan of an overload for such arguments, None if its schema does not match."""
    try:
        schema = overload._schema
    except (NotImplementedError, RuntimeError):
        return None
    arguments = schema.arguments
    places = {a.name: a for a in arguments}
    positional = [a for a in arguments if not a.kwarg_only]
    extra: dict[str, Any] = {}
    if len(args) > len(positional):
        keyword_only = [a for a in arguments if a.kwarg_only]
        if not loose or len(args) > len(arguments):
            return None
        for a, value in zip(keyword_only, args[len(positional) :], strict=False):
            extra[a.name] = value
    given = dict(zip([a.name for a in positional], args, strict=False)) | extra
    if any(name in given or name not in places for name in kwargs):
        return None
    given |= kwargs
    if any(a.name not in given and not a.has_default for a in arguments):
        return None
    if not all(_matches_type(places[name].type, value, loose) for name, value in given.items()):
        return None
    plan = CallPlan()
    plan.overload, plan.places = overload, places
    plan.converts = [_conversion_for(a.type, value) for a, value in zip(positional, args, strict=False)]
    plan.named = {name: _conversion_for(places[name].type, value) for name, value in kwargs.items()}
    plan.count, plan.names = len(positional), [a.name for a in (*positional, *(a for a in arguments if a.kwarg_only))]
    plan.defaults = {a.name: a.default_value for a in arguments if a.has_default and a.name in kwargs}
    plan.scaled = bool(args) and len(args) <= len(positional) and positional[len(args) - 1].name == "alpha"
    plan.is_plain = all(_is_plain(value) for value in given.values())
    if not extra and not any(plan.converts) and not plan.defaults and not plan.scaled:
        plan.call = plan.target(bool(kwargs))
    else:
        plan.call = plan.run
    return plan


class CallPlan:
    """Mapping of arguments of given classes to an overload."""

    overload: Any
    places: dict[str, Any]
    converts: list
    named: dict[str, Any]
    count: int
    names: list[str]  # argument names, positional ones first
    defaults: dict[str, Any]
    scaled: bool
    is_plain: bool
    call: Callable  # implementation that takes the arguments unchanged

    @property
    def by_position(self) -> bool:
        """True if positional arguments cannot be passed by keyword."""
        return bool(self.overload._run or self.overload._find_run()) and self.overload._by_position

    def target(self, named: bool) -> Callable:
        """Return the overload's implementation, without schema checks, as arguments are already matched."""
        overload = self.overload
        run = overload._run or overload._find_run()
        if named and overload._by_position:
            return limit_repeat_counts(overload, overload)
        return limit_repeat_counts(overload, overload._plain if self.is_plain else run)

    def code(self, name: str) -> Any:
        """Return the decoder of a keyword argument given as a number code."""
        return _CODES.get(self.places[name].type.base)

    def is_default(self, name: str, value: Any) -> bool:
        """True if an argument equals its default."""
        return name in self.defaults and _is_default(value, self.defaults[name])

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call the overload with a program's arguments."""
        values = [v if c is None else c(v) for c, v in zip(self.converts, args, strict=False)]
        if self.scaled and values[-1] == 1:
            values.pop()
        for name, value in zip(self.names[self.count :], args[self.count :], strict=False):
            kwargs[name] = value
        keywords = {}
        for name, value in kwargs.items():
            if not self.is_default(name, value):
                convert = self.named.get(name) or self.code(name)
                keywords[name] = value if convert is None else convert(value)
        return self.target(bool(keywords))(*values, **keywords)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or value.__class__ is default.__class__ and value.__class__ in _NUMBERS and value == default


# -- operators without tensor schema -----------------------------------------------------------------


def _tensor_size(x: Tensor, dim: Any = None) -> Any:
    return list(x.shape) if dim is None else x.shape[dim]


def _make_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    count_visited(data)
    made = torch.tensor(_to_plain(data), dtype=code_to_dtype(dtype), device=device)
    return made.requires_grad_() if requires_grad else made


def _to_plain(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_to_plain(item) for item in data]
    return data.item() if isinstance(data, Tensor) else data


def _as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    count_visited(data)
    return torch.as_tensor(data, dtype=code_to_dtype(dtype), device=device)


def _make_device(name: Any, index: Any = None) -> device_type:
    return device_type(name) if index is None else device_type(name, index)


def _emit_warning(message: Any, stacklevel: int = 2) -> None:
    warnings.warn(format_value(message), stacklevel=3)


def _set_grad_enabled(mode: bool) -> None:
    torch.set_grad_enabled(bool(mode))


def _autocast(*rest: Any) -> bool:
    return is_any_autocast_enabled()


def _list_of(x: Any) -> list:
    return list(iterate(x)) if isinstance(x, Tensor) else NONTENSOR_OPS["list"](x)


def _as_lists(x: Tensor) -> Any:
    check_split_count(x, x.numel())
    return x.tolist()


def _find_fast_path() -> bool:
    return mha.get_fastpath_enabled()


def _call_scripted_to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`to` of a program: by dtype code, device or another tensor."""
    values = list(args)
    if values and values[0].__class__ is int:
        values[0] = code_to_dtype(values[0])
    elif len(values) > 1 and isinstance(values[0], (device_type, str, type(None))) and values[1].__class__ is int:
        values[1] = code_to_dtype(values[1])
    keywords = {n: v for n, v in kwargs.items() if v is not None and n not in ("layout", "pin_memory")}
    if "dtype" in keywords:
        keywords["dtype"] = code_to_dtype(keywords["dtype"])
    if "memory_format" in keywords:
        keywords["memory_format"] = code_to_memory_format(keywords["memory_format"])
    while values and values[-1].__class__ in (type(None), bool):
        last = values.pop()
        place = len(values) - (
            2
            if values
            and isinstance(values[0], (device_type, str))
            and len(values) > 1
            and isinstance(values[1], dtypes.dtype)
            else 1
        )
        if last is True:
            keywords[("non_blocking", "copy")[max(0, place)]] = True
    if values and values[-1].__class__ is int:
        keywords["memory_format"] = code_to_memory_format(values.pop())
        while values and values[-1].__class__ in (type(None), bool):
            values.pop()
    return x.to(*[v for v in values if v is not None], **keywords)


def _index(x: Tensor, indices: list) -> Tensor:
    return x[tuple(slice(None) if i is None else i for i in indices)]


def _type_of(where: Any) -> Any:
    if isinstance(where, device_type):
        return where.type
    return where.type()


class _NoGrad:
    """`torch.no_grad()` of a program."""

    _script_context = True

    def __init__(self, mode: bool = False):
        self._mode = mode

    def __enter__(self) -> None:
        self._before = MODE.grad
        torch.set_grad_enabled(self._mode)

    def __exit__(self, *exc: Any) -> None:
        torch.set_grad_enabled(self._before)


def _are_equal(a: Any, b: Any) -> bool:
    return bool(torch.equal(a, b))


def _logical_not(a: Any) -> bool:
    return not a


# Own implementations by name; they take precedence over `torch.ops.aten`.
_OWN: dict[str, Callable] = {
    "size": _tensor_size,
    "tensor": _make_tensor,
    "as_tensor": _as_tensor,
    "device": _make_device,
    "warn": _emit_warning,
    "len": len,
    "is_grad_enabled": lambda: MODE.grad,
    "set_grad_enabled": _set_grad_enabled,
    "is_autocast_enabled": _autocast,
    "is_autocast_cpu_enabled": _autocast,
    "is_scripting": lambda: True,
    "is_tracing": lambda: False,
    "wait": lambda future: future.wait(),
    "list": _list_of,
    "to": _call_scripted_to,
    "backends.mha.get_fastpath_enabled": _find_fast_path,
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
    "__not__": _logical_not,
    "__contains__": lambda items, item: bool((items == item).any()),
    "dim": lambda x: x.ndim,
    "numel": lambda x: x.numel(),
    "numpy_T": lambda x: x.T,
    "item": lambda x: x.item(),
    "str": str,
    "stride": lambda x, *dim: x.stride(*dim) if dim else list(x.stride()),
    "is_floating_point": lambda x: x.is_floating_point(),
    "is_complex": lambda x: x.is_complex(),
    "equal": _are_equal,
    "storage_offset": lambda x: x.storage_offset(),
    "tolist": _as_lists,
    "index": _index,
    "is_contiguous": lambda x, memory_format=None: (
        x.is_contiguous()
        if memory_format is None
        else x.is_contiguous(memory_format=code_to_memory_format(memory_format))
    ),
    "get_device": lambda x: x.get_device(),
    "is_signed": lambda x: x.dtype.is_signed,
    "requires_grad_": lambda x, mode=True: x.requires_grad_(mode),
    "element_size": lambda x: x.element_size(),
    "backward": lambda x, gradient=None, keep=None, create=False, inputs=None: x.backward(gradient, keep, create),
    "floordiv": lambda a, b: a // b,
    "__and__": lambda a, b: a & b,
    "__or__": lambda a, b: a | b,
    "__xor__": lambda a, b: a ^ b,
    "__lshift__": lambda a, b: a << b,
    "__rshift__": lambda a, b: a >> b,
    "__getitem__": lambda a, b: a[b],
    "_set_item": lambda x, index, value: x.__setitem__(index, value),
    "Int": lambda x: int(x.item()),
    "Float": lambda x: float(x.item()),
    "Bool": lambda x: bool(x.item()),
    "IntImplicit": lambda x: int(x.item()),
    "FloatImplicit": lambda x: float(x.item()),
    "ScalarImplicit": lambda x: x.item(),
    "type_as": lambda x, other: x.to(other.dtype).to(other.device),
    "_transformer_encoder_layer_fwd": _transformer_ops.encoder_layer,
    "_native_multi_head_attention": _transformer_ops.attention,
    "to_padded_tensor": _transformer_ops.to_padded,
    "_nested_tensor_from_mask_left_aligned": _transformer_ops.is_left_aligned,
    "_nested_tensor_from_mask": _transformer_ops.nested_from_mask,
    "no_grad": _NoGrad,
    "enable_grad": lambda: _NoGrad(True),
    "inference_mode": lambda mode=True: _NoGrad(not mode),
    "is_inference": lambda x: False,
    "cpu": lambda x: x.cpu(),
    "is_coalesced": lambda x: x.is_coalesced(),
    "_shape_as_tensor": lambda x: torch.tensor(list(x.shape)),
    "grad": lambda outputs, inputs, grads=None, keep=None, create=False, unused=False: list(
        torch.autograd.grad(outputs, inputs, grads, keep, create, unused)
    ),
    "qscheme": lambda x: to_code(x.qscheme()),
    "sym_size": _tensor_size,
    "hash": safe_hash,
    "get_num_threads": lambda: torch.get_num_threads(),
}


def _number_to_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(value)


def _make_min_max(name: str) -> Callable:
    python = NONTENSOR_OPS[name]

    def pick(*args: Any) -> Any:
        return python(*args) if len(args) == 1 or not isinstance(args[0], list) else python(args)

    return pick


_PRIM: dict[str, Callable] = {
    "RaiseException": raise_error,
    "dtype": lambda x: to_code(x.dtype),
    "device": lambda x: x.device,
    "NumToTensor": _number_to_tensor,
    "min": _make_min_max("min"),
    "max": _make_min_max("max"),
    "abs": lambda x: abs(x),
    "requires_grad": lambda x: x.requires_grad,
    "type": _type_of,
    "is_nested": lambda x: not isinstance(x, Tensor),
    "data": lambda x: x.detach(),
    "grad": lambda x: x.grad,
    "layout": lambda x: to_code(x.layout),
    "is_cuda": lambda x: x.is_cuda,
    "shape": lambda x: list(x.shape),
    "is_sparse": lambda x: x.is_sparse,
    "is_sparse_csr": lambda x: x.is_sparse_csr,
    "ndim": lambda x: x.ndim,
    "index": lambda d: d.index,
    "itemsize": lambda x: x.element_size(),
    "nbytes": lambda x: x.nbytes,
    "is_cpu": lambda x: x.device.type == "cpu",
    "is_meta": lambda x: x.device.type == "meta",
    "name": lambda x: None,
    "unchecked_unwrap_optional": lambda x: x,
    "unwrap_optional": lambda x: x,
    "is_quantized": lambda x: x.is_quantized,
    "is_mkldnn": lambda x: False,
    "is_mps": lambda x: False,
    "is_xpu": lambda x: False,
    "is_vulkan": lambda x: False,
    "is_xla": lambda x: False,
    "is_ipu": lambda x: False,
    "is_maia": lambda x: False,
    "is_mtia": lambda x: False,
    "rangelist": lambda n: to_list(range(n)),
    "TupleUnpack": tuple,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "H": lambda x: x.H,
    "mH": lambda x: x.mH,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "is_leaf": lambda x: x.is_leaf,
    "retains_grad": lambda x: x.retains_grad,
    "output_nr": lambda x: x.output_nr,
    "names": lambda x: [None] * x.ndim,
    "_version": lambda x: x._version,
}


def _div_version_3(a: Any, b: Any, *rest: Any, **kwargs: Any) -> Any:
    """Division before version 4: integer tensors divide to integers."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if not any(_has_fraction(v) for v in (a, b)) and not rest and not kwargs:
            return torch.div(a, b, rounding_mode="trunc")
    return find_operator("torch.div", 10)(a, b, *rest, **kwargs)


def _has_fraction(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_floating_point() or value.is_complex()
    return isinstance(value, (float, complex))


def _full_version_4(size: Any, value: Any, *rest: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """`full` before version 5: default dtype for every fill value."""
    if "out" in kwargs:
        return find_operator("torch.full", 10)(size, value, **kwargs)
    if dtype is None:
        dtype = to_code(torch.get_default_dtype())
    return find_operator("torch.full", 10)(size, value, *rest, dtype=dtype, **kwargs)


def _make_legacy_steps(name: str) -> Callable:
    def run(start: Any, end: Any, steps: Any = None, *rest: Any, **kwargs: Any) -> Any:
        return find_operator(f"torch.{name}", 10)(start, end, 100 if steps is None else steps, *rest, **kwargs)

    return run


# Operators whose meaning changed: name to (version of the change, old implementation).
_OLD: dict[str, tuple[int, Callable]] = {
    "torch.div": (4, _div_version_3),
    "torch.div_": (4, lambda a, b: a.copy_(_div_version_3(a, b))),
    "torch.full": (5, _full_version_4),
    "torch.linspace": (8, _make_legacy_steps("linspace")),
    "torch.logspace": (9, _make_legacy_steps("logspace")),
}


_OPERATOR_CACHE: dict[str, Any] = {}  # operators looked up so far


def _resolve_name(path: str) -> Any:
    found = _OPERATOR_CACHE.get(path)
    if found is None:
        found = _lookup_current(path)
        if found is not None:  # a missing op may be registered later
            _OPERATOR_CACHE[path] = found
    return found


def _lookup_current(path: str) -> Any:
    root, _, name = path.partition(".")
    if root == "ops":
        space, _, name = name.partition(".")
        if space == "prim":
            return _PRIM.get(name)
        if space != "aten":
            return allowed_packet(space, name)
    if name in QUANTIZED_LAYERS:
        return functools.partial(_call_with_dtype, allowed_packet("aten", name))
    if not name.replace(".", "").isidentifier() or name.startswith("__") and name not in NONTENSOR_OPS:
        return None
    packet = allowed_packet("aten", name)
    if packet is None and name not in _OWN and name not in NONTENSOR_OPS:
        return None
    return BuiltinOperator(name, packet, _OWN.get(name))


def _call_with_dtype(packet: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Call an op of packed weights with the dtype of a number code, which some of them take."""
    if dtype is not None:
        kwargs["dtype"] = code_to_dtype(dtype)
    return packet(*args, **kwargs)


def find_operator(path: str, version: int) -> Any:
    """Return the operator of a name such as `torch.add` with the semantics of the file's version, None if there is
    none.
    """
    changed = _OLD.get(path)
    if changed is not None and version < changed[0]:
        return changed[1]
    return _resolve_name(path)


def _make_cast(name: str) -> Callable:
    def cast(x: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"'{type(x).__name__}' has no method '{name}' in TorchScript")
        return getattr(x, name)()

    return cast


# Methods that convert a tensor to Python values.
METHODS.update(
    {
        name: _make_cast(name)
        for name in (
            "byte",
            "char",
            "double",
            "float",
            "int",
            "long",
            "half",
            "bfloat16",
            "bool",
            "short",
            "cpu",
            "cuda",
        )
    }
)
LOOKUP[:] = [find_operator]
_CONSTANTS = {"torch.pi": math.pi, "torch.inf": math.inf, "torch.nan": math.nan, "torch.e": math.e}


def find_constant(path: str) -> Any:
    """Return the constant of a name in torch, None if there is none."""
    return _CONSTANTS.get(path)
