"""`move_to_device_pass`: moves an exported program to another device."""

from __future__ import annotations

import copy
from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite._subclasses.fake_constructors import fake_tensor_like
from torchlite.fx import GraphModule
from torchlite.utils import _pytree as pytree

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep: Any, location: Any) -> Any:
    """Returns an exported program on another device: its tensors, and the device arguments of its graph.

    Args:
        ep: An `ExportedProgram`.
        location: A device, or a dict from devices to devices.

    Returns:
        The new program.

    Example:
        >>> from torchlite.export.passes import move_to_device_pass
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> move_to_device_pass(program, "meta").state_dict["weight"].device
        device(type='meta')
    """
    goes = location if isinstance(location, dict) else None

    def place(device: Any) -> Any:
        found = goes.get(str(device), goes.get(device, device)) if goes is not None else location
        return torch.empty(0, device=found).device  # with the device index

    def value(item: Any) -> Any:
        if isinstance(item, torch.device):
            return place(item)
        if isinstance(item, torch.Tensor):
            return _make_fake_on_device(item, place(item.device))
        return item

    graph = type(ep.graph)()
    copies: dict[Any, Any] = {}
    for node in ep.graph.nodes:
        copied = copies[node] = graph.node_copy(node, copies.__getitem__)
        copied.name = node.name
        _replace_device(copied, value)
    root = copy.deepcopy(ep.graph_module)
    for inner in root.children():
        if isinstance(inner, GraphModule):
            for node in inner.graph.nodes:
                _replace_device(node, value)
            inner.recompile()
    known: dict[int, Any] = {}

    def moved(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        if id(tensor) not in known:
            there = tensor.detach().to(place(tensor.device))
            wants = tensor.requires_grad
            known[id(tensor)] = torch.nn.Parameter(there, wants) if isinstance(tensor, torch.nn.Parameter) else there
        return known[id(tensor)]

    program = ep._update(
        GraphModule(root, graph),
        ep.graph_signature,
        state_dict={name: moved(t) for name, t in ep.state_dict.items()},
        constants={name: moved(t) for name, t in ep.constants.items()},
    )
    if ep.example_inputs is not None:
        program._example_inputs = pytree.tree_map(moved, ep.example_inputs)
    return program


def _replace_device(node: Any, value: Any) -> None:
    """Apply `value` to the devices and tensors of a node. A device may be named by text, as the program names it."""
    if node.op == "call_function":
        where = node.kwargs.get("device")
        named = {"device": torch.device(where)} if isinstance(where, str) else {}
        node.args = pytree.tree_map(value, node.args)
        node.kwargs = pytree.tree_map(value, {**node.kwargs, **named})
    if "val" in node.meta:
        node.meta["val"] = pytree.tree_map(value, node.meta["val"])


def _make_fake_on_device(tensor: Any, device: Any) -> Any:
    """Return a fake tensor on another device."""
    made = fake_tensor_like(tensor)
    made.fake_device = device
    return made


__dir__ = make_module_dir(globals())
