"""Fake tensors: shapes and dtypes without elements, on a device that need not be there.

`FakeTensorMode` makes them: ops on them compute shapes, dtypes and strides, as on the device "meta". The nodes of
exported programs have fake tensors without a mode, which say what their values are like.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torchlite as torch
from torchlite._aten.inner_history import InnerHistory
from torchlite._dispatch import function_for, in_place_calls
from torchlite._dispatch.interceptors import put_back, show_only
from torchlite._dispatch.op_record import Op
from torchlite._library.library_op import LibraryOp
from torchlite._types.devices import get_default_device
from torchlite.utils._python_dispatch import TorchDispatchMode
from torchlite.utils.weak import WeakIdKeyDictionary

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorDeviceMismatchError",
    "FakeTensorMode", "UnsupportedFakeTensorException", "UnsupportedOperatorException", "is_fake",
]  # fmt: skip


class UnsupportedFakeTensorException(RuntimeError):
    """An operation that fake tensors do not support."""


class _OpException(RuntimeError):
    """An error of an op, whose name is the text."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DynamicOutputShapeException(_OpException):
    """A shape that depends on elements."""


class DataDependentOutputException(_OpException):
    """A number that depends on elements."""


class UnsupportedOperatorException(_OpException):
    """An op that has no shapes without elements."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors on two devices."""


@functools.cache
def _mode_of_graphs() -> FakeTensorMode:
    return FakeTensorMode()


class _SharedMode:
    """The mode of fake tensors in graphs, which have one in common. An instance's own attribute comes first."""

    def __get__(self, tensor: Any, owner: type) -> FakeTensorMode:
        return _mode_of_graphs()


class FakeTensor(torch.Tensor):
    """Tensor on "meta" whose `device` attribute is another device. Its size may have expressions (`torch.SymInt`)."""

    _is_plain = True
    fake_mode: Any = _SharedMode()
    fake_device: Any
    _sizes: Any
    _strides: Any

    def __new__(cls, fake_mode: Any = None, elem: Any = None, device: Any = None, constant: Any = None) -> Any:
        if not isinstance(fake_mode, FakeTensorMode) or not isinstance(elem, torch.Tensor) or not elem.is_meta:
            raise AssertionError("FakeTensor takes a FakeTensorMode, a tensor on the device meta, and a device")
        return fake_mode._wrap(elem, torch.device(device or "meta"), constant)

    @classmethod
    def _of(cls, plain: Any, sizes: Any, strides: Any, device: Any, requires_grad: bool) -> FakeTensor:
        made: Any = object.__new__(cls)
        made._tl_array, made._tl_kernels, made.dtype, made._tl_node, made._tl_meta = (
            plain._tl_array,
            plain._tl_kernels,
            plain.dtype,
            None,
            None,
        )
        made.fake_device, made._strides = torch.device(device), tuple(strides)
        made._sizes = tuple.__new__(torch.Size, sizes)  # which keeps expressions as they are
        return made.requires_grad_() if requires_grad else made

    @property
    def device(self) -> Any:  # type: ignore[override]
        """Where the tensor that it stands for is."""
        return self.fake_device

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The size, with expressions where it has such."""
        return self._sizes

    def size(self, dim: Any = None) -> Any:
        """The size, or that of a dimension."""
        return self._sizes if dim is None else self._sizes[dim]

    def stride(self, dim: Any = None) -> Any:
        """The strides, or that of a dimension."""
        return self._strides if dim is None else self._strides[dim]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        grad = (
            f", grad_fn=<{self.grad_fn.name()}>"
            if self.grad_fn is not None
            else ", requires_grad=True" * self.requires_grad
        )
        place = f"device='{self.device}', " if self.device.type != "cpu" else ""
        dtype = "" if self.dtype is torch.float32 else f", dtype={self.dtype}"
        text = f"FakeTensor(..., {place}size={tuple(self.shape)}{dtype}{grad})"
        return f"Parameter({text})" if getattr(self, "_is_param", False) else text


class _ModeTensor(InnerHistory, FakeTensor):
    """A fake tensor of a mode: `_values` is the tensor on "meta", with the history."""

    _runs_fake_kernels = True  # of custom ops
    fake_mode: FakeTensorMode
    constant: Any  # the elements, of a tensor that a number made

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The size."""
        return self._values.shape

    @property
    def device(self) -> Any:  # type: ignore[override]
        """Where the tensor that it stands for is."""
        return self.fake_device

    def size(self, dim: Any = None) -> Any:
        """Returns the size, or that of a dimension."""
        return self._values.size() if dim is None else self._values.size(dim)

    def stride(self, dim: Any = None) -> Any:
        """Returns the strides, or that of a dimension."""
        return self._values.stride() if dim is None else self._values.stride(dim)

    def storage_offset(self) -> int:
        """Returns the offset in the storage."""
        return self._values.storage_offset()

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:
        """Returns whether the strides are those of the memory format."""
        return self._values.is_contiguous(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def _like(self, values: torch.Tensor) -> Any:
        return self.fake_mode._wrap(values, self.fake_device)

    def data_ptr(self) -> int:
        """Returns 0: there is no memory."""
        return 0

    def untyped_storage(self) -> Any:
        """Returns the storage on "meta"."""
        return self._values.untyped_storage()

    def item(self) -> Any:
        """Returns the number that the tensor was made of; the elements of others are not known."""
        if self.constant is not None and self.constant.numel() == 1:
            return self.constant.item()
        raise DataDependentOutputException("aten._local_scalar_dense.default")

    def tolist(self) -> Any:
        if self.constant is not None:
            return self.constant.tolist()
        raise DataDependentOutputException("aten._local_scalar_dense.default")

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return self.item().__index__()

    def __complex__(self) -> complex:
        return complex(self.item())

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if not spec else format(self.item(), spec)

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the tensor with another dtype or on another device; see `torch.Tensor.to`."""
        if args and isinstance(args[0], torch.Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        device = next((a for a in args if isinstance(a, (str, torch.device))), kwargs.get("device"))
        dtype = next((a for a in args if isinstance(a, torch.dtype)), kwargs.get("dtype"))
        copies = kwargs.get("copy", [a for a in args if isinstance(a, bool)][1:] == [True])
        form = kwargs.get("memory_format") or torch.preserve_format
        values = self._values.to(dtype=dtype, memory_format=form, copy=copies)
        where = self.fake_device if device is None else _indexed(device)
        if values is self._values and where == self.fake_device:
            return self
        return self.fake_mode._wrap(values, where, self.constant if dtype is None else None)

    def cpu(self, memory_format: Any = torch.preserve_format) -> Any:
        """Returns the tensor on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = torch.preserve_format) -> Any:
        """Returns the tensor on a CUDA device."""
        return self.to("cuda" if device is None else device)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            with torch.no_grad():
                made = self._like(self._values.clone())
            memo[id(self)] = made.requires_grad_(self.requires_grad and self.is_leaf)
        return memo[id(self)]

    @staticmethod
    def _run_record(op: Op, values: Any, writes: bool = False) -> Any:
        first = next(v for v in _flatten(values) if isinstance(v, _ModeTensor))
        return first.fake_mode._run(op, list(values), writes)

    @classmethod
    def _run_library_op(cls, op: LibraryOp, values: list) -> Any:
        """The result of a custom op: of the function of `register_fake`, else of its kernels that serve all devices."""
        tensors = [v for v in _flatten(values) if isinstance(v, torch.Tensor)]
        mode = next(t for t in tensors if isinstance(t, _ModeTensor)).fake_mode
        convert = functools.partial(mode._converted, op.schema.name.rpartition("::")[2], values=tensors)
        with mode:
            try:
                return op.run([_map_tensors(v, convert) for v in values])
            except NotImplementedError as error:
                raise UnsupportedOperatorException(str(op.overload)) from error

    @staticmethod
    def _run_function(cls: Any, args: tuple, kwargs: dict) -> Any:
        """Run a custom Function on the tensors on "meta"."""
        first = next(a for a in args if isinstance(a, _ModeTensor))
        inner = [a._values if isinstance(a, _ModeTensor) else a for a in args]
        view = show_only([])
        try:
            with torch.device("meta"):
                result = cls.apply(*inner, **kwargs)
        finally:
            put_back(view)
        return _map_tensors(result, lambda t: first._like(t if t.is_meta else t.to("meta")))


_ModeTensor.__name__ = _ModeTensor.__qualname__ = "FakeTensor"

# Ops whose results have sizes that depend on elements, by PyTorch's names.
_DYNAMIC = {
    "nonzero": "aten.nonzero.default", "_nonzero_indices": "aten.nonzero.default", "argwhere": "aten.nonzero.default",
    "masked_select": "aten.masked_select.default", "unique": "aten._unique2.default",
    "unique_consecutive": "aten.unique_consecutive.default", "_unique_and_all": "aten._unique2.default",
    "bincount": "aten.bincount.default", "repeat_interleave": "aten.repeat_interleave.Tensor",
}  # fmt: skip


def _indexed(device: Any) -> Any:
    """A device with the index 0 if it has none; the CPU and "meta" have none."""
    where = torch.device(device)
    return torch.device(where.type, 0) if where.index is None and where.type not in ("cpu", "meta") else where


def _flatten(values: Any) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flatten(value)
        else:
            yield value


def _map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with the tensors in lists, tuples and named results changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        made = [_map_tensors(v, change) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") and hasattr(value, "_make") else type(value)(made)
    return value


class FakeTensorMode(TorchDispatchMode):
    """Context manager in which factories make fake tensors, and ops compute shapes without elements.

    Fake tensors keep the device that the program asks for, which need not be there. Ops outside of the block accept the
    mode's fake tensors too.

    Args:
        allow_fallback_kernels: Has no effect: ops without shapes always raise `UnsupportedOperatorException`.
        allow_non_fake_inputs: Whether ops take real tensors, as if `from_tensor` had converted them. Default:
            ``False``.
        shape_env: Has no effect: sizes are numbers.
        static_shapes: Has no effect: sizes are numbers.
        export: Has no effect.

    Example:
        >>> from torchlite._subclasses.fake_tensor import FakeTensorMode
        >>> with FakeTensorMode():
        ...     (torch.zeros(2, 3, device="cuda") @ torch.zeros(3, 4, device="cuda"))
        FakeTensor(..., device='cuda:0', size=(2, 4))
    """

    intercepts_functions = True
    backward = None  # it runs on the tensors on "meta", which the mode need not see

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.static_shapes, self.export = shape_env, static_shapes, export
        self._known: Any = WeakIdKeyDictionary()

    @property
    def fake_tensor_converter(self) -> FakeTensorMode:
        """The object with `from_real_tensor`'s table: this mode."""
        return self

    def _wrap(self, meta: torch.Tensor, device: Any, constant: Any = None) -> Any:
        made: Any = object.__new__(_ModeTensor)
        made._fill_slots(meta, tuple(meta.shape), device)
        made.fake_mode, made.fake_device, made.constant = self, _indexed(device), constant
        return made

    def from_tensor(
        self,
        tensor: torch.Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """Returns the fake tensor of a real one: its size, strides, dtype and device. The same for the same tensor.

        Args:
            tensor: The tensor.
            static_shapes: Has no effect: sizes are numbers.
            source: Has no effect.
            symbolic_context: Has no effect.
            trace: Has no effect.

        Raises:
            AssertionError: It is a fake tensor of another mode.
        """
        if isinstance(tensor, _ModeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError(f"Mixing fake modes NYI x.fake_mode={tensor.fake_mode} vs self={self}")
            return tensor
        found = self._known.get(tensor)
        if found is None:
            view = show_only([])
            try:
                meta = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
                found = self._known[tensor] = self._wrap(meta, tensor.device)
                if isinstance(tensor, torch.Parameter):
                    found._is_param = True
            finally:
                put_back(view)
        if tensor.requires_grad and not found.requires_grad:
            found.requires_grad_()
        return found

    # -- ops -------------------------------------------------------------------------------------

    def _converted(self, name: str, value: Any, values: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if isinstance(value, _ModeTensor) or self.allow_non_fake_inputs:
            return self.from_tensor(value)
        shown = ", ".join(
            f"tensor([...], size={tuple(v.shape)})" if type(v) is torch.Tensor else repr(v) for v in values
        )
        raise AssertionError(
            "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
            f"'allow_non_fake_inputs'. Found in aten.{name}.default({shown})"
        )

    def _device_of(self, tensors: Iterable[Any]) -> Any:
        """The device of the result: that of the arguments; numbers on the CPU go with any."""
        found = None
        for tensor in tensors:
            if found is None or found.ndim == 0 and found.fake_device.type == "cpu":
                found = tensor
            elif tensor.fake_device != found.fake_device and not (
                tensor.ndim == 0 and tensor.fake_device.type == "cpu"
            ):
                raise FakeTensorDeviceMismatchError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{found.fake_device} and {tensor.fake_device}!"
                )
        return found.fake_device  # type: ignore[union-attr]

    def _run(self, op: Op, values: list[Any], writes: bool = False) -> Any:
        """The result of an op on fake tensors."""
        convert = functools.partial(self._converted, op.function_name, values=[v for v in values if v is not None])
        values = [_map_tensors(v, convert) for v in values]
        fakes = [v for v in _flatten(values) if isinstance(v, _ModeTensor)]
        device = fakes[0].fake_device if op.name in ("copy_", "_copy") else self._device_of(fakes)
        inner = [_map_tensors(v, lambda t: t._values) for v in values]
        names = [p.name for p in op.params]
        if "device" in names and inner[names.index("device")] is not None:
            device = _indexed(inner[names.index("device")])
            inner[names.index("device")] = None
        constant = self._constant_of(op, values, fakes, writes)
        view = show_only([])
        try:
            result = self._call(op, inner, writes)
        finally:
            put_back(view)
        if writes or op.name[-1] == "_":
            fakes[0].constant = constant
            return values[0]
        return _map_tensors(result, lambda t: self._wrap(t, device, constant))

    @staticmethod
    def _constant_of(op: Op, values: list[Any], fakes: list[Any], writes: bool) -> Any:
        """The elements of the result where all arguments' are known, and few."""
        if not all(t.constant is not None and t.numel() <= 1 for t in fakes):
            return None
        view = show_only([])
        try:
            result = _call_op(op, [_map_tensors(v, lambda t: t.constant) for v in values], writes)
        finally:
            put_back(view)
        return result if isinstance(result, torch.Tensor) else None

    @staticmethod
    def _call(op: Op, inner: list[Any], writes: bool) -> Any:
        if op.name in _DYNAMIC:
            raise DynamicOutputShapeException(_DYNAMIC[op.name])
        if op.name == "_index" and any(getattr(i, "dtype", None) is torch.bool for i in _flatten([inner[1]])):
            raise DynamicOutputShapeException("aten.nonzero.default")
        try:
            return _call_op(op, inner, writes)
        except NotImplementedError as error:
            raise UnsupportedOperatorException(f"aten.{op.function_name}.default") from error

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Run an op of the block: factories make fake tensors, and real tensors are refused or converted."""
        tensors = [v for v in _flatten((args, tuple(kwargs.values()))) if isinstance(v, torch.Tensor)]
        if not tensors:
            return self._create(function, args, kwargs)
        # Formulas of backward run on the tensors inside.
        if all(t.is_meta and not isinstance(t, FakeTensor) for t in tensors):
            return function(*args, **kwargs)
        convert = functools.partial(self._converted, getattr(op, "function_name", op.name), values=tensors)
        return function(
            *(_map_tensors(a, convert) for a in args), **{name: _map_tensors(v, convert) for name, v in kwargs.items()}
        )

    def _create(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a factory on "meta"; its result has the device that the program asks for."""
        device = kwargs.get("device")
        where = get_default_device() if device is None else torch.device(device)
        with torch.device("meta"):
            result = function(*args, **{**kwargs, **({"device": "meta"} if "device" in kwargs else {})})
        return _map_tensors(result, lambda t: self._wrap(t if t.is_meta else t.to("meta"), where))

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run `torch.tensor` and its relatives: the result's elements are known."""
        if function.__name__ not in ("tensor", "as_tensor", "asarray", "from_numpy"):
            return NotImplemented
        if any(isinstance(v, torch.Tensor) for v in _flatten(args)):
            return NotImplemented
        device = kwargs.pop("device", None)
        where = get_default_device() if device is None else torch.device(device)
        wants = kwargs.pop("requires_grad", False)
        real = function(*args, **kwargs, **({} if function.__name__ == "from_numpy" else {"device": "cpu"}))
        made = self._wrap(real.to("meta"), where, real if not wants else None)
        return made.requires_grad_() if wants else made


def _call_op(op: Op, values: list[Any], writes: bool) -> Any:
    """Call the op's function on bound arguments."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_name = False
    for p, value in zip(op.params, values, strict=True):
        if p.kind == "varargs":
            args.extend(value)
            by_name = True
        elif p.name == "index" and not p.is_tensor and value.__class__ is tuple:
            args.append(tuple(getattr(v, "_tl_array") if isinstance(v, torch.Tensor) else v for v in value))  # noqa: B009
        elif p.kwonly or by_name:
            kwargs[p.name] = value
        else:
            args.append(value)
    return in_place_calls.run_in_place(op, tuple(args), kwargs) if writes else function_for(op)(*args, **kwargs)


def is_fake(x: Any) -> bool:
    """Whether something is a fake tensor."""
    return isinstance(x, FakeTensor)
