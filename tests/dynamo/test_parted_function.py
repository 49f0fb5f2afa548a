"""Functions that cannot be captured as a whole run in parts, with eager's results, gradients and order of effects."""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest

import torchlite as torch
from torchlite._dynamo import compiled_function
from torchlite._dynamo.compiled_function import CompiledFunction

from .programs_with_breaks import PROGRAMS

CALLS = 7
# Programs of which every statement runs as written, and why.
WITHOUT_PARTS = {
    "class_within": "objects of a class that each call defines",
    "closure_over_rebound_variable": "a local function that sees the variable change",
    "nonlocal_writer": "a local function that changes a variable",
}


def outcome(factory, compiles):
    """Run a program several times. Return what it gave and printed, and its compiled function."""
    torch.manual_seed(0)
    printed = io.StringIO()
    function, tensors = factory()
    call = frame = CompiledFunction(function, "f") if compiles else None
    call = call or function
    found = []
    generator = torch.Generator().manual_seed(1)
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            x = torch.randn(4, 3, generator=generator).requires_grad_()
            try:
                result = call(x)
                leaves = [t for t in (result if isinstance(result, tuple) else (result,)) if torch.is_tensor(t)]
                if leaves[0].requires_grad:
                    leaves[0].sum().backward()
                found.append([t.tolist() for t in leaves])
                found.append([None if not t.is_leaf and not t.retains_grad else t.grad for t in leaves])
            except Exception as error:  # noqa: BLE001
                found.append((type(error), str(error)))
            found.append([None if t.grad is None else t.grad.tolist() for t in (x, *tensors)])
            found.append([(t.tolist(), t._version) for t in tensors])
            found[-3:] = [repr(one) for one in found[-3:]]
            print("--")
    found.append(torch.rand(2).tolist())
    return found, printed.getvalue(), frame


def compiled_parts(frame):
    """Return the compiled functions of a function's parts."""
    tree = frame.tree
    if tree is None:
        return [frame]
    known = [*tree._by_code.values(), *tree._by_function.values()]
    return [part for one in known for part in one.parts.values()] + [a for a in tree._attempts.values() if a]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_breaks(name, monkeypatch):
    monkeypatch.setattr(compiled_function, "_MIN_KERNELS", 1)  # the programs are small
    wanted, printed, _ = outcome(PROGRAMS[name], False)
    found, printed_by_parts, frame = outcome(PROGRAMS[name], True)
    assert printed_by_parts == printed
    assert found == wanted
    assert (sum(part.replays for part in compiled_parts(frame)) > 0) is (name not in WITHOUT_PARTS)
