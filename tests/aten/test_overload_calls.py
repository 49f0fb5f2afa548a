"""Each overload of the library by its schema: what it answers is what PyTorch answered (tools/record_aten.py)."""

from __future__ import annotations

import functools
import json
import pathlib

import numpy as np
import pytest

import torchlite as torch
from torchlite._aten import allowlist
from torchlite._aten.recorded_schemas import all_names, schema_entries

aten = torch.ops.aten
CALLS = pathlib.Path(__file__).with_name("overload_calls.npz")
# Drawn numbers and fresh memory: shapes and dtypes are compared.
RANDOM = (
    "bernoulli", "binomial", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal", "multinomial",
    "normal", "poisson", "rand", "random", "rrelu", "_sample", "_standard_gamma", "uniform",
)  # fmt: skip
# Not of torchlite, or with other values that are as right: factors, signs, which of equal values comes first, digits
# of a series.
OTHERS = {
    "_ctc_loss.default", "_ctc_loss_backward.default", "_embedding_bag_backward.default",
    "_histogramdd_bin_edges.default", "_histogramdd_from_bin_cts.default", "_linalg_det.default",
    "_linalg_eigh.default", "_linalg_slogdet.default", "_linalg_svd.default", "_segment_reduce_backward.default",
    "fractional_max_pool2d_backward.default", "fractional_max_pool3d_backward.default", "linalg_eig.default",
    "linalg_lstsq.default", "multilabel_margin_loss_forward.default", "promote_types.default",
    "_dirichlet_grad.default",
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecated functions


@functools.cache
def recorded() -> dict[str, list]:
    with np.load(CALLS) as archive:
        return {call[0]: call[1:] for call in json.loads(str(archive["calls"]))}


@functools.cache
def arrays() -> dict[str, np.ndarray]:
    with np.load(CALLS) as archive:
        return {name: archive[name] for name in archive.files if name != "calls"}


def value(written):
    """Decode a recorded value."""
    if isinstance(written, list):
        return [value(v) for v in written]
    if not isinstance(written, dict):
        return written
    ((kind, held), *rest) = written.items()
    if kind == "tensor":
        return torch.from_numpy(arrays()[held].copy()).to(getattr(torch, rest[0][1].removeprefix("torch.")))
    if kind == "tuple":
        return tuple(value(v) for v in held)
    if kind == "dict":
        return {name: value(v) for name, v in held.items()}
    if kind == "named":
        return getattr(torch, held.removeprefix("torch."))
    return complex(*held) if kind == "complex" else torch.device(held)


def same(found, wanted, drawn: bool) -> None:
    if isinstance(wanted, torch.Tensor):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if not drawn:
            tolerance = 2e-2 if wanted.dtype in (torch.float16, torch.bfloat16) else 1e-5
            torch.testing.assert_close(found.detach(), wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    elif isinstance(wanted, (list, tuple)):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other, drawn)
    elif isinstance(wanted, dict):
        same(list(found.values()), list(wanted.values()), drawn)
    else:
        assert found == pytest.approx(wanted, nan_ok=True) if isinstance(wanted, float) else found == wanted


def overload(name: str):
    op, _, which = name.partition(".")
    return getattr(getattr(aten, op), which)


@pytest.mark.parametrize("name", sorted(set(recorded()) - OTHERS))
def test_answers_are_the_recorded_ones(name):
    args, kwargs, result, after = recorded()[name]
    args, kwargs = value(args), value(kwargs)
    found = overload(name)(*args, **kwargs)
    drawn = any(word in name for word in RANDOM)
    same(found, value(result), drawn)
    if after is not None:
        same(args, value(after), drawn)


@pytest.mark.parametrize("name", [n for n in sorted(set(recorded()) - OTHERS) if recorded()[n][0]["tuple"]][::9])
def test_arguments_bind_by_name(name):
    args, kwargs, result, _ = recorded()[name]
    called = overload(name)
    arguments = [a.name for a in called._schema.arguments]
    named = dict(zip(arguments, value(args), strict=False)) | value(kwargs)
    same(called(**named), value(result), any(word in name for word in RANDOM))


# What PyTorch takes in the place of a value of a type, and what it refuses.
REFUSED = {"int": (float, str, complex), "float": (str, complex), "bool": (str,), "str": (len,)}


def other_values(given, argument) -> list:
    """Values like `given`, of classes that the argument's type does not take."""
    base = {"SymInt": "int"}.get(argument.type.base, argument.type.base)
    item = given[0] if isinstance(given, list) and given else given
    if base not in REFUSED or type(item).__name__ != base:
        return []
    found = [change(item) for change in REFUSED[base]] + [None] * ("?" not in argument.type.suffixes)
    return [[other, *given[1:]] if isinstance(given, list) else other for other in found]


@pytest.mark.parametrize("name", sorted(set(recorded()) - OTHERS))
def test_arguments_of_other_types_are_refused(name):
    args, kwargs, *_ = recorded()[name]
    called = overload(name)
    for place, argument in enumerate(called._schema.arguments):
        args_now, kwargs_now = value(args), value(kwargs)
        where, key = (args_now, place) if place < len(args_now) else (kwargs_now, argument.name)
        if where is kwargs_now and key not in where:
            continue
        for other in other_values(where[key], argument):
            if isinstance(where, tuple):
                given, named = (*args_now[:place], other, *args_now[place + 1 :]), kwargs_now
            else:
                given, named = args_now, {**kwargs_now, key: other}
            with pytest.raises(RuntimeError, match=f"for argument '{argument.name}'"):
                called(*given, **named)


def test_floats_in_the_place_of_bools_are_read():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(aten.sum.dim_IntList(x, [1], 1.0), x.sum(1, keepdim=True))
    assert torch.equal(aten.cumsum.default(x, np.int64(1)), x.cumsum(1))


def test_the_core_is_called():
    core = [
        f"{name}.{which}" for name in all_names() for which, entry in schema_entries(name).items() if "a" in entry.flags
    ]  # fmt: skip
    assert len(core) == 193
    assert not set(core) - set(recorded())


@pytest.mark.parametrize("name", ["efficient", "flash"])
def test_fused_attention_has_the_values_of_attention(name, device):
    """PyTorch has these two ops on GPUs alone."""
    query, key, value = (torch.randn(1, 2, 3, 4, device=device) for _ in range(3))
    overload = getattr(aten, f"_scaled_dot_product_{name}_attention").default
    out, sums = overload(query, key, value, *((None, True) if name == "efficient" else ()))[:2]
    torch.testing.assert_close(out, torch.nn.functional.scaled_dot_product_attention(query, key, value))
    torch.testing.assert_close(sums[..., :3], (query @ key.mT / 2).logsumexp(-1))


def test_combinations_that_a_program_may_ask_for():
    check = allowlist._check_combinations
    check(torch.ones(20), 3)
    check(torch.ones(3), 1024)  # there is none
    for count, r in ((1 << 12, 4), (3, 1025)):
        with pytest.raises(RuntimeError, match=f"and not for r={r}"):
            check(torch.ones(count), r)
