"""`torch.autocast`: inside, ops run in the dtype of PyTorch's lists. One interceptor serves all regions of a thread."""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchlite._settings.module_dir import make_module_dir

from .. import Tensor
from .._device.accelerators import CUDA
from .._dispatch import LEAF, MODE, REGISTRY, F
from .._dispatch import call as _call
from .._dispatch.autograd_graph import base_of, version_of
from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import Interceptor, ReenabledInterceptor, enter, leave, stack
from .._dispatch.op_functions import unintercepted_function_for
from .._types.devices import PRIVATE_USE, device, private_use_type
from .._types.dtypes import bfloat16, dtype, float16, float32, float64
from .op_lists import AUTOCAST_OPS, BANNED, FLOAT, LOWER, RESULT, RULES, WIDEST

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

DEFAULTS = {"cpu": bfloat16, "cuda": float16, "opencl": float16}
# Device types of other makers: there may be settings for them, and nothing is ever cast there.
_OTHER_DEVICE_DEFAULTS = {
    "hpu": bfloat16, "ipu": float16, "maia": bfloat16, "mps": float16, "mtia": float16, "xla": bfloat16, "xpu": float16,
    PRIVATE_USE: float16,
}  # fmt: skip
_BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)


class _State(threading.local):
    """Autocast state of a thread."""

    def __init__(self) -> None:
        self.dtypes = DEFAULTS | _OTHER_DEVICE_DEFAULTS
        self.enabled = dict.fromkeys(self.dtypes, False)
        self.cache_enabled = True
        self.nesting = 0
        self.intercepting = False
        self.cache: dict = {}  # (id of a leaf, dtype) -> (the leaf, its version, the cast)


_state = _State()


# -- the interceptor ------------------------------------------------------------


class _Autocast(Interceptor):
    """The interceptor of a thread while autocast is enabled for a device type, below the user's modes, which see the
    uncast ops.
    """

    intercepts_library = False
    casts = True

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if (
            function is not op.function or kwargs.get("out") is not None
        ):  # in place, out=, creation: PyTorch does not cast here
            return function(*args, **kwargs)
        run = op.direct or unintercepted_function_for(op)
        if stack.items and not op.is_implicit:  # other interceptors are below
            run = function
        elif stack.items or saved_tensor_hooks.stack:  # saved tensors pass through user-defined hooks

            def run(*args, **kwargs):
                return _call.without_interceptors(op, function, args, kwargs)

        listed = self.cast(op, args, kwargs)
        if listed is not None:
            args, kwargs = listed
            return function(*args, **kwargs) if stack.items else run(*args, **kwargs)
        if run is function:
            return function(*args, **kwargs)
        with ReenabledInterceptor(self):
            return run(*args, **kwargs)

    def cast(self, op: Any, args: Any, kwargs: Any) -> tuple | None:
        """Return the cast arguments of a listed op; None for an op on no list, whose parts are then checked."""
        if op.name not in AUTOCAST_OPS:
            return None
        where = _autocast_device_type(args)
        rule = None if where is None else RULES[where].get(op.name)
        if callable(rule):
            rule = rule(*_call.bind(op, args, {name: value for name, value in kwargs.items() if name != "out"}))
        return None if rule is None else _cast_arguments(op, rule, where, args, kwargs)  # type: ignore[arg-type]


def _iterate_tensors(values):
    """The tensors of a call, in lists too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif value.__class__ in _LISTS:
            yield from _iterate_tensors(value)


_LISTS = (tuple, list)


def _autocast_device_type(values) -> str | None:
    """Return the device type whose lists apply, an accelerator's before the CPU's. None also if a subclass overrides
    the op.
    """
    found = None
    for tensor in _iterate_tensors(values):
        if tensor.__class__ is not Tensor and _call.find_torch_function_override((tensor,)) is not None:
            return None
        name = tensor._tl_kernels.device.type
        if name != found and _state.enabled.get(name) and (found is None or found == "cpu"):
            found = name
    return found


def _is_eligible(tensor, where: str) -> bool:
    d = tensor.dtype
    return d.category == 2 and d is not float64 and tensor._tl_kernels.device.type == where


def _cast_arguments(op, rule: str, where: str, args: tuple, kwargs: dict):
    """Return the arguments cast by the rule."""
    if rule == BANNED:
        raise RuntimeError(_BANNED)
    if rule == RESULT:
        return _with_dtype(op, where, args, kwargs)
    to = {LOWER: _state.dtypes[where], FLOAT: float32}.get(rule)
    if rule == WIDEST:
        to = _widest_dtype(where, (*args, *kwargs.values()))
    if to is None:
        return args, kwargs
    return [_cast_nested(value, where, to) for value in args], {
        name: _cast_nested(value, where, to) for name, value in kwargs.items()
    }


def _with_dtype(op, where: str, args: tuple, kwargs: dict):
    """Return the arguments with dtype=float32, unless the caller chose one."""
    if not _is_eligible(next(_iterate_tensors(args)), where):
        return args, kwargs
    place = [p.name for p in op.params].index("dtype")
    if place < len(args):
        return (args if args[place] is not None else (*args[:place], float32, *args[place + 1 :])), kwargs
    return args, kwargs if kwargs.get("dtype") is not None else {**kwargs, "dtype": float32}


def _widest_dtype(where: str, values) -> dtype:
    lower = _state.dtypes[where]
    found = lower
    for tensor in _iterate_tensors(values):
        if _is_eligible(tensor, where):
            if tensor.dtype not in (float32, lower):
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
            found = float32 if tensor.dtype is float32 else found
    return found


def _cast_nested(value, where: str, to: dtype):
    """A value with its eligible tensors cast."""
    if isinstance(value, Tensor):
        return value if value.dtype is to or not _is_eligible(value, where) else _cached_cast(value, where, to)
    if value.__class__ in _LISTS:
        return value.__class__(_cast_nested(item, where, to) for item in value)
    return value


def _cached_cast(tensor, where: str, to: dtype):
    """Return a cast tensor. The cast of a leaf that requires grad is cached until the outermost region ends, or the
    leaf changes.
    """
    whole = saved_tensor_hooks.stack or tensor._tl_level is not None or stack.items
    cast = F.to if whole else unintercepted_function_for(_TO)
    if tensor._tl_node is not LEAF or not (
        _state.cache_enabled
        and _state.nesting
        and to is _state.dtypes[where]
        and tensor.dtype is float32
        and MODE.grad
        and base_of(tensor) is None
    ):
        return cast(tensor, to)
    key, now = (id(tensor), to), version_of(tensor)
    found = _state.cache.get(key)
    if found is None or found[1] != now:
        found = _state.cache[key] = (tensor, now, cast(tensor, to))
    return found[2]


_TO = REGISTRY["to"]
_autocast = _Autocast()


# -- the state -------------------------------------------------------------------


def is_autocast_available(device_type: str) -> bool:
    """Returns whether autocast supports a device type.

    Args:
        device_type: Type of the device.

    Raises:
        TypeError: ``device_type`` is not a string.
        RuntimeError: There is no such device type.

    Example:
        >>> torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta")
        (True, False)
    """
    return _check_device_type("_is_autocast_available", device_type) in _state.dtypes


def _check_device_type(function: str, device_type) -> str:
    """Return the device type, if it is valid, by the name that settings have."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}"
        )
    kind = device(device_type).type
    return PRIVATE_USE if kind == private_use_type() else kind


def _check_known_device_type(function: str, device_type) -> str:
    kind = _check_device_type(function, device_type)
    if kind not in _state.dtypes:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """True if autocast is enabled for a device type in this thread.

    >>> import torchlite as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu")
    True
    """
    return _state.enabled[_check_known_device_type("is_autocast_enabled", device_type)]


def is_any_autocast_enabled() -> bool:
    """True if autocast is enabled for any device type in this thread."""
    return _state.intercepting


def set_autocast_enabled(device_type: str = "cuda", enabled: Any = None) -> None:
    """Enable or disable autocast for a device type in this thread; one argument means CUDA. `torch.autocast` does it
    for a block.
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position 2) must be bool, not {type(enabled).__name__}"
        )
    _state.enabled[_check_known_device_type("set_autocast_enabled", device_type)] = enabled
    wanted = any(_state.enabled.values())
    if wanted is not _state.intercepting:
        _state.intercepting = wanted
        enter(_autocast, 0) if wanted else leave(_autocast)


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype that autocast uses on a device type.

    >>> import torchlite as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("opencl")
    (torch.bfloat16, torch.float16, torch.float16)
    """
    found = _state.dtypes.get(_check_device_type("get_autocast_dtype", device_type))
    if found is None:
        raise RuntimeError("unsupported scalarType")
    return found


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast uses on a device type in this thread."""
    if not isinstance(dtype, type(float32)):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    _state.dtypes[_check_known_device_type("set_autocast_dtype", device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """True if the casts of leaves are cached until the outermost region ends."""
    return _state.cache_enabled


def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Set whether the casts of leaves are cached until the outermost region ends."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _state.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Clear the autocast cache."""
    _state.cache.clear()


def autocast_increment_nesting() -> int:
    """Increment the nesting count, as `torch.autocast` does on entry."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Decrement the nesting count; at 0 the caller clears the cache."""
    _state.nesting -= 1
    return _state.nesting


def _make_deprecated_function(name: str, new: str, function, device_type: str):
    """Return PyTorch's deprecated function of one device type."""

    @functools.wraps(function)
    def older(*args):
        warnings.warn(
            f"torch.{name}() is deprecated. Please use torch.{new} instead.", DeprecationWarning, stacklevel=2
        )
        return function(device_type, *args)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"Deprecated: use `torch.{new}`."
    return older


is_autocast_cpu_enabled = _make_deprecated_function(
    "is_autocast_cpu_enabled", "is_autocast_enabled('cpu')", is_autocast_enabled, "cpu"
)
set_autocast_cpu_enabled = _make_deprecated_function(
    "set_autocast_cpu_enabled", "set_autocast_enabled('cpu', enabled)", set_autocast_enabled, "cpu"
)
get_autocast_cpu_dtype = _make_deprecated_function(
    "get_autocast_cpu_dtype", "get_autocast_dtype('cpu')", get_autocast_dtype, "cpu"
)
set_autocast_cpu_dtype = _make_deprecated_function(
    "set_autocast_cpu_dtype", "set_autocast_dtype('cpu', dtype)", set_autocast_dtype, "cpu"
)
get_autocast_gpu_dtype = _make_deprecated_function(
    "get_autocast_gpu_dtype", "get_autocast_dtype('cuda')", get_autocast_dtype, "cuda"
)
set_autocast_gpu_dtype = _make_deprecated_function(
    "set_autocast_gpu_dtype", "set_autocast_dtype('cuda', dtype)", set_autocast_dtype, "cuda"
)


# -- regions ---------------------------------------------------------------------


class _AutocastRegion:
    """A block with autocast on or off for a device type."""

    def __init__(self, device_type: str, enabled: bool, fast_dtype: Any, cache_enabled: bool) -> None:
        self.device, self.fast_dtype = device_type, fast_dtype
        self._enabled, self._cache_enabled = enabled, cache_enabled
        self._before: list[tuple] = []  # a region may be nested in itself

    def __enter__(self) -> Any:
        name = _check_device_type("autocast", self.device)
        self._before.append((_state.enabled[name], _state.dtypes[name], _state.cache_enabled))
        set_autocast_enabled(name, self._enabled)
        set_autocast_dtype(name, self.fast_dtype)
        autocast_increment_nesting()
        set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *exc: Any) -> Any:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        enabled, fast, cache_enabled = self._before.pop()
        set_autocast_enabled(self.device, enabled)
        set_autocast_dtype(self.device, fast)
        set_autocast_cache_enabled(cache_enabled)
        return False


class autocast(_AutocastRegion):
    """Chooses the dtype of each op in a block, or as a decorator in a function.

    Matrix products and convolutions run in ``dtype``; reductions and losses, which need the range, run in float32. Call
    backward outside: its ops run in the dtypes of the forward ops.

    Args:
        device_type: Type of the device: ``"cpu"``, ``"cuda"`` or ``"opencl"``.
        dtype: The lower precision. Default: ``torch.bfloat16`` on the CPU, ``torch.float16`` elsewhere.
        enabled: ``False`` disables autocast in a block inside another one. Default: ``True``.
        cache_enabled: Whether the casts of weights are kept until the outermost block ends. Default: the global
            setting.

    Raises:
        ValueError: ``device_type`` is not a string.
        RuntimeError: Autocast does not support the device type.

    Example:
        >>> layer, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
        >>> with torch.autocast("cpu"):
        ...     y = layer(x)
        ...     loss = torch.nn.functional.mse_loss(y, torch.zeros(3, 2))
        >>> y.dtype, loss.dtype
        (torch.bfloat16, torch.float32)

    References:
        - P. Micikevicius et al. Mixed precision training. 2018.

    See also:
        `GradScaler`, which float16 needs.
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        fast = get_autocast_dtype(device_type) if dtype is None else dtype
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        caches = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        kind = device(device_type).type
        own = _private_use_dtypes(kind) if kind == private_use_type() else None
        super().__init__(kind, enabled and _is_supported(kind, fast, own), fast, caches)

    def __call__(self, func: Any) -> Any:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast "
                "as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def inside(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return inside


def is_only_autocast_active() -> bool:
    """True if autocast is the only interceptor on this thread's stack."""
    return stack.items == [_autocast]


def current_state() -> tuple:
    """Return the settings that determine how this thread casts ops."""
    return (*_state.enabled.items(), *_state.dtypes.items(), _state.cache_enabled)


@contextlib.contextmanager
def without_cast_cache() -> Iterator[None]:
    """Context manager with an empty cast cache; the previous cache is restored afterwards."""
    kept, _state.cache = _state.cache, {}
    try:
        yield
    finally:
        _state.cache = kept


def restore_current() -> list[_AutocastRegion]:
    """Return contexts that restore the present settings, for a part that runs again later."""
    return [_AutocastRegion(name, _state.enabled[name], _state.dtypes[name], _state.cache_enabled) for name in DEFAULTS]


def _private_use_dtypes(name: str) -> list[dtype]:
    """Return the dtypes for regions on the device type that is left to others, by its module."""
    found: Any = getattr(sys.modules[__package__.rpartition(".")[0]], name, None)
    if not hasattr(found, "get_amp_supported_dtype"):
        missing = "" if found is None else "But the func `get_amp_supported_dtype` is missing. \n"
        raise AssertionError(
            f"Tried to use AMP with the `{name}` backend, but the backend has not registered a module or  the module "
            "miss some necessary funcs. The backend should register a module by `torch._register_device_module`, and "
            f"the module must have these funcs: \n`get_amp_supported_dtype() -> List[torch.dtype]`. \n{missing}"
        )
    return list(found.get_amp_supported_dtype())


def _is_supported(device_type: str, fast_dtype, others_dtypes: list[dtype] | None = None) -> bool:
    """True if a region can cast; else a warning states why not. `others_dtypes`: of a device type of other makers."""
    if device_type == "cuda":
        if not _cuda_is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return False
    elif others_dtypes is not None:
        if fast_dtype not in others_dtypes:
            warnings.warn(
                f"In {device_type} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type} Autocast only supports dtypes of {', '.join(map(str, others_dtypes))} currently.",
                stacklevel=3,
            )
            return False
    elif fast_dtype not in (bfloat16, float16):
        name = device_type.upper()
        warnings.warn(
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
            stacklevel=3,
        )
        return False
    return True


def _cuda_is_available() -> bool:
    return CUDA.is_available()


# -- functions with a custom backward ------------------------------------------------


def _cast(value, device_type: str, dtype):
    """Cast floating-point tensors of the device type to `dtype`, also in containers; other values are unchanged."""
    if isinstance(value, Tensor):
        return value.to(dtype) if _is_eligible(value, device_type) else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorates the `forward` of a `torch.autograd.Function` for use with autocast.

    Args:
        fwd: The function. Default: none; the call then returns a decorator.
        device_type: Type of the device.
        cast_inputs: Inside autocast, casts floating tensors of the device to this dtype and runs the function with
            autocast off. Default: ``None``: the function runs with autocast as it is.

    Returns:
        The wrapped function.

    Raises:
        ValueError: ``device_type`` is not a string.

    Example:
        >>> class Product(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, a, b):
        ...         ctx.save_for_backward(a, b)
        ...         return a @ b
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         a, b = ctx.saved_tensors
        ...         return g @ b.T, a.T @ g
        >>> with torch.autocast("cpu"):
        ...     Product.apply(torch.ones(2, 2, dtype=torch.bfloat16), torch.ones(2, 2)).dtype
        torch.float32
    """
    _check_device_type_string(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        ctx, on = args[0], is_autocast_enabled(device_type)
        ctx._dtype, ctx._fwd_used_autocast = get_autocast_dtype(device_type), on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the `backward` of a `torch.autograd.Function`: it runs with autocast as its `forward` did.

    Args:
        bwd: The function. Default: none; the call then returns a decorator.
        device_type: Type of the device.

    Returns:
        The wrapped function. The `forward` needs `custom_fwd`.

    Raises:
        ValueError: ``device_type`` is not a string.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         print(torch.is_autocast_enabled("cpu"))
        ...         return g * 2
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autocast("cpu"):
        ...     y = Double.apply(x)
        >>> y.sum().backward()
        True
    """
    _check_device_type_string(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward


def _check_device_type_string(device_type) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


__dir__ = make_module_dir(
    globals(), hidden="current_state is_any_autocast_enabled is_only_autocast_active restore_current without_cast_cache"
)
