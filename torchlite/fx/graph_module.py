"""GraphModule: an `nn.Module` whose forward is generated from a graph."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .._tensor import Tensor
from .._types.checked_callable import CheckedCallable
from .._types.package_name import package_name as package_name
from .._types.python_source import comment, identifier, is_identifier
from ..func import _predispatch
from ..nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..nn.modules.conv import Conv1d, Conv2d, Conv3d
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._codegen import PythonCode, _BoxedCodeGen, _custom_builtins, _PyTreeCodeGen
from ._compatibility import compatibility
from ._generated_source import (  # noqa: F401
    _exec_with_source,
    _forward_from_src,
    _method_from_src,
    format_generated_error,
    import_block,
    redirect_imports,
)
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
# Tracer for unpickled code if the pickle names none; set by `_symbolic_trace`.
_DEFAULT_TRACER: list[type] = []
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_STATE_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


class _CodeOnlyModule(Module):
    """Module with the attributes that a graph names."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """Return the GraphModule of a pickle: execute its code and trace it again.

    body: the module's attributes. import_block: imports that the code needs.
    """
    code = body.get("_code") or body["code"]
    given = dict(body.pop("_graphmodule_checked", None) or {})
    return _deserialize_graph_module(_forward_from_src(redirect_imports(import_block) + code, given), body)


@compatibility(is_backward_compatible=True)
def reduce_package_graph_module(importer: Any, body: dict[str, Any], generated_module_name: str) -> Module:
    """Return the GraphModule of a package: import the module of its code from the package, and trace it again."""
    return _deserialize_graph_module(importer.import_module(generated_module_name).forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None
) -> Module:
    """Return a GraphModule by tracing this function with these attributes."""
    kept = dict(body)
    traces = kept.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    tracer: Any = kept.get("_tracer_cls") or _DEFAULT_TRACER[0]
    keeping = type("KeepModules", (tracer,), {"is_leaf_module": lambda self, module, name: True})
    code_only = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(kept)
    graph = keeping().trace(code_only, **kept.get("_tracer_extras", {}))
    graph._tracer_cls = tracer
    for node in graph.nodes:
        if traces.get(node.name) is not None:
            node.meta["stack_trace"] = traces[node.name]
    if kept.get("_in_spec") is not None and isinstance(graph._codegen, _PyTreeCodeGen):
        graph._codegen.pytree_info = graph._codegen.pytree_info._replace(in_spec=kept["_in_spec"])
    graph_module = (graph_module_cls or GraphModule)(
        code_only, graph, class_name=kept.pop("_graphmodule_cls_name", "GraphModule")
    )
    for name, value in kept.items():
        if not hasattr(graph_module, name):
            setattr(graph_module, name, value)
    return graph_module


def _owner_of(module: Any, path: list[str]) -> Any:
    """Return the submodule at a path; create missing ones."""
    for part in path:
        inner = getattr(module, part, None)
        if inner is None:
            inner = Module()
            setattr(module, part, inner)
        module = inner
    return module


def _set_attr(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy an attribute of another module under the same dotted name; create missing submodules."""
    *path, name = target.split(".")
    for part in path:
        inner = getattr(to_module, part, None)
        from_module = getattr(from_module, part)
        if inner is from_module:
            return
        to_module = _owner_of(to_module, [part])
    _set_attr(to_module, name, getattr(from_module, name))


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Set a value under a dotted name; create missing submodules."""
    *path, name = target.split(".")
    _set_attr(_owner_of(to_module, path), name, from_obj)


def _get_attr_via_attr_list(model: Any, attr_list: list[str]) -> Any:
    for part in attr_list:
        model = getattr(model, part)
    return model


def _get_attr(model: Any, attr_name: str) -> Any:
    """Return the attribute of a dotted name."""
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _del_attr(model: Any, attr_name: str) -> None:
    *path, name = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path), name)


def _has_attr(model: Any, attr_name: str) -> bool:
    for part in attr_name.split("."):
        if not hasattr(model, part):
            return False
        model = getattr(model, part)
    return True


def _addindent(text: str, width: int) -> str:
    """Indent all lines but the first."""
    return text.replace("\n", "\n" + " " * width)


def _print_readable(module: Any, name: str, print_output: bool = True, **style: Any) -> str:
    """Return a module's code as a class, with value metadata, followed by its submodules with graphs."""
    code = module.graph.python_code(root_module="self", verbose=True, **style).src.lstrip("\n")
    text = _addindent(f"class {name}(torch.nn.Module):\n{code}", 4)
    inner = [
        _print_readable(child, child_name, print_output=False, **style)
        for child_name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    text += _addindent("\n".join(["", *inner]), 4)
    if print_output:
        print(text)
    return text


def _call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a GraphModule; an error in generated code is printed with its line, unless the class forbids it."""
    cls = type(self)
    try:
        if cls._own_call is not None:
            return cls._own_call(self, *args, **kwargs)
        return super(cls, self).__call__(*args, **kwargs)
    except Exception as error:
        told = format_generated_error(error) if cls._shows_generated_line else None
        if told is not None:
            print(told, file=sys.stderr)
        raise


@compatibility(is_backward_compatible=True)
class GraphModule(Module):
    """Module whose `forward` is generated from a graph.

    Assigning a new graph recompiles the module. After changes in place call `recompile()`.

    Args:
        root: A module, or a dict by dotted names, with the attributes that the graph names.
        graph: The graph.
        class_name: Name of the class. Default: ``"GraphModule"``.

    Raises:
        RuntimeError: ``root`` is another object, or a dict that lacks an attribute.

    Example:
        >>> import torchlite as torch
        >>> def twice(x):
        ...     return x + x
        >>> module = torch.fx.symbolic_trace(twice)
        >>> print(module.code.strip())
        def forward(self, x):
            add = x + x;  x = None
            return add
        >>> module(torch.ones(2))
        tensor([2., 2.])
    """

    __jit_unused_properties__ = ["graph", "_boxed_call"]
    if TYPE_CHECKING:  # annotated names would be attributes for TorchScript
        _own_call: Callable[..., Any] | None
        _graph: Graph
    else:
        _own_call = None
    _shows_generated_line = True  # an error in generated code is printed with its line

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each module has its own forward, so each has its own class, a subclass of the user's.
        base = next(c for c in cls.__mro__ if c.__qualname__.rpartition(".")[2] != "GraphModuleImpl")
        own = type("GraphModuleImpl", (base,), {"__module__": base.__module__, "__doc__": base.__doc__})
        own.__qualname__ = f"{base.__qualname__}.GraphModuleImpl"
        return super().__new__(own)

    @compatibility(is_backward_compatible=True)
    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        names = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", self.training)
            if isinstance(root, _CodeOnlyModule):  # a pickle keeps all attributes
                inner = (root.named_children(), root.named_buffers(), root.named_parameters())
                names = [name for kind in inner for name, _ in kind] + names
            for name in names:
                _copy_attr(root, self, name)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for name in sorted(names, key=lambda name: name.count(".")):  # parents first
                _assign_attr(root[name], self, name)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.meta: dict[str, Any] = {}
        for name in _HOOKS:
            setattr(self, name, [])
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer is not None and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.shape_env = None

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """Return the graph."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """Return the Python code of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Call recompile() first")
        return self._code

    @compatibility(is_backward_compatible=True)
    def recompile(self) -> PythonCode:
        """Regenerate and compile the code after a change of the graph."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = code.src, code._lineno_map, code._prologue_start
        cls: Any = type(self)
        run = self._graph._running_code(code)
        forward = _forward_from_src(run.src, run.globals, self._graph._co_fields)
        cls.forward = _predispatch.end_levels_after(forward, self._graph.nodes)
        own = vars(cls).get("__call__")
        if own is not _call_wrapped:
            cls._own_call, cls.__call__ = own, _call_wrapped
        self._recompile_submodules()
        return code

    def _generate_waiting_code(self) -> None:
        """Generate the code of `forward` now, in classes that wait for the first call."""

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        return [(name, child.recompile()) for name, child in self.named_children() if isinstance(child, GraphModule)]

    # -- submodules ---------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=True)
    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a submodule under a dotted name, and the parents that are missing.

        Args:
            target: Dotted name.
            m: The submodule.

        Returns:
            ``False`` if another attribute is in the way, else ``True``.
        """
        *path, name = target.split(".")
        owner: Any = self
        for part in path:
            owner = _owner_of(owner, [part])
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_submodule(self, target: str) -> bool:
        """Removes a submodule.

        Args:
            target: Dotted name.

        Returns:
            ``False`` if there is no such submodule, else ``True``.
        """
        *path, name = target.split(".")
        owner: Any = self
        for part in path:
            owner = getattr(owner, part, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_all_unused_submodules(self) -> None:
        """Remove submodules that no node uses, directly or through their children."""
        used = {""}
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            target = str(node.target)
            used.update(accumulate(target.split("."), "{}.{}".format))
            if node.op == "call_module" and _has_attr(self, target):
                inner = _get_attr(self, target)
                used.update(f"{target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # -- copies and pickles -----------------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        body = {**self.__dict__, "_graphmodule_cls_name": type(self).__name__}
        code = self.recompile()
        run = self._graph._running_code(code)
        checked = {name: value for name, value in run.globals.items() if isinstance(value, CheckedCallable)}
        body.update(_code=run.src, _graphmodule_checked=checked)
        del body["_graph"]
        traces = {node.name: node.meta["stack_trace"] for node in self.graph.nodes if "stack_trace" in node.meta}
        body["_graphmodule_graph_node_meta_stack_trace"] = traces
        named = {name: value for name, value in run.globals.items() if name not in checked}
        return reduce_graph_module, (body, import_block(named))

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: Any) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        copied = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, copied, copied.__dict__["_graph"])
        type(made).__name__ = type(self).__name__
        for name in (*_STATE_HOOKS, *_HOOKS):
            if name in self.__dict__:
                setattr(made, name, copied.__dict__[name])
        made.meta = copied.__dict__.get("meta", {})
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in made._deepcopy_hooks:  # type: ignore[attr-defined]
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made

    @compatibility(is_backward_compatible=False)
    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes a package: `module.py` with a class, and files of weights.

        Modules whose `repr` cannot rebuild them are saved by pickle, with a warning.

        Args:
            folder: Path of the folder.
            module_name: Name of the class. Default: ``"FxModule"``.
        """
        from pathlib import Path

        where = Path(folder)
        where.mkdir(exist_ok=True)
        torch.save(self.state_dict(), where / "state_dict.pt")
        ours = package_name()
        tab = " " * 8
        lines = [
            *(redirect_imports(builtin.import_str) for builtin in _custom_builtins.values()),
            "", f"from {ours}.nn import *",
            f"class {identifier(module_name)}(torch.nn.Module):", "    def __init__(self):", f"{tab}super().__init__()",
        ]  # fmt: skip
        whole: list[str] = []
        plain = (Linear, Conv1d, Conv2d, Conv3d, BatchNorm1d, BatchNorm2d, BatchNorm3d)
        for number, (name, child) in enumerate(self.named_children()):
            expression, note = repr(child), ""
            if type(child) not in plain:
                whole.append(name)
                file = where / (f"{name}.pt" if is_identifier(name) or name.isdecimal() else f"_child_{number}.pt")
                torch.save(child, file)
                expression = f"torch.load({str(file)!r}, weights_only=False)"
                note = f"  {comment(' '.join(repr(child).split()))}"
            lines.append(f"{tab}setattr(self, {name!r}, {expression}){note}")
        for name, value in self._buffers.items():
            if value is not None:
                empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                lines.append(f"{tab}self.register_buffer({name!r}, {empty})")
        for name, weight in self._parameters.items():
            if weight is not None:
                empty = f"torch.empty({list(weight.shape)}, dtype={weight.dtype})"
                lines.append(f"{tab}setattr(self, {name!r}, torch.nn.Parameter({empty}))")
        lines.append(f"{tab}self.load_state_dict(torch.load({str(where / 'state_dict.pt')!r}))")
        (where / "module.py").write_text("\n".join(lines) + f"\n{_addindent(self.code, 4)}\n")
        (where / "__init__.py").write_text("from .module import *")
        if whole:
            warnings.warn(
                "Was not able to save the following children modules as reprs -"
                f"saved as pickled files instead: {whole}",
                stacklevel=2,
            )

    # -- printing -----------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Returns and prints the code as a class, with shapes and source locations where they are known.

        Submodules with graphs follow.

        Args:
            print_output: Whether to print the text. Default: ``True``.
            include_stride: Whether metadata has strides. Default: ``False``.
            include_device: Whether metadata has devices. Default: ``False``.
            colored: Whether the text has colors for a terminal. Default: ``False``.
            fast_sympy_print: No effect: sizes are not SymPy expressions.
            expanded_def: Whether each parameter has a line of its own. Default: ``False``.
            additional_meta: Further keys of ``meta`` that comments have. Default: none.
        """
        return _print_readable(
            self,
            self._get_name(),
            print_output,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )

    def __str__(self) -> str:
        told = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self.code, told])

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = self.__copy__()
        object.__setattr__(made, "_is_replica", True)
        return made

    # -- hooks --------------------------------------------------------------------------------------------------

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """Call `f(old=, new=, user=)` when a node is replaced or renamed within the context."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _hook(self, kind: str, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{kind} hook must be a callable.")
        getattr(self, f"_{kind}_hooks").append(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("replace", f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("create_node", f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("erase_node", f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._hook("deepcopy", f)

    def _unregister_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.remove(f)


__dir__ = make_module_dir(
    globals(), "_USER_PRESERVED_ATTRIBUTES_KEY _custom_builtins _exec_with_source _forward_from_src _method_from_src"
)
