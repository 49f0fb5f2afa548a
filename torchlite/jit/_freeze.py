"""`torch.jit.freeze`: turns a module's weights into constants and inlines its submodules."""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from typing import Any

from .._dispatch.call import Tensor
from .._types.python_source import is_identifier
from . import _fold_batch_norm
from ._compilation_unit import ScriptProgram
from ._constant_propagation import ConstantPropagation, ProgramConstants, to_literal
from ._inline_single_use import inline_single_use
from ._inlining import CannotInline, Inliner, path_of, resolve_path, walk_statements
from ._mutation_analysis import mutated_constants
from ._save import _CONSTANT, _QUALIFIED_NAME, _ProgramCollector, type_of
from ._script_modules import RecursiveScriptModule, ScriptMethod

_PARAMETER_LIST = re.compile(r"^(  __(?:parameters|buffers)__ = )\[.*\]$", re.MULTILINE)
_MUTATING_METHODS = frozenset("append extend insert pop clear remove sort reverse _set_item update setdefault".split())
Path = tuple[str, ...]


def freeze(module: Any, preserved: list[str], numerics: bool = True) -> Any:
    """Return the frozen copy. Raise RuntimeError for an unknown name in `preserved`."""
    return _Freezer(module, preserved, numerics).module()


def optimize(module: Any, numerics: bool, methods: list[str]) -> None:
    """Optimize a frozen module in place."""
    if next(module.parameters(), None) is not None:
        return  # not frozen: its weights may change
    stay = [*methods, *module._attributes, *module._buffers, *module._modules]
    made = freeze(module, stay, numerics)
    module.__dict__.update(made.__dict__)


class _Freezer:
    def __init__(self, module: Any, preserved: list[str], numerics: bool):
        self._root, self._numerics = module, numerics
        self._programs = _ProgramCollector()
        self._programs.gather(module)
        first = module._script.program
        self._merged = ScriptProgram(self._programs.sources, tuple(self._programs.constants), first.version)
        self._merged.device, self._merged.of_file = first.device, first.of_file
        self._constants = ProgramConstants(self._programs.constants)
        self._methods = ["forward"] if "forward" in module._script.methods else []
        self._parts: set[Path] = set()  # submodules kept with their methods
        self._kept_paths: set[Path] = set()  # attributes that stay
        self._fixed: set[str] = set()
        self._mutable = False
        self._plain: dict[int, Any] = {}  # parameters as tensors without gradient
        for text in preserved:
            self._check_preserved_names(text)

    def _check_preserved_names(self, text: str) -> None:
        path = tuple(text.split("."))
        try:
            found = resolve_path(self._root, path)
        except AttributeError:
            raise RuntimeError(f"Unknown name: {text}") from None
        if isinstance(found, RecursiveScriptModule):
            self._parts.add(path)
        elif not isinstance(found, ScriptMethod):
            self._kept_paths.add(path)
        elif len(path) == 1 and text not in self._methods:
            self._methods.append(text)

    def _class_name_of(self, module: Any) -> str:
        return self._programs.name(module._script)

    # -- methods --------------------------------------------------------------------------

    def module(self) -> Any:
        """Return the frozen module."""
        methods = self._inline_submodule_calls()
        if methods is None:
            self._parts = {()}
            return _ProgramBuilder(self._merged, self._programs, self._constants).all_of(self._root)
        methods = self._simplify_methods(methods)
        return _ProgramBuilder(self._merged, self._programs, self._constants).root(
            self._root, methods, self._kept_paths, self._parts
        )

    def _inline_submodule_calls(self) -> list[ast.FunctionDef] | None:
        """Return the methods with submodule calls inlined. Return None if the root cannot be inlined."""
        while True:
            hooked = {
                tuple(path.split("."))
                for path, part in self._root.named_modules()
                if path and any(part._script.constants.get(f"__forward_{k}hooks__") for k in ("", "pre_"))
            }
            self._parts |= hooked
            try:
                return [
                    Inliner(self._root, self._merged, self._class_name_of, self._parts).method(name)
                    for name in self._methods
                ]
            except CannotInline as error:
                if not error.path or error.path in self._parts:
                    return None
                self._parts.add(error.path)

    def _simplify_methods(self, methods: list[ast.FunctionDef]) -> list[ast.FunctionDef]:
        self._mutable = any(
            isinstance(part, ast.Call) and getattr(part.func, "attr", "") in _MUTATING_METHODS
            for node in methods
            for part in ast.walk(node)
        )
        while True:
            run = ConstantPropagation(self._merged, self._constants, self._constant_at_path, self._fixed)
            simplified = [run.run(ast.fix_missing_locations(copy.deepcopy(node))) for node in methods]
            unfit = [self._keep_mutated_constants(node) for node in simplified]  # check all methods, without early exit
            if not any(unfit):
                break
        for node in simplified:
            if self._numerics and _fold_batch_norm.fold_batch_norms(node, self._constants):
                run.run(node)
            inline_single_use(node)
        return simplified

    def _collect_assigned_attributes(self, node: ast.FunctionDef) -> bool:
        """Collect the attributes that a method assigns. Return True if there are new ones."""
        before = len(self._kept_paths)
        for part in walk_statements(node.body):
            for target in getattr(part, "targets", None) or [getattr(part, "target", None)]:
                for inner in ast.walk(target) if isinstance(target, ast.AST) else ():
                    if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        path = path_of(inner)
                        if path:
                            self._kept_paths.add(path)
        return len(self._kept_paths) != before

    def _keep_mutated_constants(self, node: ast.FunctionDef) -> bool:
        """True if a mutated value was made a constant; keep it as attribute in the next round."""
        again = self._collect_assigned_attributes(node)
        for number in mutated_constants(node, self._constants):
            text = self._constants.computed.get(number, "")
            paths = self._constants.paths.get(number, set())
            again = again or bool(paths - self._kept_paths) or (text != "" and text not in self._fixed)
            self._kept_paths |= paths
            self._fixed.add(text)
        return again

    def _constant_at_path(self, path: Path) -> ast.expr | None:
        """Return the constant at an attribute path, None for attributes that stay."""
        if path in self._kept_paths or any(path[: len(part)] == part for part in self._parts):
            return None
        try:
            owner, value = resolve_path(self._root, path[:-1]), resolve_path(self._root, path)
        except AttributeError:
            return None
        return self._value_to_constant(path, value) if isinstance(owner, RecursiveScriptModule) else None

    def _value_to_constant(self, path: Path, value: Any) -> ast.expr | None:
        if isinstance(value, Tensor):
            self._plain.setdefault(id(value), value.detach())
            out = self._constants.of(self._plain[id(value)])
            number = self._constants.number(out)
            assert number is not None
            self._constants.paths.setdefault(number, set()).add(path)
            return out
        if value.__class__ is tuple or value.__class__ is list and value and not self._mutable:
            items = [self._value_to_constant(path, item) for item in value]
            if any(item is None for item in items) or any(isinstance(item, Tensor) for item in value):
                self._kept_paths.add(path)
                return None
            return (ast.Tuple if value.__class__ is tuple else ast.List)(items, ast.Load())  # type: ignore[arg-type]
        literal = to_literal(value)
        if literal is None and not isinstance(value, (RecursiveScriptModule, ScriptMethod)):
            self._kept_paths.add(path)
        return literal


class _ProgramBuilder:
    """Builder of the new program and module."""

    def __init__(self, whole: ScriptProgram, programs: _ProgramCollector, constants: ProgramConstants):
        self._merged, self._programs, self._constants = whole, programs, constants
        self._texts: dict[str, str] = {}  # texts of new classes
        self._copies: dict[int, Any] = {}

    def all_of(self, module: Any) -> Any:
        """Return a copy of a module that keeps submodules, with plain attributes for weights."""
        sources = {name: _PARAMETER_LIST.sub(r"\1[]", text) for name, text in self._programs.sources.items()}
        program = self._build_program(sources)
        return self._copy_module(module, program)

    def root(self, module: Any, methods: list[ast.FunctionDef], kept: set[Path], parts: set[Path]) -> Any:
        """Return a module with the inlined methods and the kept attributes."""
        name = self._programs.name(module._script)
        tree = self._write_class(module, name, methods, (), kept, parts)
        program = self._build_program(self._collect_sources(name))
        return self._build_module(module, tree, program)

    def _build_program(self, sources: dict[str, str]) -> ScriptProgram:
        used = sorted({int(n) for text in sources.values() for n in _CONSTANT.findall(text)})
        places = {old: new for new, old in enumerate(used)}
        texts = {
            module: _CONSTANT.sub(lambda found: f"CONSTANTS.c{places[int(found[1])]}", text)
            for module, text in sources.items()
        }
        program = ScriptProgram(texts, tuple(self._constants.values[n] for n in used), self._merged.version)
        program.device, program.of_file = self._merged.device, self._merged.of_file
        return program

    def _write_class(
        self, module: Any, name: str, methods: list[ast.FunctionDef], path: Path, kept: set[Path], parts: set[Path]
    ) -> tuple[str, dict[str, Any], list[str]]:
        """Write a class with a module's remaining attributes and submodules."""
        own = sorted(p[-1] for p in kept if p[:-1] == path)
        buffers = [one for one in own if one in module._buffers]
        lines = [f"class {name.rpartition('.')[2]}(Module):", "  __parameters__ = []", f"  __buffers__ = {buffers}"]
        for one in own:
            kind = module._script.types.get(one) or type_of(getattr(module, one))
            lines.append(_field_declaration(one, self._rename_types(module, kind)))
        inner: dict[str, Any] = {}
        for child in module._modules:
            below = (*path, child)
            if below in parts:
                inner[child] = None
                lines.append(_field_declaration(child, self._programs.name(module._modules[child]._script)))
            elif any(p[: len(below)] == below for p in (*kept, *parts)):
                part = module._modules[child]
                class_name = self._programs._unused_name(self._programs.name(part._script))
                self._programs._taken.add(class_name)
                inner[child] = self._write_class(part, class_name, [], below, kept, parts)
                lines.append(_field_declaration(child, class_name))
        for node in methods:
            lines.append(textwrap.indent(ast.unparse(ast.fix_missing_locations(node)), "  "))
        self._texts[name] = "\n".join(lines) + "\n"
        return name, inner, own

    def _rename_types(self, module: Any, kind: str) -> str:
        names = self._programs._names.get(id(module._script.program), {})
        return _QUALIFIED_NAME.sub(lambda found: names.get(found[0], found[0]), kind)

    def _collect_sources(self, name: str) -> dict[str, str]:
        """Return the text of the new classes and of all they name."""
        sources: dict[str, str] = {}
        done: set[str] = set()
        waiting = list(self._texts)
        order: list[str] = []
        while waiting:
            path = waiting.pop()
            if path in done:
                continue
            done.add(path)
            text = self._texts.get(path)
            if text is None:
                node = self._merged.definition(path)
                if node is None:
                    continue
                text = _PARAMETER_LIST.sub(r"\1[]", self._merged.text_of(path, node))
                self._texts[path] = text
            order.append(path)
            for found in _QUALIFIED_NAME.findall(text):
                while found.count(".") > 0:
                    waiting.append(found)
                    found = found.rpartition(".")[0]
        for path in reversed(order):
            module = path.rpartition(".")[0]
            sources[module] = sources.get(module, "") + self._texts[path]
        return sources

    def _build_module(self, module: Any, tree: tuple[str, dict[str, Any], list[str]], program: ScriptProgram) -> Any:
        name, inner, own = tree
        out = RecursiveScriptModule(program.find(name))
        for one in own:
            value = getattr(module, one)
            if one in module._buffers:
                out._buffers[one] = value
            else:
                out._attributes[one] = _detach_value(value)
        for child, part in inner.items():
            source = module._modules[child]
            out._modules[child] = (
                self._copy_module(source, program) if part is None else self._build_module(source, part, program)
            )
        object.__setattr__(out, "training", False)
        return out

    def _copy_module(self, module: Any, program: ScriptProgram) -> Any:
        if id(module) in self._copies:
            return self._copies[id(module)]
        out = self._copies[id(module)] = RecursiveScriptModule(program.find(self._programs.name(module._script)))
        for name, value in (*module._parameters.items(), *module._buffers.items(), *module._attributes.items()):
            out._attributes[name] = _detach_value(value)
        for name, child in module._modules.items():
            out._modules[name] = child if child is None else self._copy_module(child, program)
        object.__setattr__(out, "training", False)
        return out


def _field_declaration(name: str, kind: str) -> str:
    return f"  {name} : {kind}" if is_identifier(name) else f"  __annotations__[{name!r}] = {kind}"


def _detach_value(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if value.__class__ in (list, tuple):
        return value.__class__(map(_detach_value, value))
    if value.__class__ is dict:
        return {key: _detach_value(item) for key, item in value.items()}
    return value
