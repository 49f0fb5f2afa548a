"""`torch.jit.trace`: turns a recorded run into a TorchScript program."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._device.generators import copy_default_generators, use_copied_generators
from .._dispatch.call import Tensor
from .._dispatch.mode_restoring import restores_modes
from .._settings.jit_state import STATE
from .._types.python_source import attribute, is_identifier, quote
from ._compilation_unit import ScriptClass, ScriptProgram
from ._function_modifiers import TracerWarning, warn_of_optimize
from ._program_unpickler import set_attribute
from ._save import type_of
from ._script_modules import RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, TracedModule
from ._trace_recorder import TracedMethods, TracedSize, TraceRecorder

_numbers = itertools.count()


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """Trace a function or module on example inputs to a program.

    Returns a module or function that repeats the recorded ops on other inputs. Values that Python read (`if x.sum() >
    0`) are constants of the example, with a TracerWarning; sizes stay dynamic. `check_trace` compares the result with a
    second run. Raise RuntimeError for unsupported outputs.

    >>> import torchlite as torch
    >>> double = torch.jit.trace(lambda x: x * 2, torch.ones(2))
    >>> double(torch.arange(3.0))
    tensor([0., 2., 4.])
    """
    warn_of_optimize(optimize)
    if isinstance(func, (ScriptModule, ScriptFunction)) and not isinstance(func, TracedModule):
        if isinstance(func, RecursiveScriptModule | ScriptFunction):
            warnings.warn(
                "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.",
                stacklevel=2,
            )
            return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    kwargs = dict(example_kwarg_inputs or {})
    args = _as_inputs(example_inputs)
    checking = _TraceCheck(check_trace, check_inputs, check_tolerance, strict)
    if isinstance(func, torch.nn.Module):
        return _traced_module(func, {"forward": (args, kwargs)}, checking)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, torch.nn.Module) and getattr(func, "__name__", "") == "forward":
        return _traced_module(owner, {"forward": (args, kwargs)}, checking)
    return _traced_function(func, args, kwargs, checking)


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Trace several methods of a module: `inputs` has example inputs by method name."""
    warn_of_optimize(optimize)
    if not isinstance(mod, torch.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    checking = _TraceCheck(check_trace, None, check_tolerance, strict)
    given = {n: ((), dict(a)) if example_inputs_is_kwarg else (_as_inputs(a), {}) for n, a in inputs.items()}
    return _traced_module(mod, given, checking)


def _as_inputs(given: Any) -> tuple:
    if given is None:
        return ()
    if isinstance(given, (Tensor, dict)):
        return (given,)
    return given if isinstance(given, tuple) else tuple(given)


class _TraceCheck:
    def __init__(self, wanted: bool, inputs: Any, tolerance: float, strict: bool):
        self.is_enabled, self.inputs, self.tolerance, self.strict = wanted, inputs, tolerance, strict


# -- names of classes -------------------------------------------------------------------------------


def class_name(cls: type) -> str:
    """Return a unique class name of a module in the current program."""
    module = "__torch__" if cls.__module__ == "__main__" else f"__torch__.{cls.__module__}"
    module = ".".join(p if is_identifier(p) else "_" for p in module.split("."))
    module = module.replace("__torch__.torchlite.", "__torch__.torch.", 1)
    name = cls.__name__ if is_identifier(cls.__name__) else "Module"
    return f"{module}.___torch_mangle_{next(_numbers)}.{name}"


def path_of(names: tuple[str, ...], root: str = "self") -> str:
    """Return the expression of an attribute path."""
    text = root
    for name in names:
        text = attribute(text, name)
    return text


def declared_types(name: str, kind: str) -> str:
    """Return the line that declares an attribute of a class."""
    return f"  {name} : {kind}\n" if is_identifier(name) else f"  __annotations__[{quote(name)}] = {kind}\n"


def function_header(module: Any, name: str) -> list[str]:
    """Return the lines that declare a module class's parameters and buffers."""
    lines = [f"class {name.rpartition('.')[2]}(Module):\n"]
    parameters = [n for n, p in module._parameters.items() if p is not None]
    buffers = [n for n, b in module._buffers.items() if b is not None]
    for label, found in (("__parameters__", parameters), ("__buffers__", buffers)):
        lines.append(f"  {label} = [" + "".join(f"{quote(n)}, " for n in found) + "]\n")
    lines += [declared_types(n, "Tensor") for n in (*parameters, *buffers)]
    absent = [n for n, p in (*module._parameters.items(), *module._buffers.items()) if p is None]
    return [*lines, *(declared_types(n, "NoneType") for n in absent), "  training : bool\n"]


class _TracedClasses:
    """Classes of a module tree: text and attributes of each."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.texts: dict[str, str] = {}

    def add(self, module: Any, methods: str = "") -> str:
        """Return the class name of a module, and add its submodules."""
        if id(module) in self.names:
            return self.names[id(module)]
        name = self.names[id(module)] = class_name(type(module))
        lines = function_header(module, name)
        for child_name, child in module._modules.items():
            if child is not None:
                lines.append(declared_types(child_name, self.add(child)))
        lines += [declared_types(key, type_of(value)) for key, value in _library_objects(module)]
        self.texts[name] = "".join(lines) + methods
        return name

    def sources(self) -> dict[str, str]:
        """Return the texts by module name."""
        found: dict[str, str] = {}
        for name, text in self.texts.items():
            module = name.rpartition(".")[0]
            found[module] = found.get(module, "") + text
        return found


@restores_modes
def _traced_module(mod: Any, inputs: dict[str, tuple[tuple, dict]], checking: _TraceCheck) -> Any:
    classes = _TracedClasses()
    known: dict[int, str] = {}
    tensors: list[Any] = []
    for names, module in _walk_modules(mod):
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                known.setdefault(id(tensor), path_of((*names, name)))
                tensors.append(tensor)
        for name, value in _library_objects(module):
            known.setdefault(id(value), path_of((*names, name)))
    constants: list[Any] = []
    methods = ""
    for name, (args, kwargs) in inputs.items():
        run = mod if name == "forward" else getattr(mod, name)
        signature = inspect.signature(mod.forward if name == "forward" else run)
        text, used = _write_traced_function(
            name, run, signature, args, kwargs, known, tensors, checking, len(constants), "self"
        )
        constants += used
        methods += text
    root = classes.add(mod)
    owner = classes.texts[root] + "".join("  " + line + "\n" for line in methods.rstrip("\n").split("\n"))
    classes.texts[root] = owner
    program = ScriptProgram(classes.sources(), tuple(constants))
    program.device = _device_of(tensors, inputs)
    traced = _share_module(mod, classes, program, {}, TopLevelTracedModule)
    for name, (args, kwargs) in inputs.items():
        _check_trace(
            mod if name == "forward" else getattr(mod, name), _bind_arguments(traced, name), args, kwargs, checking
        )
    return traced


def _bind_arguments(made: Any, name: str) -> Callable:
    return made if name == "forward" else getattr(made, name)


def _device_of(tensors: list, inputs: Any) -> Any:
    """Return the program's device, if it is one that files cannot name."""
    found = next((t.device for t in tensors), None)
    return found if found is not None and found.type == "opencl" else None


def _library_objects(module: Any) -> list[tuple[str, Any]]:
    """Return the attributes of a module that are objects of classes that the library defines."""
    return [(name, value) for name, value in vars(module).items() if hasattr(type(value), "_schema_type")]


def _walk_modules(mod: Any, names: tuple[str, ...] = (), done: Any = None) -> Any:
    done = set() if done is None else done
    if id(mod) in done:
        return
    done.add(id(mod))
    yield names, mod
    for name, child in mod._modules.items():
        if child is not None:
            yield from _walk_modules(child, (*names, name), done)


def _share_module(
    module: Any, classes: _TracedClasses, program: ScriptProgram, made: dict[int, Any], kind: type = TracedModule
) -> Any:
    """Return the program's module that shares the parameters and buffers of another one and its submodules."""
    if id(module) in made:
        return made[id(module)]
    out = made[id(module)] = kind(program.find(classes.names[id(module)]))
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        if value is not None:
            set_attribute(out, name, value)
    for name, child in module._modules.items():
        if child is not None:
            set_attribute(out, name, _share_module(child, classes, program, made))
    for name, value in _library_objects(module):
        set_attribute(out, name, value)
    object.__setattr__(out, "training", module.training)
    out.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    return out


@restores_modes
def _traced_function(func: Any, args: tuple, kwargs: dict, checking: _TraceCheck) -> Any:
    name = getattr(func, "__name__", "forward")
    name = name if is_identifier(name) else "_lambda"
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):
        signature = None
    text, constants = _write_traced_function(name, func, signature, args, kwargs, {}, [], checking, 0, None)
    module = f"__torch__.___torch_mangle_{next(_numbers)}"
    made = function_of(ScriptProgram({module: text}, tuple(constants)), f"{module}.{name}")
    _check_trace(func, made, args, kwargs, checking)
    return made


def function_of(program: ScriptProgram, path: str) -> Any:
    """Return a function of a program for Python."""
    function = program.find(path)
    script = ScriptClass(path, "function")
    name = path.rpartition(".")[2]
    script.program = program
    script.nodes[name] = program.definition(path)
    script.texts[name] = program.text_of(path, script.nodes[name])
    script.methods[name] = function
    return ScriptFunction._create(program.globals[path], script, name)


# -- one run -------------------------------------------------------------------------------------------


def _write_traced_function(
    name: str,
    run: Any,
    signature: Any,
    args: tuple,
    kwargs: dict,
    known: dict[int, str],
    tensors: list,
    checking: _TraceCheck,
    start: int,
    owner: str | None,
) -> tuple[str, list]:
    """Return the text of a function that repeats a run, and its constants."""
    names = _parameter_names(signature, args, kwargs)
    seen: set[int] = set()
    copies = [_make_inputs(value, seen) for value in (*args, *kwargs.values())]
    known = dict(known)
    inside: list[Any] = []
    for parameter, value in zip(names, copies, strict=True):
        _name_inputs(parameter, value, known, inside)
    recorder = TraceRecorder(known)
    recorder.constants = [None] * start
    before = STATE.recorder
    if before is not None:
        raise RuntimeError("Can't trace while tracing")
    given, named = copies[: len(args)], dict(zip(kwargs, copies[len(args) :], strict=True))
    before_inside = STATE.inside
    try:
        STATE.recorder = recorder
        for tensor in (*tensors, *inside):
            recorder.watch(tensor)
        with TracedMethods(), recorder:
            result = run(*given, **named)
        text = _output_expression(recorder, result, checking.strict)
    finally:
        STATE.recorder, STATE.inside = before, before_inside
    kinds = [_type_of_value(value) for value in copies]
    parameters = ([owner] if owner else []) + [f"{n}: {k}" for n, k in zip(names, kinds, strict=True)]
    body = "".join(f"  {line}\n" for line in recorder.lines)
    head = f"def {name}({', '.join(parameters)}) -> {_type_of_value(result)}:\n"
    return f"{head}{body}  return {text}\n", recorder.constants[start:]


def _parameter_names(signature: Any, args: tuple, kwargs: dict) -> list[str]:
    found: list[str] = []
    for p in signature.parameters.values() if signature is not None else ():
        if len(found) >= len(args):
            break
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            found += [f"{p.name}_{i}" if i else p.name for i in range(len(args) - len(found))]
    found += [f"argument_{i}" for i in range(len(found), len(args))]
    # Avoid the recorder's own names.
    return [f"{n}_" if n.startswith("_") and n[1:].isdecimal() or n == "self" else n for n in (*found, *kwargs)]


def _make_inputs(value: Any, seen: set[int]) -> Any:
    """Return a traced input: the tensors of the caller, and views of those that occur again (their ids in `seen`)."""
    if isinstance(value, Tensor):
        if id(value) in seen:
            return value.view(value.shape)
        seen.add(id(value))
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_make_inputs(v, seen) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)([_make_inputs(v, seen) for v in value])
    if isinstance(value, dict):
        return {k: _make_inputs(v, seen) for k, v in value.items()}
    if value is None or isinstance(value, (int, float, str)):
        return value
    raise RuntimeError(
        "Type 'Tuple["
        + type(value).__name__
        + "]' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and "
        "Tuples of Tensors can be traced"
    )


def _copy_tensors(value: Any) -> Any:
    """Return an input with copies of its tensors, for another run."""
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad) if value.is_leaf else value.clone()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_copy_tensors, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy_tensors, value))
    return {k: _copy_tensors(v) for k, v in value.items()} if isinstance(value, dict) else value


def _name_inputs(text: str, value: Any, known: dict[int, str], found: list) -> None:
    if isinstance(value, Tensor):
        known[id(value)] = text
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            _name_inputs(f"({text})[{i}]", one, known, found)
    elif isinstance(value, dict):
        for key, one in value.items():
            _name_inputs(f"({text})[{key!r}]", one, known, found)


def _type_of_value(value: Any) -> str:
    """Return the type of an input or output."""
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, TracedSize):
        return "int"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(_type_of_value, value))}]"
    if isinstance(value, list):
        return f"List[{_type_of_value(value[0]) if value else 'Tensor'}]"
    if isinstance(value, dict):
        return (
            f"Dict[{_type_of_value(next(iter(value)))}, {_type_of_value(next(iter(value.values())))}]"
            if value
            else "Dict[str, Tensor]"
        )
    return type_of(value)


def _output_expression(recorder: TraceRecorder, value: Any, strict: bool) -> str:
    if (
        isinstance(value, Tensor)
        or isinstance(value, (int, float, str))
        and not isinstance(value, bool)
        or value is None
    ):
        return recorder.text(value)
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, tuple):
        parts = [_output_expression(recorder, one, strict) for one in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, (list, dict)) and strict:
        raise RuntimeError(
            f"Encountering a {type(value).__name__} at the output of the tracer might cause the trace to be incorrect, "
            "this is only valid if the container structure does not change based on the module's inputs. "
            "Consider using "
            "a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` "
            "instead). If you absolutely need this and know the side effects, pass strict=False to trace() to "
            "allow this "
            "behavior."
        )
    if isinstance(value, list):
        return "[" + ", ".join(_output_expression(recorder, one, strict) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_output_expression(recorder, v, strict)}" for k, v in value.items()) + "}"
    raise RuntimeError(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
    )


# -- checks -------------------------------------------------------------------------------------------------


def _check_trace(run: Any, made: Any, args: tuple, kwargs: dict, checking: _TraceCheck) -> None:
    """Compare a traced program with another run; give a TracerWarning if they differ."""
    if not checking.is_enabled:
        return
    sets = [(args, kwargs)]
    for extra in checking.inputs or ():
        sets.append((_as_inputs(extra), {}))
    for given, named in sets:
        results, start = [], copy_default_generators()
        for program in (run, made):
            with torch.no_grad(), use_copied_generators(start):
                results.append(
                    program(*[_copy_tensors(v) for v in given], **{n: _copy_tensors(v) for n, v in named.items()})
                )
        expected, found = results
        for number, pair in enumerate(zip(_find_tensors(expected), _find_tensors(found), strict=False), 1):
            a, b = (tensor.dequantize() if tensor.is_quantized else tensor for tensor in pair)
            try:
                torch.testing.assert_close(b.double(), a.double(), rtol=checking.tolerance, atol=1e-5, equal_nan=True)
            except AssertionError as error:
                warnings.warn(
                    f"Output nr {number}. of the traced function does not match the corresponding output of the Python "
                    f"function. Detailed error:\n{error}",
                    TracerWarning,
                    stacklevel=5,
                )


def _find_tensors(value: Any) -> list:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for one in value for t in _find_tensors(one)]
    return [t for one in value.values() for t in _find_tensors(one)] if isinstance(value, dict) else []
