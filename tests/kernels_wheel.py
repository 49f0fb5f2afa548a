"""Builds both wheels, installs them, and computes with the kernels where no compiler is found: `tox -e kernels`.

    python -m tests.kernels_wheel [--kernels WHEEL]

The results must have the bits of kernels that `build-kernels --level LEVEL` built. The wheel must be small, and its
libraries may need those of C and C++ alone. Building takes some minutes for each level; `--kernels` names a
wheel that is built already.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from torchlite_backends.cc.kernel_archive import KernelArchive
from torchlite_backends.device_runtime.core import processor_level

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 15_000_000
# The C library, its mathematics, vectors and threads, the loader, and the libraries of C++, which NumPy needs too.
LIBRARIES = re.compile(rb"lib(c|m|mvec|pthread|gcc_s|stdc\+\+)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")
# Ops of inference, and which of them no compiled kernel served.
PROGRAM = """
import hashlib, sys
import torchlite as torch
from torchlite_backends.cc import program_build
from torchlite_backends.device_runtime.core.device import NotBuiltError

asked, missing = [], []
load = program_build.load_program
def watched(text, *more):
    asked.append(text)
    try:
        return load(text, False)
    except NotBuiltError:
        missing.append(text)
        raise
program_build.load_program = watched

nn, F = torch.nn, torch.nn.functional
torch.manual_seed(0)
images, tokens, rows = torch.randn(8, 32, 56, 56), torch.randn(4, 197, 768), torch.randn(1024, 1024)
heads = torch.randn(4, 12, 197, 64)
ops = {
    "conv": nn.Conv2d(32, 64, 3, padding=1), "depthwise": nn.Conv2d(32, 32, 3, groups=32),
    "stem": nn.Conv2d(32, 16, 7, 2), "scale": lambda x: x * x[:, :, :1, :1] + x[:, :1],
    "batch norm": nn.BatchNorm2d(32), "group norm": nn.GroupNorm(8, 32), "max pool": nn.MaxPool2d(3, 2, 1),
    "mean": lambda x: x.mean((2, 3)), "last": lambda x: F.relu(x.contiguous(memory_format=torch.channels_last)),
    "silu": F.silu, "hardswish": F.hardswish, "upsample": lambda x: F.interpolate(x, scale_factor=2),
}
sequences = {
    "linear": nn.Linear(768, 3072), "gelu": F.gelu, "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "layer norm": nn.LayerNorm(768), "rms norm": nn.RMSNorm(768), "softmax": lambda x: torch.softmax(x, -1),
    "log softmax": lambda x: torch.log_softmax(x, -1), "encoder": nn.TransformerEncoderLayer(768, 12, batch_first=True),
    "swiglu": lambda x: F.silu(x) * x, "glu": F.glu, "residual": lambda x: (x + x).mul(0.5).add_(x[:, :1]),
    "half": lambda x: F.gelu(x.bfloat16()), "top": lambda x: x.topk(5).values, "sum": lambda x: x.sum(1),
}
with torch.inference_mode():
    for chosen, x in ((ops, images), (sequences, tokens)):
        for name, op in chosen.items():
            if isinstance(op, nn.Module):
                op.eval()
            before = len(missing)
            out = op(x).float().numpy()
            print("result", name.replace(" ", "_"), hashlib.sha256(out.tobytes()).hexdigest(), len(missing) - before)
    attended = F.scaled_dot_product_attention(heads, heads, heads).numpy()
    print("result", "attention", hashlib.sha256(attended.tobytes()).hexdigest(), 0)
print("engine", torch.backends.cpu.get_kernel_engine(), len(asked), len(missing))
"""


def say(text: str) -> None:
    print(text, flush=True)


def build_wheel(folder: Path, to: Path, environment: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(to)]
    subprocess.run(command, check=True, cwd=folder, env=environment)
    (wheel,) = to.glob("*.whl")
    return wheel


def check_wheel(wheel: Path, to: Path) -> list[str]:
    """Check the size, the tag and the libraries of the kernels' wheel; return its levels."""
    size = wheel.stat().st_size
    say(f"{wheel.name}: {size / 1e6:.1f} MB")
    assert size < LARGEST_WHEEL
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(to)
    levels = []
    for path in sorted(to.glob("torchlite_kernels/*.kernels")):
        opened = KernelArchive(path)
        needed: set[bytes] = set()
        versions: set[int] = set()
        for key in opened:
            library = opened.read(key) or b""
            needed.update(re.findall(rb"(?<=\0)[\w.+-]+\.so(?:\.\d+)+(?=\0)", library))
            versions.update(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library))
        assert all(LIBRARIES.fullmatch(name) for name in needed), needed
        tag = re.search(r"manylinux_2_(\d+)", wheel.name)
        assert tag is None or max(versions) <= int(tag[1])
        say(
            f"{path.name}: {len(opened)} kernels, {path.stat().st_size / 1e6:.1f} MB, by {opened.facts['compiler']}; "
            f"they need {', '.join(sorted(name.decode() for name in needed))} of glibc 2.{max(versions)}"
        )
        levels.append(path.stem)
    assert levels
    return levels


def compute(python: str, environment: dict[str, str], code: str = PROGRAM) -> tuple[dict[str, list[str]], list[str]]:
    """Return {op: digest and number of missing programs}, and the engine with its numbers."""
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=environment, cwd="/")
    assert not done.stderr, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[1]: line[2:] for line in lines if line[0] == "result"}, lines[-1][1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=Path)
    options = parser.parse_args()
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TORCHLITE_") and k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernels = options.kernels or build_wheel(ROOT / "kernels", folder / "kernels", plain)
        levels = check_wheel(kernels, folder / "unpacked")
        wheel = build_wheel(ROOT, folder / "main", plain)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        python = str(folder / "venv" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel), str(kernels)], check=True)
        for level in filter(lambda level: not processor_level.why_not(level), levels):
            check_level(python, level, {**plain, "TORCHLITE_CPU_LEVEL": level}, folder)
    return 0


def check_level(python: str, level: str, environment: dict[str, str], folder: Path) -> None:
    """Compute without a compiler, with the kernels of the build's cache, and by NumPy."""
    (folder / "empty").mkdir(exist_ok=True)
    bare = {**environment, "PATH": str(folder / "empty"), "TORCHLITE_CACHE_DIR": str(folder / level)}
    bare.pop("CXX", None)
    found, engine = compute(python, bare)
    assert engine[0] == "cc" and int(engine[1]) > 20, engine
    lacking = {op: int(count) for op, (_, count) in found.items() if int(count)}
    assert not lacking, f"ops without a kernel: {lacking}"
    assert not list((folder / level).rglob("*.so"))
    by_numpy, _ = compute(python, {**bare, "TORCHLITE_CPU_KERNELS": "numpy"})
    others = [op for op in found if found[op][0] != by_numpy[op][0]]
    assert len(others) > 10, others
    say(f"{level}: {len(found)} ops by {engine[1]} kernels without a compiler; {len(others)} differ from NumPy's bits")
    cache = ROOT / "kernels" / "build"
    if not cache.is_dir():
        say(f"{level}: the comparison with build-kernels is left out, {cache} is not there")
        return
    without = f"import sys; sys.modules['torchlite_kernels'] = None\n{PROGRAM}"
    hook = runpy.run_path(str(ROOT / "kernels" / "hatch_build.py"))
    same = {**environment, **hook["compiler_of"](level), "TORCHLITE_CACHE_DIR": str(cache)}
    built, engine = compute(python, same, without)
    assert engine[0] == "cc", engine
    assert {op: digest for op, (digest, _) in built.items()} == {op: digest for op, (digest, _) in found.items()}
    say(f"{level}: the bits are those of build-kernels --level {level}")


if __name__ == "__main__":
    sys.exit(main())
