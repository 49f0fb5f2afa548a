"""Forms of Python that scripted programs use: aliases, defaults, static conditions, refined Optionals, overloads."""
# ruff: noqa: F811

from __future__ import annotations

import io
import types
import zipfile
from typing import NamedTuple, Union

import pytest

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn

SETTINGS = types.ModuleType("settings")
SETTINGS.SLOW, SETTINGS.COUNT = False, 3


def run_twice(program, *args):
    """The result of a scripted program, which a saved and loaded copy repeats."""
    scripted = torch.jit.script(program)
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    first, second = scripted(*args), torch.jit.load(file)(*args)
    assert str(first) == str(second)
    return first


class Point:
    def __init__(self, x: int):
        self.x = x

    def again(self) -> Point:
        return Point(self.x + 1)

    def copies(self) -> list[Point]:
        return [self, Point(self.x)]

    def maybe(self, there: bool) -> Point | None:
        if there:
            return self
        return None

    def get(self) -> int:
        return self.x


class Pair(NamedTuple):
    first: int
    second: torch.Tensor


# -- the type of a value in an error's text --------------------------------------------------------


def typed_concat(x: torch.Tensor, factor: int = 2):
    if not isinstance(x, torch.Tensor):
        raise TypeError("not a tensor: " + str(type(x)))
    return x * factor


def typed_format(x: torch.Tensor, eps: float = 1.0, mode: str = "add", size: int | None = None):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"not a tensor: {type(x)}")
    return x + eps


def typed_f_string(x: torch.Tensor, times: int = 3):
    if times > 5:
        raise ValueError(f"got {type(x)} and {times}")
    return x * times


@pytest.mark.parametrize("program", [typed_concat, typed_format, typed_f_string])
def test_type_in_an_error_keeps_the_defaults(program):
    assert torch.equal(run_twice(program, torch.ones(2)), program(torch.ones(2)))


def test_python_only_functions_keep_their_defaults():
    def sorted_items(x: torch.Tensor, factor: int = 2):
        return x * factor if isinstance(x, complex) else torch.histogramdd(x, factor)[0]

    assert "factor: int" in torch.jit.script(typed_f_string).code.replace("times", "factor")
    assert torch.jit.script(sorted_items).schema.arguments[1].default == "2"


# -- conditions that are known when a program is compiled -------------------------------------------


def setting_of_a_module(x):
    if SETTINGS.SLOW:
        return SETTINGS.absent(x)
    else:
        return x + SETTINGS.COUNT


def negated_setting(x):
    if not SETTINGS.SLOW:
        y = x
    else:
        y = SETTINGS.absent(x)
    return y


def test_condition_on_a_python_modules_constant():
    assert run_twice(setting_of_a_module, torch.zeros(1)).item() == 3
    assert run_twice(negated_setting, torch.ones(1)).item() == 1


class Switched(nn.Module):
    __constants__ = ("wide",)

    def __init__(self):
        super().__init__()
        self.wide = False

    def forward(self, x):
        if self.wide:
            return self.absent(x)
        else:
            return x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.layers = Switched(), nn.ModuleList([Switched(), Switched()])

    def forward(self, x):
        if self.part.wide:
            x = self.part.absent(x)
        for layer in self.layers:
            if layer.wide:
                x = layer.absent(x)
            else:
                x = layer(x) + 1
        return x


def test_condition_on_a_submodules_constant():
    assert run_twice(Outer(), torch.zeros(1)).item() == 2


# -- statements that cannot run -----------------------------------------------------------------------

ABSENT = object  # as packages bind the name of a package that is not installed


def after_a_known_condition(x: torch.Tensor, up: bool):
    if not SETTINGS.SLOW:
        return x + 1
    return ABSENT.segment(x)


def after_two_branches(x: torch.Tensor, up: bool):
    if up:
        return x + 1
    elif SETTINGS.COUNT is None or not SETTINGS.SLOW:
        return x - 1
    return ABSENT.segment(x)


def after_a_raise(x: torch.Tensor, up: bool):
    if up:
        raise ValueError("up")
        x = ABSENT.segment(x)
    return x * 2


@pytest.mark.parametrize("program", [after_a_known_condition, after_two_branches, after_a_raise])
def test_statements_that_cannot_run_may_name_what_programs_cannot_use(program):
    x = torch.ones(2)
    assert torch.equal(run_twice(program, x, False), program(x, False))


def test_statements_after_a_break_are_compiled():
    def after_a_break(x: torch.Tensor):
        for i in range(3):
            if i == 1:
                break
                x = ABSENT.segment(x)
        return x

    with pytest.raises(RuntimeError, match="python value of type 'type'"):
        torch.jit.script(after_a_break)


# -- local names of classes and functions ------------------------------------------------------------


def alias_of_a_class(x: int):
    P = Point
    return P(x).again().get()


def alias_of_a_function(x):
    f = F.relu
    return f(x)


def alias_of_a_python_module(x):
    functions = torch.nn.functional
    return functions.relu(x)


def alias_of_a_named_tuple(x):
    Made = Pair
    return Made(1, x).second


def alias_in_isinstance(x):
    T = torch.Tensor
    if isinstance(x, T):
        return x
    else:
        return x + 1


def test_local_aliases():
    assert run_twice(alias_of_a_class, 3) == 4
    for program in (alias_of_a_function, alias_of_a_python_module, alias_of_a_named_tuple, alias_in_isinstance):
        assert torch.equal(run_twice(program, torch.ones(2)), torch.ones(2))


def test_a_variable_with_two_classes_is_refused():
    def chosen(first: bool, x: int):
        if first:
            P = Point
        else:
            P = Pair
        return P(x)

    with pytest.raises(RuntimeError, match="cannot be used as a value"):
        torch.jit.script(chosen)


def methods_of_its_own_class(x: int):
    found = Point(x).again().copies()[1].maybe(True)
    if found is not None:
        return found.get()
    return 0


def test_methods_that_return_their_own_class():
    assert run_twice(methods_of_its_own_class, 3) == 4


# -- Optional values in nested conditions ---------------------------------------------------------------


def optional_parameter(x: torch.Tensor | None, n: int):
    if x is None:
        if n > 2:
            x = torch.zeros(n)
        elif n == 1:
            x = torch.ones(n)
    if x is None:
        return torch.full((1,), 7.0)
    return x


def optional_variable(n: int):
    best: int | None = None
    for i in range(n):
        if i % 2 == 0:
            if best is None or i > best:
                best = i
    return best


def optional_tuple(x: tuple[int, int] | None, fill: bool):
    if fill:
        if x is None:
            x = (1, 2)
    if x is not None:
        return x[0]
    return 0


def test_optionals_assigned_in_nested_conditions():
    assert run_twice(optional_parameter, None, 3).tolist() == [0, 0, 0]
    assert run_twice(optional_parameter, None, 1).tolist() == [1]
    assert run_twice(optional_parameter, None, 2).tolist() == [7]
    assert run_twice(optional_variable, 5) == 4
    assert run_twice(optional_tuple, None, True) == 1


def test_a_variable_without_declared_type_stays_none():
    def undeclared(x, a: bool, b: bool):
        y = None
        if a:
            if b:
                y = x
        return y

    with pytest.raises(RuntimeError, match="Variable 'y' previously had type NoneType"):
        torch.jit.script(undeclared)


# -- subclasses of Tensor -------------------------------------------------------------------------------


class Counted(torch.Tensor):
    @property
    def count(self) -> int:
        return len({1, 2})


def test_a_subclass_of_tensor_is_a_tensor():
    def first(x: Counted, more: list[Counted], last: Counted | None = None) -> Counted:
        return x[0] + more[0].size(0)

    assert run_twice(first, torch.ones(2), [torch.ones(3)]) == 4
    schema = torch.jit.script(first).schema
    assert [str(a.type) for a in schema.arguments] == ["Tensor", "List[Tensor]", "Optional[Tensor]"]

    def count(x: Counted):
        return x.count

    with pytest.raises(RuntimeError, match="'Tensor' object has no attribute or method 'count'"):
        torch.jit.script(count)


# -- defaults that are no literals -----------------------------------------------------------------------


def cast_by_default(x, dtype: torch.dtype = torch.float32, device: torch.device = torch.device("cpu")):
    return torch.zeros_like(x, dtype=dtype, device=device)


def cast_by_call(x):
    return cast_by_default(x) + cast_by_default(x, torch.float64)


class Casting(nn.Module):
    def forward(self, x, dtype: torch.dtype = torch.float64, form: torch.memory_format = torch.contiguous_format):
        return x.to(dtype).contiguous(memory_format=form)


def test_defaults_that_are_dtypes_and_devices():
    whole = torch.ones(2, dtype=torch.int64)
    assert run_twice(cast_by_default, whole).dtype is torch.float32
    assert run_twice(cast_by_default, whole, torch.float16).dtype is torch.float16
    assert run_twice(cast_by_call, whole).dtype is torch.float64
    assert run_twice(Casting(), whole).dtype is torch.float64


# -- overloads ------------------------------------------------------------------------------------------


@torch.jit._overload
def scaled(x: torch.Tensor, by: Union[torch.Tensor, int]) -> torch.Tensor: ...


@torch.jit._overload
def scaled(x: int, by: Union[torch.Tensor, int]) -> torch.Tensor: ...


def scaled(x, by):
    if isinstance(x, int):
        return torch.tensor(x)
    else:
        return x * by


def calls_scaled(x):
    return scaled(x, 2) + scaled(x, x) + scaled(3, x)


@torch.jit._overload
def first(x: tuple[torch.Tensor, torch.Tensor], by: int = 2) -> torch.Tensor: ...


@torch.jit._overload
def first(x: torch.Tensor, by: int = 2) -> torch.Tensor: ...


def first(x, by=2):
    if isinstance(x, torch.Tensor):
        return x * by
    else:
        return x[0] * by


def calls_first(x):
    return first(x) + first((x, x), 3)


class Overloaded(nn.Module):
    @torch.jit._overload_method
    def grow(self, x: int) -> int: ...

    @torch.jit._overload_method
    def grow(self, x: Union[torch.Tensor, float]) -> torch.Tensor: ...

    def grow(self, x):
        if isinstance(x, int):
            return x + 1
        elif isinstance(x, float):
            return torch.tensor(x)
        else:
            return x * 2

    def forward(self, x):
        return self.grow(x), self.grow(1)


def test_overloads():
    assert run_twice(calls_scaled, torch.ones(1)).item() == 6
    assert run_twice(calls_first, torch.ones(1)).item() == 5
    assert str(run_twice(Overloaded(), torch.ones(1))) == "(tensor([2.]), 2)"


MISSING = "none was given"


@torch.jit._overload
def merged(index: torch.Tensor, values: str = MISSING, most: int | None = None) -> torch.Tensor: ...


@torch.jit._overload
def merged(index: torch.Tensor, values: torch.Tensor, most: int | None = None) -> tuple[torch.Tensor, torch.Tensor]: ...


@torch.jit._overload
def merged(
    index: torch.Tensor, values: torch.Tensor | None, most: int | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]: ...


@torch.jit._overload
def merged(
    index: torch.Tensor, values: list[torch.Tensor], most: int | None = None
) -> tuple[torch.Tensor, list[torch.Tensor]]: ...


def merged(
    index: torch.Tensor, values: Union[torch.Tensor, list[torch.Tensor], str, None] = MISSING,
    most: int | None = None,
) -> Union[
    torch.Tensor, tuple[torch.Tensor, torch.Tensor | None], tuple[torch.Tensor, list[torch.Tensor]]
]:  # fmt: skip
    if isinstance(values, int):  # of no overload: what is here is not compiled
        values = MISSING
    if isinstance(values, torch.Tensor):
        values = values * 2
    elif isinstance(values, (list, tuple)):
        values = [value * 2 for value in values]
    if most is not None and most > 3:
        if values is None or isinstance(values, torch.Tensor):
            return index, values
        if isinstance(values, (list, tuple)):
            return index, values
        return index
    if values is None:
        return index, None
    if isinstance(values, torch.Tensor):
        return index, values
    if isinstance(values, (list, tuple)):
        return index, values
    return index + 1


def merges_nothing(x: torch.Tensor) -> torch.Tensor:
    return merged(x) + merged(x, most=5)


def merges_one(x: torch.Tensor) -> torch.Tensor:
    x, y = merged(x, x, 5)
    return x + y


def merges_an_optional(x: torch.Tensor, y: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    return merged(x, y)


def merges_several(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return merged(x, [x, x + 1])


def test_overloads_with_different_results():
    """Each overload that a program calls is a function of the program."""
    one = torch.ones(1)
    assert run_twice(merges_nothing, one).item() == 3
    assert run_twice(merges_one, one).item() == 3
    assert str(run_twice(merges_an_optional, one, one)) == "(tensor([1.]), tensor([2.]))"
    assert str(run_twice(merges_an_optional, one, None)) == "(tensor([1.]), None)"
    assert str(run_twice(merges_several, one)) == "(tensor([1.]), [tensor([2.]), tensor([4.])])"


def test_script_object_is_the_class_of_program_objects():
    program = torch.jit.script(lambda_free_point)
    file = io.BytesIO()
    torch.jit.save(program, file)
    file.seek(0)
    found = torch.jit.load(file)(2)
    assert isinstance(found, torch.ScriptObject) and found.get() == 2
    assert torch.ScriptObject is torch._C.ScriptObject is torch.fx._symbolic_trace.ScriptObject
    with pytest.raises(TypeError, match="No constructor defined"):
        torch.ScriptObject()


def lambda_free_point(x: int):
    return Point(x)


def on_one_device(tensors: list[torch.Tensor]) -> bool:
    return all(tensors[0].device == x.device for x in tensors)


def joined(words: list[str]) -> str:
    return ",".join(word + "!" for word in words)


def doubled(numbers: list[int]) -> int:
    return sum(2 * n for n in numbers)


def test_generator_expressions_are_lists():
    assert torch.jit.script(on_one_device)([torch.ones(1), torch.ones(2)]) is True
    assert torch.jit.script(joined)(["a", "b"]) == "a!,b!"
    assert torch.jit.script(doubled)([1, 2]) == 6


def test_traced_functions_keep_their_tensors_in_other_programs():
    """Its tensors follow those of the program that it joins. It joins once, however often it is called."""
    ten, hundreds = torch.tensor([10.0]), torch.tensor([200.0])
    first = torch.jit.trace(lambda x: x + ten, torch.ones(1))
    second = torch.jit.trace(lambda x: x + hundreds, torch.ones(1))

    def both(x):
        return second(first(x)) * 2 + first(x) + second(x)

    scripted = torch.jit.script(both)
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    for program in (scripted, torch.jit.load(file)):
        assert program(torch.ones(1)).item() == 211 * 2 + 11 + 201
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        code = "".join(archive.read(name).decode() for name in names if name.endswith(".py"))
    assert code.count("def _lambda(") == 2
    assert sum("/constants/" in name for name in names) == 2
