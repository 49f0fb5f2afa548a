"""Iteration over the parameters, buffers and submodules of a module, and their lookup by dotted names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlite import Tensor
    from torchlite.nn.modules.module import Module


class TraversalMixin:
    """Methods of Module that iterate over its parts, or look them up."""

    # Created by Module's __init__.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    if TYPE_CHECKING:

        def _get_name(self) -> str: ...

    # Looking up by dotted name

    def get_submodule(self, target: str) -> Module:
        """Returns the submodule of a dotted name.

        Args:
            target: Names joined by dots, such as ``"encoder.layers.0"``; ``""`` is the module itself.

        Returns:
            The submodule.

        Raises:
            AttributeError: There is no such attribute, or it is not a module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.get_submodule("0.0")
            ReLU()
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, CALLBACKS.module_class):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the submodule of a dotted name.

        Args:
            target: Names joined by dots. The parent must exist.
            module: The new submodule.
            strict: Whether the submodule must exist already. Default: ``False``.

        Raises:
            ValueError: ``target`` is empty, or ``module`` is not a module.
            AttributeError: The parent is missing, the attribute is not a module, or ``strict`` and the attribute is
                missing.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.set_submodule("0.0", torch.nn.Tanh())
            >>> net[0][0]
            Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, CALLBACKS.module_class):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), CALLBACKS.module_class):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter of a dotted name.

        Args:
            target: Names joined by dots, such as ``"encoder.weight"``.

        Returns:
            The parameter.

        Raises:
            AttributeError: There is no such attribute, or it is not a parameter.

        Example:
            >>> torch.nn.Sequential(torch.nn.Linear(2, 3)).get_parameter("0.weight").shape
            torch.Size([3, 2])
        """
        return _get_leaf(self, target, lambda module, name, value: isinstance(value, Parameter), "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer of a dotted name.

        Args:
            target: Names joined by dots, such as ``"norm.running_mean"``.

        Returns:
            The buffer.

        Raises:
            AttributeError: There is no such attribute, or it is not a buffer.

        Example:
            >>> torch.nn.Sequential(torch.nn.BatchNorm1d(2)).get_buffer("0.running_mean")
            tensor([0., 0.])
        """
        return _get_leaf(self, target, lambda module, name, value: name in module._buffers, "a buffer")

    # Walking

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield module_prefix + ("." if module_prefix else "") + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterates over the parameters, each once.

        Args:
            recurse: Whether to include those of submodules. Default: ``True``.

        Returns:
            An iterator of parameters, for example for an optimizer.

        Example:
            >>> [tuple(param.shape) for param in torch.nn.Linear(2, 3).parameters()]
            [(3, 2), (3,)]

        See also:
            `named_parameters`, `buffers`.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterates over the parameters with their dotted names.

        Args:
            prefix: Precedes each name, with a dot. Default: ``""``.
            recurse: Whether to include those of submodules. Default: ``True``.
            remove_duplicate: Whether shared parameters come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and parameter.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1, bias=False))
            >>> [name for name, _ in net.named_parameters()]
            ['0.weight', '0.bias', '1.weight']

        See also:
            `parameters`, `state_dict`.
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterates over the buffers, each once.

        Args:
            recurse: Whether to include those of submodules. Default: ``True``.

        Returns:
            An iterator of tensors.

        See also:
            `named_buffers`, `parameters`.
        """
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterates over the buffers with their dotted names.

        Args:
            prefix: Precedes each name, with a dot. Default: ``""``.
            recurse: Whether to include those of submodules. Default: ``True``.
            remove_duplicate: Whether shared buffers come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and tensor.

        Example:
            >>> [name for name, _ in torch.nn.BatchNorm1d(2).named_buffers()]
            ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterates over the direct submodules, each once.

        Returns:
            An iterator of modules.

        See also:
            `named_children`, `modules`.
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterates over the direct submodules with their names; a shared one has its first name.

        Returns:
            An iterator of pairs of name and module.

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).named_children()]
            ['0', '1']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterates over the module and all its submodules, parents first.

        Args:
            remove_duplicate: Whether shared modules come once. Default: ``True``.

        Returns:
            An iterator of modules.

        Example:
            >>> [type(module).__name__ for module in torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).modules()]
            ['Sequential', 'ReLU', 'Tanh']

        See also:
            `named_modules`, `children`.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterates over the module and all its submodules with their dotted names, parents first.

        Args:
            memo: Set of modules to leave out; it grows. Default: ``None``, an empty set.
            prefix: Name of this module; precedes the others with a dot. Default: ``""``.
            remove_duplicate: Whether shared modules come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> [name for name, _ in net.named_modules()]
            ['', '0', '0.0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)  # type: ignore[arg-type]
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)


def _get_leaf(module, target, accept, message):
    parent_name, _, name = target.rpartition(".")
    module = module.get_submodule(parent_name)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    value = getattr(module, name)
    if not accept(module, name, value):
        raise AttributeError(f"`{name}` is not {message}")
    return value
