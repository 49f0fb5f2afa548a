"""Autotuning of matrix products, for `mode="max-autotune"` of compiled programs.

Inside `autotuning(device)`, planned products use the fastest of `gemm.list_candidate_configs`. An unmeasured one gets
the default, and `measure` times all of its configurations on arrays of its own size. The result is cached on disk by
device, driver, sizes and kernel source. All configurations add up in the same order.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

from torchlite._settings import fork_locks
from torchlite_backends.kernel_sources import gemm as texts

from ..array_ops.creation import full
from ..core import program_cache
from ..core.array import Array
from ..core.device import BoundedCache, Device
from .gemm import GemmShape, list_candidate_configs, plan_gemm

_ROUNDS = 6
_MAX_SECONDS = 0.5  # seconds per product, after which no new round begins
_MIN_SPEEDUP = 0.95  # maximum ratio to the default's time for another configuration to be chosen
_tuning = fork_locks.reinit_after_fork(threading.RLock())  # one thread at a time


class GemmConfigs:
    """GEMM configurations of a device: measured ones, and those to be measured."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.known: dict[tuple, Any] = device.state.setdefault("forms", {})
        self.asked: dict[tuple[str, GemmShape, bool], list] = {}

    def fastest_config_if_known(self, kind: str, sizes: GemmShape, added: bool) -> Any:
        """Return the fastest configuration if known; None for the default."""
        key = (kind, sizes, added)
        if key not in self.known:
            forms = list_candidate_configs(self.device, kind, sizes)
            if len(forms) == 1 or min(sizes.m, sizes.n) <= texts.DOTS_TILE or not _has_steps_forward(sizes):
                return None
            found = self._load(key, forms)
            if found is None:
                self.asked[key] = forms
                return None
            self.known[key] = found
        return self.known[key]

    def measure(self) -> None:
        """Measure the requested products that are not known, and invalidate plans."""
        for key, forms in self.asked.items():
            kind, sizes, added = key
            found = self.known[key] = find_fastest_config(self.device, kind, sizes, added, forms)
            program_cache.store_binary(
                self._config_cache_path(key, forms), json.dumps([forms.index(found), found]).encode()
            )
        if self.asked:
            self.asked = {}
            _forget_gemm_plans(self.device)

    def _config_cache_path(self, key: tuple, forms: list) -> Any:
        kind = key[0]
        text = texts.panels_source(kind, kind, 1) if self.device.is_cpu else texts.tiles_source(kind, kind, 8)
        return self.device.cache_path(f"form of a product\n{key}\n{self.device.units}\n{forms}\n{text}")

    def _load(self, key: tuple, forms: list) -> Any:
        """Return the configuration that an earlier process chose."""
        data = program_cache.load_binary(self._config_cache_path(key, forms))
        with contextlib.suppress(ValueError, TypeError, LookupError):
            return forms[json.loads(data or b"")[0]]
        return None


def _has_steps_forward(sizes: GemmShape) -> bool:
    steps = (*sizes.a, *sizes.b, *sizes.c, *sizes.d, *sizes.a_batch, *sizes.b_batch, *sizes.c_batch, *sizes.d_batch)
    return min(steps) >= 0


def _compute_extent(counts: tuple[int, ...], steps: tuple[int, ...]) -> int:
    return 1 + sum((n - 1) * step for n, step in zip(counts, steps, strict=True))


def find_fastest_config(device: Device, kind: str, sizes: GemmShape, added: bool, forms: list) -> Any:
    """Return the fastest configuration; the first one unless another is clearly faster."""
    s = sizes

    def make_ones(rows: int, columns: int, steps: tuple, batch: tuple) -> Array:
        return full(device, (_compute_extent((rows, columns, *s.batch), (*steps, *batch)),), 1, kind)

    a, b, c = (
        make_ones(s.m, s.k, s.a, s.a_batch),
        make_ones(s.k, s.n, s.b, s.b_batch),
        make_ones(s.m, s.n, s.c, s.c_batch),
    )
    d = make_ones(s.m, s.n, s.d, s.d_batch) if added else None
    plans = [plan_gemm(device, kind, sizes, added, form=form) for form in forms]
    times = [float("inf")] * len(forms)
    for plan in plans:  # first runs build programs and take memory
        plan.run(a, b, c, d)
    device.finish()
    end = time.perf_counter() + _MAX_SECONDS
    for _ in range(_ROUNDS):
        for i, plan in enumerate(plans):
            start = time.perf_counter()
            plan.run(a, b, c, d)
            device.finish()
            times[i] = min(times[i], time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    best = min(range(len(forms)), key=times.__getitem__)
    return forms[best] if times[best] < _MIN_SPEEDUP * times[0] else forms[0]


def _forget_gemm_plans(device: Device) -> None:
    """Invalidate the device's GEMM plans and nothing else."""
    plans = BoundedCache(device.plans.most)
    for key, plan in list(device.plans.items()):
        if key.__class__ is not tuple or key[:1] != ("product",):
            plans[key] = plan
    device.plans = plans


@contextlib.contextmanager
def autotuning(device: Device) -> Iterator[GemmConfigs]:
    """Context manager in which planned products use their fastest configurations."""
    with _tuning:
        before = device.plans
        device.forms = forms = GemmConfigs(device)
        _forget_gemm_plans(device)
        try:
            yield forms
        finally:
            device.forms, device.plans = None, before
