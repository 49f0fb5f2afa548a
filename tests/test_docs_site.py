"""The site's sources: every page has a place in the navigation, generated pages cover what is public, the table of
environment variables is that of the source, and no page or setting asks for the network. `tox -e docs` builds the site.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torchlite
from torchlite._dispatch import NAMESPACES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GENERATED = {DOCS / "reference" / "modules", DOCS / "reference" / "generated"}
PAGES = sorted(DOCS.glob("**/*.md"))
_FENCED = re.compile(r"^(`{3,}|:{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Prints each module with its names, then the page of `torch.add`.
GENERATOR = """
import sys
sys.path.insert(0, "docs/_ext")
import torchlite
torchlite.as_torch()
import public_names
for module in public_names.MODULES:
    print(module.name, *public_names.names_of(module))
print(public_names.page_of(public_names.MODULES[0], "add"))
"""


def entries_of(page: Path) -> list[Path]:
    """The pages that a page's toctrees list."""
    lines = [line for tree in _TOCTREE.findall(page.read_text()) for line in tree.splitlines()]
    names = [line.strip() for line in lines if line.strip() and not line.startswith(":")]
    return [(page.parent / f"{name}.md").resolve() for name in names if not name.startswith("modules/")]


def test_every_page_is_in_the_navigation_once():
    listed = [entry for page in PAGES for entry in entries_of(page)]
    assert sorted(listed) == sorted(set(PAGES) - {DOCS / "index.md"})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_lead_to_files(page):
    """Sphinx checks the anchors as well; this is what a reader of the files on the repository's host clicks."""
    text = _FENCED.sub("", page.read_text())
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    generated = [link for link in links if any((page.parent / link).resolve().is_relative_to(at) for at in GENERATED)]
    assert [link for link in links if link not in generated and not (page.parent / link).exists()] == []


@pytest.fixture(scope="module")
def source_texts() -> list[str]:
    return [path.read_text() for top in ("torchlite", "backends") for path in (ROOT / top).rglob("*.py")]


def variables_of(text: str) -> set[str]:
    """TORCHLITE_* in a module's string literals, and all variables that it reads by a literal name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} if re.fullmatch(r"TORCHLITE_[A-Z_]+", node.value) else set()
        key = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv") and node.args:
            key = node.args[0]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return found


def test_environment_variables(source_texts):
    """Each variable that the source reads has a row, and each row is a variable that the source names."""
    text = (DOCS / "reference" / "environment.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", text, re.M)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(listed) == len(set(listed))
    read = {
        name for text in source_texts if re.search("environ|getenv|TORCHLITE_", text) for name in variables_of(text)
    }
    assert read - set(listed) == set()
    assert [name for name in listed if not any(name in text for text in source_texts)] == []


def test_pages_of_names():
    """Every op in a namespace, and every name of `__all__`, has a page; an op's page lists its devices."""
    run = subprocess.run([sys.executable, "-c", GENERATOR], capture_output=True, text=True, check=True, cwd=ROOT)
    names = {line.split()[0]: set(line.split()[1:]) for line in run.stdout.splitlines() if line.startswith("torch")}
    for space, ops in NAMESPACES.items():
        module = "torch" if space == "torch" else f"torch.{space}"
        public = {name for name in ops if not name.startswith("_")}
        assert public - names[module] <= {"check_indices"}
    layers = {name for name in torchlite.nn.__all__ if isinstance(getattr(torchlite.nn, name), type)}
    assert layers <= names["torch.nn"]
    assert ".. autofunction:: torch.add" in run.stdout
    for device in ("cpu", "cuda", "opencl"):
        assert f"   * - ``{device}``\n     - " in run.stdout


def test_no_page_asks_for_the_network():
    sources = [DOCS / "conf.py", *DOCS.glob("_ext/*.py"), *DOCS.glob("_static/*")]
    assert [path.name for path in sources if re.search(r"https?://|cdn", path.read_text())] == []


def test_widths_are_not_taken_for_checked_without_a_browser(tmp_path):
    (tmp_path / "index.html").write_text("<h1>A page</h1>")
    run = subprocess.run(
        [sys.executable, "tools/check_page_widths.py", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "BROWSER": "no-such-browser"},
    )
    assert run.returncode == 1
    assert "the widths of pages were not checked" in run.stderr


def test_initials_of_authors_begin_no_list():
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from docstrings import converted
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    assert converted(["References:", "    - J. L. Ba. A title.", "    - A title. B. C."]) == [
        "References:", r"    - J\. L. Ba. A title.", "    - A title. B. C.",
    ]  # fmt: skip


def test_formulas_show_underscores_of_texts_without_the_escape(monkeypatch):
    """Runs where the site is built: `tox -e docs`."""
    nodes = pytest.importorskip("docutils.nodes")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import math_as_mathml

    formula = nodes.math(text=r"\frac{\text{kernel\_size}_i}{x_i}")
    assert "kernel_size</mtext>" in math_as_mathml.to_mathml(formula, display=False)
