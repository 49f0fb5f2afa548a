"""`help()` of each public function and method begins with its name and signature, and has a text."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import types

import pytest

import torchlite as torch

SPACES = (
    "torch", "Tensor", "amp", "autograd", "distributions", "fft", "func", "linalg", "nn", "nn.functional", "nn.init",
    "nn.utils", "optim", "random", "special", "utils.data",
)  # fmt: skip
# Names of functions that have another name in another namespace.
ALIASES = {
    "orgqr": "householder_product", "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac",
    "gammaln": "lgamma", "multigammaln": "mvlgamma",
}  # fmt: skip


def _functions(space: str):
    owner = {"torch": torch, "Tensor": torch.Tensor}.get(space) or importlib.import_module(f"torchlite.{space}")
    for name in dir(owner):
        found = None if name.startswith("_") else getattr(owner, name)
        if isinstance(found, (types.FunctionType, types.BuiltinFunctionType)):
            yield owner, name, found


@pytest.mark.parametrize("space", SPACES)
def test_help_begins_with_name_and_signature(space):
    wrong = []
    for owner, name, function in _functions(space):
        if space == "Tensor" and name.endswith("_"):
            continue  # those that write in place name the op that they run, such as `_add_`
        shown = function.__name__
        named = getattr(owner, shown, None)  # each in-place alias is a function of its own
        same = named is function or hasattr(function, "op") and getattr(named, "op", None) is function.op
        known = same or shown in (name, ALIASES.get(name))
        title = pydoc.plain(pydoc.render_doc(function)).splitlines()[2]
        if not known or not title.startswith(f"{shown}("):
            wrong.append(f"{space}.{name}: {title}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("space", SPACES)
def test_each_function_has_a_docstring_a_signature_and_a_module(space):
    wrong = []
    for _, name, function in _functions(space):
        inspect.signature(function)
        if not inspect.getdoc(function):
            wrong.append(f"{space}.{name} has no docstring")
        if not function.__module__.startswith("torchlite"):
            wrong.append(f"{space}.{name} of {function.__module__}")
    assert not wrong, "\n".join(wrong)
