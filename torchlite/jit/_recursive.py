"""`torch.jit.script`: recursively scripts functions and modules. Python runs them; text is written for files."""

from __future__ import annotations

import functools
import inspect
import textwrap
import types
import typing
import weakref
from typing import Any

import torchlite as torch

from .._settings.jit_state import STATE
from . import _script_compiler as _script_compiler  # it registers itself with SourceWriter
from ._compilation_unit import ScriptProgram
from ._function_modifiers import Attribute, FunctionModifiers, get_torchscript_modifier, is_ignored_fn, is_library_class
from ._nn_sources import TEXTS, WITHOUT_FORWARD
from ._program_unpickler import set_attribute
from ._save import type_of
from ._script_modules import RecursiveScriptModule, ScriptFunction, ScriptModule
from ._source_resolution import class_definitions, warn_of_annotations
from ._source_writer import SourceWriter
from ._trace_to_script import class_name, declared_types, function_header, function_of

_MODULE_ATTRIBUTES = frozenset(torch.nn.Module().__dict__) | {
    "training",
    "forward",
    "_compiled",
    "_declared",
    "_definitions",
}


def script(obj: Any) -> Any:
    """Script a function, module or class."""
    if isinstance(obj, (ScriptModule, ScriptFunction)):
        return obj
    if isinstance(obj, torch.nn.Module):
        return script_module(obj)
    if isinstance(obj, dict):
        return dict(obj)
    if isinstance(obj, list):
        return list(obj)
    if inspect.isclass(obj):
        return _compile_class(obj)
    if isinstance(obj, (types.FunctionType, types.MethodType)) or hasattr(obj, "__original_fn"):
        return _compile_function(obj)
    if inspect.isroutine(obj):
        raise RuntimeError(f"torch.jit.script takes functions of Python, not {obj!r}")
    if hasattr(obj, "__dict__") and type(obj).__module__ != "builtins":
        _compile_class(type(obj))
        return obj
    raise RuntimeError(f"torch.jit.script takes functions, modules and classes, but got {type(obj).__name__}")


def _compile_class(cls: Any) -> Any:
    if issubclass(cls, torch.nn.Module):
        raise RuntimeError(
            f"Type '{cls}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
        )
    if len(cls.mro()) > 2 and not issubclass(cls, (tuple, BaseException)) and not _is_enum(cls):
        raise RuntimeError(
            "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'."
        )
    if not issubclass(cls, BaseException):
        cls._torchscript_class = True
        SourceWriter().cls(cls)
    return cls


def _is_enum(cls: type) -> bool:
    import enum

    return issubclass(cls, enum.Enum)


def run_as_scripted(function: Any) -> Any:
    """Run a user's function with `is_scripting()` True."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        STATE.scripting += 1
        try:
            return function(*args, **kwargs)
        finally:
            STATE.scripting -= 1

    return run


def _make_python_method(function: Any, name: str) -> Any:
    """Return a method outside the program: `@ignore` runs it in Python, `@unused` raises."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, STATE.scripting = STATE.scripting, 0
        try:
            return function(*args, **kwargs)
        finally:
            STATE.scripting = before

    return run


def _compile_function(function: Any) -> Any:
    function = getattr(function, "__original_fn", function)
    writer = SourceWriter()
    path = writer.function(function)
    program = ScriptProgram(writer.sources, tuple(writer.constants))
    program.ignored, program.unknown, program.by_python = writer.ignored, writer.unknown, True
    made = function_of(program, path)
    made._script.by_python = True
    made._function = run_as_scripted(function)
    made._python = function
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__wrapped__ = function
    return made


def compile_functions(text: str, names: dict[str, Any]) -> dict[str, Any]:
    """Return the compiled functions of a text by name. Raise RuntimeError for unsupported syntax."""
    found = class_definitions(text, names)
    writer = SourceWriter()
    paths = {one.__name__: writer.function(one) for one in found}
    program = ScriptProgram(writer.sources, tuple(writer.constants))
    program.ignored = writer.ignored
    made = {}
    for one in found:
        made[one.__name__] = function = function_of(program, paths[one.__name__])
        function._python = one
        function.name = function.__name__ = one.__name__
    return made


def script_module(module: Any) -> Any:
    """Script a module; it shares parameters, buffers and submodules."""
    if isinstance(module, torch.nn.Module) and not hasattr(module, "_parameters"):
        raise RuntimeError("the module's __init__ has not called Module.__init__")
    warn_of_annotations(module)
    called: dict[int, set[str]] = {}
    while True:
        shapes = _ModuleTypes(called)
        shapes.add(module)
        if not shapes.find_missing_methods():
            break
    writer = shapes.writer
    program = ScriptProgram(writer.sources, tuple(writer.constants))
    program.ignored, program.unknown, program.by_python = writer.ignored, writer.unknown, True
    return shapes.object(module, program)


# Class names in programs, by Python class and text.
_CLASSES: weakref.WeakKeyDictionary[type, dict[str, str]] = weakref.WeakKeyDictionary()


class _ModuleTypes:
    """Classes of a module tree: names, texts and attributes."""

    def __init__(self, called: dict[int, set[str]]) -> None:
        self.writer = SourceWriter()
        self._called = called  # methods that the modules above call, by module
        self._names: dict[int, str] = {}
        self._written: set[str] = set()
        self._attributes: dict[int, dict[str, Any]] = {}
        self._methods: dict[int, list[str]] = {}
        self._modules_by_id: dict[int, Any] = {}

    def find_missing_methods(self) -> bool:
        """Note methods of submodules that other modules call and that have no text yet. True if there are any."""
        found = False
        for module, names in self.writer.called.items():
            missing = names.difference(self._methods.get(module, names))
            if missing:
                self._called.setdefault(module, set()).update(missing)
                found = True
        return found

    def add(self, module: Any) -> str:
        """Return the class name of a module."""
        if id(module) in self._names:
            return self._names[id(module)]
        name = self._names[id(module)] = class_name(type(module))
        lines = function_header(module, name)
        self._attributes[id(module)] = values = {}
        for key, kind, value in self._attribute_values(module):
            lines.append(declared_types(key, kind))
            values[key] = value
        hints = _attribute_types(type(module))
        for key, child in module._modules.items():
            kind = self._add_child(child)
            if hasattr(hints.get(key), "__torch_script_interface__"):
                kind = self.writer.type(hints[key])
            lines.append(declared_types(key, kind))
        text = "".join(lines) + self._method_texts(module, name)
        return self._share_class_name(module, name, text)

    def _share_class_name(self, module: Any, name: str, text: str) -> str:
        """Return the class name of a text, shared by modules of one Python class with equal text."""
        shared = _CLASSES.setdefault(type(module), {}).setdefault(text, name)
        if shared != name:
            unknown = self.writer.unknown
            for path in [p for p in unknown if p.startswith(f"{name}.")]:
                unknown.setdefault(shared + path[len(name) :], unknown.pop(path))
        self._names[id(module)] = shared
        if shared not in self._written:
            self._written.add(shared)
            self.writer.add(shared.rpartition(".")[0], text)
        return shared

    def _add_child(self, child: Any) -> str:
        if child is None:
            return "NoneType"
        if isinstance(child, RecursiveScriptModule):
            self._names[id(child)] = child._script.name
            program = child._script.program
            if program is not None:
                self.writer.include(program, left_out=set(self.writer.sources))
            return child._script.name
        return self.add(child)

    def _attribute_values(self, module: Any) -> Any:
        """Return names, types and values of a module's attributes that programs support."""
        cls = type(module)
        if is_library_class(cls.__module__, "nn.modules"):
            return
        hints = _attribute_types(cls) | module.__dict__.get("_declared", {})
        for name, value in module.__dict__.items():
            if name in _MODULE_ATTRIBUTES or name.startswith("__") or not name.isidentifier():
                continue
            try:
                if isinstance(value, Attribute):
                    yield name, self.writer.type(value.type), value.value
                elif name in hints:
                    yield name, self.writer.type(hints[name]), value
                else:
                    named = isinstance(value, tuple) and hasattr(value, "_fields")
                    for part in value if named else ():
                        type_of(part)  # raises for what programs do not have, such as a configuration of quantization
                    if named or _is_enum(type(value)):
                        self.writer.cls(type(value))
                    if value.__class__ in (list, dict) and not value:
                        self.writer.untyped[id(module), name] = value.__class__.__name__
                        continue
                    yield name, type_of(value), value
            except RuntimeError:
                if name in hints:
                    raise

    # -- methods ---------------------------------------------------------------------------

    def _method_texts(self, module: Any, name: str) -> str:
        cls = type(module)
        written = "forward" in module.__dict__.get("_definitions", ())
        library = None if written else _find_library_class(cls)
        pending = [] if library is not None else _find_exported_methods(module)
        texts = []
        done: list[str] = []
        if library is not None and library.__name__ not in WITHOUT_FORWARD:
            texts.append(self._library_text(module, library, name))
            pending = [n for n in _find_exported_methods(module) if n != "forward"]
            done.append("forward")
        pending += sorted(self._called.get(id(module), ()))
        while pending:
            method = pending.pop(0)
            if method in done:
                continue
            done.append(method)
            found = module.__dict__.get("_definitions", {}).get(method) or getattr(cls, method)
            is_property = isinstance(found, property)
            path = f"{name}.__{method}_getter" if is_property else f"{name}.{method}"
            text, printer = self.writer.definition(path, found.fget if is_property else found, module)
            texts.append(text)
            pending += sorted(printer.used) if printer is not None else ()
        self._methods[id(module)] = done
        return textwrap.indent("".join(texts), "  ")

    def _library_text(self, module: Any, library: type, name: str) -> str:
        made = getattr(type(module), "_tl_script_text", None) or TEXTS.get(library.__name__)
        try:
            if made is None:
                raise NotImplementedError(library.__name__)
            parameters, body, result = made(module)
        except NotImplementedError as error:
            self.writer.unknown[f"{name}.forward"] = f"a layer {error}"
            parameters, body, result = "input: Tensor", "return input", "Tensor"
        return f"def forward(self, {parameters}) -> {result}:\n" + textwrap.indent(body, "  ") + "\n"

    # -- objects -----------------------------------------------------------------------------

    def object(self, module: Any, program: ScriptProgram) -> Any:
        """Return the scripted module."""
        if isinstance(module, RecursiveScriptModule):
            return module
        if id(module) in self._modules_by_id:
            return self._modules_by_id[id(module)]
        script = program.find(self._names[id(module)])
        script_module = self._modules_by_id[id(module)] = RecursiveScriptModule(script)
        script_module.__dict__["_original"] = module
        for name, value in (*module._parameters.items(), *module._buffers.items()):
            if value is not None:
                set_attribute(script_module, name, value)
        script_module.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
        for name, child in module._modules.items():
            if child is not None:
                script_module._modules[name] = self.object(child, program)
        script_module._attributes.update(self._attributes[id(module)])
        object.__setattr__(script_module, "training", module.training)
        script.by_python = True
        cls = type(module)
        written = module.__dict__.get("_definitions", {})
        for name in {"forward", *self._methods[id(module)]} - written.keys():
            found = getattr(cls, name, None)
            if isinstance(found, types.FunctionType):
                left = is_ignored_fn(found)
                script.methods[name] = _make_python_method(found, name) if left else run_as_scripted(found)
        return script_module


def _attribute_types(cls: type) -> dict[str, Any]:
    """Return the known attribute types of a class."""
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):
        return {}


def _find_library_class(cls: type) -> type | None:
    """Return the library class whose `forward` a class inherits, None for a user's `forward`."""
    for base in cls.__mro__:
        if "forward" in base.__dict__:
            if is_library_class(base.__module__, "ao"):
                return base if hasattr(base, "_tl_script_text") else None
            if not is_library_class(base.__module__, "nn") or base is torch.nn.Module:  # the class has no forward
                return None
            return next((c for c in cls.__mro__ if c.__name__ in TEXTS or c.__name__ in WITHOUT_FORWARD), base)
        if base.__name__ in WITHOUT_FORWARD and is_library_class(base.__module__, "nn"):
            return base
    return None


def _find_exported_methods(module: Any) -> list[str]:
    """Return the methods to script: `forward` and exported ones."""
    cls = type(module)
    if isinstance(module, ScriptModule):
        marked = [n for n in dir(cls) if getattr(inspect.getattr_static(cls, n, None), "_script_method", False)]
        return [*marked, *module.__dict__["_definitions"]]
    found = []
    forward = getattr(cls, "forward", None)
    if forward is not None and forward is not torch.nn.Module.forward and not is_ignored_fn(forward):
        found.append("forward")
    found += getattr(cls, "_tl_script_methods", ())
    for name in dir(cls):
        item = inspect.getattr_static(cls, name, None)
        if isinstance(item, types.FunctionType) and get_torchscript_modifier(item) == FunctionModifiers.EXPORT:
            found.append(name)
    return found
