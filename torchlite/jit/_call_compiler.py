"""Compiles call expressions from Python to TorchScript text."""

from __future__ import annotations

import ast
import collections
import math
import types
import typing
import warnings
from typing import Any

import torchlite as torch

from .._dispatch.call import Tensor
from .._types.devices import device as device_type
from ._function_modifiers import is_library_class
from ._nn_sources import FUNCTIONS
from ._script_modules import ScriptFunction
from ._source_resolution import FunctionDefinition

DEFERRED = object()  # known at run time only
_MATH = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
_POOLS = frozenset(("max_pool1d", "max_pool2d", "max_pool3d"))


class CallCompiler:
    """Mixin of the script compiler that handles calls."""

    visit: Any
    wrong: Any
    used: Any
    overloads: Any
    _writer: Any
    _module: Any
    _self: Any
    _resolve_expression: Any
    _known_condition: Any
    _parse_expression: Any
    _annotation_text: Any
    _submodule_path: Any

    def visit_Call(self, node: ast.Call) -> Any:
        """Compile a call of an operator, function, class, module or method."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            raise self.wrong(
                node,
                "keyword-arg expansion is not supported"
                if any(k.arg is None for k in node.keywords)
                else "cannot use starred expressions in a call",
            )
        called = self._resolve_expression(node.func)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            raise self.wrong(node, "super() is not supported", RuntimeError)
        if called is DEFERRED:
            if isinstance(node.func, ast.Attribute):
                owner = self._resolve_expression(node.func.value)
                if isinstance(owner, types.ModuleType):
                    message = (
                        f"module '{owner.__name__.replace('torchlite', 'torch', 1)}' has no attribute "
                        f"'{node.func.attr}'"
                    )
                    raise self.wrong(node, message, RuntimeError)
                attribute = ast.Attribute(self.visit(node.func.value), node.func.attr, ast.Load())
                return self._call_with_arguments(attribute, node)
            return self._call_with_arguments(self.visit(node.func), node)
        special = self._compile_special_call(called, node)
        if special is not None:
            return special
        return self._call_with_arguments(self._parse_expression(self._callee_expression(called, node)), node)

    def _call_with_arguments(self, function: ast.expr, node: ast.Call) -> ast.Call:
        return ast.Call(
            function,
            [self.visit(a) for a in node.args],
            [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords],
        )

    def _compile_special_call(self, called: Any, node: ast.Call) -> Any:
        name, module = getattr(called, "__name__", ""), getattr(called, "__module__", "") or ""
        of_jit = is_library_class(module, "jit")
        if called is isinstance or of_jit and name in ("isinstance", "_isinstance"):
            known = self._known_condition(node)
            if known is not None:
                return ast.Constant(known)
            return ast.Call(
                ast.Name("isinstance", ast.Load()), [self.visit(node.args[0]), self._isinstance_types(node.args[1])], []
            )
        if of_jit and name == "annotate":
            return ast.Call(
                ast.Name("annotate", ast.Load()),
                [self._parse_expression(self._annotation_text(node.args[0])), self.visit(node.args[1])],
                [],
            )
        if of_jit and name in ("is_scripting", "is_tracing"):
            return ast.Constant(name == "is_scripting")
        if of_jit and name == "_unwrap_optional":
            return ast.Call(
                self._parse_expression("ops.prim.unchecked_unwrap_optional"), [self.visit(node.args[0])], []
            )
        if of_jit and name == "fork":
            call = self._call_with_arguments(
                ast.Name("fork", ast.Load()), ast.Call(node.func, node.args[1:], node.keywords)
            )
            call.args.insert(0, self._compile_forked_callee(node.args[0]))
            return call
        if of_jit and name == "wait":
            return ast.Call(self._parse_expression("torch.wait"), [self.visit(node.args[0])], [])
        if called is len and len(node.args) == 1:
            counted = self._resolve_expression(node.args[0])
            if isinstance(
                counted, (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict, torch.nn.ParameterList)
            ):
                return ast.Constant(len(counted))
        if called is collections.OrderedDict and not node.args and not node.keywords:
            return self._parse_expression("annotate(Dict[str, Tensor], {})")
        if called is typing.cast:
            return self.visit(node.args[1])
        if called is getattr and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
            owner = self._resolve_expression(node.args[0])
            if owner is DEFERRED:
                raise NotImplementedError("getattr with a default of what only the run knows")
            if not hasattr(owner, str(node.args[1].value)):
                return self.visit(node.args[2])
            return self.visit(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()))
        if called in (hasattr, getattr) and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            if called is hasattr:
                known = self._known_condition(node)
                return ast.Constant(bool(known)) if known is not None else None
            return self.visit(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()))
        if name == "interpolate" and is_library_class(module):
            return self._compile_interpolate(node)
        if name in _POOLS and is_library_class(module):
            return self._add_default_stride(name, node)
        return None

    def _compile_forked_callee(self, node: ast.AST) -> ast.expr:
        value = self._resolve_expression(node)
        return self.visit(node) if value is DEFERRED else self._parse_expression(self._callee_expression(value, node))

    def _isinstance_types(self, node: ast.AST) -> ast.expr:
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._isinstance_types(part) for part in node.elts], ast.Load())
        whole = self._resolve_expression(node)
        for kind in (list, tuple, dict):
            if whole is kind or typing.get_origin(whole) is kind and not isinstance(node, ast.Subscript):
                return ast.Name(kind.__name__, ast.Load())
        return self._parse_expression(self._annotation_text(node))

    def _compile_interpolate(self, node: ast.Call) -> ast.expr:
        names = ["input", "size", "scale_factor", "mode", "align_corners"]
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
        for name in ("size", "scale_factor"):
            value = given.get(name)
            if isinstance(value, ast.Constant) and isinstance(value.value, (int, float)):
                number = float(value.value) if name == "scale_factor" else value.value
                given[name] = ast.List([ast.Constant(number)], ast.Load())
        function = self._parse_expression(self._writer.library_function("interpolate"))
        keywords = [ast.keyword(n, self.visit(v)) for n, v in given.items() if n in names and n != "input"]
        return ast.Call(function, [self.visit(given["input"])], keywords)

    def _add_default_stride(self, name: str, node: ast.Call) -> ast.expr:
        """Add the default stride of a pooling call: the kernel size."""
        names = ["input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"]
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
        indices = given.pop("return_indices", None)
        if indices is not None and self._known_condition(indices) is not False:
            name += "_with_indices"
        stride = given.get("stride")
        if stride is None or isinstance(stride, ast.Constant) and stride.value is None:
            given["stride"] = given["kernel_size"]
        plain = {"padding": ast.Constant(0), "dilation": ast.Constant(1), "ceil_mode": ast.Constant(False)}
        return ast.Call(
            self._parse_expression(f"torch.{name}"), [self.visit({**plain, **given}[n]) for n in names[:-1]], []
        )

    def _callee_expression(self, called: Any, node: ast.AST) -> str:
        """Return the expression of a callee."""
        if isinstance(called, torch.nn.Module):
            path = self._submodule_path(node.func if isinstance(node, ast.Call) else node)
            if path is None:
                raise self.wrong(
                    node, f"module of type {type(called).__name__} is not a part of this module", RuntimeError
                )
            return f"{path}.forward"
        if isinstance(called, types.MethodType) and called.__self__ is self._module:
            self.used.add(called.__name__)
            return f"{self._self}.{called.__name__}"
        if isinstance(called, types.MethodType) and isinstance(called.__self__, torch.nn.Module):
            path = (
                self._submodule_path(node.func.value)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                else None
            )
            if path is not None:
                self._writer.called.setdefault(id(called.__self__), set()).add(called.__name__)
                return f"{path}.{called.__name__}"
        if isinstance(called, ScriptFunction):
            if getattr(called, "_python", None) is not None:
                return self._writer.function(called._python)
            self._writer.include(called._script.program)
            return called._script.name
        original = getattr(called, "__original_fn", None)
        if original is not None:
            called = original
        name, module = getattr(called, "__name__", ""), getattr(called, "__module__", "") or ""
        if called in (
            min,
            max,
            abs,
            len,
            range,
            print,
            int,
            float,
            bool,
            str,
            complex,
            list,
            tuple,
            dict,
            sorted,
            enumerate,
            zip,
            round,
            sum,
            any,
            all,
            ord,
            chr,
            hex,
            oct,
            bin,
            divmod,
            hash,
            reversed,
            slice,
        ):
            return name
        if _MATH.get(name) is called:
            return f"torch.{'mathremainder' if name == 'remainder' else name}"
        if called is warnings.warn:
            return "torch.warn"
        if name == "_assert" and is_library_class(module):
            return self._writer.library_function("_assert")
        if isinstance(called, type):
            return self._compile_class_call(called)
        return self._function_text(called, name, module, node)

    def _is_functional_call(self, node: ast.AST, module: str) -> bool:
        """True if a function is called under its `torch.nn.functional` name, whose parameters differ from torch's."""
        place = node.func if isinstance(node, ast.Call) else node
        if isinstance(place, ast.Attribute):
            owner = self._resolve_expression(place.value)
            return owner is torch.nn.functional or isinstance(owner, torch.nn.Module)
        return is_library_class(module, "nn.functional") or not hasattr(torch, getattr(place, "id", ""))

    def _compile_class_call(self, cls: type) -> str:
        if cls is device_type:
            return "torch.device"
        if cls is collections.OrderedDict:
            return "dict"
        if cls is Tensor:
            return "torch.tensor"
        if issubclass(cls, torch.nn.Module):
            raise RuntimeError(f"Class '{cls.__name__}' does not have an __init__ function defined")
        if is_library_class(cls.__module__):
            raise NotImplementedError(f"the class {cls.__name__}")
        return self._writer.cls(cls)

    def _function_text(self, called: Any, name: str, module: str, node: ast.AST) -> str:
        if name in FUNCTIONS and is_library_class(module) and self._is_functional_call(node, module):
            return self._writer.library_function(name)
        packet = getattr(called, "_qualified_op_name", None)
        if packet is not None:
            space, _, last = packet.partition("::")
            return f"torch.{last}" if space == "aten" else f"ops.{space}.{last}"
        if is_library_class(module, "ao") and isinstance(called, types.FunctionType):
            return self._writer.function(called)
        if is_library_class(module) or getattr(called, "op", None) is not None or module == "builtins":
            if getattr(torch.ops.aten, name, None) is not None or name in (
                "as_tensor",
                "tensor",
                "manual_seed",
                "is_grad_enabled",
                "device",
            ):
                return f"torch.{name}"
            raise NotImplementedError(f"Unknown builtin op: aten::{name}")
        if isinstance(called, (types.FunctionType, FunctionDefinition)):
            return self._writer.function(called, self.overloads.get(id(node)))
        raise self.wrong(node, f"Python builtin {called!r} is currently not supported in Torchscript", RuntimeError)
