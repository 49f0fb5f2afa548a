"""ScriptModule, ScriptFunction and their subclasses: the Python objects of compiled programs."""

from __future__ import annotations

import copy
import functools
import inspect
import types
from typing import Any

from torchlite.nn.modules.module import Module

from .._dispatch.call import Tensor
from .._dispatch.dispatch_state import MODE
from .._dispatch.inference_calls import InferenceCalls
from .._settings.jit_state import STATE
from . import _argument_conversion
from ._callbacks import JIT_CALLBACKS
from ._function_modifiers import Attribute
from ._runtime import SCRIPTED, _object_attribute, _run, host_entry
from ._source_resolution import class_definitions, names_in_frame

_CALLS = "_inference_calls"  # the attribute of a module that optimizes calls of `forward`


class ScriptMeta(type):
    """Metaclass of ScriptModule: compiles an object after its `__init__`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if not isinstance(made, RecursiveScriptModule) and not made.__dict__.get("_compiled"):
            made.__dict__["_compiled"] = JIT_CALLBACKS.compile_module(made)
        return made


class ScriptModule(Module, metaclass=ScriptMeta):
    r"""Base class of scripted, traced and loaded modules, and of user modules for TorchScript.

    Methods marked by `torch.jit.script_method` run in Python. Methods added by `define` run as compiled programs.

    Args:
        arg: No effect, as in PyTorch.

    Example:
        >>> module = torch.jit.ScriptModule()
        >>> module.define("def forward(self, x):\n    return x + 1")
        >>> module(torch.ones(2))
        tensor([2., 2.])
    """

    _tl_is_scripted = True  # for `torch.func.functional_call`, which refuses such modules

    def __init__(self, arg: Any = None) -> None:
        super().__init__()
        self.__dict__["_definitions"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Attribute) and not isinstance(self, RecursiveScriptModule):
            self.__dict__.setdefault("_declared", {})[name] = value.type
            value = value.value
        super().__setattr__(name, value)

    def define(self, src: str) -> None:
        """Adds the methods of a text, which can use names of the caller's frame.

        Args:
            src: The text.

        Raises:
            RuntimeError: The syntax is not supported.
        """
        for one in class_definitions(src, names_in_frame(1)):
            self.__dict__["_definitions"][one.__name__] = one
            self.__dict__[one.__name__] = types.MethodType(_make_method(one.__name__), self)
        self.__dict__["_compiled"] = None

    @property
    def _actual_script_module(self) -> Any:
        """Return the compiled program of the module's current state."""
        own = self.__dict__
        if not own.get("_compiled"):
            own["_compiled"] = JIT_CALLBACKS.compile_module(self)
        made = own["_compiled"]
        for table in ("_parameters", "_buffers"):
            made.__dict__[table].update(own[table])
        made._attributes.update({name: own[name] for name in made._attributes if name in own})
        object.__setattr__(made, "training", self.training)
        return made

    @property
    def code(self) -> str:
        """Return the text of `forward`."""
        return self._actual_script_module.code

    @property
    def graph(self) -> Any:
        """Return `forward` as a graph."""
        return self._actual_script_module.graph

    @property
    def inlined_graph(self) -> Any:
        """Return `forward` as a graph."""
        return self._actual_script_module.inlined_graph

    @property
    def original_name(self) -> str:
        """Return the class name."""
        return type(self).__name__

    def save(self, f: Any, **kwargs: Any) -> None:
        """Writes the program to a file; see `torch.jit.save`.

        Args:
            f: A path, or an object with ``write``.
            **kwargs: ``_extra_files``, names and contents to add.
        """
        JIT_CALLBACKS.save(self, f, kwargs.get("_extra_files"))

    def save_to_buffer(self, **kwargs: Any) -> bytes:
        """Returns the bytes of the saved file.

        Args:
            **kwargs: ``_extra_files``, names and contents to add.
        """
        return JIT_CALLBACKS.to_bytes(self, kwargs.get("_extra_files"))


def _make_method(name: str) -> Any:
    """Return a Python method that calls a method defined by text."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = self._actual_script_module
        try:
            return getattr(made, name)(*args, **kwargs)
        finally:
            self.__dict__.update(made._attributes)

    run.__name__ = run.__qualname__ = name
    return run


class ScriptMethod:
    """Method of a program, bound to its module."""

    def __init__(self, owner: Any, name: str, function: Any):
        self.owner, self.name, self._function = owner, name, function
        self.__name__ = self.__qualname__ = name

    @property
    def __self__(self) -> Any:
        return self.owner

    @property
    def code(self) -> str:
        """Return the method's text."""
        return self.owner._script.text(self.name)

    @property
    def schema(self) -> Any:
        """Return the method's schema."""
        return _argument_conversion.make_schema(self.owner._script, self.name)

    @property
    def __signature__(self) -> inspect.Signature:
        """Return the signature for `inspect.signature`."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(p.name, kind, default=p.value if p.has_default_value() else inspect.Parameter.empty)
                for p in self.schema.arguments[1:]
            ]
        )

    @property
    def graph(self) -> Any:
        """Return the method's graph."""
        return JIT_CALLBACKS.graph_of(self.owner._script, self.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.name != "forward" or MODE.grad or STATE.scripting:
            return _call_method(self.owner, self.name, self._function, *args, **kwargs)
        own = self.owner.__dict__
        calls = own.get(_CALLS)
        if calls is None:
            calls = own[_CALLS] = InferenceCalls(functools.partial(_call_forward, self._function), ("_script",))
        return calls(self.owner, args, kwargs)


def _call_method(owner: Any, name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    return _argument_conversion.call_function(function, owner, owner._script, name, args, kwargs)


def _call_forward(function: Any, owner: Any, *args: Any, **kwargs: Any) -> Any:
    return _call_method(owner, "forward", function, *args, **kwargs)


class RecursiveScriptModule(ScriptModule):
    """Module of a TorchScript program; `torch.jit.script` and `torch.jit.load` make it.

    Parameters, buffers and submodules are those of any module. Attributes and methods come from its class in the
    program.

    Args:
        script: The class of the program.

    Example:
        >>> module = torch.jit.script(torch.nn.ReLU())
        >>> type(module).__name__, module.original_name
        ('RecursiveScriptModule', 'ReLU')
    """

    def __init__(self, script: Any):
        super().__init__()
        own = self.__dict__
        own["_script"], own["_attributes"] = script, {}

    @property
    def _actual_script_module(self) -> Any:
        return self

    @property
    def forward(self) -> ScriptMethod:  # type: ignore[override]
        """Return the program's `forward` with its schema. A call raises RuntimeError for arguments that do not
        match.
        """
        method = self._script.methods.get("forward")
        if method is None:
            raise NotImplementedError(f'Module [{self._get_name()}] is missing the required "forward" function')
        return ScriptMethod(self, "forward", method)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules", "_attributes"):
            if table in own and name in own[table]:
                return own[table][name]
        script = own.get("_script")
        if script is not None:
            if name in script.methods:
                return ScriptMethod(self, name, script.methods[name])
            if name in script.constants or name in script.properties or script.types.get(name) == "NoneType":
                return (host_entry if script.of_file else _run)(_object_attribute, self, name)
        original = own.get("_original")
        if original is not None:
            return _bind_original_attribute(self, original, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if name in own.get("_attributes", ()):
            own["_attributes"][name] = value
        elif own.get("_script") is not None and name in own["_script"].properties:
            setter = own["_script"].properties[name][1]
            if setter is None:
                raise AttributeError(f"property '{name}' of '{self.original_name}' object has no setter")
            (host_entry if own["_script"].of_file else _run)(own["_script"].methods[setter], self, value)
        elif name in own.get("_modules", ()) or name in own.get("_parameters", ()) or name in own.get("_buffers", ()):
            if isinstance(value, Tensor) and name in own.get("_parameters", ()) and type(value) is Tensor:
                own["_parameters"][name] = value
            else:
                super().__setattr__(name, value)
        else:
            super().__setattr__(name, value)

    # -- introspection ------------------------------------------------------------------------------

    @property
    def original_name(self) -> str:
        """Return the original class name."""
        return self._script.original_name

    @property
    def code(self) -> str:
        """Return the text of `forward`."""
        return self._script.text("forward")

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """Return the text of `forward` and its constants."""
        program = self._script.program
        names = {f"c{i}": value for i, value in enumerate(program.constants if program is not None else ())}
        return self.code, _ConstantsView(names)

    @property
    def graph(self) -> Any:
        """Return `forward` as a graph."""
        return JIT_CALLBACKS.graph_of(self._script, "forward")

    @property
    def inlined_graph(self) -> Any:
        """Return `forward` as a graph."""
        return self.graph

    @property
    def _c(self) -> Any:
        """Return the C++ style module handle."""
        own = self.__dict__
        return own.get("_handle") or JIT_CALLBACKS.module_handle(self)

    @_c.setter
    def _c(self, value: Any) -> None:
        self.__dict__["_handle"] = value

    @property
    def forward_magic_method(self) -> Any:
        """Return the method that a call runs."""
        return self.forward

    @property
    def qualified_name(self) -> str:
        """Return the qualified class name in the program."""
        return self._script.name

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        """Return the original class name."""
        return f"original_name={self.original_name}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._attributes, *self._script.methods, *self._script.constants})

    def __len__(self) -> int:
        if "__len__" in self._script.methods:
            return (host_entry if self._script.of_file else _run)(self._script.methods["__len__"], self)
        return len(self._modules or self._parameters)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        kind = type(self.__dict__["_original"]).__mro__ if "_original" in self.__dict__ else ()
        names = {self.original_name, *(cls.__name__ for cls in kind)}
        if "ModuleDict" in names:
            return iter(self._modules)
        if names & {"Sequential", "ModuleList"}:
            return iter(self._modules.values())
        if "ParameterList" in names:
            return iter(self._parameters.values())
        raise TypeError(f"'{self.original_name}' object is not iterable")

    def __contains__(self, name: Any) -> bool:
        return name in self._modules

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return list(self._modules.values())[key]
        if isinstance(key, int):
            return list((self._modules or self._parameters).values())[key]
        return self._modules[key]

    def keys(self) -> Any:
        """Return a ModuleDict's keys."""
        return self._modules.keys()

    def values(self) -> Any:
        """Return a ModuleDict's modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Return a ModuleDict's items."""
        return self._modules.items()

    def hasattr(self, name: str) -> bool:
        """Returns whether the module has an attribute.

        Args:
            name: Name of the attribute.
        """
        return hasattr(self, name)

    # -- moving and copying --------------------------------------------------------------------

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Moves the module as `Module.to` does, and also the program's constants and its constant devices.

        Args:
            *args: Device and dtype, as `Module.to` takes them.
            **kwargs: The same by name.
        """
        from torchlite.nn.modules._module_conversion import _parse_to

        where = _parse_to(args, kwargs)[0]
        out = super().to(*args, **kwargs)
        if where is not None:
            for program in {
                id(m._script.program): m._script.program for m in self.modules() if _is_scripted(m)
            }.values():
                if program is not None:
                    program.move(where)
        return out

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        before = [*self._parameters.items(), *self._buffers.items()]
        super()._apply(fn, recurse)
        now = {**self._parameters, **self._buffers}
        listed = {*self._script.parameters, *self._script.buffers}
        for name, kind in self._script.types.items():  # weights of a frozen module
            if kind == "Tensor" and name not in listed and isinstance(self._attributes.get(name), Tensor):
                self._attributes[name] = fn(self._attributes[name])
        moved = {id(old): (old, now[name]) for name, old in before if old is not None and now[name] is not old}
        if moved:
            known: dict[int, Any] = {}
            self.__dict__["_attributes"] = {
                name: _replace_moved(v, moved, known) for name, v in self._attributes.items()
            }
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name != _CALLS:
                made.__dict__[name] = value if name in ("_script", "_original") else copy.deepcopy(value, memo)
        return made

    def copy(self) -> Any:
        """Return another module that shares the tensors."""
        made = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            if name != _CALLS:
                made.__dict__[name] = value.copy() if isinstance(value, (dict, set)) else value
        made.__dict__["_modules"] = {n: m.copy() if _is_scripted(m) else m for n, m in self._modules.items()}
        return made

    def __copy__(self) -> Any:
        return self.copy()

    def __getstate__(self) -> Any:
        import pickle

        raise pickle.PickleError(
            "ScriptModules cannot be deepcopied using copy.deepcopy or saved using torch.save. Mixed serialization of "
            "script and non-script modules is not supported. For purely script modules use my_script_module.save"
            "(<filename>) instead."
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__getstate__()

    def _replicate_for_data_parallel(self) -> Any:
        return self.copy()


class _ConstantsView:
    def __init__(self, names: dict[str, Any]):
        self.const_mapping = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["const_mapping"][name]
        except KeyError:
            raise AttributeError(name) from None


def _is_scripted(module: Any) -> bool:
    return isinstance(module, RecursiveScriptModule)


def _replace_moved(value: Any, moved: dict[int, tuple[Any, Any]], known: dict[int, Any]) -> Any:
    """Return a value with moved tensors replaced. known: visited containers by id."""
    if isinstance(value, Tensor):
        return moved[id(value)][1] if id(value) in moved else value
    if value.__class__ not in (list, tuple, dict):
        return value
    made: Any = known.get(id(value))
    if made is None:
        if value.__class__ is dict:
            made = {key: _replace_moved(item, moved, known) for key, item in value.items()}
        else:
            made = value.__class__([_replace_moved(item, moved, known) for item in value])
        known[id(value)] = made
    return made


def _bind_original_attribute(self: Any, original: Any, name: str) -> Any:
    """Return an attribute of the original module, bound to the scripted one."""
    found = getattr(type(original), name, None)
    if isinstance(found, property) and found.fget is not None:
        return found.fget(self)
    if isinstance(found, types.FunctionType):
        return types.MethodType(found, self)
    if name in original.__dict__ or found is not None:
        return getattr(original, name)
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class TracedModule(RecursiveScriptModule):
    """Submodule of a module that `torch.jit.trace` returns.

    Args:
        script: The class of the program.

    Example:
        >>> traced = torch.jit.trace(torch.nn.Sequential(torch.nn.ReLU()), torch.ones(2))
        >>> isinstance(traced, torch.jit.TracedModule)
        True
    """

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """Result of `trace` for a module."""


SCRIPTED.update((RecursiveScriptModule, TracedModule, TopLevelTracedModule))


class ScriptFunction:
    """Function of a TorchScript program; `torch.jit.script` and `torch.jit.trace` make it.

    Args:
        *args: No value is accepted.
        **kwargs: No value is accepted.

    Raises:
        TypeError: The class is called.

    Example:
        >>> @torch.jit.script
        ... def double(x: torch.Tensor):
        ...     return 2 * x
        >>> double.schema
        double(Tensor x) -> Tensor
    """

    _function: Any
    _script: Any
    _python: Any
    name: str
    __name__: str
    __qualname__: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("torch.ScriptFunction: No constructor defined!")

    @classmethod
    def _create(cls, function: Any, script: Any, name: str) -> Any:
        made = cls.__new__(cls)
        made._function, made._script, made.name = function, script, name
        made.__name__ = made.__qualname__ = name
        made.__doc__ = getattr(function, "__doc__", None)
        return made

    @property
    def qualified_name(self) -> str:
        """Return the qualified name."""
        return self._script.name

    @property
    def code(self) -> str:
        """Return the text."""
        return self._script.text(self.name)

    @property
    def schema(self) -> Any:
        """Return the schema."""
        return _argument_conversion.make_schema(self._script, self.name)

    @property
    def graph(self) -> Any:
        """Return the graph."""
        return JIT_CALLBACKS.graph_of(self._script, self.name)

    inlined_graph = graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the graph, which is the same for all inputs.

        Args:
            *args: No effect.
            **kwargs: No effect.
        """
        return self.graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _argument_conversion.call_function(self._function, None, self._script, self.name, args, kwargs)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Writes the function to a file for `torch.jit.load`.

        Args:
            f: A path, or an object with ``write``.
        """
        JIT_CALLBACKS.save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Any = None) -> bytes:
        """Return the bytes of the saved file."""
        return JIT_CALLBACKS.to_bytes(self, _extra_files)

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object at {id(self):#x}>"
