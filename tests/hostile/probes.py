"""Names that are no ops a file's program may call: `python -m tests.hostile.probes` asks for each in each format.

A probe is refused with one error when its file is read, or when its program runs; nothing is opened, and nothing but
the library's own code runs.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torchlite as torch
from torchlite._aten import QUANTIZED_LAYERS
from torchlite._aten.allowlist import REFUSED_OPS
from torchlite._aten.recorded_schemas import all_names

from . import onnx_files, program_bombs

_LIBRARIES = tuple(os.path.realpath(p) for p in {os.path.dirname(torch.__path__[0]), sys.prefix, sys.base_prefix})
_FORBIDDEN = (
    "os.", "subprocess.", "socket.", "shutil.", "ctypes.dlopen", "tempfile.", "pty.", "webbrowser.", "glob.",
)  # fmt: skip
_seen: list[str] = []
_PYTHON = (
    "os.system", "builtins.eval", "builtins.exec", "builtins.open", "builtins.__import__", "builtins.getattr",
    "builtins.print", "builtins.input", "_operator.attrgetter", "_operator.methodcaller", "_operator.itemgetter",
    "_operator.call", "operator.add", "math.factorial", "math.__loader__.load_module", "math.__class__", "torch.load",
    "torch.save", "torch.hub.load", "torch.compile", "torch.jit.load", "torch.set_num_threads", "torch.from_file",
    "torch.set_default_dtype", "torch.manual_seed", "torch.ops", "torch.ops.aten", "torch.ops.aten.add",
    "torch.ops.load_library", "torch.ops.import_module", "torch.ops.loaded_libraries.clear", "torch", "", ".",
    "torch.sym_int.__globals__", "torch.utils.cpp_extension.load", "torchlite.ops.aten.add.Tensor",
    "torch._functorch.predispatch.__class__", "torch._functorch.predispatch.os", "numpy.fromfile", "pickle.loads",
    "importlib.import_module", "posix.system", "_posixsubprocess.fork_exec", "ctypes.CDLL", "sys.exit",
    "__main__.main", "torch.ops.aten.add.Tensor.__call__", "torch.ops.aten.add.Tensor._schema",
    "torch.ops.aten.add.Tensor.default", "torch.ops.aten..default", "torch.ops..add.Tensor", "torch.ops.aten.add.",
    " torch.ops.aten.add.Tensor", "torch.ops.aten.add.Tensor ", "torch.ops.aten.add.Tensor\n", "torch.ops.aten.add\t.x",
    "TORCH.OPS.aten.add.Tensor", "torch.ops.ATEN.add.Tensor", "torch.ops.aten.ADD.Tensor", "torch.ops.aten.add.tensor",
)  # fmt: skip
_CANARY = "/tmp/torchlite-probe-that-nothing-opens"


def _attributes() -> Iterator[tuple[str, str, str]]:
    """Attributes of `torch.ops`, its libraries, packets and overloads, each in the place of an op's name."""
    ops = torch.ops
    for name in sorted({*dir(type(ops)), *dir(ops), "loaded_libraries", "refused_libraries"} - {"aten", "profiler"}):
        for method in ("default", "clear", "append", "__call__"):
            yield name, method, "default"
    for name in sorted({*dir(type(ops.aten)), "name", "__name__", "__dict__"} - {"__and__"}):
        for space in ("aten", "torchlite", "higher_order", "profiler", "prim", "onnx"):
            yield space, name, "upper"
    for name in sorted({*dir(type(ops.aten.add)), *vars(ops.aten.add)} - set(ops.aten.add.overloads())):
        yield "aten", "add", name
    for name in sorted({*dir(type(ops.aten.add.Tensor)), *vars(ops.aten.add.Tensor)} - set(ops.aten.relu.overloads())):
        yield "aten", "relu", name
        yield "torchlite", "relu", name if name != "default" else "_"
    for name in sorted(REFUSED_OPS):
        for overload in ("default", "generator", "out"):
            yield "aten", name, overload
    for space in ("os", "builtins", "sys", "posix", "torch", "C", "_C", "prims", "prim", "quantized", "__main__"):
        for name in ("system", "eval", "load", "from_file"):
            yield space, name, "default"


def _exported(target: str, where: str) -> Callable[[], Any]:
    text = {"as_string": _CANARY}
    nodes = [program_bombs.node(target, "y", *([text] if "file" in target or "load" in target else [program_bombs.X]))]
    if where == "operator":
        nodes = [program_bombs.node("torch.ops.aten.relu.default", "y", {"as_operator": target})]
    if where == "inside":
        inner = {
            "inputs": [program_bombs.X], "outputs": [program_bombs.X], "nodes": nodes, "tensor_values": {},
            "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False,
        }  # fmt: skip
        graph = {"as_graph": {"name": "g", "graph": inner}}
        nodes = [program_bombs.node("torch.ops.higher_order.strict_mode", "z", graph, {"as_tensors": [{"name": "x"}]})]
    data = program_bombs.exported(nodes)
    return lambda: torch.export.load(io.BytesIO(data)).module()(torch.ones(2))


def _scripted(*statements: str) -> Callable[[], Any]:
    data = program_bombs.script(program_bombs.lines(*statements))
    return lambda: torch.jit.load(io.BytesIO(data))(torch.ones(2))


def _onnx(domain: str, kind: str, function: bool = False, **attributes: Any) -> Callable[[], Any]:
    made = onnx_files.node(kind, ["x"], ["y"], **attributes)
    made.domain = domain
    functions = []
    if function:
        inner = onnx_files.Message("Function", name="F", domain="local", input=["x"], output=["y"], node=[made])
        functions, made = [inner], onnx_files.node("F", ["x"], ["y"])
        made.domain = "local"
    data = onnx_files.model([made], [onnx_files.info("x", 2)], ["y"], functions=functions)
    return lambda: torch.onnx.load(data)(torch.ones(2))


def _foreign() -> list[str]:
    """Return names of `torch` that are no ops: classes, functions that set process state, read files, or compile."""
    known = {
        *all_names(),
        *QUANTIZED_LAYERS,
        "device",
        "enable_grad",
        "get_num_threads",
        "inference_mode",
        "no_grad",
        "tensor",
    }
    found = [n for n in dir(torch) if callable(getattr(torch, n)) and n not in known and n not in _LANGUAGE]
    return sorted({*found, *REFUSED_OPS, "ops", "_C", "_dispatch", "os", "sys", "serialization", "hub"})


# Of TorchScript itself.
_LANGUAGE = {"set_grad_enabled", "is_grad_enabled", "sym_size", "floordiv", "dtype", "layout"}


def probes() -> dict[str, Callable[[], Any]]:
    """The probes by their names: functions that are to raise."""
    found: dict[str, Callable[[], Any]] = {}
    for text in _PYTHON:
        for where in ("node", "operator", "inside"):
            found[f"pt2 {where}: {text!r}"] = _exported(text, where)
    for parts in _attributes():
        if parts[:2] in (("prim", "name"), ("torchlite", "relu")):  # these are ops
            continue
        text = ".".join(("torch.ops", *parts))
        found[f"pt2 node: {text!r}"] = _exported(text, "node")
        space, name, overload = parts
        if space.isidentifier() and name.isidentifier() and (space, name) not in (("aten", "add"), ("aten", "relu")):
            found.setdefault(f"script call: ops.{space}.{name}", _scripted(f"return ops.{space}.{name}(x)"))
        if overload.isidentifier():
            path = f"ops.{space}.{name}.{overload}"
            found[f"script call: {path}"] = _scripted(f"return {path}(x)")
            found[f"script call: torch.{path}"] = _scripted(f"return torch.{path}(x)")
    for name in _foreign():
        found[f"script call: torch.{name}"] = _scripted(f'return torch.{name}("{_CANARY}")')
        found[f"script value: torch.{name}"] = _scripted(f"return torch.{name}")
        found[f"script method: {name}"] = _scripted(f"return x.{name}()")
        found[f"script aten: {name}"] = _scripted(f'return ops.aten.{name}("{_CANARY}")')
    for name in sorted({*dir(torch.Tensor)} - {*all_names()}):
        if name.startswith("_") and not name.startswith("__"):
            found[f"script attribute: {name}"] = _scripted(f"return x.{name}")
    for name in dir(object):
        found[f"script attribute: {name}"] = _scripted(f"return x.{name}")
        found[f"script attribute of self: {name}"] = _scripted(f"return self.{name}")
        found[f"script attribute of text: {name}"] = _scripted('a = "a"', f"return a.{name}")
        found[f"script method of a list: {name}"] = _scripted("a = [1]", f"return a.{name}()")
    for name in ("__builtins__", "__name__", "__import__", "__torch__", "CONSTANTS", "own", "plain", "torch", "ops"):
        found[f"script name: {name}"] = _scripted(f"return {name}")
        found[f"script declared name: {name}"] = _scripted(f"{name} : int", f"return {name}")
        found[f"script called name: {name}"] = _scripted(f"{name} : int", f"return {name}(x)")
    for domain in ("aten", "org.pytorch.aten", "torch", "torch.ops.aten", "prim", "builtins", "os", "pkg.torch", "x.y"):
        for kind in ("from_file", "ATen", "add.overloads", "load", "system", "eval", "__class__"):
            found[f"onnx: {domain}::{kind}"] = _onnx(domain, kind)
            found[f"onnx function: {domain}::{kind}"] = _onnx(domain, kind, True, operator="from_file")
    for kind in ("os.system", "__class__", "from_file", "aten::from_file", "torch.load", "Relu ", "relu", "", "."):
        found[f"onnx: {kind!r}"] = _onnx("", kind)
    return found


def _watch(event: str, arguments: tuple) -> None:
    if not _WATCHING:
        return
    if event == "open":
        path = os.path.realpath(str(arguments[0])) if isinstance(arguments[0], (str, bytes, os.PathLike)) else ""
        if path.startswith(_LIBRARIES) and isinstance(arguments[1], str) and not set(arguments[1]) & set("wax+"):
            return  # the library's own modules, when they are first used
        _seen.append(f"open {path}")
    elif event.startswith(_FORBIDDEN) and event not in ("os.listdir", "os.scandir"):
        _seen.append(event)


_WATCHING: list[bool] = []
_TYPES = (RuntimeError, TypeError)
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def problem(run: Callable[[], Any]) -> str:
    """Return the fault in handling a probe; "" if it is refused."""
    _seen.clear()
    libraries, spaces = set(torch.ops.loaded_libraries), set(vars(torch.ops))
    _WATCHING.append(True)
    try:
        run()
        said = "it was not refused"
    except Exception as error:
        said = "" if isinstance(error, _TYPES) else f"{type(error).__name__}: {str(error)[:200]}"
        if len(str(error)) > 3000 or _ADDRESS.search(str(error)):
            said = f"an error that is long, or says where an object lies: {str(error)[:300]}"
    finally:
        _WATCHING.clear()
    if _seen:
        return f"it did {_seen}"
    if libraries != torch.ops.loaded_libraries or spaces != set(vars(torch.ops)):
        return "it changed torch.ops"
    return said


def main() -> int:
    """Take all probes; 1 where one is not refused as it should be."""
    torch.onnx.load(onnx_files.model([onnx_files.node("Relu", ["x"], ["y"])], [onnx_files.info("x", 2)], ["y"]))
    _exported("torch.ops.aten.relu.default", "node")()
    _scripted("return torch.relu(x)")()
    # Created at the first access.
    assert all(getattr(torch.ops, name) is not None for name in ("torchlite", "profiler", "quantized"))
    sys.addaudithook(_watch)
    found, wrong = probes(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, run in found.items():
            what = problem(run)
            if what:
                wrong += 1
                print("wrong", name, what.replace("\n", " "), flush=True)
        left = os.listdir(folder)
        os.chdir("/")
    print(f"{len(found)} probes, {wrong} wrong, {len(left)} files left")
    return int(bool(wrong or left or os.path.exists(_CANARY)))


if __name__ == "__main__":
    sys.exit(main())
