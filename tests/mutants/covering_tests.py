"""The tests to run for a mutation: those that run its line, then all of their functions, then the mirrored folder."""

from __future__ import annotations

import collections
import json
import pathlib

from .mutations import Mutation

# Slower tests are left to the wider rounds.
_SLOW = 8.0
_MOST_TESTS = 30


class Covering:
    """What the recorder wrote: for each line the tests that run it."""

    def __init__(self, folder: pathlib.Path | None, root: pathlib.Path):
        self.root = root
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, dict[int, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        for part in sorted(folder.glob("*.json")) if folder is not None else ():
            found = json.loads(part.read_text(encoding="utf-8"))
            names = [name for name, _ in found["tests"]]
            self.seconds.update(found["tests"])
            for path, lines in found["files"].items():
                for line, tests in lines.items():
                    self.tests[path][int(line)] += [names[number] for number in tests]

    def quick(self, mutation: Mutation) -> list[str]:
        """The quickest tests that run the line: the mirrored folder's first, and then one of each function."""
        near = self.folder(mutation.path)
        found = self.tests[mutation.path].get(mutation.line, []) if mutation.in_function else []
        found = [name for name in found if self.seconds[name] < _SLOW]

        def order(name: str) -> tuple[bool, bool, float]:
            return not name.startswith(near), name.startswith("tests/ops/test_ops.py"), self.seconds[name]

        found.sort(key=order)
        seen: collections.Counter[str] = collections.Counter()
        ranked = []
        for name in found:
            function = name.partition("[")[0]
            ranked.append((seen[function] // 2, name))  # two cases of each function, and then two more
            seen[function] += 1
        return [name for _, name in sorted(ranked, key=lambda pair: pair[0])][:_MOST_TESTS]

    def functions(self, mutation: Mutation) -> list[str]:
        """The complete functions of these tests; where none is known, the files named for the module, or the folder."""
        functions = list(dict.fromkeys(name.partition("[")[0] for name in self.quick(mutation)))
        whole = "tests/ops/test_ops.py"  # all ops: thousands of tests
        functions = [name for name in functions if not name.startswith(whole)]
        return functions[:12] or self.named_for_module(mutation.path) or [self.folder(mutation.path)]

    def named_for_module(self, path: str) -> list[str]:
        folder = self.root / self.folder(path)
        stem = pathlib.Path(path).stem.strip("_")
        found = [file for file in folder.rglob("test_*.py") if stem in file.stem or file.stem[5:] in stem]
        return [file.relative_to(self.root).as_posix() for file in sorted(found)]

    def folder(self, path: str) -> str:
        """The folder of tests that mirrors a file's: `tests/nn` for `torchlite/nn/modules/linear.py`."""
        parts = pathlib.Path(path).parent.parts
        start = ["tests", "backends"] if parts[0] == "backends" else ["tests"]
        parts = parts[2:] if parts[0] == "backends" else parts[1:]
        places = [[*start, *(part.strip("_") for part in parts[:count])] for count in range(len(parts), 0, -1)]
        for place in places:
            if list((self.root / "/".join(place)).glob("test_*.py")):
                return "/".join(place)
        return "tests/backends/numpy" if len(start) == 2 else "tests/tensor"
