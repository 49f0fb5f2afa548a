"""Damaged and malicious ONNX files, and checks of reading them.

`python -m tests.hostile.onnx_files` makes 5,000 and reads each; the tests take some hundred. A file is a function of
`--seed` and its number alone, so that `--only NUMBER` makes it again.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlite as torch
from torchlite.onnx._export.graph_builder import make_attribute, make_tensor
from torchlite.onnx._protobuf import Message, encode_message, parse_message
from torchlite.onnx._protobuf_schema import BY_NAME, MESSAGES, SCALARS

from .damage import changed

SECONDS = 10  # of the processor
_SPARE = 16 << 20  # bytes that any file may take: modules that are imported when they are first used
_PER_BYTE = 400  # bytes for a byte of the file: a node of ten bytes is an object of a graph and a line of its program
_EDGES = (0, 1, -1, 2, 127, 128, 2**15, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**31), 17, 64)
_FORBIDDEN = {
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
    "os.putenv", "subprocess.Popen", "socket.connect", "socket.bind", "shutil.rmtree", "ctypes.dlopen", "exec",
}  # fmt: skip
_TEXTS = (
    "", "x", "w", "forward", "training", "__class__", "__init__", "a.b.c", "." * 50, "parameters", "_parameters", "é",
    "x" * 5000, "a'; import os; os.system('true'); '", "\n    import os\n", "self", "0", "{}", "%s", "True", "inf",
    "../../secret", "/etc/passwd", "weights.bin", "\0",
)  # fmt: skip


def node(kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Message:
    items = [make_attribute(key, value) for key, value in attributes.items()]
    return Message("Node", op_type=kind, input=inputs, output=outputs, attribute=items)


def info(name: str, *sizes: Any, kind: int = 1) -> Message:
    dims = [Message("Dimension", **({"dim_param": n} if isinstance(n, str) else {"dim_value": n})) for n in sizes]
    about = Message("TypeOfTensor", elem_type=kind, shape=Message("TensorShape", dim=dims))
    return Message("ValueInfo", name=name, type=Message("Type", tensor_type=about))


def model(
    nodes: list[Message], inputs: list[Message], outputs: list[str], initializers: list[Message] = (),  # type: ignore
    functions: list[Message] = (), version: int = 20, **graph: Any,  # type: ignore[assignment]
) -> bytes:  # fmt: skip
    body = Message(
        "Graph", name="g", node=nodes, input=inputs, output=[info(name) for name in outputs],
        initializer=list(initializers), **graph,
    )  # fmt: skip
    whole = Message(
        "Model", ir_version=10, graph=body, functions=list(functions),
        opset_import=[Message("OperatorSetId", version=version), Message("OperatorSetId", domain="own", version=1)],
    )  # fmt: skip
    return b"".join(encode_message(whole))


def weight(name: str, *shape: int, dtype: str = "float32") -> Message:
    array = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    return make_tensor(name, array, dtype)


@functools.cache
def files() -> list[bytes]:
    """Models that are right."""
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s", "n")],
        node=[node("Add", ["s", "w"], ["s2"]), node("Identity", ["c"], ["c2"])],
        output=[info("c2", kind=9), info("s2", "n"), info("s2", "n")],
    )  # fmt: skip
    branch = Message("Graph", name="b", node=[node("Neg", ["x"], ["y1"])], output=[info("y1")])
    twice = Message(
        "Function", name="Twice", domain="own", input=["a"], output=["b"], attribute=["k"],
        node=[node("Add", ["a", "a"], ["b"])], opset_import=[Message("OperatorSetId", version=20)],
    )  # fmt: skip
    call = Message("Node", op_type="Twice", domain="own", input=["x"], output=["y"])
    outside = Message(
        "Tensor", name="w", dims=[4], data_type=1, data_location=1,
        external_data=[Message("StringString", key=k, value=v) for k, v in (
            ("location", "weights.bin"), ("offset", "0"), ("length", "16"))],
    )  # fmt: skip
    return [
        model(
            [node("Conv", ["x", "w", "b"], ["h"], pads=[1, 1, 1, 1]), node("Relu", ["h"], ["r"]),
             node("Flatten", ["r"], ["f"]), node("Gemm", ["f", "v"], ["y"], transB=1, alpha=0.5)],
            [info("x", "n", 2, 4, 4)], ["y"], [weight("w", 3, 2, 3, 3), weight("b", 3), weight("v", 5, 48)],
        ),
        model(
            [node("Loop", ["m", "", "x"], ["last", "all"], body=body), node("Reshape", ["all", "shape"], ["y"])],
            [info("x", 4)], ["last", "y"],
            [weight("w", 4), make_tensor("m", np.array(3), "int64"), make_tensor("shape", np.array([-1]), "int64")],
        ),
        model(
            [node("ReduceSum", ["x"], ["t"], keepdims=0), node("Greater", ["t", "z"], ["c"]),
             node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
            [info("x", 4)], ["y"], [weight("z", 1)],
        ),
        model([call], [info("x", 4)], ["y"], functions=[twice]),
        model([node("Mul", ["x", "w"], ["y"])], [info("x", 4)], ["y"], [outside]),
        model(
            [node("Shape", ["x"], ["s"]), node("Constant", [], ["k"], value=make_tensor("k", np.array([2]), "int64")),
             node("Gather", ["s", "k"], ["d"]), node("Concat", ["d", "k"], ["e"], axis=0),
             node("ConstantOfShape", ["e"], ["y"], value=weight("one", 1))],
            [info("x", 1, 2, 3)], ["y"],
        ),
        model(
            [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3), node("Transpose", ["y"], ["z"], perm=[3, 1, 0, 2])],
            [info("x", 2, 1, 2)], ["z"], [weight("w", 1, 12, 2), weight("r", 1, 12, 3)],
        ),
    ]  # fmt: skip


def _deep(depth: int) -> bytes:
    """An input whose type is a sequence of sequences of sequences."""
    kind = b""
    for _ in range(depth):
        inner = b"\x0a" + _length(len(kind)) + kind
        kind = b"\x22" + _length(len(inner)) + inner
    value = b"\x12" + _length(len(kind)) + kind
    graph = b"\x5a" + _length(len(value)) + value
    return b"\x3a" + _length(len(graph)) + graph


def _length(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _laughs(count: int, recursive: bool = False) -> bytes:
    """Functions each of which calls the one before it twice."""
    functions = []
    for i in range(count):
        inner = f"F{i - 1}" if i or recursive else ""
        kind = {"op_type": inner.replace("F-1", f"F{count - 1}") or "Neg", "domain": "own" if inner else ""}
        nodes = [Message("Node", input=["a"], output=["t"], **kind), Message("Node", input=["t"], output=["b"], **kind)]
        nodes[0].attribute = [make_attribute("k", i)] if inner else []
        functions.append(Message(
            "Function", name=f"F{i}", domain="own", input=["a"], output=["b"], attribute=["k"], node=nodes,
            opset_import=[Message("OperatorSetId", version=20), Message("OperatorSetId", domain="own", version=1)],
        ))  # fmt: skip
    call = Message("Node", op_type=f"F{count - 1}", domain="own", input=["x"], output=["y"])
    return model([call], [info("x", 1)], ["y"], functions=functions)


def _outside(name: str, **about: str) -> bytes:
    entries = {"location": name, "offset": "0", "length": "16"} | about
    held = Message(
        "Tensor", name="w", dims=[4], data_type=1, data_location=1,
        external_data=[Message("StringString", key=k, value=v) for k, v in entries.items()],
    )  # fmt: skip
    return model([node("Mul", ["x", "w"], ["y"])], [info("x", 4)], ["y"], [held])


@functools.cache
def harm() -> dict[str, bytes]:
    """Return the handwritten files."""
    huge = Message("Tensor", name="w", dims=[2**40, 2**20], data_type=1, raw_data=b"1234")
    none = Message("Tensor", name="w", dims=[-1], data_type=1, raw_data=b"1234")
    many = Message("Tensor", name="w", dims=[1] * 5000, data_type=1, raw_data=b"1234")
    sparse = Message(
        "SparseTensor", dims=[2**40], values=weight("w", 1), indices=make_tensor("i", np.array([2**40]), "int64")
    )
    chain = [node("Add", [f"x{i}" if i else "x", f"x{i}" if i else "x"], [f"x{i + 1}"]) for i in range(3000)]
    found = {
        "nothing": b"", "one byte": b"\x08", "no graph": b"\x08\x0a", "endless number": b"\x08" + b"\xff" * 50,
        "length past the end": b"\x3a\xff\xff\xff\xff\x0f", "groups": b"\x0b" * 5000, "group number": b"\x0b\x14",
        "field zero": b"\x00\x00", "wire type": b"\x0f", "text": b"\x12\x02\xff\xfe", "deep types": _deep(2000),
        "functions": _laughs(40), "a function of itself": _laughs(3, True), "huge": model([], [], [], [huge]),
        "negative": model([], [], [], [none]), "many dims": model([], [], [], [many]),
        "sparse": model([], [info("x", 1)], ["w"], sparse_initializer=[sparse]),
        "up": _outside("../secret"), "root": _outside("/etc/passwd"), "link": _outside("link"), "folder": _outside("."),
        "device": _outside("/dev/zero"), "windows": _outside("..\\x"),
        "long": _outside("weights.bin", length=str(2**60)),
        "past the end": _outside("weights.bin", offset="8"), "offset": _outside("weights.bin", offset="-1"),
        "digits": _outside("weights.bin", offset="9" * 5000), "absent": _outside("nothing.bin"),
        "zero": _outside("a\0b"),
        "doubling": model(chain, [info("x", 1)], ["x3000"]),
        "repeats": model([node("Loop", ["m", "", "x"], ["y"], body=Message("Graph"))], [info("x", 1)], ["y"],
                         [make_tensor("m", np.array(2**62), "int64")]),
        "name": model([node("Identity", ["x"], ["y"])], [info("x = __import__('os').system('true')", 1)], ["y"]),
        "attribute": model([node("Selu", ["x"], ["y"], alpha=float("nan"), gamma=float("inf"))], [info("x", 1)], ["y"]),
    }  # fmt: skip
    for text in _TEXTS:
        found[f"a weight called {text[:20]!r}"] = model(
            [node("Add", ["x", text or "w"], ["y"])], [info("x", 1)], ["y"], [weight(text, 1)]
        )
    return found


def _change(dice: random.Random, data: bytes) -> bytes:
    """Bytes changed, cut out, put in."""
    return changed(dice, data, dice.randrange(1, 6), lambda dice: _length(dice.choice(_EDGES) % (1 << 64)))


def _messages(message: Message) -> list[Message]:
    found, pending = [], [message]
    while pending:
        one = pending.pop()
        found.append(one)
        for field in MESSAGES[one._kind]:
            if field.type not in SCALARS and one.has(field.name):
                value = getattr(one, field.name)
                pending += value if field.repeats else [value]
    return found


def _value(dice: random.Random, field: Any, others: list[Message]) -> Any:
    """Something of a field's type."""
    if field.type in ("int32", "int64", "uint64"):
        value = dice.choice(_EDGES)
        return value % (1 << 31) if field.type == "int32" else value
    if field.type in ("float", "double"):
        return dice.choice((0.0, 1.0, -1.0, float("inf"), float("nan"), 1e30))
    if field.type in ("string", "bytes"):
        text = dice.choice(_TEXTS)
        return text if field.type == "string" else text.encode()
    same = [m for m in others if m._kind == field.type]
    return dice.choice(same) if same and dice.random() < 0.8 else Message(field.type)


def _change_fields(dice: random.Random, data: bytes) -> bytes:
    """Fields of a right file changed, left out, written twice, exchanged."""
    whole = parse_message(data)
    for _ in range(dice.randrange(1, 4)):
        every = _messages(whole)
        one = dice.choice(every)
        field = dice.choice(MESSAGES[one._kind])
        if field.type not in SCALARS and dice.random() < 0.5 and one._set:
            field = BY_NAME[one._kind][dice.choice(list(one._set))]
        new = _value(dice, field, [m for m in every if one not in _messages(m)])
        if not field.repeats:
            if dice.random() < 0.2:
                one._set.pop(field.name, None)
            else:
                setattr(one, field.name, new)
            continue
        items = list(getattr(one, field.name))
        at = dice.randrange(len(items) + 1)
        match dice.randrange(4):
            case 0:
                items[at : at + 1] = []
            case 1:
                items[at:at] = [new]
            case 2:
                items[at : at + 1] = [new]
            case _:
                dice.shuffle(items)
        setattr(one, field.name, items)
    return b"".join(bytes(piece) for piece in encode_message(whole))


def file(number: int, seed: int = 0) -> tuple[str, bytes]:
    """Return a file's description and its bytes."""
    by_hand = list(harm().items()) if number < 100 else []
    if number < len(by_hand):
        return by_hand[number]
    dice = random.Random(f"{seed} {number}")
    data = dice.choice(files())
    way: Callable = dice.choice((_change, _change_fields, _change_fields))
    return way.__name__, way(dice, data)


_seen: list[str] = []
_watching = False


def _watch(event: str, arguments: tuple) -> None:
    if not _watching or event not in _FORBIDDEN and event != "open":
        return
    where = sys._getframe(1).f_code.co_filename
    if event == "open":
        path, mode = str(arguments[0]), str(arguments[1])
        if not set(mode) & set("wax+") and ("secret" not in path and "passwd" not in path and "/dev" not in path):
            return
    if event == "exec" and (where.endswith(os.path.join("_types", "python_source.py")) or "importlib" in where):
        return  # `tests.hostile.injected_names` reads what is compiled
    _seen.append(f"{event} {arguments[:1]!r} in {where}")


def read(path: str, size: int) -> str:
    """Return the fault in reading a file, or ""."""
    global _watching
    _seen.clear()
    tracemalloc.reset_peak()
    before, begin, problem = tracemalloc.get_traced_memory()[0], time.process_time(), ""
    _watching = True
    try:
        torch.onnx.load(path)
    except torch.onnx.OnnxFileError as error:
        if len(str(error)) > 3000:
            problem = f"an error of {len(str(error))} letters"
    except BaseException as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    _watching = False
    seconds, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1] - before
    if _seen:
        return f"it did {_seen}"
    if seconds > SECONDS:
        return f"it took {seconds:.1f} seconds"
    if peak > _PER_BYTE * size + _SPARE:
        return f"it took {peak >> 10} kB, the file has {size >> 10} kB"
    return problem


def check(numbers: range, seed: int = 0) -> list[tuple[int, str, str]]:
    """Return the files of these numbers that are read wrongly: number, description, fault."""
    sys.addaudithook(_watch)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        inner = os.path.join(folder, "inner")
        os.mkdir(inner)
        for place in (folder, inner):
            with open(os.path.join(place, "weights.bin" if place == inner else "secret"), "wb") as stream:
                stream.write(bytes(16))
        os.symlink(os.path.join(folder, "secret"), os.path.join(inner, "link"))
        path = os.path.join(inner, "x.onnx")
        for data in files():  # what is compiled when it is first used
            with open(path, "wb") as stream:
                stream.write(data)
            torch.onnx.load(path)
        tracemalloc.start()
        try:
            for number in numbers:
                made, data = file(number, seed)
                with open(path, "wb") as stream:
                    stream.write(data)
                problem = read(path, len(data))
                if problem:
                    found.append((number, made, problem))
        finally:
            tracemalloc.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.onnx_files", description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    numbers = range(0, arguments.count, arguments.step)
    if arguments.only is not None:
        numbers = range(arguments.only, arguments.only + 1)
    wrong = check(numbers, arguments.seed)
    for number, made, problem in wrong:
        print("wrong", number, made, problem.replace("\n", " "))
    print(f"{len(numbers)} files: {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
