"""`python -m torchlite build-kernels`: prebuilds the compiled CPU kernels of common programs.

They are found by running the ops below with an engine that records the programs it would build: large-array ops per
dtype and operand layout, and training steps of small networks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlite.utils._progress_bar import make_progress_bar

from .command_line import CommandError
from .info import cache_folders

if TYPE_CHECKING:
    from torchlite.backends.protocol import AnyBackend

_VARIABLE, _LEVEL_VARIABLE = "TORCHLITE_CPU_KERNELS", "TORCHLITE_CPU_LEVEL"
_LEVELS = "native", "x86-64-v3", "x86-64-v4", "baseline"
_SECONDS_PER_PROGRAM = 0.4  # of one processor
_SHOWN_FAILURES = 5
_FLOATS = ("float32", "float64", "bfloat16", "float16")
_DESCRIPTION = """\
Builds the compiled CPU kernels that common programs ask for, and stores them in the cache folder. Every later
program of this user loads them. Needs a C++ compiler: g++ or clang++, or the one that CXX names.

This takes several minutes. What was built stays after Ctrl-C, and is not built again.
"""
_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc "
    "erfinv lgamma digamma sqrt rsqrt floor ceil trunc round frac abs neg square reciprocal sign relu logit sinc "
    "isnan isinf isfinite nan_to_num"
).split()
_ACTIVATIONS = (
    "relu gelu silu mish elu softplus leaky_relu hardswish hardsigmoid softshrink sigmoid tanh relu6 hardtanh "
    "logsigmoid celu selu"
).split()
_BINARY = "add sub mul div maximum minimum fmax fmin pow atan2 hypot fmod remainder floor_divide copysign".split()
_COMPARISONS = "eq ne lt le gt ge".split()
_TRUTH = "logical_and logical_or logical_xor isclose heaviside nextafter".split()
_BESSEL = """bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 airy_ai modified_bessel_i0 modified_bessel_i1
    modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1""".split()


def add_parser(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser(
        "build-kernels",
        help="build the compiled CPU kernels of common programs (needs a C++ compiler)",
        description=_DESCRIPTION,
        epilog="examples:\n  torchlite build-kernels\n"
        "  TORCHLITE_CACHE_DIR=/opt/cache torchlite build-kernels    in a folder that several users read\n"
        "  torchlite build-kernels --level x86-64-v3    for programs with TORCHLITE_CPU_LEVEL=x86-64-v3",
    )
    parser.add_argument(
        "--level",
        choices=_LEVELS,
        help="instructions of the kernels: native (the default, all of this processor), x86-64-v3 or x86-64-v4, and "
        "baseline on other architectures",
    )
    parser.add_argument("--list", metavar="FILE", help=argparse.SUPPRESS)
    # For a package of kernels: they are built, and written to a file.
    parser.add_argument("--archive", metavar="FILE", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; return 0 if all kernels are built, else 1."""
    if options.list:
        Path(options.list).write_text(json.dumps(record_programs()))
        return 0
    before = os.environ.get(_LEVEL_VARIABLE)
    # Not the level of an installed package of kernels, which a program has without the variable.
    os.environ[_LEVEL_VARIABLE] = options.level or before or "native"
    try:
        return _find_and_build(options)
    finally:
        if before is None:
            del os.environ[_LEVEL_VARIABLE]
        else:
            os.environ[_LEVEL_VARIABLE] = before


def _find_and_build(options: argparse.Namespace) -> int:
    from torchlite._dispatch.backend_registry import backend_of

    backend: Any = backend_of("cpu")
    try:
        why = backend.why_not_buildable()
    except RuntimeError as error:
        raise CommandError(str(error)) from None
    if why:
        raise CommandError(why)
    start = time.monotonic()
    _say("Finding the kernels of common programs. This takes about half a minute.")
    for dtype in _left_out_dtypes():
        _say(f"Kernels of {dtype} are left out: they need ml_dtypes (pip install ml_dtypes).")
    texts = _find_programs()
    minutes = max(1, round(len(texts) * _SECONDS_PER_PROGRAM / (os.cpu_count() or 1) / 60))
    _say(
        f"Building {len(texts)} kernels in {cache_folders()['torchlite (TORCHLITE_CACHE_DIR)']}. Those that are "
        f"there already are kept; without any this takes about {minutes} min with {os.cpu_count()} processors. "
        "After Ctrl-C the same command goes on where it stopped."
    )
    failed = _build(backend, texts)
    for message in failed[:_SHOWN_FAILURES]:
        print(message, file=sys.stderr)
    _say(f"{len(texts) - len(failed)} kernels are ready ({time.monotonic() - start:.0f} s).")
    if failed:
        raise CommandError(f"{len(failed)} kernels could not be built; NumPy computes instead of them")
    if options.archive:
        backend.archive_kernels(texts, options.archive)
    return 0


def _say(text: str) -> None:
    """Print a line at once, also where the output is no terminal."""
    print(text, flush=True)


def _left_out_dtypes() -> list[str]:
    """Return the dtypes of `_FLOATS` that this environment lacks."""
    import torchlite as torch

    return [name for name in _FLOATS if not _has_dtype(getattr(torch, name))]


def _has_dtype(dtype: Any) -> bool:
    try:
        dtype.np  # noqa: B018 (loads ml_dtypes)
    except ImportError:
        return False
    return True


def _find_programs() -> list[str]:
    """Return the sources of the programs, which a process with the compiled kernels' engine records."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "programs.json"
        done = subprocess.run(
            [sys.executable, "-m", "torchlite", "build-kernels", "--list", str(place)],
            env={**os.environ, _VARIABLE: "cc"}, check=False, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
            raise CommandError(f"the kernels of common programs could not be found: {last}")
        return json.loads(place.read_text())


def _build(backend: AnyBackend, texts: list[str]) -> list[str]:
    """Build the programs that are missing, and show the progress; return the messages of those that failed."""
    bar: Any = None

    def show_progress(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            _say(f"{total} libraries are to be built: kernels, and those that all kernels share.")
            bar = make_progress_bar(total, desc="kernels", unit="kernels")
        bar.update(done - bar.n)

    failed = backend.build_kernels(texts, show_progress)
    if bar is not None:
        bar.close()
    return failed


def record_programs() -> list[str]:
    """Return the sources of the programs, in a process started with `TORCHLITE_CPU_KERNELS=cc`."""
    from torchlite._dispatch.backend_registry import backend_of

    backend: Any = backend_of("cpu")
    return backend.record_kernels(_run_all)


def _run_all() -> None:
    for step in _run_all_workloads():
        with contextlib.suppress(Exception):  # results are meaningless here, so an op may reject them
            step()


def _run_all_workloads() -> Iterator[Callable[[], Any]]:
    import torchlite as torch

    for dtype in filter(_has_dtype, (getattr(torch, name) for name in _FLOATS)):
        yield from _run_elementwise_ops(torch, dtype)
        yield from _run_reductions_and_scans(torch, dtype)
        yield from _run_inference_layouts(torch, dtype)
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
        yield from _run_integer_ops(torch, dtype)
    yield from _run_networks(torch)


def _run_with_gradient(function: Callable, *inputs: Any) -> Callable[[], None]:
    def run_forward_backward() -> None:
        leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
        for one in (False, True):  # separate gradients, and one number for all
            out = function(*leaves)
            out = out[0] if isinstance(out, tuple) else out
            if out.requires_grad:
                out.sum().backward() if one else out.backward(out.detach())

    return run_forward_backward


def _run_elementwise_ops(torch: Any, dtype: Any) -> Iterator[Callable[[], Any]]:
    F = torch.nn.functional
    x, y = torch.ones(256, 512, dtype=dtype), torch.ones(256, 512, dtype=dtype)
    for name in _UNARY:
        yield _run_with_gradient(getattr(torch, name), x)
        yield lambda name=name: getattr(torch, name)(x.t())
    for name in _ACTIVATIONS:
        yield _run_with_gradient(getattr(F, name), x)
    yield _run_with_gradient(lambda v: F.gelu(v, approximate="tanh"), x)
    images = torch.ones(8, 32, 32, 32, dtype=dtype)
    scores = torch.ones(4, 8, 64, 64, dtype=dtype)
    pairs = (
        (x, y), (x, 2.5), (2.5, x), (x, 2), (x, y[0]), (x, y[:, :1]), (x, y.t().contiguous().t()),
        (images, images[:1, :, :1, :1]), (images, images[:, :, :1, :1]), (scores, scores[:1, :1]),
        (scores, scores[:, :1, :1]), (images, images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)),
        (x, x[::2].repeat_interleave(2, 0)), (x[:, :256], y[:, 256:]), (scores.transpose(1, 2), scores.transpose(1, 2)),
    )  # fmt: skip
    for name in _BINARY:
        for a, b in pairs if name in ("add", "sub", "mul", "div", "maximum") else pairs[:6]:
            yield lambda name=name, a=a, b=b: getattr(torch, name)(a, b) if torch.is_tensor(a) else a * b - b / a
            if torch.is_tensor(b):
                yield _run_with_gradient(getattr(torch, name), a, b)
    for name in _COMPARISONS:
        for b in (y, 0.5, y[0]):
            yield lambda name=name, b=b: getattr(torch, name)(x, b)
    for name in _TRUTH:
        yield lambda name=name: getattr(torch, name)(x, y)
    yield lambda: torch.logical_not(x)
    yield lambda: torch.flip(x, (1,))
    if dtype is torch.float32:
        for name in _BESSEL:
            yield lambda name=name: getattr(torch.special, name)(x)
    for b in (y, 1.5, y[0]):
        yield lambda b=b: torch.where(x > 0, x, b)
    yield lambda: x.masked_fill(x > 0, 0.0)
    yield lambda: scores.masked_fill(scores[:1, :1] > 0, -1e9)
    yield lambda: torch.addcmul(x, x, y, value=0.5)
    yield lambda: torch.addcdiv(x, x, y, value=0.5)
    yield lambda: torch.lerp(x, y, 0.5)
    yield lambda: x.clamp(-1, 1)
    yield lambda: x.clamp(min=0)
    yield lambda: x.clamp(max=6)
    for in_place in ("add_", "mul_", "sub_", "div_"):
        for b in (y, 2.0, y[0]):
            yield lambda in_place=in_place, b=b: getattr(x.clone(), in_place)(b)


def _run_reductions_and_scans(torch: Any, dtype: Any) -> Iterator[Callable[[], Any]]:
    F = torch.nn.functional
    x, images = torch.ones(256, 512, dtype=dtype), torch.ones(8, 32, 32, 32, dtype=dtype)
    scores = torch.ones(4, 8, 64, 64, dtype=dtype)
    for name in ("sum", "mean", "amax", "amin", "var", "std", "prod", "logsumexp", "argmax", "argmin", "norm"):
        for v, dims in ((x, (None, 0, 1, -1)), (images, (1, (0, 2, 3), (2, 3))), (scores, (-1, 0))):
            for dim in dims:
                for keepdim in (False, True):
                    options = {} if dim is None else {"dim": dim, "keepdim": keepdim}
                    yield lambda name=name, v=v, o=options: getattr(torch, name)(v, **o)
    for v in (x, images, scores):
        for dim in (1, -1):
            for name in ("softmax", "log_softmax", "cumsum", "cumprod"):
                yield _run_with_gradient(lambda t, name=name, dim=dim: getattr(torch, name)(t, dim), v)
            for name in ("sort", "max", "min", "cummax", "logcumsumexp", "median"):
                yield lambda name=name, v=v, dim=dim: getattr(torch, name)(v, dim)
            yield lambda v=v, dim=dim: v.sort(dim, descending=True)
            yield lambda v=v, dim=dim: v.topk(10, dim)
            yield lambda v=v, dim=dim: v.topk(1, dim)
    rows, weight = torch.zeros(256, 64, dtype=torch.int64), torch.ones(512, dtype=dtype)
    yield _run_with_gradient(lambda t: t.gather(1, rows), x)
    yield _run_with_gradient(lambda t: t.index_select(0, rows[0]), x)
    yield _run_with_gradient(lambda t: F.embedding(rows, t), x)
    yield lambda: x.index_add(0, rows[0], x[:64])
    for given in ((weight, weight), (weight, None), (None, None)):
        yield _run_with_gradient(lambda t, w=given[0], b=given[1]: F.layer_norm(t, (512,), w, b), x)
    yield _run_with_gradient(lambda t, w: F.layer_norm(t, (512,), w, w), x, weight)
    yield _run_with_gradient(lambda t, w: F.rms_norm(t, (512,), w), x, weight)
    channel = torch.ones(32, dtype=dtype)
    yield _run_with_gradient(
        lambda t, w: F.batch_norm(t, channel.clone(), channel.clone(), w, w, True), images, channel
    )
    yield lambda: F.batch_norm(images, channel, channel, channel, channel, False)
    yield _run_with_gradient(lambda t, w: F.group_norm(t, 8, w, w), images, channel)
    yield _run_with_gradient(lambda t: F.cross_entropy(t, rows[:, 0]), x)
    yield lambda: F.max_pool2d(images, 2)
    yield lambda: F.avg_pool2d(images, 2)
    yield lambda: x.t().contiguous()
    yield lambda: scores.transpose(1, 2).contiguous()
    yield lambda: images.permute(0, 2, 3, 1).contiguous()
    yield lambda: torch.cat([x, x], 0)
    yield lambda: torch.cat([x, x], 1)
    yield lambda: x.flip(0)
    yield lambda: x.roll(3, 1)
    yield lambda: x.tril()
    yield lambda: x.to(torch.float64 if dtype == torch.float32 else torch.float32)
    yield lambda: x.to(torch.int64)


def _run_inference_layouts(torch: Any, dtype: Any) -> Iterator[Callable[[], Any]]:
    """Forward passes over the layouts of images, attention and long rows."""
    F = torch.nn.functional
    x, images, scores = (torch.ones(*shape, dtype=dtype) for shape in ((256, 512), (8, 32, 32, 32), (4, 8, 64, 64)))
    last = images.contiguous(memory_format=torch.channels_last)
    pairs = ((x, x[0, 0]), (x[None], x), (images, images[:, :1]), (x, x[:, :1]))
    for name in (*_BINARY, *_COMPARISONS):
        for a, b in pairs:
            yield lambda name=name, a=a, b=b: getattr(torch, name)(a, b)
    for name in ("add", "sub", "mul", "div", "pow"):
        yield lambda name=name: getattr(torch, name)(last, 1.5)
    yield lambda: torch.softmax(last, 1)
    for channels in (32, 64, 256):
        yield lambda v=torch.ones(2, channels, 16, 16, dtype=dtype): v.contiguous(
            memory_format=torch.channels_last
        ).mean((2, 3))
    for inner in (32, 128):  # elements behind a reduced dimension: reductions have a form for each order of magnitude
        v = torch.ones(16, 64, inner, dtype=dtype)
        for name in ("sum", "mean", "amax", "amin", "var", "std", "prod", "logsumexp", "argmax", "argmin", "cumsum"):
            yield lambda name=name, v=v: getattr(torch, name)(v, 1)
    long = torch.ones(2, 1 << 20, dtype=dtype)
    yield lambda: long.logsumexp(-1)
    yield lambda: long.sort()
    yield lambda: long.argsort(descending=True)
    yield lambda: F.glu(x)
    yield lambda: x.repeat(2, 1)
    yield lambda: scores.masked_fill(scores[:, :1, :1] > 0, -1e9)
    turned, half = scores[0, 0], scores.shape[-1] // 2
    yield lambda: scores * turned + torch.cat([-scores[..., half:], scores[..., :half]], -1) * turned
    yield lambda: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x**3)))


def _run_integer_ops(torch: Any, dtype: Any) -> Iterator[Callable[[], Any]]:
    x = torch.ones(512, 512, dtype=dtype)
    for name in ("add", "mul", "sub", *_COMPARISONS):
        for b in (x, 1, x[0]):
            yield lambda name=name, b=b: getattr(torch, name)(x, b)
    for name in ("sum", "any", "all", "count_nonzero"):
        for dim in (None, 0, 1):
            yield lambda name=name, dim=dim: getattr(torch, name)(x, *(() if dim is None else (dim,)))
    for to in (torch.float32, torch.int64, torch.bool):
        yield lambda to=to: x.to(to)
    yield lambda: x.t().contiguous()
    yield lambda: torch.cat([x, x], 1)
    yield lambda: x.clone()
    yield lambda: x.sort(1)
    yield lambda: x.cumsum(1)
    yield lambda: x.gather(1, torch.zeros(512, 64, dtype=torch.int64))


def _run_networks(torch: Any) -> Iterator[Callable[[], Any]]:
    nn = torch.nn
    layers = (
        (nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), torch.ones(16, 64, 64)),
        (nn.TransformerEncoderLayer(64, 4, 256, activation="gelu", norm_first=True), torch.ones(64, 16, 64)),
        (nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
         torch.ones(16, 3, 32, 32)),
        (nn.Sequential(nn.Conv2d(16, 16, 3, groups=16), nn.BatchNorm2d(16), nn.ReLU6(), nn.Conv2d(16, 32, 1)),
         torch.ones(16, 16, 32, 32)),
        (nn.Sequential(nn.Conv1d(16, 16, 3, dilation=2), nn.Tanh(), nn.AdaptiveAvgPool1d(1)), torch.ones(16, 16, 512)),
        (nn.LSTM(64, 128, batch_first=True), torch.ones(32, 32, 64)),
        (nn.GRU(64, 128), torch.ones(32, 32, 64)),
        (nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 64)), torch.ones(512, 64)),
        (nn.Sequential(nn.Linear(64, 512), nn.SiLU(), nn.Dropout(0.1), nn.Linear(512, 64)), torch.ones(512, 64)),
    )  # fmt: skip
    for layer, x in layers:
        yield _run_with_gradient(layer, x)
        yield lambda layer=layer, x=x: layer.eval()(x)
    starts, columns = torch.arange(513) * 64, torch.arange(1 << 15) % 64
    sparse, dense = torch.sparse_csr_tensor(starts, columns, torch.ones(1 << 15), (512, 512)), torch.ones(512, 64)
    yield _run_with_gradient(lambda x: torch.sparse.mm(sparse, x), dense)
    yield lambda: torch.sparse.sampled_addmm(sparse, dense, dense.t())
    square = torch.ones(512, 512, dtype=torch.float64)
    yield lambda: square @ square
    for dtype in (torch.float32, torch.float64):
        yield lambda layer=nn.Linear(1024, 1024).to(dtype), dtype=dtype: layer(torch.ones(1, 1024, dtype=dtype))
    query = torch.ones(1, 4, 1, 32)
    yield lambda: torch.nn.functional.scaled_dot_product_attention(query, query, query)
    yield lambda: torch.rand(1 << 16)
    yield lambda: torch.randn(1 << 10)
    yield lambda: torch.randperm(1 << 10)
    yield lambda: torch._standard_gamma(torch.ones(1 << 10))
    yield lambda: torch.poisson(torch.ones(1 << 10))
    yield from _run_recurrent_steps(torch)
    for optimizer in (torch.optim.AdamW, torch.optim.SGD):
        yield lambda optimizer=optimizer: _run_optimizer_steps(torch, optimizer)


def _run_recurrent_steps(torch: Any) -> Iterator[Callable[[], Any]]:
    """Recurrent layers of files."""
    from torchlite._dispatch import F

    usual = tuple((name, None, None) for name in ("sigmoid", "tanh", "tanh"))
    for dtype in (torch.float32, torch.float64):
        sums, state = torch.ones(2, 1, 64, dtype=dtype), torch.ones(1, 1, 16, dtype=dtype)
        rest = (state, state, None, None, None, None, None, "lstm", (False,), usual, None, False)
        yield lambda given=(sums, torch.ones(1, 16, 64, dtype=dtype), *rest): F._recurrent_steps(*given)
    levels = torch.ones(1, 16, 64, dtype=torch.int8)
    sums, state = torch.ones(2, 1, 64), torch.ones(1, 1, 16)
    ending = (None, None, None, torch.ones(1), None, "lstm", (False,), usual, None, False)
    yield lambda: F._recurrent_steps(sums, levels, state, state, *ending)


def _run_optimizer_steps(torch: Any, optimizer: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(256, 512))
    weight.grad = torch.ones(256, 512)
    optimizer([weight], lr=0.1).step()
