"""A node's saved values under PyTorch's names: `node._saved_self`, `node._raw_saved_self`."""

from __future__ import annotations

from typing import Any

from .._dispatch import call
from .._dispatch.autograd_graph import OutputEdge, autograd_meta_of, gradient_edge, raise_freed_error
from .._dispatch.hooks import PackedTensor, pack_with
from .._tensor import Tensor
from .._types.layouts import Size


class SavedTensor:
    """Tensor that a node saved for backward; `register_hooks` packs it in another form.

    A node returns it as ``node._raw_saved_self`` and under similar names.

    Raises:
        RuntimeError: It is created from Python.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> saved = y.grad_fn._raw_saved_result
        >>> saved.register_hooks(lambda t: t.numpy(), torch.from_numpy)
        >>> y.sum().backward()
    """

    _node: Any
    _place: Any

    def __new__(cls, *args):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        """Saves ``pack_hook(tensor)`` in place of the tensor.

        Args:
            pack_hook: Called now, with the tensor.
            unpack_hook: Called in backward with its result; returns the tensor.

        Raises:
            TypeError: One of the two is not callable.
            RuntimeError: There are hooks, no tensor is saved, or the graph is freed.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError(
                "register_hooks(): incompatible function arguments: expected two functions, pack_hook and unpack_hook"
            )
        node = self._node
        if node._saved is None:
            raise_freed_error(node)
        place = self._place
        value = place.get()
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if value.__class__ is PackedTensor:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        tensor, where = place.open_value(value)
        place.put(pack_with(pack_hook, unpack_hook, tensor, where))


class _SavedInput:
    """Entry `index` of a node's saved values and, for a list, its entry `part`."""

    def __init__(self, node, index: int, part: int | None = None):
        self.node, self.index, self.part = node, index, part

    def get(self):
        found = self.node._saved[self.index]
        return found if self.part is None else found[self.part]

    def put(self, value) -> None:
        saved = list(self.node._saved)
        if self.part is None:
            saved[self.index] = value
        else:
            items = list(saved[self.index])
            items[self.part] = value
            saved[self.index] = tuple(items)
        self.node._saved = tuple(saved)

    def open_value(self, value):
        if isinstance(value, Tensor):
            return value, None if value._tl_node is None else gradient_edge(value)
        tensor = call.wrap_array(self.node._tl_kernels, value.data, value.dtype)  # an output of a custom Function
        return tensor, -1 if value.index is None else value.index

    def value(self):
        from .saved_values import saved_tensor

        expected = self.node._versions[self.index]
        if self.part is not None:
            expected = expected[self.part]
        return saved_tensor(self.get(), expected, self.node, self.index)


class _SavedOutput:
    """Output `index` that a node saved."""

    def __init__(self, node, index: int):
        self.node, self.index = node, index

    def get(self):
        if self.node._out is None:
            raise_freed_error(self.node)
        return self.node._out[self.index] if self.index < len(self.node._out) else None

    def put(self, value) -> None:
        out = list(self.node._out)
        out[self.index] = value
        self.node._out = tuple(out)

    def open_value(self, value):
        from .saved_values import saved_output_tensor

        op = self.node._op
        tensor = saved_output_tensor(self.node, self.index)
        tensor._tl_node = None
        return tensor, -1 if op.outputs is None and not op.multi_output else self.index

    def value(self):
        from .saved_values import restore_history, saved_output_raw, saved_output_tensor

        found = self.get()
        if found is None:
            return None
        if found.__class__ is PackedTensor:
            return restore_history(found, self.node)
        saved_output_raw(self.node, self.index)
        tensor = saved_output_tensor(self.node, self.index)
        if self.node._counter[self.index] is not None:  # it counts as the output does
            counter = self.node._counter[self.index][0]
            autograd_meta_of(tensor).root = counter.root or counter
        return tensor


def _make_saved_tensor(node, place) -> SavedTensor:
    made = object.__new__(SavedTensor)
    made._node, made._place = node, place
    return made


def raw_saved_tensors_of_function(node) -> tuple:
    """`_raw_saved_tensors` of a custom Function's node."""
    if node._saved is None:
        raise_freed_error(node)
    return tuple(_make_saved_tensor(node, _SavedInput(node, i)) for i in range(len(node._saved)))


# PyTorch's names of arguments that the records name otherwise.
_ARGUMENTS = {"input": "self"}


def _named_saved_entries(node) -> dict:
    """The node's saved values by PyTorch's name: (kind, where)."""
    op = node._op
    found: dict = {}
    if not hasattr(op, "saved_variables"):
        return found
    for i, (name, kind, _) in enumerate(op.saved_variables.saves):
        name = _ARGUMENTS.get(name, name) if name == op.params[0].name else name
        if kind == "shape":
            found[f"{name}_sym_sizes"] = ("plain", i)
        elif kind == "dtype":
            found[f"{name}_scalar_type"] = ("plain", i)
        else:
            found[name] = (kind, i)
    for name in op.saved_variables.shapes:
        called = _ARGUMENTS.get(name, name) if name == op.params[0].name else name
        found[f"{called}_sym_sizes"] = ("edge", [p.name for p in op.tensor_params].index(name))
    for i in op.saved_variables.keeps:
        if op.aux_outputs or not (op.outputs or op.multi_output):
            name = "result" if i == 0 else f"result{i}"
        else:
            name = op.outputs[i] if op.outputs else f"result{i}"
            found.setdefault(f"result{i}", ("out", i))
        found[name] = ("out", i)
    return found


def saved_names(node) -> list[str]:
    """The names of a node's saved values."""
    found = []
    for name, (kind, _) in _named_saved_entries(node).items():
        found.append(f"_saved_{name}")
        if kind in ("value", "out"):
            found.append(f"_raw_saved_{name}")
    return found


def saved_value(node, asked: str):
    """`_saved_<name>` or `_raw_saved_<name>` of a node. AttributeError for a name that it has not, RuntimeError once
    the graph was freed.
    """
    raw = asked.startswith("_raw_saved_")
    kind, index = _named_saved_entries(node).get(asked.removeprefix("_raw_saved_" if raw else "_saved_"), (None, None))
    if kind is None or raw and kind not in ("value", "out"):
        raise AttributeError(f"'{node.name()}' object has no attribute '{asked}'")
    if node._saved is None:
        if kind in ("value", "out"):
            raise_freed_error(node)
        raise AttributeError(f"'{node.name()}' let go of '{asked}'")
    if kind == "out":
        output = _SavedOutput(node, index)
        return _make_saved_tensor(node, output) if raw else output.value()
    if kind == "edge":
        return _saved_sizes(node._edges[index])
    if kind == "value" and node._saved[index].__class__ is tuple:
        places = [_SavedInput(node, index, i) for i in range(len(node._saved[index]))]
        return tuple(_make_saved_tensor(node, p) if raw else p.value() for p in places)
    place: Any = _SavedInput(node, index)
    if raw:
        return _make_saved_tensor(node, place)
    return place.value() if kind == "value" else place.get()


def _saved_sizes(where):
    if where is None:
        return None
    if where.__class__ is OutputEdge:
        return Size(where.node._shape[where.index])
    return Size(where._shape if not isinstance(where, Tensor) else where._tl_array.shape)
