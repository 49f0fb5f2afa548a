"""Tables of programs whose compiled form gives eager's results and side effects, call by call."""

from __future__ import annotations

import dataclasses
import warnings

import pytest

import torchlite as torch


class ProgramTable(dict):
    """Programs by name. A program `make(compile)` returns a function of (the number of the call, a tensor) that is
    called, and whose result says everything.
    """

    def program(self, make):
        """Put a program into the table."""
        self[make.__name__] = make
        return make

    def make_test(self):
        """Make the test of each program in the table."""

        @pytest.mark.parametrize("name", sorted(self))
        def test_compiled_programs_match_eager(name):
            torch.compiler.reset()
            want = history(self[name], lambda f: f)
            assert history(self[name], torch.compile) == want

        return test_compiled_programs_match_eager


def shown(value):
    """A result in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf,
                value._version, value.is_inference(), value.tolist())  # fmt: skip
    if isinstance(value, dict):
        return type(value).__name__, [(shown(k), shown(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, shown(vars(value))
    return type(value).__name__, str(value)


def history(make, compile, calls=9):
    """Return the outcomes of consecutive calls."""
    torch.manual_seed(0)
    run = make(compile)
    found = []
    for i in range(calls):
        torch.manual_seed(i)
        x = torch.randn(2, 2) + (0.6 if i % 3 else -0.6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = run(i, x)
            except Exception as error:
                result = type(error), str(error)
        found.append((shown(result), shown(x)))
    return found
