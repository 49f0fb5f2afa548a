"""Random networks from files: optimized calls give what calls without optimization give."""

from __future__ import annotations

import pytest

from .random_networks import FORMATS, difference


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_random_network(seed):
    gap, replays = difference(seed, FORMATS[seed % 3])
    assert gap < 1e-5 and replays > 0
