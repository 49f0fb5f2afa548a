"""Runs every example in the README, in docs/ and in docstrings, and compares its output."""

import builtins
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import torchlite
from torchlite._dispatch import NAMESPACES, REGISTRY

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for p in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")]
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
GLOBALS = {"torch": torchlite, "torchlite": torchlite, "nn": torchlite.nn, "F": torchlite.nn.functional}
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_doctest(test: doctest.DocTest) -> None:
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert not result.failed, "".join(said)


@pytest.fixture
def forget_ops():
    """Takes away the ops that an example declares: other tests walk the registry."""
    registry, spaces = dict(REGISTRY), {space: dict(names) for space, names in NAMESPACES.items()}
    yield
    for live, before in ((REGISTRY, registry), *((NAMESPACES[space], names) for space, names in spaces.items())):
        live.clear()
        live.update(before)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("forget_ops")
def test_page(page, tmp_path, monkeypatch):
    """The Python blocks of a page, one after the other in one namespace; blocks with prompts are compared with the
    output that they show.
    """
    text = (ROOT / page).read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # for modules that a page writes
    names = {"__name__": "__main__"}
    for block in _FENCE.finditer(text):
        line = text.count("\n", 0, block.start(1))
        code = block.group(1)
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page, str(ROOT / page), line)
            test.globs = names  # get_doctest copies it, but names must live on for the next block
            said: list[str] = []
            result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
            assert not result.failed, "".join(said)
        else:
            exec(compile("\n" * line + code, str(ROOT / page), "exec"), names)


def modules() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages(torchlite.__path__, "torchlite.") if not m.name.endswith("__main__")]
    return ["torchlite", *sorted(names)]


@pytest.mark.parametrize("name", modules())
def test_docstrings(name):
    if name.startswith("torchlite.serve._"):
        for package in ("starlette", "uvicorn", "grpc", "prometheus_client"):
            pytest.importorskip(package, reason="the extra 'serve' is missing")
    module = importlib.import_module(name)
    # In `torchlite` the names of dtypes, such as `float`, hide Python's.
    names = {**vars(module), **(vars(builtins) if name == "torchlite" else {}), **GLOBALS}
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name, globs=names):
        if test.examples:
            run_doctest(test)


@pytest.mark.parametrize("name", sorted(n for n, record in REGISTRY.items() if ">>>" in record.doc))
def test_docs_of_ops(name):
    record = REGISTRY[name]
    run_doctest(doctest.DocTestParser().get_doctest(record.doc, dict(GLOBALS), name, record.file, record.line))
