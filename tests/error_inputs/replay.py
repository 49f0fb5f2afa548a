"""Recreates the recorded error inputs of PyTorch's tables and returns a library's errors for them.

A case is a dict: what is called, its arguments as `encode` of tools/record_error_inputs.py writes them, the memory of
its tensors, and the type and the words of PyTorch's exception (or warning). This module knows neither library: it is
handed one, so that the recording program asks PyTorch the same questions as the test asks torchlite.
"""

from __future__ import annotations

import base64
import json
import pathlib
import warnings
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent
TABLES = ("ops", "modules", "optimizers")
NO_ERROR = ["", ""]


def cases(table: str) -> list[dict]:
    """The recorded cases of a table."""
    return json.loads((HERE / f"{table}.json").read_text())


class Arguments:
    """Makes a case's arguments with a library on a device."""

    def __init__(self, torch, device: str, memory: list):
        self.torch, self.device, self.memory = torch, device, memory
        self.buffers: dict[tuple, Any] = {}
        self.made: dict[int, Any] = {}

    def buffer(self, index: int, dtype: str, device: str):
        """One storage as a flat tensor of a dtype: tensors of a case may share it."""
        key = (index, dtype, device)
        if key not in self.buffers:
            size, text = self.memory[index]
            wanted = getattr(self.torch, dtype)
            if device == "meta" or not size:
                made = self.torch.empty(size // wanted.itemsize, dtype=wanted, device=device)
            elif text is None:
                made = self.torch.zeros(size // wanted.itemsize, dtype=wanted, device=device)
            else:
                raw = np.frombuffer(base64.b64decode(text), np.uint8)
                made = self.torch.from_numpy(raw.copy()).view(wanted).clone().to(device)
            self.buffers[key] = made
        return self.buffers[key]

    def tensor(self, number, dtype, shape, strides, offset, index, device, wants, parameter):
        """A tensor over its part of a storage; the same number is the same tensor."""
        if number not in self.made:
            where = device if device == "meta" else self.device
            made = self.buffer(index, dtype, where).as_strided(shape, strides, offset)
            if parameter:
                made = self.torch.nn.Parameter(made, wants)
            elif wants:
                made = made.detach().requires_grad_()
            self.made[number] = made
        return self.made[number]

    def value(self, item) -> Any:
        """An argument from its record."""
        if isinstance(item, list):
            return [self.value(entry) for entry in item]
        if not isinstance(item, dict):
            return item
        (kind, content), *_ = item.items()
        if kind == "tensor":
            return self.tensor(*content)
        if kind == "tuple":
            return tuple(self.value(entry) for entry in content)
        if kind == "dict":
            return {key: self.value(entry) for key, entry in content}
        if kind == "torch":
            return getattr(self.torch, content)
        return {"float": float, "complex": complex}[kind](content)


def target(torch, path: str):
    """Return the object at a dotted path; the last name on class Tensor may be a property."""
    found = torch
    for name in path.split("."):
        found = getattr(found, name)
    return found if callable(found) else lambda x: getattr(x, path.rpartition(".")[2])


def call(torch, case: dict, device: str):
    """Run the case: call a function, or create a module or an optimizer and run it."""
    make = Arguments(torch, device, case["memory"])
    args, kwargs = make.value(case["args"]), dict(make.value({"dict": case["kwargs"]}))
    if "device" in kwargs:
        kwargs["device"] = device
    gradients = [(make.value(p), make.value(g)) for p, g in case.get("gradients", ())]
    with torch.device(device):
        made = target(torch, case["call"])(*args, **kwargs)
    for parameter, gradient in gradients:
        parameter.grad = gradient
    if "forward" in case:
        made = made.to(device) if device != "cpu" else made
        made.train(case["training"])
        made(*make.value(case["forward"]), **dict(make.value({"dict": case["forward_kwargs"]})))
    elif "step" in case:
        made.step()


def answer(torch, case: dict, device: str = "cpu") -> list[str]:
    """Return the type and message of a case's exception (or of its warning, if PyTorch warns)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(torch, case, device)
        except Exception as error:
            return [type(error).__name__, _on_cpu(str(error), device)]
    if case["error"][0].endswith("Warning") and caught:
        return [caught[0].category.__name__, str(caught[0].message)]
    return NO_ERROR


def _on_cpu(words: str, device: str) -> str:
    """Words with the CPU's name for a device's: the answers were recorded there."""
    kind = device.partition(":")[0]
    return words.replace(f"torch.{kind}.", "torch.").replace(f"{kind}:0", "cpu").replace(kind, "cpu")


def first_line(words: str) -> str:
    """Return the compared part of a message: PyTorch's parser lists its signatures from the second line on."""
    return words.split("\n")[0].strip()
