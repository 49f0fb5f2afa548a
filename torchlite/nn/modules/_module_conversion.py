"""Conversion of modules to another device, dtype or memory format."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite import __future__ as future
from torchlite.nn.parameter import Parameter

from ._module_traversal import TraversalMixin

if TYPE_CHECKING:
    from typing import Self

    from torchlite._stubs.aliases import DeviceLike, DType


_TO_SIGNATURES = (
    "torch.device device = None, torch.dtype dtype = None, ", "torch.dtype dtype, ", "Tensor tensor, "
)  # fmt: skip


def _to_signature_error(args, kwargs=()):
    """Return the TypeError for arguments of `to` that match no signature."""
    kinds = ["torch.device" if isinstance(arg, torch.device) else type(arg).__name__ for arg in args]
    named = dict(kwargs)
    kinds += [f"{name}={type(named[name]).__name__}" for name in sorted(named)]
    kinds += [] if args or not named else [""]  # PyTorch's list of names alone ends in a comma
    rest = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
    forms = "".join(f" * ({form}{rest})\n" for form in _TO_SIGNATURES)
    return (
        f"to() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:\n{forms}"
    )


def _parse_to(args, kwargs):
    """`to(device, dtype, non_blocking)`, `to(dtype, non_blocking)`, `to(tensor, non_blocking)` -> (device, dtype,
    non_blocking, memory_format).
    """
    named, given = dict(kwargs), list(args)
    device, dtype = named.pop("device", None), named.pop("dtype", None)
    other, non_blocking = named.pop("tensor", None), named.pop("non_blocking", False)
    memory_format = named.pop("memory_format", None)
    if named:
        raise TypeError(_to_signature_error(args, kwargs))
    if given and isinstance(given[0], torch.Tensor):
        other = given.pop(0)
    elif given and isinstance(given[0], torch.dtype):
        dtype = given.pop(0)
    elif given and isinstance(given[0], type) and given[0] in (float, int, bool, complex):
        dtype = torch.empty(0, dtype=given.pop(0)).dtype
    elif given and (given[0] is None or isinstance(given[0], (str, int, torch.device))):
        device = given.pop(0)
        if given and (given[0] is None or isinstance(given[0], torch.dtype)):
            dtype = given.pop(0)
        elif given:
            raise TypeError(_to_signature_error(args, kwargs))
    if given and isinstance(given[0], bool):
        non_blocking = given.pop(0)
    if given:
        raise TypeError(_to_signature_error(args, kwargs))
    if other is not None:
        device, dtype = other.device, other.dtype
    return (None if device is None else torch.device(device)), dtype, non_blocking, memory_format


class ConversionMixin(TraversalMixin):
    """Methods of Module that convert its parameters and buffers."""

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = _convert_parameter(self, name, param, fn)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts the parameters and buffers to another device, dtype or memory format, in place.

        The forms are ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)`` and
        ``to(memory_format=...)``. A dtype converts floating point and complex tensors only. A memory format changes
        tensors of 4 or 5 dimensions only.

        Args:
            args: Device, dtype or a tensor that has both; then ``non_blocking``.
            kwargs: ``device``, ``dtype``, ``tensor``, ``non_blocking`` or ``memory_format``.

        Returns:
            The module.

        Raises:
            TypeError: The dtype is neither floating point nor complex, or the arguments match no form.
            NotImplementedError: A tensor is on the device ``meta`` and would move to another one; see `to_empty`.

        Example:
            >>> torch.nn.Linear(2, 3).to(torch.float64).weight.dtype
            torch.float64

        See also:
            `torch.Tensor.to`, `double`, `cuda`, `cpu`.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers. Please file an issue "
                "at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does "
                "not work as expected.",
                stacklevel=2,
            )

        def convert(tensor):
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Moves the parameters and buffers to a device without their values, which are then undefined.

        Args:
            device: Device of the new tensors. Keyword only.
            recurse: Whether to move those of submodules too. Default: ``True``.

        Returns:
            The module.

        Example:
            >>> layer = torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu")
            >>> layer.weight.device
            device(type='cpu')
        """
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type: DType | str) -> Self:
        """Casts each parameter and buffer to a type, integer buffers included.

        Args:
            dst_type: A dtype, or the name of a tensor type such as ``"torch.DoubleTensor"``.

        Returns:
            The module.
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Casts the floating point parameters and buffers to float32, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float32)

    def double(self) -> Self:
        """Casts the floating point parameters and buffers to float64, in place.

        Returns:
            The module.

        Example:
            >>> torch.nn.Linear(2, 3).double().weight.dtype
            torch.float64

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float64)

    def half(self) -> Self:
        """Casts the floating point parameters and buffers to float16, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float16)

    def bfloat16(self) -> Self:
        """Casts the floating point parameters and buffers to bfloat16, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.bfloat16)

    def cpu(self) -> Self:
        """Moves the parameters and buffers to the CPU, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return self._apply(lambda tensor: tensor.cpu())

    def xpu(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an XPU, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("xpu") if device is None else device))

    def ipu(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an IPU, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("ipu") if device is None else device))

    def mtia(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an MTIA device, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("mtia") if device is None else device))

    def cuda(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to a CUDA device, in place.

        Args:
            device: Index or device. ``None`` is the current CUDA device. Default: ``None``.

        Returns:
            The module.

        See also:
            `to`.
        """
        return self._apply(lambda tensor: tensor.cuda(device))


def _has_inner_tensors(tensor):
    """True for a wrapper of other tensors: new data alone would leave these as they are."""
    if not tensor._tl_dispatches:
        return False
    from torchlite.utils._python_dispatch import is_traceable_wrapper_subclass

    return is_traceable_wrapper_subclass(tensor)


def _convert_parameter(module, name, param, fn):
    """Convert a parameter and its gradient by `fn`: the same object with new data, unless `torch.__future__`, the
    devices or the layouts require a new one.
    """
    grad = param.grad
    with torch.no_grad():
        data = fn(param)
        new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    if future.get_swap_module_params_on_conversion() or _has_inner_tensors(data):
        param.grad = None
        try:
            torch.utils.swap_tensors(param, Parameter(data, requires_grad=param.requires_grad))
        except Exception as error:  # the gradient is restored
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from error
        if grad is not None and new_grad is not None:
            torch.utils.swap_tensors(grad, new_grad)
            param.grad = grad
        return param
    if data is param:
        return param
    other_kind = data.is_meta != param.is_meta or data.layout is not param.layout
    if future.get_overwrite_module_params_on_conversion() or other_kind:
        param = Parameter(data, requires_grad=param.requires_grad)
    else:
        param.grad = None
        param.data = data
    if new_grad is not None:
        param.grad = new_grad
    return param


def _cast_tensors(module, dtype):
    return module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)
