"""What `pip install`, `pip install -e .` and `python -m build` make of the project, and the files around it."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"torchlite", "torchlite_backends"}
LARGEST_WHEEL = 5_200_000  # bytes; it has 5.0 million, of which 0.8 are docstrings and 0.4 Sobol numbers


def build(folder: Path, kind: str, to: Path) -> Path:
    """Build a "wheel", an "editable" or an "sdist" of the project in a folder with hatchling, without a network."""
    pytest.importorskip("hatchling", reason="hatchling is missing (the extra 'test')")
    to.mkdir()
    code = f"import sys; from hatchling.build import build_{kind}; build_{kind}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(to)], cwd=folder, check=True, capture_output=True, text=True)
    (built,) = to.iterdir()
    return built


def names_of_wheel(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.fixture
def small_project(tmp_path):
    """The project's configuration with one file in each package and in the folders that are not installed."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", ".gitignore", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    for name in ("torchlite", "backends/torchlite_backends", "tests", "tools", "benchmarks"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text("")
    return root


def test_the_wheel(tmp_path):
    wheel = build(ROOT, "wheel", tmp_path / "dist")
    tops = {name.partition("/")[0] for name in names_of_wheel(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert wheel.stat().st_size < LARGEST_WHEEL


def test_an_editable_install_exposes_the_two_packages_alone(small_project, tmp_path):
    built = build(small_project, "editable", tmp_path / "dist")
    with zipfile.ZipFile(built) as archive:
        (paths,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith(".pth"))
    folders = [Path(line) for line in paths.splitlines()]
    assert {name for folder in folders for name in os.listdir(folder)} == PACKAGES
    links = {folder.joinpath(name).resolve() for folder in folders for name in os.listdir(folder)}
    assert links == {small_project / "torchlite", small_project / "backends" / "torchlite_backends"}


def test_builds_after_an_editable_install_are_complete(small_project, tmp_path):
    """Hatchling follows links and visits each folder once: the link's folder must not be the visited one."""
    build(small_project, "editable", tmp_path / "first")
    build(small_project, "editable", tmp_path / "again")
    found = {
        name for name in names_of_wheel(build(small_project, "wheel", tmp_path / "wheel")) if "dist-info" not in name
    }
    assert found == {f"{package}/__init__.py" for package in PACKAGES}
    with tarfile.open(build(small_project, "sdist", tmp_path / "sdist")) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    assert {"torchlite", "backends", "tests", "tools", "benchmarks", "hatch_build.py"} <= tops
    assert ".editable" not in tops


def test_the_sdist_holds_each_file_of_the_root():
    """All that git has there: the tests and the documentation are built from an sdist."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        included = set(tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    by_itself = {"README.md", "LICENSE", "pyproject.toml", "hatch_build.py", ".gitignore"}  # hatchling adds these
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert included == {f"/{name.partition('/')[0]}" for name in files.splitlines()} - {
        f"/{name}" for name in by_itself
    }


def test_pre_commit_installs_the_ruff_of_ci_and_no_other_repository():
    tools = re.search(r"^ruff~=[\d.]+$", (ROOT / ".ci" / "tools.txt").read_text(), re.M)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (.+)", hooks) == ["local"]
    assert re.findall(r"ruff~=[\d.]+", hooks) == [tools[0]]


def test_the_citation_has_the_version():
    with open(ROOT / "pyproject.toml", "rb") as file:
        version = tomllib.load(file)["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_package_of_kernels_has_the_version_and_the_licence():
    """torchlite refuses kernels of another version."""
    project, kernels = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"] for folder in (".", "kernels")
    )
    version = project["version"]
    assert kernels["version"] == version
    assert f'__version__ = "{version}"' in (ROOT / "kernels" / "torchlite_kernels" / "__init__.py").read_text()
    assert project["optional-dependencies"]["kernels"] == [f"{kernels['name']}=={version}"]
    assert (ROOT / "kernels" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_of_kernels_holds_their_source(tmp_path):
    """pip builds it where there is no wheel, without a checkout."""
    built = build(ROOT / "kernels", "sdist", tmp_path / "dist")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = "hatch_build.py", "torchlite_kernels/__init__.py", "source/torchlite/__init__.py"
    assert {*wanted, "source/backends/torchlite_backends/cc/prebuild.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("build/")]


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_name_versions_and_permissions(workflow):
    text = workflow.read_text()
    actions = re.findall(r"uses: (\S+)", text)
    assert actions and all(re.fullmatch(r"[\w./-]+@(?:v\d+|release/v\d+)", action) for action in actions)
    assert re.search(r"^permissions:\n  contents: read\n(?!  )", text, re.M)


def test_each_example_is_in_its_readme():
    page = (ROOT / "examples" / "README.md").read_text()
    named = set(re.findall(r"`((?:ecosystem/)?\w+\.py)`", page))
    files = {path.name for path in (ROOT / "examples").glob("*.py")}
    files |= {f"ecosystem/{path.name}" for path in (ROOT / "examples" / "ecosystem").glob("*.py")}
    assert named == files - {"ecosystem/messages.py", "ecosystem/show.py"}  # helpers of the others


def test_the_build_of_kernels_finds_the_backends(tmp_path):
    """Its environment has no torchlite installed: the source that the sdist holds must give the entry points."""
    pytest.importorskip("hatchling", reason="hatchling is missing (the extra 'test')")
    hook = runpy.run_path(str(ROOT / "kernels" / "hatch_build.py"))
    for name in hook["SOURCE"]:
        place = tmp_path / "source" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(ROOT / name)
    package = hook["unpack_torchlite"](tmp_path)
    found = {point.name for d in distributions(path=[str(package)]) for point in d.entry_points}
    assert {"cpu", "opencl", "cuda"} <= found
    assert (package / "torchlite_backends" / "cc" / "__init__.py").is_file()
