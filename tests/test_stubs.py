"""The stubs that editors and type checkers read are those that the records give today."""

import ast
import importlib.util
from pathlib import Path

import pytest

import torchlite as torch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "tools" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.stubs()


def test_stubs_are_not_stale(stubs):
    stale = [path.name for path, text in stubs.items() if not path.exists() or path.read_text() != text]
    assert not stale, f"{', '.join(stale)} do not match the op records: run python tools/make_stubs.py"


def test_stubs_name_what_is_there(stubs):
    for path, text in stubs.items():
        tree = ast.parse(text)
        body = (
            tree.body
            if path.name == "__init__.pyi"
            else next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "TensorMethods")
        )
        owner = torch if path.name == "__init__.pyi" else torch.Tensor
        missing = [node.name for node in body if isinstance(node, ast.FunctionDef) and not hasattr(owner, node.name)]
        assert not missing, missing
