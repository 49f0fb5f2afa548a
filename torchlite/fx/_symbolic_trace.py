"""Symbolic tracing: runs a program with Proxies as inputs and records a graph."""

from __future__ import annotations

import copy
import functools as functools
import inspect
import math
import threading
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import chain
from types import FunctionType, ModuleType
from typing import Any

import torchlite as torch

from .._dispatch.interceptors import InPlaceCall, Interceptor, strip_default_args
from .._dispatch.mode_restoring import restores_modes
from .._dispatch.op_functions import in_place_method
from .._dispatch.op_record import EMPTY
from .._dispatch.override_calls import python_calls
from .._library.library_op import LibraryOp
from .._tensor import Tensor
from .._tensor.tensor_queries import _assert
from .._types.package_name import is_torchlite_object
from .._types.python_source import compile_function, evaluate
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..overrides import _public_function_of
from ..utils import _pytree as pytree
from . import graph_module
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility
from ._lazy_graph_module import _LazyGraphModule, _make_graph_module
from ._naming import BUILTIN_FUNCTIONAL_NAMES, public_name
from ._patcher import FunctionTrace, ProgramTrace, find_proxy, pass_defaults_by_keyword, wrap
from ._patcher import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._patcher import _wrapped_fns_to_patch as _wrapped_fns_to_patch
from ._patcher import _wrapped_methods_to_patch as _wrapped_methods_to_patch
from .graph import Graph
from .graph_module import GraphModule
from .node import base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TraceError, TracerBase, is_method

__all__ = ["PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

# Packages with their own `Tracer.trace` read these two, and `functools`, in this module.
_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__

_proxyable_classes: dict[type, None] = {}
# Files that create functions without source: in-place methods.
_WRAPPER_FILES = frozenset((in_place_method.__code__.co_filename,))
_ABSENT = object()
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class _State(threading.local):
    is_tracing = False


_STATE = _State()


def __getattr__(name: str) -> Any:
    if name == "_is_fx_tracing_flag":
        return _STATE.is_tracing
    if name == "ScriptObject":
        return torch.ScriptObject
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def is_fx_tracing() -> bool:
    """True while this thread traces a program."""
    return _STATE.is_tracing


is_fx_symbolic_tracing = is_fx_tracing


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from Proxies is recorded: it creates a node and returns a Proxy.

    Args:
        name: Name of the class.
        bases: Its base classes.
        attrs: Its attributes.

    Example:
        >>> import torchlite as torch
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> Pair(1, 2).right
        2
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if is_fx_tracing():
            found: list[Proxy] = []

            def look(value: Any) -> Any:
                if isinstance(value, Proxy):
                    found.append(value)
                return value

            map_aggregate(args, look)
            map_aggregate(kwargs, look)
            if found:
                return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


@compatibility(is_backward_compatible=False)
class PHBase:
    """Placeholder in `concrete_args` for an input that stays symbolic."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """PH whose attributes are copied to the input's node."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    """Copy the attributes of a placeholder to a node."""
    for name, value in vars(fr).items():
        if not name.startswith("__") and not callable(value) and not hasattr(to, name):
            setattr(to, name, value)


class _ProxyInterceptor(Interceptor):
    """Interceptor that creates a node for each op with a Proxy argument."""

    intercepts_functions = True
    is_scoped = True

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if kwargs.get("out", 0) is None:
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        if isinstance(op, LibraryOp):
            return self._make_proxy_node(proxy, op.overload, args, kwargs)
        if op.name == "new_tensor":
            return proxy.tracer.create_proxy("call_method", "new_tensor", *strip_default_args(op, args, kwargs))
        if function.__class__ is InPlaceCall:
            name = "__setitem__" if op.name == "_setitem" else f"{op.function_name.rstrip('_')}_"
            return proxy.tracer.create_proxy("call_method", name, *strip_default_args(op, args, kwargs))
        # Of two functions with one name, that of torch.nn.functional is itself the node's target.
        own = python_calls().get(getattr(function, "public", ""))
        function = function if own else _public_function_of(op, False) or function
        if (public_name(function) or "").startswith(
            "torch.nn.functional."
        ) and function.__name__ not in BUILTIN_FUNCTIONAL_NAMES:
            # PyTorch implements these in Python: they first check for overrides, and otherwise continue with the
            # Proxies.
            asks: Any = torch.nn.functional  # looked up there, as a program may have replaced it
            if not asks.has_torch_function((*args, *kwargs.values())):
                self._refuse_call(function)
            defaults = {p.name: p.default for p in op.params}
            if own:  # parameters that only the other function has
                kwargs = {**dict(zip(defaults, args, strict=False)), **kwargs}
                defaults = {name: default for name, default in defaults.items() if name in chain(*own)}
                args, kwargs = (), {name: value for name, value in kwargs.items() if name in defaults}
            return self._make_proxy_node(proxy, function, *pass_defaults_by_keyword(defaults, EMPTY, args, kwargs))
        args, kwargs = strip_default_args(op, args, kwargs)
        if args and is_method(function) and op.params[len(args) - 1].kind == "varargs":
            args = (*args[:-1], *args[-1])
        return self._make_proxy_node(proxy, function, args, kwargs)

    def called(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Handle a function that is no op, for example a factory."""
        proxy = find_proxy(args, kwargs)
        return NotImplemented if proxy is None else self._make_proxy_node(proxy, function, args, kwargs)

    @staticmethod
    def _refuse_call(function: Any) -> None:
        raise TraceError(
            f"torch.nn.functional.{function.__name__}: symbolically traced variables cannot be used as inputs to "
            "control flow"
        )

    @staticmethod
    def _make_proxy_node(proxy: Proxy, function: Any, args: Any, kwargs: Any) -> Proxy:
        return type(proxy).__torch_function__(function, (), tuple(args), kwargs)


def _with_plain_parameters(function: Any) -> FunctionType:
    """Return an op's function with its public parameters. Raise AssertionError if PyTorch implements it in C++, without
    Python to trace.
    """
    name = function.__name__
    found: Any = getattr(torch.nn.functional, name, None)
    if found is not function or name in BUILTIN_FUNCTIONAL_NAMES:
        raise AssertionError(f"Expected FunctionType, got built-in function {public_name(function) or name}")
    record = {p.name: p for p in function.op.params}
    parameters = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.name in record or p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    shown = ", ".join(p.name if p.default is p.empty else f"{p.name}=_defaults[{p.name!r}]" for p in parameters)
    by_place = {name for name, p in record.items() if not p.kwonly}
    given = ", ".join(p.name if p.name in by_place else f"{p.name}={p.name}" for p in parameters)
    scope: dict[str, Any] = {"_function": function, "_defaults": {p.name: p.default for p in parameters}}
    text = f"def {name}({shown}):\n    return _function({given})\n"
    return compile_function(name, text, f"<torch.fx: {name}>", scope)


def _drop_variadics(function: FunctionType, count: int) -> FunctionType:
    """Return the function with `*args` and `**kwargs` as plain parameters."""
    code = function.__code__
    flat = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~_VARIADIC
    )
    return FunctionType(flat, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def _resolve_annotation(function: Any, name: str) -> Any:
    """Return the annotation of a parameter or the return value, None if missing or unresolvable."""
    found = getattr(function, "__annotations__", {}).get(name)
    if not isinstance(found, str):
        return found
    try:
        return evaluate(found, {"Tensor": Tensor, **vars(typing), **getattr(function, "__globals__", {})})
    except (AttributeError, NameError, SyntaxError, TypeError):
        return None


def _is_library_object(value: Any) -> bool:
    """Whether a value is an object of a class that a library of ops defines, such as packed weights."""
    return hasattr(type(value), "_schema_type")


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Runs a module or function with Proxies and records a graph.

    Subclasses customize leaf modules (`is_leaf_module`), conversion of arguments (`create_arg`), calls of modules
    (`call_module`) and access to attributes (`getattr`).

    Args:
        autowrap_modules: Modules whose functions are recorded as single calls. Default: ``(math,)``.
        autowrap_functions: Further such functions. Default: none.
        param_shapes_constant: Whether shapes of parameters are concrete, so that programs can branch on them. Default:
            ``False``.

    Example:
        >>> import torchlite as torch
        >>> class Deep(torch.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return False
        >>> graph = Deep().trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> [node.name for node in graph.nodes]
        ['input_1', 'relu', 'output']
    """

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(map(id, autowrap_functions))
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    _proxyable_classes = _proxyable_classes

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Any:
        """Converts an argument to an argument of a node.

        Parameters, buffers and submodules become `get_attr` nodes. Other tensors become attributes of the root
        (`_tensor_constant0`, ...).

        Args:
            a: The argument.

        Raises:
            NameError: A parameter does not belong to the root.
        """
        if isinstance(a, Parameter):
            for name, value in self.root.named_parameters():
                if a is value:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            return self._read_value(a, "_tensor_constant")
        if _is_library_object(a):
            return self._read_value(a, "_torchbind_obj")
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if a is module:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), items if hasattr(a, "_make") else (items,), {})
        if type(a) in _proxyable_classes:
            return self.create_node("get_attr", self._add_constant(a, f"_{type(a).__name__}_constant_"), (), {})
        return super().create_arg(a)

    def _read_value(self, value: Any, prefix: str) -> Any:
        """The node that reads an attribute of the root or of its submodules, which is new for another value."""
        if value not in self.tensor_attrs:
            self.tensor_attrs[value] = self._add_constant(value, prefix)
        return self.create_node("get_attr", self.tensor_attrs[value], (), {})

    def _add_constant(self, value: Any, prefix: str) -> str:
        """Make a value an attribute of the root; return the name."""
        number = 0
        while hasattr(self.root, name := f"{prefix}{number}"):
            number += 1
        setattr(self.root, name, value)
        return name

    @compatibility(is_backward_compatible=True)
    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Returns whether a module is recorded as one call: modules of torch.nn except Sequential.

        Args:
            m: The module.
            module_qualified_name: Has no effect: the module's dotted name, by which subclasses may decide.
        """
        parts = type(m).__module__.split(".")
        ours = is_torchlite_object(type(m)) and (parts[1:2] == ["nn"] or parts[1:3] == ["ao", "nn"])
        return ours and not isinstance(m, Sequential)

    @compatibility(is_backward_compatible=True)
    def path_of_module(self, mod: Any) -> str:
        """Returns a module's dotted name in the root.

        Args:
            mod: The module.

        Raises:
            NameError: The root does not have it.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    @compatibility(is_backward_compatible=True)
    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a module's call: a node for a leaf, else the result of its `forward`.

        Args:
            m: The module.
            forward: Its ``forward``.
            args: Tuple of positional arguments.
            kwargs: Dict of keyword arguments.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    @compatibility(is_backward_compatible=False)
    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Returns an attribute of a module.

        Parameters become nodes, each once; so do buffers with `proxy_buffer_attributes`.

        Args:
            attr: Has no effect: the attribute's name, by which subclasses may decide.
            attr_val: Its value.
            parameter_proxy_cache: Proxies by name.
        """
        if isinstance(attr_val, Parameter):
            among: Iterable[tuple[str, Any]] = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            among = self.root.named_buffers()
        else:
            return attr_val
        for name, value in among:
            if attr_val is value:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._attribute_proxy(name, attr_val)
                return parameter_proxy_cache[name]
        return attr_val

    def _attribute_proxy(self, name: str, value: Any) -> Proxy:
        given: dict[str, Any] = {}
        if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:  # overriders may lack the parameter
            shapes = self.param_shapes_constant and isinstance(value, Parameter)
            given["proxy_factory_fn"] = (lambda node: ParameterProxy(self, node, name, value)) if shapes else None
        return self.create_proxy("get_attr", name, (), {}, **given)

    # -- inputs -------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Returns the function to trace and its arguments, with a placeholder for each parameter.

        Args:
            root_fn: The function, or a module's ``forward``.
            is_module: Whether the first argument is the root.
            concrete_args: Values of parameters by name, or a tuple of all. Default: none.
        """
        function: Any = inspect.unwrap(root_fn)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args: list[Any] = [self.root] if is_module else []
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & _VARIADIC and count == 1:
            return root_fn, args + [self._add_flat_input(i, value) for i, value in enumerate(concrete_args)]
        names = list(code.co_varnames[len(args) : count])
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        signature = inspect.signature(function)
        args += [self._proxy_placeholder(name, concrete_args, signature, function) for name in names]
        if code.co_kwonlyargcount or code.co_flags & _VARIADIC:
            stars = ["*"] * bool(code.co_flags & inspect.CO_VARARGS)
            stars += ["**"] * bool(code.co_flags & inspect.CO_VARKEYWORDS)
            rest = [star + name for star, name in zip(stars, code.co_varnames[count:], strict=False)]
            args += [self._proxy_placeholder(name, concrete_args, signature, function) for name in rest]
            root_fn = _drop_variadics(function, len(args))
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(list(code.co_varnames[:count]), in_spec, None))
        return self._flatten_function(root_fn, in_spec), flat

    def _add_flat_input(self, place: int, value: Any) -> Proxy:
        made = self.create_proxy("placeholder", f"input_{place}", (), {})
        if isinstance(value, PHBase) and value is not PH:
            _transfer_attrs(value, made.node)
        return made

    def _flatten_function(self, function: Callable[..., Any], in_spec: Any) -> Callable[..., Any]:
        """Return the function with flat arguments and results; the codegen adds the pytrees."""

        def flatten_fn(*args):  # type: ignore[no-untyped-def]  # (what is annotated would be the graph's)
            out, out_spec = pytree.tree_flatten(function(*pytree.tree_unflatten(list(args), in_spec)))
            codegen: Any = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return out

        return flatten_fn

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: Any, fn_for_analysis: Any) -> Any:
        """Return the argument for a parameter: a placeholder, or a pytree of placeholders and given values."""
        parameter = sig.parameters.get(name)
        default = () if parameter is None or parameter.default is parameter.empty else (parameter.default,)
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy(
                "placeholder", name, default, {}, type_expr=_resolve_annotation(fn_for_analysis, name)
            )
        count = 0

        def stood_for(value: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if not isinstance(value, PHBase):
                self._assert_same(name, made, value)
                return value
            if value is not PH:
                _transfer_attrs(value, made.node)
            return made

        return pytree.tree_map(stood_for, concrete_args[name])

    def _assert_same(self, name: str, made: Proxy, value: Any) -> None:
        """Add a node that raises if an input differs from the value of the specialization."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (made, message), {})
        elif type(value) in base_types and type(value) is not Tensor:
            equal: Any = made == value
            self.create_proxy("call_function", _assert, (equal, message), {})
        else:
            import warnings

            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up "
                "to the user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )

    # -- tracing ------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Returns the graph of a module or function.

        Args:
            root: The module or function.
            concrete_args: Values of some parameters by name, for which the graph is specialized. Default: none.

        Raises:
            TraceError: Control flow depends on the value of an input.
        """
        before, _STATE.is_tracing = _STATE.is_tracing, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _STATE.is_tracing = before
            self.submodule_paths = None

    @restores_modes
    def _trace(self, root: Any, concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            _LazyGraphModule.force_recompile(root)
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            self.root = root
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        if hasattr(function, "__code__"):
            code = function.__code__
            names = {"co_name": code.co_name, "co_filename": code.co_filename}
            self.graph._co_fields = {**names, "co_firstlineno": code.co_firstlineno}
        self.tensor_attrs: dict[Any, str] = {
            value: f"{path}.{name}" if path else name
            for path, module in self.root.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor) or _is_library_object(value)
        }
        if not isinstance(function, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        if hasattr(function, "op") or function.__code__.co_filename in _WRAPPER_FILES:
            function = _with_plain_parameters(function)
        names = function.__globals__
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        returns = _resolve_annotation(inspect.unwrap(function), "return")
        searched = self._autowrap_search
        with ProgramTrace(self, self._autowrap_function_ids, searched) as seen, _ProxyInterceptor():
            seen.search(names)
            result = self.create_arg(function(*args))
            self.create_node("output", "output", (result,), {}, type_expr=returns)
        return self.graph

    def __deepcopy__(self, memo: Any) -> Tracer:
        made = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            # (Python modules cannot be copied.)
            made.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return made


graph_module._DEFAULT_TRACER.append(Tracer)


class _Patcher:
    """Context in which a package's own `Tracer.trace` runs a program: calls with Proxies create nodes.

    Modules are called as usual. The package replaces their methods with `patch_method`, for all threads, until the
    context ends.
    """

    def __init__(self) -> None:
        self._trace, self._interceptor = FunctionTrace(set()), _ProxyInterceptor()
        self._patches: list[tuple[Any, str, Any]] = []  # class or globals, name, and what it was
        self._patched: set[tuple[int, str]] = set()
        self._visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a name in a module's globals. With `deduplicate`, a later replacement is ignored."""
        if self._is_new(frame_dict, name, deduplicate):
            self._patches.append((frame_dict, name, frame_dict.get(name, _ABSENT)))
            frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class. With `deduplicate`, a later replacement is ignored."""
        if self._is_new(cls, name, deduplicate):
            self._patches.append((cls, name, vars(cls).get(name, _ABSENT)))
            setattr(cls, name, new_fn)

    def _is_new(self, owner: Any, name: str, deduplicate: bool) -> bool:
        key = id(owner), name
        known = key in self._patched
        self._patched.add(key)
        return not (known and deduplicate)

    def visit_once(self, thing: Any) -> bool:
        """True at the first call with an object."""
        known = id(thing) in self._visited
        self._visited.add(id(thing))
        return not known

    def __enter__(self) -> _Patcher:
        self._trace.__enter__()
        self._interceptor.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        while self._patches:
            owner, name, before = self._patches.pop()
            if isinstance(owner, dict):
                owner.pop(name, None) if before is _ABSENT else owner.__setitem__(name, before)
            else:
                delattr(owner, name) if before is _ABSENT else setattr(owner, name, before)
        self._patched.clear()
        self._visited.clear()
        self._interceptor.__exit__(*error)
        self._trace.__exit__(*error)


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Let the arguments of `wrap` create nodes."""
    patcher._trace.wrap_marked()


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Let the functions with these ids among a module's globals create nodes."""
    if patcher.visit_once(frame_dict):
        patcher._trace.wrapped |= function_ids
        patcher._trace.search(frame_dict)


@compatibility(is_backward_compatible=True)
def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """Returns a `GraphModule` that computes what a module or function does.

    The program runs once with Proxies as inputs.

    Args:
        root: The module or function.
        concrete_args: Values of some parameters by name, for which the graph is specialized. Default: none.

    Returns:
        A `GraphModule`.

    Raises:
        TraceError: Control flow depends on the value of an input.

    Example:
        >>> import torchlite as torch
        >>> def scaled(x, negative):
        ...     return -x if negative else x * 2
        >>> module = torch.fx.symbolic_trace(scaled, concrete_args={"negative": True})
        >>> module(torch.ones(2), True)
        tensor([-1., -1.])

    See also:
        `torch.export.export`, which records ATen ops and works for all modules with static control flow.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)
