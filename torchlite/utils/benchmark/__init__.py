"""Benchmarks of statements: `Timer`, its `Measurement`s, `Compare` tables of them, and random inputs (`Fuzzer`).

>>> import torchlite as torch
>>> from torchlite.utils import benchmark
>>> timer = benchmark.Timer("x @ x", globals={"x": torch.ones(8, 8)}, label="product")
>>> measurement = timer.timeit(10)
>>> measurement.number_per_run, measurement.median > 0
(10, True)
"""

from torchlite._settings.module_dir import make_module_dir

from .common import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .compare import Colorize, Compare
from .fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from .timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "Language", "Measurement",
    "ParameterAlias", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip


__dir__ = make_module_dir(globals())
