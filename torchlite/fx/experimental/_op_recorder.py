"""OpRecorder: a dispatch mode that records ops as graph nodes, for `make_fx` and export.

While it is active, tensor methods that are no ops report to it (`_METHODS`): sizes, indices, `detach`, `data`. Reading
elements raises an error with the source line.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from ..._aten import TORCHLITE_NAMESPACE, OpOverload, ops
from ..._aten.record_to_overload import match_overload
from ..._aten.torch_dispatch import CREATES, DECOMPOSED, DispatchMode, _ReenterMode
from ..._dispatch import call
from ..._dispatch.autograd_graph import Node as History
from ..._dispatch.autograd_graph import OutputEdge, nodes_created_since, saved_values_of
from ..._dispatch.callbacks import CALLBACKS
from ..._dispatch.dispatch_state import MODE, SEQUENCE
from ..._dispatch.interceptors import InPlaceCall, show_only_within, stack
from ..._dispatch.memory_layout import elementwise_output_strides
from ..._dispatch.shapes import wrap_dim
from ..._dispatch.tracing import Trace
from ..._library.library_op import LibraryOp
from ..._library.tags import Tag
from ..._symbolic_shapes import SymBool, SymFloat, UnbackedInt
from ..._tensor import Parameter, Tensor
from ..._types.layouts import Size, strided
from ...autograd.grad_mode import _set_grad_enabled
from ...utils import _pytree as pytree
from ...utils.weak import WeakIdKeyDictionary
from .. import traceback as fx_traceback
from .._node_source import NodeSource, NodeSourceAction
from ..graph import Graph
from ..node import Node
from ._source_operators import calling_operator
from ._unbacked_symbols import UnbackedSymbols, to_concrete
from .symbolic_shapes import GuardOnDataDependentSymNode

_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SYMBOLIC_SHAPES_FILE = SymBool.negated.__code__.co_filename
_aten = ops.aten


class _NodeMap(WeakIdKeyDictionary):
    """Nodes of tensors or arrays, by identity."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key, default) if key in self else default


def user_stack_trace() -> str:
    """Return the stack trace of the running program without torchlite's frames, except modules."""
    frames = [frame for frame in traceback.extract_stack() if _is_user_file(frame.filename)]
    cut = next((i for i, frame in enumerate(frames) if frame.name == "forward"), max(0, len(frames) - 4))
    return "".join(traceback.format_list(frames[cut:])).strip()


def _is_user_file(filename: str) -> bool:
    """True if a file belongs to the program or implements a torch.nn module, other than the base class."""
    if not filename.startswith((_HERE, "<torchlite")):
        return True
    folder, name = os.path.split(filename)
    return folder.endswith(f"{os.sep}nn{os.sep}modules") and not name.startswith(("module.", "_module_"))


def current_recorder() -> OpRecorder | None:
    """Return the active recorder."""
    items = stack.items
    return items[-1] if items and isinstance(items[-1], OpRecorder) else None


def _make_data_dependent_error(why: str) -> GuardOnDataDependentSymNode:
    """Return the error for a data-dependent value, with the source line."""
    lines = user_stack_trace()
    where = [line.strip() for line in lines.splitlines() if line.strip().startswith("File")]
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression{why}\nCaused by: ({where[-1] if where else 'unknown'})\n{lines}"
    )


class _TensorMethods(Trace):
    """Trace of Tensor methods that are no ops, for tensors the active recorder follows."""

    def __init__(self, owner: OpRecorder) -> None:
        super().__init__()
        self.owner = owner

    def method(self, name: str, args: tuple, kwargs: dict) -> Any:
        """Return the recorder's result of a method or property."""
        run, tensor = _METHODS.get(name), args[0]
        if (
            run is not None
            and tensor.__class__ in _CLASSES
            and current_recorder() is self.owner
            and self.owner.follows(tensor)
        ):
            result = run(self.owner, *args, **kwargs)
            if result is not NotImplemented:
                return result
        return super().method(name, args, kwargs)


def _record_item(found: OpRecorder, tensor: Any) -> Any:
    """Return a tensor's element as an unbacked symbol."""
    with found.paused():
        value = tensor.item()
    return found.noted(_aten.item.default, (tensor,), value)


def _record_tolist(found: OpRecorder, tensor: Any) -> Any:
    if not tensor._tl_memory.ndim:
        return _record_item(found, tensor)
    return [_record_tolist(found, _aten.select.int(tensor, 0, i)) for i in range(tensor._tl_memory.shape[0])]


def _make_data_reading_method(shown: str, unbacked: Callable | None = None) -> Callable:
    """Return a method that reads elements. unbacked: returns them as unbacked symbols."""

    def run(found: OpRecorder, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if found.is_inside or not found.knows(tensor):
            return NotImplemented
        if unbacked is not None and found.unbacked is not None and not tensor.dtype.is_complex:
            return unbacked(found, tensor)
        raise _make_data_dependent_error(
            f": {shown} reads the elements of a tensor while the program is captured, so what follows would hold for "
            "these inputs alone. Use torch.where or torch.cond for a choice that depends on elements."
        )

    return run


def _record_format(found: OpRecorder, tensor: Any, spec: str) -> Any:
    return object.__format__(tensor, spec) if found.knows(tensor) and not found.is_inside else NotImplemented


def _record_shape(found: OpRecorder, tensor: Any) -> Any:
    """Return the sizes of a tensor, as expressions if the trace is symbolic."""
    unbacked = found.unbacked
    if unbacked is None or not unbacked.follows or not found.knows(tensor):
        return NotImplemented
    node = found.nodes[tensor]
    return Size([unbacked.size_of(node, dim, size) for dim, size in enumerate(tensor._tl_memory.shape)])


def _record_size(found: OpRecorder, tensor: Any, dim: Any) -> Any:
    sizes = _record_shape(found, tensor)
    if dim is None or sizes is NotImplemented:
        return sizes
    return sizes[wrap_dim(dim, len(sizes))] if sizes else NotImplemented


def _record_numel(found: OpRecorder, tensor: Any) -> Any:
    sizes = _record_shape(found, tensor)
    return sizes if sizes is NotImplemented else math.prod(sizes)


def _record_getitem(found: OpRecorder, tensor: Any, index: Any) -> Any:
    with found.within():
        return getitem(tensor, index)


def _record_setitem(found: OpRecorder, tensor: Any, index: Any, value: Any) -> None:
    with found.within():
        setitem(tensor, index, value)


def _record_detach(found: OpRecorder, tensor: Any) -> Any:
    with found.paused():
        result = tensor.detach()
    return found.noted(_aten.detach.default, (tensor,), result)


def _detach_in_place(found: OpRecorder, tensor: Any) -> Any:
    with found.paused():
        tensor.detach_()
    return found.noted(_aten.detach_.default, (tensor,), tensor)


_CLASSES = (Tensor, Parameter)
_METHODS: dict[str, Callable] = {
    "shape": _record_shape,
    "size": _record_size,
    "numel": _record_numel,
    "__getitem__": _record_getitem,
    "__setitem__": _record_setitem,
    "detach": _record_detach,
    "detach_": _detach_in_place,
    "data": _record_detach,
    "__bool__": _make_data_reading_method("bool(tensor)"),
    "__int__": _make_data_reading_method("int(tensor)"),
    "__float__": _make_data_reading_method("float(tensor)"),
    "__index__": _make_data_reading_method("an index"),
    "__complex__": _make_data_reading_method("complex(tensor)"),
    "item": _make_data_reading_method("tensor.item()", _record_item),
    "tolist": _make_data_reading_method("tensor.tolist()", _record_tolist),
    "numpy": _make_data_reading_method("tensor.numpy()"),
    "__array__": _make_data_reading_method("an array of NumPy"),
    "__format__": _record_format,
}


class OpRecorder(DispatchMode):
    """Dispatch mode that records ops in a graph.

    whole: record composite ops as called, before decomposition. decompositions: replacement functions by overload.
    constant: returns the node of an unknown tensor. outer: the recorder of the enclosing graph.
    """

    is_scoped = True

    def __init__(
        self,
        graph: Graph,
        constant: Callable[[Any], Node],
        *,
        whole: bool = False,
        decompositions: Any = None,
        outer: OpRecorder | None = None,
    ) -> None:
        self.graph, self.constant, self.whole, self.outer = graph, constant, whole, outer
        self._entered: list[_TensorMethods] = []
        self.decompositions = decompositions or {}
        # Weak: a trace keeps no more memory alive than the program.
        self.nodes = _NodeMap()
        self.arrays = _NodeMap()
        self.modules: dict[str, Any] = {}  # subgraphs
        self.object_node: Callable[[Any], Node] | None = None  # the node of packed weights, where graphs have them
        self.decomposing = False  # True if composite ops are decomposed
        self.stack_trace: str | None = None  # stack trace of new nodes, if known
        self.source: Node | None = None  # node of another graph that new nodes are made of
        self.line: str | None = None  # source line, if known
        self.unbacked: UnbackedSymbols | None = None  # unbacked symbols, if allowed
        self.module_stack: dict[str, tuple[str, str]] | None = None  # module stack of new nodes, if known
        self.grad_mode: bool | None = None  # grad mode of new nodes, if recorded
        self.depth = 0  # depth of ops whose parts are recorded
        self.is_inside = False  # True while an op runs that may read elements to check its arguments

    def __enter__(self) -> OpRecorder:
        super().__enter__()
        self._entered.append(_TensorMethods(self))
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._entered:
            self._entered.pop().__exit__()
        super().__exit__(*error)

    def paused(self) -> show_only_within:
        """Suspend recording within the context."""
        return show_only_within([item for item in stack.items if item is not self])

    # -- tensors and their nodes ---------------------------------------------------------------

    def knows(self, tensor: Any) -> bool:
        """True if a tensor is a value of the graph."""
        return tensor in self.nodes

    def follows(self, tensor: Any) -> bool:
        """True if a tensor is a value of the graph or an enclosing one."""
        return tensor in self.nodes or self.outer is not None and self.outer.follows(tensor)

    def track(self, tensor: Any, node: Node) -> None:
        """Set the node of a tensor."""
        self.nodes[tensor] = node
        if tensor.__class__ in _CLASSES:
            self._set_node(tensor._tl_array, tensor._tl_node, node)

    def _set_node(self, array: Any, made: Any, node: Node) -> None:
        """Set the node of an array, and of the array it was copied from for its memory order."""
        self.arrays[array] = node
        while isinstance(made, History) and made._op.name == "_with_strides":
            where = made._edges[0]
            made, index = (where.node, where.index) if isinstance(where, OutputEdge) else (where, 0)
            if isinstance(made, History) and made._out and made._out[index].__class__ is array.__class__:
                self.arrays[made._out[index]] = node

    def node_of(self, tensor: Any) -> Node:
        """Return the node of a tensor, a constant's if unknown."""
        found = self.nodes.get(tensor)
        if found is None:  # a backward pass saved another tensor of the same array
            found = self.arrays.get(getattr(tensor, "_tl_array", tensor))
        if found is None:
            self.track(tensor, self.constant(tensor))
            found = self.nodes[tensor]
        return found

    def argument(self, value: Any) -> Any:
        """Return a value as a node argument."""
        if isinstance(value, Tensor):
            return self.node_of(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        if isinstance(value, dict):
            return {name: self.argument(v) for name, v in value.items()}
        if isinstance(value, slice):
            return slice(self.argument(value.start), self.argument(value.stop), self.argument(value.step))
        if isinstance(value, (UnbackedInt, SymBool)) or isinstance(value, SymFloat) and value.parts:
            trace = value.node.trace if isinstance(value, UnbackedInt) else value.trace
            if self.unbacked is None or trace is not self.unbacked:
                raise _make_data_dependent_error(
                    f" {value}: it is used in a graph within, which it is not given to as a tensor."
                )
            return self.unbacked.node(value)
        if hasattr(type(value), "_schema_type"):  # an object of a class that the library defines
            if self.object_node is None:
                raise AttributeError(
                    f"{value._schema_type} (of Python compilation unit at: 0) does not have a field with name "
                    "'__obj_flatten__'"
                )
            return self.object_node(value)
        return value

    def asking(self) -> str | None:
        """Return the source line of the program that queries a size, None if torchlite's own code does."""
        if self.line is not None:
            return self.line
        frame: Any = sys._getframe(2)
        while frame.f_code.co_filename == _SYMBOLIC_SHAPES_FILE:
            frame = frame.f_back
        name = frame.f_code.co_filename
        return None if name.startswith((_HERE, "<torchlite")) else f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"

    def undecided(self, condition: Any) -> bool:
        """Raise GuardOnDataDependentSymNode: a data-dependent condition is evaluated."""
        raise _make_data_dependent_error(
            f" {condition} (unhinted: {condition}).\nUse torch._check({condition}) where it always holds, and "
            "torch.where or torch.cond for a choice that depends on elements."
        )

    def follow(self, mode: bool) -> None:
        """Record that the program changed the grad mode, if enabled."""
        if self.grad_mode is not None and mode is not self.grad_mode and not self.depth:
            self.grad_mode = mode
            self.graph.call_function(_set_grad_enabled, (mode,))

    def note(self, target: Any, args: tuple, kwargs: dict) -> Node:
        """Add a node for a call."""
        self.follow(MODE.grad)
        given: tuple = tuple(map(self.argument, args)), self.argument(kwargs)
        if isinstance(target, OpOverload) and target.namespace == TORCHLITE_NAMESPACE:  # a list has its own index op
            given = tuple(map(_cast_like, given[0], args)), given[1]
        name = "sym_size_int" if target is _aten.sym_size.int else getattr(target, "_opname", None)
        node = self.graph.create_node("call_function", target, *given, name=name)
        node.meta["stack_trace"] = self.stack_trace or user_stack_trace()
        if self.module_stack is not None:
            node.meta["nn_module_stack"] = self.module_stack
        called_by = None if self.source is not None else calling_operator(_is_user_file)
        if called_by is not None:
            node.meta["source_fn_stack"] = [(node.name, called_by)]
        if self.source is not None:
            node.meta["from_node"] = [NodeSource(self.source, "run_decompositions", NodeSourceAction.CREATE)]
            kept = (field for field in ("quantization_tag", "custom") if field in self.source.meta)
            node.meta.update((field, self.source.meta[field]) for field in kept)
        if fx_traceback.has_preserved_node_meta():
            fx_traceback.kept(node)
        return node

    def bind(self, node: Node, result: Any) -> Any:
        """Set a result's node."""
        from ..._subclasses.fake_constructors import fake_tensor_like

        if self.unbacked is not None:
            result = self.unbacked.result(node, result)
        if isinstance(result, Tensor):
            node.meta["val"] = fake_tensor_like(result)
            self.track(result, node)
        elif isinstance(result, (list, tuple)):
            import operator

            parts = []
            for number, part in enumerate(result):
                inner = self.graph.call_function(operator.getitem, (node, number))
                parts.append(self.bind(inner, part) if part is not None else None)
            node.meta["val"] = [self.nodes[part].meta["val"] if isinstance(part, Tensor) else part for part in result]
        elif result is not None:
            node.meta["val"] = result
        return result

    def noted(self, target: Any, args: tuple, result: Any, kwargs: dict | None = None) -> Any:
        """Record a call node and return its result."""
        return self.bind(self.note(target, args, kwargs or {}), result)

    # -- dispatch -------------------------------------------------------------------------------

    @property
    def intercepts_overloads(self) -> bool:  # type: ignore[override]
        """True if a call of an overload is recorded directly. With gradients, its implementation is recorded instead,
        as its derivative saves intermediate values.
        """
        return not self.decomposing or not MODE.grad or self.depth > 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = self.decompositions.get(func)
        if rule is not None:
            with _ReenterMode(self._handle):
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self.kept(func, args, kwargs)

    def kept(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a call below the recorder as one node."""
        node = self.note(func, args, kwargs)
        args = to_concrete(args)
        return self.bind(node, _with_iterator_layout(func, args, func(*args, **to_concrete(kwargs))))

    def overload(self, func: Any, args: tuple, kwargs: dict) -> Any:
        with self.within():
            return super().overload(func, args, kwargs)

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        with self.within():
            apart = self.decomposing
            if isinstance(op, LibraryOp):  # casts its arguments itself, by its autocast rule
                return super().intercept(op, function, args, kwargs)
            if stack.items and stack.items[0].casts and function is op.function and kwargs.get("out") is None:
                with _ReenterMode(self._handle):
                    found = stack.items[0].cast(op, args, kwargs)
                args, kwargs = found or (args, kwargs)
                apart = apart or found is None  # its parts may be cast
            return self._record_op(op, function, args, kwargs, apart)

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Record the parts of a composite op."""
        self.follow(MODE.grad)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def _record_op(self, op: Any, function: Any, args: Any, kwargs: Any, apart: bool) -> Any:
        if not self.whole:
            return super().intercept(op, function, args, kwargs)
        writes = function.__class__ is InPlaceCall
        creating = op.name in CREATES or op.name.removeprefix("_") in CREATES
        if not (writes or function is op.function) or creating or kwargs.get("out") is not None:
            return super().intercept(op, function, args, kwargs)
        if op.name == "_setitem":
            return super().intercept(op, function, args, kwargs)
        given = {name: value for name, value in kwargs.items() if name != "out"}
        try:
            values = call.bind(op, args, dict(given))
        except TypeError:
            return super().intercept(op, function, args, kwargs)
        if op.name == "conj" and not values[0].dtype.is_complex:
            return values[0]  # no-op, absent in ATen
        found = match_overload(
            op, values, writes, whole=not self.decomposing or op.is_implicit
        ) or _find_overload_calls(op.name, values)
        if found is None and not self.decomposing:
            found = _find_in_place_overload(op, values)
        if found is None:
            if self.is_inside and not op.is_implicit and not writes:  # one node, as its derivative expects
                own = getattr(getattr(ops, TORCHLITE_NAMESPACE), op.name).default
                return self.noted(own, tuple(values), function(*args, **given))
            return super().intercept(op, function, args, kwargs)
        rule = self.decompositions.get(found[0])
        if rule is not None:
            with _ReenterMode(self._handle):
                done = rule(*found[1], **found[2])
            if done is not NotImplemented:
                return done
        if apart and not writes and (found[0].is_implicit or self.decomposing and found[0]._opname in _DECOMPOSED_OPS):
            done = self._record_decomposed(op, function, args, kwargs, values)
            if done is not NotImplemented:
                return done
        if self.decomposing and MODE.grad and call.any_requires_grad(values):
            if writes:
                return self._record_in_place(function, args, given, found)
            if op.is_implicit:
                return self._record_history(op, function, args, given, self.note(*found))
        node = self.note(*found)
        result = function(*to_concrete(args), **to_concrete(given))
        several = len(found[0]._schema.returns)
        if several == 1 or isinstance(result, (list, tuple)) and len(result) == several:
            return self.bind(node, result)
        if isinstance(result, Tensor):  # the ATen op returns additional results
            return self.bind(node, found[0](*found[1], **found[2]))[0]
        self.graph.erase_node(node)
        return super().intercept(op, function, args, kwargs)

    def _record_decomposed(self, op: Any, function: Any, args: Any, kwargs: Any, values: list) -> Any:
        """Record a call decomposed. Return NotImplemented and remove all traces if ATen lacks one of the parts."""
        if not (op.is_implicit or op.name in DECOMPOSED):
            return NotImplemented

        def run_decomposed() -> Any:
            with _ReenterMode(self._handle):
                if op.name in DECOMPOSED:
                    return DECOMPOSED[op.name](CALLBACKS.F, *values)
                return call.without_interceptors(op, function, args, kwargs)

        return self.tried(run_decomposed)

    def _record_history(self, op: Any, function: Any, args: Any, kwargs: Any, node: Node) -> Any:
        """Record a call whose parts have autograd history. It is one node if the parts save only arguments and results;
        otherwise a backward pass in the same graph would lack saved values.
        """
        start, before = next(SEQUENCE), self.is_inside
        self.is_inside = True
        try:
            with _ReenterMode(self._handle):
                result = call.without_interceptors(op, function, args, kwargs)
        finally:
            self.is_inside = before
        new_nodes = self._nodes_after(node)
        results = [value for value in pytree.tree_leaves(result) if isinstance(value, Tensor)]
        own = {self.node_of(value) for value in results}
        kept = [leaf for one in nodes_created_since(start, results) for leaf in saved_values_of(one)]
        found = [self.arrays.get(leaf._tl_array if isinstance(leaf, Tensor) else leaf) for leaf in kept]
        if any(one in new_nodes and one not in own for one in found):
            self.graph.erase_node(node)
            return result
        for part in new_nodes:
            self.graph.erase_node(part)
        for array in [array for array, known in self.arrays.items() if known in new_nodes]:
            del self.arrays[array]
        return self.bind(node, result)

    def _record_in_place(self, function: Any, args: Any, kwargs: Any, found: tuple) -> Any:
        """Record an in-place call. Its derivative may save the overwritten value."""
        start, target = next(SEQUENCE), found[1][0]
        before = self.note(_aten.clone.default, (target,), {})
        before.meta["val"] = self.node_of(target).meta["val"]
        node = self.note(*found)
        result = function(*to_concrete(args), **to_concrete(kwargs))
        for leaf in (leaf for one in nodes_created_since(start, [target]) for leaf in saved_values_of(one)):
            array, written = getattr(leaf, "_tl_array", leaf), target._tl_array
            if array.__class__ is written.__class__ and (array.shape, array.dtype) == (written.shape, written.dtype):
                self.arrays.setdefault(array, before)
        if not any(known is before for known in self.arrays.values()):
            self.graph.erase_node(before)
        return self.bind(node, result)

    def _nodes_after(self, last: Node | None) -> list[Node]:
        """Return the nodes created after one, last first."""
        return list(itertools.takewhile(lambda node: node is not last, reversed(self.graph.nodes)))

    def tried(self, run: Callable[[], Any]) -> Any:
        """Return the result of running and recording. Return NotImplemented and remove all traces if it reads elements
        or calls ops that ATen lacks.
        """
        last: Any = next(reversed(self.graph.nodes), None)
        before = dict(self.nodes.data), dict(self.arrays.data)
        result: Any = NotImplemented
        with contextlib.suppress(GuardOnDataDependentSymNode):
            result = run()
        new_nodes = self._nodes_after(last)
        if result is not NotImplemented and not any(_is_unknown(node.target) for node in new_nodes):
            return result
        for node in new_nodes:
            self.graph.erase_node(node)
        self.nodes.data, self.arrays.data = before
        return NotImplemented


# Ops that decompose though ATen does not call them composite.
_DECOMPOSED_OPS = frozenset(("linear", "matmul"))


def _find_in_place_overload(op: Any, values: list) -> tuple | None:
    """Return the in-place overload of a function that is called with ``inplace=True``; None if there is none."""
    place = next((i for i, p in enumerate(op.params) if p.name == "inplace"), None)
    if place is None or values[place] is not True:
        return None
    return match_overload(op, [*values[:place], False, *values[place + 1 :]], True, whole=True)


def _with_iterator_layout(func: Any, args: tuple, result: Any) -> Any:
    """Return a pointwise result with the strides of PyTorch's TensorIterator, which decide if later reshapes are views.
    NumPy's ufuncs choose another order for operands with different strides.
    """
    operands = [a for a in args if isinstance(a, Tensor)]
    if len(operands) < 2 or not isinstance(result, Tensor):
        return result
    if Tag.pointwise not in getattr(func, "tags", ()):  # type: ignore[attr-defined]
        return result
    if func._schema.is_mutable or result.layout is not strided:
        return result
    strides = elementwise_output_strides(tuple(result.shape), tuple([(tuple(a.shape), a.stride()) for a in operands]))
    if strides == result.stride():
        return result
    return result.new_empty_strided(result.shape, strides).copy_(result)


def _cast_like(argument: Any, value: Any) -> Any:
    return tuple(argument) if isinstance(value, tuple) else argument


def _is_unknown(target: Any) -> bool:
    """True if an op exists in torchlite only."""
    return isinstance(target, OpOverload) and target.namespace == TORCHLITE_NAMESPACE


def _find_overload_calls(name: str, values: list) -> Any:
    """Return ATen calls whose overload depends on the arguments."""
    run = _CHOSEN.get(name)
    return None if run is None else run(*values)


def _call_interpolate(
    input: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any, recompute: Any, antialias: Any
) -> Any:
    dims = input.ndim - 2
    names = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact", "bicubic": "upsample_bicubic"}
    names |= {"linear": "upsample_linear", "bilinear": "upsample_bilinear", "trilinear": "upsample_trilinear"}
    if mode not in names or recompute:
        return None
    name = f"{names[mode]}{dims}d"
    if antialias:
        name = f"_{name}_aa"
    factors = None if scale_factor is None else (
        [float(f) for f in scale_factor] if isinstance(scale_factor, (list, tuple)) else [float(scale_factor)] * dims
    )  # fmt: skip
    sizes = None if size is None else list(size) if isinstance(size, (list, tuple)) else [size] * dims
    overload = getattr(_aten, name).vec
    if "nearest" in mode:
        return overload, (input, sizes, factors), {}
    return overload, (input, sizes, bool(align_corners), factors), {}


def _call_split(input: Any, sections: Any, dim: int = 0, *rest: Any) -> Any:
    if isinstance(sections, (list, tuple)):
        return _aten.split_with_sizes.default, (input, list(sections), *([dim] if dim else [])), {}
    return _aten.split.Tensor, (input, sections, *([dim] if dim else [])), {}


_CHOSEN: dict[str, Callable] = {"interpolate": _call_interpolate, "split": _call_split}


# -- indexing --------------------------------------------------------------------------------


def _index_by_views(self: Any, index: Any) -> tuple[Any, list]:
    """Return the view that an index's basic part takes, and the index tensors of its dimensions."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [_as_index(part, self) for part in parts]
    used = sum(0 if part is None or part is Ellipsis else max(1, part.ndim) if _is_mask(part) else 1 for part in parts)
    missing = self.ndim - used
    dim = 0
    arrays: list[Any] = []
    seen = False
    for part in parts:
        if part is Ellipsis and not seen:
            seen, dim = True, dim + missing
        elif part is None:
            self, dim = _aten.unsqueeze.default(self, dim), dim + 1
        elif isinstance(part, slice):
            if part != slice(None):
                start = 0 if part.start is None else part.start
                stop = (1 << 63) - 1 if part.stop is None else part.stop
                more = () if part.step in (None, 1) else (part.step,)
                self = _aten.slice.Tensor(self, dim, start, stop, *more)
            dim += 1
        elif isinstance(part, int):
            self = _aten.select.int(self, dim, part)
        else:
            arrays += [None] * (dim - len(arrays)) + [part]
            width = part.ndim if _is_mask(part) else 1
            arrays += [_VIEWED] * (width - 1)
            dim += width
    return self, [a for a in arrays if a is not _VIEWED]


_VIEWED = object()


def _is_mask(part: Any) -> bool:
    return isinstance(part, Tensor) and str(part.dtype) in ("torch.bool", "torch.uint8")


def _as_index(part: Any, like: Any) -> Any:
    """Return an index item: int, slice, None, ellipsis or tensor."""
    if part is None or part is Ellipsis or isinstance(part, (slice, Tensor)):
        return part
    if isinstance(part, int) and not isinstance(part, bool):
        return part
    if hasattr(part, "__index__") and not isinstance(part, bool):
        return part.__index__()
    import torchlite as torch

    return torch.as_tensor(part, device=like.device)


def getitem(self: Any, index: Any) -> Any:
    """Run `self[index]` by ATen ops."""
    result, arrays = _index_by_views(self, index)
    if arrays:
        return _aten.index.Tensor(result, arrays)
    return _aten.alias.default(result) if result is self else result


def setitem(self: Any, index: Any, value: Any) -> None:
    """Run `self[index] = value` by ATen ops."""
    part, arrays = _index_by_views(self, index)
    if not arrays:
        if isinstance(value, Tensor):
            _aten.copy_.default(part, value)
        else:
            _aten.fill_.Scalar(part, value)
        return
    if not isinstance(value, Tensor):
        import torchlite as torch

        value = torch.scalar_tensor(value, dtype=self.dtype, device=self.device)
    _aten.index_put_.default(part, arrays, value)
