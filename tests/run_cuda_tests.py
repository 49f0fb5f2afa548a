"""The program of `tox -e cuda`: runs every device test on the GPU if there is one; otherwise reports that, compiles
every CUDA program, looks at what CuPy and NVIDIA's libraries offer, and runs CUDA's kernels on the CPU.

    python -m tests.run_cuda_tests [words for pytest ...]

The words choose among the device tests, on the GPU or on the simulator: `-k softmax`. Without a GPU and without words
the simulator gets `SAMPLES`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

# Device tests that start kernels of every family, for the simulator, which needs g++ for every program and runs it
# slowly.
SAMPLES = (
    "tests/ops/test_ops.py",
    "-k",
    "test_value and (softmax or layer_norm or batch_norm or cross_entropy or scaled_dot or conv2d or max_pool2d or "
    "cumsum or sort or matmul or sum or index_put or scatter_add or dropout or embedding or where or linalg_solve or "
    "linalg_eigh or fft_fft)",
)
LIBRARIES = ("tests/backends/cupy/test_cupy_driver.py", "tests/backends/cupy/test_cublas_and_cusolver.py")


def steps(reason: str, words: list[str], workers: int, simulator_missing: str = "") -> list[tuple[str, list[str]]]:
    """(description, arguments after `python -m`) of the steps for a machine without a usable GPU, with the reason, or
    with one (the reason is empty).
    """
    spread = ["-n", str(workers)] if workers > 1 and importlib.util.find_spec("xdist") else []
    if not reason:
        return [("every device test on the GPU", ["pytest", *spread, "--device", "cuda", "--device-only", *words])]
    found = [
        ("every CUDA program compiles to the instructions of three generations of GPUs", ["tests.nvrtc"]),
        ("CuPy and CUDA's libraries have what is asked of them", ["pytest", *LIBRARIES]),
    ]
    if not simulator_missing:
        chosen = words or list(SAMPLES)
        found.append(("the tests of the simulator", ["pytest", *spread, "tests/cuda_simulator"]))
        found += [
            (
                f"device tests on the simulator, schedule {seed}",
                [
                    "pytest",
                    *spread,
                    "--device",
                    "cuda",
                    "--simulate-cuda",
                    "--cuda-schedule",
                    str(seed),
                    "--device-only",
                    *chosen,
                ],
            )
            for seed in (1, 2)
        ]
    return found


def main(words: list[str]) -> int:
    import torchlite
    from tests.cuda_simulator import missing

    reason = torchlite.cuda.why_not()
    workers = min(os.cpu_count() or 1, 16)
    if reason:
        print(
            f"No GPU is used: {reason}.\n"
            "CUDA's programs are compiled and run on the CPU instead; nothing of this says how they do on a GPU.",
            flush=True,
        )
        if missing():
            print(f"The simulator is left out: {missing()}.", flush=True)
    failed = []
    for name, command in steps(reason, words, workers, missing()):
        print(f"--- {name}: python -m {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, "-m", *command], check=False).returncode:
            failed.append(name)
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed or reason and missing() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
