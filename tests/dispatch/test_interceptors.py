"""The stack of interceptors: entries and exits while another interceptor handles an op persist."""

from __future__ import annotations

import ast
import pathlib
import threading

import pytest

import torchlite as torch
from torchlite._dispatch import Interceptor, interceptors
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite.overrides import TorchFunctionMode
from torchlite.utils._python_dispatch import TorchDispatchMode


class _Seeing:
    """Counts what it sees; its first op calls `first`."""

    def __init__(self, first=None, name=""):
        super().__init__()
        self.first, self.name, self.seen = first, name, []

    def _see(self, func):
        self.seen.append(str(func))
        first, self.first = self.first, None
        if first is not None:
            first()


class Dispatching(_Seeing, TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._see(func)
        return func(*args, **(kwargs or {}))


class Functions(_Seeing, TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self._see(func)
        return func(*args, **(kwargs or {}))


class Plain(_Seeing, Interceptor):
    def intercept(self, op, function, args, kwargs):
        self._see(op.name)
        return function(*args, **kwargs)


MODES = [Dispatching, Functions, Plain]


@pytest.fixture(autouse=True)
def nothing_stays():
    assert interceptors.stack.items == [] and interceptors.stack.active == 0 == GLOBALS["INTERCEPTORS"]
    yield
    assert interceptors.stack.items == [] and interceptors.stack.active == 0 == GLOBALS["INTERCEPTORS"]


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_a_mode_exited_in_a_handler_stays_exited(outer, inner):
    """As in PyTorch: a generator that holds a mode may be closed or collected while another mode handles an op."""
    x, left = torch.ones(3), inner()

    def holding():
        with left:
            yield

    held = [holding()]
    next(held[0])
    with outer(held.clear):
        x.cos()
    count = len(left.seen)
    with outer():
        x.sin()
    assert len(left.seen) == count


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_a_mode_entered_in_a_handler_stays_active(outer, inner):
    x, entered = torch.ones(3), inner()
    with outer(entered.__enter__):
        x.cos()
        x.sin()
    x.exp()
    assert interceptors.stack.items == [entered] and GLOBALS["INTERCEPTORS"] == 1
    entered.__exit__(None, None, None)
    x.exp()
    assert len(entered.seen) == 3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nested_handlers_exit_and_enter_hidden_modes(depth):
    """The innermost handler leaves a mode that all the others hide, and enters another."""
    x, gone, come = torch.ones(3), Plain(), Plain()

    def change():
        gone.__exit__(None, None, None)
        come.__enter__()

    modes = [Dispatching(change if not i else None) for i in range(depth)]
    for mode in modes:
        mode.__enter__()
    gone.__enter__()
    x.cos()
    assert gone.seen == ["cos"] and come.seen == ["cos"]
    assert interceptors.stack.items == [come, *modes] and GLOBALS["INTERCEPTORS"] == depth + 1
    x.sin()
    assert gone.seen == ["cos"] and come.seen == ["cos", "sin"]
    for mode in (*modes, come):
        mode.__exit__(None, None, None)


@pytest.mark.parametrize("mode", MODES)
def test_autocast_and_profilers_end_and_begin_in_handlers(mode):
    x, w = torch.ones(3), torch.ones(2, 2)
    cast = torch.autocast("cpu", dtype=torch.bfloat16)
    with mode(cast.__enter__):
        x.cos()
    assert (w @ w).dtype is torch.bfloat16
    with mode(lambda: cast.__exit__(None, None, None)):
        x.cos()
    with mode():
        assert (w @ w).dtype is torch.float32
    profiler = torch.profiler.profile()
    with mode(profiler.start):
        x.cos()
    x.sin()
    with mode(profiler.stop):
        x.exp()
    x.tan()
    assert {e.key for e in profiler.key_averages()} >= {"aten::cos", "aten::sin"}
    assert "aten::tan" not in {e.key for e in profiler.key_averages()}


def test_a_rule_of_vmap_may_end_a_mode():
    mode = Dispatching()

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, dims, x):
            mode.__exit__(None, None, None)
            return x * 2, 0

    mode.__enter__()
    assert torch.vmap(Twice.apply)(torch.ones(2, 2)).sum().item() == 8.0


def test_a_hook_of_a_deep_backward_pass_may_end_and_begin_modes():
    """Backward passes within one another go on in another thread at some depth, with the same stack."""
    gone, come = Plain(), Plain()
    depth = 70

    @torch.enable_grad()
    def within(level):
        leaf = torch.ones(2, requires_grad=True)
        y = leaf * 2

        def hook(grad):
            if level:
                within(level - 1)
            else:
                gone.__exit__(None, None, None)
                come.__enter__()

        y.register_hook(hook)
        y.sum().backward()

    gone.__enter__()
    within(depth)
    assert interceptors.stack.items == [come] and GLOBALS["INTERCEPTORS"] == 1
    come.__exit__(None, None, None)


def test_a_view_that_an_interrupt_left_open_ends_with_the_one_around_it():
    mode, other = Plain(), Plain()
    with mode, other:
        view = interceptors.show_only([mode])
        interceptors.show_only([])  # the list is never restored
        interceptors.put_back(view)
        assert interceptors.stack.items == [mode, other]
        interceptors.put_back(view)  # has ended
        assert interceptors.stack.items == [mode, other]


def test_a_mode_of_a_thread_that_has_ended_counts_no_more():
    thread = threading.Thread(target=Plain().__enter__)
    thread.start()
    thread.join()
    assert GLOBALS["INTERCEPTORS"] == 0


def test_only_the_functions_of_the_stack_change_it():
    """A module that assigned a list there would undo entries and exits of the meantime."""
    root = pathlib.Path(torch.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "stack.items" not in text or path.name == "interceptors.py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "items":
                found.append(f"{path}:{node.lineno}")
    assert not found
