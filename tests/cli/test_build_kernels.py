"""`python -m torchlite build-kernels`: which programs it finds."""

import os
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())
def test_every_native_program_is_built_in_advance(tmp_path):
    code = (
        "import importlib\n"
        "from torchlite._cli import build_kernels\n"
        "from torchlite_backends.cc import native_gemm, native_kernel, native_mt19937, native_parallel_gemm, "
        "native_small_arrays\n"
        "modules = [importlib.import_module(f'torchlite_backends.cc.{name}') for name in native_kernel._MODULES]\n"
        "modules += [native_parallel_gemm, native_small_arrays, native_mt19937] + [native_gemm] * "
        "native_gemm.has_avx512()\n"
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
    assert done.stdout.startswith("no C++ compiler was found")
