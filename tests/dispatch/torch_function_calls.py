"""What `__torch_function__` of a subclass sees of one-line programs.

torch_function_calls.json has PyTorch's answers (tools/record_torch_function.py) to torch_function_lines.txt. A call is
the function's public name, the arguments by position and those by name, in which `T` is a tensor of the subclass and
`t` a plain one. Without arguments by name `kwargs` is None or an empty dict.
"""

from __future__ import annotations

import json
import pathlib
import types
from typing import Any

HERE = pathlib.Path(__file__).parent
LINES = HERE / "torch_function_lines.txt"
RECORDED = HERE / "torch_function_calls.json"


def program_lines() -> list[str]:
    return [line for line in LINES.read_text().splitlines() if line.strip()]


def recorded() -> dict[str, list[str]]:
    """PyTorch's answers, by line."""
    return json.loads(RECORDED.read_text())


class Caller:
    """Runs programs with tensors of a subclass that notes the calls."""

    def __init__(self, torch):
        self.torch = torch
        self.seen: list[str] = []
        caller = self

        class Logged(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                named = None if kwargs is None else caller.shown(kwargs)
                caller.seen.append(f"{caller.name_of(func)} {caller.shown(args)} {named}")
                return super().__torch_function__(func, types, args, kwargs or {})

        self.logged = Logged

    def name_of(self, func: Any) -> str:
        found = self.torch.overrides.resolve_name(func)
        if found is not None:
            return found.replace("torch.functional.", "torch.")
        return f"{func.__module__}.{func.__qualname__}".replace("torchlite", "torch").replace(".backward_api", "")

    def shown(self, value: Any) -> str:
        if isinstance(value, self.torch.Tensor):
            return "T" if type(value) is self.logged else "t"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.shown, value))})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.shown, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k}: {self.shown(v)}" for k, v in value.items()) + "}"
        return "function" if isinstance(value, types.FunctionType) else repr(value).replace("torchlite", "torch")

    def calls(self, line: str) -> list[str]:
        """The calls of a line, and the class of its error."""
        torch, logged = self.torch, self.logged
        names = {
            "torch": torch, "F": torch.nn.functional, "L": logged, "p": torch.ones(2, 3),
            "a": torch.arange(6.0).reshape(2, 3), "b": torch.full((2, 3), 2.0), "v": torch.tensor([1.0, 2.0, 3.0]),
            "i": torch.tensor([0, 1]), "s": torch.tensor(3.0), "n": torch.tensor(2), "m": torch.eye(3) * 2,
            "k": torch.arange(6).reshape(2, 3) > 2,
        }  # fmt: skip
        for name in "abvisnmk":
            names[name] = names[name].as_subclass(logged)
        self.seen.clear()
        try:
            exec(line, names)
        except Exception as error:
            self.seen.append(f"! {type(error).__name__}")
        return list(self.seen)
