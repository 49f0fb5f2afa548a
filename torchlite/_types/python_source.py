"""Compiles generated Python source, and inserts names and values into it safely. No other module does.

Generated code consists of text that torchlite writes itself. Names and values from elsewhere (a file, a state dict, a
user's class) enter it only through `identifier`, `attribute` and `literal`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import keyword
import linecache
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from .._settings.adopted_classes import definition_of
from .._settings.fork_locks import acquire_before_fork

if TYPE_CHECKING:
    import ast

_FILE_NUMBERS = itertools.count(2)
_FORGOTTEN: deque[tuple[str, Any]] = deque()  # file names whose code is collected, with their empty lines
_TRIES = 5
_MAX_CACHED_NAME_LENGTH = 100  # letters of the longest name whose result is cached
_PARSING = acquire_before_fork(threading.RLock())  # a finalizer that the collector runs meanwhile may parse as well


def is_identifier(name: Any) -> bool:
    """True if Python reads the text as one name that is no keyword, and reads exactly this name.

    Python normalizes identifiers to NFKC, so a text that normalization changes is refused: it would name something
    else in code than it does in a table.

    >>> is_identifier("weight"), is_identifier("a.b"), is_identifier("class"), is_identifier("ｅｘｅｃ")
    (True, False, False, False)
    """
    if type(name) is not str:
        return False
    return _is_safe_identifier(name) if len(name) <= _MAX_CACHED_NAME_LENGTH else _is_safe_identifier.__wrapped__(name)


@functools.lru_cache(maxsize=4096)
def _is_safe_identifier(name: str) -> bool:
    if not name.isidentifier() or keyword.iskeyword(name):
        return False
    if name.isascii():
        return True
    import unicodedata

    return unicodedata.normalize("NFKC", name) == name


def identifier(name: Any) -> str:
    """The name itself. ValueError if generated code cannot bear it as an identifier.

    >>> identifier("weight")
    'weight'
    """
    if not is_identifier(name):
        raise ValueError(f"{str(name)[:100]!r} is no Python identifier, so generated code cannot use it as a name")
    return name


def attribute(base: str, name: str) -> str:
    """The expression for one attribute of the expression `base`.

    >>> attribute("self", "weight"), attribute("self", "0")
    ('self.weight', 'getattr(self, "0")')
    """
    return f"{base}.{name}" if is_identifier(name) else f"getattr({base}, {quote(name)})"


def quote(text: str) -> str:
    """The literal of a text, in double quotes where that needs no escape.

    >>> quote("0"), quote('a"b')
    ('"0"', '\\'a"b\\'')
    """
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(str(text))


def one_line(text: str) -> str:
    """The text with escapes in the place of characters that are not printable: line ends among them.

    >>> one_line("conv1\\nprint(1)")
    'conv1\\\\nprint(1)'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def comment(text: str) -> str:
    """The text as a one-line comment."""
    return f"# {one_line(text)}"


def parse(text: str, filename: str = "<unknown>", mode: str = "exec") -> Any:
    """The syntax tree of Python source; `ast.parse`, by one thread at a time.

    CPython 3.11 and 3.12 have one recursion depth for all threads that parse (gh-106905). If the collector lets
    another thread run meanwhile, both raise `SystemError: AST constructor recursion depth mismatch`. A finalizer that
    parses in this thread causes the same, so parsing is retried.

    >>> type(parse("a + 1", mode="eval").body).__name__
    'BinOp'
    """
    import ast

    with _PARSING:
        for _ in range(_TRIES):
            with contextlib.suppress(SystemError):
                return ast.parse(text, filename, mode)
        return ast.parse(text, filename, mode)


def source_of(cls: type) -> str:
    """The text of a class in its file, as `inspect.getsource` finds it there by the file's syntax tree."""
    import inspect

    with _PARSING:
        return inspect.getsource(definition_of(cls))


def literal(value: str | ast.AST) -> Any:
    """The value of a literal, by `ast.literal_eval`. ValueError for other expressions.

    >>> literal("[1, 'a', None]")
    [1, 'a', None]
    """
    import ast

    return ast.literal_eval(parse(value.lstrip(" \t"), mode="eval") if isinstance(value, str) else value)


def compile_code(source: str | ast.Module, filename: str) -> CodeType:
    """The code object of Python source, or of a syntax tree. Tracebacks, debuggers and `inspect.getsource` find the
    lines of a text under the file name.
    """
    code = compile(source, filename, "exec", dont_inherit=True)
    _drop_forgotten()
    if isinstance(source, str):
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return code


def compile_source(
    source: str | ast.Module, filename: str, globals: dict[str, Any], locals: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Run Python source in a namespace. Returns the namespace that received its names.

    Args:
        source: the text, or its syntax tree.
        filename: the name that tracebacks show, in angle brackets: `"<torchlite op add>"`.
        globals: the global names of the code.
        locals: receives the names that the code assigns; `globals` by default.

    >>> compile_source("def double(x):\\n    return 2 * x", "<example>", {})["double"](4)
    8
    """
    return run_code(compile_code(source, filename), globals, locals)


def run_code(code: CodeType, globals: dict[str, Any], locals: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the code object of a module, as `compile_source` does."""
    exec(code, globals, locals)
    return globals if locals is None else locals


class _LaterLines(list):
    """The lines of a source that is written when they are read first."""

    def __init__(self, write: Callable[[], str]):
        super().__init__()
        self._write: Callable[[], str] | None = write

    def _fill(self) -> None:
        if self._write is not None:
            write, self._write = self._write, None
            self.extend(write().splitlines(True))

    def __len__(self) -> int:
        self._fill()
        return super().__len__()

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self._fill()
        return super().__getitem__(index)


def show_source_later(filename: str, write: Callable[[], str]) -> None:
    """Have tracebacks, debuggers and `inspect.getsource` find the lines of code that was not compiled here. `write`
    returns the text when they ask for it.
    """
    linecache.cache[filename] = (0, None, _LaterLines(write), filename)


def compile_function(
    name: str, source: str | ast.Module, filename: str, globals: dict[str, Any], locals: dict[str, Any] | None = None
) -> FunctionType:
    """The function of that name which Python source defines. Its lines are forgotten when its code is collected.

    `locals` receives the names that the source defines; by default a new dictionary.

    >>> compile_function("double", "def double(x):\\n    return 2 * x", "<example>", {})(4)
    8
    """
    function = compile_source(source, filename, globals, {} if locals is None else locals)[name]
    weakref.finalize(function.__code__, _forget_source, filename, linecache.cache.get(filename)).atexit = False
    return function


def attach_source(function: FunctionType, lines: list[str]) -> None:
    """Show the lines of a file in tracebacks of its function, which was compiled from a syntax tree. They are forgotten
    when the function is collected. A number tells files of one name apart.
    """
    _drop_forgotten()
    filename = function.__code__.co_filename
    if filename in linecache.cache and linecache.cache[filename][2] != lines:
        filename = f"{filename.removesuffix('>')} #{next(_FILE_NUMBERS)}>"
        function.__code__ = function.__code__.replace(co_filename=filename)
    entry = linecache.cache[filename] = (sum(map(len, lines)), None, lines, filename)
    weakref.finalize(function, _forget_source, filename, entry).atexit = False


def _forget_source(filename: str, entry: Any) -> None:
    """Free the lines under a file name, unless another source has taken it since.

    The name stays until the next source is compiled. The collector calls this at any time, also inside of
    `linecache.checkcache`, which reads each name that it found at its start.
    """
    if linecache.cache.get(filename) is entry:
        empty = linecache.cache[filename] = (0, None, [], filename)
        _FORGOTTEN.append((filename, empty))


def _drop_forgotten() -> None:
    """Remove the names whose lines are free."""
    with contextlib.suppress(IndexError):
        while True:
            filename, empty = _FORGOTTEN.popleft()
            if linecache.cache.get(filename) is empty:
                linecache.cache.pop(filename, None)


def evaluate(expression: str, globals: dict[str, Any]) -> Any:
    """The value of a Python expression that a user's program holds as text, such as an annotation."""
    return eval(expression, globals)
