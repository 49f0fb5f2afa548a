"""Damaged and hostile `.pt2` files: `python -m tests.hostile.exported_programs` loads 5,000 of them.

It prints `wrong NUMBER WHAT` for each whose loading executes something, takes long, takes memory that the file does
not have, or ends in another error than the reader's own.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import pickle
import random
import re
import sys
import time
import tracemalloc
import zipfile
from typing import Any

import torchlite as torch

_SECONDS = 10
_SPARE = 48 << 20
_STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 62, 1 << 70, 1e400, "", "x", "__class__", "a.b", "import os", "os.system('true')",
    "x); __import__('os').system('true'); (x", "torch.ops.aten.add.Tensor", "torch.ops.aten._print.default",
    "builtins.eval", "torch.load", "_operator.attrgetter", "torch.ops.higher_order.cond", [], {}, [[]], ["x"] * 3,
    {"as_int": 1}, {"as_name": "x"}, {"as_tensor": {"name": "input"}}, {"as_none": True}, "\n    import os", "'",
    '[1, {"type": "collections.defaultdict", "context": "{\\"default_factory_module\\": \\"os\\", '
    '\\"default_factory_name\\": \\"system\\", \\"dict_context\\": []}", "children_spec": []}]',
    '[1, {"type": "builtins.tuple", "context": "{\\"__enum__\\": true, \\"fqn\\": \\"antigravity:x\\", '
    '\\"name\\": \\"x\\"}", "children_spec": []}]',
)  # fmt: skip
_FORBIDDEN = frozenset(
    ("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.remove", "os.rename", "os.mkdir", "os.putenv",
     "subprocess.Popen", "socket.connect", "shutil.rmtree", "ctypes.dlopen")
)  # fmt: skip
_seen: list[str] = []


def watch(event: str, arguments: tuple) -> None:
    """An audit hook: what a file may not have done."""
    if event in _FORBIDDEN or event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        _seen.append(event)
    if event == "import" and arguments[0] in ("antigravity", "this"):
        _seen.append(f"import of {arguments[0]}")


def sample(train: bool) -> bytes:
    """A small program with parameters, buffers, a branch and a size that varies."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)

        def forward(self, x: Any, more: Any) -> Any:
            y = self.norm(self.linear(x)) + torch.tensor([1.0, 2.0])
            y = torch.cond(y.sum() > 0, lambda a: a * 2, lambda a: a - 1, (y,))
            return {"y": y.reshape(x.shape[0] * 2), "parts": list(y.split(1, 1)), "more": more["z"]}

    shapes = {"x": {0: torch.export.Dim("batch", max=9)}, "more": None}
    program = torch.export.export(Net().train(train), (torch.ones(4, 3), {"z": torch.ones(2)}), dynamic_shapes=shapes)
    held = io.BytesIO()
    torch.export.save(program, held)
    return held.getvalue()


def _records(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(records: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    return out.getvalue()


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        _places(inner, found)
    return found


def _renamed(dice: random.Random, records: dict[str, bytes]) -> dict[str, bytes]:
    """The records with another name, or the name of something else, wherever one name stands."""
    model = next(n for n in records if n.endswith("model.json"))
    names = sorted({*re.findall(rb'name": ?"([\w.]{1,60})"', records[model])})
    before, other = dice.choice(names), dice.choice(names)
    after = dice.choice((other, before + b".a", other + b".b", b"_guards_fn", b"output"))
    return {n: c.replace(b'"%b"' % before, b'"%b"' % after) if n.endswith(".json") else c for n, c in records.items()}


def damaged(dice: random.Random, samples: list[bytes]) -> bytes:
    """A file with some of its bytes, records or values changed."""
    data = dice.choice(samples)
    kind = dice.randrange(7)
    if kind == 0:
        out = bytearray(data)
        for _ in range(dice.randrange(1, 8)):
            out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
        return bytes(out)
    if kind == 1:
        return data[: dice.randrange(len(data))]
    records = _records(data)
    if kind == 2:
        name = dice.choice(list(records))
        change = dice.randrange(3)
        if change == 0:
            del records[name]
        elif change == 1:
            records[name] = records[name][: dice.randrange(len(records[name]) + 1)]
        else:
            records[name] = dice.randbytes(dice.randrange(64))
        return _packed(records)
    if kind == 6:
        return _packed(_renamed(dice, records))
    name = dice.choice(
        [n for n in records if n.endswith(".json")] + [n for n in records if n.endswith("model.json")] * 4
    )
    loaded = json.loads(records[name])
    for _ in range(dice.randrange(1, 4)):
        places = _places(loaded, [])
        if not places:
            break
        owner, key = dice.choice(places)
        change = dice.randrange(5)
        if change == 0:
            del owner[key]
        elif change == 1:
            other, place = dice.choice(places)
            owner[key] = copy.deepcopy(other[place]) if len(json.dumps(other[place])) < 5000 else None
        elif change == 2 and isinstance(owner, dict):
            owner[str(dice.choice(_STRANGE))] = owner.pop(key)
        else:
            owner[key] = copy.deepcopy(dice.choice(_STRANGE))
    records[name] = json.dumps(loaded).encode()
    return _packed(records)


def problem(data: bytes) -> str:
    """The fault in loading, showing, unflattening and saving a file again; "" where there is none."""
    _seen.clear()
    tracemalloc.reset_peak()
    before, begin = tracemalloc.get_traced_memory()[0], time.process_time()
    found = ""
    try:
        program = torch.export.load(io.BytesIO(data))
        program.module()
        str(program)
        torch.export.unflatten(program)
        torch.export.save(program, io.BytesIO())
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, NotImplementedError) as error:
        if len(str(error)) > 3000:
            found = f"an error of {len(str(error))} characters"
    except BaseException as error:
        found = f"{type(error).__name__}: {str(error)[:200]}"
    took, used = time.process_time() - begin, tracemalloc.get_traced_memory()[1] - before
    if _seen:
        found = f"it did {_seen}"
    elif took > _SECONDS:
        found = f"it took {took:.0f} s"
    elif used > _SPARE + 64 * len(data):
        found = f"it took {used >> 20} MB"
    return found


def main() -> int:
    """Read damaged files `first` to `last` of a seed; 1 where one does what it must not."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=5000)
    options = parser.parse_args()
    samples = [sample(False), sample(True)]
    torch.export.load(io.BytesIO(samples[0])).module()
    sys.addaudithook(watch)
    tracemalloc.start()
    wrong = 0
    for number in range(options.first, options.last):
        what = problem(damaged(random.Random(f"{options.seed} {number}"), samples))
        if what:
            wrong += 1
            print("wrong", number, what.replace("\n", " "), flush=True)
    print(f"{options.last - options.first} files, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
