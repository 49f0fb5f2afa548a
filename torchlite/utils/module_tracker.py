"""A tracker of the modules that run."""

from __future__ import annotations

import weakref
from typing import Any

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._settings.module_dir import make_module_dir
from torchlite.autograd.graph import _current_graph_task_id, register_multi_grad_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context manager: `parents` has the dotted names of the modules that run, in forward and in backward, and
    "Global"; `is_bw` is true in backward.

    >>> import torchlite as torch
    >>> from torchlite.utils.module_tracker import ModuleTracker
    >>> class Inner(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = Inner()
    ...     def forward(self, x):
    ...         return self.inner(x)
    >>> net = Net()
    >>> with ModuleTracker() as tracker:
    ...     y = net(torch.ones(1, 2))
    ['Global', 'Net', 'Net.inner']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._bw = False
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """True during a backward pass."""
        return _current_graph_task_id() != -1

    def _path_of_module(self, module: Any) -> str:
        if module not in self._known:
            name = type(module).__name__
            for path, inner in module.named_modules():
                if inner not in self._known or inner is module:
                    self._names[inner] = f"{name}.{path}" if path else name
                self._known.add(inner)
        return self._names[module]

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._path_of_module(module)
        self.parents.add(name)
        tensors = [t for t in _find_tensors(inputs) if t.requires_grad]
        if torch.is_grad_enabled() and tensors:
            self._handles.append(register_multi_grad_hook(tensors, lambda _: self.parents.discard(name)))

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._path_of_module(module)
        self.parents.discard(name)
        tensors = [t for t in _find_tensors(output) if t.requires_grad]
        if torch.is_grad_enabled() and tensors:

            def enter(_: Any) -> None:
                self.parents.add(name)

            self._handles.append(register_multi_grad_hook(tensors, enter, mode="any"))

    def __enter__(self) -> ModuleTracker:
        # In the order in which a module runs: this hook is the first on entry and the last on exit.
        self._handles = [
            CALLBACKS.register_module_forward_pre_hook(self._enter_module),
            CALLBACKS.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *exc: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []


def _find_tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _find_tensors(item)] if isinstance(value, (list, tuple)) else []


__dir__ = make_module_dir(globals())
