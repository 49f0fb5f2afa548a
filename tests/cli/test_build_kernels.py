"""`python -m torchlite build-kernels`: which programs it finds."""

import os
import subprocess
import sys

import pytest

from torchlite.__main__ import main
from torchlite._cli import build_kernels
from torchlite_backends.cc import cxx_compiler


@pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
def test_the_programs_of_common_ops_are_found_without_building_any(tmp_path):
    code = (
        "import torchlite as torch\n"
        "from torchlite._cli import build_kernels\n"
        "build_kernels._run_all_workloads = lambda: iter([lambda: torch.ones(256, 256).erf(), lambda: 1 / 0])\n"
        "print(len(build_kernels.record_programs()))\n"
    )
    environment = {**os.environ, "TORCHLITE_CPU_KERNELS": "cc", "TORCHLITE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["1"], done.stderr
    assert not list(tmp_path.rglob("*.so"))


@pytest.mark.night
@pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
def test_every_native_program_is_built_in_advance(tmp_path):
    code = (
        "import importlib\n"
        "from torchlite._cli import build_kernels\n"
        "from torchlite_backends.device_runtime.core.processor_level import has_avx512\n"
        "from torchlite_backends.cc import native_gemm, native_kernel, native_mt19937, native_parallel_gemm, "
        "native_samplers, native_small_arrays\n"
        "modules = [importlib.import_module(f'torchlite_backends.cc.{name}') for name in native_kernel._MODULES]\n"
        "modules += [native_parallel_gemm, native_small_arrays, native_mt19937, native_samplers] + [native_gemm] * "
        "has_avx512()\n"
        "texts = {v for m in modules for v in vars(m).values() if isinstance(v, str) and '\\nENTRY(' in v "
        "and 'ENTRY({' not in v}\n"
        "print(len(texts) > 5, len(texts - set(build_kernels.record_programs())))\n"
    )
    environment = {**os.environ, "TORCHLITE_CPU_KERNELS": "cc", "TORCHLITE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["True", "0"], done.stderr


def test_a_missing_compiler_is_reported(tmp_path):
    environment = {**os.environ, "PATH": str(tmp_path), "CXX": ""}
    done = subprocess.run(
        [sys.executable, "-m", "torchlite", "build-kernels"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 1
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert "build-kernels: error: no C++ compiler was found: install g++ or clang++" in done.stderr


class Engine:
    """Takes the place of the CPU's backend: has built the first program already, and cannot build a text "bad"."""

    def why_not_buildable(self):
        return ""

    def build_kernels(self, texts, done):
        for count in range(1, len(texts)):
            done(count, len(texts) - 1)
        return ["no such type"] * texts.count("bad")


@pytest.mark.parametrize(("texts", "status"), [(["a", "b", "c"], 0), (["a", "bad", "c"], 1), (["a"], 0)])
def test_the_plan_is_said_before_and_the_progress_in_lines(monkeypatch, capsys, tmp_path, texts, status):
    monkeypatch.setattr("torchlite._dispatch.backend_registry.backend_of", lambda name: Engine())
    monkeypatch.setattr(build_kernels, "_find_programs", lambda: texts)
    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))
    assert main(["build-kernels"]) == status
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("Finding the kernels")
    plan = next(line for line in lines if line.startswith(f"Building {len(texts)} kernels in {tmp_path}"))
    assert "about 1 min with" in plan and "goes on where it stopped" in plan
    assert (any(line.startswith("2 libraries are to be built") for line in lines)) == (len(texts) == 3)
    assert lines[-1].startswith(f"{len(texts) - status} kernels are ready")
    assert err.splitlines()[:1] == ["no such type"][:status]
    assert ("1 kernels could not be built" in err) == bool(status)


def test_a_dtype_whose_package_is_missing_is_left_out():
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "from torchlite._cli import build_kernels\n"
        "print(build_kernels._left_out_dtypes())\n"
        "build_kernels._run_networks = build_kernels._run_integer_ops = lambda *a: iter([])\n"
        "print(sum(1 for step in build_kernels._run_all_workloads()) > 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["['bfloat16']", "True"], done.stderr


def test_a_failed_recording_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("torchlite._dispatch.backend_registry.backend_of", lambda name: Engine())
    failed = subprocess.CompletedProcess([], 1, stderr="Traceback ...\nOSError: the disk is full\n")
    monkeypatch.setattr(build_kernels.subprocess, "run", lambda *args, **options: failed)
    assert main(["build-kernels"]) == 1
    assert capsys.readouterr().err.endswith("could not be found: OSError: the disk is full\n")
