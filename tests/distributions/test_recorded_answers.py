"""Distributions, transforms, constraints and divergences answer as PyTorch does: `answers.json` has its answers to
`lines.txt` (tools/record_distributions.py).
"""

import copy
import math

import pytest

import torchlite as torch
from torchlite import distributions as D

from . import queries

ANSWERS = queries.load()
LINES = list(ANSWERS["distributions"])
pytestmark = pytest.mark.usefixtures("on_device")


@pytest.fixture
def on_device(request):
    """Tensors created from numbers are on the test's device."""
    with torch.device(request.getfixturevalue("device") if "device" in request.fixturenames else "cpu"):
        yield


# Implicit gradients are exact here, and approximated by PyTorch to a few in 10**4.
IMPLICIT = 5e-3


def apart(ours, theirs, rtol=2e-4, atol=2e-5, path=""):
    """Where two answers differ."""
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        return [
            d for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) for d in apart(a, b, rtol, atol, f"{path}/{i}")
        ]
    if isinstance(theirs, dict):
        return [d for k in theirs for d in apart(ours.get(k), theirs[k], rtol, atol, f"{path}/{k}")]
    if _is_number(ours) and _is_number(theirs):
        a, b = float(ours), float(theirs)
        if a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= atol + rtol * abs(b):
            return []
    elif ours == theirs:
        return []
    return [f"{path}: {ours} for {theirs}"]


def _is_number(x) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) or x in ("inf", "-inf", "nan")


@pytest.mark.parametrize("line", LINES)
def test_samples_are_pytorchs(line):
    drawn = queries.drawn(torch, queries.Asked(torch, line))
    assert not apart(drawn, ANSWERS["distributions"][line]["drawn"])


@pytest.mark.parametrize("line", LINES)
def test_samples_move_with_parameters(line):
    moved = queries.moved(torch, queries.Asked(torch, line))
    if "inplace operation" in str(ANSWERS["distributions"][line]["moved"]):
        assert isinstance(moved, list)  # PyTorch's Wishart spoils its own backward
        return
    assert not apart(moved, ANSWERS["distributions"][line]["moved"], rtol=IMPLICIT, atol=1e-4)


@pytest.mark.parametrize("line", LINES)
def test_densities(line, device):
    answers = copy.deepcopy(ANSWERS["distributions"][line])
    told = queries.told(torch, queries.Asked(torch, line, device), answers["drawn"]["sample 3"], device)
    if "Kumaraswamy" in line:
        del answers["told"]["mode"]  # PyTorch's is NaN for all parameters (test_distribution.py has the values)
    assert not apart(told, answers["told"])


@pytest.mark.parametrize("one", range(len(queries.lines("divergences"))))
def test_divergences(one):
    lines = queries.lines("divergences")
    for other in range(len(lines)):
        value = queries.divergence(torch, lines[one], lines[other])
        known = ANSWERS["divergences"].get(f"{one} {other}")
        if known is None:
            assert value[0].startswith("NotImplementedError: No KL"), lines[other]
        else:
            assert not apart(value, known), lines[other]


@pytest.mark.parametrize("line", ANSWERS["transforms"])
def test_transforms(line, device):
    assert not apart(queries.of_transform(torch, queries.Asked(torch, line, device)), ANSWERS["transforms"][line])


@pytest.mark.parametrize("line", ANSWERS["constraints"])
def test_constraints(line, device):
    assert not apart(queries.of_constraint(torch, queries.Asked(torch, line, device)), ANSWERS["constraints"][line])


@pytest.mark.parametrize("line", ANSWERS["refused"])
def test_refusals(line):
    assert queries.tried(lambda: queries.Asked(torch, line).value) == ANSWERS["refused"][line]


@pytest.mark.parametrize("line", ANSWERS["utilities"])
def test_utilities(line, device):
    assert not apart(queries.tried(lambda: queries.Asked(torch, line, device).value), ANSWERS["utilities"][line])


def test_recorded_answers_cover_all_distributions():
    asked_of = " ".join(LINES)
    for name in D.__all__:
        kind = getattr(D, name)
        if isinstance(kind, type) and issubclass(kind, D.Distribution):
            assert name in ("Distribution", "ExponentialFamily") or f"D.{name}(" in asked_of, name
