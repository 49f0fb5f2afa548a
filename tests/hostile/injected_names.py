"""Names in files as attacks on generated code: `python -m tests.hostile.injected_names` makes every one of them.

Each attack puts one payload in the place of one text of a right file: `.pt2`, TorchScript, ONNX, or of a graph of
`torch.fx`. The file is loaded, run, unflattened, traced again, shown as code and written again. `HIT` in a payload is
the name of a list in `builtins`: it records what runs. An audit hook reads all source that is compiled meanwhile: no
call of `HIT` may stand in it, and no file may be opened. Prints `wrong NUMBER PLACE PAYLOAD WHAT`.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import contextlib
import enum
import io
import json
import pickle
import re
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torchlite as torch
from torchlite.onnx._protobuf import Message, encode_message, parse_message

from .exported_programs import _FORBIDDEN
from .onnx_files import files as onnx_files

PAYLOADS = (
    'x")(HIT.append(1))or("', "x')(HIT.append(1))or('", 'a.M;k,l")(HIT.append(1))or(",torch.nn.Linear',
    "x\nHIT.append(1)\n", "x\n    HIT.append(1)\n    ", "x\rHIT.append(1)\r", "x; HIT.append(1); x",
    "x): return HIT.append(1)\ndef g(y", "x=HIT.append(1)", "x: HIT.append(1)", "*HIT", "**HIT", "HIT.append(1)",
    "HIT", "ＨＩＴ", "x[HIT.append(1)]", '"""\nHIT.append(1)\n"""', "'''\nHIT.append(1)\n'''", "{HIT.append(1)}",
    "x\\", 'x\\"', "\\N{DIGIT ONE}", "%(HIT)s", "{0.__class__}", "# type: HIT", "x\u2028HIT.append(1)", "\ufeffHIT",
    "x\x00HIT", "x\x0cHIT.append(1)", "lambda: HIT", "class", "None", "__class__", "__import__", "__builtins__",
    "self", "args", "kwargs", "forward", "training", "_modules", "_parameters", "torch", "getattr", "exec", "v0", "c1",
    "f'{HIT.append(1)}'", "x.__class__.__init__.__globals__", "..", ".", "", " ", "a b", "0", "-", "a/b", "x" * 5000,
    "L__self__,,T;k,a.b,HIT", "() -> HIT", "x) or (HIT.append(1)", "], HIT.append(1), [", "}, HIT.append(1), {",
)  # fmt: skip
# Errors that a reader, and then a program, may end in.
READING = (RuntimeError, ValueError)
RUNNING = (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError, AssertionError)
SECONDS = 10
# Lists that are read at the first use: of ops, and of installed packages.
_OWN = (str(Path(torch.__file__).parent), sys.prefix, sys.base_prefix)
_TEMPORARY = tempfile.gettempdir()  # read here: the audit hook may run while `tempfile` holds its lock

hits: list[Any] = []
_seen: list[str] = []
_watching = False


def watch(event: str, arguments: tuple) -> None:
    """The audit hook."""
    global _watching
    if not _watching:
        return
    _watching = False
    try:
        if event in _FORBIDDEN | {"open"} and not _is_own(arguments[0]):
            _seen.append(f"{event} {str(arguments[0])[:80]}")
        if event == "compile" and isinstance(arguments[0], (str, bytes)) and arguments[1] != "<unknown>":
            text = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode("utf-8", "replace")
            if "HIT" in text and _names_it(text):
                _seen.append(f"compiled {text[:200]!r}")
    finally:
        _watching = True


def _is_own(path: Any) -> bool:
    """Whether a file is one that Python, or the attack itself, opens."""
    text = str(path)
    if path is None or isinstance(path, int):  # the library that is the process itself; an open file
        return True
    if text.startswith("<") and ">" in text:  # where Python shows the line of an error
        return True
    return text.endswith((".py", ".pyc", ".so")) or text.startswith((_TEMPORARY, "/proc/", "/sys/", *_OWN))


def _names_it(text: str) -> bool:
    """Whether source calls a method of `HIT`. (As the name of a value or an attribute it is right.)"""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = [n.func.value for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(isinstance(value, ast.Name) and value.id == "HIT" for value in called)


# -- files -----------------------------------------------------------------------------------------------------


class _Part(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (self.linear(x) + self.shift) * scale


class _Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = _Part()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.layers(self.part(x, scale=scale))


def _inputs() -> tuple[Any, ...]:
    return torch.ones(4, 3), torch.ones(3)


def _zipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(records: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return out.getvalue()


Attack = tuple[str, str, Callable[[], Any]]  # the place, the payload, the file


def _replaced(value: Any, place: tuple, payload: str) -> Any:
    """JSON with the text (or key) at a place exchanged."""
    if not place:
        return payload
    step, rest = place[0], place[1:]
    if isinstance(value, list):
        return [_replaced(v, rest, payload) if i == step else v for i, v in enumerate(value)]
    if isinstance(step, tuple):  # a key itself
        return {payload if k == step[0] else k: v for k, v in value.items()}
    return {k: _replaced(v, rest, payload) if k == step else v for k, v in value.items()}


def _texts(value: Any, place: tuple = ()) -> Iterator[tuple]:
    """Places of all texts of JSON, keys among them."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts(item, (*place, i))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*place, (key,))
            yield from _texts(item, (*place, key))


def _parts(text: str, payload: str) -> Iterator[str]:
    """Yield texts with one token replaced; the formats' punctuation separates tokens."""
    words = list(re.finditer(r"[^\s.,;:\[\]{}()\"'=<>@/]+", text))
    for word in words[:24]:
        yield text[: word.start()] + payload + text[word.end() :]


def exported() -> Iterator[Attack]:
    """Attacks on `.pt2`: each string and key of each JSON record, complete and token by token."""
    shapes = {"x": {0: torch.export.Dim("batch", max=9)}, "scale": None}
    kept = ("part",)
    program = torch.export.export(_Net(), _inputs(), dynamic_shapes=shapes, preserve_module_call_signature=kept)
    held = io.BytesIO()
    torch.export.save(program, held)
    records = _zipped(held.getvalue())
    for name, content in records.items():
        if not name.endswith(".json"):
            continue
        data = json.loads(content)
        for place in _texts(data):
            found: Any = data
            for step in place:
                found = step[0] if isinstance(step, tuple) else found[step]
            for payload in PAYLOADS:
                for text in dict.fromkeys((payload, *_parts(found, payload))):
                    yield f"pt2 {name} {place}", text, _with_json(records, name, data, place, text)


def _with_json(records: dict[str, bytes], name: str, data: Any, place: tuple, text: str) -> Callable[[], bytes]:
    return lambda: _archive({**records, name: json.dumps(_replaced(data, place, text)).encode()})


def _with_word(records: dict[str, bytes], name: str, word: str, payload: str) -> Callable[[], bytes]:
    def made() -> bytes:
        changed = re.sub(rf"\b{word}\b", lambda _: payload, records[name].decode())
        return _archive({**records, name: changed.encode("utf-8", "replace")})

    return made


def scripted() -> Iterator[Attack]:
    """Attacks on TorchScript: tokens of its source, and strings of its pickles."""
    held = io.BytesIO()
    torch.jit.save(torch.jit.trace(_Net(), _inputs()), held)
    records = _zipped(held.getvalue())
    for name, content in records.items():
        if name.endswith(".py"):
            text = content.decode()
            words = sorted({m.group() for m in re.finditer(r"[A-Za-z_]\w*", text)})
            for word in words:
                for payload in PAYLOADS:
                    yield f"ts {name} {word}", payload, _with_word(records, name, word, payload)
        elif name.endswith(".pkl"):
            for start, text in _unicodes(content):
                for payload in PAYLOADS:
                    raw = payload.encode("utf-8", "replace")
                    changed = content[:start] + b"X" + len(raw).to_bytes(4, "little") + raw
                    changed += content[start + 5 + len(text) :]
                    yield f"ts {name} {text!r}", payload, lambda c=changed, n=name: _archive({**records, n: c})
    for payload in PAYLOADS:
        yield (
            "ts names of records",
            payload,
            lambda p=payload: _archive(
                {
                    n.replace("code/__torch__", f"code/{p[:200]}") if n.endswith(".py") else n: c
                    for n, c in records.items()
                }
            ),
        )


def _unicodes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where a pickle has its texts."""
    import pickletools

    for opcode, argument, position in pickletools.genops(data):
        if opcode.name == "BINUNICODE":
            yield position or 0, argument.encode()


def onnx() -> Iterator[Attack]:
    """Attacks on ONNX: each text of each message."""
    for number, data in enumerate(onnx_files()):
        for place in _message_texts(parse_message(data, "Model")):
            for payload in PAYLOADS:
                yield f"onnx {number} {place}", payload, lambda d=data, a=place, p=payload: _with_text(d, a, p)


def _message_texts(message: Message, place: tuple = ()) -> Iterator[tuple]:
    for name, value in message._set.items():
        for i, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, Message):
                yield from _message_texts(item, (*place, (name, i)))
            elif isinstance(item, str):
                yield (*place, (name, i))


def _with_text(data: bytes, place: tuple, payload: str) -> bytes:
    whole = message = parse_message(data, "Model")
    for name, i in place[:-1]:
        value = message._set[name]
        message = value[i] if isinstance(value, list) else value
    name, i = place[-1]
    if isinstance(message._set[name], list):
        message._set[name][i] = payload
    else:
        message._set[name] = payload
    return b"".join(encode_message(whole))


def _first(x: Any, *_: Any) -> Any:
    return x


def _function(name: str, module: str) -> Any:
    def made(x: Any) -> Any:
        return x

    made.__name__ = made.__qualname__ = name
    made.__module__ = module
    return made


def _marked(node: Any, text: str) -> Any:
    """A node with a text in all that comments show."""
    node.meta.update(stack_trace=f'File "{text}", line 3, in {text}\n  {text}\n', custom={text: text}, desc=text)
    return node


def _kept(node: Any, **given: Any) -> Any:
    """A node with these attributes, past what its class checks."""
    node.__dict__.update(given)
    return node


# By the place of a text in a graph: the node that holds it, of a graph, its input and the text.
_GRAPHS: dict[str, Callable[[Any, Any, str], Any]] = {
    "keyword": lambda g, x, p: g.call_function(_first, (x,), {p: 1}),
    "method": lambda g, x, p: g.call_method(p, (x,)),
    "module": lambda g, x, p: g.call_module(p, (x,)),
    "attribute": lambda g, x, p: g.get_attr(p),
    "input": lambda g, x, p: g.placeholder(p, default_value=1),
    "input after a star": lambda g, x, p: g.placeholder("*" + p),
    "name": lambda g, x, p: _kept(g.call_function(_first, (x,)), name=p, _name=p),
    "comments": lambda g, x, p: _marked(g.call_function(_first, (x,)), p),
    "type": lambda g, x, p: _kept(g.call_function(_first, (x,)), type=type(p.replace("\0", ""), (), {"__module__": p})),
    "function": lambda g, x, p: g.call_function(_function(p, "torch.ops.aten"), (x,)),
    "function of a module": lambda g, x, p: g.call_function(_function("f", p), (x,)),
    "function of arguments": lambda g, x, p: g.call_function(_first, (x, _function(p, "torch.ops.aten"))),
    "texts": lambda g, x, p: g.call_function(_first, (x, p, {p: [p]}, slice(p))),
    "enum": lambda g, x, p: g.call_function(_first, (x, *enum.Enum("E", {p or "a": 1, "other": 2}))),
    "named tuple": lambda g, x, p: type(p.replace("\0", ""), (collections.namedtuple("T", "a"),), {"__module__": p})(x),
}


def graphs() -> Iterator[Attack]:
    """Attacks by the names that graphs of `torch.fx`, and the objects in them, have. In the place of a file stands a
    function that makes the module.
    """
    for place, build in _GRAPHS.items():
        for payload in PAYLOADS:
            yield f"fx {place}", payload, lambda b=build, p=payload: lambda: _graph_module(b, p)


def _graph_module(build: Callable[[Any, Any, str], Any], payload: str) -> Any:
    graph = torch.fx.Graph()
    graph.output(build(graph, graph.placeholder("x"), payload))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


KINDS = {"pt2": exported, "ts": scripted, "onnx": onnx, "fx": graphs}

# -- what is done with a file ------------------------------------------------------------------------------------


def _use_module(module: Any, inputs: tuple) -> None:
    """Run a graph module, show it, trace it again, write it as a package."""
    _try(lambda: module(*inputs))
    _try(lambda: module.print_readable(print_output=False))
    _try(lambda: str(module.code))
    _try(lambda: torch.fx.symbolic_trace(module))
    _write_package(module)


def _write_package(module: Any) -> None:
    """`to_folder` writes into its folder alone, and writes no payload as code."""
    global _watching
    _watching = False
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "a" / "made"
        made.parent.mkdir()
        _try(lambda: module.to_folder(made, "Made"))
        own = {made, made.parent, *(made.iterdir() if made.exists() else ())}
        beside = [str(path) for path in Path(folder).rglob("*") if path not in own]
        if beside:
            _seen.append(f"a package wrote {beside}")
        if (made / "module.py").exists() and _names_it((made / "module.py").read_text()):
            _seen.append("HIT is code of a written package")
    _watching = True


def _use_exported(data: bytes) -> None:
    program = torch.export.load(io.BytesIO(data))
    _try(lambda: str(program))
    _try(lambda: _use_module(program.module(), _inputs()))

    def unflattened() -> None:
        made = torch.export.unflatten(program)
        _try(lambda: made(*_inputs()))
        _try(lambda: made.print_readable(print_output=False))
        _try(lambda: torch.jit.trace(made, _inputs()))
        _try(lambda: torch.fx.symbolic_trace(made))

    _try(unflattened)
    _try(lambda: program.run_decompositions())
    _try(lambda: torch.export.save(program, io.BytesIO()))


def _use_scripted(data: bytes) -> None:
    module = torch.jit.load(io.BytesIO(data))
    _try(lambda: module(*_inputs()))
    _try(lambda: module.code)
    _try(lambda: torch.jit.freeze(module.eval()))
    _try(lambda: torch.fx.symbolic_trace(module))
    _try(lambda: torch.jit.trace(module, _inputs()))
    _try(lambda: torch.jit.save(module, io.BytesIO()))


def _use_onnx(data: bytes) -> None:
    module = torch.onnx.load(io.BytesIO(data))
    _try(lambda: module(torch.ones(4)))
    _use_module(module, (torch.ones(4),))


def _use_graph(make: Callable[[], Any]) -> None:
    def used() -> None:
        module = make()
        _use_module(module, (torch.ones(2),))
        _try(lambda: module.print_readable(False, colored=True, expanded_def=True, additional_meta=["desc"]))
        _try(lambda: pickle.loads(pickle.dumps(module)))

    # A graph that a program builds may be no Python: two parameters of one name, a default behind a star.
    _try(used, (AttributeError, ImportError, SyntaxError, pickle.PicklingError))


USES: dict[str, Callable[[Any], None]] = {
    "pt2": _use_exported, "ts": _use_scripted, "onnx": _use_onnx, "fx": _use_graph,
}  # fmt: skip


def _try(action: Callable[[], Any], further: tuple[type[Exception], ...] = ()) -> None:
    with contextlib.suppress(*RUNNING, *further), contextlib.redirect_stderr(io.StringIO()):
        action()


def problem(kind: str, data: Any) -> str:
    """Return the fault in loading a file, or ""."""
    global _watching
    hits.clear()
    _seen.clear()
    begin, found = time.process_time(), ""
    _watching = True
    try:
        USES[kind](data)
    except (*READING, NotImplementedError, EOFError):
        pass
    except BaseException as error:
        found = f"{type(error).__name__}: {str(error)[:200]}"
    _watching = False
    if hits or _seen:
        return f"it did {hits} {_seen[:3]}"
    took = time.process_time() - begin
    return f"it took {took:.0f} s" if took > SECONDS else found


def main() -> int:
    """1 where an attack succeeds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--stride", type=int, default=1, help="each so-manyth attack")
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    builtins.HIT = hits  # type: ignore[attr-defined]
    sys.addaudithook(watch)
    wrong = 0
    for kind in options.kinds.split(","):
        count = 0
        for number, (place, payload, make) in enumerate(KINDS[kind]()):
            if number % options.stride or number < options.first:
                continue
            count += 1
            what = problem(kind, make())
            if what:
                wrong += 1
                print("wrong", number, place, ascii(payload[:80]), ascii(what), flush=True)
        print(f"{kind}: {count} attacks", flush=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
