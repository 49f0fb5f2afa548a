"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
import sys
import warnings
from collections import OrderedDict
from collections.abc import Container as _ContainerABC
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._ops.fused_inference import is_inference_unobserved
from torchlite.nn.parameter import Parameter

from .module import Module, _addindent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlite import Tensor


__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Deprecated base class of containers; use `Module`.

    The constructor warns and registers its keyword arguments as submodules.

    Args:
        kwargs: Submodules by name.

    Returns:
        A module without ``forward``.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     container = torch.nn.Container(act=torch.nn.ReLU())
        >>> container.act
        ReLU()

    See also:
        `Module`, `Sequential`, `ModuleDict`.
    """

    __deprecated__ = (
        "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
        "instead."
    )

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(self.__deprecated__, FutureWarning, stacklevel=2)
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


def _normalize_index(index, length):
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


def _renumber_modules(container, modules):
    container._modules.clear()
    for position, module in enumerate(modules):
        container._modules[str(position)] = module


def _check_times(module, times):
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(module)} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {type(module)}")


def _load_run_modules(modules: Iterable, x: Any) -> Any:
    """Apply modules in sequence. Replaced by `_sequential_fusion.run_modules` once a program has modules that fuse."""
    global _run_modules
    if "conv" not in _LOADED and "batchnorm" not in _LOADED:
        for module in modules:
            x = module(x)
        return x
    from ._sequential_fusion import run_modules

    _run_modules = run_modules
    return run_modules(modules, x)


_run_modules = _load_run_modules
_LOADED = vars(sys.modules[__package__])  # the submodules of this package that are loaded, among other names


class Sequential(Module):
    """Calls modules in sequence, each with the output of the one before it.

    Submodules are named ``"0"``, ``"1"``, ..., or by the keys of the dict. Indexing, slicing, deleting, ``append``,
    ``insert``, ``extend``, ``pop``, ``+`` and ``*`` work as on a list. An empty `Sequential` returns its input.

    Args:
        args: The modules, or one ``OrderedDict`` of names and modules.

    Shape:
        - Input: as the first module takes it.
        - Output: as the last module returns it.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> net(torch.zeros(4, 2)).shape
        torch.Size([4, 3])
        >>> net[1]
        ReLU()
        >>> from collections import OrderedDict
        >>> net = torch.nn.Sequential(OrderedDict(hidden=torch.nn.Linear(2, 3), act=torch.nn.ReLU()))
        >>> net.hidden
        Linear(in_features=2, out_features=3, bias=True)

    See also:
        `ModuleList`, `Module`.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], OrderedDict)
            else ((str(index), module) for index, module in enumerate(args))
        )
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Tensor) -> Tensor:
        if is_inference_unobserved():
            return _run_modules(self._modules.values(), input)
        for module in self._modules.values():
            input = module(input)
        return input

    def _get_item_by_idx(self, iterator, idx):
        return next(islice(iterator, _normalize_index(idx, len(self)), None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._get_item_by_idx(self._modules, index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._get_item_by_idx(self._modules, index), module)

    def __delitem__(self, index: Any) -> None:
        for key in (
            list(self._modules)[index] if isinstance(index, slice) else [self._get_item_by_idx(self._modules, index)]
        ):
            delattr(self, key)
        _renumber_modules(self, list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times: int) -> Any:
        _check_times(self, times)
        return Sequential(*(list(self) * times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Any:
        _check_times(self, times)
        return self.extend(list(self) * (times - 1))

    def pop(self, key: int | slice) -> Any:
        """Removes a module and returns it; later modules are renumbered.

        Args:
            key: Its position, or a slice.

        Returns:
            The module.
        """
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Any:
        """Adds a module at the end.

        Args:
            module: The module.

        Returns:
            The container.
        """
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: Any, module: Module) -> Any:
        """Inserts a module before a position; later modules are renumbered.

        Args:
            index: The position.
            module: The module.

        Returns:
            The container.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        _renumber_modules(self, modules)
        return self

    def extend(self, sequential: Any) -> Any:
        """Adds each module of an iterable at the end.

        Args:
            sequential: The iterable, for example another `Sequential`.

        Returns:
            The container.
        """
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Module):
    """Holds modules in a list, so that `Module.parameters` and others find them.

    A plain list does not register its modules. Submodules are named ``"0"``, ``"1"``, .... The list has no
    ``forward``; call its modules in your own.

    Args:
        modules: Iterable of modules. Default: ``None``, an empty list.

    Returns:
        A module with the methods of a list: indexing, slicing, iteration, ``len``, ``append``, ``extend``, ``insert``,
        ``pop`` and ``+``.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layers = torch.nn.ModuleList([torch.nn.Linear(10, 10) for _ in range(3)])
        ...     def forward(self, x):
        ...         for layer in self.layers:
        ...             x = layer(x).relu()
        ...         return x
        >>> net = Net()
        >>> net(torch.zeros(2, 10)).shape, len(list(net.parameters()))
        (torch.Size([2, 10]), 6)

    See also:
        `Sequential`, `ModuleDict`, `ParameterList`.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx):
        return str(_normalize_index(idx, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._get_abs_string_index(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: Any) -> None:
        modules = list(self._modules.values())
        del modules[index if isinstance(index, slice) else int(self._get_abs_string_index(index))]
        _renumber_modules(self, modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Any) -> Any:
        return self.extend(modules)

    def __add__(self, other: Any) -> Any:
        combined = ModuleList()
        for index, module in enumerate(chain(self, other)):
            combined.add_module(str(index), module)
        return combined

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index: Any, module: Module) -> Any:
        """Inserts a module before a position; later modules are renumbered.

        Args:
            index: The position.
            module: The module.
        """
        modules = list(self)
        modules.insert(index, module)
        _renumber_modules(self, modules)

    def pop(self, key: int | slice) -> Any:
        """Removes a module and returns it; later modules are renumbered.

        Args:
            key: Its position, or a slice.

        Returns:
            The module.
        """
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Any:
        """Adds a module at the end.

        Args:
            module: The module.

        Returns:
            The container.
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Any) -> Any:
        """Adds each module of an iterable at the end.

        Args:
            modules: The iterable.

        Returns:
            The container.

        Raises:
            TypeError: ``modules`` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        groups: list[list[Any]] = []
        for position, module in enumerate(self):
            text = repr(module)
            if groups and groups[-1][2] == text:
                groups[-1][1] = position
            else:
                groups.append([position, position, text])
        if not groups:
            return self._get_name() + "()"
        lines = []
        for first, last, text in groups:
            entry = f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(_addindent(entry, 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _check_pairs(modules, what):
    for index, pair in enumerate(modules):
        if not hasattr(pair, "__iter__"):
            raise TypeError(f"{what} update sequence element #{index} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{what} update sequence element #{index} has length {len(pair)}; 2 is required")
        yield pair


class ModuleDict(Module):
    """Holds modules in a dict, so that `Module.parameters` and others find them.

    The order is that of insertion. The dict has no ``forward``; call its modules in your own.

    Args:
        modules: Mapping of names to modules, or iterable of pairs. Names contain no dots. Default: ``None``, an empty
            dict.

    Returns:
        A module with the methods of a dict: indexing, iteration, ``in``, ``len``, ``keys``, ``values``, ``items``,
        ``update``, ``pop`` and ``clear``.

    Example:
        >>> acts = torch.nn.ModuleDict({"relu": torch.nn.ReLU(), "tanh": torch.nn.Tanh()})
        >>> acts["relu"](torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
        >>> list(acts.keys())
        ['relu', 'tanh']

    See also:
        `ModuleList`, `ParameterDict`.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> Any:
        """Remove every module."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes a module and returns it.

        Args:
            key: Its key.

        Returns:
            The module.

        Raises:
            KeyError: There is no such key.
        """
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """(key, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> Any:
        """Adds the modules of a mapping or of an iterable of pairs; modules of the same keys are replaced.

        Args:
            modules: Mapping of keys to modules, or iterable of pairs.

        Raises:
            TypeError: ``modules`` is not iterable, or one of its elements is not.
            ValueError: An element is not a pair.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        pairs = (
            modules.items()
            if isinstance(modules, (OrderedDict, ModuleDict, Mapping))
            else _check_pairs(modules, "ModuleDict")
        )
        for key, module in pairs:
            self[key] = module


def _as_parameter(value):
    if isinstance(value, torch.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value, dict_style):
    if not isinstance(value, torch.Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    where = f" ({value.device})" if value.device.type in ("cuda", "opencl") else ""
    if dict_style:
        return (
            f"{'Parameter' if isinstance(value, Parameter) else 'Tensor'} containing: [{torch.typename(value)} of "
            f"size {size}{where}]"
        )
    return (
        f"{'Parameter' if isinstance(value, Parameter) else 'Tensor'} containing: [{value.dtype} of size {size}{where}]"
    )


class ParameterList(Module):
    """Holds parameters in a list, so that `Module.parameters` and others find them.

    Tensors that are added become parameters. Other objects are stored as they are, and are not in ``state_dict``.

    Args:
        values: Iterable of tensors or other objects. Default: ``None``, an empty list.

    Returns:
        A module with some methods of a list: indexing, slicing, iteration, ``len``, ``append`` and ``extend``.

    Example:
        >>> weights = torch.nn.ParameterList([torch.zeros(2, 3), torch.zeros(4)])
        >>> [tuple(weight.shape) for weight in weights.parameters()]
        [(2, 3), (4,)]

    See also:
        `ParameterDict`, `ModuleList`.
    """

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx):
        return str(_normalize_index(idx, len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            result = type(self)()
            for position in range(*index.indices(len(self))):
                result.append(self[position])
            return result
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, self._get_abs_string_index(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[position] for position in range(len(self)))

    def __iadd__(self, values: Any) -> Any:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value: Any) -> Any:
        """Adds a value at the end.

        Args:
            value: A tensor, which becomes a parameter, or any object.

        Returns:
            The container.
        """
        position = len(self)
        self._size += 1
        self[position] = value
        return self

    def extend(self, values: Any) -> Any:
        """Adds each value of an iterable at the end.

        Args:
            values: The iterable.

        Returns:
            The container.

        Raises:
            TypeError: ``values`` is not iterable, or is a tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, torch.Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value, False)}" for key, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Holds parameters in a dict, so that `Module.parameters` and others find them.

    Tensors that are added become parameters. Other objects are stored as they are, and are not in ``state_dict``.

    Args:
        parameters: Mapping of names to values, or iterable of pairs. A plain mapping is added in sorted order of its
            names. Default: ``None``, an empty dict.

    Returns:
        A module with the methods of a dict, and the operators ``|`` and ``|=``.

    Example:
        >>> weights = torch.nn.ParameterDict({"left": torch.zeros(2), "right": torch.zeros(3)})
        >>> weights["right"].shape
        torch.Size([3])
        >>> [name for name, _ in weights.named_parameters()]
        ['left', 'right']

    See also:
        `ParameterList`, `ModuleDict`.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        # Registered names may contain no dots and must not shadow methods: the key itself is the name only if it is
        # valid.
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __reversed__(self) -> Any:
        return reversed(list(self._keys))

    def copy(self) -> Any:
        """A ParameterDict with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns the value of a key, after adding a default for a missing one.

        Args:
            key: The key.
            default: Value that is added. Default: ``None``.

        Returns:
            The value.
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> Any:
        """Remove everything."""
        for key in self._keys.copy():
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a parameter and returns it.

        Args:
            key: Its key.

        Raises:
            KeyError: There is no such key.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> Any:
        """Removes the pair added last and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value of a key, or a default.

        Args:
            key: The key.
            default: Result for a missing key. Default: ``None``.

        Returns:
            The value.
        """
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Any, default: Any = None) -> Any:
        """Returns a new `ParameterDict` with one value for all keys.

        Args:
            keys: Iterable of keys.
            default: The value. Default: ``None``.

        Returns:
            The new container.
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def items(self) -> Any:
        """(key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> Any:
        """Adds the values of a mapping or of an iterable of pairs; values of the same keys are replaced.

        Args:
            parameters: Mapping of keys to values, or iterable of pairs. A plain mapping is added in sorted order of
                its keys.

        Raises:
            TypeError: ``parameters`` is not iterable, or one of its elements is not.
            ValueError: An element is not a pair.
        """
        if not isinstance(parameters, _ContainerABC) and not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(parameters).__name__}"
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items())
        else:
            pairs = _check_pairs(parameters, "ParameterDict")
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_describe(value, True)}" for key, value in self.items())

    def __call__(self, input: Tensor) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> Any:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: Any) -> Any:
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self
