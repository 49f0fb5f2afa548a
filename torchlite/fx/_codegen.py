"""Generates Python code from a graph."""

from __future__ import annotations

import enum
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._library.op_overload import OpOverload
from .._symbolic_shapes import SymBool, SymFloat, SymInt
from .._tensor import Tensor
from .._types.checked_callable import CheckedCallable
from .._types.devices import device
from .._types.python_source import attribute, comment, identifier, one_line, quote
from ..utils import _pytree as pytree
from . import _pytree as fx_pytree
from ._compatibility import compatibility
from ._naming import Namespace, format_target, public_name, qualified_name, reserve_name, torchlite_package, type_repr
from .node import Node, abbreviation
from .tensor_type import TensorType


class _CustomBuiltin(NamedTuple):
    """Global name of generated code, with the line that imports it."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Register a name in generated code for an object whose `repr` needs an import."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    reserve_name(name, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", torchlite_package())
_register_custom_builtin("device", "from torch import device", device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

# Python operators by function name.
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}",
    "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
_OF_TYPING = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006
_COLORS = {"dim": 2, "red": 31, "blue": 34, "dim_blue": "2;34", "dim_green": "2;32"}


@compatibility(is_backward_compatible=True)
@dataclass
class PythonCode:
    """Python code of a graph: the source of `forward`, and its globals."""

    src: str
    globals: dict[str, Any]
    # Node index by line of the source, counted from the function's head.
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """Tree specs of a function whose graph takes flat arguments."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _SourceLine(str):
    """Line of a function's body, with the node it belongs to."""

    node: int | None = None

    @classmethod
    def of(cls, text: str, node: int | None) -> _SourceLine:
        line = cls(text)
        line.node = node
        return line


class _PrintStyle(NamedTuple):
    """Format options: annotations besides the code."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: Sequence[str] = ()
    runs: bool = False  # True if functions that check their arguments are called in their checking form


def _source_comment(trace: str | None) -> str:
    """Return a comment with a node's source location: the innermost of its stack trace."""
    lines = (trace or "").strip().split("\n")
    for at in range(len(lines) - 2, -1, -1):
        found = re.match(r'File "(.+)", line (\d+), in (.+)$', lines[at].strip())
        if found:
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {lines[at + 1].strip()}"
    return "No stacktrace found for following nodes"


class _Writer:
    """Writer of a graph's function body; collects the globals."""

    def __init__(self, namespace: Namespace, root_module: str, style: _PrintStyle) -> None:
        self.namespace, self.root, self.style = namespace, root_module, style
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = ""
        for name, (_, thing) in _custom_builtins.items():
            self.add_global(name, thing)

    def add_global(self, hint: str, thing: Any) -> str:
        """Return the expression under which the code finds an external object."""
        found = None if thing is device else public_name(thing)
        if found is not None:
            return format_target(*found.split(".", 1))
        return self.held(hint, thing)

    def held(self, hint: str, thing: Any) -> str:
        """Return the global name of an object."""
        name = self.namespace.create_name(hint, thing)
        if name not in self.globals:
            self.globals[name] = thing
        elif self.globals[name] != thing:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def annotation(self, kind: Any) -> str:
        """Return a type annotation."""
        if kind == ():
            return "()"
        name = type_repr(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.annotation, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.add_global(name, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _OF_TYPING.get(origin, origin)
        head = self.add_global(type_repr(origin), origin)
        inner = kind.__args__ if isinstance(kind, TensorType) else typing.get_args(kind)
        return f"{head}[{','.join(map(self.annotation, inner))}]" if inner else head

    def color_text(self, text: str, color: str) -> str:
        return f"\033[{_COLORS[color]}m{text}\033[0m" if self.style.colored else text

    def value(self, arg: Any) -> str:
        """Return an argument as source."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            items = f"{', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''}"
            items = items if hasattr(arg, "_make") else f"({items})"  # torch.return_types take a sequence
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}({items})"
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.value, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{self.value(key)}: {self.value(item)}" for key, item in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, enum.Enum):
            return attribute(self.add_global(type(arg).__name__, type(arg)), arg.name)
        if isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.shape)}, dtype={str(arg.dtype).rpartition('.')[2]})"
        if isinstance(arg, CheckedCallable):
            arg = arg.plain
        if isinstance(arg, OpOverload) or _is_function(arg):
            return self.add_global(qualified_name(arg), arg)
        if isinstance(arg, type) or typing.get_origin(arg) is not None:
            return self.annotation(arg)
        return self.color_text(repr(arg), "blue")

    def call(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        named = [f"{identifier(name)} = {self.value(item)}" for name, item in kwargs.items()]
        return ", ".join([*map(self.value, args), *named])

    def value_annotation(self, node: Node) -> str:
        """Return what verbose code shows as a value's annotation."""
        found = node._meta_value()
        sizes = "[" + ", ".join(map(str, getattr(found, "shape", ()))) + "]"
        if isinstance(found, Tensor):
            text = self.color_text(abbreviation(found.dtype), "red") + self.color_text(sizes, "blue")
            if self.style.include_stride:
                text += self.color_text(f"[{', '.join(map(str, found.stride()))}]", "dim_blue")
            if self.style.include_device:
                text += self.color_text(str(found.device), "dim_green")
            kind = type(found).__name__
            return self.note(text if type(found) is Tensor or kind == "FakeTensor" else f"{kind}({text})")
        if isinstance(found, (SymInt, SymFloat, SymBool)):
            return self.note(f"Sym({found})")
        if hasattr(found, "shape") and hasattr(found, "dtype"):
            return self.note(f"{abbreviation(found.dtype)}{sizes}")
        return "" if node.type is None else f" : {self.annotation(node.type)}"

    def note(self, text: str) -> str:
        """Return a text as annotation. (Colored code is printed and never compiled.)"""
        return f': "{text}"' if self.style.colored else f": {quote(text)}"

    def step(self, node: Node, gen: CodeGen) -> str | None:
        """Return a node's statement without line end, None for a placeholder."""
        kind = "" if node.type is None else f" : {self.annotation(node.type)}"
        if self.style.verbose:
            kind = self.value_annotation(node)
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            name = str(node.target)
            bare = identifier(name.lstrip("*"))
            description = (
                f"  {comment(str(node.meta['desc']))}" if self.style.expanded_def and node.meta.get("desc") else ""
            )
            self.parameters.append(f"{name}{kind}{default}{description}")
            return None if bare == repr(node) else f"{node!r} = {bare}\n"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.annotation(node.type)}"
            return gen._output_of(node, self)
        head = f"{node!r}{kind} = "
        if node.op == "call_method":
            first = format_target(self.value(node.args[0]), str(node.target))
            return f"{head}{first}({self.call(node.args[1:], node.kwargs)})"
        if node.op == "get_attr":
            return head + format_target(self.root, str(node.target))
        if node.op == "call_module":
            return f"{head}{format_target(self.root, str(node.target))}({self.call(node.args, node.kwargs)})"
        if node.op == "call_function":
            return self.function(node, kind, head)
        raise NotImplementedError(f"node: {node.op} {node.target}")

    def function(self, node: Node, kind: str, head: str) -> str:
        """Return the statement of a call_function node: operators and attributes in Python syntax."""
        target: Any = node.target
        if isinstance(target, CheckedCallable):
            if self.style.runs:
                return f"{head}{self.held(qualified_name(target.plain), target)}({self.call(node.args, node.kwargs)})"
            target = target.plain
        if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
            if target.__name__ in magic_methods:
                return head + magic_methods[target.__name__].format(*map(self.value, node.args))
            if target.__name__ in inplace_methods:
                written = inplace_methods[target.__name__].format(*map(self.value, node.args))
                return f"{written};  {node!r}{kind} = {self.value(node.args[0])}"
        name = self.add_global(qualified_name(target), target)
        args = node.args
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return head + format_target(self.value(args[0]), args[1])
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(name)
        return f"{head}{name}({self.call(args, node.kwargs)})"

    def summary(self, node: Node) -> str:
        """Return the comment before nodes from one source line."""
        shown = ", ".join(f"{key}: {node.meta[key]}" for key in self.style.additional_meta if key in node.meta)
        marks = {
            key: value if len(str(value)) <= 40 else f"{str(value)[:40]}..."
            for key, value in (node.meta.get("custom") or {}).items()
        }
        text = f"{f'# {shown} ' if shown else ''}#{f' Annotation: {marks}' if marks else ''}"
        return f"\n{self.color_text(one_line(f'{text} {_source_comment(node.stack_trace)}'), 'dim')}\n"


def _is_function(arg: Any) -> bool:
    """True if an argument is a function with a name."""
    if isinstance(arg, types.BuiltinFunctionType) and getattr(arg, "__self__", None) is not None:
        return isinstance(arg.__self__, types.ModuleType)
    return isinstance(arg, (types.FunctionType, types.BuiltinFunctionType))


def _find_last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """Return, by node, the values used there for the last time."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for node in user._input_nodes:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
    return found


def _accepted_keywords(method: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords that a method, possibly overridden by a user, accepts."""
    taken = inspect.signature(method).parameters
    return {name: value for name, value in given.items() if name in taken}


@compatibility(is_backward_compatible=False)
class CodeGen:
    """Generates Python code from a graph.

    Subclasses define the function's signature and return statement, and the mapping between the function's and the
    graph's inputs and outputs.

    Example:
        >>> class Renamed(torch.fx.CodeGen):
        ...     def gen_fn_def(self, free_vars, maybe_return_annotation, **options):
        ...         return super().gen_fn_def(free_vars, " -> 'Tensor'", **options)
        >>> module = torch.fx.symbolic_trace(lambda x: x + 1)
        >>> module.graph.set_codegen(Renamed())
        >>> print(module.graph.python_code("self").src.strip())
        def forward(self, x) -> 'Tensor':
            add = x + 1;  x = None
            return add
    """

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Returns the function's header, such as `def forward(self, a, b):`.

        Args:
            free_vars: Names of the parameters.
            maybe_return_annotation: Text after the parameters, such as ``" -> Tensor"``, or ``""``.
            expanded_def: Whether each parameter has a line of its own. Default: ``False``.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = []
        for variable in free_vars:
            name, mark, told = variable.partition("#")
            lines.append(f"    {name.rstrip()},{f'  # {told.lstrip()}' if mark else ''}\n")
        return f"def {self._func_name}(\n{''.join(lines)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """Returns the return statement, not indented.

        Args:
            output_args: The graph's output.
            descs: Comments of its items, which then have a line each. Default: none.
            repr_fn: Function that turns a value into code. Default: ``repr``.
        """
        text = repr_fn or repr
        if descs is None or not isinstance(output_args, (list, tuple)):
            return f"return {text(output_args)}"
        ends = "()" if isinstance(output_args, tuple) else "[]"
        lines = [f"    {text(item)},  {comment(str(told))}\n" for item, told in zip(output_args, descs, strict=False)]
        return f"return {ends[0]}\n{''.join(lines)}{ends[1]}"

    def _output_of(self, node: Node, writer: _Writer) -> str:
        told = node.meta.get("desc") if writer.style.expanded_def else None
        given = {"descs": told, "repr_fn": writer.value}
        return self.generate_output(node.args[0], **_accepted_keywords(self.generate_output, given))

    def process_inputs(self, *args: Any) -> Any:
        """Returns the graph's inputs, given the function's.

        Args:
            *args: The function's arguments.
        """
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Returns the function's result, given the graph's output.

        Args:
            outputs: The graph's output.
        """
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return (name, value) pairs of additional globals."""
        return []

    def _gen_python_code(
        self,
        nodes: Iterable[Node],
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        additional_meta: Sequence[str] | None = None,
        runs: bool = False,
        **_: Any,
    ) -> PythonCode:
        style = _PrintStyle(verbose, include_stride, include_device, colored, expanded_def, additional_meta or (), runs)
        writer = _Writer(namespace, root_module, style)
        body = self._body_lines(list(nodes), writer)
        if not any(line.strip() for line in body):
            body.append("pass\n")
        before = "\n".join(f"torch.fx.wrap({quote(name)})" for name in writer.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        given = {"expanded_def": True} if expanded_def else {}
        head = self.gen_fn_def(writer.parameters, writer.returns, **_accepted_keywords(self.gen_fn_def, given))
        code, lines = _join_lines(body, head.count("\n") + 1)
        src = f"\n{before}\n\n{head}\n{code}"
        return PythonCode(src, writer.globals, _lineno_map=lines, _prologue_start=before.count("\n") + 4)

    def _body_lines(self, nodes: list[Node], writer: _Writer) -> list[str]:
        """Return the body's lines; each value is released after its last use."""
        ends = _find_last_uses(nodes)
        last_summary = None
        body: list[str] = [*_placeholder_assignment(nodes)]
        together = bool(body)
        for place, node in enumerate(nodes):
            if writer.style.verbose and node.op not in ("placeholder", "output"):
                summary = writer.summary(node)
                if summary != last_summary:
                    last_summary = summary
                    body.append(_SourceLine.of(summary, place))
            identifier(node.name)
            text = writer.step(node, self)
            if text is None or together and node.op == "placeholder":
                continue
            if node.op == "output":
                text += "\n"
            elif node.op != "placeholder":
                done = ends.get(node, []) + ([] if node.users else [node])
                freed = " = ".join([*map(repr, done), "None"])
                text += f";  {writer.color_text(freed, 'dim')}\n" if done else "\n"
            body.append(_SourceLine.of(text, place))
        return body


def _placeholder_assignment(nodes: list[Node]) -> Iterator[str]:
    """Return a simultaneous assignment of parameters to node names, for nodes named like another parameter."""
    given = {str(node.target).lstrip("*"): node for node in nodes if node.op == "placeholder"}
    if any(given.get(node.name, node) is not node for node in nodes):
        names = ", ".join(map(repr, given.values()))
        yield _SourceLine.of(f"{names}, = {', '.join(map(identifier, given))},\n", None)


def _join_lines(body: list[str], start: int) -> tuple[str, dict[int, int | None]]:
    """Return the body as indented text and the node index by line number, starting at `start`."""
    text = "".join(body)
    owners: list[int | None] = []
    for piece in body:
        owners += [getattr(piece, "node", None)] * piece.count("\n")
    stripped = text.lstrip("\n")
    owners = owners[len(text) - len(stripped) :]
    lines = stripped.split("\n")
    owners += [owners[-1] if owners else None] * (len(lines) - len(owners))
    return "\n".join(f"    {line}" for line in lines), {start + i: owner for i, owner in enumerate(owners)}


class _BoxedCodeGen(CodeGen):
    """Function of one list, which it empties to release inputs early."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars if name != "self"]
        if names:
            lines += ["    args_iter = iter(args_list)", *(f"    {name} = next(args_iter)" for name in names)]
            lines.append("    args_list.clear()")
        return "\n".join(lines)


class _PyTreeCodeGen(CodeGen):
    """Function of pytree arguments and results; the graph has flat ones."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """Return the lines that flatten the function's arguments."""
        in_spec = self.pytree_info.in_spec
        positional, given = fn_args, ""
        # True for a tuple of positional arguments and a dictionary of keywords.
        if (
            in_spec.type is tuple
            and in_spec.num_children == 2
            and in_spec.child(0).type is tuple
            and in_spec.child(1).type is dict
        ):
            count = in_spec.child(0).num_children
            positional = fn_args[:count]
            names = zip(in_spec.child(1).context, fn_args[count:], strict=False)
            given = ", {" + ", ".join(f"{name!r}:{variable}" for name, variable in names) + "}"
        taken = f"[{', '.join(positional)}]"
        call = f"({taken}{given}), self._in_spec" if given else f"{taken}, self._in_spec"
        bare = [variable.split(":")[0].split("#")[0].strip() for variable in free_vars]
        noted = [variable.split("#")[0].strip() for variable in free_vars if ":" in variable]
        notes = f"\n    {'; '.join(noted)}" if noted else ""
        return f"{notes}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({call})"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        fn_args = list(map(identifier, self.pytree_info.orig_args))
        if fn_args and fn_args[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(list(fn_args), maybe_return_annotation, expanded_def=expanded_def)
        return head + self.gen_var_bindings(fn_args, free_vars, expanded_def) if free_vars else head

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        text = super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        if not self.pytree_info or not self.pytree_info.out_spec:
            return text
        return f"return pytree.tree_unflatten({text.removeprefix('return ')}, self._out_spec)"
