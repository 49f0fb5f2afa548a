"""Parameters of Triton kernels for block-sparse products, which programs measure and store: a table of the process."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._device.accelerators import CUDA
from .._types import dtypes

_NAMES = {
    "scatter_mm": ("GROUP_SIZE", "SPLIT_N", "TILE_M", "TILE_N", "num_stages", "num_warps"),
    "bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"),
    "_int_bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"),
}
# By op, name of the device and version: the values by key. PyTorch comes with those of one GPU, which have no use here.
_VALUES: dict[tuple[Any, ...], dict[tuple, tuple]] = {}


def update(op: str, device_name: Any, version: Any, key: tuple, value: tuple) -> None:
    """Store the parameters of an op for a key, such as the shapes of its inputs. Warn for no parameters.

    >>> from torchlite.sparse import _triton_ops_meta as meta
    >>> meta.update("bsr_dense_addmm", "a device", 1, (256, 256), (4, 1, 3, 2))
    >>> meta.get_meta("bsr_dense_addmm", (256, 256), "a device", 1)
    {'GROUP_SIZE_ROW': 4, 'SPLIT_N': 1, 'num_stages': 3, 'num_warps': 2}
    """
    if not value:
        warnings.warn(f"skipping empty value for {op}: {device_name=} {version=} {key=}", stacklevel=2)
        return
    _VALUES.setdefault((op, device_name, version), {})[key] = value


def get_meta(
    op: str, key: tuple, device_name: str | None = None, version: Any = (0, dtypes.float16, 0.5), exact: bool = False
) -> dict | None:
    """Return the parameters of an op for a key by name; by key, for a key with "*". None if none are stored.

    device_name: the name of the GPU, the present one by default. exact: no effect, as there are no values for similar
    GPUs.
    """
    if device_name is None:
        device_name = CUDA.get_device_name() if CUDA.is_available() else ""
    found = _VALUES.get((op, device_name, version))
    if found is None:
        return None
    if op not in _NAMES:
        raise NotImplementedError(f"names for {op=}")
    if "*" not in key:
        return dict(zip(_NAMES[op], found[key], strict=True)) if key in found else None
    return {
        other: dict(zip(_NAMES[op], values, strict=True))
        for other, values in found.items()
        if all(wanted in ("*", part) for wanted, part in zip(key, other, strict=True))
    }


def _steps(count: int, longest: int) -> Iterator[tuple[int, ...]]:
    """Yield the changes of several numbers by at most `longest` steps in all, short ones first."""
    found = itertools.product(range(-longest, longest + 1), repeat=count)
    return iter(sorted((s for s in found if 0 < sum(map(abs, s)) <= longest), key=lambda s: (sum(map(abs, s)), s)))


def minimize(
    target_func: Callable[[dict], float],
    initial_parameters: dict,
    reference_parameters: dict,
    step_func: Callable[[str, int, int, dict], int],
    max_step: int = 2,
    verbose: bool = False,
    all_values: dict | None = None,
) -> tuple[dict, float, float, str]:
    """Return the parameters with the smallest target, the gain over the reference in percent, the target, and a text.

    From the initial parameters a step goes to the first neighbour with a smaller target, until there is none.
    `step_func(name, value, direction, parameters)` returns the next value of a parameter; the same value means that
    there is none. `all_values` gets the target of each tuple of values, or the text of its error. With `verbose` errors
    are printed.

    >>> from torchlite.sparse._triton_ops_meta import minimize
    >>> minimize(lambda p: (p["a"] - 3.0) ** 2 + 1, {"a": 0}, {"a": 1}, lambda name, value, step, p: value + step)[:3]
    ({'a': 3}, 80.0, 1.0)
    """
    values = {} if all_values is None else all_values
    names = sorted(initial_parameters)

    def measure(parameters: dict) -> float | None:
        key = tuple(parameters[name] for name in names)
        if key not in values:
            try:
                values[key] = target_func(parameters)
            except Exception as error:  # parameters that a kernel cannot have may fail in any way
                values[key] = str(error)
                if verbose:
                    print(f"{parameters} lead to failure: {error}")
        return None if isinstance(values[key], str) else values[key]

    reference, best, least = measure(reference_parameters), initial_parameters, measure(initial_parameters)
    if least is None:
        if reference is None:
            return {}, -1, -1, values[tuple(initial_parameters[name] for name in names)]
        best, least = reference_parameters, reference
    while True:
        for steps in _steps(len(names), max_step):
            moves = [(name, step) for name, step in zip(names, steps, strict=True) if step]
            changed = {name: step_func(name, best[name], step, best) for name, step in moves}
            if any(changed[name] == best[name] for name in changed):
                continue
            found = measure(best | changed)
            if found is not None and found < least:
                best, least = best | changed, found
                break
        else:
            break
    reference = least if reference is None else reference
    if least > reference:
        return minimize(target_func, reference_parameters, reference_parameters, step_func, max_step, verbose, values)
    return best, (1 - least / reference) * 100, least, _sensitivity(best, least, names, values)


def _sensitivity(best: dict, least: float, names: list[str], values: dict) -> str:
    """Return how much the target grows, in percent, where one parameter has another value."""
    texts = []
    for name in names:
        others = {
            key[names.index(name)]: found
            for key, found in values.items()
            if not isinstance(found, str)
            and all((part == best[other]) != (other == name) for other, part in zip(names, key, strict=True))
        }
        grown = [f"{value} ({(found / least - 1) * 100:.1f}%)" for value, found in sorted(others.items())]
        texts += [f"{name}={best[name]}, others: {', '.join(grown)}"] if grown else []
    return "; ".join(texts)
