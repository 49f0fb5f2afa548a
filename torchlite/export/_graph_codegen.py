"""Generates the forward function of exported programs: calls op implementations directly, without `torch.ops`, and
unpacks plain arguments without pytrees.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from typing import Any

import torchlite as torch
from torchlite._aten import AtenOverload
from torchlite._dispatch.inference_calls import InferenceCalls
from torchlite._types.checked_callable import CheckedCallable
from torchlite._types.python_source import compile_function, identifier, is_identifier
from torchlite.func import _predispatch
from torchlite.fx import Node
from torchlite.fx._codegen import magic_methods
from torchlite.utils import _pytree as pytree

_NUMBERS = itertools.count()


def _reshape_like_view(input: Any, size: Any) -> Any:
    return input.reshape(size)


# Names reserved in the generated function.
_RESERVED = re.compile(r"[cv]\d+|self|args|kwargs|torch|NONE")


def _are_parameters(names: list[str]) -> bool:
    """True if the generated function can have parameters of these names."""
    return all(is_identifier(name) and not _RESERVED.fullmatch(name) for name in names) and len({*names}) == len(names)


def implementation_of(target: Any) -> Any:
    """Return a target's implementation. Views become reshapes: exporters omit `contiguous` where their kernels' strides
    allow, and torchlite's strides can differ.
    """
    if target is torch.ops.aten.view.default or target is torch.ops.aten._unsafe_view.default:
        return _reshape_like_view
    if type(target) is AtenOverload:
        run = target._run or target._find_run()
        takes = any(argument.type.base == "Tensor" for argument in target._schema.arguments)
        # Without tensor arguments, no `__torch_dispatch__` applies.
        return run if takes else target._plain
    return target


def install_forward(module: Any) -> None:
    """Install the generated function in a module's class. Calls without gradients are optimized."""
    cls = type(module)
    cls._by_graph = cls.forward
    run = _ForwardWriter(module).function()
    calls = InferenceCalls(run)

    @functools.wraps(run)
    def forward(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return calls(self, args, kwargs)

    cls.forward = forward


def install_subgraph_forward(module: Any) -> None:
    """Install the generated function in a subgraph's class."""
    cls = type(module)
    cls._by_graph = cls.forward
    cls.forward = _ForwardWriter(module).function()


class _ForwardWriter:
    """Writer of one module's function."""

    def __init__(self, module: Any) -> None:
        self.module, self.graph = module, module.graph
        self.given: dict[str, Any] = {"torch": torch}
        self.names: dict[Any, str] = {}
        self.lines: list[str] = []
        self.taken: dict[Node, tuple[Node, dict[int, tuple]]] = {}

    def function(self) -> Any:
        info = getattr(self.graph._codegen, "pytree_info", None)
        nodes = list(self.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        for number, node in enumerate(nodes):
            self.names[node] = f"v{number}"
        head = self._write_signature(info, inputs) if info is not None else self._write_plain_signature(inputs)
        self.taken, within = _fuse_indexing(nodes)
        ends = _find_last_uses([node for node in nodes if node not in within], self.taken)
        for node in nodes:
            if node.op not in ("placeholder", "output") and node not in within:
                self._write_node(node)
                done = [self.names[n] for n in ends.get(node, ()) if n.op != "placeholder"]
                if done:
                    self.lines.append(f"del {', '.join(done)}")
        results = self.graph.output_node().args[0]
        if info is not None:
            self._write_return(info, results)
        else:
            self.lines.append(f"return {self.value(results)}")
        text = head + "".join(f"    {line}\n" for line in self.lines)
        forward = compile_function("forward", text, f"<exported program {next(_NUMBERS)}>", dict(self.given))
        return _predispatch.end_levels_after(forward, nodes, _predispatch.restart_level_numbers)

    def held(self, value: Any) -> str:
        """Return a name for an external object."""
        name = f"c{len(self.given)}"
        self.given[name] = value
        return name

    def _write_plain_signature(self, inputs: list[Node]) -> str:
        """Return the signature of a subgraph, called with positional values."""
        return f"def forward({', '.join(['self', *(self.names[node] for node in inputs)])}):\n"

    def _write_signature(self, info: Any, inputs: list[Node]) -> str:
        """Return the signature: named arguments if all are leaves, else code that flattens pytrees."""
        spec = info.in_spec
        flat = self.held(_ArgumentUnpacker(spec, info.orig_args))
        variables = [self.names[node] for node in inputs]
        positional = spec.child(0)
        if not spec.child(1).num_children and all(child.is_leaf() for child in positional.children()):
            names = list(info.orig_args)
            if len(names) == len(variables) == positional.num_children and _are_parameters(names):
                plain = "".join(f", {name}=NONE" for name in names)
                self.given["NONE"] = _NO_DEFAULT
                self.lines.append(f"if args or kwargs or {' or '.join(f'{n} is NONE' for n in names) or 'False'}:")
                given = ", ".join(names)
                self.lines.append(
                    f"    {given}{',' * bool(names)} = {flat}.bound(({given}{',' * bool(names)}), args, kwargs)"
                    if names
                    else f"    {flat}.bound((), args, kwargs)"
                )
                for name, variable in zip(names, variables, strict=True):
                    self.lines.append(f"{variable} = {name}")
                return f"def forward(self{plain}, *args, **kwargs):\n"
        self.lines.append(
            f"{', '.join(variables)}{',' * bool(variables)} = {flat}.leaves(args, kwargs)"
            if variables
            else f"{flat}.leaves(args, kwargs)"
        )
        return "def forward(self, /, *args, **kwargs):\n"

    def _write_node(self, node: Node) -> None:
        name = self.names[node]
        if node.op == "get_attr":
            self.lines.append(f"{name} = {self._attribute_expression(str(node.target))}")
            return
        if node.op == "call_module":
            self.lines.append(
                f"{name} = self._modules[{str(node.target)!r}]({self._argument_expressions(node.args, {})})"
            )
            return
        target: Any = node.target
        is_plain = getattr(target, "__module__", "") == "_operator" and not isinstance(target, CheckedCallable)
        if is_plain and target.__name__ in magic_methods and not node.kwargs:
            values = [v if is_identifier(v) else f"({v})" for v in map(self.value, node.args)]
            if target is operator.getitem:
                self.lines.append(f"{name} = {values[0]}[{values[1]}]")
            else:
                self.lines.append(f"{name} = " + magic_methods[target.__name__].format(*values))
            return
        if node in self.taken:
            base, steps = self.taken[node]
            self.lines.append(f"{name} = {self.names[base]}[{_format_index(steps, self.value)}]")
            return
        args, kwargs = node.args, {key: v for key, v in node.kwargs.items() if key != "pin_memory" or v}
        if target is torch.ops.aten.index.Tensor:
            parts = [":" if part is None else self.value(part) for part in args[1]]  # type: ignore[union-attr]
            self.lines.append(f"{name} = {self.value(args[0])}[{', '.join(parts)}{',' * (len(parts) > 1)}]")
            return
        sign = _SIGNS.get(target)
        if sign is not None and not kwargs and len(args) == 2 and isinstance(args[0], Node):
            self.lines.append(f"{name} = {self.value(args[0])} {sign} {self.value(args[1])}")
            return
        run = implementation_of(target)
        if isinstance(target, AtenOverload) and kwargs and target._by_position:
            args, kwargs = target._schema.place_by_position(tuple(args), kwargs)
        self.lines.append(f"{name} = {self.held(run)}({self._argument_expressions(args, kwargs)})")

    def _attribute_expression(self, target: str) -> str:
        *path, last = target.split(".")
        owner: Any = self.module
        text = "self"
        for part in path:
            text += f"._modules[{part!r}]"
            owner = owner._modules[part]
        for table in ("_parameters", "_buffers", "_modules"):
            if last in getattr(owner, table):
                return f"{text}.{table}[{last!r}]"
        if last in owner.__dict__:  # a constant that is no buffer
            return f"{text}.__dict__[{last!r}]"
        raise RuntimeError(f"the program has no tensor and no graph {target[:200]!r}")

    def _argument_expressions(self, args: Any, kwargs: dict[str, Any]) -> str:
        return ", ".join(
            [*map(self.value, args), *(f"{identifier(key)}={self.value(item)}" for key, item in kwargs.items())]
        )

    def value(self, arg: Any) -> str:
        """Return an argument as source."""
        if isinstance(arg, Node):
            return self.names[arg]
        if isinstance(arg, (list, tuple)):
            inner = ", ".join(map(self.value, arg))
            if type(arg) is tuple or not isinstance(arg, list):
                return f"({inner}{',' * (len(arg) == 1)})"
            return f"[{inner}]"
        if arg is None or type(arg) in (int, bool, str):
            return repr(arg)
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        return self.held(arg)

    def _write_return(self, info: Any, results: Any) -> None:
        values = [self.value(r) for r in results]
        spec = info.out_spec
        if spec is None or spec.is_leaf():
            self.lines.append(f"return {values[0]}" if values else "return None")
        elif spec.type in (tuple, list) and all(child.is_leaf() for child in spec.children()):
            inner = ", ".join(values)
            self.lines.append(
                f"return [{inner}]" if spec.type is list else f"return ({inner}{',' * (len(values) == 1)})"
            )
        else:
            self.lines.append(f"return {self.held(pytree.tree_unflatten)}([{', '.join(values)}], {self.held(spec)})")


_aten = torch.ops.aten
# Ops with a shorter and faster Python operator.
_SIGNS: dict[Any, str] = {
    _aten.add.Tensor: "+", _aten.sub.Tensor: "-", _aten.mul.Tensor: "*", _aten.div.Tensor: "/",
}  # fmt: skip
_NO_DEFAULT = object()
_LAST = (1 << 63) - 1


def _index_step(node: Node) -> tuple[int, tuple] | None:
    """Return the dimension and index of a slice or select op, None for an invalid dimension, which the op reports."""
    args: Any = node.args
    dim = args[1] if len(args) > 1 else 0
    if node.kwargs or type(dim) is not int or not 0 <= dim < 64 or not args or not isinstance(args[0], Node):
        return None
    if node.target is torch.ops.aten.slice.Tensor:
        return dim, (*args[2:], *[None] * (2 - len(args[2:])))
    return (dim, args[2:]) if node.target is torch.ops.aten.select.int else None


def _fuse_indexing(nodes: list[Node]) -> tuple[dict[Node, tuple[Node, dict[int, tuple]]], set[Node]]:
    """Merge chains of slice and select ops into one index. Return the source value and index by node, and the nodes
    that are merged away.
    """
    found: dict[Node, tuple[Node, dict[int, tuple]]] = {}
    within: set[Node] = set()
    for node in nodes:
        step = _index_step(node) if node.op == "call_function" else None
        if step is None:
            continue
        base: Any = node.args[0]
        steps: dict[int, tuple] = {}
        before = found.get(base)
        if before is not None and len(base.users) == 1 and step[0] not in before[1]:
            if all(len(part) > 1 for part in before[1].values()):  # dimensions are numbered as before the index
                within.add(base)
                base, steps = before
        found[node] = base, {**steps, step[0]: step[1]}
    return found, within


def _format_index(steps: dict[int, tuple], written: Any) -> str:
    """Return the source of an index over several dimensions."""
    parts = [":"] * (max(steps) + 1)
    for dim, part in steps.items():
        parts[dim] = ":".join("" if p is None or p == _LAST else written(p) for p in part)
    return ", ".join(parts) + ("," if len(parts) > 1 else "")


def _find_last_uses(nodes: list[Node], taken: dict[Node, tuple[Node, dict[int, tuple]]]) -> dict[Node, list[Node]]:
    """Return, by node, the values used there for the last time, including its own if unused."""
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        inputs = node.all_input_nodes
        if node in taken:
            base, steps = taken[node]
            inputs = [base, *(p for part in steps.values() for p in part if isinstance(p, Node))]
        for used in dict.fromkeys(inputs):
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
        if node not in seen and node.op not in ("placeholder", "output"):
            found.setdefault(node, []).append(node)
    return found


class _ArgumentUnpacker:
    """Flattener of a call's arguments by the program's tree spec."""

    _tl_is_immutable = True  # for `torch.compile`

    def __init__(self, spec: Any, names: list[str]) -> None:
        self.spec, self.names = spec, names

    def bound(self, given: tuple, args: tuple, kwargs: dict) -> list:
        """Return the leaves of a call that differs from the program's signature."""
        while given and given[-1] is _NO_DEFAULT:
            given = given[:-1]
        if any(value is _NO_DEFAULT for value in given):
            missing = [n for n, v in zip(self.names, given, strict=False) if v is _NO_DEFAULT]
            raise ValueError(f"the arguments {missing} are not given")
        return self.leaves((*given, *args), kwargs)

    def leaves(self, args: tuple, kwargs: dict) -> list:
        """Return the leaves. Raise ValueError if the structure differs from the export's."""
        names = list(self.spec.child(1).context or ())
        count = self.spec.child(0).num_children
        if len(args) < count:  # positional arguments passed by keyword
            for name in self.names[len(args) : count]:
                if name in kwargs and name not in names:
                    args = (*args, kwargs[name])
                    kwargs = {key: value for key, value in kwargs.items() if key != name}
        if set(names) != set(kwargs):
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {names}"
            )
        leaves, found = pytree.tree_flatten((args, {name: kwargs[name] for name in names}))
        if found != self.spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.spec}\nbut actually got inputs "
                f"with tree spec of: \n{found}.\nPlease check that the inputs have the same number and type of args "
                "and kwargs as the ones you used when tracing."
            )
        return leaves
