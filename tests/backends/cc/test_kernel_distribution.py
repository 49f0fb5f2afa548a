"""The distribution of kernels that were compiled ahead, with a package of a few programs in its place."""

import os
import re
import subprocess
import sys

import pytest

from torchlite import __torchlite_version__
from torchlite_backends.cc import cxx_compiler
from torchlite_backends.device_runtime.core import processor_level

LEVEL = processor_level.processor_level()
pytestmark = [
    pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not()),
    pytest.mark.skipif(not LEVEL, reason="the processor has none of the levels"),
]
WORKLOADS = """
def workloads():
    import torchlite as torch
    F = torch.nn.functional
    x = torch.linspace(-3, 3, 1 << 17).reshape(256, 512)
    weight = torch.linspace(-1, 1, 16 * 4 * 9).reshape(16, 4, 3, 3)
    yield lambda: F.gelu(x)
    yield lambda: torch.softmax(x, 1)
    yield lambda: F.conv2d(x.reshape(2, 4, 128, 128), weight)
"""
BUILD = (
    WORKLOADS
    + """
import sys
from torchlite.__main__ import main
from torchlite._cli import build_kernels
build_kernels._run_all_workloads, build_kernels._find_programs = workloads, build_kernels.record_programs
sys.exit(main(sys.argv[1:]))
"""
)
USE = (
    WORKLOADS
    + """
import hashlib
import torchlite as torch
print(torch.backends.cpu.get_kernel_engine())
for run in workloads():
    print(hashlib.sha256(run().numpy().tobytes()).hexdigest())
print("loaded", *sorted({*LOADED}))
"""
)
# What loads a program: the name of the function that found its bytes.
WATCH = """
LOADED = []
from torchlite_backends.cc import kernel_distribution, program_build
def watch(module, name, kind):
    plain = getattr(module, name)
    def watched(*arguments):
        found = plain(*arguments)
        if found is not None:
            LOADED.append(kind)
        return found
    setattr(module, name, watched)
watch(kernel_distribution, "load_program", "distributed")
watch(program_build, "open_cached", "cached")
watch(program_build, "compile_program", "compiled")
"""


def _python(code, *arguments, folder, path=(), compiler=True, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCHLITE_")}
    environment |= {"TORCHLITE_CACHE_DIR": str(folder), "TORCHLITE_KERNEL_HINT": "0", **variables}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (*map(str, path), environment.get("PYTHONPATH", ""))))
    if not compiler:
        environment |= {"PATH": str(folder), "CXX": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def _use(folder, *path, **options):
    """Return the engine, the digests of the results, how programs were loaded, and what was said."""
    done = _python(WATCH + USE, folder=folder, path=path, **options)
    engine, *digests, loaded = done.stdout.splitlines()
    return engine, digests, set(loaded.split()[1:]), done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The cache in which `build-kernels` built a few programs for the processor's level, with their archive."""
    folder = tmp_path_factory.mktemp("built")
    archive = str(folder / f"{LEVEL}.kernels")
    _python(
        BUILD, "build-kernels", "--level", LEVEL, "--archive", archive, folder=folder, TORCHLITE_CPU_KERNELS="cc"
    )  # fmt: skip
    return folder


@pytest.fixture
def package(built, tmp_path):
    """A folder with the package, for PYTHONPATH."""
    folder = tmp_path / "site" / "torchlite_kernels"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(f"__version__ = '{__torchlite_version__}'\n")
    (folder / f"{LEVEL}.kernels").write_bytes((built / f"{LEVEL}.kernels").read_bytes())
    return folder


@pytest.fixture(scope="module")
def by_numpy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numpy")
    return _use(folder, compiler=False)


def test_without_a_compiler_the_results_are_those_of_built_kernels(package, built, tmp_path, by_numpy):
    engine, digests, loaded, said = _use(tmp_path, package.parent, compiler=False)
    assert (engine, loaded, said) == ("cc", {"distributed"}, "")
    assert (engine, digests) == _use(built, TORCHLITE_CPU_LEVEL=LEVEL)[:2]
    assert by_numpy[0] == "numpy" and by_numpy[1] != digests  # so these were computed by the kernels


def test_info_names_the_distribution(package, tmp_path):
    done = _python(
        "import sys; from torchlite.__main__ import main; sys.exit(main(['info']))",
        folder=tmp_path, path=[package.parent], compiler=False,
    )  # fmt: skip
    line = rf"cc +serves: \d+ kernels of torchlite-nd-kernels {re.escape(__torchlite_version__)} for {LEVEL}\n"
    assert re.search(line, done.stdout)


def test_a_program_that_is_not_in_it_is_numpys_or_built_for_the_same_level(package, tmp_path):
    code = WATCH + (
        "import torchlite as torch\nx = torch.linspace(-3, 3, 1 << 20)\n"
        "assert (torch.erfinv(x / 4).isfinite()).all()\nprint(*LOADED)"
    )
    assert "distributed" not in _python(code, folder=tmp_path, path=[package.parent]).stdout
    asked = _python(code, folder=tmp_path, path=[package.parent], TORCHLITE_CPU_KERNELS="cc")
    assert "compiled" in asked.stdout
    level = "from torchlite_backends.cc import program_build; print(program_build.select_level())"
    assert _python(level, folder=tmp_path, path=[package.parent]).stdout.strip() == LEVEL


def test_a_compiled_function_needs_no_compiler(package, tmp_path):
    code = (
        "import torchlite as torch\nx = torch.linspace(-3, 3, 1 << 18)\n"
        "step = torch.compile(lambda x: torch.sigmoid(x * 2 + 1) * x)\n"
        "for _ in range(4):\n    y = step(x)\nassert torch.allclose(y, torch.sigmoid(x * 2 + 1) * x)"
    )
    assert _python(code, folder=tmp_path, path=[package.parent], compiler=False).stderr == ""


def test_kernels_that_the_user_built_for_the_processor_come_first(package, tmp_path):
    _python(BUILD, "build-kernels", folder=tmp_path, path=[package.parent], TORCHLITE_CPU_KERNELS="cc")
    assert _use(tmp_path, package.parent)[0::2] == ("cc", {"cached"})
    named = _use(tmp_path, package.parent, TORCHLITE_CPU_LEVEL=LEVEL)
    assert named[0::2] == ("cc", {"distributed"})


def test_numpy_and_native_leave_it_alone(package, tmp_path, by_numpy):
    for variables in ({"TORCHLITE_CPU_KERNELS": "numpy"}, {"TORCHLITE_CPU_LEVEL": "native"}):
        assert _use(tmp_path, package.parent, **variables) == by_numpy


@pytest.mark.skipif(LEVEL == processor_level.BASELINE, reason="the architecture has one level")
def test_a_level_of_wider_processors_is_refused(package, tmp_path, by_numpy):
    disabled = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"} if LEVEL == "x86-64-v4" else {}
    if not disabled:
        pytest.skip("the processor has no level below its own")
    (package / "x86-64-v3.kernels").write_bytes((package / f"{LEVEL}.kernels").read_bytes())
    engine, _, loaded, said = _use(
        tmp_path, package.parent, TORCHLITE_CPU_LEVEL="x86-64-v4", **disabled, TORCHLITE_CPU_KERNELS="cc"
    )
    assert (engine, loaded) == ("numpy", set()) and "this processor lacks instructions of x86-64-v4" in said


def _is_refused(package, folder, by_numpy, why):
    """Check that the package is not used, and that one line says why."""
    engine, digests, loaded, said = _use(folder, package.parent)
    assert (engine, digests, loaded) == by_numpy[:3]
    (line,) = [line for line in said.splitlines() if "Warning" in line]
    assert re.search(why, line), line


def test_another_version_is_refused(package, tmp_path, by_numpy):
    (package / "__init__.py").write_text("__version__ = '0.0.9'\n")
    why = rf"torchlite-nd-kernels 0.0.9 is not used: this is torchlite-nd {__torchlite_version__}; pip install"
    _is_refused(package, tmp_path, by_numpy, why)


def test_a_damaged_file_is_refused(package, tmp_path, by_numpy):
    path = package / f"{LEVEL}.kernels"
    path.write_bytes(path.read_bytes()[:-5])
    _is_refused(package, tmp_path, by_numpy, "is not used: .* is damaged; pip install --force-reinstall")


def test_a_file_without_the_level_is_refused(package, tmp_path, by_numpy):
    (package / f"{LEVEL}.kernels").rename(package / "other.kernels")
    _is_refused(package, tmp_path, by_numpy, f"is not used: it has kernels for other, and not for {LEVEL}")


def test_a_package_that_is_another_one_is_refused(package, tmp_path, by_numpy):
    (package / "__init__.py").write_text("")
    _is_refused(package, tmp_path, by_numpy, "torchlite-nd-kernels of an unknown version is not used")


@pytest.mark.parametrize("fact", ["sources", "flags"])
def test_kernels_of_another_source_are_refused(package, tmp_path, by_numpy, fact):
    from torchlite_backends.cc.kernel_archive import KernelArchive, write_archive

    path = package / f"{LEVEL}.kernels"
    archive = KernelArchive(path)
    facts = archive.facts | {fact: "0" if fact == "sources" else archive.facts["flags"][1:]}
    write_archive(path, [(key, archive.read(key)) for key in archive], facts)
    _is_refused(package, tmp_path, by_numpy, "is not used: it was built from another source; pip install")


def test_a_damaged_program_is_numpys(package, tmp_path, by_numpy):
    from torchlite_backends.cc.kernel_archive import KernelArchive

    path = package / f"{LEVEL}.kernels"
    archive, data = KernelArchive(path), path.read_bytes()
    start = len(data) - archive.facts["bytes"]
    path.write_bytes(data[:start] + b"\0" * archive.facts["bytes"])
    engine, digests, loaded, said = _use(tmp_path, package.parent)
    assert (engine, digests, loaded) == ("cc", by_numpy[1], set())
    (line,) = [line for line in said.splitlines() if "Warning" in line]
    assert "a kernel of torchlite-nd-kernels cannot be loaded, NumPy computes: " in line and "is damaged" in line
