"""Node: one operation of a graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .._library.op_overload import OpOverload, OpOverloadPacket
from .._symbolic_shapes import SymBool, SymFloat, SymInt
from .._tensor import Tensor
from .._types.devices import device
from .._types.dtypes import dtype
from .._types.layouts import layout, memory_format
from .._types.package_name import is_torchlite_object
from ._compatibility import compatibility
from ._naming import qualified_name as _get_qualified_name
from ._naming import type_repr as _type_repr
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes: TypeAlias = Union[
    str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, OpOverload, SymInt, SymBool, SymFloat
]
base_types = (
    str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, OpOverload, SymInt, SymBool, SymFloat,
)  # fmt: skip
Target: TypeAlias = Union[Callable[..., Any], str]
# Node arguments: nodes, constants, and nested tuples, lists, dictionaries and slices of them.
Argument: TypeAlias = Any

_legal_ops = dict.fromkeys(("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"))
_side_effectful_functions: set[Callable[..., Any]] = {operator.setitem}
# Ops of `torch.ops` that only check something.
_ASSERT_OPS = frozenset(
    (
        "_assert_async _assert_scalar _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size "
        "_record_function_enter _record_function_enter_new _record_function_exit"
    ).split()
)
_PRESERVED = ("_assert", "_assert_async")
# Functions that change modes for later ops.
_MODE_SWITCH_OPS = frozenset(("_set_grad_enabled", "_enter_autocast", "_exit_autocast"))


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: Any) -> Any:
    """Marks a function as one with side effects: graphs keep its calls.

    Args:
        fn: A function.

    Returns:
        The function.

    Example:
        >>> @torch.fx.has_side_effect
        ... def report(x): ...
        >>> graph = torch.fx.Graph()
        >>> node = graph.call_function(report, (1,))
        >>> node.is_impure()
        True
    """
    _side_effectful_functions.add(fn)
    return fn


def _is_impure(target: Any, impure_random: bool) -> bool:
    """True if a call of a function has side effects."""
    if target in _side_effectful_functions or any(target is getattr(torch, name, None) for name in _PRESERVED):
        return True
    if getattr(target, "__name__", None) in _MODE_SWITCH_OPS and is_torchlite_object(target):
        return True
    if isinstance(target, OpOverloadPacket):
        return target._name in _ASSERT_OPS or target._name.endswith("_")
    if isinstance(target, OpOverload):
        return target._opname in _ASSERT_OPS or _mutates_args(target) or impure_random and _is_random(target)
    return impure_random and target in _random_ops()


def _mutates_args(overload: OpOverload) -> bool:
    try:
        return bool(overload._schema.is_mutable)
    except (AttributeError, RuntimeError, NotImplementedError):  # an op without schema; decide by name
        return overload._opname.endswith("_")


def _is_random(overload: OpOverload) -> bool:
    return any(str(tag).endswith("nondeterministic_seeded") for tag in overload.tags)


def _random_ops() -> list[Any]:
    """Return the functions that draw random numbers and so advance the generator."""
    names = "rand randint randn randperm rand_like randint_like randn_like normal poisson bernoulli multinomial".split()
    return [getattr(torch, name) for name in names]


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """Return an argument as printed in graphs: nodes with a percent sign."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(item) for i, item in enumerate(arg) if i < max_list_len)
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{rest}]"
        return f"({items}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _chain_compare(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return a sort key between those of two neighbours; the root's key, at both ends, is empty."""
    if not after:
        return (before[0] + 1,) if before else (0,)
    if not before or len(before) < len(after):
        return (*after[:-1], after[-1] - 1)
    if len(before) > len(after):
        return (*before[:-1], before[-1] + 1)
    return (*before, 0)


@compatibility(is_backward_compatible=True)
class Node:
    """Operation of a graph: the name of a value, and how it is computed.

    ``op`` is the kind:

    - ``placeholder``: an input. ``target`` is the parameter's name, ``args`` has its default.
    - ``get_attr``: a parameter, buffer or other attribute. ``target`` is its dotted name.
    - ``call_function``: ``target`` is the function.
    - ``call_method``: ``target`` is the method's name, the first argument the object.
    - ``call_module``: ``target`` is the submodule's dotted name.
    - ``output``: ``args[0]`` is the result.

    ``args`` and ``kwargs`` contain constants, nodes, and containers of both; assign new ones to change them. ``meta``
    is a dict for passes; copies of a node keep it.

    Args:
        graph: The graph.
        name: Name of the value.
        op: Kind of the node.
        target: What it reads or calls.
        args: Tuple of positional arguments.
        kwargs: Dict of keyword arguments.
        return_type: Type of the value. Default: ``None``.

    Raises:
        AssertionError: The kind is unknown.
        ValueError: The target is no function, or no text, as the kind needs it.

    Example:
        >>> import torchlite as torch
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.add, (x, 1))
        >>> y, y.args, x.users
        (add, (x, 1), {add: None})
    """

    _repr_fn: Callable[[Node], str] | None = None

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            expected = "a Callable"
        elif op != "call_function" and not isinstance(target, str):
            expected = "a str"
        else:
            expected = None
        if expected:
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} "
                f"but {expected} is expected"
            )
        self.graph, self._name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._sort_key: tuple[int, ...] = ()
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._update_args_kwargs(args, kwargs)

    @property
    def name(self) -> str:
        """Return the value's name, unique in its graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            for user in self.users:
                hook(old=self, new=name, user=user)
        self._name = name

    @property
    def next(self) -> Node:
        """Return the next node."""
        return self._next

    @property
    def prev(self) -> Node:
        """Return the previous node."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    @compatibility(is_backward_compatible=True)
    def prepend(self, x: Node) -> None:
        """Moves a node of the same graph directly before this one.

        Args:
            x: The node.
        """
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        x._sort_key = _chain_compare(before._sort_key, self._sort_key)

    _prepend = prepend

    @compatibility(is_backward_compatible=True)
    def append(self, x: Node) -> None:
        """Moves a node of the same graph directly after this one.

        Args:
            x: The node.
        """
        if self is not x:
            self._next.prepend(x)

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    @property
    def args(self) -> tuple[Argument, ...]:
        """Return the positional arguments; assignment updates users."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Return the keyword arguments; assignment updates users."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        found: dict[Node, None] = {}

        def frozen(value: Any) -> Any:
            if isinstance(value, Node):
                found.setdefault(value)
            return value

        args, kwargs = map_aggregate(tuple(args), frozen), map_aggregate(dict(kwargs), frozen)
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs, self._input_nodes = args, kwargs, found
        for node in found:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """Return the distinct input nodes in order."""
        return list(self._input_nodes)

    @compatibility(is_backward_compatible=True)
    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces a positional argument.

        Args:
            idx: Its index.
            arg: The new argument.
        """
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    @compatibility(is_backward_compatible=True)
    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument.

        Args:
            idx: Index of the new argument.
            arg: The argument.
        """
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    @compatibility(is_backward_compatible=True)
    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets a keyword argument.

        Args:
            key: Its name.
            arg: The argument.
        """
        self.kwargs = {**self.kwargs, key: arg}

    @property
    def stack_trace(self) -> str | None:
        """Return the recorded stack trace, innermost line last."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        """Return a readable target: `operator.add`, `builtins.getattr`, `torch.add`."""
        if isinstance(target, str):
            return target
        name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
        if name is not None and module in ("builtins", "_operator"):
            return f"{module.lstrip('_')}.{name}"
        return _get_qualified_name(target)

    @compatibility(is_backward_compatible=True)
    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Returns the node as a line of a printed graph.

        Args:
            placeholder_names: List that collects the text of an input, if it is not empty. Default: ``None``.
            maybe_return_typename: List of one text that becomes the return type's. Default: ``None``.
            include_tensor_metadata: Whether the line has the value's dtype, shape, stride and device. Default:
                ``False``.

        Returns:
            The line, or ``None`` if ``placeholder_names`` has it.
        """
        kind = "" if self.type is None else f"{_type_repr(self.type)} "
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target="
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self.target}: {_type_repr(self.type)}" if self.type else str(self.target))
                return None
            return f"{head}{self.target}]{f'(default={self.args[0]})' if self.args else ''}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        if self.op == "get_attr":
            return f"{head}{self._pretty_print_target(self.target)}]"
        if include_tensor_metadata and isinstance(value := self._meta_value(), Tensor):
            lists = "".join("[" + ", ".join(map(str, part)) + "]" for part in (value.shape, value.stride()))
            head = head.replace(f" : {kind}[", f' : Tensor "{abbreviation(value.dtype)}{lists}{value.device}"[', 1)
        return (
            f"{head}{self._pretty_print_target(self.target)}](args = {_format_arg(self.args)}, "
            f"kwargs = {_format_arg(self.kwargs)})"
        )

    def _meta_value(self) -> Any:
        """Return the value metadata that passes recorded."""
        return self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))

    @compatibility(is_backward_compatible=True)
    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Replaces this node in its users by another node.

        Args:
            replace_with: The other node.
            delete_user_cb: Function of a user that returns whether to change it. Default: all users.
            propagate_meta: Whether to copy ``meta`` to the other node, whose ``meta`` must be empty. Default:
                ``False``.

        Returns:
            List of the changed users.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already "
                    "has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    @compatibility(is_backward_compatible=False)
    def is_impure(self, impure_random: bool = True) -> bool:
        """Returns whether the node has side effects, so that it is kept without users.

        Args:
            impure_random: Whether random numbers count as side effects. Default: ``True``.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(str(self.target)), "_is_impure", False)
        return self.op == "call_function" and _is_impure(self.target, impure_random)

    @compatibility(is_backward_compatible=False)
    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Returns the arguments as the target's signature has them, with defaults.

        Args:
            root: Module that has the submodules.
            arg_types: Types of positional arguments, which select among signatures. Default: ``None``.
            kwarg_types: Types of keyword arguments. Default: ``None``.
            normalize_to_only_use_kwargs: Whether all arguments become keyword arguments. Default: ``False``.

        Returns:
            Pair ``(args, kwargs)``, or ``None`` if the signature is not known.
        """
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            function: Any = self.target
            return normalize_function(
                function, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    @compatibility(is_backward_compatible=True)
    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces an input node.

        Args:
            old_input: The present node.
            new_input: The new node.
        """
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old_input: Node, new_input: Node) -> None:
        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, replaced), map_arg(self._kwargs, replaced))

    def _rename(self, candidate: str) -> None:
        """Rename the value to a name similar to the candidate."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)


def abbreviation(kind: dtype) -> str:
    """Return a short dtype name: `f32`, `i64`, `bf16`, `b8`.

    >>> import torchlite as torch
    >>> from torchlite.fx.node import abbreviation
    >>> abbreviation(torch.bfloat16), abbreviation(torch.int64), abbreviation(torch.bool)
    ('bf16', 'i64', 'b8')
    """
    name = str(kind).rpartition(".")[2]
    if name == "bool":
        return "b8"
    for full, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(full):
            return short + name[len(full) :]
    return name


@compatibility(is_backward_compatible=True)
def map_arg(a: Any, fn: Callable[[Node], Argument]) -> Any:
    """Applies a function to each node of a structure.

    Args:
        a: A node, or tuples, lists, dicts and slices with nodes.
        fn: Function of a node.

    Returns:
        The structure with the results.

    Raises:
        AssertionError: ``fn`` is not callable.

    Example:
        >>> import torchlite as torch
        >>> x = torch.fx.Graph().placeholder("x")
        >>> torch.fx.node.map_arg([x, (1, x)], lambda node: node.name)
        ['x', (1, 'x')]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Any, fn: Callable[[Argument], Argument]) -> Any:
    """Apply `fn` to each leaf of tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        mapped = tuple(map_aggregate(item, fn) for item in a)
        return type(a)(*mapped) if hasattr(a, "_make") else type(a)(mapped) if hasattr(a, "_fields") else mapped
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


__dir__ = make_module_dir(
    globals(), "_get_qualified_name _legal_ops _side_effectful_functions _type_repr base_types", hidden="abbreviation"
)
