"""Parametrizations: modules that compute a parameter from other parameters."""

from __future__ import annotations

import collections
import copy
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings import fork_locks
from torchlite._settings.module_dir import make_module_dir
from torchlite.nn.modules.container import Module, ModuleDict, ModuleList
from torchlite.nn.parameter import Parameter

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_depth = 0
_cache: dict = {}
_cache_lock = fork_locks.acquire_before_fork(threading.RLock())


@contextmanager
def cached() -> Any:
    """Context manager in which each parametrized tensor is computed once, at its first read.

    Use it where a parametrized weight is read several times, such as in a recurrent loop. The values are dropped at the
    end of the outermost context.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
        >>> layer.weight is layer.weight
        False
    """
    global _cache, _cache_depth
    with _cache_lock:
        _cache_depth += 1
    try:
        yield
    finally:
        with _cache_lock:
            _cache_depth -= 1
            if not _cache_depth:
                _cache = {}


def _register_tensor(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set_data(destination, source):
    """Share memory with `source`, or copy if that is impossible (another dtype or device)."""
    destination.data = source.data if source.dtype is destination.dtype else source.detach().to(destination.dtype)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor of a module, in the order in which they are applied.

    `register_parametrization` creates it; ``module.parametrizations.weight`` is that of ``module.weight``. Calling it
    computes the tensor.

    Args:
        modules: The parametrizations, at least one.
        original: The tensor to parametrize, a parameter or buffer.
        unsafe: Whether dtype and shape may change. Default: ``False``.

    Shape:
        - Output: the shape of ``original``, unless ``unsafe``.

    Attributes:
        original (Parameter): The tensor before the first parametrization. If its ``right_inverse`` returns several
            tensors, they are ``original0``, ``original1`` and so on.

    Raises:
        ValueError: ``modules`` is empty, or a result is no tensor or has a wrong dtype or shape.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        ...     def right_inverse(self, x):
        ...         return x.triu()
        >>> layer = torch.nn.Linear(2, 2, bias=False)
        >>> _ = parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> len(layer.parametrizations.weight)
        1
        >>> torch.equal(layer.parametrizations.weight(), layer.weight)
        True
    """

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        original_shape, original_dtype = original.shape, original.dtype
        with torch.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, torch.Tensor) and not isinstance(new, collections.abc.Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, torch.Tensor):
            if original_dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original_dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            # The optimizer may refer to the original already: it stays the same object.
            with torch.no_grad():
                _set_data(original, new)
            _register_tensor(self, "original", original)
        else:
            for index, tensor in enumerate(new):
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{index} of the sequence with type {type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register_tensor(self, f"original{index}", tensor)
        if not self.unsafe:
            result = self()
            if not isinstance(result, torch.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            if result.dtype != original_dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is "
                    "enabled.\n"
                    f"unparametrized dtype: {original_dtype}\n"
                    f"parametrized dtype: {result.dtype}"
                )
            if result.shape != original_shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is "
                    "enabled.\n"
                    f"unparametrized shape: {original_shape}\n"
                    f"parametrized shape: {result.shape}"
                )

    def right_inverse(self, value: Any) -> Any:
        """Sets the originals so that the parametrized tensor becomes a value; assignment to the tensor calls it.

        Args:
            value: The value.

        Raises:
            RuntimeError: A parametrization has no ``right_inverse``.
            ValueError: A ``right_inverse`` returns another number of tensors or another dtype.
        """
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, torch.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _set_data(self.original, value)
                return
            if not isinstance(value, collections.abc.Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(value)}."
                )
            for index, tensor in enumerate(value):
                original = getattr(self, f"original{index}")
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {index} of type "
                        f"{type(tensor).__name__}"
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {index} returned by `right_inverse` has dtype {tensor.dtype} while "
                        f"`original{index}` has dtype {original.dtype}"
                    )
                _set_data(original, tensor)

    def forward(self) -> Tensor:
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{index}") for index in range(self.ntensors)))
        for index in range(1, len(self)):
            x = self[index](x)
        return x


def _inject_new_class(module):
    """Replace the class of the module by a subclass, on which properties can be set."""
    cls = type(module)

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deepcopy(self, memo):
        existing = memo.get(id(self))
        if existing is not None:
            return existing
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__setstate__(copy.deepcopy(Module.__getstate__(self), memo))
        return replica

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, name):
    if hasattr(module, name):
        raise AssertionError(f"{name} is already an attribute of the module")

    def read(self):
        if not _cache_depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        cache = _cache  # another thread that exits the last context replaces it by an empty one
        if key not in cache:
            return cache.setdefault(key, self.parametrizations[name]())
        return cache[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def _check_inverse(parametrization, x, y, name):
    """Check that `right_inverse` of x, the parametrized tensor, has the dtype and shape of y, the tensor before
    registration.
    """
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        z = parametrization.right_inverse(x)
    except NotImplementedError:
        return
    if not isinstance(z, torch.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(z).__name__}")
    for what in ("dtype", "shape"):
        if getattr(z, what) != getattr(y, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(y, what)}\n"
                f"returned {what}: {getattr(z, what)}"
            )


def register_parametrization(module: Module, tensor_name: Any, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Replaces a tensor of a module by a function of it, which is computed at each read.

    The tensor becomes ``module.parametrizations.{tensor_name}.original``, and ``module.{tensor_name}`` is
    ``parametrization(original)``. Several parametrizations of one tensor are applied in the order of registration. If
    the parametrization has a method ``right_inverse``, it computes the original from a value, at registration and at
    assignment to the tensor.

    Args:
        module: The module, whose class changes to a subclass.
        tensor_name: Name of a parameter or buffer.
        parametrization: A module from a tensor to a tensor of the same dtype and shape.
        unsafe: Whether dtype and shape may change; they are not checked then. Default: ``False``.

    Returns:
        The module.

    Raises:
        ValueError: The module has no such tensor, or the parametrization changes dtype or shape.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        ...     def right_inverse(self, x):
        ...         return x.triu()
        >>> layer = torch.nn.Linear(2, 2, bias=False)
        >>> _ = parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
        >>> layer.weight = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
        >>> layer.parametrizations.weight.original.detach()
        tensor([[1., 2.],
                [0., 3.]])

    See also:
        `remove_parametrizations`, `torch.nn.utils.parametrizations`.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        existing = module.parametrizations[tensor_name]
        if not unsafe:
            y = getattr(module, tensor_name)
            x = parametrization(y)
            if not isinstance(x, torch.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(x).__name__}.")
            for what in ("dtype", "shape"):
                if getattr(x, what) != getattr(y, what):
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` "
                        "flag is enabled.\n"
                        f"module.{tensor_name}.{what}: {getattr(y, what)}\n"
                        f"parametrization(module.{tensor_name}).{what}: {getattr(x, what)}"
                    )
            _check_inverse(parametrization, x, y, tensor_name)
        existing.append(parametrization)
        existing.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: Any = None) -> Any:
    """Returns whether a module, or one of its tensors, is parametrized.

    Args:
        module: The module.
        tensor_name: Name of the tensor. Default: any.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: Any, leave_parametrized: bool = True) -> Any:
    """Removes the parametrizations of a tensor, which becomes a parameter or buffer again.

    Args:
        module: The module.
        tensor_name: Name of the tensor.
        leave_parametrized: Whether the tensor keeps its parametrized value; ``False`` gives it the original. Default:
            ``True``.

    Returns:
        The module.

    Raises:
        ValueError: The tensor is not parametrized; or ``leave_parametrized=False`` and there are several originals.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> _ = parametrize.remove_parametrizations(layer, "weight")
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                value = getattr(module, tensor_name)
            with torch.no_grad():
                _set_data(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name).detach()
        original = (
            Parameter(value, parametrizations.original0.requires_grad)
            if isinstance(parametrizations.original0, Parameter)
            else value
        )
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_tensor(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> Any:
    """Returns the class that a module has without its parametrizations.

    Args:
        module: The module.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: Any = None) -> Any:
    """Registers the parametrizations of a module on another, with the same originals.

    Args:
        from_module: The module with parametrizations.
        to_module: The other module, which is changed.
        tensor_name: Name of the tensor. Default: all parametrized ones.

    Returns:
        ``to_module``.

    Example:
        >>> from torchlite.nn.utils import parametrize
        >>> source = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
        >>> target = parametrize.transfer_parametrizations_and_params(source, torch.nn.Linear(2, 2))
        >>> torch.equal(target.weight, source.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, ModuleDict):
        raise AssertionError("from_module.parametrizations must be a ModuleDict")
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in ("original",) if source.is_tensor else [f"original{index}" for index in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module


__dir__ = make_module_dir(globals(), "_cache")
