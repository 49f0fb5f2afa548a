"""The texts of a program that is being made from Python: functions, classes and types, each under one name."""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import re
import textwrap
import types
import typing
from typing import Any

import torchlite as torch

from .._dispatch.call import Tensor
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import layout, memory_format
from .._types.python_source import compile_function, is_identifier
from ._function_modifiers import is_ignored_fn
from ._nn_sources import FUNCTIONS
from ._source_resolution import FunctionDefinition
from ._state import is_library_class


class NotSupportedError(RuntimeError):
    """A form of Python that TorchScript does not have."""


class FrontendError(NotSupportedError):
    """A form of Python that TorchScript cannot read."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript does not have."""


_CONTAINERS = {"List": "List", "list": "List", "Dict": "Dict", "dict": "Dict", "Tuple": "Tuple", "tuple": "Tuple"}
_NO_GRAD = (
    "class no_grad:\n  prev : bool\n"
    "  def __init__(self: __torch__.torch.autograd.grad_mode.no_grad) -> NoneType:\n    self.prev = False\n    "
    "return None\n"
    "  def __enter__(self: __torch__.torch.autograd.grad_mode.no_grad) -> NoneType:\n"
    "    self.prev = torch.is_grad_enabled()\n    torch.set_grad_enabled(False)\n    return None\n"
    "  def __exit__(self: __torch__.torch.autograd.grad_mode.no_grad, exc_type: Any, exc_value: Any, traceback: "
    "Any) -> "
    "NoneType:\n    torch.set_grad_enabled(self.prev)\n    return None\n"
)


_CONSTANT = re.compile(r"\bCONSTANTS\.c(\d+)\b")
# What the decorator `dataclass` writes.
_GENERATED = frozenset("__init__ __repr__ __eq__ __lt__ __le__ __gt__ __ge__ __hash__ __replace__".split())


def _has_source(function: Any) -> bool:
    try:
        inspect.getsource(function)
    except (OSError, TypeError):
        return False
    return True


def _initializer(cls: Any, generated: Any) -> Any:
    """The `__init__` of a dataclass as a function that has a text. RuntimeError for a default that none can have."""
    if not all(isinstance(value, (int, float, bool, str, type(None))) for value in generated.__defaults__ or ()):
        raise RuntimeError(f"the dataclass {cls.__name__} has a default that TorchScript cannot write down")
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    blank = len(names) - len(generated.__defaults__ or ())
    written = [""] * blank + [f"={default!r}" for default in generated.__defaults__ or ()]
    given = "".join(f", {name}{default}" for name, default in zip(names, written, strict=True))
    lines = [f"def __init__(self{given}):", *(f"    self.{name} = {name}" for name in names)]
    lines += ["    self.__post_init__()"] * hasattr(cls, "__post_init__") or ["    pass"] * (not names)
    text = "\n".join(lines) + "\n"
    place = f"<__init__ of {cls.__module__}.{cls.__qualname__}>"
    made = compile_function("__init__", text, place, dict(generated.__globals__))
    hints = {field.name: field.type for field in dataclasses.fields(cls)}
    made.__annotations__ = {name: hints[name] for name in names}
    return made


def _placeholder_source(function: Any, name: str, owner: str | None) -> str:
    """The text of a function that only Python has: its parameters, and an exception."""
    code = inspect.unwrap(function).__code__
    given = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    if owner is not None and given:
        given[0] = f"{given[0]}: {owner}"
    said = f"torchlite has no TorchScript for {name}: only Python runs it"
    body = f"  ops.prim.RaiseException({said!r})\n  return uninitialized(Tensor)\n"
    return f"def {name}({', '.join(given)}) -> Tensor:\n{body}"


class SourceWriter:
    """The texts of a program that is being made: functions and classes that are named in it."""

    printer: Any = None  # the class that rewrites functions, put here by `_printer`

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.constants: list[Any] = []
        self._functions: dict[int, str] = {}
        self._keep: list[Any] = []
        self.untyped: dict[tuple[int, str], str] = {}  # empty containers that no annotation types, by module and name
        self._taken: dict[str, int] = {}
        self._included: dict[int, Any] = {}
        self.written_classes: dict[str, type] = {}  # classes by the names that their methods call them
        self.ignored: list[str] = []  # functions that Python keeps: what calls them is not saved
        self.unknown: dict[str, str] = {}  # what has no text here, by its name in the program: why

    def add(self, module: str, text: str) -> None:
        """Put a definition into a module."""
        self.sources[module] = self.sources.get(module, "") + text

    def name_for(self, obj: Any) -> str:
        """A name that nothing else in the program has."""
        module = str(getattr(obj, "__module__", None) or "__main__")
        parts = ["__torch__", *(() if module == "__main__" else module.split("."))]
        if parts[1:2] == ["torchlite"]:
            parts[1] = "torch"
        parts = [p if is_identifier(p) else "_" for p in parts]
        last = obj.__name__ if is_identifier(obj.__name__) else "_lambda"
        whole = ".".join([*parts, last])
        count = self._taken.get(whole, 0)
        self._taken[whole] = count + 1
        return whole if not count else ".".join([*parts, f"___torch_mangle_{count}", last])

    def function(self, function: Any) -> str:
        """The name of a user's function in the program."""
        if id(function) in self._functions:
            return self._functions[id(function)]
        self._keep.append(function)
        name = self._functions[id(function)] = self.name_for(function)
        self.add(name.rpartition(".")[0], self.definition(name, function)[0])
        return name

    def definition(self, path: str, function: Any, module: Any = None, owner: str | None = None) -> tuple[str, Any]:
        """The text of a function, and what wrote it.

        What TorchScript refuses raises. What only torchlite has no text for stays Python's: its text is an exception's,
        and the reason is told where the program is saved or the text is asked for.
        """
        last = path.rpartition(".")[2]
        try:
            printer = self.printer(self, function, module, owner)
            return printer.definition(last), printer
        except (NotSupportedError, OSError):
            raise
        except Exception as error:
            if isinstance(error, RuntimeError) and not isinstance(error, (NotImplementedError, RecursionError)):
                raise
            if isinstance(function, FunctionDefinition):  # no Python could run it
                raise
            self.unknown[path] = f"{type(error).__name__}: {error}"
            return _placeholder_source(function, last, owner), None

    def library_function(self, name: str) -> str:
        """The name of a function of `torch.nn.functional` in the program."""
        whole = f"__torch__.torch.nn.functional.{name}"
        if whole not in self._taken:
            self._taken[whole] = 1
            self.add("__torch__.torch.nn.functional", FUNCTIONS[name])
        return whole

    def no_grad(self) -> str:
        """The name of the class of `torch.no_grad()` in the program."""
        whole = "__torch__.torch.autograd.grad_mode.no_grad"
        if whole not in self._taken:
            self._taken[whole] = 1
            self.add("__torch__.torch.autograd.grad_mode", _NO_GRAD)
        return whole

    def cls(self, cls: type) -> str:
        """The name of a user's class (a named tuple, an enumeration, or one with methods) in the program."""
        if id(cls) in self._functions:
            return self._functions[id(cls)]
        self._keep.append(cls)
        name = self._functions[id(cls)] = self.name_for(cls)
        module, _, last = name.rpartition(".")
        cls._script_name = name  # type: ignore[attr-defined]
        if issubclass(cls, enum.Enum):
            self.add(
                module, f"class {last}(Enum):\n" + "".join(f"  {n} = {m.value!r}\n" for n, m in cls.__members__.items())
            )
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            hints = typing.get_type_hints(cls)
            fields = [f"  {n} : {self.type(hints.get(n, Tensor))}\n" for n in cls._fields]
            cls._script_fields = {n: self.type(hints.get(n, Tensor)) for n in cls._fields}  # type: ignore[attr-defined]
            self.add(module, f"class {last}(NamedTuple):\n" + "".join(fields))
        else:
            self.add(module, self._class_text(cls, name, last))
        return name

    def _class_text(self, cls: type, name: str, last: str) -> str:
        if hasattr(cls, "__torch_script_interface__"):
            return self._interface_text(cls, last)
        self.written_classes[cls.__name__] = cls
        init = cls.__dict__.get("__init__")
        fields = {n: self.type(t) for n, t in getattr(cls, "__annotations__", {}).items()}
        methods = []
        for key, value in cls.__dict__.items():
            function = value.fget if isinstance(value, property) else value
            if not isinstance(function, types.FunctionType) or is_ignored_fn(function):
                continue
            if key in _GENERATED and dataclasses.is_dataclass(cls) and not _has_source(function):
                if key != "__init__":
                    continue  # Python's alone: a program that compares or prints objects is told so when it does
                function = _initializer(cls, function)
            called = f"__{key}_getter" if isinstance(value, property) else key
            text, printer = self.definition(f"{name}.{called}", function, None, name)
            methods.append(textwrap.indent(text, "  "))
            fields |= {n: k for n, k in (printer.fields.items() if printer else ()) if n not in fields}
        if init is not None and not methods:
            raise RuntimeError(f"the class {cls.__name__} has no methods that TorchScript knows")
        return (
            f"class {last}:\n" + "".join(f"  {n} : {k}\n" for n, k in fields.items()) + "".join(methods or ["  pass\n"])
        )

    def _interface_text(self, cls: type, last: str) -> str:
        kind = "ModuleInterface" if issubclass(cls, torch.nn.Module) else "Interface"
        texts = []
        for name, function in cls.__dict__.items():
            if isinstance(function, types.FunctionType):
                head = self.printer(self, function, None, owner="").head(name)
                texts.append(f"  {head}:\n    pass\n")
        return f"class {last}({kind}):\n" + "".join(texts or ["  pass\n"])

    def include(self, program: Any) -> None:
        """Take up the texts and the constants of another program."""
        if id(program) in self._included:
            return
        self._included[id(program)] = program
        start = len(self.constants)
        self.constants += program.constants
        for module, text in program.sources.items():
            self.add(module, _CONSTANT.sub(lambda found: f"CONSTANTS.c{int(found[1]) + start}", text))

    def constant(self, value: Any) -> str:
        """The expression of a constant of the program."""
        self.constants.append(value)
        return f"CONSTANTS.c{len(self.constants) - 1}"

    def type(self, kind: Any) -> str:
        """The text of an annotation. RuntimeError for what is no type of TorchScript."""
        if kind is None or kind is type(None):
            return "NoneType"
        if kind is Tensor or kind is torch.nn.Parameter or kind is inspect.Parameter.empty:
            return "Tensor"
        if kind in (int, float, bool, str, complex):
            return kind.__name__
        if kind is Any or kind is typing.Any:
            return "Any"
        if kind is device_type:
            return "Device"
        if kind in (dtypes.dtype, layout, memory_format):
            return "int"
        if kind is torch.Size:
            return "List[int]"
        if kind in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple):  # noqa: UP006
            shown = _CONTAINERS[getattr(kind, "__name__", None) or kind._name]
            raise RuntimeError(
                f"Attempted to use {shown} without a contained type. Please add a contained type, e.g. {shown}[int]"
            )
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):
            rest = [self.type(i) for i in inner if i is not type(None)]
            whole = rest[0] if len(rest) == 1 else f"Union[{', '.join(rest)}]"
            return (
                f"Optional[{whole}]"
                if type(None) in inner and len(rest) == 1
                else (f"Union[{', '.join([*rest, 'NoneType'])}]" if type(None) in inner else whole)
            )
        if origin in (list, dict, tuple):
            return f"{origin.__name__.capitalize()}[{', '.join(self.type(i) for i in inner) or '()'}]"
        if origin is collections.OrderedDict:
            return f"Dict[{', '.join(self.type(i) for i in inner)}]"
        if origin is typing.Final:
            return self.type(inner[0])
        if origin is torch.futures.Future:
            return f"Future[{self.type(inner[0])}]"
        if isinstance(kind, type) and (
            issubclass(kind, (tuple, enum.Enum)) or getattr(kind, "_torchscript_class", False)
        ):
            return self.cls(kind)
        if hasattr(kind, "__torch_script_interface__"):
            return self.cls(kind)
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module):
            raise RuntimeError(f"Unknown type name '{kind.__name__}'")
        if isinstance(kind, type) and not (
            is_library_class(kind.__module__) or kind.__module__.startswith(("builtins", "typing"))
        ):
            return self.cls(kind)
        if isinstance(kind, type) and is_library_class(kind.__module__):
            raise NotImplementedError(f"the type {kind.__name__}")
        raise RuntimeError(f"Unknown type annotation: '{getattr(kind, '__name__', kind)}'")
