"""The ctypes signatures of cuBLAS and cuSOLVER functions match NVIDIA's headers, and the
libraries have these functions. Nothing here needs a GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path

import pytest

from torchlite_backends.cupy import cublas as blas
from torchlite_backends.cupy import cusolver as solver

FOLDERS = [
    Path(place) for place in (getattr(importlib.util.find_spec("nvidia"), "submodule_search_locations", None) or ())
]
# Names of types that are pointers or enumerations.
POINTERS = {"cublasHandle_t", "cusolverDnHandle_t", "cusolverDnParams_t", "cudaStream_t"}
NUMBERS = {
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "long long int": ctypes.c_longlong,
}


def text_of(name: str) -> str:
    """A header's text without comments."""
    found = [path for folder in FOLDERS for path in folder.glob(f"*/include/{name}")]
    if not found:
        pytest.skip(f"{name} is not installed; it comes with the extra cuda12 or cuda13")
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", found[0].read_text(errors="replace"), flags=re.DOTALL)


def parameters(header: str, function: str) -> list[type]:
    """The parameters of a function as ctypes has them."""
    (declared,) = re.findall(rf"\b(?:CUBLASWINAPI|CUSOLVERAPI)\s+{function}\s*\(([^)]*)\)\s*;", header)
    found = []
    for parameter in declared.split(","):
        kind = re.sub(r"\bconst\b", " ", parameter).split()
        name = " ".join(kind[:-1])
        if "*" in parameter or name in POINTERS:
            found.append(ctypes.c_void_p)
        else:
            found.append(NUMBERS.get(name, ctypes.c_int))  # what is left are enumerations
            assert name in NUMBERS or re.fullmatch(r"(cublas|cusolver)\w+_t|cudaDataType", name), parameter
    return found


def value(header: str, name: str) -> int:
    """The value of an enumerator."""
    return int(re.search(rf"\b{name}\s*=\s*(-?\d+)", header)[1])


LIBRARIES = {"cublas_api.h": blas, "cusolverDn.h": solver}
FUNCTIONS = [(header, name) for header, module in LIBRARIES.items() for name in module.SIGNATURES]


@pytest.mark.parametrize(("header", "name"), FUNCTIONS, ids=[name for _, name in FUNCTIONS])
def test_parameters(header, name):
    assert parameters(text_of(header), name) == list(LIBRARIES[header].SIGNATURES[name])


def test_numbers():
    header = text_of("cublas_api.h")
    assert {name: value(header, f"CUBLAS_STATUS_{name}") for name in blas._STATUS.values()} == {
        name: number for number, name in blas._STATUS.items()
    }
    assert [value(header, f"CUBLAS_OP_{x}") for x in "NTC"] == [blas.PLAIN, blas.TRANSPOSED, blas.CONJUGATED]
    assert value(header, "CUBLAS_COMPUTE_32F_FAST_TF32") == blas.COMPUTE_TF32
    assert value(header, "CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION") == blas.NO_REDUCED_SUMS
    assert value(header, "CUBLAS_GEMM_DEFAULT") == blas.DEFAULT_ALGORITHM
    assert {compute for _, compute, _ in blas.TYPES.values()} == {
        value(header, f"CUBLAS_COMPUTE_{x}") for x in ("32F", "64F", "32I")
    }
    assert [value(header, f"CUBLAS_FILL_MODE_{x}") for x in ("LOWER", "UPPER")] == [solver.LOWER, solver.UPPER]
    assert [value(text_of("cusolver_common.h"), f"CUSOLVER_EIG_MODE_{x}") for x in ("NOVECTOR", "VECTOR")] == [
        False,
        True,
    ]


def test_data_types():
    header = text_of("library_types.h")
    names = {"f16": "R_16F", "bf16": "R_16BF", "f32": "R_32F", "f64": "R_64F", "c64": "C_32F", "c128": "C_64F"}
    names[blas.LEVELS] = "R_8I"
    assert value(header, "CUDA_R_32I") == blas._SUMS_OF_LEVELS
    assert {kind: number for kind, (number, _, _) in blas.TYPES.items()} == {
        kind: value(header, f"CUDA_{name}") for kind, name in names.items()
    }
    assert solver.TYPES.items() <= {kind: number for kind, (number, _, _) in blas.TYPES.items()}.items()


@pytest.mark.parametrize("module", [blas, solver])
def test_the_libraries_have_the_functions(module):
    pattern = "libcublas.so.*" if module is blas else "libcusolver.so.*"
    found = [path for folder in FOLDERS for path in folder.glob(f"*/lib/{pattern}")]
    if not found:
        pytest.skip(f"{pattern} is not installed; it comes with the extra cuda12 or cuda13")
    pytest.importorskip("cupy", reason="CuPy, which loads what these libraries need, is not installed")
    from cupy_backends.cuda.libs import cublas, cusolver  # noqa: F401

    assert module.opened(str(found[0]))
