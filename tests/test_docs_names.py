"""Names in the documentation: files, functions and other identifiers of the project that the pages mention exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Pages that describe the source. The other pages name files and functions of users and of other packages.
PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "docs/backend.md", "docs/developers.md", "docs/threads.md")
ALL_PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
# Placeholders, names of other projects, and names that generated functions and files have.
OTHER_NAMES = frozenset(
    "X NAME FAMILY PATH FILE foo Foo _foo_backward _NAME_backward foo_backward name_ add__op add__function add__vjp0 "
    "__0_b_0 toy_backend GLIBC_TUNABLES blame ignoreRevsFile git".split()
)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"[\w./*-]+\.(?:py|pyi|txt|json|npz|toml|md|zip|gz)|[\w.-]+(?:/[\w.*-]+)+/?")


def source_files() -> list[str]:
    out = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return [name for name in out.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def paths() -> set[str]:
    """Each file and folder of the repository by all ends of its path: `a/b.py`, `b.py`."""
    found = set()
    for name in source_files():
        parts = name.split("/")
        found |= {"/".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
    return found


@pytest.fixture(scope="module")
def identifiers() -> set[str]:
    """All words of the source, tests and tools included."""
    folders = ("torchlite/", "backends/", "tests/", "tools/", "benchmarks/", ".ci/")
    names = [name for name in source_files() if name.startswith(folders) and name != "tests/test_docs_names.py"]
    names += ["pyproject.toml", "tox.ini"]
    texts = ((ROOT / name).read_text() for name in names if name.endswith((".py", ".pyi", ".toml", ".ini", "run")))
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}


def code_words(page: str) -> list[str]:
    """The words between backticks, examples left out."""
    spans = re.findall(r"`([^`\n]+)`", _FENCED.sub("", (ROOT / page).read_text()))
    return [word for span in spans for word in span.split()]


def is_placeholder(path: str) -> bool:
    return bool(re.search(r"(?:^|/)_?X$|[*<>]|NAME|PATH", path))


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page, paths):
    named = {word for word in code_words(page) if _FILE.fullmatch(word) and not is_placeholder(word)}
    assert {path for path in named if path.strip("/") not in paths} == set()


@pytest.mark.parametrize("page", PAGES)
def test_identifiers_exist(page, identifiers):
    """Words of code spans with an underscore, or with capitals within, are names of the source."""
    texts = [word for word in code_words(page) if not _FILE.fullmatch(word)]
    names = {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text) if re.search(r"_|[a-z][A-Z]", name)}
    assert names - identifiers - OTHER_NAMES == set()


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda path: path.name)
def test_examples_are_closed(page):
    """An example without its closing line hides the rest of a page, and no test runs it."""
    assert len(re.findall(r"^ *```", page.read_text(), re.M)) % 2 == 0


def anchors_of(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _FENCED.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors_of(target.read_text()))):
            broken.append(link)
    assert broken == []
