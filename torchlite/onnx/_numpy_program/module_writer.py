"""Writes a program's module: docstring, weights, functions of blocks, `forward` and the functions that they call."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import io
import re
import zipfile
from typing import Any

import numpy as np

from ..._types.python_source import parse, quote
from . import program_functions as functions
from .blocks import Block, divide
from .control_rules import statement_lines
from .expressions import (
    TOKEN,
    Statement,
    docstring,
    literal_tuple,
    safe_name,
    shown,
    unused_name,
    weight_names,
    words,
    wrap,
    wrap_header,
    wrap_names,
)  # fmt: skip
from .graph_reader import GraphReader

_TIME = (1980, 1, 1, 0, 0, 0)  # of the archive's members, so that equal weights give equal files


@dataclasses.dataclass
class Described:
    """Input or output: its name in the file, its variable's number or expression, dtype and sizes."""

    name: str
    number: int
    dtype: str
    shape: list[int | str | None] | None

    def __str__(self) -> str:
        sizes = (
            "any shape" if self.shape is None else f"[{', '.join('any' if s is None else str(s) for s in self.shape)}]"
        )
        return f"{self.dtype} {sizes}"


@dataclasses.dataclass
class Program:
    """Parts of the written module: the statements and their tables, the inputs, and the expressions of the outputs."""

    reader: GraphReader
    inputs: list[Described]
    outputs: list[tuple[Described, str]]
    source: str  # the file's name
    statements: list[Statement]


def weights_file(weights: dict[str, np.ndarray]) -> bytes:
    """Return an .npz file of arrays, the same bytes for the same arrays."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in weights.items():
            member = zipfile.ZipInfo(f"{name}.npy", _TIME)
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)
    return out.getvalue()


class ModuleWriter:
    """Writer of a module's source."""

    def __init__(self, program: Program, module: str, weights_name: str, version: str) -> None:
        self.program, self.reader = program, program.reader
        self.module, self.weights_name, self.version = module, weights_name, version
        self.functions: list[str] = []
        self.names: dict[int, str] = {}  # of the blocks' functions
        texts = [*(s.text for s in program.statements), *(text for _, text in program.outputs)]
        used = {name for text in texts for name in weight_names(text)}
        self.weights = {name: array for name, array in self.reader.weights.items() if name in used}
        self.helpers = with_needed(["check_input", *dict.fromkeys(word for text in texts for word in words(text))])
        self.reserved = {
            *self.helpers, "np", "os", "functools", "itertools", "math", "weights", "sizes", "forward",
            "load_weights", "WEIGHTS", "_",
        }  # fmt: skip
        self.inputs: dict[int, str] = {}
        for item in program.inputs:
            self.inputs[item.number] = safe_name(item.name, {*self.reserved, *self.inputs.values()}, "input")

    def source(self, digest: str) -> str:
        """Return the module's text."""
        wanted = {int(number) for _, text in self.program.outputs for number in TOKEN.findall(text)}
        block = divide(self.program.statements, wanted)
        self.name_blocks(block)
        body = self.forward(block, wanted)
        code = ["\n".join(body), *self.functions]
        imports = {"functools", "os"} if self.weights else set()
        imports |= {"itertools"} if any("itertools" in words(text) for text in code) else set()
        imports |= {"math"} if any("math" in needed_functions(name) for name in self.helpers) else set()
        head = [self.describe(digest), "", "from __future__ import annotations", ""]
        head += [f"import {name}" for name in sorted(imports)] + ([""] if imports else [])
        head += ["import numpy as np", ""]
        parts = ["\n".join(head)]
        if self.weights:
            parts.append(self.table())
            parts.append(self.loader())
        parts += [*code, *(function_source(name) for name in self.helpers)]
        return "\n\n".join(part.strip("\n") + "\n" for part in parts)

    # -- parts of the module

    def describe(self, digest: str) -> str:
        """Return the module's docstring."""
        given = [f"    {self.inputs[item.number]}: {item}" for item in self.program.inputs]
        results = [f"    {shown(item.name)}: {item}" for item, _ in self.program.outputs]
        call = ", ".join(self.inputs[item.number] for item in self.program.inputs)
        lines = [
            f"The network of {shown(self.program.source)} as a program of NumPy.",
            "",
            f"Written by torchlite {self.version} (`torchlite convert`). It needs NumPy 2.0 or newer and nothing else.",
            "",
            f"    import {self.module}",
            "",
            f"    result = {self.module}.forward({call})",
            "",
            "Inputs:",
            *given,
            "",
            "Outputs:",
            *results,
        ]
        if self.weights:
            count = sum(array.size for array in self.weights.values())
            lines += [
                "",
                f"Weights: {shown(self.weights_name)}, {len(self.weights)} arrays, {count:,} numbers, SHA-256",
                digest,
            ]
        return docstring([*lines, ""] if len(lines) > 1 else lines).replace('\n\n"""', '\n"""')

    def table(self) -> str:
        """Return the table of the weights' dtypes and shapes."""
        lines = ["# Dtype and shape of each weight.", "WEIGHTS = {"]
        lines += [
            wrap(f"{quote(name)}: ({quote(array.dtype.name)}, {literal_tuple(array.shape)}),", 4)
            for name, array in self.weights.items()
        ]
        return "\n".join([*lines, "}"])

    def loader(self) -> str:
        """Return the function that loads the weights."""
        return "\n".join(
            [
                "@functools.cache",
                "def load_weights(path: str | None = None) -> dict[str, np.ndarray]:",
                docstring(
                    [
                        "Return the weights by name, of a file or of the one beside this module.",
                        "",
                        "ValueError if an array is missing, or has another dtype or shape.",
                    ],
                    "    ",
                ),
                "    if path is None:",
                "        folder = os.path.dirname(os.path.abspath(__file__))",
                wrap(f"path = os.path.join(folder, {quote(self.weights_name)})", 8),
                "    with np.load(path, allow_pickle=False) as file:",
                "        weights = {name: file[name] for name in WEIGHTS if name in file.files}",
                "    for name, (dtype, shape) in WEIGHTS.items():",
                "        if name not in weights:",
                '            raise ValueError(f"{path}: there is no array {name}")',
                "        found = weights[name]",
                "        if found.dtype != np.dtype(dtype) or found.shape != shape:",
                '            raise ValueError(f"{path}: {name} is {found.dtype} {found.shape}, not {dtype} {shape}")',
                "    return weights",
            ]
        )

    def name_blocks(self, block: Block) -> None:
        """Name the functions of all inner blocks, before any variable gets a name."""
        for item in block.items:
            if isinstance(item, Block):
                name = self.names[id(item)] = safe_name("_".join(item.path), self.reserved, "block")
                self.reserved.add(name)
                self.name_blocks(item)

    def forward(self, block: Block, wanted: set[int]) -> list[str]:
        """Return the lines of `forward`; add the functions of its blocks."""
        scope = FunctionNames(self, dict(self.inputs))
        body = self.body(block, scope, wanted)
        given = [self.inputs[item.number] for item in self.program.inputs]
        with_weights = bool(self.weights)
        parameters = [f"{name}: np.ndarray" for name in given]
        if with_weights:
            parameters.append("weights: dict[str, np.ndarray] | None = None")
        several = len(self.program.outputs) > 1
        result = "tuple[np.ndarray, ...]" if several else "np.ndarray"
        named = ", ".join(shown(item.name) for item, _ in self.program.outputs)
        about = [
            f"Return {named if len(named) < 80 else f'the {len(self.program.outputs)} outputs'} of the network.",
            "",
            "Args:",
            *(f"    {self.inputs[item.number]}: {item}" for item in self.program.inputs),
            *(["    weights: what load_weights returns; by default that of the file."] if with_weights else []),
        ]
        lines = [wrap_header("forward", parameters, result), docstring(about, "    ")]
        if with_weights:
            lines += ["    if weights is None:", "        weights = load_weights()"]
        lines.append("    sizes: dict[str, int] = {}")
        for item in self.program.inputs:
            name = self.inputs[item.number]
            shape = None if item.shape is None else [_size_text(size) for size in item.shape]
            text = f"{quote(name)}, {name}, {quote(item.dtype)}, {'None' if shape is None else literal_tuple(shape)}"
            lines.append(wrap(f"{name} = check_input({text}, sizes)", 4))
        lines += body
        texts = [
            scope.named(text if item.dtype == "any" else f"np.asarray({text})") for item, text in self.program.outputs
        ]
        lines.append(wrap_names("return ", texts, "", 4))
        return lines

    # -- functions of blocks

    def body(self, block: Block, scope: FunctionNames, wanted: set[int]) -> list[str]:
        """Return the lines of a block's statements and calls. `wanted` are the variables that are read after it."""
        lines: list[str] = []
        later: list[set[int]] = []
        needed = set(wanted)
        for item in reversed(block.items):
            later.append(set(needed))
            for statement in [*item.statements()][::-1] if isinstance(item, Block) else [item]:
                needed |= set(statement.reads)
        for item, after in zip(block.items, reversed(later), strict=True):
            if isinstance(item, Block):
                lines += self.call(item, scope, after)
                continue
            scope.assign(item)
            for line in statement_lines(item):
                text = scope.named(line)
                indent = len(text) - len(text.lstrip(" "))
                lines.append(wrap(text.strip(" "), 4 + indent))
        return lines

    def call(self, block: Block, scope: FunctionNames, after: set[int]) -> list[str]:
        """Write a block's function; return the line that calls it."""
        statements = list(block.statements())
        made = [number for statement in statements for number in statement.targets]
        reads = dict.fromkeys(number for statement in statements for number in statement.reads)
        given = [number for number in reads if number not in set(made)]
        results = [number for number in made if number in after]
        if not results:
            return []
        name = self.names[id(block)]
        inner = FunctionNames(self, {})
        for number in given:
            inner.add(number, self.inputs.get(number))
        place = len(self.functions)
        self.functions.append("")
        lines = self.body(block, inner, after)
        with_weights = any("weights" in words(line) for line in lines)
        parameters = [f"{inner.names[number]}: np.ndarray" for number in given]
        arguments = [scope.names[number] for number in given]
        if with_weights:
            parameters.append("weights: dict[str, np.ndarray]")
            arguments.append("weights")
        several = len(results) > 1
        kind = "tuple[np.ndarray, ...]" if several else "np.ndarray"
        about = f"Return what {shown('.'.join(block.path))} of the network computes."
        head = [wrap_header(name, parameters, kind), docstring([about], "    ")]
        last = wrap_names("return ", [inner.names[number] for number in results], "", 4)
        self.functions[place] = "\n".join([*head, *lines, last])
        for number in results:
            scope.add(number)
        targets = [scope.names[number] for number in results]
        return [wrap_names("", targets, f" = {name}({', '.join(arguments)})", 4)]


class FunctionNames:
    """Names of the variables of one function."""

    def __init__(self, writer: ModuleWriter, names: dict[int, str]) -> None:
        self.writer, self.names = writer, names
        self._taken = {*writer.reserved, *names.values()}

    def add(self, number: int, wish: str | None = None) -> None:
        """Name a variable."""
        if number in self.names:
            return
        name = unused_name(wish or self.writer.reader.hints[number], self._taken)
        self.names[number] = name
        self._taken.add(name)

    def assign(self, statement: Statement) -> None:
        """Name the variables of a statement."""
        for number in (*statement.targets, *statement.inner):
            self.add(number)

    def named(self, text: str) -> str:
        """Return a text with names in the place of numbers."""
        return TOKEN.sub(lambda found: self.names[int(found[1])], text)


def _size_text(size: int | str | None) -> Any:
    return "None" if size is None else quote(size) if isinstance(size, str) else size


# -- functions that programs contain


@functools.cache
def functions_by_name() -> dict[str, Any]:
    """Return all functions by name, in their order."""
    return {name: value for name, value in vars(functions).items() if inspect.isfunction(value)}


@functools.cache
def needed_functions(name: str) -> frozenset[str]:
    """Return the functions and modules that a function names."""
    found = {node.id for node in ast.walk(parse(function_source(name))) if isinstance(node, ast.Name)}
    return frozenset(found & {*functions_by_name(), "math", "np"} - {name})


@functools.cache
def function_source(name: str) -> str:
    """Return a function's source, without comments for checkers."""
    text = inspect.getsource(functions_by_name()[name]).rstrip()
    return re.sub(r"  # type: ignore\[[a-z-]+\]$", "", text, flags=re.MULTILINE)


def with_needed(names: Any) -> list[str]:
    """Return functions with those that they need, in their order."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found and name in functions_by_name():
            found.add(name)
            left += needed_functions(name)
    return [name for name in functions_by_name() if name in found]
