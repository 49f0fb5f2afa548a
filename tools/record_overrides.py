"""Record the arguments that PyTorch's functions written in Python pass to `__torch_function__`.

usage: python tools/record_overrides.py

Compiled functions pass their arguments as the caller wrote them. It needs the extra `oracle` and rewrites
torchlite/_dispatch/override_calls.txt: a line for each function, `=` behind arguments that are passed by name.
"""

from __future__ import annotations

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "torchlite" / "_dispatch" / "override_calls.txt"
DECORATOR = "_handle_torch_function_and_wrap_type_error_to_not_implemented"


def passed(function: ast.FunctionDef) -> tuple[str, list[str]] | None:
    """The name and the arguments of the call of `handle_torch_function`; None without one."""
    if any(isinstance(d, ast.Name) and d.id == DECORATOR for d in function.decorator_list):
        return function.name, [a.arg for a in function.args.args]
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "handle_torch_function":
            given = [ast.unparse(a) for a in node.args[2:]]
            given += [f"{k.arg}=" if k.arg else f"**{ast.unparse(k.value)}" for k in node.keywords]
            return ast.unparse(node.args[0]).rpartition(".")[2], given
    return None


def lines(path: pathlib.Path, prefix: str, body: list[ast.stmt]) -> list[str]:
    found = []
    for function in body:
        if isinstance(function, ast.FunctionDef):
            given = passed(function)
            if given is not None:
                found.append(f"{prefix}.{given[0]}({', '.join(given[1])})")
    return found


def main() -> None:
    import torch

    home = pathlib.Path(torch.__file__).parent
    recorded = []
    for file, prefix in (("functional.py", "torch"), ("nn/functional.py", "nn.functional"), ("_tensor.py", "Tensor")):
        tree = ast.parse((home / file).read_text())
        body = tree.body
        if prefix == "Tensor":
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
        recorded += lines(home / file, prefix, body)
    RECORDED.write_text("\n".join(sorted(set(recorded))) + "\n")


if __name__ == "__main__":
    main()
